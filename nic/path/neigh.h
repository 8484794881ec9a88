/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Neighbours (ARP and neighbour discovery) through the kernel: it resolves, we
 * ask, and we tell it which entries are in use, because it never sees the
 * traffic that would keep them alive.
 *
 * Guarded by: the owner of the object, who lets one thread at a time use it.
 */
#ifndef HOMA_NIC_NEIGH_H
#define HOMA_NIC_NEIGH_H

#include "rtnl.h"

/** enum nic_neigh_state - what a neighbour entry is good for */
enum nic_neigh_state {
	NIC_NEIGH_NONE,	  /* There is no entry, or it is being resolved. */
	NIC_NEIGH_VALID,  /* The entry's @mac can be used. */
	NIC_NEIGH_FAILED, /* The neighbour has not answered. */
};

/**
 * struct nic_neigh - one entry as the kernel told it
 * @ifindex: the index of the interface.
 * @hop: the neighbour's address.
 * @state: what the entry is good for.
 * @lasting: true if the entry was set by hand, so that the kernel will never probe it.
 * @mac: the neighbour's Ethernet address, if the entry is valid.
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

/** nic_neigh_get() - ask for the state of one neighbour; 0 or a negative errno. */
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
