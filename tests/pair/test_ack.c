/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Acks that come late because hosts are slow, and acks that do not come: how often servers
 * ask for them.
 */
#include "pair_test.h"

#define CALLS 500u

static struct pair_world *world(u64 seed, u64 rx_delay_ns)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.seed = pair_seed(seed);
	cfg.hosts = 2;
	cfg.pool_pages = 0;
	cfg.rx_delay_ns = rx_delay_ns;
	return pair_world_new(&cfg);
}

static u64 questions(const struct pair_world *w)
{
	return w->by_type[HOMA_NEED_ACK - HOMA_TYPE_FIRST];
}

/* CALLS RPCs, one begins every 3 ms; returns how many NEED_ACKs there were meanwhile. */
static u64 calls(struct pair_world *w)
{
	u64 before = questions(w);
	u32 i;

	for (i = 0; i < CALLS; i++) {
		pair_rpc(w, 0, 1, 100, 100);
		pair_run_for(w, 3 * PAIR_MS);
	}
	return questions(w) - before;
}

/* Both hosts look at packets only 6 ms after they came: each ack takes longer than
 * need_ack_us, and none is lost. */
static void ack__slow_hosts_are_not_asked_for_ever(void **state)
{
	struct pair_world *w = world(1, 6 * PAIR_MS);
	u64 first, later;

	(void)state;
	first = calls(w);
	later = calls(w);
	pair_check(w, first > 0, "no NEED_ACK: the hosts are not slow");
	pair_check(w, later < CALLS / 100, "%llu NEED_ACKs for %u responses",
		   (unsigned long long)later, CALLS);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), w->num_rpcs);
	pair_finish(w);
}

/* A server that has learned to wait asks all the same, later, if no request brings the ack. */
static void ack__those_that_do_not_come_are_asked_for(void **state)
{
	struct pair_world *w = world(2, 6 * PAIR_MS);
	u64 before;

	(void)state;
	calls(w);
	before = questions(w);
	pair_drain(w, PAIR_S);
	pair_check(w, questions(w) > before, "nobody asked");
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__slow_hosts_are_not_asked_for_ever),
		cmocka_unit_test(ack__those_that_do_not_come_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
