/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who goes first: SRPT at the sender and through grants at the receiver,
 * overcommitment with one slot per peer, the FIFO share, incast control, and
 * unscheduled priorities that follow the traffic.
 */
#include "pair_test.h"
#include "homa_look.h"

static struct pair_world *world(u32 hosts, bool sigcomm)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.hosts = hosts;
	cfg.pool_pages = 0;
	if (sigcomm)
		homa_params_sigcomm(&cfg.params);
	return pair_world_new(&cfg);
}

static u64 took(const struct pair_rpc *rpc)
{
	return rpc->executed_at - rpc->start;
}

/* A message of 20 KB does not wait for one of 10 MB at its sender. */
static void srpt__at_the_sender(void **state)
{
	struct pair_world *w = world(3, false);
	struct pair_rpc *lng, *shrt;

	(void)state;
	lng = pair_rpc(w, 0, 1, 10000000, 1);
	pair_run_for(w, PAIR_MS);
	shrt = pair_rpc(w, 0, 2, 20000, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_check(w, took(shrt) < 60 * PAIR_US, "20 KB took %llu ns",
		   (unsigned long long)took(shrt));
	pair_check(w, took(lng) < 10 * PAIR_MS, "10 MB took %llu ns",
		   (unsigned long long)took(lng));
	pair_finish(w);
}

/* 500 KB (mostly scheduled) do not wait for 10 MB from another host. */
static void srpt__at_the_receiver(void **state)
{
	u32 sigcomm;

	(void)state;
	for (sigcomm = 0; sigcomm < 2; sigcomm++) {
		struct pair_world *w = world(4, sigcomm);
		struct pair_rpc *shrt;

		pair_rpc(w, 1, 0, 10000000, 1);
		pair_rpc(w, 2, 0, 10000000, 1);
		pair_run_for(w, PAIR_MS);
		shrt = pair_rpc(w, 3, 0, 500000, 1);
		assert_true(pair_run_while_pending(w, PAIR_S));
		/* 420 us alone at 10 Gbps. */
		pair_check(w, took(shrt) < 600 * PAIR_US,
			   "500 KB took %llu ns, sigcomm %u",
			   (unsigned long long)took(shrt), sigcomm);
		pair_finish(w);
	}
}

/*
 * Many messages at once, longest first: the shortest is done when SRPT would
 * have it done, the longest is last. (Those between are later than they should
 * be: bytes granted at a low level while others were ahead wait in the switch
 * until it has nothing better to do. The existing module has that, too.)
 */
static void srpt__order_of_completion(void **state)
{
	struct pair_world *w = world(9, false);
	u64 ideal_shortest = 550000ull * 4 / 5, ideal_next = 1450000ull * 4 / 5;
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++)
		pair_rpc(w, (u8)(1 + i), 0, 3000000 - i * 350000, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	if (getenv("PAIR_DUMP"))
		for (i = 0; i < 8; i++)
			print_message("%u bytes: %llu us\n",
				      w->book[i]->request_length,
				      (unsigned long long)took(w->book[i]) / 1000);
	pair_check(w, took(w->book[7]) < 2 * ideal_shortest,
		   "shortest took %llu us",
		   (unsigned long long)took(w->book[7]) / 1000);
	pair_check(w, took(w->book[6]) < 3 * ideal_next / 2,
		   "second took %llu us",
		   (unsigned long long)took(w->book[6]) / 1000);
	for (i = 1; i < 8; i++)
		pair_check(w, took(w->book[i]) <= took(w->book[0]),
			   "%u is later than the longest", i);
	pair_finish(w);
}

struct granted {
	u64 ids[64];
	u8 to[64];
	u32 n;
};

static bool see_grants(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct granted *g = arg;
	struct homa_packet p;
	u32 i;

	(void)w;
	if (homa_packet_decode(&p, pkt->data, pkt->len) ||
	    p.hdr.type != HOMA_GRANT)
		return false;
	for (i = 0; i < g->n; i++)
		if (g->ids[i] == p.hdr.sender_id && g->to[i] == pkt->dst)
			return false;
	if (g->n < 64) {
		g->ids[g->n] = p.hdr.sender_id;
		g->to[g->n++] = pkt->dst;
	}
	return false;
}

static void overcommit__is_a_limit(void **state)
{
	u32 limit, sigcomm, i;

	(void)state;
	for (sigcomm = 0; sigcomm < 2; sigcomm++)
		for (limit = 1; limit <= 4; limit++) {
			struct granted g = { 0 };
			struct pair_config cfg;
			struct pair_world *w;
			struct homa_link_state s;
			u32 most = 0;

			pair_config_default(&cfg);
			cfg.hosts = 9;
			cfg.pool_pages = 0;
			if (sigcomm)
				homa_params_sigcomm(&cfg.params);
			cfg.params.max_overcommit = limit;
			cfg.params.grant_fifo_fraction = 0;
			w = pair_world_new(&cfg);
			w->tap = see_grants;
			w->tap_arg = &g;
			for (i = 0; i < 8; i++)
				pair_rpc(w, (u8)(1 + i), 0, 2000000, 1);
			for (i = 0; i < 100; i++) {
				pair_run_for(w, 10000);
				homa_link_state(&w->hosts[0].ctx,
						w->hosts[0].link, &s);
				if (s.granting > most)
					most = s.granting;
			}
			/* 1 ms at 10 Gbps: no message is complete yet. */
			pair_check(w, most == limit, "%u active, limit %u",
				   most, limit);
			pair_check(w, g.n == limit, "%u granted to, limit %u",
				   g.n, limit);
			assert_true(pair_run_while_pending(w, PAIR_S));
			pair_finish(w);
		}
}

/* Host 2 was first; of host 1's four shorter ones only one gets a slot. */
static void overcommit__one_slot_per_peer(void **state)
{
	struct granted g = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, to_1 = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	cfg.pool_pages = 0;
	cfg.params.max_overcommit = 2;
	cfg.params.grant_fifo_fraction = 0;
	w = pair_world_new(&cfg);
	w->tap = see_grants;
	w->tap_arg = &g;
	pair_rpc(w, 2, 0, 9000000, 1);
	pair_run_for(w, 50 * PAIR_US);
	for (i = 0; i < 4; i++)
		pair_rpc(w, 1, 0, 2000000 + i, 1);
	pair_run_for(w, 900 * PAIR_US);
	for (i = 0; i < g.n; i++)
		to_1 += g.to[i] == 1;
	pair_check(w, g.n == 2 && to_1 == 1,
		   "grants to %u messages, %u of host 1", g.n, to_1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Many short messages, more than the link can take, against one long one. */
static u64 overload(u32 share)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *lng;
	u64 result;
	u32 i;

	pair_config_default(&cfg);
	cfg.hosts = 5;
	cfg.pool_pages = 0;
	cfg.params.grant_fifo_fraction = share;
	cfg.params.pacer_fifo_fraction = share;
	cfg.params.max_overcommit = 2;
	w = pair_world_new(&cfg);
	lng = pair_rpc(w, 4, 0, 1000000, 1);
	for (i = 0; i < 400; i++) { /* 3 x 100 KB per 220 us: 110 % */
		pair_rpc(w, 1, 0, 100000, 1);
		pair_rpc(w, 2, 0, 100000, 1);
		pair_rpc(w, 3, 0, 100000, 1);
		pair_run_for(w, 220 * PAIR_US);
	}
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_FAILED), 0);
	result = took(lng);
	pair_finish(w);
	return result;
}

static void fifo__keeps_the_oldest_from_starving(void **state)
{
	u64 none = overload(0), some = overload(200);

	(void)state;
	/* A fifth of 10 Gbps moves 1 MB in 4 ms; without, it waits for the end. */
	if (some > none / 2 || some > 25 * PAIR_MS)
		fail_msg("1 MB took %llu us with, %llu us without a share",
			 (unsigned long long)some / 1000,
			 (unsigned long long)none / 1000);
}

static u32 incast_peak(u32 threshold, u32 outstanding, u64 *marked)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, peak;

	pair_config_default(&cfg);
	cfg.hosts = 16;
	cfg.pool_pages = 0;
	cfg.params.incast_rpcs = threshold;
	w = pair_world_new(&cfg);
	for (i = 1; i < 16; i++)
		pair_rpc(w, 0, (u8)i, 10, 10);
	pair_drain(w, PAIR_S);
	w->hosts[0].port.peak = 0;
	for (i = 0; i < outstanding; i++)
		pair_rpc(w, 0, (u8)(1 + i % 15), 100, 100000);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), outstanding + 15);
	*marked = pair_metric(w, HOMA_M_incast_marked);
	peak = w->hosts[0].port.peak;
	pair_finish(w);
	return peak;
}

/* SIGCOMM'18 section 3.6: many outstanding RPCs, few unscheduled bytes. */
static void incast__peak_queue_shrinks(void **state)
{
	u64 marked_off, marked_on, marked_few;
	u32 off = incast_peak(0, 60, &marked_off);
	u32 on = incast_peak(10, 60, &marked_on);

	(void)state;
	incast_peak(64, 60, &marked_few);
	assert_int_equal(marked_off, 0);
	assert_int_equal(marked_few, 0);
	assert_in_range(marked_on, 45, 60);
	if (on > off / 2)
		fail_msg("peak queue %u with, %u without incast control", on,
			 off);
}

struct levels {
	u64 bytes[8];
	bool on;
};

static bool see_levels(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct levels *l = arg;
	struct homa_packet p;

	(void)w;
	if (l->on && !homa_packet_decode(&p, pkt->data, pkt->len) &&
	    p.hdr.type == HOMA_DATA && p.data.offset < p.data.incoming)
		l->bytes[pkt->prio] += pkt->len;
	return false;
}

/*
 * A mix of short messages: after some intervals the unscheduled levels carry
 * about the same number of bytes each.
 */
static void cutoffs__balance_the_levels(void **state)
{
	static const u32 sizes[] = { 60,   150,	 300,  500, 900,
				     1300, 2000, 4000, 8000 };
	struct levels l = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u64 min = HOMA_NEVER, max = 0;
	u32 i, used = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	cfg.params.cutoff_interval_ms = 20;
	w = pair_world_new(&cfg);
	w->tap = see_levels;
	w->tap_arg = &l;
	for (i = 0; i < 20000; i++) {
		u32 len = sizes[pair_below(&w->rng_test, HOMA_ARRAY_SIZE(sizes))];

		if (i == 10000)
			l.on = true;
		len -= pair_below(&w->rng_test, len / 3);
		pair_rpc(w, (u8)(1 + (i & 1)), 0, len, 50);
		pair_run_for(w, 15000);
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_true(pair_metric(w, HOMA_M_cutoff_changes) > 0);
	/* Requests only: responses of 50 bytes go to hosts 1 and 2. */
	for (i = 0; i < 8; i++) {
		if (!l.bytes[i])
			continue;
		used++;
		if (l.bytes[i] < min)
			min = l.bytes[i];
		if (l.bytes[i] > max)
			max = l.bytes[i];
	}
	pair_check(w, used >= 4, "only %u levels used", used);
	pair_check(w, max <= 3 * min, "levels carry %llu to %llu bytes",
		   (unsigned long long)min, (unsigned long long)max);
	pair_finish(w);
}

/* Only some levels may be used: none above shows up on the wire. */
static bool see_prio(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	u8 *most = arg;

	(void)w;
	if (pkt->prio > *most)
		*most = pkt->prio;
	return false;
}

static void priorities__stay_below_num_priorities(void **state)
{
	u32 levels, i;

	(void)state;
	for (levels = 1; levels <= 8; levels++) {
		struct pair_config cfg;
		struct pair_world *w;
		u8 most = 0;

		pair_config_default(&cfg);
		cfg.hosts = 4;
		cfg.params.num_priorities = levels;
		cfg.params.cutoff_interval_ms = 1;
		w = pair_world_new(&cfg);
		w->tap = see_prio;
		w->tap_arg = &most;
		w->paths[0][1].loss = 20;
		for (i = 0; i < 100; i++) {
			pair_rpc(w, (u8)(i % 4), (u8)((i + 1) % 4),
				 1 + i * 3000, 1 + (100 - i) * 2000);
			pair_run_for(w, 100000);
		}
		assert_true(pair_run_while_pending(w, 10 * PAIR_S));
		assert_int_equal(most, levels - 1);
		pair_finish(w);
	}
}

/* max_incoming bounds what may queue at the receiver's port. */
static void grants__bounded_by_max_incoming(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 9;
	cfg.pool_pages = 0;
	cfg.params.max_incoming = 100000;
	cfg.params.unsched_bytes = 1500;
	cfg.params.grant_fifo_fraction = 0;
	w = pair_world_new(&cfg);
	for (i = 0; i < 40; i++)
		pair_rpc(w, (u8)(1 + i % 8), 0, 1000000, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	/* 40 x 1500 unscheduled, then what was granted. */
	pair_check(w, w->hosts[0].port.peak < 180000, "peak queue %u",
		   w->hosts[0].port.peak);
	pair_finish(w);
}

/* The time that a server's application takes is no round trip. */
static void round_trip__without_the_application(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_link_state before, after;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	homa_link_state(&w->hosts[0].ctx, w->hosts[0].link, &before);
	for (i = 0; i < 100; i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, 1, 100, 100);

		rpc->reply_delay_set = true;
		rpc->reply_delay = 2 * PAIR_MS;
		assert_true(pair_run_while_pending(w, PAIR_S));
	}
	homa_link_state(&w->hosts[0].ctx, w->hosts[0].link, &after);
	pair_check(w, after.rtt_bytes <= 5 * before.rtt_bytes,
		   "RTTbytes from %u to %u", before.rtt_bytes, after.rtt_bytes);
	pair_finish(w);
}

static void sigcomm__preset_works(void **state)
{
	struct pair_world *w = world(8, true);
	u32 i;

	(void)state;
	for (i = 0; i < 500; i++) {
		u8 a = (u8)pair_below(&w->rng_test, 8);
		u32 bits = pair_below(&w->rng_test, 20);

		pair_rpc(w, a, (u8)((a + 1 + pair_below(&w->rng_test, 7)) % 8),
			 1 + pair_below(&w->rng_test, 1u << bits),
			 1 + pair_below(&w->rng_test, 1u << bits));
		pair_run_for(w, pair_below(&w->rng_test, 40000));
	}
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 500);
	assert_int_equal(pair_metric(w, HOMA_M_tx_retransmits), 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(srpt__at_the_sender),
		cmocka_unit_test(srpt__at_the_receiver),
		cmocka_unit_test(srpt__order_of_completion),
		cmocka_unit_test(overcommit__is_a_limit),
		cmocka_unit_test(overcommit__one_slot_per_peer),
		cmocka_unit_test(fifo__keeps_the_oldest_from_starving),
		cmocka_unit_test(incast__peak_queue_shrinks),
		cmocka_unit_test(cutoffs__balance_the_levels),
		cmocka_unit_test(priorities__stay_below_num_priorities),
		cmocka_unit_test(grants__bounded_by_max_incoming),
		cmocka_unit_test(round_trip__without_the_application),
		cmocka_unit_test(sigcomm__preset_works),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
