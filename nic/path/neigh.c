// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Neighbour entries by rtnetlink. NTF_USE makes the kernel behave as if it had
 * just sent a packet through the entry: it creates and resolves an unknown one,
 * moves a stale one to probing, and leaves a reachable one alone.
 */
#include "neigh.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <string.h>
#include <sys/socket.h>

#define NUD_USABLE                                                           \
	(NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | \
	 NUD_DELAY)

bool nic_neigh_decode(const struct nlmsghdr *msg, struct nic_neigh *neigh)
{
	const struct ndmsg *ndm = NLMSG_DATA(msg);
	const struct rtattr *attrs[NDA_MAX + 1];
	int len = (int)msg->nlmsg_len - (int)NLMSG_SPACE(sizeof(*ndm));

	if ((msg->nlmsg_type != RTM_NEWNEIGH && msg->nlmsg_type != RTM_DELNEIGH) ||
	    len < 0)
		return false;
	nic_rtnl_attrs(attrs, NDA_MAX,
		       (const void *)((const u8 *)ndm + NLMSG_ALIGN(sizeof(*ndm))),
		       len);
	memset(neigh, 0, sizeof(*neigh));
	if (!nic_rtnl_addr(attrs[NDA_DST], &neigh->hop))
		return false;
	neigh->ifindex = ndm->ndm_ifindex;
	if (msg->nlmsg_type == RTM_DELNEIGH)
		return true;
	if (ndm->ndm_state & NUD_FAILED) {
		neigh->state = NIC_NEIGH_FAILED;
	} else if (ndm->ndm_state & NUD_USABLE && attrs[NDA_LLADDR] &&
		   RTA_PAYLOAD(attrs[NDA_LLADDR]) == 6) {
		neigh->state = NIC_NEIGH_VALID;
		neigh->lasting = ndm->ndm_state & (NUD_PERMANENT | NUD_NOARP);
		memcpy(neigh->mac, RTA_DATA(attrs[NDA_LLADDR]), 6);
	}
	return true;
}

static int fill_neigh(const struct nlmsghdr *msg, void *arg)
{
	nic_neigh_decode(msg, arg);
	return 0;
}

int nic_neigh_get(struct nic_rtnl *rtnl, int ifindex,
		  const struct homa_addr *hop, struct nic_neigh *neigh)
{
	struct nic_rtnl_req req;
	struct ndmsg *ndm;
	int rc;

	memset(neigh, 0, sizeof(*neigh));
	ndm = nic_rtnl_init(&req, RTM_GETNEIGH, 0, sizeof(*ndm));
	ndm->ndm_family = homa_addr_is_v4(hop) ? AF_INET : AF_INET6;
	ndm->ndm_ifindex = ifindex;
	nic_rtnl_attr_addr(&req, NDA_DST, hop);
	rc = nic_rtnl_request(rtnl, &req, fill_neigh, neigh);
	if (rc == -ENOENT) {
		neigh->state = NIC_NEIGH_NONE;
		rc = 0;
	}
	neigh->ifindex = ifindex;
	neigh->hop = *hop;
	return rc;
}

int nic_neigh_use(struct nic_rtnl *rtnl, int ifindex, const struct homa_addr *hop)
{
	struct nic_rtnl_req req;
	struct ndmsg *ndm;

	ndm = nic_rtnl_init(&req, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK,
			    sizeof(*ndm));
	ndm->ndm_family = homa_addr_is_v4(hop) ? AF_INET : AF_INET6;
	ndm->ndm_ifindex = ifindex;
	ndm->ndm_flags = NTF_USE;
	ndm->ndm_state = NUD_NONE;
	nic_rtnl_attr_addr(&req, NDA_DST, hop);
	return nic_rtnl_request(rtnl, &req, NULL, NULL);
}
