// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Short RPCs between applications of this host, by the short way: the bytes go
 * from the sender's memory into the receiver's pool at once, and no packet, no
 * grant and no timer is needed, because nothing can be lost and nobody else can
 * be in front. What both ends see is the same: a request is delivered once, the
 * reply ends it, an abort or the end of either application ends it for the other.
 *
 * It is a short cut, not another protocol: whatever does not fit at this moment
 * (a long message, no room in the receiver's ring or pool, requests that wait
 * already, a trace that wants to see packets, several fast-path threads) takes
 * the usual way through the engine. Only a reply has to go the way its request
 * came: if the client has no room, it waits here until there is some.
 */
#include <errno.h>
#include "copies.h"
#include "probes.h"
#include "fast.h"

/* longer ones gain nothing and would hold others up */
#define DIRECT_MAX 16384u

/* ---- room ---- */

/* May an entry be put into the completion ring? */
static bool ring_room(struct homad_app *app)
{
	if (likely(app->cq_tail - app->cq_head < app->rings.cq_entries))
		return true;
	app->cq_head = __atomic_load_n(&app->queues->cq.head, __ATOMIC_ACQUIRE);
	/* An impossible head is dealt with when the ring is filled. */
	return app->cq_tail - app->cq_head < app->rings.cq_entries;
}

static void copy_in(struct homad_app *app, const u32 *pages, u32 n,
		    const u8 *bytes, u32 length)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u32 part = homa_min_u32(length, HOMA_BPAGE_SIZE);

		memcpy(app->pool + pages[i], bytes, part);
		bytes += part;
		length -= part;
	}
}

/* An entry with the message in @app's pool; NULL: no room now. */
static struct homa_cqe *deliver_bytes(struct homad_thread *t,
				      struct homad_app *app, const u8 *bytes,
				      u32 length)
{
	u32 pages[HOMA_MAX_BPAGES], n;
	struct homa_cqe *cqe;

	if (!ring_room(app))
		return NULL;
	if (homa_pages_take(&t->ctx, app->sock, length, pages, &n)) {
		homad_lacks_pages(t, app);
		return NULL;
	}
	copy_in(app, pages, n, bytes, length);
	cqe = homad_next_cqe(app);
	cqe->length = length;
	cqe->num_pages = n;
	memcpy(cqe->pages, pages, n * sizeof(*pages));
	app->counters.delivered++;
	app->counters.rx_bytes += length;
	return cqe;
}

static void put_address(struct homa_cqe *cqe, const struct homad_direct *d,
			u16 port)
{
	memcpy(cqe->ip, d->addr.ip, sizeof(cqe->ip));
	cqe->encap = 0;
	cqe->port = port;
}

/* ---- the record of one RPC ---- */

/* What a waiting reply would have been sent from; its client, who pays for a copy, is still
 * there. */
static void drop_waiting(struct homad_thread *t, struct homad_direct *d)
{
	if (d->waiting) {
		homa_list_del(&d->wait);
		d->waiting = false;
	}
	if (d->out && d->copied)
		homad_copy_put(t, d->client, d->out, d->length);
	else if (d->out && d->lender)
		homad_free_bytes(t, d->lender, d->segment, d->offset);
	if (d->lender)
		homa_list_del(&d->of_server);
	d->out = NULL;
	d->lender = NULL;
}

static void leave_client(struct homad_thread *t, struct homad_direct *d)
{
	struct homad_slot *slot =
		&d->client->client_slots[d->client_token & 0xffff];

	drop_waiting(t, d);
	homa_list_del(&d->of_client);
	slot->direct = NULL;
	slot->token = 0;
	d->client->rpcs--;
	d->client = NULL;
}

static void leave_server(struct homad_direct *d)
{
	u64 token = d->server_token;

	homa_list_del(&d->of_server);
	d->server->server_slots[token & 0xffff].direct = NULL;
	homad_slot_free(d->server, token);
	d->server->rpcs--;
	d->server = NULL;
}

static void end(struct homad_thread *t, struct homad_direct *d)
{
	if (d->client)
		leave_client(t, d);
	if (d->server)
		leave_server(d);
	homa_slab_put(&t->directs, d);
}

/* ---- request ---- */

static struct homad_app *find_server(struct homad_thread *t, u16 port,
				     const struct homa_addr *peer)
{
	struct homa_sock *sock = homa_sock_listening(&t->ctx, port, peer);
	struct homad_app *app =
		sock ? *(struct homad_app **)homa_sock_priv(sock) : NULL;

	if (!app || app->phase != HOMAD_APP_OPEN || app->evicted || app->shut ||
	    app->server_free == app->max_rpcs ||
	    !homa_list_empty(&app->ready[HOMAD_READY_REQUESTS]))
		return NULL;
	return app;
}

/* Both ends know of it from now on. */
static void enter(struct homad_thread *t, struct homad_direct *d,
		  struct homad_app *client, struct homad_app *server,
		  const struct homa_sqe *sqe, u64 id)
{
	struct homad_slot *slot = &client->client_slots[sqe->token & 0xffff];

	memset(d, 0, sizeof(*d));
	d->client = client;
	d->server = server;
	d->client_token = sqe->token;
	d->cookie = sqe->cookie;
	d->sent_ns = t->ctx.now;
	d->is_private = sqe->flags & HOMA_SQE_PRIVATE;
	d->id = id ? id : (t->direct_id += 2);
	d->seen_id = (id ? id : sqe->token << 1) | 1;
	d->request_length = sqe->length;
	d->client_port = homa_sock_port(client->sock);
	d->server_port = sqe->port;
	slot->token = sqe->token;
	slot->direct = d;
	homa_list_add_tail(&client->direct_client, &d->of_client);
	homa_list_add_tail(&server->direct_server, &d->of_server);
	d->server_token = homad_slot_new(server, (struct homa_handle){ 0 });
	server->server_slots[d->server_token & 0xffff].direct = d;
	client->rpcs++;
	server->rpcs++;
	t->counters.direct++;
}

bool homad_direct_request(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe,
			  const struct homa_send *send, const u8 *bytes)
{
	struct homad_app *server;
	struct homad_direct *d;
	struct homa_cqe *cqe;

	if (sqe->length > DIRECT_MAX || !homa_plat_alone ||
	    !t->d->config.direct || unlikely(t->trace) || app->shut)
		return false;
	server = find_server(t, sqe->port, &send->dst);
	d = server ? homa_slab_get(&t->directs) : NULL;
	if (!d)
		return false;
	cqe = deliver_bytes(t, server, bytes, sqe->length);
	if (!cqe) {
		homa_slab_put(&t->directs, d);
		return false;
	}
	enter(t, d, app, server, sqe, send->id);
	d->addr = send->dst;
	cqe->kind = HOMA_CQE_REQUEST;
	cqe->flags = 0;
	cqe->error = 0;
	cqe->id = d->seen_id;
	cqe->deadline = send->deadline;
	cqe->token = d->server_token;
	put_address(cqe, d, d->client_port);
	homad_touch(t, server, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
	if (!(sqe->flags & HOMA_SQE_COPY) &&
	    !homad_free_bytes(t, app, sqe->segment, sqe->offset))
		homad_app_evict(t, app, "more messages than it may have");
	HOMAD_PROBE4(request, app->id, d->id, sqe->length, sqe->port);
	return true;
}

/* ---- reply ---- */

/* Give the response to the client; false: it has no room now. */
static bool finish(struct homad_thread *t, struct homad_direct *d,
		   const u8 *bytes, u32 length)
{
	struct homad_app *client = d->client;
	struct homa_cqe *cqe = deliver_bytes(t, client, bytes, length);

	if (!cqe)
		return false;
	cqe->kind = HOMA_CQE_RESPONSE;
	cqe->flags = d->is_private ? HOMA_CQE_PRIVATE : 0;
	cqe->error = 0;
	cqe->id = d->id;
	cqe->cookie = d->cookie;
	cqe->token = d->client_token;
	put_address(cqe, d, d->server_port);
	homa_hist_record(&t->rtt, homa_since(t->ctx.now, d->sent_ns));
	homad_touch(t, client,
		    d->is_private ? HOMA_SHM_ARM_ANY :
				    HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
	return true;
}

/* The client has no room: keep the response, short ones as a copy on its account. */
static bool wait_for_room(struct homad_thread *t, struct homad_direct *d,
			  struct homad_app *server, const struct homa_sqe *sqe,
			  u8 *bytes)
{
	d->length = sqe->length;
	d->copied = sqe->flags & HOMA_SQE_COPY;
	d->out = d->copied ? homad_copy_get(t, d->client, sqe->length) : bytes;
	if (!d->out)
		return false;
	if (d->copied) {
		memcpy(d->out, bytes, sqe->length);
	} else {
		d->lender = server;
		d->segment = sqe->segment;
		d->offset = sqe->offset;
		homa_list_add_tail(&server->direct_server, &d->of_server);
	}
	d->waiting = true;
	homa_list_add_tail(&d->client->direct_waiting, &d->wait);
	homad_poll_app(t, d->client);
	return true;
}

void homad_direct_reply(struct homad_thread *t, struct homad_app *server,
			const struct homa_sqe *sqe, u8 *bytes)
{
	struct homad_direct *d = server->server_slots[sqe->token & 0xffff].direct;
	bool lent = !(sqe->flags & HOMA_SQE_COPY), done;

	leave_server(d);
	HOMAD_PROBE4(reply, server->id, sqe->token, sqe->length, !d->client);
	/* A request may have waited for the slot. */
	if (!homa_list_empty(&server->ready[HOMAD_READY_REQUESTS]))
		homad_touch(t, server, 0);
	/* Those that wait already are first. */
	done = !d->client || (homa_list_empty(&d->client->direct_waiting) &&
			      finish(t, d, bytes, sqe->length));
	if (!done && wait_for_room(t, d, server, sqe, bytes))
		return;
	if (done)
		end(t, d);
	else
		homad_direct_abort(t, d, ENOBUFS);
	if (lent && !homad_free_bytes(t, server, sqe->segment, sqe->offset))
		homad_app_evict(t, server, "more messages than it may have");
}

void homad_direct_reject(struct homad_thread *t, struct homad_app *server,
			 struct homad_direct *d, int error)
{
	leave_server(d);
	/* A request may have waited for the slot. */
	if (!homa_list_empty(&server->ready[HOMAD_READY_REQUESTS]))
		homad_touch(t, server, 0);
	if (d->client)
		homad_direct_abort(t, d, error);
	else
		end(t, d);
}

void homad_direct_retry(struct homad_thread *t, struct homad_app *client)
{
	while (!homa_list_empty(&client->direct_waiting)) {
		struct homad_direct *d =
			homa_container_of(client->direct_waiting.next,
					  struct homad_direct, wait);

		if (!finish(t, d, d->out, d->length))
			return;
		end(t, d);
	}
}

/* ---- other ends ---- */

void homad_direct_abort(struct homad_thread *t, struct homad_direct *d, int error)
{
	struct homad_app *client = d->client;
	u64 token = d->client_token, cookie = d->cookie;
	bool is_private = d->is_private;

	leave_client(t, d);
	if (!d->server)
		end(t, d); /* its response was waiting */
	homad_end_slot(t, client, token, error, cookie, is_private);
}

void homad_direct_close(struct homad_thread *t, struct homad_app *app)
{
	struct homad_direct *d;

	while (!homa_list_empty(&app->direct_client)) {
		d = homa_container_of(app->direct_client.next,
				      struct homad_direct, of_client);
		leave_client(t, d);
		if (!d->server)
			end(t, d);
	}
	/* Those that it has not answered, and responses in its memory. */
	while (!homa_list_empty(&app->direct_server)) {
		d = homa_container_of(app->direct_server.next,
				      struct homad_direct, of_server);
		if (d->client)
			homad_direct_abort(t, d, ENOTCONN);
		else
			end(t, d);
	}
}
