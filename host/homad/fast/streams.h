/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The streams of an attachment: their shared memory, its two rings, and who has a slot of it.
 *
 * Written by: the home of the attachment, one fast-path thread, unless a field says that it is
 * the slow path's, or atomic.
 */
#ifndef HOMAD_STREAMS_H
#define HOMAD_STREAMS_H

#include "shm_stream.h"
#include "stream_grow.h"
#include "tcp_stream.h"

/* The most local ports that a CONNECT tries in one round. */
#define HOMAD_PORT_TRIES 256u
/* Local ports that are tried in as long as one command takes. */
#define HOMAD_PORTS_PER_COMMAND 16u
/* The number of commands that are as much work as the most expensive one. */
#define HOMAD_MOST_COMMANDS (1 + HOMAD_PORT_TRIES / HOMAD_PORTS_PER_COMMAND)

struct homad_alias;
struct homad_app;
struct homad_policy;
struct homad_tcp;
struct homad_thread;
struct homad_ticket;

/** struct homad_streams - the streams of an attachment */
struct homad_streams {
	/* The attachment. */
	struct homad_app *app;
	/* The instance of TCP that it belongs to. Control writes it while it has no home. */
	struct homad_tcp *tcp;
	/* The shared memory, @bytes long. @commands to @spans point to its parts. */
	struct homa_stream_area *area;
	u64 bytes;
	/* A descriptor of this memory, for a program that exec has run. Only the slow path uses
	 * it. */
	int memory_fd;
	/* The entries of the command ring. */
	struct homa_stream_command *commands;
	/* The entries of the event ring. */
	struct homa_stream_event *events;
	/* The slots. */
	struct homa_stream_slot *slots;
	/* The first of the small buffers, and the first of the spans for larger ones. */
	u8 *firsts, *spans;
	/* @entries: the number of entries of each of the two rings. @num_slots: the number
	 * of slots. @id: the same as homa_stream_area.id. */
	u32 entries, num_slots, id;
	/* homad has taken @head commands and written @tail events. Both counts wrap. */
	u32 head, tail;
	/* homad_stream.tx_bytes and rx_bytes of all its streams together, also of those that are
	 * over. Other threads read them. */
	u64 tx_bytes, rx_bytes;
	/* The value of @tail that the application was last told. */
	u32 told;
	/* @accepted_to: the value of @tail behind the last ACCEPTED. @unseen: the number of streams
	 * with HOMAD_NEWS_ACCEPTED, which wait for room. */
	u32 accepted_to, unseen;
	/* The stream in each slot, or NULL. */
	struct homad_stream **stream;
	/* The numbers of free slots that have memory, in two stacks in one array; see
	 * stream_grow.c. */
	u32 *free;
	/* @num_free: the number of free slots. @num_warm: the number of those with
	 * larger buffers than at first. @warm_least: the least value of @num_warm since
	 * the slow path looked last. @backed: the number of slots, from the first, that
	 * have memory. */
	u32 num_free, num_warm, warm_least, backed;
	/* The memory behind each slot's buffers. */
	struct homad_backing *backing;
	/* Log2 of the bytes to which a receive buffer and a send buffer may grow. */
	u8 rx_most, tx_most;
	/* A ring with the numbers of slots that want more memory: @num_asks entries, a power of
	 * two. The slow path has taken @asks_head of them, the fast path has put in
	 * @asks_tail. */
	u32 *asks;
	u32 num_asks, asks_head, asks_tail;
	/* True if the slow path was told that there are some; atomic. */
	bool asks_told;
	/* Time when the slow path had no memory for larger buffers, in ns; 0 if it had some. */
	u64 grow_refused_at;
	/* The free slot for which homad_slot_prepare() has asked last; NULL: none. */
	const struct homad_backing *preparing;
	/* The bytes of larger buffers than at first. Only the slow path uses it. */
	u64 grown_bytes;
	/* The place in homad_tcp_ports.grown while there are larger buffers. Only the slow path
	 * uses it. */
	struct homa_list grown;
	/* For each slot, the number of streams that it has had. */
	u32 *generations;
	/* The number of listeners that the attachment has ever had. */
	u32 listened;
	/* True if the event ring has no room for the answer to the next command. */
	bool stuck;
	/* True if the attachment has no slot for connections that wait in the engine, or for
	 * streams of its ticket. */
	bool starved;
	/* True while a request for more memory waits for the slow path. Access is atomic. */
	bool asked;
	/* Time when the slow path last had no memory, in ns; 0 if it had some. */
	u64 refused_at;
	/* The next CONNECT command has found this many local ports in use. */
	u32 ports_tried;
	/* The number of ports that were tried in this look at its commands. */
	u32 ports_looked;
	/* @open: the @num_open streams that have a slot. @news: those of them with news. */
	struct homa_list open, news;
	u32 num_open;
	/* For each slot, the other attachment's stream for which it stands. */
	struct homad_alias *alias;
	/* @aliases: the @num_aliases slots that stand for one. @alias_news: those of them with
	 * news. */
	struct homa_list aliases, alias_news;
	u32 num_aliases;
	/* @holding: its @num_holding listeners, struct homad_hold. @hold_news: those with news.
	 * @emptied: those at which no connection waits any more. */
	struct homa_list holding, hold_news, emptied;
	u32 num_holding;
	/* Memory for listeners that other processes pass to it: struct homad_hold without one. */
	struct homa_list idle_holds;
	/* The ticket that it has joined, or NULL. Some of what that is for may not be settled.
	 * Listeners that it got by the ticket are in the ticket's memory. */
	struct homad_ticket *joined;
	/* The number of its entries that were given up and of which the application has not
	 * been told. */
	u32 unjoined;
	/* Links it into homad_tcp.touched when events were added in this round. */
	struct homa_list touched;
	/* True if the application is in homad's network namespace, where this host's addresses
	 * are its own, too. */
	bool same_network;
	/* The policy that the rules give its connections. The memory belongs to the slow
	 * path. */
	struct homad_policy *policy;
	/* Write end of the pipe that wakes the application. */
	int wake_fd;
	/* The next attachment in the stack homad_tcp.wanting. */
	struct homad_streams *next_wanting;
	/* The next attachment in the stack homad_tcp.growing. */
	struct homad_streams *next_growing;
};

/* Returns the buffer of @stream that @map says. */
static inline u8 *homad_stream_buffer(const struct homad_stream *stream,
				      u32 way, u64 map)
{
	const struct homad_streams *s = stream->home;
	u64 index = (u64)stream->slot * HOMAD_BUFFERS + way;

	return homa_stream_is_first(map) ? s->firsts + index * HOMA_STREAM_FIRST :
					   s->spans + index * HOMA_STREAM_SPAN;
}

/* ---- streams.c, stream_slots.c ---- */

/** homad_streams_bytes() - return the bytes of shared memory for @num_slots streams;
 *  homad_streams_fixed(): those without the buffers; homad_streams_lay(): divide the
 *  memory. */
u64 homad_streams_bytes(u32 num_slots);
u64 homad_streams_fixed(u32 num_slots);
void homad_streams_lay(struct homad_streams *s, struct homa_stream_area *area,
		       u32 num_slots);
/** homad_streams_idle() - has no stream of @s bytes to send in its memory? */
static inline bool homad_streams_idle(const struct homad_streams *s)
{
	return s->num_open == 0;
}
/** homad_streams_accept() - do the same for one attachment that had no slot. */
void homad_streams_accept(struct homad_thread *t, struct homad_streams *s);

/* ---- stream_resets.c, stream_news.c ---- */

/**
 * homad_streams_reset() - reset streams that wait for it, after a round's segments; returns
 * how many.
 */
u32 homad_streams_reset(struct homad_thread *t);
/**
 * homad_streams_touch() - note that the event ring of @s has more, or may have room again.
 */
void homad_streams_touch(struct homad_thread *t, struct homad_streams *s);

/* ---- stream_commands.c ---- */

/** homad_stream_commands() - do at most @budget commands; NULL, homad_next_round, or why the
 * attachment must end. @done: receives how many commands were as much work. */
const char *homad_stream_commands(struct homad_thread *t,
				  struct homad_streams *s, u32 budget, u32 *done);
/** homad_streams_close() - end the streams of an attachment that ends. */
void homad_streams_close(struct homad_thread *t, struct homad_streams *s);
/**
 * homad_stream_commands_waiting() - is there a command that can be done, or an event that
 * found no room?
 */
bool homad_stream_commands_waiting(const struct homad_streams *s);

/* ---- stream_events.c ---- */

/** homad_streams_answerable() - is there room for an answer that belongs to no stream? Else
 *  the command must wait until events are read (homad_streams.stuck). @in_order: the answer
 *  must come behind all events of streams that are due. */
bool homad_streams_answerable(struct homad_thread *t, struct homad_streams *s,
			      bool in_order);
/**
 * homad_streams_tell() - write such an answer: FAILED, UNLISTENED or NOTHING. There must be
 * room.
 */
void homad_streams_tell(struct homad_thread *t, struct homad_streams *s,
			u16 kind, u64 token, int error);
/** homad_streams_tell_begun() - say where a connection that is being opened comes from (BEGUN), if
 *  there is room for that. It wakes nobody: who wants to know it waits for the command's end. */
void homad_streams_tell_begun(const struct homad_stream *stream);
/**
 * homad_streams_untold() - has something waited for room in the event ring, and is there
 * room now?
 */
bool homad_streams_untold(const struct homad_streams *s);
/** homad_stream_events() - take the engine's events into slots and event rings. */
void homad_stream_events(struct homad_thread *t);
/**
 * homad_streams_deliver() - fill the rings of the attachments that were touched, and wake
 * them.
 */
void homad_streams_deliver(struct homad_thread *t);

/* ---- what the slow path asks for by homad_call() ---- */

/* struct homad_streams_open - streams that an attachment gets; the slow path fills it */
struct homad_streams_open {
	/* The attachment. */
	struct homad_app *app;
	/* The streams, which are the fast path's when the call succeeds. */
	struct homad_streams *streams;
};
/**
 * homad_streams_begin() - open the streams of an attachment; @arg: struct
 * homad_streams_open; -ESHUTDOWN.
 */
int homad_streams_begin(struct homad_thread *t, void *arg);
/** homad_streams_leave() - take the attachment of @arg, a struct homad_streams, away from its
 *  thread and its instance of TCP. 0, -EBUSY: it uses a stream or a listener; -ESHUTDOWN.
 *  homad_streams_arrive() - it belongs to the instance @tcp, which @t runs, from now on. */
int homad_streams_leave(struct homad_thread *t, void *arg);
int homad_streams_arrive(struct homad_thread *t, void *arg);

#endif
