/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_look.c: what tools see of RPCs and peers is what is there,
 * whatever the size of a helping, and looking changes nothing.
 */
#include "pair_test.h"

#include "homa_look.h"

#define HOSTS 5
#define MAX_RPCS 600

static struct pair_world *world(u32 buckets, u32 shards)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.hosts = HOSTS;
	cfg.buckets = buckets;
	cfg.shards = shards;
	return pair_world_new(&cfg);
}

static struct homa_ctx *ctx_of(struct pair_world *w, u32 host)
{
	w->hosts[host].ctx.now = w->now;
	return &w->hosts[host].ctx;
}

/* All RPCs of a host, @max at a time. */
static u32 all_rpcs(struct pair_world *w, u32 host, const struct homa_sock *sock,
		    u32 max, struct homa_rpc_look *out)
{
	struct homa_look_cursor at = { 0 };
	u32 n = 0, calls = 0;

	while (!at.end) {
		u32 got =
			homa_rpcs_look(ctx_of(w, host), &at, sock, out + n, max);

		assert_true(got <= max);
		n += got;
		assert_true(n + max <= MAX_RPCS);
		assert_true(++calls < 100000);
	}
	return n;
}

static void look__an_rpc_on_its_way(void **state)
{
	struct pair_world *w = world(64, 2);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 1000000, 1000);
	struct homa_rpc_look look, before;
	struct homa_rpc_look at_server[MAX_RPCS];

	(void)state;
	assert_int_equal(homa_rpc_look(ctx_of(w, 0), r->handle, &before), 0);
	assert_true(before.client);
	assert_int_equal(before.phase, HOMA_LOOK_OUTGOING);
	assert_int_equal(before.tx_length, 1000000);
	assert_int_equal(before.rx_length, 0);
	assert_int_equal(before.peer_port, PAIR_SERVER_PORT);
	assert_int_equal(before.port, r->client_port);
	assert_true(homa_addr_equal(&before.peer, &w->hosts[1].addr));
	assert_true(before.cookie == r->cookie);
	assert_true(before.tx_granted > 0 && before.tx_granted < 1000000);

	pair_run_for(w, 400 * PAIR_US);
	assert_int_equal(homa_rpc_look(ctx_of(w, 0), r->handle, &look), 0);
	assert_true(look.tx_sent > before.tx_sent && look.tx_sent < 1000000);
	assert_true(look.tx_granted > before.tx_granted);
	assert_true(look.tx_sent <= look.tx_granted);

	assert_int_equal(all_rpcs(w, 1, NULL, 8, at_server), 1);
	assert_false(at_server[0].client);
	assert_int_equal(at_server[0].phase, HOMA_LOOK_INCOMING);
	assert_int_equal(at_server[0].rx_length, 1000000);
	assert_true(at_server[0].rx_received > 0);
	assert_true(at_server[0].rx_received <= look.tx_sent);
	assert_int_equal(at_server[0].rx_gaps, 0);
	assert_int_equal(at_server[0].rx_gap_bytes, 0);
	assert_false(at_server[0].is_private);
	assert_true(at_server[0].rx_granted >= look.tx_granted);
	assert_int_equal(at_server[0].port, PAIR_SERVER_PORT);
	assert_true(at_server[0].handle.id == (look.handle.id ^ 1));

	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(homa_rpc_look(ctx_of(w, 0), r->handle, &look),
			 -HOMA_EINVAL);
	pair_finish(w);
}

/* It never had ranges: nothing is missing between them. */
static void look__a_message_that_was_given_away(void **state)
{
	struct homa_rpc_look look[MAX_RPCS];
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.deliver_whole = true;
	w = pair_world_new(&cfg);
	r = pair_rpc(w, 0, 1, 100, 100);
	r->reply_delay = PAIR_MS;
	r->reply_delay_set = true;
	pair_run_for(w, 500 * PAIR_US);
	assert_int_equal(w->delivered_whole, 1);
	assert_int_equal(all_rpcs(w, 1, NULL, 8, look), 1);
	assert_int_equal(look[0].rx_received, 100);
	assert_int_equal(look[0].rx_gap_bytes, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

static void look__stale_handle(void **state)
{
	struct pair_world *w = world(64, 1);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 100000, 1);
	struct homa_handle stale = r->handle;
	struct homa_rpc_look look;

	(void)state;
	stale.generation++;
	assert_int_equal(homa_rpc_look(ctx_of(w, 0), stale, &look), -HOMA_EINVAL);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Each RPC once, also where many share a bucket and a helping is small. */
static void look_all__each_once(void **state)
{
	static const u32 helpings[] = { 1, 3, 64 };
	struct homa_rpc_look found[MAX_RPCS];
	u32 buckets, h, i, j;

	(void)state;
	for (buckets = 1; buckets <= 64; buckets *= 8) {
		struct pair_world *w = world(buckets, 4);

		for (i = 0; i < 100; i++)
			pair_rpc(w, 0, 1 + i % (HOSTS - 1), 500000, 1);
		pair_run_for(w, 100 * PAIR_US);
		for (h = 0; h < HOMA_ARRAY_SIZE(helpings); h++) {
			struct homa_counts counts;
			u32 n = all_rpcs(w, 0, NULL, helpings[h], found);

			homa_engine_counts(w->hosts[0].engine, &counts);
			assert_int_equal(n, counts.rpcs);
			assert_int_equal(n, 100);
			for (i = 0; i < n; i++)
				for (j = 0; j < i; j++)
					assert_true(found[i].handle.id !=
						    found[j].handle.id);
		}
		assert_true(pair_run_while_pending(w, 10 * PAIR_S));
		pair_finish(w);
	}
}

static void look_all__of_a_socket(void **state)
{
	struct pair_world *w = world(64, 2);
	struct homa_rpc_look found[MAX_RPCS];
	struct pair_rpc *r = NULL;
	u32 i, n;

	(void)state;
	for (i = 0; i < 10; i++)
		r = pair_rpc(w, 0, 1, 300000, 1);
	for (i = 0; i < 7; i++)
		pair_rpc(w, 1, 0, 300000, 1);
	pair_run_for(w, 50 * PAIR_US);
	n = all_rpcs(w, 0, w->hosts[0].socks[r->client_sock].sock, 4, found);
	assert_true(n >= 10);
	for (i = 0; i < n; i++)
		assert_ptr_equal(found[i].sock,
				 w->hosts[0].socks[r->client_sock].sock);
	n = all_rpcs(w, 0, (void *)w, 4, found);
	assert_int_equal(n, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

static void look_peers__all(void **state)
{
	struct pair_world *w = world(64, 1);
	struct homa_peer_look found[HOSTS];
	struct homa_look_cursor at = { 0 };
	u32 i, n = 0, calls = 0;

	(void)state;
	for (i = 1; i < HOSTS; i++) {
		pair_rpc(w, 0, (u8)i, 500000, 1);
		pair_rpc(w, (u8)i, 0, 500000, 1);
	}
	pair_run_for(w, 100 * PAIR_US);
	while (!at.end) {
		n += homa_peers_look(ctx_of(w, 0), &at, found + n, 1);
		assert_true(n < HOSTS);
		assert_true(++calls < 10000);
	}
	assert_int_equal(n, HOSTS - 1);
	for (i = 0; i < n; i++) {
		assert_ptr_equal(found[i].link, w->hosts[0].link);
		assert_int_equal(found[i].rpcs, 2);
		assert_int_equal(found[i].server_rpcs, 1);
		assert_true(found[i].seg_size > 1000);
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Whoever looks may have read the clock before another thread had to do with the peer. */
static void look_peers__with_an_older_clock(void **state)
{
	struct pair_world *w = world(64, 1);
	struct homa_look_cursor at = { 0 };
	struct homa_peer_look found = { 0 };
	struct homa_ctx *ctx = ctx_of(w, 0);

	(void)state;
	pair_rpc(w, 0, 1, 500000, 1);
	pair_run_for(w, 100 * PAIR_US);
	ctx->now -= 3000000;
	while (!at.end && !homa_peers_look(ctx, &at, &found, 1))
		;
	ctx->now += 3000000;
	assert_ptr_equal(found.link, w->hosts[0].link);
	assert_int_equal(found.idle_ms, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__an_rpc_on_its_way),
		cmocka_unit_test(look__a_message_that_was_given_away),
		cmocka_unit_test(look__stale_handle),
		cmocka_unit_test(look_all__each_once),
		cmocka_unit_test(look_all__of_a_socket),
		cmocka_unit_test(look_peers__all),
		cmocka_unit_test(look_peers__with_an_older_clock),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
