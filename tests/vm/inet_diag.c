// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Asks for sockets of protocol 146 as programs ask for those of TCP, by NETLINK_SOCK_DIAG:
 *
 *	inet_diag 4|6 [PORT [BUFFER]]	one line for each socket. BUFFER: bytes that each
 *					answer may have
 *	inet_diag filter 4|6 PORT	the same, and the kernel's filter program asks for the port
 *	inet_diag exact PORT		one socket by its name: "refused" with an errno
 *	inet_diag open COUNT PORT	COUNT sockets from PORT on; "ready", stays until killed
 *	inet_diag connected PORT PEER	a socket connected to 127.0.0.1 PEER; the same
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include "guest.h"

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 what;
	struct nlattr attr;
	struct inet_diag_bc_op ops[2];
};

static int ask(int family, int port, int flags, bool filter)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	struct request r = {
		.head = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			  .nlmsg_seq = 1 },
		.what = { .sdiag_family = (uint8_t)family,
			  .sdiag_protocol = IPPROTO_HOMA,
			  .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
			  .idiag_states = ~0u },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)), "netlink");
	r.head.nlmsg_len = NLMSG_LENGTH(sizeof(r.what));
	if (filter) {
		/* Is it the port? A jump to the end takes the socket, one beyond it refuses. */
		r.attr = (struct nlattr){ .nla_type = INET_DIAG_REQ_BYTECODE,
					  .nla_len = sizeof(r.attr) +
						     sizeof(r.ops) };
		r.ops[0] = (struct inet_diag_bc_op){ .code = INET_DIAG_BC_S_EQ,
						     .yes = sizeof(r.ops),
						     .no = sizeof(r.ops) + 4 };
		r.ops[1].no = (uint16_t)port;
		r.head.nlmsg_len += r.attr.nla_len;
	} else {
		r.what.id.idiag_sport = htons((uint16_t)port);
	}
	CHECK(send(fd, &r, r.head.nlmsg_len, 0) == (ssize_t)r.head.nlmsg_len,
	      "netlink");
	return fd;
}

static void show(const struct nlmsghdr *m)
{
	const struct inet_diag_msg *s = NLMSG_DATA(m);
	const struct nlattr *attr = (const struct nlattr *)(s + 1);
	long left = (long)m->nlmsg_len - (long)NLMSG_LENGTH(sizeof(*s));
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
	int family = s->idiag_family;

	printf("socket family=%d from=%s:%d to=%s:%d uid=%u inode=%u rqueue=%u wqueue=%u",
	       family == AF_INET ? 4 : 6,
	       inet_ntop(family, s->id.idiag_src, from, sizeof(from)),
	       ntohs(s->id.idiag_sport),
	       inet_ntop(family, s->id.idiag_dst, to, sizeof(to)),
	       ntohs(s->id.idiag_dport), s->idiag_uid, s->idiag_inode,
	       s->idiag_rqueue, s->idiag_wqueue);
	for (; left >= NLA_HDRLEN;
	     left -= NLA_ALIGN(attr->nla_len),
	     attr = (const void *)((const char *)attr + NLA_ALIGN(attr->nla_len)))
		if (attr->nla_type == INET_DIAG_SKMEMINFO)
			printf(" rmem=%u",
			       ((const uint32_t *)(attr +
						   1))[SK_MEMINFO_RMEM_ALLOC]);
	printf("\n");
}

static void listing(int fd, size_t size)
{
	static char buf[65536] __attribute__((aligned(8)));
	unsigned int answers = 0;

	for (;;) {
		ssize_t left = recv(fd, buf, size, MSG_TRUNC);
		struct nlmsghdr *m = (struct nlmsghdr *)buf;

		CHECK(left > 0 && left <= (ssize_t)size, "netlink");
		answers++;
		for (; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE) {
				printf("answers=%u\n", answers);
				return;
			}
			if (m->nlmsg_type == NLMSG_ERROR) {
				printf("refused %d\n",
				       -((struct nlmsgerr *)NLMSG_DATA(m))->error);
				return;
			}
			show(m);
		}
	}
}

static void stay(void)
{
	printf("ready\n");
	fflush(stdout);
	pause();
}

static void open_many(int count, int port)
{
	while (count--) {
		struct sock sock = open_sock(AF_INET, 0);

		bind_sock(&sock, port++);
	}
	stay();
}

static void open_connected(int port, int peer)
{
	struct sock sock = open_sock(AF_INET, 0);
	union address to = address(AF_INET, "127.0.0.1", peer);

	bind_sock(&sock, port);
	CHECK(!connect(sock.fd, &to.sa, sizeof(to.in4)), "connect");
	stay();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	CHECK(argc > 1, "arguments");
	if (!strcmp(how, "open") && argc == 4)
		open_many(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(how, "connected") && argc == 4)
		open_connected(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(how, "filter") && argc == 4)
		listing(ask(*argv[2] == '4' ? AF_INET : AF_INET6, atoi(argv[3]),
			    NLM_F_DUMP, true),
			65536);
	else if (!strcmp(how, "exact") && argc == 3)
		listing(ask(AF_INET, atoi(argv[2]), 0, false), 65536);
	else
		listing(ask(*how == '4' ? AF_INET : AF_INET6,
			    argc > 2 ? atoi(argv[2]) : 0, NLM_F_DUMP, false),
			argc > 3 ? (size_t)atoi(argv[3]) : 65536);
	return 0;
}
