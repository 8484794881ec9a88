/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine's contract with tools: how far an RPC has come, which RPCs and
 * peers there are. Belongs to homa_engine.h; apart because hosts that only carry
 * packets do not need it.
 */
#ifndef HOMA_LOOK_H
#define HOMA_LOOK_H

#include "homa_engine.h"

/* Where an RPC stands. */
enum homa_look_phase {
	HOMA_LOOK_NEW,
	HOMA_LOOK_OUTGOING,   /* client: request leaves; server: response */
	HOMA_LOOK_INCOMING,   /* a message comes in */
	HOMA_LOOK_NO_BUFFER,  /* the same, waiting for receive buffers */
	HOMA_LOOK_READY,      /* complete, the application has not taken it */
	HOMA_LOOK_IN_SERVICE, /* server: the application works on it */
	HOMA_LOOK_FAILED,     /* client: error not yet taken */
};

/*
 * struct homa_rpc_look - an RPC as it stood when it was looked at
 * @sock, @link: the RPC's. They may be gone: a reader compares them with pointers that it
 *	has, and never follows them.
 * @port, @peer_port: Homa ports, ours when the RPC began.
 * @client: we are its client.
 * @phase: enum homa_look_phase.
 * @probes: RESENDs and NEED_ACKs without an answer.
 * @error: FAILED: positive errno.
 * @birth, @heard_at: when it began; the peer's last sign of life, ns.
 * @tx_length: bytes of the outgoing message, 0: none yet; @tx_sent: of them sent
 *	at least once; @tx_granted: of them unscheduled or granted; @tx_prio: level of
 *	the next ones, as the peer's GRANT or its cutoffs say.
 * @rx_length, @rx_received, @rx_granted: the same of the incoming one.
 * @rx_gaps, @rx_gap_bytes: holes in what has arrived of it.
 * @is_private: begun with HOMA_SEND_PRIVATE.
 */
struct homa_rpc_look {
	struct homa_handle handle;
	const struct homa_sock *sock;
	const struct homa_link *link;
	struct homa_addr peer;
	u16 port, peer_port;
	bool client;
	u8 phase;
	u8 probes;
	s32 error;
	u64 cookie;
	u64 birth, heard_at;
	u32 tx_length, tx_sent, tx_granted;
	u8 tx_prio;
	u32 rx_length, rx_received, rx_granted;
	u32 rx_gaps, rx_gap_bytes;
	bool is_private;
};

/*
 * struct homa_peer_look - a peer as reached over one link
 * @link: only to compare with.
 * @rpcs: open with it; @server_rpcs: of these, requests of its own.
 * @idle_ms: since the last RPC with it began.
 * @seg_size: message bytes in a packet to it.
 * @acks_owed, @probes: acks that wait for a packet; RESENDs unanswered.
 * @cutoffs, @cutoff_version: unscheduled priorities it asked for.
 */
struct homa_peer_look {
	struct homa_addr addr;
	const struct homa_link *link;
	u32 rpcs, server_rpcs;
	u32 idle_ms;
	u16 seg_size;
	u16 cutoff_version;
	u8 acks_owed, probes;
	u32 cutoffs[HOMA_PRIORITIES];
};

/* struct homa_look_cursor - all zero: begin; @end: everything was seen */
struct homa_look_cursor {
	u32 part, bucket, skip;
	bool end;
};
#define HOMA_LOOK_BUCKETS 4096u /* hash buckets looked into by one call */

/** homa_rpc_look() - one RPC; -EINVAL: gone. */
int homa_rpc_look(struct homa_ctx *ctx, struct homa_handle handle,
		  struct homa_rpc_look *look);
/**
 * homa_rpcs_look() - some RPCs, at most @max, of one socket or (NULL) of all
 * Call again until @at->end; a call may find none. Bounded time, one shard's
 * lock at a time.
 */
u32 homa_rpcs_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		   const struct homa_sock *sock, struct homa_rpc_look *out,
		   u32 max);
/** homa_peers_look() - some peers, as homa_rpcs_look(). */
u32 homa_peers_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		    struct homa_peer_look *out, u32 max);

/* ---- a link ---- */

/* struct homa_link_state - for tools and tests */
struct homa_link_state {
	u32 rtt_bytes, max_incoming, resend_us, timeout_us, rtt_us;
	u32 sending, granting, waiting;
	u64 backlog_ns;
};
void homa_link_state(struct homa_ctx *ctx, struct homa_link *link,
		     struct homa_link_state *state);
/** homa_link_withheld() - incoming messages that get no grants although their
 * senders get none for other messages either; 0: overcommitment suffices. */
u32 homa_link_withheld(struct homa_link *link);

#endif
