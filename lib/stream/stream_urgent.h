/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Urgent bytes of a stream, as Linux's sockets have them (MSG_OOB). Only libhoma-preload needs
 * them. A peer's urgent byte is a *mark* in the stream from when it is announced until a read goes
 * past it: reads stop before it, and the next one leaves it out, unless it is to stay inline.
 */
#ifndef HOMA_STREAM_URGENT_H
#define HOMA_STREAM_URGENT_H

#include <homa/stream.h>
#include <stdbool.h>

/** struct homa_stream_mark - where the peer's urgent byte is. Written by: homa_stream_mark() */
struct homa_stream_mark {
	/* The number of bytes from the next one to read to the urgent one. */
	size_t ahead;
	/* The urgent byte has arrived. */
	bool here;
	/* homa_stream_give_urgent() has given it. */
	bool given;
};

/** homa_stream_marks() - has the peer ever sent an urgent byte? Most have not. */
bool homa_stream_marks(struct homa_stream *stream);
/** homa_stream_mark() - is there a mark? Then @mark says where. */
bool homa_stream_mark(struct homa_stream *stream, struct homa_stream_mark *mark);
/** homa_stream_read_stopping() - do homa_stream_read(), but stop at marks. @inlined: an urgent byte
 *  stays in the stream. */
ssize_t homa_stream_read_stopping(struct homa_stream *stream,
				  const struct iovec *iov, int n, int peek,
				  bool inlined);
/** homa_stream_give_urgent() - give the urgent byte to @byte, once unless @peek. Returns 1; -EINVAL
 *  if there is no mark, or its byte was given; 0 if it will not come any more; -EAGAIN. */
int homa_stream_give_urgent(struct homa_stream *stream, char *byte, bool peek);
/** homa_stream_write_urgent() - do homa_stream_write(); the last byte that it takes is urgent.
 *  -EOPNOTSUPP if homad is too old for that. */
ssize_t homa_stream_write_urgent(struct homa_stream *stream,
				 const struct iovec *iov, int n);

#endif
