// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages that came, to whom they are for: OPEN to the listener, DATA to the connection
 * whose key and secret it has, answers and failures to the connection that asked.
 * Nothing in a message is believed before it is checked here. A request is always answered,
 * except for want of memory.
 */
#include "homa_stream.h"
#include "homa_sockets.h"

static void homak_arrived_bad(struct homak_carrier *carrier)
{
	homak_host_count_at(carrier->hsk->hnet, HOMAK_H_host_stream_bad, 1);
}

static void homak_answer_no(struct homak_carrier *carrier,
			    const struct homak_carried *m, int status)
{
	struct homak_stream_hdr hdr;

	homak_stream_hdr_init(&hdr, HOMAK_STREAM_ANSWER);
	hdr.status = cpu_to_be16((u16)status);
	homak_carry_answer(carrier, m, &hdr, NULL, 0);
}

/* ---- OPEN ---- */

/* Did OPEN come to the address that the listener is bound to? Locked. */
static bool homak_open_here(const struct sock *listener,
			    const struct in6_addr *local)
{
	const struct in6_addr *bound = &homak_stream(listener)->bound;

	return ipv6_addr_any(bound) || ipv6_addr_equal(bound, local);
}

/* Returns the window for a new connection; 0: it is refused. */
static u32 homak_open_window(struct homak_carrier *carrier,
			     const struct in6_addr *local)
{
	u32 window = 0;

	spin_lock(&carrier->lock);
	if (carrier->listener && carrier->num_pending < carrier->backlog &&
	    homak_open_here(carrier->listener, local))
		window = homak_stream_window(carrier->listener);
	spin_unlock(&carrier->lock);
	return window;
}

/* Queues a connection for accept(). Returns the listener, with a reference; NULL: there is
 * none any more. */
static struct sock *homak_open_pend(struct homak_carrier *carrier,
				    struct homak_conn *conn)
{
	struct sock *listener;

	spin_lock(&carrier->lock);
	listener = carrier->listener;
	if (listener) {
		sock_hold(listener);
		list_add_tail(&conn->pending, &carrier->pending);
		carrier->num_pending++;
		refcount_inc(&conn->ref);
	}
	spin_unlock(&carrier->lock);
	return listener;
}

static void homak_arrived_open(struct homak_carrier *carrier,
			       const struct homak_carried *m,
			       const struct homak_stream_hdr *hdr)
{
	struct homak_stream_open open, ours = { 0 };
	struct homak_stream_hdr answer;
	struct homak_conn *conn;
	struct in6_addr local;
	struct sock *listener;
	u32 window;

	if (m->info.length != HOMAK_STREAM_HDR + sizeof(open) ||
	    homak_carry_bytes(m, HOMAK_STREAM_HDR, &open, sizeof(open)) ||
	    be64_to_cpu(hdr->edge) > HOMAK_STREAM_OFFSETS) {
		homak_arrived_bad(carrier);
		homak_answer_no(carrier, m, EPROTO);
		return;
	}
	if (!homak_carry_local(carrier, m, &local))
		return;
	window = homak_open_window(carrier, &local);
	conn = window && homak_name_fits(carrier->hsk, &m->info.peer) ?
		       homak_conn_new(carrier, window, homak_say_timer) :
		       ERR_PTR(-ECONNREFUSED);
	if (IS_ERR(conn)) {
		homak_host_count_at(carrier->hsk->hnet,
				    HOMAK_H_host_stream_refused, 1);
		homak_answer_no(carrier, m, ECONNREFUSED);
		return;
	}
	conn->peer = m->info.peer;
	conn->peer_port = m->info.peer_port;
	conn->local = local;
	homak_stream_hdr_init(&answer, HOMAK_STREAM_ANSWER);
	spin_lock(&conn->lock);
	conn->peer_key = be32_to_cpu(open.key);
	conn->peer_secret = be64_to_cpu(open.secret);
	conn->edge = be64_to_cpu(hdr->edge);
	WRITE_ONCE(conn->state, HOMAK_CONN_LIVE);
	answer.edge = cpu_to_be64(homak_conn_edge(conn));
	spin_unlock(&conn->lock);
	ours.key = cpu_to_be32(conn->key);
	ours.secret = cpu_to_be64(conn->secret);
	listener = homak_open_pend(carrier, conn);
	if (listener) {
		homak_host_count_at(carrier->hsk->hnet,
				    HOMAK_H_host_stream_conns, 1);
		homak_carry_answer(carrier, m, &answer, &ours, sizeof(ours));
		listener->sk_data_ready(listener);
		sock_put(listener);
	} else {
		homak_conn_kill(conn);
		homak_answer_no(carrier, m, ECONNREFUSED);
	}
	homak_conn_put(conn);
}

/* ---- DATA ---- */

/* Checks what a request says of the stream. Returns 0; -EPROTO: it lies; -ECONNRESET: its
 * bytes come too late. Locked. */
static int homak_data_check(const struct homak_conn *conn,
			    const struct homak_stream_hdr *hdr, u64 from, u64 to)
{
	bool fin = be16_to_cpu(hdr->flags) & HOMAK_STREAM_FIN;
	u64 edge = conn->ring.read + conn->ring.window;

	if (conn->state == HOMAK_CONN_DEAD || (conn->closed && to > from))
		return -ECONNRESET;
	if (from > HOMAK_STREAM_OFFSETS || to > edge ||
	    be64_to_cpu(hdr->edge) > HOMAK_STREAM_OFFSETS)
		return -EPROTO;
	if (conn->fin_known && (to > conn->fin || (fin && to != conn->fin)))
		return -EPROTO;
	/* The end cannot be before what is there already. Who has closed the connection is freeing
	 * that, without the lock. */
	if (fin && !conn->fin_known && !conn->closed &&
	    (to < conn->ring.next ||
	     (conn->ring.num_spans &&
	      to < conn->ring.spans[conn->ring.num_spans - 1].to)))
		return -EPROTO;
	return 0;
}

static u32 homak_conn_edge_grows(struct homak_conn *conn, u64 edge)
{
	if (edge <= conn->edge)
		return 0;
	conn->edge = edge;
	if (!conn->want_room)
		return 0;
	conn->want_room = false;
	return HOMAK_WAKE_WRITE;
}

/* Notes what a request has brought, whose bytes are in the ring. Returns an error, and what
 * to tell the socket. */
static int homak_data_note(struct homak_conn *conn,
			   const struct homak_stream_hdr *hdr, u64 from, u64 to,
			   struct homak_stream_hdr *answer, u32 *wake)
{
	bool ended;
	u64 before;
	int err = 0;

	spin_lock(&conn->lock);
	before = conn->ring.next;
	ended = homak_conn_at_end(conn);
	/* If it was closed meanwhile, the bytes are gone. */
	if (from < to)
		err = conn->closed ? -ECONNRESET :
				     homak_ring_note(&conn->ring, from, to);
	if (!err && be16_to_cpu(hdr->flags) & HOMAK_STREAM_FIN) {
		conn->fin_known = true;
		conn->fin = to;
	}
	*wake = homak_conn_edge_grows(conn, be64_to_cpu(hdr->edge));
	if (conn->ring.next != before)
		*wake |= HOMAK_WAKE_READ;
	if (!ended && homak_conn_at_end(conn))
		*wake |= HOMAK_WAKE_ALL;
	answer->offset = cpu_to_be64(conn->ring.next);
	answer->edge = cpu_to_be64(homak_conn_edge(conn));
	spin_unlock(&conn->lock);
	return err;
}

/* The work item writes to the ring no more. Who has closed the connection meanwhile has left it
 * to this thread to free what was written. */
static void homak_data_filled(struct homak_conn *conn)
{
	bool closed;

	spin_lock(&conn->lock);
	conn->filling = false;
	closed = conn->closed;
	spin_unlock(&conn->lock);
	if (closed)
		homak_ring_end(&conn->ring);
}

/* Takes a request's bytes. Returns 0 or an error for the peer. */
static int homak_data_take(struct homak_conn *conn, const struct homak_carried *m,
			   const struct homak_stream_hdr *hdr,
			   struct homak_stream_hdr *answer)
{
	u64 from = be64_to_cpu(hdr->offset);
	u64 to = from + (m->info.length - HOMAK_STREAM_HDR), begin;
	u32 wake = 0;
	int err;

	spin_lock(&conn->lock);
	err = homak_data_check(conn, hdr, from, to);
	/* This thread alone moves @next. */
	begin = max(from, conn->ring.next);
	conn->filling = !err && begin < to;
	spin_unlock(&conn->lock);
	if (err)
		return err;
	if (begin < to) {
		err = homak_ring_pages(&conn->ring, begin, to);
		if (!err)
			err = homak_carry_to_ring(m,
						  HOMAK_STREAM_HDR +
							  (u32)(begin - from),
						  &conn->ring, begin);
		homak_data_filled(conn);
		if (err)
			return err;
	}
	err = homak_data_note(conn, hdr, min(begin, to), to, answer, &wake);
	if (!err)
		homak_conn_wake(conn, wake);
	return err;
}

static void homak_arrived_data(struct homak_carrier *carrier,
			       const struct homak_carried *m,
			       const struct homak_stream_hdr *hdr)
{
	struct homak_conn *conn = homak_conn_find(carrier, be32_to_cpu(hdr->key));
	struct homak_stream_hdr answer;
	int err;

	if (!conn || conn->secret != be64_to_cpu(hdr->secret)) {
		homak_answer_no(carrier, m, ECONNRESET);
		goto put;
	}
	homak_stream_hdr_init(&answer, HOMAK_STREAM_ANSWER);
	if (be16_to_cpu(hdr->flags) & HOMAK_STREAM_RESET) {
		homak_carry_answer(carrier, m, &answer, NULL, 0);
		homak_conn_break(conn, ECONNRESET);
		goto put;
	}
	err = homak_data_take(conn, m, hdr, &answer);
	if (!err) {
		homak_carry_answer(carrier, m, &answer, NULL, 0);
		goto put;
	}
	homak_answer_no(carrier, m, ECONNRESET);
	if (err == -ECONNRESET)
		goto put;
	/* The peer hears of it by this answer. */
	if (err != -ENOMEM)
		homak_arrived_bad(carrier);
	homak_conn_break(conn, err == -ENOMEM ? ENOMEM : ECONNRESET);
put:
	if (conn)
		homak_conn_put(conn);
}

/* ---- answers ---- */

/* What a program hears of a request that failed. A peer may name any error, so only those pass
 * that say something of the way to it. */
static int homak_failed_error(u32 error, int none)
{
	switch (error) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
	case EACCES:
		return (int)error;
	}
	return none;
}

/* Returns a positive errno if a request was not answered as it should be. */
static int homak_answer_error(struct homak_carrier *carrier,
			      const struct homak_carried *m,
			      struct homak_stream_hdr *hdr, bool open)
{
	int none = open ? ECONNREFUSED : ECONNRESET;
	int status;

	if (m->info.kind == HOMA_EV_FAILED)
		return homak_failed_error((u32)m->info.error, none);
	if (homak_carry_bytes(m, 0, hdr, sizeof(*hdr)) ||
	    !homak_stream_hdr_valid(hdr) || hdr->kind != HOMAK_STREAM_ANSWER ||
	    be64_to_cpu(hdr->edge) > HOMAK_STREAM_OFFSETS) {
		homak_arrived_bad(carrier);
		return none;
	}
	status = be16_to_cpu(hdr->status);
	return status ? none : 0;
}

/* Is it no error that the peer does not know the connection any more? It has sent all, and
 * wanted no more. */
static bool homak_answer_late(const struct homak_conn *conn, u32 flags, u32 n)
{
	if (flags & HOMAK_STREAM_RESET)
		return true;
	return !(flags & HOMAK_COOKIE_OPEN) && !n && homak_conn_at_end(conn);
}

/* Counts an answered request; returns what to tell the socket. *@over: the connection ends. */
static u32 homak_answered(struct homak_conn *conn, u64 cookie,
			  const struct homak_stream_hdr *hdr, int *error,
			  bool *over)
{
	u32 n = homak_cookie_bytes(cookie), wake = 0;

	spin_lock(&conn->lock);
	if (!WARN_ON_ONCE(!conn->out || conn->out_bytes < n)) {
		conn->out--;
		conn->out_bytes -= n;
	}
	if (homak_cookie_flags(cookie) & HOMAK_COOKIE_EDGE)
		conn->edge_out = false;
	conn->send_later = false;
	if (*error && homak_answer_late(conn, homak_cookie_flags(cookie), n))
		*error = 0;
	else if (!*error)
		wake = homak_conn_edge_grows(conn, be64_to_cpu(hdr->edge));
	if (conn->want_room) {
		conn->want_room = false;
		wake = HOMAK_WAKE_WRITE;
	}
	*over = conn->closed && !conn->out;
	spin_unlock(&conn->lock);
	return wake;
}

/* The server has accepted. Returns true if nobody wants that any more. */
static bool homak_opened(struct homak_conn *conn,
			 const struct homak_stream_open *open)
{
	bool unwanted;

	spin_lock(&conn->lock);
	conn->peer_key = be32_to_cpu(open->key);
	conn->peer_secret = be64_to_cpu(open->secret);
	if (conn->state == HOMAK_CONN_OPENING)
		WRITE_ONCE(conn->state, HOMAK_CONN_LIVE);
	unwanted = conn->closed || conn->state == HOMAK_CONN_DEAD;
	spin_unlock(&conn->lock);
	return unwanted;
}

static void homak_arrived_answer(struct homak_carrier *carrier,
				 const struct homak_carried *m)
{
	u64 cookie = m->info.cookie;
	bool open = homak_cookie_flags(cookie) & HOMAK_COOKIE_OPEN, over;
	struct homak_conn *conn =
		homak_conn_find(carrier, homak_cookie_key(cookie));
	struct homak_stream_hdr hdr = { 0 };
	struct homak_stream_open theirs;
	u32 wake;
	int error;

	if (!conn)
		return;
	error = homak_answer_error(carrier, m, &hdr, open);
	if (!error && open &&
	    homak_carry_bytes(m, HOMAK_STREAM_HDR, &theirs, sizeof(theirs)))
		error = ECONNREFUSED;
	/* What the peer made for us has to go, so it is told before the request counts as
	 * answered. */
	if (!error && open && homak_opened(conn, &theirs))
		homak_say(conn, HOMAK_STREAM_RESET);
	wake = homak_answered(conn, cookie, &hdr, &error, &over);
	if (!error && open)
		wake |= HOMAK_WAKE_ALL | HOMAK_WAKE_WRITE;
	if (error)
		homak_conn_break(conn, error);
	homak_conn_wake(conn, wake);
	if (over)
		homak_conn_kill(conn);
	else if (homak_cookie_flags(cookie) &
		 (HOMAK_COOKIE_EDGE | HOMAK_COOKIE_OPEN))
		/* The peer's bytes may have come, and been read, before its answer to OPEN. */
		homak_say_edge(conn);
	homak_conn_put(conn);
}

void homak_stream_arrived(struct homak_carrier *carrier, struct homak_carried *m)
{
	struct homak_stream_hdr hdr;

	if (m->info.kind != HOMA_EV_REQUEST) {
		homak_arrived_answer(carrier, m);
		return;
	}
	if (m->info.length > HOMAK_STREAM_HDR + HOMAK_STREAM_CHUNK ||
	    homak_carry_bytes(m, 0, &hdr, sizeof(hdr)) ||
	    !homak_stream_hdr_valid(&hdr)) {
		homak_arrived_bad(carrier);
		homak_answer_no(carrier, m, EPROTO);
	} else if (hdr.kind == HOMAK_STREAM_OPEN) {
		homak_arrived_open(carrier, m, &hdr);
	} else if (hdr.kind == HOMAK_STREAM_DATA) {
		homak_arrived_data(carrier, m, &hdr);
	} else {
		homak_arrived_bad(carrier);
		homak_answer_no(carrier, m, EPROTO);
	}
}
