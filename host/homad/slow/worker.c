// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The memory thread. The kernel clears each page that it gives, and takes its time
 * to take pages back: milliseconds for the memory of one application. Neither the
 * main thread, which answers questions of others, nor a fast-path thread waits for
 * that. Nor does a user wait for much of what another one has asked for: whoever has
 * work has a turn after each other. What a piece of work may look at belongs to it
 * until it is done, so that only the queues need a lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "worker.h"

#define PAGE 4096u
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* struct queue - pieces of work, of which the first given is the first taken */
struct queue {
	/* The first and the last piece of work; NULL: there is none. */
	struct homad_work *first, *last;
};

/**
 * struct homad_worker - the memory thread; homad_slow.worker points to it
 * @thread: The thread.
 * @lock: It protects @todo, @finished and @stop.
 * @some: It is signalled when there is something in @todo, or @stop is set.
 * @todo: The lines (struct homad_line) that have work, in the order of their turns.
 * @own: Work that is no user's.
 * @finished: Work that is done and that the control thread has not taken back.
 * @stop: The thread shall end.
 * @source: An eventfd that is readable when there is something in @finished.
 */
struct homad_worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct homa_list todo;
	struct homad_line own;
	struct queue finished;
	bool stop;
	struct homad_source source;
};

int homad_populate(void *base, u64 bytes)
{
	const volatile u8 *at = base;
	u64 i;

	if (!bytes || !madvise(base, bytes, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* The kernel is older, so the pages are read, which spoils nothing that is
	 * there. */
	for (i = 0; i < bytes; i += PAGE)
		(void)at[i];
	return 0;
}

static void put(struct queue *queue, struct homad_work *work)
{
	work->next = NULL;
	if (queue->first)
		queue->last->next = work;
	else
		queue->first = work;
	queue->last = work;
}

static struct homad_work *take(struct queue *queue)
{
	struct homad_work *work = queue->first;

	if (work)
		queue->first = work->next;
	return work;
}

/* Puts a line behind the others that have work, if it has some. */
static void line_up(struct homad_worker *worker, struct homad_line *line)
{
	homa_list_del(&line->turn);
	if (line->first)
		homa_list_add_tail(&worker->todo, &line->turn);
}

/* Does the first piece of work of a line, or a part of it, without the lock. It stays where it is
 * until it is done, as those behind it may rely on that. Returns false if there is more of it. */
static bool turn_of(struct homad_worker *worker, struct homad_line *line)
{
	struct homad_work *work = line->first;
	bool more;

	pthread_mutex_unlock(&worker->lock);
	more = work->run(work);
	pthread_mutex_lock(&worker->lock);
	if (!more) {
		line->first = work->next;
		put(&worker->finished, work);
	}
	line_up(worker, line);
	return !more;
}

static void *work_off(void *arg)
{
	struct homad_worker *worker = arg;
	u64 one = 1;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		if (homa_list_empty(&worker->todo)) {
			if (worker->stop)
				break;
			pthread_cond_wait(&worker->some, &worker->lock);
			continue;
		}
		if (turn_of(worker, homa_container_of(worker->todo.next,
						      struct homad_line, turn)) &&
		    write(worker->source.fd, &one, sizeof(one)) < 0)
			/* the counter is full, so the eventfd is readable */
			continue;
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

void homad_work(struct homad *d, struct homad_line *line, struct homad_work *work)
{
	struct homad_worker *worker = homad_slow(d)->worker;

	if (!worker) {
		while (work->run(work))
			;
		work->done(d, work);
		return;
	}
	work->line = line ? line : &worker->own;
	work->next = NULL;
	line = work->line;
	line->num++;
	pthread_mutex_lock(&worker->lock);
	if (line->first) {
		line->last->next = work;
	} else {
		line->first = work;
		homa_list_init(&line->turn);
		line_up(worker, line);
	}
	line->last = work;
	pthread_cond_signal(&worker->some);
	pthread_mutex_unlock(&worker->lock);
}

static void finish(struct homad *d, struct homad_worker *worker)
{
	struct homad_work *work;

	for (;;) {
		pthread_mutex_lock(&worker->lock);
		work = take(&worker->finished);
		pthread_mutex_unlock(&worker->lock);
		if (!work)
			return;
		work->line->num--;
		work->done(d, work);
	}
}

static void finished_ready(struct homad *d, struct homad_source *source,
			   u32 events)
{
	u64 count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	finish(d, homa_container_of(source, struct homad_worker, source));
}

int homad_worker_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_worker *worker = calloc(1, sizeof(*worker));
	int rc = -ENOMEM;

	if (!worker)
		goto fail;
	homa_list_init(&worker->todo);
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->some, NULL);
	worker->source.ready = finished_ready;
	worker->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = worker->source.fd < 0 ? -errno :
				     homad_watch(d, &worker->source, EPOLLIN);
	if (!rc)
		rc = -pthread_create(&worker->thread, NULL, work_off, worker);
	if (rc)
		goto no_thread;
	pthread_setname_np(worker->thread, "homad-memory");
	homad_slow(d)->worker = worker;
	return 0;
no_thread:
	homad_unwatch(d, &worker->source);
	if (worker->source.fd >= 0)
		close(worker->source.fd);
	free(worker);
fail:
	snprintf(err, errlen, "cannot start the thread for memory: %s",
		 strerror(-rc));
	return rc;
}

void homad_worker_stop(struct homad *d)
{
	struct homad_worker *worker = homad_slow(d)->worker;

	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->stop = true;
	pthread_cond_signal(&worker->some);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	/* Work that is given from now on is done at once. */
	homad_slow(d)->worker = NULL;
	finish(d, worker);
	homad_unwatch(d, &worker->source);
	close(worker->source.fd);
	pthread_cond_destroy(&worker->some);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}
