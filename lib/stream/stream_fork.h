/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What only libhoma-preload needs, whose programs expect what the kernel does.
 *
 * Streams for a child of fork(). homad holds what the parent has for a child that shows a
 * ticket; the child attaches by itself and gets all under the same pointers. A listener's
 * connections then go to whoever accepts them first, and a connection ends when both have
 * closed it. Between the first two calls, fork() is all that may happen.
 */
#ifndef HOMA_STREAM_FORK_H
#define HOMA_STREAM_FORK_H

#include <homa/stream.h>
#include <stdbool.h>

/** struct homa_streams_ticket - what the child shows */
struct homa_streams_ticket {
	uint8_t token[16];
	/* A pipe's write end: homad sees when all who have it are gone. -1: no ticket. */
	int pipe;
};

/** homa_streams_before_fork() - in the parent; @ctx's locks are held from now on. */
void homa_streams_before_fork(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket);
void homa_streams_in_parent(struct homa_streams *ctx,
			    struct homa_streams_ticket *ticket);
/** homa_streams_in_child() - the child's own context, to which the streams of @ctx belong
 *  now; NULL: there is none, and they have failed. */
struct homa_streams *homa_streams_in_child(struct homa_streams *ctx,
					   struct homa_streams_ticket *ticket);

/*
 * Streams for a program that exec runs: the same ticket, but of memory nothing is left. So what
 * finds a stream is carried over, and homad gives the new program the memory of before.
 */

/** struct homa_stream_carried - where homad finds a stream, and what is known of it
 * @name: as homad calls it. @area, @slot: of whose memory, by its id, which slot; not of a
 *	listener.
 * @options, @told_options: HOMA_STREAM_OPT_*. @shut: the application writes no more. */
struct homa_stream_carried {
	uint64_t name;
	uint32_t area, slot;
	uint32_t options, told_options;
	uint8_t listens, shut;
	uint8_t unused[6];
};

/** homa_streams_before_exec() - a ticket; its pipe is the caller's, -1: there is none. */
void homa_streams_before_exec(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket);
/** homa_stream_carry() - false: it is not open yet. */
bool homa_stream_carry(const struct homa_stream *stream,
		       struct homa_stream_carried *carried);
/** homa_streams_after_exec() - in the new program: a context with those streams, at @path
 * @streams: for each of the @num in @carried the stream; NULL: homad does not have it.
 * What else the ticket is for is closed. Returns 0 or a negative errno. */
int homa_streams_after_exec(struct homa_streams **out, const char *path,
			    const uint8_t token[16],
			    const struct homa_stream_carried *carried,
			    uint32_t num, struct homa_stream **streams);

/** homa_stream_is_shared() - other processes have it, too. */
bool homa_stream_is_shared(const struct homa_stream *stream);

/** homa_streams_settle() - until homad has heard of the listeners that were closed or shut
 *  down: connections that it had given until then are reset now, and not when somebody looks. */
void homa_streams_settle(struct homa_streams *ctx);

#endif
