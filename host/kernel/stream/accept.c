// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Listeners: connections that were opened wait at the carrier until a program accepts them. */
#include <linux/net.h>

#include "homa_stream.h"
#include "homa_sockets.h"

/* The number of such pages as HOMAK_CLIENT_PAGES (setup.c) for all connections of a listener. */
#define HOMAK_LISTENER_PAGES 512u

static int homak_listen_locked(struct sock *sk, int backlog)
{
	struct homak_stream *stream = homak_stream(sk);
	struct homak_carrier *carrier = stream->carrier;
	int err;

	if (stream->conn)
		return -EINVAL;
	if (!carrier) {
		carrier = homak_carrier_new(sk, homak_stream_arrived);
		if (IS_ERR(carrier))
			return PTR_ERR(carrier);
		smp_store_release(&stream->carrier, carrier);
	}
	err = homak_carrier_serve(carrier, sk, HOMAK_LISTENER_PAGES);
	if (err)
		return err;
	spin_lock(&carrier->lock);
	carrier->backlog = (u32)clamp(backlog, 1, SOMAXCONN);
	carrier->listener = sk;
	spin_unlock(&carrier->lock);
	sk->sk_state = TCP_LISTEN;
	return 0;
}

int homak_stream_listen(struct socket *sock, int backlog)
{
	int err;

	lock_sock(sock->sk);
	err = homak_listen_locked(sock->sk, backlog);
	release_sock(sock->sk);
	return err;
}

static struct homak_conn *homak_listen_next(struct homak_carrier *carrier)
{
	struct homak_conn *conn;

	spin_lock(&carrier->lock);
	conn = list_first_entry_or_null(&carrier->pending, struct homak_conn,
					pending);
	if (conn) {
		list_del_init(&conn->pending);
		carrier->num_pending--;
	}
	spin_unlock(&carrier->lock);
	return conn;
}

void homak_stream_unlisten(struct homak_stream *stream)
{
	struct homak_carrier *carrier = stream->carrier;
	struct homak_conn *conn;

	spin_lock(&carrier->lock);
	carrier->listener = NULL;
	spin_unlock(&carrier->lock);
	while ((conn = homak_listen_next(carrier))) {
		homak_say_close(conn, true);
		homak_conn_put(conn);
	}
}

/* ---- accept() ---- */

static bool homak_accept_done(struct sock *sk)
{
	struct homak_carrier *carrier = homak_stream(sk)->carrier;

	return !list_empty_careful(&carrier->pending) ||
	       READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_state) != TCP_LISTEN;
}

/* Gives the new socket @sk the connection, and what it inherits. */
static void homak_accept_conn(const struct sock *listener, struct sock *sk,
			      struct homak_conn *conn)
{
	struct homak_stream *stream = homak_stream(sk);

	sk->sk_rcvbuf = READ_ONCE(listener->sk_rcvbuf);
	sk->sk_sndbuf = READ_ONCE(listener->sk_sndbuf);
	sk->sk_userlocks = listener->sk_userlocks;
	sk->sk_rcvtimeo = listener->sk_rcvtimeo;
	sk->sk_sndtimeo = listener->sk_sndtimeo;
	sk->sk_ipv6only = listener->sk_ipv6only;
	sk->sk_rcvlowat = READ_ONCE(listener->sk_rcvlowat);
	sk->sk_lingertime = READ_ONCE(listener->sk_lingertime);
	sock_valbool_flag(sk, SOCK_LINGER, sock_flag(listener, SOCK_LINGER));
	memcpy(stream->options, homak_stream(listener)->options,
	       sizeof(stream->options));
	sock_valbool_flag(sk, SOCK_KEEPOPEN, sock_flag(listener, SOCK_KEEPOPEN));
	homak_carrier_get(conn->carrier);
	smp_store_release(&stream->carrier, conn->carrier);
	smp_store_release(&stream->conn, conn);
	WRITE_ONCE(conn->idle, (u32)stream->options[HOMAK_OPTION_IDLE]);
	spin_lock(&conn->lock);
	conn->sk = sk;
	if (conn->state == HOMAK_CONN_DEAD)
		sk->sk_err = conn->error;
	spin_unlock(&conn->lock);
	homak_stream_connected(sk);
	homak_stream_keepalive(sk, sock_flag(sk, SOCK_KEEPOPEN));
}

static int homak_accept_locked(struct sock *sk, struct sock *made, int flags)
{
	struct homak_carrier *carrier = homak_stream(sk)->carrier;
	long timeo = sock_rcvtimeo(sk, flags & O_NONBLOCK);
	struct homak_conn *conn;
	int err;

	for (;;) {
		if (sk->sk_state != TCP_LISTEN)
			return -EINVAL;
		err = sock_error(sk);
		if (err)
			return err;
		conn = homak_listen_next(carrier);
		if (conn)
			break;
		err = homak_stream_wait(sk, &timeo, homak_accept_done);
		if (err)
			return err;
	}
	homak_accept_conn(sk, made, conn);
	return 0;
}

/* Moves a socket to the one that accept() hands in. */
static void homak_accept_graft(struct socket *from, struct socket *to)
{
	struct sock *sk = from->sk;

	lock_sock(sk);
	from->sk = NULL;
	sock_graft(sk, to);
	to->state = SS_CONNECTED;
	release_sock(sk);
}

int homak_stream_accept_conn(struct socket *sock, struct socket *newsock,
			     int flags)
{
	struct sock *sk = sock->sk;
	struct socket *made;
	int err;

	/* The socket is made first, so that a connection that is taken has one. */
	err = __sock_create(sock_net(sk), sk->sk_family, SOCK_STREAM,
			    IPPROTO_HOMA, &made, 0);
	if (err)
		return err;
	lock_sock(sk);
	err = homak_accept_locked(sk, made->sk, flags);
	release_sock(sk);
	if (!err)
		homak_accept_graft(made, newsock);
	sock_release(made);
	return err;
}
