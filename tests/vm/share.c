// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Homa and TCP on one link, and what each gets of it:
 *
 *	share serve PORT
 *	share run IP PORT [NAME=VALUE...]	one line: SHARE NAME=VALUE ...
 *	share set DEVICE PARENT HANDLE LIMIT PERCENT
 *						options of a homa qdisc (PARENT and
 *						HANDLE as 32 bits, hex), which tc cannot
 *	share flood IP	datagrams as Homa's in UDP, 30 MB/s, until it is killed
 *
 * The server answers Homa requests with as many bytes as they ask for, and does on
 * TCP connections what their first byte says. The client keeps going, each in a
 * thread of its own,
 *
 *	tcp=N		streams to the server	tcpdown=N	from it
 *	homa=N		requests of `size` bytes at any time, answered by 16
 *	homadown=N	the same the other way around
 *	short=N		one Homa RPC of N bytes each way every `gap` us, after the last
 *	tcpshort=N	the same on a TCP connection
 *
 * for `warm` ms, and then measures for `ms`: bytes of messages that ended and of
 * streams that were acknowledged, round trips in us (median, 99th percentile and
 * longest), and by how much the counters of this namespace grew that begin with
 * host_q. Nothing here judges; who asks knows what to expect.
 */
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "guest.h"

#define SAMPLES 20000u
#define STREAMS 16u

static struct {
	long tcp, tcpdown, homa, homadown, size, gap, warm, ms, tcpshort;
	long shorts; /* "short" */
} opt = { .size = 200000, .gap = 5000, .warm = 500, .ms = 1000 };

static const struct {
	const char *name;
	long *value;
} options[] = {
	{ "tcp", &opt.tcp },	  { "tcpdown", &opt.tcpdown },
	{ "homa", &opt.homa },	  { "homadown", &opt.homadown },
	{ "size", &opt.size },	  { "gap", &opt.gap },
	{ "warm", &opt.warm },	  { "ms", &opt.ms },
	{ "short", &opt.shorts }, { "tcpshort", &opt.tcpshort },
};

static union address server;
static atomic_bool measuring;

/* ---- server ---- */

static void *serve_homa(void *arg)
{
	static unsigned char answer[HOMA_MAX_MESSAGE_LENGTH];
	struct sock s = *(struct sock *)arg;

	for (;;) {
		ssize_t n = receive(&s, 0, 0);
		struct homa_sendmsg_args args = { .id = s.args.id };
		uint32_t size;

		if (n < (ssize_t)sizeof(size))
			continue;
		memcpy(&size, s.region + s.args.bpage_offsets[0], sizeof(size));
		if (!size || size > sizeof(answer))
			size = 16; /* somebody asks whether we are there */
		/* A client that is gone is no failure of ours. */
		send_raw(s.fd, &s.from, s.from_size, answer, size, &args, 0);
	}
	return NULL;
}

static void *serve_tcp(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char op, buf[65536] = { 0 };
	ssize_t n = recv(fd, &op, 1, 0);

	while (n > 0) {
		if (op == 'G') {
			n = send(fd, buf, sizeof(buf), 0);
			continue;
		}
		n = recv(fd, buf, sizeof(buf), 0);
		if (op == 'E' && n > 0)
			n = send(fd, buf, (size_t)n, 0);
	}
	close(fd);
	return NULL;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, arg), "thread");
}

static int server_main(int port)
{
	union address any = address(AF_INET, NULL, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sock s = open_bare(AF_INET, 0);

	give_region(&s, (size_t)64 << 20);
	bind_sock(&s, port);
	start(serve_homa, &s);
	start(serve_homa, &s);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(fd, &any.sa, size_of(AF_INET)) && !listen(fd, 64), "TCP");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int conn = accept(fd, NULL, NULL);

		CHECK(conn >= 0, "accept");
		setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		start(serve_tcp, (void *)(intptr_t)conn);
	}
}

/* ---- load ---- */

static int streams[STREAMS];
static atomic_int num_streams;
static atomic_llong tcp_down, homa_up, homa_down;

static int connected(char op)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	CHECK(!connect(fd, &server.sa, size_of(AF_INET)), "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	CHECK(send(fd, &op, 1, 0) == 1, "send");
	return fd;
}

static void *run_tcp(void *arg)
{
	int fd = connected('S');
	char buf[65536] = { 0 };

	(void)arg;
	streams[num_streams++] = fd;
	while (send(fd, buf, sizeof(buf), 0) > 0)
		;
	CHECK(0, "the stream ended");
	return NULL;
}

static void *run_tcpdown(void *arg)
{
	int fd = connected('G');
	char buf[65536];
	ssize_t n;

	(void)arg;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		tcp_down += n;
	CHECK(0, "the stream ended");
	return NULL;
}

static long long stream_bytes(void)
{
	long long sum = 0;
	int i;

	for (i = 0; i < num_streams; i++) {
		struct tcp_info info = { 0 };
		socklen_t size = sizeof(info);

		CHECK(!getsockopt(streams[i], IPPROTO_TCP, TCP_INFO, &info, &size),
		      "TCP_INFO");
		sum += (long long)info.tcpi_bytes_acked;
	}
	return sum;
}

/* Requests of one size, so many at any time. */
static void keep(long outstanding, long size, uint32_t response,
		 atomic_llong *bytes)
{
	struct sock s = open_bare(AF_INET, 0);
	unsigned char *buf = calloc(1, (size_t)size);
	long i;

	give_region(&s, (size_t)32 << 20);
	memcpy(buf, &response, sizeof(response));
	for (i = 0; i < outstanding; i++)
		request(&s, &server, buf, (size_t)size, 0, 0);
	for (;;) {
		CHECK(receive(&s, 0, 0) == (ssize_t)response, "an RPC failed");
		*bytes += opt.size;
		request(&s, &server, buf, (size_t)size, 0, 0);
	}
}

static void *run_homa(void *arg)
{
	(void)arg;
	keep(opt.homa, opt.size, 16, &homa_up);
	return NULL;
}

static void *run_homadown(void *arg)
{
	(void)arg;
	keep(opt.homadown, 100, (uint32_t)opt.size, &homa_down);
	return NULL;
}

/* ---- probes ---- */

struct probe {
	const char *name;
	unsigned int n;
	double us[SAMPLES];
};

static struct probe homa_probe = { .name = "short" };
static struct probe tcp_probe = { .name = "tcpshort" };

static void sample(struct probe *p, double begun)
{
	double us = (now() - begun) * 1e6;

	if (measuring && p->n < SAMPLES)
		p->us[p->n++] = us;
	usleep((useconds_t)opt.gap);
}

static void *probe_homa(void *arg)
{
	struct sock s = open_bare(AF_INET, 0);
	uint32_t response = (uint32_t)opt.shorts;
	unsigned char *buf = calloc(1, response);

	(void)arg;
	give_region(&s, (size_t)8 << 20);
	memcpy(buf, &response, sizeof(response));
	for (;;) {
		double begun = now();

		request(&s, &server, buf, response, 0, 0);
		CHECK(receive(&s, 0, 0) == (ssize_t)response, "short RPC");
		sample(&homa_probe, begun);
	}
	return NULL;
}

static void *probe_tcp(void *arg)
{
	size_t size = (size_t)opt.tcpshort, got;
	char *buf = calloc(1, size);
	int fd = connected('E');

	(void)arg;
	for (;;) {
		double begun = now();

		CHECK(send(fd, buf, size, 0) == (ssize_t)size, "send");
		for (got = 0; got < size;) {
			ssize_t n = recv(fd, buf, size - got, 0);

			CHECK(n > 0, "recv");
			got += (size_t)n;
		}
		sample(&tcp_probe, begun);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_probe(struct probe *p)
{
	if (!p->n)
		return;
	qsort(p->us, p->n, sizeof(*p->us), by_size);
	printf(" %s_n=%u %s_p50=%.0f %s_p99=%.0f %s_max=%.0f", p->name, p->n,
	       p->name, p->us[p->n / 2], p->name, p->us[p->n * 99 / 100],
	       p->name, p->us[p->n - 1]);
}

/* ---- the client ---- */

struct counters {
	int n;
	char names[32][32];
	long long values[32];
};

static void read_counters(struct counters *c)
{
	FILE *f = fopen("/proc/net/homa_metrics", "r");
	char line[512], name[128];
	long long value;

	c->n = 0;
	while (f && fgets(line, sizeof(line), f) && c->n < 32)
		if (sscanf(line, "%127s %lld", name, &value) == 2 &&
		    (!strncmp(name, "host_q", 6) || !strcmp(name, "rx_resend"))) {
			snprintf(c->names[c->n], sizeof(c->names[0]), "%.31s",
				 name);
			c->values[c->n++] = value;
		}
	if (f)
		fclose(f);
}

static void measure(void)
{
	long long bytes[4], begun[4];
	struct counters before, after;
	int i;

	usleep((useconds_t)opt.warm * 1000);
	read_counters(&before);
	begun[0] = stream_bytes();
	begun[1] = tcp_down;
	begun[2] = homa_up;
	begun[3] = homa_down;
	measuring = true;
	usleep((useconds_t)opt.ms * 1000);
	measuring = false;
	bytes[0] = stream_bytes();
	bytes[1] = tcp_down;
	bytes[2] = homa_up;
	bytes[3] = homa_down;
	read_counters(&after);
	printf("SHARE tcp=%lld tcpdown=%lld homa=%lld homadown=%lld",
	       bytes[0] - begun[0], bytes[1] - begun[1], bytes[2] - begun[2],
	       bytes[3] - begun[3]);
	print_probe(&homa_probe);
	print_probe(&tcp_probe);
	for (i = 0; i < after.n; i++)
		printf(" %s=%lld", after.names[i],
		       after.values[i] - (i < before.n ? before.values[i] : 0));
	printf("\n");
	fflush(stdout);
}

/* ---- options of the qdisc ---- */

static void *add_attr(struct nlmsghdr *nlh, int type, const void *data,
		      size_t size)
{
	struct rtattr *rta = (void *)((char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));

	rta->rta_type = (unsigned short)type;
	rta->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(rta), data, size);
	nlh->nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(nlh->nlmsg_len) + RTA_SPACE(size));
	return rta;
}

/* Ends with the kernel's error. */
static int set_main(char **argv)
{
	uint32_t limit = (uint32_t)atol(argv[3]), share = (uint32_t)atol(argv[4]);
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tc;
		char space[256];
	} req = {
		.nlh = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
			 .nlmsg_type = RTM_NEWQDISC,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.tc = { .tcm_ifindex = (int)if_nametoindex(argv[0]),
			.tcm_parent = (uint32_t)strtoul(argv[1], NULL, 16),
			.tcm_handle = (uint32_t)strtoul(argv[2], NULL, 16) },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr err;
		char space[1024];
	} answer;
	struct rtattr *opts;

	add_attr(&req.nlh, TCA_KIND, "homa", 5);
	opts = add_attr(&req.nlh, TCA_OPTIONS, NULL, 0);
	add_attr(&req.nlh, 1, &limit, sizeof(limit));
	add_attr(&req.nlh, 2, &share, sizeof(share));
	opts->rta_len =
		(unsigned short)((char *)&req + req.nlh.nlmsg_len - (char *)opts);
	CHECK(send(fd, &req, req.nlh.nlmsg_len, 0) > 0, "netlink");
	CHECK(recv(fd, &answer, sizeof(answer), 0) > 0, "netlink");
	CHECK(answer.nlh.nlmsg_type == NLMSG_ERROR, "%u", answer.nlh.nlmsg_type);
	if (answer.err.error)
		printf("%s\n", strerror(-answer.err.error));
	return answer.err.error ? 1 : 0;
}

/* ---- what looks like Homa ---- */

#define UDP_PORT 54321

static int flood_main(const char *ip)
{
	union address from = address(AF_INET, NULL, UDP_PORT);
	union address to = address(AF_INET, ip, UDP_PORT);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), i;
	char bytes[1200] = { 0 };

	CHECK(!bind(fd, &from.sa, size_of(AF_INET)), "bind");
	for (;;) {
		/* Some find no room, and some are answered by an error. */
		for (i = 0; i < 25; i++)
			sendto(fd, bytes, sizeof(bytes), 0, &to.sa,
			       size_of(AF_INET));
		usleep(1000);
	}
}

static void set_option(const char *text)
{
	const char *equals = strchr(text, '=');
	size_t i;

	for (i = 0; equals && i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == (size_t)(equals - text) &&
		    !strncmp(options[i].name, text, (size_t)(equals - text))) {
			*options[i].value = atol(equals + 1);
			return;
		}
	CHECK(0, "no option %s", text);
}

int main(int argc, char **argv)
{
	int i;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return server_main(atoi(argv[2]));
	if (argc == 7 && !strcmp(argv[1], "set"))
		return set_main(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "flood"))
		return flood_main(argv[2]);
	CHECK(argc >= 4 && !strcmp(argv[1], "run"), "arguments");
	server = address(AF_INET, argv[2], atoi(argv[3]));
	for (i = 4; i < argc; i++)
		set_option(argv[i]);
	CHECK(opt.tcp <= STREAMS, "streams");
	for (i = 0; i < opt.tcp; i++)
		start(run_tcp, NULL);
	for (i = 0; i < opt.tcpdown; i++)
		start(run_tcpdown, NULL);
	if (opt.homa)
		start(run_homa, NULL);
	if (opt.homadown)
		start(run_homadown, NULL);
	if (opt.shorts)
		start(probe_homa, NULL);
	if (opt.tcpshort)
		start(probe_tcp, NULL);
	measure();
	_exit(0);
}
