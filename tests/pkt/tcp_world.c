// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two hosts with a TCP engine each over a network that does its worst, in virtual time
 * and from a seed: packets are lost, copied, late and overtaken; applications write and
 * read as it pleases them. Every byte arrives once and in order (the bed looks at each),
 * every connection ends, and nothing of it is left.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>
#include "bed_impl.h"
#include "tcp_check.h"
#include "tas_impl.h"

#define WIRE 4096
#define PACKET 1600
/* of virtual time: by then all has ended */
#define LIMIT (4ull * 3600 * TAS_SEC)

struct flying {
	u64 at;
	u32 length;
	int to;
	u8 bytes[PACKET];
};

/* What the network and the applications do, in thousandths. */
struct habits {
	u32 loss, copy, late;
	u64 delay, jitter;
	u32 mtu[2];
	u32 bytes[2]; /* that each side writes */
	u32 rcvbuf;
	bool half_close; /* the server goes on after the client has shut down */
	bool both_close; /* both at once */
	bool simultaneous_open;
	bool v6, ecn, dctcp, no_sack, no_ts, cookies;
	bool wraps; /* the sequence numbers of each side go through 2^32 */
	u32 strangers; /* forged segments, by somebody who knows addresses and ports only */
	u32 liars; /* damaged copies of segments, by somebody who sees them all */
	u32 marks;
};

struct world {
	struct habits habits;
	struct homa_rng rng;
	u64 now;
	struct pkt_bed *bed[2];
	struct flying *wire[WIRE];
	u32 flying;
	int fd[2], listener;
	u32 wrote[2], read[2];
	bool shut[2], ended[2], closed[2];
	int error[2];
	u32 lost_in_row;
};

static u32 draw(struct world *w, u32 n)
{
	return homa_rng_below(&w->rng, n);
}

static const u8 ip4[2][16] = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
			       { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } };
static const u8 ip6[2][16] = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 } };

static const u8 *address(const struct world *w, int host)
{
	return w->habits.v6 ? ip6[host] : ip4[host];
}

static void fly(struct world *w, const u8 *packet, u32 length, int to)
{
	struct flying *f;
	u64 delay = w->habits.delay;

	if (w->habits.jitter)
		delay += homa_rng_next(&w->rng) % w->habits.jitter;
	if (draw(w, 1000) < w->habits.late)
		delay += draw(w, 3000) * TAS_MSEC;
	if (w->flying == WIRE)
		return;
	f = malloc(sizeof(*f));
	assert_non_null(f);
	f->at = w->now + delay;
	f->to = to;
	f->length = length;
	memcpy(f->bytes, packet, length);
	w->wire[w->flying++] = f;
}

/* A router's congestion mark. */
static void mark(const struct world *w, u8 *packet)
{
	if (w->habits.v6)
		packet[1] |= 0x30;
	else
		packet[1] |= 3;
}

/* TCP_TRACE=1: each segment that is sent. */
static void trace(const struct world *w, int from, const u8 *packet, u32 length)
{
	u32 ip = w->habits.v6 ? 40 : 20;
	struct tas_segment seg;

	if (!getenv("TCP_TRACE") || tas_decode(&seg, packet + ip, length - ip))
		return;
	printf("%llu us %d: flags %02x seq %u ack %u length %u window %u sacks %u\n",
	       (unsigned long long)(w->now / 1000), from, seg.flags, seg.seq,
	       seg.ack, seg.length, seg.window, seg.num_sacks);
}

/* Nothing is sent beyond the window that the peer has offered. */
static void within_window(const struct world *w, int from, const u8 *packet,
			  u32 length)
{
	const struct tas_conn *peer = tcp_check_only(&w->bed[!from]->engine);
	u32 ip = w->habits.v6 ? 40 : 20;
	struct tas_segment seg;

	assert_int_equal(tas_decode(&seg, packet + ip, length - ip), 0);
	if (!w->habits.liars && peer && tas_open(peer) && seg.length &&
	    !(peer->f.flags & TAS_F_FIN_IN))
		assert_false(tas_after(seg.seq + seg.length,
				       peer->f.rcv_edge + tas_scale_slack(peer)));
}

/* A copy of which some bytes behind the addresses are others. */
static void lie(struct world *w, const u8 *packet, u32 length, int to)
{
	u32 ip = w->habits.v6 ? 40 : 20, n = 1 + draw(w, 4);
	u8 copy[PACKET];

	memcpy(copy, packet, length);
	while (n--) {
		u32 at = ip + 4 + draw(w, homa_min_u32(length - ip - 4, 56));

		copy[at] = draw(w, 2) ? (u8)draw(w, 256) :
					(u8)(copy[at] + draw(w, 3) - 1);
	}
	fly(w, copy, length, to);
}

static void collect(struct world *w, int from)
{
	u8 packet[PACKET];
	int n;

	while ((n = pkt_bed_out(w->bed[from], packet, sizeof(packet)))) {
		assert_true(n > 0);
		trace(w, from, packet, (u32)n);
		assert_true((u32)n <= w->habits.mtu[from]);
		within_window(w, from, packet, (u32)n);
		if (draw(w, 1000) < w->habits.liars)
			lie(w, packet, (u32)n, !from);
		if (draw(w, 1000) < w->habits.loss && w->lost_in_row < 6) {
			w->lost_in_row++;
			continue;
		}
		w->lost_in_row = 0;
		if (draw(w, 1000) < w->habits.marks)
			mark(w, packet);
		fly(w, packet, (u32)n, !from);
		if (draw(w, 1000) < w->habits.copy)
			fly(w, packet, (u32)n, !from);
	}
}

static void write_some(struct world *w, int side)
{
	u32 left = w->habits.bytes[side] - w->wrote[side];
	int n;

	if (!left || w->shut[side])
		return;
	n = pkt_bed_write(w->bed[side], w->fd[side],
			  homa_min_u32(left, 1 + draw(w, 20000)), 0);
	if (n > 0)
		w->wrote[side] += (u32)n;
	else if (n != -EAGAIN)
		w->error[side] = n;
}

static void read_some(struct world *w, int side)
{
	int n = pkt_bed_read(w->bed[side], w->fd[side], 1 + draw(w, 30000), 0);

	if (!w->habits.liars)
		assert_int_not_equal(n, -EBADMSG);
	if (n > 0)
		w->read[side] += (u32)n;
	else if (n == 0)
		w->ended[side] = true;
	else if (n != -EAGAIN)
		w->error[side] = n;
}

/* The server waits for the client's end unless both close at once. */
static bool may_shut(const struct world *w, int side)
{
	if (w->wrote[side] < w->habits.bytes[side])
		return false;
	return w->habits.both_close || side == 0 || w->ended[1];
}

static void apply(struct world *w, int side)
{
	if (w->fd[side] < 0 || w->closed[side])
		return;
	if (draw(w, 4))
		write_some(w, side);
	if (draw(w, 3))
		read_some(w, side);
	if (!w->shut[side] && may_shut(w, side) &&
	    !pkt_bed_shutdown(w->bed[side], w->fd[side], SHUT_WR))
		w->shut[side] = true;
	if (w->shut[side] && w->ended[side]) {
		pkt_bed_close(w->bed[side], w->fd[side]);
		w->closed[side] = true;
	}
}

static void deliver(struct world *w)
{
	u32 i = 0;

	while (i < w->flying) {
		struct flying *f = w->wire[i];

		if (f->at > w->now) {
			i++;
			continue;
		}
		w->wire[i] = w->wire[--w->flying];
		pkt_bed_in(w->bed[f->to], f->bytes, f->length);
		free(f);
	}
}

static u64 next_event(const struct world *w)
{
	u64 next = homa_min_u64(pkt_bed_next(w->bed[0]), pkt_bed_next(w->bed[1]));
	u32 i;

	for (i = 0; i < w->flying; i++)
		next = homa_min_u64(next, w->wire[i]->at);
	return next;
}

static bool over(const struct world *w)
{
	return w->closed[0] && w->closed[1] && !w->bed[0]->engine.table.count &&
	       !w->bed[1]->engine.table.count &&
	       !w->bed[0]->engine.ended.count && !w->bed[1]->engine.ended.count;
}

/* A segment to @to as if the other end had sent it, all else by chance. */
static void forge(struct world *w, int to)
{
	static const u8 flags[] = { TAS_RST,
				    TAS_RST | TAS_ACK,
				    TAS_SYN,
				    TAS_SYN | TAS_ACK,
				    TAS_ACK,
				    TAS_ACK | TAS_FIN,
				    TAS_ACK | TAS_URG,
				    0,
				    0xff };
	struct tas_segment seg = { .sport = to ? 1000 : 80,
				   .dport = to ? 80 : 1000 };
	struct tas_pair pair;
	struct tas_out out = { .pair = &pair, .ecn = (u8)draw(w, 4) };
	u8 packet[PACKET];
	int n;

	seg.seq = (u32)homa_rng_next(&w->rng);
	seg.ack = (u32)homa_rng_next(&w->rng);
	seg.flags = flags[draw(w, sizeof(flags))];
	seg.window = (u16)draw(w, 65536);
	seg.options = (u8)draw(w, 32) & (u8)(draw(w, 2) ? 0xff : TAS_OPT_TS);
	seg.mss = (u16)draw(w, 65536);
	seg.wscale = (u8)draw(w, 16);
	seg.num_sacks = (u8)draw(w, TAS_SACKS + 1);
	seg.ts = (u32)homa_rng_next(&w->rng);
	seg.ts_echo = (u32)homa_rng_next(&w->rng);
	memcpy(pair.local, address(w, !to), 16);
	memcpy(pair.remote, address(w, to), 16);
	out.header_length = (u8)tas_encode(&seg, out.header);
	out.length = draw(w, 100);
	/* The other end's bed writes it, as nobody else can. */
	bed_send(w->bed[!to], &out);
	n = pkt_bed_out(w->bed[!to], packet, sizeof(packet));
	assert_true(n > 0);
	pkt_bed_in(w->bed[to], packet, (u32)n);
}

static void attack(struct world *w)
{
	int to;

	for (to = 0; to < 2; to++) {
		const struct tas_conn *conn = tcp_check_only(&w->bed[to]->engine);
		bool opens, open;

		collect(w, !to);
		/* A SYN of anybody is taken for the other's by who opens at the same time. */
		opens = !to && conn && conn->f.state < TAS_ESTABLISHED &&
			!w->habits.simultaneous_open;
		open = w->fd[1] >= 0 && conn && tas_open(conn);
		if ((opens || open) && !w->closed[0] && !w->closed[1] &&
		    draw(w, 1000) < w->habits.strangers)
			forge(w, to);
	}
}

static void check(struct world *w)
{
	const char *wrong;
	int side;

	for (side = 0; side < 2; side++) {
		wrong = tcp_check(&w->bed[side]->engine);
		if (wrong)
			print_error("at %llu ms, side %d: %s\n",
				    (unsigned long long)(w->now / TAS_MSEC),
				    side, wrong);
		assert_null(wrong);
	}
}

static void step(struct world *w)
{
	u64 next = next_event(w);
	int side;

	/* Applications wake by themselves, too. */
	w->now = homa_max_u64(w->now + 1,
			      homa_min_u64(next, w->now + TAS_MSEC * 10));
	for (side = 0; side < 2; side++)
		pkt_bed_run(w->bed[side], w->now);
	deliver(w);
	if (w->listener >= 0 && w->fd[1] < 0)
		w->fd[1] = pkt_bed_accept(w->bed[1], w->listener);
	for (side = 0; side < 2; side++)
		apply(w, side);
	/* A copy of the ACK that carried a cookie would open a connection for nobody. */
	if (w->habits.cookies && w->listener >= 0 && w->closed[0] &&
	    w->closed[1]) {
		pkt_bed_close(w->bed[1], w->listener);
		w->listener = -1;
	}
	attack(w);
	for (side = 0; side < 2; side++)
		collect(w, side);
	check(w);
}

static struct pkt_bed *host(struct world *w, int side, u64 seed)
{
	struct pkt_bed *bed =
		pkt_bed_new(w->habits.mtu[side], w->habits.v6 ? 6 : 4,
			    address(w, side), seed * 2 + (u64)side);

	assert_non_null(bed);
	if (w->habits.rcvbuf)
		pkt_bed_set(bed, "rcvbuf", w->habits.rcvbuf);
	if (w->habits.ecn)
		pkt_bed_set(bed, "ecn", 1);
	pkt_bed_set(bed, "dctcp", w->habits.dctcp);
	pkt_bed_set(bed, "ended", seed % 3);
	pkt_bed_set(bed, "congestion", seed % 7 % TAS_CONTROLS);
	pkt_bed_set(bed, "pacing", seed % 4 == 1);
	pkt_bed_set(bed, "rate_kbps", 2000 + seed % 5 * 10000);
	pkt_bed_set(bed, "sack", !w->habits.no_sack);
	pkt_bed_set(bed, "timestamps", !w->habits.no_ts);
	/* However much is lost, nobody gives up. */
	pkt_bed_set(bed, "retries", 127);
	pkt_bed_set(bed, "orphan_retries", 127);
	pkt_bed_set(bed, "synack_retries", 127);
	pkt_bed_set(bed, "syn_retries", 127);
	pkt_bed_set(bed, "rto_max_ms", 10000);
	if (w->habits.cookies)
		pkt_bed_set(bed, "syn_cookies", 2);
	return bed;
}

/* Such a time that the client's first sequence number is a little before 2^32. */
static u64 before_wrap(struct world *w, int side)
{
	struct tas_pair pair = { .local_port = side ? 80 : 1000,
				 .remote_port = side ? 1000 : 80 };
	u32 ts, iss;

	memcpy(pair.local, address(w, side), 16);
	memcpy(pair.remote, address(w, !side), 16);
	iss = tas_initial_seq(&w->bed[side]->engine, &pair, &ts);
	return (u64)(0u - iss - draw(w, 300000)) << 8;
}

static void begin(struct world *w, const struct habits *habits, u64 seed)
{
	int side;

	memset(w, 0, sizeof(*w));
	w->habits = *habits;
	homa_rng_init(&w->rng, seed);
	for (side = 0; side < 2; side++) {
		w->bed[side] = host(w, side, seed);
		w->fd[side] = -1;
	}
	w->listener = -1;
	if (habits->wraps) {
		w->now = before_wrap(w, (int)draw(w, 2));
		for (side = 0; side < 2; side++)
			pkt_bed_run(w->bed[side], w->now);
	}
	w->fd[0] = pkt_bed_socket(w->bed[0]);
	assert_int_equal(pkt_bed_bind(w->bed[0], w->fd[0], address(w, 0), 1000),
			 0);
	if (habits->simultaneous_open) {
		w->fd[1] = pkt_bed_socket(w->bed[1]);
		assert_int_equal(pkt_bed_bind(w->bed[1], w->fd[1],
					      address(w, 1), 80),
				 0);
		assert_int_equal(pkt_bed_connect(w->bed[1], w->fd[1],
						 address(w, 0), 1000),
				 -EINPROGRESS);
	} else {
		w->listener = pkt_bed_socket(w->bed[1]);
		assert_int_equal(pkt_bed_bind(w->bed[1], w->listener,
					      address(w, 1), 80),
				 0);
		assert_int_equal(pkt_bed_listen(w->bed[1], w->listener, 8), 0);
	}
	assert_int_equal(pkt_bed_connect(w->bed[0], w->fd[0], address(w, 1), 80),
			 -EINPROGRESS);
}

static void finish(struct world *w)
{
	int side;

	while (w->flying)
		free(w->wire[--w->flying]);
	for (side = 0; side < 2; side++)
		pkt_bed_free(w->bed[side]);
}

static void play(const struct habits *habits, u64 seed)
{
	struct world w;
	int side;

	begin(&w, habits, seed);
	while (!over(&w) && w.now < LIMIT && !w.error[0] && !w.error[1])
		step(&w);
	if (!over(&w))
		print_error("seed %llu: at %llu ms: wrote %u %u, read %u %u, errors %d %d\n",
			    (unsigned long long)seed,
			    (unsigned long long)(w.now / TAS_MSEC), w.wrote[0],
			    w.wrote[1], w.read[0], w.read[1], w.error[0],
			    w.error[1]);
	assert_true(over(&w));
	for (side = 0; side < 2; side++)
		assert_int_equal(w.read[side], habits->bytes[!side]);
	finish(&w);
}

static const struct habits usual = {
	.delay = 50000,
	.mtu = { 1500, 1500 },
	.bytes = { 200000, 100000 },
};

static void world__a_quiet_network(void **state)
{
	(void)state;
	play(&usual, 1);
}

static void world__nothing_but_the_ends(void **state)
{
	struct habits h = usual;

	(void)state;
	h.bytes[0] = h.bytes[1] = 0;
	play(&h, 2);
	h.both_close = true;
	play(&h, 3);
}

static struct habits any(u64 seed)
{
	struct homa_rng rng;
	struct habits h = usual;

	homa_rng_init(&rng, seed * 77);
	h.loss = homa_rng_below(&rng, 3) ? homa_rng_below(&rng, 200) : 0;
	h.copy = homa_rng_below(&rng, 2) ? homa_rng_below(&rng, 100) : 0;
	h.late = homa_rng_below(&rng, 3) ? 0 : homa_rng_below(&rng, 20);
	h.delay = 1000 + homa_rng_below(&rng, 50000000);
	h.jitter = homa_rng_below(&rng, 2) ? homa_rng_below(&rng, 20000000) : 0;
	h.mtu[0] = 576 + homa_rng_below(&rng, 925);
	h.mtu[1] = 576 + homa_rng_below(&rng, 925);
	h.bytes[0] = homa_rng_below(&rng, 200000);
	h.bytes[1] = homa_rng_below(&rng, 200000);
	h.rcvbuf = homa_rng_below(&rng, 2) ?
			   1u << (11 + homa_rng_below(&rng, 9)) :
			   0;
	h.both_close = homa_rng_below(&rng, 2);
	h.simultaneous_open = !homa_rng_below(&rng, 6);
	h.v6 = homa_rng_below(&rng, 2);
	if (h.v6)
		h.mtu[0] = h.mtu[1] = 1280 + homa_rng_below(&rng, 220);
	h.ecn = homa_rng_below(&rng, 2);
	h.dctcp = homa_rng_below(&rng, 2);
	h.marks = homa_rng_below(&rng, 2) ? homa_rng_below(&rng, 300) : 0;
	h.no_sack = !homa_rng_below(&rng, 3);
	h.no_ts = !homa_rng_below(&rng, 3);
	h.cookies = !homa_rng_below(&rng, 3);
	h.wraps = homa_rng_below(&rng, 2);
	h.strangers = homa_rng_below(&rng, 2) ? homa_rng_below(&rng, 500) : 0;
	return h;
}

static void world__anything(void **state)
{
	const char *only = getenv("TCP_SEED"), *count = getenv("TCP_WORLDS");
	u64 seed, last = count ? strtoull(count, NULL, 0) : 300;

	(void)state;
	if (only) {
		struct habits h = any(strtoull(only, NULL, 0));

		play(&h, strtoull(only, NULL, 0));
		return;
	}
	for (seed = 100; seed < 100 + last; seed++) {
		struct habits h = any(seed);

		play(&h, seed);
	}
}

/* Whoever sees the segments can end a connection and change its bytes, and no more. */
static void world__liars(void **state)
{
	const char *only = getenv("TCP_SEED"), *count = getenv("TCP_WORLDS");
	u64 last = count ? strtoull(count, NULL, 0) : 200, seed = 100;

	(void)state;
	for (last += seed; seed < last; seed++) {
		struct habits h = any(only ? strtoull(only, NULL, 0) : seed);
		struct world w;
		u32 steps = 5000;

		h.liars = 1 + homa_rng_below(&(struct homa_rng){ seed }, 300);
		begin(&w, &h, only ? strtoull(only, NULL, 0) : seed);
		while (!over(&w) && steps--)
			step(&w);
		finish(&w);
		if (only)
			return;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(world__a_quiet_network),
		cmocka_unit_test(world__nothing_but_the_ends),
		cmocka_unit_test(world__anything),
		cmocka_unit_test(world__liars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
