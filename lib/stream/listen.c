// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Listeners, and the connections that come to them. homad gives a listener its number in
 * the answer to a question; connections may come before this thread has read it, so other
 * threads that look at the event ring wait for that.
 */
#include <errno.h>
#include <stdlib.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* Count a thread that begins (@by 1) or ends (@by -1) to ask homad for a listener. */
static void count_listening(struct homa_streams *ctx, int by)
{
	homa_gate_lock(&ctx->look);
	ctx->listening += (u32)by;
	homa_gate_unlock(&ctx->look);
}

static void enter(struct homa_stream *listener, u32 number)
{
	struct homa_streams *ctx = listener->ctx;

	homa_gate_lock(&ctx->look);
	listener->token = number;
	homa_list_add_tail(&ctx->all, &listener->all);
	homa_list_add_tail(&ctx->listeners, &listener->queued);
	homa_gate_unlock(&ctx->look);
}

/* As with the kernel a negative number is more than any, and homad takes what it can. */
static u32 most_of(int backlog)
{
	return backlog ? (u32)backlog : 1;
}

int homa_stream_listen(struct homa_streams *ctx, int fd, int backlog,
		       struct homa_stream **out)
{
	struct homa_stream *listener;
	u32 number;
	int rc;

	rc = homa_streams_usable(ctx);
	if (rc || fd < 0)
		return rc ? rc : -EBADF;
	listener = homa_stream_new(ctx, HOMA_STREAM_KIND_LISTENER);
	if (!listener)
		return -ENOMEM;
	pthread_mutex_lock(&ctx->ctl);
	count_listening(ctx, 1);
	rc = homa_streams_ask_listen(ctx, fd, most_of(backlog), &number);
	if (rc == -ECONNRESET)
		homa_streams_lose(ctx);
	if (!rc)
		enter(listener, number);
	count_listening(ctx, -1);
	pthread_mutex_unlock(&ctx->ctl);
	if (rc)
		free(listener);
	else
		*out = listener;
	return rc;
}

/* May a command name the listener? After UNLISTEN homad does not know it. The caller has @look, and
 * gives the command before it gives that back. */
static bool names_it(const struct homa_stream *listener)
{
	return !listener->leaves && !listener->closed && !listener->error;
}

int homa_stream_backlog(struct homa_stream *listener, int backlog)
{
	struct homa_streams *ctx = listener->ctx;
	struct homa_stream_command command = { .op = HOMA_STREAM_BACKLOG,
					       .value = most_of(backlog) };
	int rc = homa_streams_usable(ctx);

	/* In a child of fork() that has not got its parent's streams the mapping is not there. */
	if (rc)
		return rc;
	if (!(ctx->att->queues->features & HOMA_SHM_CAN_BACKLOG))
		return -EOPNOTSUPP;
	homa_gate_lock(&ctx->look);
	command.slot = (u32)listener->token;
	rc = names_it(listener) ? homa_streams_command_looking(ctx, &command) :
				  -EINVAL;
	homa_gate_unlock(&ctx->look);
	return rc;
}

/* Nobody heard homad's events for the stream while it was in the queue, so it becomes news now if
 * bytes, an end or an error have come. */
static void introduce(struct homa_stream *stream)
{
	u32 state;

	__atomic_exchange_n(&stream->own->told, 0, __ATOMIC_SEQ_CST);
	state = __atomic_load_n(&stream->slot->state, __ATOMIC_ACQUIRE);
	if ((state & (HOMA_STREAM_HAS_END | HOMA_STREAM_HAS_ERROR)) ||
	    __atomic_load_n(&stream->slot->rx_end, __ATOMIC_ACQUIRE))
		homa_stream_add_news(stream);
}

static struct homa_stream *pop(struct homa_stream *listener)
{
	struct homa_stream *stream;
	struct homa_list *node;

	if (homa_list_empty(&listener->queue))
		homa_streams_drain(listener->ctx);
	node = homa_list_pop(&listener->queue);
	if (!node)
		return NULL;
	stream = homa_container_of(node, struct homa_stream, queued);
	__atomic_store_n(&listener->waiting, listener->waiting - 1,
			 __ATOMIC_RELEASE);
	introduce(stream);
	return stream;
}

/* The next connection that homad has given the listener. If other processes have the listener,
 * too, homad is asked for one. */
static struct homa_stream *next_waiting(struct homa_stream *listener)
{
	struct homa_stream_command command = { .op = HOMA_STREAM_ACCEPT };
	struct homa_streams *ctx = listener->ctx;
	struct homa_stream *stream;
	bool ask, wait, failed;
	u32 turns = 0;

	for (;;) {
		homa_gate_lock(&ctx->look);
		stream = pop(listener);
		ask = !stream && listener->offered && !listener->asked &&
		      names_it(listener);
		listener->asked |= ask;
		wait = !stream && listener->asked;
		command.slot = (u32)listener->token;
		failed = ask && homa_streams_command_looking(ctx, &command);
		homa_gate_unlock(&ctx->look);
		if (likely(!wait) || failed || homa_streams_gone(ctx))
			return stream;
		homa_streams_pause(ctx, &turns);
	}
}

static void inherit_patience(struct homa_stream *stream,
			     const struct homa_stream *listener)
{
	struct homa_streams *ctx = listener->ctx;

	homa_gate_lock(&ctx->look);
	stream->patience = listener->patience;
	homa_stream_tell_patience(stream);
	homa_gate_unlock(&ctx->look);
}

int homa_stream_accept(struct homa_stream *listener, struct homa_stream **out)
{
	struct homa_stream *stream;
	int rc;

	if (listener->kind != HOMA_STREAM_KIND_LISTENER)
		return -EINVAL;
	if (listener->ctx->fork_generation != homa_fork_generation)
		return -ECONNRESET;
	stream = next_waiting(listener);
	if (!stream) {
		rc = homa_stream_failure(listener);
		return rc ? rc : -EAGAIN;
	}
	if (listener->options)
		homa_stream_options(stream, listener->options);
	if (listener->patience.set)
		inherit_patience(stream, listener);
	*out = stream;
	return 0;
}
