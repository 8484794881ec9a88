/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP through homad for programs that make system calls themselves, which libhoma-preload does not
 * reach: static ones, and those of Go. A process beside the program, the supervisor, is told of
 * the few system calls that set a socket up (seccomp user notification), and answers them or lets
 * the kernel do them. A connection of homad's is, for the program, one end of a pair of UNIX
 * sockets. The supervisor has the other end, and copies between it and a stream of libhoma's. So
 * read(), write(), epoll and the like are the kernel's, and are not seen here.
 *
 * One thread does everything. Bottom-up, each file calls only those before it:
 *
 *	filter.c	which system calls are told of
 *	notify.c	calls that wait for an answer; the memory and descriptors of who called
 *	report.c	what is said on standard error
 *	kernel_socket.c	what the kernel's socket knows that is to become homad's
 *	address.c	addresses in the program's memory
 *	sock.c		the sockets that are homad's, found by their cookies
 *	hand_over.c	the pair of sockets, of which the program gets one end
 *	copy.c		bytes between the pair and the stream, and how both end
 *	options.c	what the program sets and asks
 *	connect.c	connections that the program opens
 *	accept.c	connections that come
 *	calls.c		which call is whose
 *	loop.c		waits for all of it
 *	launch.c	starts the supervisor and the program
 *	which.c		does a program need it?
 */
#ifndef HOMA_SUPERVISOR_H
#define HOMA_SUPERVISOR_H

#include <homa/stream.h>
#include <stdbool.h>
#include <sys/socket.h>
#include "homa_list.h"
#include "homa_plat.h"
#include "homa_spin.h"

#define HOMA_SV_BUCKETS 4096
/* The most connections that have failed and whose reason the program has not asked for yet. */
#define HOMA_SV_FAILED 256

/** struct homa_sv_call - a system call that waits for our answer. Written by: notify.c */
struct homa_sv_call {
	/* In @calls of a socket, while the call waits for something. */
	struct homa_list link;
	/* The kernel's name of the call. */
	u64 id;
	/* The time at which the call gives up, in ns; ~0 means never. */
	u64 until;
	/* The thread that called. */
	pid_t thread;
	/* The number of the system call. */
	int number;
	/* A duplicate of the descriptor that the call is about; -1 if there is none. It is closed
	 * before the call is answered: when the program goes on, nobody else has its socket. */
	int fd;
	/* Its arguments. */
	u64 args[6];
};

enum homa_sv_kind {
	HOMA_SV_CONNECTING,
	HOMA_SV_OPEN,
	HOMA_SV_FAILED_TO_CONNECT,
	HOMA_SV_LISTENER,
};

/** struct homa_sv_came - a connection that has come to a listener and was not accepted yet. Written
 *  by: accept.c */
struct homa_sv_came {
	/* In @came of its listener. */
	struct homa_list link;
	/* The connection, if homad has brought it; else NULL. */
	struct homa_stream *stream;
	/* The connection, if the kernel has brought it; else -1. */
	int fd;
	/* The descriptor, if the program has the connection already, but its call was interrupted
	 * before it heard; else -1. */
	int given;
	/* The socket's cookie then. */
	u64 cookie;
};

/** struct homa_sv_sock - a socket of the program that is homad's. Written by: sock.c at first, then
 *  the file that serves its kind */
struct homa_sv_sock {
	/* In the bucket of @cookie. */
	struct homa_list link;
	/* In @turns of the supervisor, if there is more to copy; in @dead once it is over. */
	struct homa_list turn;
	/* In @failed, if the connection could not be opened. */
	struct homa_list fail;
	/* In @listeners or in @connecting, by its kind. */
	struct homa_list kin;
	/* The kernel's number for the socket that the program has. */
	u64 cookie;
	/* Is it a connection, and how far is it, or a listener? */
	enum homa_sv_kind kind;
	/* AF_INET or AF_INET6. */
	int family;
	/* Our end of the pair; -1 if the program has no end yet or any more. */
	int end;
	/* The TCP socket that the program had at first, which keeps its options; -1 if none. */
	int kernel;
	/* The stream; NULL if homad has ended, or the connection has failed. */
	struct homa_stream *stream;
	/* The cookie of the listener to which the connection has come, or 0. */
	u64 listener;
	/* Of a listener: the cookie of @kernel. */
	u64 kernel_cookie;
	/* Of a listener: the flags of @kernel before it became ours. */
	int kernel_flags;
	/* The thread that has used the program's end last in a call that we were told of. */
	pid_t owner;
	/* The descriptor that it has used. */
	int owner_fd;
	/* Bytes of ours at the begin of what the program sends, which fill its buffer. */
	u32 junk;
	/* Why the connection failed, until the program has asked; 0 otherwise. */
	int error;
	/* HOMA_STREAM_NODELAY and so on. */
	unsigned int options;
	/* The program has heard EINPROGRESS, or that the connection is open. */
	bool told_progress, told_open;
	/* The call waits only because homad has to say whether it serves this host. */
	bool is_local;
	/* close() resets the connection: SO_LINGER of 0 s. */
	bool resets;
	/* There may be bytes to read from @end, or room to write. */
	bool may_read, may_write;
	/* The program writes no more; it reads no more; it has closed the socket. */
	bool wrote_all, reads_no_more, closed;
	/* The last byte that the program seems to have written is ours, and stays unread: so its
	 * read() can still be made to fail with ECONNRESET. */
	bool has_tail;
	/* Another thread has written after that byte, so it is not the last one. */
	bool is_within;
	/* An event has told that the program will write no more. */
	bool ends;
	/* The program was told that the peer has ended. */
	bool told_end;
	/* The connection was reset while there were bytes that the program has no room for: it
	 * cannot write any more, and reads them before it hears why. */
	bool was_reset;
	/* shutdown() has ended the listener. */
	bool stopped;
	/* The kernel's listener is in the epoll set. */
	bool watches_kernel;
	/* It is over, and is freed when nobody can have a pointer to it. */
	bool dead;
	/* When a connection that nobody waits for is given up, in ns; ~0 means never. */
	u64 until;
	/* Calls of the program that wait: connect() or accept(). */
	struct homa_list calls;
	/* How many of them there were when those were looked for last that wait no more, and have
	 * come since then; and how many there may be until the next time. */
	u32 num_calls, most_calls;
	/* Connections that have come to a listener. The pair has one byte for each. */
	struct homa_list came;
	/* How many those are, and how many may be. */
	u32 num_came, backlog;
	/* When connections of the kernel are taken again, in ns, as there was no descriptor for
	 * one; 0 if they are taken. */
	u64 resumes_at;
};

/** struct homa_supervisor - the supervisor. Written by: its only thread */
struct homa_supervisor {
	/* The kernel tells here of calls. */
	int notify;
	/* All that the thread waits for. */
	int epoll;
	/* Descriptors that are closed when no other is free, as the caller's has to be looked at;
	 * -1 if they are closed. */
	int spare[2];
	/* The attachment to homad; NULL once homad has ended. */
	struct homa_streams *streams;
	/* Sockets by cookie. */
	struct homa_list bucket[HOMA_SV_BUCKETS];
	/* Sockets that have more to copy; those that are over; those whose connect() failed. */
	struct homa_list turns, dead, failed;
	/* Listeners; connections that are being opened. */
	struct homa_list listeners, connecting;
	/* The number of sockets in @failed, and of open connections. */
	u32 num_failed, num_open;
	/* The last program has ended. */
	bool alone;
	/* The time at which a listener was closed last, in ns. */
	u64 listened_at;
	/* Connections have moved bytes since that was asked last. */
	bool moved;
	/* Cookies of sockets that have an option which only the kernel knows, the last ones. */
	u64 kernels[256];
	/* Where in @kernels the next one goes. */
	u32 next_kernels;
	/* How long the thread looks for work before it sleeps. */
	struct homa_spin spin;
};

/* ---- filter.c ---- */

/** homa_sv_filter() - have the kernel tell of this process's calls, and of those of its children
 *  and of the programs that they run. Returns the descriptor where it tells, or a negative errno:
 *  -EBUSY if somebody else is told of them, -ENOSYS on a kernel or machine that cannot. */
int homa_sv_filter(void);

/* ---- notify.c ---- */

/** homa_sv_receive() - take the next call; false if there is none. */
bool homa_sv_receive(struct homa_supervisor *sv, struct homa_sv_call *call);
/** homa_sv_answer() - let the call return @value, or fail with the negative errno @value; false if
 *  it does not wait any more. */
bool homa_sv_answer(struct homa_supervisor *sv, struct homa_sv_call *call,
		    s64 value);
/** homa_sv_pass() - let the kernel do the call. */
void homa_sv_pass(struct homa_supervisor *sv, struct homa_sv_call *call);
/** homa_sv_done() - close @call->fd. */
void homa_sv_done(struct homa_sv_call *call);
/** homa_sv_valid() - does the call still wait? */
bool homa_sv_valid(struct homa_supervisor *sv, const struct homa_sv_call *call);
/** homa_sv_keep_spare() - have descriptors for homa_sv_fetch() when no others are free. */
void homa_sv_keep_spare(struct homa_supervisor *sv);
/** homa_sv_is_full() - has homa_sv_fetch() needed them? */
bool homa_sv_is_full(const struct homa_supervisor *sv);
/** homa_sv_fetch() - have a duplicate of the caller's descriptor args[0] in @call->fd; false if it
 *  cannot be had. */
bool homa_sv_fetch(struct homa_supervisor *sv, struct homa_sv_call *call);
/** homa_sv_fetch_from() - a duplicate of the descriptor @fd of a process, or a negative errno. */
int homa_sv_fetch_from(pid_t thread, int fd);
/** homa_sv_put() - put a duplicate of @from in the place of the caller's descriptor @fd, if that is
 *  the socket with this cookie. 0 or a negative errno: -EBADF if it is not, -ENOENT if the call
 *  does not wait any more. */
int homa_sv_put(struct homa_supervisor *sv, const struct homa_sv_call *call,
		int from, int fd, u64 cookie);
/** homa_sv_give() - give the caller a duplicate of @from. Its number there or a negative errno:
 *  -ENOENT if the call does not wait any more. */
int homa_sv_give(struct homa_supervisor *sv, struct homa_sv_call *call,
		 int from, bool close_on_exec);
/** homa_sv_load(), homa_sv_store() - copy from and to the caller's memory; false if it has none
 *  there. */
bool homa_sv_load(const struct homa_sv_call *call, void *to, u64 from,
		  size_t bytes);
bool homa_sv_store(const struct homa_sv_call *call, u64 to, const void *from,
		   size_t bytes);

/* ---- report.c ---- */

/** homa_sv_debug() - say something on standard error, if homa-run -v wants it. */
void homa_sv_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- kernel_socket.c ---- */

/** homa_sv_cookie() - the kernel's number for a socket; 0 if @fd is none. */
u64 homa_sv_cookie(int fd);
/** homa_sv_number() - a socket option that is a number; @otherwise if there is none. */
int homa_sv_number(int fd, int level, int name, int otherwise);
/** homa_sv_is_tcp() - is it a TCP socket? Its family, or 0. */
int homa_sv_is_tcp(int fd);
/** homa_sv_has_name() - has it an address or a port? */
bool homa_sv_has_name(int fd);
/** homa_sv_is_special() - does it have an option that only the kernel knows? */
bool homa_sv_is_special(const struct homa_supervisor *sv, int fd);
/** homa_sv_option_is_special() - is that such an option, with a value that says something? */
bool homa_sv_option_is_special(int level, int name, const void *value,
			       socklen_t len);
/** homa_sv_is_this_host() - does a connection to @to stay in this host? 1, 0, or a negative errno.
 *  @from gets the address that the kernel would connect from. */
int homa_sv_is_this_host(const struct sockaddr *to, socklen_t len,
			 struct sockaddr_storage *from);
/** homa_sv_timeout() - the moment at which a call gives up; @name: SO_RCVTIMEO or SO_SNDTIMEO. */
u64 homa_sv_timeout(int fd, int name);

/* ---- address.c ---- */

/** homa_sv_load_address() - read the address of the program; false if there is none. */
bool homa_sv_load_address(const struct homa_sv_call *call, u64 from, u64 len,
			  struct sockaddr_storage *to);
/** homa_sv_store_address() - write an address as a socket of @family tells it; 0 or a negative
 *  errno. */
int homa_sv_store_address(const struct homa_sv_call *call, int family,
			  const struct sockaddr_storage *address, u64 to,
			  u64 len_at);

/* ---- sock.c ---- */

struct homa_sv_sock *homa_sv_new(struct homa_supervisor *sv, int family,
				 enum homa_sv_kind kind, u64 cookie);
struct homa_sv_sock *homa_sv_find(struct homa_supervisor *sv, u64 cookie);
/** homa_sv_find_listener() - the listener whose TCP socket has this cookie: another process may
 *  have that socket still. */
struct homa_sv_sock *homa_sv_find_listener(struct homa_supervisor *sv,
					   u64 kernel_cookie);
/** homa_sv_rename() - the program has another socket now. */
void homa_sv_rename(struct homa_supervisor *sv, struct homa_sv_sock *s,
		    u64 cookie);
/** homa_sv_turn() - the socket has more to copy. */
void homa_sv_turn(struct homa_supervisor *sv, struct homa_sv_sock *s);
/** homa_sv_drop() - it is over: the stream is reset if there is one, calls that wait are
 *  the kernel's. The struct is freed by homa_sv_bury(), when no event can name it. */
void homa_sv_drop(struct homa_supervisor *sv, struct homa_sv_sock *s);
void homa_sv_bury(struct homa_supervisor *sv);
/** homa_sv_keep_call() - a call waits for the socket, until @until; a negative errno if there is no
 *  memory. */
int homa_sv_keep_call(struct homa_supervisor *sv, struct homa_sv_sock *s,
		      const struct homa_sv_call *call, u64 until);
/** homa_sv_watch() - put a descriptor of the socket into the epoll set; @kernel: it is the
 *  kernel's listener. */
int homa_sv_watch(struct homa_supervisor *sv, struct homa_sv_sock *s, int fd,
		  bool kernel);

/* ---- hand_over.c ---- */

/** homa_sv_pair() - make a pair: @s->end, and the program's end, which is returned; or a negative
 *  errno. */
int homa_sv_pair(struct homa_sv_sock *s, bool nonblocking);
/** homa_sv_pair_family() - is it the program's end of a pair of ours, perhaps of one that is over?
 *  The family of the socket that it stands for, or 0. */
int homa_sv_pair_family(int theirs);
/** homa_sv_fill() - fill the program's end, so that it cannot be written to. */
void homa_sv_fill(struct homa_sv_sock *s, int theirs);
/** homa_sv_replace() - put a pair in the place of the caller's descriptor @fd, of which @like is a
 *  duplicate. It gets its timeouts. 0 or a negative errno. */
int homa_sv_replace(struct homa_supervisor *sv, struct homa_sv_sock *s,
		    const struct homa_sv_call *call, int fd, int like, bool fill);

/* ---- copy.c ---- */

/** homa_sv_copy() - copy what can be, both ways. */
void homa_sv_copy(struct homa_supervisor *sv, struct homa_sv_sock *s);
/** homa_sv_shut() - shutdown() of @theirs, the program's end; 0 or a negative errno. */
int homa_sv_shut(struct homa_sv_sock *s, int theirs, int how);
/** homa_sv_opened() - the connection is open, and the program has its end. */
void homa_sv_opened(struct homa_supervisor *sv, struct homa_sv_sock *s);

/* ---- options.c ---- */

/** homa_sv_read_options() - give the stream the options that the kernel's socket has. */
void homa_sv_read_options(struct homa_sv_sock *s, int fd);
void homa_sv_setsockopt(struct homa_supervisor *sv, struct homa_sv_call *call,
			struct homa_sv_sock *s);
void homa_sv_getsockopt(struct homa_supervisor *sv, struct homa_sv_call *call,
			struct homa_sv_sock *s);

/* ---- connect.c ---- */

/** homa_sv_connect() - the program calls connect(). */
void homa_sv_connect(struct homa_supervisor *sv, struct homa_sv_call *call,
		     struct homa_sv_sock *s, const struct sockaddr_storage *to);
/** homa_sv_connect_news() - homad has said something about a connection that is being opened. */
void homa_sv_connect_news(struct homa_supervisor *sv, struct homa_sv_sock *s);
/** homa_sv_connect_fail() - it cannot be opened. */
void homa_sv_connect_fail(struct homa_supervisor *sv, struct homa_sv_sock *s,
			  int error);
/** homa_sv_connect_late() - answer calls whose time is over at @now; returns when the next one's
 *  is. */
u64 homa_sv_connect_late(struct homa_supervisor *sv, u64 now);

/* ---- accept.c ---- */

/** homa_sv_listen() - the program calls listen(). */
void homa_sv_listen(struct homa_supervisor *sv, struct homa_sv_call *call,
		    struct homa_sv_sock *s);
void homa_sv_accept(struct homa_supervisor *sv, struct homa_sv_call *call,
		    struct homa_sv_sock *s);
/** homa_sv_take() - take connections that have come to a listener, and give them to who waits. */
void homa_sv_take(struct homa_supervisor *sv, struct homa_sv_sock *s);
/** homa_sv_stop() - shutdown() of a listener. */
void homa_sv_stop(struct homa_sv_sock *s, struct homa_supervisor *sv);
u64 homa_sv_accept_late(struct homa_supervisor *sv, u64 now);

/** homa_sv_bind() - the program calls bind(). */
void homa_sv_bind(struct homa_supervisor *sv, struct homa_sv_call *call);

/* ---- calls.c ---- */

/** homa_sv_serve() - do what the call wants. */
void homa_sv_serve(struct homa_supervisor *sv, struct homa_sv_call *call);

/* ---- loop.c ---- */

/** homa_sv_run() - serve all calls that come by @notify, until the last program has ended and its
 *  bytes are homad's. */
void homa_sv_run(struct homa_streams *streams, int notify);

/* ---- launch.c ---- */

/** homa_sv_launch() - run a program, supervised if homad runs; returns its exit status if it could
 *  not be run. */
int homa_sv_launch(char **argv);

/* ---- which.c ---- */

/** homa_sv_which() - does the program make system calls itself? @why gets a sentence.
 *  Returns 1, 0, or a negative errno if it cannot be read. */
int homa_sv_which(const char *program, const char **why);

#endif
