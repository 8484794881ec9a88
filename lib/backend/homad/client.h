/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The service host: a handle of libhoma that is an attachment to homad. The
 * protocol runs in the daemon; here commands go into submission rings and
 * completions come out of one ring (abi/shm.h).
 *
 *	open.c		the handle, and its copy in a child of fork()
 *	attach.c, ctl.c	the connection: memory and questions
 *	reconnect.c	when homad ends, and is back
 *	submit.c	rings, short messages (staged beside them)
 *	heap.c, long.c	long messages
 *	slots.c		our open requests and their names
 *	send.c		request, reply, abort
 *	complete.c	completions, handed to whoever waits or kept
 *	wait.c		receive: who looks, who sleeps
 *	release.c	receive buffers given back
 *	fd.c		homa_fd()
 *	socket.c, rpcs.c	what libhoma-preload needs; metrics.c
 *
 * Locks, outermost first: @ctl (a question to homad is under way), @lock (the
 * completion side), one ring's lock, @release_lock, an attachment's heap_lock.
 * Nobody waits for room in a ring with a lock in hand.
 *
 * An attachment that has ended stays mapped while somebody reads a message in
 * it or copies one into it; @refs counts.
 */
#ifndef HOMA_SVC_CLIENT_H
#define HOMA_SVC_CLIENT_H

#include <pthread.h>
#include "heap.h"
#include "homa_addr.h"
#include "homa_backend.h"
#include "homa_list.h"
#include "homa_spin.h"
#include "homa_turn.h"
#include "shm.h"

#define HOMA_SVC_SLOTS 65536u
#define HOMA_SVC_ROUTES 256u /* destinations a ring knows to be reachable */
#define HOMA_SVC_THREADS 64u /* whose choice of a ring is remembered */
#define HOMA_SVC_NEVER (~(u64)0)
#define HOMA_SVC_ANSWERED ((u64)1 << 63) /* no token has this bit */
#define HOMA_SVC_GRANULE 64u /* a piece of a message begins at a multiple */
/* Segment 0 begins with the stages of the submission rings. */
#define HOMA_SVC_STAGES (HOMA_SHM_SQS * HOMA_SHM_STAGE)

/**
 * struct homa_svc_att - an attachment: connection and memory
 * @generation: tells attachments of a handle apart; not 0.
 * @refs: handle, blocked threads, copies under way, messages held; atomic.
 * @old: in homa_svc.old after it has ended.
 * @answer: homad's answer to ATTACH, and @port what is bound now.
 * @lent: @pool is mapped over memory of the caller's.
 * @out: a byte for each granule of the pool: a piece begins there and is ours.
 * @pieces_taken, @pieces_released: under the handle's lock and release_lock.
 * @seg, @heap, @num_segs: memory to send from, under @heap_lock.
 */
struct homa_svc_att {
	u32 generation;
	u32 refs;
	struct homa_list old;
	struct homa_ctl_answer answer;
	int sock, wake_fd, kick_fd;
	struct homa_shm_queues *queues;
	u8 *pool;
	size_t pool_bytes;
	bool lent;
	u8 *out;
	u64 pieces_taken, pieces_released;
	struct homa_turn heap_lock;
	u32 num_segs;
	u8 *seg[HOMA_SHM_SEGMENTS];
	u64 seg_bytes[HOMA_SHM_SEGMENTS];
	struct homa_svc_heap heap[HOMA_SHM_SEGMENTS];
};

/**
 * struct homa_svc_ring - a submission ring; all under @lock
 * @tail, @head: ours; homad's as last seen.
 * @stage_tail, @stage_head: bytes staged and given back, counting up for ever.
 * @stage_end: for each entry, @stage_tail after it.
 * @routes: reachable destinations by their hash; @zero is 1 in a free place.
 */
struct homa_svc_ring {
	struct homa_turn lock;
	u32 tail, head;
	u32 stage_tail, stage_head;
	struct homa_addr routes[HOMA_SVC_ROUTES];
	u32 stage_end[HOMA_SHM_SQ_ENTRIES];
} __attribute__((aligned(64)));

enum homa_svc_slot_state {
	HOMA_SVC_OPEN, /* homad has it, or nobody */
	HOMA_SVC_DONE, /* over, waiting for the application to take it */
};

/**
 * struct homa_svc_slot - one of our requests
 * @token: 0: free. Atomic; written by the sender, ended under the handle's lock.
 * @uses: how often it was used.
 * @next: free list.
 * @state, @gone: under the handle's lock. @gone: aborted; for the application it is
 *	over, and the place is free when homad has said so, too.
 * @is_private, @peer, @port, @cookie, @length: what was asked for; written before
 *	@token.
 */
struct homa_svc_slot {
	u64 token;
	u64 uses;
	u64 cookie;
	struct homa_addr peer;
	u32 next;
	u32 length;
	u16 port;
	u8 state;
	u8 gone;
	u8 is_private;
};

/**
 * struct homa_svc_item - a message that waits for the application
 * @list: in homa_svc.ready; free requests: in homa_svc.items.
 * @pool, @generation: of the attachment it came by, which lives only as long as
 *	pieces of messages in it are held; this one may have none.
 */
struct homa_svc_item {
	struct homa_list list;
	u64 order;
	u8 *pool;
	u32 generation;
	struct homa_cqe cqe;
};

/**
 * struct homa_svc_waiter - a thread inside homa_receive(), on its stack
 * @list: in homa_svc.waiters.
 * @token: the one request waited for, or 0.
 * @flags: HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token.
 */
struct homa_svc_waiter {
	struct homa_list list;
	struct homa_message *msg;
	u64 token;
	u32 flags;
	int result;
	bool done;
	struct homa_wake wake;
};

enum homa_svc_queue { HOMA_SVC_REQUESTS, HOMA_SVC_RESPONSES, HOMA_SVC_QUEUES };

enum homa_svc_state {
	HOMA_SVC_UP,
	HOMA_SVC_LOST,	  /* homad has ended; trying again */
	HOMA_SVC_EVICTED, /* -ECONNABORTED for ever */
	HOMA_SVC_SHUT,	  /* -ESHUTDOWN for ever */
};

/* Counters of this host, for homa_metrics(). */
#define HOMA_SVC_COUNTERS(X)                                               \
	X(blocks, "times a receive slept")                                 \
	X(handoffs, "messages handed to another waiting thread")           \
	X(kicks, "times homad had to be woken")                            \
	X(ring_waits, "times a submission waited for room")                \
	X(routes, "questions whether a destination can be reached")        \
	X(segments, "data segments asked for")                             \
	X(losses, "times homad ended while we were attached")              \
	X(attaches, "times we attached")                                   \
	X(progress_rounds, "completions that came while no thread waited") \
	X(yields, "times a call that does not wait let others run")

struct homa_svc_counters {
#define X(name, text) u64 name;
	HOMA_SVC_COUNTERS(X)
#undef X
};

/**
 * struct homa_svc - an open handle; under @lock unless said
 * @all: in the list of handles of this process.
 * @path: of the attach socket. @rcvbuf, @region: for each attachment.
 * @spin, @never_sleep: patience of the poller.
 * @state: enum homa_svc_state; atomic.
 * @closing: atomic.
 * @inside: threads in calls that may sleep; atomic.
 * @ctl: a question to homad is under way; also changes of @att.
 * @att: present attachment, also while @state is LOST. Changes under @ctl,
 *	@lock, @release_lock and all ring locks, so one of them is enough to read.
 * @old: former ones that somebody still needs; under @release_lock.
 * @bound, @listen: port to be bound again, HOMA_CTL_LISTEN_*; under @ctl.
 * @next_try, @backoff: of attaching again, ns; under @ctl.
 * @nudge_fd: eventfd that wakes the poller.
 * @cq_head, @cq_tail: ours; homad's as last seen.
 * @ready: messages nobody has taken, by kind; @order stamps them.
 * @ready_count: of them, over both.
 * @items: free items for requests; @chunks: where they come from.
 * @poller: who looks at the ring; @blocked: it sleeps.
 * @fresh: slots never used begin here; @free: tag and 1 + first free one; atomic.
 * @sqs: rings that homad looks at. @rings_given, @ring_of: 1 + the ring of a
 *	thread. Atomic.
 * @requests: by the low bits of their token, the last request that came with them,
 *	with HOMA_SVC_ANSWERED if it was answered; atomic words.
 * @routes_since, @routes_asked: questions for a route in this second; under @ctl.
 * @release_tail, @release_shown: ours; what homad may see. Under @release_lock.
 * @ep_fd: homa_fd(), or -1; the rest of its parts beside it, see fd.c.
 * @rx_bytes, @failed: for metrics.
 */
struct homa_svc {
	struct homa_turn lock;
	u32 state;
	u32 closing;
	u32 inside;
	struct homa_svc_att *att;
	u32 cq_head, cq_tail;
	struct homa_svc_slot *slots;
	struct homa_svc_item *slot_items;
	u64 *requests;
	struct homa_list waiters;
	struct homa_svc_waiter *poller;
	bool blocked;
	struct homa_spin spin;
	bool never_sleep;
	struct homa_list ready[HOMA_SVC_QUEUES];
	u32 ready_count;
	u64 order;
	struct homa_list items;
	void *chunks;
	u64 rx_bytes, failed;
	u64 alive_at;

	u64 free __attribute__((aligned(64)));
	u32 fresh;
	u32 max_rpcs;
	u32 sqs;
	u32 rings_given;
	u8 ring_of[HOMA_SVC_THREADS];
	u64 uses0;

	struct homa_turn release_lock __attribute__((aligned(64)));
	u32 release_tail, release_shown, release_batch;
	struct homa_list old;

	pthread_mutex_t ctl;
	char path[108];
	size_t rcvbuf;
	void *region;
	u16 bound;
	u32 listen;
	u64 next_try, backoff;
	u32 generations;
	u64 routes_since;
	u32 routes_asked;
	int nudge_fd;

	int ep_fd, level_fd, ready_fd, timer_fd;
	u32 asks, vain;
	bool level, fd_armed, fd_edges;

	struct homa_list all;
	struct homa_svc_counters counters;
	struct homa_svc_ring rings[HOMA_SHM_SQS];
};

static inline u32 homa_svc_state(const struct homa_svc *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

/* open.c */
int homa_svc_open(void **out, const struct homa_backend_options *options,
		  char *err, size_t errlen);
void homa_svc_close(void *host);
const struct homa_backend_ops *homa_svc_get(void);

/* attach.c */
/** homa_svc_attach() - a new attachment; @err gets a sentence on failure. */
int homa_svc_attach(struct homa_svc *c, struct homa_svc_att **out, char *err,
		    size_t errlen);
void homa_svc_att_put(struct homa_svc_att *att);
static inline void homa_svc_att_get(struct homa_svc_att *att)
{
	__atomic_fetch_add(&att->refs, 1, __ATOMIC_RELAXED);
}
/** homa_svc_adopt() - make it the handle's; under @ctl, takes the other locks. */
void homa_svc_adopt(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_map_pool() - the receive pool behind @fd, over @at unless NULL. */
int homa_svc_map_pool(struct homa_svc_att *att, int fd, u64 bytes, void *at);

/* ctl.c: all under @ctl (or before anybody else knows the attachment) */
int homa_svc_ask(struct homa_svc_att *att, struct homa_ctl_request *request,
		 struct homa_ctl_answer *answer, int *fds, u32 num_fds);
/** homa_svc_next() - one packet of the records that follow an answer. */
ssize_t homa_svc_next(struct homa_svc_att *att, void *buf, size_t size);
/** homa_svc_question() - take @ctl, be attached, ask. */
int homa_svc_question(struct homa_svc *c, struct homa_ctl_request *request,
		      struct homa_ctl_answer *answer, int *fd);
int homa_svc_bind(void *host, uint16_t port);
int homa_svc_getsockname(void *host, struct sockaddr_storage *addr);
uint16_t homa_svc_udp_port(void *host);
int homa_svc_route(struct homa_svc *c, const struct homa_addr *addr);

/* reconnect.c */
/** homa_svc_error() - what a call gives in this state; 0 if it is UP. */
int homa_svc_error(const struct homa_svc *c);
/** homa_svc_check() - under @lock: does homad live? Notes it if not. */
void homa_svc_check(struct homa_svc *c);
/** homa_svc_lost() - under @lock: it does not. */
void homa_svc_lost(struct homa_svc *c, u32 state);
/** homa_svc_revive() - without locks: attach again if the time has come.
 *  0: attached; else the error of a call. */
int homa_svc_revive(struct homa_svc *c);
/** homa_svc_revive_locked() - the same, under @ctl. */
int homa_svc_revive_locked(struct homa_svc *c);

/* submit.c */
struct homa_svc_ring *homa_svc_my_ring(struct homa_svc *c);
/** homa_svc_begin() - a ring, locked, with room for an entry and @staged bytes;
 *  we are attached. May wait. */
int homa_svc_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **ring);
/** homa_svc_entry() - the entry to fill. */
struct homa_sqe *homa_svc_entry(struct homa_svc *c, struct homa_svc_ring *ring);
/** homa_svc_stage() - where its @bytes go, and at which offset of segment 0. */
u8 *homa_svc_stage(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		   u32 *offset);
/** homa_svc_submit() - the entry is complete; unlocks the ring. */
void homa_svc_submit(struct homa_svc *c, struct homa_svc_ring *ring);
void homa_svc_kick(struct homa_svc *c, struct homa_svc_att *att);

/* long.c */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset);
u64 homa_svc_long_used(struct homa_svc_att *att);

/* slots.c */
int homa_svc_slots_init(struct homa_svc *c);
void homa_svc_slots_free(struct homa_svc *c);
void homa_svc_slots_limit(struct homa_svc *c, u32 max_rpcs);
struct homa_svc_slot *homa_svc_slot_get(struct homa_svc *c, u64 *token);
void homa_svc_slot_put(struct homa_svc *c, struct homa_svc_slot *slot);
/** homa_svc_slot() - of an open request, NULL: there is none of that name. */
static inline struct homa_svc_slot *homa_svc_slot(struct homa_svc *c, u64 token)
{
	struct homa_svc_slot *slot = &c->slots[token & 0xffff];

	return __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) == token ? slot :
									  NULL;
}

/** homa_svc_slot_open() - after all else was written into it. */
static inline void homa_svc_slot_open(struct homa_svc_slot *slot, u64 token)
{
	__atomic_store_n(&slot->token, token, __ATOMIC_RELEASE);
}

/* send.c */
/** homa_svc_unlearn() - with the ring's lock: ask again for @to, NULL: for all. */
void homa_svc_unlearn(struct homa_svc_ring *ring, const struct homa_addr *to);
int homa_svc_request(void *host, const struct sockaddr *dest,
		     const struct homa_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_svc_reply(void *host, const struct homa_message *request,
		   const struct homa_out *out);
int homa_svc_abort(void *host, uint64_t id, int error);

/* complete.c: under @lock */
/** homa_svc_drain() - until the ring is empty or @self is served; how many. */
u32 homa_svc_drain(struct homa_svc *c, struct homa_svc_waiter *self);
/** homa_svc_take() - 0: *w->msg filled, -EAGAIN: not there yet, -ENOENT. */
int homa_svc_take(struct homa_svc *c, struct homa_svc_waiter *w);
/** homa_svc_fail() - our request ends with @error, as if homad had said so. */
void homa_svc_fail(struct homa_svc *c, struct homa_svc_slot *slot, u64 token,
		   u32 error);
/** homa_svc_abort_slot() - our request fails with @error, 0: vanishes, at once; what
 *  homad will say is not heard any more. */
void homa_svc_abort_slot(struct homa_svc *c, struct homa_svc_slot *slot,
			 u64 token, u32 error);
/** homa_svc_confirm() - homad has nothing more to say of one that was aborted. */
void homa_svc_confirm(struct homa_svc *c, struct homa_svc_slot *slot);
/** homa_svc_forget() - a request vanishes; whoever waits for it gets -ENOENT. */
void homa_svc_forget(struct homa_svc *c, u64 token);
void homa_svc_drop_requests(struct homa_svc *c);
void homa_svc_nudge(struct homa_svc *c);
static inline bool homa_svc_pending(const struct homa_svc *c)
{
	return __atomic_load_n(&c->att->queues->h.cq.tail, __ATOMIC_SEQ_CST) !=
	       c->cq_head;
}

/* wait.c */
int homa_svc_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns);
int homa_svc_poll(void *host);
/** homa_svc_end_waits() - under @lock; returns when no thread is inside. */
void homa_svc_end_waits(struct homa_svc *c);

/* release.c */
int homa_svc_release(void *host, struct homa_message *msg);
int homa_svc_release_pages(void *host, const uint32_t *pages, unsigned int num);
/** homa_svc_discard() - under @lock: nobody will have this message. */
void homa_svc_discard(struct homa_svc *c, u32 generation,
		      const struct homa_cqe *cqe);
void homa_svc_show_releases(struct homa_svc *c);

/* fd.c */
int homa_svc_fd(void *host);
int homa_svc_fd_edges(void *host);
/** homa_svc_fd_edge() - under @lock: a message that homad does not signal. */
void homa_svc_fd_edge(struct homa_svc *c);
/** homa_svc_fd_update() - under @lock: make homa_fd() say how things are. */
void homa_svc_fd_update(struct homa_svc *c);
void homa_svc_fd_detach(struct homa_svc *c);
int homa_svc_fd_attach(struct homa_svc *c, struct homa_svc_att *att);
void homa_svc_fd_close(struct homa_svc *c);
static inline void homa_svc_fd_touch(struct homa_svc *c)
{
	if (unlikely(c->ep_fd >= 0))
		homa_svc_fd_update(c);
}

/* socket.c, rpcs.c, metrics.c */
int homa_svc_listen(void *host, uint16_t port, unsigned int flags);
int homa_svc_set_region(void *host, void *region, size_t bytes);
int homa_svc_rpcs(void *host,
		  void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		  void *arg);
int homa_svc_shutdown(void *host);
void homa_svc_metrics(void *host,
		      void (*visit)(void *arg, const char *name,
				    const char *description, uint64_t value),
		      void *arg);

#endif
