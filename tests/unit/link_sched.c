/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/link/homa_sched.c: who goes next, among sendables that are nothing else:
 * random ones against a search, then pacing by the clock and by room.
 */
#include "unit.h"

#include "homa_rng.h"
#include "homa_sched.h"

#define NODES 24
#define PACKET 1000u
#define SHARE 50u /* 1/1000 of the bytes, for the oldest */

struct model {
	struct homa_sched sched;
	struct homa_sendable s[NODES];
	u64 left[NODES];
	u64 age[NODES];
	u64 ages;
};

static u32 index_of(const struct model *m, const struct homa_sendable *s)
{
	return (u32)(s - m->s);
}

static struct homa_sendable *shortest(struct model *m)
{
	struct homa_sendable *best = NULL;
	u32 i;

	for (i = 0; i < NODES; i++)
		if (m->s[i].queued &&
		    (!best || m->left[i] < m->left[index_of(m, best)] ||
		     (m->left[i] == m->left[index_of(m, best)] &&
		      m->age[i] < m->age[index_of(m, best)])))
			best = &m->s[i];
	return best;
}

static struct homa_sendable *oldest(struct model *m)
{
	struct homa_sendable *best = NULL;
	u32 i;

	for (i = 0; i < NODES; i++)
		if (m->s[i].queued && !m->s[i].brief &&
		    (!best || m->age[i] < m->age[index_of(m, best)]))
			best = &m->s[i];
	return best;
}

/* One packet of the sendable that the scheduler chooses. */
static void send_one(u64 seed, struct model *m)
{
	struct homa_sendable *first = homa_sched_first(&m->sched), *old;
	u32 i, n;

	unit_assert(seed, first == shortest(m));
	if (!first)
		return;
	old = homa_sched_oldest(&m->sched, first);
	if (old) {
		unit_assert(seed, old == oldest(m) &&
					  m->sched.credit >= PACKET * 1000ll);
		first = old;
	} else if (m->sched.credit >= PACKET * 1000ll) {
		unit_assert(seed, !oldest(m) || oldest(m) == first);
	}
	i = index_of(m, first);
	n = (u32)homa_min_u64(m->left[i], PACKET);
	m->left[i] -= n;
	homa_sched_credit(&m->sched, n, SHARE);
	if (old)
		homa_sched_debit(&m->sched, n);
	if (m->left[i])
		homa_sched_again(&m->sched, first, m->left[i]);
	else
		homa_sched_leave(&m->sched, first);
	unit_assert(seed, first->queued == (m->left[i] != 0));
}

static void sched__random_sendables_like_a_search(void **state)
{
	u64 seed, base = unit_seed();
	struct homa_rng rng;
	struct model m;
	u32 i, step;

	(void)state;
	for (seed = base; seed < base + 100; seed++) {
		homa_rng_init(&rng, seed);
		memset(&m, 0, sizeof(m));
		homa_sched_init(&m.sched);
		for (i = 0; i < NODES; i++)
			homa_sendable_init(&m.s[i]);
		for (step = 0; step < 1000; step++) {
			i = homa_rng_below(&rng, NODES);
			if (!m.s[i].queued) {
				m.left[i] = 1 + homa_rng_below(&rng, 20 * PACKET);
				m.age[i] = m.ages++;
				m.s[i].packet = PACKET;
				m.s[i].brief = homa_rng_below(&rng, 3) == 0;
				homa_sched_enter(&m.sched, &m.s[i], m.left[i],
						 m.age[i], i);
			} else if (homa_rng_below(&rng, 4) == 0) {
				homa_sched_leave(&m.sched, &m.s[i]);
			}
			send_one(seed, &m);
		}
		while (homa_sched_first(&m.sched))
			send_one(seed, &m);
		unit_assert(seed, !m.sched.heap.count && !m.sched.fifo.count);
	}
}

/* The longest one gets its share although shorter ones come without end. */
static void sched_oldest__gets_its_share(void **state)
{
	u32 i, of_old = 0;
	struct model m;

	(void)state;
	memset(&m, 0, sizeof(m));
	homa_sched_init(&m.sched);
	for (i = 0; i < 2; i++) {
		homa_sendable_init(&m.s[i]);
		m.s[i].packet = PACKET;
		m.left[i] = i ? PACKET : 10000 * PACKET;
		m.age[i] = i;
		homa_sched_enter(&m.sched, &m.s[i], m.left[i], i, i);
	}
	for (i = 0; i < 2000; i++) {
		u64 before = m.left[0];

		if (!m.s[1].queued) {
			m.left[1] = PACKET;
			homa_sched_enter(&m.sched, &m.s[1], PACKET, i + 2, 1);
			m.age[1] = i + 2;
		}
		send_one(0, &m);
		of_old += m.left[0] < before;
	}
	assert_in_range(of_old, 2000 * SHARE / 1000 - 2, 2000 * SHARE / 1000 + 2);
}

static void sched_ready__waits_for_the_clock_of_the_device(void **state)
{
	struct homa_sendable s;
	struct homa_sched sched;
	u64 not_before = 0;

	(void)state;
	homa_sched_init(&sched);
	homa_sendable_init(&s);
	s.packet = PACKET;
	/* Not paced: always. */
	homa_sched_charge(&sched, 0, 1000000);
	assert_true(homa_sched_ready(&sched, &s, 5 * PACKET, 0, 0, &not_before));
	/* 8 ns a byte, 2000 ns ahead at most. */
	sched.ps_per_byte = 8000;
	sched.backlog_ns = 2000;
	homa_sched_charge(&sched, 100, PACKET);
	assert_int_equal(sched.idle_at, 8100);
	assert_false(
		homa_sched_ready(&sched, &s, 5 * PACKET, 0, 6099, &not_before));
	assert_int_equal(not_before, 6100);
	assert_true(
		homa_sched_ready(&sched, &s, 5 * PACKET, 0, 6100, &not_before));
	/* The last bytes of a brief one need not wait, those of others do. */
	assert_false(homa_sched_ready(&sched, &s, 200, 200, 100, &not_before));
	s.brief = true;
	assert_true(homa_sched_ready(&sched, &s, 200, 200, 100, &not_before));
	assert_false(homa_sched_ready(&sched, &s, 201, 200, 100, &not_before));
	assert_int_equal(homa_sched_burst(&sched, &s, 64), 1);
	sched.backlog_ns = 24000;
	assert_int_equal(homa_sched_burst(&sched, &s, 64), 3);
	assert_int_equal(homa_sched_burst(&sched, &s, 2), 2);
}

static void sched_ready__waits_for_room(void **state)
{
	struct homa_sendable s;
	struct homa_sched sched;
	u64 not_before = 0;

	(void)state;
	homa_sched_init(&sched);
	homa_sendable_init(&s);
	s.packet = PACKET;
	sched.by_room = true;
	sched.ps_per_byte = 8000;
	sched.room = 2 * PACKET + 100;
	assert_true(homa_sched_ready(&sched, &s, 5 * PACKET, 0, 0, &not_before));
	assert_int_equal(homa_sched_burst(&sched, &s, 64), 2);
	homa_sched_charge(&sched, 0, PACKET + 114);
	assert_false(homa_sched_ready(&sched, &s, 5 * PACKET, 0, 0, &not_before));
	assert_true(not_before == HOMA_SCHED_ROOM);
	homa_sched_charge(&sched, 0, 5 * PACKET);
	assert_int_equal(sched.room, 0);
	assert_int_equal(sched.idle_at, 0);
}

static void sched_claim__counts_what_the_device_can_take(void **state)
{
	struct homa_sched sched;
	u64 not_before = 0;

	(void)state;
	homa_sched_init(&sched);
	/* 8 ns a byte, 2000 ns ahead at most. */
	sched.ps_per_byte = 8000;
	sched.backlog_ns = 2000;
	/* An idle device begins now, not when it became idle. */
	assert_true(homa_sched_claim(&sched, 100, 250));
	assert_int_equal(sched.idle_at, 2100);
	assert_true(homa_sched_claim(&sched, 100, 250));
	assert_int_equal(sched.idle_at, 4100);
	/* As homa_sched_open(): no sooner than 2000 ns before it has sent all. */
	assert_false(homa_sched_claim(&sched, 2099, 250));
	assert_false(homa_sched_open(&sched, 250, 2099, &not_before));
	assert_int_equal(sched.idle_at, 4100);
	assert_true(homa_sched_open(&sched, 250, 2100, &not_before));
	assert_true(homa_sched_claim(&sched, 2100, 250));
	assert_int_equal(sched.idle_at, 6100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sched__random_sendables_like_a_search),
		cmocka_unit_test(sched_oldest__gets_its_share),
		cmocka_unit_test(sched_ready__waits_for_the_clock_of_the_device),
		cmocka_unit_test(sched_ready__waits_for_room),
		cmocka_unit_test(sched_claim__counts_what_the_device_can_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
