// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The path cache. A destination costs two netlink requests when first used and
 * nothing afterwards: the kernel's notifications keep neighbours current, and
 * any change of routes or addresses raises the table's generation, so that each
 * path is looked up again at its next use rather than all at once.
 */
#include "path.h"

#include <errno.h>
#include <linux/if.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_FAILED_MS 1000
#define REFRESH_MS 4000
#define TICK_MS 500
#define RESOLVE_MS 5000 /* the kernel gives up after three */
#define PMTU_EXPIRES_MS 600000

static u32 hash_addr(const struct homa_addr *addr)
{
	u64 a, b;

	memcpy(&a, addr->ip, 8);
	memcpy(&b, addr->ip + 8, 8);
	return (u32)(((a ^ (b * 0x9e3779b97f4a7c15ULL)) *
		      0xbf58476d1ce4e5b9ULL) >>
		     40);
}

int nic_paths_init(struct nic_paths *paths, struct nic_rtnl *rtnl,
		   struct nic_netif *netif, const struct homa_addr *bound,
		   nic_path_done done, nic_path_touch touch, void *arg)
{
	memset(paths, 0, sizeof(*paths));
	paths->mask = 1023;
	paths->buckets = calloc(paths->mask + 1, sizeof(*paths->buckets));
	if (!paths->buckets)
		return -ENOMEM;
	paths->generation = 1;
	paths->rtnl = rtnl;
	paths->netif = netif;
	paths->mtu_max = netif->mtu;
	paths->bound = bound;
	paths->done = done;
	paths->touch = touch;
	paths->arg = arg;
	return 0;
}

static void drop_held(struct nic_paths *paths, struct nic_path *path)
{
	while (path->held) {
		struct nic_held *h = path->held;

		path->held = h->next;
		free(h);
		paths->held--;
	}
	path->n_held = 0;
}

void nic_paths_fini(struct nic_paths *paths)
{
	if (!paths->buckets)
		return;
	for (u32 i = 0; i <= paths->mask; i++) {
		while (paths->buckets[i]) {
			struct nic_path *path = paths->buckets[i];

			paths->buckets[i] = path->next;
			drop_held(paths, path);
			free(path);
		}
	}
	free(paths->buckets);
	paths->buckets = NULL;
}

/* Hands all held packets over; they may not be held again by the callback. */
static void settle(struct nic_paths *paths, struct nic_path *path, int error)
{
	struct nic_held *list = path->held;

	path->held = NULL;
	path->n_held = 0;
	while (list) {
		struct nic_held *h = list;

		list = h->next;
		paths->held--;
		paths->done(paths->arg, path, &h->pkt, error);
		free(h);
	}
}

static void fail(struct nic_paths *paths, struct nic_path *path, int error)
{
	path->state = NIC_PATH_FAILED;
	path->error = error;
	settle(paths, path, error);
}

static void ready(struct nic_paths *paths, struct nic_path *path,
		  const struct nic_neigh *neigh)
{
	path->lasting = neigh->lasting;
	nic_frame_template_init(&path->frame, neigh->mac, paths->netif->mac,
				&path->src, &path->dst);
	path->state = NIC_PATH_READY;
	settle(paths, path, 0);
}

/* The route must lead through our interface: a frame sent anywhere else would
 * contradict the routing table. */
static int find_route(struct nic_paths *paths, struct nic_path *path,
		      struct nic_route_result *route)
{
	int rc = nic_route_get(
		paths->rtnl, &path->dst,
		nic_addr_link_local(&path->dst) ? paths->netif->index : 0,
		route);

	if (rc)
		return rc;
	if (route->local || route->ifindex == paths->netif->index)
		return 0;
	/* Two interfaces in one subnet: ours will do, too. */
	rc = nic_route_get(paths->rtnl, &path->dst, paths->netif->index, route);
	if (rc)
		return rc;
	if (!route->via && !nic_netif_on_link(paths->netif, &path->dst))
		return -ENETUNREACH;
	return 0;
}

/* Packets to an address of another interface would not come to us, so the
 * kernel's choice counts only if it is ours. */
static int choose_source(struct nic_paths *paths, struct nic_path *path,
			 const struct nic_route_result *route)
{
	bool v4 = homa_addr_is_v4(&path->dst);
	const struct homa_addr *src = &route->src;

	if (paths->bound && homa_addr_is_v4(paths->bound) == v4)
		src = paths->bound;
	else if (nic_netif_has(paths->netif, &path->heard))
		src = &path->heard;
	else if (!nic_netif_has(paths->netif, src))
		src = nic_netif_source(paths->netif, &path->dst);
	if (!src || homa_addr_is_v4(src) != v4)
		return -ENETUNREACH;
	path->src = *src;
	return 0;
}

/* By a packet of the kernel's own if possible, since netlink may have to wait. */
static bool use(struct nic_paths *paths, struct nic_path *path)
{
	return paths->touch(paths->arg, &path->hop) ||
	       !nic_neigh_use(paths->rtnl, paths->netif->index, &path->hop);
}

static void resolve(struct nic_paths *paths, struct nic_path *path, u64 now)
{
	struct nic_route_result route;
	struct nic_neigh neigh;
	int rc;

	path->generation = paths->generation;
	path->resolved_ms = now;
	path->mtu = paths->netif->mtu;
	rc = find_route(paths, path, &route);
	if (!rc)
		rc = choose_source(paths, path, &route);
	if (!rc && !paths->netif->up)
		rc = -ENETUNREACH;
	if (rc) {
		fail(paths, path,
		     rc == -EHOSTUNREACH ? EHOSTUNREACH : ENETUNREACH);
		return;
	}
	path->hop = route.hop;
	if (route.local) {
		path->src = path->dst;
		path->state = NIC_PATH_LOCAL;
		settle(paths, path, 0);
		return;
	}
	if (route.mtu && route.mtu < path->mtu)
		path->mtu = route.mtu;
	if (path->pmtu && now - path->pmtu_ms < PMTU_EXPIRES_MS)
		path->mtu = homa_min_u32(path->mtu, path->pmtu);
	else
		path->pmtu = 0;
	rc = nic_neigh_get(paths->rtnl, paths->netif->index, &path->hop,
			   &neigh);
	if (!rc && neigh.state == NIC_NEIGH_VALID) {
		ready(paths, path, &neigh);
		return;
	}
	path->state = NIC_PATH_RESOLVING;
	path->refreshed_ms = now;
	if (!use(paths, path))
		fail(paths, path, EHOSTUNREACH);
}

/* Over the limit the first idle entry of the chains behind a moving hand goes;
 * a peer that comes back costs two netlink requests. */
static void evict(struct nic_paths *paths, u32 hand)
{
	for (u32 i = 0; i <= paths->mask; i++) {
		struct nic_path **at =
			&paths->buckets[(hand + i) & paths->mask];

		for (; *at; at = &(*at)->next) {
			struct nic_path *path = *at;

			if (path->used || path->n_held)
				continue;
			*at = path->next;
			free(path);
			paths->count--;
			return;
		}
	}
}

struct nic_path *nic_path_find(struct nic_paths *paths,
			       const struct homa_addr *dst)
{
	u32 h = hash_addr(dst) & paths->mask;
	struct nic_path *path;
	u64 now;

	for (path = paths->buckets[h]; path; path = path->next)
		if (!memcmp(path->dst.ip, dst->ip, 16))
			break;
	if (likely(path && path->generation == paths->generation &&
		   path->state <= NIC_PATH_LOCAL))
		return path;
	now = nic_now_ms();
	if (!path) {
		if (paths->count >= NIC_PATH_MAX)
			evict(paths, h + 1);
		path = calloc(1, sizeof(*path));
		if (!path)
			return NULL;
		memcpy(path->dst.ip, dst->ip, 16);
		path->next = paths->buckets[h];
		paths->buckets[h] = path;
		paths->count++;
	} else if (path->generation == paths->generation &&
		   now - path->resolved_ms < RETRY_FAILED_MS) {
		return path;
	}
	resolve(paths, path, now);
	return path;
}

void nic_path_heard(struct nic_paths *paths, const struct homa_addr *peer,
		    const struct homa_addr *local)
{
	struct nic_path *path = nic_path_find(paths, peer);

	if (!path || path->state == NIC_PATH_LOCAL ||
	    !memcmp(path->src.ip, local->ip, sizeof(local->ip)))
		return;
	path->heard = *local;
	resolve(paths, path, nic_now_ms());
}

bool nic_path_hold(struct nic_paths *paths, struct nic_path *path,
		   const struct nic_tx *pkt)
{
	struct nic_held **end = &path->held;
	struct nic_held *h;

	if (path->n_held >= NIC_PATH_HOLD || paths->held >= NIC_PATH_HOLD_ALL)
		return false;
	h = malloc(sizeof(*h) + pkt->hdr_len + pkt->payload_len);
	if (!h)
		return false;
	h->next = NULL;
	h->pkt = *pkt;
	h->pkt.hdr = h->bytes;
	h->pkt.payload = h->bytes + pkt->hdr_len;
	memcpy(h->bytes, pkt->hdr, pkt->hdr_len);
	if (pkt->payload_len)
		memcpy(h->bytes + pkt->hdr_len, pkt->payload, pkt->payload_len);
	while (*end)
		end = &(*end)->next;
	*end = h;
	path->n_held++;
	paths->held++;
	return true;
}

void nic_path_set_pmtu(struct nic_paths *paths, const struct homa_addr *dst,
		       u32 mtu)
{
	struct nic_path *path = nic_path_find(paths, dst);
	u32 least = homa_addr_is_v4(dst) ? 552 : 1280;

	if (!path || path->state == NIC_PATH_LOCAL)
		return;
	/* A forged error must not shrink packets to nothing (RFC 1191 7.1,
	 * RFC 8201 4); nor can one raise the MTU. */
	mtu = homa_max_u32(mtu, least);
	if (mtu >= path->mtu)
		return;
	path->pmtu = mtu;
	path->pmtu_ms = nic_now_ms();
	path->mtu = mtu;
}

static void on_neigh(struct nic_paths *paths, const struct nic_neigh *neigh)
{
	for (u32 i = 0; i <= paths->mask; i++) {
		for (struct nic_path *p = paths->buckets[i]; p; p = p->next) {
			if (p->state == NIC_PATH_LOCAL ||
			    p->generation != paths->generation ||
			    memcmp(p->hop.ip, neigh->hop.ip, 16))
				continue;
			p->resolved_ms = nic_now_ms();
			if (neigh->state == NIC_NEIGH_VALID)
				ready(paths, p, neigh);
			else if (neigh->state == NIC_NEIGH_FAILED)
				fail(paths, p, EHOSTUNREACH);
			else if (p->state == NIC_PATH_READY && p->used)
				/* deleted or resolving anew: ask at next use */
				p->generation = 0;
		}
	}
}

static void on_link(struct nic_paths *paths, const struct nlmsghdr *msg)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(msg);
	const struct rtattr *attrs[IFLA_MAX + 1];
	struct nic_netif *netif = paths->netif;

	if (ifi->ifi_index != netif->index)
		return;
	nic_rtnl_attrs(attrs, IFLA_MAX, IFLA_RTA(ifi), (int)IFLA_PAYLOAD(msg));
	netif->up = msg->nlmsg_type == RTM_NEWLINK && ifi->ifi_flags & IFF_UP;
	if (attrs[IFLA_MTU])
		netif->mtu = homa_min_u32(nic_rtnl_u32(attrs[IFLA_MTU]),
					  paths->mtu_max);
	if (attrs[IFLA_ADDRESS] && RTA_PAYLOAD(attrs[IFLA_ADDRESS]) == 6)
		memcpy(netif->mac, RTA_DATA(attrs[IFLA_ADDRESS]), 6);
	paths->generation++;
	paths->changed = true;
}

static int on_event(const struct nlmsghdr *msg, void *arg)
{
	struct nic_paths *paths = arg;
	struct nic_neigh neigh;

	switch (msg->nlmsg_type) {
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (nic_neigh_decode(msg, &neigh) &&
		    neigh.ifindex == paths->netif->index)
			on_neigh(paths, &neigh);
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		on_link(paths, msg);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		paths->changed = true;
		paths->generation++;
		break;
	default:
		paths->generation++;
	}
	return 0;
}

/* Paths with held packets must not wait for their next use. */
static void resolve_held(struct nic_paths *paths)
{
	for (u32 i = 0; i <= paths->mask && paths->held; i++)
		for (struct nic_path *p = paths->buckets[i]; p; p = p->next)
			if (p->n_held && p->generation != paths->generation)
				resolve(paths, p, nic_now_ms());
}

void nic_paths_events(struct nic_paths *paths)
{
	int seen = nic_rtnl_events(paths->rtnl, on_event, paths);

	if (seen == -ENOBUFS) {
		paths->changed = true;
		paths->generation++;
	}
	if (paths->changed)
		nic_netif_addresses(paths->rtnl, paths->netif);
	if (seen && paths->held)
		resolve_held(paths);
}

/* Nothing was heard of this one for a while: a lost notification, or a kernel
 * that has given up. */
static void recheck(struct nic_paths *paths, struct nic_path *path, u64 now_ms)
{
	struct nic_neigh neigh;

	if (nic_neigh_get(paths->rtnl, paths->netif->index, &path->hop, &neigh))
		return;
	if (neigh.state == NIC_NEIGH_VALID)
		ready(paths, path, &neigh);
	else if (neigh.state == NIC_NEIGH_FAILED ||
		 now_ms - path->resolved_ms > RESOLVE_MS)
		fail(paths, path, EHOSTUNREACH);
}

static void refresh(struct nic_paths *paths, struct nic_path *path, u64 now_ms)
{
	if (!path->used || path->lasting ||
	    now_ms - path->refreshed_ms < REFRESH_MS)
		return;
	path->used = false;
	path->refreshed_ms = now_ms;
	use(paths, path);
}

void nic_paths_tick(struct nic_paths *paths, u64 now_ms)
{
	if (now_ms - paths->tick_ms < TICK_MS)
		return;
	paths->tick_ms = now_ms;
	for (u32 i = 0; i <= paths->mask; i++) {
		for (struct nic_path *p = paths->buckets[i]; p; p = p->next) {
			if (p->state == NIC_PATH_READY)
				refresh(paths, p, now_ms);
			else if (p->state == NIC_PATH_RESOLVING &&
				 now_ms - p->resolved_ms > TICK_MS)
				recheck(paths, p, now_ms);
		}
	}
}
