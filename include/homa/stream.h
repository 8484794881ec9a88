/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams through homad, without system calls on the data path. A program may also do
 * without copies: it reads bytes that have arrived where homad put them, and writes bytes to
 * send where homad takes them from.
 *
 * A *context* (struct homa_streams) is an attachment to homad. Its functions may be called
 * by several threads; calls on one stream by one thread at a time for each direction.
 * Nothing here blocks but homa_streams_open(), homa_stream_await_way(), homa_stream_listen()
 * and homa_streams_wait(). Functions return 0 or a count, or a negative errno.
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

/* Bits that say what a stream is ready for. */
enum {
	HOMA_STREAM_IN = 1, /* there are bytes to read, or a connection to accept */
	HOMA_STREAM_OUT = 2, /* there is room to write */
	HOMA_STREAM_EOF =
		4, /* the peer sends no more; bytes that it sent before may be unread */
	HOMA_STREAM_ERROR = 8, /* it has failed; see homa_stream_error() */
	HOMA_STREAM_HUP = 16, /* both directions have ended, or it has failed */
};

/** homa_streams_open() - attach to the homad of this network namespace
 * @out: receives the context.
 * @path: homad's attach socket; NULL means $HOMA_SERVICE_SOCKET or the usual one.
 * Errors: -ECONNREFUSED and -ENOENT (no homad runs), -EOPNOTSUPP (homad does no TCP), -EACCES
 * (homad's rules forbid it), -EDQUOT (the user has as many handles or as much memory as
 * homad's limits allow). */
int homa_streams_open(struct homa_streams **out, const char *path);

/** homa_streams_close() - end the attachment; open streams are reset. */
void homa_streams_close(struct homa_streams *ctx);

/** homa_streams_takes() - does homad take connections to @remote? If it returns 0, the program
 *  uses a socket of the kernel. */
int homa_streams_takes(struct homa_streams *ctx, const struct sockaddr *remote,
		       socklen_t length);

/** homa_stream_connect() - begin a connection
 * @local: NULL, or the local address of the connection, with port 0.
 * @remote: the peer's address and port, AF_INET or AF_INET6.
 * @length: bytes of @remote, and of @local.
 * @out: receives the stream.
 * It does not wait until the connection is open. The stream becomes ready for
 * HOMA_STREAM_OUT when it is, and for HOMA_STREAM_ERROR when it has failed.
 * Errors: -EINVAL, -EAFNOSUPPORT (an address), -ENOBUFS (too many connections are being opened),
 * -ENOMEM, -ECONNRESET (homad has ended). */
int homa_stream_connect(struct homa_streams *ctx, const struct sockaddr *local,
			const struct sockaddr *remote, socklen_t length,
			struct homa_stream **out);

/** homa_stream_await_way() - wait until homad has found out whether it can open the connection
 * Whether a device of homad's leads to the address is known before the peer has answered: when
 * homad has looked at what it was asked, and perhaps has asked the kernel for a route. Returns 0
 * if the connection is being opened, or is open, or if homad has not looked for some 50 ms; or why
 * it has failed: -EOPNOTSUPP says that the program shall use a socket of the kernel. */
int homa_stream_await_way(struct homa_stream *stream);

/** homa_stream_listen() - have homad take the connections to a port
 * @fd: a kernel's TCP socket that is bound to the address and port and does not listen. It
 *	proves that the caller may have the port. homad keeps it, too, so that
 *	nobody else gets the port while the listener takes connections.
 * @backlog: the number of connections that may wait for homa_stream_accept(); if it is negative, as
 *	many as homad lets wait.
 * @out: receives the listener.
 * Errors: -EPERM (no rule of homad gives the program this port; it may listen with the
 * kernel's socket), -EADDRINUSE (another listener of homad has the port). */
int homa_stream_listen(struct homa_streams *ctx, int fd, int backlog,
		       struct homa_stream **out);

/** homa_stream_accept() - take a connection that has come to @listener
 * @out: receives the stream, which has the listener's options.
 * Errors: -EAGAIN (none has come), -EINVAL (not a listener, or it was shut down), -ECONNRESET
 * (homad has ended). */
int homa_stream_accept(struct homa_stream *listener, struct homa_stream **out);

/** homa_stream_close() - free the stream; homad still sends what was written. */
void homa_stream_close(struct homa_stream *stream);

/** homa_stream_abort() - free the stream and reset the connection at once. */
void homa_stream_abort(struct homa_stream *stream);

/** homa_stream_shutdown() - say that no more will be written; homad sends what was written,
 *  then the end. A listener takes no more connections, and homa_stream_accept() gives
 *  -EINVAL. Errors: -ENOTCONN (it is not open yet), or the error with which the stream failed. */
int homa_stream_shutdown(struct homa_stream *stream);

/** homa_stream_ready() - what the stream is ready for now: a sum of HOMA_STREAM_IN and so on.
 *  It makes no system call. */
unsigned int homa_stream_ready(struct homa_stream *stream);

/** homa_stream_error() - why the stream failed: a positive errno, or 0 if it did not. */
int homa_stream_error(struct homa_stream *stream);

/** homa_stream_read() - read bytes that have arrived into the @n pieces of @iov
 * @peek: if not 0, the bytes stay unread.
 * Returns how many bytes, or 0 if the peer has ended the stream. Errors: -EAGAIN (none have
 * arrived), or the error with which the stream failed, such as -ECONNRESET. */
ssize_t homa_stream_read(struct homa_stream *stream, const struct iovec *iov,
			 int n, int peek);

/** homa_stream_write() - write as many bytes of the @n pieces of @iov as there is room for
 * Returns how many bytes. Errors: -EAGAIN (there is no room), -EPIPE (no more may be written),
 * or the error with which the stream failed. */
ssize_t homa_stream_write(struct homa_stream *stream, const struct iovec *iov,
			  int n);

/** homa_stream_arrived() - where the bytes that have arrived are, in two pieces at most
 * Returns how many bytes there are. homa_stream_taken() says that the first @bytes of them
 * were read, and gives their memory back to homad. */
size_t homa_stream_arrived(struct homa_stream *stream, struct iovec piece[2]);
void homa_stream_taken(struct homa_stream *stream, size_t bytes);

/** homa_stream_room() - where bytes to send may be written, in two pieces at most
 * Returns how many bytes there is room for. homa_stream_written() sends the first @bytes of
 * them. Errors: -EPIPE (no more may be written), or the error with which the stream failed. */
size_t homa_stream_room(struct homa_stream *stream, struct iovec piece[2]);
int homa_stream_written(struct homa_stream *stream, size_t bytes);

/* Bits that are options of a stream; each does what the socket option does. */
enum {
	HOMA_STREAM_NODELAY = 1,   /* TCP_NODELAY */
	HOMA_STREAM_CORK = 2,	   /* TCP_CORK */
	HOMA_STREAM_KEEPALIVE = 4, /* SO_KEEPALIVE */
	HOMA_STREAM_RESET =
		8, /* if the program ends, homad resets it: SO_LINGER with 0 s */
};
/** homa_stream_options() - set the options in @options, and clear all others.
 *  Errors: -EINVAL (a bit that is no option), -ECONNRESET (homad has ended). */
int homa_stream_options(struct homa_stream *stream, unsigned int options);

/* How long a stream waits for a peer that is silent; each is what the socket option is. */
enum {
	/* TCP_USER_TIMEOUT: ms that bytes wait for an answer before the stream fails; 0: as many
	 * as homad's number of retransmissions takes */
	HOMA_STREAM_USER_TIMEOUT,
	HOMA_STREAM_KEEP_IDLE,	   /* TCP_KEEPIDLE: s, 1 to 32767 */
	HOMA_STREAM_KEEP_INTERVAL, /* TCP_KEEPINTVL: s, 1 to 32767 */
	HOMA_STREAM_KEEP_PROBES,   /* TCP_KEEPCNT: 1 to 127 */
};
/** homa_stream_patience() - set one of HOMA_STREAM_USER_TIMEOUT and those behind it to @value
 * Connections that come to a listener have what was set there. The times of keepalive count
 * with HOMA_STREAM_KEEPALIVE. Errors: -EINVAL, -EOPNOTSUPP (homad is too old). */
int homa_stream_patience(struct homa_stream *stream, unsigned int which,
			 unsigned int value);

/**
 * struct homa_stream_facts - what is known of a stream
 * @size: The size of the struct in bytes; the caller sets it.
 * @local: The address and port of this end.
 * @remote: The address and port of the peer.
 * @mss: Payload bytes of a full segment, at homad's last event for the stream.
 * @rtt_us: The smoothed round-trip time in microseconds, at that event.
 * @cwnd: The congestion window in bytes, at that event.
 * @retransmits: The number of segments that homad had sent again by that event.
 * @unread: Bytes that have arrived and that the program has not read.
 * @unsent: Bytes that the program has written and that homad still needs.
 */
struct homa_stream_facts {
	size_t size;
	struct sockaddr_storage local, remote;
	uint32_t mss, rtt_us, cwnd, retransmits;
	uint32_t unread, unsent;
};
/** homa_stream_facts() - fill in @facts, as far as its @size says.
 *  Errors: -EINVAL (no @size), -ENOTCONN (it is not open yet). */
int homa_stream_facts(struct homa_stream *stream,
		      struct homa_stream_facts *facts);

/** homa_stream_set_user() - keep a pointer of the caller's, which homa_stream_user() returns. */
void homa_stream_set_user(struct homa_stream *stream, void *user);
void *homa_stream_user(const struct homa_stream *stream);

/** homa_streams_poll() - write the streams about which there is news to @news, at most @max
 * Each stream is there once. Several threads may call it; each piece of news goes to one of
 * them. Returns how many streams. Errors: -EINVAL (@max below 0), -ECONNRESET (homad has ended and
 * there is no more news). */
int homa_streams_poll(struct homa_streams *ctx, struct homa_stream **news,
		      int max);

/** homa_streams_fd() - a descriptor that becomes readable after homa_streams_arm() when
 *  there is news. It stays readable until homa_streams_poll() has been called. */
int homa_streams_fd(struct homa_streams *ctx);

/** homa_streams_arm() - ask for a wake-up before the program sleeps on homa_streams_fd()
 * Returns 1, or 0 if there is news already and the program must not sleep. */
int homa_streams_arm(struct homa_streams *ctx);

/** homa_streams_wait() - wait for news, at most @timeout_ns nanoseconds; -1 waits for ever
 * Returns 1 if there is news and 0 if the time is over. Errors: -EINTR, -ECONNRESET (homad has
 * ended, and all streams have failed). */
int homa_streams_wait(struct homa_streams *ctx, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
