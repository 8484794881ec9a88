// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * DCTCP's moving average of the share of marked bytes (RFC 8257, 3.3), for its form by
 * window (tas_cc.c) and for the one by rate, which TAS has (EuroSys 2019, section 3.2):
 * the rate doubles in each interval until congestion is seen; then it grows by a step,
 * or shrinks by half of that share. It is never far above what arrives, or a connection
 * that has little to send could have any rate later.
 */
#include "tas_impl.h"

#define ALPHA_SHIFT 4 /* the newest share counts 1/16 (RFC 8257, 4.2) */

void tas_dctcp_average(struct tas_conn *conn)
{
	u32 marked = homa_min_u32(conn->marked, conn->f.acked);
	u32 share = conn->f.acked ? (u32)homa_div64((u64)marked * TAS_ALPHA_ONE,
						    conn->f.acked) :
				    0;

	conn->alpha = conn->alpha - (conn->alpha >> ALPHA_SHIFT) +
		      (share >> ALPHA_SHIFT);
	conn->alpha = homa_min_u32(conn->alpha, TAS_ALPHA_ONE);
}

static u64 adjust(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;
	u64 rate = r->rate;

	bool drains = r->rtt && r->rtt < r->rtt_before;

	tas_dctcp_average(conn);
	if (!conn->marked && !r->lost) {
		if (r->starts)
			return 2 * rate;
		return rate + engine->params.rate_step_kbps * 125ull;
	}
	r->starts = false;
	if (r->lost)
		return rate / 2;
	/* The last reduction is enough while the queue drains, which takes its time. */
	if (drains)
		return rate;
	engine->metrics.ecn_reductions++;
	conn->f.flags |= TAS_F_SAY_CWR;
	conn->ecn_seq = conn->f.snd_nxt;
	return rate - rate * conn->alpha / (2 * TAS_ALPHA_ONE);
}

const struct tas_congestion tas_rate_dctcp = {
	.adjust = adjust,
};
