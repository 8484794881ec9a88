/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A link: what sends and receives at one rate. Whoever has an engine makes one for each
 * of its devices (homa_link.c); what follows from its rate and round trip is in
 * homa_derive.c.
 */
#ifndef HOMA_LINK_H
#define HOMA_LINK_H

#include "homa_grant.h"
#include "homa_sched.h"

/* Bytes that each Ethernet packet takes for preamble, CRC and the gap after it. */
#define HOMA_WIRE_OVERHEAD 24u
#define HOMA_ETH_HEADER 14u

/*
 * struct homa_derived - values that follow from settings, link rate and round trip
 *
 * Written by: homa_link_derive(), under the link lock; read by: all, without it.
 */
struct homa_derived {
	/* Most bytes of a message that are sent without a grant: what fills the link for a
	 * round trip. */
	u32 rtt_bytes;
	/* Most bytes that may be granted and not received, over all messages of the
	 * link. */
	u32 max_incoming;
	/* Number of bytes of @max_incoming that are kept for the best message. */
	u32 reserved;
	/* Most bytes that one message may have outstanding; 0: limited by @max_incoming
	 * only. */
	u32 window;
	/* Size of the steps in which the oldest message's share is granted, in bytes. */
	u32 fifo_increment;
	/* Time of silence after which missing bytes are asked for again, in ns. */
	u64 resend_ns;
	/* Time of silence after which an RPC is given up, in ns. */
	u64 timeout_ns;
	/* Time after its server's last packet during which a client may start an RPC again,
	 * in ns. */
	u64 restart_ns;
};

/*
 * struct homa_link - see homa_engine.h
 *
 * Guarded by: @lock, unless a field says otherwise.
 */
struct homa_link {
	/* Engine of the link; constant. */
	struct homa_engine *engine;
	/* The link lock. */
	struct homa_lock lock;
	/* Send scheduler, which says whose packet goes next. */
	struct homa_sched sched;
	/* Positions in the ring of control packets: the oldest is at @ctrl_head, the next
	 * free place at @ctrl_tail. Both only grow; "& @ctrl_mask" makes them an index of
	 * @ctrl. */
	u32 ctrl_head, ctrl_tail, ctrl_mask;
	/* Smallest round trip of the last and the present epoch, in ns; 0: none was
	 * measured. Read without the lock. */
	u32 rtt_ns;
	/* Smallest round trip of the last epoch, in ns; 0: none was measured. */
	u32 rtt_prev_ns;
	/* Smallest round trip of the present epoch, in ns; 0: none was measured. Read
	 * without the lock. */
	u32 rtt_next_ns;
	/* Time at which the present epoch ends, in ns; read without the lock. */
	u64 rtt_epoch_at;
	/* Rate in Mbit/s; 0: it is unknown. Written by the host; read without the lock. */
	u32 rate_mbps;
	/* IP MTU in bytes. Written by the host; read without the lock. */
	u32 mtu;
	/* True if nothing waits to be sent, and the host does not pace by room: a packet may
	 * leave at once, as far as the clock lets it. Read without the lock. */
	bool open;
	/* Values that follow from settings, @rate_mbps and @rtt_ns; each is read without the
	 * lock. */
	struct homa_derived derived;
	/* Grant scheduler, which says which senders may send; under its own lock. */
	struct homa_grants grants;
	/* Memory of the ring: @ctrl_mask + 1 packets behind the struct. */
	struct homa_ctrl *ctrl;
};

/* Computes @link->derived anew; link locked, or nobody knows the link yet. */
void homa_link_derive(struct homa_link *link);
/* Notes a round trip of @ns from a short request to its response. */
HOMA_HOT void homa_link_rtt_sample(struct homa_ctx *ctx, struct homa_link *link,
				   u64 ns);

#endif
