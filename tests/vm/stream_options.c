// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Options of stream sockets over Homa, as programs for TCP set and read them. */
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include "vm_stream.h"

static void options(void)
{
	struct link l = link_up(514);
	int on = 1, n = 0;
	socklen_t size = sizeof(n);

	CHECK(!setsockopt(l.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)),
	      "TCP_NODELAY");
	CHECK(!setsockopt(l.client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)),
	      "SO_KEEPALIVE");
	CHECK(!setsockopt(l.client, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)),
	      "SO_REUSEADDR");
	CHECK(!getsockopt(l.listener, SOL_SOCKET, SO_ACCEPTCONN, &n, &size) && n,
	      "SO_ACCEPTCONN");
	CHECK(!getsockopt(l.client, SOL_SOCKET, SO_ACCEPTCONN, &n, &size) && !n,
	      "SO_ACCEPTCONN");
	CHECK(!getsockopt(l.server, SOL_SOCKET, SO_PROTOCOL, &n, &size) &&
		      n == IPPROTO_HOMA,
	      "SO_PROTOCOL");
	put(l.client, 1, 0, 7, 7);
	while (!ioctl(l.server, FIONREAD, &n) && n < 7)
		usleep(1000);
	CHECK(n == 7, "FIONREAD");
	get(l.server, 1, 0, 7, 7);
	link_down(&l);
	quiet();
}

/* What programs for TCP set is accepted in TCP's bounds, kept, and an accepted connection's too. */
static void options_of_tcp(void)
{
	static const struct {
		int level, name, good, bad;
	} known[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 0, -1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 7, 0 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 8, 32768 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 9, 128 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 20000, -1 },
		{ IPPROTO_TCP, TCP_SYNCNT, 2, 0 },
		{ IPPROTO_TCP, TCP_DEFER_ACCEPT, 1, -1 },
		{ IPPROTO_TCP, TCP_MAXSEG, 1000, 87 },
		{ IPPROTO_TCP, TCP_FASTOPEN, 64, -1 },
		{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1, 2 },
		{ IPPROTO_IP, IP_TOS, 16, 256 },
	};
	struct link l = { .listener = stream_listen(518, 8) };
	int n, byte = 0;
	socklen_t size;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		n = known[i].good;
		CHECK(!setsockopt(l.listener, known[i].level, known[i].name, &n,
				  sizeof(n)),
		      "option %zu", i);
		n = known[i].bad;
		FAILS(setsockopt(l.listener, known[i].level, known[i].name, &n,
				 sizeof(n)),
		      EINVAL);
		FAILS(setsockopt(l.listener, known[i].level, known[i].name,
				 NULL, sizeof(n)),
		      EFAULT);
		FAILS(setsockopt(l.listener, known[i].level, known[i].name, &n, 0),
		      EINVAL);
	}
	l.client = stream_connect(518);
	l.server = accept(l.listener, NULL, NULL);
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		size = sizeof(n);
		CHECK(!getsockopt(l.server, known[i].level, known[i].name, &n,
				  &size) &&
			      size == sizeof(n) && n == known[i].good,
		      "option %zu is %d", i, n);
	}
	size = 1;
	CHECK(!getsockopt(l.server, IPPROTO_TCP, TCP_KEEPIDLE, &byte, &size) &&
		      size == 1 && byte == 7,
	      "a part of an option");
	/* What would change bytes, or a program's safety, is refused. */
	n = 1;
	FAILS(setsockopt(l.client, IPPROTO_TCP, TCP_ULP, "tls", 3), ENOPROTOOPT);
	FAILS(setsockopt(l.client, IPPROTO_TCP, TCP_MD5SIG, &n, sizeof(n)),
	      ENOPROTOOPT);
	FAILS(setsockopt(l.client, IPPROTO_TCP, TCP_REPAIR, &n, sizeof(n)),
	      ENOPROTOOPT);
	link_down(&l);
	quiet();
}

static void congestion(void)
{
	int fd = stream_new(0);
	socklen_t size = 16;
	char name[16] = "";

	CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) &&
		      !strcmp(name, "homa"),
	      "it is '%s'", name);
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "homa", 4), "homa");
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), ENOENT);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "homab", 5), ENOENT);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "", 0), EINVAL);
	close(fd);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	memset(&info, 0xff, sizeof(info));
	CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
	CHECK(size >= offsetof(struct tcp_info, tcpi_total_retrans),
	      "only %u bytes", size);
	return info;
}

/* TCP_INFO says how far a connection is, in TCP's words. */
static void info(void)
{
	struct link l = link_up(519);
	socklen_t size = 1;
	unsigned char state;
	char c;

	CHECK(info_of(l.listener).tcpi_state == TCP_LISTEN, "listener");
	CHECK(info_of(l.client).tcpi_state == TCP_ESTABLISHED, "client");
	CHECK(info_of(l.server).tcpi_state == TCP_ESTABLISHED, "server");
	put(l.client, 1, 0, 3000, 3000);
	get(l.server, 1, 0, 3000, 3000);
	CHECK(info_of(l.client).tcpi_snd_mss > 1000, "snd_mss");
	CHECK(!getsockopt(l.client, IPPROTO_TCP, TCP_INFO, &state, &size) &&
		      size == 1 && state == TCP_ESTABLISHED,
	      "its first byte");
	shutdown(l.client, SHUT_WR);
	CHECK(recv(l.server, &c, 1, 0) == 0, "end");
	CHECK(info_of(l.server).tcpi_state == TCP_CLOSE_WAIT, "half closed");
	CHECK(info_of(l.client).tcpi_state == TCP_FIN_WAIT2, "half closed");
	link_down(&l);
	quiet();
}

const struct check stream_options[] = {
	{ "options", options },
	{ "options of TCP are kept and inherited", options_of_tcp },
	{ "there is one way to avoid congestion", congestion },
	{ "TCP_INFO says how far a connection is", info },
};
const size_t stream_num_options = ARRAY_SIZE(stream_options);
