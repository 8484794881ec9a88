// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Options of stream sockets over Homa, as programs for TCP set and read them. */
#include <limits.h>
#include <linux/filter.h>
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
		{ IPPROTO_TCP, TCP_KEEPIDLE, 7, 0 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 8, 32768 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 9, 128 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 20000, -1 },
		{ IPPROTO_TCP, TCP_SYNCNT, 2, 0 },
		{ IPPROTO_TCP, TCP_DEFER_ACCEPT, 1, -1 },
		{ IPPROTO_TCP, TCP_MAXSEG, 1000, 87 },
		{ IPPROTO_TCP, TCP_FASTOPEN, 64, -1 },
		{ IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1, 2 },
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

/* An option and a value, on a socket of TCP and on ours: the same error, and the same is read. */
static void same_option(int tcp, int ours, int level, int name, int value,
			socklen_t size)
{
	int errors[2], fds[2] = { tcp, ours }, i, is[2] = { -1, -1 };
	socklen_t sizes[2] = { size, size };

	for (i = 0; i < 2; i++) {
		errors[i] = setsockopt(fds[i], level, name, &value, size) ?
				    errno :
				    0;
		CHECK(!getsockopt(fds[i], level, name, &is[i], &sizes[i]),
		      "option %d of level %d", name, level);
	}
	CHECK(errors[0] == errors[1],
	      "option %d of level %d, %d in %u bytes: TCP has error %d, we %d",
	      name, level, value, size, errors[0], errors[1]);
	/* How large a segment is by default is TCP's own. */
	if (errors[0] || name == TCP_MAXSEG)
		return;
	CHECK(is[0] == is[1] && sizes[0] == sizes[1],
	      "option %d of level %d, %d in %u bytes: TCP reads %d in %u, we %d in %u",
	      name, level, value, size, is[0], sizes[0], is[1], sizes[1]);
}

static void as_with_tcp(void)
{
	static const int names[][2] = {
		{ IPPROTO_TCP, TCP_NODELAY },
		{ IPPROTO_TCP, TCP_CORK },
		{ IPPROTO_TCP, TCP_KEEPIDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL },
		{ IPPROTO_TCP, TCP_KEEPCNT },
		{ IPPROTO_TCP, TCP_SYNCNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT },
		{ IPPROTO_TCP, TCP_MAXSEG },
		{ IPPROTO_IP, IP_TOS },
		{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
		{ IPPROTO_IPV6, IPV6_TCLASS },
	};
	static const int values[] = { INT_MIN, -1,  0,	 1,	2,     3,
				      5,       87,  88,	 127,	128,   252,
				      255,     256, 300, 32767, 32768, INT_MAX };
	int tcp = socket(family, SOCK_STREAM, IPPROTO_TCP), ours = stream_new(0);
	size_t i, j;

	CHECK(tcp >= 0, "TCP");
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i][0] == IPPROTO_IPV6 && family != AF_INET6)
			continue;
		for (j = 0; j < ARRAY_SIZE(values); j++)
			same_option(tcp, ours, names[i][0], names[i][1],
				    values[j], sizeof(int));
		same_option(tcp, ours, names[i][0], names[i][1], 8, 1);
		same_option(tcp, ours, names[i][0], names[i][1], 8, 3);
	}
	close(tcp);
	close(ours);
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

/* Reads the first @size bytes of TCP_INFO into @part, between two readings of all that are the same
 * and go to @all; so what a peer has just said makes no difference. Returns the size of all. */
static socklen_t info_part(int fd, unsigned char *all, unsigned char *part,
			   socklen_t size)
{
	unsigned char after[1024];
	socklen_t most, is;

	do {
		memset(all, 0xee, sizeof(after));
		memset(after, 0xee, sizeof(after));
		memset(part, 0xee, sizeof(after));
		most = sizeof(after);
		CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, all, &most),
		      "TCP_INFO");
		is = size;
		CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, part, &is) &&
			      is == size,
		      "%u of %u bytes", is, size);
		CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, after, &most),
		      "TCP_INFO");
	} while (memcmp(all, after, sizeof(after)));
	return most;
}

/* A length that is short, long or nonsense: no byte behind it is written, and none of it is what
 * the kernel's stack happened to have. */
static void info_short(int fd)
{
	unsigned char all[1024], again[1024];
	socklen_t most = 0, size, is;
	size_t i;

	for (size = 0; size <= most; size++) {
		most = info_part(fd, all, again, size);
		for (i = most; i < sizeof(all); i++)
			CHECK(all[i] == 0xee, "byte %zu", i);
		CHECK(!memcmp(all, again, size), "other bytes");
		for (i = size; i < sizeof(again); i++)
			CHECK(again[i] == 0xee, "byte %zu", i);
	}
	is = (socklen_t)-1;
	FAILS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, all, &is), EINVAL);
	FAILS(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, all, &is), EINVAL);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, all, (socklen_t)-1),
	      EINVAL);
	is = 4;
	FAILS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, NULL, &is), EFAULT);
	FAILS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, all, NULL), EFAULT);
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
	info_short(l.client);
	shutdown(l.client, SHUT_WR);
	CHECK(recv(l.server, &c, 1, 0) == 0, "end");
	CHECK(info_of(l.server).tcpi_state == TCP_CLOSE_WAIT, "half closed");
	CHECK(info_of(l.client).tcpi_state == TCP_FIN_WAIT2, "half closed");
	link_down(&l);
	quiet();
}

/* A filter on the socket would see no packet, and a program that relies on it is told so. */
static void filter(void)
{
	struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &refuse };
	union address a = address(family, NULL, 520);
	union address to = address(family, server_ip, 520);
	int fd = stream_new(0), nobody = stream_new(0), n = 0;

	CHECK(!bind(fd, &a.sa, size_of(family)), "bind");
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)),
	      "SO_ATTACH_FILTER");
	CHECK(listen(fd, 1) < 0 && errno == EOPNOTSUPP, "listen");
	CHECK(!setsockopt(nobody, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)),
	      "SO_ATTACH_FILTER");
	CHECK(connect(nobody, &to.sa, size_of(family)) < 0 && errno == EOPNOTSUPP,
	      "connect");
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &n, sizeof(n)),
	      "SO_DETACH_FILTER");
	CHECK(!listen(fd, 1), "listen without a filter");
	close(nobody);
	close(fd);
	quiet();
}

/* Binding to a device counts until listen(), also after bind(). */
static void device(void)
{
	union address a = address(family, NULL, 521);
	union address to = address(family, server_ip, 521);
	int fd = stream_new(0), client = stream_new(0);

	CHECK(!bind(fd, &a.sa, size_of(family)), "bind");
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "other", 5),
	      "SO_BINDTODEVICE");
	CHECK(!listen(fd, 1), "listen");
	CHECK(connect(client, &to.sa, size_of(family)) < 0 &&
		      errno == ECONNREFUSED,
	      "connect by another device");
	close(client);
	close(fd);
	quiet();
}

const struct check stream_options[] = {
	{ "options", options },
	{ "options of TCP are kept and inherited", options_of_tcp },
	{ "options have TCP's bounds", as_with_tcp },
	{ "there is one way to avoid congestion", congestion },
	{ "TCP_INFO says how far a connection is", info },
	{ "a filter that would see nothing is refused", filter },
	{ "a device that is set after bind() counts", device },
};
const size_t stream_num_options = ARRAY_SIZE(stream_options);
