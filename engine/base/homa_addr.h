/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The address of a peer as the engine and the packet I/O layer see it: an
 * IPv6 or v4-mapped IPv4 address and, under UDP encapsulation, the peer's UDP
 * port. Two processes behind one IP address differ in the latter.
 *
 * Guarded by: the owner of what it is embedded in.
 */
#ifndef HOMA_ADDR_H
#define HOMA_ADDR_H

#include "homa_plat.h"

/**
 * struct homa_addr - network address of a peer
 * @ip: 16 bytes in network order; IPv4 as ::ffff:a.b.c.d.
 * @encap: UDP encapsulation port, host order; 0 for native IP protocol 146.
 * @zero: always 0, so that addresses compare with memcmp().
 */
struct homa_addr {
	u8 ip[16];
	u16 encap;
	u16 zero;
};

static inline bool homa_addr_equal(const struct homa_addr *a,
				   const struct homa_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool homa_addr_is_v4(const struct homa_addr *a)
{
	static const u8 prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return memcmp(a->ip, prefix, sizeof(prefix)) == 0;
}

/* Is the IP address of @a all zeros, of either version, so that it names no host? */
static inline bool homa_addr_is_any(const struct homa_addr *a)
{
	static const u8 any[16], any_v4[16] = { [10] = 0xff, [11] = 0xff };

	return memcmp(a->ip, any, sizeof(any)) == 0 ||
	       memcmp(a->ip, any_v4, sizeof(any_v4)) == 0;
}

#endif
