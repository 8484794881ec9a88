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
 * already, a trace that wants to see packets) takes the usual way through the
 * engine. Only a reply has to go the way its request came: if the client has no
 * room, it waits here until there is some.
 *
 * With several fast-path threads the two ends may be at home on different ones.
 * Whoever makes, changes or ends an RPC here holds the locks of both its
 * attachments, taken in the order of their addresses; whoever holds one of them
 * may look. An attachment that a thread has found without its lock, by a port or
 * by an RPC, is there until the thread begins another round (grace.c).
 */
#include <errno.h>
#include <unistd.h>
#include "copies.h"
#include "probes.h"
#include "fast.h"

/* ---- room ---- */

/* May an entry be put into the completion ring? */
static bool ring_room(struct homad_app *app)
{
	if (likely(app->cq_tail - app->cq_head < app->rings.cq_entries))
		return true;
	/* Nobody reads the ring of an attachment that closes (homad_ring_closes()). What is free
	 * again is told first, or two applications could let the list of that grow without end. */
	if (app->phase != HOMAD_APP_OPEN || app->freed_more)
		return false;
	app->cq_head = __atomic_load_n(&app->queues->cq.head, __ATOMIC_ACQUIRE);
	/* An impossible head is dealt with when the ring is filled. */
	return app->cq_tail - app->cq_head < app->rings.cq_entries;
}

void homad_ring_closes(struct homad_app *app)
{
	app->cq_head = app->cq_tail - app->rings.cq_entries;
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

/* Copies the message into @app's pool and returns a completion entry for it, or NULL if there
 * is no room now. */
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

/* Tells the client's home thread, which looks without the lock, whether responses wait. */
static void note_waiting(struct homad_app *client)
{
	homad_hold_back(client, HOMAD_NO_ROOM,
			!homa_list_empty(&client->direct_waiting));
}

/* Frees what a waiting response would have been sent from; the client, who pays for a copy,
 * is still there. */
static void drop_waiting(struct homad_thread *t, struct homad_direct *d)
{
	if (d->waiting) {
		homa_list_del(&d->wait);
		d->waiting = false;
		note_waiting(d->client);
	}
	if (d->out && d->copied)
		homad_copy_put(t, d->client, d->out, d->length);
	else if (d->out && d->lender)
		homad_free_lent(t, d->lender, d->segment, d->offset);
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

static void leave_server(struct homad_thread *t, struct homad_direct *d)
{
	u64 token = d->server_token;

	homa_list_del(&d->of_server);
	d->server->server_slots[token & 0xffff].direct = NULL;
	homad_slot_back(t, d->server, token);
	d->server->rpcs--;
	d->server = NULL;
}

static void end(struct homad_thread *t, struct homad_direct *d)
{
	if (d->client)
		leave_client(t, d);
	if (d->server)
		leave_server(t, d);
	homa_slab_put(&t->directs, d);
}

/* Ends the client's RPC with an error; the server may go on, and its answer is dropped. */
static void fail(struct homad_thread *t, struct homad_direct *d, int error)
{
	struct homad_app *client = d->client;
	u64 token = d->client_token, cookie = d->cookie;
	bool is_private = d->is_private;

	leave_client(t, d);
	if (!d->server)
		end(t, d); /* the client's response was waiting */
	homad_end_slot(t, client, token, error, cookie, is_private);
}

/* ---- both ends at once, with several threads ---- */

/* Locks both attachments; either of them may be NULL. */
static void lock_both(struct homad_app *a, struct homad_app *b)
{
	if (b && (uintptr_t)b < (uintptr_t)a)
		homad_lock(b);
	homad_lock(a);
	if (b && (uintptr_t)b > (uintptr_t)a)
		homad_lock(b);
}

static void unlock_both(struct homad_app *a, struct homad_app *b)
{
	homad_unlock(a);
	if (b && b != a)
		homad_unlock(b);
}

/* Returns the attachment at the other end of the RPC. When the server has answered, this is
 * the one whose memory the response waits in, if any. */
static struct homad_app *other_end(const struct homad_direct *d, bool client)
{
	if (!client)
		return d->client;
	return d->server ? d->server : d->lender;
}

static struct homad_direct *at_token(struct homad_app *app, u64 token, bool client)
{
	const struct homad_slot *slots =
		client ? app->client_slots : app->server_slots;

	slots += token & 0xffff;
	return slots->token == token ? slots->direct : NULL;
}

/* Returns the RPC at @token with both its ends locked, or NULL and locks nothing. */
static struct homad_direct *lock_rpc(struct homad_app *app, u64 token,
				     bool client, struct homad_app **other)
{
	struct homad_app *end = NULL;
	struct homad_direct *d;

	do {
		*other = end;
		lock_both(app, *other);
		d = at_token(app, token, client);
		end = d ? other_end(d, client) : NULL;
		if (!d || end != *other)
			unlock_both(app, *other);
	} while (d && end != *other);
	return d;
}

/* ---- request ---- */

static struct homad_app *server_at(struct homad_thread *t, u16 port,
				   const struct homa_addr *peer)
{
	struct homa_sock *sock = homa_sock_listening(&t->ctx, port, peer);

	return sock ? *(struct homad_app **)homa_sock_priv(sock) : NULL;
}

static bool takes_requests(const struct homad_app *app)
{
	return app->phase == HOMAD_APP_OPEN && !HOMA_READ_ONCE(app->evicted) &&
	       !HOMA_READ_ONCE(app->shut) && app->server_free != app->max_rpcs &&
	       homa_list_empty(&app->ready[HOMAD_READY_REQUESTS]);
}

/* Enters a new RPC into the slots of both ends. */
static void enter(struct homad_thread *t, struct homad_direct *d,
		  struct homad_app *client, struct homad_app *server,
		  const struct homa_sqe *sqe, u64 id)
{
	struct homad_slot *slot = &client->client_slots[sqe->token & 0xffff];

	/* The fields of a response have no meaning until one waits. */
	d->waiting = false;
	d->lender = NULL;
	d->out = NULL;
	d->client = client;
	d->server = server;
	d->client_token = sqe->token;
	d->cookie = sqe->cookie;
	d->sent_ns = t->ctx.now;
	d->is_private = sqe->flags & HOMA_SQE_PRIVATE;
	d->id = id ? id : (t->direct_id += DIRECT_IDS);
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

static inline __attribute__((always_inline)) bool
deliver_request(struct homad_thread *t, struct homad_app *app,
		struct homad_app *server, const struct homa_sqe *sqe,
		const struct homa_send *send, const u8 *bytes)
{
	struct homad_direct *d =
		takes_requests(server) ? homa_slab_get(&t->directs) : NULL;
	struct homa_cqe *cqe;

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

static __attribute__((noinline)) bool
request_locked(struct homad_thread *t, struct homad_app *app,
	       struct homad_app *server, const struct homa_sqe *sqe,
	       const struct homa_send *send, const u8 *bytes)
{
	bool done;

	lock_both(app, server);
	done = deliver_request(t, app, server, sqe, send, bytes);
	if (done && __atomic_load_n(&server->thread, __ATOMIC_RELAXED) != t)
		t->counters.direct_across++;
	unlock_both(app, server);
	return done;
}

bool homad_direct_request(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe,
			  const struct homa_send *send, const u8 *bytes)
{
	struct homad_app *server;

	if (sqe->length > HOMAD_DIRECT_MAX || !t->d->config.direct ||
	    unlikely(t->trace) || app->shut)
		return false;
	server = server_at(t, sqe->port, &send->dst);
	if (!server)
		return false;
	if (unlikely(!homa_plat_alone))
		return request_locked(t, app, server, sqe, send, bytes);
	return deliver_request(t, app, server, sqe, send, bytes);
}

/* ---- reply ---- */

/* Gives the response to the client; returns false if the client has no room now. */
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

void homad_look_for_room(struct homad_thread *t, struct homad_app *client)
{
	u64 one = 1;

	if (__atomic_load_n(&client->thread, __ATOMIC_RELAXED) == t)
		homad_poll_app(t, client);
	else if (write(client->kick_fd, &one, sizeof(one)) < 0)
		/* the counter is full, so the client's home has heard of that */
		return;
}

/* Keeps a response for which the client has no room; of a short one, a copy is charged to the
 * client's user. */
HOMA_RARE static bool wait_for_room(struct homad_thread *t,
				    struct homad_direct *d,
				    struct homad_app *server,
				    const struct homa_sqe *sqe, u8 *bytes)
{
	bool copied = sqe->flags & HOMA_SQE_COPY;

	/* The client closes, so nobody would read it. */
	if (d->client->phase != HOMAD_APP_OPEN) {
		end(t, d);
		if (!copied)
			homad_free_lent(t, server, sqe->segment, sqe->offset);
		return true;
	}
	d->length = sqe->length;
	d->copied = copied;
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
	note_waiting(d->client);
	homad_look_for_room(t, d->client);
	return true;
}

static inline __attribute__((always_inline)) void
answer(struct homad_thread *t, struct homad_direct *d, struct homad_app *server,
       const struct homa_sqe *sqe, u8 *bytes)
{
	bool lent = !(sqe->flags & HOMA_SQE_COPY), done;

	leave_server(t, d);
	HOMAD_PROBE4(reply, server->id, sqe->token, sqe->length, !d->client);
	/* Responses that wait already go first. */
	done = !d->client || (homa_list_empty(&d->client->direct_waiting) &&
			      finish(t, d, bytes, sqe->length));
	if (!done && wait_for_room(t, d, server, sqe, bytes))
		return;
	/* This was as much work as several commands. */
	if (unlikely(sqe->length > HOMAD_DIRECT_MAX) && done && d->client)
		t->long_replies += sqe->length;
	if (done)
		end(t, d);
	else
		fail(t, d, ENOBUFS);
	if (lent && !homad_free_bytes(t, server, sqe->segment, sqe->offset))
		homad_app_evict(t, server, "more messages than it may have");
}

static __attribute__((noinline)) bool reply_locked(struct homad_thread *t,
						   struct homad_app *server,
						   const struct homa_sqe *sqe,
						   u8 *bytes)
{
	struct homad_app *client;
	struct homad_direct *d = lock_rpc(server, sqe->token, false, &client);

	if (!d)
		return false;
	answer(t, d, server, sqe, bytes);
	unlock_both(server, client);
	return true;
}

bool homad_direct_reply(struct homad_thread *t, struct homad_app *server,
			const struct homa_sqe *sqe, u8 *bytes)
{
	struct homad_direct *d;

	if (unlikely(!homa_plat_alone))
		return reply_locked(t, server, sqe, bytes);
	d = at_token(server, sqe->token, false);
	if (!d)
		return false;
	answer(t, d, server, sqe, bytes);
	return true;
}

bool homad_direct_reject(struct homad_thread *t, struct homad_app *server,
			 u64 token, int error)
{
	struct homad_app *client;
	struct homad_direct *d = lock_rpc(server, token, false, &client);

	if (!d)
		return false;
	leave_server(t, d);
	if (d->client)
		fail(t, d, error);
	else
		end(t, d);
	unlock_both(server, client);
	return true;
}

/* Returns the first RPC whose response waits, with both its ends locked, or NULL and locks
 * nothing. */
static struct homad_direct *lock_waiting(struct homad_app *client,
					 struct homad_app **lender)
{
	struct homad_app *end = NULL;
	struct homad_direct *d;

	do {
		*lender = end;
		lock_both(client, *lender);
		d = homa_list_empty(&client->direct_waiting) ?
			    NULL :
			    homa_container_of(client->direct_waiting.next,
					      struct homad_direct, wait);
		end = d ? d->lender : NULL;
		if (!d || end != *lender)
			unlock_both(client, *lender);
	} while (d && end != *lender);
	return d;
}

u32 homad_direct_retry(struct homad_thread *t, struct homad_app *client, u32 bytes)
{
	struct homad_app *lender;
	struct homad_direct *d;
	bool done = true;

	while (done && bytes && (d = lock_waiting(client, &lender))) {
		u32 cost = homa_max_u32(d->length, HOMAD_COMMAND_BYTES);

		done = finish(t, d, d->out, d->length);
		if (done) {
			end(t, d);
			bytes -= homa_min_u32(bytes, cost);
		}
		unlock_both(client, lender);
	}
	return bytes;
}

/* ---- other ends ---- */

bool homad_direct_abort(struct homad_thread *t, struct homad_app *client,
			u64 token, int error)
{
	struct homad_app *server;
	struct homad_direct *d = lock_rpc(client, token, true, &server);

	if (!d)
		return false;
	fail(t, d, error);
	unlock_both(client, server);
	return true;
}

/* Returns any RPC of @app's, with both its ends locked, or NULL and locks nothing. */
static struct homad_direct *lock_any(struct homad_app *app,
				     struct homad_app **other, bool *client)
{
	struct homad_app *end = NULL;
	struct homad_direct *d;

	do {
		*other = end;
		lock_both(app, *other);
		*client = !homa_list_empty(&app->direct_client);
		if (*client)
			d = homa_container_of(app->direct_client.next,
					      struct homad_direct, of_client);
		else if (!homa_list_empty(&app->direct_server))
			d = homa_container_of(app->direct_server.next,
					      struct homad_direct, of_server);
		else
			d = NULL;
		end = d ? other_end(d, *client) : NULL;
		if (!d || end != *other)
			unlock_both(app, *other);
	} while (d && end != *other);
	return d;
}

u32 homad_direct_close(struct homad_thread *t, struct homad_app *app, u32 budget)
{
	struct homad_app *other;
	struct homad_direct *d;
	bool client;

	/* These include requests that the attachment has not answered, and responses in its
	 * memory. */
	while (budget && (d = lock_any(app, &other, &client))) {
		if (client)
			leave_client(t, d);
		else if (d->server)
			leave_server(t, d);
		if (d->client)
			fail(t, d, ENOTCONN);
		else if (!d->server)
			end(t, d);
		unlock_both(app, other);
		budget--;
	}
	return budget;
}
