/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The simulator: a network in virtual time whose hosts run the shipped Homa
 * engine or a model of a protocol that Homa is compared with.
 *
 *	event.h          time, what happens when
 *	software.h       what hosts' software costs, on their cores
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
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "costs.h"
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

/**
 * struct sim_failure - a link between two nodes is down for a while
 * @node: one end of the link.
 * @peer: the other end.
 * @from: time at which it goes down, ps.
 * @until: time at which it comes up again, ps.
 */
struct sim_failure {
	u32 node, peer;
	u64 from, until;
};

/**
 * struct sim_config - everything a run depends on; sim_config_default() first
 * @transport: the protocol that the hosts run.
 * @preset: name of the protocol's preset.
 * @seed: number from which all random numbers of the run follow.
 * @topology: how nodes are connected.
 * @hosts: number of hosts; leaf-spine: racks * hosts per rack; fat tree: k^3 / 4.
 * @racks: number of edge switches of a leaf-spine network.
 * @spines: number of spine switches of a leaf-spine network.
 * @k: parameter of a fat tree, even.
 * @host_mbps: rate of hosts' links in Mbit/s; 8,000,000 / rate must be whole (ps a byte).
 * @fabric_mbps: rate of links between switches in Mbit/s; 8,000,000 / rate must be whole.
 * @host_prop_ps: propagation delay of a host's link, ps.
 * @fabric_prop_ps: propagation delay of a link between switches, ps.
 * @switch_ps: a switch's own delay of each packet, ps.
 * @send_ps: delay of each packet by software (and NIC) of its sender, ps.
 * @recv_ps: delay of each packet by software (and NIC) of its receiver, ps.
 * @cut_through: switches send on before they have the whole packet.
 * @shaped: links are shapers: a packet has arrived when its time on the link begins.
 * @burst_ps: with @shaped, time that an idle link saves up as Linux' HTB does, ps: what comes
 *	then begins so much early, and ports count packets as Linux does; 0: neither.
 * @balance: how packets choose among equally short ways.
 * @queue: queueing discipline of the switches' ports.
 * @port_bytes: queue limit of each switch port, bytes; 0: unlimited.
 * @shared_bytes: buffer that a switch's ports share, bytes; 0: there is none.
 * @ecn_bytes: bytes in a port from which on ECN-capable packets are marked; 0: never.
 * @shared_alpha: a port may hold @shared_alpha / 256 times what is free of the shared buffer
 *	(dynamic threshold).
 * @trim_packets: NDP: number of data packets in a port from which on payloads are cut off.
 * @loss_ppm: each packet on each link is lost with this probability, in 1e-6.
 * @failures: links that go down.
 * @num_failures: number of entries of @failures that are used.
 * @mtu: longest IP packet, bytes.
 * @sigcomm_headers: count the SIGCOMM'18 study's header sizes (30 / 16 / 16
 *	bytes over UDP/IP) instead of the real ones.
 * @rpc: messages are requests that are answered with as many bytes (ATC'21),
 *	else one-way (SIGCOMM'18).
 * @response: bytes of each response; 0: as many as its request has.
 * @apart: index, plus 1, of the host whose messages are counted apart; 0: none's are.
 * @workload: name or file of the distribution of message sizes.
 * @arrivals: file of a recorded trace that is used instead of Poisson arrivals; "": none.
 * @cut: length to which longer messages are cut, in bytes; 0: none is.
 * @load: share of the host links' rate that is offered.
 * @load_kind: whether @load counts wire or payload bytes.
 * @closed: number of RPCs that each client keeps under way; 0: @load says when they come.
 * @servers: with @closed, number of hosts, the first ones, that only answer, while the others
 *	only ask; 0: all do both.
 * @warmup_ps: time at the beginning in which nothing is measured, ps.
 * @measure_ps: time after that whose new messages are measured, ps.
 * @drain_ps: most time that measured messages get to finish afterwards, ps.
 * @max_messages: number of messages after which no more are created; 0: no limit.
 * @incast: number of senders of an incast burst; 0: there are no bursts.
 * @incast_bytes: bytes that each of them sends in a burst.
 * @incast_ps: time from one burst to the next, ps.
 * @software: hosts' cores and what their software costs; all zero: nothing.
 * @homa: settings of the engine, if @transport is Homa.
 * @option: settings of @transport, in the order of sim_transport.options.
 */
struct sim_config {
	const struct sim_transport *transport;
	char preset[32];
	u64 seed;
	enum sim_topology topology;
	u32 hosts, racks, spines, k;
	u32 host_mbps, fabric_mbps;
	u64 host_prop_ps, fabric_prop_ps, switch_ps, send_ps, recv_ps;
	bool cut_through, shaped;
	u64 burst_ps;
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
	u32 response;
	u32 apart;
	char workload[256];
	char arrivals[256];
	u32 cut;
	double load;
	enum sim_load_kind load_kind;
	u32 closed, servers;
	u64 warmup_ps, measure_ps, drain_ps;
	u64 max_messages;
	u32 incast;
	u32 incast_bytes;
	u64 incast_ps;
	struct sim_software software;
	struct homa_params homa;
	u64 option[SIM_MAX_OPTIONS];
};

/**
 * struct sim_msg - a message; slots are recycled and never returned to the
 * system, so a stale packet may look at @serial
 * @serial: identifies the message during the whole run; 0 in a free slot.
 * @length: bytes of the message.
 * @src: index of the sending host.
 * @dst: index of the receiving host.
 * @refs: number of references: one is the traffic's, and one for each side at which the
 *	transport keeps the message.
 * @measured: the message counts in the statistics.
 * @delivered: the message has arrived whole.
 * @incast: the message belongs to an incast burst.
 * @quantile: its place in the workload's distribution, 0..1.
 * @arrived: bytes that have reached the receiving host; traffic.c counts them.
 * @created: time at which the application sent it, ps.
 * @done: time at which it had arrived whole, ps.
 * @ideal_ps: time that it would take alone on the idle network, with Homa's software at both
 *	ends if cores are modelled, ps.
 * @wait_ps: time that the packet which completed it waited in queues, ps; sim_delivered()
 *	writes it.
 * @lag_ps: part of @wait_ps that is preemption lag, see struct sim_pkt.
 * @request: request that this message answers, with a reference; NULL: it is none (RPC runs).
 * @next: links a free slot into sim.free_msgs.
 * @tx: the transport's state at the sender.
 * @rx: the transport's state at the receiver.
 * @x: words for the transport's own use.
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
	struct sim_msg *next;
	void *tx, *rx;
	u64 x[3];
};

/**
 * struct sim_host - an end of the network
 * @index: number of the host, which is also its node's.
 * @up: the host's own port.
 * @down: the switch's port toward the host.
 * @proto: the transport's state of this host.
 * @withheld: number of incoming messages that the receiver knows and holds back (not
 *	granted, not pulled); sim_withheld() sets it.
 * @withheld_at: time since which @withheld has its present value, ps.
 * @waste_ps: time in which its downlink was idle although @withheld > 0, ps.
 */
struct sim_host {
	u32 index;
	struct sim_port *up;
	struct sim_port *down;
	void *proto;
	u32 withheld;
	u64 withheld_at;
	u64 waste_ps;
};

/**
 * struct sim_tap - functions that look at what happens; those that are NULL are not called
 * @next: the next tap of the run.
 * @arg: the first argument of each function.
 * @sent: a packet begins to leave its host.
 * @received: a packet has reached its host.
 * @dropped: a packet was dropped at a port.
 * @queued: the length of a port's queue has changed.
 * @started: a message was given to the transport.
 * @delivered: a message has arrived whole.
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
 * @pkts_sent: number of packets that hosts began to send.
 * @pkts_received: number of packets that reached their host.
 * @pkts_dropped: number of packets that were dropped or lost.
 * @pkts_live: number of packets in memory, also of those that their host has not sent yet.
 * @wire_sent: bytes on the wire of the packets sent.
 * @wire_received: bytes on the wire of the packets received.
 * @wire_dropped: bytes on the wire of the packets dropped.
 * @wire_trimmed: bytes that switches cut off packets.
 * @hops: number of times that a packet crossed a link.
 * @events: number of events that happened.
 * @msgs_started: number of messages given to the transport.
 * @msgs_delivered: number of messages that arrived whole.
 * @msgs_failed: number of messages that the transport gave up.
 * @bytes_delivered: bytes of the messages that arrived whole.
 */
struct sim_counts {
	u64 pkts_sent, pkts_received, pkts_dropped, pkts_live;
	u64 wire_sent, wire_received, wire_dropped, wire_trimmed;
	u64 hops;
	u64 events;
	u64 msgs_started, msgs_delivered, msgs_failed, bytes_delivered;
};

/**
 * struct sim - a run
 * @cfg: everything that the run depends on.
 * @now: virtual time, ps.
 * @agenda: events that will happen.
 * @digest: hash of all deliveries, by message and time, in their order.
 * @hosts: the hosts, by index.
 * @ports: the ports, by index.
 * @num_nodes: number of nodes, hosts first.
 * @num_ports: number of ports.
 * @net: state of the network, for the files of sim/net only.
 * @cores: cores of the hosts; NULL: software is not modelled.
 * @free_pkts: free slots of packets.
 * @free_msgs: free slots of messages.
 * @msg_slabs: memory of all slots of messages.
 * @last_serial: serial number of the message that was made last.
 * @rng_net: random numbers of the network.
 * @rng_proto: random numbers of the transport.
 * @counts: what was counted so far.
 * @taps: the first tap; NULL: there is none.
 * @workload: distribution of message sizes.
 * @proto: the transport's state of the whole run.
 * @traffic: messages that are sent, made by traffic.c.
 * @stats: results, made by stats.c.
 * @on_delivered: function of traffic.c that is called when a message has arrived whole; a
 *	pointer, because this layer may not call traffic.c by name.
 * @on_failed: function of traffic.c that is called when a message was given up; @error is a
 *	positive errno.
 * @on_arrived: function of traffic.c that is called for bytes that arrive without packets
 *	(the oracle).
 * @stop: sim_run() returns after the event that sets this.
 */
struct sim {
	struct sim_config cfg;
	u64 now;
	struct sim_agenda *agenda;
	u64 digest;
	struct sim_host *hosts;
	struct sim_port *ports;
	u32 num_nodes, num_ports;
	struct sim_net *net;
	struct sim_cores *cores;
	struct sim_pkt *free_pkts;
	struct sim_msg *free_msgs;
	struct msg_slab *msg_slabs;
	u64 last_serial;
	struct homa_prng rng_net, rng_proto;
	struct sim_counts counts;
	struct sim_tap *taps;
	struct homa_workload workload;
	void *proto;
	struct sim_traffic *traffic;
	struct sim_stats *stats;
	void (*on_delivered)(struct sim *sim, struct sim_msg *msg);
	void (*on_failed)(struct sim *sim, struct sim_msg *msg, int error);
	void (*on_arrived)(struct sim *sim, struct sim_msg *msg, u32 bytes);
	bool stop;
};

/* ---- sim.c ---- */

void sim_config_default(struct sim_config *cfg);
/**
 * sim_new() - make network and transport of @cfg at time 0; NULL with a sentence in @err
 */
struct sim *sim_new(const struct sim_config *cfg, char *err, size_t errlen);
void sim_free(struct sim *sim);
/** sim_run() - let everything happen up to and including @until, or until sim->stop */
void sim_run(struct sim *sim, u64 until);

/** sim_send() - start a message now; the caller has set src, dst, length, request, ... */
void sim_send(struct sim *sim, struct sim_msg *msg);
/**
 * sim_msg_new() - make a zeroed message with a serial and one reference, which is the
 * caller's
 */
struct sim_msg *sim_msg_new(struct sim *sim);
void sim_msg_get(struct sim_msg *msg);
void sim_msg_put(struct sim *sim, struct sim_msg *msg);
/** sim_pkt_msg() - return the message of a packet; NULL: it is over and gone */
static inline struct sim_msg *sim_pkt_msg(const struct sim_pkt *pkt)
{
	return pkt->msg && pkt->msg->serial == pkt->msg_serial ? pkt->msg : NULL;
}

/**
 * sim_delivered() - tell that the last missing byte of @msg has reached the receiver
 * @last: the packet that brought it (for the causes of delay), or NULL. In an RPC run this
 * starts the response.
 */
void sim_delivered(struct sim *sim, struct sim_msg *msg, const struct sim_pkt *last);
/** sim_failed() - tell that the transport gives @msg up; @error: positive errno */
void sim_failed(struct sim *sim, struct sim_msg *msg, int error);
/** sim_withheld() - set host->withheld, and bring host->waste_ps up to date */
void sim_withheld(struct sim *sim, struct sim_host *host, u32 n);
/** sim_downlink_starts() - tell that the idle downlink of @host begins to send */
void sim_downlink_starts(struct sim *sim, struct sim_host *host);

/**
 * sim_ideal_ps() - return the time of a message of @length alone on the idle network, ps;
 * see ideal.c
 */
u64 sim_ideal_ps(const struct sim *sim, u32 src, u32 dst, u32 length);
/** Message bytes in a full DATA packet, and IP bytes of one with @payload of them. */
u32 sim_homa_segment(const struct sim_config *cfg);
u32 sim_homa_data_ip(const struct sim_config *cfg, u32 payload);
u32 sim_homa_ctrl_ip(const struct sim_config *cfg, u32 hdr_len);

#endif
