/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A client tells how long it waits; the server's application sees the end of that, and
 * nothing else follows.
 */
#include "forge.h"

#define WITHIN (5 * PAIR_MS)

/* What the two packets with a request's first byte that were seen last say, the older
 * first; 0: nothing. */
struct said {
	u16 left[2];
	u32 packets;
	bool strip; /* as if the client were the existing module */
};

static bool look(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct said *said = arg;
	struct homa_packet p;

	(void)w;
	if (homa_packet_decode(&p, pkt->data, pkt->len) || p.hdr.type != HOMA_DATA)
		return false;
	/* No server says anything of it. */
	if (p.hdr.sender_id & 1) {
		assert_int_equal(pkt->data[49] & HOMA_EXT_LEFT, 0);
		assert_memory_equal(pkt->data + 14, "\0\0", 2);
	} else if (p.data.offset == 0) {
		said->left[0] = said->left[1];
		said->left[1] = p.data.left;
		said->packets++;
		if (said->strip)
			pkt->data[49] = pkt->data[14] = pkt->data[15] = 0;
	}
	return false;
}

static struct pair_world *told(struct said *said, u64 within)
{
	struct pair_config cfg;
	struct pair_world *w;

	memset(said, 0, sizeof(*said));
	pair_config_default(&cfg);
	cfg.within = 0;
	w = pair_world_new(&cfg);
	w->within = within;
	w->tap = look;
	w->tap_arg = said;
	return w;
}

/* The server's application knows the end within what the wire rounds and @late. */
static void assert_heard(const struct pair_rpc *r, u64 late)
{
	u64 end = r->start + r->within;

	assert_true(r->heard >= end);
	assert_true(r->heard <= end + (r->within >> 10) + 3 * 1024 + late);
}

static void within__is_heard_with_the_request(void **state)
{
	static const u32 lengths[] = { 1, 1000, 20000, 1000000 };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct said said;
		struct pair_world *w = told(&said, WITHIN);
		struct pair_rpc *r = pair_rpc(w, 0, 1, lengths[i], 100);

		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(said.packets, 1);
		assert_heard(r, 10 * PAIR_US);
		pair_finish(w);
	}
}

static void within__in_a_host_that_gives_and_sends_at_once(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.deliver_whole = true;
	cfg.at_once = true;
	w = pair_world_new(&cfg);
	w->within = WITHIN;
	r = pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_true(w->delivered_whole > 0);
	assert_int_equal(w->sent_at_once, 2);
	assert_heard(r, 10 * PAIR_US);
	pair_finish(w);
}

static void within__segments_of_a_burst_say_the_same(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.max_segs = 16;
	w = pair_world_new(&cfg);
	w->within = WITHIN;
	r = pair_rpc(w, 0, 1, 200000, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_heard(r, 10 * PAIR_US);
	pair_finish(w);
}

static void within__untold_is_unheard(void **state)
{
	struct said said;
	struct pair_world *w = told(&said, 0);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 3000, 100);

	(void)state;
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(said.packets, 1);
	assert_int_equal(said.left[1], 0);
	assert_int_equal(r->heard, 0);
	pair_finish(w);
}

/* From the existing module nothing is heard, whatever else it leaves in the packet. */
static void within__is_not_heard_from_others(void **state)
{
	struct said said;
	struct pair_world *w = told(&said, WITHIN);
	struct pair_rpc *r;

	(void)state;
	said.strip = true;
	r = pair_rpc(w, 0, 1, 3000, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->heard, 0);
	pair_finish(w);
}

/* What is sent again says how long it is then, so that the end does not move. */
static void within__is_less_when_sent_again(void **state)
{
	static const u32 lengths[] = { 100, 20000 };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct said said;
		struct pair_world *w = told(&said, PAIR_S);
		struct pair_rpc *r;

		pair_filter_add(w, HOMA_DATA, 0, 1, 0, 1);
		r = pair_rpc(w, 0, 1, lengths[i], 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(said.packets, 2);
		assert_true(homa_left_ns(said.left[0]) >
			    homa_left_ns(said.left[1]));
		assert_true(r->executed_at - r->start > PAIR_US * 100);
		assert_heard(r, 10 * PAIR_US);
		pair_finish(w);
	}
}

/* What is over already when the server gets it is the application's to decide. */
static void within__is_over_before_the_request_comes(void **state)
{
	struct said said;
	struct pair_world *w = told(&said, 1);
	struct pair_rpc *r = pair_rpc(w, 0, 1, 100, 100);

	(void)state;
	pair_filter_add(w, HOMA_DATA, 0, 1, 0, 1);
	r = pair_rpc(w, 0, 1, 20000, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(said.packets, 3);
	assert_int_equal(said.left[1], homa_left_code(0));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->executed, 1);
	assert_true(r->heard && r->heard <= r->executed_at + 1024);
	pair_finish(w);
}

/* A request of host 0 in @w that nobody has sent, with any word of how long. */
static void forge_request(struct pair_world *w, struct pair_rpc *r, u16 left)
{
	struct homa_packet p = about(r, HOMA_DATA, false);

	p.data.length = p.data.incoming = 20000;
	p.data.may_reject = true;
	p.data.left = left;
	forge(w, 0, 1, &p, 100);
}

static void forged__the_earliest_counts(void **state)
{
	static const u16 words[] = { 0x7ff, HOMA_LEFT_MAX, 1, 0xf800 };
	struct said said;
	struct pair_world *w = told(&said, WITHIN);
	struct pair_rpc *r;
	u32 i;

	(void)state;
	/* The rest of the request is late. */
	pair_filter_add(w, HOMA_DATA, 0, 1, 1, 1);
	r = pair_rpc(w, 0, 1, 20000, 100);
	pair_run_for(w, 500 * PAIR_US);
	assert_int_equal(r->executed, 0);
	w->corrupting = true;
	for (i = 0; i < HOMA_ARRAY_SIZE(words); i++)
		forge_request(w, r, words[i]);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_true(r->heard > r->start && r->heard < r->start + WITHIN);
	pair_finish(w);
}

/* The longest time that can be said, and the shortest, are times. */
static void forged__any_word_is_a_time(void **state)
{
	static const u16 words[] = { HOMA_LEFT_MAX, 0xf800, 1, 0 };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(words); i++) {
		struct said said;
		struct pair_world *w = told(&said, 0);
		struct pair_rpc *r = pair_rpc(w, 0, 1, 20000, 100);

		/* The forged packet is the first. */
		pair_filter_add(w, HOMA_DATA, 0, 1, 0, 100);
		w->corrupting = true;
		pair_run_for(w, PAIR_US);
		forge_request(w, r, words[i]);
		w->num_filters = 0;
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		if (words[i])
			assert_true(r->heard > r->start &&
				    r->heard <= w->now + homa_left_ns(words[i]));
		else
			assert_int_equal(r->heard, 0);
		pair_finish(w);
	}
}

/* A client hears nothing from a server that says such a thing. */
static void forged__no_server_says_it(void **state)
{
	struct said said;
	struct pair_world *w = told(&said, 0);
	struct pair_rpc *r = begin(w, 100, PAIR_MS);
	struct homa_packet p;
	struct pair_pkt *pkt;

	(void)state;
	w->tap = NULL;
	pair_run_for(w, 100 * PAIR_US);
	p = about(r, HOMA_DATA, true);
	pkt = pair_pkt_new(1, 0, 7, HOMA_DATA_HDR + 100);
	memset(pkt->data, 0, pkt->len);
	homa_packet_encode(pkt->data, &p);
	homa_wire_set_left(pkt->data, 77);
	/* The harness compares the cookie, which a server's word must not touch. */
	w->corrupting = true;
	pair_net_deliver(w, pkt);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within__is_heard_with_the_request),
		cmocka_unit_test(within__in_a_host_that_gives_and_sends_at_once),
		cmocka_unit_test(within__segments_of_a_burst_say_the_same),
		cmocka_unit_test(within__untold_is_unheard),
		cmocka_unit_test(within__is_not_heard_from_others),
		cmocka_unit_test(within__is_less_when_sent_again),
		cmocka_unit_test(within__is_over_before_the_request_comes),
		cmocka_unit_test(forged__the_earliest_counts),
		cmocka_unit_test(forged__any_word_is_a_time),
		cmocka_unit_test(forged__no_server_says_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
