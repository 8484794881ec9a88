/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The simulator: a network in virtual time whose hosts run the shipped Homa
 * engine or a model of a protocol that Homa is compared with.
 *
 *	event.h          time, what happens when
 *	net.h            packets, ports, queues, switches, topologies
 *	sim_transport.h  what a protocol offers to the simulator
 *	traffic.h        who sends what to whom when, and what becomes of it
 *	sim_stats.h      slowdowns, queues, waste, causes of delay; the JSON report
 *	sim_trace.h      Perfetto and pcapng
 *
 * Arrows: main -> traffic, stats, trace -> transports -> net -> event; ideal.c
 * (sizes of packets, times on the idle network) stands below transports. A
 * transport knows nothing of traffic; it is told to send messages and tells
 * with sim_delivered() when one has arrived whole.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "event.h"
#include "homa_engine.h"
#include "net.h"
#include "prng.h"
#include "workload.h"

#define SIM_MAX_OPTIONS 16
#define SIM_MAX_FAILURES 32

enum sim_topology { SIM_ONE_SWITCH, SIM_LEAF_SPINE, SIM_FAT_TREE };
enum sim_balance { SIM_SPRAY, SIM_ECMP };
enum sim_queue_kind { SIM_QUEUE_PRIORITY, SIM_QUEUE_RANK, SIM_QUEUE_TRIM };
enum sim_load_kind { SIM_LOAD_WIRE, SIM_LOAD_PAYLOAD };

/** struct sim_failure - a link between two nodes is down for a while */
struct sim_failure {
	u32 node, peer;
	u64 from, until; /* ps */
};

/**
 * struct sim_config - everything a run depends on; sim_config_default() first
 * @hosts: number; leaf-spine: racks * hosts per rack; fat tree: k^3 / 4.
 * @racks, @spines: leaf-spine. @k: fat tree's parameter, even.
 * @host_mbps, @fabric_mbps: link rates; 8,000,000 / rate must be whole (ps a byte).
 * @host_prop_ps, @fabric_prop_ps: propagation.
 * @switch_ps: a switch's own delay per packet.
 * @send_ps, @recv_ps: host software (and NIC) delay each way.
 * @port_bytes: queue limit of each switch port, 0 unlimited.
 * @shared_bytes: buffer shared by a switch's ports, 0 none; then a port may
 *	hold @shared_alpha / 256 times what is free (dynamic threshold).
 * @ecn_bytes: mark ECN-capable packets when the port holds this much, 0 never.
 * @trim_packets: NDP: data packets held before payloads are cut.
 * @loss_ppm: each packet on each link is lost with this probability, 1e-6.
 * @sigcomm_headers: count the SIGCOMM'18 study's header sizes (30 / 16 / 16
 *	bytes over UDP/IP) instead of the real ones.
 * @rpc: messages are requests that are answered with as many bytes (ATC'21),
 *	else one-way (SIGCOMM'18).
 * @load: of the host links' rate; @load_kind: of wire or of payload bytes.
 * @warmup_ps: not measured; @measure_ps: arrivals in it are; @drain_ps: most
 *	time given to finish what was measured.
 * @max_messages: stop creating after so many, 0 no limit.
 * @incast: senders per incast burst, 0 none; @incast_bytes each, every @incast_ps.
 * @homa, @option: settings of the transport.
 */
struct sim_config {
	const struct sim_transport *transport;
	char preset[32];
	u64 seed;
	enum sim_topology topology;
	u32 hosts, racks, spines, k;
	u32 host_mbps, fabric_mbps;
	u64 host_prop_ps, fabric_prop_ps, switch_ps, send_ps, recv_ps;
	bool cut_through;
	enum sim_balance balance;
	enum sim_queue_kind queue;
	u64 port_bytes, shared_bytes, ecn_bytes;
	u32 shared_alpha;
	u32 trim_packets;
	u32 loss_ppm;
	struct sim_failure failures[SIM_MAX_FAILURES];
	u32 num_failures;
	u32 mtu;
	bool sigcomm_headers;
	bool rpc;
	char workload[256];
	char arrivals[256]; /* recorded trace instead of Poisson */
	u32 cut;
	double load;
	enum sim_load_kind load_kind;
	u64 warmup_ps, measure_ps, drain_ps;
	u64 max_messages;
	u32 incast;
	u32 incast_bytes;
	u64 incast_ps;
	struct homa_params homa;
	u64 option[SIM_MAX_OPTIONS];
};

/**
 * struct sim_msg - a message; slots are recycled and never returned to the
 * system, so a stale packet may look at @serial
 * @serial: identifies it for the run's life; 0 in a free slot.
 * @length: bytes. @src, @dst: hosts.
 * @request: the request that this one answers, else NULL (RPC runs); a
 *	reference to it is held.
 * @quantile: its place in the workload's distribution, 0..1.
 * @arrived: bytes that have reached the receiving host, traffic.c counts them.
 * @created: when the application sent it, ps; @ideal_ps: what it takes alone.
 * @measured: counts in the statistics.
 * @wait_ps, @lag_ps: of the packet that completed it, from sim_delivered().
 * @tx, @rx: the transport's state at the sender and the receiver.
 * @refs: 1 for traffic, 1 for each side the transport keeps it.
 */
struct sim_msg {
	u64 serial;
	u32 length;
	u16 src, dst;
	u32 refs;
	bool measured, delivered, incast;
	float quantile;
	u32 arrived;
	u64 created, done, ideal_ps;
	u64 wait_ps, lag_ps;
	struct sim_msg *request;
	struct sim_msg *next; /* free list */
	void *tx, *rx;
	u64 x[3]; /* the transport's */
};

/**
 * struct sim_host - an end of the network
 * @proto: the transport's.
 * @withheld: incoming messages that the receiver knows and holds back (not
 *	granted, not pulled); set with sim_withheld().
 * @waste_ps: time in which its downlink was idle although @withheld > 0.
 */
struct sim_host {
	u32 index;
	struct sim_port *up;   /* its own port */
	struct sim_port *down; /* the switch's port toward it */
	void *proto;
	u32 withheld;
	u64 withheld_at;
	u64 waste_ps;
};

/**
 * struct sim_tap - looks at what happens; NULL members are not called
 * @sent: a packet begins to leave its host; @received: it has reached its host.
 * @queued: the length of a port's queue has changed.
 */
struct sim_tap {
	struct sim_tap *next;
	void *arg;
	void (*sent)(void *arg, struct sim *sim, const struct sim_pkt *pkt);
	void (*received)(void *arg, struct sim *sim, const struct sim_pkt *pkt);
	void (*dropped)(void *arg, struct sim *sim, const struct sim_port *port,
			const struct sim_pkt *pkt);
	void (*queued)(void *arg, struct sim *sim, const struct sim_port *port);
	void (*started)(void *arg, struct sim *sim, const struct sim_msg *msg);
	void (*delivered)(void *arg, struct sim *sim, const struct sim_msg *msg);
};

/**
 * struct sim_counts - conservation: sent = received + dropped + on their way
 * @pkts_live: packets in memory, those that their host has not sent yet included.
 */
struct sim_counts {
	u64 pkts_sent, pkts_received, pkts_dropped, pkts_live;
	u64 wire_sent, wire_received, wire_dropped, wire_trimmed;
	u64 hops; /* packets times links */
	u64 events;
	u64 msgs_started, msgs_delivered, msgs_failed, bytes_delivered;
};

/**
 * struct sim - a run
 * @now: ps. @digest: of all deliveries: message, time, in order.
 */
struct sim {
	struct sim_config cfg;
	u64 now;
	struct sim_agenda *agenda;
	u64 digest;
	struct sim_host *hosts;
	struct sim_port *ports;
	u32 num_nodes, num_ports;
	struct sim_net *net; /* net.c's and topology.c's */
	struct sim_pkt *free_pkts;
	struct sim_msg *free_msgs;
	struct msg_slab *msg_slabs;
	u64 last_serial;
	struct homa_prng rng_net, rng_proto;
	struct sim_counts counts;
	struct sim_tap *taps;
	struct homa_workload workload;
	void *proto; /* the transport's, for the whole run */
	struct sim_traffic *traffic;
	struct sim_stats *stats;
	/* traffic.c listens here; kept as a pointer so that arrows point down */
	void (*on_delivered)(struct sim *sim, struct sim_msg *msg);
	void (*on_failed)(struct sim *sim, struct sim_msg *msg, int error);
	/* and for bytes of a message that arrive without packets (the oracle) */
	void (*on_arrived)(struct sim *sim, struct sim_msg *msg, u32 bytes);
	bool stop;
};

/* ---- sim.c ---- */

void sim_config_default(struct sim_config *cfg);
/** sim_new() - network and transport of @cfg at time 0; NULL with a sentence in @err */
struct sim *sim_new(const struct sim_config *cfg, char *err, size_t errlen);
void sim_free(struct sim *sim);
/** sim_run() - let everything happen up to and including @until, or until sim->stop */
void sim_run(struct sim *sim, u64 until);

/** sim_send() - start a message now; the caller has set src, dst, length, request, ... */
void sim_send(struct sim *sim, struct sim_msg *msg);
/** sim_msg_new() - zeroed, with a serial and one reference (the caller's) */
struct sim_msg *sim_msg_new(struct sim *sim);
void sim_msg_get(struct sim_msg *msg);
void sim_msg_put(struct sim *sim, struct sim_msg *msg);
/** sim_pkt_msg() - the message of a packet, NULL if it is over and gone */
static inline struct sim_msg *sim_pkt_msg(const struct sim_pkt *pkt)
{
	return pkt->msg && pkt->msg->serial == pkt->msg_serial ? pkt->msg : NULL;
}

/**
 * sim_delivered() - a transport has the last missing byte at the receiver
 * @last: the packet that brought it (for the causes of delay), or NULL.
 * In an RPC run the response is started from in here.
 */
void sim_delivered(struct sim *sim, struct sim_msg *msg, const struct sim_pkt *last);
/** sim_failed() - a transport gives a message up; @error: positive errno */
void sim_failed(struct sim *sim, struct sim_msg *msg, int error);
/** sim_withheld() - set host->withheld, keeping host->waste_ps true */
void sim_withheld(struct sim *sim, struct sim_host *host, u32 n);
/** sim_downlink_starts() - net.c says that the downlink leaves idleness now */
void sim_downlink_starts(struct sim *sim, struct sim_host *host);

/** sim_ideal_ps() - time of a message of @length alone on the idle network, see ideal.c */
u64 sim_ideal_ps(const struct sim *sim, u32 src, u32 dst, u32 length);
/** Message bytes in a full DATA packet, and IP bytes of one with @payload of them. */
u32 sim_homa_segment(const struct sim_config *cfg);
u32 sim_homa_data_ip(const struct sim_config *cfg, u32 payload);
u32 sim_homa_ctrl_ip(const struct sim_config *cfg, u32 hdr_len);

#endif
