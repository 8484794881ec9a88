// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is said to homad. A command is a store that homad sees and a look whether it
 * sleeps; only then there is a system call. Each stream rings once until homad has
 * looked, so the ring is full only if homad has not run for long: then it gets the
 * processor, and nothing is lost, unless it is dead.
 */
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "homa_clock.h"
#include "stream_impl.h"

#define CHECK_NS 5000000u /* between looks whether homad lives, while the ring is full */
#define YIELDS 1000u	  /* for room in the ring, before we sleep between looks */
#define NAP_NS 200000

void homa_streams_lose(struct homa_streams *ctx)
{
	u64 value = 1;

	if (__atomic_exchange_n(&ctx->gone, 1, __ATOMIC_SEQ_CST))
		return;
	/* It may live, and shall know that nobody listens any more. */
	shutdown(ctx->att->sock, SHUT_RDWR);
	/* Stays readable, so that all who sleep wake up. */
	if (write(ctx->nudge_fd, &value, sizeof(value)) < 0)
		return;
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

	if (!(__atomic_load_n(&ctx->att->queues->need_kick, __ATOMIC_SEQ_CST) & why))
		return;
	/* Fails only if the counter is full, and then homad has been told. */
	if (write(ctx->att->kick_fd, &value, sizeof(value)) < 0)
		return;
}

static bool has_room(struct homa_streams *ctx)
{
	if (likely(ctx->command_tail - ctx->command_head < ctx->entries))
		return true;
	ctx->command_head = __atomic_load_n(&ctx->area->command.head, __ATOMIC_ACQUIRE);
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
	/* Once in a millisecond or so. */
	if (!(*turns % 8))
		homa_streams_check(ctx);
	nanosleep(&nap, NULL);
}

/* With the lock: who comes later waits behind us, so that commands keep their order. */
static bool make_room(struct homa_streams *ctx)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	u64 checked = homa_clock_ns(), now;
	u32 i;

	for (i = 0; !has_room(ctx); i++) {
		if (homa_streams_gone(ctx))
			return false;
		homa_streams_kick(ctx, HOMA_SHM_KICK_SUBMIT);
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
		now = homa_clock_ns();
		if (now - checked > CHECK_NS) {
			checked = now;
			homa_streams_check(ctx);
		}
	}
	return true;
}

int homa_streams_command(struct homa_streams *ctx, const struct homa_stream_command *command)
{
	u32 state;

	homa_turn_lock(&ctx->give);
	if (homa_streams_gone(ctx) || (unlikely(!has_room(ctx)) && !make_room(ctx))) {
		homa_turn_unlock(&ctx->give);
		return -ECONNRESET;
	}
	ctx->commands[ctx->command_tail & (ctx->entries - 1)] = *command;
	__atomic_store_n(&ctx->area->command.tail, ++ctx->command_tail, __ATOMIC_SEQ_CST);
	homa_turn_unlock(&ctx->give);
	homa_streams_kick(ctx, HOMA_SHM_KICK_SUBMIT);
	state = __atomic_load_n(&ctx->att->queues->state, __ATOMIC_RELAXED);
	if (unlikely(state != HOMA_SHM_RUNNING))
		homa_streams_lose(ctx);
	return 0;
}

int homa_stream_tell(struct homa_stream *stream, enum homa_stream_op op, u32 value)
{
	struct homa_stream_command command = {
		.op = (u16)op,
		.slot = stream->index,
		.generation = stream->generation,
		.value = value,
	};

	return homa_streams_command(stream->ctx, &command);
}

int homa_stream_ring(struct homa_stream *stream)
{
	/* Before the exchange: homad then sees at least that. */
	__atomic_store_n(&stream->rx_rung,
			 __atomic_load_n(&stream->rx_read, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	if (unlikely(stream->shared_rx))
		__atomic_store_n(&stream->slot->rx_rung, stream->rx_rung, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&stream->own->rung, 1, __ATOMIC_SEQ_CST))
		return 0;
	return homa_stream_tell(stream, HOMA_STREAM_RING, 0);
}
