// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The least TCP with which a kernel at the other end can be talked to, straight on the
 * packet I/O layer: it claims ports, answers what comes, in order and without repeating
 * anything, and prints what it sees, one JSON object per line. The tests' hands; built,
 * not installed.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netif.h"
#include "nic.h"

#define BATCH 32
#define CONNS 64
#define PORTS 8
#define HDR_MAX 28
#define ISN 1000u

enum {
	FIN = 1,
	SYN = 2,
	RST = 4,
	PSH = 8,
	ACK = 16,
};

struct options {
	struct nic_config nic;
	const char *what;
	struct homa_addr peer;
	u16 peer_port;
	u16 ports[PORTS];
	u32 num_ports;
	u32 send;
	u32 size;
	u32 batch;
	bool refuse;
	bool push;
	bool bad_sum;
};

/**
 * struct conn - a connection that a peer opened
 * @peer, @local: addresses. @sport: the peer's port. @port: ours.
 * @next: the sequence number that is expected from the peer.
 * @sent: whether the bytes of --send were.
 * @bytes, @hash, @longest: of what has come: all bytes, and the longest segment.
 */
struct conn {
	struct homa_addr peer, local;
	u16 sport, port;
	u32 next;
	bool sent;
	u32 bytes, hash, longest;
};

static volatile sig_atomic_t stop;
static struct conn conns[CONNS];
static u32 num_conns;
static u8 stream[70000];

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void print_errors(struct nic *nic)
{
	struct nic_error e[8];
	int n = nic_errors(nic, e, 8);
	char src[48], dst[48];

	for (int i = 0; i < n; i++)
		printf("{\"event\": \"error\", \"proto\": %u, \"src\": \"%s\", \"dst\": \"%s\", \"sport\": %u, \"dport\": %u, \"seq\": %u, \"error\": \"%s\", \"mtu\": %u}\n",
		       e[i].proto, nic_addr_text(&e[i].src, src, sizeof(src)),
		       nic_addr_text(&e[i].dst, dst, sizeof(dst)), e[i].sport,
		       e[i].dport, e[i].seq, strerrorname_np(e[i].error),
		       e[i].mtu);
	fflush(stdout);
}

static void print_stats(struct nic *nic)
{
	struct nic_stats s;

	nic_stats(nic, &s);
	printf("{\"event\": \"stats\"");
#define X(name, text) \
	printf(", \"" #name "\": %llu", (unsigned long long)s.name);
	NIC_STATS(X)
#undef X
	printf("}\n");
	fflush(stdout);
}

/* Make a segment in @hdr; a SYN says how much a segment may hold and shifts the window by 7. */
static struct nic_tx make_segment(const struct options *o, const struct conn *c,
				  u32 seq, u8 flags, const u8 *payload, u32 len,
				  u8 *hdr)
{
	u32 hdr_len = flags & SYN ? HDR_MAX : 20;
	struct nic_tx tx = {
		.dst = c->peer,
		.src = &c->local,
		.proto = NIC_TCP,
		.hdr = hdr,
		.hdr_len = hdr_len,
		.payload = payload,
		.payload_len = len,
	};

	memset(hdr, 0, HDR_MAX);
	homa_put_be16(hdr, c->port);
	homa_put_be16(hdr + 2, c->sport);
	homa_put_be32(hdr + 4, seq);
	homa_put_be32(hdr + 8, flags & ACK ? c->next : 0);
	hdr[12] = (u8)(hdr_len / 4 << 4);
	hdr[13] = flags;
	homa_put_be16(hdr + 14, 65535);
	if (o->bad_sum)
		hdr[17] = 1; /* what is there is summed with the rest */
	if (flags & SYN) {
		homa_put_be32(hdr + 20,
			      2u << 24 | 4u << 16 | (o->size ? o->size : 1460));
		homa_put_be32(hdr + 24, 1u << 24 | 3u << 16 | 3u << 8 | 7);
	}
	return tx;
}

static void send_segment(struct nic *nic, const struct options *o,
			 const struct conn *c, u32 seq, u8 flags,
			 const u8 *payload, u32 len)
{
	u8 hdr[HDR_MAX];
	struct nic_tx tx = make_segment(o, c, seq, flags, payload, len, hdr);

	if (nic_tx(nic, &tx, 1) != 1)
		fprintf(stderr, "nic_tcp: no room to send\n");
}

/* --batch segments at a time; the last one of each time has PSH. The next sequence number. */
static u32 send_stream(struct nic *nic, const struct options *o, struct conn *c)
{
	struct nic_tx tx[BATCH];
	u8 hdr[BATCH][HDR_MAX];
	u32 at = 0, n = 0;

	while (at < o->send) {
		u32 len = homa_min_u32(o->size, o->send - at);
		bool last = n + 1 == o->batch || at + len == o->send;

		tx[n] = make_segment(o, c, ISN + 1 + at,
				     last || o->push ? ACK | PSH : ACK,
				     stream + at, len, hdr[n]);
		n++;
		at += len;
		if (!last)
			continue;
		if (nic_tx(nic, tx, (int)n) != (int)n)
			fprintf(stderr, "nic_tcp: no room to send\n");
		n = 0;
	}
	c->sent = true;
	return ISN + 1 + at;
}

static struct conn *find(const struct nic_rx *pkt, bool new)
{
	u16 sport = homa_get_be16(pkt->data), port = homa_get_be16(pkt->data + 2);
	struct conn *c;

	for (u32 i = 0; i < num_conns; i++) {
		c = &conns[i];
		if (c->sport == sport && c->port == port &&
		    homa_addr_equal(&c->peer, &pkt->src))
			return c;
	}
	if (!new)
		return NULL;
	c = &conns[num_conns < CONNS ? num_conns++ : 0];
	memset(c, 0, sizeof(*c));
	c->peer = pkt->src;
	c->local = pkt->dst;
	c->sport = sport;
	c->port = port;
	return c;
}

static void print_conn(const char *event, const struct conn *c)
{
	char src[48], dst[48];

	printf("{\"event\": \"%s\", \"src\": \"%s\", \"dst\": \"%s\", \"sport\": %u, \"port\": %u, \"bytes\": %u, \"hash\": %u, \"longest\": %u}\n",
	       event, nic_addr_text(&c->peer, src, sizeof(src)),
	       nic_addr_text(&c->local, dst, sizeof(dst)), c->sport, c->port,
	       c->bytes, c->hash, c->longest);
	fflush(stdout);
}

/* Takes the bytes behind the header of @head bytes, which is in the first piece. */
static void hash(struct conn *c, const struct nic_rx *pkt, u32 head)
{
	struct nic_piece one = { pkt->data, pkt->len };
	const struct nic_piece *piece = pkt->pieces ? pkt->pieces : &one;
	u32 left = pkt->len, len;

	for (; left; piece++, left -= len) {
		len = homa_min_u32(piece->len, left);
		for (u32 i = head; i < len; i++)
			c->hash = c->hash * 31 + piece->data[i];
		head = 0;
	}
}

static void take(struct nic *nic, const struct options *o,
		 const struct nic_rx *pkt)
{
	u8 flags = pkt->data[13];
	u32 seq = homa_get_be32(pkt->data + 4);
	u32 head = (u32)(pkt->data[12] >> 4) * 4;
	struct conn *c = find(pkt, flags & SYN);
	u32 len;

	if (!c || head < 20 || head > pkt->len || flags & RST)
		return;
	len = pkt->len - head;
	if (flags & SYN) {
		c->next = seq + 1;
		print_conn("syn", c);
		if (o->refuse)
			send_segment(nic, o, c, 0, RST | ACK, NULL, 0);
		else
			send_segment(nic, o, c, ISN, SYN | ACK, NULL, 0);
		return;
	}
	if (o->send && !c->sent)
		send_stream(nic, o, c);
	if (seq == c->next) {
		hash(c, pkt, head);
		c->bytes += len;
		c->longest = homa_max_u32(c->longest, len);
		c->next += len;
		if (flags & FIN) {
			c->next++;
			print_conn("fin", c);
			send_segment(nic, o, c, ISN + 1 + o->send, FIN | ACK,
				     NULL, 0);
			return;
		}
	}
	if (len || flags & FIN)
		send_segment(nic, o, c, ISN + 1 + o->send, ACK, NULL, 0);
}

static void serve(struct nic *nic, const struct options *o)
{
	struct nic_rx rx[BATCH];

	while (!stop) {
		struct pollfd pfd = { .fd = nic_fd(nic), .events = POLLIN };
		int n = nic_rx(nic, rx, BATCH);

		for (int i = 0; i < n; i++) {
			if (rx[i].proto != NIC_TCP || rx[i].len < 20)
				continue;
			take(nic, o, &rx[i]);
		}
		nic_rx_release(nic, rx, n);
		nic_flush(nic);
		print_errors(nic);
		if (!n && !nic_arm(nic))
			poll(&pfd, 1, 20);
	}
}

/* A SYN from our first port; what comes back of it, errors above all, serve() prints. */
static void open_one(struct nic *nic, const struct options *o)
{
	struct conn *c = &conns[num_conns++];

	c->peer = o->peer;
	c->sport = o->peer_port;
	c->port = o->ports[0];
	if (!nic_source(nic, &c->peer, c->local.ip))
		send_segment(nic, o, c, ISN, SYN, NULL, 0);
	else
		fprintf(stderr, "nic_tcp: no way there\n");
}

static const struct option long_options[] = {
	{ "interface", 1, NULL, 'i' }, { "mode", 1, NULL, 'm' },
	{ "queue", 1, NULL, 'q' },     { "queues", 1, NULL, 'n' },
	{ "port", 1, NULL, 'p' },      { "send", 1, NULL, 's' },
	{ "size", 1, NULL, 'z' },      { "refuse", 0, NULL, 'r' },
	{ "bad-sum", 0, NULL, 'b' },   { "backend", 1, NULL, 'B' },
	{ "batch", 1, NULL, 'c' },     { "push", 0, NULL, 'u' },
	{ NULL, 0, NULL, 0 },
};

static int set_option(struct options *o, int option)
{
	u32 v = optarg ? (u32)strtoul(optarg, NULL, 0) : 0;

	/* clang-format off */
	switch (option) {
	case 'i': o->nic.interface = optarg; break;
	case 'B': o->nic.backend = optarg; break;
	case 'm': o->nic.mode = (int)v; break;
	case 'q': o->nic.queue = v; break;
	case 'n': o->nic.queues = v; break;
	case 'p': if (o->num_ports < PORTS) o->ports[o->num_ports++] = (u16)v; break;
	case 's': o->send = homa_min_u32(v, sizeof(stream)); break;
	case 'z': o->size = v; break;
	case 'c': o->batch = v && v <= BATCH ? v : 1; break;
	case 'r': o->refuse = true; break;
	case 'u': o->push = true; break;
	case 'b': o->bad_sum = true; break;
	default: return -1;
	}
	/* clang-format on */
	return 0;
}

static int usage(void)
{
	fputs("usage: nic_tcp --interface NAME [options] serve | open ADDRESS PORT\n"
	      "  --port N (several)  --refuse  --send BYTES --size BYTES --batch N --push  --bad-sum\n"
	      "  --mode N  --queue N  --queues N  --backend NAME\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = { .nic = { .backend = "afxdp" }, .batch = 1 };
	struct sigaction sa = { .sa_handler = on_signal };
	char err[512] = "";
	struct nic *nic;
	int option, rc;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (set_option(&o, option))
			return usage();
	if (optind >= argc)
		return usage();
	o.what = argv[optind++];
	if (!strcmp(o.what, "open") && (optind + 2 != argc || !o.num_ports ||
					nic_addr_parse(argv[optind], &o.peer)))
		return usage();
	if (optind + 1 < argc)
		o.peer_port = (u16)strtoul(argv[optind + 1], NULL, 0);
	for (u32 i = 0; i < sizeof(stream); i++)
		stream[i] = (u8)(i % 251);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	rc = nic_open(&nic, &o.nic, err, sizeof(err));
	for (u32 i = 0; !rc && i < o.num_ports; i++) {
		rc = nic_tcp_port(nic, o.ports[i], true);
		if (rc) {
			snprintf(err, sizeof(err), "no TCP here");
			nic_close(nic);
		}
	}
	if (rc) {
		fprintf(stderr, "nic_tcp: %s\n", err);
		printf("{\"event\": \"refused\", \"error\": \"%s\"}\n",
		       strerrorname_np(-rc));
		return 3;
	}
	printf("{\"event\": \"open\", \"detail\": \"%s\"}\n",
	       nic_info(nic)->detail);
	fflush(stdout);
	if (!strcmp(o.what, "open"))
		open_one(nic, &o);
	serve(nic, &o);
	print_stats(nic);
	nic_close(nic);
	return 0;
}
