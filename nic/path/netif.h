/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the kernel knows about a network interface: addresses, MTU, rate, and
 * whether there is hardware behind it.
 *
 * Guarded by: the owner of the object, who lets one thread at a time use it.
 */
#ifndef HOMA_NIC_NETIF_H
#define HOMA_NIC_NETIF_H

#include "rtnl.h"

#define NIC_NETIF_ADDRS 64

/**
 * struct nic_netif - what is known of an interface
 * @index: its index, greater than 0.
 * @name: its name.
 * @mac: its Ethernet address.
 * @ethernet: true if frames begin with an Ethernet header.
 * @up: true if it is administratively up.
 * @virtual_device: true for veth, bridge, tap and others without hardware, and so without a
 *	driver for which native XDP could pay off.
 * @has_xdp: true if an XDP program was on it when it was looked up.
 * @mtu: its IP MTU in bytes.
 * @mbps: the link rate in Mbit/s; 0 if it is unknown or made up, as that of virtual devices.
 * @rx_queues: the number of its receive queues.
 * @addrs: its addresses, IPv4 first, global before link-local.
 * @prefix: the prefix length of each address in bits.
 * @n_addrs: the number of addresses.
 */
struct nic_netif {
	int index;
	char name[16];
	u8 mac[6];
	bool ethernet;
	bool up;
	bool virtual_device;
	bool has_xdp;
	u32 mtu;
	u32 mbps;
	u32 rx_queues;
	struct homa_addr addrs[NIC_NETIF_ADDRS];
	u8 prefix[NIC_NETIF_ADDRS];
	u32 n_addrs;
};

/**
 * nic_netif_get() - look an interface up
 * Returns 0, or -ENODEV with the sentence naming the interfaces there are.
 */
int nic_netif_get(struct nic_rtnl *rtnl, const char *name,
		  struct nic_netif *netif, char *err, size_t errlen);

/** nic_netif_of() - write the name of the interface with this address to @name, which has 16
 *  bytes; 0 or -ENODEV. */
int nic_netif_of(struct nic_rtnl *rtnl, const struct homa_addr *addr, char *name);

/** nic_netif_addresses() - read the addresses again. */
int nic_netif_addresses(struct nic_rtnl *rtnl, struct nic_netif *netif);

/** nic_netif_has() - is @addr one of the interface's addresses? */
bool nic_netif_has(const struct nic_netif *netif, const struct homa_addr *addr);
/** nic_netif_on_link() - is @addr inside one of the interface's prefixes? */
bool nic_netif_on_link(const struct nic_netif *netif,
		       const struct homa_addr *addr);
/** nic_netif_source() - the interface's first address of @dst's family and scope; for an IPv6
 *  @dst one of the other scope if there is none, else NULL. */
const struct homa_addr *nic_netif_source(const struct nic_netif *netif,
					 const struct homa_addr *dst);

/** nic_addr_parse() - read a numeric IPv4 or IPv6 address; 0 or -EINVAL. */
int nic_addr_parse(const char *text, struct homa_addr *addr);
/** nic_addr_text() - write an address as text, IPv4 without the mapping, to @buf, which
 *  needs 48 bytes; returns the text. */
const char *nic_addr_text(const struct homa_addr *addr, char *buf, size_t len);

static inline bool nic_addr_link_local(const struct homa_addr *addr)
{
	return addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

#endif
