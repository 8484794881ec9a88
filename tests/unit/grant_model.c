/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See grant_model.h. */
#include "grant_model.h"

static bool before(const struct msg *a, u32 a_slots, const struct msg *b,
		   u32 b_slots)
{
	if (a_slots != b_slots)
		return a_slots < b_slots;
	if (a->key != b->key)
		return a->key < b->key;
	return a->birth < b->birth;
}

u32 grant_model_choose(struct model *m)
{
	u32 max = homa_min_u32(m->w.engine->params.max_overcommit, 32);
	u32 slots[PEERS] = { 0 };
	u32 n, i;

	for (i = 0; i < MESSAGES; i++)
		m->msg[i].chosen = false;
	for (n = 0; n < max; n++) {
		struct msg *best = NULL;

		for (i = 0; i < MESSAGES; i++) {
			struct msg *msg = &m->msg[i];

			if (msg->wants && !msg->chosen &&
			    !(slots[msg->peer] &&
			      m->w.engine->params.sigcomm_grants) &&
			    (!best || before(msg, slots[msg->peer], best,
					     slots[best->peer])))
				best = msg;
		}
		if (!best)
			break;
		best->chosen = true;
		slots[best->peer]++;
	}
	for (i = 0; i < MESSAGES; i++)
		if (m->msg[i].chosen)
			m->msg[i].key = m->msg[i].length - m->msg[i].received;
	return n;
}

static void model_emit(struct model *m, struct msg *msg, u32 offset, u32 level)
{
	struct grant *g = &m->grant[m->num_grants++];

	assert_true(m->num_grants <= HOMA_ARRAY_SIZE(m->grant));
	assert_true(offset > msg->granted && offset <= msg->length);
	g->msg = (u32)(msg - m->msg);
	g->offset = offset;
	g->level = (u8)level;
	m->incoming += offset - msg->granted;
	if (level > msg->level && msg->in_order < msg->granted) {
		if (msg->in_order >= msg->low_until || msg->level < msg->low_level)
			msg->low_level = msg->level;
		msg->low_until = msg->granted;
	}
	msg->level = (u8)level;
	msg->granted = offset;
}

static u32 model_window(const struct model *m, u32 active)
{
	const struct homa_derived *d = &m->w.link->derived;

	if (d->window)
		return d->window;
	return homa_max_u32(d->max_incoming / (active + 1), PACKET);
}

static u32 model_quantum(const struct model *m, u32 window)
{
	const struct homa_params *p = &m->w.engine->params;
	u32 quantum = p->grant_quantum;

	if (!quantum)
		quantum = p->sigcomm_grants ? PACKET :
					      homa_max_u32(window / 4, PACKET);
	return homa_min_u32(quantum, window);
}

/* SIGCOMM'18 grants whole packets. */
static u64 model_grid(const struct model *m, const struct msg *msg, u64 to)
{
	u64 at = msg->granted;

	if (!m->w.engine->params.sigcomm_grants)
		return to;
	while (at < to)
		at += m->peer[msg->peer].mtu_seg;
	return at;
}

/*
 * Grant up to @limit at @level, keeping @reserved of max_incoming free; returns
 * whether the limit was reached.
 */
static bool model_step(struct model *m, struct msg *msg, u32 limit, u32 level,
		       u32 window, u32 reserved)
{
	u32 quantum = model_quantum(m, window);
	u64 target = homa_min_u64(model_grid(m, msg, (u64)msg->received + window),
				  limit);
	bool idle = msg->received >= msg->granted;
	s64 room = (s64)m->w.link->derived.max_incoming - reserved - m->incoming;
	s64 base = idle ? msg->received : msg->granted;
	s64 step = (s64)target - base;
	s64 least;

	if (target <= msg->granted)
		return false;
	if (step <= 0) {
		/* Its sender was faster than its grants. */
		model_emit(m, msg, (u32)target, level);
		return msg->granted == limit;
	}
	if (!idle && step < quantum && target != limit)
		return false;
	least = idle ? PACKET : quantum;
	if (least > step)
		least = step;
	if (step > room && room >= least)
		step = room;
	else if (step > room && idle && m->exception) {
		m->exception = false;
		step = least;
	} else if (step > room) {
		return false;
	}
	model_emit(m, msg, (u32)(base + step), level);
	return msg->granted == limit;
}

/* Longer messages do not overtake the early bytes of one that is granted. */
static u32 model_level(const struct model *m, const struct msg *msg, u32 level)
{
	u32 i;

	for (i = 0; i < MESSAGES; i++)
		if (m->msg[i].tail && m->msg[i].length <= msg->length &&
		    m->msg[i].low_level < level)
			level = m->msg[i].low_level;
	return level;
}

/* Which tails are left; returns how many. */
static u32 model_tails(struct model *m)
{
	u32 i, n = 0;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];

		msg->tail = msg->tail && msg->used &&
			    msg->in_order < msg->low_until;
		n += msg->tail;
	}
	return n;
}

static void model_grant(struct model *m, struct msg *msg, u32 rank, u32 active)
{
	u32 levels = m->w.engine->prio.sched_levels;
	u32 top = levels < active ? levels : active;
	u32 level = rank < top ? top - 1 - rank : 0;
	u32 window = model_window(m, active);
	u32 rtt = m->w.engine->params.last_rtt_unsched ?
			  m->w.link->derived.rtt_bytes :
			  0;
	u32 left = msg->length - msg->granted;
	u32 reserved = rank ? m->w.link->derived.reserved : 0;

	level = model_level(m, msg, level);
	if (left > rtt &&
	    !model_step(m, msg,
			(u32)homa_min_u64(model_grid(m, msg, msg->length - rtt),
					  msg->length),
			level, window, reserved))
		return;
	left = msg->length - msg->granted;
	if (left)
		model_step(m, msg, msg->length,
			   homa_prio_unsched(m->w.engine, left), window,
			   reserved);
}

static void model_fifo(struct model *m)
{
	const struct homa_params *p = &m->w.engine->params;
	u32 rate = m->w.link->rate_mbps ? m->w.link->rate_mbps : 25000;
	u32 active = grant_model_choose(m), wants = 0, i;
	struct msg *oldest = NULL;
	u32 increment = m->w.link->derived.fifo_increment;
	u64 interval, outstanding;
	bool late;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];

		wants += msg->wants;
		if (msg->wants && (!oldest || msg->birth < oldest->birth))
			oldest = msg;
	}
	if (wants < 2 || !p->grant_fifo_fraction || m->w.ctx.now < m->fifo_at)
		return;
	interval = increment * 8000000ull / ((u64)rate * p->grant_fifo_fraction);
	late = m->w.ctx.now - m->fifo_at > interval;
	m->fifo_at = m->w.ctx.now + interval;
	outstanding = oldest->granted > oldest->received ?
			      oldest->granted - oldest->received :
			      0;
	if (late || outstanding >= model_window(m, active) + 2ull * increment)
		return;
	model_emit(m, oldest,
		   (u32)homa_min_u64((u64)oldest->granted + increment,
				     oldest->length),
		   p->num_priorities > 2 ? p->num_priorities - 2 : 0);
	oldest->wants = oldest->granted < oldest->length;
}

/* The chosen message after @last in order of (bytes to receive, birth). */
static struct msg *model_next(struct model *m, const struct msg *last)
{
	struct msg *best = NULL;
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];

		if (msg->chosen && (!last || before(last, 0, msg, 0)) &&
		    (!best || before(msg, 0, best, 0)))
			best = msg;
	}
	return best;
}

void grant_model_run(struct model *m, bool real)
{
	bool again = true;
	u32 i;

	m->num_grants = 0;
	m->exception = real;
	m->incoming = (s64)m->w.link->grants.incoming;
	if (real)
		model_fifo(m);
	while (again) {
		u32 active = grant_model_choose(m), rank = 0;
		u32 tails = model_tails(m);
		struct msg *msg = NULL;

		again = false;
		while ((msg = model_next(m, msg))) {
			model_grant(m, msg, rank++, active);
			msg->tail = msg->granted == msg->length &&
				    msg->in_order < msg->low_until &&
				    tails < HOMA_MAX_TAILS &&
				    !m->w.engine->params.sigcomm_grants;
			tails += msg->tail;
		}
		for (i = 0; i < MESSAGES; i++) {
			msg = &m->msg[i];
			if (msg->wants && msg->granted == msg->length) {
				msg->wants = false;
				again = true;
			}
		}
	}
}
