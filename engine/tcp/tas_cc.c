// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How much may be under way: NewReno with byte counting (RFC 5681, RFC 3465), or DCTCP
 * (RFC 8257), which reacts to the share of marked bytes in a window.
 */
#include "tas_impl.h"

#define ALPHA_ONE 1024u
#define ALPHA_SHIFT 4 /* gain of 1/16 (RFC 8257, 4.2) */
#define LARGEST (1u << 30)

void tas_cc_init(struct tas_engine *engine, struct tas_conn *conn)
{
	conn->f.cwnd = engine->params.initial_window * conn->f.mss;
	conn->ssthresh = LARGEST;
	conn->alpha = ALPHA_ONE;
	conn->ecn_seq = conn->f.snd_nxt;
}

void tas_cc_loss(struct tas_engine *engine, struct tas_conn *conn)
{
	(void)engine;
	conn->ssthresh = homa_max_u32(homa_min_u32(tas_pipe(conn), conn->f.cwnd) / 2,
				      2u * conn->f.mss);
}

/* One round trip's ACKs are in: @marked bytes of @acked had met a queue. */
static void dctcp_window(struct tas_conn *conn)
{
	u32 marked = homa_min_u32(conn->marked, conn->f.acked);
	u32 share = conn->f.acked ? (u32)homa_div64((u64)marked * ALPHA_ONE, conn->f.acked) : 0;

	conn->alpha = conn->alpha - (conn->alpha >> ALPHA_SHIFT) + (share >> ALPHA_SHIFT);
	conn->alpha = homa_min_u32(conn->alpha, ALPHA_ONE);
}

static void slower(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 cut = conn->f.cwnd / 2;

	engine->metrics.ecn_reductions++;
	if (engine->params.dctcp)
		cut = (u32)(((u64)conn->f.cwnd * conn->alpha) / (2 * ALPHA_ONE));
	conn->f.cwnd = homa_max_u32(conn->f.cwnd - cut, 2u * conn->f.mss);
	conn->ssthresh = conn->f.cwnd;
	conn->f.flags |= TAS_F_SAY_CWR;
}

/* A mark counts once for each window (RFC 3168, 6.1.2). */
static void ecn(struct tas_engine *engine, struct tas_conn *conn, u32 acked, bool marked)
{
	conn->f.acked += acked;
	if (marked)
		conn->marked += homa_max_u32(acked, 1);
	if (tas_before(conn->f.snd_una, conn->ecn_seq))
		return;
	if (engine->params.dctcp)
		dctcp_window(conn);
	else if (!marked) /* a peer says ECE until it sees CWR: that was the last mark */
		conn->marked = 0;
	if (conn->marked && !(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS)))
		slower(engine, conn);
	if (conn->marked || engine->params.dctcp)
		conn->ecn_seq = conn->f.snd_nxt + 1;
	conn->f.acked = 0;
	conn->marked = 0;
}

void tas_cc_acked(struct tas_engine *engine, struct tas_conn *conn, u32 acked, bool marked)
{
	u32 mss = conn->f.mss;

	if (conn->f.flags & TAS_F_ECN)
		ecn(engine, conn, acked, marked);
	if (!acked || marked || (conn->f.flags & TAS_F_RECOVERY))
		return;
	/* A window that was not used says nothing about a larger one (RFC 7661). */
	if (!(conn->f.flags & (TAS_F_CWND_FULL | TAS_F_LOSS)) || conn->f.cwnd >= LARGEST)
		return;
	if (conn->f.cwnd < conn->ssthresh) {
		conn->f.cwnd += conn->f.flags & TAS_F_LOSS ? homa_min_u32(acked, mss) : acked;
		return;
	}
	conn->cwnd_acked += acked;
	if (conn->cwnd_acked >= conn->f.cwnd) {
		conn->cwnd_acked -= conn->f.cwnd;
		conn->f.cwnd += mss;
	}
}
