// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages overlap, but bars on one line of a picture must not. So each host
 * has lanes for messages it sends and for those it receives; a message takes
 * the lowest free one for as long as it is under way. Host and lane are found
 * by its serial in a hash table with linear probing. There a message may have
 * another name, too: Homa's control packets know only the id of an RPC.
 */
#include <errno.h>
#include <stdlib.h>

#include "homa_hash.h"
#include "trace_impl.h"

#define FIRST_PLACES 1024u

int trace_lanes_init(struct trace_lanes *lanes, u32 hosts)
{
	lanes->busy = calloc((size_t)hosts * TRACE_SIDES * TRACE_LANE_WORDS, sizeof(u64));
	lanes->used = calloc((size_t)hosts * TRACE_SIDES, sizeof(u32));
	lanes->table = calloc(FIRST_PLACES, sizeof(*lanes->table));
	lanes->mask = FIRST_PLACES - 1;
	lanes->count = 0;
	if (lanes->busy && lanes->used && lanes->table)
		return 0;
	trace_lanes_free(lanes);
	return -ENOMEM;
}

void trace_lanes_free(struct trace_lanes *lanes)
{
	free(lanes->busy);
	free(lanes->used);
	free(lanes->table);
	lanes->busy = NULL;
	lanes->used = NULL;
	lanes->table = NULL;
}

/* ---- the table ---- */

static u64 place_key(u64 serial, enum trace_side side)
{
	return serial << 1 | side; /* never 0, because serials begin at 1 */
}

static u64 alias_key(u64 alias)
{
	return alias | 1ull << 63;
}

static u32 place_home(const struct trace_lanes *lanes, u64 key)
{
	return (u32)homa_hash_mix(key) & lanes->mask;
}

/* Returns the entry of @key or, if there is none, the free entry where it would go. */
static struct trace_place *place_find(const struct trace_lanes *lanes, u64 key)
{
	u32 i = place_home(lanes, key);

	while (lanes->table[i].key && lanes->table[i].key != key)
		i = (i + 1) & lanes->mask;
	return &lanes->table[i];
}

static bool table_grow(struct trace_lanes *lanes)
{
	struct trace_place *old = lanes->table;
	const u32 places = lanes->mask + 1;
	u32 i;

	lanes->table = calloc(places * 2ul, sizeof(*old));
	if (!lanes->table) {
		lanes->table = old;
		return false;
	}
	lanes->mask = places * 2 - 1;
	for (i = 0; i < places; i++)
		if (old[i].key)
			*place_find(lanes, old[i].key) = old[i];
	free(old);
	return true;
}

/* Removes an entry and closes the gap, so that no probe stops too early. */
static void place_remove(struct trace_lanes *lanes, struct trace_place *place)
{
	u32 gap = (u32)(place - lanes->table), i = gap;

	for (;;) {
		i = (i + 1) & lanes->mask;
		if (!lanes->table[i].key)
			break;
		if (((i - place_home(lanes, lanes->table[i].key)) & lanes->mask) >=
		    ((i - gap) & lanes->mask)) {
			lanes->table[gap] = lanes->table[i];
			gap = i;
		}
	}
	lanes->table[gap].key = 0;
	lanes->count--;
}

/* ---- lanes ---- */

u32 trace_lane_take(struct trace_lanes *lanes, u64 serial, enum trace_side side, u32 host,
		    bool *fresh)
{
	u64 *words = &lanes->busy[(host * TRACE_SIDES + side) * TRACE_LANE_WORDS];
	u32 *used = &lanes->used[host * TRACE_SIDES + side];
	struct trace_place *place;
	u32 word = 0, lane;

	if (lanes->count * 2 > lanes->mask && !table_grow(lanes))
		return TRACE_NO_LANE;
	while (word < TRACE_LANE_WORDS && words[word] == UINT64_MAX)
		word++;
	if (word == TRACE_LANE_WORDS)
		return TRACE_NO_LANE;
	lane = word * 64 + (u32)__builtin_ctzll(~words[word]);
	if (lane >= TRACE_MAX_LANES)
		return TRACE_NO_LANE;
	place = place_find(lanes, place_key(serial, side));
	if (place->key)
		return TRACE_NO_LANE; /* the message has a lane already */
	words[word] |= 1ull << (lane % 64);
	*place = (struct trace_place){ place_key(serial, side), 0, host, lane };
	lanes->count++;
	*fresh = lane >= *used;
	if (*fresh)
		*used = lane + 1;
	return lane;
}

u32 trace_lane_find(const struct trace_lanes *lanes, u64 serial, enum trace_side side,
		    u32 *host)
{
	const struct trace_place *place = place_find(lanes, place_key(serial, side));

	if (!place->key)
		return TRACE_NO_LANE;
	*host = place->host;
	return place->lane;
}

u32 trace_lane_release(struct trace_lanes *lanes, u64 serial, enum trace_side side,
		       u32 *host)
{
	struct trace_place *place = place_find(lanes, place_key(serial, side));
	u32 lane = place->lane;
	u64 other;

	if (!place->key)
		return TRACE_NO_LANE;
	*host = place->host;
	other = place->other;
	lanes->busy[(place->host * TRACE_SIDES + side) * TRACE_LANE_WORDS + lane / 64] &=
		~(1ull << (lane % 64));
	place_remove(lanes, place);
	if (other)
		place_remove(lanes, place_find(lanes, other));
	return lane;
}

void trace_lane_alias(struct trace_lanes *lanes, u64 serial, u64 alias)
{
	struct trace_place *name, *place = place_find(lanes, place_key(serial, TRACE_OUT));

	if (!place->key || place->other)
		return;
	name = place_find(lanes, alias_key(alias));
	if (name->key || lanes->count * 2 > lanes->mask)
		/* the name is taken, or there is no room until the table grows */
		return;
	*name = (struct trace_place){ alias_key(alias), serial, 0, 0 };
	place->other = name->key;
	lanes->count++;
}

u64 trace_lane_serial(const struct trace_lanes *lanes, u64 alias)
{
	return place_find(lanes, alias_key(alias))->other;
}
