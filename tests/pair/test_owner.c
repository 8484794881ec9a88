/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two users on the same two hosts. One does what it can to keep the other from
 * working: servers that never receive, requests without end, aborts, idle clients. The
 * other notices nothing, and nothing is left of the first.
 */
#include "homa_impl.h"
#include "pair_test.h"

#define HOG_PORT 200
#define GOOD_RPCS 200

/* Sockets of one user on one host. */
static u32 open_for(struct pair_host *h, u16 port, struct homa_owner *owner)
{
	u32 i = pair_sock_open(h, port);

	if (owner)
		homa_sock_charge(h->socks[i].sock, owner);
	return i;
}

static u32 open_deaf(struct pair_host *h, u16 port, struct homa_owner *owner)
{
	u32 i = open_for(h, port, owner);

	h->socks[i].deaf = true;
	return i;
}

/* Four servers that take nothing, and as many clients; the last of these. */
static u32 open_hog(struct pair_world *w, struct homa_owner *bad)
{
	u32 i, sock = 0;

	for (i = 0; i < 4; i++) {
		open_deaf(&w->hosts[0], (u16)(HOG_PORT + i), &bad[0]);
		sock = open_for(&w->hosts[1], 0, &bad[1]);
	}
	return sock;
}

static u32 server_rpcs(struct pair_world *w)
{
	struct homa_counts counts;

	homa_engine_counts(w->hosts[0].engine, &counts);
	return counts.rpcs;
}

/* RPCs of the good user, one after the other: all done? How long did they take? */
static u64 good_time(struct pair_world *w, u8 sock, u16 port)
{
	u64 start = w->now;
	u32 i;

	for (i = 0; i < GOOD_RPCS; i++) {
		struct pair_rpc *rpc =
			pair_rpc_start(w, 1, sock, 0, port, 100, 100, NULL);
		u32 tries;

		pair_check(w, rpc, "RPC %u was refused", i);
		for (tries = 0; rpc->state == PAIR_PENDING && tries < 100000;
		     tries++)
			pair_run_for(w, PAIR_US);
		pair_check(w, rpc->state == PAIR_OK, "RPC %u: state %d, error %d",
			   i, rpc->state, rpc->error);
	}
	return w->now - start;
}

static void abort_all(struct pair_world *w, u16 port)
{
	u32 i;

	for (i = 0; i < w->num_rpcs; i++)
		if (w->book[i]->server_port == port &&
		    w->book[i]->state == PAIR_PENDING) {
			pair_rpc_abort(w, w->book[i], 0);
			if (i % 64 == 0)
				pair_run_for(w, 50 * PAIR_US);
		}
}

/* 70,000 requests of one byte to a server that never receives, then aborted. */
static void hog__one_deaf_server(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u64 alone, beside;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.pool_pages = 256;
	cfg.max_packets = 100000000;
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	alone = good_time(w, 1, PAIR_SERVER_PORT);
	for (i = 0; i < 70000; i++) {
		assert_non_null(pair_rpc_start(w, 1, 1, 0, HOG_PORT, 1, 1, NULL));
		if (i % 16 == 0)
			pair_run_for(w, 20 * PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), cfg.params.max_backlog);
	assert_true(pair_metric(w, HOMA_M_drop_backlog) >=
		    70000 - cfg.params.max_backlog);
	beside = good_time(w, 1, PAIR_SERVER_PORT);
	abort_all(w, HOG_PORT);
	pair_run_for(w, PAIR_MS);
	/* All were told to forget, or ask: none stays. */
	pair_run_for(w, 20 * PAIR_S);
	assert_int_equal(server_rpcs(w), 0);
	pair_check(w, beside < 2 * alone, "%llu us instead of %llu us",
		   (unsigned long long)beside / 1000,
		   (unsigned long long)alone / 1000);
	pair_finish(w);
}

/* The same where each is delivered whole with its packet: none counts as taken. */
static void hog__requests_given_away(void **state)
{
	enum { BACKLOG = 500 };
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_sock *sock;
	u32 i, deaf;

	(void)state;
	pair_config_default(&cfg);
	cfg.deliver_whole = true;
	cfg.pool_pages = 256;
	cfg.params.max_backlog = BACKLOG;
	w = pair_world_new(&cfg);
	deaf = open_deaf(&w->hosts[0], HOG_PORT, NULL);
	sock = w->hosts[0].socks[deaf].sock;
	for (i = 0; i < 2 * BACKLOG; i++) {
		pair_rpc_start(w, 1, 1, 0, HOG_PORT, 1, 1, NULL);
		if (i % 16 == 0)
			pair_run_for(w, 20 * PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(w->delivered_whole, BACKLOG);
	assert_int_equal(server_rpcs(w), BACKLOG);
	assert_true(pair_metric(w, HOMA_M_drop_backlog) >= BACKLOG);
	good_time(w, 1, PAIR_SERVER_PORT);
	/* What the application has makes room for as many. */
	homa_sock_taken(sock, 100);
	pair_run_for(w, 2 * PAIR_S);
	assert_int_equal(server_rpcs(w), BACKLOG + 100);
	abort_all(w, HOG_PORT);
	pair_drain(w, 20 * PAIR_S);
	pair_finish(w);
}

/* Who aborts says so, once, and only of what the server can know. */
static void abort__tells_the_server(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	for (i = 0; i < 100; i++) {
		struct pair_rpc *rpc;

		rpc = pair_rpc_start(w, 1, 1, 0,
				     i % 2 ? HOG_PORT : PAIR_SERVER_PORT, 100,
				     100, NULL);
		rpc->no_reply = true;
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 100);
	for (i = 0; i < 100; i++)
		pair_rpc_abort(w, w->book[i], i % 3 ? 0 : 5);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 0);
	assert_int_equal(w->by_type[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST], 100);
	/* Nothing of it was sent yet. */
	pair_cut(w, 0, 1, true);
	for (i = 0; i < 20; i++)
		pair_rpc(w, 1, 0, 1000000, 1);
	for (i = 0; i < 20; i++)
		pair_rpc_abort(w, w->book[100 + i], 0);
	pair_run_for(w, PAIR_MS);
	assert_true(w->by_type[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST] < 120);
	pair_cut(w, 0, 1, false);
	pair_finish(w);
}

/* A socket's end is an abort of all that it has open. */
static void close__tells_the_server(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	for (i = 0; i < 100; i++)
		pair_rpc_start(w, 1, 1, 0, HOG_PORT, 100, 100, NULL);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 100);
	pair_sock_close(&w->hosts[1], 1, 8);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 0);
	pair_finish(w);
}

/* Clients that die without a word: what they asked for is forgotten, at a cost of few
 * packets. A living client's request stays, however long it is not taken. */
static void untaken__dead_clients(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u64 before;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 4;
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	for (i = 0; i < 900; i++)
		pair_rpc_start(w, (u8)(1 + i % 3), 1, 0, HOG_PORT, 1, 1, NULL);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 900);
	pair_host_stop(&w->hosts[1]); /* silent from now on */
	pair_restart(&w->hosts[2]);   /* answers, knows nothing */
	before = w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST];
	pair_run_for(w, 10 * PAIR_S);
	assert_int_equal(server_rpcs(w), 300);
	/* 16 questions per interval of 5 ms at most, of either side about 300 RPCs. */
	pair_check(w,
		   w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST] - before <
			   3 * 16 * 2000,
		   "%llu questions",
		   (unsigned long long)w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST] -
			   before);
	for (i = 2; i < 900; i += 3)
		assert_int_equal(w->book[i]->state, PAIR_PENDING);
	abort_all(w, HOG_PORT);
	pair_host_start(&w->hosts[1]);
	pair_finish(w);
}

/* The word of the abort is lost; the server asks, and the answer is enough. */
static void untaken__abort_was_lost(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	for (i = 0; i < 1000; i++)
		pair_rpc_start(w, 1, 1, 0, HOG_PORT, 1, 1, NULL);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(server_rpcs(w), 1000);
	pair_filter_add(w, HOMA_RPC_UNKNOWN, 1, 0, 0, 1000);
	abort_all(w, HOG_PORT);
	pair_run_for(w, 3 * PAIR_S);
	assert_int_equal(server_rpcs(w), 0);
	/* The other application of that host was never in doubt. */
	good_time(w, 1, PAIR_SERVER_PORT);
	pair_finish(w);
}

/*
 * One user has all the sockets that it likes, on both hosts. Its clients get half of the
 * room there is, its servers, which take nothing, a third; the other one goes on as before.
 */
static void hog__many_sockets(void **state)
{
	struct homa_owner bad[2] = { 0 }, good[2] = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, sock, more = 0, started = 0, my_client, left;
	u64 alone, beside;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	cfg.params.max_rpcs = 3000;
	w = pair_world_new(&cfg);
	open_for(&w->hosts[0], HOG_PORT + 9, &good[0]);
	my_client = open_for(&w->hosts[1], 0, &good[1]);
	sock = open_hog(w, bad);
	alone = good_time(w, (u8)my_client, HOG_PORT + 9);
	for (i = 0; i < 6000; i++) {
		more += pair_rpc_start(w, 2, 1, 0, (u16)(HOG_PORT + i % 4), 1,
				       1, NULL) != NULL;
		started += pair_rpc_start(w, 1, (u8)(sock - i / 4 % 4), 0,
					  (u16)(HOG_PORT + i % 4), 1, 1,
					  NULL) != NULL;
		pair_run_for(w, PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	/* Half of the room for one, and one more as each looks before it takes. */
	assert_int_equal(started, cfg.params.max_rpcs / 2 + 1);
	assert_int_equal(bad[1].rpcs, started);
	assert_int_equal(bad[1].client_rpcs, started);
	assert_int_equal(good[0].rpcs + good[1].rpcs, 0);
	assert_true(more > 1500);
	left = cfg.params.max_rpcs - server_rpcs(w);
	assert_int_equal(bad[0].rpcs, bad[0].backlog);
	assert_in_range(bad[0].rpcs, left / 2 - 2, left / 2 + 2);
	assert_true(pair_metric(w, HOMA_M_drop_owner_backlog) > 0);
	beside = good_time(w, (u8)my_client, HOG_PORT + 9);
	pair_check(w, beside < 2 * alone, "%llu us instead of %llu us",
		   (unsigned long long)beside / 1000,
		   (unsigned long long)alone / 1000);
	for (i = 0; i < 4; i++)
		abort_all(w, (u16)(HOG_PORT + i));
	pair_drain(w, 20 * PAIR_S);
	assert_int_equal(bad[0].rpcs + bad[1].rpcs + bad[1].client_rpcs, 0);
	pair_finish(w);
}

/*
 * Servers that take what comes and never answer: what they have is not a backlog any more,
 * and their owner gets half of the room.
 */
static void hog__taken_and_not_answered(void **state)
{
	struct homa_owner bad[2] = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, sock, left;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	cfg.params.max_rpcs = 3000;
	w = pair_world_new(&cfg);
	sock = open_hog(w, bad);
	for (i = 0; i < PAIR_MAX_SOCKS; i++) {
		w->hosts[0].socks[i].mute = w->hosts[0].socks[i].deaf;
		w->hosts[0].socks[i].deaf = false;
	}
	for (i = 0; i < 2500; i++) {
		pair_rpc_start(w, 2, 1, 0, (u16)(HOG_PORT + i % 4), 1, 1, NULL);
		pair_rpc_start(w, 1, (u8)sock, 0, (u16)(HOG_PORT + i % 4), 1, 1,
			       NULL);
		pair_run_for(w, PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(bad[0].backlog, 0);
	left = cfg.params.max_rpcs - server_rpcs(w);
	assert_in_range(bad[0].rpcs, left - 2, left + 2);
	assert_true(pair_metric(w, HOMA_M_drop_owner_limit) > 0);
	assert_int_equal(pair_metric(w, HOMA_M_drop_owner_backlog), 0);
	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (w->hosts[0].socks[i].mute)
			pair_sock_close(&w->hosts[0], i, 64);
	pair_drain(w, 20 * PAIR_S);
	assert_int_equal(bad[0].rpcs + bad[1].rpcs, 0);
	pair_finish(w);
}

/*
 * A user opens five servers that take nothing, each with room for all that its clients
 * send. What waits for them together is charged to him and has a limit of its own; another
 * user's server on that host works on. What his applications take makes room.
 */
static void hog__many_deaf_servers(void **state)
{
	enum { SERVERS = 5, LIMIT = 400, EACH = 160 };
	struct homa_owner bad = { 0 }, good = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u64 waiting = 0;
	u32 i, socks[SERVERS];

	(void)state;
	pair_config_default(&cfg);
	cfg.deliver_whole = true;
	cfg.params.max_owner_backlog = LIMIT;
	w = pair_world_new(&cfg);
	open_for(&w->hosts[0], HOG_PORT + 9, &good);
	for (i = 0; i < SERVERS; i++)
		socks[i] = open_deaf(&w->hosts[0], (u16)(HOG_PORT + i), &bad);
	for (i = 0; i < SERVERS * EACH; i++) {
		pair_rpc_start(w, 1, 1, 0, (u16)(HOG_PORT + i % SERVERS), 1, 1,
			       NULL);
		if (i % 16 == 0)
			pair_run_for(w, 20 * PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(bad.backlog, LIMIT);
	assert_int_equal(bad.rpcs, LIMIT);
	for (i = 0; i < SERVERS; i++)
		waiting += w->hosts[0].socks[socks[i]].sock->backlog;
	assert_int_equal(waiting, LIMIT);
	assert_true(pair_metric(w, HOMA_M_drop_owner_backlog) >=
		    SERVERS * EACH - LIMIT);
	assert_int_equal(pair_metric(w, HOMA_M_drop_backlog), 0);
	assert_int_equal(good.backlog, 0);
	good_time(w, 1, HOG_PORT + 9);
	/* Whichever of his applications takes some: as many come to any of them. */
	homa_sock_taken(w->hosts[0].socks[socks[0]].sock, 30);
	pair_run_for(w, 2 * PAIR_S);
	assert_int_equal(bad.backlog, LIMIT);
	assert_int_equal(bad.rpcs, LIMIT + 30);
	for (i = 0; i < SERVERS; i++)
		abort_all(w, (u16)(HOG_PORT + i));
	pair_drain(w, 20 * PAIR_S);
	assert_int_equal(bad.rpcs, 0);
	pair_finish(w);
}

/*
 * Two hosts alone, so that all of one user's RPCs are between the same two as another's
 * are. What the one may ask of the other is used up; he has many RPCs at once all the same.
 */
static void hog__others_of_the_same_peer(void **state)
{
	enum { AT_ONCE = 60 };
	struct homa_owner bad[2] = { 0 }, good[2] = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *mine[AT_ONCE];
	u32 i, sock, my_client;

	(void)state;
	pair_config_default(&cfg);
	cfg.params.max_rpcs = 3000;
	w = pair_world_new(&cfg);
	open_for(&w->hosts[0], HOG_PORT + 9, &good[0]);
	my_client = open_for(&w->hosts[1], 0, &good[1]);
	sock = open_hog(w, bad);
	for (i = 0; i < 4000; i++) {
		pair_rpc_start(w, 1, (u8)(sock - i / 4 % 4), 0,
			       (u16)(HOG_PORT + i % 4), 1, 1, NULL);
		pair_run_for(w, PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_in_range(bad[0].rpcs, 999, 1001);
	for (i = 0; i < AT_ONCE; i++) {
		mine[i] = pair_rpc_start(w, 1, (u8)my_client, 0, HOG_PORT + 9,
					 100, 100, NULL);
		assert_non_null(mine[i]);
	}
	pair_run_for(w, 10 * PAIR_MS);
	for (i = 0; i < AT_ONCE; i++)
		assert_int_equal(mine[i]->state, PAIR_OK);
	assert_int_equal(pair_metric(w, HOMA_M_drop_peer_limit), 0);
	for (i = 0; i < 4; i++)
		abort_all(w, (u16)(HOG_PORT + i));
	pair_finish(w);
}

/* Two greedy ones have a third each, and leave a third. */
static void hog__two_of_them(void **state)
{
	struct homa_owner owner[3] = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, socks[3];

	(void)state;
	pair_config_default(&cfg);
	cfg.params.max_rpcs = 3000;
	w = pair_world_new(&cfg);
	for (i = 0; i < 3; i++)
		socks[i] = open_for(&w->hosts[1], 0, &owner[i]);
	pair_cut(w, 0, 1, true);
	for (i = 0; i < 4000; i++)
		pair_rpc_start(w, 1, (u8)socks[i % 2], 0, PAIR_SERVER_PORT, 1,
			       1, NULL);
	assert_in_range(owner[0].rpcs, 1000, 1001);
	assert_in_range(owner[1].rpcs, 1000, 1001);
	for (i = 0; i < 400; i++)
		assert_non_null(pair_rpc_start(w, 1, (u8)socks[2], 0,
					       PAIR_SERVER_PORT, 1, 1, NULL));
	assert_null(pair_rpc_start(w, 1, (u8)socks[0], 0, PAIR_SERVER_PORT, 1,
				   1, NULL));
	pair_cut(w, 0, 1, false);
	abort_all(w, PAIR_SERVER_PORT);
	pair_finish(w);
}

/* Responses to one user do not depend on what another one waits for. */
static void incast__idle_requests_of_another(void **state)
{
	struct homa_owner idle = { 0 }, owner = { 0 };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i, idler, client;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	open_deaf(&w->hosts[0], HOG_PORT, NULL);
	idler = open_for(&w->hosts[1], 0, &idle);
	client = open_for(&w->hosts[1], 0, &owner);
	for (i = 0; i < cfg.params.incast_rpcs; i++)
		pair_rpc_start(w, 1, (u8)idler, 0, HOG_PORT, 1, 1, NULL);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(pair_metric(w, HOMA_M_incast_marked), 0);
	rpc = pair_rpc_start(w, 1, (u8)idler, 0, PAIR_SERVER_PORT, 1, 20000,
			     NULL);
	pair_run_for(w, 10 * PAIR_MS);
	assert_int_equal(rpc->state, PAIR_OK);
	assert_int_equal(pair_metric(w, HOMA_M_incast_marked), 1);
	assert_int_equal(pair_metric(w, HOMA_M_incast_limited), 1);
	rpc = pair_rpc_start(w, 1, (u8)client, 0, PAIR_SERVER_PORT, 1, 20000,
			     NULL);
	pair_run_for(w, 10 * PAIR_MS);
	assert_int_equal(rpc->state, PAIR_OK);
	assert_int_equal(pair_metric(w, HOMA_M_incast_marked), 1);
	abort_all(w, HOG_PORT);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hog__one_deaf_server),
		cmocka_unit_test(hog__requests_given_away),
		cmocka_unit_test(hog__many_sockets),
		cmocka_unit_test(hog__taken_and_not_answered),
		cmocka_unit_test(hog__many_deaf_servers),
		cmocka_unit_test(hog__others_of_the_same_peer),
		cmocka_unit_test(hog__two_of_them),
		cmocka_unit_test(abort__tells_the_server),
		cmocka_unit_test(close__tells_the_server),
		cmocka_unit_test(untaken__dead_clients),
		cmocka_unit_test(untaken__abort_was_lost),
		cmocka_unit_test(incast__idle_requests_of_another),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
