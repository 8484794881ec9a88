// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How long an ACK waits for company. Usually that is the setting delack_ms. Where an application
 * answers each segment, but always later than that, the ACK leaves alone each time and the answer
 * soon after it: one packet more than is needed, and the timer's work. So it is when a host has
 * more connections with requests than it can answer in delack_ms. There the ACKs of a connection
 * come to wait longer, up to delack_most_ms, after TAS_ALONE of them have left alone and were
 * followed by an answer in that time. The peer has measured as many long round trips by then, so
 * its probes and timeouts come later, too. Three things take the longer time back: segments that
 * wait for the ACK of the one before (Nagle's rule at the peer), which are then two for each ACK;
 * segments that are not answered; and a segment that comes twice.
 *
 * All of this is found out when an ACK leaves alone, so the usual segment does nothing for it.
 */
#include "tas_impl.h"

/* What an ACK that should not have waited longer takes off tas_conn.alone. */
#define MISTAKE (TAS_ALONE / 2)
/* With more segments than this since the ACK before that left alone, answers have carried the
 * others: this one tells nothing of what is usual. */
#define FEW 3u

/* Did the application answer the segment whose ACK left alone before this one? */
static bool answered(const struct tas_conn *conn, u64 most)
{
	return conn->alone_at && conn->data_in - conn->alone_in == 1 &&
	       conn->sent_at > conn->alone_at &&
	       conn->sent_at - conn->alone_at <= most;
}

/* Lets ACKs wait for half as long again as the last answer took, in steps of a half: the peer
 * measures a step before the next one. */
static void wait_longer(struct tas_engine *engine, struct tas_conn *conn, u64 most)
{
	u64 answer = conn->sent_at - conn->alone_at;
	u64 now = tas_ack_wait(engine, conn);
	u64 wait = homa_min_u64(answer + answer / 2, now + now / 2);

	wait = homa_min_u64(wait, most);
	if (wait <= now)
		return;
	conn->ack_wait_ms = (u16)homa_div64(wait, TAS_MSEC);
	engine->metrics.longer_acks++;
}

void tas_ack_alone(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 most = engine->params.delack_most_ms * TAS_MSEC;

	if (engine->params.delack_most_ms <= engine->params.delack_ms)
		return;
	if (answered(conn, most)) {
		if (conn->alone < TAS_ALONE)
			conn->alone++;
		if (conn->alone == TAS_ALONE)
			wait_longer(engine, conn, most);
	} else if (conn->data_in - conn->alone_in <= FEW) {
		conn->alone = conn->alone > MISTAKE ? conn->alone - MISTAKE : 0;
		if (!conn->alone)
			conn->ack_wait_ms = 0;
	}
	conn->alone_at = conn->data_at;
	conn->alone_in = conn->data_in;
}

void tas_ack_too_late(struct tas_conn *conn)
{
	conn->alone = 0;
	conn->ack_wait_ms = 0;
}

void tas_quick_acks(struct tas_engine *engine, struct tas_conn *conn, bool on)
{
	/* A connection that has ended sends nothing any more. */
	if (conn->f.state == TAS_CLOSED)
		return;
	tas_unfold(engine, conn);
	if (!on) {
		conn->f.flags |= TAS_F_PINGPONG;
		return;
	}
	conn->f.flags &= ~(u32)TAS_F_PINGPONG;
	conn->f.quick = TAS_QUICK_ACKS;
	if (conn->f.flags & TAS_F_ACK_LATER)
		tas_owe_ack(engine, conn, true);
}
