// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a fast-path thread does when a round found nothing. In shared mode it
 * must leave the cores to the applications: it yields after each empty round,
 * so that whoever has work runs at once, and after a while without work it
 * blocks until a packet, a kick or a deadline; homa_spin.h says after which. In
 * dedicated mode it owns its core and spins.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "fast.h"

#define EVENTS 64
/* The time between two looks of a thread with work for kicks of parked applications, ns. */
#define KICKS_NS 20000u
#define LONGEST_NS 60000000000u

static void take_events(struct homad_thread *t, const struct epoll_event *ev,
			int n)
{
	struct homad_port *port;
	u64 value;
	int i;

	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 &HOMAD_EVENT_OF_NIC) {
			/* The next round receives from it. */
			port = (void *)(uintptr_t)(ev[i].data.u64 -
						   HOMAD_EVENT_OF_NIC);
			port->rx_at = 0;
		} else if (ev[i].data.ptr == t) {
			if (read(t->mail_fd, &value, sizeof(value)) < 0)
				continue;
		} else {
			t->counters.kicks++;
			homad_poll_app(t, ev[i].data.ptr);
		}
	}
}

/* Attachments that are not polled may have kicked. */
void homad_listen(struct homad_thread *t)
{
	struct epoll_event ev[EVENTS];

	if (t->num_polled == t->num_apps || t->ctx.now - t->epoll_at < KICKS_NS)
		return;
	t->epoll_at = t->ctx.now;
	take_events(t, ev, epoll_wait(t->epfd, ev, EVENTS, 0));
}

static int wait_events(struct homad_thread *t, struct epoll_event *ev, u64 until)
{
	u64 wait = until > t->ctx.now ? until - t->ctx.now : 0;
	struct timespec ts = { (time_t)(wait / 1000000000u),
			       (long)(wait % 1000000000u) };
	int n;

	n = epoll_pwait2(t->epfd, ev, EVENTS, until == HOMA_NEVER ? NULL : &ts,
			 NULL);
	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(t->epfd, ev, EVENTS,
			       until == HOMA_NEVER ? -1 :
						     (int)(wait / 1000000u) + 1);
	return n;
}

static bool arm_nics(struct homad_thread *t)
{
	u32 i;

	for (i = 0; i < t->num_ports; i++)
		if (nic_arm(t->ports[i]->nic))
			return false;
	return true;
}

static void block(struct homad_thread *t)
{
	struct epoll_event ev[EVENTS];
	u64 until = homad_next_deadline(t);
	int n;

	if (until <= t->ctx.now)
		return;
	if (homad_ask_kicks(t) || __atomic_load_n(&t->mail, __ATOMIC_SEQ_CST) ||
	    !arm_nics(t)) {
		homad_drop_kicks(t);
		return;
	}
	t->counters.blocks++;
	if (homa_spin_rare(&t->spin))
		t->counters.early_blocks++;
	__atomic_store_n(&t->asleep, true, __ATOMIC_RELEASE);
	n = wait_events(t, ev, until);
	homad_now(t);
	if (n >= 0)
		homad_rx_pause(t);
	take_events(t, ev, n);
	HOMA_WRITE_ONCE(t->asleep, false);
	homad_drop_kicks(t);
	homa_spin_slept(&t->spin, t->ctx.now);
	t->epoll_at = t->ctx.now;
}

void homad_idle(struct homad_thread *t)
{
	t->counters.idle_rounds++;
	homad_listen(t);
	if (t->d->config.mode == HOMAD_DEDICATED && t->active)
		return;
	if (t->active && homa_spin_idle(&t->spin, t->ctx.now)) {
		t->counters.yields++;
		return;
	}
	block(t);
}
