/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_ack.c: how long a server waits for an ack. That fewer questions go out is in
 * tests/pair/test_ack.c. And how long a server keeps a response whose client only says that it
 * lives (homa_timer.c).
 */
#include "engine_bed.h"
#include "engine_world.h"
#include "homa_ack.h"

#define MS 1000000ull
#define LEAST (2 * MS) /* need_ack_us by default */

struct bench {
	struct world w;
	struct homa_peer peer;
	struct homa_owner owner;
	struct homa_rpc rpc;
};

static void bench_init(struct bench *b)
{
	world_init(&b->w, 10000, 1500);
	memset(&b->owner, 0, sizeof(b->owner));
	b->w.sock.owner = &b->owner;
	world_peer(&b->peer, 0, 1424);
	world_rpc(&b->w, &b->rpc, &b->peer, 1);
}

/* So many acks, each @delay ns after the last byte of its response. */
static void acks(struct bench *b, u32 n, u64 delay)
{
	while (n--) {
		b->rpc.out.sent_at = b->w.ctx.now;
		b->w.ctx.now += delay;
		homa_ack_came(&b->w.ctx, &b->rpc);
	}
}

static void ack__the_wait_follows_the_peer(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	acks(&b, 1000, MS / 2);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	/* One that was late, or was answered only after a question, changes nothing yet. */
	acks(&b, 1, 5 * MS);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	acks(&b, 1000, 8 * MS);
	assert_in_range(homa_ack_wait(&b.w.ctx, &b.rpc), 13 * MS, 17 * MS);
	acks(&b, 1000, 3 * MS);
	assert_in_range(homa_ack_wait(&b.w.ctx, &b.rpc), 5 * MS, 8 * MS);
	acks(&b, 1000, 0);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	world_free(&b.w);
}

static void ack__the_wait_has_a_bound(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	acks(&b, 1000, 3600 * 1000 * MS);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), 16 * LEAST);
	world_free(&b.w);
}

/* What waits for an ack must not keep new requests away. */
static void ack__nobody_waits_near_a_limit(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	b.w.engine->params.max_server_rpcs_per_peer = 100;
	b.w.engine->params.max_rpcs = 1000;
	acks(&b, 1000, 8 * MS);
	b.peer.server_rpcs = 49;
	assert_true(homa_ack_wait(&b.w.ctx, &b.rpc) > LEAST);
	b.peer.server_rpcs = 50;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	b.peer.server_rpcs = 49;
	b.owner.rpcs = 500;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	b.owner.rpcs = 100;
	assert_true(homa_ack_wait(&b.w.ctx, &b.rpc) > LEAST);
	b.w.engine->num_rpcs = 1000;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	world_free(&b.w);
}

/* ---- a server whose client does not take its response ---- */

#define ID 1000u
#define TIMEOUT (100 * MS) /* of a link of 10 Gbps */

/* A response is kept so long if its client takes no new byte of it. */
#define KEPT (128000 * MS)

struct served {
	struct bed b;
	struct homa_addr client;
	struct homa_handle handle;
	/* The byte behind the last one that was sent. */
	u32 sent;
};

/* A packet of the client arrives. */
static enum homa_verdict says(struct served *s, const struct homa_packet *p,
			      struct homa_rx_pkt *pkt)
{
	u8 bytes[96 + 100];

	memset(bytes, 0, sizeof(bytes));
	*pkt = (struct homa_rx_pkt){ .src = &s->client, .data = bytes };
	pkt->len = homa_packet_encode(bytes, p) +
		   (p->hdr.type == HOMA_DATA ? p->data.payload_len : 0);
	homa_rx(&s->b.ctx, s->b.link, pkt, 1);
	if (pkt->verdict == HOMA_RX_DATA)
		homa_rx_copied(&s->b.ctx, pkt);
	homa_rx_flush(&s->b.ctx);
	return pkt->verdict;
}

static void says_ctrl(struct served *s, u8 type, u32 offset)
{
	struct homa_packet p = { .hdr = { .type = type,
					  .sport = 40000,
					  .dport = PORT,
					  .sender_id = ID } };
	struct homa_rx_pkt pkt;

	if (type == HOMA_GRANT)
		p.grant.offset = offset;
	if (type == HOMA_RESEND) {
		p.resend.offset = offset;
		p.resend.length = 1;
	}
	assert_int_equal(says(s, &p, &pkt), HOMA_RX_CONTROL);
}

/* One request has come, and its application has answered with @length bytes, of which it has
 * handed in @available. */
static void served_init(struct served *s, u32 length, u32 available)
{
	struct homa_packet p = {
		.hdr = { .type = HOMA_DATA,
			 .sport = 40000,
			 .dport = PORT,
			 .sender_id = ID },
		.data = { .length = 100, .incoming = 100, .payload_len = 100 },
	};
	struct homa_msg_info info;
	struct homa_seeds seeds;
	struct homa_event event;
	struct homa_rx_pkt pkt;

	homa_seeds_fixed(&seeds, 1);
	bed_init(&s->b, &seeds, 4, 1);
	s->client = address(1);
	s->sent = 0;
	assert_int_equal(says(s, &p, &pkt), HOMA_RX_DATA);
	assert_true(homa_event_next(&s->b.ctx, &event));
	s->handle = event.handle;
	assert_int_equal(homa_rx_take(&s->b.ctx, s->handle, &info), 0);
	assert_int_equal(homa_rpc_reply(&s->b.ctx, s->handle, length, available,
					NULL),
			 0);
	assert_int_equal(s->b.link->derived.timeout_ns, TIMEOUT);
}

/* So long the server does what it has to; returns how often it asked for an ack. */
static u32 served_run(struct served *s, u64 ns)
{
	u64 end = s->b.ctx.now + ns;
	struct homa_tx_desc desc;
	u32 asked = 0;

	while (s->b.ctx.now < end) {
		s->b.ctx.now += MS;
		homa_timer(&s->b.ctx, 0, 1000);
		while (homa_tx(&s->b.ctx, s->b.link, 1, &desc) == HOMA_TX_PACKET) {
			if (desc.rpc)
				s->sent = homa_max_u32(s->sent,
						       desc.offset + desc.length);
			else
				asked += homa_peek_type(desc.hdr) ==
					 HOMA_NEED_ACK;
			homa_tx_done(&s->b.ctx, &desc, 0);
		}
	}
	return asked;
}

static u64 rpcs(const struct served *s)
{
	return s->b.engine->num_rpcs;
}

/* So long the client answers each question by BUSY. */
static void busy(struct served *s, u64 ns)
{
	u64 i;

	for (i = 0; i < ns / (10 * MS); i++)
		if (served_run(s, 10 * MS))
			says_ctrl(s, HOMA_BUSY, 0);
}

/* It gets the response after all. */
static void acknowledged(struct served *s)
{
	assert_int_equal(rpcs(s), 1);
	says_ctrl(s, HOMA_ACK, 0);
	assert_int_equal(rpcs(s), 0);
	assert_int_equal(s->b.ctx.metrics[HOMA_M_server_discards], 0);
	bed_free(&s->b);
}

/* A client that says so for longer than a response is kept, and takes no byte. */
static void stalls(u8 type, u32 length)
{
	struct served s;
	u32 i;

	served_init(&s, length, length);
	served_run(&s, 10 * MS);
	for (i = 0; i < 2 * KEPT / (10 * MS); i++)
		if (served_run(&s, 10 * MS) || (type != HOMA_BUSY && rpcs(&s)))
			says_ctrl(&s, type, 0);
	assert_int_equal(rpcs(&s), 0);
	assert_int_equal(s.b.ctx.metrics[HOMA_M_server_discards], 1);
	bed_free(&s.b);
}

static void response__ends_whatever_its_client_says(void **state)
{
	(void)state;
	stalls(HOMA_BUSY, 100);
	stalls(HOMA_BUSY, 1000000);
	stalls(HOMA_GRANT, 1000000);
	stalls(HOMA_RESEND, 1000000);
}

/* A client that takes a segment now and then gets it all. */
static void response__is_kept_for_a_slow_client(void **state)
{
	struct served s;
	u32 i, before;

	(void)state;
	served_init(&s, 1000000, 1000000);
	served_run(&s, 10 * MS);
	for (i = 0; i < 5; i++) {
		before = s.sent;
		says_ctrl(&s, HOMA_GRANT, s.sent + 1);
		busy(&s, KEPT - 5 * TIMEOUT);
		assert_int_equal(rpcs(&s), 1);
		assert_in_range(s.sent, before + 1, before + 1500);
	}
	says_ctrl(&s, HOMA_GRANT, 1000000);
	served_run(&s, 2 * TIMEOUT);
	assert_int_equal(s.sent, 1000000);
	acknowledged(&s);
}

/* It has all of the response, or no room for it, and is stopped for a while. */
static void response__is_kept_for_a_client_that_is_stopped(void **state)
{
	struct served s;

	(void)state;
	served_init(&s, 100, 100);
	busy(&s, KEPT - 5 * TIMEOUT);
	acknowledged(&s);
}

/* The application hands in the rest of it late: its client can do nothing about that. */
static void response__waits_for_its_own_application(void **state)
{
	struct served s;

	(void)state;
	served_init(&s, 5000, 2000);
	busy(&s, 2 * KEPT);
	assert_in_range(s.sent, 1, 2000);
	homa_msg_supply(&s.b.ctx, s.handle, 5000);
	served_run(&s, 10 * MS);
	assert_int_equal(s.sent, 5000);
	acknowledged(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__the_wait_follows_the_peer),
		cmocka_unit_test(ack__the_wait_has_a_bound),
		cmocka_unit_test(ack__nobody_waits_near_a_limit),
		cmocka_unit_test(response__ends_whatever_its_client_says),
		cmocka_unit_test(response__is_kept_for_a_slow_client),
		cmocka_unit_test(response__is_kept_for_a_client_that_is_stopped),
		cmocka_unit_test(response__waits_for_its_own_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
