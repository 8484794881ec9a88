// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * News is handed out, and threads sleep until there is some. homad signals once, when it
 * was asked to (@armed), by a byte in a pipe, which wakes all who wait for it; the pipe
 * is emptied when no news is left. Who empties it asks homad anew if others sleep in
 * homa_streams_wait(), for they may not have been awake in time to see the byte.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "homa_clock.h"
#include "stream_impl.h"

/* The time after which a thread that never sleeps checks again whether homad lives, in
 * ns. */
#define CHECK_NS 5000000u
/* The number of calls that find nothing between two looks at the clock for CHECK_NS. */
#define VAIN_CALLS 64u
#define NEVER (~(u64)0)

/* Under @look, when no news is left: take homad's signal out of the pipe. homad clears
 * @armed before it writes, or after, so the byte may come later; then it is looked for
 * again next time. */
static void quench(struct homa_streams *ctx)
{
	char bytes[64];
	int error = errno;

	if (ctx->armed && !__atomic_load_n(&ctx->area->armed, __ATOMIC_ACQUIRE)) {
		ctx->armed = false;
		ctx->signalled = true;
	}
	if (ctx->signalled && read(ctx->event_fd, bytes, sizeof(bytes)) > 0)
		ctx->signalled = false;
	errno = error;
}

/* Ask homad to signal. Returns true if there was nothing to take after that. The caller has
 * @look. */
static bool arm(struct homa_streams *ctx)
{
	quench(ctx);
	ctx->armed = true;
	__atomic_store_n(&ctx->area->armed, 1, __ATOMIC_SEQ_CST);
	if (!homa_streams_pending(ctx))
		return true;
	homa_streams_drain(ctx);
	return !ctx->num_news && !homa_streams_pending(ctx);
}

/* Wake a thread that sleeps if it would miss events because this thread took them. The caller
 * has @look. */
static void care_for_sleepers(struct homa_streams *ctx)
{
	if (ctx->sleepers && (ctx->num_news || !arm(ctx)))
		homa_streams_nudge(ctx);
}

static int hand_out(struct homa_streams *ctx, struct homa_stream **news, int max)
{
	struct homa_list *node;
	int n = 0;

	while (n < max && (node = homa_list_pop(&ctx->news))) {
		struct homa_stream *stream =
			homa_container_of(node, struct homa_stream, news);

		__atomic_store_n(&ctx->num_news, ctx->num_news - 1,
				 __ATOMIC_RELAXED);
		/* A full barrier, before the caller looks at the slot. */
		if (stream->slot)
			__atomic_exchange_n(&stream->own->told, 0,
					    __ATOMIC_SEQ_CST);
		news[n++] = stream;
	}
	return n;
}

/* Check now and then whether homad lives, when there was no news. The caller has @look. */
static void check_now_and_then(struct homa_streams *ctx)
{
	u64 now;

	if (++ctx->vain % VAIN_CALLS)
		return;
	now = homa_clock_ns();
	if (now - ctx->alive_at < CHECK_NS)
		return;
	ctx->alive_at = now;
	homa_streams_check(ctx);
}

int homa_streams_poll(struct homa_streams *ctx, struct homa_stream **news, int max)
{
	int n;

	if (ctx->fork_generation != homa_fork_generation)
		return -ECONNRESET;
	if (max <= 0)
		return max ? -EINVAL : 0;
	homa_gate_lock(&ctx->look);
	homa_streams_drain(ctx);
	if (!ctx->num_news) {
		check_now_and_then(ctx);
		if (homa_streams_gone(ctx))
			homa_streams_drain(ctx);
	}
	n = hand_out(ctx, news, max);
	if (!ctx->num_news)
		quench(ctx);
	care_for_sleepers(ctx);
	homa_gate_unlock(&ctx->look);
	return !n && homa_streams_gone(ctx) ? -ECONNRESET : n;
}

int homa_streams_fd(struct homa_streams *ctx)
{
	return ctx->fork_generation == homa_fork_generation ? ctx->event_fd :
							      -ECONNRESET;
}

/* Ask homad to signal, and return true if the thread may sleep. The caller has @look. */
static bool may_sleep(struct homa_streams *ctx)
{
	homa_streams_drain(ctx);
	if (ctx->num_news || homa_streams_pending(ctx) || homa_streams_gone(ctx))
		return false;
	return arm(ctx) && __atomic_load_n(&ctx->att->queues->state,
					   __ATOMIC_ACQUIRE) == HOMA_SHM_RUNNING;
}

int homa_streams_arm(struct homa_streams *ctx)
{
	bool sleep;

	if (ctx->fork_generation != homa_fork_generation)
		return 0;
	homa_gate_lock(&ctx->look);
	sleep = may_sleep(ctx);
	homa_gate_unlock(&ctx->look);
	return sleep;
}

static int sleep_on(struct homa_streams *ctx, u64 now, u64 until)
{
	struct pollfd fds[3] = {
		{ .fd = ctx->nudge_fd, .events = POLLIN },
		{ .fd = ctx->event_fd, .events = POLLIN },
		{ .fd = ctx->att->sock, .events = POLLRDHUP },
	};
	u64 wait = until - now, value;
	struct timespec ts = { .tv_sec = (time_t)(wait / 1000000000u),
			       .tv_nsec = (long)(wait % 1000000000u) };
	int rc = ppoll(fds, 3, until == NEVER ? NULL : &ts, NULL);

	if (rc < 0)
		return errno == EINTR ? -EINTR : -errno;
	if (fds[2].revents || (fds[1].revents & ~POLLIN))
		homa_streams_check(ctx);
	if ((fds[0].revents & POLLIN) && !homa_streams_gone(ctx) &&
	    read(ctx->nudge_fd, &value, sizeof(value)) < 0)
		return 0;
	return 0;
}

/* Sleep if there is no news, until @until (ns) at most. */
static int block(struct homa_streams *ctx, u64 now, u64 until)
{
	bool sleep;
	int rc = 0;

	homa_gate_lock(&ctx->look);
	sleep = may_sleep(ctx);
	ctx->sleepers += sleep;
	homa_gate_unlock(&ctx->look);
	if (!sleep) {
		if (__atomic_load_n(&ctx->att->queues->state,
				    __ATOMIC_ACQUIRE) != HOMA_SHM_RUNNING)
			homa_streams_check(ctx);
		return 0;
	}
	rc = sleep_on(ctx, now, until);
	homa_gate_lock(&ctx->look);
	ctx->sleepers--;
	homa_gate_unlock(&ctx->look);
	return rc;
}

/* Is there anything to be handed out? */
static bool has_news(struct homa_streams *ctx)
{
	if (homa_streams_pending(ctx))
		homa_streams_look(ctx);
	return __atomic_load_n(&ctx->num_news, __ATOMIC_RELAXED) != 0;
}

/* One thread looks for a while before it sleeps. @mine becomes true if it is the caller. */
static bool may_spin(struct homa_streams *ctx, bool *mine, u64 now)
{
	if (!*mine) {
		if (__atomic_exchange_n(&ctx->spinning, true, __ATOMIC_ACQUIRE))
			return false;
		*mine = true;
		homa_spin_begin(&ctx->spin, now);
	}
	return homa_spin_idle(&ctx->spin, now);
}

int homa_streams_wait(struct homa_streams *ctx, int64_t timeout_ns)
{
	u64 now = homa_clock_ns();
	u64 until = timeout_ns < 0 ? NEVER : now + (u64)timeout_ns;
	bool spinning = false;
	int rc = 0;

	for (;; now = homa_clock_ns()) {
		rc = homa_streams_usable(ctx);
		if (rc)
			break;
		rc = has_news(ctx);
		if (rc || now >= until)
			break;
		if (may_spin(ctx, &spinning, now))
			continue;
		rc = block(ctx, now, until);
		if (spinning)
			homa_spin_slept(&ctx->spin, homa_clock_ns());
		if (rc)
			break;
	}
	if (spinning)
		__atomic_store_n(&ctx->spinning, false, __ATOMIC_RELEASE);
	return rc;
}
