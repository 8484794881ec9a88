// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Path MTUs under UDP. The kernel routes and learns path MTUs by itself; we ask
 * it, and remember the answer for a few seconds, because the host asks for each
 * new peer and after each error.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "frame.h"
#include "netif.h"
#include "route.h"
#include "udp.h"

#define REMEMBER_MS 5000

static u32 device_mtu(int fd, int ifindex)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	if (!if_indextoname((unsigned int)ifindex, ifr.ifr_name) ||
	    ioctl(fd, SIOCGIFMTU, &ifr) < 0 || ifr.ifr_mtu < 0)
		return 0;
	return (u32)ifr.ifr_mtu;
}

static int look_up(struct udp *u, const struct homa_addr *dst, u32 *mtu,
		   struct homa_addr *src)
{
	struct nic_route_result route;
	int oif = nic_addr_link_local(dst) ? (int)u->scope : 0;
	int rc;

	if (!u->v6 && !homa_addr_is_v4(dst))
		return -ENETUNREACH;
	if (u->rtnl.fd < 0) {
		*mtu = u->nic.info.mtu;
		return 0;
	}
	rc = nic_route_get(&u->rtnl, dst, oif, &route);
	if (rc)
		return rc == -EHOSTUNREACH ? rc : -ENETUNREACH;
	*src = route.src;
	*mtu = route.mtu ? route.mtu : device_mtu(u->fd, route.ifindex);
	if (!*mtu)
		*mtu = u->nic.info.mtu + NIC_UDP_HLEN;
	/* A datagram's length field ends at 65,535 bytes, IPv4's total too. */
	*mtu = homa_min_u32(*mtu, 65535) - NIC_UDP_HLEN;
	if (!u->nic.info.link_mbps && !route.local) {
		struct nic_netif netif;
		char name[IF_NAMESIZE];

		if (if_indextoname((unsigned int)route.ifindex, name) &&
		    !nic_netif_get(&u->rtnl, name, &netif, NULL, 0))
			u->nic.info.link_mbps = netif.mbps;
	}
	return 0;
}

static struct udp_route *slot(struct udp *u, const struct homa_addr *dst)
{
	u32 h = homa_get_be32(dst->ip) ^ homa_get_be32(dst->ip + 4) ^
		homa_get_be32(dst->ip + 8) ^ homa_get_be32(dst->ip + 12);

	return &u->routes[(h * 0x9e3779b1U) >> 22];
}

static bool same_ip(const struct homa_addr *a, const struct homa_addr *b)
{
	return !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static struct udp_route *find(struct udp *u, const struct homa_addr *dst)
{
	struct udp_route *r = slot(u, dst);
	u64 now = nic_now_ms();

	if (!same_ip(&r->dst, dst)) {
		memset(r, 0, sizeof(*r));
		r->dst = *dst;
	}
	if (r->expires_ms <= now) {
		r->mtu = 0;
		memset(&r->src, 0, sizeof(r->src));
		r->rc = look_up(u, dst, &r->mtu, &r->src);
		r->expires_ms = now + REMEMBER_MS;
	}
	return r;
}

int udp_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	const struct udp_route *r = find(udp_of(nic), dst);

	if (!r->rc)
		*mtu = r->mtu;
	return r->rc;
}

void udp_route_forget(struct udp *u, const struct homa_addr *dst)
{
	struct udp_route *r = slot(u, dst);

	if (same_ip(&r->dst, dst))
		r->expires_ms = 0;
}

void udp_route_heard(struct udp *u, const struct homa_addr *peer,
		     const struct homa_addr *local)
{
	static const struct homa_addr none;
	struct udp_route *r;

	u->last_src = *peer;
	u->last_dst = *local;
	if (u->has_bound)
		return; /* the socket has one address only */
	r = find(u, peer);
	r->heard = *local;
	r->pinned = !r->rc && !same_ip(&r->src, local) &&
		    !same_ip(&none, local) &&
		    homa_addr_is_v4(local) == homa_addr_is_v4(peer);
	u->pins |= r->pinned;
}

const struct homa_addr *udp_route_source(struct udp *u,
					 const struct homa_addr *dst)
{
	const struct udp_route *r;

	if (likely(!u->pins))
		return NULL;
	r = slot(u, dst);
	return r->pinned && same_ip(&r->dst, dst) ? &r->heard : NULL;
}
