// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The admin thread: it works off the sources whose @admin is set. Its work may take long:
 * a configuration file may lie on a disk that is slow or gone, names of groups may be
 * asked from a server, a picture of a thousand attachments is megabytes of text. The
 * control thread, for which applications wait, never waits for any of that.
 *
 * What belongs to the control thread the admin thread gets by *errands*: short functions
 * that copy a bounded piece of it, or take something over, and that the control thread
 * runs in its loop. The admin thread waits for each, so there is one at most, and the
 * queue between the two is one place.
 *
 * Order of locks: the lock here is held for a few instructions and nothing else is
 * locked meanwhile. An errand may homad_call() a fast-path thread.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "admin.h"

/* The time after which the thread's work is interrupted again, when homad ends, ms. */
#define BREAK_MS 10

/**
 * struct homad_admin - homad_slow.admin
 * @thread: the thread.
 * @lock: protects @fn, @arg and @done.
 * @over: signalled when @done has changed.
 * @fn: the errand that waits for the control thread; NULL: there is none.
 * @arg: its argument.
 * @done: the number of errands that have been run since the start.
 * @errand: an eventfd, readable for the control thread when there is an errand.
 * @wake: an eventfd by which the admin thread hears that it shall end.
 * @d: the daemon.
 * @ended: true when the thread does nothing any more; atomic.
 */
struct homad_admin {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	void (*fn)(struct homad *d, void *arg);
	void *arg;
	u64 done;
	struct homad_source errand, wake;
	struct homad *d;
	bool ended;
};

static _Thread_local bool is_admin;

static void ring(int fd)
{
	u64 one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

static void drain(int fd)
{
	u64 count;

	if (read(fd, &count, sizeof(count)) < 0)
		return; /* the eventfd was not written */
}

/* ---- errands ---- */

static void run_errand(struct homad *d, struct homad_admin *admin)
{
	void (*fn)(struct homad *d, void *arg);

	pthread_mutex_lock(&admin->lock);
	fn = admin->fn;
	pthread_mutex_unlock(&admin->lock);
	if (!fn)
		return;
	fn(d, admin->arg);
	pthread_mutex_lock(&admin->lock);
	admin->fn = NULL;
	admin->done++;
	pthread_cond_signal(&admin->over);
	pthread_mutex_unlock(&admin->lock);
}

static void errand_ready(struct homad *d, struct homad_source *source, u32 events)
{
	(void)events;
	drain(source->fd);
	run_errand(d, homa_container_of(source, struct homad_admin, errand));
}

void homad_control(struct homad *d, void (*fn)(struct homad *d, void *arg),
		   void *arg)
{
	struct homad_admin *admin;
	u64 before;

	if (!is_admin) {
		fn(d, arg);
		return;
	}
	admin = homad_slow(d)->admin;
	pthread_mutex_lock(&admin->lock);
	before = admin->done;
	admin->arg = arg;
	admin->fn = fn;
	ring(admin->errand.fd);
	while (admin->done == before)
		pthread_cond_wait(&admin->over, &admin->lock);
	pthread_mutex_unlock(&admin->lock);
}

/* ---- the thread ---- */

static void wake_ready(struct homad *d, struct homad_source *source, u32 events)
{
	(void)d;
	(void)events;
	drain(source->fd);
}

static void *administer(void *arg)
{
	struct homad_admin *admin = arg;

	is_admin = true;
	homad_loop_run(admin->d, &homad_slow(admin->d)->admin_loop);
	__atomic_store_n(&admin->ended, true, __ATOMIC_RELEASE);
	ring(admin->errand.fd);
	return NULL;
}

/* The handler does nothing; a system call of the thread ends with EINTR. */
static void broken_off(int number)
{
	(void)number;
}

static int begin(struct homad *d, struct homad_admin *admin)
{
	struct sigaction action = { .sa_handler = broken_off };
	int rc;

	admin->errand = (struct homad_source){ .ready = errand_ready };
	admin->wake = (struct homad_source){ .ready = wake_ready, .admin = true };
	admin->errand.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	admin->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (admin->errand.fd < 0 || admin->wake.fd < 0)
		return -errno;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGRTMIN, &action, NULL))
		return -errno;
	rc = homad_watch(d, &admin->errand, EPOLLIN);
	if (!rc)
		rc = homad_watch(d, &admin->wake, EPOLLIN);
	homad_slow(d)->admin = admin;
	if (!rc)
		rc = -pthread_create(&admin->thread, NULL, administer, admin);
	return rc;
}

static void forget(struct homad *d, struct homad_admin *admin)
{
	homad_slow(d)->admin = NULL;
	homad_unwatch(d, &admin->errand);
	homad_unwatch(d, &admin->wake);
	if (admin->errand.fd >= 0)
		close(admin->errand.fd);
	if (admin->wake.fd >= 0)
		close(admin->wake.fd);
	pthread_cond_destroy(&admin->over);
	pthread_mutex_destroy(&admin->lock);
	free(admin);
}

int homad_admin_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_admin *admin = calloc(1, sizeof(*admin));
	int rc = -ENOMEM;

	if (admin) {
		admin->d = d;
		admin->errand.fd = admin->wake.fd = -1;
		pthread_mutex_init(&admin->lock, NULL);
		pthread_cond_init(&admin->over, NULL);
		rc = begin(d, admin);
		if (!rc) {
			pthread_setname_np(admin->thread, "homad-admin");
			return 0;
		}
		forget(d, admin);
	}
	snprintf(err, errlen, "cannot start the thread for administration: %s",
		 strerror(-rc));
	return rc;
}

/* The thread may be in an errand, or in a system call that ends late or never. */
void homad_admin_stop(struct homad *d)
{
	struct homad_admin *admin = homad_slow(d)->admin;
	struct pollfd rung = { .events = POLLIN };

	if (!admin)
		return;
	__atomic_store_n(&homad_slow(d)->admin_loop.stop, true, __ATOMIC_RELEASE);
	ring(admin->wake.fd);
	rung.fd = admin->errand.fd;
	while (!__atomic_load_n(&admin->ended, __ATOMIC_ACQUIRE)) {
		if (poll(&rung, 1, BREAK_MS) > 0) {
			drain(rung.fd);
			run_errand(d, admin);
		} else {
			pthread_kill(admin->thread, SIGRTMIN);
		}
	}
	pthread_join(admin->thread, NULL);
	forget(d, admin);
}
