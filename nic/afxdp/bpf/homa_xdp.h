/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the XDP program and its loader agree on. Uses only the types that both
 * <linux/types.h> and the loader know.
 */
#ifndef HOMA_XDP_H
#define HOMA_XDP_H

#include <linux/types.h>

#define HOMA_XDP_QUEUES 64
#define HOMA_XDP_ADDRS 16
/* The number of 64-bit words with a bit for each TCP port. */
#define HOMA_XDP_PORT_WORDS (65536 / 64)

/**
 * struct homa_xdp_addrs - the addresses whose Homa packets are taken
 * @any: 1 if there are more addresses than fit, so that Homa packets to any address are taken.
 *	TCP is only taken for those that fit.
 * @n4: the number of IPv4 addresses in @v4.
 * @n6: the number of IPv6 addresses in @v6.
 * @v4: the IPv4 addresses in network byte order.
 * @v6: the IPv6 addresses in network byte order, each as two 64-bit words.
 *
 * Written by: the loader, which replaces the whole entry of the map; read by: the program, for
 * each packet.
 */
struct homa_xdp_addrs {
	__u32 any;
	__u32 n4;
	__u32 n6;
	__u32 v4[HOMA_XDP_ADDRS];
	__u64 v6[HOMA_XDP_ADDRS][2];
};

#endif
