/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A message coming in, as its link's grant scheduler sees it, and that scheduler.
 */
#ifndef HOMA_GRANT_H
#define HOMA_GRANT_H

#include "homa_ctx.h"
#include "homa_heap.h"
#include "homa_list.h"

/* Most messages of a link that are granted to at a time. */
#define HOMA_MAX_ACTIVE 32u
/* Most tails that are remembered, see homa_grant_tail.h. */
#define HOMA_MAX_TAILS 8u

enum homa_grantee_state {
	HOMA_GRANTEE_IDLE = 0, /* it is not in the scheduler */
	HOMA_GRANTEE_WAITING,  /* it is in its peer's heap */
	HOMA_GRANTEE_ACTIVE,   /* it is granted to */
};

/*
 * struct homa_grantee - a message coming in
 *
 * Guarded by: the grant lock, unless a field says otherwise.
 */
struct homa_grantee {
	/* Links a waiting message into its peer's heap; the key is the number of bytes
	 * that are missing, which may be too great by up to homa_grants.step, and @birth
	 * decides between equal ones. A message that waits for pages
	 * (HOMA_RPC_NO_BUFFER) is not in the scheduler; this links it into
	 * homa_sock.starving then, under the sock lock. */
	struct homa_heap_node node;
	/* Links the message into homa_grants.ages. */
	struct homa_list age;
	/* Time at which the message joined the scheduler, in ns; unique on its link. */
	u64 birth;
	/* Length of the message, in bytes; 0: none is coming in. Shard lock. */
	u32 length;
	/* Number of bytes that have arrived; written under the shard lock, read under
	 * both. */
	u32 received;
	/* Offset before which bytes are unscheduled or granted; read under the shard lock
	 * as well. */
	u32 granted;
	/* Number of bytes of @received that were subtracted from homa_grants.incoming;
	 * shard lock. */
	u32 accounted;
	/* State of the message, an enum homa_grantee_state. */
	u8 state;
	/* Index of an active message in homa_grants.active. */
	u8 slot;
	/* Level that the last GRANT named. */
	u8 wire_prio;
	/* True if homa_grants.incoming contains @granted - @accounted bytes of this
	 * message; false for the shortest messages. Shard lock. */
	bool counted;
	/* True once the message was in the scheduler; shard lock. */
	bool joined;
	/* True while the message is in homa_grants.tails. */
	bool tail;
	/* Lowest level on which bytes before @low_until were granted; it is below
	 * @wire_prio, see homa_grant_tail.h. */
	u8 low_level;
	/* Number of bytes at the beginning of the message that have arrived without a gap,
	 * as of the last packet; written under the shard lock, read under both. */
	u32 in_order;
	/* Offset behind the bytes that @low_level speaks of; read under the shard lock as
	 * well. */
	u32 low_until;
	/* Offset before which bytes were granted before the message started over, so they
	 * are asked for by RESEND. It changes only while the message is not in the
	 * scheduler. */
	u32 again;
};

/*
 * struct homa_grants - the grant scheduler of a link
 *
 * Guarded by: @lock, the grant lock, unless a field says otherwise.
 */
struct homa_grants {
	/* The grant lock. */
	struct homa_lock lock;
	/* Number of entries of @active that are used. */
	u32 num_active;
	/* Number of messages that wait to become active. */
	u32 num_waiting;
	/* Messages that are granted to; ordered by rank after each run. */
	struct homa_rpc *active[HOMA_MAX_ACTIVE];
	/* Heap of the peers with waiting messages; the key is homa_peer.slots, then the
	 * missing bytes of the peer's best message, then that message's birth. */
	struct homa_heap peers;
	/* List of all messages that still need grants, oldest first. */
	struct homa_list ages;
	/* homa_grantee.birth of the last message that joined, in ns; the next one is
	 * greater, so births are unique and ascending. */
	u64 last_birth;
	/* Time at which the oldest message gets its next share, in ns. */
	u64 fifo_at;
	/* Number of bytes that are granted or unscheduled and have not arrived; counter. */
	u64 incoming;
	/* Most bytes that a message may have granted and not received, as the last run
	 * computed; read without the lock. */
	u32 window;
	/* Number of outstanding bytes below which a message is sent a GRANT, as the last
	 * run computed; read without the lock. */
	u32 low_water;
	/* Number of received bytes from which on they are subtracted from @incoming, as the
	 * last run computed; read without the lock. */
	u32 step;
	/* True if no two active messages are of one peer (SIGCOMM'18), as of the last time
	 * that the active set was settled. */
	bool one_each;
	/* True if max_incoming made the last run grant less than it would have. */
	bool limited;
	/* Number of entries of @tails that are used. */
	u32 num_tails;
	/* Messages that are granted to their end while early bytes of them wait in the
	 * switch on lower levels. */
	struct homa_rpc *tails[HOMA_MAX_TAILS];
};

void homa_grants_init(struct homa_grants *grants);
/*
 * A message of which homa_grantee.granted bytes may come (set before) is
 * known now; joins the scheduler if granted < length.
 */
void homa_grant_add(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Removes the message, which is in the scheduler, because it is complete, dead, or without
 * pages. */
void homa_grant_leave(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Notes that @fresh more bytes arrived, so that grants may be due; shard locked. */
void homa_grant_received(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 fresh);
/* Makes the next homa_rx_flush() run the link's grant scheduler. */
void homa_grant_due(struct homa_ctx *ctx, struct homa_link *link);
/* Writes the GRANTs that are due on this link to ctx->ctrl. Takes the grant lock. */
void homa_grant_run(struct homa_ctx *ctx, struct homa_link *link);

#endif
