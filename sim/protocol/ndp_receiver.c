// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * NDP's receiver: answers every packet at once, and owes its sender a PULL for
 * it. The host's PULLs, of all messages, leave one per packet time, so that
 * what they ask for arrives at the rate of the link: one message after the
 * other in turn, which is fair and what the paper does, or the one that needs
 * the fewest packets first.
 *
 * For the report of wasted bandwidth, a message is held back while there is
 * something of it that its sender may not send because the PULL for it has not
 * left: because it waits for its turn, or because the whole window of the
 * message waits at a sender that is busy with others. The latter is what NDP,
 * which never asks for more than a window of a message, cannot avoid.
 */
#include <stdlib.h>
#include <string.h>

#include "ndp_impl.h"

static void ndp_pacer(struct sim *sim, struct sim_event *ev);

void ndp_receiver_init(struct ndp_host *nh, struct sim_host *host)
{
	nh->host = host;
	nh->pacer.fn = ndp_pacer;
	homa_heap_init(&nh->pulls);
}

static void ndp_held(struct sim *sim, struct ndp_host *nh, struct ndp_rx *rx)
{
	bool held = rx->msg && rx->asked - rx->queued < rx->needed;

	if (held == rx->held)
		return;
	rx->held = held;
	nh->held += held ? 1 : -1;
	sim_withheld(sim, nh->host, nh->held);
}

/* ---- messages ---- */

void ndp_rx_free(struct ndp_rx *rx)
{
	free(rx->have);
	free(rx);
}

static struct ndp_rx *ndp_rx_alloc(struct ndp *ndp, u32 words)
{
	struct homa_list *spare = homa_list_pop(&ndp->spare_rx);
	struct ndp_rx *rx;

	if (spare)
		rx = homa_list_entry(spare, struct ndp_rx, all);
	else
		rx = calloc(1, sizeof(*rx));
	if (!rx)
		return NULL;
	homa_list_init(&rx->all);
	if (rx->cap_words < words) {
		free(rx->have);
		rx->have = malloc(words * sizeof(*rx->have));
		rx->cap_words = rx->have ? words : 0;
		if (!rx->have) {
			free(rx);
			return NULL;
		}
	}
	memset(rx->have, 0, words * sizeof(*rx->have));
	return rx;
}

static struct ndp_rx *ndp_rx_new(struct sim *sim, struct sim_msg *msg)
{
	struct ndp *ndp = ndp_of(sim);
	u32 packets = msg->length ? (msg->length - 1) / ndp->segment + 1 : 1;
	struct ndp_rx *rx = ndp_rx_alloc(ndp, (packets + 63) / 64);

	if (!rx)
		return NULL;
	homa_heap_node_init(&rx->turn);
	rx->turn.tie = msg->serial;
	rx->msg = msg;
	rx->packets = packets;
	rx->received = 0;
	rx->needed = packets > ndp->window ? packets - ndp->window : 0;
	rx->asked = 0;
	rx->queued = 0;
	rx->held = false;
	sim_msg_get(msg);
	msg->rx = rx;
	homa_list_add_tail(&ndp->receivers, &rx->all);
	ndp_held(sim, sim->hosts[msg->dst].proto, rx);
	return rx;
}

static void ndp_rx_done(struct sim *sim, struct ndp_host *nh, struct ndp_rx *rx)
{
	struct ndp *ndp = ndp_of(sim);

	if (homa_heap_linked(&rx->turn))
		homa_heap_remove(&nh->pulls, &rx->turn);
	homa_list_del(&rx->all);
	homa_list_add_head(&ndp->spare_rx, &rx->all);
	rx->msg->rx = NULL;
	sim_msg_put(sim, rx->msg);
	rx->msg = NULL;
	ndp_held(sim, nh, rx);
}

/* ---- PULLs ---- */

static void ndp_turn(struct sim *sim, struct ndp_host *nh, struct ndp_rx *rx)
{
	if (ndp_of(sim)->srpt)
		rx->turn.key = rx->packets - rx->received;
	else
		rx->turn.key = ++nh->turns;
	homa_heap_insert(&nh->pulls, &rx->turn);
}

static void ndp_pull(struct sim *sim, struct ndp_host *nh, struct ndp_rx *rx)
{
	if (rx->asked == rx->needed)
		return;
	rx->asked++;
	rx->queued++;
	if (!homa_heap_linked(&rx->turn))
		ndp_turn(sim, nh, rx);
	if (!sim_event_pending(&nh->pacer))
		sim_event_add(sim->agenda, &nh->pacer,
			      nh->next_pull > sim->now ? nh->next_pull : sim->now);
}

static void ndp_pacer(struct sim *sim, struct sim_event *ev)
{
	struct ndp_host *nh = homa_container_of(ev, struct ndp_host, pacer);
	struct homa_heap_node *node = homa_heap_pop(&nh->pulls);
	struct ndp *ndp = ndp_of(sim);
	struct ndp_rx *rx;

	if (!node)
		return; /* the messages whose PULLs were queued are complete */
	rx = homa_container_of(node, struct ndp_rx, turn);
	rx->queued--;
	ndp->counts.pulls++;
	nh->next_pull = sim->now + ndp->pull_ps;
	if (rx->queued)
		ndp_turn(sim, nh, rx);
	ndp_held(sim, nh, rx);
	if (nh->pulls.count)
		sim_event_add(sim->agenda, &nh->pacer, nh->next_pull);
	ndp_control(sim, nh->host, rx->msg, NDP_PULL, rx->asked - rx->queued);
}

/* ---- packets ---- */

void ndp_data_arrived(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct sim_msg *msg = sim_pkt_msg(pkt);
	struct ndp_host *nh = host->proto;
	struct ndp *ndp = ndp_of(sim);
	u32 seq = (u32)pkt->x[0];
	struct ndp_rx *rx;
	u64 bit = 1ull << (seq % 64);

	if (!msg)
		return;
	rx = msg->rx;
	if (!rx && !msg->delivered)
		rx = ndp_rx_new(sim, msg);
	if (!rx || (rx->have[seq / 64] & bit)) {
		if (!rx && !msg->delivered)
			return; /* no memory: the packet counts as lost */
		ndp->counts.duplicates++;
		ndp_control(sim, host, msg, NDP_ACK, seq);
		if (rx)
			ndp_pull(sim, nh, rx);
		return;
	}
	if (pkt->flags & SIM_TRIMMED) {
		ndp->counts.trimmed++;
		rx->needed++;
		ndp_held(sim, nh, rx);
		ndp_control(sim, host, msg, NDP_NACK, seq);
		ndp_pull(sim, nh, rx);
		return;
	}
	rx->have[seq / 64] |= bit;
	rx->received++;
	ndp_control(sim, host, msg, NDP_ACK, seq);
	if (rx->received < rx->packets) {
		if (ndp->srpt && homa_heap_linked(&rx->turn))
			homa_heap_update(&nh->pulls, &rx->turn,
					 rx->packets - rx->received, msg->serial);
		ndp_pull(sim, nh, rx);
		return;
	}
	sim_msg_get(msg);
	ndp_rx_done(sim, nh, rx);
	sim_delivered(sim, msg, pkt);
	sim_msg_put(sim, msg);
}
