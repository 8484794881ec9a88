/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What hosts with threads of their own need: pointers to RPCs that stay good
 * while they are held, and cutoffs that an administrator chose.
 */
#include "pair_test.h"

#include "homa_look.h"

static struct pair_world *world(void)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.hosts = 2;
	return pair_world_new(&cfg);
}

static struct homa_ctx *ctx_of(struct pair_world *w, u32 host)
{
	w->hosts[host].ctx.now = w->now;
	return &w->hosts[host].ctx;
}

static void hold__survives_the_end(void **state)
{
	struct pair_world *w = world();
	struct pair_rpc *r = pair_rpc(w, 0, 1, 50000, 1000);
	struct homa_ctx *ctx = ctx_of(w, 0);
	struct homa_rpc *rpc = homa_rpc_hold(ctx, r->handle.id, NULL);

	(void)state;
	assert_non_null(rpc);
	homa_rpc_hold_more(rpc);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_run_for(w, 10 * PAIR_MS);
	/* Over, and not to be found, but the memory is still whose it was. */
	assert_null(homa_rpc_hold(ctx, r->handle.id, NULL));
	assert_true(homa_rpc_handle(rpc).id == r->handle.id);
	homa_rpc_release(ctx, rpc);
	assert_null(ctx->retired_rpc);
	assert_true(homa_rpc_handle(rpc).id == r->handle.id);
	homa_rpc_release(ctx, rpc);
	assert_ptr_equal(ctx->retired_rpc, rpc);
	pair_poll(&w->hosts[0]);
	pair_finish(w);
}

static void hold__finds_by_id_and_peer(void **state)
{
	struct pair_world *w = world();
	struct pair_rpc *r = pair_rpc(w, 0, 1, 500000, 1000);
	struct homa_addr stranger = w->hosts[0].addr;
	struct homa_rpc *rpc;

	(void)state;
	stranger.ip[15] ^= 0x55;
	pair_run_for(w, 100 * PAIR_US);
	rpc = homa_rpc_hold(ctx_of(w, 1), r->handle.id ^ 1, &w->hosts[0].addr);
	assert_non_null(rpc);
	homa_rpc_release(ctx_of(w, 1), rpc);
	assert_null(homa_rpc_hold(ctx_of(w, 1), r->handle.id ^ 1, &stranger));
	/* A server's RPC is no client's, and the other way round. */
	assert_null(homa_rpc_hold(ctx_of(w, 1), r->handle.id ^ 1, NULL));
	assert_null(homa_rpc_hold(ctx_of(w, 0), r->handle.id, &w->hosts[1].addr));
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Hosts that have no handles find a request by its name, and answer it in one step. */
static void hold__answers_by_id_and_peer(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_addr *client, stranger;
	struct homa_sock *sock;
	struct homa_ctx *ctx;
	struct pair_rpc *r;
	struct homa_rpc *rpc;
	u64 id;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.at_once = true;
	w = pair_world_new(&cfg);
	client = &w->hosts[0].addr;
	stranger = *client;
	stranger.ip[15] ^= 0x55;
	r = pair_rpc(w, 0, 1, 100, 1000);
	r->reply_delay_set = true;
	r->reply_delay = 5 * PAIR_MS;
	pair_run_for(w, PAIR_MS);
	ctx = ctx_of(w, 1);
	id = r->handle.id ^ 1;
	rpc = homa_rpc_hold(ctx, id, client);
	assert_non_null(rpc);
	sock = homa_rpc_sock(rpc);
	homa_rpc_release(ctx, rpc);
	assert_null(homa_answer_begin(ctx, id, &stranger, sock));
	assert_null(homa_answer_begin(ctx, id + 2, client, sock));
	assert_null(homa_answer_begin(ctx, r->handle.id, client, sock));
	assert_null(homa_answer_begin(ctx, id, client, NULL));
	/* It may be left as it is; then its application answers it. */
	assert_ptr_equal(homa_answer_begin(ctx, id, client, sock), rpc);
	assert_true(homa_answer_awaited(rpc));
	homa_answer_end(ctx, rpc, 0, 0, NULL);
	assert_true(homa_rpc_awaited(ctx, r->server_handle));
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->replies, 1);
	pair_finish(w);
}

static void hold__cutoffs_of_an_administrator_reach_the_peer(void **state)
{
	static const u32 sizes[] = { 100, 1000 };
	u32 ours[HOMA_PRIORITIES], wrong[] = { 1000, 100 };
	struct pair_world *w = world();
	struct homa_look_cursor at = { 0 };
	struct homa_peer_look peer;
	u16 before, after;

	(void)state;
	before = homa_engine_cutoffs(w->hosts[1].engine, ours);
	assert_int_equal(homa_engine_fix_cutoffs(ctx_of(w, 1), 9, sizes),
			 -HOMA_EINVAL);
	assert_int_equal(homa_engine_fix_cutoffs(ctx_of(w, 1), 3, wrong),
			 -HOMA_EINVAL);
	assert_int_equal(homa_engine_cutoffs(w->hosts[1].engine, ours), before);
	assert_int_equal(homa_engine_fix_cutoffs(ctx_of(w, 1), 3, sizes), 0);
	after = homa_engine_cutoffs(w->hosts[1].engine, ours);
	assert_true(after != before);
	assert_int_equal(ours[7], 100);
	assert_int_equal(ours[6], 1000);
	pair_rpc(w, 0, 1, 2000, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(homa_peers_look(ctx_of(w, 0), &at, &peer, 1), 1);
	assert_int_equal(peer.cutoff_version, after);
	assert_memory_equal(peer.cutoffs, ours, sizeof(ours));
	pair_finish(w);
}

/* A host that keeps packets must know when they are good for nothing. */
static void hold__told_of_requests_that_end_untaken(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 on;

	(void)state;
	for (on = 0; on < 2; on++) {
		pair_config_default(&cfg);
		cfg.hosts = 2;
		cfg.tell_gone = on;
		w = pair_world_new(&cfg);
		pair_rpc(w, 0, 1, 500000, 100);
		pair_run_for(w, 100 * PAIR_US);
		pair_host_stop(&w->hosts[0]);
		pair_run_for(w, 2 * PAIR_S);
		assert_int_equal(w->gone, on);
		pair_finish(w);
	}
}

static void hold__peers_drain(void **state)
{
	struct pair_world *w = world();
	struct homa_ctx *ctx = ctx_of(w, 0);
	struct homa_counts counts;
	struct homa_peer *peer;
	u32 n = 0;

	(void)state;
	pair_rpc(w, 0, 1, 100, 100);
	assert_false(homa_peers_drain(ctx, 1000));
	homa_engine_counts(w->hosts[0].engine, &counts);
	assert_int_equal(counts.peers, 1); /* an RPC needs it */
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_run_for(w, 10 * PAIR_MS);
	assert_false(homa_peers_drain(ctx, 1000));
	homa_engine_counts(w->hosts[0].engine, &counts);
	assert_int_equal(counts.peers, 0);
	while ((peer = homa_retired_peer(ctx))) {
		pair_free(&w->hosts[0], peer);
		n++;
	}
	assert_int_equal(n, 1);
	pair_finish(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold__survives_the_end),
		cmocka_unit_test(hold__finds_by_id_and_peer),
		cmocka_unit_test(hold__answers_by_id_and_peer),
		cmocka_unit_test(hold__cutoffs_of_an_administrator_reach_the_peer),
		cmocka_unit_test(hold__told_of_requests_that_end_untaken),
		cmocka_unit_test(hold__peers_drain),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
