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

/* ---- by hand: messages on an ordinary Homa socket (stream_hostile.c) ---- */

/* What each message begins with, and what follows that in OPEN and in its answer. */
struct hdr {
	uint16_t magic;
	uint8_t version, kind;
	uint16_t flags, status;
	uint32_t key, zero;
	uint64_t secret, offset, edge;
} __attribute__((packed));

struct open {
	uint32_t key, zero;
	uint64_t secret;
} __attribute__((packed));

enum { OPEN = 1, DATA, ANSWER };
enum { FIN = 1, RESET };
#define HDR 40u
#define OURS_KEY 7u
#define OURS_SECRET 0x123456789abcdef0ull

/* One end of a stream by hand. */
struct liar {
	struct sock s;
	union address to;
	unsigned char buf[100000];
	struct hdr *hdr;
	uint32_t key;
	uint64_t secret, edge;
};

/** liar_new() - an end without a connection, which sends to @port of server_ip. */
struct liar *liar_new(int port);
void liar_end(struct liar *l);
/** liar_header() - begins a message in its buffer. */
void liar_header(struct liar *l, uint8_t kind, uint16_t flags);
/** liar_ask() - sends a message of @size bytes; the answer's status, -1: it failed, -2: it is no
 *  answer. */
int liar_ask(struct liar *l, size_t size);
/** liar_data() - does so with bytes [@from, @from + @n) of stream 1. */
int liar_data(struct liar *l, uint64_t from, size_t n, uint16_t flags);

/* stream_calls.c */
extern const struct check stream_calls[];
extern const size_t stream_num_calls;

/* stream_hostile.c */
extern const struct check stream_hostile[];
extern const size_t stream_num_hostile;

/* stream_ends.c */
extern const struct check stream_ends[];
extern const size_t stream_num_ends;

/* stream_options.c */
extern const struct check stream_options[];
extern const size_t stream_num_options;

#endif
