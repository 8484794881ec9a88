// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hostile packets: the shape in which they reach Homa. Cut off, padded, behind IP
 * options, in IP fragments, in buffers whose headers are spread over pages, in
 * batches, and marked as to be segmented when there is nothing to segment.
 */
#include "hostile_vm.h"

static const size_t type_bytes[HOMA_TYPES] = { 57, 33, 37, 28, 28,
					       62, 28, 28, 80, 32 };

/* Nothing that is short by a byte is taken for what it is not. */
void hostile_truncated(void)
{
	long long before;
	unsigned int sent = 0;
	size_t type, n;

	begin();
	before = metric("drop_short");
	for (type = 0; type < HOMA_TYPES; type++) {
		for (n = 0; n < type_bytes[type]; n++) {
			/* DATA with 56 bytes has a header, and nothing behind it. */
			if (type == 0 && n == HOMA_DATA_HDR)
				continue;
			make(&frame, 3, HOMA_TYPE_FIRST + (int)type, PEER_PORT,
			     PORT, new_id(), n);
			if (type == 0)
				put32(frame.bytes + frame.l4 + 28, 100);
			send_packet(&frame);
			sent++;
		}
	}
	n = barrier(-1);
	CHECK(n == 0, "%zu of %u were answered", n, sent);
	counted("drop_short", before, sent);
	CHECK(rpcs_of(sv.fd) == 0, "%u RPCs", rpcs_of(sv.fd));
	alive();
}

/* IP itself drops them; that it does is what Homa relies on. */
void hostile_cut_frames(void)
{
	size_t n, whole;

	begin();
	make_data(&frame, 2, PEER_PORT, PORT, new_id(), 100, 0, 100);
	seal(&frame);
	whole = frame.size;
	for (n = ETH; n < whole; n += n < 100 ? 1 : 7) {
		frame.size = n;
		send_split(&frame, NULL, 0);
	}
	barrier(-1);
	CHECK(rpcs_of(sv.fd) == 0, "%u RPCs", rpcs_of(sv.fd));
	/* Lengths that IP says wrongly, in a frame that is whole. */
	for (n = 0; n <= HOMA_DATA_HDR; n++) {
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 100, 0, 100);
		seal(&frame);
		put16(frame.bytes + ETH + (version == 4 ? 2 : 4), (uint32_t)n);
		send_frame(&frame);
	}
	barrier(-1);
	CHECK(rpcs_of(sv.fd) == 0, "%u RPCs", rpcs_of(sv.fd));
	alive();
}

/* Ethernet pads short frames: what is behind the packet is not payload. */
void hostile_padded(void)
{
	size_t pad, size;
	uint32_t n;

	begin();
	for (pad = 1; pad < 64; pad += 13) {
		for (n = 1; n < 4; n++) {
			make_data(&frame, 2, PEER_PORT, PORT, new_id(), n, 0, n);
			seal(&frame);
			memset(frame.bytes + frame.size, 0xee, pad);
			size = frame.size;
			frame.size += pad;
			send_frame(&frame);
			frame.size = size;
			ping(2, n);
		}
	}
	alive();
}

/* Make room for @n bytes between the IP header and Homa's. */
static uint8_t *insert(size_t n)
{
	uint8_t *at = frame.bytes + frame.l4;

	memmove(at + n, at, frame.size - frame.l4);
	memset(at, 0, n);
	frame.l4 += n;
	frame.size += n;
	return at;
}

void hostile_options(void)
{
	uint8_t *at;
	size_t n;

	begin();
	for (n = 1; n <= 10; n++) {
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 700, 0, 700);
		if (version == 4) {
			at = insert(4 * n);
			memset(at, 1, 4 * n); /* no operation */
			frame.bytes[ETH] = (uint8_t)(0x45 + n);
		} else {
			/* Destination options or hop-by-hop: one that may be skipped if unknown. */
			at = insert(8 * n);
			at[0] = HOMA_IPPROTO;
			at[1] = (uint8_t)(n - 1);
			at[2] = 0x1e;
			at[3] = (uint8_t)(8 * n - 4);
			frame.bytes[ETH + 6] = n & 1 ? 60 : 0;
		}
		send_packet(&frame);
		ping(2, 700);
	}
	alive();
}

/* The frame's bytes [from, from + n) behind IP as a fragment of its own. */
static void send_fragment(const struct frame *whole, size_t from, size_t n,
			  uint32_t ident, bool more)
{
	static struct frame f;
	uint8_t *ip = f.bytes + ETH, *at;

	f.vnet = whole->vnet;
	memcpy(f.bytes, whole->bytes, whole->l4);
	f.l4 = whole->l4;
	if (version == 4) {
		at = f.bytes + f.l4;
		put16(ip + 4, ident);
		put16(ip + 6, (uint32_t)(from / 8) | (more ? 0x2000 : 0));
	} else {
		at = f.bytes + f.l4 + 8;
		memset(at - 8, 0, 8);
		at[-8] = ip[6];
		ip[6] = 44;
		put16(at - 6, (uint32_t)from | more);
		put32(at - 4, ident);
	}
	memcpy(at, whole->bytes + whole->l4 + from, n);
	f.size = (size_t)(at - f.bytes) + n;
	seal(&f);
	send_split(&f, NULL, 0);
}

void hostile_fragments(void)
{
	static struct frame whole;
	static const size_t steps[] = { 8, 24, 56, 64, 400, 1000 };
	uint32_t ident = 77;
	size_t i, at, size;

	begin();
	for (i = 0; i < 2 * ARRAY_SIZE(steps); i++) {
		size_t step = steps[i / 2], last;

		make_data(&frame, 2, PEER_PORT, PORT, new_id(),
			  i & 1 ? 1300 : 300, 0, i & 1 ? 1300 : 300);
		/* IPv6 takes no end of a packet of which there are too many pieces. */
		if (i & 1 && step < 56)
			step = 56;
		whole = frame;
		size = whole.size - whole.l4;
		ident++;
		last = (size - 1) / step * step;
		/* In order, or the last one first. */
		if (i & 1)
			send_fragment(&whole, last, size - last, ident, false);
		for (at = 0; at < last; at += step)
			send_fragment(&whole, at, step, ident, true);
		if (!(i & 1))
			send_fragment(&whole, last, size - last, ident, false);
		ping(2, i & 1 ? 1300 : 300);
	}
	alive();
}

void hostile_lost_fragments(void)
{
	static struct frame whole;
	uint64_t rng = 3;
	int i;

	begin();
	for (i = 0; i < 200; i++) {
		size_t from, n;

		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 1000, 0, 1000);
		whole = frame;
		from = rng_below(&rng, 130) * 8;
		n = rng_below(&rng, 130) * 8;
		if (from + n > whole.size - whole.l4)
			n = (whole.size - whole.l4 - from) & ~7u;
		send_fragment(&whole, from, n, 1000 + (uint32_t)i / 3,
			      rng_below(&rng, 4));
	}
	barrier(-1);
	alive();
}

/* One cut, then two, at every byte from the IP header on. */
void hostile_split_headers(void)
{
	size_t cuts[4], at;

	begin();
	if (flavour != TAP_FRAGS)
		skip("fragments have a device of their own");
	for (at = ETH + IP_HEADER; at < ETH + IP_HEADER + 64; at++) {
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 900, 0, 900);
		seal(&frame);
		cuts[0] = at;
		cuts[1] = at + 1 + at % 40;
		cuts[2] = cuts[1] + 200;
		send_split(&frame, cuts, at & 1 ? 1 : 3);
		ping(2, 900);
	}
	/* Control packets, too: cut in two at every byte. */
	for (at = ETH + IP_HEADER; at < ETH + IP_HEADER + HOMA_RESEND_LEN; at++) {
		uint64_t id = new_id();

		put32(make(&frame, 3, HOMA_RESEND, PEER_PORT, PORT, id,
			   HOMA_RESEND_LEN) +
			      32,
		      9);
		seal(&frame);
		cuts[0] = at;
		send_split(&frame, cuts, 1);
		CHECK(await(&seen, HOMA_RPC_UNKNOWN, id ^ 1, PATIENCE),
		      "cut at %zu: no answer", at);
	}
	alive();
}

/* All in one go, so that GRO has several to batch: each good one is executed once. */
void hostile_bursts(void)
{
	enum { N = 24 };
	static const uint32_t sizes[] = { 1, 100, 1300 };
	uint64_t ids[N], rng = 9;
	int i, round, got;
	ssize_t n;

	begin();
	for (round = 0; round < 8; round++) {
		for (i = 0; i < N; i++) {
			uint32_t size = sizes[rng_below(&rng, 3)];

			ids[i] = new_id();
			make_data(&frame, 2 + (int)rng_below(&rng, 4),
				  PEER_PORT, PORT, ids[i], size, 0, size);
			send_packet(&frame);
			switch (rng_below(&rng, 5)) {
			case 0: /* ends in its header */
				make(&frame, 2, HOMA_DATA, PEER_PORT, PORT,
				     new_id(), rng_below(&rng, 57));
				send_packet(&frame);
				break;
			case 1: /* has no end */
				make_data(&frame, 3, PEER_PORT, PORT, new_id(),
					  50, 40, 20);
				send_packet(&frame);
				break;
			case 2: /* is something else */
				make(&frame, 3, 99, PEER_PORT, PORT, new_id(),
				     200);
				send_packet(&frame);
				break;
			}
		}
		for (got = 0; got < N; got++) {
			CHECK(readable(sv.fd, PATIENCE),
			      "%d of %d requests came", got, N);
			n = receive(&sv, 0, 0);
			CHECK(n > 0, "receive");
			for (i = 0; i < N && ids[i] != (sv.args.id ^ 1); i++)
				;
			CHECK(i < N, "a request that was never sent, or twice");
			ids[i] = 0;
		}
		quiet();
	}
	alive();
}

static const uint8_t gso_types[] = { VIRTIO_NET_HDR_GSO_NONE,
				     VIRTIO_NET_HDR_GSO_TCPV4,
				     VIRTIO_NET_HDR_GSO_TCPV6,
				     VIRTIO_NET_HDR_GSO_UDP,
				     VIRTIO_NET_HDR_GSO_TCPV4 |
					     VIRTIO_NET_HDR_GSO_ECN,
				     5 /* UDP_L4 */,
				     0x7f,
				     0xff };
static const uint16_t gso_sizes[] = { 0,    1,	  2,	4,	5,
				      8,    56,	  60,	100,	1400,
				      1404, 1448, 9000, 0x7fff, 0xffff };

/* A frame that claims to be several, in one of many ways; true: perhaps to another host. */
static void gso_frame(uint64_t *rng, bool forward)
{
	static const uint16_t offsets[] = { 0,	13, 14, 33,   34,     53,
					    54, 60, 90, 1000, 0x7fff, 0xffff };
	uint32_t payload =
		rng_below(rng, 4) ? rng_below(rng, 9000) : rng_below(rng, 40);
	uint8_t *homa = make_data(&frame, 2, PEER_PORT, PORT, new_id(),
				  payload + rng_below(rng, 3),
				  rng_below(rng, 2), payload);
	struct virtio_net_hdr *v = &frame.vnet;

	frame.bytes[ETH + (version == 4 ? 9 : 6)] =
		(uint8_t[]){ HOMA_IPPROTO, HOMA_IPPROTO, 6,
			     17 }[rng_below(rng, 4)];
	homa[12] = (uint8_t)(rng_below(rng, 3) ? 0xd0 : rng_below(rng, 256));
	if (forward) /* to .7, behind the same device */
		frame.bytes[ETH + (version == 4 ? 19 : 39)] = 7;
	if (!rng_below(rng, 3))
		frame.size = frame.l4 + rng_below(rng, 70);
	v->flags = (uint8_t)(rng_below(rng, 4) ? VIRTIO_NET_HDR_F_NEEDS_CSUM :
						 rng_below(rng, 256));
	v->gso_type = gso_types[rng_below(rng, sizeof(gso_types))];
	if (rng_below(rng, 2))
		v->gso_type = version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
					     VIRTIO_NET_HDR_GSO_TCPV6;
	v->gso_size = gso_sizes[rng_below(rng, ARRAY_SIZE(gso_sizes))];
	/* What is to be segmented without this makes the kernel complain about its device. */
	if (forward)
		v->flags |= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	v->hdr_len = offsets[rng_below(rng, ARRAY_SIZE(offsets))];
	v->csum_start = rng_below(rng, 3) ?
				(uint16_t)frame.l4 :
				offsets[rng_below(rng, ARRAY_SIZE(offsets))];
	v->csum_offset = rng_below(rng, 3) ?
				 16 :
				 offsets[rng_below(rng, ARRAY_SIZE(offsets))];
	seal(&frame);
	send_split(&frame, NULL, 0);
}

static void gso(bool forward)
{
	uint64_t rng = 21;
	int i;

	begin();
	for (i = 0; i < 1500; i++) {
		gso_frame(&rng, forward);
		if (i % 50 == 49) {
			quiet();
			while (readable(sv.fd, 0))
				receive(&sv, 0, MSG_DONTWAIT);
		}
		if (i % 500 == 499)
			alive();
	}
	alive();
}

void hostile_gso_garbage(void)
{
	gso(false);
}

/* A frame that says it is thousands of tiny ones is none. */
void hostile_gso_tiny(void)
{
	struct virtio_net_hdr *v = &frame.vnet;
	uint8_t *homa;

	begin();
	homa = make_data(&frame, 2, PEER_PORT, PORT, new_id(), 9000, 0, 9000);
	homa[12] = 0xd0;
	v->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	v->gso_type = version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
				     VIRTIO_NET_HDR_GSO_TCPV6;
	v->gso_size = 5;
	v->hdr_len = (uint16_t)(frame.l4 + 60);
	v->csum_start = (uint16_t)frame.l4;
	v->csum_offset = 16;
	seal(&frame);
	send_split(&frame, NULL, 0);
	barrier(-1);
	CHECK(rpcs_of(sv.fd) == 0, "%u RPCs", rpcs_of(sv.fd));
	alive();
}

void hostile_gso_forwarded(void)
{
	if (write_file("/proc/sys/net/ipv4/ip_forward", "1") ||
	    write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1"))
		skip("forwarding cannot be switched on");
	gso(true);
}

/* A native socket neither hears TCP with our marks nor UDP on our port. */
void hostile_disguises(void)
{
	uint8_t *at;
	int i;

	begin();
	for (i = 0; i < 20; i++) {
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 500, 0, 500);
		frame.bytes[ETH + (version == 4 ? 9 : 6)] = 6;
		send_packet(&frame);
		make_data(&frame, 2, PEER_PORT, PORT, new_id(), 500, 0, 500);
		at = insert(8);
		frame.bytes[ETH + (version == 4 ? 9 : 6)] = 17;
		put16(at, HOMA_UDP_PORT);
		put16(at + 2, HOMA_UDP_PORT);
		put16(at + 4, (uint32_t)(frame.size - frame.l4 + 8));
		send_packet(&frame);
	}
	barrier(-1);
	CHECK(rpcs_of(sv.fd) == 0, "%u RPCs", rpcs_of(sv.fd));
	alive();
}
