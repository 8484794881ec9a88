/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Kernel TCP as Homa's counterpart, in two ways. "tcp": one stream per peer
 * (or a fixed number) shared by all RPCs, as in the papers, where a short
 * message can wait behind a long one. "tcp-pool": an RPC has a connection to
 * itself for its life, so nothing waits in the application; connections are
 * opened before the run, more are opened ahead of need, and idle ones are
 * reused, the last used first because its window is open.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_conn.h"
#include "tcp_peers.h"
#include "tcp_setup.h"
#include "unix.h"

/* Most connections whose sockets a spinning endpoint reads in turn, without epoll. */
#define SPIN_CONNS 32
/* Number of empty polls after which a spinning server looks for new connections. */
#define SPIN_ACCEPT 256

static uint32_t max_message(const struct bench_config *config)
{
	return bench_is_unix(config) && bench_unix_type(config) == SOCK_SEQPACKET ?
		       UNIX_PACKET_MAX :
		       BENCH_MAX_MESSAGE;
}

static int pool_request(struct tcp_endpoint *ep, uint32_t index,
			const struct bench_frame *frame)
{
	struct tcp_conn *conn;
	int error = 0;

	do {
		conn = tcp_pool_pop(&ep->peers[index]);
	} while (conn && conn->error);
	if (!conn) {
		conn = tcp_peer_connect(ep, index, &error);
		if (!conn)
			return error;
	}
	error = tcp_ring_push(&conn->waiting, frame);
	if (!error)
		error = tcp_conn_send(conn, frame);
	if (error)
		conn->waiting.head = conn->waiting.tail;
	else
		tcp_pool_refill(ep, index);
	return error;
}

static int stream_request(struct tcp_endpoint *ep, uint32_t index,
			  const struct bench_frame *frame)
{
	struct tcp_peer *peer = &ep->peers[index];
	struct tcp_conn *conn;
	uint32_t i = peer->turn;
	int error = 0;

	if (++peer->turn == ep->base.config->connections)
		peer->turn = 0;
	conn = tcp_peer_stream(ep, index, i, &error);
	if (!conn)
		return error;
	error = tcp_ring_push(&conn->waiting, frame);
	if (error)
		return error;
	error = tcp_conn_send(conn, frame);
	/* the caller gets the error now, so poll must not tell it again */
	if (error)
		conn->waiting.tail--;
	return error;
}

static int tcp_request(struct bench_endpoint *base, uint32_t peer,
		       uint32_t size, uint32_t response, uint32_t cookie)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	struct bench_frame frame = { size, cookie, response };

	return ep->pool ? pool_request(ep, peer, &frame) :
			  stream_request(ep, peer, &frame);
}

void tcp_conn_message(struct tcp_conn *conn, const struct bench_frame *frame)
{
	struct tcp_endpoint *ep = conn->ep;
	struct bench_frame reply;

	if (conn->accepted) {
		reply.length = frame->response ? frame->response : frame->length;
		reply.cookie = frame->cookie;
		reply.response = 0;
		ep->base.served++;
		ep->base.served_rx_bytes += frame->length;
		ep->base.served_tx_bytes += reply.length;
		tcp_conn_send(conn, &reply);
		return;
	}
	if (tcp_ring_empty(&conn->waiting) ||
	    tcp_ring_first(&conn->waiting)->cookie != frame->cookie) {
		ep->base.protocol_errors++;
		tcp_conn_fail(conn, -EPROTO);
		return;
	}
	conn->waiting.head++;
	if (ep->pool)
		tcp_pool_push(&ep->peers[conn->peer], conn);
	ep->base.done(ep->base.arg, frame->cookie, 0, frame->length);
}

/* Closes the connections that failed, and fails their RPCs. */
static void bury(struct tcp_endpoint *ep)
{
	struct tcp_conn *conn;

	while ((conn = ep->doomed)) {
		ep->doomed = conn->next_doomed;
		if (!conn->accepted) {
			struct tcp_peer *peer = &ep->peers[conn->peer];

			peer->conn_count--;
			if (ep->pool)
				tcp_pool_remove(peer, conn);
			else if (peer->streams[conn->index] == conn)
				peer->streams[conn->index] = NULL;
		}
		while (!tcp_ring_empty(&conn->waiting)) {
			uint32_t cookie = tcp_ring_first(&conn->waiting)->cookie;

			conn->waiting.head++;
			ep->base.done(ep->base.arg, cookie, conn->error, 0);
		}
		tcp_conn_free(conn);
	}
}

static void flush_dirty(struct tcp_endpoint *ep)
{
	struct tcp_conn *conn;

	while ((conn = ep->dirty)) {
		ep->dirty = conn->next_dirty;
		conn->dirty = false;
		if (!conn->connecting && !conn->error)
			tcp_conn_flush(conn);
	}
}

static void accept_all(struct tcp_endpoint *ep)
{
	bool refuse;
	int fd;

	do {
		refuse = ep->conn_count >= ep->conn_limit;
		fd = tcp_setup_accept(ep->listen_fd, &ep->spare_fd, &refuse);
		if (fd >= 0 && tcp_conn_new(ep, fd, true, false, 0))
			ep->accepted_count++;
		ep->refused += refuse;
	} while (fd >= 0 || refuse);
}

static void connected(struct tcp_conn *conn)
{
	struct tcp_endpoint *ep = conn->ep;
	struct tcp_peer *peer = &ep->peers[conn->peer];
	int error = tcp_setup_connected(conn->fd);
	bool reserve = ep->pool && tcp_ring_empty(&conn->waiting);

	conn->connecting = false;
	if (reserve && peer->opening)
		peer->opening--;
	if (error) {
		tcp_conn_fail(conn, error);
		return;
	}
	if (reserve)
		tcp_pool_push(peer, conn);
	tcp_conn_flush(conn);
}

static int handle(struct tcp_conn *conn, uint32_t events)
{
	int n = 0;

	if (conn->error)
		return 0;
	if (conn->connecting) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			connected(conn);
		return 0;
	}
	if (events & EPOLLOUT)
		tcp_conn_flush(conn);
	if (!conn->error && (events & ~(uint32_t)EPOLLOUT))
		n = tcp_conn_read(conn, false);
	return n > 0 ? n : 0;
}

static int poll_events(struct tcp_endpoint *ep, uint64_t wait_ns)
{
	struct epoll_event events[64];
	int i, n, messages = 0;

	n = bench_epoll(ep->epfd, events, 64, wait_ns);
	for (i = 0; i < n; i++) {
		if (events[i].data.ptr == ep)
			accept_all(ep);
		else
			messages += handle(events[i].data.ptr, events[i].events);
	}
	return n < 0 ? n : messages;
}

/* Reads every socket in turn, which has the lowest latency with few connections. */
static int poll_reads(struct tcp_endpoint *ep)
{
	struct tcp_conn *conn, *next;
	int n, messages = 0;

	for (conn = ep->conns; conn; conn = next) {
		next = conn->next;
		if (conn->error || conn->connecting)
			continue;
		if (!tcp_ring_empty(&conn->out))
			tcp_conn_flush(conn);
		n = conn->error ? 0 : tcp_conn_read(conn, false);
		if (n > 0)
			messages += n;
	}
	if (messages)
		ep->idle_polls = 0;
	else if (++ep->idle_polls % SPIN_ACCEPT == 0)
		messages += poll_events(ep, 0);
	return messages;
}

/* Can this poll block in reading the only connection? */
static bool can_block(const struct tcp_endpoint *ep)
{
	return ep->conn_count == 1 && !ep->conns->error &&
	       !ep->conns->connecting && !ep->conns->writing;
}

static int tcp_poll(struct bench_endpoint *base, uint64_t wait_ns)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	enum bench_wait wait = base->config->wait;
	bool busy = wait == BENCH_WAIT_SPIN || wait == BENCH_WAIT_YIELD;
	int n = 0;

	if (ep->dirty)
		flush_dirty(ep);
	if (ep->doomed)
		bury(ep);
	if (wait == BENCH_WAIT_BLOCK && wait_ns && can_block(ep)) {
		n = tcp_conn_read(ep->conns, true);
		if (n == -EAGAIN)
			n = poll_events(ep, 0);
	} else if (busy && ep->conn_count && ep->conn_count <= SPIN_CONNS) {
		n = poll_reads(ep);
	} else {
		n = poll_events(ep, busy ? 0 : wait_ns);
	}
	if (!n && wait == BENCH_WAIT_YIELD && wait_ns)
		sched_yield();
	if (ep->dirty)
		flush_dirty(ep);
	if (ep->doomed)
		bury(ep);
	return n;
}

static int64_t tcp_report(struct bench_endpoint *base, cJSON *json)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	uint64_t segments = ep->retransmits, bytes = ep->retransmitted_bytes;
	const struct tcp_conn *conn;

	for (conn = ep->conns; conn; conn = conn->next)
		tcp_conn_retransmits(conn, &segments, &bytes);
	cJSON_AddNumberToObject(json, "connections", ep->conn_count);
	cJSON_AddNumberToObject(json, "opened", (double)ep->opened);
	cJSON_AddNumberToObject(json, "accepted", (double)ep->accepted_count);
	cJSON_AddNumberToObject(json, "refused", (double)ep->refused);
	cJSON_AddNumberToObject(json, "opened_during_run", (double)ep->grown);
	cJSON_AddNumberToObject(json, "writes", (double)ep->writes);
	cJSON_AddNumberToObject(json, "reads", (double)ep->reads);
	cJSON_AddNumberToObject(json, "retransmitted_segments", (double)segments);
	cJSON_AddNumberToObject(json, "retransmitted_bytes", (double)bytes);
	if (!bench_is_unix(base->config))
		tcp_setup_report(ep->base.config, json);
	return (int64_t)segments;
}

static void tcp_close(struct bench_endpoint *base)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	uint32_t i;

	while (ep->conns)
		tcp_conn_free(ep->conns);
	for (i = 0; ep->peers && i < base->config->peer_count; i++)
		free(ep->peers[i].streams);
	free(ep->peers);
	free(ep->buffer);
	if (ep->listen_fd >= 0)
		close(ep->listen_fd);
	if (ep->spare_fd >= 0)
		close(ep->spare_fd);
	if (ep->epfd >= 0)
		close(ep->epfd);
	free(ep);
}

static int tcp_open(struct bench_endpoint **out,
		    const struct bench_config *config, char *err, size_t errlen)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct tcp_endpoint *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep)
		return -ENOMEM;
	ep->base.config = config;
	ep->pool = strcmp(config->transport, "tcp-pool") == 0;
	ep->listen_fd = -1;
	ep->spare_fd = tcp_setup_spare();
	ep->buffer = malloc(TCP_READ_BYTES);
	ep->epfd = epoll_create1(EPOLL_CLOEXEC);
	ret = ep->buffer ? (ep->epfd < 0 ? -errno : 0) : -ENOMEM;
	if (!ret)
		ret = tcp_peers_open(ep, err, errlen);
	if (!ret)
		ret = tcp_setup_check(config, err, errlen);
	tcp_setup_limits(config, &ep->conn_limit, &ep->peer_limit);
	if (!ret && (config->role & BENCH_SERVER)) {
		ep->listen_fd =
			tcp_setup_listen(config, ep->base.where,
					 sizeof(ep->base.where), err, errlen);
		ret = ep->listen_fd < 0 ? ep->listen_fd : 0;
		event.data.ptr = ep;
		if (!ret &&
		    epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->listen_fd, &event))
			ret = -errno;
	}
	if (ret) {
		tcp_close(&ep->base);
		return ret;
	}
	*out = &ep->base;
	return 0;
}

const struct bench_transport bench_tcp = {
	.name = "tcp",
	.summary = "kernel TCP, one stream per peer shared by all RPCs",
	.max_message = max_message,
	.open = tcp_open,
	.prepare = tcp_streams_prepare,
	.request = tcp_request,
	.poll = tcp_poll,
	.report = tcp_report,
	.close = tcp_close,
};

const struct bench_transport bench_tcp_pool = {
	.name = "tcp-pool",
	.summary = "kernel TCP, a connection for each RPC in flight, reused",
	.max_message = max_message,
	.open = tcp_open,
	.prepare = tcp_pool_prepare,
	.request = tcp_request,
	.poll = tcp_poll,
	.report = tcp_report,
	.close = tcp_close,
};

const struct bench_transport bench_unix = {
	.name = "unix",
	.summary = "UNIX stream socket on one machine, addresses are @NAME",
	.max_message = max_message,
	.open = tcp_open,
	.prepare = tcp_streams_prepare,
	.request = tcp_request,
	.poll = tcp_poll,
	.report = tcp_report,
	.close = tcp_close,
};

const struct bench_transport bench_unix_packet = {
	.name = "unix-packet",
	.summary = "UNIX packet socket, one packet per message, @NAME",
	.max_message = max_message,
	.open = tcp_open,
	.prepare = tcp_streams_prepare,
	.request = tcp_request,
	.poll = tcp_poll,
	.report = tcp_report,
	.close = tcp_close,
};
