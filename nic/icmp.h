/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * ICMP errors about Homa packets and TCP segments. A host whose packets bypass the kernel must
 * send and understand them itself: "port unreachable" is how a client learns at
 * once that nobody listens, "fragmentation needed" is how it learns the path's
 * MTU.
 *
 * Written by: the thread that opens and closes the nic; others only use the sockets meanwhile.
 */
#ifndef HOMA_NIC_ICMP_H
#define HOMA_NIC_ICMP_H

#include "nic_backend.h"

/* The longest ICMP message in bytes: with the quoted headers and as much of the packet as fits
 * a packet that every link must carry (RFC 1812 4.3.2.3, RFC 4443 2.4). */
#define NIC_ICMP_MAX_V4 (576 - 20)
#define NIC_ICMP_MAX_V6 (1280 - 40)
#define NIC_ICMP_MAX NIC_ICMP_MAX_V6

/**
 * nic_icmp_build() - build ICMP port unreachable, from its ICMP header on
 * @out: receives up to NIC_ICMP_MAX bytes.
 * @pkt: the packet that nobody wanted; it is quoted in UDP if @pkt->src.encap is not 0.
 * @local_port: our UDP port, in host byte order.
 * Returns the length in bytes. The checksum is filled in for IPv4. For IPv6 the kernel
 * fills it in, as it covers addresses.
 */
u32 nic_icmp_build(u8 *out, const struct nic_rx *pkt, u16 local_port);

/**
 * nic_icmp_parse() - read an ICMP error that quotes a Homa packet or TCP segment
 * @msg: the ICMP or ICMPv6 message, from its type on.
 * @len: its length in bytes.
 * @v6: true for ICMPv6.
 * @error: receives the error; the caller has to check whether its source is ours.
 * Returns 0, or -EBADMSG for any other message.
 */
int nic_icmp_parse(const u8 *msg, u32 len, bool v6, struct nic_error *error);

/** nic_icmp_errno() - the positive errno for an ICMP message, 0 if it is no error. */
int nic_icmp_errno(u8 type, u8 code, bool v6);

/**
 * struct nic_icmp - raw sockets for ICMP errors
 * @fd4: the socket for ICMP, negative if there is none.
 * @fd6: the socket for ICMPv6, negative if there is none.
 * @tokens: the number of errors that may be sent now; at most BURST, and RATE more each second.
 * @tokens_ms: the time at which tokens were last added, in ms.
 */
struct nic_icmp {
	int fd4;
	int fd6;
	u32 tokens;
	u64 tokens_ms;
};

/**
 * nic_icmp_open() - open the sockets, which needs CAP_NET_RAW
 * @receive: true to receive errors that quote protocol 146, too.
 * Returns 0 if at least one family works, else a negative errno.
 */
int nic_icmp_open(struct nic_icmp *icmp, bool receive);
/** nic_icmp_take_tcp() - receive errors that quote TCP, too. Any thread may call it. */
void nic_icmp_take_tcp(const struct nic_icmp *icmp);
void nic_icmp_close(struct nic_icmp *icmp);

/** nic_icmp_ours - a function that says whether we sent what an error quotes */
typedef bool (*nic_icmp_ours)(void *arg, const struct nic_error *error);

/**
 * nic_icmp_receive() - read waiting errors into @q
 * @ours: is called with @arg and says whether we sent what is quoted.
 * Returns the number of errors that were put into @q.
 */
int nic_icmp_receive(struct nic_icmp *icmp, struct nic_errq *q,
		     nic_icmp_ours ours, void *arg);

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

/** nic_icmp_unreachable() - send port unreachable for @pkt, unless too many were sent;
 *  returns whether it was sent. @local_port: our UDP port; @ifindex: the interface of
 *  link-local peers. */
bool nic_icmp_unreachable(struct nic_icmp *icmp, const struct nic_rx *pkt,
			  u16 local_port, u32 ifindex);

#endif
