/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Streams and listeners that several attachments have, as parent and child after fork().
 *
 * A stream stays in its home's memory. Each further holder has an *alias*: a slot of its own
 * by which it names the stream and hears of it. A *ticket* holds streams for a child that
 * has not attached yet. The connection ends when neither its home, an alias nor a ticket has
 * it any more.
 *
 * Written by: the home of the attachments, one fast-path thread, except for tickets that nobody
 * has joined, whose memory and room control makes.
 */
#ifndef HOMAD_STREAM_SHARE_H
#define HOMAD_STREAM_SHARE_H

#include "homa_list.h"
#include "session.h"

struct homad_stream;
struct homad_streams;
struct homad_tcp;
struct homad_tcp_listener;

/** struct homad_alias - a slot of an attachment that stands for another one's stream */
struct homad_alias {
	/* The stream that the alias stands for; NULL if the slot is no alias. */
	struct homad_stream *stream;
	/* The attachment that has the slot. */
	struct homad_streams *s;
	/* The number of the slot, and its generation when the alias began. */
	u32 slot, generation;
	/* True until the holder is told that it has the stream, by an event that contains
	 * @name. */
	bool joined;
	u64 name;
	/* @of_stream and @of_holder link it into homad_stream.aliases and
	 * homad_streams.aliases; @pending links it into homad_streams.alias_news while
	 * there is news. */
	struct homa_list of_stream, of_holder, pending;
};

/** struct homad_hold - an attachment that takes connections of a listener */
struct homad_hold {
	/* The listener; NULL if this struct is not in use. */
	struct homad_tcp_listener *listener;
	/* The attachment that takes the connections. */
	struct homad_streams *s;
	/* The number by which the attachment @s names the listener. */
	u32 number;
	/* True until the holder is told that it has the listener, by an event that contains
	 * @name. */
	bool joined;
	/* True from when the holder is told that connections wait until it is told that none
	 * does. */
	bool told;
	/* True while the holder is to be told that connections wait. */
	bool waiting;
	/* The name that the process that shared the listener uses (see HOMA_STREAM_JOINED). */
	u64 name;
	/* True if the holder got the listener by HOMA_CTL_STREAM_TAKE. When it has let go, this
	 * struct waits in homad_streams.idle_holds for the next one. */
	bool taken;
	/* @of_listener and @of_holder link it into homad_tcp_listener.holds and
	 * homad_streams.holding; @pending links it into homad_streams.hold_news while there
	 * is news; @emptied, into homad_streams.emptied while the holder is to be told that no
	 * connection waits any more. */
	struct homa_list of_listener, of_holder, pending, emptied;
};

/** struct homad_ticket - what a process shares with its child */
struct homad_ticket {
	/* @entry has @num entries and room for @most. The child has got the entries before @next.
	 * Only the fast path writes @num and @next. */
	u32 num, next, most;
	/* @hold has room for @most_holds listeners; @num_holds of them the child has got. The
	 * child's attachment keeps the ticket until it ends. */
	u32 num_holds, most_holds;
	struct homad_hold *hold;
	/* The memory of the ticket in bytes, which its user's account pays for. */
	u64 bytes;
	struct homad_ticket_entry {
		/* The entry is either a stream or a listener; the other pointer is NULL. */
		struct homad_stream *stream;
		/* The listener; NULL if the entry is a stream. */
		struct homad_tcp_listener *listener;
		/* The name that the process that shared it uses (see HOMA_STREAM_JOINED). */
		u64 name;
	} entry[];
};

/**
 * struct homad_sharing - a question of the slow path about a ticket
 * @ticket: the ticket.
 * @tcp: the instance of TCP that has what the ticket is for; only homad_ticket_drop() uses it.
 * @s: the attachment that fills it or joins it.
 * @tail: the tail of the command ring when the question began: commands before it come
 *	first.
 * @listeners: the ticket is for listeners alone.
 * @seen: HOMA_CTL_ALL_SEEN was set.
 * @reset: connections that nobody else has end with a reset.
 * @pass: the ticket is for the stream @name alone, or for the listener @name if @of_listener.
 * @of_listener: see @pass.
 * @name: see struct homa_ctl_pass.
 * @homes: attachments in whose memory the ticket's streams lie.
 * @num_homes: the number of these attachments.
 * @hold: memory for a listener that @s gets; NULL if it was not needed or is in use now.
 * @before: @s has had what the ticket is for before.
 * @slot: the slot by which @s names the stream, or its number of the listener.
 * @generation: the generation of that slot.
 * @home_slot: the slot in which the stream lies, of its home.
 */
struct homad_sharing {
	struct homad_streams *s;
	struct homad_ticket *ticket;
	struct homad_tcp *tcp;
	u32 tail;
	bool listeners, seen, reset, pass, of_listener;
	u64 name;
	struct homad_streams *homes[HOMA_CTL_ATTACH_FDS];
	u32 num_homes;
	struct homad_hold *hold;
	bool before;
	u32 slot, generation, home_slot;
};

/* ---- stream_news.c ---- */

/** homad_alias_news(), homad_hold_news() - have the holder be told of news. */
void homad_alias_news(struct homad_thread *t, struct homad_alias *alias);
void homad_hold_news(struct homad_thread *t, struct homad_hold *hold);

/* ---- stream_holds.c ---- */

/**
 * homad_hold_begin() - make @hold a holder of @listener, for @s. homad_hold_find() - NULL:
 * there is none.
 */
void homad_hold_begin(struct homad_hold *hold, struct homad_streams *s,
		      struct homad_tcp_listener *listener);
struct homad_hold *homad_hold_find(const struct homad_streams *s, u64 number);
/**
 * homad_hold_leave() - end a hold, which takes no more connections; the last one ends the
 * listener.
 */
void homad_hold_leave(struct homad_thread *t, struct homad_hold *hold);
/**
 * homad_hold_take() - do HOMA_STREAM_ACCEPT: 0; -ENOENT: no connection waits; -EAGAIN: not
 * in this round, as memory for it may be about to come.
 */
int homad_hold_take(struct homad_thread *t, struct homad_hold *hold);
/** homad_hold_again() - offer the listener's connections, as it has one more holder. */
void homad_hold_again(struct homad_thread *t,
		      struct homad_tcp_listener *listener);
/** homad_stream_return() - do HOMA_STREAM_RETURN; returns NULL, or what is wrong. */
const char *homad_stream_return(struct homad_thread *t,
				struct homad_stream *stream);
/**
 * homad_ticket_listener() - count a ticket that has the listener, or with @by -1 one that
 * has it no longer.
 */
void homad_ticket_listener(struct homad_thread *t,
			   struct homad_tcp_listener *listener, int by);

/* ---- stream_share.c ---- */

/**
 * homad_stream_leave() - let the home of @stream, or the holder of @alias, release the
 * stream.
 */
void homad_stream_leave(struct homad_thread *t, struct homad_stream *stream,
			bool reset);
void homad_alias_leave(struct homad_thread *t, struct homad_alias *alias,
		       bool reset);
/** homad_ticket_add_all() - add all that @s has and its application knows; -E2BIG: the
 *  ticket has room for too few; -EAGAIN: the application has not heard of some yet. */
int homad_ticket_add_all(struct homad_thread *t,
			 const struct homad_sharing *sharing);
/** homad_shares_end() - release all that an attachment that ends has of others. */
void homad_shares_end(struct homad_thread *t, struct homad_streams *s);

/* Functions for homad_call(); @arg: struct homad_sharing. */
/**
 * homad_ticket_join() - give @s the entries of the ticket, as far as it has slots; 0: all.
 */
int homad_ticket_join(struct homad_thread *t, void *arg);
/** homad_ticket_homes() - fill in @homes, the first ones if there are more. */
int homad_ticket_homes(struct homad_thread *t, void *arg);
/**
 * homad_ticket_take() - give @s what the ticket is for, which stays valid. 0; -EAGAIN: not yet, as
 * memory is being made; -ENOBUFS: there is none.
 */
int homad_ticket_take(struct homad_thread *t, void *arg);
/** homad_ticket_drop() - release the entries that nobody has come for. */
int homad_ticket_drop(struct homad_thread *t, void *arg);

/* ---- stream_commands.c ---- */

/**
 * homad_ticket_fill() - add what @s has, after all commands that it has given; for
 * homad_call(), @arg: struct homad_sharing. -E2BIG, -EAGAIN: some of that has to wait.
 */
int homad_ticket_fill(struct homad_thread *t, void *arg);

#endif
