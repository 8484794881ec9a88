// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting for a message. The first thread that waits becomes the poller: it looks
 * at the completion ring, yields the processor between looks, and after spin_us
 * without anything asks homad to be woken and sleeps. The others wait for their
 * message, or to inherit the role when the poller leaves with its own. Yielding
 * lets homad and the peer run on a machine with two cores.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "homa_clock.h"
#include "svc_att.h"
#include "svc_slot.h"
#include "svc_wait.h"

/* The number of looks of the poller at the ring before it yields the processor. */
#define LOOKS_PER_YIELD 4
/* The time between two looks of a spinning thread whether homad lives, in ns. */
#define CHECK_NS 5000000u
/* The time between two looks of a waiting thread whether another one has attached again, in
 * ns. */
#define BUSY_NS 10000000u
/* The time between two looks of a waiting thread whether the release ring has room for kept
 * pages, in ns. */
#define KEPT_NS 10000000u
/* The number of times that a program with a descriptor may ask in vain before a call yields
 * the processor. */
#define VAIN_ASKS 1u
/* The number of calls that ask in vain for one look whether another thread has attached
 * again. */
#define CHECK_ASKS 64u

/* Make the descriptor unreadable again. */
static void swallow(int fd)
{
	char bytes[64];

	if (read(fd, bytes, sizeof(bytes)) < 0)
		return;
}

/* Make another thread that waits the poller. */
static void pass_role(struct homa_svc *c)
{
	struct homa_svc_waiter *next;

	c->poller = NULL;
	if (homa_list_empty(&c->waiters))
		return;
	next = homa_container_of(c->waiters.next, struct homa_svc_waiter, list);
	c->poller = next;
	homa_wake_signal(&next->wake);
}

/* Sleep in ppoll() until the time @until of the monotonic clock, without the lock. */
static int sleep_on(struct homa_svc *c, struct pollfd *fds, u32 num, u64 until)
{
	struct timespec ts;
	u64 now = homa_clock_ns(), wait;
	int rc;

	if (now >= until)
		return 0;
	wait = until - now;
	c->blocked = true;
	c->counters.blocks++;
	homa_gate_unlock(&c->lock);
	ts.tv_sec = (time_t)(wait / 1000000000u);
	ts.tv_nsec = (long)(wait % 1000000000u);
	rc = ppoll(fds, num, until == HOMA_SVC_NEVER ? NULL : &ts, NULL);
	rc = rc < 0 && errno == EINTR ? -EINTR : 0;
	homa_gate_lock(&c->lock);
	c->blocked = false;
	return rc;
}

/* Sleep until homad wakes us or has ended. Returns 0 or -EINTR. */
static int block(struct homa_svc *c, u64 until)
{
	struct homa_svc_att *att = c->att;
	struct homa_shm_header *h = att->queues;
	struct pollfd fds[3] = {
		{ .fd = c->nudge_fd, .events = POLLIN },
		{ .fd = att->wake_fd, .events = POLLIN },
		{ .fd = att->sock, .events = POLLRDHUP },
	};
	int rc = 0;

	__atomic_fetch_or(&h->armed, HOMA_SHM_ARM_ANY, __ATOMIC_SEQ_CST);
	if (!homa_svc_pending(c) && !c->poller->done &&
	    __atomic_load_n(&h->state, __ATOMIC_SEQ_CST) == HOMA_SHM_RUNNING) {
		homa_svc_att_get(att);
		rc = sleep_on(c, fds, 3, until);
		if (fds[0].revents & POLLIN)
			swallow(c->nudge_fd);
		if (fds[1].revents & POLLIN) {
			swallow(att->wake_fd);
			homa_svc_send_heard(c);
		}
		if (att == c->att && fds[2].revents)
			homa_svc_check(c);
		homa_svc_att_put(att);
	} else if (!homa_svc_pending(c)) {
		homa_svc_check(c);
	}
	if (att == c->att)
		__atomic_fetch_and(&h->armed, ~(u32)HOMA_SHM_ARM_ANY,
				   __ATOMIC_SEQ_CST);
	return rc;
}

/* homad has ended. Try to attach again, then sleep until homad answers, or for a while. */
static int away_step(struct homa_svc *c, u64 until)
{
	struct pollfd fds[2] = { { .fd = c->nudge_fd, .events = POLLIN },
				 { .fd = -1, .events = POLLIN } };
	struct homa_svc_att *coming;
	u64 next;
	int rc;

	homa_gate_unlock(&c->lock);
	rc = homa_svc_revive_try(c, &coming);
	homa_gate_lock(&c->lock);
	/* Another thread may have attached before we had the lock. It did not find us asleep, so
	 * nobody would wake us. */
	if (homa_svc_state(c) == HOMA_SVC_UP) {
		rc = 0;
	} else if (rc == -ECONNREFUSED || rc == -EAGAIN) {
		next = __atomic_load_n(&c->next_try, __ATOMIC_RELAXED);
		if (coming)
			fds[1].fd = coming->sock;
		else if (rc == -EAGAIN)
			next = homa_clock_ns() + BUSY_NS;
		rc = c->poller->done ?
			     0 :
			     sleep_on(c, fds, 2, homa_min_u64(next, until));
		if (fds[0].revents & POLLIN)
			swallow(c->nudge_fd);
		if (!rc && homa_clock_ns() >= until)
			rc = -EAGAIN;
	}
	if (coming)
		homa_svc_att_put(coming);
	return rc;
}

/* Nothing to do at @now: let others run, or sleep. */
static int idle_step(struct homa_svc *c, u64 now, u64 until)
{
	bool awake = true;
	int rc;

	if (now - c->alive_at > CHECK_NS) {
		c->alive_at = now;
		homa_svc_check(c);
	}
	homa_gate_unlock(&c->lock);
	if (c->never_sleep)
		sched_yield();
	else
		awake = homa_spin_idle(&c->spin, now);
	homa_gate_lock(&c->lock);
	if (awake)
		return 0;
	/* homad may need kept pieces before it can give us a message, so do not sleep for long. */
	if (unlikely(__atomic_load_n(&c->kept, __ATOMIC_RELAXED)))
		until = homa_min_u64(until, homa_clock_ns() + KEPT_NS);
	rc = block(c, until);
	homa_spin_slept(&c->spin, homa_clock_ns());
	return rc;
}

/* Take one step as the poller: look at the ring, then yield or sleep if there is nothing. */
static int poll_step(struct homa_svc *c, struct homa_svc_waiter *w, u64 until)
{
	bool busy = false;
	u64 now;
	int i;

	if (unlikely(homa_svc_state(c) != HOMA_SVC_UP))
		return away_step(c, until);
	for (i = 0; i < LOOKS_PER_YIELD; i++) {
		if (homa_svc_pending(c) && homa_svc_drain(c, w)) {
			homa_svc_fd_touch(c);
			busy = true;
			break;
		}
		homa_cpu_relax();
	}
	if (!busy)
		homa_svc_show_releases(c);
	now = homa_clock_ns();
	if (busy)
		homa_spin_work(&c->spin, now);
	if (w->done)
		return 0;
	if (now >= until)
		return -EAGAIN;
	return busy ? 0 : idle_step(c, now, until);
}

/* Wait for the poller to hand over our message, or its role. */
static int passive_step(struct homa_svc *c, struct homa_svc_waiter *w, u64 until)
{
	u64 spin = c->never_sleep ? HOMA_WAKE_SPIN : c->spin.limit;
	int rc;

	homa_gate_unlock(&c->lock);
	rc = homa_wake_wait(&w->wake, spin, until);
	homa_gate_lock(&c->lock);
	homa_wake_reset(&w->wake);
	return rc == -ETIMEDOUT ? -EAGAIN : rc;
}

static int wait_for(struct homa_svc *c, struct homa_svc_waiter *w, u64 until)
{
	struct homa_svc_slot *slot = w->token ? homa_svc_slot(c, w->token) : NULL;
	int rc = 0;

	if (slot && slot->waits < 2)
		slot->waits++;
	homa_list_add_head(&c->waiters, &w->list);
	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	while (!rc && !w->done) {
		rc = homa_svc_error(c);
		if (rc)
			break;
		if (!c->poller) {
			c->poller = w;
			homa_spin_begin(&c->spin, homa_clock_ns());
		}
		rc = c->poller == w ? poll_step(c, w, until) :
				      passive_step(c, w, until);
	}
	homa_list_del(&w->list);
	if (c->poller == w)
		pass_role(c);
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return w->done ? w->result : rc;
}

/* Take a message that is there already, or return -EAGAIN or an error. */
static int look(struct homa_svc *c, struct homa_svc_waiter *w)
{
	int rc = homa_svc_error(c);

	if (unlikely(rc))
		return rc;
	rc = homa_svc_take(c, w);
	if (rc != -EAGAIN || homa_svc_state(c) != HOMA_SVC_UP ||
	    !homa_svc_pending(c))
		return rc;
	c->counters.progress_rounds += homa_svc_drain(c, w);
	if (w->done)
		return w->result;
	/* The outcome of this request may have come now, or the request may be gone. */
	return w->token ? homa_svc_take(c, w) : -EAGAIN;
}

/* There is no message, and the caller does not wait. Look after homad, and look once more. */
static int asked_in_vain(struct homa_svc *c, struct homa_svc_waiter *w)
{
	if (++c->asks % CHECK_ASKS == 0 ||
	    c->att->queues->state != HOMA_SHM_RUNNING || c->ep_fd >= 0)
		homa_svc_check(c);
	if (homa_svc_state(c) == HOMA_SVC_LOST) {
		homa_gate_unlock(&c->lock);
		homa_svc_revive_try(c, NULL);
		homa_gate_lock(&c->lock);
	}
	homa_svc_show_releases(c);
	/* A program that never waits yields the processor, so that homad can run. One that has
	 * a descriptor may be about to wait for it, unless it asks again. */
	if (c->ep_fd < 0 || ++c->vain > VAIN_ASKS) {
		c->counters.yields++;
		homa_gate_unlock(&c->lock);
		sched_yield();
		homa_gate_lock(&c->lock);
	}
	return look(c, w);
}

/* Take or wait for a message. The caller has the lock, which is given up while we wait. */
static int receive(struct homa_svc *c, struct homa_svc_waiter *w,
		   unsigned int flags, int64_t timeout_ns)
{
	u64 until;
	int rc;

	homa_list_init(&w->list);
	rc = look(c, w);
	if (rc == -EAGAIN && ((flags & HOMA_RECV_NONBLOCK) || !timeout_ns)) {
		rc = asked_in_vain(c, w);
	} else if (rc == -EAGAIN) {
		until = timeout_ns < 0 ? HOMA_SVC_NEVER :
					 homa_clock_ns() + (u64)timeout_ns;
		rc = wait_for(c, w, until);
	}
	if (!rc)
		c->vain = 0;
	return rc;
}

int homa_svc_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns)
{
	struct homa_svc *c = host;
	struct homa_svc_waiter w = {
		.msg = msg,
		.token = id ? homa_svc_token(c, id) : 0,
		.flags = id ? 0 : flags,
	};
	int rc;

	if (id & 1)
		return -ENOENT;
	homa_gate_lock(&c->lock);
	rc = receive(c, &w, flags, timeout_ns);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	return rc;
}

/* Wait for the first message, and take the others that are there while we have the lock. */
int homa_svc_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
			   unsigned int flags, int64_t timeout_ns)
{
	struct homa_svc *c = host;
	struct homa_svc_waiter w = { .msg = msgs, .flags = flags };
	unsigned int got = 1;
	int rc;

	homa_gate_lock(&c->lock);
	rc = receive(c, &w, flags, timeout_ns);
	for (; !rc && got < n; got++) {
		w = (struct homa_svc_waiter){ .msg = &msgs[got], .flags = flags };
		homa_list_init(&w.list);
		if (look(c, &w))
			break;
	}
	if (!rc)
		c->counters.batched += got - 1;
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	return rc ? rc : (int)got;
}

int homa_svc_poll(void *host)
{
	struct homa_svc *c = host;
	int rc;

	/* The protocol runs in another process, maybe on this core. */
	sched_yield();
	homa_gate_lock(&c->lock);
	rc = homa_svc_error(c);
	if (!rc && homa_svc_state(c) == HOMA_SVC_UP) {
		homa_svc_drain(c, NULL);
		if (++c->asks % CHECK_ASKS == 0)
			homa_svc_check(c);
		homa_svc_show_releases(c);
	}
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	return rc;
}

void homa_svc_end_waits(struct homa_svc *c)
{
	struct homa_list *node;

	while (__atomic_load_n(&c->inside, __ATOMIC_SEQ_CST)) {
		for (node = c->waiters.next; node != &c->waiters;
		     node = node->next)
			homa_wake_signal(
				&homa_container_of(node, struct homa_svc_waiter,
						   list)
					 ->wake);
		homa_svc_nudge(c);
		homa_gate_unlock(&c->lock);
		sched_yield();
		homa_gate_lock(&c->lock);
	}
}
