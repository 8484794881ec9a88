// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pFabric: Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker,
 * "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013. Written
 * from the paper.
 *
 * Scheduling is the network's: every packet carries what is left of its
 * message as its rank, ports send the smallest rank and drop the largest
 * (queue_rank.c), and rate control only keeps the loss bounded. A message
 * begins with a window of one bandwidth-delay product. The receiver
 * acknowledges each packet by its number, first of all ranks. Nothing but
 * silence means loss: when the oldest packet under way was not acknowledged
 * for a short fixed time-out, all that is under way comes again and the window
 * starts over from one packet, growing by one with each acknowledgement up to
 * half of what it was, then by one per window. After several time-outs in a
 * row the message is in probe mode: it sends a shortest packet, once per
 * time-out, until one is answered.
 *
 * The sending host picks the message with the least left for each packet, so
 * that its own port needs no queue.
 *
 * Parameters: window 12 packets, time-out 45 us (three round trips of the
 * paper's network), 36,864 bytes per port (two bandwidth-delay products), probe
 * mode after 5 time-outs, packets of 1500 bytes of which 40 are headers, each
 * on a random path: the values of the paper's 144-host network at 10 Gbit/s,
 * with which Homa was compared too.
 *
 * Simplifications: the window never grows beyond its first size unless
 * max_window allows it, because more could only be dropped; the rank is what
 * is not acknowledged as the packet leaves; the time-out counts from when a
 * packet is on the wire, so waiting in one's own host is never a loss; there
 * is no handshake.
 *
 * Simulated by its authors in ns-2, a packet is payload and 40 bytes, an ack 40
 * bytes, without framing or a least size. That makes short messages far cheaper
 * than they are; the setting ns2-sizes does the same, for comparison only.
 */
#include <errno.h>
#include <stdlib.h>

#include "homa_heap.h"
#include "packets.h"

#define PFABRIC_PORT_BYTES 36864u

enum pfabric_type { PFABRIC_DATA = 1, PFABRIC_ACK, PFABRIC_PROBE, PFABRIC_PROBE_ACK };
enum pfabric_option {
	PFABRIC_OPT_WINDOW,
	PFABRIC_OPT_MAX_WINDOW,
	PFABRIC_OPT_RTO,
	PFABRIC_OPT_PROBE_AFTER,
	PFABRIC_OPT_NS2_SIZES,
	PFABRIC_OPTIONS
};

static const struct sim_option pfabric_options[] = {
	[PFABRIC_OPT_WINDOW] = { "window", 12, 1, 1000, "packets",
				 "first window, one bandwidth-delay product (pFabric §5)" },
	[PFABRIC_OPT_MAX_WINDOW] = { "max_window", 0, 0, 1000, "packets",
				     "largest window; 0 = the first window" },
	[PFABRIC_OPT_RTO] = { "rto", 45, 1, 1000000, "us",
			      "time-out, three round trips (pFabric §5)" },
	[PFABRIC_OPT_PROBE_AFTER] = { "probe_after", 5, 1, 1000, "time-outs",
				      "in a row, then probe mode (pFabric §4.3)" },
	[PFABRIC_OPT_NS2_SIZES] = { "ns2-sizes", 0, 0, 1, "",
				    "1: frames of payload + 40 bytes, acks of 40, as in the "
				    "paper's ns-2 runs; only to compare with its numbers" },
	[PFABRIC_OPTIONS] = { NULL, 0, 0, 0, NULL, NULL },
};

/**
 * struct pfabric_tx - a message at its sender
 * @side: The message at this host.
 * @turn: It is in the host's heap, with the key @left, while it may send.
 * @timer: This event runs when its oldest packet is not acknowledged in time.
 * @next: The number of the first packet that was never sent.
 * @acked: The number of packets that are acknowledged.
 * @left: The bytes that are not acknowledged, which are the rank of its packets.
 * @window: The most packets that may be under way.
 * @threshold: The size of the window, in packets, beyond which it grows by one in a round
 *	trip.
 * @grown: Acknowledgements since the window grew last, beyond @threshold.
 * @timeouts: The number of time-outs in a row.
 * @probing: After many time-outs only probes are sent, until one is answered.
 * @probe_due: The next packet is a probe.
 * @flight: The packets under way.
 * @slot: The state of each packet.
 */
struct pfabric_tx {
	struct sim_side side;
	struct homa_heap_node turn;
	struct sim_event timer;
	u32 next, acked, left;
	u32 window, threshold, grown;
	u32 timeouts;
	bool probing, probe_due;
	struct sim_flight flight;
	struct sim_slot slot[];
};

/**
 * struct pfabric_host - a host
 * @turns: The heap of messages that may send.
 * @control: Control packets, which are sent before them.
 */
struct pfabric_host {
	struct homa_heap turns;
	struct sim_control control;
};

/**
 * struct pfabric_counts - numbers of packets and events of all hosts
 * @retransmits: packets that were sent again.
 * @timeouts: time-outs.
 * @probe_modes: number of times that a message went into probe mode.
 * @probes: probes that were sent.
 * @duplicates: packets that arrived a second time.
 */
struct pfabric_counts {
	u64 retransmits, timeouts, probe_modes, probes, duplicates;
};

/**
 * struct pfabric - sim->proto
 * @hosts: both sides of each host, by its number.
 * @senders: messages that are being sent.
 * @receivers: messages that are being received.
 * @segment: message bytes in a full packet.
 * @window: first window of a message, in packets.
 * @max_window: largest window, in packets.
 * @probe_after: number of time-outs in a row after which a message is in probe mode.
 * @ns2_sizes: packets have the sizes of the paper's simulations.
 * @rto_ps: the time-out, ps.
 * @counts: what is counted of the run.
 */
struct pfabric {
	struct pfabric_host *hosts;
	struct sim_sides senders, receivers;
	u32 segment, window, max_window, probe_after;
	bool ns2_sizes;
	u64 rto_ps;
	struct pfabric_counts counts;
};

static inline struct pfabric *pfabric_of(const struct sim *sim)
{
	return sim->proto;
}

/* ---- a message at its sender ---- */

static void pfabric_timer(struct sim *sim, struct sim_event *ev);

static bool pfabric_may_send(const struct pfabric_tx *tx)
{
	if (tx->probing)
		return tx->probe_due;
	return sim_flight_under_way(&tx->flight) < tx->window &&
	       (tx->flight.lost || tx->next < tx->side.packets);
}

/* Keeps a message in the host's heap exactly while it may send, and with its current
 * key. */
static void pfabric_check(struct sim *sim, struct sim_host *host, struct pfabric_tx *tx)
{
	struct pfabric_host *ph = host->proto;
	bool linked = homa_heap_linked(&tx->turn);

	if (!pfabric_may_send(tx)) {
		if (linked)
			homa_heap_remove(&ph->turns, &tx->turn);
		return;
	}
	if (linked) {
		if (tx->turn.key != tx->left)
			homa_heap_update(&ph->turns, &tx->turn, tx->left, tx->turn.tie);
		return;
	}
	tx->turn.key = tx->left;
	homa_heap_insert(&ph->turns, &tx->turn);
	sim_port_kick(sim, host->up);
}

static void pfabric_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct pfabric *pf = pfabric_of(sim);
	struct pfabric_tx *tx = sim_side_new(&pf->senders, msg, pf->segment);

	if (!tx) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	msg->tx = tx;
	tx->flight.slot = tx->slot;
	tx->timer.fn = pfabric_timer;
	homa_heap_node_init(&tx->turn);
	tx->turn.tie = msg->serial;
	tx->left = msg->length;
	tx->window = pf->window;
	tx->threshold = pf->max_window;
	pfabric_check(sim, host, tx);
}

static void pfabric_tx_done(struct sim *sim, struct sim_host *host, struct pfabric_tx *tx)
{
	struct pfabric_host *ph = host->proto;

	sim_event_cancel(sim->agenda, &tx->timer);
	if (homa_heap_linked(&tx->turn))
		homa_heap_remove(&ph->turns, &tx->turn);
	tx->side.msg->tx = NULL;
	sim_side_done(sim, &pfabric_of(sim)->senders, &tx->side);
}

static struct sim_pkt *pfabric_packet(struct sim *sim, struct sim_host *host,
				      struct pfabric_tx *tx)
{
	struct pfabric *pf = pfabric_of(sim);
	struct sim_msg *msg = tx->side.msg;
	struct sim_pkt *pkt = sim_model_pkt(sim, msg, host->index, msg->dst, PFABRIC_DATA);
	u32 seq;

	if (!pkt)
		return NULL;
	pkt->rank = tx->left;
	if (tx->probing) {
		tx->probe_due = false;
		pf->counts.probes++;
		pkt->type = PFABRIC_PROBE;
		pkt->flags = SIM_CONTROL;
	} else if (tx->flight.lost) {
		seq = sim_flight_again(&tx->flight, sim->now);
		pf->counts.retransmits++;
		pkt->flags = SIM_RETRANSMIT;
		sim_model_data(pkt, seq, pf->segment);
	} else {
		seq = tx->next++;
		sim_flight_add(&tx->flight, seq, sim->now);
		sim_model_data(pkt, seq, pf->segment);
	}
	if (!sim_event_pending(&tx->timer))
		sim_event_add(sim->agenda, &tx->timer, sim->now + pf->rto_ps);
	return pkt;
}

static struct sim_pkt *pfabric_next(struct sim *sim, struct sim_host *host)
{
	struct pfabric_host *ph = host->proto;
	struct sim_pkt *pkt = sim_control_take(&ph->control);
	struct pfabric_tx *tx;

	if (pkt || !ph->turns.root)
		return pkt;
	tx = homa_container_of(homa_heap_min(&ph->turns), struct pfabric_tx, turn);
	pkt = pfabric_packet(sim, host, tx);
	if (!pfabric_may_send(tx))
		homa_heap_remove(&ph->turns, &tx->turn);
	return pkt;
}

static struct sim_pkt *pfabric_tx(struct sim *sim, struct sim_host *host)
{
	struct sim_pkt *pkt = pfabric_next(sim, host);

	if (pkt && pfabric_of(sim)->ns2_sizes)
		pkt->wire = SIM_MODEL_HEADERS + pkt->payload;
	return pkt;
}

/* ---- silence ---- */

static void pfabric_timeout(struct pfabric *pf, struct pfabric_tx *tx)
{
	pf->counts.timeouts++;
	sim_flight_lose(&tx->flight, SIM_NEVER);
	tx->threshold = tx->window > 3 ? tx->window / 2 : 2;
	tx->window = 1;
	tx->grown = 0;
	if (++tx->timeouts < pf->probe_after)
		return;
	pf->counts.probe_modes++;
	tx->probing = true;
	tx->probe_due = true;
}

static u64 pfabric_oldest(const struct sim_flight *flight)
{
	u64 oldest = SIM_NEVER;
	u32 i;

	for (i = 0; i < flight->count; i++)
		if (!flight->slot[i].lost && flight->slot[i].at < oldest)
			oldest = flight->slot[i].at;
	return oldest;
}

/* Runs from the time when the first packet is sent. When it ends, it is set anew for the
 * oldest packet that is under way. */
static void pfabric_timer(struct sim *sim, struct sim_event *ev)
{
	struct pfabric_tx *tx = homa_container_of(ev, struct pfabric_tx, timer);
	struct pfabric *pf = pfabric_of(sim);
	u64 oldest;

	if (tx->probing) {
		tx->probe_due = true;
	} else {
		oldest = pfabric_oldest(&tx->flight);
		if (oldest == SIM_NEVER)
			/* no packet is under way; the next one starts the timer */
			return;
		if (oldest + pf->rto_ps > sim->now) {
			sim_event_add(sim->agenda, &tx->timer, oldest + pf->rto_ps);
			return;
		}
		pfabric_timeout(pf, tx);
	}
	pfabric_check(sim, &sim->hosts[tx->side.msg->src], tx);
}

/* ---- what the receiver says ---- */

static void pfabric_grow(const struct pfabric *pf, struct pfabric_tx *tx)
{
	if (tx->window >= pf->max_window)
		return;
	if (tx->window < tx->threshold) {
		tx->window++;
	} else if (++tx->grown >= tx->window) {
		tx->window++;
		tx->grown = 0;
	}
}

static void pfabric_acked(struct sim *sim, struct sim_host *host, const struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);
	struct pfabric_tx *tx = msg ? msg->tx : NULL;
	struct pfabric *pf = pfabric_of(sim);
	u32 seq = (u32)pkt->x[0];

	if (!tx)
		return;
	tx->timeouts = 0;
	tx->probing = false;
	tx->probe_due = false;
	if (pkt->type == PFABRIC_ACK && sim_flight_remove(&tx->flight, seq) != SIM_NEVER) {
		tx->left -= sim_packet_bytes(msg->length, seq, pf->segment);
		pfabric_grow(pf, tx);
		if (++tx->acked == tx->side.packets) {
			pfabric_tx_done(sim, host, tx);
			return;
		}
	}
	pfabric_check(sim, host, tx);
}

/* ---- a message at its receiver ---- */

/* Makes the receiver's state, which only a message of several packets needs; returns false if
 * there is no memory. */
static bool pfabric_rx_ready(struct sim *sim, struct sim_msg *msg)
{
	struct pfabric *pf = pfabric_of(sim);
	struct sim_side *rx = msg->rx;

	if (rx || msg->delivered || msg->length <= pf->segment)
		return true;
	rx = sim_side_new(&pf->receivers, msg, pf->segment);
	if (!rx)
		return false;
	if (!sim_arrived_clear(&rx->arrived, rx->packets)) {
		sim_side_done(sim, &pf->receivers, rx);
		return false;
	}
	msg->rx = rx;
	return true;
}

static void pfabric_answer(struct sim *sim, struct sim_host *host, struct sim_msg *msg,
			   const struct sim_pkt *pkt)
{
	struct pfabric_host *ph = host->proto;
	struct sim_pkt *ack = sim_model_pkt(sim, msg, host->index, msg->src, PFABRIC_ACK);

	if (!ack)
		return; /* no memory: the packet counts as lost */
	if (pkt->type == PFABRIC_PROBE)
		ack->type = PFABRIC_PROBE_ACK;
	ack->x[0] = pkt->x[0];
	sim_control_put(&ph->control, ack);
	sim_port_kick(sim, host->up);
}

/* Returns whether this packet makes the message complete. */
static bool pfabric_completes(struct sim *sim, struct sim_msg *msg, u32 seq)
{
	struct pfabric *pf = pfabric_of(sim);
	struct sim_side *rx = msg->rx;

	if (!rx && !msg->delivered && msg->length <= pf->segment)
		return true;
	if (msg->delivered || (rx && sim_arrived_has(&rx->arrived, seq))) {
		pf->counts.duplicates++;
		return false;
	}
	sim_arrived_add(&rx->arrived, seq);
	if (++rx->received < rx->packets)
		return false;
	msg->rx = NULL;
	sim_side_done(sim, &pf->receivers, rx);
	return true;
}

static void pfabric_data(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);

	if (!msg)
		return;
	if (pkt->type == PFABRIC_DATA && !pfabric_rx_ready(sim, msg))
		return; /* no memory: the packet counts as lost */
	pfabric_answer(sim, host, msg, pkt);
	if (pkt->type == PFABRIC_PROBE)
		return;
	sim_msg_get(msg);
	if (pfabric_completes(sim, msg, (u32)pkt->x[0]))
		sim_delivered(sim, msg, pkt);
	sim_msg_put(sim, msg);
}

static void pfabric_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	if (pkt->type == PFABRIC_DATA || pkt->type == PFABRIC_PROBE)
		pfabric_data(sim, host, pkt);
	else
		pfabric_acked(sim, host, pkt);
	sim_pkt_free(sim, pkt);
}

/* ---- the run ---- */

static int pfabric_defaults(struct sim_config *cfg)
{
	sim_model_defaults(cfg, pfabric_options, SIM_QUEUE_RANK, PFABRIC_PORT_BYTES);
	return 0;
}

static int pfabric_start(struct sim *sim)
{
	struct pfabric *pf = calloc(1, sizeof(*pf));
	const u64 *option = sim->cfg.option;
	u32 i;

	if (!pf)
		return -ENOMEM;
	sim->proto = pf;
	pf->segment = sim->cfg.mtu - SIM_MODEL_HEADERS;
	pf->window = (u32)option[PFABRIC_OPT_WINDOW];
	pf->max_window = (u32)option[PFABRIC_OPT_MAX_WINDOW];
	if (pf->max_window < pf->window)
		pf->max_window = pf->window;
	pf->rto_ps = option[PFABRIC_OPT_RTO] * SIM_US;
	pf->probe_after = (u32)option[PFABRIC_OPT_PROBE_AFTER];
	pf->ns2_sizes = option[PFABRIC_OPT_NS2_SIZES];
	sim_sides_init(&pf->senders, sizeof(struct pfabric_tx),
		       pf->max_window * sizeof(struct sim_slot));
	sim_sides_init(&pf->receivers, sizeof(struct sim_side), 0);
	pf->hosts = calloc(sim->cfg.hosts, sizeof(*pf->hosts));
	if (!pf->hosts)
		return -ENOMEM; /* sim_free() calls pfabric_stop() */
	for (i = 0; i < sim->cfg.hosts; i++) {
		homa_heap_init(&pf->hosts[i].turns);
		sim_control_init(&pf->hosts[i].control);
		sim->hosts[i].proto = &pf->hosts[i];
	}
	return 0;
}

static void pfabric_stop(struct sim *sim)
{
	struct pfabric *pf = pfabric_of(sim);

	if (!pf)
		return;
	sim_sides_free(&pf->senders);
	sim_sides_free(&pf->receivers);
	free(pf->hosts);
	free(pf);
	sim->proto = NULL;
}

static void pfabric_metrics(struct sim *sim,
			    void (*put)(void *arg, const char *name, double value),
			    void *arg)
{
	const struct pfabric_counts *counts = &pfabric_of(sim)->counts;

	put(arg, "retransmits", (double)counts->retransmits);
	put(arg, "timeouts", (double)counts->timeouts);
	put(arg, "probe_modes", (double)counts->probe_modes);
	put(arg, "probes", (double)counts->probes);
	put(arg, "duplicates", (double)counts->duplicates);
}

const struct sim_transport sim_pfabric = {
	.name = "pfabric",
	.title = "pFabric",
	.text = "pFabric (SIGCOMM'13): switches that know what is left of each message",
	.options = pfabric_options,
	.defaults = pfabric_defaults,
	.start = pfabric_start,
	.stop = pfabric_stop,
	.send = pfabric_send,
	.tx = pfabric_tx,
	.rx = pfabric_rx,
	.metrics = pfabric_metrics,
};
