// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The path cache. A destination costs two questions to the kernel (way.c) when first
 * used and nothing afterwards: the kernel's notifications keep neighbours current, and
 * any change of routes or addresses raises the table's generation, so that each
 * path is looked up again at its next use rather than all at once.
 */
#include "path.h"

#include <errno.h>
#include <linux/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "homa_hash.h"

/* The time after which a failed path is looked up again, in ms. */
#define RETRY_FAILED_MS 1000
/* The time after which the kernel is told again that a neighbour is in use, in ms. */
#define REFRESH_MS 4000
/* The time between the beginnings of two sweeps over all paths, in ms. */
#define TICK_MS 500
/* The time after which a path that is not resolved fails, in ms; the kernel gives up after
 * 3 s. */
#define RESOLVE_MS 5000
/* The time after which a path MTU that ICMP told is forgotten, in ms. */
#define PMTU_EXPIRES_MS 600000

/* The number of buckets, less 1. */
#define MASK 4095u
/* The most paths in a bucket; there are 4 on average when the table is full. */
#define CHAIN_MOST 32u
/* The most entries of the ring that are looked at to find one that can go. */
#define EVICT_LOOKS 16u
/* The most paths that one tick looks at, and the most about which it asks the kernel. */
#define SWEEP_LOOKS 64u
#define SWEEP_ASKS 8u

static u32 hash_addr(const struct nic_paths *paths, const struct homa_addr *addr)
{
	return (u32)homa_hash_ip(addr->ip, paths->key[0], paths->key[1]);
}

int nic_paths_init(struct nic_paths *paths, struct nic_rtnl *rtnl,
		   struct nic_netif *netif, const struct homa_addr *bound,
		   nic_path_done done, nic_path_touch touch, void *arg)
{
	memset(paths, 0, sizeof(*paths));
	paths->buckets = calloc(MASK + 1, sizeof(*paths->buckets));
	paths->ring = calloc(NIC_PATH_MAX, sizeof(*paths->ring));
	if (!paths->buckets || !paths->ring ||
	    nic_hops_init(&paths->hops, rtnl, netif, touch, arg) ||
	    getrandom(paths->key, sizeof(paths->key), 0) !=
		    (ssize_t)sizeof(paths->key)) {
		nic_paths_fini(paths);
		return -ENOMEM;
	}
	paths->generation = 1;
	paths->rtnl = rtnl;
	paths->netif = netif;
	paths->mtu_max = netif->mtu;
	paths->bound = bound;
	paths->done = done;
	paths->arg = arg;
	return 0;
}

void nic_paths_fini(struct nic_paths *paths)
{
	for (u32 i = 0; i < paths->count; i++) {
		struct nic_path *path = paths->ring[i];

		nic_held_drop(paths, path);
		nic_hop_put(&paths->hops, path->hop);
		free(path);
	}
	nic_hops_fini(&paths->hops);
	free(paths->buckets);
	free(paths->ring);
	paths->buckets = paths->ring = NULL;
	paths->count = 0;
}

static bool hop_set(struct nic_paths *paths, struct nic_path *path,
		    const struct homa_addr *addr)
{
	struct nic_hop *hop = addr ? nic_hop_get(&paths->hops, addr) : NULL;

	nic_held_leave(path);
	nic_hop_put(&paths->hops, path->hop);
	path->hop = hop;
	if (hop && path->n_held)
		nic_held_join(path);
	return hop;
}

static void fail(struct nic_paths *paths, struct nic_path *path, int error)
{
	path->state = NIC_PATH_FAILED;
	path->error = error;
	nic_held_settle(paths, path, error);
}

static void ready(struct nic_paths *paths, struct nic_path *path)
{
	nic_frame_template_init(&path->frame, path->hop->mac, paths->netif->mac,
				&path->src, &path->dst);
	path->state = NIC_PATH_READY;
	nic_held_settle(paths, path, 0);
}

/* Bring the path up to date with its hop, which has changed. */
static void follow(struct nic_paths *paths, struct nic_path *path)
{
	struct nic_hop *hop = path->hop;

	path->hop_version = hop->version;
	if (path->state == NIC_PATH_LOCAL)
		return;
	if (hop->state == NIC_NEIGH_VALID) {
		ready(paths, path);
	} else if (hop->state == NIC_NEIGH_FAILED) {
		path->resolved_ms = hop->changed_ms;
		fail(paths, path, EHOSTUNREACH);
	} else if (path->state == NIC_PATH_READY) {
		/* The kernel has deleted the entry, or resolves it anew. */
		path->state = NIC_PATH_RESOLVING;
		path->resolved_ms = nic_now_ms();
		if (hop->used_ms <= hop->changed_ms &&
		    !nic_hop_use(&paths->hops, hop))
			fail(paths, path, EHOSTUNREACH);
	}
}

static bool hop_changed(const struct nic_path *path)
{
	return path->hop && path->hop_version != path->hop->version;
}

/* Return 0 if the kernel's answer is a route over our interface, else a negative errno. */
static int check_route(const struct nic_paths *paths, const struct nic_way *way)
{
	if (way->error)
		return way->error;
	if (way->other && !way->route.via &&
	    !nic_netif_on_link(paths->netif, &way->dst))
		return -ENETUNREACH;
	return 0;
}

/* Choose our address for packets to the destination. Answers to an address of another interface
 * would not come to us, so the kernel's choice counts only if our interface has it. */
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

/* Take in the answer about the hop, unless what is known of it is newer. True if the link address
 * is known then. */
static bool learn_hop(struct nic_path *path, const struct nic_way *way)
{
	struct nic_hop *hop = path->hop;

	if (way->neigh_error)
		return false;
	if (way->asked_ms > hop->asked_ms)
		hop->asked_ms = way->asked_ms;
	if (!hop->version || way->asked_ms > hop->changed_ms)
		nic_hop_learn(hop, &way->neigh);
	return hop->state == NIC_NEIGH_VALID;
}

static void set_mtu(struct nic_paths *paths, struct nic_path *path, u32 route_mtu)
{
	path->mtu = paths->netif->mtu;
	if (route_mtu && route_mtu < path->mtu)
		path->mtu = route_mtu;
	if (path->pmtu && path->resolved_ms - path->pmtu_ms < PMTU_EXPIRES_MS)
		path->mtu = homa_min_u32(path->mtu, path->pmtu);
	else
		path->pmtu = 0;
}

static void learn(struct nic_paths *paths, struct nic_path *path,
		  const struct nic_way *way)
{
	int rc = check_route(paths, way);

	path->resolved_ms = way->asked_ms;
	path->mtu = paths->netif->mtu;
	if (!rc)
		rc = choose_source(paths, path, &way->route);
	if (!rc && !paths->netif->up)
		rc = -ENETUNREACH;
	if (!hop_set(paths, path, rc ? NULL : &way->route.hop)) {
		fail(paths, path,
		     rc && rc != -EHOSTUNREACH ? ENETUNREACH : EHOSTUNREACH);
		return;
	}
	path->hop_version = path->hop->version;
	if (way->route.local) {
		path->src = path->dst;
		path->state = NIC_PATH_LOCAL;
		nic_held_settle(paths, path, 0);
		return;
	}
	set_mtu(paths, path, way->route.mtu);
	if (learn_hop(path, way)) {
		path->hop_version = path->hop->version;
		ready(paths, path);
		return;
	}
	path->state = NIC_PATH_RESOLVING;
	if (!nic_hop_use(&paths->hops, path->hop))
		fail(paths, path, EHOSTUNREACH);
	path->hop_version = path->hop->version;
}

/*
 * Ask the kernel about the path. If another thread can do that, it does, so that nobody waits
 * here for the kernel's locks. Meanwhile a path that is ready stays so, and others hold packets.
 */
static void resolve(struct nic_paths *paths, struct nic_path *path, u64 now)
{
	struct nic_way way = { .dst = path->dst, .ifindex = paths->netif->index };
	int asked;

	if (path->asking) {
		if (now - path->resolved_ms <= RESOLVE_MS)
			return;
		path->asking = false;
		if (path->state == NIC_PATH_RESOLVING) {
			fail(paths, path, EHOSTUNREACH);
			return;
		}
	}
	asked = paths->ask ? paths->ask(paths->ask_arg, &way) : -1;
	if (asked > 0) {
		path->asking = true;
		path->resolved_ms = now;
		if (path->state == NIC_PATH_FAILED)
			path->state = NIC_PATH_RESOLVING;
	}
	if (asked >= 0)
		return;
	paths->asked++;
	path->generation = paths->generation;
	nic_way_ask(paths->rtnl, &way);
	learn(paths, path, &way);
}

/*
 * When the table is full, one of the next few entries behind a moving hand goes: one
 * that was not found again since the hand last came by, else any that holds no packets. So
 * a new destination costs the same however many there are, and a user who uses very many
 * once pushes out his own. A peer that comes back costs two netlink requests.
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

/* The oldest path that can go of a bucket that has too many; NULL if it has not. The hash is
 * secret, so nobody can fill a bucket on purpose, but one may get long all the same. */
static struct nic_path *crowded_out(struct nic_path *chain)
{
	struct nic_path *oldest = NULL;
	u32 n = 0;

	for (; chain; chain = chain->next, n++)
		if (!chain->n_held)
			oldest = chain;
	return n < CHAIN_MOST ? NULL : oldest;
}

/* Find a place in the ring for one more path of the bucket @chain; false if there is none now. */
static bool make_place(struct nic_paths *paths, struct nic_path *chain, u32 *place)
{
	struct nic_path *path = crowded_out(chain), **at;

	if (!path && paths->count < NIC_PATH_MAX) {
		*place = paths->count++;
		return true;
	}
	if (!path)
		path = victim(paths);
	if (!path)
		return false;
	*place = path->place;
	nic_hop_put(&paths->hops, path->hop);
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
	if (!make_place(paths, *head, &path->place)) {
		free(path);
		return NULL;
	}
	memcpy(path->dst.ip, dst->ip, 16);
	path->mtu = paths->netif->mtu;
	path->resolved_ms = nic_now_ms();
	path->next = *head;
	*head = path;
	paths->ring[path->place] = path;
	return path;
}

static struct nic_path *known(const struct nic_paths *paths,
			      const struct homa_addr *dst)
{
	struct nic_path *path = paths->buckets[hash_addr(paths, dst) & MASK];

	while (path && memcmp(path->dst.ip, dst->ip, 16))
		path = path->next;
	return path;
}

struct nic_path *nic_path_find(struct nic_paths *paths,
			       const struct homa_addr *dst)
{
	struct nic_path *path = known(paths, dst);
	u64 now;

	if (likely(path)) {
		path->recent = true;
		if (likely(path->generation == paths->generation)) {
			if (unlikely(hop_changed(path)))
				follow(paths, path);
			if (likely(path->state <= NIC_PATH_LOCAL))
				return path;
		}
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

/* If routes have changed since the kernel was asked, the path's next use looks it up again. */
void nic_path_learn(struct nic_paths *paths, const struct nic_way *way)
{
	struct nic_path *path = known(paths, &way->dst);

	if (!path)
		path = add(paths, &way->dst);
	if (!path)
		return;
	path->asking = false;
	path->generation =
		paths->generation - (way->asked_ms <= paths->routes_ms);
	learn(paths, path, way);
}

void nic_path_heard(struct nic_paths *paths, const struct homa_addr *peer,
		    const struct homa_addr *local)
{
	struct nic_path *path = nic_path_find(paths, peer);

	if (!path || path->state == NIC_PATH_LOCAL ||
	    !memcmp(path->src.ip, local->ip, sizeof(local->ip)))
		return;
	path->heard = *local;
	/* Packets to the peer come from @local from now on, whatever the kernel would choose. */
	if (path->state == NIC_PATH_READY && !paths->bound &&
	    nic_netif_has(paths->netif, local)) {
		path->src = *local;
		ready(paths, path);
		return;
	}
	resolve(paths, path, nic_now_ms());
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

/* Raise the generation, so that each path is looked up again at its next use. */
static void routes_changed(struct nic_paths *paths)
{
	paths->generation++;
	paths->routes_ms = nic_now_ms();
}

void nic_paths_limit_mtu(struct nic_paths *paths, u32 most)
{
	paths->mtu_max = homa_min_u32(paths->mtu_max, most);
	if (paths->netif->mtu <= most)
		return;
	paths->netif->mtu = most;
	routes_changed(paths);
}

/* Take in news of a neighbour. Paths that hold packets, which are few, follow at once. Others see
 * it at their next use, as all destinations may be behind one router. */
static void on_neigh(struct nic_paths *paths, const struct nic_neigh *neigh)
{
	struct nic_hop *hop = nic_hop_find(&paths->hops, &neigh->hop);
	struct nic_path *p, *next;

	if (!hop)
		return;
	nic_hop_learn(hop, neigh);
	for (p = hop->waiting; p; p = next) {
		next = p->wait_next;
		if (p->generation == paths->generation && hop_changed(p))
			follow(paths, p);
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
	routes_changed(paths);
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
		routes_changed(paths);
		break;
	default:
		routes_changed(paths);
	}
	return 0;
}

/* Look up paths of an older generation that hold packets, as nothing may use them any more. */
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
		routes_changed(paths);
	}
	if (paths->changed)
		nic_netif_addresses(paths->rtnl, paths->netif);
	resolve_held(paths);
}

/* Nothing was heard of this path for a while: a notification was lost, or the kernel has given
 * up. Look at its hop, and ask the kernel about it if need be. Returns whether it was asked. */
static bool recheck(struct nic_paths *paths, struct nic_path *path, u64 now_ms)
{
	struct nic_hop *hop = path->hop;
	bool ask = hop && !hop_changed(path) && now_ms - hop->asked_ms > TICK_MS;

	/* A hop is not asked about for each of the destinations behind it. */
	if (ask && !paths->ask && nic_hop_ask(&paths->hops, hop))
		return true;
	if (hop_changed(path))
		follow(paths, path);
	if (path->state == NIC_PATH_RESOLVING &&
	    now_ms - path->resolved_ms > RESOLVE_MS)
		fail(paths, path, EHOSTUNREACH);
	return ask;
}

/* Tell the kernel that the path's hop is in use; false if that need not be told now. */
static bool refresh(struct nic_paths *paths, struct nic_path *path, u64 now_ms)
{
	struct nic_hop *hop = path->hop;

	hop->used |= path->used;
	path->used = false;
	if (!hop->used || hop->lasting || now_ms - hop->used_ms < REFRESH_MS)
		return false;
	nic_hop_use(&paths->hops, hop);
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
			asks -= recheck(paths, p, now_ms);
		}
	}
}
