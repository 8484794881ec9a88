/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What only libhoma-preload needs, whose programs expect what the kernel does.
 *
 * Streams for a child of fork(). homad holds what the parent has for a child that shows a
 * ticket; the child attaches by itself and gets all under the same pointers. A listener's
 * connections then go to whoever accepts them first, and a connection ends when both have
 * closed it. A read or write that began before the ticket was filled may not know that the stream
 * is shared, so the caller waits for the ends of all of them between the first two calls. Between
 * the second and the third, fork() is all that may happen.
 */
#ifndef HOMA_STREAM_FORK_H
#define HOMA_STREAM_FORK_H

#include <homa/stream.h>
#include <stdbool.h>
#include "patience.h"

/** struct homa_streams_ticket - what the child shows to homad to get its parent's streams. Written
 *  by: the thread that forks, in the parent and then in the child. */
struct homa_streams_ticket {
	/* The random number by which homad knows the ticket. */
	uint8_t token[16];
	/* The write end of a pipe, by which homad sees when all processes that could show the
	 * ticket are gone; -1 if there is no ticket. */
	int pipe;
	/* Why there is no ticket, a negative errno; -ENOENT if there are no streams. In the child:
	 * why it has not got all streams, or 0. */
	int error;
};

/** homa_streams_before_fork() - fill the ticket before fork(). It takes the lock for questions to
 *  homad, and homa_streams_at_fork() that of events; homa_streams_in_parent() gives both back. */
void homa_streams_before_fork(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket);
void homa_streams_at_fork(struct homa_streams *ctx,
			  const struct homa_streams_ticket *ticket);
void homa_streams_in_parent(struct homa_streams *ctx,
			    struct homa_streams_ticket *ticket);
/** homa_streams_in_child() - make the child's own context and move the streams of @ctx there.
 *  Returns NULL if there is none; then the streams have failed. */
struct homa_streams *homa_streams_in_child(struct homa_streams *ctx,
					   struct homa_streams_ticket *ticket);

/** homa_stream_give_up() - have a connection that is being opened fail with ECONNRESET; -ENOTCONN
 *  if it is not being opened any more. */
int homa_stream_give_up(struct homa_stream *stream);

/** homa_streams_descriptors() - replace each descriptor of @ctx by what @own returns for it. Nobody
 *  else uses @ctx meanwhile. */
void homa_streams_descriptors(struct homa_streams *ctx, int (*own)(int fd));

/*
 * Streams for a program that exec runs. It shows such a ticket, too, but exec leaves it no
 * memory. So the caller carries over what homad needs to find a stream, and homad gives the new
 * program the memory in which the streams lie.
 */

/** struct homa_stream_carried - where homad finds a stream, and what is known of it. Written by:
 *  the program before exec; read by: the one after it.
 * @name: homad's name of the stream: generation << 32 | slot, or a listener's number.
 * @area: the id of the area in which the stream lies; 0 for a listener.
 * @slot: the stream's slot in that area; 0 for a listener.
 * @options: the HOMA_STREAM_OPT_* that the application wants.
 * @told_options: the HOMA_STREAM_OPT_* that homad was told.
 * @patience: what the application has set with homa_stream_patience().
 * @listens: 1 if the stream is a listener.
 * @shut: 1 if the application writes no more.
 * @unused: 0. */
struct homa_stream_carried {
	uint64_t name;
	uint32_t area, slot;
	uint32_t options, told_options;
	struct homa_patience patience;
	uint8_t listens, shut;
	uint8_t unused[2];
};

/** homa_streams_before_exec() - fill the ticket before exec. The caller closes its pipe, which
 *  is -1 if there is no ticket, and waits for reads and writes as before fork(). */
void homa_streams_before_exec(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket);
/** homa_stream_carry() - fill @carried; false if the stream is not open yet or is ending. */
bool homa_stream_carry(const struct homa_stream *stream,
		       struct homa_stream_carried *carried);
/** homa_streams_after_exec() - make a context with the carried streams in the new program
 * @path: homad's socket, or NULL for the usual one.
 * @token: the token of the ticket.
 * @carried: @num streams that were carried over.
 * @streams: receives one stream for each of @carried, NULL if homad does not have it.
 * Streams of the ticket that are not in @carried are closed. Returns 0 or a negative errno. */
int homa_streams_after_exec(struct homa_streams **out, const char *path,
			    const uint8_t token[16],
			    const struct homa_stream_carried *carried,
			    uint32_t num, struct homa_stream **streams);

/** homa_stream_connect_with() - homa_stream_connect() with @patience, which counts while the
 *  connection is being opened, too. @named: homa_stream_begun() is to know the address. */
int homa_stream_connect_with(struct homa_streams *ctx,
			     const struct homa_patience *patience,
			     const struct sockaddr *local,
			     const struct sockaddr *remote, socklen_t length,
			     bool named, struct homa_stream **out);
/** homa_stream_begun() - write from where a connection comes that is being opened to @local. It
 *  waits until homad has begun to open it. -ENOTCONN if homad does not tell. */
int homa_stream_begun(struct homa_stream *stream, struct sockaddr_storage *local);

/** homa_stream_backlog() - let at most @backlog connections wait at a listener that there is. */
int homa_stream_backlog(struct homa_stream *listener, int backlog);
/** homa_stream_peek_at() - read as homa_stream_read() does with @peek, from the byte @offset behind
 *  the next one on. It does not stop at urgent bytes. */
ssize_t homa_stream_peek_at(struct homa_stream *stream, const struct iovec *iov,
			    int n, size_t offset);

/** homa_stream_is_shared() - do other processes have the stream, too? */
bool homa_stream_is_shared(const struct homa_stream *stream);

/** homa_stream_common() - memory of 64 bytes that all processes which have the connection can
 *  write, and which homad does not look at; it may be anything at first. NULL if the connection is
 *  not open yet, or this child of fork() does not have it. */
void *homa_stream_common(const struct homa_stream *stream);

/** homa_streams_each() - have @call called for each connection. */
void homa_streams_each(struct homa_streams *ctx,
		       void (*call)(struct homa_stream *stream));

/** homa_stream_is_full() - tell whether no more bytes may come until some are read. While the
 *  buffer grows, which it does when it is nearly full, this may be true for a moment. */
bool homa_stream_is_full(struct homa_stream *stream);

/** homa_stream_writable() - the bytes that homa_stream_write() would take now. */
size_t homa_stream_writable(struct homa_stream *stream);
/** homa_stream_send_grows() - is the send buffer still the small one of the begin, and will homad
 *  give it more memory when it is full? */
bool homa_stream_send_grows(const struct homa_stream *stream);
/** homa_stream_send_is_first() - tell whether the send buffer is still the small one of the begin,
 *  also of a connection that has failed. */
bool homa_stream_send_is_first(const struct homa_stream *stream);
/** homa_stream_limit_send() - let at most @most bytes wait in the send buffer; 0: as many as it
 *  holds. */
void homa_stream_limit_send(struct homa_stream *stream, uint32_t most);

/** homa_stream_limit_unsent() - let at most @most bytes wait in the send buffer that were never
 *  sent, or a write of 4 KiB more; 0: as many as it holds. It does nothing with an older homad,
 *  which does not tell. */
void homa_stream_limit_unsent(struct homa_stream *stream, uint32_t most);

/** homa_stream_quick_acks() - do what TCP_QUICKACK does: @on: what has come is acknowledged at
 *  once, and so are the next segments; else ACKs wait for bytes to send. It does nothing before
 *  the connection is open, and with an older homad. */
int homa_stream_quick_acks(struct homa_stream *stream, bool on);

/** homa_streams_hung_up() - note that homad has ended: the descriptor by which it signals has. */
void homa_streams_hung_up(struct homa_streams *ctx);

/** homa_streams_settle() - wait until homad has heard of all listeners that were closed or shut
 *  down, and reset the connections that it had given them until then. */
void homa_streams_settle(struct homa_streams *ctx);

#endif
