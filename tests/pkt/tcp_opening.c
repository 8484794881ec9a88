// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* connect(), and segments of somebody who knows addresses and ports. */
#include "tas_impl.h"
#include "tcp_bench.h"

/* Somebody's SYN, RST and ACKs for a connection that is being opened, and then the answer. */
static void opening__a_strangers_syn(void **state)
{
	struct tas_segment syn = { .flags = TAS_SYN,
				   .seq = 99000,
				   .window = 10,
				   .options = TAS_OPT_MSS | TAS_OPT_TS,
				   .mss = 200,
				   .ts = 0x70000000 };
	struct bench *b = bench_new(1500);
	u32 iss;

	(void)state;
	assert_int_equal(tas_connect(&b->engine, &b->pair, 20, 1 << 20, &b->conn),
			 0);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN);
	assert_int_equal(b->seg.wscale, 5);
	iss = b->conn->iss;
	in(b, syn);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN | TAS_ACK);
	assert_int_equal(b->seg.seq, iss);
	assert_int_equal(b->seg.ack, 99001);
	/* What the peer says to an ACK of bytes that it has not sent. */
	in(b, (struct tas_segment){ .flags = TAS_RST, .seq = 99001 });
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = iss + 1,
				    .window = 1 });
	/* A flood of them is answered twice a second. */
	syn.seq++;
	in(b, syn);
	assert_false(sent(b));
	/* What is sent again is our SYN, as it was. */
	tick(b, 1100 * TAS_MSEC);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN);
	assert_int_equal(b->seg.wscale, 5);
	assert_int_equal(b->seg.seq, iss);
	assert_int_equal(b->seg.ts_echo, 0);
	in(b, (struct tas_segment){ .flags = TAS_SYN | TAS_ACK,
				    .seq = IRS,
				    .ack = iss + 1,
				    .window = 65535,
				    .options = TAS_OPT_MSS | TAS_OPT_WSCALE,
				    .wscale = 3,
				    .mss = MSS });
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	assert_int_equal(b->conn->f.rcv_nxt, IRS + 1);
	assert_int_equal(b->conn->f.mss, MSS);
	assert_int_equal(b->conn->f.rcv_wscale, 5);
	assert_int_equal(b->conn->f.snd_wscale, 3);
	assert_false(b->conn->f.flags & (TAS_F_TS | TAS_F_SACK));
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_ACK);
	assert_int_equal(b->seg.ack, IRS + 1);
	bench_free(b);
}

/* Both sides connect, and one of the answers is lost. */
static void opening__a_crossing_syn_that_is_meant(void **state)
{
	struct bench *b = bench_new(1500);
	u32 iss;

	(void)state;
	assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn),
			 0);
	assert_true(sent(b));
	iss = b->conn->iss;
	in(b,
	   (struct tas_segment){ .flags = TAS_SYN, .seq = 99000, .window = 10 });
	assert_int_equal(drain(b), 1);
	in(b,
	   (struct tas_segment){ .flags = TAS_SYN, .seq = IRS, .window = 1000 });
	assert_int_equal(drain(b), 0);
	tick(b, 600 * TAS_MSEC);
	in(b,
	   (struct tas_segment){ .flags = TAS_SYN, .seq = IRS, .window = 1000 });
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN | TAS_ACK);
	assert_int_equal(b->seg.ack, IRS + 1);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = iss + 1,
				    .window = 1000 });
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	bench_free(b);
}

/* A connection with a SYN of somebody else is refused and given up as any other. */
static void opening__refused_beside_a_stranger(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536,
					     &b->conn),
				 0);
		assert_true(sent(b));
		in(b, (struct tas_segment){
			      .flags = TAS_SYN, .seq = 99000, .window = 10 });
		assert_int_equal(drain(b), 1);
		if (i)
			tick(b, 300 * TAS_SEC);
		else
			in(b, (struct tas_segment){ .flags = TAS_RST | TAS_ACK,
						    .ack = b->conn->iss + 1 });
		for (u32 n = 0; i && n < 20; n++) {
			drain(b);
			tick(b, 70 * TAS_SEC);
		}
		assert_int_equal(b->conn->f.state, TAS_CLOSED);
		assert_int_equal(b->conn->error,
				 i ? TAS_ETIMEDOUT : TAS_ECONNREFUSED);
		tas_close(&b->engine, b->conn);
		hear(b);
	}
	bench_free(b);
}

static u32 longest_chain(struct bench *b)
{
	struct homa_list *node, *bucket;
	u32 i, n, most = 0;

	for (i = 0; i < b->engine.table.size; i++) {
		bucket = homa_table_bucket(&b->engine.table, i);
		n = 0;
		homa_list_for_each(node, bucket)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* Whichever part of the address or port a peer varies, its connections spread. */
static void opening__connections_spread(void **state)
{
	struct tas_conn *conn;
	u32 part, i;

	(void)state;
	for (part = 0; part < 18; part++) {
		struct bench *b = bench_new(1500);

		memset(b->pair.remote, 0, sizeof(b->pair.remote));
		for (i = 0; i < 256; i++) {
			if (part < 16)
				b->pair.remote[part] = (u8)i;
			else
				b->pair.remote_port = (u16)(i << (part - 16) * 8);
			assert_int_equal(tas_connect(&b->engine, &b->pair, 16,
						     65536, &conn),
					 0);
		}
		assert_true(longest_chain(b) <= 10);
		bench_free(b);
	}
}

/* Half-open connections of one owner's two listeners: half of what there may be, and the
 * other's are remembered all the same. */
static void opening__a_share_of_the_half_open(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_listener two;
	u32 one = 0, other = 0, i;

	(void)state;
	b->engine.half_most = 40;
	listen_at(b, 100);
	b->listener.shared_half = &one;
	two = (struct tas_listener){ .port = 81,
				     .rx_shift = 16,
				     .rx_max = 65536,
				     .backlog = 100,
				     .shared_half = &one };
	assert_int_equal(tas_listen(&b->engine, &two), 0);
	for (i = 0; i < 60; i++) {
		b->pair.local_port = (u16)(80 + i % 2);
		syn_from(b, (u16)(3000 + i));
	}
	assert_int_equal(one, 20);
	assert_int_equal(b->listener.num_half, 10);
	assert_int_equal(two.num_half, 10);
	assert_int_equal(b->engine.num_half, 20);
	assert_int_equal(b->engine.metrics.half_open_shared, 40);
	assert_int_equal(b->engine.metrics.cookies_sent, 40);
	two.shared_half = &other;
	for (i = 0; i < 5; i++)
		syn_from(b, (u16)(4000 + i));
	assert_int_equal(two.num_half, 15);
	assert_int_equal(other, 5);
	two.shared_half = &one;
	one += other;
	tas_unlisten(&b->engine, &two);
	tas_unlisten(&b->engine, &b->listener);
	assert_int_equal(one, 0);
	assert_int_equal(b->engine.num_half, 0);
	bench_free(b);
}

static void opened_from(struct bench *b, u16 port)
{
	b->pair.remote_port = port;
	in(b,
	   (struct tas_segment){ .flags = TAS_SYN, .seq = IRS, .window = 1000 });
	/* A listener without room does not answer. */
	if (!sent(b))
		return;
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->seg.seq + 1,
				    .window = 1000 });
}

/* The same for open connections that nobody has accepted, for as long as that is so. */
static void opening__a_share_of_those_that_wait(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_listener two;
	struct tas_conn *conn;
	u32 one = 0, other = 0, i;

	(void)state;
	b->engine.ready_most = 40;
	listen_at(b, 100);
	b->listener.shared_ready = &one;
	two = (struct tas_listener){ .port = 81,
				     .rx_shift = 16,
				     .rx_max = 65536,
				     .backlog = 100,
				     .shared_ready = &one };
	assert_int_equal(tas_listen(&b->engine, &two), 0);
	for (i = 0; i < 60; i++) {
		b->pair.local_port = (u16)(80 + i % 2);
		opened_from(b, (u16)(3000 + i));
	}
	assert_int_equal(one, 20);
	assert_int_equal(b->listener.num_ready, 10);
	assert_int_equal(two.num_ready, 10);
	conn = tas_accept(&b->engine, &two);
	assert_non_null(conn);
	assert_int_equal(one, 19);
	tas_abort(&b->engine, conn);
	assert_int_equal(drain(b), 1);
	assert_int_equal(b->engine.num_ready, 19);
	two.shared_ready = &other;
	for (i = 0; i < 5; i++)
		opened_from(b, (u16)(4000 + i));
	assert_int_equal(other, 5);
	two.shared_ready = &one;
	one += other;
	tas_unlisten(&b->engine, &two);
	tas_unlisten(&b->engine, &b->listener);
	assert_int_equal(one, 0);
	drain(b);
	assert_int_equal(b->engine.num_ready, 0);
	bench_free(b);
}

/* Listeners that share a port get about as many connections each, and none of what one of them
 * leaves: that is reset. */
static void opening__listeners_share_a_port(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_listener two;
	u32 i;

	(void)state;
	listen_at(b, 1000);
	two = (struct tas_listener){
		.port = 80, .rx_shift = 16, .rx_max = 65536, .backlog = 1000
	};
	assert_int_equal(tas_listen(&b->engine, &two), TAS_EADDRINUSE);
	two.reuse = true;
	assert_int_equal(tas_listen(&b->engine, &two), TAS_EADDRINUSE);
	b->listener.reuse = true;
	assert_int_equal(tas_listen(&b->engine, &two), 0);
	b->pair.local_port = 80;
	for (i = 0; i < 200; i++)
		syn_from(b, (u16)(3000 + i));
	assert_int_equal(b->listener.num_half + two.num_half, 200);
	assert_in_range(two.num_half, 50, 150);
	/* A SYN that comes again is for the same connection. */
	for (i = 0; i < 200; i++)
		syn_from(b, (u16)(3000 + i));
	assert_int_equal(b->listener.num_half + two.num_half, 200);
	tas_unlisten(&b->engine, &b->listener);
	assert_int_equal(b->engine.num_half, two.num_half);
	i = two.num_half;
	syn_from(b, 4000);
	syn_from(b, 4001);
	assert_int_equal(two.num_half, i + 2);
	tas_unlisten(&b->engine, &two);
	assert_int_equal(b->engine.num_half, 0);
	bench_free(b);
}

/* A client's ports follow each other, and about half of its connections go to each listener,
 * whatever the engine's key is. */
static void opening__ports_that_follow_each_other(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_listener two = { .port = 80, .reuse = true };
	struct homa_rng rng;
	u32 turn, i, num, least = 40;

	(void)state;
	homa_rng_init(&rng, 7);
	listen_at(b, 1000);
	b->listener.reuse = true;
	assert_int_equal(tas_listen(&b->engine, &two), 0);
	b->pair.local_port = 80;
	for (turn = 0; turn < 2000; turn++) {
		for (i = 0; i < HOMA_ARRAY_SIZE(b->engine.hash_key); i++)
			b->engine.hash_key[i] = homa_rng_next(&rng);
		for (i = num = 0; i < 40; i++) {
			b->pair.remote_port = (u16)(40000 + 2 * i);
			num += tas_find_listener(&b->engine, &b->pair) == &two;
		}
		least = homa_min_u32(least, homa_min_u32(num, 40 - num));
	}
	/* By chance a listener has four or fewer once in some five million turns. */
	assert_in_range(least, 5, 20);
	tas_unlisten(&b->engine, &two);
	bench_free(b);
}

/* Of two listeners one ends while handshakes are under way. Their peers hear nothing: they ask
 * again, and the other listener answers. Who takes the connection for open hears a reset. */
static void opening__listener_ends_in_a_handshake(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_listener two = { .port = 80,
				    .rx_shift = 16,
				    .rx_max = 65536,
				    .backlog = 100,
				    .reuse = true };
	const struct tas_segment syn = { .flags = TAS_SYN,
					 .seq = IRS,
					 .window = 65535 };
	struct tas_conn *conn = NULL;
	u16 port = 3000;

	(void)state;
	listen_at(b, 100);
	b->listener.reuse = true;
	assert_int_equal(tas_listen(&b->engine, &two), 0);
	b->pair.local_port = 80;
	while (!b->listener.num_half)
		conn = syn_from(b, port++);
	ack_syn(b, conn);
	assert_int_equal(b->listener.num_ready, 1);
	/* No SYN-ACK has left for the last of these. */
	while (b->listener.num_half < 2) {
		b->pair.remote_port = port++;
		drain(b);
		in(b, syn);
	}
	tas_unlisten(&b->engine, &b->listener);
	assert_int_equal(b->engine.num_half, two.num_half);
	/* The connection that was open is reset, and nothing else. */
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_RST | TAS_ACK);
	assert_int_equal(drain(b), 0);
	in(b, syn);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN | TAS_ACK);
	tas_unlisten(&b->engine, &two);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->seg.seq + 1,
				    .window = 65535 });
	assert_true(sent(b));
	assert_int_equal(b->seg.flags & TAS_RST, TAS_RST);
	bench_free(b);
}

/* Takes what is sent; returns how many of it are resets. */
static u32 resets(struct bench *b)
{
	u32 n = 0;

	while (sent(b))
		n += !!(b->seg.flags & TAS_RST);
	return n;
}

/* A listener ends with more open connections than the engine keeps resets for. Each peer hears one
 * all the same, unless it has gone meanwhile. Bytes that come meanwhile are nobody's. */
static void opening__listener_ends_with_many(void **state)
{
	static const u32 none;
	struct bench *b = bench_new(1500);
	struct tas_conn *conn[200];
	u32 i;

	(void)state;
	listen_at(b, 200);
	b->listener.places = &none;
	b->pair.local_port = 80;
	for (i = 0; i < 200; i++) {
		conn[i] = syn_from(b, (u16)(3000 + i));
		ack_syn(b, conn[i]);
	}
	assert_int_equal(b->listener.num_ready, 200);
	drain(b);
	tas_unlisten(&b->engine, &b->listener);
	memset(&b->listener, 0xee, sizeof(b->listener));
	/* Half of the ring stays free for others. */
	assert_true(b->engine.stray_tail - b->engine.stray_head <= TAS_STRAYS / 2);
	b->pair.remote_port = 3198;
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = conn[198]->iss + 1,
				    .window = 65535,
				    .length = 10 });
	assert_null(b->copy.conn);
	b->pair.remote_port = 3199;
	in(b, (struct tas_segment){ .flags = TAS_RST, .seq = IRS + 1 });
	assert_int_equal(resets(b), 199);
	assert_int_equal(b->engine.table.count, 0);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(opening__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_strangers_syn),
		CASE(a_crossing_syn_that_is_meant),
		CASE(refused_beside_a_stranger),
		CASE(connections_spread),
		CASE(a_share_of_the_half_open),
		CASE(a_share_of_those_that_wait),
		CASE(listeners_share_a_port),
		CASE(ports_that_follow_each_other),
		CASE(listener_ends_in_a_handshake),
		CASE(listener_ends_with_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
