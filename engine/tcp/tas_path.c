// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is known of the path to a peer: how long its packets may be. ICMP errors can tell
 * more, and anybody can forge them: one counts only if it quotes a sequence number
 * that is under way (RFC 5927), ends no connection that is open, and makes no path
 * narrower than any is.
 */
#include "tas_impl.h"

/* ICMP errors make the MTU of no path smaller than these, in bytes. */
#define MTU_LEAST_V4 552u
#define MTU_LEAST_V6 1280u

/* Longest IP packets that every network carries, in bytes. */
#define NETWORK_V4 68u
#define NETWORK_V6 1280u

/* Least payload of a full segment, in bytes, whatever the peer says: less would be
 * headers only. */
#define MSS_LEAST 88u
#define TS_OPTION 12u /* bytes of the timestamps in each segment */

static bool is_v4(const struct tas_pair *pair)
{
	static const u8 prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(pair->remote, prefix, sizeof(prefix));
}

u32 tas_mss_of(const struct tas_engine *engine, const struct tas_conn *conn)
{
	u32 mtu = conn->path_mtu ? homa_min_u32(conn->path_mtu, engine->mtu) :
				   engine->mtu;

	if (is_v4(&conn->f.pair))
		return homa_max_u32(mtu, NETWORK_V4) - 20u - TAS_HDR;
	return homa_max_u32(mtu, NETWORK_V6) - 40u - TAS_HDR;
}

void tas_set_mss(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 mss = homa_min_u32(homa_max_u32(conn->peer_mss, MSS_LEAST),
			       tas_mss_of(engine, conn));

	if (conn->f.flags & TAS_F_TS)
		mss -= TS_OPTION;
	conn->f.mss = (u16)mss;
}

static void narrower(struct tas_engine *engine, struct tas_conn *conn, u32 mtu)
{
	u32 now = conn->path_mtu ? conn->path_mtu : engine->mtu;

	mtu = homa_max_u32(mtu,
			   is_v4(&conn->f.pair) ? MTU_LEAST_V4 : MTU_LEAST_V6);
	if (mtu >= now || conn->f.state < TAS_ESTABLISHED)
		return;
	conn->path_mtu = (u16)mtu;
	conn->wide_mtu = 0;
	tas_set_mss(engine, conn);
	/* The segments that were too long are lost, but not because the network was
	 * full. */
	conn->rtt_at = 0;
	conn->rtx_nxt = conn->f.snd_una;
	conn->rtx_end = conn->f.snd_nxt;
	tas_want(engine, conn);
}

/* Some networks drop long packets without an ICMP error (RFC 2923, 2.1). So packets of
 * half the length are tried; and if they do not help, the old length comes back. */
void tas_black_hole(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 each = engine->params.black_hole;
	u32 now = conn->path_mtu ? conn->path_mtu : engine->mtu;

	if (!each || conn->f.state < TAS_ESTABLISHED || conn->backoff % each)
		return;
	if (conn->backoff / each % 2) {
		/* Only packets that are at least this long can have been dropped for their
		 * length. */
		if (tas_in_flight(conn) < conn->f.mss)
			return;
		engine->metrics.black_holes++;
		narrower(engine, conn, now / 2);
		conn->wide_mtu = (u16)homa_min_u32(now, 65535);
	} else if (conn->wide_mtu) {
		conn->path_mtu = conn->wide_mtu;
		conn->wide_mtu = 0;
		tas_set_mss(engine, conn);
		conn->f.cwnd = homa_max_u32(conn->f.cwnd, conn->f.mss);
		conn->ssthresh = homa_max_u32(conn->ssthresh, 2u * conn->f.mss);
	}
}

void tas_icmp(struct tas_engine *engine, const struct tas_pair *pair, u32 seq,
	      int error, u32 mtu)
{
	struct tas_conn *conn = tas_find(engine, pair);

	if (!conn || tas_before(seq, conn->f.snd_una) ||
	    !tas_before(seq, conn->f.snd_nxt)) {
		engine->metrics.icmp_ignored++;
		return;
	}
	engine->metrics.icmp_taken++;
	tas_unfold(engine, conn);
	if (!error)
		narrower(engine, conn, mtu);
	else if (conn->f.state == TAS_SYN_SENT || tas_crossed(conn))
		tas_fail(engine, conn, error);
}
