// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Next hops. The kernel resolves; its notifications and answers are remembered here.
 */
#include "hop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "frame.h"
#include "homa_hash.h"

#define BUCKETS 4096u
/* The most hops in a bucket; there are 4 on average if all paths have hops of their own. */
#define CHAIN_MOST 32u

int nic_hops_init(struct nic_hops *hops, struct nic_rtnl *rtnl,
		  const struct nic_netif *netif, nic_path_touch touch, void *arg)
{
	hops->buckets = calloc(BUCKETS, sizeof(*hops->buckets));
	if (!hops->buckets || getrandom(hops->key, sizeof(hops->key), 0) !=
				      (ssize_t)sizeof(hops->key))
		return -ENOMEM;
	hops->rtnl = rtnl;
	hops->netif = netif;
	hops->touch = touch;
	hops->arg = arg;
	return 0;
}

void nic_hops_fini(struct nic_hops *hops)
{
	free(hops->buckets);
	hops->buckets = NULL;
}

static struct nic_hop **bucket_of(const struct nic_hops *hops,
				  const struct homa_addr *addr)
{
	return &hops->buckets[homa_hash_ip(addr->ip, hops->key[0], hops->key[1]) %
			      BUCKETS];
}

struct nic_hop *nic_hop_find(const struct nic_hops *hops,
			     const struct homa_addr *addr)
{
	struct nic_hop *hop = *bucket_of(hops, addr);

	while (hop && memcmp(hop->addr.ip, addr->ip, 16))
		hop = hop->next;
	return hop;
}

static struct nic_hop *add(struct nic_hops *hops, const struct homa_addr *addr)
{
	struct nic_hop **head = bucket_of(hops, addr), *hop;
	u32 others = 0;

	for (hop = *head; hop; hop = hop->next)
		others++;
	hop = others < CHAIN_MOST ? calloc(1, sizeof(*hop)) : NULL;
	if (!hop)
		return NULL;
	memcpy(hop->addr.ip, addr->ip, 16);
	hop->next = *head;
	*head = hop;
	return hop;
}

struct nic_hop *nic_hop_get(struct nic_hops *hops, const struct homa_addr *addr)
{
	struct nic_hop *hop = nic_hop_find(hops, addr);

	if (!hop)
		hop = add(hops, addr);
	if (hop)
		hop->paths++;
	return hop;
}

void nic_hop_put(struct nic_hops *hops, struct nic_hop *hop)
{
	struct nic_hop **at;

	if (!hop || --hop->paths)
		return;
	at = bucket_of(hops, &hop->addr);
	while (*at != hop)
		at = &(*at)->next;
	*at = hop->next;
	free(hop);
}

void nic_hop_learn(struct nic_hop *hop, const struct nic_neigh *neigh)
{
	if (hop->state == neigh->state && hop->lasting == neigh->lasting &&
	    !memcmp(hop->mac, neigh->mac, sizeof(hop->mac)))
		return;
	hop->state = neigh->state;
	hop->lasting = neigh->lasting;
	memcpy(hop->mac, neigh->mac, sizeof(hop->mac));
	hop->changed_ms = nic_now_ms();
	hop->version++;
}

int nic_hop_ask(const struct nic_hops *hops, struct nic_hop *hop)
{
	struct nic_neigh neigh;
	int rc = nic_neigh_get(hops->rtnl, hops->netif->index, &hop->addr,
			       &neigh);

	hop->asked_ms = nic_now_ms();
	if (!rc)
		nic_hop_learn(hop, &neigh);
	return rc;
}

/* The kernel is made to send a packet of its own, if possible, since netlink may have to wait. */
bool nic_hop_use(const struct nic_hops *hops, struct nic_hop *hop)
{
	if (hop->state == NIC_NEIGH_FAILED) {
		/* Resolution begins again, and another failure will raise the version. */
		hop->state = NIC_NEIGH_NONE;
		hop->version++;
	}
	hop->used = false;
	hop->used_ms = nic_now_ms();
	return hops->touch(hops->arg, &hop->addr) ||
	       !nic_neigh_use(hops->rtnl, hops->netif->index, &hop->addr);
}
