// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Interface facts by rtnetlink and ethtool rather than from sysfs: a program
 * that entered a network namespace without remounting /sys would read about
 * another namespace's devices there.
 */
#include "netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <net/if_arp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic_backend.h"

/* Do the attributes of a link say that a program is attached? */
static bool is_attached(const struct rtattr *xdp)
{
	const struct rtattr *attrs[IFLA_XDP_MAX + 1];

	if (!xdp)
		return false;
	nic_rtnl_attrs(attrs, IFLA_XDP_MAX, RTA_DATA(xdp), (int)RTA_PAYLOAD(xdp));
	return attrs[IFLA_XDP_ATTACHED] &&
	       RTA_PAYLOAD(attrs[IFLA_XDP_ATTACHED]) &&
	       *(const u8 *)RTA_DATA(attrs[IFLA_XDP_ATTACHED]) !=
		       XDP_ATTACHED_NONE;
}

static int fill_link(const struct nlmsghdr *msg, void *arg)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(msg);
	const struct rtattr *attrs[IFLA_MAX + 1];
	const struct rtattr *info[IFLA_INFO_MAX + 1];
	struct nic_netif *netif = arg;

	if (msg->nlmsg_type != RTM_NEWLINK)
		return 0;
	nic_rtnl_attrs(attrs, IFLA_MAX, IFLA_RTA(ifi), (int)IFLA_PAYLOAD(msg));
	netif->index = ifi->ifi_index;
	netif->up = ifi->ifi_flags & IFF_UP;
	netif->ethernet = ifi->ifi_type == ARPHRD_ETHER ||
			  ifi->ifi_type == ARPHRD_LOOPBACK;
	netif->mtu = nic_rtnl_u32(attrs[IFLA_MTU]);
	netif->rx_queues = nic_rtnl_u32(attrs[IFLA_NUM_RX_QUEUES]);
	if (attrs[IFLA_ADDRESS] && RTA_PAYLOAD(attrs[IFLA_ADDRESS]) == 6)
		memcpy(netif->mac, RTA_DATA(attrs[IFLA_ADDRESS]), 6);
	netif->virtual_device = ifi->ifi_type == ARPHRD_LOOPBACK;
	netif->has_xdp = is_attached(attrs[IFLA_XDP]);
	if (attrs[IFLA_LINKINFO]) {
		nic_rtnl_attrs(info, IFLA_INFO_MAX,
			       RTA_DATA(attrs[IFLA_LINKINFO]),
			       (int)RTA_PAYLOAD(attrs[IFLA_LINKINFO]));
		if (info[IFLA_INFO_KIND])
			netif->virtual_device = true;
	}
	return 0;
}

/* The number of queues in use; rtnetlink only knows how many there could be. */
static u32 ethtool_channels(int fd, const char *name)
{
	struct ethtool_channels cmd = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&cmd;
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		return 0;
	return cmd.rx_count + cmd.combined_count;
}

static u32 ethtool_link(int fd, const char *name)
{
	struct {
		/* The request and, after the call, its answer. */
		struct ethtool_link_settings req;
		/* Room for three masks of link modes, as long as the kernel may want them. */
		u32 masks[3 * 127];
	} cmd;
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memset(&cmd, 0, sizeof(cmd));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&cmd;
	cmd.req.cmd = ETHTOOL_GLINKSETTINGS;
	/* The first call answers with the negated length of the masks. */
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		return 0;
	if (cmd.req.link_mode_masks_nwords < 0) {
		cmd.req.link_mode_masks_nwords =
			(int8_t)-cmd.req.link_mode_masks_nwords;
		cmd.req.cmd = ETHTOOL_GLINKSETTINGS;
		if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
			return 0;
	}
	return cmd.req.speed == (u32)SPEED_UNKNOWN ? 0 : cmd.req.speed;
}

static u32 ethtool(u32 (*ask)(int fd, const char *name), const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	u32 answer;

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	answer = ask(fd, name);
	close(fd);
	return answer;
}

/* Addresses are sorted by this rank: IPv4, then global IPv6, then link-local IPv6. */
static int rank(const struct homa_addr *addr)
{
	return homa_addr_is_v4(addr) ? 0 : nic_addr_link_local(addr) ? 2 : 1;
}

static int fill_address(const struct nlmsghdr *msg, void *arg)
{
	const struct ifaddrmsg *ifa = NLMSG_DATA(msg);
	const struct rtattr *attrs[IFA_MAX + 1];
	struct nic_netif *netif = arg;
	struct homa_addr addr;
	u32 at;

	if (msg->nlmsg_type != RTM_NEWADDR ||
	    (int)ifa->ifa_index != netif->index ||
	    netif->n_addrs == NIC_NETIF_ADDRS)
		return 0;
	nic_rtnl_attrs(attrs, IFA_MAX, IFA_RTA(ifa), (int)IFA_PAYLOAD(msg));
	if (!nic_rtnl_addr(attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] :
					      attrs[IFA_ADDRESS],
			   &addr))
		return 0;
	for (at = netif->n_addrs; at > 0; at--) {
		if (rank(&netif->addrs[at - 1]) <= rank(&addr))
			break;
		netif->addrs[at] = netif->addrs[at - 1];
		netif->prefix[at] = netif->prefix[at - 1];
	}
	netif->addrs[at] = addr;
	netif->prefix[at] = ifa->ifa_prefixlen;
	netif->n_addrs++;
	return 0;
}

int nic_netif_addresses(struct nic_rtnl *rtnl, struct nic_netif *netif)
{
	struct nic_rtnl_req req;

	netif->n_addrs = 0;
	nic_rtnl_init(&req, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
	return nic_rtnl_request(rtnl, &req, fill_address, netif);
}

/* struct owner - the interface @index that has the address @addr; 0 while it was not found */
struct owner {
	const struct homa_addr *addr;
	u32 index;
};

static int match_owner(const struct nlmsghdr *msg, void *arg)
{
	const struct ifaddrmsg *ifa = NLMSG_DATA(msg);
	const struct rtattr *attrs[IFA_MAX + 1];
	struct owner *owner = arg;
	struct homa_addr addr;

	if (msg->nlmsg_type != RTM_NEWADDR)
		return 0;
	nic_rtnl_attrs(attrs, IFA_MAX, IFA_RTA(ifa), (int)IFA_PAYLOAD(msg));
	if (nic_rtnl_addr(attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS],
			  &addr) &&
	    !memcmp(addr.ip, owner->addr->ip, sizeof(addr.ip)))
		owner->index = ifa->ifa_index;
	return 0;
}

int nic_netif_of(struct nic_rtnl *rtnl, const struct homa_addr *addr, char *name)
{
	struct owner owner = { .addr = addr };
	struct nic_rtnl_req req;
	int rc;

	nic_rtnl_init(&req, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
	rc = nic_rtnl_request(rtnl, &req, match_owner, &owner);
	if (rc)
		return rc;
	return owner.index && if_indextoname(owner.index, name) ? 0 : -ENODEV;
}

static void list_names(char *buf, size_t len)
{
	struct if_nameindex *all = if_nameindex();
	size_t used = 0;

	buf[0] = 0;
	for (struct if_nameindex *i = all; i && i->if_index; i++) {
		int n = snprintf(buf + used, len - used, "%s%s",
				 used ? ", " : "", i->if_name);

		if (n < 0 || (size_t)n >= len - used)
			break;
		used += (size_t)n;
	}
	if (all)
		if_freenameindex(all);
}

int nic_netif_get(struct nic_rtnl *rtnl, const char *name,
		  struct nic_netif *netif, char *err, size_t errlen)
{
	struct nic_rtnl_req req;
	char names[160];
	size_t len = strlen(name);
	int rc = -ENODEV;
	u32 queues;

	memset(netif, 0, sizeof(*netif));
	if (len < sizeof(netif->name)) {
		memcpy(netif->name, name, len + 1);
		nic_rtnl_init(&req, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
		nic_rtnl_attr(&req, IFLA_IFNAME, name, (u32)len + 1);
		rc = nic_rtnl_request(rtnl, &req, fill_link, netif);
	}
	if (rc || !netif->index) {
		list_names(names, sizeof(names));
		return nic_fail(err, errlen, -ENODEV,
				"there is no network interface \"%s\" here; there are: %s",
				name, names);
	}
	/* veth, tun and their like report a rate that is made up. */
	netif->mbps = netif->virtual_device ? 0 : ethtool(ethtool_link, name);
	queues = ethtool(ethtool_channels, name);
	if (queues)
		netif->rx_queues = queues;
	rc = nic_netif_addresses(rtnl, netif);
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot read the addresses of %s: %s", name,
				strerror(-rc));
	return 0;
}

bool nic_netif_has(const struct nic_netif *netif, const struct homa_addr *addr)
{
	for (u32 i = 0; i < netif->n_addrs; i++)
		if (!memcmp(netif->addrs[i].ip, addr->ip, 16))
			return true;
	return false;
}

bool nic_netif_on_link(const struct nic_netif *netif, const struct homa_addr *addr)
{
	for (u32 i = 0; i < netif->n_addrs; i++) {
		bool v4 = homa_addr_is_v4(&netif->addrs[i]);
		u32 bits = netif->prefix[i] + (v4 ? 96U : 0);
		u32 bytes = bits / 8;
		u8 mask = (u8)(0xff00 >> (bits % 8));

		if (v4 != homa_addr_is_v4(addr) || bits > 128 ||
		    memcmp(netif->addrs[i].ip, addr->ip, bytes))
			continue;
		if (bytes == 16 ||
		    !((netif->addrs[i].ip[bytes] ^ addr->ip[bytes]) & mask))
			return true;
	}
	return false;
}

const struct homa_addr *nic_netif_source(const struct nic_netif *netif,
					 const struct homa_addr *dst)
{
	int want = rank(dst);
	const struct homa_addr *second = NULL;

	for (u32 i = 0; i < netif->n_addrs; i++) {
		int have = rank(&netif->addrs[i]);

		if (have == want)
			return &netif->addrs[i];
		if (have && want && !second)
			second = &netif->addrs[i];
	}
	return second;
}

int nic_addr_parse(const char *text, struct homa_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET6, text, addr->ip) == 1)
		return 0;
	if (inet_pton(AF_INET, text, addr->ip + 12) == 1) {
		addr->ip[10] = 0xff;
		addr->ip[11] = 0xff;
		return 0;
	}
	return -EINVAL;
}

const char *nic_addr_text(const struct homa_addr *addr, char *buf, size_t len)
{
	const char *text;

	if (homa_addr_is_v4(addr))
		text = inet_ntop(AF_INET, addr->ip + 12, buf, (socklen_t)len);
	else
		text = inet_ntop(AF_INET6, addr->ip, buf, (socklen_t)len);
	return text ? text : "?";
}
