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
#include "homa_hash.h"
#include "netif.h"
#include "route.h"
#include "udp.h"

/* The time for which what is known of a peer is used, in ms. */
#define REMEMBER_MS 5000
/* The time for which the MTU of a device is used, in ms. */
#define DEVICE_MS 1000

/* The MTU of a device in bytes, 0 if unknown. It is remembered, as it takes several system calls
 * and many destinations may lead over one device. */
static u32 device_mtu(struct udp *u, int index, u64 now)
{
	struct udp_device *device = &u->device;
	struct nic_netif netif;
	struct ifreq ifr;

	if (device->index == index && now < device->expires_ms)
		return device->mtu;
	device->index = index;
	device->expires_ms = now + DEVICE_MS;
	device->mtu = 0;
	memset(&ifr, 0, sizeof(ifr));
	if (!if_indextoname((unsigned int)index, ifr.ifr_name))
		return 0;
	if (!u->nic.info.link_mbps && strcmp(ifr.ifr_name, "lo") &&
	    !nic_netif_get(&u->rtnl, ifr.ifr_name, &netif, NULL, 0))
		u->nic.info.link_mbps = netif.mbps;
	if (ioctl(u->fd, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu > 0)
		device->mtu = (u32)ifr.ifr_mtu;
	return device->mtu;
}

static int look_up(struct udp *u, const struct homa_addr *dst, u32 *mtu,
		   struct homa_addr *src, u64 now)
{
	struct nic_route_result route;
	u32 device;
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
	device = device_mtu(u, route.ifindex, now);
	*mtu = route.mtu ? route.mtu : device;
	if (!*mtu)
		*mtu = u->nic.info.mtu + NIC_UDP_HLEN;
	/* A datagram's length field ends at 65,535 bytes, IPv4's total too. */
	*mtu = homa_min_u32(*mtu, 65535) - NIC_UDP_HLEN;
	return 0;
}

static bool same_ip(const struct homa_addr *a, const struct homa_addr *b)
{
	return !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static struct udp_route *set_of(struct udp *u, const struct homa_addr *dst)
{
	return u->routes[homa_hash_ip(dst->ip, u->route_key[0], u->route_key[1]) %
			 UDP_ROUTE_SETS];
}

/* What is remembered of the way to @dst, or NULL. */
static struct udp_route *known(struct udp *u, const struct homa_addr *dst)
{
	struct udp_route *set = set_of(u, dst);
	u32 i;

	for (i = 0; i < UDP_ROUTE_WAYS; i++)
		if (same_ip(&set[i].dst, dst))
			return &set[i];
	return NULL;
}

static struct udp_route *least_used(struct udp_route *set)
{
	struct udp_route *least = set;
	u32 i;

	for (i = 1; i < UDP_ROUTE_WAYS; i++)
		if (set[i].used_ms < least->used_ms)
			least = &set[i];
	return least;
}

static struct udp_route *find(struct udp *u, const struct homa_addr *dst)
{
	struct udp_route *r = known(u, dst);
	u64 now = nic_now_ms();

	if (!r) {
		r = least_used(set_of(u, dst));
		memset(r, 0, sizeof(*r));
		r->dst = *dst;
	}
	r->used_ms = now;
	if (r->expires_ms <= now) {
		r->mtu = 0;
		memset(&r->src, 0, sizeof(r->src));
		r->rc = look_up(u, dst, &r->mtu, &r->src, now);
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
	struct udp_route *r = known(u, dst);

	if (r)
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
		return; /* The socket has only one address. */
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
	r = known(u, dst);
	return r && r->pinned ? &r->heard : NULL;
}
