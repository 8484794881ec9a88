// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_send_fd(): for programs that wait with epoll until a request may be sent that found
 * no room. homad takes what is in a ring without a word, so the descriptor is a timer: a
 * request that finds no room sets it, and when it has run out a further try is worth its
 * price. Tries in vain are made more and more seldom, as homa_wait_send() looks.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include "client.h"

#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 500000u

static void set(int fd, u32 ns)
{
	struct itimerspec when = { .it_value.tv_nsec = (long)ns };

	/* A new setting makes the timer unreadable until it runs out. */
	timerfd_settime(fd, 0, &when, NULL);
}

int homa_svc_send_fd(void *host)
{
	struct homa_svc *c = host;
	int fd;

	pthread_mutex_lock(&c->ctl);
	fd = c->send_fd;
	if (fd < 0) {
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fd < 0) {
			fd = -errno;
		} else {
			set(fd, 1);
			__atomic_store_n(&c->send_fd, fd, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&c->ctl);
	return fd;
}

void homa_svc_send_tried(struct homa_svc *c, int rc)
{
	int fd = __atomic_load_n(&c->send_fd, __ATOMIC_ACQUIRE);
	u32 pause = __atomic_load_n(&c->send_pause, __ATOMIC_RELAXED);

	if (fd < 0)
		return;
	if (rc == -EAGAIN) {
		pause = pause ? homa_min_u32(2 * pause, PAUSE_MAX_NS) :
				PAUSE_MIN_NS;
		set(fd, pause);
	} else {
		pause = 0;
	}
	__atomic_store_n(&c->send_pause, pause, __ATOMIC_RELAXED);
}
