// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The backend for a message NIC: opening it, and its list of calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

static void message_close(struct nic *nic)
{
	struct message *m = message_of(nic);

	message_disconnect(m);
	message_ctl_close(m);
	free(m->bufs);
	free(m);
}

static void message_flush(struct nic *nic)
{
	(void)nic; /* Each frame has rung the doorbell, if need be. */
}

static int message_errors(struct nic *nic, struct nic_error *errors, int n)
{
	return nic_errq_take(&nic->errq, errors, n);
}

static int message_fd(const struct nic *nic)
{
	return message_of(nic)->epfd;
}

static void message_believe_mtu(struct nic *nic, const struct homa_addr *dst,
				u32 mtu)
{
	nic_path_set_pmtu(&message_of(nic)->paths, dst, mtu);
}

static void message_ask_by(struct nic *nic, nic_way_asker ask, void *arg)
{
	message_of(nic)->paths.ask = ask;
	message_of(nic)->paths.ask_arg = arg;
}

static void message_learn(struct nic *nic, const struct nic_way *way)
{
	nic_path_learn(&message_of(nic)->paths, way);
}

static bool message_has_address(const struct nic *nic,
				const struct homa_addr *addr)
{
	return nic_netif_has(&message_of(nic)->netif, addr);
}

static void message_update_stats(struct nic *nic)
{
	nic->stats.kernel_asked = message_of(nic)->paths.asked;
}

static const struct nic_ops message_ops = {
	.close = message_close,
	.rx = message_rx,
	.rx_release = message_rx_release,
	.tx_room = message_tx_room,
	.tx = message_tx,
	.flush = message_flush,
	.errors = message_errors,
	.port_unreachable = message_port_unreachable,
	.fd = message_fd,
	.arm = message_arm,
	.believe_mtu = message_believe_mtu,
	.route = message_route,
	.ask_by = message_ask_by,
	.learn = message_learn,
	.has_address = message_has_address,
	.update_stats = message_update_stats,
};

static int check_netif(struct message *m, const char *address, char *err,
		       size_t errlen)
{
	const struct nic_netif *netif = &m->netif;

	if (!netif->ethernet || !netif->up || !netif->n_addrs ||
	    netif->mtu < NIC_MIN_MTU)
		return nic_fail(err, errlen, -EINVAL,
				"%s must be an Ethernet interface that is up, with an IP address and an MTU of at least %u",
				netif->name, NIC_MIN_MTU);
	m->nic.info.address = netif->addrs[0];
	if (!address)
		return 0;
	if (nic_addr_parse(address, &m->bound))
		return nic_fail(err, errlen, -EINVAL,
				"\"%s\" is not a numeric IPv4 or IPv6 address",
				address);
	if (!nic_netif_has(netif, &m->bound))
		return nic_fail(err, errlen, -EADDRNOTAVAIL,
				"%s does not have the address %s", netif->name,
				address);
	m->has_bound = true;
	m->nic.info.address = m->bound;
	return 0;
}

static int open_bufs(struct message *m)
{
	m->bufs = malloc((size_t)MESSAGE_BUFS * MESSAGE_BUF_BYTES);
	if (!m->bufs)
		return -ENOMEM;
	for (u32 i = 0; i < MESSAGE_BUFS; i++)
		m->free[m->n_free++] = i;
	return 0;
}

int nic_message_open(struct nic **out, const struct nic_config *config,
		     char *err, size_t errlen)
{
	struct message *m;
	int rc;

	if (!config->interface)
		return nic_fail(err, errlen, -EINVAL,
				"a message NIC is named by its network interface");
	m = calloc(1, sizeof(*m));
	if (!m || open_bufs(m)) {
		free(m);
		return nic_fail(err, errlen, -ENOMEM, "out of memory");
	}
	m->nic.ops = &message_ops;
	m->nic.info.name = "message";
	m->device.fd = m->epfd = m->timer = -1;
	m->rtnl.fd = m->rtnl.events_fd = -1;
	m->icmp.fd4 = m->icmp.fd6 = -1;
	m->no_offload = config->no_offload;
	rc = nic_rtnl_open(&m->rtnl,
			   RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR |
				   RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
				   RTMGRP_IPV6_ROUTE);
	if (rc)
		nic_fail(err, errlen, rc, "cannot open a netlink socket: %s",
			 strerror(-rc));
	if (!rc)
		rc = nic_netif_get(&m->rtnl, config->interface, &m->netif, err,
				   errlen);
	if (!rc)
		rc = check_netif(m, config->address, err, errlen);
	if (!rc)
		rc = message_ctl_open(m, err, errlen);
	if (!rc)
		rc = message_connect(m, err, errlen);
	if (rc) {
		message_close(&m->nic);
		return rc;
	}
	*out = &m->nic;
	return 0;
}
