// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The AF_XDP backend: opening it, and its list of calls. Opening goes from what
 * can be refused cheaply (interface, MTU, queue taken) to what changes the
 * system (the XDP program), so that a refusal leaves nothing behind.
 */
#include "afxdp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_all(struct afxdp *x)
{
	/* The program goes first, so that no packet is steered to a socket that
	 * is being taken down. */
	afxdp_prog_detach(&x->prog);
	afxdp_umem_close(x);
	afxdp_units_close(x);
	for (u32 i = 0; i < x->n_queues; i++)
		if (x->q[i].claim >= 0)
			close(x->q[i].claim);
	nic_ether_close(&x->eth);
	free(x);
}

static void afxdp_close(struct nic *nic)
{
	afxdp_flush(nic);
	close_all(afxdp_of(nic));
}

static void update_stats(struct nic *nic)
{
	struct afxdp *x = afxdp_of(nic);

	nic->stats.kernel_asked = x->eth.paths.asked;
	for (u32 i = 0; i < x->n_queues; i++) {
		struct xdp_statistics s;
		socklen_t len = sizeof(s);
		u64 dropped;

		memset(&s, 0, sizeof(s));
		if (getsockopt(x->q[i].fd, SOL_XDP, XDP_STATISTICS, &s, &len))
			continue;
		/* rx_fill_ring_empty_descs counts the same packets again. */
		dropped = s.rx_dropped + s.rx_ring_full;
		nic->stats.rx_dropped += dropped - x->q[i].dropped;
		x->q[i].dropped = dropped;
	}
}

static int afxdp_tcp_port(struct nic *nic, u16 port, bool on)
{
	struct afxdp *x = afxdp_of(nic);

	if (!__atomic_exchange_n(&x->takes_tcp, true, __ATOMIC_RELAXED))
		nic_icmp_take_tcp(&x->eth.icmp);
	for (u32 i = 0; i < x->n_queues; i++)
		afxdp_prog_port(&x->prog, x->q[i].id, port, on);
	return 0;
}

static void afxdp_learn(struct nic *nic, const struct nic_way *way)
{
	nic_path_learn(&nic_ether_of(nic)->paths, way);
	afxdp_flush(nic);
}

static int afxdp_source(struct nic *nic, const struct homa_addr *dst,
			struct homa_addr *src)
{
	static const struct homa_addr none;
	struct nic_path *path = nic_path_find(&nic_ether_of(nic)->paths, dst);

	if (!path || path->state == NIC_PATH_FAILED ||
	    path->state == NIC_PATH_LOCAL)
		return -EADDRNOTAVAIL;
	if (!memcmp(path->src.ip, none.ip, sizeof(none.ip)))
		return -EAGAIN;
	*src = path->src;
	return 0;
}

static const struct nic_ops afxdp_ops = {
	.close = afxdp_close,
	.rx = afxdp_rx,
	.rx_release = afxdp_rx_release,
	.tx_room = afxdp_tx_room,
	.tx = afxdp_tx,
	.flush = afxdp_flush,
	.errors = nic_ether_errors,
	.port_unreachable = nic_ether_port_unreachable,
	.fd = nic_ether_fd,
	.arm = afxdp_arm,
	.believe_mtu = nic_ether_believe_mtu,
	.route = nic_ether_route,
	.ask_by = nic_ether_ask_by,
	.learn = afxdp_learn,
	.tcp_port = afxdp_tcp_port,
	.source = afxdp_source,
	.has_address = nic_ether_has_address,
	.update_stats = update_stats,
};

static void count_frames(struct afxdp *x, const struct nic_config *config)
{
	u32 full = homa_min_u32(x->n_queues, AFXDP_QUEUES_FULL);

	x->frames = config->frames ? config->frames :
				     full * (AFXDP_RING + 2 * AFXDP_TX_RING);
	x->frames = homa_max_u32(x->frames, x->n_queues * 2 * AFXDP_TX_RING);
	x->rx_max = x->frames - x->n_queues * AFXDP_TX_RING;
	x->fill_most = AFXDP_RING;
	/* A fifth of each queue's share is for packets that the caller holds. */
	if (x->n_queues > full)
		x->fill_most = homa_min_u32(AFXDP_RING,
					    x->rx_max / x->n_queues * 4 / 5);
}

static int size_frames(struct afxdp *x, const struct nic_config *config,
		       char *err, size_t errlen)
{
	if (!x->eth.netif.rx_queues)
		x->eth.netif.rx_queues = 1;
	if (config->queue >= x->eth.netif.rx_queues ||
	    config->queues > x->eth.netif.rx_queues - config->queue)
		return nic_fail(err, errlen, -EINVAL,
				"%s has %u queue%s, numbered from 0",
				x->eth.netif.name, x->eth.netif.rx_queues,
				x->eth.netif.rx_queues == 1 ? "" : "s");
	/* A queue that nobody serves would lose the peers whose packets the
	 * device sends there. */
	x->n_queues = config->queues ?
			      config->queues :
			      homa_min_u32(x->eth.netif.rx_queues - config->queue,
					   AFXDP_QUEUES_MAX);
	if (x->n_queues > AFXDP_QUEUES_MAX)
		return nic_fail(err, errlen, -EINVAL,
				"%u queues asked for, at most %u can be served",
				x->n_queues, AFXDP_QUEUES_MAX);
	x->units = x->eth.netif.virtual_device && config->mode != 3;
	afxdp_size_frames(x);
	count_frames(x, config);
	return 0;
}

static bool is_zero_copy(const struct afxdp *x)
{
	struct xdp_options options = { 0 };
	socklen_t len = sizeof(options);

	return !getsockopt(x->q[0].fd, SOL_XDP, XDP_OPTIONS, &options, &len) &&
	       options.flags & XDP_OPTIONS_ZEROCOPY;
}

static int open_mode(struct afxdp *x, const struct nic_config *config,
		     bool generic, u32 bind_flags, char *err, size_t errlen)
{
	int rc = afxdp_umem_open(x, config, bind_flags, err, errlen);

	if (rc)
		return rc;
	rc = afxdp_prog_attach(&x->prog, &x->eth.netif, generic, err, errlen);
	if (!rc && x->prog.shared && x->prog.generic != generic && config->mode) {
		rc = nic_fail(err, errlen, -EBUSY,
			      "another process serves %s in %s mode; use the same",
			      x->eth.netif.name,
			      x->prog.generic ? "generic" : "native");
		afxdp_prog_detach(&x->prog);
	}
	if (rc)
		afxdp_umem_close(x);
	return rc;
}

/* Open in the mode that was asked for or, if none was, in the faster one. Generic mode was measured
 * to be faster on virtual devices, where native mode converts each packet. With hardware the
 * driver's own path is faster. */
static int choose_mode(struct afxdp *x, const struct nic_config *config,
		       char *err, size_t errlen)
{
	int rc;

	switch (config->mode) {
	case 1:
		return open_mode(x, config, true, XDP_COPY, err, errlen);
	case 2:
		return open_mode(x, config, false, XDP_COPY, err, errlen);
	case 3:
		return open_mode(x, config, false, XDP_ZEROCOPY, err, errlen);
	case 0:
		break;
	default:
		return nic_fail(err, errlen, -EINVAL,
				"AF_XDP mode %d does not exist; use 0 to 3",
				config->mode);
	}
	if (!x->eth.netif.virtual_device) {
		rc = open_mode(x, config, false, 0, err, errlen);
		if (rc != -EOPNOTSUPP)
			return rc;
	}
	return open_mode(x, config, true, XDP_COPY, err, errlen);
}

static int steer(struct afxdp *x, char *err, size_t errlen)
{
	int rc = afxdp_prog_addresses(&x->prog, &x->eth.netif);

	for (u32 i = 0; !rc && i < x->n_queues; i++)
		rc = afxdp_prog_add(&x->prog, x->q[i].id, x->q[i].fd);
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot steer packets of %s to the AF_XDP socket: %s",
				x->eth.netif.name, strerror(-rc));
	return 0;
}

static void describe(struct afxdp *x)
{
	struct nic_info *info = &x->eth.nic.info;
	char queues[32];

	if (x->n_queues == 1)
		snprintf(queues, sizeof(queues), "queue %u", x->q[0].id);
	else
		snprintf(queues, sizeof(queues), "queues %u-%u", x->q[0].id,
			 x->q[x->n_queues - 1].id);
	snprintf(info->detail, sizeof(info->detail), "%s %s of %u, %s %s mode",
		 x->eth.netif.name, queues, x->eth.netif.rx_queues,
		 x->prog.generic ? "generic" : "native",
		 x->zero_copy ? "zero-copy" : "copy");
	info->name = "afxdp";
	info->mtu = x->eth.netif.mtu;
	info->link_mbps = x->eth.netif.mbps;
	info->max_segs = 1;
	info->tcp = true;
}

int nic_afxdp_open(struct nic **out, const struct nic_config *config, char *err,
		   size_t errlen)
{
	struct afxdp *x;
	int rc;

	if (!config->interface)
		return nic_fail(err, errlen, -EINVAL,
				"AF_XDP needs to know the network interface");
	x = calloc(1, sizeof(*x));
	if (!x)
		return nic_fail(err, errlen, -ENOMEM, "out of memory");
	nic_ether_init(&x->eth, &afxdp_ops);
	for (u32 i = 0; i < AFXDP_QUEUES_MAX; i++)
		x->q[i].claim = -1;
	x->unit_fd = -1;
	x->prog.link_fd = x->prog.xsks_fd = x->prog.addrs_fd =
		x->prog.ports_fd = -1;
	rc = nic_ether_find(&x->eth, config, err, errlen);
	if (!rc)
		rc = size_frames(x, config, err, errlen);
	if (!rc)
		rc = choose_mode(x, config, err, errlen);
	if (!rc)
		rc = afxdp_ctl_open(x, err, errlen);
	if (!rc)
		rc = steer(x, err, errlen);
	if (rc)
		goto fail;
	x->zero_copy = is_zero_copy(x);
	afxdp_units_open(x);
	x->busy_poll = config->busy_poll;
	afxdp_ctl_addresses(x);
	describe(x);
	*out = &x->eth.nic;
	return 0;
fail:
	close_all(x);
	return rc;
}
