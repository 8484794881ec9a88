// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What a stream is ready for, from the words of its slot. */
#include "stream_fork.h"
#include "stream_impl.h"

/* As in Linux, a writer that had to wait may write when a third of the buffer is free. */
static bool is_writable(struct homa_stream *stream)
{
	struct homa_stream_view view;
	u32 used;

	homa_stream_look_tx(stream, &view, &used);
	return view.bytes && view.bytes >= used / 2;
}

size_t homa_stream_writable(struct homa_stream *stream)
{
	struct homa_stream_view view = { .bytes = 0 };
	u32 used;

	if (homa_stream_slot(stream))
		homa_stream_look_tx(stream, &view, &used);
	return view.bytes;
}

static unsigned int listener_ready(struct homa_stream *listener)
{
	unsigned int ready = 0;

	/* What is offered may have been taken by others. */
	if (!__atomic_load_n(&listener->waiting, __ATOMIC_ACQUIRE))
		homa_streams_look(listener->ctx);
	if (__atomic_load_n(&listener->waiting, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&listener->offered, __ATOMIC_ACQUIRE))
		ready |= HOMA_STREAM_IN;
	if (homa_stream_failure(listener))
		ready |= HOMA_STREAM_ERROR | HOMA_STREAM_HUP;
	return ready;
}

unsigned int homa_stream_ready(struct homa_stream *stream)
{
	struct homa_stream_view view = { .state = 0 };
	unsigned int ready = 0;
	bool shut;

	if (stream->ctx->fork_generation != homa_fork_generation)
		return HOMA_STREAM_ERROR | HOMA_STREAM_HUP;
	if (stream->kind == HOMA_STREAM_KIND_LISTENER)
		return listener_ready(stream);
	if (!homa_stream_slot(stream))
		homa_streams_look(stream->ctx);
	if (homa_stream_slot(stream)) {
		shut = homa_stream_is_shut(stream);
		homa_stream_see_rx(stream, &view);
		if (view.bytes)
			ready |= HOMA_STREAM_IN;
		if (view.state & HOMA_STREAM_HAS_END)
			ready |= HOMA_STREAM_EOF;
		if (!shut && is_writable(stream))
			ready |= HOMA_STREAM_OUT;
		if (shut && (view.state & HOMA_STREAM_HAS_END))
			ready |= HOMA_STREAM_HUP;
	}
	if (homa_stream_failure(stream)) {
		ready &= ~(unsigned int)HOMA_STREAM_OUT;
		ready |= HOMA_STREAM_ERROR | HOMA_STREAM_HUP;
	}
	return ready;
}

int homa_stream_error(struct homa_stream *stream)
{
	return -homa_stream_failure(stream);
}
