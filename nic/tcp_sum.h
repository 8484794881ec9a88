/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The checksum of TCP segments (RFC 9293, 3.1; RFC 1071). */
#ifndef HOMA_NIC_TCP_SUM_H
#define HOMA_NIC_TCP_SUM_H

#include "nic.h"

/* offset of the checksum in a TCP header, bytes */
#define NIC_TCP_CHECKSUM_AT 16u

/** nic_sum() - add @len bytes to a one's complement sum of 64 bits
 * All pieces but the last must have an even length. */
u64 nic_sum(const void *data, u32 len, u64 sum);

/** nic_sum_pseudo() - the sum of the pseudo-header of @len bytes of TCP. */
u64 nic_sum_pseudo(const struct homa_addr *src, const struct homa_addr *dst,
		   u32 len);

/** nic_sum_fold() - @sum in 16 bits, as they stand in memory, not complemented. */
u16 nic_sum_fold(u64 sum);

/**
 * nic_tcp_sound() - is the checksum of @pkt, a TCP segment, right?
 * @partial: what the kernel leaves for a device to finish, the sum of the pseudo-header
 *	alone, is right, too: virtual devices never finish it.
 */
bool nic_tcp_sound(const struct nic_rx *pkt, bool partial);

#endif
