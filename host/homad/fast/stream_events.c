// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What applications are told of their streams: words of the slot first, then, once until
 * the application has looked, an event. Events that find no room in the ring wait at
 * their streams. A command that is answered by an event of no stream is only taken when
 * there is room for that answer; until then it waits in the application's own ring, with
 * those behind it. So nothing is lost and nothing grows.
 */
#include <unistd.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_stream.h"

/* ---- the engine's events ---- */

/* Counts the bytes that have come in order since it was called last. Returns the position up to
 * which they have; @rx_bytes is the same position without wrapping. */
static u32 arrived(struct homad_stream *stream)
{
	u32 end = stream->rx_read + tas_readable(&stream->conn);
	u32 more = end - (u32)stream->rx_bytes;

	stream->rx_bytes += more;
	HOMA_WRITE_ONCE(stream->home->rx_bytes, stream->home->rx_bytes + more);
	return end;
}

static void show_words(struct homad_stream *stream, u32 events)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const struct tas_conn *conn = &stream->conn;
	u32 state = 0;

	/* The application hears of an urgent byte before it sees it. */
	if (unlikely(events & TAS_EV_URGENT))
		homad_stream_show_urgent(stream);
	if (events & TAS_EV_READABLE)
		__atomic_store_n(&slot->rx_end, arrived(stream),
				 __ATOMIC_RELEASE);
	if (events & TAS_EV_WRITABLE)
		__atomic_store_n(&slot->tx_free,
				 stream->tx_end - tas_unacked(conn),
				 __ATOMIC_RELEASE);
	if (events & TAS_EV_OPEN)
		state |= HOMA_STREAM_IS_OPEN;
	if (events & TAS_EV_END)
		state |= HOMA_STREAM_HAS_END;
	if (events & TAS_EV_ERROR) {
		slot->error = (u32)-conn->error;
		state |= HOMA_STREAM_HAS_ERROR;
	}
	if (state) {
		stream->state |= state;
		__atomic_store_n(&slot->state, stream->state, __ATOMIC_RELEASE);
	}
}

static bool conn_is_over(const struct homad_stream *stream)
{
	return stream->closed && stream->conn.f.state == TAS_TIME_WAIT;
}

static void event_of(struct homad_thread *t, struct tas_engine *engine,
		     struct homad_stream *stream, u32 events)
{
	u32 news = HOMAD_NEWS_CHANGED;

	if ((events & TAS_EV_FREE) || conn_is_over(stream))
		homad_stream_quiet(t, stream);
	if (events & TAS_EV_FREE) {
		if (stream->home)
			homad_stream_release(t, stream);
		tas_add_spare(engine, &stream->conn);
		return;
	}
	if (!stream->home)
		return;
	if (stream->closed) {
		if ((events & TAS_EV_SENT) && !stream->shutting)
			homad_stream_release(t, stream);
		return;
	}
	show_words(stream, events);
	if (stream->conn.f.rx_shift < HOMAD_USUAL_SHIFT &&
	    (events & TAS_EV_READABLE))
		homad_stream_piles_up(t, stream);
	if (stream->opening && (events & (TAS_EV_OPEN | TAS_EV_ERROR))) {
		stream->opening = false;
		news = events & TAS_EV_ERROR ? HOMAD_NEWS_FAILED :
					       HOMAD_NEWS_OPENED;
	}
	homad_stream_news(t, stream, news);
}

static void events_of(struct homad_thread *t, struct tas_engine *engine)
{
	struct tas_conn *conn;
	u32 events;

	while ((conn = tas_next_event(engine, &events)))
		event_of(t, engine, homad_stream_of(conn), events);
}

void homad_stream_events(struct homad_thread *t)
{
	events_of(t, &t->tcp->engine);
	events_of(t, &t->tcp->local);
}

/* ---- the event ring ---- */

/* Writes facts of the connection as of now to the slot; this is done once for each event. */
static void show_facts(const struct homad_stream *stream,
		       struct homa_stream_slot *slot)
{
	const struct tas_conn *conn = &stream->conn;
	u32 left = conn->f.snd_end - conn->f.snd_nxt;

	/* A FIN that was not sent is no byte. */
	left -= left && (conn->f.flags & TAS_F_FIN);
	__atomic_store_n(&slot->tx_sent, stream->tx_end - left, __ATOMIC_RELAXED);
	slot->mss = conn->f.mss;
	slot->cwnd = conn->f.cwnd;
	slot->rtt_us = (u32)(conn->srtt / 1000);
	slot->retransmits = conn->resent;
}

static bool has_room(const struct homad_streams *s)
{
	u32 head = __atomic_load_n(&s->area->event.head, __ATOMIC_ACQUIRE);

	/* An impossible head counts as a full ring, which only harms the application
	 * itself. */
	return s->tail - head < s->entries;
}

static void put(struct homad_streams *s, u16 kind,
		const struct homad_stream *stream)
{
	struct homa_stream_event *event =
		&s->events[s->tail++ & (s->entries - 1)];

	event->kind = kind;
	event->error = kind == HOMA_STREAM_FAILED ? (u32)-stream->conn.error : 0;
	event->slot = stream->slot;
	event->generation = stream->generation;
	event->token = stream->token;
	show_facts(stream, &s->slots[stream->slot]);
}

/* Writes one event of @stream, if it needs one. */
static void put_news(struct homad_thread *t, struct homad_streams *s,
		     struct homad_stream *stream)
{
	struct homa_stream_slot *slot = &s->slots[stream->slot];
	u32 news = stream->news;

	homad_stream_no_news(s, stream);
	if (news & HOMAD_NEWS_ACCEPTED) {
		put(s, HOMA_STREAM_ACCEPTED, stream);
		s->accepted_to = s->tail;
	} else if (news & HOMAD_NEWS_OPENED) {
		put(s, HOMA_STREAM_OPENED, stream);
	} else if (news & HOMAD_NEWS_FAILED) {
		put(s, HOMA_STREAM_FAILED, stream);
		/* The application never had the stream, so it does not close it. */
		homad_stream_let_go(t, stream, false);
	} else if (!__atomic_exchange_n(&slot->told, 1, __ATOMIC_SEQ_CST)) {
		put(s, HOMA_STREAM_CHANGED, stream);
	}
}

/* Writes an event of a stream or listener that other attachments have, too. */
static void put_named(struct homad_streams *s, u16 kind, u32 slot,
		      u32 generation, u64 token)
{
	struct homa_stream_event *event =
		&s->events[s->tail++ & (s->entries - 1)];

	event->kind = kind;
	event->error = 0;
	event->slot = slot;
	event->generation = generation;
	event->token = token;
}

static void put_alias(struct homad_streams *s, struct homad_alias *alias)
{
	if (alias->joined) {
		alias->joined = false;
		put_named(s, HOMA_STREAM_JOINED, alias->slot, alias->generation,
			  alias->name);
	} else if (!__atomic_exchange_n(&s->slots[alias->slot].told, 1,
					__ATOMIC_SEQ_CST)) {
		put_named(s, HOMA_STREAM_CHANGED, alias->slot,
			  alias->generation, 0);
	}
	if (alias->stream)
		show_facts(alias->stream,
			   &alias->stream->home->slots[alias->stream->slot]);
}

/* Writes an event of a listener; returns false if another one has to follow. */
static bool put_hold(struct homad_streams *s, struct homad_hold *hold)
{
	if (hold->joined) {
		hold->joined = false;
		put_named(s, HOMA_STREAM_LISTENING, hold->number, 0, hold->name);
	} else if (hold->waiting) {
		hold->waiting = false;
		put_named(s, HOMA_STREAM_WAITING, 0, 0, hold->number);
	}
	return !hold->waiting;
}

static void wake(struct homad_streams *s)
{
	u8 one = 1;

	if (!__atomic_load_n(&s->area->armed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&s->area->armed, 0, __ATOMIC_RELAXED);
	s->app->counters.wakeups++;
	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		return; /* the pipe is full, so it is readable */
}

HOMA_RARE static void deliver_shared(struct homad_streams *s)
{
	struct homa_list *node;

	if (s->unjoined && has_room(s)) {
		put_named(s, HOMA_STREAM_UNJOINED, 0, 0, s->unjoined);
		s->unjoined = 0;
	}
	/* Listeners come first, so that an application that is told of a connection knows
	 * its listener. */
	while ((node = homa_list_first(&s->hold_news)) && has_room(s))
		if (put_hold(s, homa_container_of(node, struct homad_hold,
						  pending)))
			homa_list_del(node);
	while ((node = homa_list_first(&s->alias_news)) && has_room(s)) {
		homa_list_del(node);
		put_alias(s,
			  homa_container_of(node, struct homad_alias, pending));
	}
}

/* Tells of listeners at which no connection waits any more, behind the connections that were taken
 * there: an application that hears that there is none does not wait for one. */
HOMA_RARE static void deliver_emptied(struct homad_streams *s)
{
	struct homa_list *node;

	while (homa_list_empty(&s->news) &&
	       (node = homa_list_first(&s->emptied)) && has_room(s)) {
		homa_list_del(node);
		put_named(s, HOMA_STREAM_NOTHING, 1, 0,
			  homa_container_of(node, struct homad_hold, emptied)->number);
	}
}

/* Events that find no room are tried again when the rings are looked at. */
static void deliver(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;

	if (unlikely(s->unjoined || !homa_list_empty(&s->hold_news) ||
		     !homa_list_empty(&s->alias_news)))
		deliver_shared(s);

	while ((node = homa_list_first(&s->news))) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, pending);

		if (!has_room(s))
			break;
		put_news(t, s, stream);
		if (!stream->news)
			homa_list_del(&stream->pending);
	}
	if (unlikely(!homa_list_empty(&s->emptied)))
		deliver_emptied(s);
	if (s->tail != s->told) {
		__atomic_store_n(&s->area->event.tail, s->tail, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		t->counters.completions += s->tail - s->told;
		s->told = s->tail;
		wake(s);
	}
}

bool homad_streams_answerable(struct homad_thread *t, struct homad_streams *s,
			      bool in_order)
{
	if (unlikely(s->app->phase != HOMAD_APP_OPEN))
		return true;
	if (in_order && unlikely(!homa_list_empty(&s->news)))
		deliver(t, s);
	s->stuck = !has_room(s);
	return !s->stuck;
}

void homad_streams_tell(struct homad_thread *t, struct homad_streams *s,
			u16 kind, u64 token, int error)
{
	/* The attachment is closing, so nobody asks any more. */
	if (unlikely(s->app->phase != HOMAD_APP_OPEN))
		return;
	put_named(s, kind, 0, 0, token);
	s->events[(s->tail - 1) & (s->entries - 1)].error = (u32)-error;
	homad_streams_touch(t, s);
}

void homad_streams_tell_begun(const struct homad_stream *stream)
{
	struct homad_streams *s = stream->home;

	if (unlikely(s->app->phase != HOMAD_APP_OPEN) || !has_room(s))
		return;
	put_named(s, HOMA_STREAM_BEGUN, stream->slot, stream->generation,
		  stream->token);
}

bool homad_streams_untold(const struct homad_streams *s)
{
	return (s->stuck || s->unjoined || !homa_list_empty(&s->news) ||
		!homa_list_empty(&s->alias_news) ||
		!homa_list_empty(&s->hold_news) ||
		!homa_list_empty(&s->emptied)) &&
	       has_room(s);
}

void homad_streams_deliver(struct homad_thread *t)
{
	struct homa_list *node = t->tcp->touched.next;

	while (node != &t->tcp->touched) {
		struct homad_streams *s =
			homa_container_of(node, struct homad_streams, touched);

		node = node->next;
		deliver(t, s);
		homa_list_del(&s->touched);
	}
}
