// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow path's loop. Everything that it waits for is a *source*: a descriptor
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
	slow->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (d->dead_fd >= 0 && slow->epfd >= 0) {
		d->slow = slow;
		return 0;
	}
	rc = -errno;
	if (d->dead_fd >= 0)
		close(d->dead_fd);
	if (slow->epfd >= 0)
		close(slow->epfd);
	free(slow);
	return rc;
}

void homad_slow_free(struct homad *d)
{
	struct homad_slow *slow = homad_slow(d);

	if (!slow)
		return;
	close(slow->epfd);
	close(d->dead_fd);
	free(slow);
	d->slow = NULL;
}

int homad_watch(struct homad *d, struct homad_source *source, u32 events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(homad_slow(d)->epfd,
		      source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      source->fd, &event))
		return -errno;
	source->watched = true;
	return 0;
}

void homad_unwatch(struct homad *d, struct homad_source *source)
{
	struct homad_slow *slow = homad_slow(d);
	int i;

	if (!source->watched)
		return;
	epoll_ctl(slow->epfd, EPOLL_CTL_DEL, source->fd, NULL);
	source->watched = false;
	for (i = 0; i < slow->batch_len; i++)
		if (slow->batch[i].data.ptr == source)
			slow->batch[i].data.ptr = NULL;
}

int homad_slow_run(struct homad *d)
{
	struct epoll_event batch[HOMAD_EVENTS];
	struct homad_slow *slow = homad_slow(d);
	struct homad_source *source;
	int i, n;

	slow->batch = batch;
	while (!slow->stop) {
		n = epoll_wait(slow->epfd, batch, HOMAD_EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		slow->batch_len = n > 0 ? n : 0;
		for (i = 0; i < n; i++) {
			source = batch[i].data.ptr;
			if (source)
				source->ready(d, source, batch[i].events);
		}
		slow->batch_len = 0;
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
