/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams through homad, from the application's side: <homa/stream.h> above,
 * abi/shm_stream.h below. Bottom-up, each file calls only those before it:
 *
 *	area.c		what homad's memory looks like, and whether that is possible
 *	attach.c	the connection to homad, and questions over it
 *	command.c	the command ring, kicks, doorbells; whether homad lives
 *	lent.c		memory of another process, for a stream that it has passed
 *	life.c		streams and what finds them: slots, tokens, listeners' numbers
 *	event.c		the event ring, and news for the application
 *	lock.c		streams that other processes have, too
 *	read.c, write.c	the data path
 *	urgent.c	urgent bytes
 *	ready.c, facts.c	what a stream is ready for, and what is known of it
 *	connect.c, listen.c, close.c	how streams begin and end
 *	wait.c		news handed out, and sleeping until there is some
 *	open.c		the context
 *	fork.c		what a child of fork() gets
 *	exec.c		what a program gets that exec runs
 *	pass.c		what another process gets through a UNIX socket
 *
 * Locks, outermost first: @ctl (a question to homad is under way), @look (the event ring
 * and all that finds streams), @submit (the command ring). Reading and writing take none,
 * but for @submit when a doorbell is rung.
 *
 * homad's end: whoever notices sets @gone, and the next look at the event ring makes news
 * of every stream. The memory stays mapped until the context is closed, so a thread that
 * copies meanwhile is safe.
 *
 * fork(): the memory is not mapped in a child, and @fork_generation tells each call so,
 * unless the program asks for more (stream_fork.h). Then the child has a context of its own,
 * into which the streams of its parent's go; their slots and buffers stay in the parent's
 * area. While both have a stream, the positions in the slot count, and the copies here are
 * read back under a lock that is there, too.
 */
#ifndef HOMA_STREAM_IMPL_H
#define HOMA_STREAM_IMPL_H

#include <homa/stream.h>
#include <pthread.h>
#include "client.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "homa_spin.h"
#include "libhoma_impl.h"
#include "patience.h"
#include "shm_stream.h"
#include "svc_att.h"

struct homa_stream_lent;
struct homa_streams_ticket;

enum homa_stream_kind {
	HOMA_STREAM_KIND_CONNECTION,
	HOMA_STREAM_KIND_LISTENER,
};

/** struct homa_stream - a connection or a listener. Guarded by: homa_streams.look, where that is
 *  said; other fields are written by the application's reader, writer, or only thread, as they
 *  say. */
struct homa_stream {
	/* The context to which the stream belongs. */
	struct homa_streams *ctx;
	/* enum homa_stream_kind. */
	u8 kind;
	/* The application sets it when it has said that it writes no more. */
	bool shut;
	/* @options holds the HOMA_STREAM_OPT_* that the application wants, @told_options those
	 * that homad was last told. */
	u32 options, told_options;
	/* What the application wants with homa_stream_patience(). @look protects it. */
	struct homa_patience patience;
	/* The stream's slot in homad's memory; NULL until homad has opened the stream. It is
	 * stored with release under @look when all below is set, and never changed again. */
	struct homa_stream_slot *slot;
	/* The slot in the context's own area by which homad names the stream. It is another one
	 * than @slot if the stream came from a parent process or from before exec. */
	struct homa_stream_slot *own;
	/* @index is the number of the slot @own, @generation tells the stream from earlier ones
	 * in that slot. homad gives both. */
	u32 index, generation;
	/* Where the buffers begin: @rx the span for bytes that arrive, @tx the span for bytes to
	 * send, @rx_first and @tx_first the small buffers that are used before the spans. */
	u8 *rx, *tx, *rx_first, *tx_first;
	/* What is mapped of another process's memory for it; NULL if it lies in memory of @ctx or
	 * of an older context. */
	struct homa_stream_lent *lent;
	/* The positive errno for which homad could not open the stream or ended the listener; 0
	 * if there is none. It is atomic. */
	u32 error;
	/* The application's pointer (homa_stream_set_user()). It is atomic. */
	void *user;

	/* From here to @asked @look protects the fields. @all is the stream's place among all
	 * streams of the context, @news its place among those with news. */
	struct homa_list all, news;
	/* A connection's place in @queue of its listener until it is accepted; a listener's place
	 * in @listeners of the context. */
	struct homa_list queued;
	/* The token of a connection's CONNECT command, or homad's number of a listener. */
	u64 token;
	/* Where a connection that is being opened comes from; port 0 if homad has not told. */
	struct homa_stream_end begun;
	/* The connections of a listener that the application has not accepted yet. */
	struct homa_list queue;
	/* The number of connections in @queue. It is atomic. */
	u32 waiting;
	/* @closed: the application has closed this listener. @leaves: homad was told that the
	 * listener takes no more connections and has not confirmed it, so it may still name it. */
	bool closed, leaves;
	/* For a listener that several processes have: @offered says that connections wait at
	 * homad and is atomic; @asked, that one was asked for and homad has not answered. */
	bool offered, asked;

	/* The position of the next byte to read. The reader writes it; it is atomic, because
	 * others look at it. */
	u32 rx_read __attribute__((aligned(64)));
	/* The value that @rx_read had when homad was last told. It is atomic, too. */
	u32 rx_rung;
	/* Other processes may read from the stream; then the positions in the slot count. */
	bool shared_rx;
	/* The position of the next byte to write. The writer writes it; it is atomic. */
	u32 tx_end __attribute__((aligned(64)));
	/* Other processes may write to the stream; then the positions in the slot count. */
	bool shared_tx;
	/* Where the bytes to send lie (homa_stream_map()). The writer writes it. */
	u64 tx_map;
	/* The most bytes that may wait in the buffer to be sent; 0: as many as it holds. It is
	 * atomic. */
	u32 tx_most;
	/* The most bytes that may wait in the buffer and were never sent; 0: as many as it holds.
	 * It is atomic. */
	u32 unsent_most;
};

/** struct homa_streams_wanted - a CONNECT that homad has not answered. Guarded by:
 *  homa_streams.look */
struct homa_streams_wanted {
	/* The stream to be opened; NULL if the application has closed it meanwhile. */
	struct homa_stream *stream;
	/* The upper half of the token, whose lower half is the index of this entry; 0 if the
	 * entry is free. */
	u32 serial;
	/* The index of the next free entry plus 1; 0 if there is none. */
	u32 next_free;
};

/** struct homa_streams - a context: one attachment to homad and its streams. Guarded by: @look and
 *  @submit, as the fields say; those before @ctl are constant or atomic. */
struct homa_streams {
	/* The value of homa_fork_generation when the context was made. */
	unsigned int fork_generation;
	/* 1 if homad has ended or has said something impossible. It is atomic. */
	u32 gone;
	/* The connection to homad. */
	struct homa_svc_att *att;
	/* The memory for streams that homad made; this process has it mapped. */
	struct homa_stream_area *area;
	/* The size of @area in bytes. */
	u64 bytes;
	/* Copies of fields of @area, which homad does not change: its number of slots, the
	 * number of entries of each ring, the number of rules, and its id. */
	u32 num_slots, entries, num_rules, id;
	/* The command ring in @area. */
	struct homa_stream_command *commands;
	/* The event ring in @area. */
	struct homa_stream_event *events;
	/* The slots in @area. */
	struct homa_stream_slot *slots;
	/* Where in @area the buffers of all slots begin: @spans, and @firsts, the small ones. */
	u8 *spans, *firsts;
	/* A copy of the rules that say which addresses homad serves. */
	struct homa_stream_rule rules[HOMA_STREAM_RULES];
	/* The context of the parent process, or of the program before exec, in whose memory some
	 * streams lie; NULL if there is none. */
	struct homa_streams *older;
	/* The number of streams and listeners of @older that homad has not given us yet. */
	u32 to_join;
	/* The number of those that it does not give, for want of memory. */
	u32 unjoined;
	/* This descriptor becomes readable when homad signals events. */
	int event_fd;
	/* It becomes readable when a thread of this process has news for one that sleeps. */
	int nudge_fd;

	/* The lock of a question to homad. */
	pthread_mutex_t ctl;
	/* @look protects these three. @listening: threads that are asking homad for a listener,
	 * whose number homad may use already. @unlistens: how many UNLISTEN commands were given.
	 * @unlistened: how many of them homad has answered. */
	u32 listening, unlistens, unlistened;

	/* The lock of the command ring. */
	struct homa_gate submit __attribute__((aligned(64)));
	/* @command_tail is the position of the next command to write, @command_head homad's
	 * position as it was last read. */
	u32 command_tail, command_head;

	/* The lock of the event ring and of all fields below. */
	struct homa_gate look __attribute__((aligned(64)));
	/* The position of the next event to read. It is atomic, because it is looked at without
	 * the lock. */
	u32 event_head;
	/* The number of streams in @news. It is atomic. */
	u32 num_news;
	/* The position before which homad may write over the events. */
	u32 event_released;
	/* Events that were put aside. They come before those in the ring. */
	struct homa_stream_event *kept;
	/* The entries from @kept_at to before @kept_num are in use; @kept_size have memory. */
	u32 kept_at, kept_num, kept_size;
	/* True if events were put aside. It is atomic. */
	bool keeps;
	/* All streams; those with news; the listeners. */
	struct homa_list all, news, listeners;
	/* The stream in each slot, or NULL. */
	struct homa_stream **by_slot;
	/* The table of CONNECTs that homad has not answered. */
	struct homa_streams_wanted *wanted;
	/* @num_wanted is the size of @wanted in entries, @now_wanted the number of used ones,
	 * @free_wanted the index of the first free one plus 1 (0: there is none), @serials the
	 * serial that was given last. */
	u32 num_wanted, now_wanted, free_wanted, serials;
	/* The number of threads that sleep in homa_streams_wait(). */
	u32 sleepers;
	/* @armed: homad was asked to signal. @signalled: homad has signalled, and its byte has
	 * not been taken out of the pipe. */
	bool armed, signalled;
	/* All streams have got the news that homad has ended. */
	bool mourned;
	/* True while a thread in homa_streams_wait() looks for events before it sleeps. It
	 * is atomic. */
	bool spinning;
	/* How long that thread looks for events before it sleeps; no other thread uses
	 * this. */
	struct homa_spin spin;
	/* The number of calls of homa_streams_poll() that found nothing. */
	u32 vain;
	/* The time when it was last checked that homad lives, in ns. */
	u64 alive_at;
};

static inline bool homa_streams_gone(const struct homa_streams *ctx)
{
	return __atomic_load_n(&ctx->gone, __ATOMIC_ACQUIRE) != 0;
}

/* ---- area.c ---- */

/** homa_streams_lay() - copy and check the area's layout; -EPROTO if it is impossible. */
int homa_streams_lay(struct homa_streams *ctx);
/** homa_stream_end_of() - write @sa to @end; -EINVAL or -EAFNOSUPPORT if it is no address of
 *  TCP. */
int homa_stream_end_of(struct homa_stream_end *end, const struct sockaddr *sa,
		       socklen_t length);
void homa_stream_end_to(struct sockaddr_storage *sa,
			const struct homa_stream_end *end);

/* ---- attach.c ---- */

/** homa_streams_attach() - connect to homad at @path (NULL: the usual path) and map its memory. */
int homa_streams_attach(struct homa_streams *ctx, const char *path);
/** homa_streams_detach() - undo homa_streams_attach(), also one that failed half-way. */
void homa_streams_detach(struct homa_streams *ctx);
/** homa_streams_ask_listen() - ask homad for a listener and its number; the caller has @ctl. */
int homa_streams_ask_listen(struct homa_streams *ctx, int fd, u32 backlog,
			    u32 *number);

/* ---- command.c ---- */

/** homa_streams_lose() - give homad up: nothing that it says counts any more. */
void homa_streams_lose(struct homa_streams *ctx);
/** homa_streams_check() - ask the kernel if homad lives; if not, homa_streams_lose() it. */
void homa_streams_check(struct homa_streams *ctx);
/** homa_streams_kick() - wake homad if it wants to be woken for any of @why, HOMA_SHM_KICK_*. */
void homa_streams_kick(struct homa_streams *ctx, u32 why);
/** homa_streams_command() - give homad a command; -ECONNRESET if homad is gone. While the
 *  command ring is full, it waits and puts homad's events aside, because homad may take no
 *  command before it has room for events. */
int homa_streams_command(struct homa_streams *ctx,
			 const struct homa_stream_command *command);
/** homa_streams_command_looking() - do the same for a caller that has @look. */
int homa_streams_command_looking(struct homa_streams *ctx,
				 const struct homa_stream_command *command);
/** homa_streams_release_events() - let homad use the entries of the event ring again that were
 *  taken. It kicks homad if the ring was full, because homad may sleep with events that found
 *  no room. The caller has @look. */
void homa_streams_release_events(struct homa_streams *ctx);
/** homa_streams_pause() - let others run while homad is about to answer.
 *  @turns: counts the calls of one wait; the caller sets it to 0 at first. */
void homa_streams_pause(struct homa_streams *ctx, u32 *turns);
/** homa_stream_tell() - give homad a command about a stream that has a slot. */
int homa_stream_tell(struct homa_stream *stream, enum homa_stream_op op,
		     u32 value);
/** homa_stream_tell_looking() - do the same for a caller that has @look. */
int homa_stream_tell_looking(struct homa_stream *stream, enum homa_stream_op op,
			     u32 value);
/** homa_stream_tell_patience() - give homad what the application has set of how long the stream
 *  waits for a silent peer. The caller has @look. */
int homa_stream_tell_patience(struct homa_stream *stream);
/** homa_stream_ring() - tell homad that positions of the stream have moved. */
int homa_stream_ring(struct homa_stream *stream);

/* ---- lent.c ---- */

/** homa_stream_borrow() - map what is of the stream in slot @slot of the memory behind @fd, another
 *  process's; NULL if that cannot be. */
struct homa_stream_lent *homa_stream_borrow(int fd, u32 slot);
/** homa_stream_lent_slot() - the slot of the stream. homa_stream_lent_buffers() - where its two
 *  small buffers and its two spans begin. */
struct homa_stream_slot *homa_stream_lent_slot(const struct homa_stream_lent *lent);
void homa_stream_lent_buffers(const struct homa_stream_lent *lent, u8 **firsts,
			      u8 **spans);
/** homa_stream_lent_place() - the id of the area in which the stream lies, and its slot there. */
void homa_stream_lent_place(const struct homa_stream_lent *lent, u32 *area,
			    u32 *slot);
/** homa_stream_give_back() - unmap it; @lent may be NULL. */
void homa_stream_give_back(struct homa_stream_lent *lent);

/* ---- life.c ---- */

/** homa_streams_usable() - 0, or -ECONNRESET in a child of fork() or if homad is gone. */
int homa_streams_usable(const struct homa_streams *ctx);
struct homa_stream *homa_stream_new(struct homa_streams *ctx, u8 kind);
/* The callers of all functions below of life.c have @look. */
/** homa_stream_forget() - take the stream out of all lists and tables and free it. */
void homa_stream_forget(struct homa_stream *stream);
/** homa_stream_drop() - tell homad to let go of the stream (CLOSE, ABORT or RETURN), and
 *  forget it. */
void homa_stream_drop(struct homa_stream *stream, enum homa_stream_op op);
/** homa_stream_adopt() - put the stream into the free slot @index. */
void homa_stream_adopt(struct homa_stream *stream, u32 index, u32 generation);
/** homa_streams_want() - give @stream a token for CONNECT; -ENOMEM, or -ENOBUFS if too many
 *  wait for homad's answer. */
int homa_streams_want(struct homa_streams *ctx, struct homa_stream *stream);
/** homa_streams_wanted() - the CONNECT that has @token; NULL if there is none. */
struct homa_streams_wanted *homa_streams_wanted(struct homa_streams *ctx,
						u64 token);
/** homa_streams_want_no_more() - free the entry @wanted. */
void homa_streams_want_no_more(struct homa_streams *ctx,
			       struct homa_streams_wanted *wanted);
/** homa_streams_listener() - the listener that homad calls @number, or NULL. */
struct homa_stream *homa_streams_listener(struct homa_streams *ctx, u64 number);

/* ---- event.c ---- */

/** homa_streams_pending() - are there events that nobody has taken? */
static inline bool homa_streams_pending(const struct homa_streams *ctx)
{
	return __atomic_load_n(&ctx->area->event.tail, __ATOMIC_SEQ_CST) !=
		       __atomic_load_n(&ctx->event_head, __ATOMIC_RELAXED) ||
	       unlikely(__atomic_load_n(&ctx->keeps, __ATOMIC_RELAXED));
}
/** homa_stream_add_news() - put the stream among those with news; the caller has @look. */
void homa_stream_add_news(struct homa_stream *stream);
/** homa_streams_drain() - take all events that homad has written; the caller has @look. */
void homa_streams_drain(struct homa_streams *ctx);
/** homa_streams_look() - take @look and all events, if there are any. */
void homa_streams_look(struct homa_streams *ctx);
/** homa_streams_nudge() - wake a thread that sleeps in homa_streams_wait(). */
void homa_streams_nudge(struct homa_streams *ctx);

/* ---- lock.c ---- */

/** homa_stream_share() - note that other processes have the stream from now on, too. */
void homa_stream_share(struct homa_stream *stream);
/** homa_stream_lock_rx(), homa_stream_lock_tx() - take the lock of the stream's readers or
 *  writers in all processes. They return false if homad is gone; then nothing was taken. */
bool homa_stream_lock_rx(struct homa_stream *stream);
bool homa_stream_lock_tx(struct homa_stream *stream);
/** homa_stream_unlock() - give back the lock in the slot: rx_lock or tx_lock. */
void homa_stream_unlock(struct homa_stream *stream, u32 *lock);
/** homa_stream_reload_rx(), homa_stream_reload_tx() - take the lock, too, and go on at the
 *  position where the last reader or writer stopped. */
bool homa_stream_reload_rx(struct homa_stream *stream);
bool homa_stream_reload_tx(struct homa_stream *stream);

/* ---- read.c, write.c ---- */

/** struct homa_stream_view - what a stream's reader or writer sees at one moment. Written by: the
 *  thread that looks */
struct homa_stream_view {
	/* HOMA_STREAM_HAS_*, as homad wrote it to the slot. */
	u32 state;
	/* The number of bytes that may be read, or written. */
	u32 bytes;
	/* Where in the buffer they lie (homa_stream_map()). */
	u64 map;
};

/** homa_stream_read_unmarked() - do homa_stream_read(), but return -ESTALE if the peer has ever
 *  sent an urgent byte. */
ssize_t homa_stream_read_unmarked(struct homa_stream *stream,
				  const struct iovec *iov, int n, int peek);
/** homa_stream_see_rx() - see the bytes that have arrived. The stream has a slot. */
void homa_stream_see_rx(struct homa_stream *stream,
			struct homa_stream_view *view);
/** homa_stream_see_tx() - see the room to write, and in @used the bytes that homad still
 *  needs. Only the writer calls it. */
void homa_stream_see_tx(struct homa_stream *stream,
			struct homa_stream_view *view, u32 *used);
/** homa_stream_look_tx() - do the same for a caller that is not the writer. */
void homa_stream_look_tx(struct homa_stream *stream,
			 struct homa_stream_view *view, u32 *used);
/** homa_stream_is_shut() - has one of the processes that have the stream said that no more is
 *  written? */
bool homa_stream_is_shut(const struct homa_stream *stream);
/** homa_stream_failure() - the negative errno with which the stream failed, or 0. */
int homa_stream_failure(struct homa_stream *stream);
/** homa_stream_nothing() - what a read returns that found no bytes in @view: 0 at the end of the
 *  stream, or a negative errno. */
int homa_stream_nothing(struct homa_stream *stream,
			const struct homa_stream_view *view);

/** homa_stream_slot() - the stream's slot; NULL until homad has opened the stream. */
static inline struct homa_stream_slot *
homa_stream_slot(const struct homa_stream *stream)
{
	return __atomic_load_n(&stream->slot, __ATOMIC_ACQUIRE);
}

/* ---- open.c ---- */

/** homa_streams_blank() - make a context that is not attached; NULL if there is no memory. */
struct homa_streams *homa_streams_blank(void);

/* ---- fork.c ---- */

/** homa_streams_prepare() - take all events, and give connections that were not accepted back to
 *  homad, for the process that accepts first; returns whether there is a stream. The caller has
 *  @look. */
bool homa_streams_prepare(struct homa_streams *ctx);
/** homa_streams_ask_ticket() - ask homad for a ticket. The caller has @ctl.
 *  @what_for: HOMA_CTL_FOR_* and HOMA_CTL_ALL_SEEN. */
int homa_streams_ask_ticket(struct homa_streams *ctx,
			    struct homa_streams_ticket *ticket, u32 what_for);
/** homa_streams_await_joined() - wait until homad has given @ctx, which nobody else knows yet,
 *  @num streams and listeners, or is gone. */
void homa_streams_await_joined(struct homa_streams *ctx, u32 num);
/** homa_streams_keep_used() - unmap the memory of @older that no stream of @ctx uses. */
void homa_streams_keep_used(const struct homa_streams *ctx,
			    struct homa_streams *older);

#endif
