// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_fd(): readable if and only if a shared message could be taken at once. It
 * is an epoll set, so that its number stays when homad is restarted, of
 *
 *	level_fd	ours: messages that we have taken out of the ring
 *	ready_fd	homad's: it signals once for each time we armed it
 *	the connection	hung up: something to learn
 *	timer_fd	while homad is away: time to try again
 *
 * homad clears HOMA_SHM_ARM_FD when it signals, so one signal is owed to us for
 * each bit that we find gone, and is read before we arm again. A program that
 * wants edges asks homad to signal for every message instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "fd.h"
#include "svc_wait.h"

/* The number of looks for a signal while homad has cleared the bit and not written it
 * yet. */
#define OWED_TRIES 1000

int homa_svc_fd_watch(struct homa_svc *c, int fd, u32 events)
{
	struct epoll_event ev = { .events = events };

	if (!epoll_ctl(c->ep_fd, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	/* The descriptor may be in the set already, for other events. */
	return errno == EEXIST && !epoll_ctl(c->ep_fd, EPOLL_CTL_MOD, fd, &ev) ?
		       0 :
		       -errno;
}

void homa_svc_fd_timer(struct homa_svc *c, u64 at)
{
	struct itimerspec when = { 0 };

	when.it_value.tv_sec = (time_t)(at / 1000000000u);
	when.it_value.tv_nsec = (long)(at % 1000000000u);
	/* A new setting makes the timer unreadable; 0 disarms it. */
	timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void set_level(struct homa_svc *c, bool level)
{
	u64 value = 1;

	if (c->level == level)
		return;
	/* Neither call can block or fail, because the counter is small. */
	if (level)
		c->level = write(c->level_fd, &value, sizeof(value)) > 0;
	else
		c->level = read(c->level_fd, &value, sizeof(value)) < 0;
}

/* Read all signals of homad. If @owed, at least one is there or about to come. */
static void read_signals(struct homa_svc *c, bool owed)
{
	char bytes[64];
	int i = 0;

	for (;;) {
		if (read(c->ready_fd, bytes, sizeof(bytes)) > 0) {
			owed = false;
			continue;
		}
		if (!owed || ++i > OWED_TRIES)
			return;
		sched_yield();
	}
}

/* Has homad signalled since we armed it, and nobody read that? */
static bool signalled(const struct homa_svc *c)
{
	return c->fd_armed &&
	       !(__atomic_load_n(&c->att->queues->armed, __ATOMIC_ACQUIRE) &
		 HOMA_SHM_ARM_FD);
}

/* Ask homad to signal the next message, when there is none for the application. */
static void arm(struct homa_svc *c)
{
	u32 *armed = &c->att->queues->armed;

	if (c->fd_edges) {
		read_signals(c, false);
		return;
	}
	if (signalled(c))
		read_signals(c, true);
	else if (c->fd_armed)
		return;
	c->fd_armed = true;
	__atomic_fetch_or(armed, HOMA_SHM_ARM_FD, __ATOMIC_SEQ_CST);
}

void homa_svc_fd_edge(struct homa_svc *c)
{
	u64 value = 1;

	if (c->ep_fd >= 0 && c->fd_edges)
		c->level |= write(c->level_fd, &value, sizeof(value)) > 0;
}

void homa_svc_fd_update(struct homa_svc *c)
{
	u32 state = homa_svc_state(c);

	if (c->closing || state == HOMA_SVC_SHUT || state == HOMA_SVC_EVICTED) {
		set_level(c, true);
		return;
	}
	if (state == HOMA_SVC_LOST) {
		set_level(c, c->ready_count > 0);
		return;
	}
	do {
		homa_svc_drain(c, NULL);
		if (!c->ready_count)
			arm(c);
	} while (homa_svc_pending(c) && homa_svc_drain(c, NULL));
	/* If homad has signalled, its descriptor is readable and ours need not be. */
	if (c->fd_edges || !c->ready_count || !signalled(c))
		set_level(c, c->ready_count > 0);
}

/* @lock is enough to read ready_fd, which is only changed under @ctl and @lock. */
void homa_svc_fd_detach(struct homa_svc *c)
{
	u64 next = __atomic_load_n(&c->next_try, __ATOMIC_RELAXED);

	epoll_ctl(c->ep_fd, EPOLL_CTL_DEL, c->att->sock, NULL);
	if (c->ready_fd >= 0)
		epoll_ctl(c->ep_fd, EPOLL_CTL_DEL, c->ready_fd, NULL);
	if (homa_svc_state(c) == HOMA_SVC_LOST)
		homa_svc_fd_timer(c, next ? next : 1);
}

void homa_svc_fd_await(struct homa_svc *c, struct homa_svc_att *att)
{
	homa_gate_lock(&c->lock);
	homa_svc_fd_watch(c, att->sock, EPOLLIN | EPOLLRDHUP);
	homa_svc_fd_timer(c, __atomic_load_n(&c->next_try, __ATOMIC_RELAXED));
	homa_gate_unlock(&c->lock);
}

void homa_svc_fd_leave(struct homa_svc *c, struct homa_svc_att *att)
{
	homa_gate_lock(&c->lock);
	if (c->ep_fd >= 0) {
		if (att)
			epoll_ctl(c->ep_fd, EPOLL_CTL_DEL, att->sock, NULL);
		homa_svc_fd_detach(c);
	}
	homa_gate_unlock(&c->lock);
}

int homa_svc_fd_ask(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_READY_FD,
					    .bytes = c->fd_edges };

	return homa_svc_tell(att, &request);
}

int homa_svc_fd_hear(struct homa_svc *c, struct homa_svc_att *att)
{
	struct homa_ctl_answer answer;
	int fd, old, rc;

	rc = homa_svc_hear(att, HOMA_CTL_READY_FD, &answer, &fd, 1);
	if (!rc)
		rc = answer.error;
	if (!rc && fd < 0)
		rc = -EMFILE;
	if (rc)
		return rc;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	homa_gate_lock(&c->lock);
	/* A child of fork() closes @ready_fd, so this must never be a closed descriptor. */
	old = c->ready_fd;
	c->ready_fd = fd;
	if (old >= 0)
		close(old);
	c->fd_armed = false;
	rc = homa_svc_fd_watch(c, fd, EPOLLIN);
	if (!rc)
		rc = homa_svc_fd_watch(c, att->sock, EPOLLRDHUP);
	homa_svc_fd_timer(c, 0);
	homa_gate_unlock(&c->lock);
	return rc;
}

void homa_svc_fd_close(struct homa_svc *c)
{
	int *fds[] = { &c->ep_fd, &c->level_fd, &c->ready_fd, &c->timer_fd };
	u32 i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		int fd = *fds[i];

		*fds[i] = -1;
		if (fd >= 0)
			close(fd);
	}
}
