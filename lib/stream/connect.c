// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A connection that this side opens. homad is asked by a command and answers by an event,
 * so nothing waits here.
 */
#include <errno.h>
#include <stdlib.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* Turns of homa_streams_pause() after which nobody waits for homad any more: with the naps in them
 * 50 ms at least. */
#define WAY_TURNS 1250u

/* Give the stream its token and make it known, before homad can answer. */
static int enter(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;
	int rc;

	homa_gate_lock(&ctx->look);
	rc = homa_streams_want(ctx, stream);
	if (!rc)
		homa_list_add_tail(&ctx->all, &stream->all);
	homa_gate_unlock(&ctx->look);
	return rc;
}

static void leave(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_streams_wanted *wanted;

	homa_gate_lock(&ctx->look);
	wanted = homa_streams_wanted(ctx, stream->token);
	if (wanted)
		homa_streams_want_no_more(ctx, wanted);
	homa_stream_forget(stream);
	homa_gate_unlock(&ctx->look);
}

int homa_stream_connect_with(struct homa_streams *ctx,
			     const struct homa_patience *patience,
			     const struct sockaddr *local,
			     const struct sockaddr *remote, socklen_t length,
			     bool named, struct homa_stream **out)
{
	struct homa_stream_command command = { .op = HOMA_STREAM_CONNECT };
	struct homa_stream *stream;
	int rc;

	rc = homa_streams_usable(ctx);
	if (!rc)
		rc = homa_stream_end_of(&command.remote, remote, length);
	if (!rc && local)
		rc = homa_stream_end_of(&command.local, local, length);
	if (rc)
		return rc;
	stream = homa_stream_new(ctx, HOMA_STREAM_KIND_CONNECTION);
	if (!stream)
		return -ENOMEM;
	if (ctx->att->queues->features & HOMA_SHM_CAN_PATIENCE) {
		stream->patience = *patience;
		command.slot = patience->value[HOMA_STREAM_PATIENCE_USER];
	}
	if (named && (ctx->att->queues->features & HOMA_SHM_CAN_BEGUN))
		command.value = HOMA_STREAM_OPT_BEGUN;
	/* Take events now, so that the answers to many calls do not fill the event ring. */
	homa_streams_look(ctx);
	rc = enter(stream);
	if (rc) {
		free(stream);
		return rc;
	}
	command.token = stream->token;
	rc = homa_streams_command(ctx, &command);
	if (rc) {
		leave(stream);
		return rc;
	}
	*out = stream;
	return 0;
}

int homa_stream_await_way(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;
	u32 turns = 0, goal, head;
	int rc;

	homa_gate_lock(&ctx->submit);
	goal = ctx->command_tail;
	homa_gate_unlock(&ctx->submit);
	for (;;) {
		/* homad says why it cannot before it says that it has taken the command. */
		head = __atomic_load_n(&ctx->area->command.head,
				       __ATOMIC_ACQUIRE);
		homa_streams_look(ctx);
		rc = homa_stream_failure(stream);
		if (rc || (s32)(goal - head) <= 0 || turns > WAY_TURNS)
			return rc;
		homa_streams_pause(ctx, &turns);
	}
}

int homa_stream_begun(struct homa_stream *stream, struct sockaddr_storage *local)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_stream_end end;

	/* It may have failed already and had an address all the same. */
	homa_stream_await_way(stream);
	homa_gate_lock(&ctx->look);
	end = stream->begun;
	homa_gate_unlock(&ctx->look);
	if (!end.port)
		return -ENOTCONN;
	homa_stream_end_to(local, &end);
	return 0;
}

int homa_stream_connect(struct homa_streams *ctx, const struct sockaddr *local,
			const struct sockaddr *remote, socklen_t length,
			struct homa_stream **out)
{
	static const struct homa_patience none;

	return homa_stream_connect_with(ctx, &none, local, remote, length,
					false, out);
}
