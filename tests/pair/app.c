/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Applications: they send requests, answer them, take messages and give pages back,
 * each when it likes, and look at every byte. See book.c for how they know them.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* ---- sending ---- */

struct pair_rpc *pair_rpc_start(struct pair_world *w, u8 client, u8 sock,
				u8 server, u16 port, u32 request_length,
				u32 response_length, int *err)
{
	struct pair_host *h = &w->hosts[client];
	struct pair_rpc *rpc = pair_book_add(w);
	struct homa_rpc *obj = NULL;
	struct homa_send send = {
		.dst = w->hosts[server].addr,
		.port = port,
		.flags = w->cfg.private_rpcs ? HOMA_SEND_PRIVATE : 0,
		.length = request_length,
		.available = pair_first_supply(w, request_length),
		.cookie = pair_mix(rpc->index + 77),
		.deadline = pair_within(h, rpc),
	};
	struct homa_tx_desc desc;
	bool now;
	int ret;

	rpc->client = client;
	rpc->client_sock = sock;
	rpc->client_life = h->life;
	rpc->client_port = h->socks[sock].port;
	rpc->server = server;
	rpc->server_port = port;
	rpc->request_length = request_length;
	rpc->response_length = response_length;
	rpc->cookie = send.cookie;
	rpc->start = w->now;
	h->ctx.now = pair_now(h);
	h->ctx.tx_now = w->cfg.at_once ? &desc : NULL;
	ret = homa_rpc_send(&h->ctx, h->socks[sock].sock, h->link, &send,
			    &rpc->handle, &obj);
	now = w->cfg.at_once && !h->ctx.tx_now;
	h->ctx.tx_now = NULL;
	if (err)
		*err = ret;
	if (ret) {
		w->did[PAIR_DID_REFUSED]++;
		w->num_rpcs--;
		free(rpc);
		pair_poll(h);
		return NULL;
	}
	pair_check(w, !(rpc->handle.id & 1) && rpc->handle.id, "client id %llx",
		   (unsigned long long)rpc->handle.id);
	pair_check(w, !pair_book_find(w, client, rpc->handle.id),
		   "id %llx used again", (unsigned long long)rpc->handle.id);
	pair_book_id(w, rpc);
	pair_set_out(h, obj, rpc->handle, pair_key(w, rpc, false),
		     request_length, send.available);
	if (now)
		pair_tx_now(h, &desc);
	pair_poll(h);
	return rpc;
}

struct pair_rpc *pair_rpc(struct pair_world *w, u8 client, u8 server,
			  u32 request_length, u32 response_length)
{
	int err;
	struct pair_rpc *rpc =
		pair_rpc_start(w, client, 1, server, PAIR_SERVER_PORT,
			       request_length, response_length, &err);

	pair_check(w, rpc != NULL, "homa_rpc_send: %d", err);
	return rpc;
}

int pair_rpc_abort(struct pair_world *w, struct pair_rpc *rpc, int error)
{
	struct pair_host *h = &w->hosts[rpc->client];
	int ret;

	h->ctx.now = pair_now(h);
	ret = homa_rpc_abort(&h->ctx, rpc->handle, error);
	if (!ret && !error)
		pair_rpc_ended(w, rpc, PAIR_ABORTED, 0);
	pair_poll(h);
	return ret;
}

void pair_rpc_forget(struct pair_world *w, struct pair_rpc *rpc)
{
	struct pair_host *client = &w->hosts[rpc->client];
	struct pair_host *server = &w->hosts[rpc->server];

	client->ctx.now = pair_now(client);
	server->ctx.now = pair_now(server);
	homa_rpc_forget(&server->ctx, rpc->server_handle);
	if (!homa_rpc_forget(&client->ctx, rpc->handle) &&
	    rpc->state == PAIR_PENDING)
		pair_rpc_ended(w, rpc, PAIR_ABORTED, 0);
	pair_poll(server);
	pair_poll(client);
}

/* ---- the server's application ---- */

struct reply {
	struct homa_handle handle;
	struct pair_rpc *rpc;
	bool twice;
	struct homa_sock *sock;
	struct homa_addr peer;
};

/* What an application calls that has not understood: no second answer leaves. */
static void reply_again(struct pair_host *h, const struct reply *r)
{
	struct homa_rpc *obj = NULL;
	int err = homa_rpc_reply(&h->ctx, r->handle, 1, 1, &obj);

	pair_check(h->world, !obj && (!err || err == -HOMA_EINVAL),
		   "rpc %u: second answer: %d", r->rpc->index, err);
	h->world->did[PAIR_DID_TWICE]++;
}

/* Does what reply_as_asked() says, as the kernel does it, which knows no handles. */
static int reply_by_name(struct pair_host *h, const struct reply *r, u32 length,
			 u32 available, struct homa_rpc **obj)
{
	struct homa_rpc *rpc =
		homa_answer_begin(&h->ctx, r->handle.id, &r->peer, r->sock);
	bool same, awaited;

	if (!rpc)
		return 0;
	same = homa_rpc_handle(rpc).generation == r->handle.generation;
	awaited = same && homa_answer_awaited(rpc);
	if (awaited) {
		pair_set_out(h, rpc, r->handle, pair_key(h->world, r->rpc, true),
			     length, available);
		*obj = rpc;
	}
	if (homa_answer_end(&h->ctx, rpc, awaited ? length : 0, available,
			    h->ctx.tx_now))
		h->ctx.tx_now = NULL;
	return awaited || !same ? 0 : -HOMA_EINVAL;
}

/* Sends the answer, or the rejection; *@obj is its RPC, unless that is over. */
static int reply_as_asked(struct pair_host *h, const struct reply *r,
			  u32 length, u32 available, struct homa_rpc **obj)
{
	int err;

	if (h->world->cfg.at_once && !r->rpc->reject)
		return reply_by_name(h, r, length, available, obj);
	err = r->rpc->reject ?
		      homa_rpc_reject(&h->ctx, r->handle, r->rpc->reject, 1, obj) :
		      homa_rpc_reply(&h->ctx, r->handle, length, available, obj);
	if (*obj)
		pair_set_out(h, *obj, r->handle,
			     pair_key(h->world, r->rpc, true), length, available);
	return err;
}

static void reply_send(struct pair_host *h, void *arg, bool stale)
{
	struct pair_world *w = h->world;
	struct reply *r = arg;
	struct pair_rpc *rpc = r->rpc;
	u32 length = rpc->reject ? 1 : rpc->response_length;
	u32 available = pair_first_supply(w, length);
	struct homa_rpc *obj = NULL;
	struct homa_tx_desc desc;
	bool now;
	int err;

	if (rpc->reject)
		available = length;
	if (!stale) {
		h->ctx.now = pair_now(h);
		h->ctx.tx_now = w->cfg.at_once ? &desc : NULL;
		err = reply_as_asked(h, r, length, available, &obj);
		now = w->cfg.at_once && !h->ctx.tx_now;
		h->ctx.tx_now = NULL;
		pair_check(w, !err, "homa_rpc_reply: %d", err);
		if (obj) {
			rpc->replies++;
			rpc->replied_at = w->now;
		}
		if (now)
			pair_tx_now(h, &desc);
		if (r->twice)
			reply_again(h, r);
		pair_poll(h);
	}
	free(r);
}

struct release {
	u32 sock, serial;
	u32 num;
	u32 pages[HOMA_MAX_BPAGES];
};

static void release_due(struct pair_host *h, void *arg, bool stale)
{
	struct release *r = arg;
	struct pair_sock *s = &h->socks[r->sock];
	int err;

	if (!stale && s->open && s->serial == r->serial) {
		h->ctx.now = pair_now(h);
		err = homa_pool_release(&h->ctx, s->sock, r->pages, r->num);
		pair_check(h->world, !err, "homa_pool_release: %d", err);
		s->pages_out -= r->num;
		pair_poll(h);
	}
	free(r);
}

static u64 app_delay(struct pair_world *w, u64 max)
{
	return max ? pair_rand(&w->rng_app) % max : 0;
}

static void give_back(struct pair_host *h, u32 sock,
		      const struct homa_msg_info *info)
{
	struct pair_world *w = h->world;
	struct release *r;

	if (!info->num_pages)
		return;
	if (h->socks[sock].hoard) {
		h->socks[sock].pages_out += info->num_pages;
		w->did[PAIR_DID_HOARD] += info->num_pages;
		return;
	}
	r = malloc(sizeof(*r));
	if (!r)
		abort();
	r->sock = sock;
	r->serial = h->socks[sock].serial;
	r->num = info->num_pages;
	memcpy(r->pages, info->pages, sizeof(r->pages));
	h->socks[sock].pages_out += r->num;
	if (w->cfg.release_delay_ns)
		pair_event_add(h, w->now + app_delay(w, w->cfg.release_delay_ns),
			       release_due, r);
	else
		release_due(h, r, false);
}

/* ---- taking messages ---- */

/* A message the application has heard of; without a pool its bytes are here. */
struct arrival {
	struct homa_handle handle;
	enum homa_event_kind kind;
	u32 sock, serial;
	u8 *in;
	u32 in_size;
};

static void verify(struct pair_world *w, const struct pair_rpc *rpc,
		   bool response, const u8 *got, u32 offset, u32 len)
{
	u8 want[4096];
	u32 done, n, i;

	if (w->corrupting || !pair_judged(w, rpc))
		return;
	for (done = 0; done < len; done += n) {
		n = len - done < sizeof(want) ? len - done : sizeof(want);
		pair_pattern(want, pair_key(w, rpc, response), offset + done, n);
		if (!memcmp(want, got + done, n))
			continue;
		for (i = 0; want[i] == got[done + i]; i++)
			;
		pair_fail(w, "rpc %u (%u -> %u): byte %u of its %s is wrong",
			  rpc->index, rpc->client, rpc->server,
			  offset + done + i, response ? "response" : "request");
	}
}

static void verify_message(struct pair_host *h, const struct arrival *a,
			   const struct pair_rpc *rpc, bool response,
			   const struct homa_msg_info *info)
{
	struct pair_world *w = h->world;
	struct pair_sock *s = &h->socks[a->sock];
	u32 i, want = response ? rpc->response_length : rpc->request_length;
	bool judged = pair_judged(w, rpc) && !w->corrupting;

	pair_check(w, info->length == want || !judged,
		   "rpc %u: length %u, not %u", rpc->index, info->length, want);
	if (!s->pool) {
		pair_check(w, a->in_size >= info->length || !judged,
			   "rpc %u: %u of %u bytes came", rpc->index,
			   a->in_size, info->length);
		if (judged)
			verify(w, rpc, response, a->in, 0, info->length);
		return;
	}
	pair_check(w,
		   info->num_pages == (info->length + HOMA_BPAGE_SIZE - 1) /
					      HOMA_BPAGE_SIZE,
		   "rpc %u: %u pages for %u bytes", rpc->index, info->num_pages,
		   info->length);
	for (i = 0; i < info->num_pages; i++) {
		u32 offset = i * HOMA_BPAGE_SIZE;
		u32 n = info->length - offset;

		if (n > HOMA_BPAGE_SIZE)
			n = HOMA_BPAGE_SIZE;
		pair_check(w,
			   (u64)info->pages[i] + n <=
				   (u64)s->region_pages * HOMA_BPAGE_SIZE,
			   "rpc %u: page offset %u", rpc->index, info->pages[i]);
		verify(w, rpc, response, s->region + info->pages[i], offset, n);
	}
}

/* A request that no application sent: it came by damage, or a liar made it. An answer,
 * lest it stay in service. */
static void got_forged(struct pair_host *h, const struct arrival *a)
{
	struct homa_rpc *obj = NULL;

	homa_rpc_reply(&h->ctx, a->handle, 1, 1, &obj);
	if (obj)
		pair_set_out(h, obj, a->handle, 1, 1, 1);
}

/* Whose request is it? NULL: of nobody, and that is known. */
static struct pair_rpc *requested(struct pair_host *h,
				  const struct homa_msg_info *info)
{
	struct pair_world *w = h->world;
	int client = pair_host_of(w, &info->peer);
	struct pair_rpc *rpc =
		client < 0 ? NULL : pair_book_find(w, (u8)client, info->id ^ 1);

	if (w->corrupting && (!rpc || rpc->executed))
		return NULL;
	if (rpc && rpc->server != h->index && w->hosts[rpc->server].hostile)
		rpc = NULL; /* its server knows the id and made one like it */
	if (!rpc && w->forged && w->forged(w, &info->peer, info->id ^ 1)) {
		w->did[PAIR_DID_FORGED_RUN]++;
		return NULL;
	}
	pair_check(w, rpc && (info->id & 1), "host %u: request %llx of nobody",
		   h->index, (unsigned long long)info->id);
	return rpc;
}

static void got_request(struct pair_host *h, const struct arrival *a,
			const struct homa_msg_info *info)
{
	struct pair_world *w = h->world;
	struct pair_sock *s = &h->socks[a->sock];
	struct pair_rpc *rpc = requested(h, info);
	struct reply *r;
	u64 delay;

	if (!rpc) {
		got_forged(h, a);
		return;
	}
	pair_once_executed(h, rpc);
	pair_within_heard(h, rpc, info->deadline);
	rpc->server_handle = a->handle;
	pair_check(w,
		   (rpc->server == h->index &&
		    info->peer_port == rpc->client_port &&
		    s->port == rpc->server_port) ||
			   w->corrupting || !pair_judged(w, rpc),
		   "rpc %u: request reached host %u from port %u", rpc->index,
		   h->index, info->peer_port);
	verify_message(h, a, rpc, false, info);
	if (w->on_execute)
		w->on_execute(w, rpc);
	if (rpc->no_reply || s->mute) {
		w->did[PAIR_DID_MUTE]++;
		return;
	}
	r = malloc(sizeof(*r));
	if (!r)
		abort();
	*r = (struct reply){ a->handle, rpc, s->twice, s->sock, info->peer };
	delay = rpc->reply_delay_set ? rpc->reply_delay :
				       app_delay(w, w->cfg.reply_delay_ns);
	if (delay)
		pair_event_add(h, w->now + delay, reply_send, r);
	else
		reply_send(h, r, false);
}

static void got_outcome(struct pair_host *h, const struct arrival *a,
			const struct homa_msg_info *info)
{
	struct pair_world *w = h->world;
	struct pair_rpc *rpc = pair_book_find(w, h->index, info->id);

	pair_check(w, rpc && rpc->client_life == h->life,
		   "host %u: outcome of an RPC that it did not start", h->index);
	rpc->taken++;
	pair_check(w, rpc->taken == 1 && rpc->state == PAIR_PENDING,
		   "rpc %u ends again, state %d", rpc->index, rpc->state);
	pair_check(w, info->cookie == rpc->cookie, "rpc %u: cookie", rpc->index);
	pair_check(w,
		   pair_host_of(w, &info->peer) == rpc->server &&
			   info->peer_port == rpc->server_port,
		   "rpc %u: outcome from elsewhere", rpc->index);
	if (info->kind == HOMA_EV_FAILED) {
		pair_check(w, info->error > 0, "rpc %u: failed with %d",
			   rpc->index, info->error);
		pair_rpc_ended(w, rpc, PAIR_FAILED, info->error);
		return;
	}
	pair_check(w,
		   (rpc->executed && rpc->replies) || w->corrupting ||
			   !pair_judged(w, rpc),
		   "rpc %u: response, but %u executions", rpc->index,
		   rpc->executed);
	verify_message(h, a, rpc, true, info);
	pair_rpc_ended(w, rpc, PAIR_OK, 0);
}

static void take(struct pair_host *h, struct arrival *a)
{
	struct pair_world *w = h->world;
	struct homa_msg_info info;
	int err;

	memset(&info, 0xa5, sizeof(info));
	h->ctx.now = pair_now(h);
	err = homa_rx_take(&h->ctx, a->handle, &info);
	if (err) { /* aborted, failed or discarded meanwhile */
		pair_check(w, err == -HOMA_EINVAL, "homa_rx_take: %d", err);
		return;
	}
	pair_check(w, info.id == a->handle.id, "taken: another RPC");
	/* A response may have turned into a failure since the event. */
	pair_check(w,
		   (info.kind == HOMA_EV_REQUEST) == (a->kind == HOMA_EV_REQUEST),
		   "event kind %d, taken kind %d", a->kind, info.kind);
	if (info.kind == HOMA_EV_REQUEST)
		got_request(h, a, &info);
	else
		got_outcome(h, a, &info);
	give_back(h, a->sock, &info);
}

static void take_due(struct pair_host *h, void *arg, bool stale)
{
	struct arrival *a = arg;

	if (!stale && h->socks[a->sock].open &&
	    h->socks[a->sock].serial == a->serial) {
		take(h, a);
		pair_poll(h);
	}
	free(a->in);
	free(a);
}

void pair_app_message(struct pair_host *h, const struct homa_rx_pkt *rx)
{
	const struct homa_rx_message *m = &rx->message;
	struct arrival a = {
		.handle = m->handle,
		.kind = m->kind,
		.sock = (u32)(pair_sock_of(h, m->sock) - h->socks),
	};
	struct homa_msg_info info = {
		.kind = m->kind,
		.length = rx->length,
		.id = m->handle.id,
		.cookie = m->cookie,
		.peer = *rx->src,
		.peer_port = m->peer_port,
		.num_pages = 1,
		.pages = { m->page },
	};

	/* It closes, a few RPCs at a time. */
	if (!h->socks[a.sock].open)
		return;
	if (m->kind == HOMA_EV_REQUEST)
		got_request(h, &a, &info);
	else
		got_outcome(h, &a, &info);
	give_back(h, a.sock, &info);
}

static u32 sock_index(struct pair_host *h, const struct homa_sock *sock)
{
	u32 i;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].sock == sock)
			return i;
	pair_fail(h->world, "host %u: event for a socket that is gone", h->index);
}

void pair_app_events(struct pair_host *h)
{
	struct pair_world *w = h->world;
	struct homa_event ev;
	struct pair_priv *priv;
	struct arrival *a;
	u64 delay;

	while (!h->hold_events && homa_event_next(&h->ctx, &ev)) {
		if (ev.kind == HOMA_EV_GONE && w->cfg.tell_gone) {
			w->gone++;
			continue;
		}
		pair_check(w,
			   ev.kind >= HOMA_EV_REQUEST && ev.kind <= HOMA_EV_FAILED,
			   "event kind %d", ev.kind);
		if (h->socks[sock_index(h, ev.sock)].deaf) {
			w->did[PAIR_DID_DEAF]++;
			continue;
		}
		a = calloc(1, sizeof(*a));
		if (!a)
			abort();
		a->handle = ev.handle;
		a->kind = ev.kind;
		a->sock = sock_index(h, ev.sock);
		a->serial = h->socks[a->sock].serial;
		if (ev.kind != HOMA_EV_FAILED) {
			priv = homa_rpc_priv(ev.rpc);
			a->in = priv->in;
			a->in_size = priv->in_size;
			priv->in = NULL;
			priv->in_size = 0;
		}
		delay = app_delay(w, w->cfg.take_delay_ns);
		if (delay)
			pair_event_add(h, w->now + delay, take_due, a);
		else
			take_due(h, a, false);
	}
}
