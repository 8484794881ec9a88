// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Random packets into the module, for a time:
 *
 *	fuzz_packets 4|6 plain|napi|frags SEED SECONDS [FILE]
 *
 * A round is a valid conversation in which packets are changed on their way: a
 * field that hurts, bits, length, order, copies, the buffer's shape, marks for
 * segmentation. RPCs in both directions are open all the time, so that changed
 * packets concern something that exists. After each round an RPC must work in
 * both directions; at the end nothing may be left. With FILE, what an earlier run
 * printed: the same rounds again (steer.h).
 */
#include <signal.h>
#include "peer.h"
#include "steer.h"

enum { OPEN = 32 };
static uint64_t ids[OPEN]; /* of both kinds: what changed packets speak of */
static unsigned int next_open;
static struct genome genome; /* of this round */
static struct draws draws;
static unsigned long packets;
static int client_side;

static uint32_t below(uint32_t n)
{
	return draw_below(&draws, n);
}

static uint64_t sore(void)
{
	static const uint64_t values[] = {
		0,	    1,		2,	    3,		4,
		28,	    55,		56,	    57,		80,
		1399,	    1400,	1424,	    65535,	65536,
		999999,	    1000000,	1000001,    0x7fffffff, 0x80000000,
		0xfffffffe, 0xffffffff, 1ull << 63, ~0ull,
	};

	if (below(3))
		return values[below(ARRAY_SIZE(values))];
	return draw(&draws) >> below(64);
}

static void remember(uint64_t id)
{
	ids[next_open++ % OPEN] = id;
}

static uint64_t any_id(void)
{
	return below(8) ? ids[below(OPEN)] ^ !below(3) : sore();
}

/* A packet that makes sense for RPC @id, more or less. */
static void sensible(uint64_t id)
{
	static const size_t bytes[] = { 0, 33, 37, 28, 28, 62, 28, 28, 80, 32 };
	uint32_t type = below(3) ? 0 : below(HOMA_TYPES), length, offset, n, i;
	bool to_client = id & 1;
	int dport = to_client ? client_side : PORT,
	    peer = 2 + (int)below(below(3) ? 1 : 3);
	uint8_t *homa;

	if (!type) {
		/* An RPC's packets agree, mostly: then its message may become whole. */
		length = 1 + (uint32_t)((id | 1) * 2654435761u >> 7) %
				     ((id & 30) ? 5000 : 1000000);
		if (!below(20))
			length = 1 + below(1000000);
		offset = below(2) ? 0 : below(length);
		n = length - offset < 1400 ? length - offset : 1400;
		homa = make_data(&frame, peer, PEER_PORT, dport, id, length,
				 offset, n);
		put64(homa + 36, below(2) ? 0 : any_id());
		put16(homa + 44, PORT);
		put16(homa + 46, below(3));
		homa[48] = !below(4);
		return;
	}
	homa = make(&frame, peer, HOMA_TYPE_FIRST + (int)type, PEER_PORT, dport,
		    id, bytes[type]);
	for (i = 28; i + 4 <= bytes[type]; i += 4)
		put32(homa + i, below(3) ? below(200000) : (uint32_t)sore());
	if (type == HOMA_ACK - HOMA_TYPE_FIRST) {
		put16(homa + 28, below(7));
		for (i = 0; i < 5; i++) {
			put64(homa + 30 + 10 * i, any_id() & ~1ull);
			put16(homa + 38 + 10 * i, PORT);
		}
	}
}

static void change(void)
{
	uint8_t *homa = frame.bytes + frame.l4;
	size_t n = frame.size - frame.l4;

	if (n < HOMA_COMMON_HDR)
		return;
	switch (below(12)) {
	case 0:
		homa[11] = (uint8_t)(below(2) ? 0x10 + below(12) : below(256));
		break;
	case 1:
		put32(homa + 28 + 4 * below((uint32_t)(n > 56 ? 7 : 1)),
		      (uint32_t)sore());
		break;
	case 2:
		put32(homa + 4, (uint32_t)sore());
		break;
	case 3:
		put64(homa + 20, any_id());
		break;
	case 4:
		put16(homa + 2 * below(2), (uint32_t)sore());
		break;
	case 5:
		homa[below((uint32_t)n)] ^= (uint8_t)(1u << below(8));
		break;
	case 6:
		homa[below(n < 80 ? (uint32_t)n : 80)] = (uint8_t)sore();
		break;
	case 7:
		frame.size = frame.l4 + below((uint32_t)n + 1);
		break;
	case 8: /* longer than it was */
		frame.size += below(200);
		break;
	case 9:
		frame.bytes[ETH + below(IP_HEADER)] ^= (uint8_t)(1u << below(8));
		break;
	case 10:
		frame.vnet.flags = (uint8_t)below(3);
		frame.vnet.gso_type =
			(uint8_t)(uint8_t[]){ 1, 4, 3, 5, 0x81 }[below(5)];
		frame.vnet.gso_size = (uint16_t)sore();
		frame.vnet.hdr_len = (uint16_t)below(200);
		frame.vnet.csum_start = (uint16_t)below(80);
		frame.vnet.csum_offset = (uint16_t)below(40);
		break;
	case 11: /* for segmentation as Homa does it */
		homa[12] = 0xd0;
		frame.vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		frame.vnet.gso_type = version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
						     VIRTIO_NET_HDR_GSO_TCPV6;
		frame.vnet.gso_size =
			(uint16_t)(below(2) ? 4 + below(1500) : sore());
		frame.vnet.hdr_len = (uint16_t)(frame.l4 + 52);
		frame.vnet.csum_start = (uint16_t)frame.l4;
		frame.vnet.csum_offset = 16;
		break;
	}
}

static void send_somehow(void)
{
	size_t cuts[4] = { 0 };
	int i, n = flavour == TAP_FRAGS ? (int)below(4) : 0;

	if (below(20))
		seal(&frame);
	for (i = 0; i < n; i++)
		cuts[i] = (i ? cuts[i - 1] : ETH + IP_HEADER - 1) + 1 + below(40);
	send_split(&frame, cuts, n);
	packets++;
	if (!below(20)) {
		send_split(&frame, NULL, 0);
		packets++;
	}
}

/* The machine's own sockets go on living: requests out, whatever comes in is taken and answered. */
static void live(void)
{
	union address to = peer_address(2 + (int)below(3), PEER_PORT);
	static uint8_t bytes[100000];
	struct homa_sendmsg_args args = {
		.flags = below(4) ? 0 : HOMA_SENDMSG_PRIVATE
	};
	struct homa_abort_args abort = { .error = below(2) ? ECANCELED : 0 };

	size_t size = 1 + below(below(4) ? 3000 : 100000);

	if (!below(3) && !send_raw(cl.fd, &to, size_of(cl.family), bytes, size,
				   &args, MSG_DONTWAIT))
		remember(args.id ^ 1);
	if (receive(&cl, 0, MSG_DONTWAIT) < 0)
		cl.args.num_bpages = cl.args.num_bpages > HOMA_MAX_BPAGES ?
					     0 :
					     cl.args.num_bpages;
	if (receive(&sv, 0, MSG_DONTWAIT) > 0 && below(4)) {
		args = (struct homa_sendmsg_args){ .id = sv.args.id };
		send_raw(sv.fd, &sv.from, sv.from_size, bytes, 1 + below(3000),
			 &args, MSG_DONTWAIT);
	}
	if (!below(30)) {
		abort.id = below(4) ? ids[below(OPEN)] ^ 1 : 0;
		ioctl(cl.fd, HOMAIOCABORT, &abort);
	}
	while (next_seen(&seen, 0))
		;
}

static void fuzz_round(void)
{
	int i, n;

	draws = (struct draws){ &genome, 0, 0 };
	n = 50 + (int)below(150);
	for (i = 0; i < n; i++) {
		uint64_t id = any_id();

		if (!below(3)) {
			id = new_id();
			remember(id);
		}
		sensible(id);
		while (below(2))
			change();
		send_somehow();
		if (!below(4))
			live();
		covered(&draws);
	}
	while (receive(&sv, 0, MSG_DONTWAIT) > 0)
		;
}

/* A request and its response, both ways, with all patience; the rest has had its chance. */
static void still_works(unsigned long long round)
{
	struct homa_sendmsg_args args = { 0 };
	uint64_t id = new_id();
	union address to = peer_address(2, PEER_PORT);
	double end = now() + 60;
	ssize_t n = -1;

	/* Anew now and then: what was sent may have been lost for want of buffers. */
	while (n < 0 || sv.args.id != (id ^ 1)) {
		CHECK(now() < end, "round %llu: no request arrives any more",
		      round);
		make_data(&frame, 5, PEER_PORT, PORT, id, 100, 0, 100);
		send_packet(&frame);
		readable(sv.fd, 200);
		n = receive(&sv, 0, MSG_DONTWAIT);
		if (n < 0)
			sv.args.num_bpages = 0;
		while (next_seen(&seen, 0))
			;
	}
	args.id = id ^ 1;
	CHECK(!send_raw(sv.fd, &sv.from, sv.from_size, "x", 1, &args, 0),
	      "round %llu: no response", round);
	CHECK(await(&seen, HOMA_DATA, id ^ 1, 60000), "round %llu: no response",
	      round);
	args = (struct homa_sendmsg_args){ .flags = HOMA_SENDMSG_PRIVATE };
	CHECK(!send_raw(cl.fd, &to, size_of(cl.family), "y", 1, &args, 0),
	      "round %llu: no request", round);
	CHECK(await(&seen, HOMA_DATA, args.id, 60000), "round %llu: no request",
	      round);
	make_data(&frame, 2, PEER_PORT, client_side, args.id ^ 1, 50, 0, 50);
	send_packet(&frame);
	n = receive(&cl, args.id, 0);
	CHECK(n == 50, "round %llu: response of %zd bytes", round, n);
}

static void sockets(void)
{
	open_socks();
	client_side = client_port();
}

int main(int argc, char **argv)
{
	unsigned long long seed, round = 0;
	double end;
	int i;

	CHECK(argc >= 5, "arguments");
	signal(SIGPIPE, SIG_IGN);
	version = atoi(argv[1]);
	name_flavour(argv[2]);
	seed = strtoull(argv[3], NULL, 0);
	printf("# seed %llu\n", seed);
	sysctl_set("timeout_ticks", 500);
	sysctl_set("restart_guard_us", 1);
	tap_open();
	sockets();
	steer_begin(seed, argc > 5 ? argv[5] : NULL);
	cover(0);
	end = now() + atof(argv[4]);
	while ((argc > 5 || now() < end) && steer_next(&genome, round)) {
		fuzz_round();
		steer_lived(&genome, 0);
		still_works(round++);
		if (round % 20 == 0) {
			close_socks();
			sockets();
		}
	}
	close_socks();
	for (i = 0; i < 600 && metric("rpcs") > 0; i++)
		usleep(100000);
	CHECK(metric("rpcs") <= 0, "%lld RPCs are left", metric("rpcs"));
	printf("# %lu packets\n", packets);
	steer_print(round, "rounds");
	return 0;
}
