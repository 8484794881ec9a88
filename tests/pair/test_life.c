/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Lives of servers: what was for a former one does not run, what a former one says is no
 * sign of this one, and who is new finds out without harm.
 */
#include "forge.h"
#include "homa_impl.h"

/* The packets of one request, kept to come again. */
struct kept {
	struct pair_pkt *pkt;
	u32 payload;
};

static bool keep(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct kept *kept = arg;

	(void)w;
	if (kept->pkt || pkt->data[11] != HOMA_DATA || pkt->dst != 1)
		return false;
	kept->pkt = pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);
	memcpy(kept->pkt->data, pkt->data, pkt->len);
	return false;
}

static struct pair_world *lives(bool no_lives)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.no_lives = no_lives;
	return pair_world_new(&cfg);
}

static u32 life_of(struct pair_world *w, u32 host)
{
	return w->hosts[host].engine->life;
}

/* A copy that the network made of a request's first packet comes to the next life. */
static void life__a_copy_for_a_former_one_does_not_run(void **state)
{
	u32 round;

	(void)state;
	for (round = 0; round < 3; round++) {
		bool no_lives = round == 1, met = round != 2;
		struct pair_world *w = lives(no_lives);
		struct kept kept = { 0 };
		struct pair_rpc *r;

		if (met)
			pair_rpc(w, 0, 1, 100, 100);
		pair_run_for(w, 10 * PAIR_MS);
		w->tap = keep;
		w->tap_arg = &kept;
		r = pair_rpc(w, 0, 1, 100, 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->executed, 1);
		pair_restart(&w->hosts[1]);
		pair_run_for(w, PAIR_MS);
		/* Sent before, so the judge excuses what it may excuse, and no more. */
		kept.pkt->born = 1;
		pair_net_deliver(w, kept.pkt);
		pair_run_for(w, 10 * PAIR_MS);
		/* Of one that says nothing, or did not know the server yet, it does. */
		assert_int_equal(r->executed, no_lives || !met ? 2 : 1);
		assert_int_equal(count(w, 1, HOMA_M_drop_life),
				 no_lives || !met ? 0 : 1);
		pair_finish(w);
	}
}

/* Nothing of what is new is lost by that: it is sent again, for the life that there is. */
static void life__a_new_request_finds_out(void **state)
{
	static const u32 lengths[] = { 1, 100, 50000, 500000 };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct pair_world *w = lives(false);
		struct pair_rpc *r;
		u32 before;

		pair_rpc(w, 0, 1, 100, 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
		before = life_of(w, 1);
		pair_restart(&w->hosts[1]);
		assert_int_not_equal(life_of(w, 1), before);
		pair_run_for(w, 2 * PAIR_MS);
		r = pair_rpc(w, 0, 1, lengths[i], 100);
		/* At once: not after an interval of silence, nor after the guard. */
		pair_run_for(w, 4 * PAIR_MS);
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(r->executed, 1);
		assert_int_equal(count(w, 0, HOMA_M_restarts), 1);
		assert_int_equal(count(w, 1, HOMA_M_drop_restart), 0);
		/* And the next one knows. */
		r = pair_rpc(w, 0, 1, lengths[i], 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(count(w, 0, HOMA_M_restarts), 1);
		pair_finish(w);
	}
}

/* A request that ran is not sent again, however late the signs of the former life are. */
static void life__signs_of_a_former_one_are_none(void **state)
{
	static const u8 types[] = { HOMA_BUSY, HOMA_GRANT, HOMA_RESEND,
				    HOMA_NEED_ACK, HOMA_DATA };
	struct pair_world *w = lives(false);
	struct pair_rpc *r, *other;
	u32 i, former;

	(void)state;
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	former = life_of(w, 1);
	pair_restart(&w->hosts[1]);
	pair_run_for(w, 2 * PAIR_MS);
	other = pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(other->state, PAIR_OK);
	r = begin(w, 100, 20 * PAIR_MS);
	pair_run_for(w, PAIR_MS);
	for (i = 0; i < HOMA_ARRAY_SIZE(types); i++) {
		struct homa_packet p = about(r, types[i], true);
		struct pair_pkt *pkt = pair_pkt_new(1, 0, 7, HOMA_MAX_HDR + 100);

		memset(pkt->data, 0, pkt->len);
		pkt->len = homa_packet_encode(pkt->data, &p) +
			   (types[i] == HOMA_DATA ? 100 : 0);
		homa_wire_set_life(pkt->data, former);
		pair_net_deliver(w, pkt);
		pair_run_for(w, 100 * PAIR_US);
		assert_int_equal(count(w, 0, HOMA_M_drop_life), i + 1);
	}
	assert_int_equal(r->state, PAIR_PENDING);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->executed, 1);
	pair_finish(w);
}

/* Who is younger than a request does not get it again, for a former life may have run it. */
static void life__a_request_that_is_older_ends(void **state)
{
	struct pair_world *w = lives(false);
	struct pair_rpc *r;

	(void)state;
	r = begin(w, 100, PAIR_S);
	pair_run_for(w, 5 * PAIR_MS);
	assert_int_equal(r->executed, 1);
	pair_restart(&w->hosts[1]);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(r->state, PAIR_FAILED);
	assert_int_equal(r->executed, 1);
	assert_int_equal(count(w, 0, HOMA_M_restarts), 0);
	pair_finish(w);
}

/* Peers that say nothing get what they got before. */
static void life__of_none_is_said_without_a_guard(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.params.restart_guard_us = 1;
	w = pair_world_new(&cfg);
	assert_int_equal(life_of(w, 1), 0);
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_restart(&w->hosts[1]);
	r = pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(count(w, 0, HOMA_M_restarts), 0);
	pair_finish(w);
}

/* A stranger's packets, which have other ports, change what is known of no life. */
static void life__strangers_say_nothing(void **state)
{
	struct pair_world *w = lives(false);
	struct pair_rpc *r;
	struct homa_packet p;
	struct pair_pkt *pkt;

	(void)state;
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	r = begin(w, 100, 20 * PAIR_MS);
	pair_run_for(w, PAIR_MS);
	p = about(r, HOMA_BUSY, true);
	p.hdr.sport ^= 1;
	pkt = pair_pkt_new(1, 0, 7, HOMA_MAX_HDR);
	pkt->len = homa_packet_encode(pkt->data, &p);
	homa_wire_set_life(pkt->data, 4711);
	pair_net_deliver(w, pkt);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(count(w, 0, HOMA_M_drop_ports), 1);
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(count(w, 1, HOMA_M_drop_life), 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life__a_copy_for_a_former_one_does_not_run),
		cmocka_unit_test(life__a_new_request_finds_out),
		cmocka_unit_test(life__signs_of_a_former_one_are_none),
		cmocka_unit_test(life__a_request_that_is_older_ends),
		cmocka_unit_test(life__of_none_is_said_without_a_guard),
		cmocka_unit_test(life__strangers_say_nothing),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
