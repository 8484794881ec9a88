// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_HOMA): life, poll(), and what is registered. */
#include <asm/ioctls.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <net/inet_common.h>
#include <net/ipv6.h>
#include <net/protocol.h>

#include "homa_stream.h"

/* ---- life ---- */

static int homak_stream_init(struct sock *sk)
{
	homak_stream(sk)->bound = in6addr_any;
	homak_stream_options_init(homak_stream(sk));
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	local_bh_enable();
	return 0;
}

static void homak_stream_destroy(struct sock *sk)
{
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	local_bh_enable();
}

static void homak_stream_unhash(struct sock *sk)
{
}

/* Are there bytes that the program has not read? */
static bool homak_unread(struct homak_conn *conn)
{
	bool unread;

	spin_lock(&conn->lock);
	unread = conn->ring.next != conn->ring.read;
	spin_unlock(&conn->lock);
	return unread;
}

/* Is every request answered, or the connection dead? */
static bool homak_lingered(struct sock *sk)
{
	struct homak_conn *conn = homak_stream(sk)->conn;
	bool over;

	spin_lock(&conn->lock);
	over = !conn->out || conn->state != HOMAK_CONN_LIVE;
	spin_unlock(&conn->lock);
	return over;
}

/* Waits until all is answered, as SO_LINGER wants. */
static void homak_linger(struct sock *sk, long timeo)
{
	struct homak_conn *conn = homak_stream(sk)->conn;

	while (timeo && !homak_lingered(sk)) {
		spin_lock(&conn->lock);
		conn->want_room = true;
		spin_unlock(&conn->lock);
		if (homak_stream_wait(sk, &timeo, homak_lingered))
			break;
	}
}

static void homak_stream_close(struct sock *sk, long timeout)
{
	struct homak_stream *stream = homak_stream(sk);
	struct homak_conn *conn;
	bool reset;

	lock_sock(sk);
	conn = stream->conn;
	sk->sk_shutdown = SHUTDOWN_MASK;
	if (sk->sk_state == TCP_LISTEN)
		homak_stream_unlisten(stream);
	if (conn) {
		reset = homak_unread(conn) ||
			(sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime);
		if (!reset && timeout && sk->sk_socket)
			homak_linger(sk, timeout);
		homak_say_close(conn, reset);
		homak_conn_put(conn);
		stream->conn = NULL;
	}
	if (stream->carrier)
		homak_carrier_put(stream->carrier);
	stream->carrier = NULL;
	/* inet_sock_destruct() complains about any other state. */
	sk->sk_state = TCP_CLOSE;
	release_sock(sk);
	sk_common_release(sk);
}

static int homak_stream_shutdown(struct socket *sock, int how)
{
	struct homak_stream *stream = homak_stream(sock->sk);
	struct homak_conn *conn;
	struct sock *sk = sock->sk;
	bool fin = false;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	lock_sock(sk);
	conn = stream->conn;
	if (sk->sk_state == TCP_LISTEN && how != SHUT_WR) {
		homak_stream_unlisten(stream);
		sk->sk_state = TCP_CLOSE;
	} else if (!conn) {
		release_sock(sk);
		return -ENOTCONN;
	} else if (homak_conn_give_up(conn, ECONNRESET)) {
		/* As with TCP: that ends an attempt to connect. */
		release_sock(sk);
		return 0;
	}
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	if (conn && how != SHUT_RD) {
		spin_lock(&conn->lock);
		fin = conn->state == HOMAK_CONN_LIVE && !conn->fin_sent;
		spin_unlock(&conn->lock);
	}
	if (fin)
		homak_say(conn, HOMAK_STREAM_FIN);
	sk->sk_state_change(sk);
	release_sock(sk);
	return 0;
}

/* ---- poll(), ioctl() ---- */

static __poll_t homak_poll_listener(const struct homak_carrier *carrier)
{
	return list_empty_careful(&carrier->pending) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static __poll_t homak_poll_conn(struct sock *sk, struct homak_conn *conn)
{
	u8 shut = READ_ONCE(sk->sk_shutdown);
	__poll_t mask = 0;
	bool end;

	spin_lock(&conn->lock);
	end = homak_conn_at_end(conn) || conn->state == HOMAK_CONN_DEAD ||
	      shut & RCV_SHUTDOWN;
	/* The peer is told of new room by half windows, so more may never come. */
	if (end || conn->ring.next - conn->ring.read >=
			   (u64)sock_rcvlowat(sk, 0, (int)conn->ring.window / 2))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (end)
		mask |= EPOLLRDHUP;
	if (conn->state == HOMAK_CONN_DEAD || (end && shut & SEND_SHUTDOWN))
		mask |= EPOLLHUP;
	if (conn->state == HOMAK_CONN_DEAD || shut & SEND_SHUTDOWN ||
	    (!conn->send_later &&
	     homak_conn_room(conn, (u32)READ_ONCE(sk->sk_sndbuf))))
		mask |= EPOLLOUT | EPOLLWRNORM;
	else
		conn->want_room = true;
	spin_unlock(&conn->lock);
	return mask;
}

static __poll_t homak_stream_poll(struct file *file, struct socket *sock,
				  poll_table *wait)
{
	struct homak_stream *stream = homak_stream(sock->sk);
	struct homak_carrier *carrier;
	struct homak_conn *conn;
	__poll_t mask;

	sock_poll_wait(file, sock, wait);
	/* Both are set once, and last until the last close(). */
	conn = smp_load_acquire(&stream->conn);
	carrier = smp_load_acquire(&stream->carrier);
	if (conn)
		mask = homak_poll_conn(sock->sk, conn);
	else if (carrier && READ_ONCE(sock->sk->sk_state) == TCP_LISTEN)
		mask = homak_poll_listener(carrier);
	else
		mask = EPOLLOUT | EPOLLWRNORM | EPOLLHUP;
	if (READ_ONCE(sock->sk->sk_err))
		mask |= EPOLLERR;
	return mask;
}

static int homak_stream_ioctl(struct socket *sock, unsigned int cmd,
			      unsigned long arg)
{
	struct homak_conn *conn = smp_load_acquire(&homak_stream(sock->sk)->conn);
	int number = 0;

	if (cmd != SIOCINQ && cmd != SIOCOUTQ)
		return sock->sk->sk_family == AF_INET ?
			       inet_ioctl(sock, cmd, arg) :
			       inet6_ioctl(sock, cmd, arg);
	if (sock->sk->sk_state == TCP_LISTEN)
		return -EINVAL;
	if (conn) {
		spin_lock(&conn->lock);
		number = cmd == SIOCINQ ?
				 (int)(conn->ring.next - conn->ring.read) :
				 (int)conn->out_bytes;
		spin_unlock(&conn->lock);
	}
	return put_user(number, (int __user *)arg);
}

static int homak_stream_accept(HOMAK_ACCEPT_ARGS)
{
	return homak_stream_accept_conn(sock, newsock, HOMAK_ACCEPT_FLAGS);
}

/* ---- registration ---- */

static const struct proto_ops homak_stream_ops = {
	.family = PF_INET,
	.owner = THIS_MODULE,
	.release = inet_release,
	.bind = homak_stream_bind,
	.connect = homak_stream_connect,
	.socketpair = sock_no_socketpair,
	.accept = homak_stream_accept,
	.getname = homak_stream_getname,
	.poll = homak_stream_poll,
	.ioctl = homak_stream_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = homak_stream_listen,
	.shutdown = homak_stream_shutdown,
	.setsockopt = homak_stream_setsockopt,
	.getsockopt = homak_stream_getsockopt,
	.sendmsg = homak_stream_sendmsg,
	.recvmsg = homak_stream_recvmsg,
	.mmap = sock_no_mmap,
};

static const struct proto_ops homak6_stream_ops = {
	.family = PF_INET6,
	.owner = THIS_MODULE,
	.release = inet6_release,
	.bind = homak_stream_bind,
	.connect = homak_stream_connect,
	.socketpair = sock_no_socketpair,
	.accept = homak_stream_accept,
	.getname = homak_stream_getname,
	.poll = homak_stream_poll,
	.ioctl = homak_stream_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = homak_stream_listen,
	.shutdown = homak_stream_shutdown,
	.setsockopt = homak_stream_setsockopt,
	.getsockopt = homak_stream_getsockopt,
	.sendmsg = homak_stream_sendmsg,
	.recvmsg = homak_stream_recvmsg,
	.mmap = sock_no_mmap,
};

static struct proto homak_stream_prot = {
	.name = "HOMA_STREAM",
	.owner = THIS_MODULE,
	.init = homak_stream_init,
	.destroy = homak_stream_destroy,
	.close = homak_stream_close,
	.unhash = homak_stream_unhash,
	.keepalive = homak_stream_keepalive,
	.obj_size = sizeof(struct homak_stream),
	.no_autobind = true,
};

static struct proto homak6_stream_prot = {
	.name = "HOMA_STREAMv6",
	.owner = THIS_MODULE,
	.init = homak_stream_init,
	.destroy = homak_stream_destroy,
	.close = homak_stream_close,
	.unhash = homak_stream_unhash,
	.keepalive = homak_stream_keepalive,
	.obj_size = sizeof(struct homak6_stream),
	HOMAK_PROTO_INET6(struct homak6_stream, inet6).no_autobind = true,
};

static struct inet_protosw homak_stream_protosw = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homak_stream_prot,
	.ops = &homak_stream_ops,
	.flags = INET_PROTOSW_REUSE,
};

static struct inet_protosw homak6_stream_protosw = {
	.type = SOCK_STREAM,
	.protocol = IPPROTO_HOMA,
	.prot = &homak6_stream_prot,
	.ops = &homak6_stream_ops,
	.flags = INET_PROTOSW_REUSE,
};

int homak_streams_init(void)
{
	int err;

	BUILD_BUG_ON(offsetof(struct homak6_stream, inet6) +
			     sizeof(struct ipv6_pinfo) !=
		     sizeof(struct homak6_stream));
	err = homak_carriers_init();
	if (err)
		return err;
	err = proto_register(&homak_stream_prot, 1);
	if (err)
		goto carriers;
	err = proto_register(&homak6_stream_prot, 1);
	if (err)
		goto v4;
	err = inet6_register_protosw(&homak6_stream_protosw);
	if (err)
		goto v6;
	inet_register_protosw(&homak_stream_protosw);
	return 0;
v6:
	proto_unregister(&homak6_stream_prot);
v4:
	proto_unregister(&homak_stream_prot);
carriers:
	homak_carriers_exit();
	return err;
}

void homak_streams_exit(void)
{
	inet_unregister_protosw(&homak_stream_protosw);
	inet6_unregister_protosw(&homak6_stream_protosw);
	homak_carriers_exit();
	proto_unregister(&homak6_stream_prot);
	proto_unregister(&homak_stream_prot);
}

MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET, 146, 1);
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET6, 146, 1);
