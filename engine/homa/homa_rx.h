/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What homa_rx.c and homa_rx_ctrl.c share. Unless it says otherwise a function
 * runs under the lock of the packet's shard.
 */
#ifndef HOMA_RX_H
#define HOMA_RX_H

#include "homa_impl.h"

/*
 * struct homa_rx_in - where a packet came in and where its RPC belongs; the RPC itself,
 *	if it exists, is homa_ctx.rx_rpc
 * @link: link on which the packet came.
 * @shard: shard of the packet's RPC, which is locked; it follows from @hash.
 * @hash: homa_rpc_hash() of the RPC's id.
 * @start: offset in the message of the first byte that the packet carries or announces.
 * @end: offset behind the last such byte.
 * @whole: the packet is DATA and carries all of its message.
 *
 * Written by: homa_rx(), of one call of which it is a variable.
 */
struct homa_rx_in {
	struct homa_link *link;
	struct homa_shard *shard;
	u32 hash;
	u32 start, end;
	bool whole;
};

/* homa_deliver.c: delivers @rpc's message if all of it is in @pkt and it may be delivered at
 * once; false: it goes the usual way. */
HOMA_HOT bool homa_rx_deliver_whole(struct homa_ctx *ctx, struct homa_rpc *rpc,
				    struct homa_rx_pkt *pkt);

/* homa_rx_ctrl.c */
/* Makes room for an answer to a packet about an RPC that does not exist here. */
struct homa_ctrl *homa_ctrl_answer(struct homa_ctx *ctx, struct homa_link *link,
				   const struct homa_rx_pkt *pkt,
				   const struct homa_hdr *hdr, u8 type);
/* Answers a request from @src for an earlier life of this host, of which nothing is known. */
HOMA_RARE void homa_rx_other_life(struct homa_ctx *ctx, struct homa_link *link,
				  const struct homa_addr *src, u64 id,
				  u16 sport, u16 dport);
/* Works off a packet of any type but DATA, START_MSG and ACK. */
void homa_rx_control(struct homa_ctx *ctx, const struct homa_rx_in *in,
		     struct homa_rx_pkt *pkt, const struct homa_packet *p);
/* Works off acks that came with DATA. No lock held. */
void homa_rx_owed(struct homa_ctx *ctx);
/* Takes in an ACK, which ends RPCs. No lock held. */
void homa_rx_acks(struct homa_ctx *ctx, const struct homa_rx_pkt *pkt,
		  const struct homa_packet *p);
/* @peer has finished its RPC @client_id with our port @server_port. No lock held. */
void homa_rx_ack(struct homa_ctx *ctx, const struct homa_addr *peer,
		 u64 client_id, u16 server_port);

#endif
