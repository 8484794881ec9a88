// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening and closing the embedded host: a nic, an engine with one link and
 * one socket, a receive region of address space that costs memory only where
 * messages touched it, and the progress thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "embedded.h"
#include "homa_seeds.h"
#include "homa_settings.h"

#define ALIGN 64u
#define CTRL_SLOTS 4096u
#define CLOSE_BUDGET 256u
#define BUCKETS 4096u
/* The most blocks in which the engine remembers requests that ran. They take 8 MiB at most,
 * and memory only as requests come. */
#define TOMBSTONES (1u << 17)
/* Small machines stop a process for 100 ms now and then; an RPC must live on. */
#define TIMEOUT_US 500000u

static void *aligned(size_t size)
{
	void *mem = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);

	if (mem)
		memset(mem, 0, size);
	return mem;
}

static int open_nic(struct homa_emb *e, const struct homa_backend_options *o,
		    char *err, size_t errlen)
{
	struct nic_config config = {
		.backend = o->nic,
		.interface = o->interface,
		.address = o->address,
		.udp_port = o->udp_port,
	};
	int rc;

	rc = nic_open(&e->nic, &config, err, errlen);
	if (rc)
		return rc;
	e->info = nic_info(e->nic);
	e->encap = e->info->address.encap != 0;
	return 0;
}

static int open_region(struct homa_emb *e, void *lent, size_t bytes)
{
	u32 pages = (u32)(bytes / HOMA_BPAGE_SIZE);

	e->region = homa_emb_region(lent, bytes);
	if (!e->region)
		return -ENOMEM;
	e->lent = lent != NULL;
	e->region_size = bytes;
	e->pool = aligned(homa_pool_size(pages));
	if (!e->pool)
		return -ENOMEM;
	return homa_sock_set_pool(&e->ctx, e->sock, e->pool, pages);
}

static int settle_params(struct homa_params *params,
			 const struct homa_backend_options *o, char *err,
			 size_t errlen)
{
	int i, rc = 0;

	homa_params_default(params);
	params->timeout_us = TIMEOUT_US;
	for (i = 0; i < 2 && !rc; i++)
		rc = homa_settings_parse(params, o->config[i], err, errlen);
	return rc;
}

static int open_engine(struct homa_emb *e, const struct homa_params *params,
		       const struct homa_backend_options *o)
{
	const struct homa_limits limits = {
		.shards = 1,
		.buckets = BUCKETS,
		.tombstones = TOMBSTONES,
		.rpc_priv = sizeof(struct homa_emb_rpc),
	};
	struct homa_seeds seeds;
	int rc;

	rc = homa_seeds_draw(&seeds);
	if (rc)
		return rc;
	e->engine = aligned(homa_engine_size(&limits));
	e->link = aligned(homa_link_size(CTRL_SLOTS));
	e->sock = aligned(homa_sock_size(&limits));
	if (!e->engine || !e->link || !e->sock)
		return -ENOMEM;
	rc = homa_engine_init(e->engine, &limits, params, &seeds,
			      homa_clock_ns());
	if (rc)
		return rc;
	homa_ctx_init(&e->ctx, e->engine, 0);
	homa_emb_now(e);
	homa_link_init(e->link, e->engine,
		       o->link_mbps ? o->link_mbps : e->info->link_mbps,
		       e->info->mtu, CTRL_SLOTS);
	rc = homa_emb_memory_init(e, &limits, params->max_rpcs,
				  params->max_peers);
	if (rc)
		return rc;
	rc = homa_sock_open(&e->ctx, e->sock);
	if (rc) {
		free(e->sock);
		e->sock = NULL;
	}
	return rc;
}

static void free_all(struct homa_emb *e)
{
	if (e->nic)
		nic_close(e->nic);
	homa_emb_memory_free(e);
	if (e->region && !e->lent)
		munmap(e->region, e->region_size);
	free(e->pool);
	free(e->sock);
	free(e->link);
	free(e->engine);
	if (e->kick_fd >= 0)
		close(e->kick_fd);
	if (e->ready_fd >= 0)
		close(e->ready_fd);
	if (e->send_fd >= 0)
		close(e->send_fd);
	free(e);
}

static struct homa_emb *alloc_host(const struct homa_backend_options *o)
{
	struct homa_emb *e = aligned(sizeof(*e));
	int i;

	if (!e)
		return NULL;
	e->kick_fd = -1;
	e->ready_fd = -1;
	e->send_fd = -1;
	e->tx_at = HOMA_NEVER;
	e->spin_ns = o->spin_us < 0 ? -1 : (s64)o->spin_us * 1000;
	homa_list_init(&e->waiters);
	homa_list_init(&e->clients);
	for (i = 0; i < HOMA_EMB_QUEUES; i++)
		homa_list_init(&e->ready[i]);
	return e;
}

int homa_emb_open(void **out, const struct homa_backend_options *options,
		  char *err, size_t errlen)
{
	struct homa_params params;
	struct homa_emb *e;
	int rc;

	err[0] = '\0';
	rc = settle_params(&params, options, err, errlen);
	if (rc)
		return rc;
	e = alloc_host(options);
	if (!e)
		return -ENOMEM;
	rc = open_nic(e, options, err, errlen);
	if (rc)
		goto fail;
	e->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = e->kick_fd < 0 ? -errno : open_engine(e, &params, options);
	if (!rc)
		rc = open_region(e, options->region, options->rcvbuf);
	if (!rc && !(options->flags & HOMA_OPEN_NO_THREAD))
		rc = homa_emb_progress_start(e);
	if (rc)
		goto fail;
	*out = e;
	return 0;
fail:
	if (!err[0])
		snprintf(err, errlen, "cannot set up the protocol: %s",
			 strerror(-rc));
	free_all(e);
	return rc;
}

void homa_emb_close(void *host)
{
	struct homa_emb *e = host;
	int rc;

	homa_emb_lock(e);
	homa_emb_now(e);
	homa_emb_shutdown_waiters(e);
	homa_gate_unlock(&e->lock);
	homa_emb_progress_stop(e);

	/* No other thread is inside a call any more. */
	do {
		homa_emb_now(e);
		rc = homa_sock_close(&e->ctx, e->sock, CLOSE_BUDGET);
		homa_emb_tx(e);
		homa_emb_reap(e);
	} while (rc == -EAGAIN);
	free_all(e);
}
