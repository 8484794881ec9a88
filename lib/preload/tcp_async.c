// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * SIGIO and SIGURG for sockets of homad's (F_SETOWN, O_ASYNC). The kernel keeps what the program
 * has set, and sends these signals for what comes to its own sockets. What homad tells is news only
 * for who asks, so a thread of ours does that as soon as a program has set an owner, and sends the
 * signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "internal.h"
#include "pl_signals.h"
#include "preload_sock.h"
#include "real.h"
#include "tcp.h"

/* The value of homa_pl_generation plus 1 in the process that has the thread; 0: none has it. It is
 * under homa_pl_tcp_lock(). */
static unsigned int runs_in;

/** struct due - a signal that is to be sent */
struct due {
	/* The process, or the group as a negative number; 0: there is none. */
	pid_t owner;
	/* The signal for news, 0 if it is not wanted; SIGURG, or 0 if no byte is urgent. */
	int news, urgent;
};

/* Take what is due for @s. The caller has the lock. */
static struct due take(struct homa_pl_sock *s)
{
	struct homa_pl_async *async = &s->tcp->async;
	struct homa_stream_mark mark;
	struct due due = { .owner = async->owner };
	bool urgent;

	if (!async->owner || !async->due)
		return (struct due){ 0 };
	async->due = false;
	if (!s->tcp->stream)
		return (struct due){ 0 };
	if (async->on)
		due.news = async->number ? async->number : SIGIO;
	urgent = !s->tcp->listens && homa_stream_mark(s->tcp->stream, &mark);
	/* It is told once. */
	if (urgent && !async->urgent)
		due.urgent = SIGURG;
	async->urgent = urgent;
	return due;
}

static void send_due(void)
{
	struct homa_pl_sock *s;
	struct due due;

	homa_pl_lock_list();
	s = homa_pl_all;
	homa_pl_unlock_list();
	/* Sockets are never freed, and new ones come before the first. */
	for (; s; s = s->next) {
		homa_pl_tcp_lock();
		due = s->tcp ? take(s) : (struct due){ 0 };
		homa_pl_tcp_unlock();
		if (due.news)
			kill(due.owner, due.news);
		if (due.urgent)
			kill(due.owner, due.urgent);
	}
}

static void *run(void *arg)
{
	const struct homa_pl_waits waits = { .ready = homa_pl_tcp_any_due };
	struct pollfd fds[1];

	(void)arg;
	homa_pl_hold();
	for (;;) {
		homa_pl_pump();
		send_due();
		if (homa_pl_sleep(fds, 0, INT64_MAX, NULL, &waits) < 0)
			break;
	}
	homa_pl_unhold();
	return NULL;
}

bool homa_pl_tcp_any_due(void *arg)
{
	struct homa_pl_sock *s;
	bool any = false;

	(void)arg;
	homa_pl_lock_list();
	s = homa_pl_all;
	homa_pl_unlock_list();
	homa_pl_tcp_lock();
	for (; s && !any; s = s->next)
		any = s->tcp && s->tcp->async.owner && s->tcp->async.due;
	homa_pl_tcp_unlock();
	return any;
}

/* Start the thread, with all signals blocked: they are the program's threads'. */
static void start(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, run, NULL))
		pthread_detach(thread);
	else
		homa_pl_debug("no SIGIO and SIGURG: no thread can be made");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void homa_pl_tcp_async_changed(struct homa_pl_sock *s, int fd)
{
	struct f_owner_ex owner = { 0 };
	struct homa_pl_async *async = &s->tcp->async;
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFL);
	int number = HOMA_PL_REAL(fcntl)(fd, F_GETSIG);
	bool begins;

	if (flags < 0 || HOMA_PL_REAL(fcntl)(fd, F_GETOWN_EX, &owner))
		return;
	homa_pl_tcp_lock();
	async->owner = owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
	async->number = number > 0 ? number : 0;
	async->on = flags & O_ASYNC;
	/* What came before may be urgent already. */
	async->due = true;
	begins = async->owner && runs_in != homa_pl_generation + 1;
	if (begins)
		runs_in = homa_pl_generation + 1;
	homa_pl_tcp_unlock();
	if (begins)
		start();
	else if (async->owner)
		homa_pl_tell(s);
}
