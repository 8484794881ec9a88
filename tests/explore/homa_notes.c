// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the packets that arrive say about the RPCs in the book: which promises they excuse or
 * change, and whether a request was begun again too early.
 */
#include "homa_world.h"

/*
 * A server that started again knows that a request may have run if it says for which life
 * it is. One of a client that had not heard of the server yet does not say, and then a
 * first transmission from before looks new. What is sent again was asked for by some life.
 *
 * Where nobody speaks of lives, a repetition is ignored while the guard lasts, which is
 * longer than clients repeat by a quarter of the timeout. They count from the last sign of
 * the server, which may be one of its former life: that one and the repetition together
 * may not be on their way for longer than that.
 */
void xh_note_excuse(struct xp_world *w, const struct xp_packet *p)
{
	struct homa_engine *engine = xh_of(w)->host[p->dst].engine;
	struct homa_engine *from = xh_of(w)->host[p->src].engine;
	u64 late = w->now - p->sent, quarter = engine->params.timeout_us * 250ull;
	struct xh_rpc *line;
	struct homa_packet q;

	if (homa_packet_decode(&q, p->data, p->len))
		return;
	line = xh_book_find(w, p->dst, q.hdr.sender_id ^ 1);
	if (line && xh_what->no_lives && w->life[p->src] > 1 &&
	    p->sent <= from->start)
		line->sign_late =
			(u32)homa_max_u64(line->sign_late,
					  homa_min_u64(late, quarter + 1));
	if (!p->note || (p->note - 1) % 2 || w->life[p->dst] < 2 ||
	    homa_wire_life(p->data))
		return;
	line = &xh_of(w)->book[(p->note - 1) / 2];
	if (!line->executed || line->life == w->life[p->dst])
		return;
	if (!q.data.retransmit)
		line->excused |= p->dst_life < w->life[p->dst];
	else if (xh_what->no_lives && w->now >= engine->guard_until &&
		 late + line->sign_late > quarter)
		line->excused = true;
}

/*
 * What a control packet says: that a client has given up a request that runs, or about a
 * client's RPC that is there: the version of the
 * priorities that it is to use, how far it may send, that what it may is as at first.
 */
void xh_note_control(struct xp_world *w, struct xh_host *h,
		     const struct xp_packet *p)
{
	struct homa_packet q;
	struct xh_rpc *line;
	u32 request;

	if (homa_packet_decode(&q, p->data, p->len))
		return;
	line = xh_book_find(w, p->src, q.hdr.sender_id);
	if (line && q.hdr.type == HOMA_RPC_UNKNOWN && line->executed &&
	    line->life == w->life[p->dst])
		line->unwanted_life = line->life;
	line = xh_book_find(w, p->dst, q.hdr.sender_id ^ 1);
	if (!line)
		return;
	request = xh_what->rpc[line - xh_of(w)->book].request;
	if (q.hdr.type == HOMA_CUTOFFS && w->life[p->src] == 1) {
		h->told[p->src] = q.cutoffs.version;
	} else if (q.hdr.type == HOMA_RPC_UNKNOWN) {
		line->granted[0] = xh_unasked(request);
		line->anew = true;
	} else if (q.hdr.type == HOMA_GRANT) {
		line->sign_at = w->now;
		line->granted[0] = homa_max_u32(line->granted[0], q.grant.offset);
	} else if (q.hdr.type == HOMA_BUSY ||
		   (q.hdr.type == HOMA_RESEND &&
		    q.resend.length == HOMA_RESEND_ALL)) {
		line->sign_at = w->now;
	} else if (q.hdr.type == HOMA_RESEND) {
		line->sign_at = w->now;
		line->granted[0] =
			homa_max_u32(line->granted[0],
				     q.resend.offset + q.resend.length);
	}
}

/*
 * Who is told that the server does not know his request starts it again, but only while
 * servers may be expected to remember and to be on their guard.
 */
void xh_check_restart(struct xp_world *w, const struct xp_packet *p)
{
	const struct xh_host *h = &xh_of(w)->host[p->dst];
	struct homa_packet q;
	struct xh_rpc *line;

	if (homa_packet_decode(&q, p->data, p->len) ||
	    q.hdr.type != HOMA_RPC_UNKNOWN)
		return;
	line = xh_book_find(w, p->dst, q.hdr.sender_id ^ 1);
	if (line && line->state == XH_PENDING && line->repeated_at == w->now &&
	    !h->refusing &&
	    w->now - line->sign_at > h->link[0]->derived.restart_ns)
		xp_fail("host %u starts a request again %llu us after the last sign of its server",
			p->dst,
			(unsigned long long)(w->now - line->sign_at) / 1000);
}
