// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_fd(): an epoll set of the socket, which is readable when it has a shared
 * message, and of an eventfd that is while the list of kept ones is not empty.
 * homa_send_fd(): another one of the socket, which is readable when that can be written.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "backend_kernel.h"

void homa_ksock_fd_touch(struct homa_ksock *c)
{
	bool level = !homa_list_empty(&c->ready);
	u64 value = 1;

	if (likely(c->ep_fd < 0) || c->level == level)
		return;
	/* Neither call can block or fail, because the counter is 0 or 1. */
	if (level)
		c->level = write(c->level_fd, &value, sizeof(value)) > 0;
	else
		c->level = read(c->level_fd, &value, sizeof(value)) < 0;
}

static int watch(int set, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int homa_ksock_fd(void *host)
{
	struct homa_ksock *c = host;
	int set, rc;

	homa_gate_lock(&c->lock);
	if (c->ep_fd >= 0)
		goto out;
	c->level_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	set = epoll_create1(EPOLL_CLOEXEC);
	rc = c->level_fd < 0 || set < 0 ? -errno : 0;
	if (!rc)
		rc = watch(set, c->fd, EPOLLIN);
	if (!rc)
		rc = watch(set, c->level_fd, EPOLLIN);
	if (rc) {
		if (c->level_fd >= 0)
			close(c->level_fd);
		if (set >= 0)
			close(set);
		c->level_fd = -1;
		homa_gate_unlock(&c->lock);
		return rc;
	}
	c->ep_fd = set;
	homa_ksock_fd_touch(c);
out:
	homa_gate_unlock(&c->lock);
	return c->ep_fd;
}

int homa_ksock_send_fd(void *host)
{
	struct homa_ksock *c = host;
	int set, rc;

	homa_gate_lock(&c->lock);
	set = c->send_fd;
	if (set < 0) {
		set = epoll_create1(EPOLL_CLOEXEC);
		rc = set < 0 ? -errno : watch(set, c->fd, EPOLLOUT);
		if (rc && set >= 0)
			close(set);
		c->send_fd = rc ? -1 : set;
		set = rc ? rc : set;
	}
	homa_gate_unlock(&c->lock);
	return set;
}
