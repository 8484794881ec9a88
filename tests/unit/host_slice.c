/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/common/slice.c and lib/core/slice.c: the slices of threads that receive messages. The
 * system call that sets a slice is replaced: kernels before 6.12 take no notice of it.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "homa_slice.h"
#include "libhoma_impl.h"

/* What the kernel says of a thread, and what it was asked for. */
static struct {
	/* As in struct sched_attr. */
	u32 size, policy;
	u64 flags;
	int nice;
	u32 priority;
	u64 runtime, deadline, period;
} thread, asked;

static unsigned int calls;
static bool fails;

long syscall(long number, ...)
{
	va_list args;
	void *attr;

	va_start(args, number);
	assert_int_equal(va_arg(args, int), 0);
	attr = va_arg(args, void *);
	va_end(args);
	calls++;
	if (number == SYS_sched_getattr) {
		memcpy(attr, &thread, sizeof(thread));
	} else {
		assert_int_equal(number, SYS_sched_setattr);
		memcpy(&asked, attr, sizeof(asked));
	}
	if (fails) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

static void is(u32 policy, u64 runtime)
{
	memset(&asked, 0, sizeof(asked));
	memset(&thread, 0, sizeof(thread));
	thread.size = sizeof(thread);
	thread.policy = policy;
	thread.runtime = runtime;
	thread.nice = 7;
	thread.flags = 1; /* SCHED_FLAG_RESET_ON_FORK */
	fails = false;
}

static void set__keeps_all_else(void **state)
{
	(void)state;
	is(SCHED_OTHER, 2800000);
	homa_slice_set(100000);
	assert_int_equal(asked.size, sizeof(asked));
	assert_int_equal(asked.runtime, 100000);
	assert_int_equal(asked.nice, 7);
	assert_int_equal(asked.flags, 1);
	/* Kernels that have no slices of threads say 0. */
	is(SCHED_OTHER, 0);
	homa_slice_set(100000);
	assert_int_equal(asked.runtime, 100000);
}

static void set__leaves_alone(void **state)
{
	(void)state;
	is(SCHED_OTHER, 50000);
	homa_slice_set(100000);
	assert_int_equal(asked.size, 0);
	is(SCHED_FIFO, 2800000);
	homa_slice_set(100000);
	assert_int_equal(asked.size, 0);
	is(SCHED_BATCH, 2800000);
	homa_slice_set(100000);
	assert_int_equal(asked.size, 0);
	is(SCHED_OTHER, 2800000);
	fails = true;
	errno = 3;
	homa_slice_set(100000);
	assert_int_equal(asked.size, 0);
	assert_int_equal(errno, 3);
}

static void *first_and_second_call(void *arg)
{
	(void)arg;
	calls = 0;
	homa_slice_shorten();
	homa_slice_shorten();
	return NULL;
}

static void in_a_thread(void)
{
	pthread_t thread_of;

	assert_int_equal(pthread_create(&thread_of, NULL, first_and_second_call,
					NULL),
			 0);
	assert_int_equal(pthread_join(thread_of, NULL), 0);
}

static void receive__asks_once_in_each_thread(void **state)
{
	char err[HOMA_TEXT];

	(void)state;
	is(SCHED_OTHER, 2800000);
	unsetenv("HOMA_SLICE_US");
	assert_int_equal(homa_slice_init(err, sizeof(err)), 0);
	in_a_thread();
	assert_int_equal(calls, 0);
	setenv("HOMA_SLICE_US", "100", 1);
	assert_int_equal(homa_slice_init(err, sizeof(err)), 0);
	in_a_thread();
	assert_int_equal(calls, 2);
	assert_int_equal(asked.runtime, 100000);
	setenv("HOMA_SLICE_US", "400", 1);
	assert_int_equal(homa_slice_init(err, sizeof(err)), 0);
	in_a_thread();
	assert_int_equal(asked.runtime, 400000);
	setenv("HOMA_SLICE_US", "0", 1);
	assert_int_equal(homa_slice_init(err, sizeof(err)), 0);
	in_a_thread();
	assert_int_equal(calls, 0);
}

static void environment__is_checked(void **state)
{
	static const char *const wrong[] = { "short", "-1", "100001", "1x", " 1" };
	char err[HOMA_TEXT];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("HOMA_SLICE_US", wrong[i], 1);
		err[0] = 0;
		assert_int_equal(homa_slice_init(err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, wrong[i]));
		assert_non_null(strstr(err, "microseconds from 0 to 100000"));
	}
	setenv("HOMA_SLICE_US", "", 1);
	assert_int_equal(homa_slice_init(err, sizeof(err)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set__keeps_all_else),
		cmocka_unit_test(set__leaves_alone),
		cmocka_unit_test(receive__asks_once_in_each_thread),
		cmocka_unit_test(environment__is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
