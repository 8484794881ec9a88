// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * NDP: Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wojcik,
 * "Re-architecting datacenter networks and stacks for low latency and high
 * performance", SIGCOMM 2017. Written from the paper.
 *
 * A sender begins at line rate, without asking, with a first window that fills
 * the network's round trip. Switches keep very short queues; when one is full,
 * they cut the payload off and send the header on, ahead of data. So the
 * receiver soon knows of every packet: it acknowledges what is whole (ACK),
 * refuses what is trimmed (NACK), and for both it queues a PULL, the right to
 * send one more packet: a refused one first, then a new one. The receiver's
 * PULLs leave one per packet time of its link, in turn for all messages.
 * Every packet takes a random path.
 *
 * Parameters: queues of 8 packets and a first window of about one
 * bandwidth-delay product, as in the paper (here computed from the network, 0
 * means that); packets of 1500 bytes with 40 bytes of headers; ACK, NACK and
 * PULL are shortest frames. A time-out of 1 ms is the last resort: it matters
 * only where links lose packets.
 *
 * Simplifications: headers are never returned to their sender (the queue of
 * headers does not overflow); an ACK never carries a PULL; the receiver learns
 * a message's length from any of its packets and asks for no more PULLs than
 * the sender needs, where the paper removes the needless ones at the end; a
 * PULL counts for one packet time even if the packet is a short last one; no
 * path is ever avoided.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ndp_impl.h"

#define NDP_MAX_BACKOFF 6
/* time-outs in which nothing was heard, after which a message sends one packet to ask */
#define NDP_STALL 8

static const struct sim_option ndp_options[] = {
	[NDP_OPT_WINDOW] = { "first_window", 0, 0, 100000, "packets",
			     "packets sent before the first PULL; 0 = fills the "
			     "longest round trip (NDP §3.2)" },
	[NDP_OPT_RTO_US] = { "rto", 1000, 10, 10000000, "us",
			     "time-out of a packet of which nothing is heard" },
	[NDP_OPT_SRPT] = { "srpt_pulls", 0, 0, 1, "bool",
			   "PULL the message with the fewest missing packets "
			   "instead of all in turn" },
	[NDP_OPT_SRPT + 1] = { NULL, 0, 0, 0, NULL, NULL },
};

/* ---- control packets ---- */

void ndp_control(struct sim *sim, struct sim_host *host, struct sim_msg *msg,
		 enum ndp_type type, u32 number)
{
	struct ndp_host *nh = host->proto;
	struct sim_pkt *pkt = sim_pkt_new(sim);

	if (!pkt)
		return; /* no memory: the packet counts as lost */
	pkt->wire = sim_wire(NDP_HEADERS);
	pkt->src = host->index;
	pkt->dst = msg->src;
	pkt->prio = SIM_PRIORITIES - 1;
	pkt->type = type;
	pkt->flags = SIM_CONTROL;
	pkt->flow = (u32)msg->serial;
	pkt->msg = msg;
	pkt->msg_serial = msg->serial;
	pkt->x[0] = number;
	pkt->next = NULL;
	*nh->control_tail = pkt;
	nh->control_tail = &pkt->next;
	sim_port_kick(sim, host->up);
}

static struct sim_pkt *ndp_control_take(struct ndp_host *nh)
{
	struct sim_pkt *pkt = nh->control;

	if (!pkt)
		return NULL;
	nh->control = pkt->next;
	if (!nh->control)
		nh->control_tail = &nh->control;
	pkt->next = NULL;
	return pkt;
}

/* ---- a message at its sender ---- */

static void ndp_timer(struct sim *sim, struct sim_event *ev);

static struct ndp_tx *ndp_tx_new(struct ndp *ndp)
{
	struct homa_list *spare = homa_list_pop(&ndp->spare_tx);
	struct ndp_slot *slots = NULL;
	struct ndp_tx *tx;
	u32 cap = 0;

	if (spare) {
		tx = homa_list_entry(spare, struct ndp_tx, all);
		slots = tx->slots;
		cap = tx->cap_slots;
	} else {
		tx = malloc(sizeof(*tx));
		if (!tx)
			return NULL;
	}
	memset(tx, 0, sizeof(*tx));
	tx->slots = slots;
	tx->cap_slots = cap;
	tx->timer.fn = ndp_timer;
	homa_list_init(&tx->ready);
	homa_list_init(&tx->all);
	return tx;
}

/* Keeps a message in the host's round exactly while it has tokens and packets to send. */
static void ndp_tx_check(struct sim *sim, struct sim_host *host, struct ndp_tx *tx)
{
	struct ndp_host *nh = host->proto;

	if (!tx->tokens || (!tx->waiting && tx->next == tx->packets)) {
		homa_list_del(&tx->ready);
		return;
	}
	if (homa_list_linked(&tx->ready))
		return;
	homa_list_add_tail(&nh->ready, &tx->ready);
	sim_port_kick(sim, host->up);
}

static void ndp_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct ndp *ndp = ndp_of(sim);
	struct ndp_tx *tx = ndp_tx_new(ndp);

	if (!tx) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	sim_msg_get(msg);
	msg->tx = tx;
	tx->msg = msg;
	tx->packets = msg->length ? (msg->length - 1) / ndp->segment + 1 : 1;
	tx->tokens = tx->packets < ndp->window ? tx->packets : ndp->window;
	tx->heard_at = sim->now;
	homa_list_add_tail(&ndp->senders, &tx->all);
	ndp_tx_check(sim, host, tx);
}

static void ndp_tx_done(struct sim *sim, struct ndp_tx *tx)
{
	struct ndp *ndp = ndp_of(sim);

	sim_event_cancel(sim->agenda, &tx->timer);
	homa_list_del(&tx->ready);
	homa_list_del(&tx->all);
	homa_list_add_head(&ndp->spare_tx, &tx->all);
	tx->msg->tx = NULL;
	sim_msg_put(sim, tx->msg);
	tx->msg = NULL;
}

static struct ndp_slot *ndp_slot_find(struct ndp_tx *tx, u32 seq)
{
	u32 i;

	for (i = 0; i < tx->num_slots; i++)
		if (tx->slots[i].seq == seq)
			return &tx->slots[i];
	return NULL;
}

static struct ndp_slot *ndp_slot_add(struct ndp_tx *tx, u32 seq)
{
	struct ndp_slot *slots;
	u32 cap;

	if (tx->num_slots == tx->cap_slots) {
		cap = tx->cap_slots ? 2 * tx->cap_slots : 16;
		slots = realloc(tx->slots, cap * sizeof(*slots));
		if (!slots)
			return NULL;
		tx->slots = slots;
		tx->cap_slots = cap;
	}
	tx->slots[tx->num_slots].seq = seq;
	tx->slots[tx->num_slots].waiting = false;
	return &tx->slots[tx->num_slots++];
}

/* Returns the packet to send: the first of those to be sent again, else a new one. */
static struct ndp_slot *ndp_slot_next(struct ndp_tx *tx)
{
	struct ndp_slot *best = NULL, *slot;
	u32 i;

	if (!tx->waiting) {
		slot = ndp_slot_add(tx, tx->next);
		if (slot)
			tx->next++;
		return slot;
	}
	for (i = 0; i < tx->num_slots; i++) {
		slot = &tx->slots[i];
		if (slot->waiting && (!best || slot->seq < best->seq))
			best = slot;
	}
	return best;
}

static void ndp_slot_wait(struct ndp_tx *tx, struct ndp_slot *slot)
{
	slot->waiting = true;
	tx->waiting++;
}

static struct sim_pkt *ndp_data(struct sim *sim, struct sim_host *host, struct ndp_tx *tx,
				struct sim_pkt *pkt)
{
	struct ndp *ndp = ndp_of(sim);
	struct ndp_slot *slot = ndp_slot_next(tx);
	struct sim_msg *msg = tx->msg;

	if (!slot)
		return NULL;
	if (slot->waiting) {
		slot->waiting = false;
		tx->waiting--;
		pkt->flags |= SIM_RETRANSMIT;
		ndp->counts.retransmits++;
	}
	slot->at = sim->now;
	tx->tokens--;
	pkt->src = host->index;
	pkt->dst = msg->dst;
	pkt->type = NDP_DATA;
	pkt->flow = (u32)msg->serial;
	pkt->msg = msg;
	pkt->msg_serial = msg->serial;
	pkt->x[0] = slot->seq;
	pkt->offset = slot->seq * ndp->segment;
	pkt->payload = msg->length - pkt->offset;
	if (pkt->payload > ndp->segment)
		pkt->payload = ndp->segment;
	pkt->wire = sim_wire(NDP_HEADERS + pkt->payload);
	if (!sim_event_pending(&tx->timer))
		sim_event_add(sim->agenda, &tx->timer,
			      sim->now + (ndp->rto_ps << tx->backoff));
	return pkt;
}

static struct sim_pkt *ndp_tx(struct sim *sim, struct sim_host *host)
{
	struct ndp_host *nh = host->proto;
	struct homa_list *first;
	struct sim_pkt *pkt;
	struct ndp_tx *tx;

	pkt = ndp_control_take(nh);
	if (pkt)
		return pkt;
	first = homa_list_pop(&nh->ready);
	if (!first)
		return NULL;
	tx = homa_list_entry(first, struct ndp_tx, ready);
	pkt = sim_pkt_new(sim);
	if (pkt && !ndp_data(sim, host, tx, pkt)) {
		sim_pkt_free(sim, pkt);
		pkt = NULL;
	}
	if (tx->tokens && (tx->waiting || tx->next < tx->packets))
		homa_list_add_tail(&nh->ready, &tx->ready);
	return pkt;
}

/* ---- what the receiver says ---- */

static void ndp_acked(struct sim *sim, struct ndp_tx *tx, u32 seq)
{
	struct ndp_slot *slot = ndp_slot_find(tx, seq);

	if (!slot)
		/* the packet was sent again needlessly, and acknowledged twice */
		return;
	if (slot->waiting)
		tx->waiting--;
	*slot = tx->slots[--tx->num_slots];
	if (++tx->acked == tx->packets)
		ndp_tx_done(sim, tx);
}

static void ndp_answer(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);
	struct ndp_tx *tx = msg ? msg->tx : NULL;
	u32 number = (u32)pkt->x[0];
	struct ndp_slot *slot;

	if (!tx)
		return;
	tx->heard_at = sim->now;
	tx->backoff = 0;
	if (pkt->type == NDP_ACK) {
		ndp_acked(sim, tx, number);
		if (!tx->msg)
			return;
	} else if (pkt->type == NDP_NACK) {
		slot = ndp_slot_find(tx, number);
		if (slot && !slot->waiting)
			ndp_slot_wait(tx, slot);
	} else if (number > tx->pulled) {
		/* The PULL's number makes up for PULLs that were lost or overtaken. */
		tx->tokens += number - tx->pulled;
		tx->pulled = number;
	}
	ndp_tx_check(sim, host, tx);
}

static void ndp_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	if (pkt->type == NDP_DATA)
		ndp_data_arrived(sim, host, pkt);
	else
		ndp_answer(sim, host, pkt);
	sim_pkt_free(sim, pkt);
}

/*
 * Runs when a message may be stuck. If a packet was not answered for a whole time-out, the
 * packet or its answer is lost, and its token with it: it is sent again with a new token.
 * If all packets sent were answered but no PULL comes for long, either a PULL is lost or
 * the receiver is busy with others: one packet is sent to ask.
 */
static void ndp_timer(struct sim *sim, struct sim_event *ev)
{
	struct ndp_tx *tx = homa_container_of(ev, struct ndp_tx, timer);
	struct ndp *ndp = ndp_of(sim);
	u64 rto = ndp->rto_ps << tx->backoff, next = SIM_NEVER;
	u32 i, lost = 0;

	for (i = 0; i < tx->num_slots; i++) {
		struct ndp_slot *slot = &tx->slots[i];

		if (slot->waiting)
			continue;
		if (slot->at + rto <= sim->now) {
			ndp_slot_wait(tx, slot);
			tx->tokens++;
			lost++;
		} else if (slot->at + rto < next) {
			next = slot->at + rto;
		}
	}
	ndp->counts.timeouts += lost;
	if (!lost && next == SIM_NEVER) {
		next = tx->heard_at + NDP_STALL * rto;
		if (next <= sim->now && !tx->tokens) {
			tx->tokens++;
			ndp->counts.probes++;
			lost++;
		}
	}
	if (lost && tx->backoff < NDP_MAX_BACKOFF)
		tx->backoff++;
	if (next <= sim->now || next == SIM_NEVER)
		next = sim->now + (ndp->rto_ps << tx->backoff);
	sim_event_add(sim->agenda, &tx->timer, next);
	ndp_tx_check(sim, &sim->hosts[tx->msg->src], tx);
}

/* ---- the run ---- */

static int ndp_defaults(struct sim_config *cfg)
{
	u32 i;

	for (i = 0; ndp_options[i].name; i++)
		cfg->option[i] = ndp_options[i].def;
	cfg->queue = SIM_QUEUE_TRIM;
	cfg->trim_packets = 8;
	cfg->balance = SIM_SPRAY;
	cfg->port_bytes = 0;
	cfg->shared_bytes = 0;
	cfg->ecn_bytes = 0;
	return 0;
}

/* Returns the number of packets that a sender can send until the PULL for the first one is
 * back, and one more. */
static u32 ndp_window(const struct sim *sim, u32 full, u64 full_ps)
{
	const struct sim_config *cfg = &sim->cfg;
	u32 rate[8], hops, dst = cfg->hosts - 1, i;
	u64 delay[8], rtt = 0;

	hops = sim_path(sim, 0, dst, rate, delay);
	for (i = 0; i < hops; i++)
		rtt += 2 * delay[i] + (u64)rate[i] * (full + sim_wire(NDP_HEADERS));
	return (u32)((rtt + full_ps - 1) / full_ps) + 1;
}

static void ndp_stop(struct sim *sim);

static int ndp_start(struct sim *sim)
{
	struct ndp *ndp = calloc(1, sizeof(*ndp));
	u32 full = sim_wire(sim->cfg.mtu), i;

	if (!ndp)
		return -ENOMEM;
	sim->proto = ndp;
	homa_list_init(&ndp->senders);
	homa_list_init(&ndp->receivers);
	homa_list_init(&ndp->spare_tx);
	homa_list_init(&ndp->spare_rx);
	ndp->segment = sim->cfg.mtu - NDP_HEADERS;
	ndp->rto_ps = sim->cfg.option[NDP_OPT_RTO_US] * SIM_US;
	ndp->srpt = sim->cfg.option[NDP_OPT_SRPT];
	ndp->pull_ps = (u64)full * (8000000u / sim->cfg.host_mbps);
	ndp->window = (u32)sim->cfg.option[NDP_OPT_WINDOW];
	if (!ndp->window)
		ndp->window = ndp_window(sim, full, ndp->pull_ps);
	ndp->hosts = calloc(sim->cfg.hosts, sizeof(*ndp->hosts));
	if (!ndp->hosts)
		return -ENOMEM; /* sim_free() calls ndp_stop() */
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct ndp_host *nh = &ndp->hosts[i];

		homa_list_init(&nh->ready);
		nh->control_tail = &nh->control;
		ndp_receiver_init(nh, &sim->hosts[i]);
		sim->hosts[i].proto = nh;
	}
	return 0;
}

static void ndp_free_all(struct homa_list *list, bool senders)
{
	struct homa_list *node;

	while ((node = homa_list_pop(list)) != NULL) {
		if (senders) {
			struct ndp_tx *tx = homa_list_entry(node, struct ndp_tx, all);

			free(tx->slots);
			free(tx);
		} else {
			ndp_rx_free(homa_list_entry(node, struct ndp_rx, all));
		}
	}
}

static void ndp_stop(struct sim *sim)
{
	struct ndp *ndp = ndp_of(sim);
	struct sim_pkt *pkt;
	u32 i;

	if (!ndp)
		return;
	for (i = 0; ndp->hosts && i < sim->cfg.hosts; i++)
		while ((pkt = ndp_control_take(&ndp->hosts[i])) != NULL)
			sim_pkt_free(sim, pkt);
	ndp_free_all(&ndp->senders, true);
	ndp_free_all(&ndp->spare_tx, true);
	ndp_free_all(&ndp->receivers, false);
	ndp_free_all(&ndp->spare_rx, false);
	free(ndp->hosts);
	free(ndp);
	sim->proto = NULL;
}

static void ndp_metrics(struct sim *sim,
			void (*put)(void *arg, const char *name, double value), void *arg)
{
	const struct ndp *ndp = ndp_of(sim);

	put(arg, "first_window", ndp->window);
	put(arg, "pulls", (double)ndp->counts.pulls);
	put(arg, "trimmed_arrivals", (double)ndp->counts.trimmed);
	put(arg, "retransmits", (double)ndp->counts.retransmits);
	put(arg, "duplicates", (double)ndp->counts.duplicates);
	put(arg, "timeouts", (double)ndp->counts.timeouts);
	put(arg, "probes", (double)ndp->counts.probes);
}

const struct sim_transport sim_ndp = {
	.name = "ndp",
	.title = "NDP",
	.text = "NDP (SIGCOMM'17): trimming switches, paced pulls, fair",
	.options = ndp_options,
	.defaults = ndp_defaults,
	.start = ndp_start,
	.stop = ndp_stop,
	.send = ndp_send,
	.tx = ndp_tx,
	.rx = ndp_rx,
	.metrics = ndp_metrics,
};
