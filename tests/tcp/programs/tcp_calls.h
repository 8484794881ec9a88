/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Cases of what programs may expect of TCP sockets:
 *
 *	tcp_calls CASE --server|--client ADDRESS PORT [SYNC]
 *
 * The two ends of a case are two processes, perhaps on two hosts. The server prints "ready" when
 * the client may begin; each prints "ok" at its end, or what was wrong and ends with 1. SYNC is
 * the path of a Unix socket by which they wait for each other where the stream cannot say it.
 * Nothing but POSIX sockets and Linux's additions is used: the programs know nothing of Homa.
 */
#ifndef TCP_CALLS_H
#define TCP_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Milliseconds after which something that must happen is said not to have happened. */
#define TCP_PATIENCE 20000
/* More than any socket buffer takes of a stream whose reader sleeps. */
#define TCP_MUCH (64u << 20)

union tcp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* One end of a case. */
struct tcp_end {
	union tcp_address address; /* the server's */
	socklen_t length;	   /* bytes of it */
	const char *program;	   /* this program, to be run again */
	const char *path;	   /* of SYNC; NULL: none */
	int sync;		   /* its connection; -1: not made yet */
	bool server;
};

struct tcp_case {
	const char *name;
	void (*server)(struct tcp_end *end);
	void (*client)(struct tcp_end *end);
};

#define TCP_CASE(name) { #name, name##__server, name##__client }

/* Lists of cases by subject, each with an entry without name at its end. */
extern const struct tcp_case tcp_accept_cases[], tcp_again_cases[],
	tcp_bulk_cases[], tcp_cancel_cases[], tcp_close_cases[],
	tcp_connect_cases[], tcp_descriptor_cases[], tcp_end_cases[],
	tcp_exec_cases[], tcp_epoll_cases[], tcp_flag_cases[], tcp_fork_cases[],
	tcp_handler_cases[], tcp_inherit_cases[], tcp_many_cases[],
	tcp_mixed_cases[], tcp_number_cases[], tcp_option_cases[],
	tcp_partial_cases[], tcp_process_cases[], tcp_race_cases[],
	tcp_reset_cases[], tcp_room_cases[], tcp_set_cases[], tcp_spawn_cases[],
	tcp_splice_cases[], tcp_thread_cases[], tcp_told_cases[],
	tcp_urgent_cases[], tcp_vector_cases[], tcp_wait_cases[],
	tcp_wake_cases[];

/* Say what was wrong, and end. */
_Noreturn void tcp_wrong(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define WRONG(...) tcp_wrong(__FILE__, __LINE__, __VA_ARGS__)
/* The condition holds, or the case ends with a message. */
#define EXPECT(condition) \
	((condition) ? (void)0 : WRONG("not so: %s", #condition))
/* The integers are equal. */
#define SAME(got, wanted)                                                     \
	do {                                                                  \
		long long got_ = (got), wanted_ = (wanted);                   \
		if (got_ != wanted_)                                          \
			WRONG("%s is %lld instead of %lld (errno: %s)", #got, \
			      got_, wanted_, strerror(errno));                \
	} while (0)
/* A call that must not fail, and its value. */
#define MUST(call)                                                      \
	({                                                              \
		long value_ = (call);                                   \
		if (value_ < 0)                                         \
			WRONG("%s failed: %s", #call, strerror(errno)); \
		value_;                                                 \
	})
/* A call that must fail, with this error. */
#define FAILS(call, error)                                                     \
	do {                                                                   \
		errno = 0;                                                     \
		long value_ = (call);                                          \
		if (value_ != -1 || errno != (error))                          \
			WRONG("%s gave %ld, %s, instead of %s", #call, value_, \
			      strerror(errno), strerror(error));               \
	} while (0)

/* Sockets. All but tcp_ready() end the case on failure. */
int tcp_socket(const struct tcp_end *end);
/* A socket that is bound to the server's address, and one that listens there. */
int tcp_bound(const struct tcp_end *end);
int tcp_listening(const struct tcp_end *end, int backlog);
/* The server says that the client may begin. */
void tcp_ready(void);
/* Listen, say so, and accept one connection; the listener is closed. */
int tcp_accept_one(const struct tcp_end *end);
int tcp_accept(int listener);
int tcp_connect(const struct tcp_end *end);
void tcp_close(int fd);
void tcp_nonblocking(int fd, bool on);
void tcp_set(int fd, int level, int name, int value);
int tcp_get(int fd, int level, int name);

/* Bytes: each of a stream has a value that follows from its position. */
void tcp_fill(void *bytes, size_t length, size_t position);
bool tcp_filled(const void *bytes, size_t length, size_t position);
void tcp_send(int fd, size_t length, size_t position);
void tcp_receive(int fd, size_t length, size_t position);
void tcp_expect_eof(int fd);
/* Send a byte and receive one: both ends do it, and each knows then that the other is there. */
void tcp_greet(int fd);
/* Send 5,000 bytes to a peer that sends them back, end, hear its end, and close. */
void tcp_talk(int fd);
/* Send back what comes until its end, then close. */
void tcp_echo(int fd);
/* Do that for one connection, but listen only after the client has said so; until then it is
 * refused. */
void tcp_echo_later(struct tcp_end *end);
/* Send until a non-blocking socket takes no more; how many bytes it took. @position: where the
 * first byte stands in the stream. */
size_t tcp_send_full(int fd);
size_t tcp_send_full_from(int fd, size_t position);

/* Wait for these events on one descriptor; those that came. */
short tcp_poll(int fd, short events);
/* What poll() says at once. */
short tcp_ask(int fd, short events);

/* A part of a case of exec.c, in the program that exec ran. */
void tcp_exec_part(const char *name, int a, int b);

/* SYNC: say something to the other end, wait until it has. */
void tcp_tell(struct tcp_end *end);
void tcp_await(struct tcp_end *end);

/* A child has ended with status 0. */
void tcp_child_ended(pid_t child);
/* Let a thread of this process go on until it sleeps in a system call. */
void tcp_await_sleep(pid_t thread);

#endif
