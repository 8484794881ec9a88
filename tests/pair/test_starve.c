/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Receive pages and who may have them: strangers that begin messages and never
 * go on, short messages beside long ones, clients that vanish, and those that
 * say BUSY for ever.
 */
#include "pair_test.h"

#define STRANGER (PAIR_MAX_HOSTS - 1)	/* no host; its address is whoever's we want */
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
static void forge(struct pair_world *w, u32 from, const struct homa_packet *p, u32 payload)
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
	return (struct homa_packet){ .hdr = { .type = type, .sport = 40000,
					      .dport = PAIR_SERVER_PORT,
					      .sender_id = id } };
}

/* @payload bytes of a request of @length, from its @offset. */
static void forge_data(struct pair_world *w, u32 from, u64 id, u32 length, u32 offset,
		       u32 payload)
{
	struct homa_packet p = packet(HOMA_DATA, id);

	p.data = (struct homa_data){ .length = length, .incoming = length,
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
	pair_check(w, most > 10000 && !rpcs(w, 0), "%u of %u are left", rpcs(w, 0), most);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newcomer__takes_what_is_free),
		cmocka_unit_test(silent__requests_are_forgotten_in_time),
		cmocka_unit_test(silent__requests_of_a_peer_that_speaks),
		cmocka_unit_test(stalled__requests_end),
		cmocka_unit_test(starving__outlives_a_slow_application),
		cmocka_unit_test(starving__response_is_not_given_up),
		cmocka_unit_test(starving__response_of_a_server_that_vanished),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
