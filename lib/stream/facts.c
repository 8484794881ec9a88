// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What is known of a stream, and the caller's pointer. */
#include <errno.h>
#include <string.h>
#include "stream_impl.h"

static void fill(struct homa_stream *stream, struct homa_stream_facts *facts)
{
	struct homa_stream_slot *slot = stream->slot;
	struct homa_stream_view view;
	u32 used;

	homa_stream_end_to(&facts->local, &slot->local);
	homa_stream_end_to(&facts->remote, &slot->remote);
	facts->mss = __atomic_load_n(&slot->mss, __ATOMIC_RELAXED);
	facts->rtt_us = __atomic_load_n(&slot->rtt_us, __ATOMIC_RELAXED);
	facts->cwnd = __atomic_load_n(&slot->cwnd, __ATOMIC_RELAXED);
	facts->retransmits =
		__atomic_load_n(&slot->retransmits, __ATOMIC_RELAXED);
	homa_stream_see_rx(stream, &view);
	facts->unread = view.bytes;
	homa_stream_look_tx(stream, &view, &used);
	facts->unsent = used;
}

int homa_stream_facts(struct homa_stream *stream, struct homa_stream_facts *facts)
{
	struct homa_stream_facts all = { .size = facts->size };

	if (stream->ctx->fork_generation != homa_fork_generation)
		return -ECONNRESET;
	if (facts->size < sizeof(facts->size))
		return -EINVAL;
	if (!homa_stream_slot(stream))
		return -ENOTCONN;
	fill(stream, &all);
	memcpy(facts, &all,
	       facts->size < sizeof(all) ? facts->size : sizeof(all));
	return 0;
}

void homa_stream_set_user(struct homa_stream *stream, void *user)
{
	__atomic_store_n(&stream->user, user, __ATOMIC_RELEASE);
}

void *homa_stream_user(const struct homa_stream *stream)
{
	return __atomic_load_n(&stream->user, __ATOMIC_ACQUIRE);
}
