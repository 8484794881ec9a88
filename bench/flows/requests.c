/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests and responses. In the closed loop a response is the permission for the next
 * request; in the open loop requests are due at random times, whatever has been answered,
 * and a latency begins when the request was due.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "requester.h"

#define ZIPF_EXPONENT 0.9
#define SETS 0.1 /* share of writes among requests to the store */
#define STAMP 4u /* bytes of the number in an echo */

int flows_requests_init(struct flows_client *client)
{
	const struct flows_config *config = client->config;
	double sum = 0;

	if (config->mode != FLOWS_KV || config->one_key)
		return 0;
	client->zipf = calloc(config->keys, sizeof(*client->zipf));
	if (!client->zipf)
		return -ENOMEM;
	for (uint32_t i = 0; i < config->keys; i++) {
		sum += pow(i + 1.0, -ZIPF_EXPONENT);
		client->zipf[i] = sum;
	}
	return 0;
}

/* Draws a key; popular keys are drawn more often. */
static uint32_t draw_key(struct flows_client *client)
{
	uint32_t low = 0, high = client->config->keys - 1;
	double wanted;

	if (!client->zipf)
		return 0;
	wanted = homa_prng_double(&client->rng) * client->zipf[high];
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (client->zipf[mid] > wanted)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Write a request to @out. Return: its length */
static uint32_t write_request(struct flows_client *client,
			      struct flows_conn *conn, uint8_t *out, uint64_t due)
{
	const struct flows_config *config = client->config;
	struct flows_request *request =
		&conn->requests[conn->tail % config->depth];
	bool set;

	request->due_ns = due;
	request->stamp = conn->tail++;
	conn->sent++;
	if (config->mode == FLOWS_KV) {
		set = homa_prng_double(&client->rng) < SETS;
		return kv_request(out, draw_key(client), set, &request->left);
	}
	memset(out, 0, config->size < 64 ? config->size : 64);
	if (config->size >= STAMP)
		memcpy(out, &request->stamp, STAMP);
	request->left = config->size;
	return config->size;
}

/* Send @n bytes of the client's buffer behind those that wait already. */
static int push(struct flows_client *client, struct flows_conn *conn, uint32_t n)
{
	ssize_t sent = 0;

	if (!conn->out_len) {
		sent = send(conn->fd, client->buf, n, MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			return -errno;
		sent = sent < 0 ? 0 : sent;
	}
	if ((uint32_t)sent == n)
		return 0;
	n -= (uint32_t)sent;
	conn->out = realloc(conn->out, conn->out_len + n);
	if (!conn->out)
		return -ENOMEM;
	memcpy(conn->out + conn->out_len, client->buf + sent, n);
	conn->out_len += n;
	return flows_watch(client, conn, EPOLLIN | EPOLLOUT);
}

static int flush(struct flows_client *client, struct flows_conn *conn)
{
	ssize_t sent = send(conn->fd, conn->out, conn->out_len, MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN ? 0 : -errno;
	conn->out_len -= (uint32_t)sent;
	memmove(conn->out, conn->out + sent, conn->out_len);
	return conn->out_len ? 0 : flows_watch(client, conn, EPOLLIN);
}

static bool may_send(const struct flows_client *client,
		     const struct flows_conn *conn)
{
	const struct flows_config *config = client->config;

	return conn->tail - conn->head < config->depth &&
	       (!config->per_connection || conn->sent < config->per_connection);
}

int flows_requests_fill(struct flows_client *client, struct flows_conn *conn,
			uint64_t now)
{
	uint32_t n = 0;
	int rc;

	while (!client->config->rate && may_send(client, conn)) {
		n += write_request(client, conn, client->buf + n, now);
		if (n < FLOWS_MAX_SIZE && may_send(client, conn))
			continue;
		rc = push(client, conn, n);
		if (rc)
			return rc;
		n = 0;
	}
	return 0;
}

uint64_t flows_requests_due(struct flows_client *client, uint64_t now)
{
	const struct flows_config *config = client->config;
	double gap = 1e9 / config->rate;

	while (client->next_ns <= now) {
		struct flows_conn *conn;
		uint32_t tried = 0;

		do {
			conn = &client->conns[client->turn++ % config->connections];
		} while ((conn->fd < 0 || conn->connecting ||
			  !may_send(client, conn)) &&
			 ++tried < 64);
		/* All connections are full, so the request is sent late, which its latency
		 * includes. */
		if (conn->fd < 0 || conn->connecting || !may_send(client, conn))
			return gap < 1e6 ? (uint64_t)gap : 1000000;
		/* An error is found by the connection's next event. */
		(void)push(client, conn,
			   write_request(client, conn, client->buf,
					 client->next_ns));
		client->next_ns += (uint64_t)homa_prng_exp(&client->rng, gap);
	}
	return client->next_ns - now;
}

/* Records that the oldest request of @conn has its whole response. */
static void answered(struct flows_client *client, struct flows_conn *conn,
		     uint64_t now)
{
	struct flows_request *request =
		&conn->requests[conn->head % client->config->depth];

	conn->head++;
	client->result->all++;
	if (!client->measuring || request->due_ns < client->opens_ns)
		return;
	client->result->requests++;
	homa_hist_record_n(&client->result->latency, now - request->due_ns, 1);
	flows_parts_record(client->config, client->result,
			   now - client->opens_ns, now - request->due_ns);
}

static int take(struct flows_client *client, struct flows_conn *conn,
		uint32_t n, uint64_t now)
{
	const struct flows_config *config = client->config;
	const uint8_t *at = client->buf;

	if (client->measuring) {
		client->result->bytes += n;
		conn->bytes += n;
	}
	while (n) {
		struct flows_request *request =
			&conn->requests[conn->head % config->depth];
		uint32_t part;

		if (conn->head == conn->tail)
			/* the server sent more than was asked for */
			return -EBADMSG;
		part = n < request->left ? n : request->left;
		if (config->mode == FLOWS_ECHO && request->left == config->size &&
		    part >= STAMP && memcmp(at, &request->stamp, STAMP))
			client->result->wrong++;
		request->left -= part;
		at += part;
		n -= part;
		if (!request->left)
			answered(client, conn, now);
	}
	return 0;
}

int flows_requests_event(struct flows_client *client, struct flows_conn *conn,
			 uint32_t events)
{
	const struct flows_config *config = client->config;
	uint64_t now;
	ssize_t n;
	int rc = 0;

	if ((events & EPOLLOUT) && conn->out_len)
		rc = flush(client, conn);
	if (rc || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return rc;
	n = recv(conn->fd, client->buf, FLOWS_MAX_SIZE, 0);
	if (n <= 0)
		return !n ? -EPIPE : errno == EAGAIN ? 0 : -errno;
	now = flows_now();
	rc = take(client, conn, (uint32_t)n, now);
	if (rc)
		return rc;
	if (config->per_connection && conn->head == config->per_connection)
		return 1;
	return flows_requests_fill(client, conn, now);
}
