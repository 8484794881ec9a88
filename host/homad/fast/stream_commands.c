// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What applications ask of their streams. As with messages, an entry is copied once and
 * only the copy is looked at, positions are read once and checked against homad's own,
 * and what a correct library cannot produce ends the attachment.
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_connect.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "streams.h"
#include "tas_call.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

/* The most commands of an attachment that are still done when it ends. */
#define LAST_COMMANDS 4096u

static const char wrong_slot[] =
	"a command for a stream that the attachment does not have";
static const char wrong_urgent[] =
	"an urgent byte far behind those that the buffer holds";

static struct homad_stream *named(struct homad_streams *s,
				  const struct homa_stream_command *c)
{
	struct homad_stream *stream =
		c->slot < s->num_slots ? s->stream[c->slot] : NULL;

	return stream && stream->generation == c->generation && !stream->closed &&
			       !stream->left && !stream->parked ?
		       stream :
		       NULL;
}

/* Returns the alias that the command names, of a stream that is another attachment's. */
static struct homad_alias *named_alias(struct homad_streams *s,
				       const struct homa_stream_command *c)
{
	struct homad_alias *alias =
		c->slot < s->num_slots ? &s->alias[c->slot] : NULL;

	return alias && alias->stream && alias->generation == c->generation ?
		       alias :
		       NULL;
}

/* ---- positions ---- */

static const char *take_written(struct homad_thread *t,
				struct homad_stream *stream,
				const struct homa_stream_slot *slot)
{
	u32 end = stream->shutting ?
			  stream->tx_last :
			  __atomic_load_n(&slot->tx_end, __ATOMIC_ACQUIRE);
	u64 map = __atomic_load_n(&slot->tx_map, __ATOMIC_ACQUIRE);
	u32 shift = (u32)(map >> 32), written = end - stream->tx_end;

	if (!written)
		return NULL;
	if (shift < HOMA_STREAM_MIN_SHIFT || shift > stream->tx_shift)
		return "a send buffer that has no memory";
	if (written > (1u << shift) ||
	    tas_unacked(&stream->conn) > (1u << shift) - written)
		return "more bytes to send than the buffer holds";
	stream->tx_last = end;
	if (unlikely(stream->limit)) {
		written = homad_limit_send(t, stream, written);
		if (!written) {
			homad_stream_fills(t, stream);
			return NULL;
		}
	}
	stream->tx_map = map;
	stream->tx_end += written;
	stream->tx_bytes += written;
	HOMA_WRITE_ONCE(stream->home->tx_bytes, stream->home->tx_bytes + written);
	/* After its end the connection needs no bytes, and the application is told of the
	 * end. */
	tas_written(homad_engine_of(t->tcp, stream), &stream->conn, written);
	if (shift < stream->home->tx_most)
		homad_stream_fills(t, stream);
	return NULL;
}

static const char *take_read(struct homad_thread *t, struct homad_stream *stream,
			     const struct homa_stream_slot *slot)
{
	u32 read = __atomic_load_n(&slot->rx_read, __ATOMIC_ACQUIRE);
	u32 taken = read - stream->rx_read;

	if (!taken)
		return NULL;
	if (taken > tas_readable(&stream->conn))
		return "more bytes taken than have arrived";
	if (unlikely(stream->limit)) {
		u32 some = homad_limit_open(t, stream, taken);

		stream->rx_held = some < taken;
		taken = some;
	}
	stream->rx_read += taken;
	tas_taken(homad_engine_of(t->tcp, stream), &stream->conn, taken);
	if (stream->conn.f.rx_shift < stream->home->rx_most)
		homad_stream_keeps_up(t, stream, taken);
	if (unlikely(stream->rx_due))
		homad_stream_widen(t, stream);
	return NULL;
}

/* Handles a RING; @own: the slot of the attachment that rings. */
static const char *ring(struct homad_thread *t, struct homad_stream *stream,
			struct homa_stream_slot *own)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const char *why;

	__atomic_exchange_n(&own->rung, 0, __ATOMIC_SEQ_CST);
	/* Bytes taken come first, because a reply carries the window with it. */
	why = take_read(t, stream, slot);
	return why ? why : take_written(t, stream, slot);
}

static void shut(struct homad_thread *t, struct homad_stream *stream)
{
	if (stream->tx_end != stream->tx_last && stream->limit)
		stream->shutting = true;
	else
		tas_shut_send(homad_engine_of(t->tcp, stream), &stream->conn);
}

const char *homad_stream_goes_on(struct homad_thread *t,
				 struct homad_stream *stream, bool *waits)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	const char *why = NULL;

	stream->rx_held = *waits = false;
	/* Bytes that were written for a connection that has ended are dropped. */
	if (stream->conn.f.state == TAS_CLOSED)
		stream->tx_end = stream->tx_last;
	else if (!stream->closed)
		why = take_read(t, stream, slot);
	if (!why && stream->tx_end != stream->tx_last)
		why = take_written(t, stream, slot);
	if (why && !stream->closed)
		return why;
	*waits = !why && (stream->tx_end != stream->tx_last || stream->rx_held);
	if (why || (stream->tx_end == stream->tx_last && stream->shutting &&
		    stream->closed)) {
		homad_stream_all_written(t, stream, why);
	} else if (stream->tx_end == stream->tx_last && stream->shutting) {
		stream->shutting = false;
		tas_shut_send(homad_engine_of(t->tcp, stream), &stream->conn);
	}
	return NULL;
}

/* ---- the rest ---- */

/* Sets how many connections may wait at a listener. Those that wait already stay. */
static void set_backlog(struct homad_tcp_listener *listener, u32 most)
{
	listener->l.backlog = listener->here.backlog =
		homa_min_u32(homa_max_u32(most, 1), HOMAD_BACKLOG_MOST);
}

static const char *of_listener(struct homad_thread *t, struct homad_streams *s,
			       const struct homa_stream_command *c)
{
	u32 number = c->slot;
	struct homad_hold *hold = homad_hold_find(s, number);
	u16 op = c->op;
	int rc;

	/* Another thread of the program may have ended the listener meanwhile. */
	if (!hold && op == HOMA_STREAM_BACKLOG && number && number <= s->listened)
		return NULL;
	if (!hold)
		return "a command for a listener that the attachment does not have";
	if (op == HOMA_STREAM_BACKLOG) {
		set_backlog(hold->listener, c->value);
		return NULL;
	}
	/* The last event of a listener comes after that of each connection that came to
	 * it. */
	if (unlikely(!homad_streams_answerable(t, s, op == HOMA_STREAM_UNLISTEN)))
		return homad_next_round;
	if (op == HOMA_STREAM_UNLISTEN) {
		homad_hold_leave(t, hold);
		homad_streams_tell(t, s, HOMA_STREAM_UNLISTENED, number, 0);
		return NULL;
	}
	/* An attachment that has ended meanwhile takes no connection from the others. */
	rc = s->app->phase == HOMAD_APP_OPEN ? homad_hold_take(t, hold) : 0;
	if (rc == -EAGAIN)
		return homad_next_round;
	if (rc)
		homad_streams_tell(t, s, HOMA_STREAM_NOTHING, number, 0);
	return NULL;
}

/* Others may wait for what the command has ended or changed. */
static void tell_others(struct homad_thread *t, struct homad_stream *stream)
{
	if (unlikely(stream->holds))
		homad_stream_news(t, stream, HOMAD_NEWS_CHANGED);
}

static const char *of_stream(struct homad_thread *t, struct homad_stream *stream,
			     struct homa_stream_slot *own,
			     const struct homa_stream_command *c)
{
	const char *why = NULL;

	switch (c->op) {
	case HOMA_STREAM_RING:
		return ring(t, stream, own);
	case HOMA_STREAM_SHUT:
		why = ring(t, stream, own);
		if (!why)
			shut(t, stream);
		tell_others(t, stream);
		return why;
	case HOMA_STREAM_CLOSE:
		return ring(t, stream, own);
	case HOMA_STREAM_ABORT:
		return NULL;
	case HOMA_STREAM_OPTIONS:
		homad_stream_set_options(t, stream, c->value);
		tell_others(t, stream);
		return NULL;
	case HOMA_STREAM_PATIENCE:
		return homad_stream_set_patience(t, stream, c->token, c->value);
	case HOMA_STREAM_URGENT:
		return tas_urge(homad_engine_of(t->tcp, stream), &stream->conn,
				c->value) == TAS_EINVAL ?
			       wrong_urgent :
			       NULL;
	}
	return "a command that does not exist";
}

static const char *command(struct homad_thread *t, struct homad_streams *s,
			   const struct homa_stream_command *c)
{
	bool ends = c->op == HOMA_STREAM_CLOSE || c->op == HOMA_STREAM_ABORT;
	bool reset = c->op == HOMA_STREAM_ABORT;
	struct homad_stream *stream;
	struct homad_alias *alias;
	const char *why;

	if (c->op == HOMA_STREAM_CONNECT)
		return homad_stream_connect(t, s, c);
	if (c->op == HOMA_STREAM_UNLISTEN || c->op == HOMA_STREAM_ACCEPT ||
	    c->op == HOMA_STREAM_BACKLOG)
		return of_listener(t, s, c);
	stream = named(s, c);
	if (likely(stream)) {
		if (c->op == HOMA_STREAM_RETURN)
			return homad_stream_return(t, stream);
		why = of_stream(t, stream, &s->slots[c->slot], c);
		if (!why && ends) {
			homad_stream_leave(t, stream, reset);
			/* If the attachment releases many connections of this host, all
			 * their peers hear of that. */
			homad_tcp_local_reset(t);
		}
		return why;
	}
	alias = named_alias(s, c);
	if (!alias)
		return wrong_slot;
	why = of_stream(t, alias->stream, &s->slots[c->slot], c);
	if (!why && ends) {
		homad_alias_leave(t, alias, reset);
		homad_tcp_local_reset(t);
	}
	return why;
}

bool homad_stream_commands_waiting(const struct homad_streams *s)
{
	if (!s->stuck &&
	    __atomic_load_n(&s->area->command.tail, __ATOMIC_ACQUIRE) != s->head)
		return true;
	return homad_streams_untold(s);
}

const char *homad_stream_commands(struct homad_thread *t,
				  struct homad_streams *s, u32 budget, u32 *done)
{
	u32 tail = __atomic_load_n(&s->area->command.tail, __ATOMIC_ACQUIRE);
	u32 n = tail - s->head;
	const char *why = NULL;

	*done = 0;
	homad_tcp_enter(t, s->tcp);
	if (unlikely(s->unjoined || !homa_list_empty(&s->news) ||
		     !homa_list_empty(&s->alias_news) ||
		     !homa_list_empty(&s->hold_news) ||
		     !homa_list_empty(&s->emptied)))
		homad_streams_touch(t, s);
	/* The command that waited for room may have been taken back. */
	s->stuck = false;
	if (!n)
		return NULL;
	if (n > s->entries)
		return "command ring of streams: impossible tail";
	s->ports_looked = 0;
	while (*done < n && !why &&
	       *done + s->ports_looked / HOMAD_PORTS_PER_COMMAND < budget) {
		const struct homa_stream_command *entry =
			&s->commands[s->head++ & (s->entries - 1)];
		struct homa_stream_command c;

		memcpy(&c, entry, sizeof(c));
		/* From here on only the copy counts. */
		__asm__ volatile("" ::: "memory");
		why = command(t, s, &c);
		++*done;
	}
	if (unlikely(why == homad_next_round)) {
		s->head--;
		--*done;
	}
	/* Who waits until a command was taken finds the answers that there are. */
	if (s->tail != s->told)
		__atomic_store_n(&s->area->event.tail, s->tail, __ATOMIC_RELEASE);
	__atomic_store_n(&s->area->command.head, s->head, __ATOMIC_RELEASE);
	/* A user who has nearly all ports pays for the search, not the others of his thread. */
	*done += s->ports_looked / HOMAD_PORTS_PER_COMMAND;
	return why;
}

/* Does what was asked for before the end, such as sending bytes that were written. homad
 * may also not have been told of bytes that were read. */
static void take_last(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;
	u32 done;

	homad_stream_commands(t, s, LAST_COMMANDS, &done);
	homa_list_for_each(node, &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);

		if (!stream->closed && !stream->left && !stream->parked &&
		    !stream->opening)
			ring(t, stream, &s->slots[stream->slot]);
	}
	homa_list_for_each(node, &s->aliases) {
		struct homad_alias *alias =
			homa_container_of(node, struct homad_alias, of_holder);

		ring(t, alias->stream, &s->slots[alias->slot]);
	}
}

void homad_streams_close(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;

	homad_tcp_enter(t, s->tcp);
	homad_tcp_round(t);
	if (!s->app->evicted)
		take_last(t, s);
	homad_shares_end(t, s);
	node = s->open.next;
	while (node != &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);

		node = node->next;
		if (!stream->closed && !stream->parked && !stream->left) {
			homad_stream_leave(t, stream,
					   s->app->evicted || stream->resets);
			homad_tcp_local_reset(t);
		}
	}
	homa_list_del(&s->touched);
}

int homad_listener_begin(struct homad_thread *t, void *arg)
{
	struct homad_tcp_listener *listener = arg;
	struct homad_streams *s = listener->home;
	u32 *half, *ready;
	int rc;

	if (s->app->phase != HOMAD_APP_OPEN || s->app->evicted)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	homad_tcp_round(t);
	listener->l.rx_shift = HOMAD_STREAM_SHIFT;
	listener->l.rx_max = 1u << s->rx_most;
	listener->l.places = &s->num_free;
	/* Connections from this host do not count against the limits for those of other hosts. */
	half = listener->here.shared_half;
	ready = listener->here.shared_ready;
	listener->here = listener->l;
	listener->here.shared_half = half;
	listener->here.shared_ready = ready;
	rc = tas_listen(&t->tcp->local, &listener->here);
	if (rc)
		return rc;
	rc = listener->loopback ? 0 : tas_listen(&t->tcp->engine, &listener->l);
	if (rc) {
		tas_unlisten(&t->tcp->local, &listener->here);
		return rc;
	}
	homa_list_init(&listener->holds);
	homa_list_init(&listener->parked);
	homad_hold_begin(&listener->first, s, listener);
	return 0;
}

int homad_ticket_fill(struct homad_thread *t, void *arg)
{
	const struct homad_sharing *sharing = arg;
	struct homad_streams *s = sharing->s;

	if (s->app->phase != HOMAD_APP_OPEN || s->app->evicted)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	homad_tcp_round(t);
	/* The commands before that, such as closing streams or giving connections back,
	 * come first. */
	if ((s32)(sharing->tail - s->head) > 0)
		return -EAGAIN;
	return homad_ticket_add_all(t, sharing);
}
