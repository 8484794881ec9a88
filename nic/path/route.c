// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Route look-up: one RTM_GETROUTE and its answer. */
#include "route.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int fill_route(const struct nlmsghdr *msg, void *arg)
{
	const struct rtmsg *rtm = NLMSG_DATA(msg);
	const struct rtattr *attrs[RTA_MAX + 1];
	const struct rtattr *metrics[RTAX_MAX + 1];
	struct nic_route_result *result = arg;

	if (msg->nlmsg_type != RTM_NEWROUTE)
		return 0;
	nic_rtnl_attrs(attrs, RTA_MAX, RTM_RTA(rtm), (int)RTM_PAYLOAD(msg));
	switch (rtm->rtm_type) {
	case RTN_UNICAST:
		break;
	case RTN_LOCAL:
		result->local = true;
		break;
	case RTN_UNREACHABLE:
	case RTN_PROHIBIT:
		return -EHOSTUNREACH;
	default: /* RPCs cannot go to broadcast, multicast or blackhole routes. */
		return -ENETUNREACH;
	}
	result->ifindex = (int)nic_rtnl_u32(attrs[RTA_OIF]);
	nic_rtnl_addr(attrs[RTA_PREFSRC], &result->src);
	if (nic_rtnl_addr(attrs[RTA_GATEWAY], &result->hop)) {
		result->via = true;
	} else if (attrs[RTA_VIA] &&
		   RTA_PAYLOAD(attrs[RTA_VIA]) == sizeof(struct rtvia) + 16) {
		/* The IPv4 route has an IPv6 gateway. */
		const struct rtvia *via = RTA_DATA(attrs[RTA_VIA]);

		memset(&result->hop, 0, sizeof(result->hop));
		memcpy(result->hop.ip, via->rtvia_addr, 16);
		result->via = true;
	}
	if (attrs[RTA_METRICS]) {
		nic_rtnl_attrs(metrics, RTAX_MAX, RTA_DATA(attrs[RTA_METRICS]),
			       (int)RTA_PAYLOAD(attrs[RTA_METRICS]));
		result->mtu = nic_rtnl_u32(metrics[RTAX_MTU]);
	}
	return 0;
}

int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *result)
{
	bool v4 = homa_addr_is_v4(dst);
	struct nic_rtnl_req req;
	struct rtmsg *rtm;
	u32 index = (u32)oif;
	int rc;

	memset(result, 0, sizeof(*result));
	rtm = nic_rtnl_init(&req, RTM_GETROUTE, 0, sizeof(*rtm));
	rtm->rtm_family = v4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = v4 ? 32 : 128;
	nic_rtnl_attr_addr(&req, RTA_DST, dst);
	if (oif)
		nic_rtnl_attr(&req, RTA_OIF, &index, sizeof(index));
	rc = nic_rtnl_request(rtnl, &req, fill_route, result);
	if (rc)
		return rc;
	if (!result->ifindex)
		return -ENETUNREACH;
	if (!result->via) {
		result->hop = *dst;
		result->hop.encap = 0;
	}
	return 0;
}
