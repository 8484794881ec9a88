// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The loops of the slow path. Everything that they wait for is a *source*: a descriptor
 * and a function, embedded in what it belongs to. A source may go away while the
 * events of a turn are being worked off, its own or another's; homad_unwatch()
 * therefore strikes it from the rest of the turn, and memory may be freed right
 * after it. Timers are sources, too (timerfd), armed only while somebody needs
 * them: a daemon with nothing attached sleeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "log.h"
#include "slowpath.h"

#define NSEC 1000000000ull

static void close_fds(struct homad *d, struct homad_slow *slow)
{
	if (d->dead_fd >= 0)
		close(d->dead_fd);
	if (slow->loop.epfd >= 0)
		close(slow->loop.epfd);
	if (slow->admin_loop.epfd >= 0)
		close(slow->admin_loop.epfd);
}

int homad_slow_init(struct homad *d)
{
	struct homad_slow *slow = calloc(1, sizeof(*slow));
	int rc;

	if (!slow)
		return -ENOMEM;
	slow->d = d;
	homa_list_init(&slow->apps);
	homa_list_init(&slow->asking);
	d->dead_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	slow->loop.epfd = epoll_create1(EPOLL_CLOEXEC);
	slow->admin_loop.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (d->dead_fd >= 0 && slow->loop.epfd >= 0 &&
	    slow->admin_loop.epfd >= 0) {
		d->slow = slow;
		return 0;
	}
	rc = -errno;
	close_fds(d, slow);
	free(slow);
	return rc;
}

void homad_slow_free(struct homad *d)
{
	struct homad_slow *slow = homad_slow(d);

	if (!slow)
		return;
	close_fds(d, slow);
	free(slow);
	d->slow = NULL;
}

static struct homad_loop *loop_of(struct homad *d,
				  const struct homad_source *source)
{
	struct homad_slow *slow = homad_slow(d);

	return source->admin ? &slow->admin_loop : &slow->loop;
}

int homad_watch(struct homad *d, struct homad_source *source, u32 events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(loop_of(d, source)->epfd,
		      source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      source->fd, &event))
		return -errno;
	source->watched = true;
	return 0;
}

void homad_unwatch(struct homad *d, struct homad_source *source)
{
	struct homad_loop *loop = loop_of(d, source);
	int i;

	if (!source->watched)
		return;
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, source->fd, NULL);
	source->watched = false;
	for (i = 0; i < loop->batch_len; i++)
		if (loop->batch[i].data.ptr == source)
			loop->batch[i].data.ptr = NULL;
}

int homad_loop_run(struct homad *d, struct homad_loop *loop)
{
	struct epoll_event batch[HOMAD_EVENTS];
	struct homad_source *source;
	int i, n;

	loop->batch = batch;
	while (!__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE)) {
		n = epoll_wait(loop->epfd, batch, HOMAD_EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		loop->batch_len = n > 0 ? n : 0;
		for (i = 0; i < n; i++) {
			source = batch[i].data.ptr;
			if (source)
				source->ready(d, source, batch[i].events);
		}
		loop->batch_len = 0;
	}
	return 0;
}

int homad_timer_open(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int homad_timer_set(int fd, u64 interval_ns)
{
	struct timespec step = {
		.tv_sec = (time_t)(interval_ns / NSEC),
		.tv_nsec = (long)(interval_ns % NSEC),
	};
	struct itimerspec spec = { .it_interval = step, .it_value = step };

	return timerfd_settime(fd, 0, &spec, NULL) ? -errno : 0;
}
