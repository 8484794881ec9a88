/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Depth first, with a copy of each state on the way. The first choice of a state costs
 * no fault, so the way of first choices is what happens when the network becomes
 * good and everybody does his part: it has to reach an end from every state
 * (liveness). It is followed first everywhere, so it is enough that it never meets a
 * state of its own, nor goes on for ever.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK 64u  /* bytes that are put back together */
#define BLOCK 512u /* bytes that are compared together */
#define LOOK 4096u /* steps between looks at all bytes */
#define UNDO (1u << 22)
#define PAUSE 1024u /* steps between looks at the clock */

/* What was at @at before a step. */
struct change {
	u32 at;
	u8 old[CHUNK];
};

struct xp_choice xp_path[XP_DEPTH + 1];
u32 xp_path_len;

static struct change *changes;
static u8 *shadow; /* the state on top of the stack, as it was before a step */
static u32 num_changes;
static struct xp_extent extents[XP_HOSTS][XP_EXTENTS];
static u32 common; /* bytes before all of them */

static void *map(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

bool xp_search_new(struct xp_search *search)
{
	memset(search, 0, sizeof(*search));
	search->frames = map((XP_DEPTH + 1) * sizeof(*search->frames));
	changes = map(UNDO * sizeof(*changes));
	shadow = map(xp_most_bytes);
	return search->frames && changes && shadow;
}

/* ---- changes: a step touches few bytes of a state ---- */

typedef u64 quad __attribute__((vector_size(16)));

static bool same_chunk(const u8 *one, const u8 *other)
{
	const quad *a = (const void *)one, *b = (const void *)other;
	quad d = (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);

	return !(d[0] | d[1]);
}

static void changes_from(u32 from, u32 to,
			 void (*fn)(u8 *now, u8 *before, u32 at))
{
	u8 *now = (u8 *)xp_world;
	u32 at, i, end;

	for (at = from; at < to; at += BLOCK) {
		end = at + BLOCK < to ? at + BLOCK : to;
		if (!memcmp(now + at, shadow + at, end - at))
			continue;
		for (i = at; i < end; i += CHUNK)
			if (!same_chunk(now + i, shadow + i))
				fn(now + i, shadow + i, i);
	}
}

/* A step that changes a host and does not say so would be undone by halves. */
static void look_everywhere(void)
{
	static u32 steps;

	if (++steps % LOOK == 0 && memcmp(xp_world, shadow, xp_bytes) != 0)
		xp_fail("a step has changed a host that it has not touched");
}

/* @fn brings both together again. */
static void each_change(void (*fn)(u8 *now, u8 *before, u32 at))
{
	u32 host, i;

	changes_from(0, common, fn);
	for (host = 0; host < xp_world->hosts; host++)
		for (i = 0; xp_touched >> host & 1 && i < XP_EXTENTS; i++)
			changes_from(extents[host][i].from, extents[host][i].to,
				     fn);
	xp_touched = 0;
	look_everywhere();
}

static void put_back(u8 *now, u8 *before, u32 at)
{
	(void)at;
	memcpy(now, before, CHUNK);
}

static void note_change(u8 *now, u8 *before, u32 at)
{
	if (num_changes == UNDO) {
		xp_fail("the way is too long");
		return;
	}
	changes[num_changes].at = at;
	memcpy(changes[num_changes++].old, before, CHUNK);
	memcpy(before, now, CHUNK);
}

static void undo_to(u32 mark)
{
	while (num_changes > mark) {
		const struct change *c = &changes[--num_changes];

		memcpy((u8 *)xp_world + c->at, c->old, CHUNK);
		memcpy(shadow + c->at, c->old, CHUNK);
	}
}

/* ---- the way ---- */

/* The state that is there goes on the stack. */
static struct xp_frame *push(struct xp_search *search, u64 hash)
{
	struct xp_frame *f = &search->frames[search->depth++];

	f->hash = hash;
	f->undo = num_changes;
	f->at = 0;
	f->num = (u16)xp_choices(xp_world, f->choice);
	each_change(note_change);
	return f;
}

static void begin(struct xp_search *search)
{
	u32 i, k;

	search->depth = num_changes = 0;
	common = (u32)xp_bytes;
	for (i = 0; i < xp_world->hosts; i++) {
		xp_proto->extents(xp_world, i, extents[i]);
		for (k = 0; k < XP_EXTENTS; k++)
			common = homa_min_u32(common, extents[i][k].from);
	}
	memcpy(shadow, xp_world, xp_bytes);
}

void xp_search_first(struct xp_search *search)
{
	u64 hash = xp_hash(xp_world);

	begin(search);
	search->num_prefix = 0;
	xp_table_add(hash);
	push(search, hash);
}

/* The scenario's beginning and the choices of the prefix. */
static bool go_to_prefix(struct xp_search *search, u32 faults)
{
	u32 i;

	xp_world_begin(xp_scenario, faults);
	for (i = 0; i < search->num_prefix && !xp_why[0] && !xp_full; i++)
		xp_apply_guarded(xp_world, search->prefix[i]);
	begin(search);
	return !xp_why[0] && !xp_full;
}

bool xp_search_at(struct xp_search *search, u32 faults,
		  const struct xp_choice *choice, u32 num)
{
	struct xp_frame *f;

	if (!go_to_prefix(search, faults))
		return false;
	f = push(search, xp_hash(xp_world));
	/* The first choice, the one of good fortune, is another process's. */
	memcpy(f->choice + 1, choice, num * sizeof(*choice));
	f->num = (u16)(num + 1);
	f->at = 1;
	return true;
}

bool xp_search_again(struct xp_search *search, u32 faults)
{
	u32 depth = search->depth, i;

	if (!go_to_prefix(search, faults))
		return false;
	for (i = 0; i < depth; i++) {
		struct xp_frame *f = &search->frames[i];

		search->depth = i + 1;
		f->undo = num_changes;
		each_change(note_change);
		if (i + 1 == depth)
			break;
		xp_apply_guarded(xp_world, f->choice[f->at - 1]);
		if (xp_why[0] || xp_full)
			return false;
	}
	return true;
}

static void keep_path(const struct xp_search *search)
{
	u32 i;

	xp_path_len = 0;
	for (i = 0; i < search->num_prefix; i++)
		xp_path[xp_path_len++] = search->prefix[i];
	for (i = 0; i < search->depth; i++)
		xp_path[xp_path_len++] =
			search->frames[i].choice[search->frames[i].at - 1];
}

/* Has the way of first choices met a state that it has been in? */
static bool goes_round(const struct xp_search *search, u64 hash)
{
	u32 i = search->depth;

	while (i && search->frames[i - 1].at == 1)
		if (search->frames[--i].hash == hash)
			return true;
	return false;
}

/* A state that was not seen before; true: a property does not hold. */
static bool new_state(struct xp_search *search, u64 hash)
{
	search->stats->states++;
	xp_compare_keep(hash);
	if (search->num_prefix + search->depth == XP_DEPTH) {
		xp_fail("no end after %u steps", XP_DEPTH);
		return true;
	}
	if (push(search, hash)->num)
		return xp_why[0];
	search->stats->ends++;
	if (!xp_proto->ended(xp_world))
		xp_fail("nothing can happen any more, and something is left");
	else
		xp_proto->check_end(xp_world);
	undo_to(search->frames[--search->depth].undo);
	return xp_why[0];
}

/* One choice of the state on top; true: a property does not hold. */
static bool step(struct xp_search *search)
{
	struct xp_frame *f = &search->frames[search->depth - 1];
	struct xp_stats *stats = search->stats;
	u64 hash;

	xp_apply_guarded(xp_world, f->choice[f->at++]);
	stats->steps++;
	if (xp_why[0])
		return true;
	if (xp_full) {
		xp_full = false;
		stats->pruned++;
		each_change(put_back);
		return false;
	}
	hash = xp_hash(xp_world);
	if (xp_table_add(hash))
		return new_state(search, hash);
	xp_compare(hash);
	if (xp_why[0])
		return true;
	if (f->at == 1 && goes_round(search, hash)) {
		xp_fail("for ever the same: nothing comes to an end");
		return true;
	}
	each_change(put_back);
	return false;
}

enum xp_result xp_search_run(struct xp_search *search)
{
	struct xp_stats *stats = search->stats;
	u32 n = 0;

	while (search->depth) {
		struct xp_frame *top = &search->frames[search->depth - 1];

		if (top->at == top->num) {
			undo_to(top->undo);
			search->depth--;
			continue;
		}
		if (step(search)) {
			keep_path(search);
			return XP_BROKEN;
		}
		stats->depth = search->num_prefix + search->depth;
		if (stats->depth > stats->deepest)
			stats->deepest = stats->depth;
		if (++n % PAUSE == 0 && search->pause(search))
			return XP_STOPPED;
	}
	return XP_ALL_SEEN;
}
