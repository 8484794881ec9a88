// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * recvmsg() with a deadline, for any number of threads on one socket. Blocking
 * in recvmsg() is best: the kernel hands a message to a thread that waits there,
 * or polls for it. But a socket has one timeout, SO_RCVTIMEO, for all that block
 * in it. So it is kept small enough for whoever needs it, and a thread that wakes
 * too early waits again. It is made larger again only by a thread that is alone,
 * for otherwise another might be about to block with what it has just set; and it
 * is set well below what is asked for, so that the next wait of the same length
 * need not set it again. The kernel counts it in ticks of some milliseconds;
 * short waits for shared messages use poll(), whose clock is better.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/time.h>
#include "homa_clock.h"
#include "backend_kernel.h"

/* Waits of fewer ns use poll(), because its clock is better. */
#define SHORT_NS 20000000u
/* The time that such waits look before they call poll(), as long as the kernel looks in
 * recvmsg(), in ns. */
#define SHORT_SPIN_NS 50000u

static void set_timeo(struct homa_ksock *c, u64 us)
{
	struct timeval tv = { (time_t)(us / 1000000),
			      (suseconds_t)(us % 1000000) };

	if (c->timeo == us)
		return;
	c->timeo = us;
	c->counters.timeouts_set++;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

/* Set the socket's timeout before a thread blocks for @left ns at most. */
static void begin(struct homa_ksock *c, u64 left)
{
	u64 us = left / 1000;

	homa_gate_lock(&c->timeo_lock);
	c->timed++;
	if (!c->timeo || c->timeo > us || (c->timed == 1 && c->timeo < us / 8))
		set_timeo(c, us / 4 * 3 > 1000 ? us / 4 * 3 : 1000);
	homa_gate_unlock(&c->timeo_lock);
}

static void end(struct homa_ksock *c)
{
	homa_gate_lock(&c->timeo_lock);
	c->timed--;
	homa_gate_unlock(&c->timeo_lock);
}

/* Remove the socket's timeout, which has woken a thread without one, if nobody needs it. */
static void unset(struct homa_ksock *c)
{
	homa_gate_lock(&c->timeo_lock);
	if (!c->timed)
		set_timeo(c, 0);
	homa_gate_unlock(&c->timeo_lock);
}

static int by_poll(struct homa_ksock *c, u64 left, struct homa_ksock_got *got)
{
	struct pollfd fd = { .fd = c->fd, .events = POLLIN };
	struct timespec ts = { 0, (long)left };

	if (ppoll(&fd, 1, &ts, NULL) < 0)
		return -errno;
	return homa_ksock_recv(c, 0, MSG_DONTWAIT, got);
}

int homa_ksock_block(struct homa_ksock *c, u64 id, u64 until,
		     struct homa_ksock_got *got)
{
	u64 now, left;
	int rc;

	for (;;) {
		rc = homa_ksock_error(c);
		if (rc)
			return rc;
		if (until == HOMA_KSOCK_NEVER) {
			rc = homa_ksock_recv(c, id, 0, got);
			if (rc != -EAGAIN)
				return rc;
			unset(c);
			continue;
		}
		now = homa_clock_ns();
		if (now >= until)
			return -EAGAIN;
		left = until - now;
		if (!id && left < SHORT_NS) {
			rc = by_poll(c, left, got);
		} else {
			begin(c, left);
			rc = homa_ksock_recv(c, id, 0, got);
			end(c);
		}
		if (rc != -EAGAIN)
			return rc;
	}
}

int homa_ksock_spin(struct homa_ksock *c, u64 id, u64 until,
		    struct homa_ksock_got *got)
{
	u64 now = homa_clock_ns(), ns = c->spin_ns, end;
	int rc;

	if (!ns && !id && until < now + SHORT_NS)
		ns = SHORT_SPIN_NS;
	if (!ns)
		return -EAGAIN;
	end = ns == HOMA_KSOCK_NEVER ? until : homa_min_u64(until, now + ns);
	for (;;) {
		rc = homa_ksock_recv(c, id, MSG_DONTWAIT, got);
		if (rc != -EAGAIN)
			return rc;
		if (homa_clock_ns() >= end || homa_ksock_error(c))
			return -EAGAIN;
		sched_yield();
	}
}
