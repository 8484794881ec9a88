/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An engine with one link and one server port, for tests of its tables: it gets
 * packets, and nothing that it sends is looked at.
 */
#ifndef HOMA_ENGINE_BED_H
#define HOMA_ENGINE_BED_H

#include "unit.h"

#include "homa_impl.h"
#include "homa_seeds.h"

#define BUCKETS 1024u
#define PORT 99

struct bed {
	struct homa_limits limits;
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_sock *sock;
	struct homa_ctx ctx;
};

static inline void *zeroed(size_t size)
{
	void *mem = calloc(1, size);

	assert_non_null(mem);
	return mem;
}

static inline void bed_init(struct bed *b, const struct homa_seeds *seeds,
			    u32 rpcs, u32 peers)
{
	struct homa_params params;
	u32 i;

	memset(b, 0, sizeof(*b));
	b->limits = (struct homa_limits){ .shards = 1, .buckets = BUCKETS };
	homa_params_default(&params);
	params.max_peers = homa_max_u32(2 * peers, 10000);
	params.max_backlog = 0x7fffffff;
	params.max_rpcs = 0x7fffffff;
	b->engine = zeroed(homa_engine_size(&b->limits));
	b->link = zeroed(homa_link_size(64));
	b->sock = zeroed(homa_sock_size(&b->limits));
	assert_int_equal(homa_engine_init(b->engine, &b->limits, &params, seeds,
					  0),
			 0);
	homa_link_init(b->link, b->engine, 10000, 1500, 64);
	homa_ctx_init(&b->ctx, b->engine, 0);
	b->ctx.now = 1000000000;
	for (i = 0; i < rpcs; i++) {
		homa_ctx_give_rpc(&b->ctx, zeroed(homa_rpc_size(&b->limits)));
		homa_ctx_give_range(&b->ctx, zeroed(homa_range_size()));
	}
	for (i = 0; i < peers; i++)
		homa_ctx_give_peer(&b->ctx, zeroed(homa_peer_size(&b->limits)));
	assert_int_equal(homa_sock_open(&b->ctx, b->sock), 0);
	assert_int_equal(homa_sock_bind(&b->ctx, b->sock, PORT), 0);
}

static inline void bed_free(struct bed *b)
{
	struct homa_peer *peer;
	struct homa_rpc *rpc;
	void *mem;

	while (homa_sock_close(&b->ctx, b->sock, 1000))
		;
	homa_peers_drain(&b->ctx, UINT32_MAX);
	while ((rpc = homa_retired_rpc(&b->ctx)))
		free(rpc);
	while ((peer = homa_retired_peer(&b->ctx)))
		free(peer);
	while ((mem = homa_ctx_take_rpc(&b->ctx)))
		free(mem);
	while ((mem = homa_ctx_take_peer(&b->ctx)))
		free(mem);
	while ((mem = homa_ctx_take_range(&b->ctx)))
		free(mem);
	while ((mem = homa_ctx_take_segment(&b->ctx)))
		free(mem);
	while ((mem = homa_engine_segment(b->engine)))
		free(mem);
	free(b->sock);
	free(b->link);
	free(b->engine);
}

/* A packet of @bytes at @offset of a request that is said to have @length. */
static inline void request_part(struct bed *b, const struct homa_addr *from,
				u64 id, u32 length, u32 offset, u32 bytes)
{
	struct homa_packet p = {
		.hdr = { .type = HOMA_DATA,
			 .sport = 40000,
			 .dport = PORT,
			 .sender_id = id },
		.data = { .length = length,
			  .incoming = length,
			  .offset = offset,
			  .payload_len = bytes },
	};
	struct homa_rx_pkt pkt = { .src = from };
	u8 header[96];

	pkt.len = homa_packet_encode(header, &p) + p.data.payload_len;
	pkt.data = header;
	homa_rx(&b->ctx, b->link, &pkt, 1);
	assert_int_equal(pkt.verdict, HOMA_RX_DATA);
	homa_rx_copied(&b->ctx, &pkt);
	homa_rx_flush(&b->ctx);
}

/* The first of two packets of a request. */
static inline void request(struct bed *b, const struct homa_addr *from, u64 id)
{
	request_part(b, from, id, 2000, 0, 1000);
}

static inline struct homa_addr address(u32 n)
{
	struct homa_addr a = {
		.ip = { [10] = 0xff, 0xff, 10, (u8)(n >> 16), (u8)(n >> 8), (u8)n }
	};

	return a;
}

/* Nodes in the fullest bucket. */
static inline u32 longest(const struct homa_table *table)
{
	u32 i, most = 0;

	for (i = 0; i < table->size; i++) {
		struct homa_list *pos;
		u32 n = 0;

		homa_list_for_each(pos, homa_table_bucket(table, i))
			n++;
		most = homa_max_u32(most, n);
	}
	return most;
}

#endif
