// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Calls of the application that do not wait: bind, request, reply, release,
 * abort. A send leaves at once, on the caller's thread, unless the caller is
 * in the middle of a batch: while more messages lie ready for it, sends wait
 * a few microseconds for the others, because one trip to the device for many
 * packets is most of what a high rate needs.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "embedded.h"
#include "homa_sockaddr.h"

/* The most sends that are left to the next round, */
#define DEFER_MAX 32u
/* the longest that they wait since the first of them, in ns, */
#define DEFER_NS 10000u
/* and the number of them for one reading of the clock. */
#define DEFER_CLOCK 4u
/* The time for which a destination that was found reachable counts as such, in ns. */
#define ROUTE_NS 1000000000u
/* The longest message that is copied while the lock is held, in bytes. */
#define COPY_LOCKED 4096u
#define TIMER_LAG 500000u

static void now_for_send(struct homa_emb *e)
{
	if (!e->ready_count || e->deferred % DEFER_CLOCK == 0)
		homa_emb_now(e);
}

static bool defer(struct homa_emb *e)
{
	if (!e->ready_count || e->closing)
		return false;
	if (!e->deferred)
		e->deferred_at = e->ctx.now;
	if (++e->deferred >= DEFER_MAX || e->ctx.now - e->deferred_at > DEFER_NS)
		return false;
	e->counters.deferrals++;
	return true;
}

/* Is called after the engine was given something that makes it send. */
static void submitted(struct homa_emb *e)
{
	e->deadline = homa_min_u64(e->deadline, e->ctx.now + TIMER_LAG);
	if (!defer(e)) {
		homa_emb_tx(e);
		homa_emb_reap(e);
	}
	homa_emb_unlock(e, true);
}

static void gather(u8 *to, const struct homa_message_out *out)
{
	int i;

	for (i = 0; i < out->iovcnt; i++) {
		memcpy(to, out->iov[i].iov_base, out->iov[i].iov_len);
		to += out->iov[i].iov_len;
	}
}

/* Makes a private copy of the message. The lock is held before and after. */
static u8 *copy_out(struct homa_emb *e, const struct homa_message_out *out)
{
	u8 *copy = homa_msgbuf_get(&e->bufs, (u32)out->length);

	if (!copy) {
		e->counters.out_of_memory++;
		return NULL;
	}
	if (out->length <= COPY_LOCKED) {
		gather(copy, out);
		return copy;
	}
	e->inside++;
	homa_gate_unlock(&e->lock);
	gather(copy, out);
	homa_emb_lock(e);
	homa_emb_now(e);
	e->inside--;
	return copy;
}

/* Returns what to send from: the caller's own bytes if he lends them, else a copy. A
 * request is never read after its response began to come in or its RPC ended, and nobody
 * sees either before this lock was released. */
static u8 *borrow_or_copy(struct homa_emb *e, const struct homa_message_out *out,
			  unsigned int flags, bool *borrowed)
{
	*borrowed = (flags & HOMA_BORROW) && out->iovcnt == 1;
	return *borrowed ? out->iov[0].iov_base : copy_out(e, out);
}

static u32 route_slot(const struct homa_addr *addr)
{
	u32 mix = homa_get_be32(addr->ip + 12) ^ homa_get_be32(addr->ip + 8);

	return ((mix ^ addr->encap) * 2654435761u) >> 26;
}

HOMA_STATIC_ASSERT(HOMA_EMB_ROUTES == 1u << (32 - 26), "route_slot() fits");

/* The unspecified address means this host, as it does to connect(). */
static void name_ourselves(const struct homa_emb *e, struct homa_addr *dst)
{
	static const u8 loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

	if (likely(!homa_addr_is_any(dst)))
		return;
	memcpy(dst->ip,
	       homa_addr_is_any(&e->info->address) ? loopback :
						     e->info->address.ip,
	       16);
}

/* Says whether our socket is bound to an address of the other IP version. */
static bool other_family(const struct homa_emb *e, const struct homa_addr *dst)
{
	return e->encap && !homa_addr_is_any(&e->info->address) &&
	       homa_addr_is_v4(&e->info->address) != homa_addr_is_v4(dst);
}

/* Says whether there is a way to @dst, and tells the engine how long packets may be on it. */
static int check_route(struct homa_emb *e, const struct homa_addr *dst)
{
	u32 mtu, slot = route_slot(dst);
	int rc;

	if (likely(homa_addr_equal(&e->routes[slot], dst) &&
		   e->ctx.now - e->routes_at[slot] < ROUTE_NS))
		return 0;
	rc = nic_route(e->nic, dst, &mtu);
	if (rc)
		return other_family(e, dst) ? -EAFNOSUPPORT : rc;
	homa_emb_refill(e);
	homa_path_mtu(&e->ctx, e->link, dst, mtu);
	e->routes[slot] = *dst;
	e->routes_at[slot] = e->ctx.now;
	return 0;
}

int homa_emb_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id)
{
	struct homa_emb *e = host;
	struct homa_send send = {
		.length = (u32)out->length,
		.available = (u32)out->length,
		.cookie = cookie,
		.deadline = out->deadline,
		.flags = flags & HOMA_PRIVATE ? HOMA_SEND_PRIVATE : 0,
	};
	struct homa_emb_rpc *priv;
	struct homa_handle handle;
	struct homa_rpc *rpc;
	bool borrowed = false;
	u8 *bytes = NULL;
	int rc;

	rc = homa_sockaddr_to_addr(dest, e->encap, &send.dst, &send.port);
	if (rc)
		return rc;
	if (!e->encap && homa_sockaddr_encap(dest))
		return -EPROTONOSUPPORT;
	name_ourselves(e, &send.dst);
	homa_emb_lock(e);
	now_for_send(e);
	rc = check_route(e, &send.dst);
	if (rc)
		goto fail;
	rc = -ENOMEM;
	bytes = borrow_or_copy(e, out, flags, &borrowed);
	if (!bytes)
		goto fail;
	rc = -ESHUTDOWN;
	if (e->closing)
		goto fail;
	homa_emb_refill(e);
	rc = homa_rpc_send(&e->ctx, e->sock, e->link, &send, &handle, &rpc);
	if (rc)
		goto fail;
	priv = homa_rpc_priv(rpc);
	priv->out = bytes;
	priv->out_size = send.length;
	priv->borrowed = borrowed;
	priv->handle = handle;
	homa_list_add_tail(&e->clients, &priv->client);
	*id = handle.id;
	submitted(e);
	return 0;
fail:
	if (!borrowed)
		homa_msgbuf_put(&e->bufs, bytes, send.length);
	homa_emb_unlock(e, false);
	return rc;
}

int homa_emb_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out)
{
	struct homa_handle handle = homa_emb_handle(request);
	struct homa_emb *e = host;
	struct homa_emb_rpc *priv;
	struct homa_rpc *rpc = NULL;
	struct homa_addr peer;
	u32 length = (u32)out->length;
	u8 *copy;
	u16 port;
	int rc;

	rc = homa_sockaddr_to_addr((const struct sockaddr *)&request->peer,
				   e->encap, &peer, &port);
	if (rc)
		return rc;
	homa_emb_lock(e);
	now_for_send(e);
	/* This is done only for the packet size. A client that cannot be reached gets no
	 * reply, and that is no error here. */
	check_route(e, &peer);
	copy = copy_out(e, out);
	rc = !copy ? -ENOMEM : e->closing ? -ESHUTDOWN : 0;
	if (!rc)
		rc = homa_rpc_reply(&e->ctx, handle, length, length, &rpc);
	if (rc || !rpc) {
		homa_msgbuf_put(&e->bufs, copy, length);
		homa_emb_unlock(e, false);
		return rc;
	}
	priv = homa_rpc_priv(rpc);
	priv->out = copy;
	priv->out_size = length;
	priv->handle = handle;
	submitted(e);
	return 0;
}

/* The one byte that a rejection carries. It means nothing, and no message owns it. */
int homa_emb_reject(void *host, const struct homa_message *request, int error)
{
	static u8 nothing;
	struct homa_handle handle = homa_emb_handle(request);
	struct homa_emb *e = host;
	struct homa_emb_rpc *priv;
	struct homa_rpc *rpc = NULL;
	int rc;

	homa_emb_lock(e);
	homa_emb_now(e);
	rc = e->closing ? -ESHUTDOWN :
			  homa_rpc_reject(&e->ctx, handle, (u32)error, 1, &rpc);
	if (rc) {
		homa_emb_unlock(e, false);
		return rc;
	}
	if (rpc) {
		priv = homa_rpc_priv(rpc);
		priv->out = &nothing;
		priv->out_size = 1;
		priv->borrowed = true;
		priv->handle = handle;
	}
	submitted(e);
	return 0;
}

/* A request never waits here: its bytes are copied into memory of the process. */
int homa_emb_wait_send(void *host, size_t length, int64_t timeout_ns)
{
	struct homa_emb *e = host;
	int rc;

	(void)length;
	(void)timeout_ns;
	homa_emb_lock(e);
	rc = e->closing ? -ESHUTDOWN : 0;
	homa_emb_unlock(e, false);
	return rc;
}

/* So its descriptor is always readable. */
int homa_emb_send_fd(void *host)
{
	struct homa_emb *e = host;
	int rc;

	homa_emb_lock(e);
	if (e->send_fd < 0)
		e->send_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = e->send_fd < 0 ? -errno : e->send_fd;
	homa_emb_unlock(e, false);
	return rc;
}

int homa_emb_alive(void *host, const struct homa_message *request)
{
	struct homa_emb *e = host;
	int rc;

	homa_emb_lock(e);
	homa_emb_now(e);
	/* A program that asks, and does not receive, has the protocol run here. */
	if (!e->poller)
		homa_emb_round(e);
	rc = e->closing ? -ESHUTDOWN :
			  homa_rpc_awaited(&e->ctx, homa_emb_handle(request));
	homa_emb_unlock(e, false);
	return rc;
}

/* Messages that had no buffers may be waiting for these; then the poller grants
 * to them, or we do if it sleeps. */
void homa_emb_released(struct homa_emb *e)
{
	if (likely(!e->ctx.metrics[HOMA_M_buffer_waits]))
		return;
	homa_emb_now(e);
	homa_rx_flush(&e->ctx);
	if (!e->poller || e->blocked)
		homa_emb_tx(e);
}

int homa_emb_release(void *host, struct homa_message *msg)
{
	struct homa_emb *e = host;
	int rc;

	homa_emb_lock(e);
	rc = homa_pool_release(&e->ctx, e->sock, (const u32 *)&msg->priv[0],
			       homa_emb_num_pages(msg));
	homa_emb_released(e);
	homa_emb_unlock(e, false);
	return rc;
}

static void abort_all(struct homa_emb *e, int error)
{
	struct homa_list *node;

	/* Nothing leaves the list before homa_emb_reap(). */
	for (node = e->clients.next; node != &e->clients; node = node->next) {
		struct homa_emb_rpc *priv =
			homa_container_of(node, struct homa_emb_rpc, client);

		homa_rpc_abort(&e->ctx, priv->handle, error);
	}
}

int homa_emb_abort(void *host, uint64_t id, int error)
{
	struct homa_emb *e = host;
	struct homa_handle handle;
	int rc = 0;

	homa_emb_lock(e);
	homa_emb_now(e);
	if (id == 0)
		abort_all(e, error);
	else if (!homa_rpc_lookup(&e->ctx, id, &handle))
		rc = -EINVAL;
	else
		rc = homa_rpc_abort(&e->ctx, handle, error);
	homa_emb_events(e);
	homa_emb_reap(e);
	homa_emb_unlock(e, false);
	return rc;
}

int homa_emb_bind(void *host, uint16_t port)
{
	struct homa_emb *e = host;
	int rc = -EINVAL;

	homa_emb_lock(e);
	homa_emb_now(e);
	if (!e->bound)
		rc = homa_sock_bind(&e->ctx, e->sock, port);
	if (!rc)
		e->bound = true;
	/* Requests may come from now on, so the progress thread has to watch the nic. */
	homa_emb_unlock(e, true);
	return rc;
}

int homa_emb_getsockname(void *host, struct sockaddr_storage *addr)
{
	struct homa_emb *e = host;
	struct homa_addr ours = e->info->address;

	homa_emb_lock(e);
	if (e->encap)
		ours.encap = e->info->address.encap;
	homa_sockaddr_from_addr(addr, &ours, homa_sock_port(e->sock));
	homa_emb_unlock(e, false);
	return 0;
}

uint16_t homa_emb_udp_port(void *host)
{
	struct homa_emb *e = host;

	return e->encap ? e->info->address.encap : 0;
}

int homa_emb_fd(void *host)
{
	struct homa_emb *e = host;
	int rc;

	homa_emb_lock(e);
	homa_emb_now(e);
	if (e->ready_fd < 0) {
		e->ready_fd =
			eventfd(e->ready_count > 0, EFD_NONBLOCK | EFD_CLOEXEC);
		e->ready_signalled = e->ready_count > 0;
	}
	rc = e->ready_fd < 0 ? -errno : e->ready_fd;
	/* The progress thread must watch from now on. */
	if (rc >= 0 && e->progress.on)
		homa_emb_alarm(e, 1);
	homa_emb_unlock(e, false);
	return rc;
}

int homa_emb_poll(void *host)
{
	struct homa_emb *e = host;

	homa_emb_lock(e);
	if (!e->poller)
		homa_emb_round(e);
	homa_emb_unlock(e, false);
	return 0;
}
