/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/plat/user/lock.c with HOMA_MT and HOMA_LOCK_CHECK: locks exclude,
 * waiters get through when the holder sleeps, and every violation of the
 * lock order is reported with both names.
 */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "homa_lock_check.h"

static struct {
	int count;
	char what[64], held[32], taken[32];
} violation;

/* Takes the place of the one that aborts. */
void homa_plat_lock_violation(const char *what, const char *held,
			      const char *taken)
{
	violation.count++;
	snprintf(violation.what, sizeof(violation.what), "%s", what);
	snprintf(violation.held, sizeof(violation.held), "%s", held);
	snprintf(violation.taken, sizeof(violation.taken), "%s", taken);
}

static void expect_violation(const char *what, const char *held, const char *taken)
{
	assert_int_equal(violation.count, 1);
	assert_string_equal(violation.what, what);
	assert_string_equal(violation.held, held);
	assert_string_equal(violation.taken, taken);
	violation.count = 0;
}

static void lock__in_order_is_silent(void **state)
{
	struct homa_lock lock[HOMA_LOCK_CLASSES];
	int i;

	(void)state;
	for (i = 0; i < HOMA_LOCK_CLASSES; i++) {
		homa_lock_init(&lock[i], (enum homa_lock_class)i);
		homa_lock(&lock[i]);
	}
	assert_int_equal(homa_plat_locks_held(), HOMA_LOCK_CLASSES);
	/* Out of order is fine when releasing. */
	for (i = 0; i < HOMA_LOCK_CLASSES; i++)
		homa_unlock(&lock[i]);
	assert_int_equal(homa_plat_locks_held(), 0);
	assert_int_equal(violation.count, 0);
}

static void lock__wrong_order_names_both(void **state)
{
	struct homa_lock shard, peer;

	(void)state;
	homa_lock_init(&shard, HOMA_LOCK_SHARD);
	homa_lock_init(&peer, HOMA_LOCK_PEER);
	homa_lock(&peer);
	homa_lock(&shard);
	expect_violation("wrong order", "peer", "shard");
	homa_unlock(&shard);
	homa_unlock(&peer);
	assert_int_equal(violation.count, 0);
}

static void trylock__is_held_to_the_same_order(void **state)
{
	struct homa_lock sock, link;

	(void)state;
	homa_lock_init(&sock, HOMA_LOCK_SOCK);
	homa_lock_init(&link, HOMA_LOCK_LINK);
	assert_true(homa_trylock(&link));
	assert_true(homa_trylock(&sock));
	expect_violation("wrong order", "link", "sock");
	homa_unlock(&sock);
	homa_unlock(&link);
}

static void lock__two_of_one_class(void **state)
{
	struct homa_lock a, b;

	(void)state;
	homa_lock_init(&a, HOMA_LOCK_GRANT);
	homa_lock_init(&b, HOMA_LOCK_GRANT);
	homa_lock(&a);
	homa_lock(&b);
	expect_violation("two of one class", "grant", "grant");
	homa_unlock(&b);
	homa_lock(&b);
	homa_unlock(&b);
	violation.count = 0;
	homa_unlock(&a);
	expect_violation("released but not held", "-", "grant");
}

static void lock__uninitialised(void **state)
{
	struct homa_lock lock;

	(void)state;
	memset(&lock, 0, sizeof(lock));
	lock.lock_class = 99;
	homa_lock(&lock);
	expect_violation("lock was not initialised", "-", "invalid class");
}

static void unlock__of_a_free_lock(void **state)
{
	struct homa_lock lock;

	(void)state;
	homa_lock_init(&lock, HOMA_LOCK_SOCK);
	homa_unlock(&lock);
	expect_violation("released but not held", "-", "sock");
}

static void *take_shard(void *lock)
{
	homa_lock(lock);
	homa_unlock(lock);
	return NULL;
}

/* What one thread holds is no business of another's. */
static void lock__held_classes_are_per_thread(void **state)
{
	struct homa_lock shard, link;
	pthread_t thread;

	(void)state;
	homa_lock_init(&shard, HOMA_LOCK_SHARD);
	homa_lock_init(&link, HOMA_LOCK_LINK);
	homa_lock(&link);
	assert_int_equal(pthread_create(&thread, NULL, take_shard, &shard), 0);
	pthread_join(thread, NULL);
	homa_unlock(&link);
	assert_int_equal(violation.count, 0);
}

#define THREADS 4
#define ROUNDS 50000

struct shared {
	struct homa_lock lock;
	u64 plain;
	u64 counter;
	struct homa_ref ref;
	u32 last;
};

static void *hammer(void *arg)
{
	struct shared *s = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (i % 3 || !homa_trylock(&s->lock))
			homa_lock(&s->lock);
		s->plain++;
		homa_unlock(&s->lock);
		homa_counter_add(&s->counter, 2);
		homa_ref_get(&s->ref);
		homa_ref_put(&s->ref);
	}
	if (homa_ref_put(&s->ref))
		__atomic_fetch_add(&s->last, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void lock__four_threads_lose_no_update(void **state)
{
	pthread_t thread[THREADS];
	struct shared s = { 0 };
	int i;

	(void)state;
	homa_lock_init(&s.lock, HOMA_LOCK_SHARD);
	homa_ref_init(&s.ref, THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, &s), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(s.plain, THREADS * ROUNDS);
	assert_int_equal(s.counter, 2 * THREADS * ROUNDS);
	assert_int_equal(s.last, 1);
	assert_int_equal(violation.count, 0);
}

static void *wait_for_lock(void *arg)
{
	struct shared *s = arg;

	homa_lock(&s->lock);
	s->plain = 1;
	homa_unlock(&s->lock);
	return NULL;
}

static void lock__waits_for_a_sleeping_holder(void **state)
{
	struct shared s = { 0 };
	pthread_t thread;

	(void)state;
	homa_lock_init(&s.lock, HOMA_LOCK_SHARD);
	homa_lock(&s.lock);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &s), 0);
	usleep(20000);
	assert_false(homa_trylock(&s.lock));
	assert_int_equal(s.plain, 0);
	homa_unlock(&s.lock);
	pthread_join(thread, NULL);
	assert_int_equal(s.plain, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock__in_order_is_silent),
		cmocka_unit_test(lock__wrong_order_names_both),
		cmocka_unit_test(trylock__is_held_to_the_same_order),
		cmocka_unit_test(lock__two_of_one_class),
		cmocka_unit_test(lock__uninitialised),
		cmocka_unit_test(unlock__of_a_free_lock),
		cmocka_unit_test(lock__held_classes_are_per_thread),
		cmocka_unit_test(lock__four_threads_lose_no_update),
		cmocka_unit_test(lock__waits_for_a_sleeping_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
