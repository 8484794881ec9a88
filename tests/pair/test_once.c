/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * At most once, whatever the rate: copies of packets that come up to a second late,
 * among very many requests, when the peer's entry is gone, when memory is short.
 * pair_finish() looks whether a request ran twice.
 */
#include "pair_test.h"

#define LATE_NS (1000 * PAIR_MS)

struct rate {
	u32 clients, servers;
	u32 requests;
	u64 gap_ns;
};

static struct pair_world *world(u64 seed, u32 hosts)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = hosts;
	cfg.faults.dup = 30;
	cfg.faults.dup_max_ns = LATE_NS;
	cfg.pool_pages = 256;
	return pair_world_new(&cfg);
}

static void run(struct pair_world *w, const struct rate *rate)
{
	u32 i;

	for (i = 0; i < rate->requests; i++) {
		pair_rpc(w, (u8)(i % rate->clients),
			 (u8)(rate->clients + i / rate->clients % rate->servers),
			 100, 100);
		pair_run_for(w, rate->gap_ns);
	}
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	pair_run_for(w, 2 * LATE_NS);
	pair_check(w, pair_count_state(w, PAIR_OK) == rate->requests,
		   "%u of %u", pair_count_state(w, PAIR_OK), rate->requests);
	pair_check(w,
		   pair_metric(w, HOMA_M_drop_tombstone) > rate->requests / 100,
		   "only %llu late copies",
		   (unsigned long long)pair_metric(w, HOMA_M_drop_tombstone));
}

static void once__late_copies_at_all_rates(void **state)
{
	static const struct rate rates[] = {
		{ 1, 1, 20000, 30000 }, /* 33,000 a second */
		{ 1, 1, 50000, 4000 },	/* 250,000 a second */
		{ 1, 7, 30000, 8000 },	/* its ids go to seven servers */
		{ 5, 1, 30000, 8000 },
	};
	struct pair_world *w;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(rates); i++) {
		w = world(i + 1, rates[i].clients + rates[i].servers);
		run(w, &rates[i]);
		pair_finish(w);
	}
}

/* Three requests, and then nothing but others' for which the peer's entry must go. */
static void once__longer_than_the_peer(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 40;
	cfg.params.max_peers = 16; /* one in each part of the table */
	cfg.params.peer_idle_ms = 1;
	cfg.faults.dup = 1000;
	cfg.faults.dup_max_ns = LATE_NS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 400; i++) {
		pair_rpc_start(w, (u8)(1 + i % 39), 1, 0, PAIR_SERVER_PORT, 100,
			       100, NULL);
		pair_run_for(w, PAIR_MS);
	}
	pair_run_while_pending(w, 10 * PAIR_S);
	pair_run_for(w, 2 * LATE_NS);
	pair_check(w, pair_metric(w, HOMA_M_peers_evicted) > 100, "none evicted");
	pair_check(w, pair_metric(w, HOMA_M_drop_tombstone) > 100,
		   "no late copies");
	pair_finish(w);
}

/*
 * Memory for far too few: one client's requests are refused before anything is
 * forgotten, and another client finds the server as it was.
 */
static void once__refuses_rather_than_forgets(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, late = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 4;
	cfg.tombstones = 16;
	cfg.faults.dup = 100;
	cfg.faults.dup_max_ns = LATE_NS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 4000; i++) {
		pair_rpc(w, 0, 1, 100, 100);
		pair_run_for(w, 20 * PAIR_US);
	}
	pair_check(w, pair_metric(w, HOMA_M_drop_once_full) > 0, "never full");
	for (i = 0; i < 100; i++) {
		const struct pair_rpc *rpc = pair_rpc(w, 2, 1, 100, 100);

		pair_run_for(w, PAIR_MS);
		late += rpc->state != PAIR_OK;
	}
	assert_int_equal(late, 0);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	pair_finish(w);
}

/* The first DATA of host 0, for copies of it. */
static bool keep(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct pair_pkt **kept = arg;

	(void)w;
	if (!*kept && !pkt->src && homa_peek_type(pkt->data) == HOMA_DATA) {
		*kept = pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);
		memcpy((*kept)->data, pkt->data, pkt->len);
	}
	return false;
}

static void copy_at(struct pair_world *w, const struct pair_pkt *kept, u64 at)
{
	struct pair_pkt *copy =
		pair_pkt_new(kept->src, kept->dst, kept->prio, kept->len);

	memcpy(copy->data, kept->data, kept->len);
	pair_run(w, at);
	pair_net_deliver(w, copy);
	pair_run_for(w, PAIR_MS);
}

/*
 * Copies of one request at so many ms after its end. A client that does not hear of
 * the end may start again for 125 ms, and what it sends then may be a second on its
 * way; and each copy says that others may come as late after it.
 */
static void once__as_late_as_promised(void **state)
{
	static const u32 late_ms[][3] = {
		{ 999 }, { 1100 }, { 900, 1800 }, { 1100, 2200, 3300 }
	};
	struct pair_pkt *kept;
	struct pair_world *w;
	u32 i, n, copies;
	u64 end;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(late_ms); i++) {
		struct pair_config cfg;

		kept = NULL;
		pair_config_default(&cfg);
		w = pair_world_new(&cfg);
		w->tap = keep;
		w->tap_arg = &kept;
		pair_rpc(w, 0, 1, 100, 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
		/* The server learns of the end by NEED_ACK. */
		pair_run_for(w, 10 * PAIR_MS);
		end = w->now;
		for (n = 0; n < 3 && late_ms[i][n]; n++)
			copy_at(w, kept, end + late_ms[i][n] * PAIR_MS);
		copies = (u32)pair_metric(w, HOMA_M_drop_tombstone);
		pair_check(w, copies == n, "%u of %u copies were known", copies,
			   n);
		free(kept);
		pair_finish(w);
	}
}

/* The client does not know that the request ran, and has not begun it again. */
static void executed_and_given_up(struct pair_world *w, const struct pair_rpc *rpc)
{
	assert_int_equal(rpc->executed, 1);
	assert_int_equal(rpc->state, PAIR_FAILED);
	assert_int_equal(rpc->error, HOMA_ETIMEDOUT);
	pair_finish(w);
}

/*
 * A client hears BUSY, is asked to acknowledge the response that it has not got, and
 * sleeps for longer than the server remembers. What waited at its device is old when it
 * wakes up: it asks, hears that the RPC is unknown, and must not begin again.
 * @asleep_before: does it sleep already when BUSY arrives?
 */
static void sleeper(u64 pause_ns, bool asleep_before)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	pair_config_default(&cfg);
	cfg.params.timeout_us = 500000;
	w = pair_world_new(&cfg);
	/* The response and all its repetitions. */
	pair_filter_add(w, HOMA_DATA, 1, 0, 0, 1000);
	rpc = pair_rpc(w, 0, 1, 100, 100);
	rpc->reply_delay_set = true;
	rpc->reply_delay = 30 * PAIR_MS;
	for (i = 0;
	     !pair_host_metric(&w->hosts[0], HOMA_M_tx_resend) && i < 100000; i++)
		pair_run_for(w, 100);
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_rx_busy), 0);
	if (!asleep_before)
		pair_run_for(w, PAIR_MS);
	pair_pause(&w->hosts[0], pause_ns);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_rx_busy) > 0,
			 true);
	executed_and_given_up(w, rpc);
}

static void once__a_client_that_slept_does_not_begin_again(void **state)
{
	u64 s;

	(void)state;
	for (s = 1; s <= 8; s++) {
		sleeper(s * PAIR_S, true);
		sleeper(s * PAIR_S, false);
	}
}

struct taken {
	u32 seen;
	struct pair_pkt *pkt;
};

/* Takes the second packet of the request out, for later. */
static bool take_second(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct taken *taken = arg;

	(void)w;
	if (pkt->src || homa_peek_type(pkt->data) != HOMA_DATA ||
	    ++taken->seen != 2)
		return false;
	taken->pkt = pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);
	memcpy(taken->pkt->data, pkt->data, pkt->len);
	return true;
}

/*
 * The server asks for a packet that is late. The client sleeps from then on, so the
 * question waits; the packet arrives, the request is executed, and the server has
 * forgotten it when the client wakes up and finds the question: it must not answer.
 */
static void old_question(u64 pause_ns)
{
	struct taken taken = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	pair_config_default(&cfg);
	cfg.params.timeout_us = 500000;
	w = pair_world_new(&cfg);
	w->tap = take_second;
	w->tap_arg = &taken;
	/* The response and all its repetitions. */
	pair_filter_add(w, HOMA_DATA, 1, 0, 0, 1000);
	rpc = pair_rpc(w, 0, 1, 2500, 100);
	for (i = 0;
	     !pair_host_metric(&w->hosts[1], HOMA_M_tx_resend) && i < 1000000;
	     i++)
		pair_run_for(w, 100);
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_rx_resend), 0);
	pair_pause(&w->hosts[0], pause_ns);
	assert_int_equal(rpc->executed, 0);
	pair_net_deliver(w, taken.pkt);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_rx_resend) > 0);
	executed_and_given_up(w, rpc);
}

static void once__an_old_question_is_not_answered(void **state)
{
	u64 s;

	(void)state;
	for (s = 2; s <= 8; s++)
		old_question(s * PAIR_S);
}

/*
 * What had not been sent when the client awoke cannot have been executed: such a request
 * goes on, also if a packet that it sends afterwards is lost.
 */
static void unsent_rest(bool loses)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	pair_config_default(&cfg);
	cfg.params.timeout_us = 500000;
	w = pair_world_new(&cfg);
	/* No grant arrives, and one of the unscheduled packets is lost. */
	pair_filter_add(w, HOMA_DATA, 0, 1, 3, 1);
	pair_filter_add(w, HOMA_GRANT, 1, 0, 0, 3);
	rpc = pair_rpc(w, 0, 1, 500000, 100);
	pair_run_for(w, PAIR_MS);
	pair_pause(&w->hosts[0], 300 * PAIR_MS);
	if (loses) /* who asks for it does so when the whole request has been sent */
		pair_filter_add(w, HOMA_DATA, 0, 1, 50, 1);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_rx_resend) > 0);
	assert_int_equal(rpc->state, PAIR_OK);
	assert_int_equal(rpc->executed, 1);
	pair_finish(w);
}

static void once__an_unsent_rest_survives_sleep(void **state)
{
	(void)state;
	unsent_rest(false);
	unsent_rest(true);
}

/* The first BUSY of host 1, for copies of it. */
static bool keep_busy(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct pair_pkt **kept = arg;

	(void)w;
	if (!*kept && pkt->src == 1 && homa_peek_type(pkt->data) == HOMA_BUSY) {
		*kept = pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);
		memcpy((*kept)->data, pkt->data, pkt->len);
	}
	return false;
}

/*
 * A server executes a request, says that it is busy, and restarts. A copy of what it said
 * comes up to 20 ms after that, less than a quarter of the timeout: the server's guard
 * counts on it. A world (seed 1795406639000009) had one that was 67 ms late, which let a
 * client go on for longer than the guard; that much is not promised.
 */
static void sign_of_a_former_life(u32 late_ms)
{
	struct pair_pkt *kept = NULL;
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	w->tap = keep_busy;
	w->tap_arg = &kept;
	rpc = pair_rpc(w, 0, 1, 100, 100);
	rpc->reply_delay_set = true;
	rpc->reply_delay = 10 * PAIR_S;
	for (i = 0; !kept && i < 1000; i++)
		pair_run_for(w, PAIR_MS);
	assert_int_equal(rpc->executed, 1);
	pair_restart(&w->hosts[1]);
	copy_at(w, kept, w->now + late_ms * PAIR_MS);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_rx_unknown) > 0);
	free(kept);
	executed_and_given_up(w, rpc);
}

static void once__signs_of_a_former_life_as_late_as_promised(void **state)
{
	u32 ms;

	(void)state;
	for (ms = 0; ms <= 20; ms++)
		sign_of_a_former_life(ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once__signs_of_a_former_life_as_late_as_promised),
		cmocka_unit_test(once__late_copies_at_all_rates),
		cmocka_unit_test(once__longer_than_the_peer),
		cmocka_unit_test(once__as_late_as_promised),
		cmocka_unit_test(once__refuses_rather_than_forgets),
		cmocka_unit_test(once__a_client_that_slept_does_not_begin_again),
		cmocka_unit_test(once__an_old_question_is_not_answered),
		cmocka_unit_test(once__an_unsent_rest_survives_sleep),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
