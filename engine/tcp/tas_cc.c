// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How much may be under way: what all congestion controls have in common, NewReno with
 * byte counting (RFC 5681, RFC 3465), and DCTCP (RFC 8257), which reacts to the share of
 * marked bytes in a window. Each connection has one of them. Those by rate decide
 * once in a control interval, see tas_rate.c.
 */
#include "tas_impl.h"

static void newreno_grow(struct tas_engine *engine, struct tas_conn *conn,
			 u32 acked)
{
	(void)engine;
	conn->cwnd_acked += acked;
	if (conn->cwnd_acked >= conn->f.cwnd) {
		conn->cwnd_acked -= conn->f.cwnd;
		conn->f.cwnd += conn->f.mss;
	}
}

static u32 newreno_reduced(struct tas_conn *conn, u32 window)
{
	(void)conn;
	return window / 2;
}

static const struct tas_congestion tas_newreno = {
	.grow = newreno_grow,
	.reduced = newreno_reduced,
};

/* DCTCP is NewReno but for what it does about marks. */
static const struct tas_congestion *const controls[TAS_CONTROLS] = {
	[TAS_NEWRENO] = &tas_newreno, [TAS_DCTCP] = &tas_newreno,
	[TAS_CUBIC] = &tas_cubic,     [TAS_RATE_DCTCP] = &tas_rate_dctcp,
	[TAS_TIMELY] = &tas_timely,   [TAS_CONSTANT] = &tas_constant,
};

int tas_set_control(struct tas_conn *conn, u32 control)
{
	if (control >= TAS_CONTROLS)
		return TAS_EINVAL;
	conn->control = (u8)control;
	tas_rate_reset(conn);
	conn->f.flags &= ~(u32)TAS_F_PACED;
	if (controls[control]->adjust || conn->pacing)
		conn->f.flags |= TAS_F_PACED;
	return 0;
}

bool tas_by_rate(const struct tas_conn *conn)
{
	return controls[conn->control]->adjust;
}

void tas_cc_init(struct tas_engine *engine, struct tas_conn *conn)
{
	conn->f.cwnd = engine->params.initial_window * conn->f.mss;
	conn->ssthresh = TAS_CWND_MOST;
	conn->alpha = TAS_ALPHA_ONE;
	conn->ecn_seq = conn->f.snd_nxt;
	if (tas_by_rate(conn))
		tas_rate_begin(engine, conn);
}

void tas_restart(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 first = engine->params.initial_window * conn->f.mss;

	if (tas_in_flight(conn) || !conn->sent_at)
		return;
	if (tas_by_rate(conn))
		tas_rate_resumed(engine, conn);
	else if (engine->now - conn->sent_at > conn->rto && conn->f.cwnd > first)
		conn->f.cwnd = first;
}

void tas_cc_loss(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 window = homa_min_u32(tas_pipe(conn), conn->f.cwnd);

	(void)engine;
	if (tas_by_rate(conn)) {
		conn->rate.lost = true;
		conn->ssthresh = homa_max_u32(conn->f.cwnd, 2u * conn->f.mss);
		return;
	}
	conn->ssthresh =
		homa_max_u32(controls[conn->control]->reduced(conn, window),
			     2u * conn->f.mss);
}

static void slower(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 cut;

	engine->metrics.ecn_reductions++;
	if (conn->control == TAS_DCTCP)
		cut = (u32)(((u64)conn->f.cwnd * conn->alpha) /
			    (2 * TAS_ALPHA_ONE));
	else
		cut = conn->f.cwnd -
		      controls[conn->control]->reduced(conn, conn->f.cwnd);
	conn->f.cwnd = homa_max_u32(conn->f.cwnd - cut, 2u * conn->f.mss);
	conn->ssthresh = conn->f.cwnd;
	conn->f.flags |= TAS_F_SAY_CWR;
}

/* A mark counts once for each window (RFC 3168, 6.1.2). */
static void ecn(struct tas_engine *engine, struct tas_conn *conn, u32 acked,
		bool marked)
{
	conn->f.acked += acked;
	if (marked)
		conn->marked += homa_max_u32(acked, 1);
	if (tas_before(conn->f.snd_una, conn->ecn_seq))
		return;
	if (conn->control == TAS_DCTCP)
		tas_dctcp_average(conn);
	/* a peer repeats ECE until it sees CWR; this was the last mark */
	else if (!marked)
		conn->marked = 0;
	if (conn->marked && !(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS)))
		slower(engine, conn);
	if (conn->marked || conn->control == TAS_DCTCP)
		conn->ecn_seq = conn->f.snd_nxt + 1;
	conn->f.acked = 0;
	conn->marked = 0;
}

static void by_window(struct tas_engine *engine, struct tas_conn *conn,
		      u32 acked, bool marked)
{
	u32 mss = conn->f.mss;

	if (conn->f.flags & TAS_F_ECN)
		ecn(engine, conn, acked, marked);
	if (!acked || marked || (conn->f.flags & TAS_F_RECOVERY))
		return;
	/* A window that was not used says nothing about a larger one (RFC 7661). */
	if (!(conn->f.flags & (TAS_F_CWND_FULL | TAS_F_LOSS)) ||
	    conn->f.cwnd >= TAS_CWND_MOST)
		return;
	if (conn->f.cwnd < conn->ssthresh) {
		conn->f.cwnd += conn->f.flags & TAS_F_LOSS ?
					homa_min_u32(acked, mss) :
					acked;
		return;
	}
	controls[conn->control]->grow(engine, conn, acked);
}

void tas_cc_acked(struct tas_engine *engine, struct tas_conn *conn, u32 acked,
		  bool marked)
{
	const struct tas_congestion *control = controls[conn->control];

	if (control->adjust) {
		tas_rate_acked(engine, conn, control, acked, marked);
		return;
	}
	by_window(engine, conn, acked, marked);
	if (conn->f.flags & TAS_F_PACED)
		tas_pace_window(conn);
}
