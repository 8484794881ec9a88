// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Bytes between programs and connections: send() and recv() of stream sockets, and waiting. */
#include <linux/sched/signal.h>

#include "homa_stream.h"
#include "homa_sockets.h"

void homak_stream_connected(struct sock *sk)
{
	struct homak_stream *stream = homak_stream(sk);

	if (stream->connected)
		return;
	stream->connected = true;
	sk->sk_state = TCP_ESTABLISHED;
}

void homak_stream_keepalive(struct sock *sk, int on)
{
	struct homak_conn *conn = homak_stream(sk)->conn;

	if (on && conn)
		homak_conn_delay(conn, (unsigned long)READ_ONCE(conn->idle) * HZ);
}

int homak_stream_wait(struct sock *sk, long *timeo, bool (*done)(struct sock *sk))
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	if (!*timeo)
		return -EAGAIN;
	add_wait_queue(sk_sleep(sk), &wait);
	release_sock(sk);
	if (!done(sk)) {
		if (signal_pending(current))
			err = sock_intr_errno(*timeo);
		else
			*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
	}
	lock_sock(sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* ---- send() ---- */

/* Returns why nothing can be sent, or 0. */
static int homak_send_stops(struct sock *sk)
{
	const struct homak_stream *stream = homak_stream(sk);
	/* It is looked at first, so that the error that came with it is not missed. */
	bool dead = stream->conn && homak_conn_dead(stream->conn);
	int err = sock_error(sk);

	if (err)
		return err;
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (!stream->conn)
		return sk->sk_state == TCP_LISTEN ? -EPIPE : -ENOTCONN;
	return dead ? -EPIPE : 0;
}

/* Returns how many bytes may go; if none, the socket is told when that changes. */
static u32 homak_send_room(struct sock *sk)
{
	struct homak_conn *conn = homak_stream(sk)->conn;
	u32 room;

	spin_lock(&conn->lock);
	room = homak_conn_room(conn, (u32)READ_ONCE(sk->sk_sndbuf));
	if (!room)
		conn->want_room = true;
	spin_unlock(&conn->lock);
	return room;
}

static bool homak_send_done(struct sock *sk)
{
	return homak_send_room(sk) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN ||
	       homak_conn_dead(homak_stream(sk)->conn);
}

/* Wakes the threads that wait to send a little later, so that a program which was told EAGAIN
 * tries again even if no answer comes; and not before, so that it does not do so all the time. */
static void homak_send_later(struct homak_conn *conn)
{
	spin_lock(&conn->lock);
	conn->want_room = true;
	conn->send_later = true;
	spin_unlock(&conn->lock);
	homak_conn_delay(conn, HOMAK_SAY_LATER);
}

/* Sends some of the bytes. Returns how many, or an error. */
static int homak_send_some(struct sock *sk, struct msghdr *msg, size_t left,
			   long *timeo)
{
	struct homak_conn *conn = homak_stream(sk)->conn;
	struct iov_iter from = msg->msg_iter;
	u32 n = (u32)min_t(size_t, homak_send_room(sk), left);
	int err;

	if (!n) {
		err = homak_stream_wait(sk, timeo, homak_send_done);
		return err;
	}
	err = homak_say_bytes(conn, &msg->msg_iter, n);
	if (!err)
		return (int)n;
	msg->msg_iter = from;
	if (err != -ENOBUFS)
		return err;
	/* Objects are short; there are some in a moment. */
	if (!*timeo)
		homak_send_later(conn);
	/* Who reads meanwhile may be what it waits for. */
	release_sock(sk);
	err = homak_wait_tick(conn->carrier->hsk, timeo);
	lock_sock(sk);
	return err;
}

int homak_stream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	size_t done = 0;
	long timeo;
	int rc;

	if (msg->msg_flags & (MSG_OOB | MSG_FASTOPEN))
		return -EOPNOTSUPP;
	lock_sock(sk);
	timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	do {
		rc = homak_send_stops(sk);
		if (!rc && done < len) {
			rc = homak_send_some(sk, msg, len - done, &timeo);
			if (rc > 0)
				done += (size_t)rc;
		}
	} while (rc >= 0 && done < len);
	release_sock(sk);
	if (done)
		return (int)done;
	if (rc == -EPIPE && !(msg->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return rc;
}

/* ---- recv() ---- */

static u64 homak_recv_ready(struct homak_conn *conn, u64 from, bool *end)
{
	u64 n;

	spin_lock(&conn->lock);
	n = conn->ring.next - from;
	*end = homak_conn_at_end(conn);
	spin_unlock(&conn->lock);
	return n;
}

static bool homak_recv_done(struct sock *sk)
{
	struct homak_conn *conn = homak_stream(sk)->conn;
	bool end;

	/* A thread that has peeked at all bytes does not wait by this function, but by ticks. */
	return homak_recv_ready(conn, READ_ONCE(conn->ring.read), &end) ||
	       end || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ||
	       homak_conn_dead(conn);
}

/* Takes note that the program has read up to @upto. */
static void homak_recv_move(struct homak_conn *conn, u64 upto)
{
	homak_ring_free(&conn->ring, upto);
	spin_lock(&conn->lock);
	WRITE_ONCE(conn->ring.read, upto);
	spin_unlock(&conn->lock);
	homak_say_edge(conn);
}

/* struct homak_reading - one recv(). Written by: the thread that calls it. */
struct homak_reading {
	/* The program's memory. */
	struct iov_iter *to;
	/* The number of bytes that fit into it. */
	size_t len;
	/* The number of bytes that were read. */
	size_t done;
	/* The number of bytes with which the call returns, although more would fit. */
	size_t least;
	/* The offset in the stream of the next byte to read. */
	u64 at;
	/* The time that the call may still wait, in jiffies. */
	long timeo;
	/* The flags of the call, MSG_PEEK and others. */
	int flags;
};

/* Another thread may have read while this one waited. False: what this one has seen is gone
 * from the stream, so it ends with that. */
static bool homak_recv_sync(struct homak_reading *r, u64 read)
{
	if (r->flags & MSG_PEEK && r->at == read + r->done)
		return true;
	if (r->flags & MSG_PEEK && r->done)
		return false;
	r->at = read;
	return true;
}

/* Reads what is there. Returns 1 if the call goes on waiting, 0 if it ends, or an error. */
static int homak_recv_some(struct sock *sk, struct homak_reading *r)
{
	struct homak_conn *conn = homak_stream(sk)->conn;
	/* It is looked at first, so that neither bytes nor an error that came before are missed:
	 * a program that is told 0 takes that for the end of all bytes. */
	bool dead = homak_conn_dead(conn), end;
	size_t n = (size_t)min_t(u64, homak_recv_ready(conn, r->at, &end),
				 r->len - r->done);
	size_t some = n;
	int err;

	if (n) {
		if (!(r->flags & MSG_TRUNC))
			some = homak_ring_copy(&conn->ring, r->at, n, r->to);
		r->at += some;
		r->done += some;
		if (some && !(r->flags & MSG_PEEK))
			homak_recv_move(conn, r->at);
		if (some < n)
			return -EFAULT;
		return r->done < r->least;
	}
	if (r->done >= r->least || end || sk->sk_shutdown & RCV_SHUTDOWN)
		return 0;
	if (r->done && sk->sk_err)
		return 0;
	err = sock_error(sk);
	if (err)
		return err;
	return !dead;
}

static int homak_recv_locked(struct sock *sk, struct homak_reading *r)
{
	int rc;

	if (!homak_stream(sk)->conn)
		return -ENOTCONN;
	for (;;) {
		if (!homak_recv_sync(r, homak_stream(sk)->conn->ring.read))
			return 0;
		rc = homak_recv_some(sk, r);
		if (rc <= 0)
			return rc;
		/* What a peek waits for does not show in homak_recv_done(). */
		if (r->flags & MSG_PEEK && r->done) {
			release_sock(sk);
			rc = homak_wait_tick(NULL, &r->timeo);
			lock_sock(sk);
		} else {
			rc = homak_stream_wait(sk, &r->timeo, homak_recv_done);
		}
		if (rc)
			return rc;
	}
}

int homak_stream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
			 int flags)
{
	struct homak_reading r = {
		.to = &msg->msg_iter,
		.len = min_t(size_t, len, INT_MAX),
		.flags = flags,
	};
	struct sock *sk = sock->sk;
	int rc;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return flags & MSG_OOB ? -EINVAL : -EAGAIN;
	msg->msg_namelen = 0;
	lock_sock(sk);
	r.timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	r.least = (size_t)sock_rcvlowat(sk, flags & MSG_WAITALL, (int)r.len);
	if (!r.len)
		r.least = 0;
	rc = homak_recv_locked(sk, &r);
	release_sock(sk);
	return r.done ? (int)r.done : rc;
}
