// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A library that is preloaded behind libhoma-preload: it counts how often the kernel is asked for
 * an epoll set's events, and says so at the end.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>

static int asked;

int epoll_pwait2(int epfd, struct epoll_event *events, int max,
		 const struct timespec *wait, const sigset_t *mask)
{
	int (*next)(int, struct epoll_event *, int, const struct timespec *,
		    const sigset_t *) =
		(__typeof__(next))dlsym(RTLD_NEXT, "epoll_pwait2");

	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	return next(epfd, events, max, wait, mask);
}

__attribute__((destructor)) static void say(void)
{
	fprintf(stderr, "asked %d\n", asked);
}
