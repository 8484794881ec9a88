/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams through homad, without system calls on the data path and, for whoever
 * likes, without copies: bytes that have arrived are read where homad put them, and bytes
 * to send are written where homad takes them from.
 *
 * A *context* (struct homa_streams) is an attachment to homad. Its functions may be called
 * by several threads; calls on one stream by one thread at a time for each direction.
 * Nothing here blocks but homa_streams_open(), homa_stream_listen() and
 * homa_streams_wait(). Functions return 0 or a count, or a negative errno.
 */
#ifndef HOMA_STREAM_H
#define HOMA_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct homa_streams;
struct homa_stream;

/* What a stream is ready for: bits. */
enum {
	HOMA_STREAM_IN = 1,  /* bytes to read, or a connection to accept */
	HOMA_STREAM_OUT = 2, /* room to write */
	HOMA_STREAM_EOF =
		4, /* the peer writes no more; what came before may be unread */
	HOMA_STREAM_ERROR = 8, /* it has failed; see homa_stream_error() */
	HOMA_STREAM_HUP = 16, /* both directions have ended, or it has failed */
};

/** homa_streams_open() - attach to the homad of this network namespace
 * @path: its attach socket; NULL: $HOMA_SERVICE_SOCKET or the usual one.
 * -ECONNREFUSED, -ENOENT: no homad runs; -EOPNOTSUPP: it does no TCP; -EACCES, -EDQUOT. */
int homa_streams_open(struct homa_streams **out, const char *path);

/** homa_streams_close() - end the attachment; open streams are reset. */
void homa_streams_close(struct homa_streams *ctx);

/** homa_streams_takes() - does homad take connections to @remote? Else use the kernel's. */
int homa_streams_takes(struct homa_streams *ctx, const struct sockaddr *remote,
		       socklen_t length);

/** homa_stream_connect() - begin a connection
 * @local: NULL, or the address that it comes from, with port 0.
 * The stream is at once there; HOMA_STREAM_OUT or HOMA_STREAM_ERROR says how it went. */
int homa_stream_connect(struct homa_streams *ctx, const struct sockaddr *local,
			const struct sockaddr *remote, socklen_t length,
			struct homa_stream **out);

/** homa_stream_listen() - take the connections to a port
 * @fd: a kernel's TCP socket that is bound to the address and port and does not listen. It
 *	proves that the caller may have the port. homad keeps it, too, so that
 *	nobody else gets the port while the listener takes connections.
 * @backlog: connections that may wait for homa_stream_accept().
 * -EPERM: no rule of homad gives it this port: listen with the kernel's; -EADDRINUSE. */
int homa_stream_listen(struct homa_streams *ctx, int fd, int backlog,
		       struct homa_stream **out);

/** homa_stream_accept() - a connection that has come to @listener; -EAGAIN: none. */
int homa_stream_accept(struct homa_stream *listener, struct homa_stream **out);

/** homa_stream_close() - let go of it; what was written is still sent, in the background. */
void homa_stream_close(struct homa_stream *stream);

/** homa_stream_abort() - the same with a reset, and at once. */
void homa_stream_abort(struct homa_stream *stream);

/** homa_stream_shutdown() - no more will be written; what was is sent, then the end. A
 *  listener takes no more connections; homa_stream_accept() says -EINVAL. */
int homa_stream_shutdown(struct homa_stream *stream);

/** homa_stream_ready() - HOMA_STREAM_IN, ..., as of now; no system call. */
unsigned int homa_stream_ready(struct homa_stream *stream);

/** homa_stream_error() - why it failed, a positive errno; 0: it did not. */
int homa_stream_error(struct homa_stream *stream);

/** homa_stream_read() - up to @n bytes into @iov; 0: the stream has ended; -EAGAIN,
 *  -ECONNRESET, ... @peek: leave them there. */
ssize_t homa_stream_read(struct homa_stream *stream, const struct iovec *iov,
			 int n, int peek);

/** homa_stream_write() - as many bytes as there is room for; -EAGAIN, -EPIPE, ... */
ssize_t homa_stream_write(struct homa_stream *stream, const struct iovec *iov,
			  int n);

/** homa_stream_arrived() - the bytes that have arrived, in two pieces at most
 * Returns how many bytes; 0: none. homa_stream_taken() gives the first @bytes back. */
size_t homa_stream_arrived(struct homa_stream *stream, struct iovec piece[2]);
void homa_stream_taken(struct homa_stream *stream, size_t bytes);

/** homa_stream_room() - where bytes to send may be written, in two pieces at most
 * homa_stream_written() sends the first @bytes of them; -EPIPE, -ECONNRESET. */
size_t homa_stream_room(struct homa_stream *stream, struct iovec piece[2]);
int homa_stream_written(struct homa_stream *stream, size_t bytes);

/* Options: bits. */
enum {
	HOMA_STREAM_NODELAY = 1,   /* TCP_NODELAY */
	HOMA_STREAM_CORK = 2,	   /* TCP_CORK */
	HOMA_STREAM_KEEPALIVE = 4, /* SO_KEEPALIVE */
	HOMA_STREAM_RESET =
		8, /* the end of the program resets it: SO_LINGER with 0 s */
};
/** homa_stream_options() - all that are to be set. */
int homa_stream_options(struct homa_stream *stream, unsigned int options);

/**
 * struct homa_stream_facts - what is known of a stream
 * @size: bytes of the struct, set by the caller.
 * @local, @remote: its ends.
 * @mss: payload bytes of a full segment, @rtt_us: smoothed round trip in microseconds, @cwnd:
 *	congestion window in bytes; all three as of homad's last event for the stream.
 * @retransmits: segments sent again; 0, since they are not counted yet.
 * @unread: bytes that have arrived and were not read.
 * @unsent: bytes that were written and that homad still needs.
 */
struct homa_stream_facts {
	size_t size;
	struct sockaddr_storage local, remote;
	uint32_t mss, rtt_us, cwnd, retransmits;
	uint32_t unread, unsent;
};
int homa_stream_facts(struct homa_stream *stream,
		      struct homa_stream_facts *facts);

/** homa_stream_set_user(), homa_stream_user() - a pointer of the caller's. */
void homa_stream_set_user(struct homa_stream *stream, void *user);
void *homa_stream_user(const struct homa_stream *stream);

/** homa_streams_poll() - streams about which there is news, each once, @max at most
 * Several threads may call it; each piece of news goes to one of them. */
int homa_streams_poll(struct homa_streams *ctx, struct homa_stream **news,
		      int max);

/** homa_streams_fd() - a descriptor that becomes readable after homa_streams_arm() when
 *  there is news. It stays readable until homa_streams_poll() has been called. */
int homa_streams_fd(struct homa_streams *ctx);

/** homa_streams_arm() - before sleeping: 1: sleep; 0: there is news already. */
int homa_streams_arm(struct homa_streams *ctx);

/** homa_streams_wait() - wait for news, @timeout_ns at most, -1: for ever
 * Returns 1, 0 after @timeout_ns, -EINTR, or -ECONNRESET: homad is gone, and all streams failed. */
int homa_streams_wait(struct homa_streams *ctx, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
