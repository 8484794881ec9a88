/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Next hops: what the kernel knows of each neighbour, kept once however many
 * destinations are behind it. A path sees by a version that its hop has changed, so
 * that news of a router cost the same whether one destination is behind it or all.
 */
#ifndef HOMA_NIC_HOP_H
#define HOMA_NIC_HOP_H

#include "neigh.h"
#include "netif.h"

struct nic_path;

/** nic_path_touch - have the kernel use a neighbour; false if that failed */
typedef bool (*nic_path_touch)(void *arg, const struct homa_addr *hop);

/**
 * struct nic_hop - one neighbour
 * @next: hash chain.
 * @addr: key.
 * @waiting: paths through it that hold packets.
 * @paths: how many paths lead through it; it goes with the last.
 * @version: raised when @state, @lasting or @mac change; @changed_ms: when that was.
 * @state, @lasting, @mac: as in struct nic_neigh.
 * @used: a path through it was used since the kernel was told. @used_ms: when it was
 *	told last. @asked_ms: when it was last asked about this one.
 */
struct nic_hop {
	struct nic_hop *next;
	struct homa_addr addr;
	struct nic_path *waiting;
	u32 paths;
	u32 version;
	enum nic_neigh_state state;
	bool lasting;
	bool used;
	u8 mac[6];
	u64 changed_ms;
	u64 used_ms;
	u64 asked_ms;
};

/**
 * struct nic_hops - the table
 * @buckets: by address. @key: of the hash, random.
 * @rtnl, @netif, @touch, @arg: as in struct nic_paths.
 */
struct nic_hops {
	struct nic_hop **buckets;
	u64 key[2];
	struct nic_rtnl *rtnl;
	const struct nic_netif *netif;
	nic_path_touch touch;
	void *arg;
};

int nic_hops_init(struct nic_hops *hops, struct nic_rtnl *rtnl,
		  const struct nic_netif *netif, nic_path_touch touch, void *arg);
/** nic_hops_fini() - after nic_hop_put() of all. */
void nic_hops_fini(struct nic_hops *hops);

struct nic_hop *nic_hop_find(const struct nic_hops *hops,
			     const struct homa_addr *addr);
/** nic_hop_get() - found or made, for one more path; NULL for lack of memory or when
 *  too many share its chain. */
struct nic_hop *nic_hop_get(struct nic_hops *hops, const struct homa_addr *addr);
/** nic_hop_put() - for one path less; NULL is none. */
void nic_hop_put(struct nic_hops *hops, struct nic_hop *hop);

/** nic_hop_learn() - the kernel told this of it. */
void nic_hop_learn(struct nic_hop *hop, const struct nic_neigh *neigh);
/** nic_hop_ask() - ask the kernel and learn; 0 or a negative errno. */
int nic_hop_ask(const struct nic_hops *hops, struct nic_hop *hop);
/** nic_hop_use() - have the kernel resolve or probe it; false if that failed. */
bool nic_hop_use(const struct nic_hops *hops, struct nic_hop *hop);

#endif
