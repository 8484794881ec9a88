// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the socket API refuses, without a peer: sock_errors 4|6. Prints "ok".
 */
#include <fcntl.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/time.h>
#include "sock.h"

static int family;
static unsigned char buf[HOMA_MAX_MESSAGE_LENGTH + 1];

static int region(int fd, void *start, size_t length)
{
	struct homa_rcvbuf_args args = { (uintptr_t)start, length };

	return setsockopt(fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &args, sizeof(args));
}

/* A region has 2,000,000 bytes and a page of 64 KiB for each CPU that runs. */
static void least_region(unsigned char *mem)
{
	size_t least = 2000000 + 65536 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct sock s = open_bare(family, 0);

	FAILS(region(s.fd, mem, least - 1), EINVAL);
	CHECK(!region(s.fd, mem, least), "%zu bytes", least);
	close_sock(&s);
}

static void regions(void)
{
	struct sock s = open_bare(family, 0);
	unsigned char *mem = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct homa_rcvbuf_args got = { 1, 1 };
	socklen_t len = sizeof(got);
	int zero = 0;

	CHECK(!getsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &got, &len) &&
		      !got.start && !got.length,
	      "before");
	FAILS(region(s.fd, mem + 100, REGION), EINVAL);
	FAILS(region(s.fd, mem, 65536), EINVAL);
	least_region(mem);
	FAILS(region(s.fd, NULL, REGION), EFAULT);
	munmap(mem + REGION, REGION);
	FAILS(region(s.fd, mem, 2 * REGION), EFAULT);
	CHECK(!mprotect(mem + REGION / 2, 4096, PROT_READ), "mprotect");
	FAILS(region(s.fd, mem, REGION), EFAULT);
	CHECK(!mprotect(mem + REGION / 2, 4096, PROT_READ | PROT_WRITE),
	      "mprotect");
	FAILS(setsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &zero, sizeof(zero)),
	      EINVAL);
	FAILS(setsockopt(s.fd, IPPROTO_HOMA, 99, &zero, sizeof(zero)),
	      ENOPROTOOPT);
	FAILS(setsockopt(s.fd, IPPROTO_TCP, 1, &zero, sizeof(zero)), ENOPROTOOPT);
	CHECK(!region(s.fd, mem, REGION - 1000), "region");
	FAILS(region(s.fd, mem, REGION), EINVAL);
	CHECK(!getsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &got, &len),
	      "getsockopt");
	CHECK(got.start == (uintptr_t)mem && got.length == REGION - 65536,
	      "%zu", got.length);
	close_sock(&s);
	munmap(mem, REGION);
}

static void binds(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address a = address(family, NULL, 4000);
	union address other =
		address(family == AF_INET ? AF_INET6 : AF_INET, NULL, 4000);
	socklen_t len = sizeof(a);
	int on = 5;

	FAILS(bind(s.fd, &a.sa, 4), EINVAL);
	FAILS(bind(s.fd, &other.sa, sizeof(other)), EAFNOSUPPORT);
	a.in4.sin_port = htons(0x8000);
	FAILS(bind(s.fd, &a.sa, size_of(family)), EINVAL);
	a.in4.sin_port = 0;
	CHECK(!bind(s.fd, &a.sa, size_of(family)), "port 0");
	len = sizeof(on);
	CHECK(!getsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_SERVER, &on, &len) &&
		      on == 0,
	      "%d", on);
	a.in4.sin_port = htons(4000);
	CHECK(!bind(s.fd, &a.sa, size_of(family)), "bind");
	CHECK(!getsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_SERVER, &on, &len) &&
		      on == 1,
	      "%d", on);
	len = sizeof(a);
	CHECK(!getsockname(s.fd, &a.sa, &len) && len == size_of(family), "%u",
	      len);
	CHECK(ntohs(a.in4.sin_port) == 4000 && a.sa.sa_family == family, "name");
	FAILS(getpeername(s.fd, &a.sa, &len), ENOTCONN);
	FAILS(listen(s.fd, 1), EOPNOTSUPP);
	FAILS(accept(s.fd, NULL, NULL), EOPNOTSUPP);
	close_sock(&s);
	close_sock(&t);
}

static unsigned int port_of(const struct sock *s)
{
	struct homa_info info = { 0 };
	union address a;
	socklen_t len = sizeof(a);

	CHECK(!getsockname(s->fd, &a.sa, &len), "getsockname");
	CHECK(!ioctl(s->fd, HOMAIOCINFO, &info), "info");
	CHECK(info.port == ntohs(a.in4.sin_port), "%u", info.port);
	return info.port;
}

/* The socket leaves the port that it had. */
static void second_port(void)
{
	struct sock s = open_sock(family, 0);
	union address a = address(family, NULL, 4020);

	bind_sock(&s, 4020);
	bind_sock(&s, 4021);
	CHECK(port_of(&s) == 4021, "%u", port_of(&s));
	a.in4.sin_port = htons(0x8000);
	FAILS(bind(s.fd, &a.sa, size_of(family)), EINVAL);
	bind_sock(&s, 0);
	CHECK(port_of(&s) == 4021, "%u", port_of(&s));
	bind_sock(&s, 4020);
	CHECK(port_of(&s) == 4020, "%u", port_of(&s));
	close_sock(&s);
}

/* It succeeds, and nothing follows from it. */
static void connects(void)
{
	struct sock s = open_sock(family, 0);
	union address a = address(family, NULL, 4000);
	union address other =
		address(family == AF_INET ? AF_INET6 : AF_INET, NULL, 4000);
	struct homa_sendmsg_args args = { 0 };

	CHECK(!connect(s.fd, &a.sa, size_of(family)), "connect");
	CHECK(!connect(s.fd, &a.sa, size_of(family)), "a second connect");
	FAILS(connect(s.fd, &a.sa, size_of(family) - 1), EINVAL);
	FAILS(connect(s.fd, &a.sa, 1), EINVAL);
	FAILS(connect(s.fd, &other.sa, sizeof(other)), EAFNOSUPPORT);
	a.sa.sa_family = AF_UNSPEC;
	CHECK(!connect(s.fd, &a.sa, sizeof(a.sa)), "AF_UNSPEC");
	FAILS(send_raw(s.fd, NULL, 0, buf, 10, &args, 0), EINVAL);
	close_sock(&s);
}

/* Both directions end, whatever the program asks for. */
static void shuts(void)
{
	struct homa_recvmsg_args args = { 0 };
	struct msghdr hdr = { .msg_control = &args,
			      .msg_controllen = sizeof(args) };
	struct sock s = open_sock(family, 0);
	struct homa_info info = { 0 };

	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(!shutdown(s.fd, 99), "shutdown");
	FAILS(recvmsg(s.fd, &hdr, 0), ESHUTDOWN);
	FAILS(ioctl(s.fd, HOMAIOCINFO, &info), ESHUTDOWN);
	CHECK(!shutdown(s.fd, -1), "a second shutdown");
	close_sock(&s);
}

static void taken_port(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address a = address(family, NULL, 4003);

	bind_sock(&s, 4003);
	FAILS(bind(t.fd, &a.sa, size_of(family)), EADDRINUSE);
	bind_sock(&s, 4004);
	bind_sock(&t, 4003);
	FAILS(bind(s.fd, &a.sa, size_of(family)), EADDRINUSE);
	CHECK(port_of(&s) == 4004, "%u", port_of(&s));
	close_sock(&t);
	bind_sock(&s, 4003);
	close_sock(&s);
	t = open_sock(family, 0);
	bind_sock(&t, 4003);
	close_sock(&t);
}

static void sends(void)
{
	struct sock s = open_sock(family, 0);
	const char *ip = family == AF_INET ? "127.0.0.1" : "::1";
	union address to = address(family, ip, 4000);
	union address other =
		address(family == AF_INET ? AF_INET6 : AF_INET, NULL, 4000);
	struct homa_sendmsg_args args = { 0 };
	struct iovec iov = { buf, 10 };
	struct msghdr hdr = { .msg_name = &to,
			      .msg_namelen = size_of(family),
			      .msg_iov = &iov,
			      .msg_iovlen = 1 };

	FAILS(send_raw(s.fd, &to, size_of(family), buf, 0, &args, 0), EINVAL);
	FAILS(send_raw(s.fd, &to, size_of(family), buf, sizeof(buf), &args, 0),
	      EINVAL);
	FAILS(send_raw(s.fd, NULL, 0, buf, 10, &args, 0), EINVAL);
	FAILS(send_raw(s.fd, &to, 6, buf, 10, &args, 0), EINVAL);
	FAILS(send_raw(s.fd, &other, sizeof(other), buf, 10, &args, 0),
	      EAFNOSUPPORT);
	args.flags = 2;
	FAILS(send_raw(s.fd, &to, size_of(family), buf, 10, &args, 0), EINVAL);
	args.flags = 0;
	args.reserved = 1;
	FAILS(send_raw(s.fd, &to, size_of(family), buf, 10, &args, 0), EINVAL);
	args.reserved = 0;
	args.id = 77;
	args.completion_cookie = 1;
	FAILS(send_raw(s.fd, &to, size_of(family), buf, 10, &args, 0), EINVAL);
	/* A response to an RPC that is no more. */
	args.completion_cookie = 0;
	CHECK(send_raw(s.fd, &to, size_of(family), buf, 10, &args, 0) == 0,
	      "unknown RPC");
	CHECK(send_raw(s.fd, &to, size_of(family), buf, 0, &args, 0) == 0,
	      "unknown RPC, no bytes");
	CHECK(send_raw(s.fd, &to, size_of(family), buf, sizeof(buf), &args, 0) ==
		      0,
	      "unknown RPC, too many bytes");
	FAILS(sendmsg(s.fd, &hdr, 0), EFAULT);
	hdr.msg_control = &args;
	hdr.msg_controllen = sizeof(args);
	FAILS(sendmsg(s.fd, &hdr, 0), EINVAL);
	FAILS(sendto(s.fd, buf, 10, 0, &to.sa, size_of(family)), EINVAL);
	FAILS(send(s.fd, buf, 10, 0), EINVAL);
	FAILS(write(s.fd, buf, 10), EINVAL);
	close_sock(&s);
}

/* Fails without an RPC that failed: none is named. */
static void receives_none(int fd, struct msghdr *hdr, int flags, int number)
{
	struct homa_recvmsg_args *args = hdr->msg_control;

	args->completion_cookie = 55;
	FAILS(recvmsg(fd, hdr, flags), number);
	CHECK(!args->id && !args->completion_cookie, "id %llu, cookie %llu",
	      (unsigned long long)args->id,
	      (unsigned long long)args->completion_cookie);
	CHECK(hdr->msg_controllen == sizeof(*args), "msg_controllen");
}

/* Where should a message be put? */
static void receives_nowhere(void)
{
	struct homa_recvmsg_args args = { .id = 1234 };
	struct msghdr hdr = { .msg_control = &args,
			      .msg_controllen = sizeof(args) };
	struct sock s = open_bare(family, 0);

	receives_none(s.fd, &hdr, 0, EINVAL);
	receives_none(s.fd, &hdr, 0, EINVAL);
	give_region(&s, REGION);
	receives_none(s.fd, &hdr, MSG_DONTWAIT, EAGAIN);
	close_sock(&s);
}

static void receives(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_recvmsg_args args = { 0 };
	struct msghdr hdr = { .msg_control = &args,
			      .msg_controllen = sizeof(args) };

	receives_none(s.fd, &hdr, MSG_DONTWAIT, EAGAIN);
	/* Flags that it does not know are no reason to fail. */
	receives_none(s.fd, &hdr,
		      MSG_DONTWAIT | MSG_PEEK | MSG_OOB | MSG_TRUNC | MSG_WAITALL,
		      EAGAIN);
	hdr.msg_controllen = sizeof(args) - 8;
	FAILS(recvmsg(s.fd, &hdr, MSG_DONTWAIT), EINVAL);
	hdr.msg_controllen = sizeof(args);
	hdr.msg_control = NULL;
	FAILS(recvmsg(s.fd, &hdr, MSG_DONTWAIT), EINVAL);
	hdr.msg_control = &args;
	args.num_bpages = HOMA_MAX_BPAGES + 1;
	receives_none(s.fd, &hdr, MSG_DONTWAIT, EINVAL);
	args.num_bpages = 1;
	receives_none(s.fd, &hdr, MSG_DONTWAIT, EINVAL);
	CHECK(!args.num_bpages, "%u pages", args.num_bpages);
	args.reserved = 1;
	receives_none(s.fd, &hdr, MSG_DONTWAIT, EINVAL);
	args.reserved = 0;
	args.id = 1234;
	receives_none(s.fd, &hdr, 0, EINVAL);
	FAILS(recv(s.fd, buf, 10, 0), EINVAL);
	FAILS(recvfrom(s.fd, buf, 10, 0, NULL, NULL), EINVAL);
	FAILS(read(s.fd, buf, 10), EINVAL);
	FAILS(readv(s.fd, &(struct iovec){ buf, 10 }, 1), EINVAL);
	close_sock(&s);
	FAILS(recvmsg(9999, &hdr, 0), EBADF);
}

static void options(void)
{
	struct timeval tv = { 2, 500000 }, got;
	struct sock s = open_sock(family, SOCK_CLOEXEC);
	socklen_t len = sizeof(got);
	struct stat st;
	int n;

	CHECK(fcntl(s.fd, F_GETFD) == FD_CLOEXEC, "SOCK_CLOEXEC");
	CHECK(!fstat(s.fd, &st), "fstat");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)),
	      "SNDTIMEO");
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &got, &len), "SNDTIMEO");
	CHECK(got.tv_sec == 2 && got.tv_usec == 500000, "SNDTIMEO");
	len = sizeof(n);
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_TYPE, &n, &len) && n == SOCK_DGRAM,
	      "SO_TYPE");
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_PROTOCOL, &n, &len) && n == 146,
	      "SO_PROTOCOL");
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_DOMAIN, &n, &len) && n == family,
	      "SO_DOMAIN");
	n = 100000;
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof(n)),
	      "SO_RCVBUF");
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_RCVBUF, &n, &len) && n == 200000,
	      "%d", n);
	FAILS(getsockopt(s.fd, IPPROTO_IP, 1, &n, &len), ENOPROTOOPT);
	FAILS(getsockopt(s.fd, IPPROTO_HOMA, 12, &n, &len), ENOPROTOOPT);
	CHECK(!ioctl(s.fd, HOMAIOCFREEZE), "freeze");
	FAILS(ioctl(s.fd, 0x12345), EINVAL);
	close_sock(&s);
}

static void numbers(void)
{
	struct sock s[8];
	struct ifreq ifr = { .ifr_name = "lo" };
	int i, before;

	/* socket() gives the lowest number that is free, as programs expect. */
	before = open("/dev/null", O_RDONLY);
	close(before);
	s[0] = open_sock(family, 0);
	CHECK(s[0].fd == before, "%d, not %d", s[0].fd, before);
	for (i = 1; i < 8; i++)
		s[i] = open_sock(family, 0);
	CHECK(!ioctl(s[3].fd, SIOCGIFINDEX, &ifr) && ifr.ifr_ifindex > 0,
	      "SIOCGIFINDEX");
	for (i = 0; i < 8; i++)
		close_sock(&s[i]);
	i = open("/dev/null", O_RDONLY);
	CHECK(i == before, "a descriptor is left: %d", i);
	CHECK(read(i, buf, 1) == 0, "a file in a socket's place");
	close(i);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2, "arguments");
	family = *argv[1] == '4' ? AF_INET : AF_INET6;
	/* homa.ko has streams, too (tests/vm/stream.c). */
	if (!in_kernel())
		FAILS(socket(family, SOCK_STREAM, IPPROTO_HOMA), EPROTONOSUPPORT);
	regions();
	binds();
	if (argc > 2)
		taken_port(); /* needs a host that all sockets share */
	second_port();
	connects();
	sends();
	receives_nowhere();
	receives();
	shuts();
	options();
	numbers();
	printf("ok\n");
	return 0;
}
