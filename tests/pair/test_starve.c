/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Receive pages and who may have them: strangers that begin messages and never
 * go on, short messages beside long ones, clients that vanish, and those that
 * say BUSY for ever.
 */
#include "pair_test.h"

/* no host; its address is whoever's we want */
#define STRANGER (PAIR_MAX_HOSTS - 1)
#define TIMEOUT_NS (100 * PAIR_MS)
#define MEGABYTE 1000000u

static struct pair_config config(void)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.params.timeout_us = (u32)(TIMEOUT_NS / PAIR_US);
	return cfg;
}

/* A packet to host 0's server from address number @from, which is no host's. */
static void forge(struct pair_world *w, u32 from, const struct homa_packet *p,
		  u32 payload)
{
	struct homa_addr *addr = &w->hosts[STRANGER].addr;
	u8 hdr[HOMA_MAX_HDR];
	struct pair_pkt *pkt;
	u32 len;

	*addr = w->hosts[0].addr;
	addr->ip[12] = 11;
	addr->ip[13] = (u8)(from >> 16);
	addr->ip[14] = (u8)(from >> 8);
	addr->ip[15] = (u8)from;
	w->strangers = true;
	len = homa_packet_encode(hdr, p);
	pkt = pair_pkt_new(STRANGER, 0, 0, len + payload);
	memcpy(pkt->data, hdr, len);
	pair_net_deliver(w, pkt);
}

static struct homa_packet packet(u8 type, u64 id)
{
	return (struct homa_packet){ .hdr = { .type = type,
					      .sport = 40000,
					      .dport = PAIR_SERVER_PORT,
					      .sender_id = id } };
}

/* @payload bytes of a request of @length, from its @offset. */
static void forge_data(struct pair_world *w, u32 from, u64 id, u32 length,
		       u32 offset, u32 payload)
{
	struct homa_packet p = packet(HOMA_DATA, id);

	p.data = (struct homa_data){ .length = length,
				     .incoming = length,
				     .offset = offset };
	forge(w, from, &p, payload);
}

static u32 rpcs(struct pair_world *w, u32 host)
{
	struct homa_counts counts;

	homa_engine_counts(w->hosts[host].engine, &counts);
	return counts.rpcs;
}

/* ---- newcomers ---- */

/* A message that needs more than there is keeps nobody from what there is. */
static void newcomer__takes_what_is_free(void **state)
{
	struct pair_config cfg = config();
	struct pair_rpc *slow, *longer, *small;
	struct pair_world *w;
	u32 i;

	(void)state;
	cfg.hosts = 4;
	cfg.pool_pages = 4;
	cfg.release_delay_ns = 10 * PAIR_S;
	w = pair_world_new(&cfg);
	slow = pair_rpc(w, 1, 0, HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, 10 * PAIR_MS);
	assert_int_equal(slow->executed, 1);
	longer = pair_rpc(w, 2, 0, 4 * HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, 10 * PAIR_MS);
	/* Often enough to miss all timers that would repair it. */
	for (i = 0; i < 20; i++) {
		small = pair_rpc(w, 3, 0, 100, 1);
		pair_run_for(w, 100 * PAIR_US);
		assert_int_equal(small->executed, 1);
		assert_int_equal(longer->executed, 0);
		pair_run_for(w, 613 * PAIR_US);
	}
	assert_true(pair_run_while_pending(w, 30 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 22);
	pair_run_for(w, cfg.release_delay_ns);
	pair_finish(w);
}

/*
 * The same when its own peer holds most pages for a long message: what is here in one
 * packet keeps no page from anybody while it is incomplete. The explorer found that.
 */
static void newcomer__of_a_peer_with_a_long_message(void **state)
{
	struct pair_config cfg = config();
	struct pair_filter *filter;
	struct pair_rpc *small;
	struct pair_world *w;

	(void)state;
	cfg.pool_pages = 4;
	w = pair_world_new(&cfg);
	filter = pair_filter_add(w, HOMA_DATA, 1, 0, 1, 1000);
	pair_rpc(w, 1, 0, 3 * HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, 100 * PAIR_US);
	filter->count = 0;
	forge_data(w, 9, 2, 2 * HOMA_BPAGE_SIZE, 0, 1400);
	small = pair_rpc(w, 1, 0, 100, 1);
	pair_run_for(w, 100 * PAIR_US);
	assert_int_equal(small->executed, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 2);
	pair_run_for(w, 3 * TIMEOUT_NS);
	pair_finish(w);
}

/* ---- how long anything waits ---- */

/* More first packets than there are pages, from addresses that never answer. */
static void silent__requests_are_forgotten_in_time(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 i, most;

	(void)state;
	w = pair_world_new(&cfg);
	for (i = 0; i < 20000; i++) {
		forge_data(w, i % 5000, 2 + 2 * i, MEGABYTE, 0, 1400);
		if (i % 200 == 199)
			pair_run_for(w, PAIR_MS);
	}
	most = rpcs(w, 0);
	pair_run_for(w, 2 * TIMEOUT_NS);
	pair_check(w, most > 10000 && !rpcs(w, 0), "%u of %u are left",
		   rpcs(w, 0), most);
	pair_finish(w);
}

/* The same address goes on with other packets: that keeps nothing alive either. */
static void silent__requests_of_a_peer_that_speaks(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 i;

	(void)state;
	w = pair_world_new(&cfg);
	for (i = 0; i < 100; i++)
		forge_data(w, 7, 2 + 2 * i, MEGABYTE, 0, 1400);
	for (i = 0; i < 10 * TIMEOUT_NS / PAIR_MS; i++) {
		forge_data(w, 7, 1000 + 2 * i, 100, 0, 50);
		pair_run_for(w, PAIR_MS);
	}
	assert_true(rpcs(w, 0) < 5 * TIMEOUT_NS / PAIR_MS);
	pair_run_for(w, 2 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
}

/* A client that lives and sends nothing new, for ever. */
static void stalled(u8 type)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	struct homa_packet p;
	u32 i;

	w = pair_world_new(&cfg);
	forge_data(w, 1, 2, MEGABYTE, 0, 1400);
	p = packet(type, 2);
	if (type == HOMA_DATA)
		p.data = (struct homa_data){ .length = MEGABYTE };
	if (type == HOMA_START_MSG)
		p.start.length = MEGABYTE;
	for (i = 0; i < 100; i++) {
		pair_run_for(w, TIMEOUT_NS / 10);
		/* The one that it sends when ours is gone is another's. */
		if (!rpcs(w, 0))
			break;
		forge(w, 1, &p, type == HOMA_DATA ? 1400 : 0);
	}
	pair_check(w, i > 15 && i < 60, "type %x: alive for %u0 ms", type, i);
	pair_finish(w);
}

static void stalled__requests_end(void **state)
{
	(void)state;
	stalled(HOMA_BUSY);
	stalled(HOMA_DATA);
	stalled(HOMA_START_MSG);
}

/* An application that takes its time costs its clients nothing but that time. */
static void starving__outlives_a_slow_application(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 i;

	(void)state;
	cfg.hosts = 3;
	cfg.pool_pages = 5;
	cfg.release_delay_ns = 30 * TIMEOUT_NS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 12; i++)
		pair_rpc(w, (u8)(1 + i % 2), 0, i < 6 ? 200000 : 100,
			 i < 6 ? 100 : 200000);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 12);
	pair_run_for(w, cfg.release_delay_ns);
	pair_finish(w);
}

/* One starving response at host 1, whose application gives pages back late. */
static struct pair_world *starving_response(void)
{
	struct pair_config cfg = config();
	struct pair_world *w;

	cfg.pool_pages = 3;
	cfg.release_delay_ns = 40 * TIMEOUT_NS;
	w = pair_world_new(&cfg);
	pair_rpc(w, 1, 0, 100, 190000);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_rpc(w, 1, 0, 100, 190000);
	pair_run_for(w, 5 * TIMEOUT_NS);
	assert_int_equal(w->book[1]->executed, 1);
	assert_int_equal(w->book[1]->state, PAIR_PENDING);
	return w;
}

static void starving__response_is_not_given_up(void **state)
{
	struct pair_world *w = starving_response();

	(void)state;
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	assert_int_equal(w->book[1]->state, PAIR_OK);
	pair_run_for(w, 40 * TIMEOUT_NS);
	pair_finish(w);
}

/* Its server dies meanwhile: known long before there is room for the response. */
static void starving__response_of_a_server_that_vanished(void **state)
{
	struct pair_world *w = starving_response();
	u64 gone = w->now;

	(void)state;
	pair_host_stop(&w->hosts[0]);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	assert_int_equal(w->book[1]->error, HOMA_ETIMEDOUT);
	pair_check(w, w->now < gone + 3 * TIMEOUT_NS, "known after %llu ms",
		   (unsigned long long)(w->now - gone) / PAIR_MS);
	pair_finish(w);
}

/* ---- pages as bytes arrive, and giving back ---- */

static u32 pages_free(struct pair_world *w)
{
	return (u32)(homa_pool_avail(w->hosts[0].socks[0].sock) / HOMA_BPAGE_SIZE);
}

static void pages__are_taken_as_bytes_arrive(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 i;

	(void)state;
	w = pair_world_new(&cfg);
	forge_data(w, 1, 2, MEGABYTE, 0, 1400);
	assert_int_equal(pages_free(w), 63);
	/* Across a border, and a part out of turn. */
	forge_data(w, 1, 2, MEGABYTE, HOMA_BPAGE_SIZE - 700, 1400);
	assert_int_equal(pages_free(w), 62);
	forge_data(w, 1, 2, MEGABYTE, 9 * HOMA_BPAGE_SIZE, 1400);
	assert_int_equal(pages_free(w), 61);
	/* The last part is a slice. */
	forge_data(w, 1, 2, MEGABYTE, MEGABYTE - 100, 100);
	forge_data(w, 2, 2, 50000, 0, 1400);
	forge_data(w, 3, 2, 40000, 0, 100);
	for (i = 0; i < PAIR_MAX_HOSTS - 1 && i < w->cfg.hosts; i++)
		pair_check_pages(&w->hosts[i], true);
	assert_true(pages_free(w) >= 58);
	pair_run_for(w, 2 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
}

/*
 * A message that was promised its pages waits for the second of two, and more of its
 * first part comes meanwhile; another one, longer than what is left of it, waits for
 * two. When two pages are free again the first goes on: that it waits behind the other
 * and the other for its promise was seen for ever.
 */
static void pages__go_to_who_was_promised_them(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 at;

	(void)state;
	cfg.pool_pages = 3;
	cfg.release_delay_ns = TIMEOUT_NS / 4;
	w = pair_world_new(&cfg);
	pair_rpc(w, 1, 0, HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, PAIR_MS);
	forge_data(w, 1, 2, 112991, 0, 1400);
	pair_rpc(w, 1, 0, HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, PAIR_MS);
	assert_int_equal(pages_free(w), 0);
	forge_data(w, 1, 2, 112991, HOMA_BPAGE_SIZE, 1400);
	for (at = 1400; at < 64000; at += 1400)
		forge_data(w, 1, 2, 112991, at, 1400);
	forge_data(w, 2, 2, 70000, 0, 1400);
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_tx_resend), 0);
	pair_run_for(w, cfg.release_delay_ns + 5 * PAIR_MS);
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_tx_resend) > 0);
	pair_run_for(w, 3 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
}

/*
 * The same with two that lack as much as each other: the older one waits for pages that
 * the younger one holds. It had given its own back before, and is first in the queue;
 * the younger one has to let it pass.
 */
static void pages__of_two_that_lack_the_same(void **state)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u64 before;
	u32 at;

	(void)state;
	cfg.pool_pages = 3;
	cfg.release_delay_ns = TIMEOUT_NS / 4;
	w = pair_world_new(&cfg);
	forge_data(w, 2, 2, 70000, 0, 1400);
	pair_rpc(w, 1, 0, HOMA_BPAGE_SIZE, 1);
	pair_rpc(w, 1, 0, HOMA_BPAGE_SIZE, 1);
	pair_run_for(w, 3 * PAIR_MS);
	forge_data(w, 3, 2, 190000, 0, 1400); /* has the silent one looked at */
	pair_run_for(w, PAIR_US);
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_buffers_given_back),
			 1);
	forge_data(w, 1, 2, 112800, 0, 1400);
	for (at = 1400; at < 42000; at += 1400)
		forge_data(w, 1, 2, 112800, at, 1400);
	forge_data(w, 1, 2, 112800, 42000, 800);
	forge_data(w, 1, 2, 112800, HOMA_BPAGE_SIZE, 1400);
	assert_int_equal(pages_free(w), 0);
	forge_data(w, 2, 2, 70000, 0, 1400);
	before = pair_host_metric(&w->hosts[0], HOMA_M_tx_resend);
	pair_run_for(w, cfg.release_delay_ns + 10 * PAIR_MS);
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_tx_resend) > before);
	pair_run_for(w, 3 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
}

/*
 * Strangers begin @per_second messages of @length, each from another address; host
 * 1 and 2 ask for what they always ask, one request at a time. Returns the longest
 * that one of their RPCs took; in @done how many.
 */
static u64 beside_strangers(u32 per_second, u32 length, u32 request, u32 *done)
{
	struct pair_config cfg = config();
	struct pair_rpc *rpc[2] = { NULL, NULL };
	struct pair_world *w;
	u64 began, worst = 0;
	u32 i, id = 2, began_by_them = 0;

	cfg.hosts = 3;
	w = pair_world_new(&cfg);
	began = w->now;
	*done = 0;
	while (w->now < began + 100 * PAIR_MS) {
		for (i = 0; i < 2; i++) {
			if (rpc[i] && rpc[i]->state == PAIR_PENDING)
				continue;
			if (rpc[i]) {
				u64 took = rpc[i]->end - rpc[i]->start;

				assert_int_equal(rpc[i]->state, PAIR_OK);
				worst = took > worst ? took : worst;
				++*done;
			}
			rpc[i] = pair_rpc(w, (u8)(1 + i), 0, request, 100);
		}
		while (began_by_them < (w->now - began) * per_second / PAIR_S) {
			forge_data(w, 1 + began_by_them++ % 7777, id += 2,
				   length, 0, 1400);
			pair_check_pages(&w->hosts[0], true);
		}
		pair_run_for(w, 20 * PAIR_US);
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_run_for(w, 2 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
	return worst;
}

/* @slower: how much longer the slowest RPC may take than without them, ns. */
static void strangers(u32 per_second, u32 length, u32 request, u64 slower)
{
	u32 before, done;
	u64 alone = beside_strangers(0, length, request, &before);
	u64 worst = beside_strangers(per_second, length, request, &done);

	if (getenv("PAIR_PRINT") || done < before * 9 / 10 ||
	    worst > alone + slower)
		fprintf(stderr,
			"%u x %u B/s beside requests of %u B: %u of %u, slowest %llu of %llu us\n",
			per_second, length, request, done, before,
			(unsigned long long)worst / 1000,
			(unsigned long long)alone / 1000);
	assert_true(done >= before * 9 / 10);
	assert_true(worst <= alone + slower);
}

static void strangers__starve_nobody(void **state)
{
	(void)state;
	strangers(100, MEGABYTE, 100, 20 * PAIR_US);
	strangers(100, MEGABYTE, 10000, 20 * PAIR_US);
	strangers(5000, MEGABYTE, 10000, 20 * PAIR_US);
	strangers(5000, 60000, 10000, 20 * PAIR_US);
}

/* Long messages wait until it is clear that some that are as long go no further. */
static void strangers__stop_long_messages_for_a_moment(void **state)
{
	(void)state;
	strangers(100, MEGABYTE, 300000, 5 * PAIR_MS);
	strangers(1000, MEGABYTE, 300000, 5 * PAIR_MS);
}

/*
 * One address has messages of @length with us and sends a little of each every two
 * milliseconds: none is silent, and together they would hold nearly all pages.
 * Returns the longest that one of host 1's requests of 300 KB took meanwhile, ns.
 */
static u64 beside_trickle(u32 messages, u32 length)
{
	struct pair_config cfg = config();
	u64 began, worst = 0;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 at, i;

	w = pair_world_new(&cfg);
	for (at = 0; at < 8; at++)
		for (i = 0; i < messages; i++)
			forge_data(w, 9, 2 + 2 * i, length, at * 1400, 1400);
	began = w->now;
	for (at = 0; w->now < began + 200 * PAIR_MS; at++) {
		rpc = pair_rpc(w, 1, 0, 300000, 100);
		do {
			for (i = (u32)(w->now / PAIR_MS) % 2; i < messages; i += 2)
				forge_data(w, 9, 2 + 2 * i, length,
					   11200 + at * 100, 100);
			pair_run_for(w, PAIR_MS);
			at++;
		} while (rpc->state == PAIR_PENDING);
		assert_int_equal(rpc->state, PAIR_OK);
		worst = rpc->end - rpc->start > worst ? rpc->end - rpc->start :
							worst;
	}
	pair_run_for(w, 5 * TIMEOUT_NS);
	assert_int_equal(rpcs(w, 0), 0);
	pair_finish(w);
	return worst;
}

/* A peer's messages get pages before those of one that holds a quarter of them. */
static void strangers__that_trickle_have_their_share(void **state)
{
	static const u32 lengths[] = { 60000, 65537, 130000, 200000, MEGABYTE };
	u64 worst, alone = beside_trickle(0, 1);
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		worst = beside_trickle(60, lengths[i]);
		print_message("beside messages of %u: 300 KB in at most %llu us, alone %llu\n",
			      lengths[i], (unsigned long long)worst / 1000,
			      (unsigned long long)alone / 1000);
		assert_true(worst < alone + 25 * PAIR_MS); /* five RESEND intervals */
	}
}

/* Many long messages in hardly more pages than one needs; all come through. */
static void many_long(u64 seed)
{
	struct pair_config cfg = config();
	struct pair_world *w;
	u32 i;

	cfg.seed = seed;
	cfg.hosts = 9;
	cfg.pool_pages = 16 + pair_below(&(struct pair_rng){ seed }, 6);
	cfg.release_delay_ns = seed % 2 ? 2 * PAIR_MS : 0;
	cfg.copy_delay_ns = seed % 3 ? 50000 : 0;
	cfg.faults.loss = seed % 4 ? 0 : 20;
	w = pair_world_new(&cfg);
	for (i = 0; i < 64; i++) {
		u32 kind = pair_below(&w->rng_test, 4);

		pair_rpc(w, (u8)(1 + i % 8), 0,
			 kind ? 300000 + pair_below(&w->rng_test, 700000) :
				1 + pair_below(&w->rng_test, 60000),
			 100);
		pair_run_for(w, pair_below(&w->rng_test, 300) * PAIR_US);
		pair_check_pages(&w->hosts[0], true);
	}
	pair_check(w,
		   pair_run_while_pending(w, 30 * PAIR_S) &&
			   pair_count_state(w, PAIR_OK) == 64,
		   "%u of 64 came through", pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void long__ones_come_through_few_pages(void **state)
{
	(void)state;
	each_seed(20, many_long);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newcomer__takes_what_is_free),
		cmocka_unit_test(newcomer__of_a_peer_with_a_long_message),
		cmocka_unit_test(silent__requests_are_forgotten_in_time),
		cmocka_unit_test(silent__requests_of_a_peer_that_speaks),
		cmocka_unit_test(stalled__requests_end),
		cmocka_unit_test(starving__outlives_a_slow_application),
		cmocka_unit_test(starving__response_is_not_given_up),
		cmocka_unit_test(starving__response_of_a_server_that_vanished),
		cmocka_unit_test(pages__are_taken_as_bytes_arrive),
		cmocka_unit_test(pages__go_to_who_was_promised_them),
		cmocka_unit_test(pages__of_two_that_lack_the_same),
		cmocka_unit_test(strangers__starve_nobody),
		cmocka_unit_test(strangers__stop_long_messages_for_a_moment),
		cmocka_unit_test(strangers__that_trickle_have_their_share),
		cmocka_unit_test(long__ones_come_through_few_pages),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
