/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The memory behind the slots of an attachment's streams (stream_grow.c, stream_slots.c): a
 * slot's buffers begin small, and the slow path makes them larger or smaller.
 *
 * Written by: the home of the attachment, one fast-path thread; what the slow path asks with by
 * homad_call() is the slow path's until the call and again after it.
 */
#ifndef HOMAD_STREAM_GROW_H
#define HOMAD_STREAM_GROW_H

#include "shm_stream.h"
#include "tcp_stream.h"

struct homad_streams;
struct homad_thread;

/* Log2 of the bytes that a buffer has at first. */
#define HOMAD_STREAM_SHIFT HOMA_STREAM_MIN_SHIFT
/* Log2 of the bytes up to which a buffer grows only because it is full. */
#define HOMAD_USUAL_SHIFT 16u
/* The most slots whose memory the slow path changes at once. */
#define HOMAD_GROW_BATCH 64u

/** struct homad_backing - memory behind a slot's buffers
 * @have: Log2 of the bytes of each buffer that have memory now.
 * @want: Log2 of the bytes that each buffer shall have. Only the slow path uses it while
 *	@busy is set.
 * @busy: True while the memory is about to change. A free slot is in no stack then. */
struct homad_backing {
	u8 have[HOMAD_BUFFERS];
	u8 want[HOMAD_BUFFERS];
	bool busy;
};

/**
 * homad_slot_put(), homad_slot_take() - free a slot; take a free one, of which there must
 * be one.
 */
void homad_slot_put(struct homad_streams *s, u32 slot);
u32 homad_slot_take(struct homad_streams *s);
/** homad_slot_prepare() - have 2^@shift bytes for arriving data in the next free slot of @s.
 *  0: it has them; -EAGAIN: it will when the slow path has answered; -ENOSPC: there is no
 *  slot; -ENOMEM. */
int homad_slot_prepare(struct homad_thread *t, struct homad_streams *s, u8 shift);
/**
 * homad_stream_widen() - enlarge the receive buffer to the size that is due, if that can be
 * done now.
 */
void homad_stream_widen(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_keeps_up() - note that the application has taken @bytes. */
void homad_stream_keeps_up(struct homad_thread *t, struct homad_stream *stream,
			   u32 taken);
/**
 * homad_stream_piles_up() - note that bytes have arrived and that the application takes
 * none.
 */
void homad_stream_piles_up(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_fills() - note that the application has written some bytes. */
void homad_stream_fills(struct homad_thread *t, struct homad_stream *stream);

/** homad_streams_want() - ask the slow path for slots if few are free. */
void homad_streams_want(struct homad_thread *t, struct homad_streams *s);
/** homad_streams_ask_later() - ask again for slots later, because some were refused. */
void homad_streams_ask_later(struct homad_thread *t, struct homad_streams *s);
/** homad_streams_retry() - ask again for slots for attachments that were refused some. */
void homad_streams_retry(struct homad_thread *t);

/* ---- what the slow path asks for by homad_call() ---- */

/* struct homad_streams_back - which slots of @streams may be used; the slow path fills it */
struct homad_streams_back {
	struct homad_streams *streams;
	u32 backed; /* number of slots, from the first, that have memory */
};

/**
 * struct homad_grow - memory behind the buffers of @num slots; @from, @to: log2 of their
 * bytes before and after; @slot: the numbers of the slots of @streams
 */
struct homad_grow {
	struct homad_streams *streams;
	u32 num;
	u32 slot[HOMAD_GROW_BATCH];
	u8 from[HOMAD_GROW_BATCH][HOMAD_BUFFERS],
		to[HOMAD_GROW_BATCH][HOMAD_BUFFERS];
};
/** homad_streams_grown() - use memory that has changed. homad_streams_cool(): fill @arg with
 *  free slots that were not needed for a while, and that are not used until
 *  homad_streams_grown(). @arg: struct homad_grow. */
int homad_streams_grown(struct homad_thread *t, void *arg);
int homad_streams_cool(struct homad_thread *t, void *arg);
/**
 * homad_streams_backed() - use slots that have got memory; @arg: struct homad_streams_back.
 */
int homad_streams_backed(struct homad_thread *t, void *arg);

#endif
