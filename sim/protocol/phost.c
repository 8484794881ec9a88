// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pHost: Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker, "pHost: Distributed
 * Near-Optimal Datacenter Transport Over Commodity Network Fabric", CoNEXT
 * 2015. Written from the paper.
 *
 * A sender announces a message with an RTS and sends its first packets with
 * free tokens, which come with the message. For every other packet it needs a
 * token from the receiver, which gives out one per packet time of its link, to
 * the message with the fewest missing packets. A token is good for one packet
 * and a short while; a sender with tokens of several messages uses those of
 * the one with the least left. So a receiver bets on one sender at a time. If
 * that one is busy elsewhere, its tokens expire and bandwidth is lost, until
 * the receiver has handed out a window of them in vain and leaves the message
 * alone for a while (it is downgraded). What did not arrive is given a new
 * token; when all has, the receiver says so. What comes with free tokens takes the
 * place of tokens, so that all together is no more than the link carries.
 *
 * Switches are ordinary: a queue in order of arrival for each of few
 * priorities. RTS, tokens and acknowledgements go at the highest, the packets
 * that have free tokens at the next, all others at the third. Every packet takes a
 * random path.
 *
 * Parameters, in packet times as in the paper's simulations: 8 free tokens
 * and a window of 8 tokens (a bandwidth-delay product), tokens expire after
 * 1.5, a downgrade lasts 25, an overdue packet gets a new token after 9; 36,864
 * bytes per port; packets of 1500 bytes of which 40 are headers; all control
 * packets are shortest frames.
 *
 * Simplifications: downgrading is of a message, not of all that its sender
 * has; packets with free tokens count against the window until they arrive, so
 * that a receiver does not ask for more than it can take; an RTS comes again
 * after 45 us without any answer, then after twice that and so on, because a
 * receiver does not answer an RTS before it has a token to give.
 *
 * Simulated by its authors, a packet is payload and 40 bytes, a control packet
 * 40 bytes, without framing or a least size; the setting bare-sizes does the
 * same, for comparison only.
 */
#include <errno.h>
#include <stdlib.h>

#include "phost_impl.h"

#define PHOST_PORT_BYTES 36864u
#define PHOST_FREE_PRIO 6
#define PHOST_PRIO 5

enum phost_option {
	PHOST_OPT_FREE,
	PHOST_OPT_WINDOW,
	PHOST_OPT_EXPIRY,
	PHOST_OPT_DOWNGRADE,
	PHOST_OPT_RESEND,
	PHOST_OPT_RTS,
	PHOST_OPT_BARE_SIZES,
	PHOST_OPTIONS
};

static const struct sim_option phost_options[] = {
	[PHOST_OPT_FREE] = { "free_tokens", 8, 0, 1000, "packets",
			     "packets of a message that need no token (pHost §3.2)" },
	[PHOST_OPT_WINDOW] = { "window", 8, 1, 1000, "packets",
			       "tokens in vain until a message is downgraded (pHost §3.3)" },
	[PHOST_OPT_EXPIRY] = { "token_expiry", 150, 1, 100000, "percent",
			       "of a packet time, then a token is void (pHost §3.3)" },
	[PHOST_OPT_DOWNGRADE] = { "downgrade", 25, 1, 100000, "packet times",
				  "for which a downgraded message gets no token" },
	[PHOST_OPT_RESEND] = { "resend", 9, 1, 100000, "packet times",
			       "until an overdue packet is given a new token" },
	[PHOST_OPT_RTS] = { "rts_timeout", 45, 1, 1000000, "us",
			    "until an RTS is sent again; doubles each time" },
	[PHOST_OPT_BARE_SIZES] = { "bare-sizes", 0, 0, 1, "",
				   "1: frames of payload + 40 bytes, control packets of 40, as "
				   "in the paper's simulations; only to compare with its numbers" },
	[PHOST_OPTIONS] = { NULL, 0, 0, 0, NULL, NULL },
};

/* ---- a message at its sender ---- */

static void phost_timer(struct sim *sim, struct sim_event *ev);

static void phost_rts(struct sim *sim, struct sim_host *host, struct phost_tx *tx)
{
	struct phost_host *ph = host->proto;
	struct sim_msg *msg = tx->side.msg;
	struct sim_pkt *pkt = sim_model_pkt(sim, msg, host->index, msg->dst, PHOST_RTS);

	if (pkt)
		sim_control_put(&ph->control, pkt);
	tx->heard_at = sim->now;
	sim_port_kick(sim, host->up);
}

/* Starts the timer, unless packets without tokens are still to be sent: until then any
 * delay is the sender's own. */
static void phost_wait(struct sim *sim, struct phost_tx *tx)
{
	if (!tx->num_owed && !sim_event_pending(&tx->timer))
		sim_event_add(sim->agenda, &tx->timer,
			      sim->now + (phost_of(sim)->rts_ps << tx->backoff));
}

static void phost_key(struct phost_host *ph, struct phost_tx *tx)
{
	if (!homa_heap_linked(&tx->turn)) {
		tx->turn.key = tx->left;
		homa_heap_insert(&ph->senders, &tx->turn);
	} else if (tx->turn.key != tx->left) {
		homa_heap_update(&ph->senders, &tx->turn, tx->left, tx->turn.tie);
	}
}

static void phost_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct phost *phost = phost_of(sim);
	struct phost_tx *tx = sim_side_new(&phost->senders, msg, phost->segment);

	if (!tx) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	msg->tx = tx;
	tx->owed = (u32 *)&tx->token[phost->window];
	tx->timer.fn = phost_timer;
	homa_heap_node_init(&tx->turn);
	tx->turn.tie = msg->serial;
	tx->left = tx->side.packets;
	while (tx->num_owed < tx->side.packets && tx->num_owed < phost->free) {
		tx->owed[tx->num_owed] = tx->num_owed;
		tx->num_owed++;
	}
	if (tx->num_owed)
		phost_key(host->proto, tx);
	phost_rts(sim, host, tx);
	phost_wait(sim, tx);
}

static void phost_tx_done(struct sim *sim, struct phost_host *ph, struct phost_tx *tx)
{
	sim_event_cancel(sim->agenda, &tx->timer);
	if (homa_heap_linked(&tx->turn))
		homa_heap_remove(&ph->senders, &tx->turn);
	tx->side.msg->tx = NULL;
	sim_side_done(sim, &phost_of(sim)->senders, &tx->side);
}

/* ---- tokens ---- */

static u32 phost_token_pop(struct phost *phost, struct phost_tx *tx)
{
	u32 seq = tx->token[tx->first].seq;

	tx->first = (tx->first + 1) % phost->window;
	tx->num--;
	return seq;
}

static void phost_token_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);
	struct phost_tx *tx = msg ? msg->tx : NULL;
	struct phost *phost = phost_of(sim);
	struct phost_token *token;

	if (!tx)
		return;
	tx->heard_at = sim->now;
	tx->backoff = 0;
	if (tx->num == phost->window) {
		phost_token_pop(phost, tx); /* the oldest, which is about to expire */
		phost->counts.expired++;
	}
	token = &tx->token[(tx->first + tx->num++) % phost->window];
	token->seq = (u32)pkt->x[0];
	token->expires = sim->now + phost->expiry_ps;
	tx->left = (u32)pkt->x[1];
	phost_key(host->proto, tx);
	sim_port_kick(sim, host->up);
}

static u32 phost_owed_pop(struct phost *phost, struct phost_tx *tx)
{
	u32 seq = tx->owed[tx->first_owed];

	tx->first_owed = (tx->first_owed + 1) % phost->free;
	tx->num_owed--;
	return seq;
}

static bool phost_owes(const struct phost *phost, const struct phost_tx *tx, u32 seq)
{
	u32 i;

	for (i = 0; i < tx->num_owed; i++)
		if (tx->owed[(tx->first_owed + i) % phost->free] == seq)
			return true;
	return false;
}

/*
 * Chooses the packet that @tx may send now. Tokens expire and free packets do not, so
 * tokens are used first. But packets are sent in order: a token for a later packet is spent
 * on the first owed packet, and the later packet is owed instead.
 */
static bool phost_choose(struct sim *sim, struct phost_tx *tx, u32 *seq, bool *free)
{
	struct phost *phost = phost_of(sim);

	while (tx->num && tx->token[tx->first].expires < sim->now) {
		phost_token_pop(phost, tx);
		phost->counts.expired++;
	}
	if (!tx->num && !tx->num_owed)
		return false;
	*free = !tx->num;
	if (!tx->num) {
		*seq = phost_owed_pop(phost, tx);
		return true;
	}
	*seq = phost_token_pop(phost, tx);
	if (tx->num_owed) {
		u32 with_token = *seq;
		bool owed = phost_owes(phost, tx, with_token);

		*seq = phost_owed_pop(phost, tx);
		if (!owed)
			tx->owed[(tx->first_owed + tx->num_owed++) % phost->free] =
				with_token;
	}
	return true;
}

static struct sim_pkt *phost_next(struct sim *sim, struct sim_host *host)
{
	struct phost_host *ph = host->proto;
	struct sim_pkt *pkt = sim_control_take(&ph->control);
	struct phost *phost = phost_of(sim);
	struct phost_tx *tx;
	bool free;
	u32 seq;

	if (pkt)
		return pkt;
	for (;;) {
		if (!ph->senders.root)
			return NULL;
		tx = homa_container_of(homa_heap_min(&ph->senders), struct phost_tx, turn);
		if (phost_choose(sim, tx, &seq, &free))
			break;
		homa_heap_remove(&ph->senders, &tx->turn); /* all its tokens expired */
	}
	pkt = sim_model_pkt(sim, tx->side.msg, host->index, tx->side.msg->dst, PHOST_DATA);
	phost_wait(sim, tx);
	if (tx->num || tx->num_owed)
		phost_key(ph, tx);
	else
		homa_heap_remove(&ph->senders, &tx->turn);
	if (!pkt)
		return NULL; /* no memory: the packet counts as lost */
	sim_model_data(pkt, seq, phost->segment);
	pkt->x[1] = free;
	pkt->prio = seq < phost->free ? PHOST_FREE_PRIO : PHOST_PRIO;
	return pkt;
}

static struct sim_pkt *phost_tx(struct sim *sim, struct sim_host *host)
{
	struct sim_pkt *pkt = phost_next(sim, host);

	if (pkt && phost_of(sim)->bare_sizes)
		pkt->wire = SIM_MODEL_HEADERS + pkt->payload;
	return pkt;
}

/* Nothing was heard for long, so the RTS or the acknowledgement may be lost: the RTS is
 * sent again. */
static void phost_timer(struct sim *sim, struct sim_event *ev)
{
	struct phost_tx *tx = homa_container_of(ev, struct phost_tx, timer);
	struct phost *phost = phost_of(sim);
	u64 due = tx->heard_at + (phost->rts_ps << tx->backoff);

	if (due > sim->now) {
		sim_event_add(sim->agenda, &tx->timer, due);
		return;
	}
	if (tx->backoff < PHOST_MAX_BACKOFF)
		tx->backoff++;
	phost->counts.rts_again++;
	phost_rts(sim, &sim->hosts[tx->side.msg->src], tx);
	phost_wait(sim, tx);
}

static void phost_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_msg *msg;

	switch (pkt->type) {
	case PHOST_DATA:
		phost_data_arrived(sim, host, pkt);
		break;
	case PHOST_RTS:
		phost_rts_arrived(sim, host, pkt);
		break;
	case PHOST_TOKEN:
		phost_token_arrived(sim, host, pkt);
		break;
	case PHOST_ACK:
		msg = sim_pkt_msg(pkt);
		if (msg && msg->tx)
			phost_tx_done(sim, host->proto, msg->tx);
		break;
	}
	sim_pkt_free(sim, pkt);
}

/* ---- the run ---- */

static int phost_defaults(struct sim_config *cfg)
{
	sim_model_defaults(cfg, phost_options, SIM_QUEUE_PRIORITY, PHOST_PORT_BYTES);
	return 0;
}

static void phost_prepare(struct phost *phost, const struct sim_config *cfg)
{
	const u64 *option = cfg->option;
	u32 slots;

	phost->segment = cfg->mtu - SIM_MODEL_HEADERS;
	phost->free = (u32)option[PHOST_OPT_FREE];
	phost->window = (u32)option[PHOST_OPT_WINDOW];
	phost->bare_sizes = option[PHOST_OPT_BARE_SIZES];
	phost->packet_ps = (u64)(phost->bare_sizes ? cfg->mtu : sim_wire(cfg->mtu)) *
			   (8000000u / cfg->host_mbps);
	phost->expiry_ps = phost->packet_ps * option[PHOST_OPT_EXPIRY] / 100;
	phost->downgrade_ps = phost->packet_ps * option[PHOST_OPT_DOWNGRADE];
	phost->resend_ps = phost->packet_ps * option[PHOST_OPT_RESEND];
	phost->rts_ps = option[PHOST_OPT_RTS] * SIM_US;
	slots = phost->free > phost->window ? phost->free : phost->window;
	sim_sides_init(&phost->senders, sizeof(struct phost_tx),
		       phost->window * sizeof(struct phost_token) +
			       phost->free * sizeof(u32));
	sim_sides_init(&phost->receivers, sizeof(struct phost_rx),
		       slots * sizeof(struct sim_slot));
}

static int phost_start(struct sim *sim)
{
	struct phost *phost = calloc(1, sizeof(*phost));
	u32 i;

	if (!phost)
		return -ENOMEM;
	sim->proto = phost;
	phost_prepare(phost, &sim->cfg);
	phost->hosts = calloc(sim->cfg.hosts, sizeof(*phost->hosts));
	if (!phost->hosts)
		return -ENOMEM; /* sim_free() calls phost_stop() */
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct phost_host *ph = &phost->hosts[i];

		homa_heap_init(&ph->senders);
		sim_control_init(&ph->control);
		phost_receiver_init(ph, &sim->hosts[i]);
		sim->hosts[i].proto = ph;
	}
	return 0;
}

static void phost_stop(struct sim *sim)
{
	struct phost *phost = phost_of(sim);

	if (!phost)
		return;
	sim_sides_free(&phost->senders);
	sim_sides_free(&phost->receivers);
	free(phost->hosts);
	free(phost);
	sim->proto = NULL;
}

static void phost_metrics(struct sim *sim,
			  void (*put)(void *arg, const char *name, double value), void *arg)
{
	const struct phost_counts *counts = &phost_of(sim)->counts;

	put(arg, "tokens", (double)counts->tokens);
	put(arg, "tokens_again", (double)counts->tokens_again);
	put(arg, "tokens_expired", (double)counts->expired);
	put(arg, "downgrades", (double)counts->downgrades);
	put(arg, "rts_again", (double)counts->rts_again);
	put(arg, "duplicates", (double)counts->duplicates);
}

const struct sim_transport sim_phost = {
	.name = "phost",
	.title = "pHost",
	.text = "pHost (CoNEXT'15): receivers give out tokens, one packet at a time",
	.options = phost_options,
	.defaults = phost_defaults,
	.start = phost_start,
	.stop = phost_stop,
	.send = phost_send,
	.tx = phost_tx,
	.rx = phost_rx,
	.metrics = phost_metrics,
};
