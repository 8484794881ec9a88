/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host for one multi-threaded engine that talks to itself: what the engine
 * sends is put on a queue, and any thread hands it back. Shared by the test of
 * races (hammer.c) and the measurement of scaling (tests/counts).
 *
 * Memory is given back after a grace period: an object retired by one thread
 * is freed when every thread has been through its loop once since.
 */
#ifndef HAMMER_H
#define HAMMER_H

#include <pthread.h>

#include "homa_engine.h"

#define HAMMER_THREADS 8
#define HAMMER_SOCKS 8 /* the first half servers */
#define HAMMER_LINKS 2
#define HAMMER_PEERS 4
#define HAMMER_PORT 100
#define HAMMER_BOOK 1024

/* A packet as the engine made it; @word: what its payload follows from. */
struct hammer_pkt {
	struct hammer_pkt *next;
	struct homa_addr src;
	u64 word;
	u32 len;
	u8 hdr[96];
};

/* struct hammer_queue - packets under way on a link, any order will do */
struct hammer_queue {
	pthread_mutex_t lock;
	struct hammer_pkt *head, **tail;
	u32 count;
};

struct hammer_msg;

/* struct hammer_slot - a socket that may be closed and opened again */
struct hammer_slot {
	pthread_rwlock_t lock; /* write: open or close */
	struct homa_sock *sock;
	void *pool;
	u8 *region;
	u64 serial;
	pthread_mutex_t inbox_lock;
	struct hammer_msg *inbox;
};

/* struct hammer_home - of a socket: its slot and the slot's serial; its region */
struct hammer_home {
	u64 where;
	u8 *region;
};

/* Freed when all threads have passed their loop's top. */
struct hammer_dead {
	struct hammer_dead *next;
	void *mem[3];
	u64 seen[HAMMER_THREADS];
};

struct hammer;

struct hammer_thread {
	struct hammer *h;
	u32 index;
	u32 seed;
	struct homa_ctx ctx;
	u64 deadline;
	u64 loops; /* atomic: read by all */
	struct hammer_dead *dead;
	struct homa_handle recent[64];
	u32 lengths[64];
	u64 serials;
	u64 book[HAMMER_BOOK]; /* atomic: the last RPCs sent */
	bool asked_now;
	u64 sent, delivered, ended;
	u64 whole, at_once, elsewhere;
	u64 given_rpcs, retired_rpcs, given_peers, retired_peers, given_ranges;
};

/**
 * struct hammer - engine, links, sockets, threads
 * @lose, @repeat: ‰ of packets; they come again at once, and once more later.
 * @length: most bytes of a message, besides its word.
 * @outstanding: RPCs per thread at a time.
 * @announce: ‰ of messages that a START_MSG comes before, more or less.
 * @deliver_whole: sockets deliver short messages whole, on and off.
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
	u32 lose, repeat, abort, announce;
	u32 length;
	u32 outstanding;
	bool any_link, pieces, unguarded, deliver_whole;
	u32 reopen, pages;
	u64 seed;
	int stop;
};

u64 hammer_now(void);
u32 hammer_rand(struct hammer_thread *t, u32 n);
void *hammer_alloc(size_t size);
struct homa_addr hammer_addr(u32 peer);
/** hammer_seen_as() - all addresses are ours; the two of a pair see each other */
struct homa_addr hammer_seen_as(const struct homa_addr *dst);
/** hammer_put() - packets from the engine onto their link's queue, or lost */
void hammer_put(struct hammer_thread *t, struct homa_tx_desc *desc);
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

/* ---- app.c: what applications do ---- */

/** hammer_send() - a request from some socket */
void hammer_send(struct hammer_thread *t);
/** hammer_supply() - more of a request, all of it in the end */
void hammer_supply(struct hammer_thread *t, u32 recent);
void hammer_events(struct hammer_thread *t);
/** hammer_copy() - the payload of DATA to its place */
void hammer_copy(struct hammer_thread *t, struct homa_rx_pkt *rx, u64 word);
/** hammer_delivered() - a message that the engine delivered with its packet */
void hammer_delivered(struct hammer_thread *t, const struct homa_rx_pkt *rx,
		      u64 word);
/** hammer_read() - all messages in a socket's inbox */
void hammer_read(struct hammer_thread *t, u32 slot);
/** hammer_switch() - a socket begins or ceases to deliver messages whole */
void hammer_switch(struct hammer_thread *t, u32 slot);
/** hammer_purge() - drop a closed socket's inbox; slot locked */
void hammer_purge(struct hammer_slot *slot);
/** hammer_lost_pages() - when all is still: pages that did not come back */
u32 hammer_lost_pages(struct hammer *h);

#endif
