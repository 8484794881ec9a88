/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams through homad, from the application's side: <homa/stream.h> above,
 * abi/shm_stream.h below. Bottom-up, each file calls only those before it:
 *
 *	area.c		what homad's memory looks like, and whether that is possible
 *	attach.c	the connection to homad, and questions over it
 *	command.c	the command ring, kicks, doorbells; whether homad lives
 *	life.c		streams and what finds them: slots, tokens, listeners' numbers
 *	event.c		the event ring, and news for the application
 *	lock.c		streams that other processes have, too
 *	read.c, write.c	the data path
 *	ready.c, facts.c	what a stream is ready for, and what is known of it
 *	connect.c, listen.c, close.c	how streams begin and end
 *	wait.c		news handed out, and sleeping until there is some
 *	open.c		the context
 *	fork.c		what a child of fork() gets
 *	exec.c		what a program gets that exec runs
 *
 * Locks, outermost first: @ctl (a question to homad is under way), @look (the event ring
 * and all that finds streams), @give (the command ring). Reading and writing take none,
 * but for @give when a doorbell is rung.
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
#include "homa_list.h"
#include "homa_spin.h"
#include "homa_turn.h"
#include "libhoma_impl.h"
#include "shm_stream.h"

enum homa_stream_kind {
	HOMA_STREAM_KIND_CONNECTION,
	HOMA_STREAM_KIND_LISTENER,
};

/** struct homa_stream - a connection or a listener */
struct homa_stream {
	struct homa_streams *ctx;
	u8 kind; /* enum homa_stream_kind */
	/* The application has said that it writes no more. */
	bool shut;
	/* HOMA_STREAM_OPT_*: wanted, and of those what homad was told. */
	u32 options, told_options;
	/* Where it is in homad's memory; NULL until it is open. Stored with release under
	 * @look when all below is set, and never changed again. */
	struct homa_stream_slot *slot;
	/* Its slot in the context's own area, by which homad names it: mostly the same. */
	struct homa_stream_slot *own;
	u32 index, generation;
	/* Begin of its spans for bytes that arrive, and for bytes to send; and of its first
	 * buffers of both. */
	u8 *rx, *tx, *rx_first, *tx_first;
	/* Why homad could not open it, or ended the listener; positive errno. Atomic. */
	u32 error;
	void *user; /* atomic */

	/* Under @look. Its places among all streams and among those with news. */
	struct homa_list all, news;
	/* Its place in @queue of the listener that it came to, until it is accepted. */
	struct homa_list queued;
	/* A connection's: CONNECT's token; a listener's: its number. */
	u64 token;
	/* A listener's: connections not yet accepted; how many, atomic. */
	struct homa_list queue;
	u32 waiting;
	/* A listener that was closed; and one that takes no more, and of which homad may still
	 * speak. */
	bool closed, leaves;
	/* A listener with several holders: connections wait at homad, atomic; and one was asked
	 * for, and no answer has come. */
	bool offered, asked;

	/* The reader's: bytes taken, and what that was when homad was last told. Atomic,
	 * because others look at them. */
	u32 rx_read __attribute__((aligned(64)));
	u32 rx_rung;
	/* Other processes may read from it, too: what stands in the slot counts. */
	bool shared_rx;
	/* The writer's: bytes written, atomic; where those to send are. */
	u32 tx_end __attribute__((aligned(64)));
	/* Others may write. */
	bool shared_tx;
	u64 tx_map;
};

/** struct homa_streams_wanted - a CONNECT that homad has not answered */
struct homa_streams_wanted {
	struct homa_stream *stream; /* NULL: it was closed meanwhile */
	/* The other half of the token; 0: nothing is wanted here. */
	u32 serial;
	/* The next free one, plus 1. */
	u32 next_free;
};

/** struct homa_streams - a context */
struct homa_streams {
	unsigned int fork_generation;
	/* homad is gone, or has said what cannot be. Atomic. */
	u32 gone;
	struct homa_svc_att *att;
	struct homa_stream_area *area;
	u64 bytes;
	/* Copies of what the area says; homad does not change it. */
	u32 num_slots, entries, num_rules, id;
	struct homa_stream_command *commands;
	struct homa_stream_event *events;
	struct homa_stream_slot *slots;
	u8 *spans, *firsts;
	struct homa_stream_rule rules[HOMA_STREAM_RULES];
	/* The context of this process's parent, of whose memory some is in use here. Streams of
	 * it that homad has not given us yet. */
	struct homa_streams *older;
	u32 to_join;
	/* Becomes readable when homad signals events. */
	int event_fd;
	/* Becomes readable when a thread of this process has news for one that sleeps. */
	int nudge_fd;

	pthread_mutex_t ctl;
	/* Listeners that homad may know already, and this side does not; how often homad was
	 * told that one takes no more, and has answered that; all under @look. */
	u32 listening, unlistens, unlistened;

	/* The command ring. */
	struct homa_turn give __attribute__((aligned(64)));
	u32 command_tail, command_head;

	/* The event ring, and streams. */
	struct homa_turn look __attribute__((aligned(64)));
	u32 event_head;	 /* atomic: looked at without the lock */
	u32 num_news;	 /* streams in @news; atomic */
	u32 event_given; /* up to which its entries are homad's again */
	/* Events that were put aside, which come before those in the ring: from @kept_at to
	 * @kept_num, with memory for @kept_size; @keeps, atomic: there are some. */
	struct homa_stream_event *kept;
	u32 kept_at, kept_num, kept_size;
	bool keeps;
	struct homa_list all, news, listeners;
	/* The stream in each slot, or NULL. */
	struct homa_stream **by_slot;
	struct homa_streams_wanted *wanted;
	/* Its size, and how many there are in it now; the first free one, plus 1. */
	u32 num_wanted, now_wanted, free_wanted, serials;
	/* Threads that sleep in homa_streams_wait(). */
	u32 sleepers;
	/* homad was asked to signal; and its signal has not been taken out of the pipe. */
	bool armed, signalled;
	/* All streams had news of homad's end. */
	bool mourned;
	/* One thread in homa_streams_wait() looks before it sleeps, with @spin. */
	bool spinning;
	struct homa_spin spin;
	/* Calls of homa_streams_poll() that found nothing, and when homad was last seen, ns. */
	u32 vain;
	u64 alive_at;
};

static inline bool homa_streams_gone(const struct homa_streams *ctx)
{
	return __atomic_load_n(&ctx->gone, __ATOMIC_ACQUIRE) != 0;
}

/* ---- area.c ---- */

/** homa_streams_lay() - take the area's layout over; -EPROTO: it is impossible. */
int homa_streams_lay(struct homa_streams *ctx);
/** homa_stream_end_of() - -EINVAL, -EAFNOSUPPORT: @sa is no address of TCP's. */
int homa_stream_end_of(struct homa_stream_end *end, const struct sockaddr *sa,
		       socklen_t length);
void homa_stream_end_to(struct sockaddr_storage *sa,
			const struct homa_stream_end *end);

/* ---- attach.c ---- */

/** homa_streams_attach() - with @path, fill what the connection and the memory are. */
int homa_streams_attach(struct homa_streams *ctx, const char *path);
/** homa_streams_detach() - the opposite; harmless if some of it is not there. */
void homa_streams_detach(struct homa_streams *ctx);
/** homa_streams_ask_listen() - under @ctl: the listener's number, or an error. */
int homa_streams_ask_listen(struct homa_streams *ctx, int fd, u32 backlog,
			    u32 *number);

/* ---- command.c ---- */

/** homa_streams_lose() - it is over: nothing that homad says counts any more. */
void homa_streams_lose(struct homa_streams *ctx);
/** homa_streams_check() - does homad live? A system call. Else as above. */
void homa_streams_check(struct homa_streams *ctx);
/** homa_streams_kick() - wake homad if it wants to be told of any of @why, HOMA_SHM_KICK_*. */
void homa_streams_kick(struct homa_streams *ctx, u32 why);
/** homa_streams_command() - -ECONNRESET: homad is gone. While the ring is full it waits, and
 *  puts aside what homad says, which may wait for that. homa_streams_command_looking(): the
 *  same under @look. */
int homa_streams_command(struct homa_streams *ctx,
			 const struct homa_stream_command *command);
int homa_streams_command_looking(struct homa_streams *ctx,
				 const struct homa_stream_command *command);
/** homa_streams_give_back() - under @look: the entries of the event ring that were taken are
 *  homad's again. If it had filled the ring until now, events may wait for that, and it
 *  sleeps. */
void homa_streams_give_back(struct homa_streams *ctx);
/** homa_streams_pause() - homad is about to answer; @turns: how often this was called. */
void homa_streams_pause(struct homa_streams *ctx, u32 *turns);
/** homa_stream_tell() - a command about a stream that has a slot; homa_stream_tell_looking():
 *  under @look. */
int homa_stream_tell(struct homa_stream *stream, enum homa_stream_op op);
int homa_stream_tell_looking(struct homa_stream *stream, enum homa_stream_op op,
			     u32 value);
/** homa_stream_ring() - positions of the stream have moved. */
int homa_stream_ring(struct homa_stream *stream);

/* ---- life.c ---- */

/** homa_streams_usable() - 0 or -ECONNRESET: a child of fork(), or homad is gone. */
int homa_streams_usable(const struct homa_streams *ctx);
struct homa_stream *homa_stream_new(struct homa_streams *ctx, u8 kind);
/* The rest under @look. */
/** homa_stream_forget() - nothing finds it any more, and it is freed. */
void homa_stream_forget(struct homa_stream *stream);
/** homa_stream_drop() - the same, and homad lets go of it, too: CLOSE or ABORT. */
void homa_stream_drop(struct homa_stream *stream, enum homa_stream_op op);
/** homa_stream_adopt() - it is in slot @index, which is free, from now on. */
void homa_stream_adopt(struct homa_stream *stream, u32 index, u32 generation);
/** homa_streams_want() - give @stream a token; -ENOMEM, -ENOBUFS: too many at once. */
int homa_streams_want(struct homa_streams *ctx, struct homa_stream *stream);
/** homa_streams_wanted() - what @token stands for; NULL: nothing. */
struct homa_streams_wanted *homa_streams_wanted(struct homa_streams *ctx,
						u64 token);
void homa_streams_want_no_more(struct homa_streams *ctx,
			       struct homa_streams_wanted *wanted);
struct homa_stream *homa_streams_listener(struct homa_streams *ctx, u64 number);

/* ---- event.c ---- */

static inline bool homa_streams_pending(const struct homa_streams *ctx)
{
	return __atomic_load_n(&ctx->area->event.tail, __ATOMIC_SEQ_CST) !=
		       __atomic_load_n(&ctx->event_head, __ATOMIC_RELAXED) ||
	       unlikely(__atomic_load_n(&ctx->keeps, __ATOMIC_RELAXED));
}
/** homa_stream_add_news() - under @look. */
void homa_stream_add_news(struct homa_stream *stream);
/** homa_streams_drain() - under @look: take what homad has said. */
void homa_streams_drain(struct homa_streams *ctx);
/** homa_streams_look() - the same without the lock, if there is anything. */
void homa_streams_look(struct homa_streams *ctx);
/** homa_streams_nudge() - wake a thread that sleeps in homa_streams_wait(). */
void homa_streams_nudge(struct homa_streams *ctx);

/* ---- lock.c ---- */

/** homa_stream_share() - other processes have it from now on, too. */
void homa_stream_share(struct homa_stream *stream);
/** homa_stream_lock_rx(), homa_stream_lock_tx() - nobody else reads or writes it, if it is
 *  shared. False: it is not. homa_stream_unlock(): @lock as it was taken. */
bool homa_stream_lock_rx(struct homa_stream *stream);
bool homa_stream_lock_tx(struct homa_stream *stream);
void homa_stream_unlock(struct homa_stream *stream, u32 *lock);
/** homa_stream_reload_rx(), homa_stream_reload_tx() - the same, and the positions are those
 *  at which the last one stopped. */
bool homa_stream_reload_rx(struct homa_stream *stream);
bool homa_stream_reload_tx(struct homa_stream *stream);

/* ---- read.c, write.c ---- */

/** struct homa_stream_view - what a stream's reader or writer sees at one moment */
struct homa_stream_view {
	u32 state;
	u32 bytes; /* that may be read, or written */
	u64 map;
};

/** homa_stream_see_rx() - bytes that have arrived. It has a slot. */
void homa_stream_see_rx(struct homa_stream *stream,
			struct homa_stream_view *view);
/** homa_stream_see_tx() - room to write, and @used, bytes that homad still needs. */
void homa_stream_see_tx(struct homa_stream *stream,
			struct homa_stream_view *view, u32 *used);
/** homa_stream_look_tx() - the same, of who does not write. */
void homa_stream_look_tx(struct homa_stream *stream,
			 struct homa_stream_view *view, u32 *used);
/** homa_stream_is_shut() - who has it said that no more is written. */
bool homa_stream_is_shut(const struct homa_stream *stream);
/** homa_stream_failure() - a negative errno, or 0: it has not failed. */
int homa_stream_failure(struct homa_stream *stream);

static inline struct homa_stream_slot *
homa_stream_slot(const struct homa_stream *stream)
{
	return __atomic_load_n(&stream->slot, __ATOMIC_ACQUIRE);
}

/* ---- open.c ---- */

/** homa_streams_blank() - a context without anything; NULL: no memory. */
struct homa_streams *homa_streams_blank(void);

/* ---- fork.c ---- */

/** homa_streams_await_joined() - until homad has given @ctx, which nobody else knows yet, @num
 *  streams and listeners, or is gone. */
void homa_streams_await_joined(struct homa_streams *ctx, u32 num);
/** homa_streams_keep_used() - unmap what no stream of @ctx uses of the memory of @older. */
void homa_streams_keep_used(const struct homa_streams *ctx,
			    struct homa_streams *older);

#endif
