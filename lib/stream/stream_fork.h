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

/** homa_stream_is_shared() - other processes have it, too. */
bool homa_stream_is_shared(const struct homa_stream *stream);

/** homa_streams_settle() - until homad has heard of the listeners that were closed or shut
 *  down: connections that it had given until then are reset now, and not when somebody looks. */
void homa_streams_settle(struct homa_streams *ctx);

#endif
