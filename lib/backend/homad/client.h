/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The homad backend: a handle of libhoma that is an attachment to homad. The
 * protocol runs in the daemon; here commands go into submission rings and
 * completions come out of one ring (abi/shm.h).
 *
 *	open.c		the handle
 *	fork.c		what a child of fork() has of it
 *	attachment.c	the memory of an attachment, until nobody uses it
 *	attach.c	an attachment begins
 *	places.c	where its rings are
 *	ask.c, ctl.c	a question to homad; which ones there are
 *	reconnect.c	when homad ends, and is back
 *	routes.c	destinations that are known to be reachable
 *	submit.c	rings, short messages (staged beside them)
 *	heap.c, segments.c, long.c	long messages
 *	alloc.c		memory for the application to write them into
 *	room.c		waiting until there is room to send
 *	slots.c		our open requests and their names
 *	send.c		request, reply, abort
 *	complete.c	completions, handed to whoever waits or kept
 *	wait.c		receive: who looks, who sleeps
 *	release.c	receive buffers given back
 *	fd.c, fd_open.c	homa_fd()
 *	socket.c, rpcs.c	what libhoma-preload needs; metrics.c
 *	handover.c	the handle goes to another process
 *	state_write.c, state_read.c	what only we know of it, in a file
 *
 * Locks, outermost first: @ctl (a question to homad is under way), @lock (the
 * completion side), one ring's lock, @release_lock, an attachment's heap_lock.
 * Nobody waits for room in a ring with a lock in hand.
 *
 * An attachment that has ended stays mapped as long as @refs counts somebody who uses it.
 */
#ifndef HOMA_SVC_CLIENT_H
#define HOMA_SVC_CLIENT_H

#include <pthread.h>
#include "homa_addr.h"
#include "homa_backend.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "homa_spin.h"
#include "may_send.h"
#include "shm.h"
#include "svc_att.h"
#include "svc_counters.h"
#include "svc_ring.h"
#include "svc_slot.h"

#define HOMA_SVC_THREADS 64u /* threads whose ring is remembered */
#define HOMA_SVC_NEVER (~(u64)0)

struct homa_svc_item;
struct homa_svc_waiter;

/* struct homa_svc_coming - an attachment that homad has been asked for. Guarded by: homa_svc.ctl */
struct homa_svc_coming {
	/* The attachment, or NULL if there is none. */
	struct homa_svc_att *att;
	/* The last question to homad, an enum homa_ctl_op. */
	u16 op;
	/* @listens: true if homad was told which requests the handle takes. @signals: true
	 * if homad was told to signal at homa_fd(). */
	bool listens, signals;
	/* The value of homa_svc.fd_edges that homad was told. */
	bool edges;
	/* True if homa_fd() becomes readable when homad answers the last question. */
	bool awaited;
};

enum homa_svc_queue { HOMA_SVC_REQUESTS, HOMA_SVC_RESPONSES, HOMA_SVC_QUEUES };

enum homa_svc_state {
	HOMA_SVC_UP,
	HOMA_SVC_LOST,	  /* homad has ended; the handle will attach again */
	HOMA_SVC_EVICTED, /* homad has thrown us out; calls return -ECONNABORTED */
	HOMA_SVC_SHUT,	  /* the handle was shut; calls return -ESHUTDOWN */
};

/* struct homa_svc - an open handle. Guarded by: @lock, unless a member says otherwise. */
struct homa_svc {
	/* The handle's lock. */
	struct homa_gate lock;
	/* An enum homa_svc_state; atomic. */
	u32 state;
	/* 1 when the handle is being closed; atomic. */
	u32 closing;
	/* The number of threads in calls that may sleep; closing waits until it is 0. Atomic. */
	u32 inside;
	/* The present attachment, or the last one while the state is LOST. It changes under
	 * @ctl, @lock, @release_lock and all ring locks, so any of them is enough to read it. */
	struct homa_svc_att *att;
	/* The number of completions that were taken, and that homad had written when we looked. */
	u32 cq_head, cq_tail;
	/* The table of our own requests. */
	struct homa_svc_slot *slots;
	/* For each slot the outcome of its request, while that waits for the application. */
	struct homa_svc_item *slot_items;
	/* For each value of a token's low 16 bits, the token of the last request from a peer that
	 * has them, with HOMA_SVC_ANSWERED if it was answered. The words are atomic. */
	u64 *requests;
	/* For the low bits of half an id, the slot of the request, and upper bits of its number,
	 * so that a word does not come back. The words are atomic. */
	u32 *names;
	/* Threads that wait in homa_receive(), @poller too. */
	struct homa_list waiters;
	/* The thread that looks at the completion ring for all that wait, or NULL. */
	struct homa_svc_waiter *poller;
	/* True while the poller sleeps. */
	bool blocked;
	/* How long the poller looks before it sleeps. */
	struct homa_spin spin;
	/* True if the application wants the poller never to sleep. */
	bool never_sleep;
	/* The messages of each kind that nobody has taken. */
	struct homa_list ready[HOMA_SVC_QUEUES];
	/* The number of messages in all of @ready. */
	u32 ready_count;
	/* The number that the next such message gets, see homa_svc_item.order. */
	u64 order;
	/* The free items for requests. */
	struct homa_list items;
	/* The list of memory blocks that items for requests lie in (struct chunk). */
	void *chunks;
	/* The number of bytes received, and of our requests that failed, for homa_metrics(). */
	u64 rx_bytes, failed;
	/* The time at which a waiting thread last looked whether homad lives, in ns. */
	u64 alive_at;

	/* The list of free slots: a tag that changes with each change, and 1 + the first slot.
	 * Slots from @fresh on were never used. Both are atomic. */
	u64 free __attribute__((aligned(64)));
	u32 fresh;
	/* The number of own requests that homad allows. */
	u32 max_rpcs;
	/* The number of submission rings that homad looks at; atomic. */
	u32 sqs;
	/* The number of threads that got a ring; atomic. */
	u32 rings_assigned;
	/* For each thread 1 + its ring, or 0; atomic. */
	u8 ring_of[HOMA_SVC_THREADS];
	/* HOMA_SQE_NUMBERED if this homad makes ids of numbers, or 0; it changes with @att. */
	u8 numbering;
	/* The number that the next request gets; atomic. */
	u64 numbers;

	/* The lock of the release ring. */
	struct homa_gate release_lock __attribute__((aligned(64)));
	/* Under @release_lock: the number of pieces put into the release ring so far; the
	 * number of those that homad was shown; and the most that may wait to be shown. */
	u32 release_tail, release_shown, release_batch;
	/* Under @release_lock: pieces that wait for room; the granule to look at next. */
	u32 kept, kept_next;
	/* Former attachments that somebody still needs; under @release_lock. */
	struct homa_list old;

	/* The lock of a question to homad, and of the fields that say so. */
	pthread_mutex_t ctl;
	/* The path of homad's attach socket. */
	char path[108];
	/* The size of the receive pool that the application wants for this attachment and later
	 * ones, in bytes; 0: homad's default. */
	size_t rcvbuf;
	/* The address at which it wants the pool; NULL: any. */
	void *region;
	/* True if HOMA_OPEN_SHARED_PORT was given. */
	bool shared_port;
	/* True if HOMA_OPEN_HANDOVER was given, or the handle came from another process. */
	bool handover;
	/* Under @ctl: the port that each new attachment binds. */
	u16 bound;
	/* Under @ctl: the HOMA_CTL_LISTEN_* of each new attachment. */
	u32 listen;
	/* The attachment that is about to take the place of @att. */
	struct homa_svc_coming coming;
	/* @next_try: the time in ns before which homad is not looked for again, or by which it has
	 * to answer for @coming. @backoff: the pause in ns after the next failure. Atomic. */
	u64 next_try, backoff;
	/* The number of attachments so far; under @ctl. */
	u32 generations;
	/* Under @ctl: the time in ns at which the present second of @routes_asked began. */
	u64 routes_since;
	/* Under @ctl: the number of questions for routes in the present second. */
	u32 routes_asked;
	/* An eventfd that wakes the poller. */
	int nudge_fd;

	/* The descriptor of homa_fd(), or -1, and the descriptors in its set, see fd.c. */
	int ep_fd, level_fd, ready_fd, timer_fd;
	/* What is behind homa_send_fd(). */
	struct homa_svc_may_send may_send;
	/* @asks: calls that did not wait and found nothing; every 64th looks whether homad lives.
	 * @vain: such receives since the last message; they say when to yield. */
	u32 asks, vain;
	/* True if @level_fd is readable. */
	bool level;
	/* True if homad was asked to signal the next completion at @ready_fd. */
	bool fd_armed;
	/* True if the application wants homa_fd() to be signalled for each message, and not
	 * to stay readable while there are messages. */
	bool fd_edges;

	/* Links it into the list of this process's handles. */
	struct homa_list all;
	/* What the handle counts, for homa_metrics(). */
	struct homa_svc_counters counters;
	/* The submission rings, each under its own lock. */
	struct homa_svc_ring rings[HOMA_SHM_SQS];
};

static inline u32 homa_svc_state(const struct homa_svc *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

/** homa_svc_slot() - return the slot of the open request @token, or NULL. */
static inline struct homa_svc_slot *homa_svc_slot(struct homa_svc *c, u64 token)
{
	struct homa_svc_slot *slot = &c->slots[token & 0xffff];

	return __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) == token ? slot :
									  NULL;
}

static inline bool homa_svc_pending(const struct homa_svc *c)
{
	return __atomic_load_n(&c->att->complete.index->tail,
			       __ATOMIC_SEQ_CST) != c->cq_head;
}

/* open.c */
int homa_svc_open(void **out, const struct homa_backend_options *options,
		  char *err, size_t errlen);
void homa_svc_close(void *host);
const struct homa_backend_ops *homa_svc_get(void);

/* fork.c */
void homa_svc_list_handle(struct homa_svc *c);
void homa_svc_unlist_handle(struct homa_svc *c);
/* ctl.c: under @ctl where nothing else is said */
/** homa_svc_records() - read the @total records of @size bytes that follow an answer into @all
 *  unless NULL. -ECONNRESET if one is missing; then the attachment has ended. */
int homa_svc_records(struct homa_svc *c, void *all, size_t size, u32 total);
/** homa_svc_question() - attach if need be, and ask. If homad ends meanwhile, the next homad is
 *  asked, so the question must mean the same to both. */
int homa_svc_question(struct homa_svc *c, struct homa_ctl_request *request,
		      struct homa_ctl_answer *answer, int *fd);
/** homa_svc_question_of() - ask the homad of @att, which is the handle's, and no other. */
int homa_svc_question_of(struct homa_svc *c, struct homa_svc_att *att,
			 struct homa_ctl_request *request,
			 struct homa_ctl_answer *answer, int *fd);
int homa_svc_bind(void *host, uint16_t port);
int homa_svc_getsockname(void *host, struct sockaddr_storage *addr);
uint16_t homa_svc_udp_port(void *host);
int homa_svc_route(struct homa_svc *c, const struct homa_addr *addr);

/* reconnect.c */
/** homa_svc_error() - return the error with which calls fail in this state, or 0. */
int homa_svc_error(const struct homa_svc *c);
/** homa_svc_check() - look whether homad lives, and change the state if not; under @lock. */
void homa_svc_check(struct homa_svc *c);
/** homa_svc_lost() - change to @state, as the attachment is lost. Under @lock. */
void homa_svc_lost(struct homa_svc *c, u32 state);
/** homa_svc_ended() - change to EVICTED or LOST after a failed connection; under @lock. */
void homa_svc_ended(struct homa_svc *c);
bool homa_svc_hung_up(const struct homa_svc_att *att);
/** homa_svc_revive() - attach again if the time has come, and wait for homad's answers. Returns 0
 *  if the handle is attached, or a call's error. The caller has no lock. */
int homa_svc_revive(struct homa_svc *c);
/** homa_svc_revive_locked() - do the same for a caller that has @ctl. */
int homa_svc_revive_locked(struct homa_svc *c);
/** homa_svc_revive_try() - do the same without waiting; -EAGAIN if homad has not answered yet,
 *  or another thread asks. @coming, unless NULL, gets a reference to the asked attachment. */
int homa_svc_revive_try(struct homa_svc *c, struct homa_svc_att **coming);

/* send.c */
int homa_svc_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_svc_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out);
int homa_svc_reject(void *host, const struct homa_message *request, int error);
int homa_svc_wait_send(void *host, size_t length, int64_t timeout_ns);
int homa_svc_alive(void *host, const struct homa_message *request);
int homa_svc_abort(void *host, uint64_t id, int error);

/* wait.c */
int homa_svc_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns);
int homa_svc_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
			   unsigned int flags, int64_t timeout_ns);
int homa_svc_poll(void *host);
/** homa_svc_end_waits() - wake all threads and wait until none is inside; under @lock. */
void homa_svc_end_waits(struct homa_svc *c);

/* release.c */
int homa_svc_release(void *host, struct homa_message *msg);
int homa_svc_release_pages(void *host, const uint32_t *pages, unsigned int num);
/* fd_open.c; fd.h has the rest of homa_fd() */
int homa_svc_fd(void *host);
int homa_svc_fd_edges(void *host);

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
