// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Resets that come behind bytes. An application writes and resets at once: by the kernel's
 * send() its bytes are on their way before. Here both commands may be seen to in one round,
 * before anything is sent, so such a stream gets its turn to send first, one piece.
 * A program that ends may also have more connections than the engine keeps resets for. Then the
 * others wait until those have left.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "streams.h"
#include "tcp_stream.h"

/* The most streams that wait for their turn and are looked at in a round. The others follow
 * in the next ones, so that a user with thousands of them on a slow link does not hold up
 * the rest. */
#define MOST_LOOKED_AT 64u

/* Has the stream sent what it had to send, or can it not be sent now, as with the
 * kernel? */
static bool had_its_turn(const struct homad_stream *stream)
{
	const struct tas_flow *f = &stream->conn.f;

	return !homa_list_linked(&f->tx) || f->snd_nxt != stream->sent_before;
}

u32 homad_streams_reset(struct homad_thread *t)
{
	struct homa_list *list = &t->tcp->resetting;
	u32 n = 0, left = MOST_LOOKED_AT;
	bool more = !homa_list_empty(list);
	const struct homa_list *last = list->prev;

	while (more && left-- && !homa_list_empty(list)) {
		struct homa_list *node = list->next;
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, pending);

		if (!homad_stream_may_reset(t, stream))
			break;
		more = node != last;
		homa_list_del(node);
		if (!had_its_turn(stream)) {
			homa_list_add_tail(list, node);
			continue;
		}
		homad_stream_end(t, stream, true);
		homad_tcp_local_reset(t);
		n++;
	}
	return n;
}
