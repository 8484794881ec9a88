// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The receiving end of a stream: segments are put together, messages are
 * whole in their order, and every segment, or every second one, is answered
 * by an ack of all that came without a gap. A segment that does not continue
 * what is there is acked at once, as is one that fills a gap (RFC 5681): that
 * is how the sender hears of a loss. The ack is the segment's own packet on
 * its way back.
 */
#include "window.h"

/* Delivers the messages that are complete, which they become in order. The stream lives on
 * until acks end it. */
static void window_deliver(struct sim *sim, struct window_flow *f, const struct sim_pkt *pkt)
{
	struct sim_msg *msg;

	while ((msg = f->head) != NULL && window_msg_end(msg) <= f->rcv_nxt) {
		f->head = msg->tx;
		if (f->cursor == msg)
			f->cursor = f->head;
		sim_delivered(sim, msg, pkt);
		sim_msg_put(sim, msg);
	}
}

/* Sends an ack in @pkt, which was the received packet and has no other use any more, or
 * is a new one. */
static void window_put_ack(struct sim *sim, struct window_flow *f, struct sim_pkt *pkt,
			   bool ce)
{
	struct window *w = window_of(sim);
	struct window_host *wh = &w->hosts[f->dst];
	u64 since = pkt->x[WINDOW_X_MARKED] >> WINDOW_SINCE_SHIFT;

	pkt->type = WINDOW_ACK;
	pkt->src = f->dst;
	pkt->dst = f->src;
	pkt->prio = w->policy->ack_prio;
	pkt->flags = SIM_CONTROL;
	pkt->flow = f->ecmp + 1;
	pkt->wire = window_wire(w, 0);
	pkt->payload = 0;
	pkt->offset = 0;
	pkt->msg = NULL;
	pkt->msg_serial = 0;
	pkt->rank = 0;
	pkt->wait_ps = 0;
	pkt->lag_ps = 0;
	pkt->hops = 0;
	pkt->x[WINDOW_X_SEQ] = f->rcv_nxt;
	pkt->x[WINDOW_X_FLOW] = (uintptr_t)f;
	pkt->x[WINDOW_X_SERIAL] = f->serial;
	/* A packet that is the segment's own has the segment's time. */
	pkt->x[WINDOW_X_MARKED] = since << WINDOW_SINCE_SHIFT | ce;
	if (w->sack)
		window_sack_blocks(f, f->latest, pkt);
	pkt->via = NULL;
	pkt->next = NULL;
	*wh->acks.tail = pkt;
	wh->acks.tail = &pkt->next;
	f->unacked = 0;
	w->counts.acks++;
	sim_port_kick(sim, sim->hosts[f->dst].up);
}

void window_ack_timer(struct sim *sim, struct sim_event *ev)
{
	struct window_flow *f = homa_container_of(ev, struct window_flow, ack_timer);
	struct sim_pkt *pkt;

	if (!f->unacked)
		return;
	pkt = sim_pkt_new(sim);
	if (pkt)
		window_put_ack(sim, f, pkt, f->ce);
}

/* May the ack of an in-order segment wait for the next one? */
static bool window_delay_ack(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	if (++f->unacked >= w->ack_every)
		return false;
	if (!sim_event_pending(&f->ack_timer))
		sim_event_add(sim->agenda, &f->ack_timer, sim->now + w->ack_delay);
	return true;
}

/*
 * RFC 8257, 3.2: when the mark changes, what was received before it is acked
 * with the old state at once, so that an ack speaks for segments of one kind.
 */
static void window_mark_state(struct sim *sim, struct window_flow *f, bool ce)
{
	struct sim_pkt *pkt;

	if (f->ce != ce && f->unacked) {
		pkt = sim_pkt_new(sim);
		if (pkt)
			window_put_ack(sim, f, pkt, f->ce);
	}
	f->ce = ce;
}

static void window_rx_data(struct sim *sim, struct window_flow *f, struct sim_pkt *pkt)
{
	u64 from = pkt->x[WINDOW_X_SEQ], to = from + pkt->payload;
	bool ce = (pkt->flags & SIM_ECN_CE) != 0;
	bool in_order = false;

	window_mark_state(sim, f, ce);
	if (to <= f->rcv_nxt) {
		window_of(sim)->counts.duplicates++;
	} else if (from <= f->rcv_nxt) {
		f->rcv_nxt = to;
		in_order = !f->in.num;
		f->rcv_nxt = window_ranges_drop(&f->in, f->rcv_nxt);
		window_deliver(sim, f, pkt);
	} else if (window_ranges_add(&f->in, from, to)) {
		window_of(sim)->counts.duplicates++;
	}
	f->latest = from;
	if (in_order && window_delay_ack(sim, f))
		sim_pkt_free(sim, pkt);
	else
		window_put_ack(sim, f, pkt, ce);
}

void window_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct window_flow *f = (struct window_flow *)(uintptr_t)pkt->x[WINDOW_X_FLOW];
	u64 seq = pkt->x[WINDOW_X_SEQ];
	u64 since = pkt->x[WINDOW_X_MARKED] >> WINDOW_SINCE_SHIFT;
	bool marked = pkt->x[WINDOW_X_MARKED] & 1;

	(void)host;
	if (f->serial != pkt->x[WINDOW_X_SERIAL]) {
		sim_pkt_free(sim, pkt);
	} else if (pkt->type == WINDOW_DATA) {
		window_rx_data(sim, f, pkt);
	} else {
		if (window_of(sim)->sack)
			window_sack_take(f, pkt);
		sim_pkt_free(sim, pkt);
		if (since && seq >= f->snd_una)
			window_cubic_rtt(window_of(sim), f, seq, sim->now,
					 sim->now - since);
		window_ack(sim, f, seq, marked);
	}
}
