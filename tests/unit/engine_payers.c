/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who pays for peers: the owner whose socket was the first to send there. One who sends to very
 * many addresses, and strangers who send from very many, leave room to the others.
 */
#include "engine_bed.h"

/* The table has room for 100 peers in each stripe, of which strangers leave 12. */
enum { PEERS = 1600, KEPT = 16 * 12 };

struct payer {
	struct homa_owner owner;
	struct homa_sock *sock;
};

static void begin(struct bed *b)
{
	struct homa_seeds seeds;

	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(b, &seeds, 4 * PEERS, 4 * PEERS);
	b->engine->max_peers_per_stripe = PEERS / HOMA_PEER_STRIPES;
}

static void open_payer(struct bed *b, struct payer *p, u32 max_peers)
{
	memset(&p->owner, 0, sizeof(p->owner));
	p->owner.max_peers = max_peers;
	p->sock = zeroed(homa_sock_size(&b->limits));
	assert_int_equal(homa_sock_open(&b->ctx, p->sock), 0);
	homa_sock_charge(p->sock, &p->owner);
}

/* What has ended is used again. */
static void reuse(struct bed *b)
{
	struct homa_peer *peer;
	struct homa_rpc *rpc;

	while ((rpc = homa_retired_rpc(&b->ctx)))
		homa_ctx_give_rpc(&b->ctx, rpc);
	while ((peer = homa_retired_peer(&b->ctx)))
		homa_ctx_give_peer(&b->ctx, peer);
	while (b->ctx.spare_segments < 2)
		homa_ctx_give_segment(&b->ctx, zeroed(homa_segment_size()));
}

static int send_to(struct bed *b, struct payer *p, u32 to,
		   struct homa_handle *handle)
{
	struct homa_send send = {
		.dst = address(to), .port = PORT, .length = 1, .available = 1
	};

	reuse(b);
	return homa_rpc_send(&b->ctx, p->sock, b->link, &send, handle, NULL);
}

/* The first of two packets of a request, which may be refused. */
static void offer(struct bed *b, u32 n)
{
	struct homa_packet p = {
		.hdr = { .type = HOMA_DATA,
			 .sport = 40000,
			 .dport = PORT,
			 .sender_id = 2 },
		.data = { .length = 2000, .incoming = 2000, .payload_len = 1000 },
	};
	struct homa_addr from = address(n);
	struct homa_rx_pkt pkt = { .src = &from };
	u8 bytes[96];

	reuse(b);
	pkt.len = homa_packet_encode(bytes, &p) + p.data.payload_len;
	pkt.data = bytes;
	homa_rx(&b->ctx, b->link, &pkt, 1);
	if (pkt.verdict == HOMA_RX_DATA)
		homa_rx_copied(&b->ctx, &pkt);
	homa_rx_flush(&b->ctx);
}

/* After all others no peer is charged to anybody. */
static void close_payers(struct bed *b, struct payer *p, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		while (homa_sock_close(&b->ctx, p[i].sock, 100) == -HOMA_EAGAIN)
			reuse(b);
	reuse(b);
	homa_peers_drain(&b->ctx, UINT32_MAX);
	for (i = 0; i < num; i++) {
		assert_int_equal(p[i].owner.peers, 0);
		free(p[i].sock);
	}
	bed_free(b);
}

/* He has an RPC open with each of as many as he may have; another one is refused, and the next
 * user does not see anything of it. */
static void greedy__is_refused_and_others_are_not(void **state)
{
	struct payer p[2], *greedy = &p[0], *other = &p[1];
	struct homa_handle handle, first;
	struct bed b;
	u32 i;

	(void)state;
	begin(&b);
	open_payer(&b, greedy, 200);
	open_payer(&b, other, 200);
	assert_int_equal(send_to(&b, greedy, 0, &first), 0);
	for (i = 1; i < 200; i++)
		assert_int_equal(send_to(&b, greedy, i, &handle), 0);
	for (; i < 10 * PEERS; i++)
		assert_int_equal(send_to(&b, greedy, i, &handle), -HOMA_EDQUOT);
	assert_int_equal(greedy->owner.peers, 200);
	assert_int_equal(greedy->owner.peers_refused, 10 * PEERS - 200);
	assert_int_equal(b.ctx.metrics[HOMA_M_peers_refused], 10 * PEERS - 200);
	for (i = 0; i < 200; i++)
		assert_int_equal(send_to(&b, other, 20 * PEERS + i, &handle), 0);
	/* What another one pays for costs nothing more. */
	assert_int_equal(send_to(&b, other, 1, &handle), 0);
	assert_int_equal(other->owner.peers, 200);
	assert_int_equal(other->owner.peers_refused, 0);
	/* And an idle one of his own gives its place. */
	homa_rpc_forget(&b.ctx, first);
	assert_int_equal(send_to(&b, greedy, 30 * PEERS, &handle), 0);
	assert_int_equal(greedy->owner.peers, 200);
	assert_int_equal(send_to(&b, greedy, 40 * PEERS, &handle), -HOMA_EDQUOT);
	close_payers(&b, p, 2);
}

/* One after the other, ever new ones: it is his own idle ones that are forgotten. */
static void wanderer__forgets_his_own(void **state)
{
	struct payer p[2], *wanderer = &p[0], *other = &p[1];
	struct homa_handle handle;
	struct bed b;
	u32 i;

	(void)state;
	begin(&b);
	open_payer(&b, wanderer, 64);
	open_payer(&b, other, 200);
	for (i = 0; i < 100; i++) {
		assert_int_equal(send_to(&b, other, 50 * PEERS + i, &handle), 0);
		homa_rpc_forget(&b.ctx, handle);
	}
	for (i = 0; i < 10 * PEERS; i++) {
		assert_int_equal(send_to(&b, wanderer, i, &handle), 0);
		homa_rpc_forget(&b.ctx, handle);
		assert_true(wanderer->owner.peers <= 64);
	}
	assert_int_equal(wanderer->owner.peers, 64);
	assert_int_equal(wanderer->owner.peers_refused, 0);
	/* The other's are as idle, and all there. */
	assert_int_equal(other->owner.peers, 100);
	close_payers(&b, p, 2);
}

/* Requests that are refused make no peers, so they push out no idle ones of others either. */
static void refused__push_out_nobody(void **state)
{
	struct payer p[2], *greedy = &p[0], *other = &p[1];
	struct homa_handle handle;
	struct homa_counts counts;
	struct bed b;
	u32 i;

	(void)state;
	begin(&b);
	open_payer(&b, greedy, 200);
	open_payer(&b, other, 200);
	for (i = 0; i < 100; i++) {
		assert_int_equal(send_to(&b, other, 50 * PEERS + i, &handle), 0);
		homa_rpc_forget(&b.ctx, handle);
	}
	for (i = 0; i < 200; i++)
		assert_int_equal(send_to(&b, greedy, i, &handle), 0);
	for (; i < 10 * PEERS; i++)
		assert_int_equal(send_to(&b, greedy, i, &handle), -HOMA_EDQUOT);
	assert_int_equal(other->owner.peers, 100);
	homa_engine_counts(b.engine, &counts);
	assert_int_equal(counts.peers, 300);
	/* Where he has RPCs open he may have more. */
	assert_int_equal(send_to(&b, greedy, 7, &handle), 0);
	close_payers(&b, p, 2);
}

/* A packet from each of very many addresses, each the begin of a request: strangers do not take
 * the last eighth of the table once there is a user who pays for peers. */
static void strangers__leave_an_eighth(void **state)
{
	struct homa_handle handle;
	struct homa_counts counts;
	struct payer user;
	u32 i, sent = 0;
	struct bed b;

	(void)state;
	begin(&b);
	open_payer(&b, &user, PEERS);
	assert_int_equal(send_to(&b, &user, 90 * PEERS, &handle), 0);
	for (i = 0; i < 2 * PEERS; i++)
		offer(&b, i);
	assert_true(b.ctx.metrics[HOMA_M_drop_no_peer] > PEERS);
	homa_engine_counts(b.engine, &counts);
	assert_int_equal(counts.peers, PEERS - KEPT + 1);
	for (i = 0; i < PEERS; i++)
		sent += !send_to(&b, &user, 100 * PEERS + i, &handle);
	assert_int_equal(sent, KEPT - 1);
	close_payers(&b, &user, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy__is_refused_and_others_are_not),
		cmocka_unit_test(wanderer__forgets_his_own),
		cmocka_unit_test(refused__push_out_nobody),
		cmocka_unit_test(strangers__leave_an_eighth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
