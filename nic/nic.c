// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packet I/O: picks the backend and passes each call on to it. One indirect
 * call per batch is the whole cost of having several backends.
 */
#include "nic_backend.h"

#include <errno.h>
#include <string.h>

int nic_open(struct nic **out, const struct nic_config *config, char *err,
	     size_t errlen)
{
	*out = NULL;
	if (!config->backend)
		return nic_fail(err, errlen, -EINVAL,
				"no packet I/O backend named; use afxdp, packet, message or udp");
	if (!strcmp(config->backend, "afxdp"))
		return nic_afxdp_open(out, config, err, errlen);
	if (!strcmp(config->backend, "packet"))
		return nic_packet_open(out, config, err, errlen);
	if (!strcmp(config->backend, "udp"))
		return nic_udp_open(out, config, err, errlen);
	if (!strcmp(config->backend, "message"))
		return nic_message_open(out, config, err, errlen);
	return nic_fail(err, errlen, -EINVAL,
			"unknown packet I/O backend \"%s\"; use afxdp, packet, message or udp",
			config->backend);
}

void nic_close(struct nic *nic)
{
	if (nic)
		nic->ops->close(nic);
}

const struct nic_info *nic_info(const struct nic *nic)
{
	return &nic->info;
}

void nic_stats(const struct nic *nic, struct nic_stats *stats)
{
	/* The object is not const in truth, and a caller cannot see in any other way that its
	 * counters are refreshed. */
	if (nic->ops->update_stats)
		nic->ops->update_stats((struct nic *)nic);
	*stats = nic->stats;
}

int nic_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	return nic->ops->rx(nic, pkts, n);
}

void nic_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	nic->ops->rx_release(nic, pkts, n);
}

int nic_tx_room(struct nic *nic)
{
	return nic->ops->tx_room(nic);
}

int nic_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	int taken;

	nic->unsent = 0;
	taken = nic->ops->tx(nic, pkts, n);
	if (taken < n)
		nic->stats.tx_full++;
	return taken;
}

u64 nic_tx_unsent(const struct nic *nic)
{
	return nic->unsent;
}

void nic_flush(struct nic *nic)
{
	nic->ops->flush(nic);
}

int nic_errors(struct nic *nic, struct nic_error *errors, int n)
{
	return nic->ops->errors(nic, errors, n);
}

void nic_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu)
{
	if (nic->ops->believe_mtu)
		nic->ops->believe_mtu(nic, dst, mtu);
}

int nic_tcp_port(struct nic *nic, u16 port, bool on)
{
	return nic->ops->tcp_port ? nic->ops->tcp_port(nic, port, on) :
				    -EOPNOTSUPP;
}

int nic_source(struct nic *nic, const struct homa_addr *dst, u8 ip[16])
{
	struct homa_addr src;
	int rc = nic->ops->source ? nic->ops->source(nic, dst, &src) :
				    -EADDRNOTAVAIL;

	if (!rc)
		memcpy(ip, src.ip, sizeof(src.ip));
	return rc;
}

bool nic_has_address(const struct nic *nic, const u8 ip[16])
{
	struct homa_addr addr;

	memset(&addr, 0, sizeof(addr));
	memcpy(addr.ip, ip, sizeof(addr.ip));
	return nic->ops->has_address && nic->ops->has_address(nic, &addr);
}

void nic_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	nic->ops->port_unreachable(nic, pkt);
}

int nic_fd(const struct nic *nic)
{
	return nic->ops->fd(nic);
}

const u64 *nic_watch(struct nic *nic)
{
	return nic->ops->watch ? nic->ops->watch(nic) : NULL;
}

bool nic_arm(struct nic *nic)
{
	return nic->ops->arm(nic);
}

int nic_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	return nic->ops->route(nic, dst, mtu);
}

void nic_ask_by(struct nic *nic, nic_way_asker ask, void *arg)
{
	if (nic->ops->ask_by)
		nic->ops->ask_by(nic, ask, arg);
}

void nic_learn(struct nic *nic, const struct nic_way *way)
{
	if (nic->ops->learn)
		nic->ops->learn(nic, way);
}
