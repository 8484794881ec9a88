// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Names of stream sockets, and connect(). */
#include <linux/sched/signal.h>
#include <net/addrconf.h>
#include <net/inet_sock.h>
#include <net/route.h>

#include "homa_stream.h"
#include "homa_sockets.h"

/* The number of pages of 64 KiB in the receive region of a client's connection. They are counted
 * like those of programs, but no memory is behind them (carrier.c). */
#define HOMAK_CLIENT_PAGES 48u

static int homak_stream_name_size(const struct sock *sk)
{
	return sk->sk_family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6);
}

/* ---- bind() ---- */

static int homak_stream_take_port(struct sock *sk, homak_bind_addr *addr, int len)
{
	struct homak_stream *stream = homak_stream(sk);
	struct homak_carrier *carrier;
	int i, err;

	carrier = homak_carrier_new(sk, homak_stream_arrived);
	if (IS_ERR(carrier))
		return PTR_ERR(carrier);
	err = homak_kernel_bind(carrier->sock, addr, len);
	/* A connection that was closed keeps the port until its peer has answered, so we wait
	 * for that, 0.1 s at most. */
	for (i = 0; err == -EADDRINUSE && i < HZ / 10; i++) {
		schedule_timeout_interruptible(1);
		if (signal_pending(current))
			break;
		err = homak_kernel_bind(carrier->sock, addr, len);
	}
	if (err) {
		homak_carrier_put(carrier);
		return err;
	}
	stream->bound = carrier->hsk->bound;
	/* A link-local name has its device. */
	WRITE_ONCE(sk->sk_bound_dev_if,
		   READ_ONCE(carrier->sock->sk->sk_bound_dev_if));
	smp_store_release(&stream->carrier, carrier);
	return 0;
}

int homak_stream_bind(struct socket *sock, homak_bind_addr *addr, int len)
{
	const struct sockaddr *name = (const struct sockaddr *)addr;
	struct sock *sk = sock->sk;
	u16 port;
	int err;

	if (len < homak_stream_name_size(sk))
		return -EINVAL;
	if (name->sa_family != sk->sk_family)
		return -EAFNOSUPPORT;
	port = ntohs(((const struct sockaddr_in *)name)->sin_port);
	if (port >= HOMA_MIN_DEFAULT_PORT)
		return -EADDRNOTAVAIL;
	if (port && inet_port_requires_bind_service(sock_net(sk), port) &&
	    !ns_capable(sock_net(sk)->user_ns, CAP_NET_BIND_SERVICE))
		return -EACCES;
	lock_sock(sk);
	err = -EINVAL;
	if (homak_stream(sk)->carrier)
		goto out;
	err = homak_stream_take_port(sk, addr, len);
out:
	release_sock(sk);
	return err;
}

/* ---- connect() ---- */

/* Has the attempt ended? */
static bool homak_connect_done(struct sock *sk)
{
	return READ_ONCE(homak_stream(sk)->conn->state) != HOMAK_CONN_OPENING;
}

static int homak_connect_begin(struct sock *sk, homak_bind_addr *addr, int len)
{
	struct homak_stream *stream = homak_stream(sk);
	struct homak_carrier *carrier = stream->carrier;
	struct homak_conn *conn;
	struct homak_name name;
	int err;

	if (!carrier) {
		carrier = homak_carrier_new(sk, homak_stream_arrived);
		if (IS_ERR(carrier))
			return PTR_ERR(carrier);
		smp_store_release(&stream->carrier, carrier);
	}
	err = homak_carrier_serve(carrier, sk, HOMAK_CLIENT_PAGES);
	if (err)
		return err;
	err = homak_name_get(carrier->hsk, (const struct sockaddr *)addr, len,
			     &name);
	if (err)
		return err;
	if (!name.port)
		return -ECONNREFUSED;
	conn = homak_conn_new(carrier, homak_stream_window(sk), homak_say_timer);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	conn->peer = name.addr;
	conn->peer_port = name.port;
	conn->sk = sk;
	conn->idle = (u32)stream->options[HOMAK_OPTION_IDLE];
	err = homak_say_open(conn);
	if (err) {
		homak_conn_kill(conn);
		homak_conn_put(conn);
		return err == -ENOBUFS ? -EAGAIN : err;
	}
	smp_store_release(&stream->conn, conn);
	homak_stream_keepalive(sk, sock_flag(sk, SOCK_KEEPOPEN));
	return 0;
}

static int homak_connect_locked(struct sock *sk, homak_bind_addr *addr, int len,
				long timeo)
{
	struct homak_stream *stream = homak_stream(sk);
	int err;

	if (sk->sk_state == TCP_LISTEN)
		return -EISCONN;
	if (!stream->conn) {
		err = homak_connect_begin(sk, addr, len);
		if (err)
			return err;
		if (!timeo && !homak_connect_done(sk))
			return -EINPROGRESS;
	} else if (stream->connected) {
		return -EISCONN;
	} else if (!timeo && !homak_connect_done(sk)) {
		return -EALREADY;
	}
	while (!homak_connect_done(sk)) {
		err = homak_stream_wait(sk, &timeo, homak_connect_done);
		if (err)
			return err == -EAGAIN ? -EINPROGRESS : err;
	}
	if (homak_conn_dead(stream->conn)) {
		err = sock_error(sk);
		return err ? err : -ECONNABORTED;
	}
	homak_stream_connected(sk);
	return 0;
}

int homak_stream_connect(struct socket *sock, homak_bind_addr *addr, int len,
			 int flags)
{
	const struct sockaddr *name = (const struct sockaddr *)addr;
	struct sock *sk = sock->sk;
	int err;

	if (len < (int)sizeof(name->sa_family))
		return -EINVAL;
	if (name->sa_family != sk->sk_family)
		return -EAFNOSUPPORT;
	if (len < homak_stream_name_size(sk))
		return -EINVAL;
	lock_sock(sk);
	err = homak_connect_locked(sk, addr, len,
				   sock_sndtimeo(sk, flags & O_NONBLOCK));
	release_sock(sk);
	return err;
}

/* ---- names ---- */

/* Returns the device of a link-local address of ours: the one that the peer is at, or that the
 * socket is bound to. */
static int homak_stream_device(const struct sock *sk)
{
	const struct homak_conn *conn = homak_stream(sk)->conn;
	struct in6_addr peer;
	int device = 0;

	if (conn)
		device = (int)homak_addr_get_v6(&conn->peer, &peer);
	return device ? device : READ_ONCE(sk->sk_bound_dev_if);
}

static int homak_stream_name(const struct sock *sk, const struct in6_addr *ip,
			     u16 port, struct sockaddr *to)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	int size = homak_stream_name_size(sk);

	memset(to, 0, size);
	to->sa_family = sk->sk_family;
	((struct sockaddr_in *)to)->sin_port = htons(port);
	if (sk->sk_family == AF_INET) {
		((struct sockaddr_in *)to)->sin_addr.s_addr = ip->s6_addr32[3];
	} else {
		in6->sin6_addr = *ip;
		in6->sin6_scope_id =
			ipv6_iface_scope_id(ip, homak_stream_device(sk));
	}
	return size;
}

int homak_stream_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct homak_stream *stream = homak_stream(sock->sk);
	int size = -ENOTCONN;
	u16 port = 0;

	lock_sock(sock->sk);
	if (stream->carrier)
		port = homa_sock_port(stream->carrier->hsk->engine_sock);
	if (!peer)
		size = homak_stream_name(sock->sk,
					 stream->conn ? &stream->conn->local :
							&stream->bound,
					 port, addr);
	else if (stream->conn && READ_ONCE(stream->conn->state) == HOMAK_CONN_LIVE)
		size = homak_name_put(stream->carrier->hsk, &stream->conn->peer,
				      stream->conn->peer_port,
				      (struct sockaddr_storage *)addr);
	release_sock(sock->sk);
	return size;
}
