/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_icmp.c: an error ends the RPC that it names, and nothing else.
 */
#include "forge.h"

static void icmp(struct pair_world *w, u32 at, u32 about, u16 sport, u16 dport,
		 u64 id, int error)
{
	homa_icmp(ctx_of(w, at), &w->hosts[about].addr, sport, dport, id, error);
	pair_poll(&w->hosts[at]);
}

/* At least one RPC of each end of each kind, which short or wrong quotes name. */
static void icmp__ends_only_what_it_names(void **state)
{
	static const int errors[] = { HOMA_ENOTCONN, HOMA_EHOSTUNREACH,
				      HOMA_EPROTONOSUPPORT };
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 100 * PAIR_MS);
	u16 sport = r->client_port, dport = r->server_port;
	u64 id = r->handle.id;
	u32 i, n;

	(void)state;
	begin(w, 300000, 100 * PAIR_MS);
	pair_rpc(w, 1, 0, 500000, 1);
	pair_run_for(w, PAIR_MS);
	for (i = 0; i < HOMA_ARRAY_SIZE(errors); i++) {
		for (n = 0; n < 2; n++) {
			icmp(w, n, !n, 0, 0, 0, errors[i]);
			icmp(w, n, !n, sport, 0, 0, errors[i]);
			icmp(w, n, !n, sport, dport, 0, errors[i]);
			icmp(w, n, !n, dport, sport, 0, errors[i]);
			icmp(w, n, !n, 0, 0, id ^ n, errors[i]);
			icmp(w, n, !n, sport, 0, id ^ n, errors[i]);
			icmp(w, n, !n, 0, dport, id ^ n, errors[i]);
			icmp(w, n, !n, sport ^ 1, dport, id, errors[i]);
			icmp(w, n, !n, sport, dport ^ 1, id, errors[i]);
			icmp(w, n, !n, dport ^ 1, sport, id ^ 1, errors[i]);
			icmp(w, n, 2, sport, dport, id, errors[i]);
			icmp(w, n, !n, sport, dport, id + 1000, errors[i]);
		}
	}
	assert_int_equal(count(w, 0, HOMA_M_icmp_errors), 0);
	assert_int_equal(count(w, 1, HOMA_M_icmp_errors), 0);
	assert_int_equal(count(w, 0, HOMA_M_icmp_ignored), 36);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 3);
	pair_finish(w);
}

static void icmp__with_id_and_ports_is_believed(void **state)
{
	static const int errors[] = { HOMA_ENOTCONN, HOMA_EHOSTUNREACH,
				      HOMA_EPROTONOSUPPORT };
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(errors); i++) {
		struct pair_rpc *r = begin(w, 100, 100 * PAIR_MS);
		struct pair_rpc *other = begin(w, 100, 100 * PAIR_MS);

		pair_run_for(w, PAIR_MS);
		icmp(w, 0, 1, r->client_port, r->server_port, r->handle.id,
		     errors[i]);
		assert_int_equal(r->state, PAIR_FAILED);
		assert_int_equal(r->error, errors[i]);
		assert_int_equal(other->state, PAIR_PENDING);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(other->state, PAIR_OK);
	}
	pair_finish(w);
}

/* Errors about the RPCs of a former life concern none of the next. */
static void icmp__from_before_a_restart(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *old[20], *r[20];
	u32 i;

	(void)state;
	for (i = 0; i < 20; i++)
		old[i] = begin(w, 100, 100 * PAIR_MS);
	pair_run_for(w, PAIR_MS);
	pair_restart(&w->hosts[0]);
	for (i = 0; i < 20; i++)
		r[i] = begin(w, 100, 100 * PAIR_MS);
	pair_run_for(w, PAIR_MS);
	for (i = 0; i < 20; i++) {
		icmp(w, 0, 1, old[i]->client_port, old[i]->server_port,
		     old[i]->handle.id, HOMA_ENOTCONN);
		icmp(w, 0, 1, r[i]->client_port, r[i]->server_port,
		     old[i]->handle.id, HOMA_ENOTCONN);
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	for (i = 0; i < 20; i++)
		assert_int_equal(r[i]->state, PAIR_OK);
	pair_finish(w);
}

/* A late error: the response comes, or is here and its application has not looked. */
static void icmp__after_the_response_began(void **state)
{
	static const u32 lengths[] = { 100, 1000000 };
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct pair_rpc *r = begin(w, lengths[i], 0);
		u64 fresh = count(w, 0, HOMA_M_rx_fresh_bytes);

		w->hosts[0].hold_events = true;
		while (count(w, 0, HOMA_M_rx_fresh_bytes) == fresh)
			pair_run_for(w, PAIR_US);
		icmp(w, 0, 1, r->client_port, r->server_port, r->handle.id,
		     HOMA_ENOTCONN);
		w->hosts[0].hold_events = false;
		pair_poll(&w->hosts[0]);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
	}
	assert_int_equal(count(w, 0, HOMA_M_icmp_ignored),
			 HOMA_ARRAY_SIZE(lengths));
	pair_finish(w);
}

static void icmp__path_mtu(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 100 * PAIR_MS);
	u16 sport = r->client_port, dport = r->server_port;
	const struct homa_addr *dst = &w->hosts[1].addr;
	u64 id = r->handle.id;
	struct homa_counts counts;
	u16 seg;

	(void)state;
	pair_run_for(w, PAIR_MS);
	seg = peer_of(w, 0, 1).seg_size;
	assert_false(homa_icmp_mtu(ctx_of(w, 0), dst, sport, dport, 0, 1000));
	assert_false(homa_icmp_mtu(ctx_of(w, 0), dst, 0, 0, id, 1000));
	assert_false(homa_icmp_mtu(ctx_of(w, 0), dst, sport, dport, id + 2, 1000));
	assert_false(homa_icmp_mtu(ctx_of(w, 0), &w->hosts[2].addr, sport,
				   dport, id, 1000));
	assert_int_equal(peer_of(w, 0, 1).seg_size, seg);
	homa_engine_counts(w->hosts[0].engine, &counts);
	assert_int_equal(counts.peers, 1);
	/* Never wider, and never narrower than any path. */
	assert_true(homa_icmp_mtu(ctx_of(w, 0), dst, sport, dport, id, 9000));
	assert_int_equal(peer_of(w, 0, 1).seg_size, seg);
	assert_true(homa_icmp_mtu(ctx_of(w, 0), dst, sport, dport, id, 1000));
	assert_int_equal(peer_of(w, 0, 1).seg_size, 1000 - 20 - HOMA_DATA_HDR);
	assert_true(homa_icmp_mtu(ctx_of(w, 0), dst, sport, dport, id, 1));
	assert_int_equal(peer_of(w, 0, 1).seg_size, 552 - 20 - HOMA_DATA_HDR);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

/* What an ICMP error says of a path holds for about ten minutes, as for TCP: then the path is tried
 * again. Nobody would say otherwise that it is wide again. */
static void icmp__path_mtu_is_not_for_ever(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r = begin(w, 20000, PAIR_MS);
	u16 seg = peer_of(w, 0, 1).seg_size;
	u32 minute, round;

	(void)state;
	for (round = 0; round < 2; round++) {
		assert_true(homa_icmp_mtu(ctx_of(w, 0), &w->hosts[1].addr,
					  r->client_port, r->server_port,
					  r->handle.id, 1000));
		for (minute = 0; minute < 10; minute++) {
			assert_true(pair_run_while_pending(w, PAIR_S));
			assert_int_equal(r->state, PAIR_OK);
			assert_int_equal(peer_of(w, 0, 1).seg_size,
					 1000 - 20 - HOMA_DATA_HDR);
			pair_run_for(w, 58 * PAIR_S);
			r = begin(w, 20000, PAIR_MS);
		}
		assert_true(pair_run_while_pending(w, PAIR_S));
		pair_run_for(w, 100 * PAIR_S);
		r = begin(w, 20000, PAIR_MS);
		assert_int_equal(peer_of(w, 0, 1).seg_size, seg);
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Of the link: the messages that begin then are cut for it, wider ones too. */
static void mtu__of_the_link_changes(void **state)
{
	static const u32 mtus[] = { 9000, 1400, 1500 };
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r;
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		homa_link_set(w->hosts[0].link, 0, mtus[i]);
		r = begin(w, 20000, PAIR_MS);
		assert_int_equal(peer_of(w, 0, 1).seg_size,
				 mtus[i] - 20 - HOMA_DATA_HDR);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
	}
	/* As long as it stays, so does what is known of a path. */
	r = begin(w, 20000, PAIR_MS);
	homa_path_mtu(ctx_of(w, 0), w->hosts[0].link, &w->hosts[1].addr, 1000);
	assert_true(pair_run_while_pending(w, PAIR_S));
	r = begin(w, 20000, PAIR_MS);
	assert_int_equal(peer_of(w, 0, 1).seg_size, 1000 - 20 - HOMA_DATA_HDR);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icmp__ends_only_what_it_names),
		cmocka_unit_test(icmp__with_id_and_ports_is_believed),
		cmocka_unit_test(icmp__from_before_a_restart),
		cmocka_unit_test(icmp__after_the_response_began),
		cmocka_unit_test(icmp__path_mtu),
		cmocka_unit_test(icmp__path_mtu_is_not_for_ever),
		cmocka_unit_test(mtu__of_the_link_changes),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
