// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Resets that come behind bytes. An application writes and resets at once: by the kernel's
 * send() its bytes are on their way before. Here both commands may be seen to in one round,
 * before anything is sent, so such a stream gets its turn to send first, one piece.
 */
#include "fast.h"
#include "streams.h"

/* What it had to say was said, or cannot be said now, as with the kernel. */
static bool had_its_turn(const struct homad_stream *stream)
{
	const struct tas_flow *f = &stream->conn.f;

	return !homa_list_linked(&f->tx) || f->snd_nxt != stream->sent_before;
}

u32 homad_streams_reset(struct homad_thread *t)
{
	struct homa_list *node = t->tcp->resetting.next;
	u32 n = 0;

	while (node != &t->tcp->resetting) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, pending);

		node = node->next;
		if (!had_its_turn(stream))
			continue;
		homa_list_del(&stream->pending);
		homad_stream_end(t, stream, true);
		homad_tcp_local_reset(t);
		n++;
	}
	return n;
}
