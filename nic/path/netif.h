/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the kernel knows about a network interface: addresses, MTU, rate, and
 * whether there is hardware behind it.
 */
#ifndef HOMA_NIC_NETIF_H
#define HOMA_NIC_NETIF_H

#include "rtnl.h"

#define NIC_NETIF_ADDRS 64

/**
 * struct nic_netif - a snapshot
 * @index: interface index, > 0.
 * @name: its name.
 * @mac: Ethernet address.
 * @ethernet: frames begin with an Ethernet header.
 * @up: administratively up.
 * @virtual_device: veth, bridge, tap …: no hardware, so no driver for which
 *	native XDP could pay off.
 * @mtu: IP MTU, bytes.
 * @mbps: link rate, 0 if unknown or made up, as virtual devices' is.
 * @rx_queues: receive queues the device has.
 * @addrs: its addresses, IPv4 first, global before link-local.
 * @prefix: prefix length of each.
 * @n_addrs: how many.
 */
struct nic_netif {
	int index;
	char name[16];
	u8 mac[6];
	bool ethernet;
	bool up;
	bool virtual_device;
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

/** nic_netif_of() - name of the interface with this address, @name of 16 bytes;
 *  0 or -ENODEV. */
int nic_netif_of(struct nic_rtnl *rtnl, const struct homa_addr *addr, char *name);

/** nic_netif_addresses() - read the addresses again. */
int nic_netif_addresses(struct nic_rtnl *rtnl, struct nic_netif *netif);

/** nic_netif_has() - is it one of the interface's addresses? */
bool nic_netif_has(const struct nic_netif *netif, const struct homa_addr *addr);
/** nic_netif_on_link() - is it inside one of the interface's prefixes? */
bool nic_netif_on_link(const struct nic_netif *netif,
		       const struct homa_addr *addr);
/** nic_netif_source() - first address of @dst's family and scope, or NULL. */
const struct homa_addr *nic_netif_source(const struct nic_netif *netif,
					 const struct homa_addr *dst);

/** nic_addr_parse() - numeric IPv4 or IPv6 address; 0 or -EINVAL. */
int nic_addr_parse(const char *text, struct homa_addr *addr);
/** nic_addr_text() - as text, IPv4 without the mapping; returns @buf, which
 *  needs 48 bytes. */
const char *nic_addr_text(const struct homa_addr *addr, char *buf, size_t len);

static inline bool nic_addr_link_local(const struct homa_addr *addr)
{
	return addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

#endif
