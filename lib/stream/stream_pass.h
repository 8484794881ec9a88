/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What only libhoma-preload needs, as stream_fork.h: streams that go to another process of the
 * user through a UNIX socket (SCM_RIGHTS). See pass.c.
 */
#ifndef HOMA_STREAM_PASS_H
#define HOMA_STREAM_PASS_H

#include <homa/stream.h>
#include <stdbool.h>

/**
 * homa_stream_pass() - have homad hold the stream for another process
 * @stands: receives a socket that stands for the stream. The caller sends it, and closes its own.
 * The stream goes on as one that other processes have, too: as before fork(), the caller waits for
 * the ends of reads and writes that began before, and sends the socket only then. Returns 0 or a
 * negative errno: -ENOTCONN if the stream is not open yet or a listener is ending, -EDQUOT if too
 * many are on their way.
 */
int homa_stream_pass(struct homa_stream *stream, int *stands);

/** homa_stream_is_passed() - does the descriptor @fd stand for a stream? */
bool homa_stream_is_passed(int fd);

/** struct homa_stream_taken - a stream that another process has passed. Written by:
 *  homa_streams_take()
 * @stream: the stream.
 * @before: this process had it before, by the same pointer.
 * @fd: a listener's socket of the kernel, which the caller closes; -1 if @before or if the stream
 *	is a connection. */
struct homa_stream_taken {
	struct homa_stream *stream;
	bool before;
	int fd;
};

/** homa_streams_take() - get the stream for which the socket @stands stands. Returns 0 or a
 *  negative errno: -ENOENT if homad knows of none of this user. */
int homa_streams_take(struct homa_streams *ctx, int stands,
		      struct homa_stream_taken *taken);

#endif
