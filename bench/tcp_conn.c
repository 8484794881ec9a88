/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Framing, reading and writing on one connection; see tcp_conn.h. Sockets are
 * in blocking mode and every call but a deliberate blocking read says
 * MSG_DONTWAIT, so that the fastest way to wait for one connection (a blocking
 * read) can be measured too.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tcp_conn.h"

/* Most messages in a writev() when coalescing. */
#define BATCH 64

int tcp_ring_push(struct tcp_ring *ring, const struct bench_frame *frame)
{
	struct bench_frame *items;
	uint32_t i, used = ring->tail - ring->head;

	if (used == ring->room) {
		uint32_t room = ring->room ? 2 * ring->room : 16;

		items = malloc(room * sizeof(*items));
		if (!items)
			return -ENOMEM;
		for (i = 0; i < used; i++)
			items[i] =
				ring->items[(ring->head + i) & (ring->room - 1)];
		free(ring->items);
		ring->items = items;
		ring->room = room;
		ring->head = 0;
		ring->tail = used;
	}
	ring->items[ring->tail++ & (ring->room - 1)] = *frame;
	return 0;
}

struct tcp_conn *tcp_conn_new(struct tcp_endpoint *ep, int fd, bool accepted,
			      bool connecting, uint32_t peer)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct tcp_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		goto fail;
	conn->ep = ep;
	conn->fd = fd;
	conn->accepted = accepted;
	conn->connecting = connecting;
	conn->writing = connecting;
	conn->peer = peer;
	event.data.ptr = conn;
	if (connecting)
		event.events |= EPOLLOUT;
	if (epoll_ctl(ep->epfd, EPOLL_CTL_ADD, fd, &event))
		goto fail;
	conn->next = ep->conns;
	if (conn->next)
		conn->next->prev = conn;
	ep->conns = conn;
	ep->conn_count++;
	return conn;
fail:
	free(conn);
	close(fd);
	return NULL;
}

void tcp_conn_retransmits(const struct tcp_conn *conn, uint64_t *segments,
			  uint64_t *bytes)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	*segments += info.tcpi_total_retrans;
	*bytes += info.tcpi_bytes_retrans;
}

void tcp_conn_free(struct tcp_conn *conn)
{
	struct tcp_endpoint *ep = conn->ep;

	tcp_conn_retransmits(conn, &ep->retransmits, &ep->retransmitted_bytes);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		ep->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	ep->conn_count--;
	close(conn->fd);
	free(conn->out.items);
	free(conn->waiting.items);
	free(conn);
}

void tcp_conn_fail(struct tcp_conn *conn, int error)
{
	if (conn->doomed)
		return;
	conn->error = error;
	conn->doomed = true;
	conn->next_doomed = conn->ep->doomed;
	conn->ep->doomed = conn;
}

static void want_write(struct tcp_conn *conn, bool on)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };

	if (conn->writing == on)
		return;
	if (on)
		event.events |= EPOLLOUT;
	conn->writing = on;
	epoll_ctl(conn->ep->epfd, EPOLL_CTL_MOD, conn->fd, &event);
}

/* Writes one message, from @sent on, with one system call; returns the bytes taken, or a
 * negative errno. */
static ssize_t write_frame(struct tcp_conn *conn,
			   const struct bench_frame *frame, uint32_t sent)
{
	uint8_t *bytes = bench_frame_put(frame);
	ssize_t n;

	do {
		n = send(conn->fd, bytes + sent,
			 BENCH_FRAME_BYTES + frame->length - sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	conn->ep->writes++;
	return n < 0 ? -errno : n;
}

/* Writes many messages with one system call; returns the bytes taken, or a negative
 * errno. */
static ssize_t write_batch(struct tcp_conn *conn)
{
	uint8_t heads[BATCH][BENCH_FRAME_BYTES];
	struct iovec iov[2 * BATCH];
	struct msghdr msg = { .msg_iov = iov };
	uint32_t i, skip = conn->out_sent, n = 0;
	ssize_t got;

	for (i = conn->out.head; i != conn->out.tail && n < BATCH; i++, n++) {
		struct bench_frame *f =
			&conn->out.items[i & (conn->out.room - 1)];
		uint32_t head =
			skip < BENCH_FRAME_BYTES ? skip : BENCH_FRAME_BYTES;

		memcpy(heads[n], bench_frame_put(f), BENCH_FRAME_BYTES);
		iov[2 * n].iov_base = heads[n] + head;
		iov[2 * n].iov_len = BENCH_FRAME_BYTES - head;
		iov[2 * n + 1].iov_base = bench_payload;
		iov[2 * n + 1].iov_len = f->length - (skip - head);
		skip = 0;
	}
	msg.msg_iovlen = 2 * n;
	do {
		got = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (got < 0 && errno == EINTR);
	conn->ep->writes++;
	return got < 0 ? -errno : got;
}

/* Takes @n sent bytes off the queue. */
static void advance(struct tcp_conn *conn, size_t n)
{
	n += conn->out_sent;
	while (!tcp_ring_empty(&conn->out)) {
		size_t bytes =
			BENCH_FRAME_BYTES + tcp_ring_first(&conn->out)->length;

		if (n < bytes)
			break;
		n -= bytes;
		conn->out.head++;
	}
	conn->out_sent = (uint32_t)n;
}

void tcp_conn_flush(struct tcp_conn *conn)
{
	ssize_t n;

	while (!conn->error && !tcp_ring_empty(&conn->out)) {
		if (conn->ep->base.config->coalesce)
			n = write_batch(conn);
		else
			n = write_frame(conn, tcp_ring_first(&conn->out),
					conn->out_sent);
		if (n == -EAGAIN) {
			want_write(conn, true);
			return;
		}
		if (n < 0) {
			tcp_conn_fail(conn, (int)n);
			return;
		}
		advance(conn, (size_t)n);
	}
	want_write(conn, false);
}

int tcp_conn_send(struct tcp_conn *conn, const struct bench_frame *frame)
{
	struct tcp_endpoint *ep = conn->ep;
	ssize_t n = 0;
	int ret;

	if (conn->error)
		return conn->error;
	if (ep->base.config->coalesce && !conn->dirty) {
		conn->dirty = true;
		conn->next_dirty = ep->dirty;
		ep->dirty = conn;
	}
	if (!ep->base.config->coalesce && !conn->connecting &&
	    tcp_ring_empty(&conn->out)) {
		n = write_frame(conn, frame, 0);
		if (n == BENCH_FRAME_BYTES + frame->length)
			return 0;
		if (n < 0 && n != -EAGAIN) {
			tcp_conn_fail(conn, (int)n);
			return (int)n;
		}
		conn->out_sent = n < 0 ? 0 : (uint32_t)n;
		want_write(conn, true);
	}
	ret = tcp_ring_push(&conn->out, frame);
	if (ret)
		tcp_conn_fail(conn, ret);
	return ret;
}

/* Splits what was read into messages. */
static int parse(struct tcp_conn *conn, const uint8_t *bytes, size_t n)
{
	int messages = 0;

	while (n) {
		uint32_t take;

		if (!conn->left) {
			take = BENCH_FRAME_BYTES - conn->head_have;
			if (take > n)
				take = (uint32_t)n;
			memcpy(conn->head + conn->head_have, bytes, take);
			conn->head_have += take;
			bytes += take;
			n -= take;
			if (conn->head_have < BENCH_FRAME_BYTES)
				break;
			conn->head_have = 0;
			if (!bench_frame_get(&conn->frame, conn->head)) {
				conn->ep->base.protocol_errors++;
				tcp_conn_fail(conn, -EPROTO);
				break;
			}
			conn->left = conn->frame.length;
			continue;
		}
		take = conn->left < n ? conn->left : (uint32_t)n;
		conn->left -= take;
		bytes += take;
		n -= take;
		if (!conn->left) {
			messages++;
			tcp_conn_message(conn, &conn->frame);
			if (conn->error)
				break;
		}
	}
	return messages;
}

int tcp_conn_read(struct tcp_conn *conn, bool block)
{
	struct tcp_endpoint *ep = conn->ep;
	ssize_t n;

	n = recv(conn->fd, ep->buffer, TCP_READ_BYTES, block ? 0 : MSG_DONTWAIT);
	if (n > 0) {
		ep->reads++;
		return parse(conn, ep->buffer, (size_t)n);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	tcp_conn_fail(conn, n < 0 ? -errno : -ECONNRESET);
	return 0;
}
