/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The service host: a handle of libhoma that is an attachment to homad. The
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
 *	given.c		memory for the application to write them into
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
#include "places.h"
#include "shm.h"
#include "svc_counters.h"

#define HOMA_SVC_SLOTS 65536u
#define HOMA_SVC_ROUTES 256u /* destinations a ring knows to be reachable */
#define HOMA_SVC_THREADS 64u /* whose choice of a ring is remembered */
/* seconds without an answer, after which homad counts as dead */
#define HOMA_SVC_ANSWER_S 30
/* What this library can do. */
#define HOMA_SVC_FEATURES (HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_BELL)
#define HOMA_SVC_NEVER (~(u64)0)
#define HOMA_SVC_ANSWERED ((u64)1 << 63) /* no token has this bit */
#define HOMA_SVC_NO_TOKEN HOMA_SVC_ANSWERED
#define HOMA_SVC_NAMES (1u << HOMA_SHM_NUMBER_BITS) /* twice as many as slots */
#define HOMA_SVC_GRANULE 64u /* a piece of a message begins at a multiple */
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
	/* Tells the attachments of a handle apart; never 0. */
	u32 generation;
	/* How many use it: the handle, or homa_svc.old while the application holds pieces of
	 * messages in it; threads that sleep; copies under way. Atomic. */
	u32 refs;
	/* Links it into homa_svc.old after it has ended. */
	struct homa_list old;
	/* Links it into the connections of this process, as long as @sock is open. */
	struct homa_list all;
	/* What homad answered to ATTACH; its @port is then that of the last BIND. */
	struct homa_ctl_answer answer;
	int sock, wake_fd, kick_fd;
	struct homa_shm_header *queues;
	/* The rings in it. */
	struct homa_svc_place submit[HOMA_SHM_SQS], complete, release;
	/* Rung for submissions to other rings than the first; NULL: this homad has no bell. */
	u32 *bell;
	u8 *pool;
	size_t pool_bytes;
	/* @pool is mapped over memory that the application gave, and stays with it. */
	bool lent;
	/* A byte for each granule of the pool, an enum homa_svc_piece. A completion
	 * sets it under the handle's lock, a release changes it under release_lock; homad's
	 * rings order the two for one piece. The bytes are atomic because a faulty homad may
	 * break that order. */
	u8 *out;
	/* Pieces of messages that the application was given so far (handle's lock), and gave
	 * back (release_lock). */
	u64 pieces_taken, pieces_released;
	struct homa_turn heap_lock;
	/* The memory to send from, in segments, and what is free of each; under heap_lock. */
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
	struct homa_turn lock;
	/* Entries that this process has filled, and that homad had taken when it was last
	 * looked; both count up for ever. */
	u32 tail, head;
	/* Bytes beside the ring that were filled, and that are free again; both count up for
	 * ever. */
	u32 stage_tail, stage_head;
	/* The destinations that this ring's threads asked for, where route() says. */
	struct homa_svc_way routes[HOMA_SVC_ROUTES];
	/* For each entry, what @stage_tail was when it had been filled. */
	u32 stage_end[HOMA_SHM_SQ_MAX];
} __attribute__((aligned(64)));

enum homa_svc_slot_state {
	HOMA_SVC_OPEN, /* homad has it, or nobody */
	HOMA_SVC_DONE, /* over, waiting for the application to take it */
};

/* struct homa_svc_slot - the place of one request of this handle */
struct homa_svc_slot {
	/* The name of the request towards homad; 0: none is open here. The sender writes it, who
	 * ends the request clears it under the handle's lock. Atomic. */
	u64 token;
	/* The id that the application knows; 0: the place is free. It is written before @token
	 * and cleared after it. Atomic. */
	u64 id;
	/* What the sender asked for, @peer, @port, @length and @is_private too; written before
	 * @token. */
	u64 cookie;
	struct homa_addr peer;
	/* The next place of the free list. */
	u32 next;
	u32 length;
	u16 port;
	/* An enum homa_svc_slot_state; under the handle's lock. */
	u8 state;
	/* It was aborted: for the application it is over, and the place is free when homad says
	 * so, too. Under the handle's lock. */
	u8 gone;
	u8 is_private;
	/* Threads that began to wait for it by its id, at most 2; under the handle's lock. */
	u8 waits;
};

/* struct homa_svc_item - a message that waits for the application */
struct homa_svc_item {
	/* Links it into homa_svc.ready, or into homa_svc.items while it is free. */
	struct homa_list list;
	/* Messages of both kinds are taken in this order. */
	u64 order;
	/* Those of the attachment by which it came. @pool is mapped as long as a piece of a
	 * message in it is held, so it may be gone if this message has no piece. */
	u8 *pool;
	u32 generation;
	struct homa_cqe cqe;
};

/* struct homa_svc_waiter - a thread inside homa_receive(), on its stack */
struct homa_svc_waiter {
	/* Links it into homa_svc.waiters. */
	struct homa_list list;
	/* Whoever finds a message for it fills this. */
	struct homa_message *msg;
	/* The one request that it waits for; 0: any that @flags allow. */
	u64 token;
	/* HOMA_RECV_REQUEST, HOMA_RECV_RESPONSE; 0 with @token. */
	u32 flags;
	/* What its call returns, once @done is set. */
	int result;
	bool done;
	struct homa_wake wake;
};

/* struct homa_svc_coming - an attachment that homad has been asked for; under @ctl */
struct homa_svc_coming {
	/* NULL: there is none. */
	struct homa_svc_att *att;
	/* What homad was asked last, an enum homa_ctl_op. */
	u16 op;
	/* It takes requests as the handle shall, and signals at homa_fd(). */
	bool listens, signals;
	/* What it was told about signals, see homa_svc.fd_edges. */
	bool edges;
	/* homa_fd() becomes readable by the answer to the last question. */
	bool awaited;
};

enum homa_svc_queue { HOMA_SVC_REQUESTS, HOMA_SVC_RESPONSES, HOMA_SVC_QUEUES };

enum homa_svc_state {
	HOMA_SVC_UP,
	HOMA_SVC_LOST,	  /* homad has ended; trying again */
	HOMA_SVC_EVICTED, /* -ECONNABORTED for ever */
	HOMA_SVC_SHUT,	  /* -ESHUTDOWN for ever */
};

/* struct homa_svc - an open handle. Its lock protects a member that says nothing else. */
struct homa_svc {
	struct homa_turn lock;
	/* An enum homa_svc_state; atomic. */
	u32 state;
	/* The handle is being closed; atomic. */
	u32 closing;
	/* Threads in calls that may sleep, for which closing waits; atomic. */
	u32 inside;
	/* The present attachment, or the last one while the state is LOST. It changes under
	 * @ctl, @lock, @release_lock and all ring locks, so any of them is enough to read it. */
	struct homa_svc_att *att;
	/* Completions that were taken, and that homad had written when it was last looked. */
	u32 cq_head, cq_tail;
	struct homa_svc_slot *slots;
	/* A message that waits for the application, for each slot. */
	struct homa_svc_item *slot_items;
	/* By the low bits of their token, the last request that came with them, with
	 * HOMA_SVC_ANSWERED if it was answered; atomic words. */
	u64 *requests;
	/* By the low bits of half an id, the slot that has it, and upper bits of the number that
	 * was given, so that no word comes back; atomic words. */
	u32 *names;
	/* Threads that wait in homa_receive(), @poller too. */
	struct homa_list waiters;
	/* The thread that looks at the completion ring for all; NULL: none does. */
	struct homa_svc_waiter *poller;
	/* The poller sleeps. */
	bool blocked;
	/* How long the poller looks before it sleeps. */
	struct homa_spin spin;
	/* The application wants the poller never to sleep. */
	bool never_sleep;
	/* Messages that nobody has taken, by kind, and how many of both there are. */
	struct homa_list ready[HOMA_SVC_QUEUES];
	u32 ready_count;
	/* Stamps them, see homa_svc_item.order. */
	u64 order;
	/* Free items for requests, and the memory that they come from. */
	struct homa_list items;
	void *chunks;
	/* Bytes and failures that came, for homa_metrics(). */
	u64 rx_bytes, failed;
	/* When a waiting thread last looked whether homad lives, ns. */
	u64 alive_at;

	/* The free list of slots: a tag that changes each time, and 1 + the first of them.
	 * Slots from @fresh on were never used. Both atomic. */
	u64 free __attribute__((aligned(64)));
	u32 fresh;
	u32 max_rpcs;
	/* Submission rings that homad looks at; those given to threads; and, by thread, 1 + its
	 * ring. Atomic. */
	u32 sqs;
	u32 rings_given;
	u8 ring_of[HOMA_SVC_THREADS];
	/* HOMA_SQE_NUMBERED if this homad makes ids of numbers; changes as @att does. */
	u8 numbering;
	/* Numbers that were given to requests; atomic. */
	u64 numbers;

	struct homa_turn release_lock __attribute__((aligned(64)));
	/* Pieces in the release ring, those of them that homad may see, and how many may wait to
	 * be shown; under @release_lock. */
	u32 release_tail, release_shown, release_batch;
	/* Pieces given back that wait for room in the release ring, and the granule at which
	 * the next one is looked for; under @release_lock. */
	u32 kept, kept_next;
	/* Former attachments that somebody still needs; under @release_lock. */
	struct homa_list old;

	/* Who has it asks homad something; it also protects what says so. */
	pthread_mutex_t ctl;
	/* The attach socket. */
	char path[108];
	/* What the application asked for, for this attachment and later ones: bytes to receive
	 * in, and where they shall be mapped (NULL: anywhere). */
	size_t rcvbuf;
	void *region;
	/* HOMA_OPEN_SHARED_PORT was given. */
	bool shared_port;
	/* HOMA_OPEN_HANDOVER was given, or it came from another process. */
	bool handover;
	/* What each new attachment binds, and its HOMA_CTL_LISTEN_*; under @ctl. */
	u16 bound;
	u32 listen;
	/* The attachment that is about to take the place of @att. */
	struct homa_svc_coming coming;
	/* Time before which homad is not looked for again, or when it has to have answered for
	 * @coming, and how much later the next time is if that is in vain, ns; atomic. */
	u64 next_try, backoff;
	/* Attachments so far; under @ctl. */
	u32 generations;
	/* When the second began in which @routes_asked questions for routes were asked, ns;
	 * under @ctl. */
	u64 routes_since;
	u32 routes_asked;
	/* An eventfd that wakes the poller. */
	int nudge_fd;

	/* homa_fd(), or -1, and its parts, see fd.c. */
	int ep_fd, level_fd, ready_fd, timer_fd;
	/* homa_send_fd(), or -1: a timer, set under @ctl, see fd_send.c; atomic. */
	int send_fd;
	/* How long the timer last ran after a request that found no room, ns; 0: the last one
	 * found some. Atomic. */
	u32 send_pause;
	/* Receives that found nothing and do not wait, and homa_poll(): all of them, which say
	 * when to look whether homad lives; and receives since the last message, which say when
	 * to yield. */
	u32 asks, vain;
	/* @level_fd can be read. */
	bool level;
	/* homad was told to signal the next completion at @ready_fd. */
	bool fd_armed;
	/* The application wants homa_fd() to be signalled for each message, not to stay readable
	 * while there are messages. */
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
/** homa_svc_make_socket() - a socket that no child of fork() keeps; 0 or -errno. */
int homa_svc_make_socket(struct homa_svc_att *att);
/** homa_svc_close_fds() - all of @att's descriptors. */
void homa_svc_close_fds(struct homa_svc_att *att);

/* att.c */
/** homa_svc_att_put() - gives a reference back; the last one ends the attachment. */
void homa_svc_att_put(struct homa_svc_att *att);
static inline void homa_svc_att_get(struct homa_svc_att *att)
{
	__atomic_fetch_add(&att->refs, 1, __ATOMIC_RELAXED);
}
/** homa_svc_map() - memory of homad's, which a child of fork() shall not have; NULL. */
void *homa_svc_map(int fd, u64 bytes);
/** homa_svc_map_pool() - the receive pool behind @fd, over @at unless NULL. */
int homa_svc_map_pool(struct homa_svc_att *att, int fd, u64 bytes, void *at);
/** homa_svc_kick() - wakes homad, which asked for it in need_kick. */
void homa_svc_kick(struct homa_svc *c, struct homa_svc_att *att);

/* attach.c */
/** homa_svc_attach() - a new attachment; @err gets a sentence on failure. */
int homa_svc_attach(struct homa_svc *c, struct homa_svc_att **out, char *err,
		    size_t errlen);
/** homa_svc_attach_ask() - its first half: homad is asked. @wait: for a homad that has too many
 *  connections to accept. */
int homa_svc_attach_ask(struct homa_svc *c, struct homa_svc_att **out,
			bool wait, char *err, size_t errlen);
/** homa_svc_attach_hear() - its other half: homad's answer, waited for; the caller keeps @att. */
int homa_svc_attach_hear(struct homa_svc *c, struct homa_svc_att *att,
			 char *err, size_t errlen);
/** homa_svc_adopt() - make it the handle's; under @ctl, takes the other locks. */
void homa_svc_adopt(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_dial() - connect to the attach socket, which is @att's then. */
int homa_svc_dial(struct homa_svc_att *att, const char *path, bool wait,
		  char *err, size_t errlen);

/* ask.c: all under @ctl (or before anybody else knows the attachment) */
/** homa_svc_tell() - a question; 0, or -ECONNRESET: homad is gone. */
int homa_svc_tell(struct homa_svc_att *att, struct homa_ctl_request *request);
/** homa_svc_tell_fd() - the same with a descriptor for homad; -1: none. */
int homa_svc_tell_fd(struct homa_svc_att *att, struct homa_ctl_request *request,
		     int fd);
/** homa_svc_hear() - the answer to a question of the kind @op, waited for. 0 with @answer
 *  filled, also if that says no; -ECONNRESET: homad is gone, or it was late or strange. */
int homa_svc_hear(struct homa_svc_att *att, u16 op,
		  struct homa_ctl_answer *answer, int *fds, u32 num_fds);
/** homa_svc_ask() - both. */
int homa_svc_ask(struct homa_svc_att *att, struct homa_ctl_request *request,
		 struct homa_ctl_answer *answer, int *fds, u32 num_fds);

/* ctl.c: under @ctl where nothing else is said */
/** homa_svc_records() - the @total records of @size bytes that follow an answer, to @all unless
 *  NULL. -ECONNRESET: they stopped, and with them the attachment has ended. */
int homa_svc_records(struct homa_svc *c, void *all, size_t size, u32 total);
/** homa_svc_question() - be attached, ask. If homad ends meanwhile and the next one is there
 *  at once, that one is asked: the question must mean the same to both. */
int homa_svc_question(struct homa_svc *c, struct homa_ctl_request *request,
		      struct homa_ctl_answer *answer, int *fd);
/** homa_svc_question_of() - ask the homad of the handle's @att, no other one. */
int homa_svc_question_of(struct homa_svc *c, struct homa_svc_att *att,
			 struct homa_ctl_request *request,
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
/** homa_svc_ended() - under @lock: the connection is of no use; homad may have said why. */
void homa_svc_ended(struct homa_svc *c);
bool homa_svc_hung_up(const struct homa_svc_att *att);
/** homa_svc_revive() - without locks: attach again if the time has come, and wait for homad's
 *  answers. 0: attached; else the error of a call. */
int homa_svc_revive(struct homa_svc *c);
/** homa_svc_revive_locked() - the same, under @ctl. */
int homa_svc_revive_locked(struct homa_svc *c);
/** homa_svc_revive_try() - the same without waiting. -EAGAIN: homad has been asked, and answers
 *  later, or another thread is at it. @coming, unless NULL, gets a reference to the attachment
 *  that homad was asked for, or NULL. */
int homa_svc_revive_try(struct homa_svc *c, struct homa_svc_att **coming);

/* routes.c: with the ring's lock */
/** homa_svc_way() - the place of @to; it is known to be reachable if the place has this address. */
struct homa_svc_way *homa_svc_way(struct homa_svc_ring *ring,
				  const struct homa_addr *to);
/** homa_svc_learn() - @to can be reached, and takes the place @way. */
void homa_svc_learn(struct homa_svc *c, struct homa_svc_way *way,
		    const struct homa_addr *to);
/** homa_svc_unlearn() - homad is asked again for @to, NULL: for all. */
void homa_svc_unlearn(struct homa_svc_ring *ring, const struct homa_addr *to);

/* submit.c */
struct homa_svc_ring *homa_svc_my_ring(struct homa_svc *c);
/** homa_svc_begin() - a ring, locked, with room for an entry and @staged bytes;
 *  we are attached. May wait. */
int homa_svc_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **ring);
/** homa_svc_try_begin() - the same without waiting: -EAGAIN. */
int homa_svc_try_begin(struct homa_svc *c, u32 staged,
		       struct homa_svc_ring **ring);
/** homa_svc_entry() - the entry to fill. */
struct homa_sqe *homa_svc_entry(struct homa_svc *c, struct homa_svc_ring *ring);
/** homa_svc_stage() - where its @bytes go, and at which offset of segment 0. */
u8 *homa_svc_stage(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		   u32 *offset);
/** homa_svc_submit() - the entry is complete; unlocks the ring. */
void homa_svc_submit(struct homa_svc *c, struct homa_svc_ring *ring);

/* segments.c */
/** homa_svc_segment_get() - room for @bytes in a segment that is there; 0 or -ENOBUFS. */
int homa_svc_segment_get(struct homa_svc_att *att, u32 bytes, u32 *segment,
			 u32 *offset);
/** homa_svc_segment_add() - the memory behind @fd, which is closed, becomes a segment. Segments
 *  before it that homad made and we did not get stay empty. */
int homa_svc_segment_add(struct homa_svc_att *att, u32 segment, int fd,
			 u64 bytes);
void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset);
/** homa_svc_long_used() - how many bytes of all segments are in use. */
u64 homa_svc_long_used(struct homa_svc_att *att);
/** homa_svc_long_has() - does @at lie in the memory to send from? */
bool homa_svc_long_has(struct homa_svc_att *att, const void *at);
/** homa_svc_unalloc() - the application's room, and its reference to the attachment, go back. */
void homa_svc_unalloc(const struct homa_room *room);

/* long.c */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_ask() - the same without waiting for room in the ring: -EAGAIN. */
int homa_svc_long_ask(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_try() - the same without waiting or asking homad: -EAGAIN. */
int homa_svc_long_try(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset);
/** homa_svc_long_keep() - the same without room in the ring, for memory that is filled later. */
int homa_svc_long_keep(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		       u32 *segment, u32 *offset);

/* given.c */
int homa_svc_alloc(void *host, size_t length, struct homa_room *room);
int homa_svc_sends_from(void *host, const void *at);

/* slots.c */
int homa_svc_slots_init(struct homa_svc *c);
void homa_svc_slots_free(struct homa_svc *c);
void homa_svc_slots_limit(struct homa_svc *c, u32 max_rpcs);
/** homa_svc_slot_get() - with a ring's lock: a free one, its @id and its @token, for a
 *  request to an address with @hash. */
struct homa_svc_slot *homa_svc_slot_get(struct homa_svc *c, u64 hash, u64 *token);
/** homa_svc_token() - of the open request with this id, or HOMA_SVC_NO_TOKEN. */
u64 homa_svc_token(struct homa_svc *c, u64 id);
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
int homa_svc_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id);
int homa_svc_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out);
int homa_svc_reject(void *host, const struct homa_message *request, int error);
int homa_svc_wait_send(void *host, size_t length, int64_t timeout_ns);
int homa_svc_send_fd(void *host);
/** homa_svc_send_tried() - a request that does not wait gave @rc. */
void homa_svc_send_tried(struct homa_svc *c, int rc);
int homa_svc_alive(void *host, const struct homa_message *request);
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
	return __atomic_load_n(&c->att->complete.index->tail,
			       __ATOMIC_SEQ_CST) != c->cq_head;
}

/* wait.c */
int homa_svc_receive(void *host, struct homa_message *msg, uint64_t id,
		     unsigned int flags, int64_t timeout_ns);
int homa_svc_receive_batch(void *host, struct homa_message *msgs, unsigned int n,
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
