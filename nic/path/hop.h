/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Next hops: what the kernel knows of each neighbour, kept once however many
 * destinations are behind it. A path sees by a version that its hop has changed, so
 * that news of a router cost the same whether one destination is behind it or all.
 *
 * Guarded by: the owner of the table, who lets one thread at a time use it.
 */
#ifndef HOMA_NIC_HOP_H
#define HOMA_NIC_HOP_H

#include "neigh.h"
#include "netif.h"

struct nic_path;

/** nic_path_touch - a function that has the kernel use a neighbour; false if that failed */
typedef bool (*nic_path_touch)(void *arg, const struct homa_addr *hop);

/**
 * struct nic_hop - one neighbour
 * @next: the next hop in the same bucket.
 * @addr: its address.
 * @waiting: the first of the paths through it that hold packets.
 * @paths: the number of paths through it; it is freed with the last.
 * @version: a number that is raised when @state, @lasting or @mac change.
 * @state: what the kernel's entry of the neighbour is good for.
 * @lasting: true if that entry was set by hand, so that the kernel will never probe it.
 * @used: true if a path through it was used since the kernel was told that it is in use.
 * @mac: the neighbour's Ethernet address, if the entry is valid.
 * @changed_ms: the time at which @version was last raised, in ms.
 * @used_ms: the time at which the kernel was last told that it is in use, in ms.
 * @asked_ms: the time at which the kernel was last asked about it, in ms.
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
 * struct nic_hops - the table of next hops
 * @buckets: the hash table, by address.
 * @key: the random key of the hash.
 * @rtnl: the netlink socket for questions to the kernel; borrowed.
 * @netif: our interface; borrowed.
 * @touch: the function that has the kernel use a neighbour.
 * @arg: its argument.
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
/** nic_hops_fini() - free the table, when nic_hop_put() was called for all. */
void nic_hops_fini(struct nic_hops *hops);

struct nic_hop *nic_hop_find(const struct nic_hops *hops,
			     const struct homa_addr *addr);
/** nic_hop_get() - find or make the hop for one more path; NULL if memory is lacking or
 *  too many hops share its bucket. */
struct nic_hop *nic_hop_get(struct nic_hops *hops, const struct homa_addr *addr);
/** nic_hop_put() - a path leads through @hop no more; @hop may be NULL. */
void nic_hop_put(struct nic_hops *hops, struct nic_hop *hop);

/** nic_hop_learn() - take in what the kernel has told of the hop. */
void nic_hop_learn(struct nic_hop *hop, const struct nic_neigh *neigh);
/** nic_hop_ask() - ask the kernel and learn; 0 or a negative errno. */
int nic_hop_ask(const struct nic_hops *hops, struct nic_hop *hop);
/** nic_hop_use() - have the kernel resolve or probe it; false if that failed. */
bool nic_hop_use(const struct nic_hops *hops, struct nic_hop *hop);

#endif
