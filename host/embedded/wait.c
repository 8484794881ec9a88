// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting for a message. The first thread that waits becomes the poller: it
 * runs the protocol, yielding the processor between empty rounds, and after
 * spin_us without work sleeps in ppoll() until a packet or the next deadline.
 * The others wait for their message, or to inherit the role when the poller
 * leaves with its own. Yielding rather than pausing is what keeps a client
 * and a server usable on a machine with two cores.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include "embedded.h"

#define ROUNDS_PER_YIELD 4

static void drain_kick(struct homa_emb *e)
{
	u64 value;

	if (read(e->kick_fd, &value, sizeof(value)) < 0)
		return;
}

/* Makes another waiting thread the poller. */
static void pass_role(struct homa_emb *e)
{
	struct homa_emb_waiter *next;

	e->poller = NULL;
	if (homa_list_empty(&e->waiters))
		return;
	next = homa_container_of(e->waiters.next, struct homa_emb_waiter, list);
	e->poller = next;
	homa_wake_signal(&next->wake);
}

/* Sleeps until a packet comes, a kick comes, or the deadline is there. Returns 0 or
 * -EINTR. */
static int block(struct homa_emb *e, u64 until)
{
	struct pollfd fds[2] = {
		{ .fd = nic_fd(e->nic), .events = POLLIN },
		{ .fd = e->kick_fd, .events = POLLIN },
	};
	struct timespec ts;
	u64 wait, next;
	int rc;

	next = homa_min_u64(homa_emb_next_deadline(e), until);
	if (next <= e->ctx.now || e->poller->done || nic_arm(e->nic))
		return 0;
	e->blocked = true;
	e->blocked_until = next;
	e->counters.blocks++;
	wait = next - e->ctx.now;
	homa_gate_unlock(&e->lock);
	ts.tv_sec = (time_t)(wait / 1000000000u);
	ts.tv_nsec = (long)(wait % 1000000000u);
	rc = ppoll(fds, 2, next == HOMA_NEVER ? NULL : &ts, NULL);
	rc = rc < 0 && errno == EINTR ? -EINTR : 0;
	homa_gate_lock(&e->lock);
	e->blocked = false;
	if (fds[1].revents)
		drain_kick(e);
	homa_emb_now(e);
	return rc;
}

/* Does one step of the poller. @busy_at is when there was last something to do, ns. */
static int poll_step(struct homa_emb *e, u64 *busy_at, u64 until)
{
	u64 now;
	int i, done = 0;

	/* A yield costs several rounds even when nobody else wants to run. */
	for (i = 0; i < ROUNDS_PER_YIELD && !done && !e->poller->done; i++)
		done = homa_emb_round(e);
	if (done) {
		*busy_at = e->ctx.now;
		homa_gate_yield(&e->lock);
		/* A busy link must not make the caller late. */
		return e->ctx.now >= until ? -EAGAIN : 0;
	}
	if (e->poller->done)
		return 0;
	now = e->ctx.now;
	if (now >= until)
		return -EAGAIN;
	if (e->spin_ns < 0 || now - *busy_at < (u64)e->spin_ns) {
		homa_gate_unlock(&e->lock);
		sched_yield();
		homa_gate_lock(&e->lock);
		return 0;
	}
	return block(e, until);
}

/* Waits until the poller hands over our message or its role. */
static int passive_step(struct homa_emb *e, struct homa_emb_waiter *w, u64 until)
{
	u64 spin = e->spin_ns < 0 ? HOMA_WAKE_SPIN : (u64)e->spin_ns;
	int rc;

	homa_gate_unlock(&e->lock);
	rc = homa_wake_wait(&w->wake, spin, until);
	homa_gate_lock(&e->lock);
	homa_wake_reset(&w->wake);
	homa_emb_now(e);
	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

static int wait_for(struct homa_emb *e, struct homa_emb_waiter *w, u64 until)
{
	u64 busy_at = e->ctx.now;
	int rc = 0;

	homa_list_add_head(&e->waiters, &w->list);
	e->inside++;
	while (!rc && !w->done) {
		if (e->closing) {
			rc = -ESHUTDOWN;
			break;
		}
		if (!e->poller) {
			e->poller = w;
			busy_at = e->ctx.now;
		}
		rc = e->poller == w ? poll_step(e, &busy_at, until) :
				      passive_step(e, w, until);
	}
	homa_list_del(&w->list);
	if (e->poller == w)
		pass_role(e);
	e->inside--;
	return w->done ? w->result : rc;
}

/* Takes the message that @w waits for. Returns 0 if *w->msg has it, -EAGAIN if it is not there
 * yet, -ENOENT if it will never be. */
static int take(struct homa_emb *e, struct homa_emb_waiter *w)
{
	struct homa_emb_rpc *priv;
	struct homa_handle handle;
	int rc = -EAGAIN;

	if (w->id) {
		if (!homa_rpc_lookup(&e->ctx, w->id, &handle))
			return -ENOENT;
		rc = homa_emb_take_handle(e, handle, w->msg);
		/* If the RPC is not private, this takes its message out of the queue. */
		if (!rc)
			homa_emb_reap(e);
		return rc;
	}
	while (rc && (priv = homa_emb_oldest(e, w->flags))) {
		handle = priv->handle;
		homa_emb_unready(e, priv);
		rc = homa_emb_take_handle(e, handle, w->msg);
	}
	/* The descriptor is signalled once for all events of the batch. */
	if (!e->ready_count)
		homa_emb_reap(e);
	return rc;
}

/* Waits for the message. The lock is held, but given up while there is nothing to do. */
static int receive(struct homa_emb *e, struct homa_emb_waiter *w,
		   unsigned int flags, int64_t timeout_ns)
{
	u64 until;
	int rc;

	rc = e->closing ? -ESHUTDOWN : take(e, w);
	if (rc == -EAGAIN && ((flags & HOMA_RECV_NONBLOCK) || !timeout_ns)) {
		/* A program that never waits has to run the protocol here. */
		if (!e->poller) {
			homa_emb_round(e);
			rc = take(e, w);
		}
	} else if (rc == -EAGAIN) {
		homa_emb_now(e);
		until = timeout_ns < 0 ? HOMA_NEVER :
					 e->ctx.now + (u64)timeout_ns;
		rc = wait_for(e, w, until);
	}
	return rc;
}

/* Sends what was left to the end of the batch. */
static void received(struct homa_emb *e)
{
	if (e->deferred && !e->ready_count && !e->closing) {
		homa_emb_now(e);
		homa_emb_tx(e);
	}
	homa_emb_unlock(e, false);
}

int homa_emb_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns)
{
	struct homa_emb *e = host;
	struct homa_emb_waiter w = { .msg = msg, .id = id, .flags = flags };
	int rc;

	homa_emb_lock(e);
	rc = receive(e, &w, flags, timeout_ns);
	received(e);
	return rc;
}

int homa_emb_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
			   unsigned int flags, int64_t timeout_ns)
{
	struct homa_emb *e = host;
	struct homa_emb_waiter w = { .msg = msgs, .flags = flags };
	unsigned int got = 1;
	int rc;

	homa_emb_lock(e);
	rc = receive(e, &w, flags, timeout_ns);
	for (; !rc && got < n && !e->closing; got++) {
		w = (struct homa_emb_waiter){ .msg = &msgs[got], .flags = flags };
		if (take(e, &w))
			break;
	}
	if (!rc)
		e->counters.batched += got - 1;
	received(e);
	return rc ? rc : (int)got;
}

/* Waits until no thread is inside a call. The lock is held. */
void homa_emb_shutdown_waiters(struct homa_emb *e)
{
	e->closing = true;
	while (e->inside) {
		struct homa_emb_waiter *w;
		struct homa_list *node;

		for (node = e->waiters.next; node != &e->waiters;
		     node = node->next) {
			w = homa_container_of(node, struct homa_emb_waiter, list);
			homa_wake_signal(&w->wake);
		}
		homa_emb_kick(e);
		homa_gate_unlock(&e->lock);
		sched_yield();
		homa_gate_lock(&e->lock);
	}
}
