// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sleeping. homad wakes the process by one descriptor, and its news goes to whichever
 * thread asks first; that thread wakes the others, each by an eventfd of its own, since
 * the news may concern any of them. A thread that sleeps is on a list before it looks for
 * the last time, so no news is missed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include "exec.h"
#include "internal.h"
#include "pl_signals.h"
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"
#include "preload_sock.h"
#include "real.h"

#define NEWS 64 /* streams with news that are taken at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct homa_pl_sleeper *sleepers;
static void (*on_news)(struct homa_pl_sock *s);

/* The context of the process @context_generation, a value of homa_pl_generation; NULL if homad
 * takes no TCP. */
static struct homa_streams *context;
static unsigned int context_generation;
/* @context was set, maybe to NULL. It is atomic. */
static bool context_tried;
/* True if homad has ended: all streams have failed, and homad does not signal any more. It
 * is atomic. */
static bool lost;

/* With initial-exec nothing is allocated when a signal handler is the first to look. */
static __thread struct {
	/* The thread's eventfd, or -1. */
	int fd;
	/* The value of homa_pl_generation in the process that made @fd. */
	unsigned int generation;
	/* The thread's place in the list. A handler that jumps out of a sleep (siglongjmp())
	 * leaves it there, where it does no harm. */
	struct homa_pl_sleeper sleeper;
	/* @sleeper is in the list. */
	bool joined;
} own __attribute__((tls_model("initial-exec"))) = { .fd = -1 };

/* ---- fork() ---- */

/* Under the lock: the ticket for the child of the fork() that is under way. */
static struct homa_streams_ticket ticket;
/* Under the lock: that fork() has asked for a ticket. */
static bool has_ticket;
/* In a child of vfork(): the ticket for the program that it will run. */
static struct homa_streams_ticket kept = { .pipe = -1 };
/* The device and the inode of that ticket's pipe. */
static struct stat kept_file;

/* Wait until every read and write has ended that began before its stream was shared and so takes no
 * lock there. Those that begin now know better. */
static void await_calls(void)
{
	struct homa_pl_sock *s;

	homa_pl_lock_list();
	s = homa_pl_all;
	homa_pl_unlock_list();
	/* Sockets are never freed, and new ones come before the first. */
	for (; s; s = s->next) {
		pthread_mutex_lock(&s->reading);
		pthread_mutex_unlock(&s->reading);
		pthread_mutex_lock(&s->writing);
		pthread_mutex_unlock(&s->writing);
	}
}

static void before_fork(void)
{
	homa_pl_hold();
	pthread_mutex_lock(&open_lock);
	pthread_mutex_lock(&lock);
	homa_pl_tcp_divide();
	has_ticket = context && context_generation == homa_pl_generation &&
		     !homa_pl_inside();
	if (!has_ticket)
		return;
	if (homa_pl_tcp_in_vfork())
		homa_streams_before_exec(context, &ticket);
	else
		homa_streams_before_fork(context, &ticket);
	await_calls();
	homa_pl_tcp_share_all(context);
	if (!homa_pl_tcp_in_vfork())
		homa_streams_at_fork(context, &ticket);
	if (ticket.pipe < 0 && ticket.error != -ENOENT)
		homa_pl_debug("the child will have none of this program's TCP: %s",
			      strerror(-ticket.error));
}

static void in_parent(void)
{
	if (has_ticket && !homa_pl_tcp_in_vfork())
		homa_streams_in_parent(context, &ticket);
	else if (has_ticket && ticket.pipe >= 0)
		HOMA_PL_REAL(close)(ticket.pipe);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&open_lock);
	homa_pl_unhold();
}

static void take_over(void)
{
	/* A child of vfork() does not attach, as it will only run another program. */
	kept.pipe = -1;
	if (has_ticket && homa_pl_tcp_in_vfork()) {
		kept = ticket;
		fstat(kept.pipe, &kept_file);
	}
	if (!has_ticket || homa_pl_tcp_in_vfork())
		return;
	context = homa_streams_in_child(context, &ticket);
	if (!context)
		return;
	homa_streams_descriptors(context, homa_pl_own_fd);
	context_generation = homa_pl_generation;
	__atomic_store_n(&lost, false, __ATOMIC_RELAXED);
	homa_pl_debug("a child of fork() goes on with its parent's TCP%s%s",
		      ticket.error ? ", but not with all: " : "",
		      ticket.error ? strerror(-ticket.error) : "");
}

/* The child has none of the threads that slept. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&open_lock, NULL);
	sleepers = NULL;
	own.joined = false;
	homa_pl_signals_in_child();
	take_over();
	homa_pl_unhold();
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
	homa_pl_exec_watch_forks();
}

/* ---- exec ---- */

int homa_pl_tcp_kept_pipe(void)
{
	struct stat file;

	/* The program may have closed the pipe unseen, and have another file at its number. */
	if (kept.pipe >= 0 &&
	    (fstat(kept.pipe, &file) || file.st_ino != kept_file.st_ino ||
	     file.st_dev != kept_file.st_dev))
		kept.pipe = -1;
	return kept.pipe;
}

bool homa_pl_tcp_has_context(void)
{
	return context && context_generation == homa_pl_generation;
}

void homa_pl_tcp_ticket(struct homa_streams_ticket *own_ticket)
{
	own_ticket->pipe = -1;
	if (homa_pl_inside())
		return;
	if (homa_pl_tcp_kept_pipe() >= 0) {
		*own_ticket = kept;
		own_ticket->pipe =
			HOMA_PL_REAL(fcntl)(kept.pipe, F_DUPFD_CLOEXEC, 0);
		return;
	}
	homa_pl_hold();
	pthread_mutex_lock(&open_lock);
	pthread_mutex_lock(&lock);
	if (homa_pl_tcp_has_context()) {
		homa_streams_before_exec(context, own_ticket);
		await_calls();
		homa_pl_tcp_share_all(context);
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&open_lock);
	homa_pl_unhold();
}

/* ---- the context ---- */

static pthread_once_t watches_forks = PTHREAD_ONCE_INIT;

static struct homa_streams *open_context(void)
{
	struct homa_streams *ctx = NULL;
	int rc;

	/* In a child the handlers of libhoma and of sock.c must run first: they count it. */
	homa_pl_watch_forks();
	rc = homa_streams_open(&ctx, NULL);
	pthread_once(&watches_forks, watch_forks);
	if (rc) {
		homa_pl_debug("TCP stays the kernel's: %s", strerror(-rc));
		return NULL;
	}
	homa_streams_descriptors(ctx, homa_pl_own_fd);
	homa_pl_debug("TCP goes through homad where its rules say so");
	return ctx;
}

void homa_pl_tcp_go_on(struct homa_streams *ctx)
{
	homa_pl_watch_forks();
	pthread_once(&watches_forks, watch_forks);
	homa_streams_descriptors(ctx, homa_pl_own_fd);
	context = ctx;
	context_generation = homa_pl_generation;
	__atomic_store_n(&context_tried, true, __ATOMIC_RELEASE);
}

struct homa_streams *homa_pl_streams(void)
{
	if (HOMA_PL_LIKELY(__atomic_load_n(&context_tried, __ATOMIC_ACQUIRE) &&
			   context_generation == homa_pl_generation))
		return context;
	pthread_mutex_lock(&open_lock);
	if (!context_tried || context_generation != homa_pl_generation) {
		/* In the child of fork() the parent's context is of no use. */
		context = open_context();
		context_generation = homa_pl_generation;
		__atomic_store_n(&lost, false, __ATOMIC_RELAXED);
		__atomic_store_n(&context_tried, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&open_lock);
	return context;
}

/* ---- news ---- */

void homa_pl_tcp_lock(void)
{
	pthread_mutex_lock(&lock);
}

void homa_pl_tcp_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void homa_pl_on_news(void (*call)(struct homa_pl_sock *s))
{
	on_news = call;
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (HOMA_PL_REAL(write)(fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the descriptor is readable. */
}

bool homa_pl_may_sleep(void)
{
	struct homa_streams *ctx = homa_pl_streams();

	return !ctx || __atomic_load_n(&lost, __ATOMIC_RELAXED) ||
	       homa_streams_arm(ctx);
}

int homa_pl_news_fd(void)
{
	struct homa_streams *ctx = homa_pl_streams();

	/* The descriptor of a homad that has ended stays readable, so it is not used. */
	return !ctx || __atomic_load_n(&lost, __ATOMIC_RELAXED) ?
		       -1 :
		       homa_streams_fd(ctx);
}

/* Wake the threads that sleep, all or those who wait for sockets with news. Who waits for several
 * looks by itself. The caller has the lock. */
static void wake_sleepers(bool all)
{
	struct homa_pl_sleeper *sleeper;

	for (sleeper = sleepers; sleeper; sleeper = sleeper->next)
		if (all || (!sleeper->in_set &&
			    (!sleeper->sock || sleeper->sock->tcp->has_news)))
			wake(sleeper->fd);
}

/* There is news of @s, which may be NULL. */
static void note_news(struct homa_pl_sock *s, bool on)
{
	if (!s || !s->tcp)
		return;
	s->tcp->has_news = on;
	s->tcp->async.due |= on;
	if (on && on_news)
		on_news(s);
}

void homa_pl_tell(struct homa_pl_sock *s)
{
	pthread_mutex_lock(&lock);
	note_news(s, true);
	wake_sleepers(false);
	note_news(s, false);
	pthread_mutex_unlock(&lock);
}

void homa_pl_pump(void)
{
	struct homa_stream *news[NEWS];
	struct homa_streams *ctx = homa_pl_streams();
	bool again;
	int i, n;

	if (!ctx)
		return;
	do {
		again = false;
		/* Sockets with news cannot end meanwhile, because that takes the lock, too. */
		pthread_mutex_lock(&lock);
		n = homa_streams_poll(ctx, news, NEWS);
		for (i = 0; i < n; i++)
			note_news(homa_stream_user(news[i]), true);
		/* When homad has ended, all threads are woken once, to hear of it. */
		if (n < 0 && __atomic_exchange_n(&lost, true, __ATOMIC_RELAXED))
			n = 0;
		if (n)
			wake_sleepers(n < 0);
		for (i = 0; i < n; i++)
			note_news(homa_stream_user(news[i]), false);
		/* homad signals once. We may have taken what a sleeper was to wake for. */
		again = sleepers && !homa_pl_may_sleep();
		pthread_mutex_unlock(&lock);
	} while (n == NEWS || again);
}

/* ---- sleeping ---- */

static pthread_key_t at_end;

/* Take a thread that ends out of the list, and close its eventfd. */
static void close_own(void *arg)
{
	(void)arg;
	if (own.joined && own.generation == homa_pl_generation)
		homa_pl_leave_sleep(&own.sleeper);
	own.joined = false;
	if (own.generation == homa_pl_generation)
		homa_pl_close_own_fd(own.fd);
	own.fd = -1;
}

static void make_key(void)
{
	pthread_key_create(&at_end, close_own);
}

int homa_pl_sleeper_fd(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (HOMA_PL_LIKELY(own.fd >= 0 && own.generation == homa_pl_generation))
		return own.fd;
	own.fd = homa_pl_own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	own.generation = homa_pl_generation;
	if (own.fd < 0)
		return -errno;
	pthread_once(&once, make_key);
	pthread_setspecific(at_end, &own);
	return own.fd;
}

void homa_pl_join(struct homa_pl_sleeper *sleeper)
{
	pthread_mutex_lock(&lock);
	sleeper->next = sleepers;
	sleepers = sleeper;
	pthread_mutex_unlock(&lock);
}

void homa_pl_leave_sleep(const struct homa_pl_sleeper *sleeper)
{
	struct homa_pl_sleeper **at;

	pthread_mutex_lock(&lock);
	for (at = &sleepers; *at; at = &(*at)->next) {
		if (*at == sleeper) {
			*at = sleeper->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static struct timespec until_timespec(int64_t until)
{
	int64_t left = until - homa_pl_now();
	struct timespec ts;

	left = left > 0 ? left : 0;
	ts.tv_sec = left / 1000000000;
	ts.tv_nsec = left % 1000000000;
	return ts;
}

static void leave(void *depth)
{
	homa_pl_hold_again(*(const unsigned int *)depth);
	homa_pl_leave_sleep(&own.sleeper);
	own.joined = false;
}

/* Sleep in ppoll(). Only here the thread may be cancelled. */
static int poll_or_cancel(struct pollfd *fds, nfds_t n,
			  const struct timespec *wait, const sigset_t *mask)
{
	unsigned int depth = homa_pl_signals.depth;
	int rc;

	pthread_cleanup_push(leave, &depth);
	homa_pl_let_signals(own.fd);
	rc = HOMA_PL_REAL(ppoll)(fds, n, wait, mask);
	rc = rc < 0 ? -errno : rc;
	homa_pl_hold_again(depth);
	pthread_cleanup_pop(0);
	return rc;
}

/* What a sleep returns that ended with @rc, if handlers have run in it or just before it. */
static int after_signals(int rc, unsigned int ran, unsigned int ran_hard)
{
	if (homa_pl_signals.ran == ran)
		return rc;
	return homa_pl_signals.ran_hard == ran_hard ? -HOMA_PL_RESTART : -EINTR;
}

void homa_pl_sleeps_for(const struct homa_pl_sock *s)
{
	own.sleeper.sock = s;
}

int homa_pl_sleep(struct pollfd *fds, nfds_t n, int64_t until,
		  const sigset_t *mask, bool (*ready)(void *arg), void *arg)
{
	unsigned int ran = homa_pl_signals.ran,
		     ran_hard = homa_pl_signals.ran_hard;
	struct timespec ts;
	uint64_t count;
	int rc;

	own.sleeper.fd = homa_pl_sleeper_fd();
	if (own.sleeper.fd < 0)
		return own.sleeper.fd;
	if (!own.joined)
		homa_pl_join(&own.sleeper);
	own.joined = true;
	rc = 1;
	if (homa_pl_may_sleep() && !(ready && ready(arg))) {
		fds[n] = (struct pollfd){ .fd = own.fd, .events = POLLIN };
		fds[n + 1] = (struct pollfd){ .fd = homa_pl_news_fd(),
					      .events = POLLIN };
		ts = until_timespec(until);
		rc = poll_or_cancel(fds, n + 2, until == INT64_MAX ? NULL : &ts,
				    mask);
		if (rc > 0 && fds[n].revents &&
		    HOMA_PL_REAL(read)(own.fd, &count, sizeof(count)) < 0)
			rc = 1; /* The descriptor was read already. */
		rc = after_signals(rc > 0 ? 1 : rc, ran, ran_hard);
	}
	homa_pl_leave_sleep(&own.sleeper);
	own.joined = false;
	return rc;
}
