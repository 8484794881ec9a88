// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Commands of applications. Everything in a ring is hostile: an entry is copied
 * out once and only the copy is looked at; an index, a length or a token that
 * a correct library cannot produce costs the application its attachment. A turn
 * is bounded, so that an application that submits without end slows itself only.
 *
 * Whoever is quiet for a while is not polled any more and has to kick; so a
 * round costs as much as there are applications at work, not as there are
 * attached.
 */
#include <errno.h>
#include "log.h"
#include "probes.h"
#include "service.h"
#include "trace.h"

#define TURN_BYTES (256u << 10) /* bytes of copied messages in a turn */
#define TURN_RELEASES 256u
/* And in a round over all applications, so that packets are not left waiting. */
#define ROUND_COMMANDS 256u
#define QUIET_NS 200000u /* until an application must kick */

/* A command that has to be looked at again in the next round, not a wrong one. */
static const char next_round[] = "next round";

static u32 read_once(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* The bytes of a message; NULL: there are none there. */
static u8 *bytes_at(const struct homad_app *app, const struct homa_sqe *sqe)
{
	const struct homad_segment *seg;

	if (sqe->segment >= app->num_segs)
		return NULL;
	seg = &app->seg[sqe->segment];
	if (sqe->length > seg->bytes || sqe->offset > seg->bytes - sqe->length)
		return NULL;
	return seg->base + sqe->offset;
}

/* Is this a message at all? */
static const char *check_message(const struct homad_app *app,
				 const struct homa_sqe *sqe)
{
	if (sqe->length == 0 || sqe->length > HOMA_SHM_MESSAGE_MAX)
		return "message length";
	if (!bytes_at(app, sqe))
		return "message outside of the data memory";
	if ((sqe->flags & HOMA_SQE_COPY) && sqe->length > HOMA_SHM_COPY_MAX)
		return "message too long to be copied";
	return NULL;
}

/* What the RPC will send from; false: no memory. */
static bool take_bytes(struct homad_thread *t, struct homad_app *app,
		       const struct homa_sqe *sqe, u8 **out)
{
	u8 *bytes = bytes_at(app, sqe);

	if (!(sqe->flags & HOMA_SQE_COPY)) {
		*out = bytes;
		return true;
	}
	*out = homa_msgbuf_get(&t->bufs, sqe->length);
	if (!*out) {
		t->counters.out_of_memory++;
		return false;
	}
	memcpy(*out, bytes, sqe->length);
	return true;
}

/* The message will not be sent. */
static void drop_bytes(struct homad_thread *t, struct homad_app *app,
		       const struct homa_sqe *sqe, u8 *out)
{
	if (sqe->flags & HOMA_SQE_COPY)
		homa_msgbuf_put(&t->bufs, out, sqe->length);
	else if (!homad_free_bytes(t, app, sqe->segment, sqe->offset))
		homad_app_evict(t, app, "more messages than it may have");
}

static void own_bytes(struct homad_rpc *priv, const struct homa_sqe *sqe, u8 *out)
{
	priv->out = out;
	priv->out_size = sqe->length;
	priv->copied = sqe->flags & HOMA_SQE_COPY;
	priv->segment = sqe->segment;
	priv->offset = sqe->offset;
}

/*
 * With several threads another one could pull the message before our own bytes
 * in the RPC are in place; then the engine is told of its bytes afterwards.
 */
static u32 at_first(u32 length)
{
	return homa_plat_alone ? length : 0;
}

static void go_on(struct homad_thread *t, struct homa_handle handle, u32 length)
{
	if (!homa_plat_alone)
		homa_msg_supply(&t->ctx, handle, length);
}

static int start_rpc(struct homad_thread *t, struct homad_app *app,
		     const struct homa_sqe *sqe, struct homad_port *port,
		     struct homa_send *send, u8 *out)
{
	struct homad_slot *slot = &app->client_slots[sqe->token & 0xffff];
	struct homad_rpc *priv;
	struct homa_rpc *rpc;
	int rc;

	homad_refill(t);
	rc = homa_rpc_send(&t->ctx, app->sock, port->link, send, &slot->handle,
			   &rpc);
	if (rc)
		return rc;
	slot->token = sqe->token;
	priv = homa_rpc_priv(rpc);
	own_bytes(priv, sqe, out);
	priv->app = app;
	priv->token = sqe->token;
	priv->handle = slot->handle;
	priv->client = true;
	priv->is_private = sqe->flags & HOMA_SQE_PRIVATE;
	priv->sent_ns = t->ctx.now;
	app->rpcs++;
	homad_trace_rpc(t, HOMAD_TRACE_SUBMIT, priv, sqe->length, 0);
	go_on(t, slot->handle, sqe->length);
	HOMAD_PROBE4(request, app->id, slot->handle.id, sqe->length, sqe->port);
	return 0;
}

static const char *request(struct homad_thread *t, struct homad_app *app,
			   const struct homa_sqe *sqe)
{
	struct homa_send send = {
		.port = sqe->port,
		.flags = sqe->flags & HOMA_SQE_PRIVATE ? HOMA_SEND_PRIVATE : 0,
		.length = sqe->length,
		.available = at_first(sqe->length),
		.cookie = sqe->cookie,
	};
	const char *wrong = check_message(app, sqe);
	struct homad_port *port;
	u8 *out = NULL;
	int rc;

	if (wrong)
		return wrong;
	if (!sqe->token || (sqe->token & 0xffff) >= app->max_rpcs ||
	    app->client_slots[sqe->token & 0xffff].token)
		return "request token";
	memcpy(send.dst.ip, sqe->ip, sizeof(send.dst.ip));
	send.dst.encap = sqe->encap;
	rc = app->shut ? -ESHUTDOWN :
			 homad_dest(t, app->uid, &send.dst, send.length, &port);
	if (unlikely(rc == -EAGAIN))
		return next_round;
	app->counters.requests++;
	app->counters.tx_bytes += sqe->length;
	if (!rc && port == t->d->local &&
	    homad_direct_request(t, app, sqe, &send.dst, bytes_at(app, sqe)))
		return NULL;
	if (!take_bytes(t, app, sqe, &out)) {
		homad_refuse(t, app, sqe->token, sqe->cookie, sqe->flags,
			     -ENOMEM);
		return NULL;
	}
	homad_lock(app);
	if (!rc)
		rc = start_rpc(t, app, sqe, port, &send, out);
	if (rc) {
		homad_refuse(t, app, sqe->token, sqe->cookie, sqe->flags, rc);
		drop_bytes(t, app, sqe, out);
	}
	homad_unlock(app);
	return NULL;
}

static const char *reply(struct homad_thread *t, struct homad_app *app,
			 const struct homa_sqe *sqe)
{
	const char *wrong = check_message(app, sqe);
	u32 index = (u32)(sqe->token & 0xffff);
	struct homa_rpc *rpc = NULL;
	struct homad_rpc *priv;
	u8 *out;

	if (wrong)
		return wrong;
	if (!sqe->token || index >= app->max_rpcs)
		return "reply token";
	app->counters.replies++;
	app->counters.tx_bytes += sqe->length;
	if (app->server_slots[index].token == sqe->token &&
	    app->server_slots[index].direct) {
		homad_direct_reply(t, app, sqe, bytes_at(app, sqe));
		return NULL;
	}
	if (!take_bytes(t, app, sqe, &out))
		return NULL; /* the client will time out */
	homad_lock(app);
	/* Another token there: the client gave up, and the slot is used again. */
	if (app->server_slots[index].token == sqe->token &&
	    homa_rpc_reply(&t->ctx, app->server_slots[index].handle,
			   sqe->length, at_first(sqe->length), &rpc))
		rpc = NULL;
	if (rpc) {
		priv = homa_rpc_priv(rpc);
		own_bytes(priv, sqe, out);
		priv->token = 0;
		homad_trace_rpc(t, HOMAD_TRACE_SUBMIT, priv, sqe->length, 0);
		go_on(t, app->server_slots[index].handle, sqe->length);
		homad_slot_free(app, sqe->token);
		/* A request may have waited for the slot. */
		if (!homa_list_empty(&app->ready[HOMAD_READY_REQUESTS]))
			homad_touch(t, app, 0);
	} else {
		drop_bytes(t, app, sqe, out);
	}
	homad_unlock(app);
	HOMAD_PROBE4(reply, app->id, sqe->token, sqe->length, !rpc);
	return NULL;
}

static const char *abort_rpcs(struct homad_thread *t, struct homad_app *app,
			      const struct homa_sqe *sqe)
{
	u32 i, first = 0, last = app->max_rpcs;

	if (sqe->length > 4095)
		return "errno of an abort";
	if (sqe->token) {
		first = (u32)(sqe->token & 0xffff);
		last = first + 1;
		if (first >= app->max_rpcs)
			return "abort token";
	}
	app->counters.aborts++;
	for (i = first; i < last; i++) {
		const struct homad_slot *slot = &app->client_slots[i];

		/* Those that have ended already are just on their way. */
		if (!slot->token || slot->kind ||
		    (sqe->token && slot->token != sqe->token))
			continue;
		if (slot->direct)
			homad_direct_abort(t, slot->direct, (int)sqe->length);
		else
			homa_rpc_abort(&t->ctx, slot->handle, (int)sqe->length);
	}
	return NULL;
}

static const char *command(struct homad_thread *t, struct homad_app *app,
			   const struct homa_sqe *sqe)
{
	switch (sqe->op) {
	case HOMA_SQE_REQUEST:
		return request(t, app, sqe);
	case HOMA_SQE_REPLY:
		return reply(t, app, sqe);
	case HOMA_SQE_ABORT:
		return abort_rpcs(t, app, sqe);
	default:
		return "unknown command";
	}
}

/* Pages that the application gives back. */
static u32 releases(struct homad_thread *t, struct homad_app *app)
{
	struct homa_shm_ring *ring = &app->queues->h.release;
	u32 tail = read_once(&ring->tail), i;
	u32 n = tail - app->release_head;

	if (likely(n == 0))
		return 0;
	if (n > HOMA_SHM_RELEASES) {
		homad_app_evict(t, app, "release ring: impossible tail");
		return 0;
	}
	n = homa_min_u32(n, TURN_RELEASES);
	for (i = 0; i < n; i++) {
		u32 slot = app->release_head++ & (HOMA_SHM_RELEASES - 1);
		u32 page = __atomic_load_n(&app->queues->released[slot],
					   __ATOMIC_RELAXED);

		if (homa_pool_release(&t->ctx, app->sock, &page, 1)) {
			homad_app_evict(t, app,
					"a page came back that was not out");
			return n;
		}
	}
	__atomic_store_n(&ring->head, app->release_head, __ATOMIC_RELEASE);
	return n;
}

/* The last command of a turn was not taken. Returns what is left of the turn. */
HOMA_RARE static u32 refused(struct homad_thread *t, struct homad_app *app,
			     u32 which, const char *why)
{
	if (why == next_round) {
		app->sq_head[which]--;
		t->put_off = app;
	} else {
		homad_app_evict(t, app, why);
	}
	return 0;
}

static u32 submissions(struct homad_thread *t, struct homad_app *app, u32 which,
		       u32 *budget, u32 *bytes)
{
	struct homa_shm_ring *ring = &app->queues->h.sq[which];
	u32 tail = read_once(&ring->tail), done = 0;
	u32 n = tail - app->sq_head[which];
	const char *wrong = NULL;

	if (n == 0)
		return 0;
	if (n > HOMA_SHM_SQ_ENTRIES) {
		homad_app_evict(t, app, "submission ring: impossible tail");
		return 0;
	}
	while (done < n && *budget && *bytes) {
		u32 slot = app->sq_head[which]++ & (HOMA_SHM_SQ_ENTRIES - 1);
		const struct homa_sqe *entry = &app->queues->sqe[which][slot];
		struct homa_sqe sqe;

		memcpy(&sqe, entry, sizeof(sqe));
		/* From here on only the copy counts: keep the compiler from
		 * reading the entry once more. */
		__asm__ volatile("" ::: "memory");
		wrong = command(t, app, &sqe);
		if (unlikely(wrong))
			break;
		done++;
		/* Ending everything is a turn's work by itself. */
		*budget = sqe.op == HOMA_SQE_ABORT && !sqe.token ? 0 :
								   *budget - 1;
		if (sqe.flags & HOMA_SQE_COPY)
			*bytes -= homa_min_u32(*bytes, sqe.length);
	}
	if (unlikely(wrong))
		*budget = refused(t, app, which, wrong);
	__atomic_store_n(&ring->head, app->sq_head[which], __ATOMIC_RELEASE);
	return done;
}

static u32 rings_in_use(const struct homad_app *app)
{
	u32 sqs = __atomic_load_n(&app->queues->h.sqs, __ATOMIC_RELAXED);

	return sqs < 1 ? 1 : homa_min_u32(sqs, HOMA_SHM_SQS);
}

/* The completion ring was full; is there room now? */
static void look_at_full_ring(struct homad_thread *t, struct homad_app *app)
{
	u32 head = read_once(&app->queues->h.cq.head);

	if (app->cq_tail - head == HOMA_SHM_CQ_ENTRIES)
		return;
	app->cq_blocked = false;
	homad_touch(t, app, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
}

static u32 turn(struct homad_thread *t, struct homad_app *app)
{
	u32 budget = HOMAD_TURN, bytes = TURN_BYTES;
	u32 sqs = rings_in_use(app), i, done;

	if (unlikely(app->cq_blocked))
		look_at_full_ring(t, app);
	done = releases(t, app);
	if (unlikely(!homa_list_empty(&app->direct_waiting)))
		homad_direct_retry(t, app);
	for (i = 0; i < sqs && budget && bytes && !app->evicted; i++) {
		if (++app->sq_next >= sqs)
			app->sq_next = 0;
		done += submissions(t, app, app->sq_next, &budget, &bytes);
	}
	if (!budget || !bytes)
		app->counters.budget_out++;
	return done;
}

int homad_turn_of(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;
	u32 i, sqs = rings_in_use(app);

	if (app->phase != HOMAD_APP_OPEN || app->evicted)
		return 0;
	homad_now(t);
	turn(t, app);
	for (i = 0; i < sqs && !app->evicted; i++)
		if (read_once(&app->queues->h.sq[i].tail) != app->sq_head[i])
			return 1;
	return 0;
}

/* Anything in its rings? */
static bool waiting(const struct homad_app *app)
{
	const struct homa_shm_header *h = &app->queues->h;
	u32 i, sqs = rings_in_use(app);

	if (read_once(&h->release.tail) != app->release_head)
		return true;
	if (app->cq_blocked &&
	    app->cq_tail - read_once(&h->cq.head) != HOMA_SHM_CQ_ENTRIES)
		return true;
	for (i = 0; i < sqs; i++)
		if (read_once(&h->sq[i].tail) != app->sq_head[i])
			return true;
	return false;
}

static void ask_kick(struct homad_app *app)
{
	u32 want = HOMA_SHM_KICK_SUBMIT;

	if (app->cq_blocked)
		want |= HOMA_SHM_KICK_CONSUME;
	if (homa_sock_starved(app->sock))
		want |= HOMA_SHM_KICK_RELEASE;
	if (!homa_list_empty(&app->direct_waiting))
		want |= HOMA_SHM_KICK_RELEASE | HOMA_SHM_KICK_CONSUME;
	__atomic_store_n(&app->queues->h.need_kick, want, __ATOMIC_SEQ_CST);
}

void homad_poll_app(struct homad_thread *t, struct homad_app *app)
{
	/* Everything else here is its home thread's. */
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t)
		return;
	app->quiet_since = t->ctx.now;
	if (app->is_polled || app->phase != HOMAD_APP_OPEN || app->evicted)
		return;
	app->is_polled = true;
	t->num_polled++;
	homa_list_add_tail(&t->polled, &app->polled);
	__atomic_store_n(&app->queues->h.need_kick, 0, __ATOMIC_RELAXED);
}

void homad_unpoll_app(struct homad_thread *t, struct homad_app *app)
{
	if (t->put_off == app)
		t->put_off = NULL;
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t ||
	    !app->is_polled)
		return;
	app->is_polled = false;
	t->num_polled--;
	homa_list_del(&app->polled);
}

/* Quiet for long: it must kick from now on, unless it just did something. */
static void park(struct homad_thread *t, struct homad_app *app)
{
	ask_kick(app);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (waiting(app)) {
		__atomic_store_n(&app->queues->h.need_kick, 0,
				 __ATOMIC_RELAXED);
		return;
	}
	homad_unpoll_app(t, app);
}

/* Of several attachments of a user each gets its look-up in time. */
static void next_is_first(struct homad_thread *t)
{
	struct homad_app *app = t->put_off;

	t->put_off = NULL;
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t || !app->is_polled)
		return;
	homa_list_del(&app->polled);
	homa_list_add_head(&t->polled, &app->polled);
}

int homad_commands(struct homad_thread *t)
{
	u32 left = t->num_polled, total = 0, done;

	/* Who has had his turn goes to the end; who has not is first next time. */
	while (left-- && total < ROUND_COMMANDS) {
		struct homa_list *node = t->polled.next;
		struct homad_app *app =
			homa_container_of(node, struct homad_app, polled);

		homa_prefetch(&homa_container_of(node->next, struct homad_app,
						 polled)
				       ->queues);
		homa_list_del(node);
		homa_list_add_tail(&t->polled, node);
		done = turn(t, app);
		total += done;
		if (done)
			app->quiet_since = t->ctx.now;
		else if (homa_since(t->ctx.now, app->quiet_since) > QUIET_NS)
			park(t, app);
		if (unlikely(t->put_off) && homad_dests_exhausted(&t->dests))
			break;
	}
	if (unlikely(t->put_off))
		next_is_first(t);
	t->counters.commands += total;
	return (int)total;
}

bool homad_ask_kicks(struct homad_thread *t)
{
	struct homa_list *node;

	for (node = t->polled.next; node != &t->polled; node = node->next)
		ask_kick(homa_container_of(node, struct homad_app, polled));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (node = t->polled.next; node != &t->polled; node = node->next)
		if (waiting(homa_container_of(node, struct homad_app, polled)))
			return true;
	return false;
}

void homad_drop_kicks(struct homad_thread *t)
{
	struct homa_list *node;

	for (node = t->polled.next; node != &t->polled; node = node->next)
		__atomic_store_n(&homa_container_of(node, struct homad_app,
						    polled)
					  ->queues->h.need_kick,
				 0, __ATOMIC_RELAXED);
}
