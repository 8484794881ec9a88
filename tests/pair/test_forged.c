/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets that somebody else sends in a host's name, and questions about RPCs
 * that never were: what is believed of them, and what comes back.
 */
#include "forge.h"

/* ---- questions about nothing ---- */

static void question__with_id_1_is_answered(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 54321, &seen);
	struct homa_packet q = question(HOMA_NEED_ACK, 1);
	u32 i;

	(void)state;
	forge(w, 0, 1, &q, 0);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 1);
	assert_int_equal(last(&seen, HOMA_ACK)->hdr.sender_id, 0);
	/* Nothing else with such an id means anything. */
	q.hdr.sender_id = 0;
	forge(w, 0, 1, &q, 0);
	q = question(HOMA_RESEND, 1);
	forge(w, 0, 1, &q, 0);
	q.hdr.sender_id = 0;
	forge(w, 0, 1, &q, 0);
	assert_int_equal(count(w, 1, HOMA_M_drop_id), 3);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 1);
	assert_int_equal(sent(&seen, 0, HOMA_RPC_UNKNOWN), 0);
	/* A flood of them is not answered. */
	q = question(HOMA_NEED_ACK, 1);
	for (i = 0; i < 1000; i++) {
		struct pair_pkt *pkt = pair_pkt_new(0, 1, 7, HOMA_MAX_HDR);

		pkt->len = homa_packet_encode(pkt->data, &q);
		pair_net_deliver(w, pkt);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 2);
	pair_finish(w);
}

/* Nor does one keep another host, that asks in the same millisecond, from its answer. */
static void question__with_id_1_is_answered_to_each(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 54321, &seen);
	struct homa_packet q = question(HOMA_NEED_ACK, 1);
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++) {
		struct pair_pkt *pkt =
			pair_pkt_new(i == 7 ? 2 : 0, 1, 7, HOMA_MAX_HDR);

		pkt->len = homa_packet_encode(pkt->data, &q);
		pair_net_deliver(w, pkt);
		pair_run_for(w, 50 * PAIR_US);
	}
	pair_run_for(w, PAIR_MS);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 1);
	assert_int_equal(sent(&seen, 2, HOMA_ACK), 1);
	pair_finish(w);
}

static void question__with_id_1_is_of_udp(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct homa_packet q = question(HOMA_NEED_ACK, 1);

	(void)state;
	forge(w, 0, 1, &q, 0);
	assert_int_equal(sent(&seen, 0, HOMA_ACK), 0);
	assert_int_equal(count(w, 1, HOMA_M_drop_id), 1);
	pair_finish(w);
}

static u64 answered;

static bool weigh(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	(void)w;
	(void)arg;
	answered += pkt->len;
	return false;
}

/* Whoever asks in another's name makes us send him no more than was sent. */
static void question__is_no_shorter_than_its_answer(void **state)
{
	static const u8 types[] = {
		HOMA_GRANT,   HOMA_RESEND, HOMA_RPC_UNKNOWN, HOMA_BUSY,
		HOMA_CUTOFFS, HOMA_FREEZE, HOMA_NEED_ACK,    HOMA_ACK,
	};
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	u32 i, odd;

	(void)state;
	w->tap = weigh;
	for (i = 0; i < HOMA_ARRAY_SIZE(types); i++) {
		for (odd = 0; odd < 2; odd++) {
			struct homa_packet q = question(types[i], 1000 + odd);
			u8 hdr[HOMA_MAX_HDR];

			answered = 0;
			forge(w, 0, 1, &q, 0);
			assert_true(answered <= homa_packet_encode(hdr, &q));
		}
	}
	pair_finish(w);
}

/*
 * Somebody has sent every other packet of a request and was asked for the rest. Now he
 * repeats one of them at a time: as many questions come back, not one for each gap.
 */
static void repair__asks_for_no_more_than_came(void **state)
{
	const u32 packets = 120, size = 1400;
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct homa_packet p = question(HOMA_DATA, 1000);
	u32 i, before;

	(void)state;
	pair_filter_add(w, HOMA_RPC_UNKNOWN, 0, 1, 0, 1000);
	p.hdr.dport = PAIR_SERVER_PORT;
	p.data.length = p.data.incoming = packets * size;
	for (i = 1; i < packets; i += 2) {
		struct pair_pkt *pkt = pair_pkt_new(0, 1, 7, HOMA_MAX_HDR + size);

		p.data.offset = i * size;
		memset(pkt->data, 0, pkt->len);
		pkt->len = homa_packet_encode(pkt->data, &p) + size;
		pair_net_deliver(w, pkt);
	}
	pair_run_for(w, 8 * PAIR_MS);
	before = sent(&seen, 0, HOMA_RESEND);
	assert_int_equal(before, packets / 2);
	p.data.retransmit = 1;
	for (i = packets - 2; i > packets - 42; i -= 2) {
		p.data.offset = i * size;
		forge(w, 0, 1, &p, size);
	}
	assert_in_range(sent(&seen, 0, HOMA_RESEND) - before, 1, 20);
	pair_finish(w);
}

struct asked {
	u32 granted, asked;
};

static bool see_bytes(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct asked *asked = arg;
	struct homa_packet p;

	(void)w;
	if (homa_packet_decode(&p, pkt->data, pkt->len))
		return false;
	if (p.hdr.type == HOMA_GRANT)
		asked->granted = homa_max_u32(asked->granted, p.grant.offset);
	if (p.hdr.type == HOMA_RESEND)
		asked->asked = homa_max_u32(asked->asked,
					    p.resend.offset + p.resend.length);
	return false;
}

/*
 * A packet from the end of a long message has overtaken nearly all of it. Who asks for
 * that lets it be sent, so what was not granted must not be asked for.
 */
static void early__asks_for_nothing_that_was_not_granted(void **state)
{
	const u32 size = 1000, length = 1000000;
	struct asked asked = { .granted = 10 * size };
	struct homa_packet p = question(HOMA_DATA, 1000);
	struct pair_config cfg;
	struct pair_world *w;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	w->tap = see_bytes;
	w->tap_arg = &asked;
	pair_filter_add(w, HOMA_RPC_UNKNOWN, 0, 1, 0, 1000);
	p.hdr.dport = PAIR_SERVER_PORT;
	p.data.length = length;
	p.data.incoming = asked.granted;
	forge(w, 0, 1, &p, size);
	p.data.offset = length - size;
	forge(w, 0, 1, &p, size);
	pair_run_for(w, 3 * PAIR_MS);
	assert_in_range(asked.asked, 1, asked.granted);
	assert_true(asked.granted < length / 2);
	assert_true(pair_host_metric(&w->hosts[1], HOMA_M_resends_early) > 0);
	pair_finish(w);
}

/* The server ends its RPC just as well. */
static void need_ack__of_a_forgotten_rpc(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct homa_packet p;
	struct homa_counts counts;
	struct pair_rpc *r;

	(void)state;
	r = begin(w, 100, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	/* Acks that are owed go with the answer. */
	p = about(r, HOMA_NEED_ACK, true);
	forge(w, 1, 0, &p, 0);
	assert_int_equal(sent(&seen, 1, HOMA_ACK), 1);
	assert_int_equal(last(&seen, HOMA_ACK)->ack.num, 1);
	assert_int_equal(last(&seen, HOMA_ACK)->ack.ack[0].client_id,
			 r->handle.id);
	homa_engine_counts(w->hosts[1].engine, &counts);
	assert_int_equal(counts.rpcs, 0);
	forge(w, 1, 0, &p, 0);
	assert_int_equal(sent(&seen, 1, HOMA_ACK), 1);
	assert_int_equal(sent(&seen, 1, HOMA_RPC_UNKNOWN), 1);
	/* The ack is lost: RPC_UNKNOWN ends the server's RPC. */
	r = begin(w, 100, 0);
	pair_filter_add(w, HOMA_ACK, 0, 1, 0, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	p = about(r, HOMA_NEED_ACK, true);
	forge(w, 1, 0, &p, 0);
	homa_engine_counts(w->hosts[1].engine, &counts);
	assert_int_equal(counts.rpcs, 1);
	pair_run_for(w, 10 * PAIR_MS);
	homa_engine_counts(w->hosts[1].engine, &counts);
	assert_int_equal(counts.rpcs, 0);
	assert_true(sent(&seen, 1, HOMA_RPC_UNKNOWN) >= 2);
	pair_finish(w);
}

/* ---- packets about an RPC that are not of it ---- */

static void ports__must_be_those_of_the_rpc(void **state)
{
	static const u8 types[] = {
		HOMA_DATA, HOMA_GRANT,	 HOMA_RESEND,	HOMA_RPC_UNKNOWN,
		HOMA_BUSY, HOMA_CUTOFFS, HOMA_NEED_ACK,
	};
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 200000, PAIR_MS);
	u32 i, server, which;

	(void)state;
	/* The server sends, and waits for grants. */
	pair_filter_add(w, HOMA_GRANT, 0, 1, 0, 1000);
	pair_filter_add(w, HOMA_RESEND, 0, 1, 0, 1000);
	pair_run_for(w, 2 * PAIR_MS);
	memset(seen.sent, 0, sizeof(seen.sent));
	for (i = 0; i < HOMA_ARRAY_SIZE(types); i++) {
		for (server = 0; server < 2; server++) {
			for (which = 1; which < 4; which++) {
				struct homa_packet p = about(r, types[i], server);

				p.hdr.sport ^= which & 1;
				p.hdr.dport ^= which & 2;
				forge(w, server, !server, &p,
				      types[i] == HOMA_DATA ? 100 : 0);
			}
		}
	}
	assert_int_equal(count(w, 0, HOMA_M_drop_ports), 21);
	assert_int_equal(count(w, 1, HOMA_M_drop_ports), 21);
	assert_int_equal(sent(&seen, 1, HOMA_RPC_UNKNOWN), 0);
	assert_int_equal(sent(&seen, 0, HOMA_RPC_UNKNOWN), 0);
	assert_int_not_equal(peer_of(w, 0, 1).cutoff_version, 999);
	assert_int_not_equal(peer_of(w, 1, 0).cutoff_version, 999);
	w->num_filters = 0;
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

static void ack__must_name_the_server_port(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 200000, 0);
	struct homa_packet p = about(r, HOMA_ACK, false);

	(void)state;
	pair_filter_add(w, HOMA_GRANT, 0, 1, 0, 1000);
	pair_run_for(w, 2 * PAIR_MS);
	p.hdr.dport ^= 1;
	p.ack.num = 1;
	p.ack.ack[0].client_id = r->handle.id;
	p.ack.ack[0].server_port = 7;
	forge(w, 0, 1, &p, 0);
	w->num_filters = 0;
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(sent(&seen, 0, HOMA_RPC_UNKNOWN), 0);
	pair_finish(w);
}

/* ---- cutoffs ---- */

static void cutoffs__of_no_rpc_are_not_believed(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 10 * PAIR_MS);
	struct homa_packet p = about(r, HOMA_CUTOFFS, true);

	(void)state;
	pair_run_for(w, PAIR_MS);
	p.hdr.sender_id += 2000;
	forge(w, 1, 0, &p, 0);
	assert_int_not_equal(peer_of(w, 0, 1).cutoff_version, 999);
	p.hdr.sender_id -= 2000;
	forge(w, 1, 0, &p, 0);
	assert_int_equal(peer_of(w, 0, 1).cutoff_version, 999);
	assert_int_equal(peer_of(w, 0, 1).cutoffs[7], 4711);
	pair_finish(w);
}

/* The way back is over another device. */
static void cutoffs__by_another_link_reach_the_rpc_s_peer(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 10 * PAIR_MS);
	struct homa_packet p = about(r, HOMA_CUTOFFS, true);
	struct homa_link *other = calloc(1, homa_link_size(64));
	struct homa_rx_pkt rx = { .src = &w->hosts[1].addr };
	u8 hdr[HOMA_MAX_HDR];

	(void)state;
	homa_link_init(other, w->hosts[0].engine, 0, 1500, 64);
	pair_run_for(w, PAIR_MS);
	rx.data = hdr;
	rx.len = homa_packet_encode(hdr, &p);
	homa_rx(ctx_of(w, 0), other, &rx, 1);
	assert_int_equal(rx.verdict, HOMA_RX_CONTROL);
	assert_ptr_equal(peer_of(w, 0, 1).link, w->hosts[0].link);
	assert_int_equal(peer_of(w, 0, 1).cutoff_version, 999);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
	free(other);
}

/* ---- servers with several addresses ---- */

static bool from_host_2(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	(void)w;
	(void)arg;
	if (pkt->src == 1)
		pkt->src = 2;
	return false;
}

/* Host 1 is asked at its first address and answers from that of host 2. */
static void answer__from_another_address_is_accepted(void **state)
{
	static const u32 lengths[] = { 1, 1400, 10000, 400000 };
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, whole;

	(void)state;
	for (whole = 0; whole < 2; whole++) {
		pair_config_default(&cfg);
		cfg.hosts = 3;
		cfg.deliver_whole = whole;
		w = pair_world_new(&cfg);
		w->tap = from_host_2;
		for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
			struct pair_rpc *r =
				pair_rpc(w, 0, 1, lengths[i], lengths[3 - i]);

			assert_true(pair_run_while_pending(w, PAIR_S));
			assert_int_equal(r->state, PAIR_OK);
			assert_int_equal(r->executed, 1);
		}
		assert_int_equal(count(w, 0, HOMA_M_drop_unknown_rpc), 0);
		assert_int_equal(count(w, 0, HOMA_M_drop_ports), 0);
		pair_finish(w);
	}
}

/* What one server sees of our ids tells it nothing of those at another. */
static void ids__of_one_server_say_nothing_of_another(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	u64 one[8], two[8];
	u32 i, k;

	(void)state;
	for (i = 0; i < 8; i++) {
		one[i] = pair_rpc(w, 0, 1, 1, 1)->handle.id;
		two[i] = pair_rpc(w, 0, 2, 1, 1)->handle.id;
		assert_int_equal(one[i] & 1, 0);
		assert_int_equal(two[i] & 1, 0);
	}
	for (i = 1; i < 8; i++) {
		assert_true(one[i] > one[i - 1]);
		assert_true(two[i] > two[i - 1]);
	}
	for (i = 0; i < 8; i++)
		for (k = 0; k < 8; k++)
			assert_true(one[i] - two[k] + (1ull << 32) > 1ull << 33);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_finish(w);
}

/* Somebody else's packets with the id of a request that we have: the answer goes
 * to the address that it came from. */
static void request__answer_goes_where_it_came_from(void **state)
{
	struct seen seen;
	struct pair_world *w = world(3, 0, &seen);
	struct pair_rpc *r = begin(w, 100, 10 * PAIR_MS);
	struct homa_packet p = about(r, HOMA_RESEND, false);

	(void)state;
	pair_run_for(w, PAIR_MS);
	forge(w, 2, 1, &p, 0);
	p = about(r, HOMA_RPC_UNKNOWN, false);
	forge(w, 2, 1, &p, 0);
	p = about(r, HOMA_ACK, false);
	forge(w, 2, 1, &p, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->executed, 1);
	assert_int_equal(sent(&seen, 2, HOMA_DATA), 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(question__with_id_1_is_answered),
		cmocka_unit_test(question__with_id_1_is_answered_to_each),
		cmocka_unit_test(question__with_id_1_is_of_udp),
		cmocka_unit_test(question__is_no_shorter_than_its_answer),
		cmocka_unit_test(repair__asks_for_no_more_than_came),
		cmocka_unit_test(early__asks_for_nothing_that_was_not_granted),
		cmocka_unit_test(need_ack__of_a_forgotten_rpc),
		cmocka_unit_test(ports__must_be_those_of_the_rpc),
		cmocka_unit_test(ack__must_name_the_server_port),
		cmocka_unit_test(cutoffs__of_no_rpc_are_not_believed),
		cmocka_unit_test(cutoffs__by_another_link_reach_the_rpc_s_peer),
		cmocka_unit_test(answer__from_another_address_is_accepted),
		cmocka_unit_test(ids__of_one_server_say_nothing_of_another),
		cmocka_unit_test(request__answer_goes_where_it_came_from),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
