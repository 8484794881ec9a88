// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting for a message; backend_kernel.h says which threads wait where. Whenever the last
 * direct thread leaves the kernel, or the poller gives up its role, the threads that wait
 * outside the kernel are woken and look again at what they may do.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include "homa_clock.h"
#include "backend_kernel.h"

static u64 deadline(int64_t timeout_ns)
{
	return timeout_ns < 0 ? HOMA_KSOCK_NEVER :
				homa_clock_ns() + (u64)timeout_ns;
}

/* May a message come that this thread does not want? */
static bool particular(const struct homa_ksock *c,
		       const struct homa_ksock_waiter *w)
{
	return w->token || (w->flags == HOMA_RECV_REQUEST && c->asked_shared) ||
	       (w->flags == HOMA_RECV_RESPONSE && c->bound);
}

static bool may_be_direct(const struct homa_ksock *c,
			  const struct homa_ksock_waiter *w)
{
	return !particular(c, w) && (!c->direct || c->direct_flags == w->flags);
}

static void look_again(struct homa_ksock *c, const struct homa_ksock_waiter *self)
{
	struct homa_list *node;

	for (node = c->waiters.next; node != &c->waiters; node = node->next) {
		struct homa_ksock_waiter *w =
			homa_container_of(node, struct homa_ksock_waiter, list);

		if (w != self && !w->direct)
			homa_wake_signal(&w->wake);
	}
}

static int direct_step(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	struct homa_ksock_got got;
	int rc = -EAGAIN;

	w->direct = true;
	c->direct++;
	c->direct_flags = w->flags;
	homa_gate_unlock(&c->lock);
	if (!w->spun)
		rc = homa_ksock_spin(c, 0, w->until, &got);
	w->spun = true;
	if (rc == -EAGAIN)
		rc = homa_ksock_block(c, 0, w->until, &got);
	homa_gate_lock(&c->lock);
	w->direct = false;
	c->direct--;
	if (!rc)
		homa_ksock_deliver(c, &got, w);
	if (!c->direct)
		look_again(c, w);
	return rc;
}

/* Make the descriptor unreadable again. */
static void swallow(int fd)
{
	char bytes[64];

	if (read(fd, bytes, sizeof(bytes)) < 0)
		return;
}

/* Sleep until the socket has a message, another thread nudges us, or it is @until. */
static int poller_sleep(struct homa_ksock *c, u64 until)
{
	struct pollfd fds[2] = {
		{ .fd = c->fd, .events = POLLIN },
		{ .fd = c->nudge_fd, .events = POLLIN },
	};
	u64 now = homa_clock_ns(), left;
	struct timespec ts;
	int rc;

	if (now >= until)
		return -EAGAIN;
	left = until - now;
	ts.tv_sec = (time_t)(left / 1000000000u);
	ts.tv_nsec = (long)(left % 1000000000u);
	c->sleeping = true;
	homa_gate_unlock(&c->lock);
	if (c->spin_ns == HOMA_KSOCK_NEVER) {
		sched_yield();
		ts.tv_sec = ts.tv_nsec = 0;
		rc = ppoll(fds, 2, &ts, NULL);
	} else {
		rc = ppoll(fds, 2, until == HOMA_KSOCK_NEVER ? NULL : &ts, NULL);
	}
	rc = rc < 0 ? -errno : 0;
	homa_gate_lock(&c->lock);
	c->sleeping = false;
	if (!rc && fds[1].revents)
		swallow(c->nudge_fd);
	return rc;
}

static int poller_step(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	int rc = homa_ksock_pull(c, w);

	if (rc != -EAGAIN)
		return rc < 0 ? rc : 0;
	return poller_sleep(c, w->until);
}

static int passive_step(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	int rc;

	homa_gate_unlock(&c->lock);
	rc = homa_wake_wait(&w->wake,
			    c->spin_ns == HOMA_KSOCK_NEVER ? HOMA_WAKE_SPIN : 0,
			    w->until);
	homa_gate_lock(&c->lock);
	homa_wake_reset(&w->wake);
	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

static int wait_for(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	int rc = 0;

	homa_list_add_tail(&c->waiters, &w->list);
	while (!rc && !w->done) {
		rc = homa_ksock_error(c);
		if (rc)
			break;
		if (likely(may_be_direct(c, w))) {
			/* A message may have been kept while this thread was in the kernel. */
			rc = homa_ksock_take(c, w);
			if (!rc)
				w->done = true;
			else if (rc == -EAGAIN)
				rc = direct_step(c, w);
			continue;
		}
		if (!c->direct && (!c->poller || c->poller == w)) {
			c->poller = w;
			rc = poller_step(c, w);
			if (!c->direct)
				continue;
		}
		if (c->poller == w)
			c->poller = NULL;
		if (!rc && !w->done)
			rc = passive_step(c, w);
	}
	homa_list_del(&w->list);
	if (c->poller == w) {
		c->poller = NULL;
		look_again(c, w);
	}
	return w->done ? w->result : rc;
}

/* Receive without waiting. While threads are in the kernel that take other messages than this
 * one wants, nothing is taken from the socket. */
static int ask(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	int rc;

	if (c->direct && !may_be_direct(c, w))
		return -EAGAIN;
	rc = homa_ksock_pull(c, w);
	if (w->done)
		return w->result;
	return rc < 0 && rc != -EAGAIN ? rc : homa_ksock_take(c, w);
}

static int receive_shared(struct homa_ksock *c, struct homa_ksock_waiter *w,
			  bool wait)
{
	int rc = homa_ksock_take(c, w);

	if (rc != -EAGAIN)
		return rc;
	return wait ? wait_for(c, w) : ask(c, w);
}

/* Receive the response of a private RPC. The caller has the lock, which is given up meanwhile. */
static int receive_private(struct homa_ksock *c, u64 token,
			   struct homa_message *msg, u64 until, bool wait)
{
	struct homa_ksock_slot *slot = homa_ksock_slot(c, token);
	struct homa_ksock_got got;
	u64 id = slot->id;
	int rc;

	homa_gate_unlock(&c->lock);
	if (!wait) {
		rc = homa_ksock_recv(c, id, MSG_DONTWAIT, &got);
	} else {
		rc = homa_ksock_spin(c, id, until, &got);
		if (rc == -EAGAIN)
			rc = homa_ksock_block(c, id, until, &got);
	}
	homa_gate_lock(&c->lock);
	/* -EINVAL means that the kernel does not know the RPC, because it was aborted. */
	if (rc == -EINVAL)
		return -ENOENT;
	if (rc)
		return rc;
	slot = homa_ksock_slot(c, token);
	if (unlikely(!slot || slot->gone)) {
		homa_ksock_release_pages(c, got.args.bpage_offsets,
					 got.args.num_bpages);
		if (slot)
			homa_ksock_forget(c, slot);
		return -ENOENT;
	}
	homa_ksock_fill(c, &got, slot, msg);
	homa_ksock_slot_put(c, slot);
	return 0;
}

int homa_ksock_enter(struct homa_ksock *c)
{
	int rc;

	homa_gate_lock(&c->lock);
	c->inside++;
	rc = homa_ksock_error(c);
	homa_gate_unlock(&c->lock);
	return rc;
}

void homa_ksock_leave(struct homa_ksock *c)
{
	homa_gate_lock(&c->lock);
	c->inside--;
	homa_gate_unlock(&c->lock);
}

int homa_ksock_receive(void *host, struct homa_message *msg, uint64_t id,
		       unsigned int flags, int64_t timeout_ns)
{
	bool wait = !(flags & HOMA_RECV_NONBLOCK) && timeout_ns;
	struct homa_ksock_waiter w = {
		.msg = msg,
		.token = id >> 1,
		.flags = id ? 0 : flags & HOMA_KSOCK_ANY,
	};
	const struct homa_ksock_slot *slot;
	struct homa_ksock *c = host;
	int rc;

	if (id & 1)
		return -ENOENT;
	if (wait)
		w.until = deadline(timeout_ns);
	homa_list_init(&w.list);
	homa_gate_lock(&c->lock);
	c->inside++;
	rc = homa_ksock_error(c);
	slot = homa_ksock_slot(c, w.token);
	if (!rc && slot && slot->is_private)
		rc = slot->gone ?
			     -ENOENT :
			     receive_private(c, w.token, msg, w.until, wait);
	else if (!rc)
		rc = receive_shared(c, &w, wait);
	c->inside--;
	homa_gate_unlock(&c->lock);
	return rc;
}

/* The messages are received one after the other, because there is no quicker way. */
int homa_ksock_receive_batch(void *host, struct homa_message *msgs,
			     unsigned int n, unsigned int flags,
			     int64_t timeout_ns)
{
	struct homa_ksock *c = host;
	unsigned int got = 0;
	int rc;

	/* This thread is inside between two receives, too, so that nobody frees the handle. */
	homa_ksock_enter(c);
	do
		rc = homa_ksock_receive(c, &msgs[got], 0,
					got ? flags | HOMA_RECV_NONBLOCK : flags,
					timeout_ns);
	while (!rc && ++got < n);
	homa_ksock_leave(c);
	return got ? (int)got : rc;
}

int homa_ksock_poll(void *host)
{
	struct homa_ksock *c = host;

	/* The kernel runs the protocol, but the peer's program may need this core. */
	sched_yield();
	return homa_ksock_error(c);
}

void homa_ksock_end_waits(struct homa_ksock *c)
{
	while (c->inside) {
		look_again(c, NULL);
		homa_ksock_nudge(c);
		homa_gate_unlock(&c->lock);
		sched_yield();
		homa_gate_lock(&c->lock);
	}
}
