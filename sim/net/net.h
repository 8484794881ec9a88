/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The network: nodes (hosts 0 .. hosts-1, then switches) joined by ports. A
 * port is the sending side of one direction of a link with the queue before
 * it. A host's port has no queue: it pulls the next packet from the transport
 * when it is free, which is where sender SRPT takes effect.
 *
 * A packet arrives at a switch, is given to the port that leads on, waits in
 * its queue, is serialised, travels, arrives. Store and forward: it counts as
 * arrived when its last bit is there; cut through: when its first 64 bytes are;
 * shaped: when its first bit is, and with a burst the next one may begin that much before the
 * end of the first after a pause.
 * The fixed delay of a switch (switch_ps) passes before it is queued.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "event.h"
#include "homa_plat.h"

#define SIM_PRIORITIES 8
/* Bytes on the wire beside the IP packet: preamble 8, Ethernet header 14, FCS 4, gap 12. */
#define SIM_FRAMING 38u
/* Those of them that Linux does not count as bytes of a packet: all but the header. */
#define SIM_UNCOUNTED 24u
/* Bytes on the wire of the shortest frame. */
#define SIM_MIN_WIRE 84u
#define SIM_MAX_HDR 96u

struct sim_msg;
struct sim_host;
struct sim_port;

enum sim_pkt_flags {
	SIM_ECN_CAPABLE = 1, /* ports may mark the packet */
	SIM_ECN_CE = 2,	     /* a port has marked it */
	SIM_TRIMMED = 4,     /* a switch has cut off its payload (NDP) */
	SIM_CONTROL = 8,     /* it has no payload: a grant, ack, pull ... */
	SIM_RETRANSMIT = 16, /* its bytes were sent before */
};

/**
 * struct sim_pkt - a packet; its owner is whoever holds the pointer
 * @ev: what happens to the packet next.
 * @next: links the packet into a queue, or into sim.free_pkts.
 * @wire: bytes on the wire, framing included, at least SIM_MIN_WIRE.
 * @src: index of the sending host.
 * @dst: index of the receiving host.
 * @prio: priority, 0..7; 7 is served first.
 * @type: type of the packet; its meaning is the transport's.
 * @flags: bits of enum sim_pkt_flags.
 * @hops: number of links that it has crossed.
 * @flow: number by which ECMP chooses; packets with equal numbers take equal paths.
 * @via: port that sends it or sent it last.
 * @to: port that it takes next, at the node that it is on its way to.
 * @head_at: time at which its first bit reaches the current node, ps.
 * @tail_at: time at which its last bit reaches the current node, ps.
 * @queued_at: time at which the current port's queue took it, ps.
 * @wait_ps: time that it has waited in queues so far, ps.
 * @lag_ps: part of @wait_ps in which it waited for the rest of a packet that would have been
 *	served later if both had been there (preemption lag), ps.
 * @offset: offset in the message of its first message byte.
 * @payload: number of message bytes in it, also after trimming.
 * @msg: message that it belongs to; sim_pkt_msg() says whether that is still there.
 * @msg_serial: serial number of that message.
 * @rank: a rank-ordered queue (pFabric) serves smaller ranks first.
 * @sent_at: time at which the host's port began to send it, ps.
 * @x: words for the transport's own use.
 * @hdr_len: bytes of @hdr that are used; 0: the model has no header bytes.
 * @hdr: header bytes.
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

/**
 * struct sim_fifo - a queue of packets
 * @head: first packet; NULL: it is empty.
 * @tail: where the pointer to the next packet will be written.
 * @bytes: bytes on the wire of its packets.
 * @packets: number of packets in it.
 */
struct sim_fifo {
	struct sim_pkt *head, **tail;
	u64 bytes;
	u32 packets;
};

/**
 * struct sim_queue - a queueing discipline
 * @name: name of the discipline.
 * @put: takes @pkt, and may mark or trim it; a packet that does not fit, this or another one,
 *	goes to sim_drop().
 * @get: returns the packet to send next, or NULL.
 *
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

/**
 * struct sim_port_stats - what a port counted since the last sim_net_stats_reset()
 * @byte_ns: integral of queued bytes over time, in byte * ns.
 * @peak: most bytes that were queued.
 * @tx_bytes: bytes on the wire that were sent.
 * @tx_packets: number of packets that were sent.
 * @prio_bytes: bytes on the wire that were sent at each priority.
 * @drops: number of packets that were dropped here, also of those in @lost.
 * @drop_bytes: bytes on the wire of the packets that were dropped here.
 * @marks: number of packets that were marked.
 * @trims: number of packets whose payload was cut off.
 * @lost: number of packets that were lost on the link.
 */
struct sim_port_stats {
	u64 byte_ns;
	u64 peak;
	u64 tx_bytes, tx_packets;
	u64 prio_bytes[SIM_PRIORITIES];
	u64 drops, drop_bytes, marks, trims, lost;
};

/**
 * struct sim_port - the sending side of a link
 * @free: event of the time at which the port is free again.
 * @queue: queueing discipline of the port.
 * @busy_until: end of the transmission under way or of the last one, ps; with a burst the time
 *	from which on the next may begin, which may have passed when this one begins.
 * @ps_per_byte: time that a byte takes, ps.
 * @packets: number of queued packets, without the one under way.
 * @node: node that the port belongs to.
 * @peer: node at the other end of the link.
 * @index: index in sim.ports.
 * @level: where the port stands, an enum sim_level.
 * @down: the link is down.
 * @busy_levels: a bit for each fifo that is not empty.
 * @sending_prio: priority of the packet under way (for preemption lag).
 * @sending_rank: rank of the packet under way (for preemption lag).
 * @bytes: bytes of queued packets, without the one under way.
 * @account_at: time up to which @stats.byte_ns is right, ns.
 * @delay_ps: propagation delay, and what the receiving node adds before it queues, ps.
 * @limit: most bytes that may be queued; 0: there is no limit.
 * @priv: memory of the queueing discipline.
 * @stats: what the port counted.
 * @fifo: queued packets of each priority.
 */
struct sim_port {
	struct sim_event free;
	const struct sim_queue *queue;
	u64 busy_until;
	u32 ps_per_byte;
	u32 packets;
	u32 node, peer;
	u32 index;
	u8 level;
	bool down;
	u8 busy_levels;
	u8 sending_prio;
	u64 sending_rank;
	u64 bytes;
	u64 account_at;
	u64 delay_ps;
	u64 limit;
	void *priv;
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

/** sim_net_build() - make nodes, ports and routes of sim->cfg; -EINVAL with a sentence in @err */
int sim_net_build(struct sim *sim, char *err, size_t errlen);
void sim_net_free(struct sim *sim);
/** sim_port_kick() - send if @port is free and has a packet, as there may be a new one */
void sim_port_kick(struct sim *sim, struct sim_port *port);
/** sim_port_put() - hand a packet to a port's queue and kick it */
void sim_port_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt);
/** sim_port_account() - count that the queue grows or shrinks by @bytes and @packets now */
void sim_port_account(struct sim *sim, struct sim_port *port, s64 bytes, s32 packets);
/** sim_drop() - count @pkt as dropped and free it */
void sim_drop(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt);
/**
 * sim_path() - number of links between two hosts as routes lead now, at most 8; 0: no way
 * @ps_per_byte: time of a byte on each link, ps; written here.
 * @delay_ps: delay of each link, ps; written here.
 */
u32 sim_path(const struct sim *sim, u32 src, u32 dst, u32 *ps_per_byte, u64 *delay_ps);
void sim_net_stats_reset(struct sim *sim);
/** sim_queue_init() - make the memory of the discipline for @port; -ENOMEM */
int sim_queue_init(struct sim *sim, struct sim_port *port);
void sim_queue_free(struct sim_port *port);

#endif
