// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which way to a destination: an application of this host (its own addresses),
 * a device over which Homa goes natively, or UDP encapsulation. The kernel's
 * routing table decides, asked once a second for each destination in use.
 */
#include <errno.h>
#include "homa_sockaddr.h"
#include "route.h"
#include "service.h"

#define BELIEVE_NS 1000000000u

static u32 slot_of(const struct homa_addr *addr)
{
	u32 mix = homa_get_be32(addr->ip + 12) ^
		  homa_get_be32(addr->ip + 8) * 31 ^
		  homa_get_be32(addr->ip + 4);

	return ((mix ^ addr->encap) * 2654435761u) >> 22;
}

HOMA_STATIC_ASSERT(HOMAD_DESTS == 1u << (32 - 22), "slot_of() fits");

static bool unspecified(const struct homa_addr *addr)
{
	static const u8 any[16], any_v4[16] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr->ip, any, 16) || !memcmp(addr->ip, any_v4, 16);
}

/* The port over @ifindex that this thread serves, else any over it. */
static struct homad_port *port_over(struct homad_thread *t, int ifindex)
{
	struct homad_port *any = NULL;
	u32 i;

	for (i = 0; i < t->d->num_ports; i++) {
		struct homad_port *port = &t->d->ports[i];

		if (!port->nic || port->encap || port->ifindex != ifindex)
			continue;
		if (port->thread == t->index)
			return port;
		any = port;
	}
	return any;
}

/* Over UDP; the nic knows best, but belongs to one thread. */
static int over_udp(struct homad_thread *t, struct homa_addr *addr,
		    struct homad_port **port)
{
	u32 mtu;
	int rc;

	*port = t->d->udp;
	if (!*port)
		return -EPROTONOSUPPORT;
	if (!addr->encap)
		addr->encap = HOMA_ENCAP_PORT;
	mtu = (*port)->info->mtu;
	if ((*port)->thread == t->index) {
		rc = nic_route((*port)->nic, addr, &mtu);
		if (rc)
			return rc;
	}
	homad_refill(t);
	homa_path_mtu(&t->ctx, (*port)->link, addr, mtu);
	return 0;
}

/*
 * Messages to ourselves: as with the kernel they come from the address they were
 * sent to, except that all of 127.0.0.0/8 is one host, or one application could
 * make a peer of each of its addresses.
 */
static void name_ourselves(struct homa_addr *addr)
{
	addr->encap = 0;
	if (homa_addr_is_v4(addr) && addr->ip[12] == 127)
		memcpy(addr->ip + 13, "\0\0\1", 3);
}

static int resolve(struct homad_thread *t, struct homa_addr *addr,
		   struct homad_port **port)
{
	struct nic_route_result route;
	u32 mtu;
	int rc;

	rc = nic_route_get(&t->rtnl, addr, 0, &route);
	if (rc)
		return rc == -ENETUNREACH ? rc : -EHOSTUNREACH;
	if (route.local &&
	    (!addr->encap ||
	     (t->d->udp && addr->encap == t->d->udp->info->address.encap))) {
		name_ourselves(addr);
		*port = t->d->local;
		return 0;
	}
	*port = addr->encap || route.local ? NULL :
					     port_over(t, route.ifindex);
	if (!*port)
		return over_udp(t, addr, port);
	mtu = (*port)->info->mtu;
	if (route.mtu && route.mtu < mtu)
		mtu = route.mtu;
	homad_refill(t);
	homa_path_mtu(&t->ctx, (*port)->link, addr, mtu);
	return 0;
}

struct homad_dest *homad_dest_find(struct homad_thread *t,
				   const struct homa_addr *addr)
{
	struct homad_dest *dest = &t->dests[slot_of(addr)];

	return dest->checked && homa_addr_equal(&dest->addr, addr) ? dest :
								     NULL;
}

/* What is known of how the peer likes long messages outlives the route. */
static void look_up(struct homad_thread *t, struct homad_dest *dest,
		    const struct homa_addr *addr)
{
	if (!dest->checked || !homa_addr_equal(&dest->addr, addr)) {
		memset(dest, 0, sizeof(*dest));
		dest->addr = *addr;
	}
	dest->way = *addr;
	dest->port = NULL;
	dest->error = resolve(t, &dest->way, &dest->port);
	dest->checked = t->ctx.now;
}

int homad_dest(struct homad_thread *t, struct homa_addr *addr, u32 length,
	       struct homad_port **port)
{
	struct homad_dest *dest = &t->dests[slot_of(addr)];

	if (unlikely(unspecified(addr))) {
		addr->encap = 0;
		*port = t->d->local;
		return 0;
	}
	if (unlikely(!homa_addr_equal(&dest->addr, addr) || !dest->checked ||
		     homa_since(t->ctx.now, dest->checked) > BELIEVE_NS))
		look_up(t, dest, addr);
	if (unlikely(dest->error))
		return dest->error;
	if (homad_bulk(t, dest, length, addr, port))
		return 0;
	*addr = dest->way;
	*port = dest->port;
	return 0;
}
