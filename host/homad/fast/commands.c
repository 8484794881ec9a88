// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What commands of applications do. Everything in a command is hostile: what is here
 * is a copy that nobody else can change (rings.c), and a length or a token that a
 * correct library cannot produce costs the application its attachment.
 */
#include <errno.h>
#include "copies.h"
#include "homa_hash.h"
#include "log.h"
#include "probes.h"
#include "fast.h"
#include "homad_trace.h"

const char homad_next_round[] = "next round";
const char homad_goes_on[] = "goes on";

/* Returns where the bytes of a message are, or NULL if the command names no such memory. */
static u8 *bytes_at(const struct homad_app *app, const struct homa_sqe *sqe)
{
	const struct homad_segment *seg;

	if (sqe->segment >= app->num_segs)
		return NULL;
	seg = &app->seg[sqe->segment];
	if (sqe->length > seg->bytes || sqe->offset > seg->bytes - sqe->length)
		return NULL;
	/* Nothing is behind the stages of rings that are not in use. */
	if (sqe->segment == 0 &&
	    unlikely(sqe->offset + sqe->length > app->stages_end) &&
	    sqe->offset < HOMA_SHM_SQS * HOMA_SHM_STAGE)
		return NULL;
	return seg->base + sqe->offset;
}

/* Can this be a message? Then *@bytes receives where it lies. */
static const char *check_message(const struct homad_app *app,
				 const struct homa_sqe *sqe, u8 **bytes)
{
	if (sqe->length == 0 || sqe->length > HOMA_SHM_MESSAGE_MAX)
		return "message length";
	*bytes = bytes_at(app, sqe);
	if (!*bytes)
		return "message outside of the data memory";
	if ((sqe->flags & HOMA_SQE_COPY) && sqe->length > HOMA_SHM_COPY_MAX)
		return "message too long to be copied";
	return NULL;
}

/* Sets what the RPC will send from; returns false if there is no room for a copy. */
static bool take_bytes(struct homad_thread *t, struct homad_app *app,
		       const struct homa_sqe *sqe, u8 *bytes, u8 **out)
{
	if (!(sqe->flags & HOMA_SQE_COPY)) {
		*out = bytes;
		return true;
	}
	*out = homad_copy_get(t, app, sqe->length);
	if (!*out)
		return false;
	memcpy(*out, bytes, sqe->length);
	return true;
}

/* Frees what take_bytes() took, of a message that will not be sent. */
static void drop_bytes(struct homad_thread *t, struct homad_app *app,
		       const struct homa_sqe *sqe, u8 *out)
{
	if (sqe->flags & HOMA_SQE_COPY)
		homad_copy_put(t, app, out, sqe->length);
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

/* Returns how many bytes the engine is told of at first. With several threads another one
 * could pull the message before our own bytes in the RPC are in place; then the engine is
 * told of its bytes afterwards. */
static u32 at_first(u32 length)
{
	return homa_plat_alone ? length : 0;
}

static void go_on(struct homad_thread *t, struct homa_handle handle, u32 length)
{
	if (!homa_plat_alone)
		homa_msg_supply(&t->ctx, handle, length);
}

/* The engine was offered @early for the message's only packet, NULL: it was not. Has it
 * taken it? What homad keeps with the RPC is in place. */
static void send_early(struct homad_thread *t, const struct homa_tx_desc *early)
{
	if (early && !t->ctx.tx_now)
		homad_tx_early_taken(t);
	t->ctx.tx_now = NULL;
}

static int start_rpc(struct homad_thread *t, struct homad_app *app,
		     const struct homa_sqe *sqe, struct homad_port *port,
		     struct homa_send *send, u8 *out)
{
	struct homad_slot *slot = &app->client_slots[sqe->token & 0xffff];
	struct homa_tx_desc *early;
	struct homad_rpc *priv;
	struct homa_rpc *rpc;
	int rc;

	homad_refill(t);
	t->ctx.tx_now = early = homad_tx_early(t, port);
	rc = homa_rpc_send(&t->ctx, app->sock, port->link, send, &slot->handle,
			   &rpc);
	if (rc) {
		t->ctx.tx_now = NULL;
		return rc;
	}
	slot->token = sqe->token;
	priv = homa_rpc_priv(rpc);
	own_bytes(priv, sqe, out);
	priv->app = app;
	priv->token = sqe->token;
	priv->handle = slot->handle;
	priv->client = true;
	priv->is_private = sqe->flags & HOMA_SQE_PRIVATE;
	priv->numbered = send->id != 0;
	priv->sent_ns = t->ctx.now;
	app->rpcs++;
	homad_trace_rpc(t, HOMAD_TRACE_SUBMIT, priv, sqe->length, 0);
	send_early(t, early);
	go_on(t, slot->handle, sqe->length);
	HOMAD_PROBE4(request, app->id, slot->handle.id, sqe->length, sqe->port);
	return 0;
}

/* Returns the hash of an address under the application's key. */
static u64 way_to(struct homad_app *app, const struct homa_addr *to)
{
	struct homad_way *way = &app->ways[to->ip[15] % HOMAD_WAYS];

	if (unlikely(!homa_addr_equal(&way->addr, to))) {
		way->hash = homa_siphash_addr(to, app->id_key[0], app->id_key[1]);
		way->addr = *to;
	}
	return way->hash;
}

/* Finds the id that @sqe means; 0: any. Numbers are used one after another, so that the ids
 * that servers have to remember lie close together. */
static const char *number(struct homad_app *app, const struct homa_sqe *sqe,
			  struct homa_send *send)
{
	u64 number = sqe->token >> 16;

	send->id = 0;
	if (!(sqe->flags & HOMA_SQE_NUMBERED))
		return NULL;
	if (number >= app->numbers_end)
		return "request number";
	send->id = (way_to(app, &send->dst) << (HOMA_SHM_NUMBER_BITS + 1)) +
		   (number << 1);
	return NULL;
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
		.deadline = unlikely(sqe->flags & HOMA_SQE_DEADLINE) ?
				    sqe->deadline :
				    0,
	};
	u8 *bytes, *out = NULL;
	const char *wrong = check_message(app, sqe, &bytes);
	struct homad_port *port;
	int rc;

	if (wrong)
		return wrong;
	if (!sqe->token || (sqe->token & 0xffff) >= app->max_rpcs ||
	    app->client_slots[sqe->token & 0xffff].token)
		return "request token";
	memcpy(send.dst.ip, sqe->ip, sizeof(send.dst.ip));
	send.dst.encap = sqe->encap;
	wrong = number(app, sqe, &send);
	if (wrong)
		return wrong;
	rc = app->shut ? -ESHUTDOWN :
			 homad_dest(t, app->uid, &send.dst, send.length, &port);
	if (unlikely(rc == -EAGAIN))
		return homad_next_round;
	app->numbers_end += 2;
	app->counters.requests++;
	app->counters.tx_bytes += sqe->length;
	if (!rc && port == t->d->local &&
	    homad_direct_request(t, app, sqe, &send, bytes))
		return NULL;
	if (!take_bytes(t, app, sqe, bytes, &out)) {
		homad_lock(app);
		homad_refuse(t, app, sqe->token, sqe->cookie, sqe->flags,
			     -ENOBUFS);
		homad_unlock(app);
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

/* Rejects a request, of which the client hears if it understands that; the caller has the
 * lock. @out is the byte that the rejection carries, perhaps NULL. false: @out is not
 * needed. */
static bool reject_rpc(struct homad_thread *t, struct homad_app *app, u64 token,
		       u32 error, u8 *out)
{
	struct homa_handle handle = app->server_slots[token & 0xffff].handle;
	const struct homa_sqe byte = { .flags = HOMA_SQE_COPY, .length = 1 };
	struct homa_rpc *rpc = NULL;
	struct homad_rpc *priv;

	if (!out)
		homa_rpc_forget(&t->ctx, handle);
	else if (homa_rpc_reject(&t->ctx, handle, error, at_first(1), &rpc))
		return false;
	/* An RPC that has ended gives its slot back when it is reaped. */
	if (!rpc)
		return false;
	priv = homa_rpc_priv(rpc);
	own_bytes(priv, &byte, out);
	priv->token = 0;
	homad_trace_rpc(t, HOMAD_TRACE_SUBMIT, priv, 1, (int)error);
	go_on(t, handle, 1);
	homad_slot_back(t, app, token);
	return true;
}

/* Rejects the request of the slot at @token. */
static void reject_request(struct homad_thread *t, struct homad_app *app,
			   u64 token, u32 error)
{
	const struct homad_slot *slot = &app->server_slots[token & 0xffff];
	u8 *out = homad_copy_get(t, app, 1);
	bool used = false;

	if (out)
		*out = 0;
	homad_lock(app);
	/* There is another token: the client has given up, and the slot was used again. */
	if (slot->token == token)
		used = reject_rpc(t, app, token, error, out);
	homad_unlock(app);
	if (out && !used)
		homad_copy_put(t, app, out, 1);
}

static const char *reply(struct homad_thread *t, struct homad_app *app,
			 const struct homa_sqe *sqe)
{
	u8 *bytes, *out;
	const char *wrong = check_message(app, sqe, &bytes);
	u32 index = (u32)(sqe->token & 0xffff);
	struct homa_tx_desc *early;
	struct homa_rpc *rpc = NULL;
	struct homad_rpc *priv;
	u8 port;

	if (wrong)
		return wrong;
	if (!sqe->token || index >= app->max_rpcs)
		return "reply token";
	app->counters.replies++;
	app->counters.tx_bytes += sqe->length;
	if (homad_direct_reply(t, app, sqe, bytes))
		return NULL;
	if (!take_bytes(t, app, sqe, bytes, &out)) {
		reject_request(t, app, sqe->token, ENOBUFS);
		return NULL;
	}
	homad_lock(app);
	port = app->server_slots[index].port;
	early = port ? homad_tx_early(t, &t->d->ports[port - 1]) : NULL;
	t->ctx.tx_now = early;
	/* There is another token: the client has given up, and the slot was used again. */
	if (app->server_slots[index].token == sqe->token &&
	    homa_rpc_reply(&t->ctx, app->server_slots[index].handle,
			   sqe->length, at_first(sqe->length), &rpc))
		rpc = NULL;
	if (rpc) {
		priv = homa_rpc_priv(rpc);
		own_bytes(priv, sqe, out);
		priv->token = 0;
		homad_trace_rpc(t, HOMAD_TRACE_SUBMIT, priv, sqe->length, 0);
		send_early(t, early);
		go_on(t, app->server_slots[index].handle, sqe->length);
		homad_slot_back(t, app, sqe->token);
	} else {
		t->ctx.tx_now = NULL;
		drop_bytes(t, app, sqe, out);
	}
	homad_unlock(app);
	HOMAD_PROBE4(reply, app->id, sqe->token, sqe->length, !rpc);
	return NULL;
}

static const char *reject(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe)
{
	u32 index = (u32)(sqe->token & 0xffff);

	if (sqe->length == 0 || sqe->length > HOMA_MAX_ERRNO)
		return "errno of a rejection";
	if (!sqe->token || index >= app->max_rpcs)
		return "reject token";
	app->counters.rejects++;
	if (!homad_direct_reject(t, app, sqe->token, (int)sqe->length))
		reject_request(t, app, sqe->token, sqe->length);
	return NULL;
}

int homad_session_alive(struct homad_thread *t, void *arg)
{
	const struct homad_alive *alive = arg;
	struct homad_app *app = alive->app;
	u32 index = (u32)(alive->token & 0xffff);
	struct homad_slot slot;
	bool awaited;

	if (app->phase != HOMAD_APP_OPEN || index >= app->max_rpcs ||
	    !alive->token)
		return 0;
	homad_lock(app);
	slot = app->server_slots[index];
	awaited = slot.direct && slot.direct->client;
	homad_unlock(app);
	if (slot.token != alive->token)
		return 0;
	return slot.direct ? awaited : homa_rpc_awaited(&t->ctx, slot.handle);
}

static __attribute__((noinline)) const char *abort_rpcs(struct homad_thread *t,
							struct homad_app *app,
							const struct homa_sqe *sqe)
{
	u32 index = (u32)(sqe->token & 0xffff);
	u32 *next = &app->abort_next[app->sq_next];

	if (sqe->length > 4095)
		return "errno of an abort";
	if (index >= app->max_rpcs)
		return "abort token";
	if (sqe->token)
		homad_abort_slot(t, app, index, sqe->token, (int)sqe->length);
	else
		*next = homad_abort_some(t, app, *next, (int)sqe->length);
	if (!sqe->token && *next)
		return homad_goes_on;
	app->counters.aborts++;
	return NULL;
}

const char *homad_command(struct homad_thread *t, struct homad_app *app,
			  const struct homa_sqe *sqe)
{
	switch (sqe->op) {
	case HOMA_SQE_REQUEST:
		return request(t, app, sqe);
	case HOMA_SQE_REPLY:
		return reply(t, app, sqe);
	case HOMA_SQE_REJECT:
		return reject(t, app, sqe);
	case HOMA_SQE_ABORT:
		return abort_rpcs(t, app, sqe);
	default:
		return "unknown command";
	}
}
