/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host for one multi-threaded engine that talks to itself: what the engine
 * sends is put on a queue, and any thread hands it back. Shared by the test of
 * races (hammer.c) and the measurement of scaling (tests/bench).
 *
 * Memory is given back after a grace period: an object retired by one thread
 * is freed when every thread has been through its loop once since.
 */
#ifndef HAMMER_H
#define HAMMER_H

#include <pthread.h>

#include "homa_engine.h"

#define HAMMER_THREADS 8
#define HAMMER_SOCKS 8		/* the first half servers */
#define HAMMER_LINKS 2
#define HAMMER_PEERS 4
#define HAMMER_PORT 100

/* A packet as the engine made it; payload does not exist. */
struct hammer_pkt {
	struct hammer_pkt *next;
	struct homa_addr src;
	u32 len;
	u8 hdr[96];
};

/* struct hammer_queue - packets under way on a link, any order will do */
struct hammer_queue {
	pthread_mutex_t lock;
	struct hammer_pkt *head, **tail;
	u32 count;
};

/* struct hammer_slot - a socket that may be closed and opened again */
struct hammer_slot {
	pthread_rwlock_t lock;	/* write: open or close */
	struct homa_sock *sock;
	void *pool;
	u64 serial;
};

/* Freed when all threads have passed their loop's top. */
struct hammer_dead {
	struct hammer_dead *next;
	void *mem;
	void *extra;
	u64 seen[HAMMER_THREADS];
};

struct hammer;

struct hammer_thread {
	struct hammer *h;
	u32 index;
	u32 seed;
	struct homa_ctx ctx;
	u64 deadline;
	u64 loops;		/* atomic: read by all */
	struct hammer_dead *dead;
	struct homa_handle recent[64];
	u32 lengths[64];
	u64 sent, delivered, ended;
	u64 given_rpcs, retired_rpcs, given_peers, retired_peers, given_ranges;
};

/**
 * struct hammer - engine, links, sockets, threads
 * @lose, @repeat: ‰ of packets.
 * @length: most bytes of a message.
 * @outstanding: RPCs per thread at a time.
 * @any_link: peers are reached over all links, not over one each.
 * @reopen: one in so many of a thread's rounds closes a socket, 0: none.
 * @pages: of a socket's receive pool; few make messages wait.
 * @pieces: messages are handed in piece by piece.
 * @unguarded: sockets are closed while others send through them; the memory
 *	stays until they have noticed.
 * @stop: atomic; 1: no new RPCs, 2: threads return.
 */
struct hammer {
	struct homa_limits limits;
	struct homa_engine *engine;
	struct homa_link *link[HAMMER_LINKS];
	struct hammer_queue queue[HAMMER_LINKS];
	struct hammer_slot slot[HAMMER_SOCKS];
	struct hammer_thread thread[HAMMER_THREADS];
	u32 threads;
	u32 lose, repeat, abort;
	u32 length;
	u32 outstanding;
	bool any_link, pieces, unguarded;
	u32 reopen, pages;
	u64 seed;
	int stop;
	s64 open_rpcs;		/* atomic */
};

u64 hammer_now(void);
u32 hammer_rand(struct hammer_thread *t, u32 n);
/** hammer_new() - @pages in each pool; HAMMER_SEED in the environment or @seed */
struct hammer *hammer_new(u32 threads, u32 shards, u32 pages, u64 seed);
/** hammer_round() - one turn of a thread's loop */
void hammer_round(struct hammer_thread *t);
/** hammer_run() - all threads, @seconds, then until nothing lives or 60 s */
void hammer_run(struct hammer *h, double seconds);
/** hammer_reopen() - close a socket under the others' feet and open it again */
void hammer_reopen(struct hammer_thread *t, u32 slot);
/** hammer_free() - close all; returns objects that did not come back */
u32 hammer_free(struct hammer *h);

#endif
