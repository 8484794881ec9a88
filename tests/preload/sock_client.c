// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Checks of the socket API against a sock_server:
 *
 *	sock_client 4|6 IP PORT CHECK
 *
 * Prints "ok", or says what is wrong and ends with 1.
 */
#include <signal.h>
#include "sock_client.h"

int family;
union address server, nobody;
unsigned char buf[HOMA_MAX_MESSAGE_LENGTH];
const char ignore[1] = { IGNORE };
const char late[1] = { LATE };

void sock_call(struct sock *s, size_t size, unsigned int seed)
{
	uint64_t id;
	ssize_t n;

	fill(buf, size, seed);
	id = request(s, &server, buf, size, seed, 0);
	n = receive(s, 0, 0);
	CHECK(n == (ssize_t)size, "%zd of %zu bytes", n, size);
	CHECK(s->args.id == id, "another RPC");
	CHECK(s->args.completion_cookie == seed, "cookie");
	CHECK(s->from.in4.sin_port == server.in4.sin_port, "port %d",
	      ntohs(s->from.in4.sin_port));
	if (family == AF_INET)
		CHECK(s->from.in4.sin_addr.s_addr == server.in4.sin_addr.s_addr,
		      "ip");
	else
		CHECK(!memcmp(&s->from.in6.sin6_addr, &server.in6.sin6_addr, 16),
		      "ip");
	verify(s, size, seed);
}

static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {
#define X(name) { #name, check_##name },
	CHECKS(X)
#undef X
};

int main(int argc, char **argv)
{
	size_t i;

	CHECK(argc == 5, "arguments");
	signal(SIGPIPE, SIG_IGN);
	family = *argv[1] == '4' ? AF_INET : AF_INET6;
	server = address(family, argv[2], atoi(argv[3]));
	nobody = address(family, argv[2], atoi(argv[3]) + 1);
	for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		if (strcmp(argv[4], checks[i].name))
			continue;
		checks[i].run();
		printf("ok\n");
		return 0;
	}
	CHECK(0, "no check %s", argv[4]);
}
