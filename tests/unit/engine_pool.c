/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_pool.c: random allocations and releases, with a map of the
 * region that says which bytes belong to which message.
 */
#include "unit.h"

#include "homa_impl.h"

#define PAGES_MAX 40
#define MESSAGES 200
#define GRANULE 64
#define LEASE_NS 10000

struct msg {
	u32 length;
	u32 num;
	u32 pages[HOMA_MAX_BPAGES];
};

struct region {
	struct homa_pool *pool;
	u64 seed;
	u64 now;
	u32 num_pages;
	u32 num_msgs;
	struct msg msg[MESSAGES];
	/* 1 + message that has the granule; 0: free */
	u16 owner[PAGES_MAX * (HOMA_BPAGE_SIZE / GRANULE)];
};

static struct region *region_new(u32 pages)
{
	struct region *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->pool = malloc(homa_pool_size(pages));
	assert_non_null(r->pool);
	memset(r->pool, 0xa5, homa_pool_size(pages));
	homa_pool_init(r->pool, pages);
	r->num_pages = pages;
	r->now = 1000000;
	return r;
}

static void region_free(struct region *r)
{
	free(r->pool);
	free(r);
}

/* Bytes of part @i of a message. */
static u32 part(const struct msg *msg, u32 i)
{
	return homa_min_u32(HOMA_BPAGE_SIZE, msg->length - i * HOMA_BPAGE_SIZE);
}

static void claim(struct region *r, struct msg *msg, u16 from, u16 to)
{
	u32 i, g;

	for (i = 0; i < msg->num; i++) {
		u32 first = msg->pages[i] / GRANULE;
		u32 last = (msg->pages[i] + part(msg, i) - 1) / GRANULE;

		unit_assert(r->seed, msg->pages[i] % GRANULE == 0);
		unit_assert(r->seed, last / 1024 == first / 1024);
		unit_assert(r->seed, last / 1024 < r->num_pages);
		for (g = first; g <= last; g++) {
			unit_assert(r->seed, r->owner[g] == from);
			r->owner[g] = to;
		}
	}
}

static int region_alloc(struct region *r, u32 cpu, u32 length, struct msg *msg)
{
	int err = homa_pool_alloc(r->pool, r->now, LEASE_NS, cpu, length,
				  msg->pages, &msg->num);

	msg->length = length;
	if (!err)
		unit_assert(r->seed, msg->num == (length + HOMA_BPAGE_SIZE - 1) /
							 HOMA_BPAGE_SIZE);
	return err;
}

static u32 free_pages(const struct region *r)
{
	u32 i, n = r->pool->num_backed;

	for (i = 0; i < r->pool->num_backed; i++) {
		u32 g;

		for (g = i * 1024; g < (i + 1) * 1024; g++) {
			if (r->owner[g]) {
				n--;
				break;
			}
		}
	}
	return n;
}

static void op_alloc(struct region *r, struct homa_rng *rng)
{
	u32 i = homa_rng_below(rng, MESSAGES);
	u32 length, whole;
	int err;

	if (r->msg[i].num)
		return;
	length = 1 + homa_rng_below(rng, homa_rng_below(rng, 3) ? 5000 : 1000000);
	err = region_alloc(r, homa_rng_below(rng, 10), length, &r->msg[i]);
	if (!err) {
		claim(r, &r->msg[i], 0, (u16)(i + 1));
		r->num_msgs++;
		return;
	}
	/* Refused only if no page is free for certain. */
	unit_assert(r->seed, err == -HOMA_ENOBUFS);
	whole = (length + HOMA_BPAGE_SIZE - 1) / HOMA_BPAGE_SIZE;
	unit_assert(r->seed, free_pages(r) < whole);
	r->msg[i].num = 0;
}

static void op_free(struct region *r, struct homa_rng *rng)
{
	struct msg *msg = &r->msg[homa_rng_below(rng, MESSAGES)];
	u32 bad[HOMA_MAX_BPAGES + 1];

	if (!msg->num)
		return;
	memcpy(bad, msg->pages, sizeof(msg->pages));
	bad[msg->num] = homa_rng_below(rng, 2) ?
				bad[homa_rng_below(rng, msg->num)] :
				(u32)homa_rng_next(rng) | 1;
	unit_assert(r->seed,
		    homa_pool_free(r->pool, bad, msg->num + 1) == -HOMA_EINVAL);
	unit_assert(r->seed, homa_pool_free(r->pool, msg->pages, msg->num) == 0);
	unit_assert(r->seed,
		    homa_pool_free(r->pool, msg->pages, 1) == -HOMA_EINVAL);
	claim(r, msg, (u16)(msg - r->msg + 1), 0);
	msg->num = 0;
	r->num_msgs--;
}

/* Fewer pages, or more again; never fewer than messages are in. */
static void op_limit(struct region *r, struct homa_rng *rng)
{
	u32 want = 1 + homa_rng_below(rng, r->num_pages);
	u32 now = homa_pool_limit(r->pool, want);
	u32 i, g, last = 0;

	for (i = 0; i < r->num_pages; i++)
		for (g = i * 1024; g < (i + 1) * 1024; g++)
			if (r->owner[g])
				last = i + 1;
	unit_assert(r->seed, now == homa_max_u32(want, last));
	unit_assert(r->seed, r->pool->num_backed == now);
}

static void pool__random_messages_do_not_overlap(void **state)
{
	u64 base = unit_seed();
	u32 round, step;

	(void)state;
	for (round = 0; round < 20; round++) {
		struct homa_rng rng;
		struct region *r;

		homa_rng_init(&rng, base + round);
		r = region_new(1 + homa_rng_below(&rng, PAGES_MAX));
		r->seed = base + round;
		for (step = 0; step < 5000; step++) {
			r->now += homa_rng_below(&rng, 500);
			if (homa_rng_below(&rng, 50) == 0)
				op_limit(r, &rng);
			else if (homa_rng_below(&rng, 5) < 3)
				op_alloc(r, &rng);
			else
				op_free(r, &rng);
		}
		for (step = 0; r->num_msgs; step++)
			op_free(r, &rng);
		homa_pool_limit(r->pool, r->num_pages);
		/* Everything came back: one message can have it all. */
		for (step = 0; step < r->num_pages; step++)
			unit_assert(r->seed, !region_alloc(r, 0, HOMA_BPAGE_SIZE,
							   &r->msg[step]));
		region_free(r);
	}
}

static void pool_alloc__short_messages_share_a_page(void **state)
{
	struct region *r = region_new(4);
	struct msg a, b, c;

	(void)state;
	assert_int_equal(region_alloc(r, 0, 100, &a), 0);
	assert_int_equal(region_alloc(r, 0, 100, &b), 0);
	assert_int_equal(b.pages[0], a.pages[0] + 128);
	assert_int_equal(region_alloc(r, 1, 100, &c), 0);
	assert_int_not_equal(c.pages[0] >> 16, a.pages[0] >> 16);
	assert_int_equal(r->pool->num_free, 2);
	region_free(r);
}

static void pool_alloc__page_is_filled_to_the_last_granule(void **state)
{
	struct region *r = region_new(2);
	struct msg msg;
	u32 i;

	(void)state;
	for (i = 0; i < 2 * 1024; i++) {
		assert_int_equal(region_alloc(r, 0, 1 + i % 64, &msg), 0);
		assert_int_equal(msg.pages[0], i * 64);
	}
	assert_int_equal(region_alloc(r, 0, 1, &msg), -HOMA_ENOBUFS);
	region_free(r);
}

static void pool_alloc__released_lease_is_used_again(void **state)
{
	struct region *r = region_new(1);
	struct msg msg;
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		assert_int_equal(region_alloc(r, 0, 60000, &msg), 0);
		assert_int_equal(homa_pool_free(r->pool, msg.pages, 1), 0);
	}
	region_free(r);
}

static void pool_alloc__empty_leases_are_no_obstacle(void **state)
{
	struct region *r = region_new(2);
	struct msg a, b;

	(void)state;
	assert_int_equal(region_alloc(r, 0, 100, &a), 0);
	assert_int_equal(region_alloc(r, 1, 100, &b), 0);
	assert_int_equal(homa_pool_free(r->pool, a.pages, 1), 0);
	assert_int_equal(homa_pool_free(r->pool, b.pages, 1), 0);
	assert_int_equal(r->pool->num_free, 0);
	assert_int_equal(region_alloc(r, 2, 2 * HOMA_BPAGE_SIZE, &a), 0);
	region_free(r);
}

static void pool_alloc__lease_is_taken_over_after_its_time(void **state)
{
	struct region *r = region_new(1);
	struct msg a, b;

	(void)state;
	assert_int_equal(region_alloc(r, 0, 100, &a), 0);
	assert_int_equal(region_alloc(r, 1, 100, &b), -HOMA_ENOBUFS);
	r->now += LEASE_NS;
	assert_int_equal(region_alloc(r, 1, 100, &b), 0);
	assert_int_equal(b.pages[0], 128);
	assert_int_equal(region_alloc(r, 0, 100, &a), -HOMA_ENOBUFS);
	region_free(r);
}

static void pool_alloc__all_or_nothing(void **state)
{
	struct region *r = region_new(3);
	struct msg a, b;

	(void)state;
	assert_int_equal(region_alloc(r, 0, 3 * HOMA_BPAGE_SIZE + 1, &a),
			 -HOMA_ENOBUFS);
	assert_int_equal(r->pool->num_free, 3);
	assert_int_equal(region_alloc(r, 0, 3 * HOMA_BPAGE_SIZE, &a), 0);
	assert_int_equal(a.num, 3);
	assert_int_equal(region_alloc(r, 0, 1, &b), -HOMA_ENOBUFS);
	region_free(r);
}

static void pool_alloc__lengths_that_no_pool_holds(void **state)
{
	struct region *r = region_new(PAGES_MAX);
	struct msg msg;

	(void)state;
	assert_int_equal(region_alloc(r, 0, 0, &msg), -HOMA_EINVAL);
	assert_int_equal(region_alloc(r, 0, 16 * HOMA_BPAGE_SIZE + 1, &msg),
			 -HOMA_EINVAL);
	assert_int_equal(region_alloc(r, 0, 0xffffffff, &msg), -HOMA_EINVAL);
	assert_int_equal(region_alloc(r, 0, 16 * HOMA_BPAGE_SIZE, &msg), 0);
	assert_int_equal(msg.num, 16);
	assert_int_equal(region_alloc(r, 0, 16 * HOMA_BPAGE_SIZE - 5, &msg), 0);
	assert_int_equal(msg.num, 16);
	region_free(r);
}

static void pool_limit__only_the_first_pages_are_given(void **state)
{
	struct region *r = region_new(16);
	struct msg a, b, c;

	(void)state;
	assert_int_equal(homa_pool_limit(r->pool, 3), 3);
	assert_int_equal(region_alloc(r, 0, 4 * HOMA_BPAGE_SIZE, &a),
			 -HOMA_ENOBUFS);
	assert_int_equal(region_alloc(r, 0, 3 * HOMA_BPAGE_SIZE, &a), 0);
	assert_int_equal(region_alloc(r, 0, 1, &b), -HOMA_ENOBUFS);
	assert_int_equal(homa_pool_limit(r->pool, 9), 9);
	assert_int_equal(region_alloc(r, 0, 5 * HOMA_BPAGE_SIZE, &b), 0);
	assert_int_equal(region_alloc(r, 0, 100, &c), 0);
	assert_int_equal(c.pages[0] >> HOMA_BPAGE_SHIFT, 8);
	/* What is in use stays, and all before it. */
	assert_int_equal(homa_pool_limit(r->pool, 2), 9);
	assert_int_equal(homa_pool_free(r->pool, a.pages, a.num), 0);
	assert_int_equal(homa_pool_limit(r->pool, 2), 9);
	assert_int_equal(homa_pool_free(r->pool, c.pages, 1), 0);
	/* A page that is only leased is in nobody's way. */
	assert_int_equal(homa_pool_limit(r->pool, 2), 8);
	assert_int_equal(homa_pool_free(r->pool, b.pages, b.num), 0);
	assert_int_equal(homa_pool_limit(r->pool, 2), 2);
	assert_int_equal(r->pool->num_free, 2);
	assert_int_equal(region_alloc(r, 0, 2 * HOMA_BPAGE_SIZE, &a), 0);
	assert_int_equal(homa_pool_limit(r->pool, 99), 16);
	assert_int_equal(homa_pool_limit(r->pool, 0), 2);
	region_free(r);
}

static void pool_free__foreign_offsets_change_nothing(void **state)
{
	struct region *r = region_new(4);
	struct msg a;
	u32 bad[3];
	u32 i;
	const u32 foreign[] = { 4 * HOMA_BPAGE_SIZE, 0xffffffff, 64, 1,
				HOMA_BPAGE_SIZE,     0xffff0000 };

	(void)state;
	assert_int_equal(region_alloc(r, 0, HOMA_BPAGE_SIZE + 1, &a), 0);
	for (i = 0; i < HOMA_ARRAY_SIZE(foreign); i++) {
		bad[0] = a.pages[0];
		bad[1] = foreign[i] == a.pages[1] ? 3 : foreign[i];
		bad[2] = a.pages[1];
		assert_int_equal(homa_pool_free(r->pool, bad, 3), -HOMA_EINVAL);
	}
	assert_int_equal(homa_pool_free(r->pool, a.pages, 0), 0);
	assert_int_equal(homa_pool_free(r->pool, a.pages, 2), 0);
	assert_int_equal(homa_pool_free(r->pool, a.pages, 2), -HOMA_EINVAL);
	region_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool__random_messages_do_not_overlap),
		cmocka_unit_test(pool_alloc__short_messages_share_a_page),
		cmocka_unit_test(pool_alloc__page_is_filled_to_the_last_granule),
		cmocka_unit_test(pool_alloc__released_lease_is_used_again),
		cmocka_unit_test(pool_alloc__empty_leases_are_no_obstacle),
		cmocka_unit_test(pool_alloc__lease_is_taken_over_after_its_time),
		cmocka_unit_test(pool_alloc__all_or_nothing),
		cmocka_unit_test(pool_alloc__lengths_that_no_pool_holds),
		cmocka_unit_test(pool_limit__only_the_first_pages_are_given),
		cmocka_unit_test(pool_free__foreign_offsets_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
