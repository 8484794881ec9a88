/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The homad backend: a handle of libhoma that is an attachment to homad. The
 * protocol runs in the daemon; here commands go into submission rings and
 * completions come out of one ring (abi/shm.h).
 *
 *	open.c		the handle
 *	fork.c		what a child of fork() has of it
 *	att.c		the memory of an attachment, until nobody uses it
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
#include "heap.h"
#include "homa_addr.h"
#include "homa_backend.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "homa_spin.h"
#include "may_send.h"
#include "places.h"
#include "shm.h"
#include "svc_counters.h"

#define HOMA_SVC_SLOTS 65536u
#define HOMA_SVC_ROUTES 256u /* destinations a ring knows to be reachable */
#define HOMA_SVC_THREADS 64u /* threads whose ring is remembered */
/* The time after which a homad that has not answered counts as dead, in s. */
#define HOMA_SVC_ANSWER_S 30
/* The features that this library has, which it tells homad. */
#define HOMA_SVC_FEATURES (HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_BELL)
#define HOMA_SVC_NEVER (~(u64)0)
#define HOMA_SVC_ANSWERED ((u64)1 << 63) /* no token has this bit */
#define HOMA_SVC_NO_TOKEN HOMA_SVC_ANSWERED
#define HOMA_SVC_NAMES (1u << HOMA_SHM_NUMBER_BITS) /* twice as many as slots */
#define HOMA_SVC_GRANULE 64u /* bytes; a received piece begins at a multiple */
/* Segment 0 begins with the stages of the submission rings. */
#define HOMA_SVC_STAGES (HOMA_SHM_SQS * HOMA_SHM_STAGE)

/* What a byte of homa_svc_att.out says of the piece that begins there: homad may use it, it is
 * the application's, or it is kept for the release ring (release.c). */
enum homa_svc_piece {
	HOMA_SVC_PIECE_BACK,
	HOMA_SVC_PIECE_OUT,
	HOMA_SVC_PIECE_KEPT
};

/* struct homa_svc_att - an attachment: the connection to one life of homad, and its memory */
struct homa_svc_att {
	/* The number of this attachment among those of the handle; the first has 1. */
	u32 generation;
	/* The number of users: the handle, or homa_svc.old while the application holds pieces of
	 * messages; threads that sleep; copies under way; memory of homa_alloc(). It is atomic. */
	u32 refs;
	/* Links it into homa_svc.old after it has ended. */
	struct homa_list old;
	/* Links it into the connections of this process, as long as @sock is open. */
	struct homa_list all;
	/* What homad answered to ATTACH; its @port is then that of the last BIND. */
	struct homa_ctl_answer answer;
	/* The connection; the pipe by which homad wakes us; the eventfd by which we wake homad. */
	int sock, wake_fd, kick_fd;
	/* The header of homad's memory for rings, which this process has mapped. */
	struct homa_shm_header *queues;
	/* Where the rings are in that memory. */
	struct homa_svc_place submit[HOMA_SHM_SQS], complete, release;
	/* The word that is set to 1 for submissions to other rings than the first, or NULL. */
	u32 *bell;
	/* The memory, of @pool_bytes bytes, in which homad puts received messages. */
	u8 *pool;
	size_t pool_bytes;
	/* True if @pool is mapped over memory that the application gave and will keep. */
	bool lent;
	/* An enum homa_svc_piece for each granule of the pool. A completion sets it under the
	 * handle's lock, a release changes it under release_lock. homad's rings order the two for
	 * one piece; the bytes are atomic because a faulty homad may break that order. */
	u8 *out;
	/* The number of pieces that the application has got so far (under the handle's lock), and
	 * has given back (under release_lock). */
	u64 pieces_taken, pieces_released;
	struct homa_gate heap_lock;
	/* Under heap_lock: 1 + the timer to set when memory to send from is given back, or 0. */
	int room_timer;
	/* Under heap_lock: the segments with memory to send from, and what is free in each. */
	u32 num_segs;
	u8 *seg[HOMA_SHM_SEGMENTS];
	u64 seg_bytes[HOMA_SHM_SEGMENTS];
	struct homa_svc_heap heap[HOMA_SHM_SEGMENTS];
};

/* struct homa_svc_way - a destination that can be reached */
struct homa_svc_way {
	/* Its member @zero is 1 in a place that is free. */
	struct homa_addr addr;
	/* The address's hash under the attachment's key, which ids of requests contain. */
	u64 hash;
};

/* struct homa_svc_ring - a submission ring. Its lock protects all members. */
struct homa_svc_ring {
	struct homa_gate lock;
	/* The number of entries that this process has filled so far, and that homad had taken when
	 * we last looked. */
	u32 tail, head;
	/* The number of bytes beside the ring that were filled so far, and that homad had read
	 * when we last looked. */
	u32 stage_tail, stage_head;
	/* The destinations to which this ring's threads know a way, at homa_svc_way()'s places. */
	struct homa_svc_way routes[HOMA_SVC_ROUTES];
	/* The value of @stage_tail after each entry had been filled. */
	u32 stage_end[HOMA_SHM_SQ_MAX];
} __attribute__((aligned(64)));

enum homa_svc_slot_state {
	HOMA_SVC_OPEN, /* homad has the request, or the place is free */
	HOMA_SVC_DONE, /* the outcome waits for the application to take it */
};

/* struct homa_svc_slot - the place of one request of this handle */
struct homa_svc_slot {
	/* homad's name of the request; 0 if none is open here. The sender writes it; whoever ends
	 * the request clears it under the handle's lock. It is atomic. */
	u64 token;
	/* The id that the application knows; 0 if the place is free. It is written before @token
	 * and cleared after it. It is atomic. */
	u64 id;
	/* The sender writes @cookie, @peer, @port, @length (bytes) and @is_private, as it was
	 * told, before @token. */
	u64 cookie;
	struct homa_addr peer;
	/* The next place of the free list. */
	u32 next;
	u32 length;
	u16 port;
	/* An enum homa_svc_slot_state; under the handle's lock. */
	u8 state;
	/* The application has aborted the request, and homad has not confirmed that yet, so the
	 * place is not free. Under the handle's lock. */
	u8 gone;
	u8 is_private;
	/* The threads that began to wait for this id; 2 means 2 or more. Under the same lock. */
	u8 waits;
};

/* struct homa_svc_item - a message that waits for the application */
struct homa_svc_item {
	/* Links it into homa_svc.ready, or into homa_svc.items while it is free. */
	struct homa_list list;
	/* The number of the message; the one with the lowest number is taken first. */
	u64 order;
	/* The pool and the generation of the attachment by which the message came. The pool may
	 * not be mapped any more if this message has no piece in it. */
	u8 *pool;
	u32 generation;
	/* homad's completion. */
	struct homa_cqe cqe;
};

/* struct homa_svc_waiter - a thread inside homa_receive(), on its stack */
struct homa_svc_waiter {
	/* Links it into homa_svc.waiters. */
	struct homa_list list;
	/* The thread that finds a message for the waiter writes it there. */
	struct homa_message *msg;
	/* The request whose outcome it waits for; 0 if it waits for any message of @flags. */
	u64 token;
	/* HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token. */
	u32 flags;
	/* What its call returns, valid once @done is set. */
	int result;
	bool done;
	struct homa_wake wake;
};

/* struct homa_svc_coming - an attachment that homad has been asked for; under @ctl */
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

/* struct homa_svc - an open handle. Its lock protects a member that says nothing else. */
struct homa_svc {
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
	/* The messages of each kind that nobody has taken, and the number of all of them. */
	struct homa_list ready[HOMA_SVC_QUEUES];
	u32 ready_count;
	/* The number that the next such message gets, see homa_svc_item.order. */
	u64 order;
	/* The free items for requests, and the list of memory blocks that they lie in. */
	struct homa_list items;
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
	/* The number of submission rings that homad looks at; the number of threads that
	 * got a ring; and for each thread 1 + its ring. All are atomic. */
	u32 sqs;
	u32 rings_assigned;
	u8 ring_of[HOMA_SVC_THREADS];
	/* HOMA_SQE_NUMBERED if this homad makes ids of numbers, or 0; it changes with @att. */
	u8 numbering;
	/* The number that the next request gets; atomic. */
	u64 numbers;

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
	/* What the application wants for this attachment and later ones: the size of the receive
	 * pool in bytes (0: homad's default), and its address (NULL: any). */
	size_t rcvbuf;
	void *region;
	/* True if HOMA_OPEN_SHARED_PORT was given. */
	bool shared_port;
	/* True if HOMA_OPEN_HANDOVER was given, or the handle came from another process. */
	bool handover;
	/* Under @ctl: the port that each new attachment binds, and its HOMA_CTL_LISTEN_*. */
	u16 bound;
	u32 listen;
	/* The attachment that is about to take the place of @att. */
	struct homa_svc_coming coming;
	/* @next_try: the time in ns before which homad is not looked for again, or by which it has
	 * to answer for @coming. @backoff: the pause in ns after the next failure. Atomic. */
	u64 next_try, backoff;
	/* The number of attachments so far; under @ctl. */
	u32 generations;
	/* Under @ctl: the time in ns at which a second began, and the number of questions for
	 * routes that were asked in it. */
	u64 routes_since;
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

/* fork.c */
void homa_svc_list_handle(struct homa_svc *c);
void homa_svc_unlist_handle(struct homa_svc *c);
/** homa_svc_make_socket() - make a socket that no child of fork() keeps; 0 or -errno. */
int homa_svc_make_socket(struct homa_svc_att *att);
/** homa_svc_close_fds() - close all of @att's descriptors. */
void homa_svc_close_fds(struct homa_svc_att *att);

/* att.c */
/** homa_svc_att_put() - give a reference back; the last one ends the attachment. */
void homa_svc_att_put(struct homa_svc_att *att);
static inline void homa_svc_att_get(struct homa_svc_att *att)
{
	__atomic_fetch_add(&att->refs, 1, __ATOMIC_RELAXED);
}
/** homa_svc_map() - map memory of homad's, which a child of fork() does not get; or NULL. */
void *homa_svc_map(int fd, u64 bytes);
/** homa_svc_map_pool() - map the receive pool behind @fd, at @at unless that is NULL. */
int homa_svc_map_pool(struct homa_svc_att *att, int fd, u64 bytes, void *at);
/** homa_svc_kick() - wake homad, which has asked for it in need_kick. */
void homa_svc_kick(struct homa_svc *c, struct homa_svc_att *att);

/* attach.c */
/** homa_svc_attach() - make an attachment; on failure @err gets a sentence. */
int homa_svc_attach(struct homa_svc *c, struct homa_svc_att **out, char *err,
		    size_t errlen);
/** homa_svc_attach_ask() - do the first half of homa_svc_attach(): ask homad. @wait says
 *  whether to wait while homad has too many connections to accept. */
int homa_svc_attach_ask(struct homa_svc *c, struct homa_svc_att **out,
			bool wait, char *err, size_t errlen);
/** homa_svc_attach_hear() - do the other half: wait for the answer; the caller keeps @att. */
int homa_svc_attach_hear(struct homa_svc *c, struct homa_svc_att *att,
			 char *err, size_t errlen);
/** homa_svc_adopt() - make @att the handle's; the caller has @ctl and no other lock. */
void homa_svc_adopt(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_dial() - connect @att to the attach socket at @path. */
int homa_svc_dial(struct homa_svc_att *att, const char *path, bool wait,
		  char *err, size_t errlen);

/* ask.c: the caller has @ctl, or nobody else knows the attachment */
/** homa_svc_tell() - send a question; 0, or -ECONNRESET if homad is gone. */
int homa_svc_tell(struct homa_svc_att *att, struct homa_ctl_request *request);
/** homa_svc_tell_fd() - do the same with a descriptor for homad, unless @fd is -1. */
int homa_svc_tell_fd(struct homa_svc_att *att, struct homa_ctl_request *request,
		     int fd);
/** homa_svc_hear() - wait for the answer to the question @op. Returns 0 with @answer filled, even
 *  if homad refuses; -ECONNRESET if homad is gone or the answer is late or strange. */
int homa_svc_hear(struct homa_svc_att *att, u16 op,
		  struct homa_ctl_answer *answer, int *fds, u32 num_fds);
/** homa_svc_ask() - send a question and wait for the answer. */
int homa_svc_ask(struct homa_svc_att *att, struct homa_ctl_request *request,
		 struct homa_ctl_answer *answer, int *fds, u32 num_fds);

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

/* routes.c: the caller has the ring's lock */
/** homa_svc_way() - return the place for @to; it has this address if a way is known. */
struct homa_svc_way *homa_svc_way(struct homa_svc_ring *ring,
				  const struct homa_addr *to);
/** homa_svc_learn() - note at the place @way that @to can be reached. */
void homa_svc_learn(struct homa_svc *c, struct homa_svc_way *way,
		    const struct homa_addr *to);
/** homa_svc_unlearn() - forget the way to @to (NULL: to all), so that homad is asked again. */
void homa_svc_unlearn(struct homa_svc_ring *ring, const struct homa_addr *to);

/* submit.c */
struct homa_svc_ring *homa_svc_my_ring(struct homa_svc *c);
/** homa_svc_begin() - lock a ring with room for an entry and @staged bytes; it may wait. */
int homa_svc_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **ring);
/** homa_svc_try_begin() - do the same, but -EAGAIN instead of waiting. */
int homa_svc_try_begin(struct homa_svc *c, u32 staged,
		       struct homa_svc_ring **ring);
/** homa_svc_entry() - return the entry to fill. */
struct homa_sqe *homa_svc_entry(struct homa_svc *c, struct homa_svc_ring *ring);
/** homa_svc_stage() - return where @bytes go; @offset gets their place in segment 0. */
u8 *homa_svc_stage(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		   u32 *offset);
/** homa_svc_submit() - show the complete entry to homad, and unlock the ring. */
void homa_svc_submit(struct homa_svc *c, struct homa_svc_ring *ring);

/* segments.c */
/** homa_svc_segment_get() - take @bytes out of an existing segment; 0 or -ENOBUFS. */
int homa_svc_segment_get(struct homa_svc_att *att, u32 bytes, u32 *segment,
			 u32 *offset);
/** homa_svc_segment_add() - make the memory behind @fd a segment, and close @fd. Segments that
 *  homad made before it and that we did not get stay empty. */
int homa_svc_segment_add(struct homa_svc_att *att, u32 segment, int fd,
			 u64 bytes);
void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset);
/** homa_svc_long_used() - return the number of bytes in use in all segments. */
u64 homa_svc_long_used(struct homa_svc_att *att);
/** homa_svc_long_has() - tell whether @at lies in the memory to send from. */
bool homa_svc_long_has(struct homa_svc_att *att, const void *at);
/** homa_svc_unalloc() - give back a room of homa_alloc() and its reference to the attachment. */
void homa_svc_unalloc(const struct homa_room *room);

/* long.c */
/** homa_svc_long_get() - take memory for a long message; the caller gets a reference to @att. */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_ask() - do the same, but -EAGAIN if the submission ring is full. */
int homa_svc_long_ask(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_try() - do the same, but -EAGAIN instead of waiting or asking homad. */
int homa_svc_long_try(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_keep() - do the same for memory that is filled later; the ring may be full. */
int homa_svc_long_keep(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		       u32 *segment, u32 *offset);

/* alloc.c */
int homa_svc_alloc(void *host, size_t length, struct homa_room *room);
int homa_svc_sends_from(void *host, const void *at);

/* slots.c */
int homa_svc_slots_init(struct homa_svc *c);
void homa_svc_slots_free(struct homa_svc *c);
void homa_svc_slots_limit(struct homa_svc *c, u32 max_rpcs);
/** homa_svc_slot_get() - name a request to an address with @hash; NULL if no slot is free. */
struct homa_svc_slot *homa_svc_slot_get(struct homa_svc *c, u64 hash, u64 *token);
/** homa_svc_token() - return the token of the open request @id, or HOMA_SVC_NO_TOKEN. */
u64 homa_svc_token(struct homa_svc *c, u64 id);
void homa_svc_slot_put(struct homa_svc *c, struct homa_svc_slot *slot);
/** homa_svc_slot() - return the slot of the open request @token, or NULL. */
static inline struct homa_svc_slot *homa_svc_slot(struct homa_svc *c, u64 token)
{
	struct homa_svc_slot *slot = &c->slots[token & 0xffff];

	return __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) == token ? slot :
									  NULL;
}

/** homa_svc_slot_open() - make the slot known, after all else was written into it. */
static inline void homa_svc_slot_open(struct homa_svc_slot *slot, u64 token)
{
	__atomic_store_n(&slot->token, token, __ATOMIC_RELEASE);
}

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

/* complete.c: the caller has @lock */
/** homa_svc_drain() - take completions until none is left or @self is served; returns how many. */
u32 homa_svc_drain(struct homa_svc *c, struct homa_svc_waiter *self);
/** homa_svc_take() - take a kept message for @w: 0, -EAGAIN if there is none yet, or -ENOENT. */
int homa_svc_take(struct homa_svc *c, struct homa_svc_waiter *w);
/** homa_svc_fail() - end our request with @error, as if homad had said so. */
void homa_svc_fail(struct homa_svc *c, struct homa_svc_slot *slot, u64 token,
		   u32 error);
/** homa_svc_abort_slot() - end our request with @error, or forget it if that is 0. What homad
 *  still says of the request is ignored. */
void homa_svc_abort_slot(struct homa_svc *c, struct homa_svc_slot *slot,
			 u64 token, u32 error);
/** homa_svc_confirm() - note that homad will say no more of the aborted request in @slot. */
void homa_svc_confirm(struct homa_svc *c, struct homa_svc_slot *slot);
/** homa_svc_forget() - forget our request; threads that wait for it get -ENOENT. */
void homa_svc_forget(struct homa_svc *c, u64 token);
void homa_svc_drop_requests(struct homa_svc *c);
void homa_svc_nudge(struct homa_svc *c);
static inline bool homa_svc_pending(const struct homa_svc *c)
{
	return __atomic_load_n(&c->att->complete.index->tail,
			       __ATOMIC_SEQ_CST) != c->cq_head;
}

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
/** homa_svc_discard() - give back the pieces of a message that nobody wants; under @lock. */
void homa_svc_discard(struct homa_svc *c, u32 generation,
		      const struct homa_cqe *cqe);
void homa_svc_show_releases(struct homa_svc *c);

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
