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

/* A message keeps at most so many ranges to send again. */
#define HOMA_OUT_RTX 64u

/*
 * struct homa_rtx - a range of bytes to send again; it is made of a spare record
 */
struct homa_rtx {
	/* The range that is sent after this one; NULL: this is the last. */
	struct homa_rtx *next;
	/* The range has the bytes [@start, @end) of the message. */
	u32 start, end;
	/* The packets of the range go on this level, 0 to 7. */
	u8 prio;
};

/*
 * struct homa_out - a message going out
 *
 * Under the link lock, unless a field says otherwise. homa_out_start() sets all of it
 * before the link knows the message.
 */
struct homa_out {
	/* The link's scheduler knows the message by this while something can be sent. */
	struct homa_sendable send;
	/*
	 * The last packet with new bytes left at this time, ns; read anywhere.
	 * Retransmissions do not count: a peer that makes us repeat ourselves must not
	 * postpone the timeout for ever.
	 */
	u64 sent_at;
	/* The first packet left at this time, ns; 0: none has; read anywhere. */
	u64 first_at;
	/* These ranges are sent again, in this order, before anything new. */
	struct homa_rtx *rtx;
	/* The message has so many bytes. */
	u32 length;
	/* The first byte that was never sent has this offset; read anywhere. */
	u32 next;
	/*
	 * So many bytes before @next never left, because the host could not send them;
	 * read anywhere. If it is all of them, nothing that the receiver gets is a
	 * retransmission.
	 */
	u32 unsent;
	/* Bytes before this may be sent: the unscheduled ones, then those granted; read
	 * anywhere. */
	u32 limit;
	/* The host has handed in the bytes before this. */
	u32 available;
	/* Bytes before this may be sent unasked; at most @length, and constant. */
	u32 unsched;
	/* An extension field of DATA; constant. At a client: it asks that the response send
	 * no more than this unasked, KiB; 0: it does not. At a server: the response is a
	 * rejection with this errno; 0: it is none. */
	union {
		u16 resp_limit_kib;
		u16 error;
	};
	/* DATA says that the client has many RPCs open; constant. */
	u8 incast : 1;
	/* What is sent from @next on may have left before, in another life of the peer. */
	u8 anew : 1;
	/* At a server: the RPC's client understands a rejection, as its request says, before
	 * there is a message here; under the shard lock. */
	u8 may_reject : 1;
	/* Scheduled bytes go on this level: the newest GRANT's. */
	u8 sched_prio;
	/* Unscheduled bytes go on this level, unless it follows from the bytes left;
	 * constant. */
	u8 unsched_prio;
	/* @rtx has so many ranges; read anywhere. */
	u8 num_rtx;
	/* There is a message here; written under the shard lock, too. */
	u8 active;
	/* Something went out as a retransmission; read anywhere. */
	u8 resent;
	/* This ack rides on the first packet; client_id 0: none does. Constant. */
	struct homa_ack ack;
	/* Each DATA packet's header begins as a copy of this; constant. */
	u8 hdr[HOMA_DATA_HDR];
};

/* ---- homa_out.c ---- */

/* @rpc's message of @length bytes begins to go out: @available were handed in, @unsched
 * may be sent unasked. Shard locked. */
void homa_out_start(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 length,
		    u32 available, u32 unsched);
/* Bytes before @limit may be sent, on level @prio. */
void homa_out_grant(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 limit,
		    u8 prio);
/* The host has handed in the bytes before @available. */
void homa_out_supply(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 available);
/* Nothing more of the message is sent. */
void homa_out_cancel(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* The message enters or leaves the link's scheduler as its state demands; link locked. */
void homa_out_queue(struct homa_link *link, struct homa_rpc *rpc);

/* ---- homa_resend.c ---- */

/* Bytes [@start, @end) are sent again, if they have been sent; false: all of them wait
 * for that already. */
bool homa_out_resend(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
		     u32 end, u8 prio);
/*
 * Has nothing of the message been sent, as far as it was tried? Not any more once it
 * was sent again, for the host may say only later that the first try failed.
 */
static inline bool homa_out_never_left(const struct homa_out *out)
{
	return HOMA_READ_ONCE(out->unsent) == HOMA_READ_ONCE(out->next) &&
	       !HOMA_READ_ONCE(out->resent);
}
/* The host could not send @desc; @later: it is not to be tried again at once. */
void homa_out_unsent(struct homa_ctx *ctx, struct homa_rpc *rpc,
		     const struct homa_tx_desc *desc, bool later);
/* The peer knows nothing of the message: it is sent from its beginning, with what may be
 * sent unasked; grants come anew. */
void homa_out_restart(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* The next at most @room bytes of what there is to send again go into @desc; link locked. */
void homa_rtx_take(struct homa_ctx *ctx, struct homa_out *out, u32 room,
		   struct homa_tx_desc *desc);
/* Nothing is sent again; link locked. */
void homa_rtx_clear(struct homa_ctx *ctx, struct homa_out *out);

#endif
