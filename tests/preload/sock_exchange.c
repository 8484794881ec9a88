// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is beyond the existing module's API: connect() names the peer of messages that name
 * none, and a sendmsg() with HOMA_SENDMSG_RECEIVE receives, too.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include "sock_client.h"

ssize_t sock_exchange(struct sock *s, const union address *to, size_t size,
		      struct homa_exchange_args *x, int flags)
{
	struct iovec iov = { buf, size };
	struct msghdr hdr = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = to ? size_of(s->family) : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = x,
	};
	ssize_t n;

	x->send.flags |= HOMA_SENDMSG_RECEIVE;
	x->recv.num_bpages = s->args.num_bpages;
	memcpy(x->recv.bpage_offsets, s->args.bpage_offsets,
	       sizeof(x->recv.bpage_offsets));
	n = sendmsg(s->fd, &hdr, flags);
	s->args = x->recv;
	s->from = (union address){ .in6 = x->peer.in6 };
	return n;
}

static bool same(const union address *a, const union address *b)
{
	if (a->sa.sa_family != b->sa.sa_family ||
	    a->in4.sin_port != b->in4.sin_port)
		return false;
	return a->sa.sa_family == AF_INET ?
		       a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr :
		       !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16);
}

static unsigned int rpcs_open(int fd)
{
	struct homa_info info = { 0 };

	CHECK(!ioctl(fd, HOMAIOCINFO, &info), "HOMAIOCINFO");
	return info.num_rpcs;
}

/* ---- connect() ---- */

static void connect_to(struct sock *s, const union address *to)
{
	CHECK(!connect(s->fd, &to->sa, size_of(family)), "connect");
}

static void has_peer(struct sock *s, const union address *want)
{
	union address peer;
	socklen_t size = sizeof(peer);

	if (!want) {
		FAILS(getpeername(s->fd, &peer.sa, &size), ENOTCONN);
		return;
	}
	CHECK(!getpeername(s->fd, &peer.sa, &size), "getpeername");
	CHECK(size == size_of(family) && same(&peer, want), "another peer");
}

static int send_unnamed(struct sock *s, size_t size)
{
	struct homa_sendmsg_args args = { .completion_cookie = 7 };

	return (int)send_raw(s->fd, NULL, 0, buf, size, &args, 0);
}

void check_connects(void)
{
	const union address none = { .sa.sa_family = AF_UNSPEC };
	const union address other = { .sa.sa_family = family == AF_INET ?
							      AF_INET6 :
							      AF_INET };
	struct sock s = open_sock(family, 0);

	has_peer(&s, NULL);
	FAILS(send_unnamed(&s, 100), EINVAL);
	connect_to(&s, &server);
	has_peer(&s, &server);
	fill(buf, 70000, 1);
	CHECK(!send_unnamed(&s, 70000), "sendmsg");
	CHECK(receive(&s, 0, 0) == 70000 && s.args.completion_cookie == 7,
	      "response");
	CHECK(same(&s.from, &server), "another peer");
	verify(&s, 70000, 1);
	FAILS(connect(s.fd, &other.sa, sizeof(other)), EAFNOSUPPORT);
	FAILS(connect(s.fd, &server.sa, 4), EINVAL);
	has_peer(&s, &server);
	/* A message that names its peer goes there. */
	connect_to(&s, &nobody);
	has_peer(&s, &nobody);
	sock_call(&s, 100, 2);
	CHECK(!connect(s.fd, &none.sa, sizeof(none.sa)), "AF_UNSPEC");
	has_peer(&s, NULL);
	FAILS(send_unnamed(&s, 100), EINVAL);
	close_sock(&s);
}

/* ---- messages both ways ---- */

static void exchange_one(struct sock *s, const union address *to, size_t size,
			 unsigned int seed)
{
	struct homa_exchange_args x = { .send.completion_cookie = seed };

	if (seed % 2)
		x.send.flags = HOMA_SENDMSG_PRIVATE;
	fill(buf, size, seed);
	CHECK(sock_exchange(s, to, size, &x, 0) == (ssize_t)size, "%zu bytes",
	      size);
	CHECK(x.send.id && x.recv.id == x.send.id, "id %llx, response to %llx",
	      (unsigned long long)x.send.id, (unsigned long long)x.recv.id);
	CHECK(x.recv.completion_cookie == seed, "cookie");
	CHECK(same(&s->from, &server), "another peer");
	verify(s, size, seed);
}

/* More bytes than the region has: pages that did not come back would be missed. */
void check_exchanges(void)
{
	static const size_t sizes[] = { 1,     100,   1400,   65536,
					65537, 70000, 500000, 1000000 };
	struct sock s = open_sock(family, 0);
	unsigned int i;

	connect_to(&s, &server);
	for (i = 0; i < 60; i++)
		exchange_one(&s, i % 3 ? NULL : &server, sizes[i % 8], i);
	sock_call(&s, 100, 1);
	close_sock(&s);
}

/* ---- what is refused ---- */

/* The call fails with @error, and nothing was sent. */
static void is_wrong(struct sock *s, const union address *to,
		     struct homa_exchange_args x, int error)
{
	uint64_t id = x.send.id;
	struct homa_recvmsg_args before = s->args;

	s->args.num_bpages = x.recv.num_bpages;
	FAILS(sock_exchange(s, to, 10, &x, 0), error);
	CHECK(x.send.id == id, "an id");
	CHECK(rpcs_open(s->fd) == 0, "%u RPCs", rpcs_open(s->fd));
	s->args = before;
}

void check_exchange_errors(void)
{
	struct homa_exchange_args late_answer = { .send.id = 0x12345 };
	struct sock s = open_sock(family, 0), bare = open_bare(family, 0);

	is_wrong(&s, NULL, (struct homa_exchange_args){ 0 }, EINVAL);
	is_wrong(&s, &server, (struct homa_exchange_args){ .reserved = 1 },
		 EINVAL);
	is_wrong(&s, &server, (struct homa_exchange_args){ .recv.reserved = 1 },
		 EINVAL);
	is_wrong(&s, &server,
		 (struct homa_exchange_args){ .recv.num_bpages = 17 }, EINVAL);
	is_wrong(&s, &server,
		 (struct homa_exchange_args){ .send.flags = HOMA_SENDMSG_ASK,
					      .send.id = 1 },
		 EINVAL);
	is_wrong(&s, &server,
		 (struct homa_exchange_args){ .send.flags = HOMA_SENDMSG_PRIVATE,
					      .recv.id = 2 },
		 EINVAL);
	is_wrong(&s, &server,
		 (struct homa_exchange_args){ .send.flags = 0x80000 }, EINVAL);
	is_wrong(&bare, &server, (struct homa_exchange_args){ 0 }, EINVAL);
	/* Nobody waits for this response, which is no error; nor is there anything to receive. */
	memcpy(&late_answer.peer, &server, sizeof(late_answer.peer));
	FAILS(sock_exchange(&s, NULL, 10, &late_answer, MSG_DONTWAIT), ENOMSG);
	CHECK(!late_answer.send.id, "the response was not taken");
	close_sock(&s);
	close_sock(&bare);
}

/* ---- waits that end without a message ---- */

static void no_message(struct sock *s, struct homa_exchange_args *x,
		       const char *bytes, int flags, int error)
{
	memcpy(buf, bytes, 1);
	FAILS(sock_exchange(s, &server, 1, x, flags), error);
	CHECK(x->send.id, "the request was not sent");
	CHECK(!x->recv.id && !x->recv.num_bpages, "an RPC is named");
	CHECK(rpcs_open(s->fd) == 1, "%u RPCs", rpcs_open(s->fd));
}

static void nothing(int number)
{
	(void)number;
}

void check_exchange_waits(void)
{
	struct sigaction action = { .sa_handler = nothing,
				    .sa_flags = SA_RESTART };
	struct itimerval soon = { .it_value.tv_usec = 100000,
				  .it_interval.tv_usec = 100000 };
	struct timeval limit = { .tv_usec = 50000 };
	struct homa_abort_args all = { 0 };
	struct sock s = open_sock(family, 0);
	struct homa_exchange_args x = { 0 };

	no_message(&s, &x, late, MSG_DONTWAIT, ENOMSG);
	CHECK(receive(&s, 0, 0) == 1 && s.args.id == x.send.id, "response");
	CHECK(!sigaction(SIGALRM, &action, NULL) &&
		      !setitimer(ITIMER_REAL, &soon, NULL),
	      "timer");
	/* A call that began again would send a second request. */
	x = (struct homa_exchange_args){ .send.flags = HOMA_SENDMSG_PRIVATE };
	no_message(&s, &x, ignore, 0, EINTR);
	soon = (struct itimerval){ 0 };
	CHECK(!setitimer(ITIMER_REAL, &soon, NULL), "timer");
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)),
	      "SO_RCVTIMEO");
	x = (struct homa_exchange_args){ 0 };
	no_message(&s, &x, ignore, 0, ENOMSG);
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	close_sock(&s);
}

/* ---- servers ---- */

/* One socket of this process asks another one, which rejects the first request and answers
 * the second. */
void check_exchange_serves(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	struct homa_exchange_args x = { 0 };
	union address us, to = server;
	socklen_t size = sizeof(us);
	int on = 1;

	CHECK(!setsockopt(t.fd, IPPROTO_HOMA, SO_HOMA_SERVER, &on, sizeof(on)),
	      "SO_HOMA_SERVER");
	CHECK(!getsockname(t.fd, &us.sa, &size), "getsockname");
	to.in4.sin_port = us.in4.sin_port;
	request(&s, &to, buf, 10, 1, 0);
	CHECK(receive(&t, 0, 0) == 10, "request");
	request(&s, &to, buf, 20, 2, 0);
	x.send = (struct homa_sendmsg_args){
		.id = t.args.id,
		.completion_cookie = EBUSY,
		.flags = HOMA_SENDMSG_REJECT,
	};
	memcpy(&x.peer, &t.from, size_of(family));
	CHECK(sock_exchange(&t, NULL, 0, &x, 0) == 20, "second request");
	CHECK(!x.send.id && x.recv.id, "id");
	FAILS(receive(&s, 0, 0), EBUSY);
	CHECK(s.args.completion_cookie == 1, "cookie");
	s.args.num_bpages = 0;
	x.send = (struct homa_sendmsg_args){ .id = x.recv.id };
	x.recv.id = 0;
	FAILS(sock_exchange(&t, NULL, 30, &x, MSG_DONTWAIT), ENOMSG);
	CHECK(receive(&s, 0, 0) == 30 && s.args.completion_cookie == 2,
	      "response");
	close_sock(&s);
	close_sock(&t);
}
