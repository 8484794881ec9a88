// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What happens when a deadline of a connection has come. */
#include "tas_impl.h"

/* Has @conn tried often enough (@tries times), or for long enough, to fail? */
static bool given_up(const struct tas_engine *engine,
		     const struct tas_conn *conn, u32 tries)
{
	u32 most = engine->params.retries;
	bool late = conn->user_timeout && conn->stalled_at &&
		    engine->now >= conn->stalled_at + conn->user_timeout;

	if (conn->f.state == TAS_SYN_SENT || tas_crossed(conn))
		return late || tries >= engine->params.syn_retries;
	if (conn->f.state == TAS_SYN_RECEIVED)
		most = engine->params.synack_retries;
	else if (conn->f.flags & TAS_F_CLOSED)
		most = homa_min_u32(most, engine->params.orphan_retries);
	else if (conn->user_timeout && conn->stalled_at)
		return late;
	return tries >= most;
}

/* Number of tries that count. A peer that answers may keep its window closed for as long
 * as there is an application that waits (RFC 9293, 3.8.6.1); only probes that it does
 * not answer count. */
static u32 tries_of(const struct tas_conn *conn)
{
	bool closed = !tas_in_flight(conn) || conn->f.snd_edge == conn->f.snd_una;

	return closed && tas_open(conn) && !(conn->f.flags & TAS_F_CLOSED) ?
		       conn->probes :
		       conn->backoff;
}

static u8 more(u8 count)
{
	return count == 255 ? count : (u8)(count + 1);
}

static void retransmit(struct tas_engine *engine, struct tas_conn *conn)
{
	if (given_up(engine, conn, tries_of(conn))) {
		tas_fail(engine, conn, TAS_ETIMEDOUT);
		return;
	}
	conn->probes = more(conn->probes);
	conn->backoff = more(conn->backoff);
	if (!tas_in_flight(conn)) {
		conn->f.flags |= TAS_F_PROBE;
		engine->metrics.window_probes++;
	} else {
		engine->metrics.timeouts++;
		tas_loss_timeout(engine, conn);
		tas_black_hole(engine, conn);
	}
	tas_want(engine, conn);
	tas_rearm(engine, conn);
}

/* Repairs what has not arrived in time. If nothing is known of that, the last segment is sent once
 * more: its ACK tells what is lost. */
static void probe_tail(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 last = homa_min_u32(tas_in_flight(conn), conn->f.mss);

	if (!tas_in_flight(conn) || !tas_wants_tail_probe(engine, conn))
		return;
	conn->rtt_at = 0;
	if (!tas_loss_late(engine, conn)) {
		engine->metrics.tail_probes++;
		conn->tail_probes++;
		conn->rtx_nxt = conn->f.snd_nxt - last;
		conn->rtx_end = conn->f.snd_nxt;
	}
	tas_want(engine, conn);
	tas_arm(engine, conn, TAS_TIMER_RETRANSMIT,
		engine->now + tas_backed_off(engine, conn->rto, 0));
}

static void keep_alive(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 silent = engine->now - conn->heard_at;
	u64 idle = conn->keep_idle_ms * TAS_MSEC;
	bool give_up;

	if (!(conn->f.flags & TAS_F_KEEPALIVE) || !tas_open(conn))
		return;
	/* While bytes wait for an answer the retransmission timer finds out if the peer
	 * is gone. */
	if (tas_in_flight(conn) || silent < idle) {
		tas_arm(engine, conn, TAS_TIMER_KEEPALIVE,
			engine->now + (silent < idle ? idle - silent : idle));
		return;
	}
	give_up = conn->user_timeout ?
			  conn->keep_probes && silent >= conn->user_timeout :
			  conn->keep_probes >= conn->keep_most;
	if (give_up) {
		tas_send_reset(engine, conn);
		tas_fail(engine, conn, TAS_ETIMEDOUT);
		return;
	}
	conn->keep_probes++;
	engine->metrics.keepalive_probes++;
	conn->f.flags |= TAS_F_ALIVE;
	tas_want(engine, conn);
	tas_arm(engine, conn, TAS_TIMER_KEEPALIVE,
		engine->now + conn->keep_interval_ms * TAS_MSEC);
}

static void expire(struct tas_engine *engine, struct tas_conn *conn,
		   enum tas_timer timer)
{
	switch (timer) {
	case TAS_TIMER_DELACK:
		if (!(conn->f.flags & TAS_F_ACK_LATER))
			return;
		tas_ack_alone(engine, conn);
		tas_owe_ack(engine, conn, true);
		return;
	case TAS_TIMER_RETRANSMIT:
		retransmit(engine, conn);
		return;
	case TAS_TIMER_TAIL:
		probe_tail(engine, conn);
		return;
	case TAS_TIMER_KEEPALIVE:
		keep_alive(engine, conn);
		return;
	default:
		tas_gone(engine, conn);
	}
}

static void wake(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 next = TAS_NEVER;
	u32 i;

	tas_unfold(engine, conn);
	for (i = 0; i < TAS_TIMERS && conn->f.state != TAS_CLOSED; i++) {
		if (conn->deadline[i] > engine->now)
			continue;
		conn->deadline[i] = TAS_NEVER;
		expire(engine, conn, i);
	}
	if (conn->f.state == TAS_CLOSED)
		return;
	for (i = 0; i < TAS_TIMERS; i++)
		next = homa_min_u64(next, conn->deadline[i]);
	if (next != TAS_NEVER)
		homa_wheel_add(&engine->wheel, &conn->wheel, next, engine->now);
	else
		homa_wheel_del(&engine->wheel, &conn->wheel);
}

/* Lets connections send whose bytes waited for their rate; returns what is left of
 * @budget. */
static u32 resume(struct tas_engine *engine, u32 budget)
{
	struct homa_wheel_node *node;

	while (budget && (node = homa_wheel_pop(&engine->pace, engine->now))) {
		if (node->deadline > engine->now)
			homa_wheel_add(&engine->pace, node, node->deadline,
				       engine->now);
		else
			tas_want(engine, homa_container_of(node, struct tas_conn,
							   rate.node));
		budget--;
	}
	return budget;
}

u64 tas_timers(struct tas_engine *engine, u32 budget)
{
	struct homa_wheel_node *node;
	u64 next;

	budget = tas_expire_ended(engine, budget);
	if (unlikely(engine->pace.count))
		budget = resume(engine, budget);
	while (budget) {
		budget--;
		node = homa_wheel_pop(&engine->wheel, engine->now);
		if (!node)
			break;
		wake(engine, homa_container_of(node, struct tas_conn, wheel));
	}
	next = homa_min_u64(homa_wheel_next(&engine->wheel),
			    tas_next_ended(engine));
	if (unlikely(engine->pace.count))
		next = homa_min_u64(next, homa_wheel_next(&engine->pace));
	return next;
}
