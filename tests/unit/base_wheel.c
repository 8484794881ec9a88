/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/base/homa_wheel.c: named cases, then random timers and jumps of the
 * clock against an array that is searched.
 */
#include "unit.h"

#include "homa_wheel.h"

#define TICK 1024ull
#define FINE (HOMA_WHEEL_SLOTS * TICK)
#define HORIZON (HOMA_WHEEL_SLOTS * FINE)

static void wheel_init__rounds_the_tick_up(void **state)
{
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, 1000, 0);
	assert_int_equal(w.shift, 10);
	homa_wheel_init(&w, 1024, 0);
	assert_int_equal(w.shift, 10);
	homa_wheel_init(&w, 1, 0);
	assert_int_equal(w.shift, 0);
	assert_true(homa_wheel_next(&w) == UINT64_MAX);
	assert_null(homa_wheel_pop(&w, 1ull << 62));
}

static void wheel_pop__never_early_at_most_a_tick_late(void **state)
{
	struct homa_wheel_node n;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&n);
	homa_wheel_add(&w, &n, 5 * TICK + 1, 0);
	assert_int_equal(homa_wheel_next(&w), 6 * TICK);
	assert_null(homa_wheel_pop(&w, 5 * TICK + 1));
	assert_ptr_equal(homa_wheel_pop(&w, 6 * TICK), &n);
	assert_false(homa_wheel_linked(&n));
	assert_null(homa_wheel_pop(&w, 6 * TICK));
	homa_wheel_add(&w, &n, 7 * TICK, 6 * TICK);
	assert_null(homa_wheel_pop(&w, 7 * TICK - 1));
	assert_ptr_equal(homa_wheel_pop(&w, 7 * TICK), &n);
}

static void wheel_add__past_comes_out_at_once(void **state)
{
	struct homa_wheel_node n;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 100 * TICK);
	homa_wheel_node_init(&n);
	homa_wheel_add(&w, &n, 3, 100 * TICK);
	assert_int_equal(homa_wheel_next(&w), 100 * TICK);
	assert_ptr_equal(homa_wheel_pop(&w, 100 * TICK), &n);
	assert_int_equal(n.deadline, 3);
}

static void wheel_add__beyond_the_horizon_is_clipped(void **state)
{
	struct homa_wheel_node n;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&n);
	homa_wheel_add(&w, &n, UINT64_MAX, 0);
	assert_int_equal(homa_wheel_next(&w), HORIZON - FINE);
	assert_null(homa_wheel_pop(&w, HORIZON - FINE - 1));
	assert_ptr_equal(homa_wheel_pop(&w, HORIZON - FINE), &n);
	assert_true(n.deadline == UINT64_MAX);
}

static void wheel_pop__moves_the_horizon_while_nothing_waits(void **state)
{
	struct homa_wheel_node n;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&n);
	assert_null(homa_wheel_pop(&w, 1000 * TICK));
	homa_wheel_add(&w, &n, 1060 * TICK, 1000 * TICK);
	assert_int_equal(homa_wheel_next(&w), 1060 * TICK);
	assert_null(homa_wheel_pop(&w, 1030 * TICK));
	homa_wheel_add(&w, &n, 1090 * TICK, 1030 * TICK);
	assert_int_equal(homa_wheel_next(&w), 1090 * TICK);
}

static void wheel_add__moves_a_waiting_node(void **state)
{
	struct homa_wheel_node a, b;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&a);
	homa_wheel_node_init(&b);
	homa_wheel_add(&w, &a, 2 * TICK, 0);
	homa_wheel_add(&w, &b, 2 * TICK, 0);
	homa_wheel_add(&w, &a, 9 * TICK, 0);
	assert_int_equal(w.count, 2);
	assert_ptr_equal(homa_wheel_pop(&w, 2 * TICK), &b);
	assert_null(homa_wheel_pop(&w, 2 * TICK));
	assert_int_equal(homa_wheel_next(&w), 9 * TICK);
}

static void wheel_del__empties_the_slot(void **state)
{
	struct homa_wheel_node a, b;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&a);
	homa_wheel_node_init(&b);
	homa_wheel_add(&w, &a, TICK, 0);
	homa_wheel_add(&w, &b, TICK, 0);
	homa_wheel_del(&w, &a);
	homa_wheel_del(&w, &a);
	assert_int_equal(homa_wheel_next(&w), TICK);
	homa_wheel_del(&w, &b);
	assert_true(homa_wheel_next(&w) == UINT64_MAX);
	assert_int_equal(w.count, 0);
}

/* The slot that was left is passed over, in either level, and is empty for who comes next. */
static void wheel_leave__the_next_node_is_found(void **state)
{
	struct homa_wheel_node a, b;
	struct homa_wheel w;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&a);
	homa_wheel_node_init(&b);
	homa_wheel_leave(&w, &a);
	homa_wheel_add(&w, &a, TICK, 0);
	homa_wheel_add(&w, &b, 9 * TICK, 0);
	homa_wheel_leave(&w, &a);
	assert_int_equal(w.count, 1);
	assert_int_equal(homa_wheel_next(&w), 9 * TICK);
	homa_wheel_add(&w, &a, 70 * TICK, 0);
	homa_wheel_leave(&w, &a);
	assert_ptr_equal(homa_wheel_pop(&w, 100 * TICK), &b);
	assert_null(homa_wheel_pop(&w, 100 * TICK));
	assert_true(homa_wheel_next(&w) == UINT64_MAX);
	homa_wheel_add(&w, &a, 101 * TICK, 100 * TICK);
	assert_int_equal(homa_wheel_next(&w), 101 * TICK);
}

static void wheel_pop__same_tick_in_order_of_arrival(void **state)
{
	struct homa_wheel_node n[3];
	struct homa_wheel w;
	int i;

	(void)state;
	homa_wheel_init(&w, TICK, 0);
	for (i = 0; i < 3; i++) {
		homa_wheel_node_init(&n[i]);
		homa_wheel_add(&w, &n[i], 4 * TICK - (u64)i, 0);
	}
	for (i = 0; i < 3; i++)
		assert_ptr_equal(homa_wheel_pop(&w, 1000 * TICK), &n[i]);
}

/* Nobody looked at the wheel for long: it was empty, or what waits is far away. */
static void wheel_add__after_a_long_rest_is_as_at_first(void **state)
{
	struct homa_wheel_node n, far;
	u64 now = 1000 * FINE + 17;
	struct homa_wheel w;

	(void)state;
	homa_wheel_node_init(&n);
	homa_wheel_node_init(&far);
	homa_wheel_init(&w, TICK, 0);
	homa_wheel_add(&w, &n, now + 10 * TICK, now);
	assert_null(homa_wheel_pop(&w, now + 9 * TICK));
	assert_ptr_equal(homa_wheel_pop(&w, now + 11 * TICK), &n);

	homa_wheel_init(&w, TICK, 0);
	homa_wheel_add(&w, &far, 40 * FINE, 0);
	now = 39 * FINE + 17;
	homa_wheel_add(&w, &n, now + 10 * TICK, now);
	assert_true(homa_wheel_next(&w) > now + 9 * TICK);
	assert_null(homa_wheel_pop(&w, now + 9 * TICK));
	assert_ptr_equal(homa_wheel_pop(&w, now + 11 * TICK), &n);
	assert_ptr_equal(homa_wheel_pop(&w, 40 * FINE), &far);
}

/* A node that comes out early goes back in: how often until its time has come,
 * if somebody looks at every tick? */
static u32 touched(u64 wait)
{
	struct homa_wheel_node n, *out;
	struct homa_wheel w;
	u32 times = 0;
	u64 now;

	homa_wheel_init(&w, TICK, 0);
	homa_wheel_node_init(&n);
	homa_wheel_add(&w, &n, wait, 0);
	for (now = 0; homa_wheel_linked(&n); now += TICK) {
		out = homa_wheel_pop(&w, now);
		if (!out)
			continue;
		times++;
		if (out->deadline > now)
			homa_wheel_add(&w, out, out->deadline, now);
	}
	assert_true(now <= wait + 2 * TICK);
	return times;
}

static void wheel_pop__a_far_deadline_is_seldom_touched(void **state)
{
	(void)state;
	assert_int_equal(touched(63 * TICK), 1);
	assert_int_equal(touched(20 * FINE + 5 * TICK), 2);
	assert_int_equal(touched(63 * FINE), 1);
	assert_int_equal(touched(62 * FINE + 1), 2);
	assert_in_range(touched(4 * HORIZON + FINE / 2), 5, 7);
}

#define NODES 40

struct model {
	struct homa_wheel wheel;
	struct homa_wheel_node node[NODES];
	u64 wanted[NODES]; /* 0: not waiting */
	u64 now;
};

/* Pop everything due as a caller would; whatever is later goes back in. */
static void run(u64 seed, struct model *m)
{
	struct homa_wheel_node *n;
	u32 i;

	while ((n = homa_wheel_pop(&m->wheel, m->now))) {
		i = (u32)(n - m->node);
		unit_assert(seed, m->wanted[i] && n->deadline == m->wanted[i]);
		if (n->deadline > m->now)
			homa_wheel_add(&m->wheel, n, n->deadline, m->now);
		else
			m->wanted[i] = 0;
	}
	for (i = 0; i < NODES; i++) {
		unit_assert(seed,
			    homa_wheel_linked(&m->node[i]) == !!m->wanted[i]);
		if (m->wanted[i])
			unit_assert(seed, m->wanted[i] + TICK > m->now);
	}
}

static void check_next(u64 seed, struct model *m)
{
	u64 next = homa_wheel_next(&m->wheel), earliest = UINT64_MAX;
	u32 i, waiting = 0;

	for (i = 0; i < NODES; i++) {
		if (!m->wanted[i])
			continue;
		waiting++;
		earliest = homa_min_u64(earliest, m->wanted[i]);
	}
	unit_assert(seed, m->wheel.count == waiting);
	unit_assert(seed, (next == UINT64_MAX) == (waiting == 0));
	if (waiting)
		unit_assert(seed, next < homa_max_u64(earliest, m->now) + TICK);
}

static void wheel__random_timers_like_a_search(void **state)
{
	u64 seed, base = unit_seed();
	struct model m;

	(void)state;
	for (seed = base; seed < base + 200; seed++) {
		struct homa_rng rng;
		u32 i, step;

		homa_rng_init(&rng, seed);
		m.now = homa_rng_next(&rng) >> 20;
		homa_wheel_init(&m.wheel, TICK, m.now);
		for (i = 0; i < NODES; i++) {
			homa_wheel_node_init(&m.node[i]);
			m.wanted[i] = 0;
		}
		for (step = 0; step < 500; step++) {
			u64 wait = homa_rng_below(&rng, 20 * TICK);

			if (homa_rng_below(&rng, 2))
				wait = homa_rng_below(&rng, 4 * FINE);
			if (homa_rng_below(&rng, 4) == 0)
				wait = homa_rng_below(&rng, 2 * HORIZON);

			i = homa_rng_below(&rng, NODES);
			if (homa_rng_below(&rng, 4) == 0) {
				if (homa_rng_below(&rng, 2))
					homa_wheel_del(&m.wheel, &m.node[i]);
				else
					homa_wheel_leave(&m.wheel, &m.node[i]);
				m.wanted[i] = 0;
			} else {
				m.wanted[i] = m.now + wait;
				homa_wheel_add(&m.wheel, &m.node[i],
					       m.wanted[i], m.now);
			}
			check_next(seed, &m);
			if (homa_rng_below(&rng, 3))
				continue;
			if (homa_rng_below(&rng, 20) == 0)
				m.now += homa_rng_below(&rng, 2 * HORIZON);
			else
				m.now += homa_rng_below(&rng, 10 * TICK);
			run(seed, &m);
			check_next(seed, &m);
		}
	}
}

static void wheel_next__pop_returns_something_then_and_not_before(void **state)
{
	u64 seed, base = unit_seed();
	struct homa_wheel_node n;
	struct homa_wheel w;

	(void)state;
	for (seed = base; seed < base + 2000; seed++) {
		struct homa_rng rng;
		u64 now, next;

		homa_rng_init(&rng, seed);
		now = homa_rng_next(&rng) >> 24;
		homa_wheel_init(&w, TICK, now);
		homa_wheel_node_init(&n);
		homa_wheel_add(&w, &n, now + homa_rng_below(&rng, 2 * HORIZON),
			       now);
		next = homa_wheel_next(&w);
		if (next > now)
			unit_assert(seed, !homa_wheel_pop(&w, next - 1));
		unit_assert(seed, homa_wheel_pop(&w, next) == &n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wheel_init__rounds_the_tick_up),
		cmocka_unit_test(wheel_pop__never_early_at_most_a_tick_late),
		cmocka_unit_test(wheel_add__past_comes_out_at_once),
		cmocka_unit_test(wheel_add__beyond_the_horizon_is_clipped),
		cmocka_unit_test(wheel_pop__moves_the_horizon_while_nothing_waits),
		cmocka_unit_test(wheel_add__moves_a_waiting_node),
		cmocka_unit_test(wheel_del__empties_the_slot),
		cmocka_unit_test(wheel_leave__the_next_node_is_found),
		cmocka_unit_test(wheel_pop__same_tick_in_order_of_arrival),
		cmocka_unit_test(wheel_add__after_a_long_rest_is_as_at_first),
		cmocka_unit_test(wheel_pop__a_far_deadline_is_seldom_touched),
		cmocka_unit_test(wheel__random_timers_like_a_search),
		cmocka_unit_test(
			wheel_next__pop_returns_something_then_and_not_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
