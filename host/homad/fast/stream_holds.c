// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who takes the connections of a listener. With one holder they are pushed: each is his as
 * soon as it is open. With several they are parked, in slots of the listener's home, and go
 * to whoever asks first, so that nobody who never calls accept() can keep one. Nothing was
 * read from a parked connection, and nothing written; so it moves to the one that takes it,
 * with a copy of one buffer, and no process sees memory of another one's connections.
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

void homad_hold_begin(struct homad_hold *hold, struct homad_streams *s,
		      struct homad_tcp_listener *listener)
{
	hold->listener = listener;
	hold->s = s;
	hold->number = ++s->listened;
	hold->joined = hold->told = hold->waiting = false;
	homa_list_init(&hold->pending);
	homa_list_init(&hold->emptied);
	homa_list_add_tail(&listener->holds, &hold->of_listener);
	homa_list_add_tail(&s->holding, &hold->of_holder);
	s->num_holding++;
}

struct homad_hold *homad_hold_find(const struct homad_streams *s, u64 number)
{
	struct homa_list *node;

	homa_list_for_each(node, &s->holding) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_holder);

		if (hold->number == number)
			return hold;
	}
	return NULL;
}

/* Chooses the holder whose slots the listener's connections get from now on; without one
 * they wait. */
static void choose_home(struct homad_tcp_listener *listener)
{
	static const u32 none;
	struct homa_list *node = homa_list_first(&listener->holds);

	listener->home =
		node ? homa_container_of(node, struct homad_hold, of_listener)->s :
		       NULL;
	listener->l.places = listener->home ? &listener->home->num_free : &none;
	listener->here.places = listener->l.places;
}

/* Ends a listener: connections that nobody has accepted are reset, those from this host too,
 * however many they are. */
static void end_listener(struct homad_thread *t,
			 struct homad_tcp_listener *listener)
{
	struct homa_list *node;

	while ((node = homa_list_first(&listener->parked))) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, pending);

		stream->parked = false;
		homad_stream_let_go(t, stream, true);
		homad_tcp_local_reset(t);
	}
	homad_listener_end(t, listener);
}

void homad_hold_again(struct homad_thread *t, struct homad_tcp_listener *listener)
{
	choose_home(listener);
	homad_listener_accept(t, listener);
}

/* Called when the listener has lost a holder or a ticket: ends it if nobody is left. */
static void lost_one(struct homad_thread *t, struct homad_tcp_listener *listener)
{
	if (homa_list_empty(&listener->holds) && !listener->tickets) {
		end_listener(t, listener);
		return;
	}
	homad_hold_again(t, listener);
}

void homad_hold_leave(struct homad_thread *t, struct homad_hold *hold)
{
	struct homad_tcp_listener *listener = hold->listener;

	homa_list_del(&hold->of_listener);
	homa_list_del(&hold->of_holder);
	homa_list_del(&hold->pending);
	homa_list_del(&hold->emptied);
	hold->s->num_holding--;
	hold->listener = NULL;
	if (hold->taken)
		homa_list_add_tail(&hold->s->idle_holds, &hold->of_holder);
	lost_one(t, listener);
}

void homad_ticket_listener(struct homad_thread *t,
			   struct homad_tcp_listener *listener, int by)
{
	listener->tickets += (u32)by;
	if (by < 0)
		lost_one(t, listener);
}

/* Resets a stream for whose bytes there is no memory in its new home. */
static void refuse(struct homad_thread *t, struct homad_stream *stream)
{
	homa_list_del(&stream->pending);
	stream->parked = false;
	t->tcp->counters.no_place++;
	homad_stream_let_go(t, stream, true);
}

/* Prepares a slot of @s for @stream. Returns 0; -EAGAIN if the slow path is about to answer for
 * memory; -ENOSPC if that has said no or a stream has to end before (the listener is offered again
 * then); -ENOMEM if there is no memory for a buffer as large as @stream's. */
static int make_place(struct homad_thread *t, struct homad_streams *s,
		      const struct homad_stream *stream)
{
	int rc = homad_slot_prepare(t, s, (u8)(stream->rx_map >> 32));

	homad_streams_want(t, s);
	if (rc == -EAGAIN || rc == -ENOSPC)
		s->starved = true;
	if (rc == -ENOSPC && __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE))
		rc = -EAGAIN;
	return rc;
}

int homad_hold_take(struct homad_thread *t, struct homad_hold *hold)
{
	struct homad_tcp_listener *listener = hold->listener;
	struct homad_streams *s = hold->s;
	struct homa_list *node;
	bool refused = false;
	int rc;

	while ((node = homa_list_first(&listener->parked))) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, pending);

		rc = stream->home == s ? 0 : make_place(t, s, stream);
		if (rc == -EAGAIN)
			return rc;
		if (rc == -ENOSPC)
			break;
		if (rc) {
			refuse(t, stream);
			refused = true;
			continue;
		}
		homa_list_del(&stream->pending);
		if (stream->home != s)
			homad_stream_move(t, stream, s);
		stream->parked = false;
		stream->token = hold->number;
		homad_stream_news(t, stream, HOMAD_NEWS_ACCEPTED);
		/* There is a place now for a connection that waits in the engine. */
		homad_listener_accept(t, listener);
		return 0;
	}
	hold->told = false;
	homa_list_del(&hold->emptied);
	/* There are places now for connections that wait in the engine; if none does, the others
	 * hear that. */
	if (unlikely(refused))
		homad_listener_accept(t, listener);
	return -ENOENT;
}

const char *homad_stream_return(struct homad_thread *t,
				struct homad_stream *stream)
{
	struct homad_hold *hold =
		stream->accepted ? homad_hold_find(stream->home, stream->token) :
				   NULL;

	if (!hold)
		return "a stream goes back to a listener that the attachment does not have";
	/* Positions wrap, also to 0: what counts bytes does not. A limit may hold the first bytes
	 * that were taken. */
	if (stream->holds || stream->shutting || stream->rx_held ||
	    stream->rx_read || stream->rx_bytes >> 32 || stream->tx_last ||
	    stream->tx_bytes)
		return "a stream goes back to its listener after it was used";
	homa_list_del(&stream->pending);
	homad_stream_no_news(stream->home, stream);
	stream->parked = true;
	homa_list_add_tail(&hold->listener->parked, &stream->pending);
	homad_listener_accept(t, hold->listener);
	return NULL;
}
