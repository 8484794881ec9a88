// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The life of an attachment's streams: how they get a slot, how they lose it, and what
 * becomes of them when the application lets go or ends. What it has written is still
 * sent, from its memory, which is kept so long.
 */
#include <errno.h>
#include <stdlib.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "streams.h"
#include "tas_call.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

/* With fewer free slots than this the slow path is asked for more. */
#define FEW_SLOTS 16u
/* An attachment that was refused memory asks again after this time, ns. */
#define REFUSED_NS 250000000u

/* ---- slots ---- */

void homad_streams_want(struct homad_thread *t, struct homad_streams *s)
{
	struct homad_tcp *tcp = t->tcp;

	if (s->num_free >= FEW_SLOTS || s->backed == s->num_slots ||
	    s->app->phase != HOMAD_APP_OPEN ||
	    (s->refused_at && homa_since(t->ctx.now, s->refused_at) < REFUSED_NS) ||
	    __atomic_exchange_n(&s->asked, true, __ATOMIC_ACQUIRE))
		return;
	HOMAD_PUSH(&tcp->wanting, s, next_wanting);
	homad_tcp_call_slow(tcp);
}

void homad_streams_ask_later(struct homad_thread *t, struct homad_streams *s)
{
	s->starved = true;
	t->tcp->retry_at =
		homa_min_u64(t->tcp->retry_at, t->ctx.now + REFUSED_NS);
}

void homad_streams_retry(struct homad_thread *t)
{
	struct homa_list *node;

	t->tcp->retry_at = TAS_NEVER;
	homa_list_for_each(node, &t->apps) {
		struct homad_app *app =
			homa_container_of(node, struct homad_app, member);

		if (app->streams && app->streams->tcp == t->tcp &&
		    app->streams->starved)
			homad_streams_want(t, app->streams);
	}
}

static void copy_end(struct homa_stream_end *end, const u8 ip[16], u16 port)
{
	memcpy(end->ip, ip, sizeof(end->ip));
	end->port = port;
	end->reserved = 0;
}

/* Sets the fields of the slot to what they are at the beginning of a stream. */
static void fill_slot(struct homad_stream *stream)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const struct tas_pair *pair = &stream->conn.f.pair;

	/* The number goes first: who copies an address looks afterwards whether it is still that of
	 * the stream that is meant (lib/stream/event.c). */
	__atomic_store_n(&slot->generation, stream->generation, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	slot->state = 0;
	slot->error = 0;
	slot->rx_end = slot->rx_read = 0;
	slot->tx_free = slot->tx_sent = slot->tx_end = 0;
	slot->rx_map = stream->rx_map;
	slot->tx_map = stream->tx_map;
	slot->tx_shift = stream->tx_shift;
	slot->tx_stays = stream->tx_stays =
		stream->tx_shift >= stream->home->tx_most;
	slot->told = slot->rung = 0;
	slot->rx_rung = slot->shut = slot->rx_lock = slot->tx_lock = 0;
	slot->rx_urgent = stream->rx_urgent;
	slot->urgent_seen = slot->urgent_given = slot->urgent_past = 0;
	slot->holders = 1;
	slot->mss = slot->rtt_us = slot->cwnd = slot->retransmits = 0;
	copy_end(&slot->local, pair->local, pair->local_port);
	copy_end(&slot->remote, pair->remote, pair->remote_port);
}

/* Applies the limits and the congestion control of the stream's rule. */
static void treat(struct homad_stream *stream,
		  const struct homad_policy *policy, int part, bool counted)
{
	homa_list_init(&stream->held);
	homad_limit_join(stream, policy, part, counted);
	/* Between applications of this host there is nothing to be congested. */
	if (part < 0 || policy->part[part].rule.congestion < 0 || stream->local)
		return;
	tas_set_control(&stream->conn, (u32)policy->part[part].rule.congestion);
	if (policy->part[part].rule.rate)
		tas_set_rate(&stream->conn, policy->part[part].rule.rate);
}

/* Gives the stream a free slot of @s, which must have one. */
static void take_slot(struct homad_stream *stream, struct homad_streams *s,
		      int part, bool counted)
{
	stream->home = s;
	stream->slot = homad_slot_take(s);
	/* homad counts by itself, because the number in the slot may be anything. */
	stream->generation = ++s->generations[stream->slot];
	s->stream[stream->slot] = stream;
	treat(stream, s->policy, part, counted);
	homa_list_add_tail(&s->open, &stream->of);
	s->num_open++;
	fill_slot(stream);
}

struct homad_stream *homad_stream_adopt(struct homad_thread *t,
					struct homad_streams *s,
					struct tas_conn *conn, int part,
					bool local)
{
	struct homad_stream *stream = homad_stream_of(conn);

	homad_streams_want(t, s);
	if (!s->num_free)
		return NULL;
	memset((u8 *)stream + sizeof(stream->conn), 0,
	       sizeof(*stream) - sizeof(stream->conn));
	stream->local = local;
	stream->tx_shift = HOMAD_STREAM_SHIFT;
	stream->rx_map = stream->tx_map = homa_stream_map(HOMAD_STREAM_SHIFT, 0);
	homa_list_init(&stream->pending);
	homa_list_init(&stream->aliases);
	take_slot(stream, s, part, true);
	conn->host = stream;
	/* It may have come before accept(). */
	homad_stream_show_urgent(stream);
	return stream;
}

static void leave_slot(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_streams *s = stream->home;

	homad_limit_leave(stream);
	homad_stream_no_news(s, stream);
	stream->home = NULL;
	homa_list_del(&stream->of);
	homa_list_del(&stream->pending);
	s->num_open--;
	s->stream[stream->slot] = NULL;
	homad_slot_put(s, stream->slot);
	if (unlikely(s->app->lingers && homad_streams_idle(s))) {
		s->app->lingers = false;
		homa_list_del(&s->app->closing);
		homa_list_add_tail(&t->closing, &s->app->closing);
	}
}

void homad_stream_show_urgent(struct homad_stream *stream)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	u32 at, count = (u32)(stream->rx_urgent >> 32);

	if (!tas_urgent_at(&stream->conn, &at))
		return;
	/* 0 says that there was none. */
	count += count == UINT32_MAX ? 2 : 1;
	stream->rx_urgent = (u64)count << 32 | at;
	stream->state |= HOMA_STREAM_HAS_URGENT;
	__atomic_store_n(&slot->rx_urgent, stream->rx_urgent, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->state, stream->state, __ATOMIC_RELEASE);
}

void homad_stream_move(struct homad_thread *t, struct homad_stream *stream,
		       struct homad_streams *s)
{
	const u8 *from = homad_stream_buffer(stream, HOMAD_RX, stream->rx_map);
	int part = homad_policy_listen(s->policy, stream->conn.f.pair.local_port);
	struct homa_stream_slot *slot;

	leave_slot(t, stream);
	stream->rx_due = 0;
	take_slot(stream, s, part, false);
	/* The old buffer keeps its bytes until this round is over. */
	memcpy(homad_stream_buffer(stream, HOMAD_RX, stream->rx_map), from,
	       (size_t)1 << (stream->rx_map >> 32));
	slot = &s->slots[stream->slot];
	slot->error = (u32)-stream->conn.error;
	slot->rx_end = (u32)stream->rx_bytes;
	__atomic_store_n(&slot->state, stream->state, __ATOMIC_RELEASE);
}

void homad_stream_show_holders(const struct homad_stream *stream)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];

	__atomic_store_n(&slot->holders, stream->holds + !stream->left,
			 __ATOMIC_SEQ_CST);
}

void homad_stream_release(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_streams *s = stream->home;

	leave_slot(t, stream);
	if (unlikely(s->starved))
		homad_streams_accept(t, s);
}

/* ---- ports of listeners ---- */

static struct homa_list *leaving(struct homad_tcp *tcp, u16 port)
{
	return &tcp->leaving[port % HOMAD_LEAVING];
}

/* Hands a listener that is over to the slow path, which gives its port back to the kernel. */
static void give_up(struct homad_tcp *tcp, struct homad_tcp_listener *listener)
{
	HOMAD_PUSH(&tcp->gone, listener, next_gone);
	homad_tcp_call_slow(tcp);
}

/* Gives back a port whose listener has ended, when its last connection needs no segments:
 * until now the kernel, which does not know that connection, would have answered with
 * resets. */
HOMA_RARE static void leave_port(struct homad_tcp *tcp, u16 port)
{
	struct homa_list *head = leaving(tcp, port), *node = head->next;

	while (node != head) {
		struct homad_tcp_listener *listener =
			homa_container_of(node, struct homad_tcp_listener, of);

		node = node->next;
		if (listener->l.port != port)
			continue;
		homa_list_del(&listener->of);
		give_up(tcp, listener);
	}
}

void homad_stream_quiet(struct homad_thread *t, struct homad_stream *stream)
{
	u16 port = stream->conn.f.pair.local_port;

	if (!stream->came)
		return;
	stream->came = false;
	if (!--t->tcp->coming[port] && !homa_list_empty(leaving(t->tcp, port)))
		leave_port(t->tcp, port);
}

/* ---- the end of a stream ---- */

/* Tells the engine of bytes that the application has taken and its limit holds, because
 * they are not unread: the peer, for which no window will be opened any more, gets an
 * orderly end. */
HOMA_RARE static void take_held(struct homad_thread *t,
				struct homad_stream *stream)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	u32 taken = __atomic_load_n(&slot->rx_read, __ATOMIC_ACQUIRE) -
		    stream->rx_read;

	stream->rx_held = false;
	if (taken > tas_readable(&stream->conn))
		return;
	stream->rx_read += taken;
	tas_taken(homad_engine_of(t->tcp, stream), &stream->conn, taken);
}

void homad_stream_let_go(struct homad_thread *t, struct homad_stream *stream,
			 bool reset)
{
	stream->closed = true;
	if (unlikely(stream->rx_held))
		take_held(t, stream);
	homa_list_del(&stream->pending);
	homad_stream_no_news(stream->home, stream);
	/* The bytes that the limit holds go first. */
	if (!reset && stream->tx_end != stream->tx_last && stream->limit) {
		stream->shutting = true;
		return;
	}
	homad_stream_all_written(t, stream, reset);
}

void homad_stream_end(struct homad_thread *t, struct homad_stream *stream,
		      bool reset)
{
	struct tas_engine *engine = homad_engine_of(t->tcp, stream);
	struct tas_conn *conn = &stream->conn;

	if (reset)
		tas_abort(engine, conn);
	else
		tas_close(engine, conn);
	if (conn->f.state == TAS_CLOSED || conn->f.state == TAS_TIME_WAIT)
		homad_stream_quiet(t, stream);
	/* With bytes on their way the slot stays until TAS_EV_SENT or TAS_EV_FREE. */
	if (conn->f.state == TAS_CLOSED || !tas_unacked(conn))
		homad_stream_release(t, stream);
}

/* Has the application written bytes that the engine has not been asked for yet? The
 * kernel's send() returns only after that, so the peer is to have them before the reset. */
static bool may_send(const struct homad_stream *stream)
{
	return stream->conn.f.state >= TAS_ESTABLISHED &&
	       tas_unsent(&stream->conn) &&
	       homa_list_linked(&stream->conn.f.tx) &&
	       !stream->home->app->evicted;
}

bool homad_stream_may_reset(struct homad_thread *t,
			    const struct homad_stream *stream)
{
	const struct tas_engine *engine = homad_engine_of(t->tcp, stream);

	return engine->stray_tail - engine->stray_head < TAS_STRAYS / 2 ||
	       stream->conn.f.state == TAS_CLOSED;
}

void homad_stream_all_written(struct homad_thread *t,
			      struct homad_stream *stream, bool reset)
{
	struct tas_conn *conn = &stream->conn;

	stream->shutting = false;
	/* A stream with unread bytes is reset, too. */
	if ((reset || tas_readable(conn)) &&
	    (may_send(stream) || !homad_stream_may_reset(t, stream))) {
		stream->tx_last = stream->tx_end;
		stream->sent_before = conn->f.snd_nxt;
		homa_list_add_tail(&t->tcp->resetting, &stream->pending);
		return;
	}
	homad_stream_end(t, stream, reset);
}

/* ---- listeners ---- */

/* Is a new connection refused, because the rules changed after its listener began or because
 * a limit is reached? */
static bool is_refused(struct homad_thread *t,
		       const struct homad_policy *policy, int part)
{
	if (part < 0)
		return false;
	t->counters.tcp_denied += policy->part[part].rule.deny;
	return policy->part[part].rule.deny ||
	       homad_limit_full(t, policy->part[part].limit);
}

bool homad_listener_shared(const struct homad_tcp_listener *listener)
{
	return listener->tickets || listener->holds.next != listener->holds.prev;
}

/* Tells each holder of the listener once that a connection waits; it is told again after it
 * was told that none does. */
static void offer(struct homad_thread *t, struct homad_tcp_listener *listener)
{
	struct homa_list *node;

	homa_list_for_each(node, &listener->holds) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_listener);

		if (hold->told)
			continue;
		hold->told = hold->waiting = true;
		homa_list_del(&hold->emptied);
		homad_hold_news(t, hold);
	}
}

/* Tells the holders that know of connections which wait at the listener that none does any more.
 * Without this one would find the listener readable until it asks in vain, and who asks only
 * when it is readable, and waits then, would sleep where it did not mean to. */
static void withdraw(struct homad_thread *t, struct homad_tcp_listener *listener)
{
	struct homa_list *node;

	homa_list_for_each(node, &listener->holds) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_listener);

		if (likely(!hold->told))
			continue;
		hold->told = hold->waiting = false;
		homa_list_add_tail(&hold->s->emptied, &hold->emptied);
		homad_streams_touch(t, hold->s);
	}
}

/* Keeps a connection of a listener with several holders until one takes it; its bytes may
 * come meanwhile. */
static void park(struct homad_tcp_listener *listener, struct homad_stream *stream)
{
	stream->parked = true;
	homa_list_add_tail(&listener->parked, &stream->pending);
}

static void take_in(struct homad_thread *t, struct homad_tcp_listener *listener,
		    struct tas_conn *conn, int part, bool local)
{
	struct homad_stream *stream =
		homad_stream_adopt(t, listener->home, conn, part, local);

	/* This is the number of the only holder; with several holders it is set when one
	 * takes the connection. */
	stream->token = homa_container_of(listener->holds.next,
					  struct homad_hold, of_listener)
				->number;
	stream->accepted = true;
	/* Within this host other instances find the connection by its port, too. */
	stream->came = !local || t->steering;
	t->tcp->coming[listener->l.port] += stream->came;
	if (unlikely(homad_listener_shared(listener)))
		park(listener, stream);
	else
		homad_stream_news(t, stream, HOMAD_NEWS_ACCEPTED);
}

/* Takes a connection that was with @listener, or resets it. */
static void accept_one(struct homad_thread *t,
		       struct homad_tcp_listener *listener,
		       struct tas_conn *conn, bool local)
{
	const struct homad_policy *policy = listener->home->policy;
	int part = homad_policy_listen(policy, listener->l.port);

	if (unlikely(is_refused(t, policy, part)))
		tas_abort(local ? &t->tcp->local : &t->tcp->engine, conn);
	else
		take_in(t, listener, conn, part, local);
}

static void accept_from(struct homad_thread *t,
			struct homad_tcp_listener *listener, bool local)
{
	struct tas_engine *engine = local ? &t->tcp->local : &t->tcp->engine;
	struct tas_listener *l = local ? &listener->here : &listener->l;
	struct homad_streams *s = listener->home;
	struct tas_conn *conn;

	if (unlikely(!s))
		return;
	while (s->num_free && (conn = tas_accept(engine, l)))
		accept_one(t, listener, conn, local);
	if (!s->num_free && l->num_ready) {
		t->tcp->counters.slots_refused++;
		homad_streams_ask_later(t, s);
	}
	homad_streams_want(t, s);
	if (unlikely(!homa_list_empty(&listener->parked)))
		offer(t, listener);
}

void homad_conn_accept(struct homad_thread *t, struct tas_engine *engine,
		       struct tas_conn *conn)
{
	bool local = engine == &t->tcp->local;
	struct tas_listener *l = conn->listener;
	struct homad_tcp_listener *listener;

	if (!l)
		return;
	listener = local ? homa_container_of(l, struct homad_tcp_listener, here) :
			   homa_container_of(l, struct homad_tcp_listener, l);
	if (!listener->home || !listener->home->num_free)
		return;
	tas_accept_first(engine, conn);
	accept_one(t, listener, conn, local);
	homad_streams_want(t, listener->home);
	if (unlikely(!homa_list_empty(&listener->parked)))
		offer(t, listener);
}

void homad_listener_accept(struct homad_thread *t,
			   struct homad_tcp_listener *listener)
{
	accept_from(t, listener, true);
	if (!listener->loopback)
		accept_from(t, listener, false);
	if (homa_list_empty(&listener->parked))
		withdraw(t, listener);
}

void homad_listeners_accept(struct homad_thread *t)
{
	struct tas_listener *l;

	while ((l = tas_next_ready(&t->tcp->engine)))
		accept_from(t, homa_container_of(l, struct homad_tcp_listener, l),
			    false);
	while ((l = tas_next_ready(&t->tcp->local)))
		accept_from(t,
			    homa_container_of(l, struct homad_tcp_listener, here),
			    true);
}

void homad_streams_accept(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;

	s->starved = false;
	homa_list_for_each(node, &s->holding) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_holder);

		homad_listener_accept(t, hold->listener);
	}
}

void homad_listener_end(struct homad_thread *t,
			struct homad_tcp_listener *listener)
{
	struct homad_tcp *tcp = t->tcp;

	if (!listener->loopback)
		tas_unlisten(&tcp->engine, &listener->l);
	tas_unlisten(&tcp->local, &listener->here);
	listener->home = NULL;
	HOMA_WRITE_ONCE(listener->ended, true);
	/* The slow path closes the socket at once, because the port may belong to somebody
	 * else then. */
	HOMAD_PUSH(&tcp->deaf, listener, next_deaf);
	homad_tcp_call_slow(tcp);
	if (tcp->coming[listener->l.port])
		homa_list_add_tail(leaving(tcp, listener->l.port), &listener->of);
	else
		give_up(tcp, listener);
}

/* ---- what the slow path asks for ---- */

int homad_streams_begin(struct homad_thread *t, void *arg)
{
	struct homad_streams_open *open = arg;
	struct homad_streams *s = open->streams;

	if (open->app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	if (open->app->streams)
		return -EISCONN;
	s->app = open->app;
	homa_list_init(&s->open);
	homa_list_init(&s->news);
	homa_list_init(&s->aliases);
	homa_list_init(&s->alias_news);
	homa_list_init(&s->holding);
	homa_list_init(&s->hold_news);
	homa_list_init(&s->emptied);
	homa_list_init(&s->touched);
	open->app->streams = s;
	/* It moves with its instance (session.c). */
	homa_list_del(&open->app->member);
	homa_list_add_tail(&t->apps, &open->app->member);
	homad_now(t);
	homad_poll_app(t, open->app);
	return 0;
}

int homad_streams_backed(struct homad_thread *t, void *arg)
{
	struct homad_streams_back *back = arg;
	struct homad_streams *s = back->streams;

	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	s->refused_at = s->backed < back->backed ? 0 : t->ctx.now;
	if (s->refused_at && s->starved)
		t->tcp->retry_at =
			homa_min_u64(t->tcp->retry_at, t->ctx.now + REFUSED_NS);
	for (; s->backed < back->backed; s->backed++) {
		memset(s->backing[s->backed].have, HOMA_STREAM_MIN_SHIFT,
		       HOMAD_BUFFERS);
		homad_slot_put(s, s->backed);
	}
	__atomic_store_n(&s->asked, false, __ATOMIC_RELEASE);
	if (s->app && s->starved && s->app->phase == HOMAD_APP_OPEN) {
		homad_tcp_round(t);
		homad_streams_accept(t, s);
	}
	return 0;
}
