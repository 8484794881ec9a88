/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of vm_stream share: streams over Homa by plain socket calls. */
#ifndef TESTS_VM_VM_STREAM_H
#define TESTS_VM_VM_STREAM_H

#include <fcntl.h>
#include <sys/socket.h>
#include "guest.h"

extern int family;
extern const char *server_ip;

/* A connection: the client's end and the server's. */
struct link {
	int listener;
	int client;
	int server;
	union address name;
};

/** stream_new() - a stream socket over Homa. */
int stream_new(int flags);
/** stream_listen() - a listener at @port of any address. */
int stream_listen(int port, int backlog);
/** stream_connect() - a connection to @port of server_ip. */
int stream_connect(int port);
/** link_up() - a listener at @port and a connection; link_down() closes what is open. */
struct link link_up(int port);
void link_down(struct link *link);
/** byte_of() - the byte at an offset of a stream with @seed. */
unsigned char byte_of(unsigned int seed, uint64_t offset);
/** put() - sends the bytes [@from, @to) of a stream; get() receives and compares them. */
void put(int fd, unsigned int seed, uint64_t from, uint64_t to, size_t step);
void get(int fd, unsigned int seed, uint64_t from, uint64_t to, size_t step);
/** quiet() - waits until no Homa socket of a kind is left. */
void quiet(void);

/* stream_calls.c */
extern const struct check stream_calls[];
extern const size_t stream_num_calls;

/* stream_hostile.c */
extern const struct check stream_hostile[];
extern const size_t stream_num_hostile;

/* stream_options.c */
extern const struct check stream_options[];
extern const size_t stream_num_options;

#endif
