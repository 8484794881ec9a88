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
 *	pages.c		receive buffers, given back with the next recvmsg()
 *	take.c		one recvmsg(); from there to whoever wants the message
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

#include <netinet/in.h>
#include <pthread.h>
#include "homa_backend.h"
#include "homa_list.h"
#include "homa_socket.h"
#include "homa_turn.h"

#define HOMA_KNL_SLOTS 65536u
#define HOMA_KNL_ASKED (1u << 20) /* unanswered requests that are remembered */
#define HOMA_KNL_GRANULE 64u	  /* a piece of a message begins at a multiple */
#define HOMA_KNL_NEVER (~(u64)0)
#define HOMA_KNL_ANY (HOMA_RECV_REQUEST | HOMA_RECV_RESPONSE)

/**
 * struct homa_knl_item - a message that waits for the application
 * @list: in homa_knl.ready.
 */
struct homa_knl_item {
	struct homa_list list;
	struct homa_message msg;
};

/**
 * struct homa_knl_slot - one of our requests; under the handle's lock
 * @token: its name, and its completion cookie in the kernel; 0: free.
 * @uses: how often the place was used.
 * @id: the kernel's; 0: sendmsg() has not returned yet.
 * @done: in the ready list.
 * @gone: aborted, nobody will hear of it.
 */
struct homa_knl_slot {
	u64 token, uses, id, cookie;
	struct sockaddr_storage peer;
	u32 next;
	bool is_private, done, gone;
};

/**
 * struct homa_knl_got - what a recvmsg() brought
 * @error: 0, or the errno that an RPC of ours ended with.
 */
struct homa_knl_got {
	struct homa_recvmsg_args args;
	struct sockaddr_in6 from;
	size_t length;
	int error;
};

/**
 * struct homa_knl_waiter - a thread inside homa_receive(), on its stack
 * @list: in homa_knl.waiters.
 * @token: the one shared RPC waited for, or 0.
 * @flags: HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token.
 * @until: HOMA_KNL_NEVER or a time of the clock.
 * @direct: inside recvmsg(); cannot be handed anything.
 */
struct homa_knl_waiter {
	struct homa_list list;
	struct homa_message *msg;
	u64 token, until;
	u32 flags;
	int result;
	bool done, direct, spun;
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

/**
 * struct homa_knl - an open handle; under @lock unless said
 * @fd, @family: the socket; AF_INET where there is no IPv6.
 * @own_region: @region is ours, not lent by the caller.
 * @spin_ns: how long to try before blocking; HOMA_KNL_NEVER: never block.
 * @shut: no more calls. Atomic.
 * @inside: threads in receives.
 * @bound, @asked_shared: requests may come; responses that are not private.
 * @direct: threads in recvmsg() for shared messages; @direct_flags: all of them.
 * @poller: the particular thread that looks at the socket; @sleeping: in poll().
 * @nudge_fd: eventfd that wakes it.
 * @ready: messages nobody has taken.
 * @slots, @items: of equal index. @fresh: slots never used begin here;
 *	@free: 1 + the first one given back.
 * @asked: for each unanswered request its token (odd), see slots.c. @asked_lost: one had to
 *	make room for another.
 * @timeo, @timed: the socket's SO_RCVTIMEO, us, 0: none; threads that need it.
 *	Under @timeo_lock.
 * @out: a byte for each granule of the region: a piece begins there and is the
 *	application's; atomic. @back: pieces to be given back, under @back_lock.
 * @pieces: with the application or in @back.
 * @ep_fd, @level_fd: homa_fd(); @level: the latter is readable.
 */
struct homa_knl {
	struct homa_turn lock;
	int fd, family;
	u8 *region;
	size_t region_bytes;
	bool own_region;
	u64 spin_ns;
	u32 shut;
	u32 inside;
	bool bound, asked_shared, asked_lost;
	u32 direct, direct_flags;
	struct homa_knl_waiter *poller;
	bool sleeping;
	int nudge_fd;
	struct homa_list waiters, ready;
	struct homa_knl_slot *slots;
	struct homa_knl_item *items;
	u32 fresh, free;
	u64 uses0;
	u64 *asked;
	u64 asked_count;
	u32 asked_fresh, asked_free;
	u64 rx_bytes, failed;

	struct homa_turn timeo_lock;
	u64 timeo;
	u32 timed;

	struct homa_turn back_lock;
	u8 *out;
	u32 *back;
	u32 num_back;
	u32 pieces;

	int ep_fd, level_fd;
	bool level;
	struct homa_list all;
	struct homa_knl_counters counters;
};

/* open.c */
const struct homa_backend_ops *homa_knl_get(void);
/** homa_knl_error() - what a call gives when the handle ends; else 0. */
int homa_knl_error(const struct homa_knl *c);

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
/** homa_knl_answered() - then this; @again: it was not, and may be later. */
void homa_knl_answered(struct homa_knl *c, u64 token, bool again);

/* send.c */
int homa_knl_request(void *host, const struct sockaddr *dest,
		     const struct homa_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_knl_reply(void *host, const struct homa_message *request,
		   const struct homa_out *out);
int homa_knl_abort(void *host, uint64_t id, int error);

/* pages.c */
int homa_knl_pages_init(struct homa_knl *c);
void homa_knl_pages_free(struct homa_knl *c);
/** homa_knl_pages_out() - @args has pieces that are the application's now. */
void homa_knl_pages_out(struct homa_knl *c, const struct homa_recvmsg_args *args);
/** homa_knl_pages_back() - put pieces to be given back into @args. */
void homa_knl_pages_back(struct homa_knl *c, struct homa_recvmsg_args *args);
/** homa_knl_flush() - give all of them back now. */
void homa_knl_flush(struct homa_knl *c);
int homa_knl_release(void *host, struct homa_message *msg);
int homa_knl_release_pages(void *host, const uint32_t *pages, unsigned int num);

/* take.c */
/** homa_knl_recv() - recvmsg() without locks; @id 0: any shared one. */
int homa_knl_recv(struct homa_knl *c, u64 id, int flags,
		  struct homa_knl_got *got);
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
