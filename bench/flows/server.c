/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The server: one thread, one epoll set. What cannot be sent at once waits in a buffer of
 * the connection, and nothing more is read from it until that has gone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>

#include "flow_load.h"
#include "kv.h"

#define EVENTS 256
#define CHUNK 65536u

/**
 * struct conn - an accepted connection, or a listening socket
 * @fd: Its socket.
 * @listening: It is a listening socket.
 * @watched: The epoll events that it is registered for.
 * @in_len: The number of bytes in @half.
 * @out_len: The number of bytes in @rest.
 * @toward: Bytes of the message whose work has not been done yet.
 * @half: The beginning of a request whose end has not come.
 * @rest: Responses that did not fit into the socket when they were sent.
 */
struct conn {
	int fd;
	bool listening;
	uint32_t watched;
	uint32_t in_len;
	uint32_t out_len;
	uint32_t toward;
	uint8_t half[KV_SET_SIZE];
	uint8_t *rest;
};

struct server {
	const struct flows_config *config;
	int epoll;
	struct kv_store *store;
	uint8_t in[CHUNK];
	uint8_t out[2 * CHUNK];
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void end_conn(struct conn *conn)
{
	close(conn->fd);
	free(conn->rest);
	free(conn);
}

static int watch(struct server *server, struct conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };
	int op = conn->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (conn->watched == events)
		return 0;
	conn->watched = events;
	return epoll_ctl(server->epoll, op, conn->fd, &event) ? -errno : 0;
}

static int add(struct server *server, int fd, bool listening)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	bool source = server->config->mode == FLOWS_RECEIVE && !listening;
	int rc;

	if (!conn) {
		close(fd);
		return -ENOMEM;
	}
	conn->fd = fd;
	conn->listening = listening;
	rc = watch(server, conn, source ? EPOLLIN | EPOLLOUT : EPOLLIN);
	if (rc)
		end_conn(conn);
	return rc;
}

static void accept_all(struct server *server, int listener)
{
	int fd, one = 1;

	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (flows_pace(server->config, fd)) {
			close(fd);
			return;
		}
		if (add(server, fd, false))
			return;
	}
}

/* Sends a response and keeps what did not fit. Returns 0, or a negative errno if the
 * connection is over. */
static int answer(struct server *server, struct conn *conn,
		  const uint8_t *bytes, size_t n)
{
	ssize_t sent = send(conn->fd, bytes, n, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN)
		return -errno;
	sent = sent < 0 ? 0 : sent;
	conn->out_len = (uint32_t)(n - (size_t)sent);
	if (!conn->out_len)
		return watch(server, conn, EPOLLIN);
	if (!conn->rest)
		conn->rest = malloc(2 * CHUNK);
	if (!conn->rest)
		return -ENOMEM;
	memmove(conn->rest, bytes + sent, conn->out_len);
	return watch(server, conn, EPOLLOUT);
}

static void work(const struct server *server, struct conn *conn, size_t n)
{
	uint32_t size = server->config->size;

	if (!server->config->work)
		return;
	conn->toward += (uint32_t)n;
	for (; conn->toward >= size; conn->toward -= size)
		flows_work(server->config->work);
}

/* Answers all whole requests in @in, each longer than half of its response, and keeps the
 * rest. */
static int serve_kv(struct server *server, struct conn *conn, const uint8_t *in,
		    size_t len)
{
	size_t used, out = 0;
	int n;

	for (;; in += used, len -= used) {
		n = kv_answer(server->store, in, len, &used, server->out + out);
		if (n < 0)
			return -EBADMSG;
		if (!n)
			break;
		out += (size_t)n;
	}
	conn->in_len = (uint32_t)len;
	memcpy(conn->half, in, len);
	return out ? answer(server, conn, server->out, out) : 0;
}

static int serve(struct server *server, struct conn *conn)
{
	enum flows_mode mode = server->config->mode;
	uint32_t old = conn->in_len;
	ssize_t n;

	if (old)
		memcpy(server->in, conn->half, old);
	n = recv(conn->fd, server->in + old, CHUNK - old, 0);
	if (n <= 0)
		return !n ? -EPIPE : errno == EAGAIN ? 0 : -errno;
	work(server, conn, (size_t)n);
	if (mode == FLOWS_KV)
		return serve_kv(server, conn, server->in, old + (size_t)n);
	if (mode == FLOWS_ECHO)
		return answer(server, conn, server->in, (size_t)n);
	return 0;
}

/* Sends messages until the socket takes no more; FLOWS_RECEIVE. */
static int produce(struct server *server, struct conn *conn)
{
	uint32_t size = server->config->size;
	ssize_t n;

	for (int i = 0; i < 16; i++) {
		n = send(conn->fd, server->out, size, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		work(server, conn, (size_t)n);
	}
	return 0;
}

static void on_event(struct server *server, struct conn *conn, uint32_t events)
{
	int rc = 0;

	if (conn->listening) {
		accept_all(server, conn->fd);
		return;
	}
	if (events & EPOLLOUT)
		rc = server->config->mode == FLOWS_RECEIVE ?
			     produce(server, conn) :
			     answer(server, conn, conn->rest, conn->out_len);
	if (!rc && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		rc = serve(server, conn);
	if (rc)
		end_conn(conn);
}

static int listen_at(const struct flows_config *config, uint32_t number)
{
	struct sockaddr_storage addr = config->addr;
	uint16_t port = htons((uint16_t)(config->port + number));
	bool v4 = addr.ss_family == AF_INET;
	int fd = socket(addr.ss_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	if (v4)
		((struct sockaddr_in *)&addr)->sin_port = port;
	else
		((struct sockaddr_in6 *)&addr)->sin6_port = port;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr,
		 v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) ||
	    listen(fd, 4096)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

static int loop(struct server *server)
{
	struct epoll_event events[EVENTS];
	int n;

	while (!ended) {
		n = epoll_wait(server->epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			on_event(server, events[i].data.ptr, events[i].events);
	}
	return 0;
}

int flows_serve(const struct flows_config *config)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct server *server = calloc(1, sizeof(*server));
	int fd, rc = server ? 0 : -ENOMEM;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!rc) {
		server->config = config;
		server->epoll = epoll_create1(EPOLL_CLOEXEC);
		server->store =
			config->mode == FLOWS_KV ? kv_new(config->keys) : NULL;
		if (server->epoll < 0 ||
		    (config->mode == FLOWS_KV && !server->store))
			rc = -ENOMEM;
	}
	for (uint32_t i = 0; !rc && i < config->ports; i++) {
		fd = listen_at(config, i);
		rc = fd < 0 ? fd : add(server, fd, true);
	}
	if (!rc) {
		puts("ready");
		fflush(stdout);
		rc = loop(server);
	}
	if (rc)
		fprintf(stderr, "homa-flows: the server cannot serve: %s\n",
			strerror(-rc));
	if (server)
		kv_free(server->store);
	free(server);
	return rc ? 1 : 0;
}
