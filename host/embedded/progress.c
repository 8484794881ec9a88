// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The progress thread runs the protocol when the application does not: it is
 * computing between two calls, or it sits in epoll on homa_fd(). It must cost
 * the application nothing while that runs the protocol itself, so it is in
 * one of three states:
 *
 *	parked: a thread of the application is responsible for the nic (the
 *	  poller, who may sleep in it for days). Nothing is watched. The call
 *	  with which the application leaves starts our alarm, once.
 *	ticking: the application comes and goes. An alarm of 200 us, growing
 *	  to 1 ms, looks whether it came since the last one.
 *	watching: the application stayed away. We run the protocol and sleep
 *	  on the nic's descriptor and the next deadline; both may be far away.
 *
 * Going from one state to another costs the application a timerfd_settime()
 * at most once per tick; calls in between cost nothing.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "embedded.h"

#define TICK_MIN_NS 200000u
#define TICK_MAX_NS 1000000u
/* The time for which the thread yields and looks again while packets flow, before it
 * sleeps, ns. */
#define LINGER_NS 30000u
#define STACK_BYTES (256u << 10)

enum { FROM_TIMER, FROM_NIC };

static void watch_nic(struct homa_emb *e)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data.u32 = FROM_NIC,
	};

	epoll_ctl(e->progress.epoll_fd, EPOLL_CTL_MOD, nic_fd(e->nic), &event);
}

static bool absent(struct homa_emb *e)
{
	u64 entries = __atomic_load_n(&e->entries, __ATOMIC_RELAXED);
	bool same = entries == e->progress.entries_seen;

	e->progress.entries_seen = entries;
	/* A program that waits on the descriptor relies on this thread between any two calls. */
	return same || e->ready_fd >= 0;
}

/*
 * Run the protocol until nothing moves or the application waits for messages
 * itself; then arm the nic. Returns false if there is more to do.
 */
static bool take_over(struct homa_emb *e)
{
	u64 linger_until = e->ctx.now + LINGER_NS;
	u64 next;

	while (!e->poller && !e->closing) {
		if (homa_emb_round(e))
			linger_until = e->ctx.now + LINGER_NS;
		e->counters.progress_rounds++;
		if (e->ctx.now >= linger_until)
			break;
		homa_gate_unlock(&e->lock);
		sched_yield();
		homa_gate_lock(&e->lock);
	}
	if (e->poller || e->closing)
		return true;
	next = homa_emb_next_deadline(e);
	if (next <= e->ctx.now || nic_arm(e->nic))
		return false;
	e->progress.parked = false;
	homa_emb_alarm(e, next == HOMA_NEVER ? next : next - e->ctx.now);
	watch_nic(e);
	return true;
}

/* Chooses the state to be in until the next wake-up (see above). The lock is held. */
static void progress_step(struct homa_emb *e)
{
	struct homa_emb_progress *p = &e->progress;

	homa_emb_now(e);
	e->counters.progress_wakeups++;
	if (!e->poller && absent(e)) {
		e->counters.progress_takeovers++;
		p->tick_ns = TICK_MIN_NS;
		while (!take_over(e))
			homa_gate_yield(&e->lock);
		if (!e->poller)
			return;
		absent(e);
	}
	if (e->poller) {
		p->parked = true;
		homa_emb_alarm(e, HOMA_NEVER);
	} else {
		p->parked = false;
		homa_emb_alarm(e, p->tick_ns);
	}
	p->tick_ns = homa_min_u64(2 * p->tick_ns, TICK_MAX_NS);
}

static void *progress_main(void *arg)
{
	struct homa_emb *e = arg;
	struct epoll_event events[2];
	bool closing = false;
	u64 expired;

	while (!closing) {
		int n = epoll_wait(e->progress.epoll_fd, events, 2, -1);

		if (n < 0 && errno != EINTR)
			break;
		if (read(e->progress.timer_fd, &expired, sizeof(expired)) < 0)
			expired = 0;
		homa_gate_lock(&e->lock);
		closing = e->closing;
		if (!closing)
			progress_step(e);
		homa_gate_unlock(&e->lock);
	}
	return NULL;
}

static int create_thread(struct homa_emb *e)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The application's own threads shall handle its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&e->progress.thread, &attr, progress_main, e);
	/* A program's thread-local variables lie in every stack. */
	if (rc == EINVAL)
		rc = pthread_create(&e->progress.thread, NULL, progress_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

int homa_emb_progress_start(struct homa_emb *e)
{
	struct homa_emb_progress *p = &e->progress;
	struct epoll_event event = { .events = EPOLLIN };
	int rc = 0;

	p->wake_at = HOMA_NEVER;
	p->tick_ns = TICK_MIN_NS;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->epoll_fd < 0 || p->timer_fd < 0)
		goto fail;
	event.data.u32 = FROM_TIMER;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->timer_fd, &event))
		goto fail;
	/* The nic's descriptor is watched only after it has been armed. */
	event.events = 0;
	event.data.u32 = FROM_NIC;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, nic_fd(e->nic), &event))
		goto fail;
	homa_emb_alarm(e, p->tick_ns);
	p->on = true;
	rc = create_thread(e);
	if (!rc)
		return 0;
	p->on = false;
fail:
	rc = rc ? rc : -errno;
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	if (p->timer_fd >= 0)
		close(p->timer_fd);
	return rc;
}

/* Ends the thread. homa_emb.closing has been set, and the lock is not held. */
void homa_emb_progress_stop(struct homa_emb *e)
{
	if (!e->progress.on)
		return;
	homa_gate_lock(&e->lock);
	homa_emb_alarm(e, 1);
	homa_gate_unlock(&e->lock);
	pthread_join(e->progress.thread, NULL);
	close(e->progress.epoll_fd);
	close(e->progress.timer_fd);
	e->progress.on = false;
}
