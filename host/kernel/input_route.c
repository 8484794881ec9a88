// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Input routes, remembered: the one that the last packet between the same addresses
 * on the same device had, as long as routing says that it holds. Every change of
 * addresses, routes or rules ends it, and the next packet is looked up and judged
 * (reverse path filter) anew. prerouting.c says what they are for.
 *
 * Each CPU has its own table, used with bottom halves off. A route found here
 * is borrowed for the RCU read side that the packet's whole way in runs in.
 */
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>

#include "homa_net.h"
#include "homa_receive.h"

#define HOMAK_EARLY_BITS 5u
#define HOMAK_EARLY_SLOTS (1u << HOMAK_EARLY_BITS)

/* What a route is remembered by: the addresses, then the device's index and the mark. */
struct homak_early_key {
	u64 w[5];
};

struct homak_early_slot {
	struct dst_entry *dst;
	u32 cookie;
	struct homak_early_key key;
};

struct homak_early {
	struct homak_early_slot slot[HOMAK_EARLY_SLOTS];
};

#ifdef CONFIG_NETFILTER

static void homak_early_key(struct homak_early_key *key, const struct sk_buff *skb)
{
	if (ip_hdr(skb)->version == 4) {
		key->w[0] = (__force u64)ip_hdr(skb)->saddr << 32 |
			    (__force u32)ip_hdr(skb)->daddr;
		key->w[1] = key->w[2] = key->w[3] = 0;
	} else {
		memcpy(&key->w[0], &ipv6_hdr(skb)->saddr, 16);
		memcpy(&key->w[2], &ipv6_hdr(skb)->daddr, 16);
	}
	key->w[4] = (u64)skb->mark << 32 | (u32)skb->dev->ifindex;
}

static bool homak_early_same(const struct homak_early_key *a,
			     const struct homak_early_key *b)
{
	return !((a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1]) | (a->w[2] ^ b->w[2]) |
		 (a->w[3] ^ b->w[3]) | (a->w[4] ^ b->w[4]));
}

static struct homak_early_slot *
homak_early_slot(struct homak_net *hnet, const struct homak_early_key *key)
{
	struct homak_early __percpu *tables = READ_ONCE(hnet->early);
	const u64 *w = key->w;
	u64 hash;

	if (!tables)
		return NULL;
	hash = (w[0] ^ w[1] ^ (w[2] << 7) ^ w[3] ^ w[4]) * GOLDEN_RATIO_64;
	return &this_cpu_ptr(tables)->slot[hash >> (64 - HOMAK_EARLY_BITS)];
}

void homak_early_learn(struct homak_net *hnet, const struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct homak_early_slot *slot;
	struct dst_entry *old = NULL;
	struct homak_early_key key HOMA_NOINIT;

	if (!dst)
		return;
	homak_early_key(&key, skb);
	homak_own();
	slot = homak_early_slot(hnet, &key);
	if (!slot || (slot->dst == dst && homak_early_same(&slot->key, &key)) ||
	    !dst_hold_safe(dst))
		goto out;
	old = slot->dst;
	slot->dst = dst;
	slot->key = key;
	slot->cookie = 0;
	if (ip_hdr(skb)->version == 6)
		slot->cookie =
			rt6_get_cookie(container_of(dst, struct rt6_info, dst));
out:
	homak_disown();
	if (unlikely(old))
		dst_release(old);
}

struct dst_entry *homak_early_find(struct homak_net *hnet,
				   const struct sk_buff *skb)
{
	struct homak_early_slot *slot;
	struct dst_entry *dst = NULL;
	struct homak_early_key key HOMA_NOINIT;

	homak_early_key(&key, skb);
	homak_own();
	slot = homak_early_slot(hnet, &key);
	if (slot && slot->dst && homak_early_same(&slot->key, &key))
		dst = dst_check(slot->dst, slot->cookie);
	homak_disown();
	return dst;
}

int homak_early_make(struct homak_net *hnet)
{
	struct homak_early __percpu *tables =
		alloc_percpu_gfp(struct homak_early, homak_net_gfp(hnet));

	if (!tables)
		return -ENOMEM;
	WRITE_ONCE(hnet->early, tables);
	return 0;
}

void homak_early_free(struct homak_net *hnet)
{
	struct homak_early __percpu *tables = hnet->early;
	u32 i;
	int c;

	WRITE_ONCE(hnet->early, NULL);
	synchronize_net();
	for_each_possible_cpu(c)
		for (i = 0; i < HOMAK_EARLY_SLOTS; i++)
			dst_release(per_cpu_ptr(tables, c)->slot[i].dst);
	free_percpu(tables);
}

#else

void homak_early_learn(struct homak_net *hnet, const struct sk_buff *skb)
{
}

#endif
