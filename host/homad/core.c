// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Putting the daemon together: the ways out of this host, the engine, and the
 * threads that run it. What is configured and cannot be had is an error; what
 * is only better if it works is logged.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fast.h"
#include "homa_seeds.h"
#include "homad_tcp.h"
#include "log.h"
#include "netif.h"
#include "privileges.h"
#include "tcp_make.h"

#define ALIGN 64u
#define CTRL_SLOTS 8192u
#define BUCKETS 16384u
/* Most tombstones, which take 32 MiB; their memory is used as requests come. */
#define TOMBSTONES (1u << 19)
#define LOCAL_MTU 65535u
/* Time that RPCs have to end when homad ends, in ms. */
#define STOP_MS 2000
#define PEER_BUCKETS 4096u
#define SOCK_BUCKETS 4096u

static void *aligned(size_t size)
{
	void *mem = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);

	if (mem)
		memset(mem, 0, size);
	return mem;
}

static u32 power_of_two(u32 n)
{
	u32 p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static int make_engine(struct homad *d, char *err, size_t errlen)
{
	struct homa_seeds seeds;
	int rc;

	homa_plat_alone = d->num_threads == 1;
	d->limits.shards = power_of_two(d->num_threads);
	d->limits.buckets = BUCKETS;
	d->limits.tombstones = TOMBSTONES;
	d->limits.peer_buckets = PEER_BUCKETS;
	d->limits.sock_buckets = SOCK_BUCKETS;
	d->limits.sock_priv = sizeof(struct homad_app *);
	d->limits.rpc_priv = sizeof(struct homad_rpc);
	d->engine = aligned(homa_engine_size(&d->limits));
	rc = -ENOMEM;
	if (d->engine) {
		rc = homa_seeds_draw(&seeds);
		if (!rc)
			rc = homa_engine_init(d->engine, &d->limits,
					      &d->config.params, &seeds,
					      homa_clock_ns());
	}
	if (rc)
		snprintf(err, errlen, "cannot make the engine: %s",
			 strerror(-rc));
	return rc;
}

/* Returns the rate that the engine is told for a port, in Mbit/s; 0: unknown. */
static u32 port_rate(const struct homad *d, const struct homad_port *port)
{
	return port->nic ? homad_link_rate(d, port->info) : 0;
}

static u32 port_mtu(const struct homad_port *port)
{
	return port->nic ? port->info->mtu : LOCAL_MTU;
}

static int add_port(struct homad *d, const char *name, struct nic *nic)
{
	struct homad_port *port = &d->ports[d->num_ports];

	port->link = aligned(homa_link_size(CTRL_SLOTS));
	if (!port->link)
		return -ENOMEM;
	port->nic = nic;
	if (nic) {
		port->info = nic_info(nic);
		port->encap = port->info->address.encap != 0;
	}
	port->index = d->num_ports++;
	port->d = d;
	port->tx_at = HOMA_NEVER;
	snprintf(port->name, sizeof(port->name), "%s", name);
	if (nic)
		nic_ask_by(nic, homad_ask_way, port);
	homa_link_init(port->link, d->engine, port_rate(d, port),
		       port_mtu(port), CTRL_SLOTS);
	return 0;
}

static int open_port(struct homad *d, const char *name,
		     const struct nic_config *config, char *err, size_t errlen)
{
	struct homad_port *port;
	struct nic *nic;
	int rc;

	if (d->num_ports >= HOMAD_MAX_PORTS - 1) {
		snprintf(err, errlen, "more devices than %d",
			 HOMAD_MAX_PORTS - 1);
		return -ENOSPC;
	}
	rc = nic_open(&nic, config, err, errlen);
	if (rc)
		return rc;
	rc = add_port(d, name, nic);
	if (rc) {
		nic_close(nic);
		return rc;
	}
	port = &d->ports[d->num_ports - 1];
	port->ifindex = (int)if_nametoindex(name);
	homad_log(HOMAD_INFO,
		  "serving a device\tdevice=%s how=\"%s\" mtu=%u mbps=%u", name,
		  port->info->detail, port->info->mtu, port->info->link_mbps);
	return 0;
}

static int open_device(struct homad *d, const char *name, u32 queue, u32 queues,
		       char *err, size_t errlen)
{
	const struct homad_config *c = &d->config;
	const struct nic_config config = {
		.backend = "afxdp",
		.interface = name,
		.address = c->address[0] ? c->address : NULL,
		.queue = queue,
		.queues = queues,
		.mode = c->xdp_mode,
	};

	return open_port(d, name, &config, err, errlen);
}

/* Opens a message NIC, with a part of its queues for each thread if it spreads RPCs over them,
 * in at most @most ports. */
static int open_message(struct homad *d, const char *name, u32 most, char *err,
			size_t errlen)
{
	const struct homad_config *c = &d->config;
	struct nic_config config = {
		.backend = "message",
		.interface = name,
		.address = c->address[0] ? c->address : NULL,
		.parts = homa_min_u32(d->num_threads, most),
	};
	u32 first = d->num_ports, parts = 1;
	int rc = 0;

	for (config.part = 0; config.part < parts && !rc; config.part++) {
		rc = open_port(d, name, &config, err, errlen);
		if (rc)
			break;
		d->ports[d->num_ports - 1].is_message = true;
		config.beside = d->ports[first].nic;
		parts = d->ports[first].info->parts;
	}
	return rc;
}

/* Closes the ports from number @first on. */
static void close_ports(struct homad *d, u32 first)
{
	while (d->num_ports > first) {
		struct homad_port *port = &d->ports[--d->num_ports];

		if (port->nic)
			nic_close(port->nic);
		free(port->link);
		memset(port, 0, sizeof(*port));
	}
}

/* Opens AF_XDP on a device: all its queues, in as many parts as there are threads, and @most ports.
 * If one cannot be had none is served: what peers send to that queue would be lost. */
static int open_queues(struct homad *d, const struct nic_netif *netif, u32 most,
		       char *err, size_t errlen)
{
	u32 queues = homa_max_u32(netif->rx_queues, 1), first = d->num_ports;
	u32 parts = homa_max_u32(homa_min_u32(d->num_threads, most), 1), i;
	int rc = 0;

	parts = homa_min_u32(parts, queues);
	queues = homa_min_u32(queues, NIC_QUEUES);
	if (queues < netif->rx_queues)
		homad_log(HOMAD_WARNING,
			  "a device has more queues than can be served: what comes on the others is lost; have fewer (ethtool -L %s combined %u)\tdevice=%s queues=%u served=%u",
			  netif->name, queues, netif->name, netif->rx_queues,
			  queues);
	for (i = 0; i < parts && !rc; i++) {
		u32 from = i * queues / parts, to = (i + 1) * queues / parts;

		rc = open_device(d, netif->name, from, to - from, err, errlen);
	}
	if (rc)
		close_ports(d, first);
	return rc;
}

/* Opens a packet socket on a device that takes no AF_XDP, for the sake of peers that do: they send
 * natively, which UDP does not hear. If that fails, too, the reason is added to @err. */
static int open_packet(struct homad *d, const char *name, char *err, size_t errlen)
{
	const struct homad_config *c = &d->config;
	const struct nic_config config = {
		.backend = "packet",
		.interface = name,
		.address = c->address[0] ? c->address : NULL,
	};
	size_t used = strlen(err);
	char why[256] = "";
	int rc = open_port(d, name, &config, why, sizeof(why));

	if (rc)
		snprintf(err + used, errlen - used, "; and no packet socket: %s",
			 why[0] ? why : strerror(-rc));
	return rc;
}

/* Opens a device that is to be served over AF_XDP, by @most ports. */
static int open_one(struct homad *d, const char *name, u32 most, char *err,
		    size_t errlen)
{
	struct nic_netif netif;
	struct nic_rtnl rtnl;
	u32 i, first = d->num_ports;
	int rc;

	rc = nic_rtnl_open(&rtnl, 0);
	if (rc)
		return rc;
	rc = nic_netif_get(&rtnl, name, &netif, err, errlen);
	nic_rtnl_close(&rtnl);
	if (rc)
		return rc;
	rc = open_queues(d, &netif, most, err, errlen);
	if (rc && !err[0])
		snprintf(err, errlen, "%s", strerror(-rc));
	/* If somebody else has the device's queues (-EBUSY), native packets are theirs, and answers
	 * to ours would be, too. */
	if (rc && rc != -EBUSY && d->config.afxdp == 1 &&
	    !open_packet(d, name, err, errlen)) {
		homad_log(HOMAD_WARNING,
			  "no AF_XDP on a device, Homa goes by a packet socket there and TCP stays the kernel's\tdevice=%s reason=\"%s\"",
			  name, err);
		rc = 0;
	}
	for (i = first; i < d->num_ports; i++)
		d->ports[i].virtual_device = netif.virtual_device;
	return rc;
}

/* Does the device carry traffic: is it up, with an address, and not the loopback? */
static bool worth_serving(struct nic_rtnl *rtnl, const char *name)
{
	struct nic_netif netif;
	char err[160];
	u32 i;

	if (nic_netif_get(rtnl, name, &netif, err, sizeof(err)) || !netif.up ||
	    !netif.ethernet)
		return false;
	for (i = 0; i < netif.n_addrs; i++)
		if (!nic_addr_link_local(&netif.addrs[i]))
			return true;
	return false;
}

static void find_devices(struct homad *d)
{
	struct homad_config *c = &d->config;
	struct homad_interfaces *in = &c->interfaces;
	struct if_nameindex *list = if_nameindex(), *i;
	struct nic_rtnl rtnl;

	if (!list)
		return;
	if (!nic_rtnl_open(&rtnl, 0)) {
		for (i = list; i->if_index; i++) {
			if (in->num + d->num_ports >= HOMAD_MAX_PORTS - 2 ||
			    !strcmp(i->if_name, "lo") ||
			    homad_names(&c->message, i->if_name) ||
			    !worth_serving(&rtnl, i->if_name))
				continue;
			snprintf(in->names[in->num++], sizeof(in->names[0]),
				 "%s", i->if_name);
		}
		nic_rtnl_close(&rtnl);
	}
	if_freenameindex(list);
}

static int open_devices(struct homad *d, char *err, size_t errlen)
{
	struct homad_config *c = &d->config;
	struct homad_interfaces *in = &c->interfaces;
	/* There may be two reasons. */
	char why[512];
	u32 i;
	int rc = 0;

	for (i = 0; i < c->message.num && !rc; i++)
		rc = open_message(d, c->message.names[i],
				  (HOMAD_MAX_PORTS - 1 - d->num_ports) /
					  (c->message.num - i),
				  err, errlen);
	if (rc || !c->afxdp)
		return rc;
	if (in->automatic && !in->num)
		find_devices(d);
	for (i = 0; i < in->num; i++) {
		why[0] = '\0';
		rc = open_one(d, in->names[i],
			      (HOMAD_MAX_PORTS - 1 - d->num_ports) / (in->num - i),
			      why, sizeof(why));
		if (!rc)
			continue;
		if (c->afxdp == 2 || rc == -ENODEV) {
			snprintf(err, errlen, "%s: %s", in->names[i],
				 why[0] ? why : strerror(-rc));
			return rc;
		}
		homad_log(HOMAD_WARNING,
			  "no AF_XDP on a device, Homa goes over UDP there: peers with AF_XDP do not reach this host by it\tdevice=%s reason=\"%s\"",
			  in->names[i], why[0] ? why : strerror(-rc));
	}
	return 0;
}

static int open_udp(struct homad *d, char *err, size_t errlen)
{
	const struct homad_config *c = &d->config;
	struct nic_config config = {
		.backend = "udp",
		.interface = d->num_ports ? d->ports[0].name : NULL,
		.address = c->address[0] ? c->address : NULL,
		.udp_port = c->udp_port,
	};
	const u64 *news;
	struct nic *nic;
	int rc;

	if (!c->udp)
		return 0;
	rc = nic_open(&nic, &config, err, errlen);
	if (rc == -EADDRINUSE) {
		snprintf(err, errlen,
			 "UDP port %u is taken by another process, which peers would take for homad; end it (ss -ulpn shows it), or do without UDP: network.udp = false",
			 c->udp_port);
		return rc;
	}
	if (rc && d->num_ports) {
		homad_log(HOMAD_WARNING,
			  "no UDP encapsulation: peers that need it cannot be reached\treason=\"%s\"",
			  err);
		return 0;
	}
	if (rc)
		return rc;
	/* Beside other ports it is mostly looked at in vain. */
	news = d->num_ports ? nic_watch(nic) : NULL;
	rc = add_port(d, "udp", nic);
	if (rc) {
		nic_close(nic);
		return rc;
	}
	d->ports[d->num_ports - 1].news = news;
	d->udp = &d->ports[d->num_ports - 1];
	homad_log(HOMAD_INFO, "serving UDP encapsulation\thow=\"%s\"",
		  d->udp->info->detail);
	return 0;
}

static int open_ports(struct homad *d, char *err, size_t errlen)
{
	int rc;

	rc = open_devices(d, err, errlen);
	if (!rc)
		rc = open_udp(d, err, errlen);
	if (!rc && !d->num_ports) {
		snprintf(err, errlen,
			 "there is no way out of this host: no device takes AF_XDP, no message NIC is named and UDP is off; allow one of them in [network]");
		rc = -ENODEV;
	}
	if (!rc)
		rc = add_port(d, "local", NULL);
	if (!rc)
		d->local = &d->ports[d->num_ports - 1];
	return rc;
}

static int start_threads(struct homad *d)
{
	u32 i, next = 0;
	int rc = 0;

	for (i = 0; i < d->num_threads && !rc; i++)
		rc = homad_thread_make(d, i);
	/* Each port gets a thread, and queues of one device get different ones. */
	for (i = 0; i < d->num_ports && !rc; i++)
		if (d->ports[i].nic)
			rc = homad_thread_serve(
				d->threads[homad_thread_for_port(
					d, &d->ports[i], d->num_threads, &next)],
				&d->ports[i]);
	d->num_active = d->num_threads;
	if (!rc && d->config.num_tcp_rules)
		rc = homad_tcp_make(d);
	for (i = 0; i < d->num_threads && !rc; i++)
		rc = homad_thread_start(d->threads[i]);
	return rc;
}

int homad_start(struct homad *d, char *err, size_t errlen)
{
	int rc;

	d->num_threads =
		d->config.mode == HOMAD_DEDICATED ? d->config.num_cores : 1;
	d->started_ns = homa_clock_ns();
	homad_copies_limit(d);
	err[0] = '\0';
	rc = make_engine(d, err, errlen);
	if (!rc)
		rc = open_ports(d, err, errlen);
	if (!rc)
		rc = homad_privileges_drop(d, err, errlen);
	if (!rc)
		rc = start_threads(d);
	if (rc) {
		if (!err[0])
			snprintf(err, errlen, "cannot start: %s", strerror(-rc));
		homad_stop(d);
	}
	return rc;
}

int homad_set_params(struct homad_thread *t, void *arg)
{
	struct homad *d = t->d;
	int rc = homa_engine_set_params(&t->ctx, arg);
	u32 i;

	/* Links have values that follow from settings, so they are set again. */
	for (i = 0; i < d->num_ports && !rc; i++)
		homa_link_set(d->ports[i].link, port_rate(d, &d->ports[i]),
			      port_mtu(&d->ports[i]));
	return rc;
}

static int close_all(struct homad_thread *t, void *arg)
{
	(void)arg;
	while (!homa_list_empty(&t->apps)) {
		struct homad_app *app =
			homa_container_of(t->apps.next, struct homad_app, member);

		__atomic_store_n(&app->queues->state, HOMA_SHM_STOPPING,
				 __ATOMIC_RELEASE);
		homad_session_close(t, app);
	}
	return 0;
}

/* Attachments, or connections that are to be reset. */
static int still_closing(struct homad_thread *t, void *arg)
{
	const struct homad_tcp *first = t->tcp;
	bool some = !homa_list_empty(&t->closing);

	(void)arg;
	if (!first)
		return some;
	do
		some |= !homa_list_empty(&t->tcp->resetting) ||
			tas_refuses(&t->tcp->engine) ||
			tas_refuses(&t->tcp->local);
	while (homad_tcp_another(t, first));
	return some;
}

/* Closes all attachments, so that peers hear of the end and no RPC is left. */
static void end_sessions(struct homad *d)
{
	const struct timespec ms = { 0, 1000000 };
	int tries, left = 1;
	u32 i;

	for (i = 0; i < d->num_threads; i++)
		if (d->threads[i])
			homad_call(d->threads[i], close_all, NULL);
	for (tries = 0; left && tries < STOP_MS; tries++) {
		left = 0;
		for (i = 0; i < d->num_threads; i++)
			if (d->threads[i] && d->threads[i]->running)
				left += homad_call(d->threads[i], still_closing,
						   NULL);
		if (left)
			nanosleep(&ms, NULL);
	}
}

void homad_stop(struct homad *d)
{
	u32 i;

	end_sessions(d);
	for (i = 0; i < d->num_threads; i++)
		if (d->threads[i])
			homad_thread_stop(d->threads[i]);
	for (i = 0; i < d->num_threads; i++) {
		homad_thread_free(d->threads[i]);
		d->threads[i] = NULL;
	}
	/* Each thread has freed the instances of TCP that it ran. */
	free(d->steering);
	d->steering = NULL;
	close_ports(d, 0);
	free(d->engine);
	d->engine = NULL;
}
