/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Opens the connections, a limited number at a time, and runs the loop. The window opens a
 * while after all are established. A connection that ends is replaced, and counted unless
 * that was the plan. Marks say when the window opens and closes to an emulator that counts
 * instructions (bench/kernel/insn_count.c); elsewhere they do nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>

#include "../kernel/mark.h"
#include "requester.h"

#define EVENTS 256
/* most connections that are being opened at the same time */
#define PENDING 256u
#define FAILURES 1000u /* number of failed connections that ends the run */
#define REFUSED_US 5000

int flows_watch(struct flows_client *client, struct flows_conn *conn,
		uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };
	int op = conn->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (conn->watched == events)
		return 0;
	conn->watched = events;
	return epoll_ctl(client->epoll, op, conn->fd, &event) ? -errno : 0;
}

static int begin(struct flows_client *client, struct flows_conn *conn)
{
	const struct flows_config *config = client->config;
	struct sockaddr_storage addr = config->addr;
	uint16_t port =
		htons((uint16_t)(config->port + conn->index % config->ports));
	bool v4 = addr.ss_family == AF_INET;
	int rc, one = 1;

	conn->fd = socket(addr.ss_family,
			  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return -errno;
	if (v4)
		((struct sockaddr_in *)&addr)->sin_port = port;
	else
		((struct sockaddr_in6 *)&addr)->sin6_port = port;
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	rc = flows_pace(config, conn->fd);
	if (rc)
		return rc;
	conn->connecting = true;
	conn->since_ns = flows_now();
	conn->watched = 0;
	conn->head = conn->tail = conn->sent = conn->out_len = 0;
	client->pending++;
	if (connect(conn->fd, (struct sockaddr *)&addr,
		    v4 ? sizeof(struct sockaddr_in) :
			 sizeof(struct sockaddr_in6)) &&
	    errno != EINPROGRESS)
		return -errno;
	return flows_watch(client, conn, EPOLLOUT);
}

static void finish(struct flows_client *client, struct flows_conn *conn)
{
	if (conn->fd < 0)
		return;
	client->pending -= conn->connecting;
	client->open -= !conn->connecting;
	conn->connecting = false;
	close(conn->fd);
	conn->fd = -1;
}

/* Replaces a connection that has ended, by @error, or (0) as planned. */
static int replace(struct flows_client *client, struct flows_conn *conn, int error)
{
	finish(client, conn);
	/* The server had not started when it was tried, so this is not counted as a failure. The
	 * answer may come after that to a later try. */
	if (error == -ECONNREFUSED && !client->opens_ns) {
		usleep(REFUSED_US);
		return begin(client, conn);
	}
	if (error && (++client->result->failed >= FAILURES || !client->measuring))
		return error;
	return begin(client, conn);
}

static int established(struct flows_client *client, struct flows_conn *conn)
{
	enum flows_mode mode = client->config->mode;
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	if (error)
		return -error;
	conn->connecting = false;
	client->pending--;
	client->open++;
	client->result->opened++;
	if (mode == FLOWS_SEND)
		return 0;
	error = flows_watch(client, conn, EPOLLIN);
	if (error || mode == FLOWS_RECEIVE)
		return error;
	return flows_requests_fill(client, conn, conn->since_ns);
}

static int on_event(struct flows_client *client, struct flows_conn *conn,
		    uint32_t events)
{
	enum flows_mode mode = client->config->mode;
	int rc;

	if (conn->fd < 0)
		return 0;
	if (conn->connecting)
		rc = established(client, conn);
	else if (mode == FLOWS_SEND || mode == FLOWS_RECEIVE)
		rc = flows_bulk_event(client, conn, events);
	else
		rc = flows_requests_event(client, conn, events);
	if (!rc)
		return 0;
	return replace(client, conn, rc < 0 ? rc : 0);
}

static int open_more(struct flows_client *client)
{
	while (client->begun < client->config->connections &&
	       client->pending < PENDING) {
		int rc = begin(client, &client->conns[client->begun++]);

		if (rc)
			return rc;
	}
	return 0;
}

/* Moves the window; returns how long the loop may sleep, in ns. */
static uint64_t schedule(struct flows_client *client, uint64_t now)
{
	const struct flows_config *config = client->config;
	uint64_t sleep = FLOWS_INTERVAL_NS, due;

	if (!client->opens_ns && client->open == config->connections) {
		client->opens_ns = now + config->warmup_ns;
		if (client->opens_ns < config->measure_at_ns)
			client->opens_ns = config->measure_at_ns;
		client->closes_ns = client->opens_ns + config->duration_ns;
		client->next_ns = client->opens_ns - config->warmup_ns;
	}
	if (!client->opens_ns)
		return sleep;
	if (!client->measuring && now >= client->opens_ns) {
		client->measuring = true;
		client->opens_ns = now;
		client->interval_ns = now + FLOWS_INTERVAL_NS;
		MARK(MARK_BEGIN);
	}
	due = client->measuring ? client->closes_ns : client->opens_ns;
	if (due - now < sleep)
		sleep = due - now;
	if (client->measuring && now >= client->interval_ns) {
		flows_bulk_tick(client);
		client->interval_ns += FLOWS_INTERVAL_NS;
	}
	if (config->rate) {
		due = flows_requests_due(client, now);
		sleep = due < sleep ? due : sleep;
	}
	return sleep;
}

static int wait(struct flows_client *client, struct epoll_event *events,
		uint64_t sleep)
{
	struct timespec time = { .tv_sec = (time_t)(sleep / FLOWS_NS_PER_S),
				 .tv_nsec = (long)(sleep % FLOWS_NS_PER_S) };
	int n = epoll_pwait2(client->epoll, events, EVENTS, &time, NULL);

	return n < 0 && errno != EINTR ? -errno : n < 0 ? 0 : n;
}

static int loop(struct flows_client *client)
{
	uint64_t began = flows_now(), now, sleep;
	struct epoll_event events[EVENTS];
	int n, rc = 0;

	for (;;) {
		if (!rc)
			rc = open_more(client);
		now = flows_now();
		if (client->measuring && now >= client->closes_ns) {
			MARK(MARK_END);
			return 0;
		}
		if (rc)
			return rc;
		if (!client->opens_ns && now - began > client->config->timeout_ns)
			return -ETIMEDOUT;
		sleep = schedule(client, now);
		n = wait(client, events, sleep);
		if (n < 0)
			return n;
		for (int i = 0; i < n && !rc; i++)
			rc = on_event(client, events[i].data.ptr,
				      events[i].events);
	}
}

static void sum_up(struct flows_client *client)
{
	double sum = 0, squares = 0;

	client->result->opened_ns = client->opens_ns;
	client->result->window_ns = flows_now() - client->opens_ns;
	for (uint32_t i = 0; i < client->config->connections; i++) {
		double bytes = (double)client->conns[i].bytes;

		sum += bytes;
		squares += bytes * bytes;
	}
	if (squares > 0)
		client->result->jain =
			sum * sum / (client->config->connections * squares);
}

static int prepare(struct flows_client *client)
{
	const struct flows_config *config = client->config;

	homa_prng_seed(&client->rng, config->seed, 0);
	client->conns = calloc(config->connections, sizeof(*client->conns));
	client->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!client->conns || client->epoll < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < config->connections; i++) {
		struct flows_conn *conn = &client->conns[i];

		conn->fd = -1;
		conn->index = i;
		conn->requests = calloc(config->depth, sizeof(*conn->requests));
		if (!conn->requests)
			return -ENOMEM;
	}
	return flows_requests_init(client);
}

static void release(struct flows_client *client)
{
	for (uint32_t i = 0; client->conns && i < client->config->connections;
	     i++) {
		finish(client, &client->conns[i]);
		free(client->conns[i].requests);
		free(client->conns[i].out);
	}
	if (client->epoll >= 0)
		close(client->epoll);
	free(client->conns);
	free(client->zipf);
	free(client);
}

int flows_load(const struct flows_config *config, struct flows_result *result)
{
	struct flows_client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client)
		return -ENOMEM;
	client->config = config;
	client->result = result;
	client->epoll = -1;
	rc = prepare(client);
	if (!rc)
		rc = loop(client);
	if (rc)
		fprintf(stderr,
			"homa-flows: %s; %u of %u connections are open, %llu have failed\n",
			strerror(-rc), client->open, config->connections,
			(unsigned long long)result->failed);
	else
		sum_up(client);
	release(client);
	return rc;
}
