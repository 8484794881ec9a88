/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A message coming in, as its link's grant scheduler sees it, and that scheduler.
 */
#ifndef HOMA_GRANT_H
#define HOMA_GRANT_H

#include "homa_ctx.h"
#include "homa_heap.h"
#include "homa_list.h"

/* At most so many messages of a link are granted to at a time. */
#define HOMA_MAX_ACTIVE 32u
/* At most so many tails are remembered, see homa_grant_tail.h. */
#define HOMA_MAX_TAILS 8u

enum homa_grantee_state {
	HOMA_GRANTEE_IDLE = 0, /* it is not in the scheduler */
	HOMA_GRANTEE_WAITING,  /* it is in its peer's heap */
	HOMA_GRANTEE_ACTIVE,   /* it is granted to */
};

/*
 * struct homa_grantee - a message coming in
 *
 * Under the grant lock, unless a field says otherwise.
 */
struct homa_grantee {
	/*
	 * Links a waiting message into its peer's heap; the key is the number of bytes
	 * that are to come, at most homa_grants.step too many, the tie @birth. A message
	 * that waits for pages (HOMA_RPC_NO_BUFFER) is not in the scheduler, and this
	 * links it into homa_sock.starving, under the sock lock.
	 */
	struct homa_heap_node node;
	/* Links the message into homa_grants.ages. */
	struct homa_list age;
	/* The message joined the scheduler at this time, ns; unique on its link. */
	u64 birth;
	/* The message has so many bytes; 0: none is coming in. Shard lock. */
	u32 length;
	/* So many bytes have arrived; written under the shard lock, read under both. */
	u32 received;
	/* Bytes before this may come: unscheduled or granted; read under the shard lock
	 * as well. */
	u32 granted;
	/* So many of @received have been taken out of homa_grants.incoming; shard lock. */
	u32 accounted;
	/* An enum homa_grantee_state. */
	u8 state;
	/* An active message has this index in homa_grants.active. */
	u8 slot;
	/* The last GRANT named this level. */
	u8 wire_prio;
	/* homa_grants.incoming has @granted - @accounted bytes of this message in it. Not
	 * so for the shortest messages. Shard lock. */
	bool counted;
	/* The message was in the scheduler at some time; shard lock. */
	bool joined;
	/* The message is in homa_grants.tails. */
	bool tail;
	/* Bytes before @low_until were granted on this level or higher, but below
	 * @wire_prio; see homa_grant_tail.h. */
	u8 low_level;
	/* So many bytes are here without a gap before them, as of the last packet; written
	 * under the shard lock, read under both. */
	u32 in_order;
	/* See @low_level; read under the shard lock as well. */
	u32 low_until;
	/* Bytes before this were granted before the message started over, so they are
	 * asked for with RESEND. Changes while the message is not in the scheduler. */
	u32 again;
};

/*
 * struct homa_grants - the grant scheduler of a link
 *
 * Under @lock, unless a field says otherwise.
 */
struct homa_grants {
	struct homa_lock lock;
	/* So many of @active are in use. */
	u32 num_active;
	/* So many messages wait to become active. */
	u32 num_waiting;
	/* These messages are granted to; in order of rank after each run. */
	struct homa_rpc *active[HOMA_MAX_ACTIVE];
	/* Peers with waiting messages; the key is (slots, bytes to come) of the peer's best
	 * message, the tie its birth. */
	struct homa_heap peers;
	/* All messages that still need grants, oldest first. */
	struct homa_list ages;
	/* The last message that joined has this homa_grantee.birth, ns; it makes births
	 * unique and ascending. */
	u64 last_birth;
	/* The oldest message is due its next share at this time, ns. */
	u64 fifo_at;
	/* So many bytes were granted, or may come unasked, and have not come; counter. */
	u64 incoming;
	/* A message may have so many bytes outstanding, by the last run; read anywhere. */
	u32 window;
	/* Fewer bytes than these outstanding make a grant worth its packet, by the last
	 * run; read anywhere. */
	u32 low_water;
	/* So many bytes received are worth accounting, by the last run; read anywhere. */
	u32 step;
	/* No two active messages are of one peer (SIGCOMM'18), as of the last time that
	 * the active set was settled. */
	bool one_each;
	/* The last run gave less than it would have, for max_incoming's sake. */
	bool limited;
	/* So many of @tails are in use. */
	u32 num_tails;
	/* These messages are granted to their end, but early bytes of them wait in the
	 * switch on lower levels. */
	struct homa_rpc *tails[HOMA_MAX_TAILS];
};

void homa_grants_init(struct homa_grants *grants);
/*
 * A message of which homa_grantee.granted bytes may come (set before) is
 * known now; joins the scheduler if granted < length.
 */
void homa_grant_add(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* The message leaves: it is complete, dead, or without pages. Harmless if it is not in. */
void homa_grant_remove(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* @fresh more bytes arrived, so grants may be due; shard locked. */
void homa_grant_received(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 fresh);
/* The link's grants are looked at at the next homa_rx_flush(). */
void homa_grant_due(struct homa_ctx *ctx, struct homa_link *link);
/* What is due on this link goes into ctx->ctrl. Takes the grant lock. */
void homa_grant_run(struct homa_ctx *ctx, struct homa_link *link);

#endif
