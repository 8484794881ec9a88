/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The book. An RPC is written down when it starts; who meets it later finds its line
 * by client host and id, which also shows that ids are never reused. Payload bytes
 * are a function of the line, so a receiver can tell every byte that is wrong, and a
 * request that is executed twice.
 */
#include "harness.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

void pair_pattern(u8 *buf, u64 key, u32 offset, u32 len)
{
	u32 i = 0;

	while (i < len) {
		u64 word = htole64(pair_mix(key + (offset + i) / 8));
		u32 skip = (offset + i) & 7, n = 8 - skip;

		if (n > len - i)
			n = len - i;
		/* Nearly all words are whole, and to copy eight bytes takes no call. */
		if (n == 8)
			memcpy(buf + i, &word, 8);
		else
			memcpy(buf + i, (const u8 *)&word + skip, n);
		i += n;
	}
}

u64 pair_key(const struct pair_world *w, const struct pair_rpc *rpc, bool response)
{
	return pair_mix(w->cfg.seed ^ ((u64)rpc->index << 1 | response)) | 1;
}

static u32 bucket(u8 client, u64 id)
{
	return pair_mix(id ^ (u64)client << 56) % PAIR_BOOK_BUCKETS;
}

struct pair_rpc *pair_book_find(struct pair_world *w, u8 client, u64 id)
{
	struct pair_rpc *rpc;

	for (rpc = w->by_id[bucket(client, id)]; rpc; rpc = rpc->next)
		if (rpc->client == client && rpc->handle.id == id)
			return rpc;
	return NULL;
}

struct pair_rpc *pair_book_add(struct pair_world *w)
{
	struct pair_rpc *rpc = calloc(1, sizeof(*rpc));

	if (w->num_rpcs == w->cap_rpcs) {
		w->cap_rpcs = w->cap_rpcs ? 2 * w->cap_rpcs : 64;
		w->book = realloc(w->book, w->cap_rpcs * sizeof(*w->book));
	}
	if (!rpc || !w->book)
		abort();
	rpc->index = w->num_rpcs;
	w->book[w->num_rpcs++] = rpc;
	return rpc;
}

void pair_book_id(struct pair_world *w, struct pair_rpc *rpc)
{
	u32 i = bucket(rpc->client, rpc->handle.id);

	rpc->next = w->by_id[i];
	w->by_id[i] = rpc;
	w->pending++;
}

bool pair_judged(const struct pair_world *w, const struct pair_rpc *rpc)
{
	return !w->hosts[rpc->client].hostile && !w->hosts[rpc->server].hostile;
}

void pair_rpc_ended(struct pair_world *w, struct pair_rpc *rpc,
		    enum pair_state state, int error)
{
	pair_check(w, rpc->state == PAIR_PENDING, "rpc %u ends twice",
		   rpc->index);
	rpc->state = state;
	rpc->error = error;
	rpc->end = w->now;
	w->pending--;
	if (w->on_end && state != PAIR_GONE)
		w->on_end(w, rpc);
}
