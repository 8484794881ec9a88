/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP sockets of programs that do not know of homad.
 *
 *	tcp.c		a socket: the kernel's at first, homad's from connect() or listen()
 *			on if homad takes it
 *	tcp_connect.c	connect()
 *	tcp_begin.c	how far it has come
 *	tcp_former.c	a socket becomes the kernel's again
 *	tcp_kernel.c	calls of a socket that is the kernel's
 *	tcp_io.c	reading and writing
 *	tcp_room.c	how many bytes are taken at once
 *	tcp_peek.c	from where bytes are looked at
 *	tcp_urgent.c	urgent bytes
 *	tcp_way.c	addresses that homad reaches
 *	tcp_async.c	SIGIO and SIGURG
 *	tcp_options.c	options, names, TCP_INFO
 *	tcp_fork.c	sockets that are the kernel's when the process forks
 *	tcp_inherit.c	options that accepted connections have from their listener
 *	tcp_common.c	what several processes with one connection have together
 *	tcp_wait.c	this process's context at homad, and its news
 *	tcp_sleep.c	sleeping
 *	tcp_sleepers.c	who sleeps, and who is woken
 *	tcp_one.c	waiting for one socket
 *	tcp_poll.c	poll() and select()
 *	tcp_epoll.c	epoll sets
 *	tcp_epoll_wait.c	waiting in them
 *	tcp_watch.c	what the kernel's sets have of sockets
 *	tcp_spot.c	marks of what they have for us
 *	tcp_once.c	who of several processes tells with EPOLLONESHOT
 *	tcp_ready.c	what a socket is ready for; which sockets of a set are, and sets in sets
 *	tcp_pass.c	sockets that go to other processes through UNIX sockets
 *	exec.c		what programs get that exec and posix_spawn() run
 *
 * The descriptor is a socket of the kernel all the time: it holds the number, the port and
 * the options. A listening socket listens with the kernel, too, because what comes over
 * the loopback interface does not come to homad.
 *
 * Functions return 0 or a count, or a negative errno.
 */
#ifndef HOMA_PRELOAD_TCP_H
#define HOMA_PRELOAD_TCP_H

#include <homa/stream.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include "patience.h"
#include "preload.h"
#include "stream_urgent.h"

struct homa_pl_former;
struct homa_pl_set;
struct homa_pl_sleeper;
struct homa_pl_watch;
struct homa_streams_ticket;

/** struct homa_pl_async - who gets SIGIO and SIGURG of a socket. Guarded by: homa_pl_tcp_lock() */
struct homa_pl_async {
	/* The process, or the group as a negative number (F_SETOWN); 0: nobody. */
	pid_t owner;
	/* The signal in place of SIGIO (F_SETSIG); 0: SIGIO. */
	int number;
	/* O_ASYNC is set. */
	bool on;
	/* There was news for which no signal was sent. */
	bool due;
	/* SIGURG was sent for the urgent byte that there is. */
	bool urgent;
};

/** struct homa_pl_tcp - a TCP socket. Written by: the call of the program that changes it; what
 *  several threads or processes may change at once (homa_pl_tcp_change()) and @watches under
 *  homa_pl_tcp_lock(). */
struct homa_pl_tcp {
	/* homad's connection or listener; NULL if the socket is the kernel's. */
	struct homa_stream *stream;
	/* What @stream was last when it was not NULL. A call that has seen that the socket is
	 * homad's goes on with this, as another thread may give @stream back meanwhile. */
	struct homa_stream *last;
	/* Streams of the socket that calls of other threads may still use (tcp_former.c). */
	struct homa_pl_former *formers;
	/* The socket listens, with homad and with the kernel, or did so until shutdown(). */
	bool listens;
	/* A duplicate of a listening socket's descriptor that only this library has, or -1. */
	int fd;
	/* shutdown() has ended the listening of the socket. */
	bool stopped;
	/* The program has set an option that homad does not know, so the socket stays the kernel's:
	 * homa_pl_tcp_kernel_knows(). */
	bool kernels;
	/* The process has forked while the socket was the kernel's or a listener, so another one
	 * may have the kernel's socket, too: the kernel connects it. */
	bool forked;
	/* @connecting: the program has called connect() and does not know the result yet.
	 * @open: the connection is open, and the program knows it. */
	bool connecting, open;
	/* A thread is asking homad for the connection, which the next calls of others shall find,
	 * or ends the listener; under homa_pl_tcp_lock(). */
	bool begins;
	/* The program has heard why the connection failed; later calls only tell its end. */
	bool error_told;
	/* The program has shut down that direction. */
	bool shut_read, shut_write;
	/* When the program shut it down for writing, the peer had ended already. */
	bool peer_first;
	/* A set of HOMA_STREAM_NODELAY, CORK, KEEPALIVE, and RESET (SO_LINGER with 0 s). */
	unsigned int options;
	/* SO_OOBINLINE: urgent bytes stay in the stream. */
	bool inlines;
	/* How long it waits for a silent peer, as far as the program has said that. */
	struct homa_patience patience;
	/* The longest time that close() waits until the peer has everything (SO_LINGER), in
	 * ns; -1 for ever. */
	int64_t linger;
	/* The number of bytes of SO_RCVLOWAT. */
	size_t least;
	/* SO_PEEK_OFF: where the next look at bytes begins; negative: at the next byte. */
	int32_t peek_off;
	/* The most bytes that may wait to be sent, what SO_SNDBUF tells after the program has set
	 * it; 0 if it has not. */
	uint32_t send_most;
	/* The most of them that were never sent (TCP_NOTSENT_LOWAT); 0: as many as there are. */
	uint32_t unsent_most;
	/* Another process has or had the connection, too: homa_pl_tcp_fetch(). */
	bool common;
	/* Of a listener: which options accepted connections get; 0 if it has to be found out.
	 * tcp_inherit.c reads and writes it, atomically. */
	uint32_t inherited;
	/* Who gets signals. */
	struct homa_pl_async async;
	/* The first of its places in epoll sets, linked by homa_pl_watch.of_sock;
	 * homa_pl_tcp_lock() protects it. */
	struct homa_pl_watch *watches;
};

/** homa_pl_tcp_await_begin() - waits until @tcp.begins is over, for 2,000 sleeps of 50 us at most:
 *  a handler of signals may call from within connect(). */
void homa_pl_tcp_await_begin(const struct homa_pl_tcp *tcp);

/** homa_pl_tcp_stream() - homad's connection or listener; NULL if the socket is the kernel's. If
 *  another thread is asking homad for a connection, this waits: the peer may have it already. */
static inline struct homa_stream *homa_pl_tcp_stream(const struct homa_pl_tcp *tcp)
{
	struct homa_stream *stream =
		__atomic_load_n(&tcp->stream, __ATOMIC_ACQUIRE);

	if (HOMA_PL_LIKELY(stream))
		return stream;
	if (__atomic_load_n(&tcp->begins, __ATOMIC_ACQUIRE))
		homa_pl_tcp_await_begin(tcp);
	return __atomic_load_n(&tcp->stream, __ATOMIC_ACQUIRE);
}

/** struct homa_pl_waits - what a thread sleeps for. Written by: that thread, before it sleeps
 * @ready: asked with @arg before the thread sleeps; true if it need not. Or NULL.
 * @concerned: as in struct homa_pl_sleeper; NULL: all news concerns the thread.
 * @arg: what the two get. */
struct homa_pl_waits {
	bool (*ready)(void *arg);
	bool (*concerned)(const void *arg, struct homa_pl_sock *const *told,
			  int n);
	void *arg;
};

/** struct homa_pl_wanted - what a thread waits for. Written by: that thread */
struct homa_pl_wanted {
	/* The TCP socket, which is homad's. */
	struct homa_pl_sock *s;
	/* HOMA_STREAM_*; one of them is enough. */
	unsigned int bits;
	/* The number of bytes for which the thread waits, if it waits until the stream can
	 * be read and for nothing else. */
	size_t least;
};

/* ---- tcp_wait.c ---- */

/** homa_pl_streams() - this process's context, made by the first call, or NULL if that failed. */
struct homa_streams *homa_pl_streams(void);
/** homa_pl_tcp_ticket() - get a ticket for another program that is about to run. The caller closes
 *  its pipe, which is -1 if there is none. */
void homa_pl_tcp_ticket(struct homa_streams_ticket *ticket);
/** homa_pl_tcp_kept_pipe() - a descriptor that a child of vfork() has to keep until it runs
 *  another program, or -1. */
int homa_pl_tcp_kept_pipe(void);
/** homa_pl_tcp_has_context() - does this process have a context of its own? */
bool homa_pl_tcp_has_context(void);
/** homa_pl_tcp_go_on() - make @ctx this process's context, before anybody asks for one. */
void homa_pl_tcp_go_on(struct homa_streams *ctx);
/** homa_pl_tcp_lock() - take the lock of sleepers, watches and sets; nobody waits under it. */
void homa_pl_tcp_lock(void);
void homa_pl_tcp_unlock(void);
/** homa_pl_pump() - take homad's news, and wake whom it concerns. The caller holds its signals. */
void homa_pl_pump(void);
/** homa_pl_pump_for() - do so, but wake nobody who sleeps in @set, at which the caller looks
 *  itself, nor @self, the caller. Both may be NULL. */
void homa_pl_pump_for(const struct homa_pl_set *set,
		      const struct homa_pl_sleeper *self);
/** homa_pl_hung_up() - note that homad has ended. */
void homa_pl_hung_up(void);
/** homa_pl_tell() - wake the threads that wait for @s, because it is ready for more than before. */
void homa_pl_tell(struct homa_pl_sock *s);
/** homa_pl_may_sleep() - ask homad to signal news; false if there is some already. */
bool homa_pl_may_sleep(void);
/** homa_pl_news_fd() - the descriptor that is readable when homad signals; -1 if it has ended. */
int homa_pl_news_fd(void);
/** homa_pl_on_news() - have @call called for each socket with news, under the lock. @looks: the set
 *  at which the thread that has taken the news looks itself, or NULL. */
void homa_pl_on_news(void (*call)(struct homa_pl_sock *s,
				  const struct homa_pl_set *looks));
/** homa_pl_on_fork() - have @call called before a fork(), under the lock. */
void homa_pl_on_fork(void (*call)(void));
/* ---- tcp_sleep.c ---- */

/**
 * homa_pl_sleep() - sleep until a descriptor is ready, homad has news, or it is @until
 * @fds: @n descriptors, with room for one more behind. Entries that are none are taken out.
 * @until: a time of homa_pl_now() in ns; INT64_MAX: never.
 * @mask: as for ppoll(), or NULL.
 * Returns 1 if the caller shall look again, 0 at @until, -EINTR, or -HOMA_PL_RESTART. It is a
 * cancellation point; the caller holds its signals, and so does a thread that is cancelled.
 */
int homa_pl_sleep(struct pollfd *fds, nfds_t n, int64_t until,
		  const sigset_t *mask, const struct homa_pl_waits *waits);
/** homa_pl_until() - the time of homa_pl_now() at which a call of @timeout ns gives up; INT64_MAX
 *  if @timeout is -1, for ever. */
static inline int64_t homa_pl_until(int64_t timeout)
{
	return timeout < 0 ? INT64_MAX : homa_pl_now() + timeout;
}
/** homa_pl_sleeper_fd() - the set in which this thread sleeps alone, or a negative errno. */
int homa_pl_sleeper_fd(void);

/* ---- tcp_lowat.c ---- */

/** homa_pl_tcp_has() - have @least bytes arrived that the program may read, or can no more arrive
 *  before it reads some? */
bool homa_pl_tcp_has(struct homa_stream *stream, size_t least);

/* ---- tcp_one.c ---- */

/** homa_pl_wait_once() - wait until @w->s is ready, at most until @until. Returns 0, -EAGAIN at
 *  @until, and -EINTR or -HOMA_PL_RESTART if a handler ran. A thread that is cancelled meanwhile
 *  drops the caller's reference. */
int homa_pl_wait_once(struct homa_pl_wanted *w, int64_t until);
/** homa_pl_wait_for() - wait until @s is ready for one of @bits (HOMA_STREAM_*). It is
 *  homa_pl_wait_once(), but goes on after handlers with SA_RESTART if there is no time limit. */
int homa_pl_wait_for(struct homa_pl_sock *s, unsigned int bits, int64_t until);

/* ---- tcp.c ---- */

/** homa_pl_tcp_wanted() - may a socket with these arguments become homad's? */
bool homa_pl_tcp_wanted(int family, int type, int protocol);
/** homa_pl_tcp_track() - note that @fd is a TCP socket of the kernel. */
void homa_pl_tcp_track(int fd, int family, int type);
/** homa_pl_tcp_adopt() - make a TCP socket for @fd, with homad's @stream unless that is NULL.
 *  Returns NULL if there is no memory. */
struct homa_pl_sock *homa_pl_tcp_adopt(int fd, int family, int status,
				       struct homa_stream *stream);
/** homa_pl_tcp_bind() - do bind(), and retry for a while after a listening socket was closed. */
int homa_pl_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len);
int homa_pl_tcp_listen(struct homa_pl_sock *s, int fd, int backlog);
int homa_pl_tcp_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
		       socklen_t *len, int flags);
int homa_pl_tcp_shutdown(struct homa_pl_sock *s, int how);
/** homa_pl_tcp_unlisten() - end a listener, or what shutdown() has left of it, so that the socket
 *  is the kernel's again and may connect. */
int homa_pl_tcp_unlisten(struct homa_pl_sock *s);

/* ---- tcp_begin.c ---- */

/** homa_pl_tcp_is_open() - is the connection open, or was it? */
bool homa_pl_tcp_is_open(struct homa_stream *stream);

/* ---- tcp_connect.c ---- */

int homa_pl_tcp_connect(struct homa_pl_sock *s, int fd,
			const struct sockaddr *addr, socklen_t len);

/* ---- tcp_former.c ---- */

/** homa_pl_tcp_give_back() - make the socket the kernel's again, so that the program may connect
 *  anew, unless another thread has done so. @stream is the one that the caller has found. The
 *  caller may use @stream no more. */
void homa_pl_tcp_give_back(struct homa_pl_sock *s, struct homa_stream *stream);
/** homa_pl_tcp_retire() - end a stream that is no longer the socket's, and free it as soon as no
 *  other thread is in a call of the socket. */
void homa_pl_tcp_retire(struct homa_pl_sock *s, struct homa_stream *stream);
/** homa_pl_tcp_free_formers() - free what nobody uses any more. */
void homa_pl_tcp_free_formers(struct homa_pl_tcp *tcp);

/* ---- tcp_fork.c ---- */

/** homa_pl_tcp_vforks() - note whether this thread forks for a child that runs another program. */
void homa_pl_tcp_vforks(bool does);
/** homa_pl_tcp_in_vfork() - does it? */
bool homa_pl_tcp_in_vfork(void);
/** homa_pl_tcp_divide() - note which sockets are the kernel's when the process forks. The caller
 *  has homa_pl_tcp_lock(). */
void homa_pl_tcp_divide(void);
/** homa_pl_tcp_none_begins() - says in a child of fork(), which has one thread, that no other
 *  one is asking homad for a connection. */
void homa_pl_tcp_none_begins(void);

/* ---- tcp_way.c ---- */

/** homa_pl_tcp_knows_way() - is it known that homad has a way to the address @to, of IPv4 or IPv6?
 */
bool homa_pl_tcp_knows_way(const struct sockaddr *to);
/** homa_pl_tcp_note_way() - note that it has. */
void homa_pl_tcp_note_way(const struct sockaddr *to);

/* ---- tcp_inherit.c ---- */

/** homa_pl_tcp_inherit() - give @fd, a new socket of the kernel, the options of @listener, as if
 *  the kernel had accepted a connection. */
void homa_pl_tcp_inherit(struct homa_pl_tcp *listener, int fd);
/** homa_pl_tcp_heirs_change() - note that the program has set an option of @tcp. */
void homa_pl_tcp_heirs_change(struct homa_pl_tcp *tcp);

/* ---- tcp_kernel.c ---- */

/** homa_pl_tcp_is_bound() - has the program bound the socket to a port? Only such a socket listens
 *  by homad. */
bool homa_pl_tcp_is_bound(int fd);
/** homa_pl_tcp_connects_itself() - must the kernel connect the socket to @addr? It must if the
 *  program has bound the socket, or wants of it what homad cannot do. */
bool homa_pl_tcp_connects_itself(const struct homa_pl_sock *s, int fd,
				 const struct sockaddr *addr);
/** homa_pl_tcp_is_this_host() - does a connection to @to stay in this host? Returns 1 if it does, 0
 *  if not, and a negative errno if the kernel shall do it. @from gets the address that the kernel
 *  would connect from. */
int homa_pl_tcp_is_this_host(const struct sockaddr *to, socklen_t len,
			     struct sockaddr_storage *from);
/** homa_pl_tcp_path_mtu() - the MTU in bytes of the path between two addresses, as the kernel knows
 *  it, or -ENOTCONN if it knows of none. */
int homa_pl_tcp_path_mtu(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote);
/** homa_pl_tcp_kernel_knows() - would the option make of the socket what homad does not know, as a
 *  password for its segments or the only device that they may take? */
bool homa_pl_tcp_kernel_knows(int level, int name, const void *value,
			      socklen_t len);
/** homa_pl_tcp_in_place() - does the program want to send without copies (SO_ZEROCOPY)? Such a
 *  socket stays the kernel's, which can tell when the bytes may be used again. */
bool homa_pl_tcp_in_place(int fd);
/** homa_pl_kernel_connect(), homa_pl_kernel_accept() - do what the calls do, with handlers and
 *  cancellation in between; a thread that is cancelled drops the caller's reference. */
int homa_pl_kernel_connect(struct homa_pl_sock *s, int fd,
			   const struct sockaddr *addr, socklen_t len);
int homa_pl_kernel_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
			  socklen_t *len, int flags);

/* ---- environment.c ---- */

/** homa_pl_tcp_is_on() - is HOMA_TCP "on", or was it when the program began, if it is not set? */
bool homa_pl_tcp_is_on(void);
/** homa_pl_service_socket() - HOMA_SERVICE_SOCKET now or when the program began, or "". */
const char *homa_pl_service_socket(void);

/* ---- hooks_stdio.c ---- */

/** homa_pl_stdio_begin() - make the standard streams read and write TCP sockets, if the program has
 *  begun with such. */
void homa_pl_stdio_begin(void);
/** homa_pl_stdio_replaced() - do so for @fd, if it is one of a standard stream, after the program
 *  has put another file there. */
void homa_pl_stdio_replaced(int fd);

/* ---- hooks_uring.c ---- */

/** homa_pl_uring_denied() - is io_uring kept from the program? It is not if all of its TCP is the
 *  kernel's. */
bool homa_pl_uring_denied(void);

/* ---- tcp_io.c ---- */

/** homa_pl_tcp_read(), homa_pl_tcp_recv() - do what readv() and recvmsg() do. They differ if no
 *  bytes are wanted: then recvmsg() waits for some, and leaves them there. */
ssize_t homa_pl_tcp_read(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags);
ssize_t homa_pl_tcp_recv(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags);
/** homa_pl_tcp_write() - do what sendmsg() does. */
ssize_t homa_pl_tcp_write(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, int flags);
/** homa_pl_tcp_writev() - do what writev() does, for which no bytes are never an error. */
ssize_t homa_pl_tcp_writev(struct homa_pl_sock *s, const struct iovec *iov,
			   int n, int flags);
/** homa_pl_tcp_splice_out(), homa_pl_tcp_splice_in() - do what splice() does from the socket to a
 *  pipe, and from a pipe to the socket
 * @at: the program's offset of the socket, which must be NULL, and @to_at or @from_at that of the
 *	pipe, too. */
ssize_t homa_pl_tcp_splice_out(struct homa_pl_sock *s, const off64_t *at,
			       int to, const off64_t *to_at, size_t count,
			       unsigned int flags);
ssize_t homa_pl_tcp_splice_in(struct homa_pl_sock *s, const off64_t *at,
			      int from, const off64_t *from_at, size_t count,
			      unsigned int flags);
ssize_t homa_pl_tcp_sendfile(struct homa_pl_sock *s, int in, off_t *offset,
			     size_t count);

/* ---- tcp_peek.c ---- */

/** homa_pl_tcp_peek() - look at bytes from where SO_PEEK_OFF says. @counts: say how many of at most
 *  @most bytes there are, and give the program none. */
ssize_t homa_pl_tcp_peek(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 size_t most, bool counts);
/** homa_pl_tcp_peek_move() - move that place by @by bytes, if SO_PEEK_OFF is set. The caller has no
 *  lock. */
void homa_pl_tcp_peek_move(struct homa_pl_sock *s, ssize_t by);

/* ---- tcp_async.c ---- */

/** homa_pl_tcp_async_changed() - note what the kernel says now of @fd's owner and O_ASYNC. */
void homa_pl_tcp_async_changed(struct homa_pl_sock *s, int fd);
/** homa_pl_tcp_any_due() - is there news of a socket with an owner? */
bool homa_pl_tcp_any_due(void *arg);

/* ---- tcp_urgent.c ---- */

/** homa_pl_tcp_inlines() - does @fd have SO_OOBINLINE? */
bool homa_pl_tcp_inlines(int fd);
/** homa_pl_tcp_recv_urgent() - do recvmsg() with MSG_OOB. */
ssize_t homa_pl_tcp_recv_urgent(struct homa_pl_sock *s, const struct iovec *iov,
				int n, int flags);
/** homa_pl_tcp_urgent_ready() - POLLPRI if there is an urgent byte, else 0. Of @bits, what the
 *  stream is ready for, it takes HOMA_STREAM_IN out if that byte is all. */
int homa_pl_tcp_urgent_ready(struct homa_pl_sock *s, unsigned int *bits);
/** homa_pl_tcp_unmarked() - how many of @unread bytes FIONREAD counts. */
size_t homa_pl_tcp_unmarked(struct homa_pl_sock *s, size_t unread);
/** homa_pl_tcp_at_mark() - write to @out whether the next byte is the urgent one (SIOCATMARK). */
int homa_pl_tcp_at_mark(struct homa_pl_sock *s, int *out);

/* ---- tcp_room.c ---- */

/** homa_pl_tcp_limit() - let as many bytes wait to be sent as @s->tcp->send_most and unsent_most
 *  say. */
void homa_pl_tcp_limit(struct homa_pl_sock *s);
/** homa_pl_tcp_send_buffer() - SO_SNDBUF of @fd if the program has set it, else 0. */
uint32_t homa_pl_tcp_send_buffer(int fd);
/** homa_pl_tcp_await_growth() - wait, for a call that must not wait for the peer, while homad makes
 *  a full send buffer larger. Returns whether there is room. */
bool homa_pl_tcp_await_growth(struct homa_pl_sock *s);
/** homa_pl_tcp_had_room() - tell, of a connection that failed while a call waited for room, whether
 *  the kernel's would have taken the call's @bytes at once. */
bool homa_pl_tcp_had_room(const struct homa_pl_sock *s, size_t bytes);

/* ---- tcp_options.c ---- */

/** homa_pl_tcp_change(), homa_pl_tcp_changed() - take homa_pl_tcp_lock() before O_NONBLOCK, options
 *  or what is shut down of a TCP socket is changed, and give it back when all processes that have
 *  the socket shall see it. */
void homa_pl_tcp_change(struct homa_pl_sock *s);
void homa_pl_tcp_changed(struct homa_pl_sock *s);
int homa_pl_tcp_setsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   const void *value, socklen_t len);
int homa_pl_tcp_getsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   void *value, socklen_t *len);
/** homa_pl_tcp_name() - write the address of the peer, or our own, to @addr. */
int homa_pl_tcp_name(struct homa_pl_sock *s, bool peer, struct sockaddr *addr,
		     socklen_t *len);
/** homa_pl_tcp_peer() - write the peer's address to @addr, as a socket of @family tells it. */
int homa_pl_tcp_peer(struct homa_stream *stream, int family,
		     struct sockaddr *addr, socklen_t *len);
/** homa_pl_tcp_state() - the state of a socket of homad's as TCP_INFO has it, TCP_*. */
int homa_pl_tcp_state(struct homa_pl_sock *s);
/** homa_pl_tcp_count() - write to @out how many bytes FIONREAD, SIOCOUTQ or SIOCOUTQNSD counts. */
int homa_pl_tcp_count(struct homa_pl_sock *s, unsigned long request, int *out);

/* ---- tcp_pass.c ---- */

/** homa_pl_tcp_passes() - does the message pass a socket of homad's (SCM_RIGHTS)? */
bool homa_pl_tcp_passes(const struct msghdr *msg);
/** homa_pl_tcp_pass() - do sendmsg() with such a message; returns -1 with errno if it fails. */
ssize_t homa_pl_tcp_pass(int fd, const struct msghdr *msg, int flags);
/** homa_pl_tcp_received() - make sockets of homad's of those that have come with a message. Those
 *  for which the process has no room are closed and cut off, as the kernel does it. Keeps errno. */
void homa_pl_tcp_received(struct msghdr *msg);

/* ---- tcp_poll.c ---- */

/** homa_pl_tcp_poll() - do poll() with streams among @fds, until the time @until in ns; INT64_MAX
 *  means for ever. */
int homa_pl_tcp_poll(struct pollfd *fds, nfds_t n, int64_t until,
		     const sigset_t *mask);
/** homa_pl_tcp_any() - is a socket of homad's or an epoll set among @fds? If not, the kernel can
 *  poll alone. */
bool homa_pl_tcp_any(const struct pollfd *fds, nfds_t n);
int homa_pl_tcp_select(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		       int64_t until, const sigset_t *mask);

/* ---- tcp_ready.c ---- */

/** homa_pl_tcp_ready() - what a socket of homad's is ready for: POLLIN and so on. */
short homa_pl_tcp_ready(struct homa_pl_sock *s);
/** homa_pl_tcp_set_ready() - is a stream in the set @s ready? It also does
 *  homa_pl_tcp_sets_tell(). */
bool homa_pl_tcp_set_ready(const struct homa_pl_sock *s);
/** homa_pl_tcp_sets_tell() - make the kernel know which sets in sets have streams that are ready,
 *  before it is asked. */
void homa_pl_tcp_sets_tell(void);

/* ---- tcp_epoll.c ---- */

/** homa_pl_tcp_epoll_new() - note that an epoll set was made. This library does all its waits,
 *  because a wait that has begun in the kernel could not be woken by a stream added later. */
void homa_pl_tcp_epoll_new(int epfd);
/** homa_pl_tcp_epoll_ctl() - do epoll_ctl() for @fd, a descriptor of the TCP socket @s. */
int homa_pl_tcp_epoll_ctl(struct homa_pl_sock *s, int epfd, int op, int fd,
			  struct epoll_event *event);
/** homa_pl_tcp_epoll_other() - a descriptor that is no TCP socket is about to come into a set, or
 *  to be armed anew there; @epfd may be anything. */
void homa_pl_tcp_epoll_other(int epfd);
/** homa_pl_tcp_epoll_nest() - do epoll_ctl() for @fd, a descriptor of the set @s. */
int homa_pl_tcp_epoll_nest(struct homa_pl_sock *s, int epfd, int op, int fd,
			   struct epoll_event *event);
/** homa_pl_tcp_moved() - tell its epoll sets that @s has become homad's, or the kernel's again. */
void homa_pl_tcp_moved(struct homa_pl_sock *s);
/** homa_pl_tcp_leaves() - @fd, a descriptor of @s, is about to be closed or replaced. */
void homa_pl_tcp_leaves(struct homa_pl_sock *s, int fd);
/** homa_pl_tcp_unwatch() - take @s, which ends, out of all epoll sets. */
void homa_pl_tcp_unwatch(struct homa_pl_sock *s);

/* ---- tcp_epoll_wait.c ---- */

/** homa_pl_tcp_epoll_wait() - do epoll_wait() in the set @set until @until (ns) at most. */
int homa_pl_tcp_epoll_wait(struct homa_pl_sock *set, int epfd,
			   struct epoll_event *events, int max, int64_t until,
			   const sigset_t *mask);

#endif
