/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The way to a destination over a device, as the kernel tells it: a question and its answer.
 * Nobody shares them, so any thread may ask.
 *
 * Written by: who asks (the question) and the thread that asks the kernel for him (the answer),
 * one after the other.
 */
#ifndef HOMA_NIC_WAY_H
#define HOMA_NIC_WAY_H

#include "neigh.h"
#include "route.h"

/**
 * struct nic_way - question and answer
 * @dst: the destination. The asker sets it and @ifindex, nic_way_ask() the other fields.
 * @ifindex: the index of the device.
 * @asked_ms: the value of nic_now_ms() before the kernel was asked.
 * @error: 0, or a negative errno of the routing table.
 * @other: true if the routing table prefers another device, and was then asked for this one.
 * @route: the routing table's answer, if @error is 0.
 * @neigh_error: 0, or a negative errno of the question for the next hop, which is asked if
 *	@error is 0 and the destination is not this host.
 * @neigh: what the kernel knows of the next hop, if @neigh_error is 0.
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
