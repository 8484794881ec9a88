// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the kernel puts into the packet socket: the program of its filter, made from the addresses
 * of the interface, and made anew when they change. A host may forward what others send to each
 * other; without the addresses such packets would take the room that our own need, and a stranger
 * beyond this host could fill it. PACKET_HOST only says that a frame is to our Ethernet address.
 */
#include "packet.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>

/* Instructions for what all packets must be, and for one IPv6 address, which has more than one of
 * IPv4. All addresses fit: the kernel takes 4,096 (BPF_MAXINSNS). */
#define COMMON 48u
#define PER_ADDRESS 9u
/* Where the destination is in the frame. */
#define DST4 (NIC_ETH_HLEN + 16)
#define DST6 (NIC_ETH_HLEN + 24)

_Static_assert(COMMON + NIC_NETIF_ADDRS * PER_ADDRESS <= BPF_MAXINSNS,
	       "the kernel takes a filter for all addresses");

/** struct program - a filter that is being made */
struct program {
	/* The instructions. */
	struct sock_filter code[COMMON + NIC_NETIF_ADDRS * PER_ADDRESS];
	/* The number of instructions so far. */
	unsigned short n;
};

static void add(struct program *p, u32 code, u32 k, u8 if_true, u8 if_false)
{
	p->code[p->n++] = (struct sock_filter){ (u16)code, if_true, if_false, k };
}

static void load(struct program *p, u32 size, u32 at)
{
	add(p, BPF_LD | size | BPF_ABS, at, 0, 0);
}

/* The packet is taken, or dropped. */
static void take(struct program *p)
{
	add(p, BPF_RET | BPF_K, 0xffffffff, 0, 0);
}

static void drop(struct program *p)
{
	add(p, BPF_RET | BPF_K, 0, 0, 0);
}

/* Go on if what was loaded is @value, else drop the packet. */
static void must_be(struct program *p, u32 value)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
	drop(p);
}

/* A whole IPv4 packet of Homa's to one of @addrs. */
static void ipv4(struct program *p, const struct homa_addr *addrs, u32 n)
{
	load(p, BPF_B, NIC_ETH_HLEN + 9);
	must_be(p, IPPROTO_HOMA);
	load(p, BPF_H, NIC_ETH_HLEN + 6);
	/* It is no fragment. */
	add(p, BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 0, 1);
	drop(p);
	load(p, BPF_W, DST4);
	for (u32 i = 0; i < n; i++) {
		if (!homa_addr_is_v4(&addrs[i]))
			continue;
		add(p, BPF_JMP | BPF_JEQ | BPF_K,
		    homa_get_be32(addrs[i].ip + 12), 0, 1);
		take(p);
	}
	drop(p);
}

/* An IPv6 packet of Homa's to one of @addrs. The last word is the one that tells most addresses
 * apart. */
static void ipv6(struct program *p, const struct homa_addr *addrs, u32 n)
{
	u32 word;

	load(p, BPF_B, NIC_ETH_HLEN + 6);
	must_be(p, IPPROTO_HOMA);
	for (word = 0; word < 4; word++) {
		load(p, BPF_W, DST6 + 4 * word);
		add(p, BPF_ST, word, 0, 0);
	}
	for (u32 i = 0; i < n; i++) {
		if (homa_addr_is_v4(&addrs[i]))
			continue;
		for (word = 4; word-- > 0;) {
			add(p, BPF_LD | BPF_MEM, word, 0, 0);
			/* Else on to the next address, behind two instructions for each word that
			 * is left, and take(). */
			add(p, BPF_JMP | BPF_JEQ | BPF_K,
			    homa_get_be32(addrs[i].ip + 4 * word), 0,
			    (u8)(2 * word + 1));
		}
		take(p);
	}
	drop(p);
}

static int set(int fd, struct program *p)
{
	const struct sock_fprog prog = { .len = p->n, .filter = p->code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) < 0 ?
		       -errno :
		       0;
}

int packet_filter(const struct packet_nic *nic)
{
	const struct nic_netif *netif = &nic->eth.netif;
	const struct homa_addr *addrs =
		nic->eth.has_bound ? &nic->eth.bound : netif->addrs;
	u32 n = nic->eth.has_bound ? 1 : netif->n_addrs;
	struct program p = { .n = 0 };
	u16 jump;

	load(&p, BPF_W, (u32)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	must_be(&p, PACKET_HOST);
	load(&p, BPF_W, (u32)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
	must_be(&p, 0);
	load(&p, BPF_H, 12);
	add(&p, BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 1, 0);
	jump = p.n;
	add(&p, BPF_JMP | BPF_JA, 0, 0, 0);
	ipv4(&p, addrs, n);
	p.code[jump].k = p.n - jump - 1u;
	must_be(&p, ETH_P_IPV6);
	ipv6(&p, addrs, n);
	return set(nic->fd, &p);
}

int packet_filter_nothing(int fd)
{
	struct program p = { .n = 0 };

	drop(&p);
	return set(fd, &p);
}
