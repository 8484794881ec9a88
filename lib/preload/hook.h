/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What hooks have in common: what they do before and after every call on a Homa socket. */
#ifndef HOMA_PRELOAD_HOOK_H
#define HOMA_PRELOAD_HOOK_H

#include <errno.h>
#include <time.h>
#include "preload.h"
#include "real.h"

/**
 * homa_pl_begin() - begin a call that uses libhoma
 * Until homa_pl_end() the thread is not cancelled, because libhoma would be left half done.
 * @cancel: receives the thread's cancel state, for homa_pl_end().
 * Returns 0, and homa_pl_end() must follow, or an error.
 */
int homa_pl_begin(struct homa_pl_sock *s, int *cancel);
void homa_pl_end(int cancel);

/** homa_pl_find_or_cancel() - find a socket for a call that is a cancellation point. In a call of a
 *  TCP socket the thread is only cancelled here, before this library holds anything, and while it
 *  sleeps. */
static inline struct homa_pl_sock *homa_pl_find_or_cancel(int fd)
{
	if (homa_pl_live)
		pthread_testcancel();
	return homa_pl_find(fd);
}

/** homa_pl_is_time() - is it NULL or a time that can be? If not, the kernel shall say so. */
static inline bool homa_pl_is_time(const struct timespec *time)
{
	return !time || (time->tv_sec >= 0 && time->tv_nsec >= 0 &&
			 time->tv_nsec < 1000000000);
}

/** homa_pl_result() - drop the reference; returns @rc, or -1 with errno set if it is an error. */
static inline int64_t homa_pl_result(struct homa_pl_sock *s, int64_t rc)
{
	homa_pl_put(s);
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

#endif
