/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * ICMP errors about Homa packets and TCP segments. A host whose packets bypass the kernel must
 * send and understand them itself: "port unreachable" is how a client learns at
 * once that nobody listens, "fragmentation needed" is how it learns the path's
 * MTU.
 */
#ifndef HOMA_NIC_ICMP_H
#define HOMA_NIC_ICMP_H

#include "nic_backend.h"

/* ICMP header, quoted IPv6 and UDP header, and as much of the packet as fits
 * what every link must carry (RFC 1812 4.3.2.3, RFC 4443 2.4). */
#define NIC_ICMP_MAX_V4 (576 - 20)
#define NIC_ICMP_MAX_V6 (1280 - 40)
#define NIC_ICMP_MAX NIC_ICMP_MAX_V6

/**
 * nic_icmp_build() - ICMP port unreachable, from its ICMP header on
 * @out: room for NIC_ICMP_MAX bytes.
 * @pkt: the packet that nobody wanted; @pkt->src.encap != 0 quotes it in UDP.
 * @local_port: UDP: our port.
 * Returns the length. The IPv4 checksum is filled; the IPv6 one, which covers
 * addresses, is the kernel's to fill.
 */
u32 nic_icmp_build(u8 *out, const struct nic_rx *pkt, u16 local_port);

/**
 * nic_icmp_parse() - an ICMP error quoting a Homa packet or TCP segment that we sent
 * @msg: ICMP or ICMPv6 message, from its type on.
 * @len: its bytes.
 * @v6: which of the two.
 * @error: filled; whether its source is ours is for the caller to see.
 * Returns 0 or -EBADMSG for anything else.
 */
int nic_icmp_parse(const u8 *msg, u32 len, bool v6, struct nic_error *error);

/** nic_icmp_errno() - errno for an ICMP error, 0 for one that is none. */
int nic_icmp_errno(u8 type, u8 code, bool v6);

/**
 * struct nic_icmp - raw sockets for ICMP errors
 * @fd4: ICMP, -1 if there is none.
 * @fd6: ICMPv6, -1 if there is none.
 * @tokens: errors that may be sent now; at most BURST, RATE more per second.
 * @tokens_ms: when tokens were last added.
 */
struct nic_icmp {
	int fd4;
	int fd6;
	u32 tokens;
	u64 tokens_ms;
};

/**
 * nic_icmp_open() - needs CAP_NET_RAW
 * @receive: also receive errors that quote protocol 146.
 * Returns 0 if at least one family works, else a negative errno.
 */
int nic_icmp_open(struct nic_icmp *icmp, bool receive);
/** nic_icmp_take_tcp() - also receive errors that quote TCP; from any thread. */
void nic_icmp_take_tcp(const struct nic_icmp *icmp);
void nic_icmp_close(struct nic_icmp *icmp);

/**
 * nic_icmp_receive() - read waiting errors into @q
 * @ours: says whether we sent what is quoted.
 * Returns how many were taken in.
 */
int nic_icmp_receive(struct nic_icmp *icmp, struct nic_errq *q,
		     bool (*ours)(void *arg, const struct nic_error *error),
		     void *arg);

/**
 * nic_icmp_touch() - send @hop an echo request through the kernel
 *
 * The kernel then resolves a missing neighbour entry and probes a stale one, as
 * for any traffic of its own, and unlike a netlink request this never waits for
 * the lock on network configuration. The reply is of no interest.
 * Returns whether it was sent.
 */
bool nic_icmp_touch(struct nic_icmp *icmp, const struct homa_addr *hop,
		    u32 ifindex);

/** nic_icmp_unreachable() - send port unreachable for @pkt, rate-limited;
 *  returns whether it was sent. */
bool nic_icmp_unreachable(struct nic_icmp *icmp, const struct nic_rx *pkt,
			  u16 local_port, u32 ifindex);

#endif
