// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Making TCP when homad starts: how many instances there are, what each of them may have, and which
 * thread runs it at first.
 */
#include <errno.h>
#include <stdlib.h>
#include "fast.h"
#include "log.h"
#include "tcp_make.h"
#include "tcp_steer.h"

/* Values of homad_config.tcp_cc. */
#define TCP_CC_DCTCP 1
#define TCP_CC_DCTCP_RATE 3
/* Most packets that TCP sends on a link that is not paced before Homa has its turn. */
#define TCP_UNIT 14u
/* An instance may have this many connections at least. */
#define FEW_CONNECTIONS 64u

/* Returns the most bytes that TCP sends in one piece. Homa's packets wait until such a
 * piece has been sent, so on a link that is paced it is about as large as what the pacer
 * lets the device have. */
static u32 unit_bytes(const struct homad *d, u32 mtu, u32 rate_mbps)
{
	u64 backlog = (u64)rate_mbps * d->config.params.max_nic_backlog_us / 8;
	u32 most = homa_max_u32(536, homa_min_u32(65536, TCP_UNIT * mtu));

	if (!rate_mbps || rate_mbps == UINT32_MAX)
		return most;
	return (u32)homa_min_u64(most, homa_max_u64(backlog, 2ull * mtu));
}

/* A thread can run an instance if it serves a queue of each device: it sends by its own. So
 * there are as many instances as queues of the device with the fewest. */
static u32 count_instances(const struct homad *d)
{
	u32 least = d->num_threads, i, j, queues;

	for (i = 0; i < d->num_ports; i++) {
		queues = 0;
		for (j = 0; homad_port_tcp(&d->ports[i]) && j < d->num_ports; j++)
			queues += homad_port_tcp(&d->ports[j]) &&
				  d->ports[j].ifindex == d->ports[i].ifindex;
		if (queues)
			least = homa_min_u32(least, queues);
	}
	return least;
}

/* A limit of the host is divided among its instances, so that nobody gains by their number. */
static void divide(struct tas_engine *engine, const char *name, u32 all, u32 num)
{
	tas_set(engine, name, homa_max_u32(all / num, 1));
}

static int make_one(struct homad *d, const struct homad_tcp_seeds *seeds,
		    u32 index, u32 mtu, u32 unit)
{
	struct homad_steering *steering = d->steering;
	struct homad_thread *t = d->threads[index];
	u32 num = steering->num,
	    most = homa_max_u32(d->config.tcp_connections / num, FEW_CONNECTIONS);
	struct tas_engine *engine;
	struct homad_tcp *tcp;

	homad_now(t);
	tcp = homad_tcp_new(seeds, most, mtu, t->ctx.now);
	if (!tcp)
		return -ENOMEM;
	tcp->index = index;
	steering->tcp[index] = tcp;
	homad_tcp_run(t, tcp);
	engine = &tcp->engine;
	divide(engine, "challenge_acks", engine->params.challenge_acks, num);
	divide(engine, "resets", engine->params.resets, num);
	tas_set(engine, "max_segment", unit);
	tas_set(engine, "congestion", (u32)d->config.tcp_cc);
	if (d->config.tcp_cc == TCP_CC_DCTCP ||
	    d->config.tcp_cc == TCP_CC_DCTCP_RATE)
		tas_set(engine, "ecn", 1);
	return 0;
}

static int make_all(struct homad *d, u32 mtu, u32 rate)
{
	struct homad_tcp_seeds seeds;
	u32 i, num = count_instances(d), unit = unit_bytes(d, mtu, rate);
	int rc = 0;

	d->steering = homad_steering_new();
	if (!d->steering || !homad_tcp_seeds_draw(&seeds))
		return -ENOMEM;
	d->steering->num = num;
	for (i = 0; i < num && !rc; i++)
		rc = make_one(d, &seeds, i, mtu, unit);
	if (rc || d->num_threads == 1)
		return rc;
	for (i = 0; i < d->num_threads; i++)
		d->threads[i]->steering = d->steering;
	return homad_steering_rings(d->steering, d->num_threads);
}

int homad_tcp_make(struct homad *d)
{
	u32 i, mtu = 0, rate = UINT32_MAX;

	for (i = 0; i < d->num_ports; i++) {
		const struct homad_port *port = &d->ports[i];

		if (!homad_port_tcp(port))
			continue;
		mtu = mtu ? homa_min_u32(mtu, port->info->mtu) : port->info->mtu;
		homa_link_share(port->link, d->config.tcp_share);
		rate = homa_min_u32(rate, homad_link_rate(d, port->info));
	}
	if (mtu)
		return make_all(d, homa_min_u32(mtu, HOMAD_TCP_MTU), rate);
	homad_log(HOMAD_WARNING,
		  "no device takes AF_XDP: all TCP stays the kernel's");
	return 0;
}
