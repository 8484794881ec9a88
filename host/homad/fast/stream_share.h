/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Streams and listeners that several attachments have, as parent and child after fork().
 *
 * A stream stays in its home's memory. Each further holder has an *alias*: a slot of its own
 * by which it names the stream and hears of it. A *ticket* holds streams for a child that
 * has not attached yet. The connection ends when neither its home, an alias nor a ticket has
 * it any more.
 */
#ifndef HOMAD_STREAM_SHARE_H
#define HOMAD_STREAM_SHARE_H

#include "homa_list.h"
#include "session.h"

struct homad_stream;
struct homad_streams;
struct homad_tcp_listener;

/** struct homad_alias - a slot of an attachment that stands for another one's stream */
struct homad_alias {
	/* The stream that the alias stands for; NULL if the slot is no alias. */
	struct homad_stream *stream;
	struct homad_streams *s;
	u32 slot, generation;
	/* True until the holder is told that it has the stream. The event calls it @name. */
	bool joined;
	u64 name;
	/* Its places in homad_stream.aliases and homad_streams.aliases; while there is news in
	 * homad_streams.alias_news. */
	struct homa_list of_stream, of_holder, pending;
};

/** struct homad_hold - an attachment that takes connections of a listener */
struct homad_hold {
	/* The listener; NULL if this struct is not in use. */
	struct homad_tcp_listener *listener;
	struct homad_streams *s;
	/* The number by which the attachment @s names the listener. */
	u32 number;
	/* @joined, @name: as of an alias. It was told that connections wait, and has taken
	 * all it could get since; it is to be told so. */
	bool joined, told, waiting;
	u64 name;
	/* Its places in homad_tcp_listener.holds, homad_streams.holding; while there is news in
	 * homad_streams.hold_news. */
	struct homa_list of_listener, of_holder, pending;
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
		struct homad_tcp_listener *listener;
		/* The name that the process that shared it uses (see HOMA_STREAM_JOINED). */
		u64 name;
	} entry[];
};

/** struct homad_sharing - what the slow path asks for: @ticket of @s, or for @s
 * @tail: of the command ring when it began: what was asked for before comes first.
 * @listeners: it is for listeners alone. @seen: HOMA_CTL_ALL_SEEN.
 * @reset: connections that nobody else has end with a reset.
 * @homes: in whose memory its streams lie, @num_homes. */
struct homad_sharing {
	struct homad_streams *s;
	struct homad_ticket *ticket;
	u32 tail;
	bool listeners, seen, reset;
	struct homad_streams *homes[HOMA_CTL_ATTACH_FDS];
	u32 num_homes;
};

/* ---- stream_news.c ---- */

/** homad_alias_news(), homad_hold_news() - its holder is to be told. */
void homad_alias_news(struct homad_thread *t, struct homad_alias *alias);
void homad_hold_news(struct homad_thread *t, struct homad_hold *hold);

/* ---- stream_holds.c ---- */

/** homad_hold_begin() - @hold is of @s and @listener. homad_hold_find(): NULL: no such. */
void homad_hold_begin(struct homad_hold *hold, struct homad_streams *s,
		      struct homad_tcp_listener *listener);
struct homad_hold *homad_hold_find(const struct homad_streams *s, u64 number);
/** homad_hold_leave() - it takes no more connections; the last one ends the listener. */
void homad_hold_leave(struct homad_thread *t, struct homad_hold *hold);
/** homad_hold_take() - HOMA_STREAM_ACCEPT: 0; -ENOENT: there is nothing; -EAGAIN: not in this
 *  round, as memory for it may be about to come. */
int homad_hold_take(struct homad_thread *t, struct homad_hold *hold);
/** homad_stream_return() - HOMA_STREAM_RETURN; NULL, or what is wrong. */
const char *homad_stream_return(struct homad_thread *t,
				struct homad_stream *stream);
/** homad_ticket_listener() - a ticket has the listener, or @by -1 no longer. */
void homad_ticket_listener(struct homad_thread *t,
			   struct homad_tcp_listener *listener, int by);

/* ---- stream_share.c ---- */

/** homad_stream_leave() - the home of @stream lets go of it, or who has @alias does. */
void homad_stream_leave(struct homad_thread *t, struct homad_stream *stream,
			bool reset);
void homad_alias_leave(struct homad_thread *t, struct homad_alias *alias,
		       bool reset);
/** homad_ticket_add_all() - all that @s has and its application knows; -E2BIG: the ticket has
 *  room for too few; -EAGAIN: the application has not heard of some yet. */
int homad_ticket_add_all(struct homad_thread *t,
			 const struct homad_sharing *sharing);
/** homad_shares_end() - the attachment ends: all that it has of others. */
void homad_shares_end(struct homad_thread *t, struct homad_streams *s);

/* By homad_call(), @arg: struct homad_sharing. */
/** homad_ticket_join() - @s gets what is in it, as far as it has slots; 0: all. */
int homad_ticket_join(struct homad_thread *t, void *arg);
/** homad_ticket_homes() - fill @homes, the first ones if there are more. */
int homad_ticket_homes(struct homad_thread *t, void *arg);
/** homad_ticket_drop() - nobody has come for the rest. */
int homad_ticket_drop(struct homad_thread *t, void *arg);

/* ---- stream_commands.c ---- */

/** homad_ticket_fill() - by homad_call(), @arg: struct homad_sharing: what @s has, after all
 *  that it has asked for. -E2BIG, -EAGAIN: some of that has to wait. */
int homad_ticket_fill(struct homad_thread *t, void *arg);

#endif
