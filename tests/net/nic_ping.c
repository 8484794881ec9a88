// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Measures one packet I/O backend by itself, without the protocol above it, and
 * serves the network tests as their hands: it echoes, sends, prints what it
 * receives and which errors came back, one JSON object per line. Built, not
 * installed.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "netif.h"
#include "nic.h"

#define BATCH 32
#define HDR_LEN 56
#define MAX_PAYLOAD 65000
#define MAX_SAMPLES 4000000

enum wait_how { WAIT_SPIN, WAIT_YIELD, WAIT_BLOCK };

struct options {
	struct nic_config nic;
	const char *what;
	struct homa_addr peer;
	u32 size;
	u64 count;
	double seconds;
	u32 window;
	u8 prio;
	u16 sport;
	u16 dport;
	enum wait_how wait;
	u32 spin_us;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ULL + (u64)ts.tv_nsec;
}

/* ---- waiting: how a host would ---- */

static u64 idle_since;

static void idle(struct nic *nic, const struct options *o, bool worked)
{
	struct pollfd pfd = { .fd = nic_fd(nic), .events = POLLIN };
	u64 now;

	if (worked) {
		idle_since = 0;
		return;
	}
	if (o->wait == WAIT_SPIN)
		return;
	if (o->wait == WAIT_YIELD) {
		now = now_ns();
		if (!idle_since)
			idle_since = now;
		if (now - idle_since < o->spin_us * 1000ULL) {
			sched_yield();
			return;
		}
	}
	if (!nic_arm(nic))
		poll(&pfd, 1, 20);
	idle_since = 0;
}

/* ---- packets ---- */

static u8 payload[MAX_PAYLOAD];

static void make_header(u8 *hdr, const struct options *o, u64 id)
{
	memset(hdr, 0, HDR_LEN);
	homa_put_be16(hdr, o->sport);
	homa_put_be16(hdr + 2, o->dport);
	hdr[11] = 0x10; /* DATA */
	hdr[12] = 14 << 4;
	homa_put_be64(hdr + 20, id);
	homa_put_be32(hdr + 28, o->size);
	homa_put_be32(hdr + 32, o->size);
}

static void make_packet(struct nic_tx *tx, u8 *hdr, const struct options *o,
			u64 id)
{
	make_header(hdr, o, id);
	memset(tx, 0, sizeof(*tx));
	tx->dst = o->peer;
	tx->hdr = hdr;
	tx->hdr_len = HDR_LEN;
	tx->payload = payload;
	tx->payload_len = o->size;
	tx->prio = o->prio;
}

/* ---- output ---- */

static void print_address(const char *key, const struct homa_addr *addr)
{
	char text[48];

	printf("\"%s\": \"%s\", \"%s_port\": %u, ", key,
	       nic_addr_text(addr, text, sizeof(text)), key, addr->encap);
}

static void print_info(struct nic *nic)
{
	const struct nic_info *info = nic_info(nic);

	printf("{\"event\": \"open\", \"backend\": \"%s\", \"detail\": \"%s\", ",
	       info->name, info->detail);
	print_address("address", &info->address);
	printf("\"mtu\": %u, \"link_mbps\": %u, \"max_segs\": %u, \"ephemeral\": %s}\n",
	       info->mtu, info->link_mbps, info->max_segs,
	       info->ephemeral ? "true" : "false");
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

static void print_packet(const struct nic_rx *pkt)
{
	u32 sum = 0;

	for (u32 i = 0; i < pkt->len; i++)
		sum = sum * 31 + pkt->data[i];
	printf("{\"event\": \"packet\", ");
	print_address("src", &pkt->src);
	print_address("dst", &pkt->dst);
	printf("\"len\": %u, \"prio\": %u, \"ecn\": %u, \"hash\": %u, \"id\": %llu}\n",
	       pkt->len, pkt->prio, pkt->ecn, sum,
	       (unsigned long long)(pkt->len >= 28 ?
					    homa_get_be64(pkt->data + 20) :
					    0));
	fflush(stdout);
}

static u32 print_errors(struct nic *nic)
{
	struct nic_error errors[16];
	int n = nic_errors(nic, errors, 16);

	for (int i = 0; i < n; i++) {
		if (errors[i].error == EMSGSIZE)
			nic_believe_mtu(nic, &errors[i].dst, errors[i].mtu);
		printf("{\"event\": \"error\", ");
		print_address("dst", &errors[i].dst);
		printf("\"sport\": %u, \"dport\": %u, \"id\": %llu, \"error\": \"%s\", \"mtu\": %u}\n",
		       errors[i].sport, errors[i].dport,
		       (unsigned long long)errors[i].sender_id,
		       strerrorname_np(errors[i].error), errors[i].mtu);
	}
	fflush(stdout);
	return n > 0 ? (u32)n : 0;
}

/* ---- what it does ---- */

/* Sends all, receiving nothing meanwhile; gives up after a second. */
static int send_all(struct nic *nic, const struct nic_tx *pkts, int n)
{
	u64 deadline = now_ns() + 1000000000ULL;
	int sent = 0;

	while (sent < n) {
		sent += nic_tx(nic, pkts + sent, n - sent);
		nic_flush(nic);
		if (sent < n && (stop || now_ns() > deadline))
			break;
		if (sent < n)
			sched_yield();
	}
	return sent;
}

static void echo_back(struct nic *nic, const struct nic_rx *rx, int n)
{
	struct nic_tx tx[BATCH];

	for (int i = 0; i < n; i++) {
		u32 hdr = rx[i].len < HDR_LEN ? rx[i].len : HDR_LEN;

		memset(&tx[i], 0, sizeof(tx[i]));
		tx[i].dst = rx[i].src;
		tx[i].hdr = rx[i].data;
		tx[i].hdr_len = hdr;
		tx[i].payload = rx[i].data + hdr;
		tx[i].payload_len = rx[i].len - hdr;
		tx[i].prio = rx[i].prio;
	}
	send_all(nic, tx, n);
}

/* echo, refuse, dump, sink: what happens to received packets. */
static int serve(struct nic *nic, const struct options *o)
{
	struct nic_rx rx[BATCH];
	u64 seen = 0, bytes = 0, first = 0, last = 0;
	u64 deadline = o->seconds > 0 ? now_ns() + (u64)(o->seconds * 1e9) : 0;
	u32 turn = 0;

	while (!stop && (!o->count || seen < o->count)) {
		int n = nic_rx(nic, rx, BATCH);

		if (n && !strcmp(o->what, "echo"))
			echo_back(nic, rx, n);
		for (int i = 0; i < n; i++) {
			bytes += rx[i].len;
			if (!strcmp(o->what, "refuse"))
				nic_port_unreachable(nic, &rx[i]);
			else if (!strcmp(o->what, "dump"))
				print_packet(&rx[i]);
		}
		nic_rx_release(nic, rx, n);
		seen += (u64)n;
		if (n) {
			last = now_ns();
			if (!first)
				first = last;
		}
		idle(nic, o, n > 0);
		if (!(++turn & 63) || !n)
			print_errors(nic);
		if (deadline && !n && now_ns() > deadline)
			break;
	}
	if (!strcmp(o->what, "sink") && last > first)
		printf("{\"event\": \"goodput\", \"packets\": %llu, \"gbps\": %.3f, \"kpps\": %.1f}\n",
		       (unsigned long long)seen,
		       (double)bytes * 8 / (double)(last - first),
		       (double)seen * 1e6 / (double)(last - first));
	print_stats(nic);
	return deadline && o->count && seen < o->count ? 1 : 0;
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Keeps a window of packets outstanding; one that is lost is replaced after
 * 100 ms of silence. */
static int ping(struct nic *nic, const struct options *o)
{
	static u8 hdrs[BATCH][HDR_LEN];
	u32 *samples = malloc(MAX_SAMPLES * sizeof(*samples));
	struct nic_rx rx[BATCH];
	struct nic_tx tx[BATCH];
	u64 sent = 0, got = 0, lost = 0, start, last, now;
	u32 n_samples = 0, outstanding = 0, quiet = 0, refused = 0;

	if (!samples)
		return 1;
	start = last = now_ns();
	while (!stop && got + lost < o->count && !refused) {
		int n = 0;

		while (outstanding < o->window && sent < o->count && n < BATCH) {
			make_packet(&tx[n], hdrs[n], o, 0);
			/* the time rides in the packet */
			homa_put_be64(hdrs[n] + 40, now_ns());
			homa_put_be64(hdrs[n] + 20, sent * 2);
			n++, sent++, outstanding++;
		}
		if (n)
			send_all(nic, tx, n);
		n = nic_rx(nic, rx, BATCH);
		if (n || !(++quiet & 1023) || o->wait == WAIT_BLOCK) {
			now = now_ns();
			if (n)
				last = now;
			if (now - last > 100000000ULL) {
				refused = print_errors(nic) && !(o->seconds > 0);
				lost += outstanding;
				outstanding = 0;
				last = now;
			}
			if (o->seconds > 0 &&
			    now - start > (u64)(o->seconds * 1e9))
				break;
			for (int i = 0; i < n; i++) {
				u64 rtt = now - homa_get_be64(rx[i].data + 40);

				if (n_samples < MAX_SAMPLES)
					samples[n_samples++] = (u32)rtt;
			}
		}
		got += (u64)n;
		outstanding -= homa_min_u32(outstanding, (u32)n);
		nic_rx_release(nic, rx, n);
		idle(nic, o, n > 0);
	}
	now = last;
	qsort(samples, n_samples, sizeof(*samples), compare_u32);
	printf("{\"event\": \"ping\", \"sent\": %llu, \"received\": %llu, \"lost\": %llu, \"kpps\": %.1f, \"rtt_us\": {\"p50\": %.2f, \"p99\": %.2f, \"min\": %.2f}}\n",
	       (unsigned long long)sent, (unsigned long long)got,
	       (unsigned long long)lost,
	       now > start ? (double)got * 1e6 / (double)(now - start) : 0,
	       n_samples ? samples[n_samples / 2] / 1e3 : 0,
	       n_samples ? samples[(u64)n_samples * 99 / 100] / 1e3 : 0,
	       n_samples ? samples[0] / 1e3 : 0);
	free(samples);
	print_stats(nic);
	return got ? 0 : 1;
}

/* As many packets as the window allows per nic_tx(), until the count is sent. */
static int bulk(struct nic *nic, const struct options *o)
{
	static u8 hdrs[1024][HDR_LEN];
	static struct nic_tx tx[1024];
	u32 window = homa_min_u32(o->window, 1024);
	u64 sent = 0, start, spent;

	for (u32 i = 0; i < window; i++)
		make_packet(&tx[i], hdrs[i], o, 2 * i);
	start = now_ns();
	while (!stop && sent < o->count) {
		u32 n = (u32)homa_min_u64(window, o->count - sent);
		int done = nic_tx(nic, tx, (int)n);

		nic_flush(nic);
		sent += (u64)done;
		if (!done) {
			struct nic_rx rx[BATCH];
			int got = nic_rx(nic, rx, BATCH); /* the slow side */

			nic_rx_release(nic, rx, got);
			sched_yield();
		}
		if (o->seconds > 0 && now_ns() - start > (u64)(o->seconds * 1e9))
			break;
	}
	spent = now_ns() - start;
	printf("{\"event\": \"bulk\", \"packets\": %llu, \"gbps\": %.3f, \"kpps\": %.1f}\n",
	       (unsigned long long)sent,
	       (double)sent * (HDR_LEN + o->size) * 8 / (double)spent,
	       (double)sent * 1e6 / (double)spent);
	print_stats(nic);
	return 0;
}

/* Sends --count packets, then prints what comes back for --seconds. */
static int send_some(struct nic *nic, const struct options *o)
{
	u64 deadline = now_ns() + (u64)((o->seconds > 0 ? o->seconds : 1) * 1e9);
	u8 hdr[HDR_LEN];
	struct nic_rx rx[BATCH];
	struct nic_tx tx;
	u32 mtu = 0;
	int rc = nic_route(nic, &o->peer, &mtu);

	printf("{\"event\": \"route\", \"error\": \"%s\", \"mtu\": %u}\n",
	       rc ? strerrorname_np(-rc) : "", mtu);
	for (u64 i = 0; i < o->count; i++) {
		make_packet(&tx, hdr, o, 2 * i);
		send_all(nic, &tx, 1);
	}
	while (!stop && now_ns() < deadline) {
		int n = nic_rx(nic, rx, BATCH);

		for (int i = 0; i < n; i++)
			print_packet(&rx[i]);
		nic_rx_release(nic, rx, n);
		if (print_errors(nic) && o->window == 1)
			break;
		idle(nic, o, n > 0);
	}
	rc = nic_route(nic, &o->peer, &mtu);
	printf("{\"event\": \"route\", \"error\": \"%s\", \"mtu\": %u}\n",
	       rc ? strerrorname_np(-rc) : "", mtu);
	print_stats(nic);
	return 0;
}

static int hold(struct nic *nic)
{
	while (!stop) {
		struct nic_rx rx[BATCH];
		int n = nic_rx(nic, rx, BATCH);

		nic_rx_release(nic, rx, n);
		poll(NULL, 0, 10);
	}
	print_stats(nic);
	return 0;
}

static int run(struct nic *nic, const struct options *o)
{
	print_info(nic);
	if (!strcmp(o->what, "info"))
		return 0;
	if (!strcmp(o->what, "hold"))
		return hold(nic);
	if (!strcmp(o->what, "ping"))
		return ping(nic, o);
	if (!strcmp(o->what, "bulk"))
		return bulk(nic, o);
	if (!strcmp(o->what, "send"))
		return send_some(nic, o);
	return serve(nic, o);
}

static void usage(void)
{
	fputs("usage: nic_ping [options] echo|sink|dump|refuse|hold|info\n"
	      "       nic_ping [options] ping|bulk|send ADDRESS [UDP-PORT]\n"
	      "  --backend afxdp|packet|udp  --interface NAME  --address ADDRESS  --port N\n"
	      "  --queue N  --queues N  --frames N  --mode 0|1|2|3  --no-offload\n"
	      "  --busy-poll  --size BYTES (payload)  --count N  --seconds S\n"
	      "  --window N  --prio N  --sport N  --dport N\n"
	      "  --wait spin|yield|block  --spin-us N\n",
	      stderr);
}

/* clang-format off: tables */
enum {
	OPT_BACKEND = 256,
	OPT_INTERFACE,
	OPT_ADDRESS,
	OPT_PORT,
	OPT_QUEUE,
	OPT_QUEUES,
	OPT_FRAMES,
	OPT_MODE,
	OPT_NO_OFFLOAD,
	OPT_BUSY_POLL,
	OPT_SIZE,
	OPT_COUNT,
	OPT_SECONDS,
	OPT_WINDOW,
	OPT_PRIO,
	OPT_SPORT,
	OPT_DPORT,
	OPT_WAIT,
	OPT_SPIN
};

static const struct option long_options[] = {
	{ "backend", 1, NULL, OPT_BACKEND },
	{ "interface", 1, NULL, OPT_INTERFACE },
	{ "address", 1, NULL, OPT_ADDRESS },
	{ "port", 1, NULL, OPT_PORT },
	{ "queue", 1, NULL, OPT_QUEUE },
	{ "queues", 1, NULL, OPT_QUEUES },
	{ "frames", 1, NULL, OPT_FRAMES },
	{ "mode", 1, NULL, OPT_MODE },
	{ "no-offload", 0, NULL, OPT_NO_OFFLOAD },
	{ "busy-poll", 0, NULL, OPT_BUSY_POLL },
	{ "size", 1, NULL, OPT_SIZE },
	{ "count", 1, NULL, OPT_COUNT },
	{ "seconds", 1, NULL, OPT_SECONDS },
	{ "window", 1, NULL, OPT_WINDOW },
	{ "prio", 1, NULL, OPT_PRIO },
	{ "sport", 1, NULL, OPT_SPORT },
	{ "dport", 1, NULL, OPT_DPORT },
	{ "wait", 1, NULL, OPT_WAIT },
	{ "spin-us", 1, NULL, OPT_SPIN },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

static void set_option(struct options *o, int option)
{
	u32 v = optarg ? (u32)strtoul(optarg, NULL, 0) : 0;

	/* clang-format off */
	switch (option) {
	case OPT_BACKEND: o->nic.backend = optarg; break;
	case OPT_INTERFACE: o->nic.interface = optarg; break;
	case OPT_ADDRESS: o->nic.address = optarg; break;
	case OPT_PORT: o->nic.udp_port = (u16)v; break;
	case OPT_QUEUE: o->nic.queue = v; break;
	case OPT_QUEUES: o->nic.queues = v; break;
	case OPT_FRAMES: o->nic.frames = v; break;
	case OPT_MODE: o->nic.mode = (int)v; break;
	case OPT_NO_OFFLOAD: o->nic.no_offload = true; break;
	case OPT_BUSY_POLL: o->nic.busy_poll = true; break;
	case OPT_SIZE: o->size = homa_min_u32(v, MAX_PAYLOAD); break;
	case OPT_COUNT: o->count = strtoull(optarg, NULL, 0); break;
	case OPT_SECONDS: o->seconds = strtod(optarg, NULL); break;
	case OPT_WINDOW: o->window = v ? v : 1; break;
	case OPT_PRIO: o->prio = (u8)(v & 7); break;
	case OPT_SPORT: o->sport = (u16)v; break;
	case OPT_DPORT: o->dport = (u16)v; break;
	case OPT_SPIN: o->spin_us = v; break;
	case OPT_WAIT:
		o->wait = !strcmp(optarg, "spin") ? WAIT_SPIN :
			  !strcmp(optarg, "block") ? WAIT_BLOCK : WAIT_YIELD;
		break;
	}
	/* clang-format on */
}

int main(int argc, char **argv)
{
	struct options o = {
		.nic = { .backend = "udp" },
		.size = 44,
		.window = 1,
		.prio = 6,
		.sport = 40000,
		.dport = 100,
		.wait = WAIT_YIELD,
		.spin_us = 50,
	};
	struct sigaction sa = { .sa_handler = on_signal };
	char err[512] = "";
	struct nic *nic;
	int option, rc;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?') {
			usage();
			return 2;
		}
		set_option(&o, option);
	}
	if (optind >= argc) {
		usage();
		return 2;
	}
	o.what = argv[optind++];
	if (optind < argc && nic_addr_parse(argv[optind++], &o.peer)) {
		fprintf(stderr, "nic_ping: not an address: %s\n",
			argv[optind - 1]);
		return 2;
	}
	if (!strcmp(o.nic.backend, "udp"))
		o.peer.encap = 54321;
	if (optind < argc)
		o.peer.encap = (u16)strtoul(argv[optind], NULL, 0);
	if (!o.count && strcmp(o.what, "dump") && strcmp(o.what, "echo") &&
	    strcmp(o.what, "sink") && strcmp(o.what, "refuse"))
		o.count = !strcmp(o.what, "send") ? 1 : 100000;
	for (u32 i = 0; i < sizeof(payload); i++)
		payload[i] = (u8)(i * 7);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	rc = nic_open(&nic, &o.nic, err, sizeof(err));
	if (rc) {
		fprintf(stderr, "nic_ping: %s\n", err);
		printf("{\"event\": \"refused\", \"error\": \"%s\"}\n",
		       strerrorname_np(-rc));
		return 3;
	}
	rc = run(nic, &o);
	nic_close(nic);
	return rc;
}
