// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A clock for the emulator (LD_PRELOAD) that core_count.c makes slow while it counts. Each
 * memory access of the guest's takes a hundred times as long then. By the true clock a timer's
 * tick would fall into each RPC, and RPCs would time out.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS 1000000000

/* How many times slower the clock is now, and what both clocks said when that began, ns. */
static int64_t slowness = 1, true_then, shown_then;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((visibility("default"))) void slow_clock_set(int times);

static int true_time(clockid_t id, struct timespec *time)
{
	static int (*real)(clockid_t, struct timespec *);

	if (!real)
		real = (int (*)(clockid_t,
				struct timespec *))dlsym(RTLD_NEXT,
							 "clock_gettime");
	return real(id, time);
}

static int64_t shown(const struct timespec *time)
{
	int64_t now = time->tv_sec * NS + time->tv_nsec;

	return shown_then + (now - true_then) / slowness;
}

/* Takes the place of the C library's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *time)
{
	int error = true_time(id, time);

	if (error || id != CLOCK_MONOTONIC)
		return error;
	pthread_mutex_lock(&lock);
	int64_t ns = shown(time);
	pthread_mutex_unlock(&lock);
	time->tv_sec = ns / NS;
	time->tv_nsec = ns % NS;
	return 0;
}

/* Makes the clock run @times slower from now on. */
void slow_clock_set(int times)
{
	struct timespec time;

	pthread_mutex_lock(&lock);
	true_time(CLOCK_MONOTONIC, &time);
	shown_then = shown(&time);
	true_then = time.tv_sec * NS + time.tv_nsec;
	slowness = times;
	pthread_mutex_unlock(&lock);
}
