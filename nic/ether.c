// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See ether.h.
 */
#include "ether.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- opening ---- */

void nic_ether_init(struct nic_ether *e, const struct nic_ops *ops)
{
	e->nic.ops = ops;
	e->epfd = -1;
	e->rtnl.fd = e->rtnl.events_fd = -1;
	e->icmp.fd4 = e->icmp.fd6 = -1;
}

static int check_netif(const struct nic_netif *netif, char *err, size_t errlen)
{
	if (!netif->ethernet)
		return nic_fail(err, errlen, -EOPNOTSUPP,
				"%s is not an Ethernet interface; use UDP (HOMA_VIA=udp)",
				netif->name);
	if (!netif->up)
		return nic_fail(err, errlen, -ENETDOWN,
				"%s is down; bring it up with: ip link set %s up",
				netif->name, netif->name);
	if (netif->mtu < NIC_MIN_MTU)
		return nic_fail(err, errlen, -EINVAL,
				"the MTU of %s is %u, Homa needs at least %u; raise it with: ip link set %s mtu 1500",
				netif->name, netif->mtu, NIC_MIN_MTU,
				netif->name);
	if (!netif->n_addrs)
		return nic_fail(err, errlen, -EADDRNOTAVAIL,
				"%s has no IP address; give it one with: ip address add ADDRESS/LENGTH dev %s",
				netif->name, netif->name);
	return 0;
}

static int set_address(struct nic_ether *e, const char *text, char *err,
		       size_t errlen)
{
	if (!text) {
		e->nic.info.address = e->netif.addrs[0];
		return 0;
	}
	if (nic_addr_parse(text, &e->bound))
		return nic_fail(err, errlen, -EINVAL,
				"\"%s\" is not a numeric IPv4 or IPv6 address",
				text);
	if (!nic_netif_has(&e->netif, &e->bound))
		return nic_fail(err, errlen, -EADDRNOTAVAIL,
				"%s does not have the address %s",
				e->netif.name, text);
	e->has_bound = true;
	e->nic.info.address = e->bound;
	return 0;
}

int nic_ether_find(struct nic_ether *e, const struct nic_config *config,
		   char *err, size_t errlen)
{
	int rc = nic_rtnl_open(&e->rtnl,
			       RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR |
				       RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
				       RTMGRP_IPV6_ROUTE);

	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot open a netlink socket: %s",
				strerror(-rc));
	rc = nic_netif_get(&e->rtnl, config->interface, &e->netif, err, errlen);
	if (!rc)
		rc = check_netif(&e->netif, err, errlen);
	return rc ? rc : set_address(e, config->address, err, errlen);
}

int nic_ether_watch(struct nic_ether *e, int fd, u32 events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	if (fd < 0)
		return 0;
	return epoll_ctl(e->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void nic_ether_unwatch(struct nic_ether *e, int fd)
{
	if (fd >= 0)
		epoll_ctl(e->epfd, EPOLL_CTL_DEL, fd, NULL);
}

static bool touch(void *arg, const struct homa_addr *hop)
{
	struct nic_ether *e = arg;

	return nic_icmp_touch(&e->icmp, hop, (u32)e->netif.index);
}

int nic_ether_open(struct nic_ether *e, nic_path_done held, char *err,
		   size_t errlen)
{
	int rc;

	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epfd < 0)
		return nic_fail(err, errlen, -errno,
				"cannot create an epoll set: %s",
				strerror(errno));
	rc = nic_icmp_open(&e->icmp, true);
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot open a raw ICMP socket: %s",
				strerror(-rc));
	rc = nic_paths_init(&e->paths, &e->rtnl, &e->netif,
			    e->has_bound ? &e->bound : NULL, held, touch, e);
	if (!rc)
		rc = nic_ether_watch(e, e->rtnl.events_fd, EPOLLIN);
	if (!rc)
		rc = nic_ether_watch(e, e->icmp.fd4, EPOLLIN);
	if (!rc)
		rc = nic_ether_watch(e, e->icmp.fd6, EPOLLIN);
	if (rc)
		return nic_fail(err, errlen, rc, "cannot watch the sockets: %s",
				strerror(-rc));
	return 0;
}

void nic_ether_close(struct nic_ether *e)
{
	nic_paths_fini(&e->paths);
	nic_icmp_close(&e->icmp);
	nic_rtnl_close(&e->rtnl);
	nic_loop_fini(&e->loop);
	if (e->epfd >= 0)
		close(e->epfd);
	e->epfd = -1;
}

/* ---- the slow side ---- */

void nic_ether_event(struct nic_ether *e, int fd, nic_icmp_ours ours)
{
	u32 at = e->nic.errq.tail;

	if (fd == e->rtnl.events_fd) {
		nic_paths_events(&e->paths);
	} else if (fd == e->icmp.fd4 || fd == e->icmp.fd6) {
		nic_icmp_receive(&e->icmp, &e->nic.errq, ours, e);
		e->nic.stats.icmp_errors += e->nic.errq.tail - at;
	}
}

bool nic_ether_ours(void *arg, const struct nic_error *error)
{
	const struct nic_ether *e = arg;

	return error->proto == NIC_HOMA && nic_netif_has(&e->netif, &error->src);
}

bool nic_ether_for_us(struct nic_ether *e, const struct nic_rx *pkt)
{
	if (e->has_bound)
		return homa_addr_equal(&pkt->dst, &e->bound);
	if (!nic_netif_has(&e->netif, &pkt->dst))
		return false;
	if (e->netif.n_addrs > 1)
		nic_path_heard(&e->paths, &pkt->src, &pkt->dst);
	return true;
}

int nic_ether_errors(struct nic *nic, struct nic_error *errors, int n)
{
	return nic_errq_take(&nic->errq, errors, n);
}

void nic_ether_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	struct nic_ether *e = nic_ether_of(nic);
	struct nic_path *path = nic_path_find(&e->paths, &pkt->src);
	struct nic_error error;

	if (path && path->state == NIC_PATH_LOCAL) {
		error = nic_error_for(&pkt->dst, pkt->data, pkt->len,
				      ECONNREFUSED, 0);
		nic_errq_push(&nic->errq, &error);
		return;
	}
	nic_icmp_unreachable(&e->icmp, pkt, 0, (u32)e->netif.index);
}

int nic_ether_fd(const struct nic *nic)
{
	return nic_ether_of(nic)->epfd;
}

void nic_ether_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu)
{
	nic_path_set_pmtu(&nic_ether_of(nic)->paths, dst, mtu);
}

int nic_ether_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	struct nic_path *path;

	if (dst->encap)
		return -EHOSTUNREACH; /* That peer is reached by UDP, which we do not speak. */
	path = nic_path_find(&nic_ether_of(nic)->paths, dst);
	if (!path)
		return -ENOMEM;
	if (path->state == NIC_PATH_FAILED)
		return -path->error;
	*mtu = path->mtu;
	return 0;
}

void nic_ether_ask_by(struct nic *nic, nic_way_asker ask, void *arg)
{
	nic_ether_of(nic)->paths.ask = ask;
	nic_ether_of(nic)->paths.ask_arg = arg;
}

bool nic_ether_has_address(const struct nic *nic, const struct homa_addr *addr)
{
	return nic_netif_has(&nic_ether_of(nic)->netif, addr);
}

/* ---- packets that cannot be sent now ---- */

void nic_ether_refuse(struct nic_ether *e, const struct nic_path *path,
		      const struct nic_tx *pkt, int error, u32 mtu)
{
	struct nic_error told =
		nic_error_for(&pkt->dst, pkt->hdr, pkt->hdr_len, error, mtu);

	if (pkt->proto == NIC_TCP) {
		told.proto = NIC_TCP;
		told.src = pkt->src ? *pkt->src : path->src;
		told.sender_id = 0;
		told.seq = homa_get_be32(pkt->hdr + 4);
	}
	nic_errq_push(&e->nic.errq, &told);
	e->nic.stats.tx_errors++;
}

/* Hand a packet to ourselves. Returns false if it cannot be taken now. */
static bool tx_local(struct nic_ether *e, struct nic_path *path,
		     const struct nic_tx *pkt)
{
	int rc;

	if (pkt->proto == NIC_TCP) {
		nic_ether_refuse(e, path, pkt, EHOSTUNREACH, 0);
		return true;
	}
	rc = nic_loop_tx(&e->loop, pkt, &path->src, e->netif.mtu);
	if (rc == -EAGAIN)
		return false;
	if (rc == -ENOBUFS)
		e->nic.stats.rx_dropped++;
	else if (rc)
		e->nic.stats.tx_errors++;
	else
		e->nic.stats.tx_packets++;
	return true;
}

bool nic_ether_tx_slow(struct nic_ether *e, struct nic_path *path,
		       const struct nic_tx *pkt, int index)
{
	if (!path) {
		e->nic.stats.tx_errors++;
		nic_not_sent(&e->nic, index);
		return true;
	}
	switch (path->state) {
	case NIC_PATH_RESOLVING:
		e->nic.stats.tx_no_neighbour++;
		/* The kernel's answer comes soon, so look at the next call. */
		e->ctl_calls = 1;
		if (nic_ether_too_large(path, pkt))
			nic_ether_refuse(e, path, pkt, EMSGSIZE, path->mtu);
		else if (!nic_path_hold(&e->paths, path, pkt))
			nic_not_sent(&e->nic, index);
		return true;
	case NIC_PATH_FAILED:
		nic_ether_refuse(e, path, pkt, path->error, 0);
		return true;
	case NIC_PATH_LOCAL:
		return tx_local(e, path, pkt);
	default:
		return false;
	}
}
