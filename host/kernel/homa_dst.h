/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is asked of a route that was remembered. */
#ifndef HOMA_DST_H
#define HOMA_DST_H

#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/route.h>

/** homak_dst_dev() - returns the device of a route, in whose place the kernel puts one that drops
 *  all when it goes, at any time. RCU read side. */
static __always_inline struct net_device *homak_dst_dev(const struct dst_entry *dst)
{
	return READ_ONCE(dst->dev);
}

/**
 * homak_dst_holds_v4() - does what dst_check() does, for a route of IPv4's own of the namespace
 * @net. Most routes are asked of for each packet, and the function that the kernel calls for
 * them looks at the same two words, inside an RCU read side of its own. Here one lasts already.
 */
static __always_inline bool homak_dst_holds_v4(const struct net *net,
					       const struct dst_entry *dst)
{
	const struct rtable *rt = container_of(dst, struct rtable, dst);

	return READ_ONCE(dst->obsolete) == DST_OBSOLETE_FORCE_CHK &&
	       rt->rt_genid == rt_genid_ipv4(net);
}

#endif
