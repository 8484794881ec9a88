/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Connections that are kept full in one direction. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "requester.h"

/* Most calls for one event, so that other connections have their turn. */
#define CALLS 16

int flows_pace(const struct flows_config *config, int fd)
{
	unsigned long bytes = (unsigned long)(config->pace / 8);

	if (!bytes)
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes,
			  sizeof(bytes)) ?
		       -errno :
		       0;
}

int flows_bulk_event(struct flows_client *client, struct flows_conn *conn,
		     uint32_t events)
{
	const struct flows_config *config = client->config;
	bool sends = config->mode == FLOWS_SEND;
	ssize_t n;

	if (events & EPOLLERR)
		return -ECONNRESET;
	for (int i = 0; i < CALLS; i++) {
		n = sends ? send(conn->fd, client->buf, config->size,
				 MSG_NOSIGNAL) :
			    recv(conn->fd, client->buf, sizeof(client->buf), 0);
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!n)
			return -EPIPE;
		if (client->measuring) {
			conn->bytes += (uint64_t)n;
			client->result->bytes += (uint64_t)n;
		}
	}
	return 0;
}

void flows_bulk_tick(struct flows_client *client)
{
	for (uint32_t i = 0; i < client->config->connections; i++) {
		struct flows_conn *conn = &client->conns[i];

		homa_hist_record_n(&client->result->interval,
				   conn->bytes - conn->mark, 1);
		conn->mark = conn->bytes;
	}
}
