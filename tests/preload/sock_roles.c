// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Who takes requests: bind(), SO_HOMA_SERVER, and what a peer hears otherwise. */
#include "sock_client.h"

/* The server's machine has a socket on that port which takes no requests of ours. */
void check_refused(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t id;

	id = request(&s, &server, buf, 10, 3, 0);
	FAILS(receive(&s, 0, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 3, "id, cookie");
	id = request(&s, &server, buf, 100000, 4, HOMA_SENDMSG_PRIVATE);
	FAILS(receive(&s, id, 0), ENOTCONN);
	close_sock(&s);
}

static void serve_or_not(struct sock *s, int on)
{
	CHECK(!setsockopt(s->fd, IPPROTO_HOMA, SO_HOMA_SERVER, &on, sizeof(on)),
	      "SO_HOMA_SERVER %d", on);
}

static union address at_port(struct sock *s)
{
	union address us, to = server;
	socklen_t size = sizeof(us);

	CHECK(!getsockname(s->fd, &us.sa, &size), "getsockname");
	to.in4.sin_port = us.in4.sin_port;
	return to;
}

static ssize_t respond_with(struct sock *t, size_t size)
{
	struct homa_sendmsg_args args = { .id = t->args.id };

	return send_raw(t->fd, &t->from, size_of(family), buf, size, &args, 0);
}

static void respond(struct sock *t)
{
	CHECK(!respond_with(t, 10), "response");
}

static void is_answered(struct sock *s, struct sock *t, size_t size)
{
	union address to = at_port(t);
	uint64_t id = request(s, &to, buf, size, 5, 0);
	struct homa_rpc_info rpc;
	struct homa_info info = { .rpc_info = &rpc,
				  .rpc_info_length = sizeof(rpc) };

	CHECK(receive(t, 0, 0) == (ssize_t)size, "request");
	CHECK(t->args.id == (id ^ 1), "%llx at the client, %llx at the server",
	      (unsigned long long)id, (unsigned long long)t->args.id);
	CHECK(!ioctl(t->fd, HOMAIOCINFO, &info) && info.num_rpcs == 1, "info");
	CHECK(rpc.id == (id ^ 1), "%llx listed", (unsigned long long)rpc.id);
	respond(t);
	CHECK(receive(s, 0, 0) == 10 && s->args.id == id, "response");
}

static void is_refused(struct sock *s, struct sock *t)
{
	union address to = at_port(t);
	uint64_t id = request(s, &to, buf, 10, 6, 0);

	FAILS(receive(s, 0, 0), ENOTCONN);
	CHECK(s->args.id == id, "another RPC");
	FAILS(receive(t, 0, MSG_DONTWAIT), EAGAIN);
}

/* bind() to a second port: nobody is at the first one any more. */
static void moves(struct sock *s, struct sock *t)
{
	union address before = at_port(t);
	uint64_t id;

	bind_sock(t, 4018);
	CHECK(ntohs(at_port(t).in4.sin_port) == 4018, "port");
	is_answered(s, t, 10);
	id = request(s, &before, buf, 10, 8, 0);
	FAILS(receive(s, 0, 0), ENOTCONN);
	CHECK(s->args.id == id, "another RPC");
	/* Bytes that a response cannot have; then it is sent after all. */
	before = at_port(t);
	id = request(s, &before, buf, 10, 9, 0);
	CHECK(receive(t, 0, 0) == 10, "request");
	FAILS(respond_with(t, 0), EINVAL);
	FAILS(respond_with(t, sizeof(buf) + 1), EINVAL);
	respond(t);
	CHECK(receive(s, 0, 0) == 10 && s->args.id == id, "response");
}

/* The server's machine is ours, too. */
void check_roles(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address to;
	uint64_t id;

	is_refused(&s, &t);
	serve_or_not(&t, 1);
	is_answered(&s, &t, 10);
	serve_or_not(&t, 0);
	is_refused(&s, &t);
	bind_sock(&t, 4017);
	is_answered(&s, &t, 10);
	is_answered(&s, &t, 200000);
	/* What came before it stopped is its own. */
	to = at_port(&t);
	id = request(&s, &to, buf, 10, 7, 0);
	CHECK(readable(t.fd, 20000), "no request");
	serve_or_not(&t, 0);
	CHECK(receive(&t, 0, 0) == 10, "request");
	respond(&t);
	CHECK(receive(&s, 0, 0) == 10 && s.args.id == id, "response");
	is_refused(&s, &t);
	serve_or_not(&t, 1);
	is_answered(&s, &t, 10);
	moves(&s, &t);
	close_sock(&t);
	close_sock(&s);
}
