/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A message going out: what its link's send scheduler and the makers of its packets
 * know of it (homa_out.c), and what it sends again (homa_resend.c).
 */
#ifndef HOMA_OUT_H
#define HOMA_OUT_H

#include "homa_codec.h"
#include "homa_ctx.h"
#include "homa_sched.h"

/* Most ranges that a message keeps to send again. */
#define HOMA_OUT_RTX 64u

/*
 * struct homa_rtx - a range of bytes to send again; it is made of a spare record
 *
 * Guarded by: the link lock.
 */
struct homa_rtx {
	/* Range that is sent after this one; NULL: this is the last. */
	struct homa_rtx *next;
	/* Bytes [@start, @end) of the message form the range. */
	u32 start, end;
	/* Level of the packets of the range, 0 to 7. */
	u8 prio;
};

/*
 * struct homa_out - a message going out
 *
 * Guarded by: the link lock, unless a field says otherwise. homa_out_start() sets all of it
 * before the link knows the message.
 */
struct homa_out {
	/* Entry of the message in the link's send scheduler while it has something to
	 * send. */
	struct homa_sendable send;
	/* Time at which the last packet with new bytes was sent, in ns; read without the
	 * lock. Retransmissions do not count: a peer that makes us repeat ourselves must
	 * not postpone the timeout for ever. */
	u64 sent_at;
	/* Time at which the first packet was sent, in ns; 0: none was; read without the
	 * lock. */
	u64 first_at;
	/* Ranges that are sent again, in this order, before any new bytes. */
	struct homa_rtx *rtx;
	/* Length of the message, in bytes. */
	u32 length;
	/* Offset of the first byte that was never sent; read without the lock. */
	u32 next;
	/* Number of bytes before @next that the host could not send; read without the lock.
	 * If it is all of them, nothing that the receiver gets is a retransmission. */
	u32 unsent;
	/* Offset before which bytes may be sent, first the unscheduled and then the granted
	 * ones; read without the lock. */
	u32 limit;
	/* Offset before which the host has handed in the message's bytes. */
	u32 available;
	/* Offset before which bytes may be sent without a grant; at most @length,
	 * constant. */
	u32 unsched;
	/* Extension field of DATA; constant. @resp_limit_kib, at a client: most bytes that
	 * the response shall send without a grant, in KiB; 0: no limit. @error, at a
	 * server: positive errno with which the response rejects the request; 0: it does
	 * not. */
	union {
		u16 resp_limit_kib;
		u16 error;
	};
	/* 1 if DATA says that the client has many RPCs open; constant. */
	u8 incast : 1;
	/* 1 if bytes from @next on may have been sent before, to the peer's host before it
	 * restarted. */
	u8 anew : 1;
	/* At a server: 1 if the request says that its client understands a rejection. Valid
	 * before the response begins; shard lock. */
	u8 may_reject : 1;
	/* Level of scheduled bytes, as the newest GRANT says. */
	u8 sched_prio;
	/* Level of unscheduled bytes unless it is computed from the bytes left;
	 * constant. */
	u8 unsched_prio;
	/* Number of ranges in @rtx; read without the lock. */
	u8 num_rtx;
	/* 1 if there is an outgoing message; shard lock, and link lock unless @send.overhead is
	 * 0. */
	u8 active;
	/* 1 once a retransmission was sent; read without the lock. */
	u8 resent;
	/* Ack that the first packet carries; client_id 0: it carries none. Constant. */
	struct homa_ack ack;
	/* Header from which that of each DATA packet is copied; constant. It is not written while
	 * @send.overhead is 0: the message was sent at once, and the link's scheduler has not
	 * had it. */
	u8 hdr[HOMA_DATA_HDR];
};

/* ---- homa_out_now.c ---- */

/* Sends a message at once that is all there, fits one packet and may go unasked, if nothing waits
 * on its link: as @now. False: it is to be queued. All fields of rpc->out are set. Shard
 * locked. */
HOMA_HOT bool homa_out_at_once(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       struct homa_tx_desc *now);
/* Writes how much longer the application waits, counted from now even if the packet is sent
 * again. */
HOMA_RARE void homa_tx_left(const struct homa_ctx *ctx,
			    const struct homa_rpc *rpc, u8 *hdr);

/* ---- homa_out.c ---- */

/* Starts sending @rpc's message of @length bytes, of which the host has handed in
 * @available and @unsched may be sent without a grant. Shard locked. */
HOMA_HOT void homa_out_start(struct homa_ctx *ctx, struct homa_rpc *rpc,
			     u32 length, u32 available, u32 unsched);
/* Does the same, and writes a packet that may go at once to @now instead of ctx->tx_now. True: it
 * did that; so it cannot if @now is NULL. */
HOMA_HOT bool homa_out_start_now(struct homa_ctx *ctx, struct homa_rpc *rpc,
				 u32 length, u32 available, u32 unsched,
				 struct homa_tx_desc *now);
/* Lets the bytes before offset @limit be sent, on level @prio. */
void homa_out_grant(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 limit,
		    u8 prio);
/* The host has handed in the bytes before @available. */
void homa_out_supply(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 available);
/* Stops sending the message. */
void homa_out_cancel(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Adds the message to the link's scheduler or removes it, as its state demands; shard and link
 * locked. */
void homa_out_queue(struct homa_link *link, struct homa_rpc *rpc);

/* ---- homa_resend.c ---- */

/* Queues bytes [@start, @end) to be sent again as far as they have been sent; false: all of
 * them are queued already. */
bool homa_out_resend(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
		     u32 end, u8 prio);
/* Did the host fail to send everything that it was given of the message so far? False once
 * something was sent again, because the host may report only later that the first attempt
 * failed. */
static inline bool homa_out_never_left(const struct homa_out *out)
{
	return HOMA_READ_ONCE(out->unsent) == HOMA_READ_ONCE(out->next) &&
	       !HOMA_READ_ONCE(out->resent);
}
/* Notes that the host could not send @desc; @later: it is not to be tried again at once. */
void homa_out_unsent(struct homa_ctx *ctx, struct homa_rpc *rpc,
		     const struct homa_tx_desc *desc, bool later);
/* Starts the message over because the peer knows nothing of it: unscheduled bytes are sent
 * from the beginning, and the peer grants the others anew. */
void homa_out_restart(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Writes the next bytes to send again, at most @room, to @desc; link locked. */
void homa_rtx_take(struct homa_ctx *ctx, struct homa_out *out, u32 room,
		   struct homa_tx_desc *desc);
/* Drops the ranges that wait to be sent again; link locked. */
void homa_rtx_clear(struct homa_ctx *ctx, struct homa_out *out);

#endif
