// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_fd(): the set is made when the application asks for it, and joins the homad
 * that the handle has. fd.c keeps it true.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include "fd.h"

/* Have the handle's homad, if there is one, signal at homa_fd(). If homad has just ended, the set
 * becomes readable when it is time to try again. */
static int attach_now(struct homa_svc *c)
{
	int rc;

	if (homa_svc_state(c) != HOMA_SVC_UP)
		return 0;
	rc = homa_svc_fd_ask(c, c->att);
	if (!rc)
		rc = homa_svc_fd_hear(c, c->att);
	if (rc != -ECONNRESET)
		return rc;
	homa_gate_lock(&c->lock);
	homa_svc_ended(c);
	homa_gate_unlock(&c->lock);
	return 0;
}

static int make_set(struct homa_svc *c)
{
	int rc;

	c->ep_fd = epoll_create1(EPOLL_CLOEXEC);
	c->level_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (c->ep_fd < 0 || c->level_fd < 0 || c->timer_fd < 0)
		return -errno;
	rc = homa_svc_fd_watch(c, c->level_fd, EPOLLIN);
	return rc ? rc : homa_svc_fd_watch(c, c->timer_fd, EPOLLIN);
}

int homa_svc_fd(void *host)
{
	struct homa_svc *c = host;
	int rc = 0;

	if (c->ep_fd >= 0)
		return c->ep_fd;
	pthread_mutex_lock(&c->ctl);
	if (c->ep_fd < 0) {
		homa_gate_lock(&c->lock);
		rc = make_set(c);
		homa_gate_unlock(&c->lock);
		if (!rc)
			rc = attach_now(c);
		homa_gate_lock(&c->lock);
		if (rc)
			homa_svc_fd_close(c);
		else if (homa_svc_state(c) == HOMA_SVC_LOST)
			homa_svc_fd_timer(c, 1);
		homa_svc_fd_touch(c);
		homa_gate_unlock(&c->lock);
	}
	pthread_mutex_unlock(&c->ctl);
	return rc ? rc : c->ep_fd;
}

int homa_svc_fd_edges(void *host)
{
	struct homa_svc *c = host;
	int rc = 0;

	pthread_mutex_lock(&c->ctl);
	c->fd_edges = true;
	if (c->ep_fd >= 0)
		rc = attach_now(c);
	homa_gate_lock(&c->lock);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	pthread_mutex_unlock(&c->ctl);
	return rc;
}
