/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages that have come: they wait for the application, or it for them.
 */
#ifndef HOMA_SVC_WAIT_H
#define HOMA_SVC_WAIT_H

#include "homa_addr.h"
#include "homa_backend.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "shm.h"

struct homa_svc;
struct homa_svc_slot;

/* struct homa_svc_item - a message that waits for the application. Guarded by: homa_svc.lock */
struct homa_svc_item {
	/* Links it into homa_svc.ready, or into homa_svc.items while it is free. */
	struct homa_list list;
	/* The number of the message; the one with the lowest number is taken first. */
	u64 order;
	/* The pool of the attachment by which the message came. It may not be mapped any more if
	 * this message has no piece in it. */
	u8 *pool;
	/* The number of that attachment, homa_svc_att.generation. */
	u32 generation;
	/* homad's completion. */
	struct homa_cqe cqe;
};

/* struct homa_svc_waiter - a thread inside homa_receive(), on its stack. Guarded by:
 * homa_svc.lock */
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
	/* True once another thread has ended the wait. */
	bool done;
	/* What wakes the thread. */
	struct homa_wake wake;
};

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

/* release.c */
/** homa_svc_discard() - give back the pieces of a message that nobody wants; under @lock. */
void homa_svc_discard(struct homa_svc *c, u32 generation,
		      const struct homa_cqe *cqe);
void homa_svc_show_releases(struct homa_svc *c);

#endif
