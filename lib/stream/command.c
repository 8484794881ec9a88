// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is said to homad. A command is a store that homad sees and a look whether it
 * sleeps; only then there is a system call. Each stream rings once until homad has
 * looked, so the ring is full only if homad has not run for long: then it gets the
 * processor, and nothing is lost, unless it is dead.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* The number of times that a waiting thread yields the processor before it begins to sleep. */
#define YIELDS 1000u
/* The number of events for which memory is taken when the first one is put aside. */
#define KEPT_MIN 256u
/* The time that a thread sleeps between two looks, in ns. */
#define NAP_NS 200000

void homa_streams_lose(struct homa_streams *ctx)
{
	u64 value = 1;

	if (__atomic_exchange_n(&ctx->gone, 1, __ATOMIC_SEQ_CST))
		return;
	/* homad may be alive, and shall see that nobody listens at this end any more. */
	shutdown(ctx->att->sock, SHUT_RDWR);
	/* The descriptor stays readable, so that all threads that sleep wake up. */
	if (write(ctx->nudge_fd, &value, sizeof(value)) < 0)
		return;
}

void homa_streams_hung_up(struct homa_streams *ctx)
{
	homa_streams_lose(ctx);
}

void homa_streams_check(struct homa_streams *ctx)
{
	u32 state = __atomic_load_n(&ctx->att->queues->state, __ATOMIC_ACQUIRE);

	if (state != HOMA_SHM_RUNNING || homa_svc_hung_up(ctx->att))
		homa_streams_lose(ctx);
}

void homa_streams_kick(struct homa_streams *ctx, u32 why)
{
	u64 value = 1;

	if (!(__atomic_load_n(&ctx->att->queues->need_kick, __ATOMIC_SEQ_CST) &
	      why))
		return;
	/* This fails only if the counter is full, and then homad has been told. */
	if (write(ctx->att->kick_fd, &value, sizeof(value)) < 0)
		return;
}

static bool has_room(struct homa_streams *ctx)
{
	if (likely(ctx->command_tail - ctx->command_head < ctx->entries))
		return true;
	ctx->command_head =
		__atomic_load_n(&ctx->area->command.head, __ATOMIC_ACQUIRE);
	if (unlikely(ctx->command_tail - ctx->command_head > ctx->entries)) {
		homa_streams_lose(ctx);
		return false;
	}
	return ctx->command_tail - ctx->command_head < ctx->entries;
}

void homa_streams_pause(struct homa_streams *ctx, u32 *turns)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	if (++*turns < YIELDS) {
		sched_yield();
		return;
	}
	/* Check about every 2 ms. */
	if (!(*turns % 8))
		homa_streams_check(ctx);
	nanosleep(&nap, NULL);
}

/* ---- the event ring, for those who give commands ---- */

void homa_streams_release_events(struct homa_streams *ctx)
{
	u32 before = ctx->event_released, tail;

	if (ctx->event_head == before)
		return;
	ctx->event_released = ctx->event_head;
	__atomic_store_n(&ctx->area->event.head, ctx->event_released,
			 __ATOMIC_SEQ_CST);
	tail = __atomic_load_n(&ctx->area->event.tail, __ATOMIC_SEQ_CST);
	if (unlikely(tail - before >= ctx->entries))
		homa_streams_kick(ctx,
				  HOMA_SHM_KICK_SUBMIT | HOMA_SHM_KICK_CONSUME);
}

/* Make sure that one more event can be put aside; false if there is no memory. */
static bool room_to_keep(struct homa_streams *ctx)
{
	u32 size = ctx->kept_size ? 2 * ctx->kept_size : KEPT_MIN;
	struct homa_stream_event *kept;

	if (ctx->kept_num < ctx->kept_size)
		return true;
	kept = reallocarray(ctx->kept, size, sizeof(*kept));
	if (!kept)
		return false;
	ctx->kept = kept;
	ctx->kept_size = size;
	return true;
}

/* Put homad's events aside until somebody may act on them. homad does not take a command whose
 * answer has no room in the event ring, nor those behind it. The caller has @look. */
static void keep_events(struct homa_streams *ctx)
{
	u32 tail = __atomic_load_n(&ctx->area->event.tail, __ATOMIC_ACQUIRE);
	u32 head = ctx->event_head;

	if (tail - head > ctx->entries) {
		homa_streams_lose(ctx);
		return;
	}
	while (head != tail && room_to_keep(ctx))
		ctx->kept[ctx->kept_num++] =
			ctx->events[head++ & (ctx->entries - 1)];
	__atomic_store_n(&ctx->keeps, ctx->kept_num != 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ctx->event_head, head, __ATOMIC_RELAXED);
	homa_streams_release_events(ctx);
}

/* ---- commands ---- */

/* Write the command into the ring; -EAGAIN if the ring is full. */
static int put(struct homa_streams *ctx, const struct homa_stream_command *command)
{
	int rc = 0;

	homa_gate_lock(&ctx->submit);
	if (homa_streams_gone(ctx)) {
		rc = -ECONNRESET;
	} else if (unlikely(!has_room(ctx))) {
		rc = -EAGAIN;
	} else {
		ctx->commands[ctx->command_tail & (ctx->entries - 1)] = *command;
		__atomic_store_n(&ctx->area->command.tail, ++ctx->command_tail,
				 __ATOMIC_SEQ_CST);
	}
	homa_gate_unlock(&ctx->submit);
	return rc;
}

/* Write the command when there is room. @looks is true if the caller has @look. */
static int put_patiently(struct homa_streams *ctx,
			 const struct homa_stream_command *command, bool looks)
{
	u32 turns = 0;
	int rc;

	for (;;) {
		rc = put(ctx, command);
		if (likely(rc != -EAGAIN))
			return rc;
		homa_streams_kick(ctx, HOMA_SHM_KICK_SUBMIT);
		if (!looks)
			homa_gate_lock(&ctx->look);
		keep_events(ctx);
		if (!looks)
			homa_gate_unlock(&ctx->look);
		homa_streams_pause(ctx, &turns);
	}
}

static int submit(struct homa_streams *ctx,
		  const struct homa_stream_command *command, bool looks)
{
	int rc = put_patiently(ctx, command, looks);

	if (unlikely(rc))
		return rc;
	homa_streams_kick(ctx, HOMA_SHM_KICK_SUBMIT);
	if (unlikely(__atomic_load_n(&ctx->att->queues->state,
				     __ATOMIC_RELAXED) != HOMA_SHM_RUNNING))
		homa_streams_lose(ctx);
	return 0;
}

int homa_streams_command(struct homa_streams *ctx,
			 const struct homa_stream_command *command)
{
	return submit(ctx, command, false);
}

int homa_streams_command_looking(struct homa_streams *ctx,
				 const struct homa_stream_command *command)
{
	return submit(ctx, command, true);
}

static struct homa_stream_command command_of(const struct homa_stream *stream,
					     enum homa_stream_op op, u32 value)
{
	return (struct homa_stream_command){
		.op = (u16)op,
		.slot = stream->index,
		.generation = stream->generation,
		.value = value,
	};
}

int homa_stream_tell(struct homa_stream *stream, enum homa_stream_op op, u32 value)
{
	struct homa_stream_command command = command_of(stream, op, value);

	return homa_streams_command(stream->ctx, &command);
}

int homa_stream_tell_looking(struct homa_stream *stream, enum homa_stream_op op,
			     u32 value)
{
	struct homa_stream_command command = command_of(stream, op, value);

	return homa_streams_command_looking(stream->ctx, &command);
}

int homa_stream_tell_patience(struct homa_stream *stream)
{
	const struct homa_patience *patience = &stream->patience;
	struct homa_stream_command command =
		command_of(stream, HOMA_STREAM_PATIENCE, 0);
	u32 which;
	int rc = 0;

	for (which = 0; !rc && which < HOMA_STREAM_PATIENCES; which++) {
		if (!(patience->set & 1u << which))
			continue;
		command.token = which;
		command.value = patience->value[which];
		rc = homa_streams_command_looking(stream->ctx, &command);
	}
	return rc;
}

int homa_stream_ring(struct homa_stream *stream)
{
	/* This is stored before the exchange, so homad sees at least this position. */
	__atomic_store_n(&stream->rx_rung,
			 __atomic_load_n(&stream->rx_read, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	if (unlikely(stream->shared_rx))
		__atomic_store_n(&stream->slot->rx_rung, stream->rx_rung,
				 __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&stream->own->rung, 1, __ATOMIC_SEQ_CST))
		return 0;
	return homa_stream_tell(stream, HOMA_STREAM_RING, 0);
}
