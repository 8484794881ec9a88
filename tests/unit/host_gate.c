/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/common/gate.c: mutual exclusion with a holder that never really
 * lets go, signals that are never lost, and both with sleeping threads.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "homa_clock.h"
#include "homa_gate.h"

#define THREADS 4
#define ROUNDS 5000

static struct homa_gate gate;
static unsigned long counter, stop;

static void *add(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		homa_gate_lock(&gate);
		counter++;
		/* Longer than the others' patience, now and then. */
		if (arg && i % 500 == 0)
			usleep(500);
		homa_gate_unlock(&gate);
	}
	return NULL;
}

static void lock__excludes(void **state)
{
	pthread_t threads[THREADS];
	int i;

	(void)state;
	counter = 0;
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, i == 0 ? &gate : NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter, THREADS * ROUNDS);
	assert_int_equal(gate.word, 0);
	assert_int_equal(gate.wanted, 0);
}

static void *hold(void *arg)
{
	(void)arg;
	homa_gate_lock(&gate);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		counter++;
		homa_gate_yield(&gate);
	}
	homa_gate_unlock(&gate);
	return NULL;
}

static void give_way__lets_others_in(void **state)
{
	pthread_t holder, threads[2];
	int i;

	(void)state;
	stop = 0;
	pthread_create(&holder, NULL, hold, NULL);
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, add, NULL);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(holder, NULL);
	assert_int_equal(gate.word, 0);
}

static struct homa_wake ping, pong;

static void *answer(void *arg)
{
	u64 spin = arg ? 0 : 20000;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		while (homa_wake_wait(&ping, spin, (u64)-1))
			;
		homa_wake_reset(&ping);
		homa_wake_signal(&pong);
	}
	return NULL;
}

static void ping_pong(void *sleepy)
{
	u64 spin = sleepy ? 0 : 20000;
	pthread_t thread;
	int i;

	memset(&ping, 0, sizeof(ping));
	memset(&pong, 0, sizeof(pong));
	pthread_create(&thread, NULL, answer, sleepy);
	for (i = 0; i < ROUNDS; i++) {
		homa_wake_signal(&ping);
		assert_int_equal(homa_wake_wait(&pong, spin, (u64)-1), 0);
		homa_wake_reset(&pong);
	}
	pthread_join(thread, NULL);
}

static void wake__no_signal_is_lost(void **state)
{
	(void)state;
	ping_pong(NULL);
	ping_pong(&gate);
}

static void wake__gives_up(void **state)
{
	struct homa_wake wake = { 0 };
	u64 now = homa_clock_ns();

	(void)state;
	assert_int_equal(homa_wake_wait(&wake, 0, now + 3000000), -ETIMEDOUT);
	assert_true(homa_clock_ns() >= now + 3000000);
	assert_int_equal(homa_wake_wait(&wake, HOMA_WAKE_SPIN, now), -ETIMEDOUT);
	homa_wake_signal(&wake);
	assert_int_equal(homa_wake_wait(&wake, 0, now), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock__excludes),
		cmocka_unit_test(give_way__lets_others_in),
		cmocka_unit_test(wake__no_signal_is_lost),
		cmocka_unit_test(wake__gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
