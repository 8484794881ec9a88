/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel's routing table, played: one device, a default route, and a count of who
 * was asked for. Instead of nic/path/route.c.
 */
#ifndef TEST_PLAYED_ROUTES_H
#define TEST_PLAYED_ROUTES_H

#include <string.h>

#include "route.h"

/**
 * asked - questions so far; @asked_for_mine: those for @mine.
 * on_link - every destination is a neighbour; else all are behind number(1).
 */
static u32 asked, asked_for_mine;
static struct homa_addr mine;
static bool on_link;

/* 10.0.0.0 and on. */
static inline struct homa_addr number(u32 n)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, 0xff, 10 } };

	addr.ip[13] = (u8)(n >> 16);
	addr.ip[14] = (u8)(n >> 8);
	addr.ip[15] = (u8)n;
	return addr;
}

int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *route)
{
	(void)rtnl;
	(void)oif;
	asked++;
	asked_for_mine += !memcmp(dst->ip, mine.ip, 16);
	memset(route, 0, sizeof(*route));
	route->ifindex = 1;
	route->hop = on_link ? *dst : number(1);
	route->src = number(2);
	return 0;
}

#endif
