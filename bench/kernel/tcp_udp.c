// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The rivals: kernel TCP on one connection without Nagle's algorithm, and UDP.
 * Each message is one call on either side; TCP calls again only for the rest of
 * a message that arrived in pieces. Responses come in the order of requests, so
 * the slot of a response is known by counting.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpcs.h"

static int sock = -1;
static uint32_t next_slot;
static char out[RPCS_MAX_MESSAGE], in[RPCS_MAX_MESSAGE];

static void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		rpcs_die("setsockopt %d %d", level, name);
}

static void prepare(int fd, const struct rpcs_config *config, bool tcp)
{
	if (tcp)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (config->sndbuf) {
		set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)config->sndbuf);
		set_option(fd, SOL_SOCKET, SO_RCVBUF, (int)config->sndbuf);
	}
}

static void transmit(int fd, uint32_t length)
{
	uint32_t done = 0;

	while (done < length) {
		ssize_t n = send(fd, out + done, length - done, 0);

		if (n < 0 && errno != EINTR)
			rpcs_die("send");
		if (n > 0)
			done += (uint32_t)n;
	}
}

/* Receives a whole message; returns false if the other end has closed. */
static bool collect(int fd, uint32_t length, const struct rpcs_config *config)
{
	int flags = rpcs_wait_flags(config);
	uint64_t since = 0;
	uint32_t done = 0;

	/* The kernel is told to wait for the rest of a long message in one call. */
	if (!flags && length > 65536)
		flags = MSG_WAITALL;
	while (done < length) {
		ssize_t n = recv(fd, in + done, length - done, flags);

		if (n > 0)
			done += (uint32_t)n;
		else if (n == 0)
			return false;
		else if (errno == EAGAIN)
			flags = rpcs_wait_turn(config, &since);
		else if (errno != EINTR)
			rpcs_die("recv");
	}
	return true;
}

static int new_socket(const struct rpcs_config *config, bool tcp)
{
	int fd = socket(config->peer.ss_family, tcp ? SOCK_STREAM : SOCK_DGRAM,
			0);

	if (fd < 0)
		rpcs_die("socket");
	prepare(fd, config, tcp);
	return fd;
}

static void start_server(const struct rpcs_config *config, bool tcp)
{
	sock = new_socket(config, tcp);
	if (tcp)
		set_option(sock, SOL_SOCKET, SO_REUSEADDR, 1);
	rpcs_bind(sock, config);
	if (tcp && listen(sock, 1))
		rpcs_die("listen");
}

static void connect_to(const struct rpcs_config *config, bool tcp)
{
	sock = new_socket(config, tcp);
	if (connect(sock, (const struct sockaddr *)&config->peer, config->peerlen))
		rpcs_die("connect to %s", config->address);
}

static void serve_on(int fd, const struct rpcs_config *config)
{
	while (collect(fd, config->request, config))
		transmit(fd, config->response);
}

static void tcp_listen(const struct rpcs_config *config)
{
	start_server(config, true);
}

static void tcp_serve(const struct rpcs_config *config)
{
	int fd = accept(sock, NULL, NULL);

	if (fd < 0)
		rpcs_die("accept");
	prepare(fd, config, true);
	serve_on(fd, config);
	close(fd);
}

static void tcp_connect(const struct rpcs_config *config)
{
	connect_to(config, true);
}

static void udp_listen(const struct rpcs_config *config)
{
	start_server(config, false);
}

/* Serves UDP. The socket is connected to the first client, as a fair rival's is. */
static void udp_serve(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);

	if (recvfrom(sock, in, sizeof(in), MSG_PEEK, (struct sockaddr *)&from,
		     &length) < 0)
		rpcs_die("recvfrom");
	if (connect(sock, (struct sockaddr *)&from, length))
		rpcs_die("connect to the client");
	serve_on(sock, config);
}

static void udp_connect(const struct rpcs_config *config)
{
	connect_to(config, false);
}

static void send_request(const struct rpcs_config *config, uint32_t slot)
{
	(void)slot;
	transmit(sock, config->request);
}

static uint32_t receive_response(const struct rpcs_config *config)
{
	uint32_t slot = next_slot;

	if (!collect(sock, config->response, config)) {
		errno = ECONNRESET;
		rpcs_die("the server ended");
	}
	next_slot = next_slot + 1 == config->outstanding ? 0 : next_slot + 1;
	return slot;
}

const struct rpcs_proto rpcs_tcp = {
	.name = "tcp",
	.listen = tcp_listen,
	.serve = tcp_serve,
	.connect = tcp_connect,
	.send = send_request,
	.receive = receive_response,
};
const struct rpcs_proto rpcs_udp = {
	.name = "udp",
	.listen = udp_listen,
	.serve = udp_serve,
	.connect = udp_connect,
	.send = send_request,
	.receive = receive_response,
};
