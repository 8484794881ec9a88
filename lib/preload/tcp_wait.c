// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * This process's context at homad, through fork() and exec, and homad's news. It goes to
 * whichever thread asks first, and that thread wakes the others whom it concerns.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "exec.h"
#include "internal.h"
#include "pl_signals.h"
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"
#include "tcp_sleepers.h"
#include "preload_sock.h"
#include "real.h"

#define NEWS 64 /* streams with news that are taken at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*on_news)(struct homa_pl_sock *s, const struct homa_pl_set *looks);
/* Under the lock: the set in which the thread that takes news will look itself; or NULL. */
static const struct homa_pl_set *looks_itself;
static void (*on_fork)(void);

/* The context of the process @context_generation, a value of homa_pl_generation; NULL if homad
 * takes no TCP. */
static struct homa_streams *context;
static unsigned int context_generation;
/* @context was set, maybe to NULL. It is atomic. */
static bool context_tried;
/* True if homad has ended: all streams have failed, and homad does not signal any more. It
 * is atomic. */
static bool lost;

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
	if (!homa_pl_tcp_in_vfork() && on_fork)
		on_fork();
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
	homa_pl_hear_by(homa_streams_fd(context));
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
	homa_pl_no_sleepers();
	homa_pl_tcp_none_begins();
	homa_pl_hear_by(-1);
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
	homa_pl_hear_by(homa_streams_fd(ctx));
	homa_pl_debug("TCP goes through homad where its rules say so");
	return ctx;
}

void homa_pl_tcp_go_on(struct homa_streams *ctx)
{
	homa_pl_watch_forks();
	pthread_once(&watches_forks, watch_forks);
	homa_streams_descriptors(ctx, homa_pl_own_fd);
	homa_pl_hear_by(homa_streams_fd(ctx));
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

void homa_pl_on_news(void (*call)(struct homa_pl_sock *s,
				  const struct homa_pl_set *looks))
{
	on_news = call;
}

void homa_pl_on_fork(void (*call)(void))
{
	on_fork = call;
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

/* There is news of @s, which may be NULL. */
static void note_news(struct homa_pl_sock *s)
{
	if (!s || !s->tcp)
		return;
	s->tcp->async.due = true;
	if (on_news)
		on_news(s, looks_itself);
}

void homa_pl_tell(struct homa_pl_sock *s)
{
	pthread_mutex_lock(&lock);
	note_news(s);
	homa_pl_wake_for(&s, 1, NULL);
	pthread_mutex_unlock(&lock);
}

void homa_pl_hung_up(void)
{
	struct homa_streams *ctx = homa_pl_streams();

	if (ctx)
		homa_streams_hung_up(ctx);
}

/* Take some news and wake whom it concerns. Returns how much it was, NEWS if there may be more. */
static int take_news(struct homa_streams *ctx,
		     const struct homa_pl_sleeper *self, bool *again)
{
	struct homa_stream *news[NEWS];
	struct homa_pl_sock *told[NEWS];
	int i, n;

	/* Sockets with news cannot end meanwhile, because that takes the lock, too. */
	n = homa_streams_poll(ctx, news, NEWS);
	for (i = 0; i < n; i++) {
		told[i] = homa_stream_user(news[i]);
		note_news(told[i]);
	}
	/* When homad has ended, all threads are woken once, to hear of it. */
	if (n < 0 && __atomic_exchange_n(&lost, true, __ATOMIC_RELAXED))
		n = 0;
	if (n < 0)
		homa_pl_hear_by(-1);
	if (n)
		homa_pl_wake_for(told, n, self);
	/* homad signals once. We may have taken what a sleeper was to wake for. */
	*again = homa_pl_anybody_sleeps() && !homa_pl_may_sleep();
	return n;
}

void homa_pl_pump_for(const struct homa_pl_set *set,
		      const struct homa_pl_sleeper *self)
{
	struct homa_streams *ctx = homa_pl_streams();
	bool again;
	int n;

	if (!ctx)
		return;
	do {
		pthread_mutex_lock(&lock);
		looks_itself = set;
		n = take_news(ctx, self, &again);
		looks_itself = NULL;
		pthread_mutex_unlock(&lock);
	} while (n == NEWS || again);
}

void homa_pl_pump(void)
{
	homa_pl_pump_for(NULL, NULL);
}
