// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What others have to say about packets of sockets: programs of their cgroups and security modules.
 * Each refuses packets for a while, which a counter says; the RPC goes on when it does so no more.
 *
 *	policy 4|6 IP PEER PORT [CHECK...]
 *
 * IP is this machine's; at PEER, another one on the same wire, a server echoes on PORT.
 */
#include "bpf.h"
#include "cgroup.h"

static int family;
static const char *ip;
static union address peer;

/* @t gets no request of @s while packets are refused, as the counter says. The request's id. */
static uint64_t refused(struct sock *s, struct sock *t, int port)
{
	union address to = address(family, ip, port);
	double end = now() + 60 * patience();
	long long before = metric("host_rx_refused");
	uint64_t id;

	CHECK(before >= 0, "no counter");
	id = request(s, &to, "x", 1, 0, 0);
	while (metric("host_rx_refused") == before) {
		CHECK(now() < end, "no packet is refused");
		usleep(5000);
	}
	CHECK(!readable(t->fd, 0), "it came all the same");
	return id;
}

/* The response to a request, of which no other is open. */
static void response(struct sock *s, uint64_t id, ssize_t size)
{
	ssize_t n = receive(s, 0, 0);

	CHECK(n == size && s->args.id == id, "%zd bytes of %llu", n,
	      (unsigned long long)s->args.id);
}

/* @t gets the request and answers. */
static void answered(struct sock *s, struct sock *t, uint64_t id)
{
	struct homa_sendmsg_args args = { 0 };

	CHECK(receive(t, 0, 0) == 1, "request");
	args.id = t->args.id;
	CHECK(!send_raw(t->fd, &t->from, t->from_size, "yes", 3, &args, 0),
	      "response");
	response(s, id, 3);
}

static void cgroup_in(void)
{
	struct sock s, t, u = open_sock(family, 0);
	union address to = address(family, ip, 4702);
	uint64_t id;
	int prog;

	bind_sock(&u, 4702);
	cgroup_join();
	t = open_sock(family, 0);
	bind_sock(&t, 4701);
	cgroup_enter(CGROUP);
	s = open_sock(family, 0);
	prog = bpf_cgroup_drop(OURS, true, family);
	id = refused(&s, &t, 4701);
	/* It is asked about its cgroup's sockets alone. */
	answered(&s, &u, request(&s, &to, "x", 1, 0, 0));
	bpf_cgroup_detach(OURS, true, prog);
	answered(&s, &t, id);
}

static void cgroup_out(void)
{
	double end = now() + 60 * patience();
	struct sock s, t = open_sock(family, 0);
	uint64_t id;
	int prog;

	cgroup_join();
	s = open_sock(family, 0);
	/* A route and a neighbour are known: the shortest way out. */
	id = request(&s, &peer, "E", 1, 0, 0);
	response(&s, id, 1);
	bpf_count();
	prog = bpf_cgroup_drop(OURS, false, family);
	id = request(&s, &peer, "E", 1, 0, 0);
	while (!bpf_calls(prog)) {
		CHECK(now() < end, "it is not asked about what goes out");
		usleep(5000);
	}
	CHECK(!readable(s.fd, 0), "it went all the same");
	/* Another cgroup's goes. */
	response(&t, request(&t, &peer, "E", 1, 0, 0), 1);
	bpf_cgroup_detach(OURS, false, prog);
	response(&s, id, 1);
}

static void security_in(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	int prog, attached;
	uint64_t id;

	bind_sock(&t, 4703);
	attached = bpf_lsm("bpf_lsm_socket_sock_rcv_skb", -EPERM, &prog);
	id = refused(&s, &t, 4703);
	CHECK(!close(attached), "detach");
	answered(&s, &t, id);
}

#define ASKED 100

/* A module that labels what sockets send is asked about each message. */
static void security_label(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address to = address(family, ip, 4704);
	int prog, attached, i;

	bind_sock(&t, 4704);
	bpf_count();
	attached = bpf_lsm("bpf_lsm_sk_getsecid", 0, &prog);
	for (i = 0; i < ASKED; i++) {
		request(&s, &to, "x", 1, 0, 0);
		CHECK(receive(&t, 0, 0) == 1, "request %d", i);
	}
	CHECK(bpf_calls(prog) >= ASKED, "%llu times for %d messages",
	      (unsigned long long)bpf_calls(prog), ASKED);
	CHECK(!close(attached), "detach");
}

static const struct check checks[] = {
	{ "a cgroup's program refuses what comes in", cgroup_in },
	{ "a cgroup's program refuses what goes out", cgroup_out },
	{ "a security module refuses what comes in", security_in },
	{ "a security module labels what goes out", security_label },
};

int main(int argc, char **argv)
{
	char prefix[32];
	int failed;

	CHECK(argc >= 5, "arguments");
	family = *argv[1] == '4' ? AF_INET : AF_INET6;
	ip = argv[2];
	peer = address(family, argv[3], atoi(argv[4]));
	snprintf(prefix, sizeof(prefix), "policy v%c: ", *argv[1]);
	failed = run_checks(checks, ARRAY_SIZE(checks), prefix, 120, argv + 5);
	print_plan();
	return failed != 0;
}
