/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Neighbours (ARP and neighbour discovery) through the kernel: it resolves, we
 * ask, and we tell it which entries are in use, because it never sees the
 * traffic that would keep them alive.
 */
#ifndef HOMA_NIC_NEIGH_H
#define HOMA_NIC_NEIGH_H

#include "rtnl.h"

/** enum nic_neigh_state - what a neighbour entry is good for */
enum nic_neigh_state {
	NIC_NEIGH_NONE,	  /* no entry, or being resolved */
	NIC_NEIGH_VALID,  /* @mac can be used */
	NIC_NEIGH_FAILED, /* resolution ended without an answer */
};

/**
 * struct nic_neigh - one entry as the kernel told it
 * @ifindex: device.
 * @hop: the neighbour's address.
 * @state: see above.
 * @lasting: set by hand; the kernel will never probe it.
 * @mac: Ethernet address, when valid.
 */
struct nic_neigh {
	int ifindex;
	struct homa_addr hop;
	enum nic_neigh_state state;
	bool lasting;
	u8 mac[6];
};

/** nic_neigh_decode() - read RTM_NEWNEIGH or RTM_DELNEIGH; false if it is
 *  something else. */
bool nic_neigh_decode(const struct nlmsghdr *msg, struct nic_neigh *neigh);

/** nic_neigh_get() - current state of one neighbour; 0 or a negative errno. */
int nic_neigh_get(struct nic_rtnl *rtnl, int ifindex,
		  const struct homa_addr *hop, struct nic_neigh *neigh);

/**
 * nic_neigh_use() - tell the kernel that the entry is in use: it resolves a
 *	missing one and probes a stale one. May wait for the kernel's lock on
 *	network configuration.
 */
int nic_neigh_use(struct nic_rtnl *rtnl, int ifindex,
		  const struct homa_addr *hop);

#endif
