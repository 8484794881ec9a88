/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The engine's addresses to and from the kernel's. */
#ifndef HOMA_KADDR_H
#define HOMA_KADDR_H

#include <linux/in6.h>

#include "homa_engine.h"

static inline void homak_addr_v4(struct homa_addr *out, __be32 ip, u16 encap)
{
	const __be32 mapped = htonl(0xffff);

	memset(out->ip, 0, 8);
	memcpy(out->ip + 8, &mapped, 4);
	memcpy(out->ip + 12, &ip, 4);
	out->encap = encap;
	out->zero = 0;
}

static inline void homak_addr_v6(struct homa_addr *out,
				 const struct in6_addr *ip, u16 encap)
{
	memcpy(out->ip, ip, 16);
	out->encap = encap;
	out->zero = 0;
}

/*
 * A link-local address means nothing without its interface: bytes 4..7 of
 * fe80::/64, zero on the wire, hold its index. The engine sees one more peer.
 */
static inline void homak_addr_v6_at(struct homa_addr *out,
				    const struct in6_addr *ip, u16 encap,
				    int ifindex)
{
	homak_addr_v6(out, ip, encap);
	if (out->ip[0] == 0xfe && (out->ip[1] & 0xc0) == 0x80)
		homa_put_be32(out->ip + 4, (u32)ifindex);
}

/* Writes the address as on the wire to @out; returns the index of the interface that it is
 * bound to, 0: none. */
static inline int homak_addr_get_v6(const struct homa_addr *a, struct in6_addr *ip)
{
	int ifindex = 0;

	memcpy(ip, a->ip, 16);
	if (a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80) {
		ifindex = (int)homa_get_be32(a->ip + 4);
		memset(ip->s6_addr + 4, 0, 4);
	}
	return ifindex;
}

static inline __be32 homak_addr_get_v4(const struct homa_addr *a)
{
	__be32 ip;

	memcpy(&ip, a->ip + 12, 4);
	return ip;
}

#endif
