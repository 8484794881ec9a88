/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel backend: a handle of libhoma that is a Homa socket of the kernel
 * module (or of libhoma-preload, which offers the same calls). The protocol and
 * the buffers are the kernel's; here is what libhoma promises beyond the socket
 * API: receives for one kind of message or one shared RPC, timeouts, ids that
 * are noticed when stale, messages released in any order from any thread.
 *
 *	open.c		the handle, its socket and region; fork()
 *	slots.c		our open requests; requests that we may answer
 *	send.c		request, reply, abort
 *	pages.c		one recvmsg(), and receive buffers, given back with the next
 *	take.c		gives what recvmsg() brought to whoever wants the message
 *	block.c		recvmsg() with a deadline
 *	wait.c		receive: which threads enter the kernel, and which wait outside
 *	fd.c		homa_fd()
 *	metrics.c
 *
 * The socket gives every shared message to whoever asks first. So threads whose
 * receive takes whatever may come all go into recvmsg() at once ("direct"), and
 * the kernel chooses between them. One that is particular - it wants one RPC
 * that is shared, or one kind on a handle that gets both - is handed its
 * messages by those, or takes the poller's role while nobody is direct. A thread
 * inside recvmsg() cannot be told of a message that somebody queued here; hence
 * two rules: all direct threads take the same kinds, and nobody else takes from
 * the socket while there are any. Private RPCs are waited for by their id.
 */
#ifndef HOMA_KSOCK_H
#define HOMA_KSOCK_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include "homa_backend.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "homa_socket.h"

#define HOMA_KSOCK_SLOTS 65536u
#define HOMA_KSOCK_ASKED \
	(1u << 20) /* unanswered requests that are remembered */
#define HOMA_KSOCK_GRANULE \
	64u /* bytes; a received piece begins at a multiple */
#define HOMA_KSOCK_NEVER (~(u64)0)
#define HOMA_KSOCK_ANY (HOMA_RECV_REQUEST | HOMA_RECV_RESPONSE)

/* struct homa_ksock_item - a message that waits for the application. Guarded by: homa_ksock.lock */
struct homa_ksock_item {
	/* Links it into homa_ksock.ready. */
	struct homa_list list;
	/* The message, as the application will get it. */
	struct homa_message msg;
};

/* struct homa_ksock_slot - the place of one request of this handle. Guarded by: homa_ksock.lock */
struct homa_ksock_slot {
	/* The request's name, which is its completion cookie in the kernel; 0 if none is here. */
	u64 token;
	/* The number of requests that had this place so far. */
	u64 uses;
	/* The kernel's id of the request; 0 until sendmsg() has returned. */
	u64 id;
	/* The cookie that the application gave with the request. */
	u64 cookie;
	/* The address that the request went to. */
	struct sockaddr_storage peer;
	/* 1 + the next place of the free list; 0 if this is the last. */
	u32 next;
	/* Only a receive by id may take the response (HOMA_PRIVATE). */
	bool is_private;
	/* The outcome of the request waits in homa_ksock.ready. */
	bool done;
	/* The request is being aborted, and nobody will hear of it. */
	bool gone;
};

/* struct homa_ksock_got - what a recvmsg() brought. Written by: the thread that called it */
struct homa_ksock_got {
	/* What the kernel told: the id, the cookie and the pieces. */
	struct homa_recvmsg_args args;
	/* The address of the sender. */
	struct sockaddr_in6 from;
	/* The length of the message in bytes. */
	size_t length;
	/* The positive errno that a request of this handle ended with, or 0. */
	int error;
};

/* struct homa_ksock_waiter - a thread inside homa_receive(), on its stack. Guarded by:
 * homa_ksock.lock */
struct homa_ksock_waiter {
	/* Links it into homa_ksock.waiters. */
	struct homa_list list;
	/* The thread that finds a message for the waiter writes it there. */
	struct homa_message *msg;
	/* The shared request that it waits for; 0 if it waits for any message of @flags. */
	u64 token;
	/* The time in ns at which its call ends, or HOMA_KSOCK_NEVER. */
	u64 until;
	/* HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token. */
	u32 flags;
	/* What its call returns, valid once @done is set. */
	int result;
	bool done;
	/* The thread is inside recvmsg(), where no other thread can hand it a message. */
	bool direct;
	/* The thread has looked for as long as it shall before it sleeps. */
	bool spun;
	/* What wakes the thread. */
	struct homa_wake wake;
};

/* Counters of this host, for homa_metrics(). */
#define HOMA_KSOCK_COUNTERS(X)                                             \
	X(handoffs, "messages handed to another waiting thread")           \
	X(queued, "messages that came while no thread waited for them")    \
	X(progress_rounds, "of these, found without a receive under way")  \
	X(flushes, "times buffers were given back by a call of their own") \
	X(timeouts_set, "times the socket's receive timeout was changed")

struct homa_ksock_counters {
#define X(name, text) u64 name;
	HOMA_KSOCK_COUNTERS(X)
#undef X
};

/* struct homa_ksock - an open handle. Guarded by: @lock, unless a member says otherwise. */
struct homa_ksock {
	/* The handle's lock. */
	struct homa_gate lock;
	/* The socket, and its family: AF_INET6, or AF_INET where there is no IPv6. */
	int fd, family;
	/* The memory, of @region_bytes bytes, in which the kernel puts messages. This library
	 * mapped it if @own_region, else the application lent it. */
	u8 *region;
	size_t region_bytes;
	bool own_region;
	/* How long a receive looks before it sleeps, in ns; HOMA_KSOCK_NEVER if it never sleeps. */
	u64 spin_ns;
	/* 1 if calls fail from now on; atomic. */
	u32 shut;
	/* The number of threads in calls that may sleep; closing waits until it is 0. */
	u32 inside;
	/* The handle has a server's port, so requests may come. */
	bool bound;
	/* A request was sent whose response any receive may take. */
	bool asked_shared;
	/* The place of an unanswered request in @asked was given to another one. */
	bool asked_lost;
	/* The number of threads inside recvmsg() for shared messages, and the kinds of messages
	 * (HOMA_RECV_*) that all of them take. */
	u32 direct, direct_flags;
	/* The particular thread that looks at the socket, or NULL. */
	struct homa_ksock_waiter *poller;
	/* The poller is inside poll(). */
	bool sleeping;
	/* An eventfd that wakes the poller. */
	int nudge_fd;
	/* @waiters: the threads inside homa_receive() for shared messages. @ready: the messages
	 * that nobody has taken. */
	struct homa_list waiters, ready;
	/* The table of our requests. The item at the same index is the request's outcome. */
	struct homa_ksock_slot *slots;
	/* For each slot the outcome of its request. */
	struct homa_ksock_item *items;
	/* Places from @fresh on were never used. @free is 1 + the first place of the free list,
	 * or 0. */
	u32 fresh, free;
	/* A random number that is added to a place's @uses in tokens, so that tokens of an earlier
	 * handle mean nothing here. */
	u64 uses0;
	/* For each request that we may answer its odd token, or 1 + the next free place, see
	 * slots.c. */
	u64 *asked;
	/* The number of requests that came so far. */
	u64 asked_count;
	/* As @fresh and @free, for the places of @asked. */
	u32 asked_fresh, asked_free;
	/* The number of bytes received, and of our requests that failed, for homa_metrics(). */
	u64 rx_bytes, failed;

	/* The lock of the socket's receive timeout. */
	struct homa_gate timeo_lock;
	/* Under timeo_lock: the socket's SO_RCVTIMEO in us; 0 if it has none. */
	u64 timeo;
	/* Under timeo_lock: the number of threads that are about to block or blocked with it. */
	u32 timed;

	/* The lock of pieces that go back to the kernel. */
	struct homa_gate back_lock;
	/* For each granule of the region 1 while the application has a piece that begins there,
	 * else 0. The bytes are atomic. */
	u8 *out;
	/* Under back_lock: the offsets in bytes of @num_back pieces that the kernel gets back with
	 * the next calls of recvmsg(). */
	u32 *back;
	u32 num_back;
	/* The number of pieces that the application has or that are in @back; atomic. */
	u32 pieces;

	/* The descriptor of homa_fd(), or -1, and an eventfd in its set, readable if @level. */
	int ep_fd, level_fd;
	/* The descriptor of homa_send_fd(), or -1. */
	int send_fd;
	bool level;
	/* Links it into the list of this process's handles. */
	struct homa_list all;
	/* What the handle counts. */
	struct homa_ksock_counters counters;
};

/** homa_ksock_error() - what calls return once the handle ends; 0 until then. */
static inline int homa_ksock_error(const struct homa_ksock *c)
{
	return __atomic_load_n(&c->shut, __ATOMIC_ACQUIRE) ? -ESHUTDOWN : 0;
}

/* open.c */
const struct homa_backend_ops *homa_ksock_get(void);

/* slots.c: the caller has the lock */
int homa_ksock_slots_init(struct homa_ksock *c);
void homa_ksock_slots_free(struct homa_ksock *c);
/** homa_ksock_slot_get() - take a slot and give it a token; NULL if none is free. */
struct homa_ksock_slot *homa_ksock_slot_get(struct homa_ksock *c);
/** homa_ksock_slot_put() - free the slot of a request that has ended. */
void homa_ksock_slot_put(struct homa_ksock *c, struct homa_ksock_slot *slot);
/** homa_ksock_slot() - the slot of the open request @token, or NULL. */
static inline struct homa_ksock_slot *homa_ksock_slot(struct homa_ksock *c,
						      u64 token)
{
	struct homa_ksock_slot *slot = &c->slots[token % HOMA_KSOCK_SLOTS];

	return token && slot->token == token ? slot : NULL;
}

static inline struct homa_ksock_item *
homa_ksock_item(struct homa_ksock *c, struct homa_ksock_slot *slot)
{
	return &c->items[slot - c->slots];
}

/** homa_ksock_asked() - remember a request that came; returns its token. */
u64 homa_ksock_asked(struct homa_ksock *c);
/** homa_ksock_answer() - begin to answer the request @token; false if it was answered before. If
 *  the request had to be forgotten, this returns true and the kernel decides. */
bool homa_ksock_answer(struct homa_ksock *c, u64 token);
/** homa_ksock_asked_open() - may the request be answered, as far as is known? */
bool homa_ksock_asked_open(struct homa_ksock *c, u64 token);
/** homa_ksock_answered() - end what homa_ksock_answer() began. @again is true if the answer
 *  could not be sent, and may be sent later. */
void homa_ksock_answered(struct homa_ksock *c, u64 token, bool again);

/* send.c */
int homa_ksock_request(void *host, const struct sockaddr *dest,
		       const struct homa_message_out *out, uint64_t cookie,
		       unsigned int flags, uint64_t *id);
int homa_ksock_reply(void *host, const struct homa_message *request,
		     const struct homa_message_out *out);
int homa_ksock_reject(void *host, const struct homa_message *request, int error);
int homa_ksock_wait_send(void *host, size_t length, int64_t timeout_ns);
int homa_ksock_send_fd(void *host);
int homa_ksock_alive(void *host, const struct homa_message *request);
int homa_ksock_abort(void *host, uint64_t id, int error);

/* pages.c */
int homa_ksock_pages_init(struct homa_ksock *c);
void homa_ksock_pages_free(struct homa_ksock *c);
/** homa_ksock_pages_out() - note that the application has the pieces in @args now. */
void homa_ksock_pages_out(struct homa_ksock *c,
			  const struct homa_recvmsg_args *args);
/** homa_ksock_pages_back() - put pieces to be given back into @args. */
void homa_ksock_pages_back(struct homa_ksock *c, struct homa_recvmsg_args *args);
/** homa_ksock_recv() - recvmsg() for the RPC @id, or any shared one if that is 0. The caller has no
 *  lock. */
int homa_ksock_recv(struct homa_ksock *c, u64 id, int flags,
		    struct homa_ksock_got *got);
/** homa_ksock_flush() - give all pieces that are to be given back to the kernel now. */
void homa_ksock_flush(struct homa_ksock *c);
int homa_ksock_release(void *host, struct homa_message *msg);
int homa_ksock_release_pages(void *host, const uint32_t *pages, unsigned int num);

/* take.c: the caller has the lock */
/** homa_ksock_fill() - write what came to the application's message. @slot is that of our
 *  request, or NULL if the message is a request. */
void homa_ksock_fill(struct homa_ksock *c, const struct homa_ksock_got *got,
		     const struct homa_ksock_slot *slot,
		     struct homa_message *msg);
/** homa_ksock_deliver() - give what came to @self, another thread or the list. */
void homa_ksock_deliver(struct homa_ksock *c, const struct homa_ksock_got *got,
			struct homa_ksock_waiter *self);
/** homa_ksock_pull() - receive and deliver what is there now, until @self is served. Returns how
 *  many messages, or an error. No thread may be direct. */
int homa_ksock_pull(struct homa_ksock *c, struct homa_ksock_waiter *self);
/** homa_ksock_drain() - receive and deliver what is there now, if no thread is direct. */
void homa_ksock_drain(struct homa_ksock *c);
/** homa_ksock_take() - take a kept message for @w: 0, -EAGAIN if there is none yet, or -ENOENT. */
int homa_ksock_take(struct homa_ksock *c, struct homa_ksock_waiter *w);
/** homa_ksock_forget() - forget our request; threads that wait for it get -ENOENT. */
void homa_ksock_forget(struct homa_ksock *c, struct homa_ksock_slot *slot);
void homa_ksock_nudge(struct homa_ksock *c);

/* block.c */
/** homa_ksock_block() - recvmsg() that blocks until @until, in ns. The caller has no lock. */
int homa_ksock_block(struct homa_ksock *c, u64 id, u64 until,
		     struct homa_ksock_got *got);
/** homa_ksock_spin() - try recvmsg() for as long as the options say; -EAGAIN if nothing came. */
int homa_ksock_spin(struct homa_ksock *c, u64 id, u64 until,
		    struct homa_ksock_got *got);

/* wait.c */
int homa_ksock_receive(void *host, struct homa_message *msg, uint64_t id,
		       unsigned int flags, int64_t timeout_ns);
int homa_ksock_poll(void *host);
int homa_ksock_receive_batch(void *host, struct homa_message *msgs,
			     unsigned int n, unsigned int flags,
			     int64_t timeout_ns);
/** homa_ksock_enter() - begin a call that may sleep: whoever closes the handle waits for its
 *  homa_ksock_leave(), which follows in any case. Returns 0 or the handle's error. */
int homa_ksock_enter(struct homa_ksock *c);
void homa_ksock_leave(struct homa_ksock *c);
/** homa_ksock_end_waits() - wake all threads and wait until none is inside; under the lock. */
void homa_ksock_end_waits(struct homa_ksock *c);

/* fd.c, metrics.c */
int homa_ksock_fd(void *host);
/** homa_ksock_fd_touch() - update homa_fd() after the list has changed; under the lock. */
void homa_ksock_fd_touch(struct homa_ksock *c);
void homa_ksock_metrics(void *host,
			void (*visit)(void *arg, const char *name,
				      const char *description, uint64_t value),
			void *arg);

#endif
