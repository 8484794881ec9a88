// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets: ports, their receive pools, and closing. A socket lives until its
 * last RPC let go of it; closing ends RPCs a few at a time, so that no host
 * spends unbounded time in one call.
 */
#include "homa_impl.h"

static struct homa_list *homa_sock_bucket(struct homa_engine *engine, u16 port)
{
	u32 buckets = engine->limits.sock_buckets;

	return &engine->sock_buckets[port & ((buckets ? buckets :
							HOMA_SOCK_BUCKETS) - 1)];
}

static struct homa_sock *homa_sock_lookup(struct homa_engine *engine, u16 port)
{
	struct homa_list *pos;

	homa_list_for_each(pos, homa_sock_bucket(engine, port)) {
		struct homa_sock *sock = homa_list_entry(pos, struct homa_sock,
							 hash);

		if (sock->port == port)
			return sock;
	}
	return NULL;
}

/* A socket that moves to another port leads who stands on it to the end of that list. */
static bool homa_sock_is_head(const struct homa_engine *engine, const struct homa_list *pos)
{
	u32 buckets = engine->limits.sock_buckets;

	return (size_t)((const u8 *)pos - (const u8 *)engine->sock_buckets) <
	       (buckets ? buckets : HOMA_SOCK_BUCKETS) * sizeof(*pos);
}

/* Without the table's lock; NULL: perhaps it is there all the same. */
static struct homa_sock *homa_sock_glance(struct homa_engine *engine, u16 port)
{
	struct homa_list *pos;
	u32 n;

	homa_list_glance(pos, n, homa_sock_bucket(engine, port)) {
		struct homa_sock *sock = homa_list_entry(pos, struct homa_sock,
							 hash);

		if (unlikely(homa_sock_is_head(engine, pos)))
			return NULL;
		if (HOMA_READ_ONCE(sock->port) == port)
			return homa_ref_get_live(&sock->refs) ? sock : NULL;
	}
	return NULL;
}

struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port)
{
	struct homa_sock *sock = NULL;

	if (HOMA_RCU)
		sock = homa_sock_glance(engine, port);
	if (sock)
		return sock;
	homa_lock(&engine->sock_lock);
	sock = homa_sock_lookup(engine, port);
	if (sock)
		homa_ref_get(&sock->refs);
	homa_unlock(&engine->sock_lock);
	return sock;
}

void homa_sock_put(struct homa_sock *sock)
{
	/* homa_sock_close() waits for the count to reach its own reference. */
	(void)homa_ref_put(&sock->refs);
}

HOMA_STATIC_ASSERT(HOMA_MIN_CLIENT_PORT == HOMA_PORTS, "client ports are a half");

/* Sock table locked. */
static void homa_sock_free_port(struct homa_engine *engine,
				const struct homa_sock *sock)
{
	if (sock->port >= HOMA_MIN_CLIENT_PORT)
		homa_ports_free(&engine->ports, sock->port % HOMA_PORTS);
}

int homa_sock_open(struct homa_ctx *ctx, struct homa_sock *sock)
{
	struct homa_engine *engine = ctx->engine;
	int err = -HOMA_EADDRINUSE;
	u32 port;

	memset(sock, 0, sizeof(*sock));
	homa_ref_init(&sock->refs, 1);
	homa_lock_init(&sock->lock, HOMA_LOCK_SOCK);
	homa_list_init(&sock->rpcs);
	homa_heap_init(&sock->starving);
	homa_list_init(&sock->holders);
	sock->owner = &engine->own;
	homa_lock(&engine->sock_lock);
	port = homa_ports_next(&engine->ports, engine->next_port % HOMA_PORTS);
	if (port < HOMA_PORTS) {
		homa_ports_take(&engine->ports, port);
		engine->next_port = (u16)(port + 1);
		sock->port = (u16)(port | HOMA_MIN_CLIENT_PORT);
		homa_list_add_head(homa_sock_bucket(engine, sock->port),
				   &sock->hash);
		homa_counter_add(&engine->num_socks, 1);
		err = 0;
	}
	homa_unlock(&engine->sock_lock);
	return err;
}

int homa_sock_bind(struct homa_ctx *ctx, struct homa_sock *sock, u16 port)
{
	struct homa_engine *engine = ctx->engine;
	int err = 0;

	if (!port || port >= HOMA_MIN_CLIENT_PORT)
		return -HOMA_EINVAL;
	homa_lock(&engine->sock_lock);
	if (sock->port != port) {
		if (homa_sock_lookup(engine, port)) {
			err = -HOMA_EADDRINUSE;
		} else {
			homa_list_del(&sock->hash);
			homa_sock_free_port(engine, sock);
			HOMA_WRITE_ONCE(sock->port, port);
			homa_list_add_head(homa_sock_bucket(engine, port),
					   &sock->hash);
		}
	}
	if (!err)
		HOMA_WRITE_ONCE(sock->server, true);
	homa_unlock(&engine->sock_lock);
	return err;
}

void homa_sock_serve(struct homa_sock *sock, bool server)
{
	HOMA_WRITE_ONCE(sock->server, server);
}

void homa_sock_only_v4(struct homa_sock *sock, bool only)
{
	HOMA_WRITE_ONCE(sock->only_v4, only);
}

bool homa_sock_serves(const struct homa_sock *sock, const struct homa_addr *peer)
{
	return HOMA_READ_ONCE(sock->server) &&
	       (!HOMA_READ_ONCE(sock->only_v4) || homa_addr_is_v4(peer));
}

u16 homa_sock_port(const struct homa_sock *sock)
{
	return HOMA_READ_ONCE(sock->port);
}

int homa_sock_set_pool(struct homa_ctx *ctx, struct homa_sock *sock, void *mem,
		       u32 pages)
{
	(void)ctx;
	if (pages < 1 || pages > 65536)
		return -HOMA_EINVAL;
	homa_pool_init(mem, pages);
	homa_lock(&sock->lock);
	HOMA_WRITE_ONCE(sock->pool, mem);
	homa_unlock(&sock->lock);
	return 0;
}

struct homa_sock *homa_sock_at(struct homa_ctx *ctx, u16 port)
{
	struct homa_sock *sock = homa_sock_find(ctx->engine, port);

	if (sock)
		homa_sock_put(sock);
	return sock;
}

struct homa_sock *homa_sock_listening(struct homa_ctx *ctx, u16 port,
				      const struct homa_addr *peer)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_sock *sock;

	homa_lock(&engine->sock_lock);
	sock = homa_sock_lookup(engine, port);
	homa_unlock(&engine->sock_lock);
	return sock && homa_sock_serves(sock, peer) &&
			       !HOMA_READ_ONCE(sock->closing) ?
		       sock :
		       NULL;
}

int homa_pages_take(struct homa_ctx *ctx, struct homa_sock *sock, u32 length,
		   u32 *pages, u32 *num)
{
	int err = -HOMA_ENOBUFS;

	homa_lock(&sock->lock);
	if (sock->pool && homa_sock_may_take(sock, NULL, length))
		err = homa_pool_alloc(sock->pool, ctx->now,
				      ctx->engine->params.bpage_lease_us * 1000ull,
				      ctx->cpu, length, pages, num);
	homa_unlock(&sock->lock);
	return err;
}

u64 homa_pool_avail(struct homa_sock *sock)
{
	u64 pages;

	homa_lock(&sock->lock);
	pages = sock->pool ? sock->pool->num_free : 0;
	homa_unlock(&sock->lock);
	return pages * HOMA_BPAGE_SIZE;
}

bool homa_sock_idle(struct homa_sock *sock)
{
	bool idle;

	homa_lock(&sock->lock);
	idle = homa_list_empty(&sock->rpcs);
	homa_unlock(&sock->lock);
	return idle;
}

u64 homa_sock_memory(const struct homa_sock *sock, u32 each)
{
	/* An RPC refers to its socket as long as it has memory; hardly anybody else does. */
	u64 refs = homa_ref_read(&sock->refs);

	return (refs ? refs - 1 : 0) * each +
	       HOMA_READ_ONCE(sock->gaps) * HOMA_RECORD_SIZE;
}

bool homa_sock_starved(struct homa_sock *sock)
{
	bool starved;

	homa_lock(&sock->lock);
	starved = homa_heap_min(&sock->starving) != NULL;
	homa_unlock(&sock->lock);
	return starved;
}

int homa_sock_close(struct homa_ctx *ctx, struct homa_sock *sock, u32 budget)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_list *first;
	bool first_call = false;

	homa_lock(&engine->sock_lock);
	if (homa_list_linked(&sock->hash)) {
		homa_list_del(&sock->hash);
		homa_sock_free_port(engine, sock);
		homa_counter_add(&engine->num_socks, (u64)-1);
		first_call = true;
	}
	homa_unlock(&engine->sock_lock);
	/* A client that ends should not leave its servers waiting. */
	if (first_call)
		homa_peer_flush_acks(ctx, sock->port);
	do {
		struct homa_rpc *rpc = NULL;

		homa_lock(&sock->lock);
		HOMA_WRITE_ONCE(sock->closing, true);
		first = homa_list_first(&sock->rpcs);
		if (first) {
			rpc = homa_list_entry(first, struct homa_rpc,
					      sock_rpcs);
			homa_ref_get(&rpc->refs);
		}
		homa_unlock(&sock->lock);
		if (!rpc)
			break;
		homa_lock(&rpc->shard->lock);
		homa_rpc_tell_server(ctx, rpc);
		homa_rpc_kill(ctx, rpc);
		homa_unlock(&rpc->shard->lock);
		homa_rpc_put(ctx, rpc);
	} while (budget-- > 1);
	homa_rx_flush(ctx);
	/* Gone already, if the host did not look at what the last call said. */
	return homa_ref_drop_last(&sock->refs) || !homa_ref_read(&sock->refs) ?
		       0 :
		       -HOMA_EAGAIN;
}

int homa_pool_return(struct homa_sock *sock, const u32 *pages, u32 num)
{
	int rc = -HOMA_EINVAL;

	homa_lock(&sock->lock);
	if (sock->pool) {
		rc = homa_pool_free(sock->pool, pages, num);
		if (!rc && homa_heap_min(&sock->starving))
			rc = 1;
	}
	homa_unlock(&sock->lock);
	return rc;
}

void homa_pool_feed(struct homa_ctx *ctx, struct homa_sock *sock)
{
	homa_sock_feed(ctx, sock);
	homa_rx_flush(ctx);
}

int homa_pool_release(struct homa_ctx *ctx, struct homa_sock *sock,
		      const u32 *pages, u32 num)
{
	int rc = homa_pool_return(sock, pages, num);

	if (rc <= 0)
		return rc;
	homa_pool_feed(ctx, sock);
	return 0;
}
