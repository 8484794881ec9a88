/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One engine in virtual time, and a peer that a test plays segment by segment. */
#ifndef HOMA_TCP_BENCH_H
#define HOMA_TCP_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tas_call.h"

#define IRS 7000u
#define MSS 1000u
#define SPARE 300u

/* An engine, and what it sent last. */
struct bench {
	struct tas_engine engine;
	struct tas_listener listener;
	struct tas_conn *conn; /* of case_open() */
	struct tas_pair pair;
	struct tas_copy copy;
	struct tas_out out;
	struct tas_segment seg; /* decoded from @out */
	u64 now;
	u32 mtu;
};

static inline void tick(struct bench *b, u64 ns)
{
	b->now += ns;
	tas_set_now(&b->engine, b->now, 1000);
	tas_timers(&b->engine, 10000);
}

static inline struct bench *bench_new(u32 mtu)
{
	static const u64 seed[6] = { 1, 2, 3, 4, 5, 6 };
	struct bench *b = calloc(1, sizeof(*b));
	u32 i;

	assert_non_null(b);
	b->now = 3600 * TAS_SEC;
	b->mtu = mtu;
	tas_engine_init(&b->engine, seed, b->now, mtu);
	for (i = 0; i < SPARE; i++) {
		struct tas_conn *conn =
			aligned_alloc(64, (sizeof(*conn) + 63) / 64 * 64);

		assert_non_null(conn);
		memset(conn, 0, sizeof(*conn));
		tas_add_spare(&b->engine, conn);
	}
	b->pair = (struct tas_pair){
		.local = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
		.remote = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 },
		.local_port = 80,
		.remote_port = 2000
	};
	tick(b, 0);
	return b;
}

static inline void hear(struct bench *b)
{
	struct tas_conn *conn;
	u32 events;

	while ((conn = tas_next_event(&b->engine, &events)))
		if (events & TAS_EV_FREE)
			tas_add_spare(&b->engine, conn);
}

/* All is aborted; what was handed in is there again. */
static inline void bench_free(struct bench *b)
{
	struct homa_list *node;
	u32 i;

	for (i = 0; i < b->engine.table.size; i++)
		while ((node = homa_list_first(
				homa_table_bucket(&b->engine.table, i))))
			tas_abort(&b->engine,
				  homa_container_of(node, struct tas_conn,
						    f.hash));
	hear(b);
	assert_int_equal(b->engine.table.count, 0);
	assert_int_equal(b->engine.wheel.count, 0);
	while ((node = homa_list_pop(&b->engine.spare)))
		free(homa_container_of(node, struct tas_conn, f.hash));
	free(b);
}

/* The next segment that is sent is in @seg; false: there is none. */
static inline bool sent(struct bench *b)
{
	u32 ip = b->pair.remote[10] ? 20 : 40, payload;
	static u8 packet[TAS_HDR_MAX];

	if (!tas_next_out(&b->engine, &b->out))
		return false;
	payload = b->out.mss && b->out.length > b->out.mss ? b->out.mss :
							     b->out.length;
	if (payload)
		assert_true(ip + b->out.header_length + payload <= b->mtu);
	memcpy(packet, b->out.header, b->out.header_length);
	assert_int_equal(tas_decode(&b->seg, packet, b->out.header_length), 0);
	b->seg.length = b->out.length;
	return true;
}

static inline u32 drain(struct bench *b)
{
	u32 n = 0;

	while (sent(b))
		assert_true(++n < 100000);
	return n;
}

static inline void in(struct bench *b, struct tas_segment seg)
{
	tas_set_now(&b->engine, b->now, 1000);
	tas_rx(&b->engine, &b->pair, &seg, 0, &b->copy);
}

/* A pure ACK of our byte @at, counted from 0, with the widest window. */
static inline void ack(struct bench *b, u32 at)
{
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = b->conn->f.rcv_nxt,
				    .ack = b->conn->iss + 1 + at,
				    .window = 65535 });
}

/* connect(), and a peer that answers with @options. */
static inline void case_open(struct bench *b, u8 options, u8 flags)
{
	assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn),
			 0);
	assert_true(sent(b));
	tick(b, 100 * TAS_MSEC);
	in(b, (struct tas_segment){ .flags = (u8)(TAS_SYN | TAS_ACK | flags),
				    .seq = IRS,
				    .ack = b->conn->iss + 1,
				    .window = 65535,
				    .options = (u8)(TAS_OPT_MSS | options),
				    .mss = MSS,
				    .wscale = 14,
				    .ts = 1,
				    .ts_echo = b->seg.ts });
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	drain(b);
	hear(b);
}

static inline void listen_at(struct bench *b, u32 backlog)
{
	b->listener = (struct tas_listener){
		.port = 80, .rx_shift = 16, .rx_max = 65536, .backlog = backlog
	};
	assert_int_equal(tas_listen(&b->engine, &b->listener), 0);
}

static inline struct tas_conn *syn_from(struct bench *b, u16 port)
{
	b->pair.remote_port = port;
	in(b,
	   (struct tas_segment){ .flags = TAS_SYN, .seq = IRS, .window = 65535 });
	assert_true(sent(b));
	return homa_container_of(b->listener.half.prev, struct tas_conn, pending);
}

static inline void ack_syn(struct bench *b, struct tas_conn *conn)
{
	b->pair = conn->f.pair;
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = conn->iss + 1,
				    .window = 65535 });
}

#endif
