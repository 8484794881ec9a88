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

/* A packet takes so many bytes on an Ethernet for preamble, CRC and the gap after it. */
#define HOMA_WIRE_OVERHEAD 24u
#define HOMA_ETH_HEADER 14u

/*
 * struct homa_derived - values that follow from settings, link rate and round trip
 *
 * homa_link_derive() writes them under the link lock; each is read anywhere.
 */
struct homa_derived {
	/* So many bytes of a message go unasked: what fills the link for a round trip. */
	u32 rtt_bytes;
	/* So many bytes may be granted and not received, over all messages of the link. */
	u32 max_incoming;
	/* So many of them are kept for the best message. */
	u32 reserved;
	/* A message may have so many outstanding; 0: as many as there is room for. */
	u32 window;
	/* The oldest message's share is granted in steps of so many bytes. */
	u32 fifo_increment;
	/* After so much silence, ns, bytes are asked for again. */
	u64 resend_ns;
	/* After so much silence, ns, an RPC is given up. */
	u64 timeout_ns;
	/* So long after the last sign of its server, ns, a client may start an RPC again. */
	u64 restart_ns;
};

/*
 * struct homa_link - see homa_engine.h
 *
 * Under @lock, unless a field says otherwise.
 */
struct homa_link {
	/* The link's engine; constant. */
	struct homa_engine *engine;
	struct homa_lock lock;
	/* Says whose packet goes next. */
	struct homa_sched sched;
	/* The ring of control packets has those from @ctrl_head up to, not including,
	 * @ctrl_tail; both count on, and & @ctrl_mask makes an index. */
	u32 ctrl_head, ctrl_tail, ctrl_mask;
	/* The rate in Mbit/s; 0: it is unknown. The host writes it; read anywhere. */
	u32 rate_mbps;
	/* IP packets on it have at most so many bytes. The host writes it; read anywhere. */
	u32 mtu;
	/* The smallest round trip of late, ns; 0: none was measured. Read anywhere. */
	u32 rtt_ns;
	/* The smallest of the last epoch, ns; 0: none. */
	u32 rtt_prev_ns;
	/* The smallest of the epoch that runs, ns; 0: none. Read anywhere. */
	u32 rtt_next_ns;
	/* The epoch ends at this time, ns; read anywhere. */
	u64 rtt_epoch_at;
	struct homa_derived derived;
	/* Says which messages are granted; under its own lock. */
	struct homa_grants grants;
	/* The ring's memory: @ctrl_mask + 1 packets behind the struct. */
	struct homa_ctrl *ctrl;
};

/* homa_derived is computed anew; link locked, or nobody knows the link yet. */
void homa_link_derive(struct homa_link *link);
/* From a short request to its response it took @ns. */
void homa_link_rtt_sample(struct homa_ctx *ctx, struct homa_link *link, u64 ns);

#endif
