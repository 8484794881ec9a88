/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the test programs of the socket API share. They include the module's
 * header by its usual name and know nothing of libhoma: the same binaries would
 * run on a kernel that has Homa.
 */
#ifndef TESTS_PRELOAD_SOCK_H
#define TESTS_PRELOAD_SOCK_H

#include <arpa/inet.h>
#include <errno.h>
#include <homa.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond, ...)                                                   \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, \
				#cond);                                    \
			fprintf(stderr, __VA_ARGS__);                      \
			fprintf(stderr, " (errno %d %s)\n", errno,         \
				strerror(errno));                          \
			exit(1);                                           \
		}                                                          \
	} while (0)

/* expects -1 and an errno */
#define FAILS(call, number)                                           \
	do {                                                          \
		long long fails_rc;                                   \
		errno = 0;                                            \
		fails_rc = (long long)(call);                         \
		CHECK(fails_rc == -1 && errno == (number),            \
		      "gave %lld, not errno %d", fails_rc, (number)); \
	} while (0)

#define REGION ((size_t)8 << 20)

/* Is this the kernel's Homa? A few things only a library can, or cannot, do. */
static inline int in_kernel(void)
{
	return !access("/proc/net/homa_metrics", F_OK);
}

/* First byte of a request: what the server does with it. */
enum {
	ECHO = 'E',
	IGNORE = 'I', /* never responds */
	LATE = 'L',   /* responds after 100 ms, then goes on */
	TELL = 'T',   /* puts its id of the RPC behind the first byte */
};

union address {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/* A socket with its region and what recvmsg() last said. */
struct sock {
	int fd;
	int family;
	unsigned char *region;
	size_t region_size;
	struct homa_recvmsg_args args;
	union address from;
	socklen_t from_size;
};

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline socklen_t size_of(int family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in) :
				   sizeof(struct sockaddr_in6);
}

/* An IPv4 address for an AF_INET6 socket becomes ::ffff:a.b.c.d. */
static inline union address address(int family, const char *ip, int port)
{
	union address a;
	char mapped[64];

	memset(&a, 0, sizeof(a));
	a.sa.sa_family = (sa_family_t)family;
	a.in4.sin_port = htons((uint16_t)port);
	if (!ip)
		return a;
	snprintf(mapped, sizeof(mapped), "%s%s",
		 family == AF_INET6 && !strchr(ip, ':') ? "::ffff:" : "", ip);
	CHECK(inet_pton(family, mapped,
			family == AF_INET ? (void *)&a.in4.sin_addr :
					    (void *)&a.in6.sin6_addr) == 1,
	      "%s is no address", mapped);
	return a;
}

static inline void give_region(struct sock *s, size_t size)
{
	struct homa_rcvbuf_args args;

	s->region = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->region != MAP_FAILED, "no memory");
	s->region_size = size;
	args.start = (uintptr_t)s->region;
	args.length = size;
	CHECK(!setsockopt(s->fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &args,
			  sizeof(args)),
	      "no region");
}

static inline struct sock open_bare(int family, int flags)
{
	struct sock s = { .family = family };

	s.fd = socket(family, SOCK_DGRAM | flags, IPPROTO_HOMA);
	CHECK(s.fd >= 0, "no socket");
	return s;
}

static inline struct sock open_sock(int family, int flags)
{
	struct sock s = open_bare(family, flags);

	give_region(&s, REGION);
	return s;
}

static inline void close_sock(struct sock *s)
{
	CHECK(!close(s->fd), "close");
	if (s->region)
		munmap(s->region, s->region_size);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

static inline void bind_sock(struct sock *s, int port)
{
	union address a = address(s->family, NULL, port);

	CHECK(!bind(s->fd, &a.sa, size_of(s->family)), "bind to %d", port);
}

static inline ssize_t send_raw(int fd, const union address *to,
			       socklen_t to_size, const void *buf, size_t size,
			       struct homa_sendmsg_args *args, int flags)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)buf, size / 3 },
				{ (char *)(uintptr_t)buf + size / 3,
				  size - size / 3 } };
	struct msghdr hdr = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = to_size,
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = args,
	};

	return sendmsg(fd, &hdr, flags);
}

/* Send a request; its id. */
static inline uint64_t request(struct sock *s, const union address *to,
			       const void *buf, size_t size, uint64_t cookie,
			       unsigned int flags)
{
	struct homa_sendmsg_args args = { .completion_cookie = cookie,
					  .flags = flags };

	CHECK(send_raw(s->fd, to, size_of(s->family), buf, size, &args, 0) == 0,
	      "cannot send %zu bytes", size);
	CHECK(args.id && !(args.id & 1), "id %llu", (unsigned long long)args.id);
	return args.id;
}

/* Give the last message's pages back and wait for the next one. */
static inline ssize_t receive(struct sock *s, uint64_t id, int flags)
{
	struct msghdr hdr = {
		.msg_name = &s->from,
		.msg_namelen = sizeof(s->from),
		.msg_control = &s->args,
		.msg_controllen = sizeof(s->args),
	};
	ssize_t n;

	s->args.id = id;
	memset(&s->from, 0, sizeof(s->from));
	n = recvmsg(s->fd, &hdr, flags);
	if (n >= 0) {
		CHECK(hdr.msg_namelen == size_of(s->family), "%u",
		      hdr.msg_namelen);
		CHECK(s->from.sa.sa_family == s->family, "%d",
		      s->from.sa.sa_family);
		CHECK(!hdr.msg_controllen, "controllen");
	}
	s->from_size = hdr.msg_namelen;
	return n;
}

/* The pieces of a message, as writev() wants them. */
static inline int pieces(const struct sock *s, size_t size, struct iovec *iov)
{
	unsigned int i;

	CHECK(s->args.num_bpages == (size + HOMA_BPAGE_SIZE - 1) / HOMA_BPAGE_SIZE,
	      "%u pages for %zu bytes", s->args.num_bpages, size);
	for (i = 0; i < s->args.num_bpages; i++) {
		size_t n = size > HOMA_BPAGE_SIZE ? HOMA_BPAGE_SIZE : size;
		uint32_t offset = s->args.bpage_offsets[i];

		CHECK(offset + n <= s->region_size, "offset %u", offset);
		CHECK(size <= HOMA_BPAGE_SIZE || !(offset % HOMA_BPAGE_SIZE),
		      "offset %u", offset);
		iov[i].iov_base = s->region + offset;
		iov[i].iov_len = n;
		size -= n;
	}
	return (int)s->args.num_bpages;
}

static inline void fill(unsigned char *buf, size_t size, unsigned int seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		buf[i] = (unsigned char)(seed * 31 + i + (i >> 8) * 7);
	if (size)
		buf[0] = ECHO;
}

static inline void verify(const struct sock *s, size_t size, unsigned int seed)
{
	static __thread unsigned char want[HOMA_MAX_MESSAGE_LENGTH];
	struct iovec iov[HOMA_MAX_BPAGES];
	int i, n = pieces(s, size, iov);
	size_t done = 0;

	fill(want, size, seed);
	for (i = 0; i < n; i++) {
		CHECK(!memcmp(want + done, iov[i].iov_base, iov[i].iov_len),
		      "bytes differ after %zu of %zu", done, size);
		done += iov[i].iov_len;
	}
}

/* Is there something to receive within @ms? */
static inline int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n = poll(&p, 1, ms);

	CHECK(n >= 0, "poll");
	return n == 1 && (p.revents & POLLIN);
}

#endif
