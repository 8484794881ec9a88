// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets: ports and their receive pools. A socket lives until its last RPC let go of
 * it; how it closes is in homa_abort.c.
 */
#include "homa_impl.h"

static struct homa_list *homa_sock_bucket(struct homa_engine *engine, u16 port)
{
	return &engine->sock_buckets[port & (homa_sock_buckets(&engine->limits) - 1)];
}

static struct homa_sock *homa_sock_lookup(struct homa_engine *engine, u16 port)
{
	struct homa_list *pos;

	homa_list_for_each(pos, homa_sock_bucket(engine, port)) {
		struct homa_sock *sock =
			homa_list_entry(pos, struct homa_sock, hash);

		if (sock->port == port)
			return sock;
	}
	return NULL;
}

/* True if @pos is the head of a list: a reader that stands on a socket which moves to
 * another port reaches the end of that port's list. */
static bool homa_sock_is_head(const struct homa_engine *engine,
			      const struct homa_list *pos)
{
	return (size_t)((const u8 *)pos - (const u8 *)engine->sock_buckets) <
	       homa_sock_buckets(&engine->limits) * sizeof(*pos);
}

/* Finds a socket without the table's lock and without a reference; NULL: not found,
 * although it may be there. */
static struct homa_sock *homa_sock_glance(struct homa_engine *engine, u16 port)
{
	struct homa_list *pos;
	u32 n;

	homa_list_glance(pos, n, homa_sock_bucket(engine, port))
	{
		struct homa_sock *sock =
			homa_list_entry(pos, struct homa_sock, hash);

		if (unlikely(homa_sock_is_head(engine, pos)))
			return NULL;
		if (HOMA_READ_ONCE(sock->port) == port)
			return sock;
	}
	return NULL;
}

HOMA_HOT struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port)
{
	struct homa_sock *sock = NULL;

	if (HOMA_RCU)
		sock = homa_sock_glance(engine, port);
	if (sock && homa_ref_get_live(&sock->refs))
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

/* Returns the one of the sockets at the port of @first that a request of @peer is for; NULL:
 * none of them. Sock table locked. */
static HOMA_RARE struct homa_sock *homa_sock_pick(const struct homa_ctx *ctx,
						  const struct homa_sock *first,
						  const struct homa_addr *peer)
{
	const struct homa_coming coming = {
		.local = &ctx->heard_at,
		.device = ctx->heard_on,
		.v4 = homa_addr_is_v4(peer),
	};

	return homa_mates_pick(ctx->engine, first, &coming);
}

/* Does the same, and if several share the request it is another one's turn then. */
static HOMA_RARE struct homa_sock *homa_sock_next(const struct homa_ctx *ctx,
						  struct homa_sock *first,
						  const struct homa_addr *peer)
{
	struct homa_sock *sock = homa_sock_pick(ctx, first, peer);

	if (sock)
		homa_mates_next(first, sock);
	return sock;
}

struct homa_sock *homa_sock_choose(struct homa_ctx *ctx, struct homa_sock *sock,
				   u16 port, const struct homa_addr *peer)
{
	struct homa_engine *engine = ctx->engine;

	homa_sock_put(sock);
	homa_lock(&engine->sock_lock);
	sock = homa_sock_lookup(engine, port);
	/* Another owner may have the port meanwhile, and not share it. */
	if (unlikely(sock && sock->shared))
		sock = homa_sock_next(ctx, sock, peer);
	if (sock)
		homa_ref_get(&sock->refs);
	homa_unlock(&engine->sock_lock);
	return sock;
}

HOMA_STATIC_ASSERT(HOMA_MIN_CLIENT_PORT == HOMA_PORTS, "client ports are a half");

/* Makes the port of a client socket free; sock table locked. */
static void homa_sock_free_port(struct homa_engine *engine,
				const struct homa_sock *sock)
{
	if (sock->port >= HOMA_MIN_CLIENT_PORT)
		homa_ports_free(&engine->ports, sock->port % HOMA_PORTS);
}

/* Takes @sock from its port, so that nobody finds it there; sock table locked. */
static void homa_sock_leave(struct homa_engine *engine, struct homa_sock *sock)
{
	if (sock->shared &&
	    homa_mates_leave(homa_sock_lookup(engine, sock->port), sock))
		return;
	homa_list_del(&sock->hash);
	homa_sock_free_port(engine, sock);
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

bool homa_sock_unhash(struct homa_engine *engine, struct homa_sock *sock)
{
	bool hashed;

	homa_lock(&engine->sock_lock);
	hashed = sock->shared || homa_list_linked(&sock->hash);
	if (hashed) {
		homa_sock_leave(engine, sock);
		homa_place_set(engine, sock, NULL);
		homa_counter_add(&engine->num_socks, (u64)-1);
	}
	homa_unlock(&engine->sock_lock);
	return hashed;
}

/* Makes @sock one of those that have @port, if it is not; sock table locked. */
static void homa_sock_move(struct homa_engine *engine, struct homa_sock *sock,
			   struct homa_sock *there, u16 port)
{
	if (sock->port == port)
		return;
	homa_sock_leave(engine, sock);
	HOMA_WRITE_ONCE(sock->port, port);
	if (there)
		homa_mates_join(there, sock);
	else
		homa_list_add_head(homa_sock_bucket(engine, port), &sock->hash);
}

static int homa_sock_bind_as(struct homa_ctx *ctx, struct homa_sock *sock,
			     u16 port, const u32 *taken,
			     const struct homa_place *place)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_sock *there;
	int err = 0;

	homa_lock(&engine->sock_lock);
	there = homa_sock_lookup(engine, port);
	if (there)
		err = homa_mates_admit(engine, there, sock, taken, place);
	if (!err) {
		homa_sock_move(engine, sock, there, port);
		sock->taken = taken;
		homa_place_set(engine, sock, place);
		homa_mates_alone(sock);
		if (port < HOMA_MIN_CLIENT_PORT)
			HOMA_WRITE_ONCE(sock->server, true);
	}
	homa_unlock(&engine->sock_lock);
	return err;
}

int homa_sock_share(struct homa_ctx *ctx, struct homa_sock *sock, u16 port,
		    const u32 *taken)
{
	static const struct homa_place all;

	if (!port || port >= HOMA_MIN_CLIENT_PORT)
		return -HOMA_EINVAL;
	return homa_sock_bind_as(ctx, sock, port, taken, &all);
}

int homa_sock_bind(struct homa_ctx *ctx, struct homa_sock *sock, u16 port)
{
	return homa_sock_share(ctx, sock, port, NULL);
}

int homa_sock_bind_at(struct homa_ctx *ctx, struct homa_sock *sock, u16 port,
		      const struct homa_place *place)
{
	if (!port ||
	    (port >= HOMA_MIN_CLIENT_PORT && port != homa_sock_port(sock)))
		return -HOMA_EINVAL;
	return homa_sock_bind_as(ctx, sock, port, NULL, place);
}

void homa_sock_on(struct homa_engine *engine, struct homa_sock *sock, u32 device)
{
	struct homa_place place;

	homa_lock(&engine->sock_lock);
	if (sock->shared || homa_list_linked(&sock->hash)) {
		place = sock->place;
		place.device = device;
		homa_place_set(engine, sock, &place);
		homa_mates_alone(sock);
	}
	homa_unlock(&engine->sock_lock);
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

bool homa_pool_low(const struct homa_sock *sock)
{
	const struct homa_pool *pool = sock->pool;

	return HOMA_READ_ONCE(pool->num_free) * 2 <
	       HOMA_READ_ONCE(pool->num_backed);
}

HOMA_HOT struct homa_sock *homa_sock_at(struct homa_ctx *ctx, u16 port)
{
	struct homa_sock *sock = NULL;

	/* The socket was there a moment ago, which is all that the caller wants to know. */
	if (HOMA_RCU)
		sock = homa_sock_glance(ctx->engine, port);
	if (sock)
		return sock;
	sock = homa_sock_find(ctx->engine, port);
	if (sock)
		homa_sock_put(sock);
	return sock;
}

bool homa_sock_exact(const struct homa_ctx *ctx, const struct homa_sock *sock)
{
	return homa_sock_sole(sock, &ctx->heard_at);
}

struct homa_sock *homa_sock_meant(struct homa_ctx *ctx, u16 port,
				  const struct homa_addr *peer)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_sock *sock;

	homa_lock(&engine->sock_lock);
	sock = homa_sock_lookup(engine, port);
	if (unlikely(sock && sock->shared))
		sock = homa_sock_pick(ctx, sock, peer);
	homa_unlock(&engine->sock_lock);
	return sock;
}

struct homa_sock *homa_sock_listening(struct homa_ctx *ctx, u16 port,
				      const struct homa_addr *peer)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_sock *sock;

	homa_lock(&engine->sock_lock);
	sock = homa_sock_lookup(engine, port);
	if (unlikely(sock && sock->shared))
		sock = homa_sock_next(ctx, sock, peer);
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
	/* Each RPC holds a reference to its socket as long as it has memory; there are
	 * hardly any others. */
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

HOMA_HOT int homa_pool_return(struct homa_sock *sock, const u32 *pages, u32 num)
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
