// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How streams end for the application: closed, reset or half closed; and options and
 * patience, which are commands as these are. A connection that homad has not opened yet has no
 * slot: what is said of it is remembered, and homad's answer is followed by it.
 */
#include <errno.h>
#include <stdlib.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* Tells homad that the listener takes no more connections, and that those that nobody has
 * accepted are reset. Returns false if homad will not name the listener any more. */
static bool unlisten(struct homa_stream *listener)
{
	struct homa_stream_command command = {
		.op = HOMA_STREAM_UNLISTEN,
		.slot = (u32)listener->token,
	};
	struct homa_list *node;

	homa_streams_drain(listener->ctx);
	while ((node = homa_list_pop(&listener->queue)))
		homa_stream_drop(homa_container_of(node, struct homa_stream,
						   queued),
				 HOMA_STREAM_ABORT);
	__atomic_store_n(&listener->waiting, 0, __ATOMIC_RELEASE);
	if (!listener->leaves && !listener->error &&
	    !homa_streams_command_looking(listener->ctx, &command)) {
		listener->leaves = true;
		listener->ctx->unlistens++;
	}
	return listener->leaves;
}

void homa_streams_settle(struct homa_streams *ctx)
{
	u32 turns = 0, goal;
	bool wait;

	if (homa_streams_usable(ctx))
		return;
	homa_gate_lock(&ctx->look);
	goal = ctx->unlistens;
	homa_gate_unlock(&ctx->look);
	for (;;) {
		homa_gate_lock(&ctx->look);
		homa_streams_drain(ctx);
		wait = (s32)(goal - ctx->unlistened) > 0;
		homa_gate_unlock(&ctx->look);
		if (!wait || homa_streams_gone(ctx))
			return;
		homa_streams_pause(ctx, &turns);
	}
}

/* homad may still name the listener, so it is freed when homad has answered UNLISTEN. */
static void close_listener(struct homa_stream *listener)
{
	struct homa_streams *ctx = listener->ctx;
	bool leaves = unlisten(listener);

	if (homa_list_linked(&listener->news)) {
		homa_list_del(&listener->news);
		__atomic_store_n(&ctx->num_news, ctx->num_news - 1,
				 __ATOMIC_RELAXED);
	}
	listener->closed = true;
	/* homad will not name it any more. */
	if (!leaves)
		homa_stream_forget(listener);
}

/* The listener stays, but accept() fails from now on. */
static int shut_listener(struct homa_stream *listener)
{
	struct homa_streams *ctx = listener->ctx;
	int rc = homa_streams_usable(ctx);

	if (rc)
		return rc;
	homa_gate_lock(&ctx->look);
	unlisten(listener);
	if (!listener->error)
		__atomic_store_n(&listener->error, EINVAL, __ATOMIC_RELEASE);
	homa_stream_add_news(listener);
	homa_gate_unlock(&ctx->look);
	return 0;
}

static void end(struct homa_stream *stream, enum homa_stream_op op)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_streams_wanted *wanted;

	/* In a child of fork() the stream is only memory, and there is one thread. */
	if (ctx->fork_generation != homa_fork_generation) {
		homa_list_del(&stream->all);
		homa_stream_give_back(stream->lent);
		free(stream);
		return;
	}
	homa_gate_lock(&ctx->look);
	if (stream->kind == HOMA_STREAM_KIND_LISTENER) {
		close_listener(stream);
	} else {
		wanted = stream->slot ? NULL :
					homa_streams_wanted(ctx, stream->token);
		if (wanted)
			wanted->stream = NULL;
		homa_stream_drop(stream, op);
	}
	homa_gate_unlock(&ctx->look);
}

void homa_stream_close(struct homa_stream *stream)
{
	if (stream)
		end(stream, HOMA_STREAM_CLOSE);
}

void homa_stream_abort(struct homa_stream *stream)
{
	if (stream)
		end(stream, HOMA_STREAM_ABORT);
}

int homa_stream_shutdown(struct homa_stream *stream)
{
	int rc;

	if (stream->kind == HOMA_STREAM_KIND_LISTENER)
		return shut_listener(stream);
	rc = homa_stream_failure(stream);
	if (rc)
		return rc;
	if (!homa_stream_slot(stream))
		homa_streams_look(stream->ctx);
	if (!homa_stream_slot(stream))
		return -ENOTCONN;
	/* Among all processes that have the stream only one tells homad. */
	if (__atomic_exchange_n(&stream->shut, true, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&stream->slot->shut, 1, __ATOMIC_RELAXED))
		return 0;
	return homa_stream_tell(stream, HOMA_STREAM_SHUT, 0);
}

int homa_stream_give_up(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_streams_wanted *wanted;
	int rc = homa_streams_usable(ctx);

	if (rc)
		return rc;
	homa_gate_lock(&ctx->look);
	homa_streams_drain(ctx);
	wanted = stream->slot ? NULL : homa_streams_wanted(ctx, stream->token);
	if (wanted && wanted->stream == stream) {
		/* What homad opens now is refused. */
		wanted->stream = NULL;
		__atomic_store_n(&stream->error, ECONNRESET, __ATOMIC_RELEASE);
		homa_stream_add_news(stream);
	} else {
		rc = -ENOTCONN;
	}
	homa_gate_unlock(&ctx->look);
	return rc;
}

#define ALL_OPTIONS                                                       \
	(HOMA_STREAM_NODELAY | HOMA_STREAM_CORK | HOMA_STREAM_KEEPALIVE | \
	 HOMA_STREAM_RESET)

_Static_assert((int)HOMA_STREAM_NODELAY == HOMA_STREAM_OPT_NODELAY &&
		       (int)HOMA_STREAM_CORK == HOMA_STREAM_OPT_CORK &&
		       (int)HOMA_STREAM_KEEPALIVE == HOMA_STREAM_OPT_KEEPALIVE &&
		       (int)HOMA_STREAM_RESET == HOMA_STREAM_OPT_RESET,
	       "options are passed on as they are");

int homa_stream_options(struct homa_stream *stream, unsigned int options)
{
	struct homa_streams *ctx = stream->ctx;
	int rc = homa_streams_usable(ctx);

	if (rc || (options & ~(unsigned int)ALL_OPTIONS))
		return rc ? rc : -EINVAL;
	homa_gate_lock(&ctx->look);
	stream->options = options;
	/* Another process that has the stream may have told homad something else meanwhile. */
	if (stream->slot &&
	    (stream->told_options != options || homa_stream_is_shared(stream))) {
		stream->told_options = options;
		rc = homa_stream_tell_looking(stream, HOMA_STREAM_OPTIONS,
					      options);
	}
	homa_gate_unlock(&ctx->look);
	return rc;
}

int homa_stream_quick_acks(struct homa_stream *stream, bool on)
{
	struct homa_streams *ctx = stream->ctx;
	int rc = homa_streams_usable(ctx);

	if (rc)
		return rc;
	homa_gate_lock(&ctx->look);
	if (stream->slot) {
		stream->told_options = stream->options;
		rc = homa_stream_tell_looking(stream, HOMA_STREAM_OPTIONS,
					      stream->options |
						      (on ? HOMA_STREAM_OPT_QUICK :
							    HOMA_STREAM_OPT_SLOW));
	}
	homa_gate_unlock(&ctx->look);
	return rc;
}

_Static_assert((int)HOMA_STREAM_USER_TIMEOUT == HOMA_STREAM_PATIENCE_USER &&
		       (int)HOMA_STREAM_KEEP_IDLE == HOMA_STREAM_PATIENCE_IDLE &&
		       (int)HOMA_STREAM_KEEP_INTERVAL ==
			       HOMA_STREAM_PATIENCE_INTERVAL &&
		       (int)HOMA_STREAM_KEEP_PROBES == HOMA_STREAM_PATIENCE_PROBES,
	       "what is set is passed on as it is");

int homa_stream_patience(struct homa_stream *stream, unsigned int which,
			 unsigned int value)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_patience all;
	int rc = homa_streams_usable(ctx);

	if (rc || !homa_stream_may_wait(which, value))
		return rc ? rc : -EINVAL;
	if (!(ctx->att->queues->features & HOMA_SHM_CAN_PATIENCE))
		return -EOPNOTSUPP;
	homa_gate_lock(&ctx->look);
	all = stream->patience;
	homa_patience_set(&all, which, value);
	/* Only this one is told. Others may have been set by another process that has the stream,
	 * too. */
	stream->patience = (struct homa_patience){ 0 };
	homa_patience_set(&stream->patience, which, value);
	if (stream->slot)
		rc = homa_stream_tell_patience(stream);
	stream->patience = all;
	homa_gate_unlock(&ctx->look);
	return rc;
}
