/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * sim/net/event.c: named cases, then random adding, cancelling and taking over
 * all levels of the wheel against an array that is searched.
 */
#include "homa_plat.h"
#include "unit.h"

#include "event.h"

#define EVENTS 300
#define OPERATIONS 30000

static void event_take__order_of_time(void **state)
{
	static const u64 at[] = { 5 * SIM_S,   3,	  70 * SIM_MS,
				  2 * SIM_US,  0,	  9 * SIM_US,
				  400,	       SIM_NEVER, 900 * SIM_S,
				  20 * SIM_MS, 4,	  21 * SIM_MS };
	struct sim_event ev[HOMA_ARRAY_SIZE(at)] = { 0 };
	struct sim_agenda *agenda = sim_agenda_new();
	struct sim_event *got;
	u64 last = 0;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(at); i++)
		sim_event_add(agenda, &ev[i], at[i]);
	for (i = 0; i < HOMA_ARRAY_SIZE(at); i++) {
		got = sim_event_take(agenda, SIM_NEVER);
		assert_non_null(got);
		assert_false(sim_event_pending(got));
		assert_true(got->at == at[got - ev]);
		assert_true(got->at >= last);
		last = got->at;
	}
	assert_true(last == SIM_NEVER);
	assert_null(sim_event_take(agenda, SIM_NEVER));
	sim_agenda_free(agenda);
}

/* One instant, reached over three levels: far, middle, near. */
static void event_take__first_added_first_at_one_instant(void **state)
{
	const u64 when = 100 * SIM_MS + 777;
	struct sim_event same[6] = { 0 }, step[3] = { 0 };
	struct sim_agenda *agenda = sim_agenda_new();
	u32 i;

	(void)state;
	sim_event_add(agenda, &same[0], when);
	sim_event_add(agenda, &same[1], when);
	sim_event_add(agenda, &step[0], when - 5 * SIM_MS);
	assert_ptr_equal(sim_event_take(agenda, when), &step[0]);
	sim_event_add(agenda, &same[2], when);
	sim_event_add(agenda, &same[3], when);
	sim_event_add(agenda, &step[1], when - 500);
	assert_ptr_equal(sim_event_take(agenda, when), &step[1]);
	sim_event_add(agenda, &same[4], when);
	sim_event_add(agenda, &same[5], when);
	for (i = 0; i < 6; i++)
		assert_ptr_equal(sim_event_take(agenda, when), &same[i]);
	assert_null(sim_event_take(agenda, SIM_NEVER));
	sim_agenda_free(agenda);
}

static void event_take__nothing_after_until(void **state)
{
	struct sim_agenda *agenda = sim_agenda_new();
	struct sim_event a = { 0 }, b = { 0 };

	(void)state;
	sim_event_add(agenda, &a, 30 * SIM_MS);
	assert_null(sim_event_take(agenda, 30 * SIM_MS - 1));
	assert_true(sim_event_pending(&a));
	/* Time has not moved: what is added before it comes first. */
	sim_event_add(agenda, &b, 17);
	assert_null(sim_event_take(agenda, 16));
	assert_ptr_equal(sim_event_take(agenda, 30 * SIM_MS), &b);
	assert_ptr_equal(sim_event_take(agenda, 30 * SIM_MS), &a);
	sim_agenda_free(agenda);
}

static void event_cancel__is_gone_and_may_come_back(void **state)
{
	static const u64 at[] = { 100, 5 * SIM_US, SIM_MS, 50 * SIM_MS,
				  80 * SIM_S };
	struct sim_event ev[HOMA_ARRAY_SIZE(at)] = { 0 };
	struct sim_agenda *agenda = sim_agenda_new();
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(at); i++) {
		sim_event_cancel(agenda, &ev[i]);
		sim_event_add(agenda, &ev[i], at[i]);
	}
	for (i = 0; i < HOMA_ARRAY_SIZE(at); i++) {
		sim_event_cancel(agenda, &ev[i]);
		assert_false(sim_event_pending(&ev[i]));
	}
	assert_null(sim_event_take(agenda, SIM_NEVER));
	for (i = 0; i < HOMA_ARRAY_SIZE(at); i++)
		sim_event_add(agenda, &ev[i], at[HOMA_ARRAY_SIZE(at) - 1 - i]);
	for (i = HOMA_ARRAY_SIZE(at); i-- > 0;)
		assert_ptr_equal(sim_event_take(agenda, SIM_NEVER), &ev[i]);
	sim_agenda_free(agenda);
}

/* ---- against an array ---- */

struct model {
	struct sim_event ev[EVENTS];
	u64 at[EVENTS], order[EVENTS];
	bool pending[EVENTS];
	u64 adds;
};

static u64 random_delay(struct homa_rng *rng)
{
	static const u64 scale[] = {
		1,	300,	    2 * SIM_NS,	 100 * SIM_NS, 3 * SIM_US,
		SIM_MS, 9 * SIM_MS, 20 * SIM_MS, SIM_S,	       500 * SIM_S
	};

	return homa_rng_next(rng) %
	       scale[homa_rng_below(rng, HOMA_ARRAY_SIZE(scale))];
}

/* The number of the one that must come next, EVENTS if none until then. */
static u32 model_next(const struct model *m, u64 until)
{
	u32 i, best = EVENTS;

	for (i = 0; i < EVENTS; i++) {
		if (!m->pending[i] || m->at[i] > until)
			continue;
		if (best == EVENTS || m->at[i] < m->at[best] ||
		    (m->at[i] == m->at[best] && m->order[i] < m->order[best]))
			best = i;
	}
	return best;
}

static void model_step(struct model *m, struct sim_agenda *agenda,
		       struct homa_rng *rng, u64 *now, u64 seed)
{
	u32 i = homa_rng_below(rng, EVENTS), want;
	struct sim_event *got;
	u64 until;

	switch (homa_rng_below(rng, 8)) {
	case 0:
		sim_event_cancel(agenda, &m->ev[i]);
		m->pending[i] = false;
		break;
	case 1:
	case 2:
	case 3:
		if (m->pending[i])
			break;
		/* Often exactly when something else happens. */
		m->at[i] = *now + random_delay(rng);
		want = homa_rng_below(rng, EVENTS);
		if (homa_rng_below(rng, 3) == 0 && m->pending[want])
			m->at[i] = m->at[want];
		m->order[i] = ++m->adds;
		m->pending[i] = true;
		sim_event_add(agenda, &m->ev[i], m->at[i]);
		break;
	default:
		until = *now + random_delay(rng);
		want = model_next(m, until);
		got = sim_event_take(agenda, until);
		if (want == EVENTS) {
			unit_assert(seed, got == NULL);
			break;
		}
		unit_assert(seed, got == &m->ev[want]);
		m->pending[want] = false;
		*now = m->at[want];
	}
	unit_assert(seed, sim_event_pending(&m->ev[i]) == m->pending[i]);
}

static void event_random__same_as_an_array(void **state)
{
	u64 seed, base = unit_seed();
	u32 i;

	(void)state;
	for (seed = base; seed < base + 6; seed++) {
		struct sim_agenda *agenda = sim_agenda_new();
		struct model *m = calloc(1, sizeof(*m));
		struct homa_rng rng;
		u64 now = 0;

		assert_non_null(m);
		homa_rng_init(&rng, seed);
		for (i = 0; i < OPERATIONS; i++)
			model_step(m, agenda, &rng, &now, seed);
		while ((i = model_next(m, SIM_NEVER)) != EVENTS) {
			unit_assert(seed, sim_event_take(agenda, SIM_NEVER) ==
						  &m->ev[i]);
			m->pending[i] = false;
		}
		unit_assert(seed, sim_event_take(agenda, SIM_NEVER) == NULL);
		free(m);
		sim_agenda_free(agenda);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_take__order_of_time),
		cmocka_unit_test(event_take__first_added_first_at_one_instant),
		cmocka_unit_test(event_take__nothing_after_until),
		cmocka_unit_test(event_cancel__is_gone_and_may_come_back),
		cmocka_unit_test(event_random__same_as_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
