/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A UDP port beside the Homa port in a socket address. A peer that is reached over UDP at
 * another than the usual port (54321) is named with that port in a part of the address that
 * programs copy and do not use, and with a mark, so that left-over bytes are not taken for it:
 *	IPv4: sin_zero[0] = 'H', sin_zero[1] = 'E', then the port in network order;
 *	IPv6: sin6_flowinfo = 0xE000 and the port, in network order; no real traffic class
 *	and flow label has these top four bits.
 * libhoma, its library for Homa sockets and homa.ko read and write the same mark.
 */
#ifndef HOMA_ABI_ENCAP_H
#define HOMA_ABI_ENCAP_H

#include <linux/types.h>

#define HOMA_ENCAP_FLOW 0xE0000000u
#define HOMA_ENCAP_FLOW_MASK 0xFFFF0000u

/** homa_encap_in_zero() - true if @sin_zero has the mark; @port is then its port, host order,
 *  and else stays as it was. */
static inline _Bool homa_encap_in_zero(const unsigned char *sin_zero, __u16 *port)
{
	if (sin_zero[0] != 'H' || sin_zero[1] != 'E')
		return 0;
	*port = (__u16)(sin_zero[2] << 8 | sin_zero[3]);
	return 1;
}

/** homa_encap_to_zero() - writes @port and the mark into the first four bytes of @sin_zero. */
static inline void homa_encap_to_zero(unsigned char *sin_zero, __u16 port)
{
	sin_zero[0] = 'H';
	sin_zero[1] = 'E';
	sin_zero[2] = (unsigned char)(port >> 8);
	sin_zero[3] = (unsigned char)port;
}

/**
 * homa_encap_in_flow() - true if @flowinfo, sin6_flowinfo in host order, has the mark;
 * @port is then its port, host order, and else stays as it was.
 */
static inline _Bool homa_encap_in_flow(__u32 flowinfo, __u16 *port)
{
	if ((flowinfo & HOMA_ENCAP_FLOW_MASK) != HOMA_ENCAP_FLOW)
		return 0;
	*port = (__u16)flowinfo;
	return 1;
}

/** homa_encap_to_flow() - returns sin6_flowinfo, in host order, with @port and the mark. */
static inline __u32 homa_encap_to_flow(__u16 port)
{
	return HOMA_ENCAP_FLOW | port;
}

#endif
