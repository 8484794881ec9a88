// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is owed: connections that have something to send, ACKs that may wait, and
 * segments that belong to no connection. How they are made is tas_tx.c's.
 */
#include "tas_impl.h"

/* A connection sends at most one challenge ACK in this time, in ns. */
#define CHALLENGE_NS (500 * TAS_MSEC)

void tas_want(struct tas_engine *engine, struct tas_conn *conn)
{
	if (homa_list_linked(&conn->f.tx) || conn->f.state == TAS_CLOSED)
		return;
	if ((conn->f.flags & (TAS_F_ACK_NOW | TAS_F_PROBE | TAS_F_ALIVE)) ||
	    tas_before(conn->f.snd_nxt, conn->f.snd_end) ||
	    conn->rtx_nxt != conn->rtx_end)
		homa_list_add_tail(&engine->tx, &conn->f.tx);
}

void tas_owe_ack(struct tas_engine *engine, struct tas_conn *conn, bool now)
{
	if (now || !engine->params.delack_ms) {
		conn->f.flags |= TAS_F_ACK_NOW;
		tas_want(engine, conn);
	} else if (!(conn->f.flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER))) {
		conn->f.flags |= TAS_F_ACK_LATER;
		tas_arm(engine, conn, TAS_TIMER_DELACK,
			engine->now + tas_ack_wait(engine, conn));
	}
}

bool tas_within(struct tas_engine *engine, struct tas_limit *limit,
		u32 each_second)
{
	/* Half as many to half as many more: from the answers that a stranger gets he must
	 * not learn how many others got (CVE-2016-5696). */
	if (engine->now - limit->at >= TAS_SEC) {
		limit->at = engine->now;
		limit->used = 0;
		limit->most = (each_second + 1) / 2 +
			      homa_rng_below(&engine->rng, each_second);
	}
	if (limit->used >= limit->most)
		return false;
	limit->used++;
	return true;
}

void tas_stray_send(struct tas_engine *engine, const struct tas_pair *pair,
		    const struct tas_segment *seg)
{
	struct tas_stray *stray = &engine->stray[engine->stray_tail % TAS_STRAYS];

	if (engine->stray_tail - engine->stray_head == TAS_STRAYS)
		return;
	stray->pair = *pair;
	stray->seg = *seg;
	stray->seg.sport = pair->local_port;
	stray->seg.dport = pair->remote_port;
	engine->stray_tail++;
}

void tas_stray_reset(struct tas_engine *engine, const struct tas_pair *pair,
		     const struct tas_segment *seg)
{
	struct tas_segment rst = { .flags = TAS_RST };

	if (seg->flags & TAS_RST)
		return;
	if (!tas_within(engine, &engine->resets, engine->params.resets)) {
		engine->metrics.reset_drops++;
		return;
	}
	if (seg->flags & TAS_ACK) {
		rst.seq = seg->ack;
	} else {
		rst.flags |= TAS_ACK;
		rst.ack = seg->seq + seg->length + !!(seg->flags & TAS_SYN) +
			  !!(seg->flags & TAS_FIN);
	}
	engine->metrics.resets_sent++;
	tas_stray_send(engine, pair, &rst);
}

void tas_send_reset(struct tas_engine *engine, const struct tas_conn *conn)
{
	struct tas_segment rst = { .seq = conn->f.snd_nxt,
				   .ack = conn->f.rcv_nxt,
				   .flags = TAS_RST | TAS_ACK };

	engine->metrics.resets_sent++;
	tas_stray_send(engine, &conn->f.pair, &rst);
}

/* Two ends that do not understand each other must not answer answers for ever. */
static bool just_now(struct tas_engine *engine, struct tas_conn *conn)
{
	if (conn->challenged_at &&
	    engine->now - conn->challenged_at < CHALLENGE_NS) {
		engine->metrics.challenge_drops++;
		return true;
	}
	conn->challenged_at = engine->now;
	return false;
}

void tas_answer(struct tas_engine *engine, struct tas_conn *conn)
{
	if (!just_now(engine, conn))
		tas_owe_ack(engine, conn, true);
}

void tas_challenge(struct tas_engine *engine, struct tas_conn *conn)
{
	if (just_now(engine, conn))
		return;
	if (!tas_within(engine, &engine->challenges,
			engine->params.challenge_acks)) {
		engine->metrics.challenge_drops++;
		return;
	}
	engine->metrics.challenge_acks++;
	tas_owe_ack(engine, conn, true);
}
