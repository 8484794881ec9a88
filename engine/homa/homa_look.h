/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine's contract with tools: how far an RPC has come, which RPCs and
 * peers there are. Belongs to homa_engine.h; apart because hosts that only carry
 * packets do not need it.
 *
 * Written by: the engine, into memory of the caller's, who has it alone.
 */
#ifndef HOMA_LOOK_H
#define HOMA_LOOK_H

#include "homa_engine.h"

/* Where an RPC stands. */
enum homa_look_phase {
	HOMA_LOOK_NEW,
	HOMA_LOOK_OUTGOING, /* a client's request or a server's response goes out */
	HOMA_LOOK_INCOMING,  /* a message comes in */
	HOMA_LOOK_NO_BUFFER, /* a message comes in and waits for receive pages */
	HOMA_LOOK_READY,     /* a whole message waits for the application */
	HOMA_LOOK_IN_SERVICE, /* at a server: the application works on it */
	HOMA_LOOK_FAILED, /* at a client: the application has not taken the error */
};

/*
 * struct homa_rpc_look - an RPC as it stood when it was looked at
 * @handle: names the RPC.
 * @sock: socket of the RPC. It may be gone: a reader compares the pointer with others that it
 *	has, and follows it only if its host keeps the memory of sockets for whoever looks, as
 *	homad does.
 * @link: link of the RPC, only to compare with, as @sock.
 * @peer: address of the other end.
 * @port: our port when the RPC began.
 * @peer_port: port of the other end.
 * @client: we are the client of the RPC.
 * @phase: where the RPC stands, an enum homa_look_phase.
 * @probes: number of RESENDs and NEED_ACKs without an answer, at most 255.
 * @error: positive errno if @phase is HOMA_LOOK_FAILED.
 * @cookie: value that a client's application gave with the request.
 * @birth: time at which the RPC began, in ns.
 * @heard_at: time of the peer's last sign of life about the RPC, in ns.
 * @tx_length: length of the outgoing message, in bytes; 0: there is none yet.
 * @tx_sent: number of its bytes that were sent at least once.
 * @tx_granted: number of its bytes that are unscheduled or granted.
 * @tx_prio: level of its next bytes, as the peer's GRANT or cutoffs say.
 * @rx_length: length of the incoming message, in bytes; 0: there is none yet.
 * @rx_received: number of its bytes that have arrived.
 * @rx_granted: number of its bytes that are unscheduled or granted.
 * @rx_gaps: number of gaps in what has arrived of it.
 * @rx_gap_bytes: number of bytes that are missing in these gaps.
 * @is_private: the RPC began with HOMA_SEND_PRIVATE.
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
 * @addr: address of the peer.
 * @link: link over which it is reached, only to compare with.
 * @rpcs: number of RPCs that are open with it.
 * @server_rpcs: number of @rpcs that are requests of the peer.
 * @idle_ms: time since the peer was last looked for, in ms.
 * @seg_size: most message bytes in a packet to the peer.
 * @cutoff_version: version of @cutoffs.
 * @acks_owed: number of acks to the peer that wait for a packet.
 * @probes: number of RESENDs and NEED_ACKs that the peer has not answered.
 * @cutoffs: lengths, in bytes, up to which messages go unasked on each level, as the peer
 *	asked for.
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

/* struct homa_look_cursor - where the next call goes on; all zero: the beginning */
struct homa_look_cursor {
	/* Shard or part of the peer table, bucket of it, and entries of that seen
	 * already. */
	u32 part, bucket, skip;
	/* Everything was seen. */
	bool end;
};
#define HOMA_LOOK_BUCKETS 4096u /* most hash buckets that one call looks into */

/** homa_rpc_look() - write how one RPC stands to @look; -EINVAL: it is gone. */
int homa_rpc_look(struct homa_ctx *ctx, struct homa_handle handle,
		  struct homa_rpc_look *look);
/**
 * homa_rpcs_look() - write some RPCs, at most @max, of one socket or (NULL) of all to @out;
 * returns how many. The caller calls again until @at->end; a call may find none. It takes
 * bounded time and one shard's lock at a time.
 */
u32 homa_rpcs_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		   const struct homa_sock *sock, struct homa_rpc_look *out,
		   u32 max);
/** homa_peers_look() - write some peers to @out, as homa_rpcs_look(). */
u32 homa_peers_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		    struct homa_peer_look *out, u32 max);

/* ---- a link ---- */

/* struct homa_link_state - a copy of what a link knows at a moment, for tools and tests */
struct homa_link_state {
	/* Most bytes of a message that are sent without a grant. */
	u32 rtt_bytes;
	/* Most bytes that may be granted and not received, over all messages of the link. */
	u32 max_incoming;
	/* Time of silence after which missing bytes are asked for again, in us. */
	u32 resend_us;
	/* Time of silence after which an RPC is given up, in us. */
	u32 timeout_us;
	/* Smallest round trip that was measured of late, in us; 0: none was measured. */
	u32 rtt_us;
	/* Number of outgoing messages that can send. */
	u32 sending;
	/* Number of incoming messages that are granted to. */
	u32 granting;
	/* Number of incoming messages that wait to be granted to. */
	u32 waiting;
	/* Time that the device needs for what it was given, in ns, by the pacer's
	 * estimate. */
	u64 backlog_ns;
};
/** homa_link_state() - write the state of @link to @state. */
void homa_link_state(struct homa_ctx *ctx, struct homa_link *link,
		     struct homa_link_state *state);
/** homa_link_withheld() - incoming messages that get no grants although their
 * senders get none for other messages either; 0: overcommitment suffices. */
u32 homa_link_withheld(struct homa_link *link);

#endif
