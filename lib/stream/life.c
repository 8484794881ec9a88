// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams, and what finds them when homad speaks of one: its slot, the token of its
 * CONNECT, a listener's number. A token is a place in a table and a serial number, so
 * that a late answer is not taken for that to another question.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "stream_impl.h"

/* The number of entries that the table of CONNECTs has at first. */
#define WANTED_MIN 64u

int homa_streams_usable(const struct homa_streams *ctx)
{
	return unlikely(ctx->fork_generation != homa_fork_generation ||
			homa_streams_gone(ctx)) ?
		       -ECONNRESET :
		       0;
}

struct homa_stream *homa_stream_new(struct homa_streams *ctx, u8 kind)
{
	struct homa_stream *stream = aligned_alloc(64, sizeof(*stream));

	if (!stream)
		return NULL;
	memset(stream, 0, sizeof(*stream));
	stream->ctx = ctx;
	stream->kind = kind;
	homa_list_init(&stream->all);
	homa_list_init(&stream->news);
	homa_list_init(&stream->queued);
	homa_list_init(&stream->queue);
	return stream;
}

void homa_stream_forget(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;

	if (homa_list_linked(&stream->news)) {
		homa_list_del(&stream->news);
		__atomic_store_n(&ctx->num_news, ctx->num_news - 1,
				 __ATOMIC_RELAXED);
	}
	if (stream->slot)
		ctx->by_slot[stream->index] = NULL;
	homa_list_del(&stream->queued);
	homa_list_del(&stream->all);
	homa_stream_give_back(stream->lent);
	free(stream);
}

void homa_stream_drop(struct homa_stream *stream, enum homa_stream_op op)
{
	/* After this the slot may belong to another stream, so nothing of it may be touched. */
	if (stream->slot)
		homa_stream_tell_looking(stream, op, 0);
	homa_stream_forget(stream);
}

void homa_stream_adopt(struct homa_stream *stream, u32 index, u32 generation)
{
	struct homa_streams *ctx = stream->ctx;

	stream->index = index;
	stream->generation = generation;
	stream->rx = ctx->spans + (u64)index * 2 * HOMA_STREAM_SPAN;
	stream->tx = stream->rx + HOMA_STREAM_SPAN;
	stream->rx_first = ctx->firsts + (u64)index * 2 * HOMA_STREAM_FIRST;
	stream->tx_first = stream->rx_first + HOMA_STREAM_FIRST;
	stream->own = &ctx->slots[index];
	ctx->by_slot[index] = stream;
	__atomic_store_n(&stream->slot, &ctx->slots[index], __ATOMIC_RELEASE);
}

static int more_wanted(struct homa_streams *ctx)
{
	u32 num = ctx->num_wanted ? 2 * ctx->num_wanted : WANTED_MIN, i;
	struct homa_streams_wanted *more;

	more = reallocarray(ctx->wanted, num, sizeof(*more));
	if (!more)
		return -ENOMEM;
	ctx->wanted = more;
	for (i = ctx->num_wanted; i < num; i++)
		more[i] = (struct homa_streams_wanted){
			.next_free = i + 1 < num ? i + 2 : 0
		};
	ctx->free_wanted = ctx->num_wanted + 1;
	ctx->num_wanted = num;
	return 0;
}

int homa_streams_want(struct homa_streams *ctx, struct homa_stream *stream)
{
	struct homa_streams_wanted *wanted;
	u32 index;
	int rc;

	/* homad has no slots for more, and the event ring has no room for the answers. */
	if (ctx->now_wanted >= ctx->num_slots)
		return -ENOBUFS;
	if (!ctx->free_wanted) {
		rc = more_wanted(ctx);
		if (rc)
			return rc;
	}
	index = ctx->free_wanted - 1;
	wanted = &ctx->wanted[index];
	ctx->free_wanted = wanted->next_free;
	if (!++ctx->serials)
		ctx->serials = 1;
	wanted->serial = ctx->serials;
	wanted->stream = stream;
	stream->token = (u64)wanted->serial << 32 | index;
	ctx->now_wanted++;
	return 0;
}

struct homa_streams_wanted *homa_streams_wanted(struct homa_streams *ctx,
						u64 token)
{
	u32 index = (u32)token, serial = (u32)(token >> 32);

	if (index >= ctx->num_wanted || !serial ||
	    ctx->wanted[index].serial != serial)
		return NULL;
	return &ctx->wanted[index];
}

void homa_streams_want_no_more(struct homa_streams *ctx,
			       struct homa_streams_wanted *wanted)
{
	ctx->now_wanted--;
	wanted->serial = 0;
	wanted->stream = NULL;
	wanted->next_free = ctx->free_wanted;
	ctx->free_wanted = (u32)(wanted - ctx->wanted) + 1;
}

struct homa_stream *homa_streams_listener(struct homa_streams *ctx, u64 number)
{
	struct homa_list *node;

	for (node = ctx->listeners.next; node != &ctx->listeners;
	     node = node->next) {
		struct homa_stream *listener =
			homa_container_of(node, struct homa_stream, queued);

		if (listener->token == number)
			return listener;
	}
	return NULL;
}
