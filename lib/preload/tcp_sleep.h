/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sleeping, for those who sleep in a set of the program's; tcp.h has the rest. */
#ifndef HOMA_PRELOAD_TCP_SLEEP_H
#define HOMA_PRELOAD_TCP_SLEEP_H

#include <signal.h>
#include <sys/epoll.h>
#include "tcp_ready.h"
#include "tcp_sleepers.h"

/** homa_pl_kernel_wait() - wait in the kernel's set for @wait at most. */
int homa_pl_kernel_wait(int epfd, struct epoll_event *events, int max,
			const struct timespec *wait, const sigset_t *mask);
/** homa_pl_enter_set() - this thread is about to sleep in @set, by its descriptor @epfd. The caller
 *  has homa_pl_tcp_lock(). */
void homa_pl_enter_set(struct homa_pl_set *set, int epfd);
/** homa_pl_wait_in_set() - do so, until @until (ns) at most: handlers run, and the thread may be
 *  cancelled. Returns the number of events, or a negative errno. */
int homa_pl_wait_in_set(int epfd, struct epoll_event *events, int max,
			int64_t until, const sigset_t *mask);
/** homa_pl_leave_set() - the thread is awake. It takes homad's news, and will look at @set; NULL:
 *  it will not. */
void homa_pl_leave_set(const struct homa_pl_set *set);
/** homa_pl_set_in_vain() - note whether homad's signal, which has ended this thread's last sleep in
 *  a set, told something for others alone. The caller has homa_pl_tcp_lock(). */
void homa_pl_set_in_vain(bool vain);

#endif
