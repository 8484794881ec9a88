// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* See crowd.h. */
#include <string.h>

#include "crowd.h"
#include "homa_codec.h"

#define LENGTH 100u

static void take(struct homa_ctx *ctx)
{
	struct homa_msg_info info;
	struct homa_event ev;

	while (homa_event_next(ctx, &ev))
		if (!homa_rx_take(ctx, ev.handle, &info) && info.num_pages)
			homa_pool_release(ctx, ev.sock, info.pages,
					  info.num_pages);
}

static void request(struct homa_ctx *ctx, struct homa_link *link, u32 peer,
		    u64 id, u16 port)
{
	struct homa_addr src = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 11 } };
	struct homa_packet p = { .hdr = { .type = HOMA_DATA,
					  .sport = 40000,
					  .dport = port,
					  .sender_id = id } };
	u8 data[HOMA_MAX_HDR + LENGTH];
	struct homa_rx_pkt rx = { .data = data, .src = &src };
	u32 room;

	src.ip[13] = (u8)(peer >> 16);
	src.ip[14] = (u8)(peer >> 8);
	src.ip[15] = (u8)peer;
	p.data = (struct homa_data){ .length = LENGTH, .incoming = LENGTH };
	memset(data, 0, sizeof(data));
	rx.len = homa_packet_encode(data, &p) + LENGTH;
	homa_rx(ctx, link, &rx, 1);
	if (rx.verdict == HOMA_RX_DATA) {
		homa_rx_place(rx.rpc, rx.offset, &room);
		homa_rx_copied(ctx, &rx);
	}
	homa_rx_flush(ctx);
	take(ctx);
}

u32 bench_crowd(struct homa_ctx *ctx, struct homa_link *link, u16 port,
		void (*refill)(void *arg), void *arg)
{
	struct homa_counts counts;
	u32 i;

	for (i = 0; i < CROWD_RPCS; i++) {
		refill(arg);
		request(ctx, link, i % CROWD_PEERS,
			2 + 2 * (u64)(i / CROWD_PEERS), port);
	}
	homa_engine_counts(ctx->engine, &counts);
	return counts.rpcs;
}
