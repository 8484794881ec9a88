// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pHost's receiver: knows of a message by its RTS, or by whatever packet comes
 * first, and gives out tokens, one per packet time of its link, each to the
 * message with the fewest missing packets among those that may have one. A
 * message may not while a window of packets with tokens is on its way to us.
 *
 * Loss. A packet is lost when one comes whose token left nine packet times
 * later, and is given a new token. (Random paths and the two priorities hardly
 * delay a packet by as much.)
 *
 * Silence. With a whole window out and nothing coming the message is
 * downgraded: it gets no token for a while, others do, and then all that is
 * missing is given new ones. When every packet had its token, what is overdue
 * gets another, sooner, but each time in vain after twice as long, lest overload
 * be answered with tokens. The clock of both restarts with each token to the
 * message and each packet of it.
 *
 * For the report of wasted bandwidth, a message is held back while it could be
 * given a token and another one gets it.
 */
#include "phost_impl.h"

static void phost_pacer(struct sim *sim, struct sim_event *ev);
static void phost_silence(struct sim *sim, struct sim_event *ev);

void phost_receiver_init(struct phost_host *ph, struct sim_host *host)
{
	ph->host = host;
	ph->pacer.fn = phost_pacer;
	homa_heap_init(&ph->wanting);
}

/* ---- who may have a token ---- */

static bool phost_blocked(const struct phost *phost, const struct phost_rx *rx)
{
	return sim_flight_under_way(&rx->flight) >= phost->window;
}

static bool phost_wants(const struct phost_rx *rx)
{
	return rx->flight.lost || rx->next < rx->side.packets;
}

/* Keeps a message in the heap exactly while it may get a token, and with its current
 * key. */
static void phost_check(struct sim *sim, struct phost_host *ph, struct phost_rx *rx)
{
	struct phost *phost = phost_of(sim);
	u32 missing = rx->side.packets - rx->side.received;

	if (!phost_wants(rx) || phost_blocked(phost, rx)) {
		if (homa_heap_linked(&rx->turn))
			homa_heap_remove(&ph->wanting, &rx->turn);
	} else if (!homa_heap_linked(&rx->turn)) {
		rx->turn.key = missing;
		homa_heap_insert(&ph->wanting, &rx->turn);
	} else if (rx->turn.key != missing) {
		homa_heap_update(&ph->wanting, &rx->turn, missing, rx->turn.tie);
	}
	sim_withheld(sim, ph->host, ph->wanting.count);
	if (ph->wanting.count && !sim_event_pending(&ph->pacer))
		sim_event_add(sim->agenda, &ph->pacer,
			      ph->next_token > sim->now ? ph->next_token : sim->now);
}

/* Returns how long @rx may be silent before its packets under way count as lost, ps; 0: for
 * ever. */
static u64 phost_patience(const struct phost *phost, const struct phost_rx *rx)
{
	if (!sim_flight_under_way(&rx->flight))
		return 0;
	if (!phost_wants(rx))
		return phost->resend_ps << rx->silences;
	return phost_blocked(phost, rx) ? phost->downgrade_ps : 0;
}

/* Notes that a packet of @rx has arrived or got a token: its silence begins anew. */
static void phost_active(struct sim *sim, struct phost_rx *rx)
{
	u64 patience = phost_patience(phost_of(sim), rx);

	rx->active_at = sim->now;
	if (patience && !sim_event_pending(&rx->timer))
		sim_event_add(sim->agenda, &rx->timer, sim->now + patience);
}

static void phost_silence(struct sim *sim, struct sim_event *ev)
{
	struct phost_rx *rx = homa_container_of(ev, struct phost_rx, timer);
	struct phost *phost = phost_of(sim);
	u64 patience = phost_patience(phost, rx);

	if (!patience)
		return;
	if (rx->active_at + patience > sim->now) {
		sim_event_add(sim->agenda, &rx->timer, rx->active_at + patience);
		return;
	}
	if (phost_wants(rx))
		phost->counts.downgrades++;
	else if (rx->silences < PHOST_MAX_BACKOFF)
		rx->silences++;
	sim_flight_lose(&rx->flight, SIM_NEVER);
	phost_check(sim, sim->hosts[rx->side.msg->dst].proto, rx);
}

/* ---- messages ---- */

/* Makes the state of @msg; the packets with free tokens count as under way. */
static struct phost_rx *phost_rx_new(struct sim *sim, struct sim_msg *msg)
{
	struct phost *phost = phost_of(sim);
	struct phost_rx *rx = sim_side_new(&phost->receivers, msg, phost->segment);

	if (!rx)
		return NULL;
	if (!sim_arrived_clear(&rx->side.arrived, rx->side.packets)) {
		sim_side_done(sim, &phost->receivers, &rx->side);
		return NULL;
	}
	msg->rx = rx;
	homa_heap_node_init(&rx->turn);
	rx->turn.tie = msg->serial;
	rx->timer.fn = phost_silence;
	rx->flight.slot = rx->slot;
	for (; rx->next < rx->side.packets && rx->next < phost->free; rx->next++)
		sim_flight_add(&rx->flight, rx->next,
			       sim->now + rx->next * phost->packet_ps);
	phost_active(sim, rx);
	phost_check(sim, sim->hosts[msg->dst].proto, rx);
	return rx;
}

static void phost_rx_done(struct sim *sim, struct phost_host *ph, struct phost_rx *rx)
{
	sim_event_cancel(sim->agenda, &rx->timer);
	if (homa_heap_linked(&rx->turn)) {
		homa_heap_remove(&ph->wanting, &rx->turn);
		sim_withheld(sim, ph->host, ph->wanting.count);
	}
	rx->side.msg->rx = NULL;
	sim_side_done(sim, &phost_of(sim)->receivers, &rx->side);
}

/* ---- packets out ---- */

/* Queues a control packet to the sender of @msg; @missing: number of packets that have not
 * arrived, which orders messages at the sender. */
static void phost_control(struct sim *sim, struct phost_host *ph, struct sim_msg *msg,
			  enum phost_type type, u32 seq, u32 missing)
{
	struct sim_pkt *pkt = sim_model_pkt(sim, msg, ph->host->index, msg->src, type);

	if (!pkt)
		return; /* no memory: the packet counts as lost */
	pkt->x[0] = seq;
	pkt->x[1] = missing;
	sim_control_put(&ph->control, pkt);
	sim_port_kick(sim, ph->host->up);
}

static void phost_pacer(struct sim *sim, struct sim_event *ev)
{
	struct phost_host *ph = homa_container_of(ev, struct phost_host, pacer);
	struct homa_heap_node *first = homa_heap_min(&ph->wanting);
	struct phost *phost = phost_of(sim);
	struct phost_rx *rx;
	u32 seq;

	if (!first)
		return; /* the messages that wanted tokens need none any more */
	if (ph->next_token > sim->now) {
		sim_event_add(sim->agenda, ev, ph->next_token);
		return;
	}
	rx = homa_container_of(first, struct phost_rx, turn);
	if (rx->flight.lost) {
		seq = sim_flight_again(&rx->flight, sim->now);
		phost->counts.tokens_again++;
	} else {
		seq = rx->next++;
		sim_flight_add(&rx->flight, seq, sim->now);
	}
	phost->counts.tokens++;
	ph->next_token = sim->now + phost->packet_ps;
	phost_active(sim, rx);
	phost_check(sim, ph, rx);
	phost_control(sim, ph, rx->side.msg, PHOST_TOKEN, seq,
		      rx->side.packets - rx->side.received);
}

/* ---- packets in ---- */

/* Returns the state of the message, a new one for its first packet, or NULL if it is over. */
static struct phost_rx *phost_rx_of(struct sim *sim, struct sim_host *host,
				    const struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);

	if (!msg)
		return NULL;
	if (msg->delivered) {
		/* The sender does not know that its message is complete, or a packet came
		 * twice. */
		if (pkt->type == PHOST_RTS)
			phost_control(sim, host->proto, msg, PHOST_ACK, 0, 0);
		else
			phost_of(sim)->counts.duplicates++;
		return NULL;
	}
	return msg->rx ? msg->rx : phost_rx_new(sim, msg);
}

/*
 * Takes in that a packet has arrived whose token was sent at the time @at. Packets whose
 * tokens were sent much earlier are lost, so they must not count against the window.
 */
static void phost_overtaken(const struct phost *phost, struct phost_rx *rx, u64 at)
{
	if (at != SIM_NEVER && at > phost->resend_ps)
		sim_flight_lose(&rx->flight, at - phost->resend_ps);
}

void phost_rts_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	phost_rx_of(sim, host, pkt);
}

/* Delays the next token by the time of @pkt, which took up the link without having been
 * asked for. */
static void phost_hold(const struct sim *sim, struct phost_host *ph,
		       const struct sim_pkt *pkt)
{
	if (ph->next_token < sim->now)
		ph->next_token = sim->now;
	ph->next_token += (u64)pkt->wire * ph->host->down->ps_per_byte;
}

void phost_data_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct phost_rx *rx = phost_rx_of(sim, host, pkt);
	struct phost_host *ph = host->proto;
	u32 seq = (u32)pkt->x[0];
	struct sim_msg *msg;

	if (pkt->x[1])
		phost_hold(sim, ph, pkt);
	if (!rx)
		return;
	if (sim_arrived_has(&rx->side.arrived, seq)) {
		phost_of(sim)->counts.duplicates++;
		return;
	}
	rx->silences = 0;
	sim_arrived_add(&rx->side.arrived, seq);
	phost_overtaken(phost_of(sim), rx, sim_flight_remove(&rx->flight, seq));
	if (++rx->side.received < rx->side.packets) {
		phost_active(sim, rx);
		phost_check(sim, ph, rx);
		return;
	}
	msg = rx->side.msg;
	sim_msg_get(msg);
	phost_rx_done(sim, ph, rx);
	phost_control(sim, ph, msg, PHOST_ACK, 0, 0);
	sim_delivered(sim, msg, pkt);
	sim_msg_put(sim, msg);
}
