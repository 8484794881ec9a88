/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Arbitrary frames and ICMP messages into the packet I/O layer. The first byte
 * says what the rest is. What is accepted must lie inside the input; what is
 * answered with an ICMP error must be understood as one, of the same packet, and a
 * TCP segment that is sent on gets a checksum that is right. The
 * IPv4 header checksum is made right half of the time, since guessing it would
 * keep the fuzzer outside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "icmp.h"
#include "tcp_sum.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MUST(cond)                        \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

static void fix_checksum(u8 *frame, u32 len)
{
	u8 *ip = frame + NIC_ETH_HLEN;
	u32 hlen;

	if (len < NIC_ETH_HLEN + NIC_IPV4_HLEN || ip[0] >> 4 != 4)
		return;
	hlen = (u32)(ip[0] & 15) * 4;
	if (hlen < NIC_IPV4_HLEN || len < NIC_ETH_HLEN + hlen)
		return;
	ip[10] = ip[11] = 0;
	homa_put_be16(ip + 10, nic_checksum(ip, hlen, 0));
}

static void answer(const struct nic_rx *rx)
{
	bool v6 = !homa_addr_is_v4(&rx->src);
	u8 *msg = malloc(NIC_ICMP_MAX);
	struct nic_error error;
	u32 len;

	MUST(msg);
	len = nic_icmp_build(msg, rx, 1);
	MUST(len <= NIC_ICMP_MAX);
	MUST(!nic_icmp_parse(msg, len, v6, &error));
	MUST(homa_addr_equal(&error.dst, &rx->dst));
	MUST(homa_addr_equal(&error.src, &rx->src));
	if (rx->len >= 28)
		MUST(error.sender_id == homa_get_be64(rx->data + 20));
	free(msg);
}

/* An ICMP error that quotes the segment in @packet, an IP packet, tells whose it was. */
static void quote(const struct nic_rx *rx, const u8 *packet)
{
	u32 n = (u32)(rx->data - packet) + rx->len;
	u8 *msg = calloc(1, 8 + n);
	struct nic_error error;
	int rc;

	MUST(msg);
	msg[0] = homa_addr_is_v4(&rx->src) ? 3 : 1;
	memcpy(msg + 8, packet, n);
	rc = nic_icmp_parse(msg, 8 + n, msg[0] == 1, &error);
	free(msg);
	MUST(rc == (rx->len < 8 ? -EBADMSG : 0));
	if (rc)
		return;
	MUST(error.proto == NIC_TCP && error.seq == homa_get_be32(rx->data + 4));
	MUST(error.sport == homa_get_be16(rx->data));
	MUST(error.dport == homa_get_be16(rx->data + 2) && !error.sender_id);
	MUST(homa_addr_equal(&error.src, &rx->src));
	MUST(homa_addr_equal(&error.dst, &rx->dst));
}

/* Sent back from the address that it was for, which is not the path's. */
static void segment(const struct nic_rx *rx)
{
	struct nic_tx tx = {
		.hdr = rx->data,
		.hdr_len = rx->len,
		.proto = NIC_TCP,
		.ecn = rx->ecn,
		.src = &rx->dst,
	};
	u8 *out, mac[6] = { 2 };
	struct nic_frame_template t;
	struct nic_rx again;
	u16 field;

	/* What is right may also be unfinished, not the other way round. */
	MUST(nic_tcp_sound(rx, true) || !nic_tcp_sound(rx, false));
	if (rx->len < 20)
		return;
	nic_frame_template_init(&t, mac, mac, &rx->src, &rx->src);
	out = malloc(t.len + rx->len);
	MUST(out);
	nic_frame_build_tcp(&t, out, &tx);
	memcpy(out + t.len, rx->data, rx->len);
	memset(out + t.len + NIC_TCP_CHECKSUM_AT, 0, 2);
	field = (u16)~nic_sum_fold(
		nic_sum(out + t.len, rx->len,
			nic_sum_pseudo(&rx->dst, &rx->src, rx->len)));
	memcpy(out + t.len + NIC_TCP_CHECKSUM_AT, &field, sizeof(field));
	MUST(!nic_frame_parse(out, t.len + rx->len, &again));
	MUST(again.proto == NIC_TCP && again.len == rx->len);
	MUST(again.ecn == rx->ecn && !again.prio);
	MUST(homa_addr_equal(&again.src, &rx->dst) &&
	     homa_addr_equal(&again.dst, &rx->src));
	MUST(nic_tcp_sound(&again, false));
	free(out);
}

static void frame(const u8 *bytes, u32 len)
{
	struct nic_frame_template t;
	u8 *out, mac[6] = { 2 };
	struct nic_rx rx, again;

	if (nic_frame_parse(bytes, len, &rx))
		return;
	MUST(rx.data >= bytes && rx.len > 0);
	MUST(rx.len <= len && rx.data - bytes <= (ptrdiff_t)(len - rx.len));
	MUST(rx.prio < 8 && rx.ecn < 4);
	MUST(homa_addr_is_v4(&rx.src) == homa_addr_is_v4(&rx.dst));
	MUST(!rx.src.encap && !rx.src.zero);
	if (rx.proto == NIC_TCP) {
		quote(&rx, bytes + NIC_ETH_HLEN);
		segment(&rx);
		return;
	}
	MUST(rx.proto == NIC_HOMA);
	answer(&rx);
	if (rx.len < 28)
		return;
	/* sent back, it parses again */
	nic_frame_template_init(&t, mac, mac, &rx.dst, &rx.src);
	out = malloc(t.len + rx.len);
	MUST(out);
	nic_frame_build(&t, out, rx.len, rx.prio, rx.data);
	memcpy(out + t.len, rx.data, rx.len);
	MUST(!nic_frame_parse(out, t.len + rx.len, &again));
	MUST(again.len == rx.len && again.prio == rx.prio && !again.ecn);
	MUST(homa_addr_equal(&again.src, &rx.dst));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct nic_error error;
	u8 *copy;
	u32 n;

	if (len < 1 || len > 70000)
		return 0;
	n = (u32)len - 1;
	copy = malloc(n ? n : 1);
	MUST(copy);
	memcpy(copy, bytes + 1, n);
	switch (bytes[0] % 4) {
	case 0:
		fix_checksum(copy, n);
		/* fall through */
	case 1:
		frame(copy, n);
		break;
	default:
		if (!nic_icmp_parse(copy, n, bytes[0] & 1, &error))
			MUST(error.error > 0 &&
			     (error.proto != NIC_TCP || !error.sender_id));
	}
	free(copy);
	return 0;
}
