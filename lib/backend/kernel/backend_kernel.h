/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel host: a handle of libhoma that is a Homa socket of the kernel
 * module (or of libhoma-preload, which offers the same calls). The protocol and
 * the buffers are the kernel's; here is what libhoma promises beyond the socket
 * API: receives for one kind of message or one shared RPC, timeouts, ids that
 * are noticed when stale, messages released in any order from any thread.
 *
 *	open.c		the handle, its socket and region; fork()
 *	slots.c		our open requests; requests that we may answer
 *	send.c		request, reply, abort
 *	pages.c		one recvmsg(), and receive buffers, given back with the next
 *	take.c		what it brought, to whoever wants the message
 *	block.c		recvmsg() with a deadline
 *	wait.c		receive: who goes into the kernel, who waits to be handed
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
#ifndef HOMA_KNL_H
#define HOMA_KNL_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include "homa_backend.h"
#include "homa_list.h"
#include "homa_socket.h"
#include "homa_turn.h"

#define HOMA_KNL_SLOTS 65536u
#define HOMA_KNL_ASKED (1u << 20) /* unanswered requests that are remembered */
#define HOMA_KNL_GRANULE 64u /* a piece of a message begins at a multiple */
#define HOMA_KNL_NEVER (~(u64)0)
#define HOMA_KNL_ANY (HOMA_RECV_REQUEST | HOMA_RECV_RESPONSE)

/* struct homa_knl_item - a message that waits for the application */
struct homa_knl_item {
	/* Links it into homa_knl.ready. */
	struct homa_list list;
	struct homa_message msg;
};

/* struct homa_knl_slot - the place of one request of this handle; under its lock */
struct homa_knl_slot {
	/* The request's name, which is its completion cookie in the kernel; 0: none is here. */
	u64 token;
	/* How often the place was used. */
	u64 uses;
	/* The kernel's id of it; 0: sendmsg() has not returned yet. */
	u64 id;
	/* What the application gave with the request, and where it went. */
	u64 cookie;
	struct sockaddr_storage peer;
	/* Of the free list: 1 + the next place; 0: none. */
	u32 next;
	bool is_private;
	/* Its outcome waits in homa_knl.ready. */
	bool done;
	/* It was aborted, and nobody will hear of it. */
	bool gone;
};

/* struct homa_knl_got - what a recvmsg() brought */
struct homa_knl_got {
	struct homa_recvmsg_args args;
	struct sockaddr_in6 from;
	size_t length;
	/* 0, or the errno that a request of this handle ended with. */
	int error;
};

/* struct homa_knl_waiter - a thread inside homa_receive(), on its stack */
struct homa_knl_waiter {
	/* Links it into homa_knl.waiters. */
	struct homa_list list;
	/* Whoever finds a message for it fills this. */
	struct homa_message *msg;
	/* The one shared RPC that it waits for; 0: any that @flags allow. */
	u64 token;
	/* Time at which its call ends, ns, or HOMA_KNL_NEVER. */
	u64 until;
	/* HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token. */
	u32 flags;
	/* What its call returns, once @done is set. */
	int result;
	bool done;
	/* It is inside recvmsg(), where it cannot be handed anything. */
	bool direct;
	/* It has looked without sleeping as long as it shall. */
	bool spun;
	struct homa_wake wake;
};

/* Counters of this host, for homa_metrics(). */
#define HOMA_KNL_COUNTERS(X)                                               \
	X(handoffs, "messages handed to another waiting thread")           \
	X(queued, "messages that came while no thread waited for them")    \
	X(progress_rounds, "of these, found without a receive under way")  \
	X(flushes, "times buffers were given back by a call of their own") \
	X(timeouts_set, "times the socket's receive timeout was changed")

struct homa_knl_counters {
#define X(name, text) u64 name;
	HOMA_KNL_COUNTERS(X)
#undef X
};

/* struct homa_knl - an open handle. Its lock protects a member that says nothing else. */
struct homa_knl {
	struct homa_turn lock;
	/* The socket, and its family: AF_INET where there is no IPv6. */
	int fd, family;
	/* Where the kernel puts messages; this process mapped it if @own_region, else the
	 * application lent it. */
	u8 *region;
	size_t region_bytes;
	bool own_region;
	/* How long a receive tries before it sleeps, ns; HOMA_KNL_NEVER: it never sleeps. */
	u64 spin_ns;
	/* Calls fail from now on; atomic. */
	u32 shut;
	/* Threads in calls that may sleep, for which closing waits. */
	u32 inside;
	/* Requests may come. */
	bool bound;
	/* A request was sent whose response any receive may take. */
	bool asked_shared;
	/* The place of an unanswered request in @asked was given to another one. */
	bool asked_lost;
	/* Threads inside recvmsg() for shared messages, and the kinds that all of them take. */
	u32 direct, direct_flags;
	/* The particular thread that looks at the socket; NULL: none does. */
	struct homa_knl_waiter *poller;
	/* The poller is inside poll(). */
	bool sleeping;
	/* An eventfd that wakes the poller. */
	int nudge_fd;
	/* Threads inside homa_receive() for shared messages; messages that nobody has taken. */
	struct homa_list waiters, ready;
	/* Places of requests; the item at the same index is the outcome of that request. */
	struct homa_knl_slot *slots;
	struct homa_knl_item *items;
	/* Places from @fresh on were never used. @free: 1 + the first that was given back. */
	u32 fresh, free;
	/* Added to a place's uses in tokens: a random number, so that no word of an earlier
	 * handle is one of this. */
	u64 uses0;
	/* By place, the odd token of an unanswered request, or where the next free place is; how
	 * many requests came; and the free places, as with slots. See slots.c. */
	u64 *asked;
	u64 asked_count;
	u32 asked_fresh, asked_free;
	/* Bytes and failures that came, for homa_metrics(). */
	u64 rx_bytes, failed;

	struct homa_turn timeo_lock;
	/* The socket's SO_RCVTIMEO, us, 0: it has none; under timeo_lock. */
	u64 timeo;
	/* Threads that need it to be as it is; under timeo_lock. */
	u32 timed;

	struct homa_turn back_lock;
	/* A byte for each granule of the region: 1 while a piece that begins there is the
	 * application's. Atomic. */
	u8 *out;
	/* Pieces that the kernel gets back with the next recvmsg(); under back_lock. */
	u32 *back;
	u32 num_back;
	/* Pieces with the application or in @back; atomic. */
	u32 pieces;

	/* homa_fd(), and an eventfd in it, which can be read if @level. */
	int ep_fd, level_fd;
	/* homa_send_fd(), or -1. */
	int send_fd;
	bool level;
	/* Links it into the list of this process's handles. */
	struct homa_list all;
	struct homa_knl_counters counters;
};

/** homa_knl_error() - what calls return once the handle ends; 0 until then. */
static inline int homa_knl_error(const struct homa_knl *c)
{
	return __atomic_load_n(&c->shut, __ATOMIC_ACQUIRE) ? -ESHUTDOWN : 0;
}

/* open.c */
const struct homa_backend_ops *homa_knl_get(void);

/* slots.c: under the lock */
int homa_knl_slots_init(struct homa_knl *c);
void homa_knl_slots_free(struct homa_knl *c);
struct homa_knl_slot *homa_knl_slot_get(struct homa_knl *c);
void homa_knl_slot_put(struct homa_knl *c, struct homa_knl_slot *slot);
/** homa_knl_slot() - of an open request, NULL: there is none of that name. */
static inline struct homa_knl_slot *homa_knl_slot(struct homa_knl *c, u64 token)
{
	struct homa_knl_slot *slot = &c->slots[token % HOMA_KNL_SLOTS];

	return token && slot->token == token ? slot : NULL;
}

static inline struct homa_knl_item *homa_knl_item(struct homa_knl *c,
						  struct homa_knl_slot *slot)
{
	return &c->items[slot - c->slots];
}

/** homa_knl_asked() - a request came; its token. */
u64 homa_knl_asked(struct homa_knl *c);
/** homa_knl_answer() - it is about to be answered; false: it was before. One that
 *  had to be forgotten is for the kernel to judge. */
bool homa_knl_answer(struct homa_knl *c, u64 token);
/** homa_knl_asked_open() - may it be, as far as is known? */
bool homa_knl_asked_open(struct homa_knl *c, u64 token);
/** homa_knl_answered() - then this; @again: it was not, and may be later. */
void homa_knl_answered(struct homa_knl *c, u64 token, bool again);

/* send.c */
int homa_knl_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_knl_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out);
int homa_knl_reject(void *host, const struct homa_message *request, int error);
int homa_knl_wait_send(void *host, size_t length, int64_t timeout_ns);
int homa_knl_send_fd(void *host);
int homa_knl_alive(void *host, const struct homa_message *request);
int homa_knl_abort(void *host, uint64_t id, int error);

/* pages.c */
int homa_knl_pages_init(struct homa_knl *c);
void homa_knl_pages_free(struct homa_knl *c);
/** homa_knl_pages_out() - @args has pieces that are the application's now. */
void homa_knl_pages_out(struct homa_knl *c, const struct homa_recvmsg_args *args);
/** homa_knl_pages_back() - put pieces to be given back into @args. */
void homa_knl_pages_back(struct homa_knl *c, struct homa_recvmsg_args *args);
/** homa_knl_recv() - recvmsg() without locks; @id 0: any shared one. */
int homa_knl_recv(struct homa_knl *c, u64 id, int flags,
		  struct homa_knl_got *got);
/** homa_knl_flush() - give all of them back now. */
void homa_knl_flush(struct homa_knl *c);
int homa_knl_release(void *host, struct homa_message *msg);
int homa_knl_release_pages(void *host, const uint32_t *pages, unsigned int num);

/* take.c */
/** homa_knl_fill() - under the lock: to the application, @slot if ours. */
void homa_knl_fill(struct homa_knl *c, const struct homa_knl_got *got,
		   const struct homa_knl_slot *slot, struct homa_message *msg);
/** homa_knl_deliver() - under the lock: to @self, another thread or the list. */
void homa_knl_deliver(struct homa_knl *c, const struct homa_knl_got *got,
		      struct homa_knl_waiter *self);
/** homa_knl_pull() - under the lock, nobody direct: what is there now, until
 *  @self is served; how many, or an error. */
int homa_knl_pull(struct homa_knl *c, struct homa_knl_waiter *self);
/** homa_knl_drain() - under the lock: the same for nobody, if that is possible. */
void homa_knl_drain(struct homa_knl *c);
/** homa_knl_take() - under the lock: from the list. 0, -EAGAIN, -ENOENT. */
int homa_knl_take(struct homa_knl *c, struct homa_knl_waiter *w);
/** homa_knl_forget() - under the lock: a request vanishes. */
void homa_knl_forget(struct homa_knl *c, struct homa_knl_slot *slot);
void homa_knl_nudge(struct homa_knl *c);

/* block.c */
/** homa_knl_block() - recvmsg() until @until, without locks. */
int homa_knl_block(struct homa_knl *c, u64 id, u64 until,
		   struct homa_knl_got *got);
/** homa_knl_spin() - tries for as long as the options say; -EAGAIN: in vain. */
int homa_knl_spin(struct homa_knl *c, u64 id, u64 until,
		  struct homa_knl_got *got);

/* wait.c */
int homa_knl_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns);
int homa_knl_poll(void *host);
int homa_knl_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
			   unsigned int flags, int64_t timeout_ns);
/** homa_knl_enter() - we are inside: who closes the handle waits for us. What is wrong
 *  with it, or 0; homa_knl_leave() in either case. */
int homa_knl_enter(struct homa_knl *c);
void homa_knl_leave(struct homa_knl *c);
/** homa_knl_end_waits() - under the lock; returns when no thread is inside. */
void homa_knl_end_waits(struct homa_knl *c);

/* fd.c, metrics.c */
int homa_knl_fd(void *host);
/** homa_knl_fd_touch() - under the lock, after changes of the list. */
void homa_knl_fd_touch(struct homa_knl *c);
void homa_knl_metrics(void *host,
		      void (*visit)(void *arg, const char *name,
				    const char *description, uint64_t value),
		      void *arg);

#endif
