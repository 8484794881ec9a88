// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A connection within a host, as host/homad/fast/tcp_local.c has them: both ends are of one
 * engine, which hands each segment straight to itself. Receive buffers grow, windows are scaled,
 * and applications write and take odd numbers of bytes. Every byte is sent once and taken, and
 * nothing waits for a timer: time stands still.
 */
#include "tcp_bench.h"

#define MTU 65535u
#define FIRST_SHIFT 12u
#define BYTES (8u << 20)
#define SEEDS 60u

/* An end of the connection. */
struct end {
	struct tas_conn *conn;
	u32 wrote, took;
	u8 tx_shift, rx_most;
};

struct within {
	struct bench *b;
	struct homa_rng rng;
	struct end end[2];
};

static u32 draw(struct within *w, u32 n)
{
	return homa_rng_below(&w->rng, n);
}

static struct within *within_new(u64 seed)
{
	struct within *w = calloc(1, sizeof(*w));
	struct bench *b = bench_new(MTU);
	struct tas_engine *engine = &b->engine;
	u8 most = (u8)(FIRST_SHIFT + seed % 9);
	u32 i;

	w->b = b;
	homa_rng_init(&w->rng, seed);
	tas_set(engine, "delack_ms", 0);
	tas_set(engine, "timestamps", 0);
	tas_set(engine, "sack", 0);
	tas_set(engine, "ecn", 0);
	tas_set(engine, "tail_loss_probe", 0);
	tas_set(engine, "black_hole", 0);
	tas_set(engine, "initial_window", 2);
	b->listener = (struct tas_listener){ .port = b->pair.remote_port,
					     .backlog = 8,
					     .rx_shift = FIRST_SHIFT,
					     .rx_max = 1u << most };
	assert_int_equal(tas_listen(engine, &b->listener), 0);
	assert_int_equal(tas_connect(engine, &b->pair, FIRST_SHIFT, 1u << most,
				     &w->end[0].conn),
			 0);
	for (i = 0; i < 2; i++) {
		w->end[i].rx_most = most;
		w->end[i].tx_shift = (u8)(FIRST_SHIFT + draw(w, 9));
	}
	return w;
}

/* Hands at most @most segments over; returns how many. */
static u32 pump(struct within *w, u32 most)
{
	struct tas_engine *engine = &w->b->engine;
	struct tas_segment seg;
	struct tas_copy copy;
	struct tas_out out;
	struct tas_pair pair;
	u32 n;

	for (n = 0; n < most && tas_next_out(engine, &out); n++) {
		pair = *out.pair;
		memcpy(pair.local, out.pair->remote, sizeof(pair.local));
		memcpy(pair.remote, out.pair->local, sizeof(pair.remote));
		pair.local_port = out.pair->remote_port;
		pair.remote_port = out.pair->local_port;
		assert_int_equal(tas_decode(&seg, out.header, out.header_length),
				 0);
		seg.length = out.length;
		tas_rx(engine, &pair, &seg, out.ecn, &copy);
		/* Nothing is lost. */
		assert_int_equal(copy.conn ? copy.length : 0, out.length);
		hear(w->b);
	}
	return n;
}

static void write_some(struct within *w, struct end *e, u32 most)
{
	u32 room = (1u << e->tx_shift) - tas_unacked(e->conn);
	u32 n = homa_min_u32(homa_min_u32(room, most), BYTES - e->wrote);

	if (!n)
		return;
	e->wrote += n;
	tas_written(&w->b->engine, e->conn, n);
}

static u32 take_some(struct within *w, struct end *e, u32 most)
{
	u32 n = homa_min_u32(tas_readable(e->conn), most);

	if (n)
		tas_taken(&w->b->engine, e->conn, n);
	e->took += n;
	return n;
}

static void grow(struct within *w, struct end *e)
{
	u8 shift = e->conn->f.rx_shift;

	if (shift < e->rx_most)
		tas_set_buffer(&w->b->engine, e->conn,
			       (u8)(shift + 1 + draw(w, e->rx_most - shift)));
}

/* Does one thing. */
static void step(struct within *w, bool both)
{
	struct end *e = &w->end[both ? draw(w, 2) : 0];
	struct end *reader = &w->end[both ? draw(w, 2) : 1];
	u32 most = 1 + draw(w, 1u << draw(w, 20));

	switch (draw(w, 8)) {
	case 0:
		pump(w, 1 + draw(w, 8));
		break;
	case 1:
	case 2:
		write_some(w, e, most);
		break;
	case 3:
		if (!draw(w, 20))
			grow(w, reader);
		break;
	default:
		take_some(w, reader, most);
	}
}

/* When all has been handed over and taken again and again, nothing waits. */
static void settles(struct within *w)
{
	u32 i;

	while (pump(w, UINT32_MAX) + take_some(w, &w->end[0], UINT32_MAX) +
	       take_some(w, &w->end[1], UINT32_MAX))
		;
	for (i = 0; i < 2; i++) {
		const struct tas_conn *conn = w->end[i].conn;

		if (tas_unacked(conn))
			fail_msg("%u bytes wait, %u sent, window %d of %u, peer's buffer %u",
				 tas_unacked(conn), tas_in_flight(conn),
				 (int)(conn->f.snd_edge - conn->f.snd_nxt),
				 conn->snd_most,
				 1u << w->end[!i].conn->f.rx_shift);
		assert_int_equal(w->end[i].wrote, w->end[!i].took);
	}
}

static void run(u64 seed, bool both)
{
	struct within *w = within_new(seed);
	u32 n = 0;

	pump(w, UINT32_MAX);
	w->end[1].conn = tas_accept(&w->b->engine, &w->b->listener);
	assert_non_null(w->end[1].conn);
	if (seed % 2)
		w->end[0].conn->f.flags |= TAS_F_NODELAY;
	while (w->end[0].wrote < BYTES) {
		step(w, both);
		if (++n % 64 == 0 && !draw(w, 4))
			settles(w);
	}
	/* The end comes behind the last byte, whether that fits into the window or not. */
	tas_shut_send(&w->b->engine, w->end[0].conn);
	settles(w);
	assert_true(w->end[1].conn->f.flags & TAS_F_FIN_IN);
	assert_int_equal(w->b->engine.metrics.retransmits, 0);
	tas_unlisten(&w->b->engine, &w->b->listener);
	bench_free(w->b);
	free(w);
}

static void within__one_way(void **state)
{
	u64 seed;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++)
		run(seed, false);
}

static void within__both_ways(void **state)
{
	u64 seed;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++)
		run(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within__one_way),
		cmocka_unit_test(within__both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
