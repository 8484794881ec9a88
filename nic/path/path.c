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
#include <sys/random.h>

#define RETRY_FAILED_MS 1000
#define REFRESH_MS 4000
#define TICK_MS 500
#define RESOLVE_MS 5000 /* the kernel gives up after three */
#define PMTU_EXPIRES_MS 600000

#define MASK 4095u
#define TOUCHED 64u
#define EVICT_LOOKS 16u /* entries looked at for one that can go */
#define SWEEP_LOOKS 64u /* in one tick */
#define SWEEP_ASKS 8u	/* for so many of them the kernel is asked */

/* Multiplication by secret odd numbers: whoever chooses the addresses does not
 * know which of them share a chain. */
static u32 hash_addr(const struct nic_paths *paths, const struct homa_addr *addr)
{
	u64 a, b;

	memcpy(&a, addr->ip, 8);
	memcpy(&b, addr->ip + 8, 8);
	a = a * paths->key[0] + b * paths->key[1];
	return (u32)((a ^ a >> 32) * paths->key[1] >> 40);
}

int nic_paths_init(struct nic_paths *paths, struct nic_rtnl *rtnl,
		   struct nic_netif *netif, const struct homa_addr *bound,
		   nic_path_done done, nic_path_touch touch, void *arg)
{
	memset(paths, 0, sizeof(*paths));
	paths->buckets = calloc(MASK + 1, sizeof(*paths->buckets));
	paths->hops = calloc(MASK + 1, sizeof(*paths->hops));
	paths->ring = calloc(NIC_PATH_MAX, sizeof(*paths->ring));
	paths->touched = calloc(TOUCHED, sizeof(*paths->touched));
	if (!paths->buckets || !paths->hops || !paths->ring || !paths->touched ||
	    getrandom(paths->key, sizeof(paths->key), 0) !=
		    (ssize_t)sizeof(paths->key)) {
		nic_paths_fini(paths);
		return -ENOMEM;
	}
	paths->key[0] |= 1;
	paths->key[1] |= 1;
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
	for (u32 i = 0; i < paths->count; i++) {
		drop_held(paths, paths->ring[i]);
		free(paths->ring[i]);
	}
	free(paths->buckets);
	free(paths->hops);
	free(paths->ring);
	free(paths->touched);
	paths->buckets = paths->hops = paths->ring = NULL;
	paths->touched = NULL;
	paths->count = 0;
}

/* Neighbours are told of by hop: those of one hop are found without the others. */
static void hop_del(struct nic_path *path)
{
	if (!path->hop_at)
		return;
	*path->hop_at = path->hop_next;
	if (path->hop_next)
		path->hop_next->hop_at = path->hop_at;
	path->hop_at = NULL;
}

static void hop_set(struct nic_paths *paths, struct nic_path *path,
		    const struct homa_addr *hop)
{
	struct nic_path **head = &paths->hops[hash_addr(paths, hop) & MASK];

	hop_del(path);
	path->hop = *hop;
	path->hop_next = *head;
	path->hop_at = head;
	if (*head)
		(*head)->hop_at = &path->hop_next;
	*head = path;
}

static void hold_del(struct nic_path *path)
{
	if (!path->hold_at)
		return;
	*path->hold_at = path->hold_next;
	if (path->hold_next)
		path->hold_next->hold_at = path->hold_at;
	path->hold_at = NULL;
}

static void hold_add(struct nic_paths *paths, struct nic_path *path)
{
	if (path->hold_at)
		return;
	path->hold_next = paths->holding;
	path->hold_at = &paths->holding;
	if (paths->holding)
		paths->holding->hold_at = &path->hold_next;
	paths->holding = path;
}

/* Hands all held packets over; they may not be held again by the callback. */
static void settle(struct nic_paths *paths, struct nic_path *path, int error)
{
	struct nic_held *list = path->held;

	path->held = NULL;
	path->n_held = 0;
	hold_del(path);
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
	hop_set(paths, path, &route.hop);
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

/*
 * When the table is full, one of the next few entries behind a moving hand goes: one
 * that was not found again since the hand last came by, else any that holds no packets. So
 * a new destination costs the same however many there are, and who uses very many
 * for once pushes out his own. A peer that comes back costs two netlink requests.
 */
static struct nic_path *victim(struct nic_paths *paths)
{
	struct nic_path *any = NULL;

	for (u32 i = 0; i < EVICT_LOOKS; i++) {
		struct nic_path *path = paths->ring[paths->hand];

		paths->hand = (paths->hand + 1) % NIC_PATH_MAX;
		if (path->n_held)
			continue;
		if (!path->recent)
			return path;
		path->recent = false;
		if (!any)
			any = path;
	}
	return any;
}

/* A place in the ring; false: none can be had now. */
static bool make_place(struct nic_paths *paths, u32 *place)
{
	struct nic_path *path, **at;

	if (paths->count < NIC_PATH_MAX) {
		*place = paths->count++;
		return true;
	}
	path = victim(paths);
	if (!path)
		return false;
	*place = path->place;
	hop_del(path);
	at = &paths->buckets[hash_addr(paths, &path->dst) & MASK];
	while (*at != path)
		at = &(*at)->next;
	*at = path->next;
	free(path);
	return true;
}

static struct nic_path *add(struct nic_paths *paths, const struct homa_addr *dst)
{
	struct nic_path *path = calloc(1, sizeof(*path));
	struct nic_path **head = &paths->buckets[hash_addr(paths, dst) & MASK];

	if (!path)
		return NULL;
	if (!make_place(paths, &path->place)) {
		free(path);
		return NULL;
	}
	memcpy(path->dst.ip, dst->ip, 16);
	path->next = *head;
	*head = path;
	paths->ring[path->place] = path;
	return path;
}

struct nic_path *nic_path_find(struct nic_paths *paths,
			       const struct homa_addr *dst)
{
	struct nic_path *path = paths->buckets[hash_addr(paths, dst) & MASK];
	u64 now;

	for (; path; path = path->next)
		if (!memcmp(path->dst.ip, dst->ip, 16))
			break;
	if (likely(path)) {
		path->recent = true;
		if (likely(path->generation == paths->generation &&
			   path->state <= NIC_PATH_LOCAL))
			return path;
	}
	now = nic_now_ms();
	if (!path) {
		path = add(paths, dst);
		if (!path)
			return NULL;
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
	hold_add(paths, path);
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
	struct nic_path *p = paths->hops[hash_addr(paths, &neigh->hop) & MASK];

	for (; p; p = p->hop_next) {
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
	struct nic_path *p = paths->holding, *next;
	u32 asks = SWEEP_ASKS;

	for (; p && asks; p = next) {
		next = p->hold_next;
		if (p->generation == paths->generation)
			continue;
		resolve(paths, p, nic_now_ms());
		asks--;
	}
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

/* False: the kernel need not be told of this one. */
static bool refresh(struct nic_paths *paths, struct nic_path *path, u64 now_ms)
{
	struct nic_touched *touched;

	if (!path->used || path->lasting ||
	    now_ms - path->refreshed_ms < REFRESH_MS)
		return false;
	path->used = false;
	path->refreshed_ms = now_ms;
	touched = &paths->touched[hash_addr(paths, &path->hop) % TOUCHED];
	/* All destinations behind a router have one hop. */
	if (!memcmp(touched->hop.ip, path->hop.ip, 16) &&
	    now_ms - touched->at_ms < REFRESH_MS / 2)
		return false;
	touched->hop = path->hop;
	touched->at_ms = now_ms;
	use(paths, path);
	return true;
}

void nic_paths_tick(struct nic_paths *paths, u64 now_ms)
{
	u32 looks = SWEEP_LOOKS, asks = SWEEP_ASKS;

	if (paths->holding)
		resolve_held(paths);
	if (!paths->sweep) {
		if (now_ms - paths->tick_ms < TICK_MS)
			return;
		paths->tick_ms = now_ms;
		paths->sweep = paths->count;
	}
	for (; paths->sweep && looks && asks; looks--) {
		struct nic_path *p = paths->ring[--paths->sweep];

		if (p->state == NIC_PATH_READY) {
			asks -= refresh(paths, p, now_ms);
		} else if (p->state == NIC_PATH_RESOLVING &&
			   now_ms - p->resolved_ms > TICK_MS) {
			recheck(paths, p, now_ms);
			asks--;
		}
	}
}
