// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Why packets are dropped, as the kernel's tracepoint skb:kfree_skb says. */
#include <linux/filter.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include "life.h"

#define TRACING "/sys/kernel/tracing/"

static void tracing(bool on)
{
	if (write_file(TRACING "set_event", on ? "skb:kfree_skb" : ""))
		skip("there is no tracepoint skb:kfree_skb");
	if (on)
		CHECK(!write_file(TRACING "trace", ""), "trace");
}

/* Can this be a packet of Homa's? Later kernels say which function dropped it; on others IPv6 has
 * packets of its own. */
static bool ours(const char *line)
{
	if (strstr(line, "+0x"))
		return strstr(line, "[homa]");
	return strstr(line,
		      family == AF_INET ? "protocol=2048 " : "protocol=34525 ");
}

/* How many packets were dropped for @reason (NULL: for any)? */
static int drops(const char *reason)
{
	FILE *f = fopen(TRACING "trace", "r");
	char line[512];
	int n = 0;

	CHECK(f, "trace");
	while (fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "reason: ");

		if (!at || !ours(line))
			continue;
		at += strlen("reason: ");
		if (!reason || (!strncmp(at, reason, strlen(reason)) &&
				strcspn(at, " \n") == strlen(reason)))
			n++;
	}
	fclose(f);
	return n;
}

static void drops_become(const char *reason)
{
	double end = now() + 60 * patience();

	while (!drops(reason)) {
		CHECK(now() < end, "nothing was dropped for %s", reason);
		usleep(5000);
	}
	if (family == AF_INET)
		CHECK(!drops("NOT_SPECIFIED"), "a reason is missing");
}

/* An echo of one byte by @t, whose response @s is not asked for. */
static void ask(struct sock *s, struct sock *t, const union address *to)
{
	struct homa_sendmsg_args args = { 0 };

	request(s, to, "x", 1, 0, 0);
	CHECK(receive(t, 0, 0) == 1, "request");
	args.id = t->args.id;
	CHECK(!send_raw(t->fd, &t->from, t->from_size, "y", 1, &args, 0),
	      "response");
}

void life_drops(void)
{
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog filter = { 1, none };
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	union address to = address(family, ip, 4050),
		      nobody = address(family, ip, 4999);
	int i, off = 0;

	bind_sock(&t, 4050);
	/* Where memory is checked an answer takes long: no questions meanwhile,
	 * whose second answers would be dropped. */
	sysctl_set("resend_ticks", 10000);
	tracing(true);
	/* Nothing is dropped if all goes well. */
	for (i = 0; i < 20; i++) {
		ask(&s, &t, &to);
		CHECK(receive(&s, 0, 0) == 1, "response");
	}
	if (family == AF_INET)
		CHECK(!drops(NULL), "%d were dropped", drops(NULL));
	sysctl_set("resend_ticks", 0);
	tracing(true);
	request(&s, &nobody, "x", 1, 0, 0);
	FAILS(receive(&s, 0, 0), ENOTCONN);
	s.args.num_bpages = 0;
	drops_become("NO_SOCKET");
	tracing(true);
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			  sizeof(filter)),
	      "SO_ATTACH_FILTER");
	ask(&s, &t, &to);
	drops_become("SOCKET_FILTER");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)),
	      "SO_DETACH_FILTER");
	CHECK(receive(&s, 0, 0) == 1, "response");
	tracing(false);
	close_sock(&s);
	close_sock(&t);
}
