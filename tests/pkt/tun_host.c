// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A host with our TCP behind a TUN device, in real time: the kernel on the other side is
 * the peer. It serves or opens connections; on each, both ends send so many bytes (value:
 * position modulo 251), shut down, and read to the end.
 *
 *	tcp_tun DEVICE ADDRESS serve|connect PEER PORT CONNECTIONS BYTES LOSS SEED
 *
 * LOSS: packets dropped in either direction, per thousand. The end is told on standard
 * output, "N connections, N bytes in, N retransmits"; exit status 1 if bytes were wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "bed_impl.h"

#define CONNECTIONS 200
#define MTU 1500
#define LONGEST_MS 20
#define BATCH 256

struct one {
	int fd;
	u32 wrote, read;
	bool shut, done;
};

struct host {
	struct pkt_bed *bed;
	struct homa_rng rng;
	int tun;
	int listener;
	u8 peer[16];
	u16 port;
	u32 wanted, bytes, loss, opened, done;
	u64 total, begun;
	bool serves, failed;
	struct one one[CONNECTIONS];
};

static u64 clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * TAS_SEC + (u64)ts.tv_nsec;
}

static int open_tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool lost(struct host *h)
{
	return homa_rng_below(&h->rng, 1000) < h->loss;
}

static void receive(struct host *h)
{
	u8 packet[BED_PACKET];
	ssize_t n;
	int i;

	for (i = 0; i < BATCH; i++) {
		n = read(h->tun, packet, sizeof(packet));
		if (n <= 0)
			return;
		if (!lost(h))
			pkt_bed_in(h->bed, packet, (u32)n);
	}
}

static void transmit(struct host *h)
{
	u8 packet[BED_PACKET];
	int n;

	while ((n = pkt_bed_out(h->bed, packet, sizeof(packet))) > 0)
		/* A full device drops, as networks do. */
		if (!lost(h) && write(h->tun, packet, (size_t)n) < 0 &&
		    errno != EAGAIN)
			h->failed = true;
}

static void open_more(struct host *h)
{
	int fd;

	while (h->opened < h->wanted) {
		if (h->serves) {
			fd = pkt_bed_accept(h->bed, h->listener);
			if (fd < 0)
				return;
		} else {
			fd = pkt_bed_socket(h->bed);
			pkt_bed_connect(h->bed, fd, h->peer, h->port);
		}
		h->one[h->opened++] = (struct one){ .fd = fd };
	}
}

static void fail(struct host *h, const char *what, int rc)
{
	fprintf(stderr, "tcp_tun: %s: %s\n", what, strerror(-rc));
	h->failed = true;
}

static void work(struct host *h, struct one *one)
{
	int n = 1;

	while (one->wrote < h->bytes && n > 0) {
		n = pkt_bed_write(h->bed, one->fd, h->bytes - one->wrote, 0);
		if (n > 0)
			one->wrote += (u32)n;
		else if (n != -EAGAIN)
			fail(h, "write", n);
	}
	if (one->wrote == h->bytes && !one->shut)
		one->shut = !pkt_bed_shutdown(h->bed, one->fd, SHUT_WR);
	n = 1;
	while (n > 0 && !h->failed) {
		n = pkt_bed_read(h->bed, one->fd, 1 << 20, 0);
		if (n > 0)
			one->read += (u32)n;
		else if (n < 0 && n != -EAGAIN)
			fail(h, "read", n);
	}
	if (n || !one->shut || h->failed)
		return;
	if (one->read != h->bytes)
		fail(h, "bytes missing", -EBADMSG);
	pkt_bed_close(h->bed, one->fd);
	one->done = true;
	h->done++;
	h->total += one->read;
}

static void round_of(struct host *h)
{
	u32 i;

	pkt_bed_run(h->bed, clock_ns() - h->begun);
	receive(h);
	open_more(h);
	for (i = 0; i < h->opened; i++)
		if (!h->one[i].done)
			work(h, &h->one[i]);
	transmit(h);
}

static void wait_for(struct host *h)
{
	struct pollfd pfd = { .fd = h->tun, .events = POLLIN };
	u64 now = clock_ns() - h->begun, next = pkt_bed_next(h->bed), ms;

	ms = next > now ? (next - now) / TAS_MSEC + 1 : 0;
	poll(&pfd, 1, (int)homa_min_u64(ms, LONGEST_MS));
}

/* Our FINs and last ACKs still have to arrive. */
static bool over(const struct host *h)
{
	struct homa_list *node;
	u32 i;

	if (h->done < h->wanted)
		return false;
	for (i = 0; i < h->bed->engine.table.size; i++)
		homa_list_for_each(node,
				   homa_table_bucket(&h->bed->engine.table, i))
			if (homa_container_of(node, struct tas_conn, f.hash)->f.state !=
			    TAS_TIME_WAIT)
				return false;
	return true;
}

static void mapped(u8 ip[16], const char *text)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	if (inet_pton(AF_INET, text, ip + 12) != 1 &&
	    inet_pton(AF_INET6, text, ip) != 1) {
		fprintf(stderr, "tcp_tun: %s is no address\n", text);
		exit(2);
	}
}

static void prepare(struct host *h, char **argv)
{
	u8 ip[16];

	mapped(ip, argv[2]);
	mapped(h->peer, argv[4]);
	h->serves = !strcmp(argv[3], "serve");
	h->port = (u16)atoi(argv[5]);
	h->wanted = homa_min_u32((u32)atoi(argv[6]), CONNECTIONS);
	h->bytes = (u32)atoi(argv[7]);
	h->loss = (u32)atoi(argv[8]);
	homa_rng_init(&h->rng, strtoull(argv[9], NULL, 0));
	h->begun = clock_ns();
	h->bed = pkt_bed_new(MTU, strchr(argv[2], ':') ? 6 : 4, ip,
			     homa_rng_next(&h->rng));
	h->tun = open_tun(argv[1]);
	if (!h->bed || h->tun < 0) {
		fprintf(stderr, "tcp_tun: %s: %s\n", argv[1], strerror(errno));
		exit(2);
	}
	pkt_bed_set(h->bed, "rcvbuf", 1 << 20);
	h->listener = pkt_bed_socket(h->bed);
	pkt_bed_bind(h->bed, h->listener, ip, h->port);
	if (h->serves)
		pkt_bed_listen(h->bed, h->listener, CONNECTIONS);
}

int main(int argc, char **argv)
{
	static struct host h;
	u64 again = 0;

	if (argc != 10) {
		fprintf(stderr,
			"usage: tcp_tun DEVICE ADDRESS serve|connect PEER PORT "
			"CONNECTIONS BYTES LOSS SEED\n");
		return 2;
	}
	prepare(&h, argv);
	printf("ready\n");
	fflush(stdout);
	while (!over(&h) && !h.failed) {
		round_of(&h);
		wait_for(&h);
	}
	pkt_bed_metric(h.bed, "retransmits", &again);
	printf("%u connections, %llu bytes in, %llu retransmits\n", h.done,
	       (unsigned long long)h.total, (unsigned long long)again);
	pkt_bed_free(h.bed);
	close(h.tun);
	return h.failed;
}
