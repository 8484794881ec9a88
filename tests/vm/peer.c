// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A peer of the machine's two sockets; see peer.h. */
#include "peer.h"

struct sock sv, cl;
struct frame frame;
struct seen seen;

void name_flavour(const char *name)
{
	static const char *const flavours[] = { "plain", "napi", "frags" };

	flavour = TAP_PLAIN;
	while (strcmp(name, flavours[flavour]))
		CHECK(++flavour < 3, "plain, napi or frags");
}

void open_socks(void)
{
	int family = version == 4 ? AF_INET : AF_INET6;

	sv = open_sock(family, 0);
	bind_sock(&sv, PORT);
	cl = open_sock(family, 0);
}

void close_socks(void)
{
	close_sock(&sv);
	close_sock(&cl);
}

long patient_timeout(void)
{
	return patience() > 1 ? 60000 : 30000;
}

void meet(long resend_ticks)
{
	/* Where there are none of these, we do without: a slow machine may then fail. */
	sysctl_set("timeout_ticks", patient_timeout());
	sysctl_set("resend_ticks", resend_ticks);
	sysctl_set("unsched_bytes", UNSCHED);
	sysctl_set("restart_guard_us", 1);
	tap_open();
	open_socks();
}

int client_port(void)
{
	union address us;
	socklen_t size = sizeof(us);

	CHECK(!getsockname(cl.fd, &us.sa, &size), "getsockname");
	return ntohs(us.in4.sin_port);
}

void serve(uint64_t id, uint32_t size)
{
	ssize_t n;

	do {
		CHECK(readable(sv.fd, PATIENCE), "no request");
		n = receive(&sv, 0, 0);
		CHECK(n > 0, "receive");
	} while (sv.args.id != (id ^ 1));
	CHECK(n == size, "a request of %zd bytes, not %u", n, size);
}

void answer(int peer, uint64_t id, const void *bytes, size_t size)
{
	struct homa_sendmsg_args args = { .id = id ^ 1 };
	union address to = peer_address(peer, PEER_PORT);

	CHECK(!send_raw(sv.fd, &to, size_of(sv.family), bytes, size, &args, 0),
	      "no response");
}

uint64_t ask(int peer, uint32_t size)
{
	static uint8_t bytes[HOMA_MAX_MESSAGE_LENGTH];
	union address to = peer_address(peer, PEER_PORT);
	uint32_t i;

	for (i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	return request(&cl, &to, bytes, size, 88, 0);
}

void finish(int peer, uint64_t id, uint32_t size)
{
	make_data(&frame, peer, PEER_PORT, client_port(), id ^ 1, size, 0, size);
	send_packet(&frame);
	CHECK(readable(cl.fd, PATIENCE), "no response");
	CHECK(receive(&cl, 0, 0) == (ssize_t)size && cl.args.id == id,
	      "another response");
}
