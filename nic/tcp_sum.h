/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The checksum of TCP segments (RFC 9293, 3.1; RFC 1071). */
#ifndef HOMA_NIC_TCP_SUM_H
#define HOMA_NIC_TCP_SUM_H

#include "nic.h"

/* The offset of the checksum in a TCP header, in bytes. */
#define NIC_TCP_CHECKSUM_AT 16u

/** nic_sum() - add @len bytes to @sum, a one's complement sum of 64 bits
 * All pieces but the last must have an even length. */
u64 nic_sum(const void *data, u32 len, u64 sum);

/** nic_sum_pseudo() - the sum of the pseudo-header of @len bytes of TCP. */
u64 nic_sum_pseudo(const struct homa_addr *src, const struct homa_addr *dst,
		   u32 len);

/** nic_sum_fold() - fold @sum to 16 bits in memory order, without the complement. */
u16 nic_sum_fold(u64 sum);

/**
 * nic_tcp_sound() - is the checksum of @pkt, a TCP segment, right?
 * @partial: true if the sum of the pseudo-header alone is right, too. The kernel leaves it for
 *	a device to finish, and virtual devices never do.
 */
bool nic_tcp_sound(const struct nic_rx *pkt, bool partial);

#endif
