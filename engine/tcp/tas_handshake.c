// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How connections begin, on either side (RFC 9293, 3.10.1, 3.10.7.2 and 3.10.7.3). */
#include "tas_impl.h"

/* Largest segment of a peer that says none, in bytes (RFC 9293, 3.7.1). */
#define MSS_DEFAULT 536u

void tas_take_options(struct tas_engine *engine, struct tas_conn *conn,
		      const struct tas_segment *seg)
{
	const struct tas_params *params = &engine->params;

	/* What the SYN of somebody else has said counts no more. */
	conn->f.flags &= ~(TAS_F_TS | TAS_F_SACK | TAS_F_ECN);
	conn->peer_mss = seg->options & TAS_OPT_MSS ? seg->mss : MSS_DEFAULT;
	if (params->timestamps && (seg->options & TAS_OPT_TS)) {
		conn->f.flags |= TAS_F_TS;
		conn->f.ts_recent = seg->ts;
	}
	if (params->sack && (seg->options & TAS_OPT_SACK_OK))
		conn->f.flags |= TAS_F_SACK;
	conn->wscale_ok =
		params->window_scaling && (seg->options & TAS_OPT_WSCALE);
	conn->f.snd_wscale = conn->wscale_ok ? seg->wscale : 0;
	conn->f.rcv_wscale = conn->wscale_ok ? tas_scale_for(conn->rx_max) : 0;
	conn->rcv_mss = (u16)homa_min_u32(MSS_DEFAULT, tas_mss_of(engine, conn));
	tas_set_mss(engine, conn);
}

static void begin(struct tas_conn *conn, u8 rx_shift, u32 rx_max)
{
	conn->f.rx_shift = rx_shift;
	conn->rx_max = homa_max_u32(rx_max, tas_rx_size(conn));
}

int tas_connect(struct tas_engine *engine, const struct tas_pair *pair,
		u8 rx_shift, u32 rx_max, struct tas_conn **out)
{
	struct tas_ended *ended = tas_find_ended(engine, pair);
	struct tas_conn *conn;

	if (tas_find(engine, pair) || (ended && !tas_may_follow(engine, ended)))
		return TAS_EADDRINUSE;
	conn = tas_new(engine, pair);
	if (!conn)
		return TAS_ENOMEM;
	if (ended)
		tas_follow_ended(engine, ended, conn);
	begin(conn, rx_shift, rx_max);
	conn->f.state = TAS_SYN_SENT;
	conn->f.mss = MSS_DEFAULT;
	tas_cc_init(engine, conn);
	tas_want(engine, conn);
	*out = conn;
	return 0;
}

/* Takes the peer's SYN in @seg. */
static void synchronise(struct tas_engine *engine, struct tas_conn *conn,
			const struct tas_segment *seg)
{
	conn->irs = seg->seq;
	conn->f.rcv_nxt = conn->f.rcv_read = conn->f.rcv_acked = seg->seq + 1;
	conn->f.rcv_edge = conn->f.rcv_nxt + tas_syn_window(conn);
	tas_take_options(engine, conn, seg);
	conn->heard_at = engine->now;
}

static void established(struct tas_engine *engine, struct tas_conn *conn,
			const struct tas_segment *seg)
{
	u32 shift = seg->flags & TAS_SYN ? 0 : conn->f.snd_wscale;
	bool again = conn->backoff;

	conn->f.state = TAS_ESTABLISHED;
	conn->f.snd_edge = seg->ack + ((u32)seg->window << shift);
	conn->snd_most = conn->f.snd_edge - seg->ack;
	tas_rtt_acked(engine, conn, seg);
	conn->f.snd_una = conn->rtx_nxt = conn->rtx_end = seg->ack;
	conn->f.flags &= ~(TAS_F_LOSS | TAS_F_RECOVERY);
	conn->recover = conn->snd_small = seg->ack;
	conn->backoff = 0;
	tas_cc_init(engine, conn);
	/* A SYN that was lost may mean that the path is full (RFC 6298, 5.7; RFC 5681,
	 * 3.1). */
	if (again)
		conn->f.cwnd = conn->f.mss;
	tas_rearm(engine, conn);
	tas_options(engine, conn);
	tas_want(engine, conn);
}

/*
 * RFC 9293, 3.10.7.3. A SYN that does not acknowledge ours may be anybody's: nothing that
 * it says hinders the answer to ours, which knows our sequence number. So after it all
 * is as before, and besides the third segment of a simultaneous open is waited for.
 */
void tas_syn_sent_rx(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg)
{
	bool ack = seg->flags & TAS_ACK;

	if (ack && seg->ack != conn->iss + 1) {
		tas_stray_reset(engine, &conn->f.pair, seg);
		return;
	}
	if (seg->flags & TAS_RST) {
		if (ack) {
			engine->metrics.resets_received++;
			tas_fail(engine, conn, TAS_ECONNREFUSED);
		}
		return;
	}
	if (!(seg->flags & TAS_SYN))
		return;
	synchronise(engine, conn, seg);
	if (tas_asks_ecn(engine, conn) && ack &&
	    (seg->flags & (TAS_ECE | TAS_CWR)) == TAS_ECE)
		conn->f.flags |= TAS_F_ECN;
	if (!ack) { /* both have begun at once */
		conn->f.state = TAS_SYN_RECEIVED;
		tas_answer(engine, conn);
		return;
	}
	engine->metrics.opened_active++;
	established(engine, conn, seg);
	tas_owe_ack(engine, conn, true);
	tas_tell(engine, conn, TAS_EV_OPEN | TAS_EV_WRITABLE);
}

/* Does one owner have more of @all, of which there may be @most, than are left to all others
 * (Choudhury and Hahne, 1998)? @taken: what he has. */
static bool has_most(u32 taken, u32 all, u32 most)
{
	return most && (all >= most || taken >= most - all);
}

/* Has @listener room for one more connection that waits for tas_accept()? */
static bool has_room(const struct tas_engine *engine,
		     const struct tas_listener *listener)
{
	u32 taken = listener->shared_ready ? *listener->shared_ready :
					     listener->num_ready;

	return listener->num_ready <= listener->backlog &&
	       !has_most(taken, engine->num_ready, engine->ready_most);
}

void tas_opened(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg)
{
	struct tas_listener *listener = conn->listener;

	if (!listener) {
		engine->metrics.opened_active++;
		established(engine, conn, seg);
		tas_tell(engine, conn, TAS_EV_OPEN | TAS_EV_WRITABLE);
		return;
	}
	/* While the listener has no room our SYN-ACK is sent again, and the peer answers
	 * again. */
	if (!has_room(engine, listener))
		return;
	engine->metrics.opened_passive++;
	established(engine, conn, seg);
	tas_half(engine, listener, false);
	tas_ready(engine, listener, true);
	homa_list_del(&conn->pending);
	homa_list_add_tail(&listener->ready, &conn->pending);
	if (listener->places)
		conn->f.flags |= TAS_F_WAITS;
	if (!homa_list_linked(&listener->news))
		homa_list_add_tail(&engine->news, &listener->news);
}

void tas_begin_passive(struct tas_engine *engine, struct tas_listener *listener,
		       struct tas_conn *conn, const struct tas_segment *syn)
{
	if (listener->control)
		tas_set_control(conn, listener->control - 1u);
	conn->listener = listener;
	tas_half(engine, listener, true);
	homa_list_add_tail(&listener->half, &conn->pending);
	conn->f.state = TAS_SYN_RECEIVED;
	begin(conn, listener->rx_shift, listener->rx_max);
	synchronise(engine, conn, syn);
	if (engine->params.ecn &&
	    (syn->flags & (TAS_ECE | TAS_CWR)) == (TAS_ECE | TAS_CWR))
		conn->f.flags |= TAS_F_ECN;
}

/* May @listener have one more half-open connection? */
static bool has_share(struct tas_engine *engine,
		      const struct tas_listener *listener)
{
	u32 taken = listener->shared_half ? *listener->shared_half :
					    listener->num_half;

	if (listener->num_half >= homa_max_u32(listener->backlog, 1))
		return false;
	if (!has_most(taken, engine->num_half, engine->half_most))
		return true;
	engine->metrics.half_open_shared++;
	return false;
}

static void syn_in(struct tas_engine *engine, struct tas_listener *listener,
		   const struct tas_pair *pair, const struct tas_segment *seg)
{
	u32 cookies = engine->params.syn_cookies;
	struct tas_conn *conn = NULL;

	if (!has_room(engine, listener)) {
		engine->metrics.syn_drops++;
		return;
	}
	if (cookies < 2 && has_share(engine, listener))
		conn = tas_new(engine, pair);
	if (conn) {
		tas_begin_passive(engine, listener, conn, seg);
		tas_cc_init(engine, conn);
		tas_want(engine, conn);
	} else if (cookies) {
		tas_send_cookie(engine, listener, pair, seg);
	} else {
		engine->metrics.syn_drops++;
	}
}

/* Takes an ACK to a listener, which may be the answer to a cookie. */
static void cookie_in(struct tas_engine *engine, struct tas_listener *listener,
		      const struct tas_pair *pair, const struct tas_segment *seg)
{
	struct tas_segment syn;
	struct tas_conn *conn;

	if (!engine->params.syn_cookies || !tas_cookies_out(engine)) {
		tas_stray_reset(engine, pair, seg);
		return;
	}
	/* Bytes may overtake the ACK that carries the cookie: they come again. */
	if (!tas_check_cookie(engine, pair, seg, &syn)) {
		engine->metrics.cookies_bad++;
		return;
	}
	/* If the listener has no room, the peer will send again. */
	if (!has_room(engine, listener))
		return;
	conn = tas_new(engine, pair);
	if (!conn)
		return;
	engine->metrics.cookies_taken++;
	conn->iss = seg->ack - 1;
	conn->ts_offset = 0;
	conn->f.snd_una = conn->iss;
	conn->f.snd_nxt = conn->f.snd_end = conn->ecn_seq = conn->iss + 1;
	tas_begin_passive(engine, listener, conn, &syn);
	tas_opened(engine, conn, seg);
}

void tas_listener_rx(struct tas_engine *engine, struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *seg)
{
	if (seg->flags & TAS_RST)
		return;
	if (seg->flags & TAS_ACK) {
		if (seg->flags & TAS_SYN)
			tas_stray_reset(engine, pair, seg);
		else
			cookie_in(engine, listener, pair, seg);
		return;
	}
	if ((seg->flags & (TAS_SYN | TAS_FIN)) == TAS_SYN)
		syn_in(engine, listener, pair, seg);
}

struct tas_listener *tas_next_ready(struct tas_engine *engine)
{
	struct homa_list *node = homa_list_pop(&engine->news);

	return node ? homa_container_of(node, struct tas_listener, news) : NULL;
}

struct tas_conn *tas_accept(struct tas_engine *engine,
			    struct tas_listener *listener)
{
	struct homa_list *node = homa_list_first(&listener->ready);
	struct tas_conn *conn;

	if (!node)
		return NULL;
	conn = homa_container_of(node, struct tas_conn, pending);
	tas_accept_first(engine, conn);
	return conn;
}

void tas_accept_first(struct tas_engine *engine, struct tas_conn *conn)
{
	homa_list_del(&conn->pending);
	tas_ready(engine, conn->listener, false);
	conn->listener = NULL;
	conn->f.flags &= ~(u32)TAS_F_WAITS;
	tas_tell(engine, conn,
		 TAS_EV_OPEN | TAS_EV_WRITABLE |
			 (tas_readable(conn) ? TAS_EV_READABLE : 0) |
			 (conn->f.flags & TAS_F_FIN_IN ?
				  TAS_EV_READABLE | TAS_EV_END :
				  0));
}
