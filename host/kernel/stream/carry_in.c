// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages that came for a carrier. As recvmsg() does (recv.c), but for whole messages only,
 * and without copying: the packets are the message until its bytes are in a ring.
 */
#include "homa_stream.h"
#include "homa_sockets.h"

/* ---- taking ---- */

/* Describes in @m the message that the packet @skb is, and tells the engine that it was taken. */
static void homak_carry_one(struct homak_carrier *carrier, struct sk_buff *skb,
			    struct homak_carried *m)
{
	homak_whole_info(homak_whole_cb(skb), &m->info);
	if (m->info.kind == HOMA_EV_REQUEST)
		homa_sock_taken(carrier->hsk->engine_sock, 1);
	m->skbs = skb;
	m->one = true;
}

/* Tells the engine of the packets of @batch. Returns 1 if the message is complete and @info
 * has it, or it failed; 0 if a packet is still on its way to the queue, on another CPU;
 * -EINVAL if the RPC is gone. */
static int homak_carry_finish(struct homak_cpu *cpu, struct homa_handle handle,
			      const struct homak_batch *batch,
			      struct homa_msg_info *info)
{
	struct homa_rx_pkt pkt;
	struct sk_buff *skb;
	int rc = 0;

	pkt.rpc = NULL;
	pkt.fresh = 0;
	for (skb = batch->skbs; skb; skb = skb->next) {
		pkt.fresh += homak_rx_cb(skb)->fresh;
		if (pkt.rpc)
			homa_rpc_release(&cpu->ctx, homak_rx_cb(skb)->rpc);
		else
			pkt.rpc = homak_rx_cb(skb)->rpc;
	}
	if (pkt.rpc && batch->whole)
		rc = homa_rx_finish(&cpu->ctx, &pkt, info);
	else if (pkt.rpc)
		homa_rx_copied(&cpu->ctx, &pkt);
	if (!rc && batch->over)
		rc = homa_rx_take(&cpu->ctx, handle, info) ? -EINVAL : 1;
	return rc;
}

/* Reads an RPC that is in no list, with its list's hold. Returns 1 if @m has its message, 0 if
 * there is nothing. */
static int homak_carry_rpc(struct homak_sock *hsk, struct homak_rpc *krpc,
			   struct homak_batch *batch, struct homak_carried *m)
{
	struct homa_handle handle = homa_rpc_handle(krpc->rpc);
	struct homak_cpu *cpu;
	bool again;
	int rc;

	do {
		cpu = homak_enter_wait(hsk->hnet);
		rc = homak_carry_finish(cpu, handle, batch, &m->info);
		if (!rc && homak_inbox_unread(hsk, krpc, batch)) {
			homak_leave(cpu);
			return false;
		}
		if (rc > 0)
			m->skbs = batch->skbs;
		else if (rc)
			homak_batch_free(hsk, batch);
		again = homak_inbox_back(cpu, hsk, krpc, batch, rc != 0);
		homak_leave(cpu);
	} while (again);
	m->one = false;
	return rc > 0;
}

bool homak_carry_take(struct homak_carrier *carrier, struct homak_carried *m)
{
	struct homak_sock *hsk = carrier->hsk;
	struct homak_waiter waiter;

	for (;;) {
		homak_waiter_init(&waiter, 0);
		homak_inbox_whole(hsk, &waiter);
		if (waiter.what == HOMAK_WAITED_MESSAGE) {
			homak_carry_one(carrier, waiter.skb, m);
			return true;
		}
		if (waiter.what != HOMAK_WAITED_RPC)
			return false;
		if (homak_carry_rpc(hsk, waiter.handed, &waiter.batch, m))
			return true;
		cond_resched();
	}
}

void homak_carry_free(struct homak_carrier *carrier, struct homak_carried *m)
{
	struct homak_batch batch = { .skbs = m->skbs };
	struct homak_sock *hsk = carrier->hsk;
	struct homak_cpu *cpu;
	int rc;

	local_bh_disable();
	if (m->one)
		homak_whole_free(hsk, m->skbs);
	else
		homak_batch_free(hsk, &batch);
	rc = m->info.num_pages ?
		     homa_pool_return(hsk->engine_sock, m->info.pages,
				      m->info.num_pages) :
		     0;
	local_bh_enable();
	if (rc <= 0)
		return;
	cpu = homak_enter_wait(hsk->hnet);
	homa_pool_feed(&cpu->ctx, hsk->engine_sock);
	homak_leave(cpu);
}

/* ---- bytes ---- */

/* struct homak_piece - bytes of a message in a packet. Written by: who looks at it, on its
 * stack. */
struct homak_piece {
	/* The offset of its first byte in the message, in bytes. */
	u32 offset;
	/* The offset of its first byte in the packet, counted from skb->data. */
	u32 at;
	/* The number of its bytes. */
	u32 length;
};

static struct homak_piece homak_piece(const struct homak_carried *m,
				      struct sk_buff *skb)
{
	if (m->one)
		return (struct homak_piece){
			.at = homak_whole_cb(skb)->at,
			.length = homak_whole_cb(skb)->length,
		};
	return (struct homak_piece){
		.offset = homak_rx_cb(skb)->offset,
		.at = homak_rx_cb(skb)->at,
		.length = homak_rx_cb(skb)->length,
	};
}

/* Cuts a piece to what lies in [@from, @to) of the message; false: nothing does. */
static bool homak_piece_cut(struct homak_piece *piece, u32 from, u32 to)
{
	u32 begin = max(piece->offset, from);
	u32 end = min(piece->offset + piece->length, to);

	if (begin >= end)
		return false;
	piece->at += begin - piece->offset;
	piece->offset = begin;
	piece->length = end - begin;
	return true;
}

int homak_carry_bytes(const struct homak_carried *m, u32 at, void *to, u32 n)
{
	struct sk_buff *skb;
	int err;

	if (m->info.kind == HOMA_EV_FAILED || m->info.length < at ||
	    m->info.length - at < n)
		return -EINVAL;
	for (skb = m->skbs; skb; skb = m->one ? NULL : skb->next) {
		struct homak_piece piece = homak_piece(m, skb);

		if (!homak_piece_cut(&piece, at, at + n))
			continue;
		err = skb_copy_bits(skb, (int)piece.at,
				    (u8 *)to + (piece.offset - at),
				    (int)piece.length);
		if (err)
			return err;
	}
	return 0;
}

int homak_carry_to_ring(const struct homak_carried *m, u32 at,
			struct homak_ring *ring, u64 to)
{
	struct sk_buff *skb;
	int err;

	for (skb = m->skbs; skb; skb = m->one ? NULL : skb->next) {
		struct homak_piece piece = homak_piece(m, skb);

		if (!homak_piece_cut(&piece, at, m->info.length))
			continue;
		err = homak_ring_write(ring, to + (piece.offset - at), skb,
				       piece.at, piece.length);
		if (err)
			return err;
	}
	return 0;
}
