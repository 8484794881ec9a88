/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An attachment: the connection to one life of homad, its memory, and questions to homad by it.
 */
#ifndef HOMA_SVC_ATT_H
#define HOMA_SVC_ATT_H

#include "heap.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "places.h"
#include "shm.h"

struct homa_svc;

/* The time after which a homad that has not answered counts as dead, in s. */
#define HOMA_SVC_ANSWER_S 30
/* The features that this library has, which it tells homad. */
#define HOMA_SVC_FEATURES (HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_BELL)
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

/* struct homa_svc_att - an attachment: the connection to one life of homad, and its memory. Written
 * by: who attaches, before it is the handle's, unless a member says otherwise; what homad writes
 * lies in @queues and @pool. */
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
	/* The lock of the memory to send from. */
	struct homa_gate heap_lock;
	/* Under heap_lock: 1 + the timer to set when memory to send from is given back, or 0. */
	int room_timer;
	/* Under heap_lock: the number of segments with memory to send from. */
	u32 num_segs;
	/* Where each segment is mapped. */
	u8 *seg[HOMA_SHM_SEGMENTS];
	/* The size of each segment, in bytes. */
	u64 seg_bytes[HOMA_SHM_SEGMENTS];
	/* Under heap_lock: what is free in each segment. */
	struct homa_svc_heap heap[HOMA_SHM_SEGMENTS];
};

/* fork.c */
/** homa_svc_make_socket() - make a socket that no child of fork() keeps; 0 or -errno. */
int homa_svc_make_socket(struct homa_svc_att *att);
/** homa_svc_close_fds() - close all of @att's descriptors. */
void homa_svc_close_fds(struct homa_svc_att *att);

/* attachment.c */
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
/** homa_svc_adopt() - make @att the handle's; the caller has homa_svc.ctl and no other lock. */
void homa_svc_adopt(struct homa_svc *c, struct homa_svc_att *att);
/** homa_svc_dial() - connect @att to the attach socket at @path. */
int homa_svc_dial(struct homa_svc_att *att, const char *path, bool wait,
		  char *err, size_t errlen);

/* ask.c: the caller has homa_svc.ctl, or nobody else knows the attachment */
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

#endif
