// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What libhoma-preload needs besides libhoma.h, because the kernel module's
 * socket API has it: receive buffers that are the application's own memory,
 * giving them back by offset, a list of RPCs, shutdown, and edges.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "embedded.h"
#include "homa_look.h"
#include "shm.h"

#define LOOKS 32

static void free_region(struct homa_emb *e)
{
	if (e->region && !e->lent)
		munmap(e->region, e->region_size);
	e->region = NULL;
}

/* Returns memory for @bytes of messages, @lent or our own; NULL: there is none. */
u8 *homa_emb_region(void *lent, size_t bytes)
{
	void *own;

	if (lent)
		return lent;
	/* This is address space, and costs memory only where messages have touched it. */
	own = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return own == MAP_FAILED ? NULL : own;
}

int homa_emb_set_region(void *host, void *lent, size_t bytes)
{
	u32 pages = (u32)(bytes / HOMA_BPAGE_SIZE);
	size_t size = (homa_pool_size(pages) + 63) / 64 * 64;
	struct homa_emb *e = host;
	void *pool = aligned_alloc(64, size);
	u8 *region = homa_emb_region(lent, bytes);
	int rc = -ENOMEM;

	homa_emb_lock(e);
	if (!pool || !region)
		goto fail;
	rc = -EBUSY;
	if (e->received || !homa_sock_idle(e->sock))
		goto fail;
	rc = homa_sock_set_pool(&e->ctx, e->sock, pool, pages);
	if (rc)
		goto fail;
	free_region(e);
	free(e->pool);
	e->pool = pool;
	e->region = region;
	e->region_size = bytes;
	e->lent = lent != NULL;
	homa_emb_unlock(e, false);
	return 0;
fail:
	homa_emb_unlock(e, false);
	if (region && !lent)
		munmap(region, bytes);
	free(pool);
	return rc;
}

int homa_emb_release_pages(void *host, const uint32_t *pages, unsigned int num)
{
	struct homa_emb *e = host;
	int rc = 0;
	u32 i;

	homa_emb_lock(e);
	for (i = 0; i < num; i++)
		if (homa_pool_release(&e->ctx, e->sock, &pages[i], 1))
			rc = -EINVAL;
	homa_emb_released(e);
	homa_emb_unlock(e, false);
	return rc;
}

int homa_emb_listen(void *host, uint16_t port, unsigned int flags)
{
	struct homa_emb *e = host;
	int rc = 0;

	homa_emb_lock(e);
	homa_emb_now(e);
	homa_sock_only_v4(e->sock, flags & HOMA_CTL_LISTEN_V4);
	if (port)
		rc = homa_sock_bind(&e->ctx, e->sock, port);
	if (!rc) {
		homa_sock_serve(e->sock, flags & HOMA_CTL_LISTEN_ON);
		e->bound |= port != 0;
	}
	homa_emb_unlock(e, true);
	return rc;
}

static void tell(const struct homa_rpc_look *look,
		 void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		 void *arg)
{
	struct homa_ctl_rpc rpc = {
		.id = look->handle.id,
		.cookie = look->cookie,
		.encap = look->peer.encap,
		.port = look->peer_port,
		.client = look->client,
		.tx_length = look->tx_length,
		.tx_sent = look->tx_sent,
		.tx_granted = look->tx_granted,
		.rx_length = look->rx_length,
		.rx_remaining = look->rx_length - look->rx_received,
		.rx_granted = look->rx_granted,
		.ready = look->phase == HOMA_LOOK_READY,
	};

	memcpy(rpc.ip, look->peer.ip, sizeof(rpc.ip));
	visit(arg, &rpc);
}

int homa_emb_rpcs(void *host,
		  void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		  void *arg)
{
	struct homa_emb *e = host;
	struct homa_look_cursor at = { 0 };
	struct homa_rpc_look looks[LOOKS];
	u32 i, n, total = 0;

	while (!at.end) {
		homa_emb_lock(e);
		n = homa_rpcs_look(&e->ctx, &at, e->sock, looks, LOOKS);
		homa_emb_unlock(e, false);
		for (i = 0; i < n; i++)
			tell(&looks[i], visit, arg);
		total += n;
	}
	return (int)total;
}

int homa_emb_fd_edges(void *host)
{
	struct homa_emb *e = host;

	homa_emb_lock(e);
	e->fd_edges = true;
	homa_emb_unlock(e, false);
	return 0;
}

int homa_emb_shutdown(void *host)
{
	struct homa_emb *e = host;
	u64 value = 1;
	int rc;

	rc = homa_emb_abort(e, 0, 0);
	homa_emb_lock(e);
	homa_emb_shutdown_waiters(e);
	/* Nobody has to read it: ready_signal() does nothing from now on. */
	if (e->ready_fd >= 0 && write(e->ready_fd, &value, sizeof(value)) < 0)
		rc = -errno;
	homa_emb_unlock(e, false);
	return rc;
}
