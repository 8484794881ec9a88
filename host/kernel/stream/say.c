// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a connection sends: OPEN, bytes, and words without bytes - FIN, RESET, a new edge,
 * a question whether the peer is there. Each is a request that is counted in
 * homak_conn.out until it is answered or has failed; the connection is found then by the
 * request's cookie, which says what it was, too.
 */
#include "homa_stream.h"

/* How often a request without payload is tried, a tick apart, while the engine has no objects for
 * it (-ENOBUFS). */
#define HOMAK_SAY_TRIES 20
/* The time after which a closed connection ends although its peer has not answered, in jiffies. */
#define HOMAK_CLOSE_TIME (60 * HZ)

/* Counts a request of @n bytes and writes its header; locked. Returns the flags of the
 * cookie. */
static void homak_say_begin(struct homak_conn *conn, struct homak_ask *ask, u32 n)
{
	ask->peer = conn->peer;
	ask->port = conn->peer_port;
	ask->more = NULL;
	ask->n = n;
	ask->local = NULL;
	ask->told = conn->told;
	ask->cookie = homak_cookie(conn->key, 0, n);
	homak_stream_hdr_init(&ask->hdr, HOMAK_STREAM_DATA);
	ask->hdr.key = cpu_to_be32(conn->peer_key);
	ask->hdr.secret = cpu_to_be64(conn->peer_secret);
	ask->hdr.offset = cpu_to_be64(conn->sent);
	ask->hdr.edge = cpu_to_be64(homak_conn_edge(conn));
	conn->out++;
	conn->out_bytes += n;
	conn->sent += n;
}

/* Takes back a request that was not sent, with @n bytes of the stream. */
static void homak_say_undo(struct homak_conn *conn, const struct homak_ask *ask,
			   u32 n)
{
	bool over;

	spin_lock(&conn->lock);
	conn->out--;
	conn->out_bytes -= n;
	conn->sent -= n;
	/* The peer has not learned of its edge either. */
	conn->told = min(conn->told, ask->told);
	over = conn->closed && !conn->out;
	spin_unlock(&conn->lock);
	if (over)
		homak_conn_kill(conn);
}

int homak_say_open(struct homak_conn *conn)
{
	struct homak_stream_open open = {
		.key = cpu_to_be32(conn->key),
		.secret = cpu_to_be64(conn->secret),
	};
	struct kvec kvec = { .iov_base = &open, .iov_len = sizeof(open) };
	struct homak_ask ask;
	struct iov_iter more;
	int err;

	iov_iter_kvec(&more, ITER_SOURCE, &kvec, 1, sizeof(open));
	spin_lock(&conn->lock);
	homak_say_begin(conn, &ask, 0);
	spin_unlock(&conn->lock);
	ask.hdr.kind = HOMAK_STREAM_OPEN;
	ask.cookie = homak_cookie(conn->key, HOMAK_COOKIE_OPEN, 0);
	ask.more = &more;
	ask.n = sizeof(open);
	ask.local = &conn->local;
	err = homak_carry_ask(conn->carrier, &ask);
	if (err)
		homak_say_undo(conn, &ask, 0);
	return err;
}

int homak_say_bytes(struct homak_conn *conn, struct iov_iter *from, u32 n)
{
	struct homak_ask ask;
	int err;

	spin_lock(&conn->lock);
	homak_say_begin(conn, &ask, n);
	spin_unlock(&conn->lock);
	ask.more = from;
	err = homak_carry_ask(conn->carrier, &ask);
	if (err) {
		homak_say_undo(conn, &ask, n);
		homak_say_edge(conn);
	}
	return err;
}

/* A request without payload could not be sent. Only what the peer has to hear ends the connection
 * for that: another question follows, and an edge is told later. */
static void homak_say_failed(struct homak_conn *conn,
			     const struct homak_ask *ask, u32 what, int err)
{
	if (what & HOMAK_COOKIE_EDGE) {
		spin_lock(&conn->lock);
		conn->edge_out = false;
		spin_unlock(&conn->lock);
		homak_conn_delay(conn, HOMAK_SAY_LATER);
	} else if (what || (err != -ENOBUFS && err != -ENOMEM)) {
		homak_conn_break(conn, -err);
	}
	homak_say_undo(conn, ask, 0);
}

/* Sends a request without payload. @what: bits of the cookie, those of the header among
 * them. */
static void homak_say_word(struct homak_conn *conn, u32 what, int tries)
{
	struct homak_ask ask;
	int err;

	spin_lock(&conn->lock);
	homak_say_begin(conn, &ask, 0);
	if (what & HOMAK_STREAM_FIN)
		conn->fin_sent = true;
	spin_unlock(&conn->lock);
	ask.hdr.flags = cpu_to_be16(what & HOMAK_STREAM_FLAGS);
	ask.cookie = homak_cookie(conn->key, what, 0);
	while ((err = homak_carry_ask(conn->carrier, &ask)) == -ENOBUFS && --tries)
		schedule_timeout_uninterruptible(1);
	if (err)
		homak_say_failed(conn, &ask, what, err);
}

void homak_say(struct homak_conn *conn, u16 flags)
{
	homak_say_word(conn, flags, HOMAK_SAY_TRIES);
}

void homak_say_edge(struct homak_conn *conn)
{
	u64 edge;
	bool say;

	spin_lock(&conn->lock);
	edge = conn->ring.read + conn->ring.window;
	say = conn->state == HOMAK_CONN_LIVE && !conn->fin_known &&
	      !conn->edge_out && !conn->closed &&
	      edge - conn->told >= conn->ring.window / 2;
	/* A peer that does not answer gets no second one. */
	conn->edge_out |= say;
	spin_unlock(&conn->lock);
	if (say)
		homak_say_word(conn, HOMAK_COOKIE_EDGE, 1);
}

void homak_say_close(struct homak_conn *conn, bool reset)
{
	bool over, tell, filling;
	int tries;

	spin_lock(&conn->lock);
	/* Connections that nobody accepted may be thousands, and end in one close(). */
	tries = conn->sk ? HOMAK_SAY_TRIES : 1;
	conn->sk = NULL;
	conn->closed = true;
	/* Now no more bytes are let in. What is writing some frees the ring then. */
	filling = conn->filling;
	/* This counts as a request, so that answers do not end the connection before all is
	 * said. */
	conn->out++;
	/* A connection that is being opened is reset when it is. */
	tell = conn->state == HOMAK_CONN_LIVE && (reset || !conn->fin_sent);
	spin_unlock(&conn->lock);
	if (!filling)
		homak_ring_end(&conn->ring);
	homak_conn_expire(conn, HOMAK_CLOSE_TIME);
	if (tell)
		homak_say_word(conn,
			       reset ? HOMAK_STREAM_RESET : HOMAK_STREAM_FIN,
			       tries);
	spin_lock(&conn->lock);
	over = !--conn->out;
	spin_unlock(&conn->lock);
	if (over)
		homak_conn_kill(conn);
}

void homak_say_timer(struct work_struct *work)
{
	struct homak_conn *conn =
		container_of(to_delayed_work(work), struct homak_conn, timer);
	bool closed, ask = false, again = false;
	u32 wake = 0;

	spin_lock(&conn->lock);
	closed = conn->closed;
	if (conn->want_room)
		wake = HOMAK_WAKE_WRITE;
	conn->want_room = false;
	conn->send_later = false;
	if (!closed && conn->sk && sock_flag(conn->sk, SOCK_KEEPOPEN)) {
		again = conn->state != HOMAK_CONN_DEAD;
		ask = conn->state == HOMAK_CONN_LIVE && !conn->out;
	}
	spin_unlock(&conn->lock);
	homak_conn_wake(conn, wake);
	if (closed)
		homak_conn_kill(conn);
	else
		homak_say_edge(conn);
	if (ask)
		homak_say(conn, 0);
	if (again)
		homak_conn_delay(conn, (unsigned long)READ_ONCE(conn->idle) * HZ);
	homak_conn_put(conn);
}
