// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How connections end, and what applications do to them. */
#include "tas_call.h"
#include "tas_impl.h"

void tas_fail(struct tas_engine *engine, struct tas_conn *conn, int error)
{
	if (conn->f.state < TAS_ESTABLISHED)
		engine->metrics.open_failures++;
	conn->error = error;
	tas_tell(engine, conn, TAS_EV_ERROR | TAS_EV_READABLE | TAS_EV_WRITABLE);
	tas_gone(engine, conn);
}

void tas_time_wait(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 i;

	if (!conn->listener)
		homa_list_del(&conn->pending);
	conn->f.state = TAS_TIME_WAIT;
	if (conn->f.flags & TAS_F_CLOSED)
		tas_tell(engine, conn, TAS_EV_SENT);
	for (i = 0; i < TAS_TIMERS; i++)
		tas_disarm(conn, i);
	tas_arm(engine, conn, TAS_TIMER_END,
		engine->now + engine->params.time_wait_ms * TAS_MSEC);
	tas_shrink(engine, conn);
}

void tas_orphan(struct tas_engine *engine, struct tas_conn *conn)
{
	homa_list_del(&conn->pending);
	homa_list_add_tail(&engine->orphans, &conn->pending);
	tas_arm(engine, conn, TAS_TIMER_END,
		engine->now + engine->params.fin_wait_ms * TAS_MSEC);
}

bool tas_drop_orphan(struct tas_engine *engine)
{
	struct homa_list *node = homa_list_first(&engine->orphans);

	if (!node)
		return false;
	engine->metrics.orphans_dropped++;
	tas_gone(engine, homa_container_of(node, struct tas_conn, pending));
	return true;
}

void tas_fin_acked(struct tas_engine *engine, struct tas_conn *conn)
{
	if (conn->f.flags & TAS_F_CLOSED)
		tas_tell(engine, conn, TAS_EV_SENT);
	switch (conn->f.state) {
	case TAS_FIN_WAIT_1:
		conn->f.state = TAS_FIN_WAIT_2;
		if (conn->f.flags & TAS_F_CLOSED)
			tas_orphan(engine, conn);
		return;
	case TAS_CLOSING:
		tas_time_wait(engine, conn);
		return;
	case TAS_LAST_ACK:
		tas_gone(engine, conn);
		return;
	}
}

void tas_fin_in(struct tas_engine *engine, struct tas_conn *conn)
{
	conn->f.flags |= TAS_F_FIN_IN;
	conn->f.rcv_nxt++;
	tas_owe_ack(engine, conn, true);
	tas_tell(engine, conn, TAS_EV_READABLE | TAS_EV_END);
	switch (conn->f.state) {
	case TAS_ESTABLISHED:
		conn->f.state = TAS_CLOSE_WAIT;
		return;
	case TAS_FIN_WAIT_1:
		conn->f.state = TAS_CLOSING;
		return;
	case TAS_FIN_WAIT_2:
		tas_time_wait(engine, conn);
		return;
	}
}

int tas_written_other(struct tas_engine *engine, struct tas_conn *conn, u32 bytes)
{
	if ((conn->f.flags & (TAS_F_FIN | TAS_F_CLOSED)) ||
	    conn->f.state == TAS_CLOSED)
		return TAS_EPIPE;
	if ((u64)(conn->f.snd_end - conn->f.snd_una) + bytes > TAS_WRITTEN_MOST)
		return TAS_EINVAL;
	conn->f.snd_end += bytes;
	if (bytes && !homa_list_linked(&conn->f.tx))
		homa_list_add_tail(&engine->tx, &conn->f.tx);
	return 0;
}

int tas_shut_send(struct tas_engine *engine, struct tas_conn *conn)
{
	tas_unfold(engine, conn);
	if (conn->f.flags & TAS_F_FIN)
		return 0;
	switch (conn->f.state) {
	case TAS_ESTABLISHED:
		conn->f.state = TAS_FIN_WAIT_1;
		break;
	case TAS_CLOSE_WAIT:
		conn->f.state = TAS_LAST_ACK;
		break;
	default:
		return TAS_ENOTCONN;
	}
	conn->f.flags |= TAS_F_FIN;
	conn->f.flags &= ~TAS_F_CORK;
	conn->f.snd_end++;
	tas_want(engine, conn);
	return 0;
}

void tas_abort(struct tas_engine *engine, struct tas_conn *conn)
{
	tas_unfold(engine, conn);
	if (conn->f.state == TAS_CLOSED) {
		tas_close(engine, conn);
		return;
	}
	if (conn->f.state != TAS_SYN_SENT && conn->f.state != TAS_TIME_WAIT)
		tas_send_reset(engine, conn);
	homa_list_del(&conn->event);
	conn->events = 0;
	conn->f.flags |= TAS_F_CLOSED;
	tas_gone(engine, conn);
}

/* The peer has all bytes, so the host releases its memory, too: a peer that never
 * acknowledges the FIN must not cost memory that no account is charged for. */
static void let_go(struct tas_engine *engine, struct tas_conn *conn)
{
	tas_shut_send(engine, conn);
	if (!tas_unacked(conn))
		homa_list_add_tail(&engine->orphans, &conn->pending);
}

void tas_close(struct tas_engine *engine, struct tas_conn *conn)
{
	if (conn->f.flags & TAS_F_CLOSED)
		return;
	tas_unfold(engine, conn);
	/* Bytes that were not taken are lost, and the peer shall know (RFC 2525, 2.17). */
	if (conn->f.state != TAS_CLOSED && tas_readable(conn)) {
		tas_abort(engine, conn);
		return;
	}
	if (conn->f.state == TAS_SYN_SENT || conn->f.state == TAS_SYN_RECEIVED) {
		tas_abort(engine, conn);
		return;
	}
	homa_list_del(&conn->event);
	conn->events = 0;
	conn->f.flags |= TAS_F_CLOSED;
	if (conn->f.state == TAS_CLOSED)
		tas_tell(engine, conn, TAS_EV_FREE);
	else if (conn->f.state == TAS_FIN_WAIT_2)
		tas_orphan(engine, conn);
	else if (conn->f.state == TAS_TIME_WAIT)
		tas_shrink(engine, conn);
	else
		let_go(engine, conn);
}

void tas_options(struct tas_engine *engine, struct tas_conn *conn)
{
	/* A connection that has ended has no timers: its host frees it when it likes. */
	if (conn->f.state == TAS_CLOSED)
		return;
	tas_unfold(engine, conn);
	if (!(conn->f.flags & TAS_F_KEEPALIVE) || !tas_open(conn))
		tas_disarm(conn, TAS_TIMER_KEEPALIVE);
	/* A probe that waits for its answer has its own deadline, which stays. */
	else if (!conn->keep_probes ||
		 conn->deadline[TAS_TIMER_KEEPALIVE] == TAS_NEVER)
		tas_arm(engine, conn, TAS_TIMER_KEEPALIVE,
			conn->heard_at + conn->keep_idle_ms * TAS_MSEC);
	if (conn->user_timeout && conn->stalled_at)
		tas_arm(engine, conn, TAS_TIMER_RETRANSMIT,
			homa_min_u64(conn->deadline[TAS_TIMER_RETRANSMIT],
				     conn->stalled_at + conn->user_timeout));
	tas_want(engine, conn);
}

void tas_refuse(struct tas_engine *engine)
{
	struct homa_list *node;

	while (engine->stray_tail - engine->stray_head < TAS_STRAYS / 2 &&
	       (node = homa_list_first(&engine->refused.ready)))
		tas_abort(engine,
			  homa_container_of(node, struct tas_conn, pending));
}

/* Resets the connections of a listener that ends. The listener itself is the host's again. */
static void refuse_all(struct tas_engine *engine, struct tas_listener *listener)
{
	struct homa_list *node;

	while ((node = homa_list_pop(&listener->ready))) {
		struct tas_conn *conn =
			homa_container_of(node, struct tas_conn, pending);

		tas_ready(engine, listener, false);
		tas_ready(engine, &engine->refused, true);
		conn->listener = &engine->refused;
		conn->f.flags |= TAS_F_WAITS;
		homa_list_add_tail(&engine->refused.ready, node);
	}
	tas_refuse(engine);
}

/* Forgets connections that are being opened. A reset would tell the peer that its connection is
 * refused. As it is, the peer sends its SYN again, perhaps to a listener that shares the port, or,
 * if it has heard our SYN-ACK, is reset by what it sends. */
static void forget_all(struct tas_engine *engine, struct homa_list *half)
{
	struct homa_list *node;

	while ((node = homa_list_first(half)))
		tas_gone(engine,
			 homa_container_of(node, struct tas_conn, pending));
}

void tas_unlisten(struct tas_engine *engine, struct tas_listener *listener)
{
	homa_list_del(&listener->node);
	homa_list_del(&listener->news);
	forget_all(engine, &listener->half);
	refuse_all(engine, listener);
}
