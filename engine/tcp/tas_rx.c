// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The fast path: segments of established connections that say nothing unusual. It
 * touches struct tas_flow and a few words more; whatever is an exception goes to the
 * slow path, which does the same by the book, as long as its turn lasts.
 */
#include "tas_impl.h"

#define UNUSUAL (TAS_SYN | TAS_FIN | TAS_RST | TAS_URG)

static bool usual(const struct tas_conn *conn, const struct tas_segment *seg)
{
	const struct tas_flow *f = &conn->f;

	if (unlikely(f->state != TAS_ESTABLISHED ||
		     (seg->flags & (UNUSUAL | TAS_ACK)) != TAS_ACK ||
		     (f->flags & TAS_F_FIN_SEEN)))
		return false;
	if (unlikely((f->flags & TAS_F_TS) &&
		     (!(seg->options & TAS_OPT_TS) || (s32)(seg->ts - f->ts_recent) < 0)))
		return false;
	/* An ACK of what is under way, and bytes that are not far from the window. */
	return seg->ack - f->snd_una <= f->snd_nxt - f->snd_una &&
	       !tas_before(seg->seq + seg->length, f->rcv_nxt) &&
	       !tas_after(seg->seq, f->rcv_edge + tas_scale_slack(conn)) &&
	       (!seg->length || tas_before(seg->seq, f->rcv_edge));
}

static void stranger(struct tas_engine *engine, const struct tas_pair *pair,
		     const struct tas_segment *seg)
{
	struct tas_listener *listener = NULL;

	if (!engine->slow_left) {
		engine->metrics.slow_drops++;
		return;
	}
	engine->slow_left--;
	engine->metrics.slow_segments++;
	if (seg->flags & (TAS_SYN | TAS_ACK))
		listener = tas_find_listener(engine, pair);
	if (listener)
		tas_listener_rx(engine, listener, pair, seg);
	else
		tas_stray_reset(engine, pair, seg);
}

void tas_rx(struct tas_engine *engine, const struct tas_pair *pair,
	    const struct tas_segment *seg, u8 ecn, struct tas_copy *copy)
{
	struct tas_conn *conn = tas_find(engine, pair);

	copy->conn = NULL;
	if (unlikely(!conn)) {
		stranger(engine, pair, seg);
		return;
	}
	if (likely(tas_fast_rx(engine, conn, seg, copy))) {
		engine->metrics.fast_segments++;
		return;
	}
	if (unlikely(!usual(conn, seg))) {
		if (!engine->slow_left) {
			engine->metrics.slow_drops++;
			return;
		}
		engine->slow_left--;
		engine->metrics.slow_segments++;
		tas_slow_rx(engine, conn, seg, ecn, copy);
		return;
	}
	engine->metrics.fast_segments++;
	tas_take_timestamp(conn, seg);
	conn->heard_at = engine->now;
	conn->keep_probes = 0;
	if (conn->f.flags & TAS_F_ECN)
		tas_ecn_in(engine, conn, seg, ecn);
	tas_ack_in(engine, conn, seg);
	if (seg->length)
		tas_data_in(engine, conn, seg, copy);
}
