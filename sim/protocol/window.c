// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams of the window protocols: how messages become segments and which of a
 * host's streams its NIC serves next. window_loss.c decides how much may be
 * sent, window_receive.c is the other end; see window.h for what is modelled.
 *
 * A stream that can send stands in its host's list of its level; the NIC takes
 * one segment from the first of the highest level, which then goes to the end
 * of the list of its new level. A stream that turns out to be unable to send
 * just leaves, and comes back when an ack or the application wakes it: neither
 * costs more than a few words touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

#define FLOWS_PER_SLAB 256

struct window_slab {
	/* The slab that was made before this one; NULL: none was. */
	struct window_slab *next;
	/* Memory for streams. */
	struct window_flow flows[FLOWS_PER_SLAB];
};

/* ---- set up ---- */

void window_defaults(struct sim_config *cfg, const struct sim_option *options)
{
	u32 i;

	for (i = 0; options[i].name; i++)
		cfg->option[i] = options[i].def;
	cfg->queue = SIM_QUEUE_PRIORITY;
	cfg->balance = SIM_ECMP;
}

static void window_settings(struct sim *sim, struct window *w)
{
	struct sim_config *cfg = &sim->cfg;
	const u64 *option = cfg->option;

	w->mss = cfg->mtu - WINDOW_HEADERS;
	w->initial = option[WINDOW_INITIAL] * w->mss;
	w->max = option[WINDOW_MAX];
	if (w->max < 2ull * w->mss)
		w->max = 2ull * w->mss;
	if (w->initial > w->max)
		w->initial = w->max;
	w->rto_min = option[WINDOW_RTO_MIN] * SIM_US;
	w->dup_limit = (u32)option[WINDOW_DUPACKS];
	w->streams = w->policy->per_message ? 0 : (u32)option[WINDOW_STREAMS];
	w->per_message = !w->streams;
	w->extra = SIM_FRAMING;
	w->least = SIM_MIN_WIRE;
	w->ack_every = (u32)option[WINDOW_ACK_EVERY];
	w->ack_delay = option[WINDOW_ACK_DELAY] * SIM_US;
	w->sack = w->policy->sack && option[WINDOW_SACK];
	w->turns = w->policy->sack && option[WINDOW_TURN];
	w->undo = w->sack && option[WINDOW_UNDO];
	w->idle_restart = !w->policy->sack || option[WINDOW_IDLE_RESTART];
	w->cubic = w->policy->sack && option[WINDOW_CUBIC];
	if (!w->policy->ecn)
		return;
	w->gain = (u32)option[WINDOW_GAIN];
	if (cfg->ecn_bytes == WINDOW_ECN_AUTO)
		cfg->ecn_bytes =
			option[WINDOW_K] * sim_wire(cfg->mtu) * cfg->host_mbps / 10000;
}

int window_start(struct sim *sim, const struct window_policy *policy)
{
	struct window *w = calloc(1, sizeof(*w));
	u32 i;

	if (!w)
		return -ENOMEM;
	sim->proto = w;
	w->policy = policy;
	if (sim->cfg.mtu <= WINDOW_HEADERS)
		return -EINVAL;
	window_settings(sim, w);
	w->hosts = calloc(sim->cfg.hosts, sizeof(*w->hosts));
	if (!w->hosts)
		return -ENOMEM;
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct window_host *wh = &w->hosts[i];

		sim->hosts[i].proto = wh;
		wh->acks.tail = &wh->acks.head;
		if (w->per_message)
			continue;
		wh->to = calloc(window_slot(w, sim->cfg.hosts, false, 0),
				sizeof(struct window_flow *));
		wh->turn = calloc(sim->cfg.hosts, sizeof(*wh->turn));
		if (!wh->to || !wh->turn)
			return -ENOMEM;
	}
	return 0;
}

static void window_host_free(struct sim *sim, struct window_host *wh)
{
	struct sim_pkt *pkt;

	while ((pkt = wh->acks.head) != NULL) {
		wh->acks.head = pkt->next;
		sim_pkt_free(sim, pkt);
	}
	free(wh->to);
	free(wh->turn);
}

void window_stop(struct sim *sim)
{
	struct window *w = sim->proto;
	u32 i;

	if (!w)
		return;
	for (i = 0; w->hosts && i < sim->cfg.hosts; i++)
		window_host_free(sim, &w->hosts[i]);
	while (w->slabs) {
		struct window_slab *slab = w->slabs;

		for (i = 0; i < FLOWS_PER_SLAB; i++) {
			sim_event_cancel(sim->agenda, &slab->flows[i].timer);
			sim_event_cancel(sim->agenda, &slab->flows[i].ack_timer);
			free(slab->flows[i].in.at);
			free(slab->flows[i].sacked.at);
		}
		w->slabs = slab->next;
		free(slab);
	}
	free(w->hosts);
	free(w);
	sim->proto = NULL;
}

/* ---- streams ---- */

static bool window_grow_pool(struct window *w)
{
	struct window_slab *slab = aligned_alloc(64, sizeof(*slab));
	u32 i;

	if (!slab)
		return false;
	memset(slab, 0, sizeof(*slab));
	slab->next = w->slabs;
	w->slabs = slab;
	for (i = FLOWS_PER_SLAB; i-- > 0;) {
		slab->flows[i].timer.fn = window_timer;
		slab->flows[i].ack_timer.fn = window_ack_timer;
		slab->flows[i].next = w->free_flows;
		w->free_flows = &slab->flows[i];
	}
	return true;
}

/* Initialises @f, but for its timers, which do not run, and the memory of its ranges. */
static void window_flow_init(struct window *w, struct window_flow *f)
{
	struct window_ranges in = { f->in.at, 0, f->in.max };
	struct window_ranges sacked = { f->sacked.at, 0, f->sacked.max };

	memset(f, 0, offsetof(struct window_flow, timer));
	f->in = in;
	f->sacked = sacked;
	f->serial = ++w->last_serial;
	f->ecmp = (u32)f->serial * 2;
	f->cwnd = w->initial;
	f->ssthresh = UINT64_MAX;
	f->rto = w->rto_min;
	f->deadline = SIM_NEVER;
	f->alpha = 1u << 20;
	w->counts.streams++;
}

static struct window_flow *window_flow_new(struct window *w, u32 src, u32 dst)
{
	struct window_flow *f;

	if (!w->free_flows && !window_grow_pool(w))
		return NULL;
	f = w->free_flows;
	w->free_flows = f->next;
	window_flow_init(w, f);
	f->src = (u16)src;
	f->dst = (u16)dst;
	return f;
}

/* Frees a stream that is in no list; window_pull() takes it out first. */
static void window_flow_free(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	sim_event_cancel(sim->agenda, &f->timer);
	sim_event_cancel(sim->agenda, &f->ack_timer);
	f->next = w->free_flows;
	w->free_flows = f;
}

void window_flow_done(struct sim *sim, struct window_flow *f)
{
	f->serial = 0;
	if (!f->queued)
		window_flow_free(sim, f);
}

/* Returns the stream for @msg; a response takes the connection on which the request
 * came. */
static struct window_flow *window_flow_for(struct sim *sim, struct sim_msg *msg)
{
	struct window *w = window_of(sim);
	struct window_flow **slot;

	if (w->per_message)
		return window_flow_new(w, msg->src, msg->dst);
	if (msg->request)
		msg->x[1] = msg->request->x[1];
	else if (w->turns)
		msg->x[1] = w->hosts[msg->src].turn[msg->dst]++ % w->streams;
	else
		msg->x[1] = homa_prng_below(&sim->rng_proto, w->streams);
	slot = &w->hosts[msg->src]
			.to[window_slot(w, msg->dst, msg->request != NULL, (u32)msg->x[1])];
	if (!*slot)
		*slot = window_flow_new(w, msg->src, msg->dst);
	return *slot;
}

void window_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct window *w = window_of(sim);
	struct window_flow *f = window_flow_for(sim, msg);

	(void)host;
	if (!f) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	sim_msg_get(msg);
	if (w->idle_restart && f->snd_una == f->written &&
	    sim->now - f->last_tx > f->rto && f->cwnd > w->initial)
		f->cwnd = w->initial;
	f->written += msg->length;
	msg->x[0] = f->written;
	msg->tx = NULL;
	if (f->head)
		f->tail->tx = msg;
	else
		f->head = msg;
	f->tail = msg;
	if (!f->cursor)
		f->cursor = msg;
	window_wake(sim, f);
}

/* ---- sending ---- */

static bool window_can_send(const struct window *w, const struct window_flow *f)
{
	u64 flight = w->sack ? window_sack_pipe(f) : f->snd_nxt - f->snd_una;
	u64 bytes = f->written - f->snd_nxt, from, to;

	if (f->rexmit)
		return true;
	if (w->sack && f->recovering && window_sack_hole(f, &from, &to))
		bytes = to - from;
	if (!bytes)
		return false;
	if (bytes > w->mss)
		bytes = w->mss;
	return !flight || flight + bytes <= window_usable(w, f);
}

static void window_enqueue(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);
	struct window_host *wh = &w->hosts[f->src];
	u8 level = 0;

	if (w->cubic)
		f->ready_at = sim->now;
	if (w->policy->level)
		level = w->policy->level(w, f, f->rexmit ? f->snd_una : f->snd_nxt);
	f->level = level;
	f->queued = true;
	f->next = NULL;
	if (wh->mask & (1u << level))
		wh->ready[level].tail->next = f;
	else
		wh->ready[level].head = f;
	wh->ready[level].tail = f;
	wh->mask |= (u8)(1u << level);
}

void window_wake(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	if (f->queued || !window_can_send(w, f))
		return;
	window_enqueue(sim, f);
	sim_port_kick(sim, sim->hosts[f->src].up);
}

/* Takes the next stream in turn out of its list and returns it, or NULL. */
static struct window_flow *window_dequeue(struct window_host *wh)
{
	struct window_flow *f;
	u32 level;

	if (!wh->mask)
		return NULL;
	level = (u32)__builtin_ctz(wh->mask);
	f = wh->ready[level].head;
	wh->ready[level].head = f->next;
	if (!f->next)
		wh->mask &= (u8)~(1u << level);
	f->queued = false;
	return f;
}

static struct window_flow *window_pull(struct sim *sim, struct window_host *wh)
{
	struct window_flow *f;

	while ((f = window_dequeue(wh)) != NULL) {
		if (!f->serial)
			window_flow_free(sim, f);
		else if (window_can_send(window_of(sim), f))
			return f;
	}
	return NULL;
}

/* Notes in @pkt the message @msg, in which it begins at byte @seq of the stream, or none if
 * that byte is not in @msg. */
static void window_pkt_msg(struct sim_pkt *pkt, struct sim_msg *msg, u64 seq)
{
	u64 start;

	while (msg && window_msg_end(msg) <= seq)
		msg = msg->tx;
	start = msg ? window_msg_end(msg) - msg->length : 0;
	pkt->msg = NULL;
	pkt->msg_serial = 0;
	pkt->offset = 0;
	if (!msg || start > seq || window_msg_end(msg) <= seq)
		return;
	pkt->msg = msg;
	pkt->msg_serial = msg->serial;
	pkt->offset = (u32)(seq - start);
}

/* Notes that @bytes at @seq are sent; returns whether they are sent again. */
static bool window_advance(struct sim *sim, struct window_flow *f, u64 seq, u32 bytes)
{
	bool again = seq < f->snd_max;

	f->last_tx = sim->now;
	if (f->rexmit) {
		f->rexmit = false;
		f->timed_seq = 0;
		if (f->snd_nxt > seq)
			return again;
	}
	f->snd_nxt = seq + bytes;
	while (f->cursor && window_msg_end(f->cursor) <= f->snd_nxt)
		f->cursor = f->cursor->tx;
	if (f->snd_nxt > f->snd_max)
		f->snd_max = f->snd_nxt;
	if (again) {
		f->timed_seq = 0;
	} else if (!f->timed_seq) {
		f->timed_seq = f->snd_nxt;
		f->timed_at = sim->now;
	}
	return again;
}

/* Returns how many bytes are sent next, and in @seq which is the first. */
static u64 window_next(const struct window *w, struct window_flow *f, u64 *seq)
{
	u64 end = f->rexmit ? f->snd_max : f->written;

	*seq = f->rexmit ? f->snd_una : f->snd_nxt;
	if (w->sack && f->rexmit) {
		*seq = f->rexmit_at > f->snd_una ? f->rexmit_at : f->snd_una;
	} else if (w->sack && f->recovering && window_sack_hole(f, seq, &end)) {
		f->rexmit = true;
		f->high_rxt = *seq + (end - *seq < w->mss ? end - *seq : w->mss);
	}
	return end - *seq < w->mss ? end - *seq : w->mss;
}

static struct sim_pkt *window_segment(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);
	u64 seq, bytes = window_next(w, f, &seq);
	struct sim_pkt *pkt = sim_pkt_new(sim);
	u8 level = 0;

	if (!pkt)
		return NULL;
	if (w->policy->level)
		level = w->policy->level(w, f, seq);
	pkt->type = WINDOW_DATA;
	pkt->src = f->src;
	pkt->dst = f->dst;
	pkt->prio = (u8)(w->policy->data_prio - level);
	pkt->flow = f->ecmp;
	pkt->payload = (u32)bytes;
	pkt->wire = window_wire(w, (u32)bytes);
	pkt->rank = 0;
	pkt->flags = w->policy->ecn ? SIM_ECN_CAPABLE : 0;
	window_pkt_msg(pkt, f->rexmit ? f->head : f->cursor, seq);
	pkt->x[WINDOW_X_SEQ] = seq;
	pkt->x[WINDOW_X_FLOW] = (uintptr_t)f;
	pkt->x[WINDOW_X_SERIAL] = f->serial;
	pkt->x[WINDOW_X_MARKED] = w->cubic ? f->ready_at << WINDOW_SINCE_SHIFT : 0;
	if (w->cubic && f->snd_una == f->snd_max)
		window_cubic_starts(sim, f);
	f->cubic.out += bytes;
	if (!f->rexmit && !f->new_after)
		f->new_after = f->high_rxt;
	if (window_advance(sim, f, seq, (u32)bytes)) {
		pkt->flags |= SIM_RETRANSMIT;
		pkt->x[WINDOW_X_MARKED] = 0;
		w->counts.retransmits++;
	}
	w->counts.data++;
	window_arm(sim, f);
	return pkt;
}

struct sim_pkt *window_tx(struct sim *sim, struct sim_host *host)
{
	struct window *w = window_of(sim);
	struct window_host *wh = host->proto;
	struct sim_pkt *pkt = wh->acks.head;
	struct window_flow *f;

	if (pkt) {
		wh->acks.head = pkt->next;
		if (!pkt->next)
			wh->acks.tail = &wh->acks.head;
		pkt->next = NULL;
		return pkt;
	}
	f = window_pull(sim, wh);
	if (!f)
		return NULL;
	pkt = window_segment(sim, f);
	if (window_can_send(w, f))
		window_enqueue(sim, f);
	return pkt;
}

void window_metrics(struct sim *sim,
		    void (*put)(void *arg, const char *name, double value), void *arg)
{
	const struct window_counts *c = &window_of(sim)->counts;

	put(arg, "data_packets", (double)c->data);
	put(arg, "ack_packets", (double)c->acks);
	put(arg, "retransmitted_packets", (double)c->retransmits);
	put(arg, "duplicate_packets", (double)c->duplicates);
	put(arg, "fast_retransmits", (double)c->fast);
	put(arg, "partial_acks", (double)c->partial);
	put(arg, "timeouts", (double)c->timeouts);
	put(arg, "tail_loss_probes", (double)c->probes);
	put(arg, "timeouts_undone", (double)c->undone);
	put(arg, "ecn_reductions", (double)c->cuts);
	put(arg, "streams", (double)c->streams);
}
