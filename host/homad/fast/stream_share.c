// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams of several attachments: tickets, which hold what a process has for a child of
 * fork(), the aliases that the child gets for it, and how each holder lets go. What a ticket
 * is for cannot end before it is redeemed or void, so the parent may close its own at once.
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "stream_grow.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

/* ---- letting go ---- */

/* Opens the locks of a stream that a process held when it died. */
static void open_locks(const struct homad_stream *stream,
		       const struct homad_streams *s)
{
	struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	u32 id = s->id;

	__atomic_compare_exchange_n(&slot->rx_lock, &id, 0, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	id = s->id;
	__atomic_compare_exchange_n(&slot->tx_lock, &id, 0, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void homad_stream_leave(struct homad_thread *t, struct homad_stream *stream,
			bool reset)
{
	if (likely(!stream->holds)) {
		homad_stream_let_go(t, stream, reset);
		return;
	}
	homa_list_del(&stream->pending);
	homad_stream_no_news(stream->home, stream);
	stream->left = true;
	open_locks(stream, stream->home);
	homad_stream_show_holders(stream);
}

/* Takes one hold from the stream, and releases the stream if it was the last and the home
 * has left. */
static void unhold(struct homad_thread *t, struct homad_stream *stream, bool reset)
{
	stream->holds--;
	homad_stream_show_holders(stream);
	if (!stream->left || stream->holds)
		return;
	stream->left = false;
	homad_stream_let_go(t, stream, reset);
}

void homad_alias_leave(struct homad_thread *t, struct homad_alias *alias,
		       bool reset)
{
	struct homad_stream *stream = alias->stream;
	struct homad_streams *s = alias->s;

	homa_list_del(&alias->of_stream);
	homa_list_del(&alias->of_holder);
	homa_list_del(&alias->pending);
	alias->stream = NULL;
	s->num_aliases--;
	homad_slot_put(s, alias->slot);
	open_locks(stream, s);
	unhold(t, stream, reset);
}

/* ---- tickets ---- */

static bool add(struct homad_ticket *ticket, struct homad_stream *stream,
		struct homad_tcp_listener *listener, u64 name)
{
	if (ticket->num == ticket->most)
		return false;
	ticket->entry[ticket->num++] = (struct homad_ticket_entry){
		.stream = stream, .listener = listener, .name = name
	};
	return true;
}

static bool add_stream(struct homad_ticket *ticket, struct homad_stream *stream,
		       u32 slot, u32 generation)
{
	if (!add(ticket, stream, NULL, (u64)generation << 32 | slot))
		return false;
	stream->holds++;
	homad_stream_show_holders(stream);
	return true;
}

static bool add_listeners(struct homad_thread *t, struct homad_streams *s,
			  struct homad_ticket *ticket)
{
	struct homa_list *node;
	u32 listeners = 0;

	homa_list_for_each(node, &s->holding) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_holder);

		if (listeners++ == ticket->most_holds ||
		    !add(ticket, NULL, hold->listener, hold->number))
			return false;
		homad_ticket_listener(t, hold->listener, 1);
	}
	return true;
}

static bool add_streams(struct homad_streams *s, struct homad_ticket *ticket)
{
	struct homa_list *node;

	homa_list_for_each(node, &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);

		if (stream->closed || stream->left || stream->parked ||
		    stream->opening)
			continue;
		if (!add_stream(ticket, stream, stream->slot, stream->generation))
			return false;
	}
	homa_list_for_each(node, &s->aliases) {
		struct homad_alias *alias =
			homa_container_of(node, struct homad_alias, of_holder);

		if (!add_stream(ticket, alias->stream, alias->slot,
				alias->generation))
			return false;
	}
	return true;
}

/* Has a connection come to a listener of which the application has not heard? It cannot
 * have accepted the connection, so it has to give the connection back before. */
static bool has_unseen(const struct homad_streams *s)
{
	u32 unread = s->tail - HOMA_READ_ONCE(s->area->event.head);

	if (homa_list_empty(&s->holding) || unread > s->entries)
		return false;
	/* Who asks often must not have the ring and all streams looked at. */
	return s->tail - s->accepted_to < unread || s->unseen;
}

/* Returns the stream that the attachment names so, if it may be shared. */
static struct homad_stream *named(const struct homad_streams *s, u64 name)
{
	u32 slot = (u32)name, generation = (u32)(name >> 32);
	struct homad_stream *stream;

	if (slot >= s->num_slots || s->generations[slot] != generation)
		return NULL;
	if (s->alias[slot].stream)
		return s->alias[slot].stream;
	stream = s->stream[slot];
	return stream && !stream->closed && !stream->left && !stream->parked &&
			       !stream->opening ?
		       stream :
		       NULL;
}

/* Adds what one request names. */
static int add_one(struct homad_thread *t, const struct homad_sharing *sharing)
{
	struct homad_ticket *ticket = sharing->ticket;
	struct homad_stream *stream;
	struct homad_hold *hold;

	if (!sharing->of_listener) {
		stream = named(sharing->s, sharing->name);
		return stream && add_stream(ticket, stream, (u32)sharing->name,
					    (u32)(sharing->name >> 32)) ?
			       0 :
			       -ENOENT;
	}
	hold = homad_hold_find(sharing->s, sharing->name);
	if (!hold || !add(ticket, NULL, hold->listener, hold->number))
		return -ENOENT;
	homad_ticket_listener(t, hold->listener, 1);
	return 0;
}

static void settle_rest(struct homad_thread *t, struct homad_ticket *ticket,
			bool reset)
{
	while (ticket->next < ticket->num) {
		struct homad_ticket_entry *entry = &ticket->entry[ticket->next++];

		if (entry->stream)
			unhold(t, entry->stream, reset);
		else
			homad_ticket_listener(t, entry->listener, -1);
	}
}

int homad_ticket_add_all(struct homad_thread *t,
			 const struct homad_sharing *sharing)
{
	struct homad_ticket *ticket = sharing->ticket;
	struct homad_streams *s = sharing->s;

	if (sharing->seen && has_unseen(s))
		return -EAGAIN;
	if (sharing->pass)
		return add_one(t, sharing);
	if (add_listeners(t, s, ticket) &&
	    (sharing->listeners || add_streams(s, ticket)))
		return 0;
	settle_rest(t, ticket, false);
	ticket->num = ticket->next = 0;
	return -E2BIG;
}

/* ---- joining ---- */

/* Begins an alias of @s for the stream, which the caller has counted as a hold. There is a free
 * slot. */
static struct homad_alias *begin_alias(struct homad_streams *s,
				       struct homad_stream *stream)
{
	u32 slot = homad_slot_take(s);
	struct homad_alias *alias = &s->alias[slot];

	*alias = (struct homad_alias){
		.stream = stream,
		.s = s,
		.slot = slot,
		.generation = ++s->generations[slot],
	};
	s->slots[slot].told = s->slots[slot].rung = 0;
	s->num_aliases++;
	homa_list_init(&alias->pending);
	homa_list_add_tail(&stream->aliases, &alias->of_stream);
	homa_list_add_tail(&s->aliases, &alias->of_holder);
	return alias;
}

static void join_stream(struct homad_thread *t, struct homad_streams *s,
			const struct homad_ticket_entry *entry)
{
	/* The hold of the ticket passes to the alias. */
	struct homad_alias *alias = begin_alias(s, entry->stream);

	alias->joined = true;
	alias->name = entry->name;
	homad_alias_news(t, alias);
}

static void join_listener(struct homad_thread *t, struct homad_streams *s,
			  const struct homad_ticket_entry *entry)
{
	struct homad_hold *hold = &s->joined->hold[s->joined->num_holds++];

	homad_hold_begin(hold, s, entry->listener);
	hold->joined = true;
	hold->name = entry->name;
	homad_hold_news(t, hold);
	/* This comes after there is another holder. */
	homad_ticket_listener(t, entry->listener, -1);
}

/* Gives up entries for which there is no memory, and tells the application so. A library that is
 * too old to know of that waits until all have come, so homad asks for memory again. */
static void give_up(struct homad_thread *t, struct homad_streams *s,
		    struct homad_ticket *ticket)
{
	if (!s->app->hears_unjoined) {
		homad_streams_ask_later(t, s);
		return;
	}
	s->unjoined += ticket->num - ticket->next;
	settle_rest(t, ticket, false);
	homad_streams_touch(t, s);
}

int homad_ticket_join(struct homad_thread *t, void *arg)
{
	const struct homad_sharing *sharing = arg;
	struct homad_ticket *ticket = sharing->ticket;
	struct homad_streams *s = sharing->s;

	if (s->app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	homad_tcp_round(t);
	s->joined = ticket;
	while (ticket->next < ticket->num) {
		const struct homad_ticket_entry *entry =
			&ticket->entry[ticket->next];

		homad_streams_want(t, s);
		if (entry->stream && !s->num_free)
			break;
		ticket->next++;
		if (entry->stream)
			join_stream(t, s, entry);
		else
			join_listener(t, s, entry);
	}
	/* The slow path has been asked for more slots, or has none. */
	if (ticket->next < ticket->num &&
	    !__atomic_load_n(&s->asked, __ATOMIC_ACQUIRE))
		give_up(t, s, ticket);
	homad_poll_app(t, s->app);
	return 0;
}

/* ---- taking what another process has passed ---- */

static struct homad_alias *alias_of(const struct homad_stream *stream,
				    const struct homad_streams *s)
{
	struct homa_list *node;

	homa_list_for_each(node, &stream->aliases) {
		struct homad_alias *alias =
			homa_container_of(node, struct homad_alias, of_stream);

		if (alias->s == s)
			return alias;
	}
	return NULL;
}

static int take_stream(struct homad_thread *t, struct homad_sharing *sharing,
		       struct homad_stream *stream)
{
	struct homad_streams *s = sharing->s;
	struct homad_alias *alias = alias_of(stream, s);

	sharing->home_slot = stream->slot;
	if (!alias && stream->home == s && !stream->left) {
		sharing->before = true;
		sharing->slot = stream->slot;
		sharing->generation = stream->generation;
		return 0;
	}
	sharing->before = alias != NULL;
	if (!alias) {
		homad_streams_want(t, s);
		if (!s->num_free)
			return __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE) ?
				       -EAGAIN :
				       -ENOBUFS;
		stream->holds++;
		homad_stream_show_holders(stream);
		alias = begin_alias(s, stream);
	}
	sharing->slot = alias->slot;
	sharing->generation = alias->generation;
	return 0;
}

static struct homad_hold *hold_of(const struct homad_tcp_listener *listener,
				  const struct homad_streams *s)
{
	struct homa_list *node;

	homa_list_for_each(node, &listener->holds) {
		struct homad_hold *hold =
			homa_container_of(node, struct homad_hold, of_listener);

		if (hold->s == s)
			return hold;
	}
	return NULL;
}

static void take_listener(struct homad_thread *t, struct homad_sharing *sharing,
			  struct homad_tcp_listener *listener)
{
	struct homad_streams *s = sharing->s;
	struct homad_hold *hold = hold_of(listener, s);
	struct homa_list *idle = homa_list_first(&s->idle_holds);

	sharing->before = hold != NULL;
	if (!hold) {
		if (idle) {
			homa_list_del(idle);
			hold = homa_container_of(idle, struct homad_hold,
						 of_holder);
		} else {
			hold = sharing->hold;
			sharing->hold = NULL;
		}
		homad_hold_begin(hold, s, listener);
		hold->taken = true;
		homad_hold_again(t, listener);
	}
	sharing->slot = hold->number;
}

int homad_ticket_take(struct homad_thread *t, void *arg)
{
	struct homad_sharing *sharing = arg;
	const struct homad_ticket_entry *entry = sharing->ticket->entry;
	int rc = 0;

	if (sharing->s->app->phase != HOMAD_APP_OPEN || sharing->s->app->evicted)
		return -ESHUTDOWN;
	homad_now(t);
	homad_tcp_enter(t, sharing->s->tcp);
	homad_tcp_round(t);
	if (entry->stream)
		rc = take_stream(t, sharing, entry->stream);
	else
		take_listener(t, sharing, entry->listener);
	homad_poll_app(t, sharing->s->app);
	return rc;
}

int homad_ticket_homes(struct homad_thread *t, void *arg)
{
	struct homad_sharing *sharing = arg;
	const struct homad_ticket *ticket = sharing->ticket;
	u32 i, j;

	(void)t;
	for (i = ticket->next; i < ticket->num; i++) {
		const struct homad_stream *stream = ticket->entry[i].stream;

		for (j = 0; stream && j < sharing->num_homes; j++)
			if (sharing->homes[j] == stream->home)
				break;
		if (stream && j == sharing->num_homes && j < HOMA_CTL_ATTACH_FDS)
			sharing->homes[sharing->num_homes++] = stream->home;
	}
	return 0;
}

int homad_ticket_drop(struct homad_thread *t, void *arg)
{
	const struct homad_sharing *sharing = arg;

	homad_now(t);
	homad_tcp_enter(t, sharing->tcp);
	homad_tcp_round(t);
	settle_rest(t, sharing->ticket, sharing->reset);
	return 0;
}

void homad_shares_end(struct homad_thread *t, struct homad_streams *s)
{
	struct homa_list *node;

	if (s->joined)
		settle_rest(t, s->joined, false);
	while ((node = homa_list_first(&s->holding)))
		homad_hold_leave(t, homa_container_of(node, struct homad_hold,
						      of_holder));
	while ((node = homa_list_first(&s->aliases))) {
		struct homad_alias *alias =
			homa_container_of(node, struct homad_alias, of_holder);

		homad_alias_leave(t, alias, alias->stream->resets);
		homad_tcp_local_reset(t);
	}
}
