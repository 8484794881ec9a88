/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages that are the application's with their one packet (homa_sock_deliver_whole()):
 * which ones are, that nothing else changes, and what duplicates, silence and a
 * socket that ends do to them.
 */
#include "pair_test.h"

#include "homa_look.h"

static struct pair_world *world(bool deliver_whole)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.deliver_whole = deliver_whole;
	return pair_world_new(&cfg);
}

static u64 metric(struct pair_world *w, enum homa_metric m)
{
	return w->hosts[0].ctx.metrics[m] + w->hosts[1].ctx.metrics[m];
}

static void whole__only_what_is_whole_in_one_packet(void **state)
{
	static const struct {
		u32 request, response, given;
	} cases[] = {
		{ 1, 1, 2 },	   { 100, 100, 2 },	{ 100, 20000, 1 },
		{ 20000, 100, 1 }, { 70000, 70000, 0 },
	};
	struct pair_world *w = world(true);
	u32 i, before;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair_rpc *r;

		before = w->delivered_whole;
		r = pair_rpc(w, 0, 1, cases[i].request, cases[i].response);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(w->delivered_whole - before, cases[i].given);
	}
	pair_finish(w);
}

/* The wire cannot tell, nor can the counters. */
static void whole__is_not_seen_from_outside(void **state)
{
	static const enum homa_metric same[] = {
		HOMA_M_rx_packets,	HOMA_M_tx_data,
		HOMA_M_rx_fresh_bytes,	HOMA_M_requests_received,
		HOMA_M_responses_taken, HOMA_M_rx_ack,
		HOMA_M_rx_duplicates,	HOMA_M_tx_resend,
	};
	u64 found[2][sizeof(same) / sizeof(same[0])];
	u32 on, i;

	(void)state;
	for (on = 0; on < 2; on++) {
		struct pair_world *w = world(on);

		for (i = 0; i < 50; i++) {
			pair_rpc(w, i & 1, !(i & 1), 1 + i * 100, 1 + i * 70);
			pair_run_for(w, 3 * PAIR_US);
		}
		assert_true(pair_run_while_pending(w, PAIR_S));
		for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
			found[on][i] = metric(w, same[i]);
		assert_int_equal(w->delivered_whole != 0, on);
		pair_finish(w);
	}
	assert_memory_equal(found[0], found[1], sizeof(found[0]));
}

static void whole__a_duplicate_is_not_executed(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.deliver_whole = true;
	cfg.faults.dup = 1000;
	cfg.faults.dup_max_ns = 5 * PAIR_MS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 200; i++)
		pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_run_for(w, 20 * PAIR_MS);
	/* The book would have failed a second execution. */
	assert_int_equal(w->delivered_whole, 400);
	assert_true(metric(w, HOMA_M_rx_duplicates) +
			    metric(w, HOMA_M_drop_tombstone) >
		    0);
	pair_finish(w);
}

/* START_MSG, or DATA with @payload bytes, of a request of @length bytes from host 1. */
static void arrive(struct pair_world *w, u8 type, u64 id, u32 length, u32 payload)
{
	struct homa_packet p = { .hdr = { .type = type,
					  .sport = 40000,
					  .dport = PAIR_SERVER_PORT,
					  .sender_id = id } };
	u8 hdr[HOMA_MAX_HDR];
	struct pair_pkt *pkt;
	u32 len;

	if (type == HOMA_DATA)
		p.data = (struct homa_data){ .length = length, .incoming = 10000 };
	else
		p.start.length = length;
	len = homa_packet_encode(hdr, &p);
	pkt = pair_pkt_new(1, 0, 0, len + payload);
	memcpy(pkt->data, hdr, len);
	pair_net_deliver(w, pkt);
}

/*
 * Announced messages wait for grants, in a heap of the grant scheduler; then each
 * comes whole, as one packet that a NIC put together. All are taken out of that heap
 * and of no other: what begins afterwards still waits for grants, and for pages.
 */
static void announced(bool longest_first)
{
	enum { MESSAGES = 20 };
	struct homa_link_state state;
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.deliver_whole = true;
	cfg.pool_pages = 2 * MESSAGES;
	cfg.params.max_incoming = 1;
	w = pair_world_new(&cfg);
	w->corrupting = true; /* requests that no application sent */
	/* As long as bytes of this one are on their way, nobody is granted more. */
	arrive(w, HOMA_DATA, 2, 1000000, 1000);
	for (i = 0; i < MESSAGES; i++)
		arrive(w, HOMA_START_MSG, 1000 + 2 * i, 20000 + i, 0);
	pair_run_for(w, PAIR_US);
	homa_link_state(&w->hosts[0].ctx, w->hosts[0].link, &state);
	assert_true(state.waiting > MESSAGES / 2);
	for (i = 0; i < MESSAGES; i++) {
		u32 n = longest_first ? MESSAGES - 1 - i :
					(i + state.granting) % MESSAGES;

		arrive(w, HOMA_DATA, 1000 + 2 * n, 20000 + n, 20000 + n);
		pair_run_for(w, PAIR_US);
	}
	assert_int_equal(w->delivered_whole, MESSAGES);
	homa_link_state(&w->hosts[0].ctx, w->hosts[0].link, &state);
	assert_int_equal(state.granting + state.waiting, 1);
	pair_finish(w);
}

static void whole__an_announced_message_leaves_the_grant_scheduler(void **state)
{
	(void)state;
	announced(true);
	announced(false);
}

/* A request that is served and never answered keeps nothing running. */
static void whole__no_timer_for_a_request_in_service(void **state)
{
	struct pair_world *w = world(true);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 100, 100);

	(void)state;
	r->no_reply = true;
	pair_run_for(w, 20 * PAIR_US);
	assert_int_equal(r->executed, 1);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(w->hosts[1].ctx.metrics[HOMA_M_tx_resend], 0);
	pair_rpc_forget(w, r);
	pair_finish(w);
}

static void
whole__private_rpcs_and_switched_off_sockets_take_the_usual_way(void **state)
{
	struct pair_world *w = world(true);
	struct pair_rpc *r;

	(void)state;
	homa_sock_deliver_whole(w->hosts[1].socks[0].sock, false);
	r = pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(w->delivered_whole, 1); /* the response */
	homa_sock_deliver_whole(w->hosts[1].socks[0].sock, true);
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(w->delivered_whole, 3);
	pair_finish(w);
}

static void whole__private_rpcs_too_where_the_host_wants_them(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 2;
	cfg.deliver_whole = true;
	cfg.private_rpcs = true;
	w = pair_world_new(&cfg);
	r = pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(w->delivered_whole,
			 1); /* the request, which is nobody's own */
	homa_sock_deliver_whole(w->hosts[0].socks[r->client_sock].sock,
				HOMA_WHOLE_ALL);
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(w->delivered_whole, 3);
	pair_finish(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole__only_what_is_whole_in_one_packet),
		cmocka_unit_test(whole__is_not_seen_from_outside),
		cmocka_unit_test(whole__a_duplicate_is_not_executed),
		cmocka_unit_test(
			whole__an_announced_message_leaves_the_grant_scheduler),
		cmocka_unit_test(whole__no_timer_for_a_request_in_service),
		cmocka_unit_test(
			whole__private_rpcs_and_switched_off_sockets_take_the_usual_way),
		cmocka_unit_test(whole__private_rpcs_too_where_the_host_wants_them),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
