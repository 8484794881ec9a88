/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The network: nodes (hosts 0 .. hosts-1, then switches) joined by ports. A
 * port is the sending side of one direction of a link with the queue before
 * it. A host's port has no queue: it pulls the next packet from the transport
 * when it is free, which is where sender SRPT takes effect.
 *
 * A packet arrives at a switch, is given to the port that leads on, waits in
 * its queue, is serialised, travels, arrives. Store and forward: it counts as
 * arrived when its last bit is there; cut through: when its first 64 bytes are.
 * The fixed delay of a switch (switch_ps) passes before it is queued.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "event.h"
#include "homa_plat.h"

#define SIM_PRIORITIES 8
#define SIM_FRAMING 38u	 /* preamble 8, Ethernet header 14, FCS 4, gap 12 */
#define SIM_MIN_WIRE 84u /* shortest frame with framing */
#define SIM_MAX_HDR 96u

struct sim_msg;
struct sim_host;
struct sim_port;

enum sim_pkt_flags {
	SIM_ECN_CAPABLE = 1, /* ports may mark instead of ignoring */
	SIM_ECN_CE = 2,	     /* a port did */
	SIM_TRIMMED = 4,     /* payload cut off by a switch (NDP) */
	SIM_CONTROL = 8,     /* no payload: grant, ack, pull ... */
	SIM_RETRANSMIT = 16,
};

/**
 * struct sim_pkt - a packet; its owner is whoever holds the pointer
 * @wire: bytes on the wire, framing included, at least SIM_MIN_WIRE.
 * @src, @dst: hosts.
 * @prio: 0..7, 7 is served first.
 * @type: the transport's.
 * @msg, @msg_serial: message it belongs to; use sim_pkt_msg().
 * @offset, @payload: message bytes in it; @payload survives trimming.
 * @rank: for rank-ordered queues (pFabric): smaller goes first.
 * @flow: for ECMP; equal values take equal paths.
 * @sent_at: when the host's port began to send it.
 * @head_at, @tail_at: when its first and last bit reach the current node.
 * @queued_at: when the current port's queue took it.
 * @wait_ps: time spent waiting in queues so far, of which
 * @lag_ps: waiting for the rest of a packet that would have been served later
 *	had both been there (preemption lag).
 * @via: the port that sends or sent it last; @to: the one that it takes next, at
 *	the node that it is on its way to.
 * @x: the transport's own words. @hdr, @hdr_len: header bytes, if it has any.
 */
struct sim_pkt {
	struct sim_event ev;
	struct sim_pkt *next;
	u32 wire;
	u16 src, dst;
	/* a hop touches what is above and these 64 bytes, nothing else */
	u8 prio, type, flags, hops;
	u32 flow;
	struct sim_port *via, *to;
	u64 head_at, tail_at, queued_at;
	u64 wait_ps, lag_ps;
	u32 offset, payload;
	struct sim_msg *msg;
	u64 msg_serial;
	u64 rank;
	u64 sent_at;
	u64 x[4];
	u8 hdr_len;
	u8 hdr[SIM_MAX_HDR];
};

struct sim_fifo {
	struct sim_pkt *head, **tail;
	u64 bytes;
	u32 packets;
};

/**
 * struct sim_queue - a queueing discipline
 * @put: takes @pkt; what does not fit, this or another packet, goes to
 *	sim_drop(). Marks and trims.
 * @get: the packet to send next, or NULL.
 * Both keep port->bytes and port->packets true through sim_port_account().
 */
struct sim_queue {
	const char *name;
	void (*put)(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt);
	struct sim_pkt *(*get)(struct sim *sim, struct sim_port *port);
};

extern const struct sim_queue sim_queue_priority; /* 8 strict levels, tail drop, ECN */
extern const struct sim_queue sim_queue_rank; /* pFabric: smallest rank, drop largest */
extern const struct sim_queue sim_queue_trim; /* NDP: trim to header when full */
extern const struct sim_queue sim_queue_host; /* pulls from the transport */

/** Where a port stands; statistics are kept per level. */
enum sim_level {
	SIM_HOST_UP, /* host to first switch */
	SIM_TOR_UP,  /* edge switch to the layer above */
	SIM_CORE_UP, /* aggregation to core (fat tree) */
	SIM_CORE_DOWN,
	SIM_TOR_DOWN,  /* toward an edge switch */
	SIM_HOST_DOWN, /* edge switch to host: the receiver's downlink */
	SIM_LEVELS,
};

/** struct sim_port_stats - since the last sim_net_stats_reset() */
struct sim_port_stats {
	u64 byte_ns; /* integral of queued bytes over time, byte * ns */
	u64 peak;    /* bytes */
	u64 tx_bytes, tx_packets;
	u64 prio_bytes[SIM_PRIORITIES];
	u64 drops, drop_bytes, marks, trims, lost;
};

/**
 * struct sim_port - the sending side of a link
 * @delay_ps: propagation and what the receiving node adds before it queues.
 * @busy_until: end of the transmission under way or of the last one.
 * @sending_prio, @sending_rank: of the packet under way (for preemption lag).
 * @bytes, @packets: queued, without the one under way.
 */
struct sim_port {
	struct sim_event free;
	const struct sim_queue *queue;
	u64 busy_until;
	u32 ps_per_byte;
	u32 packets;
	u32 node, peer;
	u32 index; /* in sim->ports */
	u8 level;  /* enum sim_level */
	bool down;
	u8 busy_levels; /* bit per non-empty fifo */
	u8 sending_prio;
	u64 sending_rank;
	u64 bytes;
	u64 account_at;
	u64 delay_ps;
	u64 limit;  /* bytes, 0: unlimited */
	void *priv; /* the discipline's */
	struct sim_port_stats stats;
	struct sim_fifo fifo[SIM_PRIORITIES];
} __attribute__((aligned(64)));

struct sim_pkt *sim_pkt_new(struct sim *sim);
void sim_pkt_free(struct sim *sim, struct sim_pkt *pkt);
/**
 * sim_pkts_on_their_way() - packets that have left their host and were neither received
 * nor dropped
 *
 * Counted by looking at every packet in memory, so that a test may hold it against the
 * counts of what was sent, received and dropped.
 */
u64 sim_pkts_on_their_way(const struct sim *sim);
/** sim_wire() - bytes on the wire of an IP packet of @ip_bytes */
static inline u32 sim_wire(u32 ip_bytes)
{
	u32 wire = ip_bytes + SIM_FRAMING;

	return wire < SIM_MIN_WIRE ? SIM_MIN_WIRE : wire;
}

/** sim_net_build() - nodes, ports and routes of sim->cfg; -EINVAL with a sentence */
int sim_net_build(struct sim *sim, char *err, size_t errlen);
void sim_net_free(struct sim *sim);
/** sim_port_kick() - there may be something to send */
void sim_port_kick(struct sim *sim, struct sim_port *port);
/** sim_port_put() - hand a packet to a port's queue and kick it */
void sim_port_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt);
/** sim_port_account() - the queue grows or shrinks by this now */
void sim_port_account(struct sim *sim, struct sim_port *port, s64 bytes, s32 packets);
/** sim_drop() - counted, then freed */
void sim_drop(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt);
/**
 * sim_path() - links between two hosts as routes lead now, at most 8; 0: no way
 * @ps_per_byte, @delay_ps: of each.
 */
u32 sim_path(const struct sim *sim, u32 src, u32 dst, u32 *ps_per_byte, u64 *delay_ps);
void sim_net_stats_reset(struct sim *sim);
/** sim_queue_init() - private memory of a discipline for @port; -ENOMEM */
int sim_queue_init(struct sim *sim, struct sim_port *port);
void sim_queue_free(struct sim_port *port);

#endif
