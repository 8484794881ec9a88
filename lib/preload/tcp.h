/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP sockets of programs that do not know of homad.
 *
 *	tcp.c		a socket: the kernel's at first, homad's from connect() or listen()
 *			on if homad takes it
 *	tcp_io.c	reading and writing
 *	tcp_options.c	options, names, TCP_INFO
 *	tcp_wait.c	sleeping, and who is woken by what homad tells
 *	tcp_poll.c	poll() and select()
 *	tcp_epoll.c	epoll sets
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
#include "preload.h"

struct homa_pl_watch;
struct homa_streams_ticket;

/** struct homa_pl_tcp - a TCP socket */
struct homa_pl_tcp {
	/* homad's connection or listener; NULL: it is the kernel's. */
	struct homa_stream *stream;
	/* It listens, with homad and with the kernel; @fd: the kernel's descriptor, our own. */
	bool listens;
	int fd;
	/* It listened, until shutdown(). */
	bool stopped;
	/* connect() was called, and its end was not told yet; it is open. */
	bool connecting, open;
	/* The program has heard why the connection failed: from then on it has just ended. */
	bool error_told;
	/* The program has shut down a direction. */
	bool shut_read, shut_write;
	/* HOMA_STREAM_NODELAY and so on; HOMA_STREAM_RESET: SO_LINGER with 0 s. */
	unsigned int options;
	/* How long close() waits until the peer has everything (SO_LINGER), ns; -1: for ever. */
	int64_t linger;
	/* Bytes of SO_RCVLOWAT. */
	size_t least;
	/* Its places in epoll sets, a list by homa_pl_watch.of_sock; under homa_pl_tcp_lock(). */
	struct homa_pl_watch *watches;
};

/** struct homa_pl_sleeper - a thread that sleeps, and the eventfd that wakes it */
struct homa_pl_sleeper {
	struct homa_pl_sleeper *next;
	int fd;
};

/* ---- tcp_wait.c ---- */

/** homa_pl_streams() - this process's context; NULL: homad takes no TCP, or was not asked. */
struct homa_streams *homa_pl_streams(void);
/** homa_pl_tcp_vforks() - this thread is about to fork, and the child to run another program. */
void homa_pl_tcp_vforks(bool does);
/** homa_pl_tcp_ticket() - for another program that is about to run; its pipe is the caller's. */
void homa_pl_tcp_ticket(struct homa_streams_ticket *ticket);
/** homa_pl_tcp_kept_pipe() - a descriptor that a child of vfork() has to keep until it runs
 *  another program, or -1. */
int homa_pl_tcp_kept_pipe(void);
/** homa_pl_tcp_has_context() - its streams can be used, unless homad has ended. */
bool homa_pl_tcp_has_context(void);
/** homa_pl_tcp_go_on() - @ctx is this process's context, before anybody asks for one. */
void homa_pl_tcp_go_on(struct homa_streams *ctx);
/** homa_pl_tcp_lock() - of sleepers, watches and sets; nothing is waited for under it. */
void homa_pl_tcp_lock(void);
void homa_pl_tcp_unlock(void);
/** homa_pl_pump() - take homad's news, and wake whom it concerns. */
void homa_pl_pump(void);
/** homa_pl_tell() - @s is ready for more than before: wake whom that concerns. */
void homa_pl_tell(struct homa_pl_sock *s);
/** homa_pl_may_sleep() - homad will signal news from now on, or never again. */
bool homa_pl_may_sleep(void);
/** homa_pl_news_fd() - readable when homad signals; -1: it has ended. */
int homa_pl_news_fd(void);
/** homa_pl_on_news() - called for each socket with news, under the lock. */
void homa_pl_on_news(void (*call)(struct homa_pl_sock *s));
/**
 * homa_pl_sleep() - until a descriptor is ready, homad has news, or @until, ns
 * @fds: @n of them, and room for two more behind. @mask: as for ppoll(), or NULL.
 * @ready: asked once more before sleeping: there is something already.
 * Returns 1: look again, 0: it is @until, or -EINTR. It is a cancellation point.
 */
int homa_pl_sleep(struct pollfd *fds, nfds_t n, int64_t until,
		  const sigset_t *mask, bool (*ready)(void *arg), void *arg);
/** homa_pl_wait_for() - until @s is ready for one of @bits (HOMA_STREAM_*), @timeout ns;
 *  if that is to read alone, until @least bytes are there. 0, -EAGAIN after @timeout, -EINTR.
 *  Who is cancelled meanwhile drops the caller's reference. */
int homa_pl_wait_for(struct homa_pl_sock *s, unsigned int bits, size_t least,
		     int64_t timeout);
/** homa_pl_join(), homa_pl_leave_sleep() - a thread is about to sleep, or awake: between
 *  them its descriptor is written for all news. */
void homa_pl_join(struct homa_pl_sleeper *sleeper);
void homa_pl_leave_sleep(const struct homa_pl_sleeper *sleeper);
/** homa_pl_sleeper_fd() - this thread's eventfd, or a negative errno. */
int homa_pl_sleeper_fd(void);

/* ---- tcp.c ---- */

/** homa_pl_tcp_wanted() - might a socket() of these be homad's? */
bool homa_pl_tcp_wanted(int family, int type, int protocol);
/** homa_pl_tcp_track() - @fd is a TCP socket of the kernel. */
void homa_pl_tcp_track(int fd, int family, int type);
/** homa_pl_tcp_adopt() - the same, and @stream is homad's; NULL: the kernel's. NULL: no memory. */
struct homa_pl_sock *homa_pl_tcp_adopt(int fd, int family, int status,
				       struct homa_stream *stream);
/** homa_pl_tcp_bind() - bind(), patiently after a listening socket was closed. */
int homa_pl_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len);
int homa_pl_tcp_connect(struct homa_pl_sock *s, int fd,
			const struct sockaddr *addr, socklen_t len);
int homa_pl_tcp_listen(struct homa_pl_sock *s, int fd, int backlog);
int homa_pl_tcp_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
		       socklen_t *len, int flags);
int homa_pl_tcp_shutdown(struct homa_pl_sock *s, int how);
/** homa_pl_tcp_ready() - POLLIN, ...: of a socket that is homad's. */
short homa_pl_tcp_ready(struct homa_pl_sock *s);

/* ---- environment.c ---- */

/** homa_pl_tcp_is_on() - HOMA_TCP says so, or did when the program began. */
bool homa_pl_tcp_is_on(void);
/** homa_pl_service_socket() - the same of HOMA_SERVICE_SOCKET; "": it says nothing. */
const char *homa_pl_service_socket(void);

/* ---- tcp_io.c ---- */

ssize_t homa_pl_tcp_read(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags);
ssize_t homa_pl_tcp_write(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, int flags);
ssize_t homa_pl_tcp_sendfile(struct homa_pl_sock *s, int in, off_t *offset,
			     size_t count);

/* ---- tcp_options.c ---- */

int homa_pl_tcp_setsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   const void *value, socklen_t len);
int homa_pl_tcp_getsockopt(struct homa_pl_sock *s, int fd, int level, int name,
			   void *value, socklen_t *len);
/** homa_pl_tcp_name() - of the peer, or our own. */
int homa_pl_tcp_name(struct homa_pl_sock *s, bool peer, struct sockaddr *addr,
		     socklen_t *len);
/** homa_pl_tcp_peer() - who is at the other end, as a socket of @family has it. */
int homa_pl_tcp_peer(struct homa_stream *stream, int family,
		     struct sockaddr *addr, socklen_t *len);
/** homa_pl_tcp_unread() - bytes that have arrived (FIONREAD). */
int homa_pl_tcp_unread(struct homa_pl_sock *s);

/* ---- tcp_poll.c ---- */

/** homa_pl_tcp_poll() - poll() with streams among @fds; @until: ns, INT64_MAX: never. */
int homa_pl_tcp_poll(struct pollfd *fds, nfds_t n, int64_t until,
		     const sigset_t *mask);
/** homa_pl_tcp_any() - is there a socket of homad's? Else the kernel may poll. */
bool homa_pl_tcp_any(const struct pollfd *fds, nfds_t n);
int homa_pl_tcp_select(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		       int64_t until, const sigset_t *mask);

/* ---- tcp_epoll.c ---- */

/** homa_pl_tcp_epoll_new() - an epoll set was made. Its waits are ours from the begin: one
 *  that is under way in the kernel when the first socket comes could not be woken. */
void homa_pl_tcp_epoll_new(int epfd);
/** homa_pl_tcp_epoll_ctl() - @s is a TCP socket behind @fd. */
int homa_pl_tcp_epoll_ctl(struct homa_pl_sock *s, int epfd, int op, int fd,
			  struct epoll_event *event);
int homa_pl_tcp_epoll_wait(struct homa_pl_sock *set, int epfd,
			   struct epoll_event *events, int max, int64_t until,
			   const sigset_t *mask);
/** homa_pl_tcp_moved() - @s has become homad's: the kernel does not watch it any more. */
void homa_pl_tcp_moved(struct homa_pl_sock *s);
/** homa_pl_tcp_unwatch() - @s ends. */
void homa_pl_tcp_unwatch(struct homa_pl_sock *s);

#endif
