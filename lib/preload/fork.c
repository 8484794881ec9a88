// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * fork(): the child has the descriptors, and memory as it was, but neither
 * libhoma's threads nor its handles. So nothing may be half changed when the
 * process divides (all locks are taken before), and in the child every socket
 * is of an older generation and opened anew when it is used. What the child
 * closes is its own; the parent notices nothing.
 */
#include <unistd.h>
#include "internal.h"
#include "preload_sock.h"

/* This thread has taken the locks for fork(). Each thread has its own, as two may fork at once. */
static __thread bool locked;

static void before(void)
{
	struct homa_pl_sock *s;

	/* In a signal handler that interrupted one of our calls, fork() cannot take the locks. */
	locked = !homa_pl_inside();
	if (!locked)
		return;
	homa_pl_lock_list();
	homa_pl_lock_fds();
	for (s = homa_pl_all; s; s = s->next)
		pthread_mutex_lock(&s->lock);
}

static void in_parent(void)
{
	struct homa_pl_sock *s;

	if (!locked)
		return;
	for (s = homa_pl_all; s; s = s->next)
		pthread_mutex_unlock(&s->lock);
	homa_pl_unlock_fds();
	homa_pl_unlock_list();
}

static void in_child(void)
{
	struct homa_pl_sock *s;
	int fd = -1;

	homa_pl_generation++;
	homa_pl_reset_locks();
	homa_pl_reset_fds();
	homa_pl_live = 0;
	homa_pl_missing_ports = 0;
	/* Calls of other threads do not go on here, so only descriptors have references. */
	for (s = homa_pl_all; s; s = s->next) {
		pthread_mutex_init(&s->lock, NULL);
		pthread_mutex_init(&s->reading, NULL);
		pthread_mutex_init(&s->writing, NULL);
		s->refs = 0;
		s->port_missing = false;
	}
	while ((fd = homa_pl_table_next(fd + 1)) >= 0) {
		s = homa_pl_table_get(fd);
		homa_pl_live += !s->refs++;
	}
}

static void watch(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void homa_pl_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
