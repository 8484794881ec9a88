/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The way to a destination over a device, as the kernel says it: a question and its answer,
 * which belong to nobody else, so that any thread may ask.
 */
#ifndef HOMA_NIC_WAY_H
#define HOMA_NIC_WAY_H

#include "neigh.h"
#include "route.h"

/**
 * struct nic_way - question and answer
 * @dst: where to. @ifindex: the device. @asked_ms: nic_now_ms() before the kernel was asked.
 * @error: 0 or a negative errno of the routing table.
 * @other: the routing table prefers another device, and was asked for this one then.
 * @route: without error: its answer.
 * @neigh_error, @neigh: without error, and if the destination is not this host: what the
 *	kernel knows of the next hop, or a negative errno.
 */
struct nic_way {
	struct homa_addr dst;
	int ifindex;
	u64 asked_ms;
	int error;
	bool other;
	struct nic_route_result route;
	int neigh_error;
	struct nic_neigh neigh;
};

/** nic_way_ask() - ask the kernel about @way->dst and @way->ifindex; may wait for locks
 *  that others hold on the configuration of the network. */
void nic_way_ask(struct nic_rtnl *rtnl, struct nic_way *way);

#endif
