// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Closing what others made. A wait for SO_LINGER ends when a signal comes, so a thread has a
 * timer of its own send it one. Waits for a file system do not end so: what is neither a socket
 * nor a pipe nor a memfd, and so nothing that a request should bring, is closed by a thread of
 * the user's, of which there are few, and while many wait for it the user's requests are not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "closing.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The signal that interrupts. Its handler does nothing. */
#define INTERRUPTS (SIGRTMIN + 3)
/* The most descriptors of a user that wait for its thread before its requests are not read. */
#define USER_PARKED 16u
/* The most threads that close, of all users together. */
#define THREADS 32u

/* struct homad_parked - a descriptor that its user's thread closes */
struct homad_parked {
	/* The next one of the user. */
	struct homad_parked *next;
	/* The descriptor. */
	int fd;
};

/* This thread's timer. */
static __thread struct {
	/* It has been asked for, and there is one. */
	bool tried, there;
	/* The timer. */
	timer_t timer;
} hurry;

static struct {
	/* It protects @threads, and homad_user.parked and homad_user.parks of all users. */
	pthread_mutex_t lock;
	/* The number of threads that close. */
	u32 threads;
} closing = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void interrupted(int number)
{
	(void)number;
}

int homad_closing_start(struct homad *d, char *err, size_t errlen)
{
	/* Without SA_RESTART, as a wait would begin anew with it. */
	struct sigaction action = { .sa_handler = interrupted };

	(void)d;
	if (!sigaction(INTERRUPTS, &action, NULL))
		return 0;
	snprintf(err, errlen, "cannot catch a signal: %s", strerror(errno));
	return -errno;
}

static bool has_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = INTERRUPTS };

	if (!hurry.tried) {
		event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
		hurry.tried = true;
		hurry.there =
			!timer_create(CLOCK_MONOTONIC, &event, &hurry.timer);
	}
	return hurry.there;
}

void homad_hurry(void)
{
	/* A signal that comes before the system call begins is lost, so more of them come. */
	static const struct itimerspec every = {
		.it_value.tv_nsec = HOMAD_HURRY_NS,
		.it_interval.tv_nsec = HOMAD_HURRY_NS,
	};

	if (has_timer())
		timer_settime(hurry.timer, 0, &every, NULL);
}

void homad_hurried(void)
{
	static const struct itimerspec never = { 0 };
	int error = errno;

	if (has_timer())
		timer_settime(hurry.timer, 0, &never, NULL);
	errno = error;
}

void homad_close(int fd)
{
	homad_hurry();
	close(fd);
	homad_hurried();
}

/* Does closing it concern nobody but its other end? No file system is asked. */
static bool is_plain(int fd)
{
	socklen_t size = sizeof(int);
	int domain;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
	       fcntl(fd, F_GETPIPE_SZ) >= 0 || fcntl(fd, F_GET_SEALS) >= 0;
}

static struct homad_parked *next_parked(struct homad_user *user)
{
	struct homad_parked *parked;

	pthread_mutex_lock(&closing.lock);
	parked = user->parked;
	if (parked) {
		user->parked = parked->next;
	} else {
		user->parks = false;
		closing.threads--;
	}
	pthread_mutex_unlock(&closing.lock);
	return parked;
}

/* The user's thread. The account stays as long as homad_user.num_parked is not 0, and the thread
 * counts as one of them. */
static void *close_parked(void *arg)
{
	struct homad_user *user = arg;
	struct homad_parked *parked;

	while ((parked = next_parked(user))) {
		close(parked->fd);
		free(parked);
		__atomic_sub_fetch(&user->num_parked, 1, __ATOMIC_RELEASE);
	}
	__atomic_sub_fetch(&user->num_parked, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int start_thread(struct homad_user *user)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, close_parked, user);
	pthread_attr_destroy(&attr);
	return rc;
}

static void park(struct homad_user *user, struct homad_parked *parked)
{
	bool start;

	__atomic_add_fetch(&user->num_parked, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&closing.lock);
	parked->next = user->parked;
	user->parked = parked;
	start = !user->parks && closing.threads < THREADS;
	if (start) {
		user->parks = true;
		closing.threads++;
	}
	pthread_mutex_unlock(&closing.lock);
	if (!start)
		return;
	__atomic_add_fetch(&user->num_parked, 1, __ATOMIC_RELAXED);
	if (!start_thread(user))
		return;
	/* The next one of this user tries it again. */
	pthread_mutex_lock(&closing.lock);
	user->parks = false;
	closing.threads--;
	pthread_mutex_unlock(&closing.lock);
	__atomic_sub_fetch(&user->num_parked, 1, __ATOMIC_RELEASE);
}

void homad_close_passed(struct homad_user *user, int fd)
{
	struct homad_parked *parked;

	if (is_plain(fd)) {
		homad_close(fd);
		return;
	}
	parked = calloc(1, sizeof(*parked));
	/* Without memory it stays open: nobody waits for it. */
	if (!parked)
		return;
	parked->fd = fd;
	park(user, parked);
}

bool homad_may_pass(const struct homad_user *user)
{
	return __atomic_load_n(&user->num_parked, __ATOMIC_RELAXED) < USER_PARKED;
}
