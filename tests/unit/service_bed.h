/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A homad of one thread and one device whose rounds a test runs by hand; the kernel's
 * routing table is played, see played_routes.h.
 */
#ifndef TEST_SERVICE_BED_H
#define TEST_SERVICE_BED_H

#include "nic_memory.h"
#include "played_routes.h"
#include "service_world.h"

struct bed {
	struct homad d;
	struct homad_thread *t;
	struct nic_memory *wire;
	struct nic *nic;
};

static inline struct homad_port *add_port(struct homad *d, struct nic *nic)
{
	struct homad_port *port = &d->ports[d->num_ports];
	size_t size = (homa_link_size(1024) + 63) / 64 * 64;

	port->index = d->num_ports++;
	port->nic = nic;
	port->info = nic ? nic_info(nic) : NULL;
	port->ifindex = 1;
	port->tx_at = HOMA_NEVER;
	port->link = aligned_alloc(64, size);
	homa_link_init(port->link, d->engine, 0, nic ? 1500 : 65535, 1024);
	return port;
}

static inline struct bed *bed_new(void)
{
	struct nic_memory_config config = { .seed = 1, .mtu = 1500 };
	struct bed *bed = calloc(1, sizeof(*bed));
	struct homa_addr me = number(2);
	struct homad *d = &bed->d;
	struct homa_seeds seeds;

	homad_log_init(HOMAD_ERROR, HOMAD_LOG_TEXT);
	homad_config_default(&d->config);
	d->num_threads = d->num_active = 1;
	d->dead_fd = eventfd(0, EFD_NONBLOCK);
	d->limits = (struct homa_limits){
		.shards = 1,
		.buckets = 1024,
		.tombstones = 1024,
		.sock_priv = sizeof(struct homad_app *),
		.rpc_priv = sizeof(struct homad_rpc),
	};
	d->engine =
		aligned_alloc(64, (homa_engine_size(&d->limits) + 63) / 64 * 64);
	memset(d->engine, 0, homa_engine_size(&d->limits));
	homa_seeds_fixed(&seeds, 1);
	assert_int_equal(homa_engine_init(d->engine, &d->limits,
					  &d->config.params, &seeds, 0),
			 0);
	assert_int_equal(homad_thread_make(d, 0), 0);
	bed->t = d->threads[0];
	assert_int_equal(nic_memory_create(&bed->wire, &config), 0);
	assert_int_equal(nic_memory_attach(bed->wire, &me, &bed->nic), 0);
	assert_int_equal(homad_thread_serve(bed->t, add_port(d, bed->nic)), 0);
	d->local = add_port(d, NULL);
	/* The same sets in every run. */
	bed->t->dests.key[0] = 0x1234567890abcdefull;
	bed->t->dests.key[1] = 0xfedcba0987654321ull;
	asked = 0;
	return bed;
}

static inline void bed_free(struct bed *bed)
{
	homad_thread_free(bed->t);
	nic_close(bed->nic);
	nic_memory_destroy(bed->wire);
	for (u32 i = 0; i < bed->d.num_ports; i++)
		free(bed->d.ports[i].link);
	free(bed->d.engine);
	close(bed->d.dead_fd);
	free(bed);
}

#endif
