// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the application sends: requests, replies, aborts. A request names its RPC
 * itself, so nothing has to come back before the call returns; whether there is
 * a way to a destination is asked once.
 */
#include <errno.h>
#include <string.h>
#include "client.h"
#include "fd.h"
#include "homa_sockaddr.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_ring.h"
#include "svc_slot.h"
#include "svc_wait.h"

/**
 * struct outgoing - a message on its way into shared memory
 * @out: the message as libhoma's core gave it.
 * @length: its length in bytes.
 * @att: the attachment in whose memory a long message lies, with a reference; else NULL.
 * @segment: the segment in which a long message lies.
 * @offset: its offset there in bytes.
 * @lent: true if it lies in @out->room, memory of homa_alloc().
 * @nonblock: true if -EAGAIN is returned instead of waiting.
 */
struct outgoing {
	const struct homa_message_out *out;
	u32 length;
	struct homa_svc_att *att;
	u32 segment, offset;
	bool lent;
	bool nonblock;
};

/* Send a long message from the memory of homa_alloc() in which it lies; short ones are copied. */
static void lend(struct outgoing *o)
{
	const struct homa_room *room = o->out->room;

	if (!room || o->length <= HOMA_SHM_COPY_MAX)
		return;
	o->att = room->owner;
	o->segment = room->segment;
	o->offset = room->offset;
	o->lent = true;
}

/* The message was sent, so the memory of homa_alloc() is not the application's any more. */
static void end_room(struct homa_svc *c, const struct outgoing *o)
{
	__atomic_fetch_add(o->lent ? &c->counters.given :
				     &c->counters.given_copied,
			   1, __ATOMIC_RELAXED);
	/* If homad reads the memory, a completion gives it back. */
	if (!o->lent)
		homa_svc_unalloc(o->out->room);
}

static void gather(u8 *to, const struct homa_message_out *out)
{
	int i;

	if (likely(out->iovcnt == 1)) {
		memcpy(to, out->iov[0].iov_base, out->iov[0].iov_len);
		return;
	}
	for (i = 0; i < out->iovcnt; i++) {
		memcpy(to, out->iov[i].iov_base, out->iov[i].iov_len);
		to += out->iov[i].iov_len;
	}
}

static void drop_long(struct outgoing *o)
{
	if (!o->att)
		return;
	if (!o->lent) {
		homa_svc_long_back(o->att, o->segment, o->offset);
		homa_svc_att_put(o->att);
	}
	o->att = NULL;
	o->lent = false;
}

/* Copy a long message into a segment, without a lock, because a megabyte takes a while. */
static int put_long(struct homa_svc *c, struct outgoing *o)
{
	int rc;

	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	rc = (o->nonblock ? homa_svc_long_try :
			    homa_svc_long_get)(c, o->length, &o->att,
					       &o->segment, &o->offset);
	if (rc)
		o->att = NULL;
	else
		gather(o->att->seg[o->segment] + o->offset, o->out);
	/* The handle may be closed as soon as nobody is inside. */
	if (!rc && __atomic_load_n(&c->closing, __ATOMIC_SEQ_CST)) {
		drop_long(o);
		rc = -ESHUTDOWN;
	}
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return rc;
}

/* Lock a ring with room for the message. A long message is copied before. */
static int start(struct homa_svc *c, struct outgoing *o,
		 struct homa_svc_ring **ring)
{
	bool is_long = o->length > HOMA_SHM_COPY_MAX;
	int rc;

	for (;;) {
		if (is_long && !o->att) {
			rc = put_long(c, o);
			if (rc)
				return rc;
		}
		rc = (o->nonblock ?
			      homa_svc_try_begin :
			      homa_svc_begin)(c, is_long ? 0 : o->length, ring);
		if (rc || !is_long || likely(c->att == o->att))
			break;
		/* homad has ended and is back, with other memory. */
		homa_gate_unlock(&(*ring)->lock);
		drop_long(o);
	}
	if (rc)
		drop_long(o);
	return rc;
}

/* Fill the part of @sqe that says where the bytes are. */
static void place(struct homa_svc *c, struct homa_svc_ring *ring,
		  struct outgoing *o, struct homa_sqe *sqe)
{
	sqe->length = o->length;
	if (o->att) {
		sqe->segment = (u16)o->segment;
		sqe->offset = o->offset;
		homa_svc_att_put(o->att);
		return;
	}
	sqe->flags |= HOMA_SQE_COPY;
	gather(homa_svc_stage(c, ring, o->length, &sqe->offset), o->out);
}

/* ---- requests ---- */

/* Lock a ring and name the RPC. homad is asked for the route if it is not known. */
static int start_request(struct homa_svc *c, struct outgoing *o,
			 const struct homa_addr *to, struct homa_svc_ring **ring,
			 struct homa_svc_slot **slot, u64 *token)
{
	/* A request that does not wait does not ask; without a route it fails later. */
	bool drained = false, asked = o->nonblock, known;
	struct homa_svc_way *way;
	int rc;

	for (;;) {
		rc = start(c, o, ring);
		if (rc)
			return rc;
		way = homa_svc_way(*ring, to);
		known = homa_addr_equal(&way->addr, to);
		if (likely(known) || asked) {
			if (unlikely(!known))
				homa_svc_learn(c, way, to);
			*slot = homa_svc_slot_get(c, way->hash, token);
			if (likely(*slot))
				return 0;
			homa_gate_unlock(&(*ring)->lock);
			rc = -ENOBUFS;
			if (drained)
				break;
			/* homad may have confirmed aborted requests meanwhile. */
			homa_gate_lock(&c->lock);
			homa_svc_drain(c, NULL);
			homa_svc_fd_touch(c);
			homa_gate_unlock(&c->lock);
			drained = true;
			continue;
		}
		homa_gate_unlock(&(*ring)->lock);
		rc = homa_svc_route(c, to);
		if (rc)
			break;
		asked = true;
	}
	drop_long(o);
	return rc;
}

int homa_svc_request(void *host, const struct sockaddr *dest,
		     const struct homa_message_out *out, uint64_t cookie,
		     unsigned int flags, uint64_t *id)
{
	struct outgoing o = { .out = out,
			      .length = (u32)out->length,
			      .nonblock = flags & HOMA_NONBLOCK };
	struct homa_svc *c = host;
	struct homa_svc_slot *slot = NULL;
	struct homa_svc_ring *ring;
	struct homa_sqe *sqe;
	struct homa_addr to;
	u32 tries = 0;
	u64 token;
	u16 port;
	int rc;

	rc = homa_sockaddr_to_addr(dest, false, &to, &port);
	if (rc)
		return rc;
	to.encap = homa_sockaddr_encap(dest);
	do {
		if (unlikely(out->room))
			lend(&o);
		rc = start_request(c, &o, &to, &ring, &slot, &token);
	} while (o.nonblock && homa_svc_send_tried(c, rc, o.length, tries++ > 0));
	if (rc)
		return rc;
	slot->is_private = (flags & HOMA_PRIVATE) != 0;
	slot->peer = to;
	slot->port = port;
	slot->cookie = cookie;
	slot->length = o.length;
	homa_svc_slot_open(slot, token);
	sqe = homa_svc_entry(c, ring);
	*sqe = (struct homa_sqe){
		.op = HOMA_SQE_REQUEST,
		.flags = (flags & HOMA_PRIVATE ? HOMA_SQE_PRIVATE : 0) |
			 (out->deadline ? HOMA_SQE_DEADLINE : 0) | c->numbering,
		.port = port,
		.encap = to.encap,
		.cookie = cookie,
		.token = token,
		.deadline = out->deadline,
	};
	memcpy(sqe->ip, to.ip, sizeof(sqe->ip));
	place(c, ring, &o, sqe);
	*id = __atomic_load_n(&slot->id, __ATOMIC_RELAXED);
	homa_svc_submit(c, ring);
	if (unlikely(out->room))
		end_room(c, &o);
	return 0;
}

/* ---- replies ---- */

/* Mark a request as answered: 1, 0 if nobody waits for the answer, -EINVAL if it was answered. */
static int claim(struct homa_svc *c, u64 token)
{
	u64 *place = &c->requests[token & 0xffff];
	u64 found = token, answered = token | HOMA_SVC_ANSWERED;

	if (likely(__atomic_compare_exchange_n(place, &found, answered, false,
					       __ATOMIC_ACQ_REL,
					       __ATOMIC_RELAXED)))
		return 1;
	/* If a later request has the place, the client of this one has given up. */
	return found == answered ? -EINVAL : 0;
}

/* Did the request come by an attachment that has ended? Then nobody waits for the answer. */
static bool is_former(struct homa_svc *c, u32 generation)
{
	struct homa_svc_ring *ring = homa_svc_my_ring(c);
	bool former;

	homa_gate_lock(&ring->lock);
	former = c->att->generation != generation;
	homa_gate_unlock(&ring->lock);
	return former;
}

static int reply(struct homa_svc *c, const struct homa_message *request,
		 struct outgoing *o)
{
	u64 token = request->priv[HOMA_PRIV_HOST];
	u32 generation = (u32)(request->priv[HOMA_PRIV_HOST + 1] >> 32);
	struct homa_svc_ring *ring;
	struct homa_sqe *sqe;
	u32 state = homa_svc_state(c);
	int rc;

	/* The RPC has ended with its homad. */
	if (state == HOMA_SVC_LOST) {
		drop_long(o);
		return 0;
	}
	rc = start(c, o, &ring);
	/* If the next homad lacks memory, that does not matter: it does not know the request. */
	if (rc && rc != -ESHUTDOWN && is_former(c, generation))
		return 0;
	if (rc)
		return rc == -ECONNREFUSED ? 0 : rc;
	rc = c->att->generation == generation ? claim(c, token) : 0;
	if (unlikely(rc <= 0)) {
		homa_gate_unlock(&ring->lock);
		drop_long(o);
		return rc;
	}
	sqe = homa_svc_entry(c, ring);
	*sqe = (struct homa_sqe){ .op = HOMA_SQE_REPLY, .token = token };
	place(c, ring, o, sqe);
	homa_svc_submit(c, ring);
	return 0;
}

int homa_svc_reply(void *host, const struct homa_message *request,
		   const struct homa_message_out *out)
{
	struct outgoing o = { .out = out, .length = (u32)out->length };
	struct homa_svc *c = host;
	int rc;

	if (likely(!out->room))
		return reply(c, request, &o);
	lend(&o);
	rc = reply(c, request, &o);
	/* The memory is given up also when nobody waits for the reply. */
	if (!rc)
		end_room(c, &o);
	return rc;
}

/* May this request still be answered, as far as the handle knows? */
static bool is_asked(const struct homa_svc *c, u64 token)
{
	return __atomic_load_n(&c->requests[token & 0xffff], __ATOMIC_ACQUIRE) ==
	       token;
}

int homa_svc_reject(void *host, const struct homa_message *request, int error)
{
	u64 token = request->priv[HOMA_PRIV_HOST];
	u32 generation = (u32)(request->priv[HOMA_PRIV_HOST + 1] >> 32);
	struct homa_svc *c = host;
	struct homa_svc_ring *ring;
	struct homa_sqe *sqe;
	int rc;

	/* The RPC has ended with its homad. */
	if (homa_svc_state(c) == HOMA_SVC_LOST)
		return 0;
	rc = homa_svc_begin(c, 0, &ring);
	if (rc)
		return rc == -ECONNREFUSED ? 0 : rc;
	if (!(c->att->queues->features & HOMA_SHM_CAN_REJECT))
		rc = -EOPNOTSUPP;
	else
		rc = c->att->generation == generation ? claim(c, token) : 0;
	if (unlikely(rc <= 0)) {
		homa_gate_unlock(&ring->lock);
		return rc;
	}
	sqe = homa_svc_entry(c, ring);
	*sqe = (struct homa_sqe){ .op = HOMA_SQE_REJECT,
				  .length = (u32)error,
				  .token = token };
	homa_svc_submit(c, ring);
	return 0;
}

int homa_svc_alive(void *host, const struct homa_message *request)
{
	u32 generation = (u32)(request->priv[HOMA_PRIV_HOST + 1] >> 32);
	struct homa_ctl_request question = {
		.op = HOMA_CTL_ALIVE, .bytes = request->priv[HOMA_PRIV_HOST]
	};
	struct homa_ctl_answer answer = { 0 };
	struct homa_svc *c = host;
	int rc;

	if (!is_asked(c, question.bytes))
		return 0;
	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&c->ctl);
	rc = homa_svc_revive_locked(c);
	if (!rc && c->att->generation == generation) {
		rc = c->att->queues->features & HOMA_SHM_CAN_REJECT ?
			     homa_svc_question_of(c, c->att, &question, &answer,
						  NULL) :
			     -EOPNOTSUPP;
	}
	pthread_mutex_unlock(&c->ctl);
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	/* The RPC has ended with its homad. */
	return rc ? (rc == -ECONNREFUSED ? 0 : rc) : answer.total != 0;
}

/* ---- aborts ---- */

/* Tell homad to forget the request, whose end the application knows already. If its homad has
 * ended, nothing is told, because the next homad may have another request with this token. */
static int send_abort(struct homa_svc *c, u64 token, u32 generation)
{
	struct homa_svc_ring *ring;
	struct homa_sqe *sqe;
	int rc;

	rc = homa_svc_begin(c, 0, &ring);
	/* If homad has ended, the request has failed already. */
	if (rc)
		return rc == -ECONNREFUSED ? 0 : rc;
	if (unlikely(c->att->generation != generation)) {
		homa_gate_unlock(&ring->lock);
		return 0;
	}
	sqe = homa_svc_entry(c, ring);
	*sqe = (struct homa_sqe){ .op = HOMA_SQE_ABORT, .token = token };
	homa_svc_submit(c, ring);
	return 0;
}

/* End the request here; returns 1 if homad has to be told. The caller has the lock. */
static int end_slot(struct homa_svc *c, u64 token, int error)
{
	struct homa_svc_slot *slot = homa_svc_slot(c, token);

	if (!slot)
		return -EINVAL;
	if (slot->state == HOMA_SVC_DONE) {
		/* Its outcome has come, so it cannot fail any more, but it can be forgotten. */
		if (!error)
			homa_svc_forget(c, token);
		return 0;
	}
	if (slot->gone)
		return -EINVAL;
	homa_svc_abort_slot(c, slot, token, (u32)error);
	if (error)
		homa_svc_fd_edge(c);
	return 1;
}

static int abort_one(struct homa_svc *c, u64 token, int error)
{
	u32 generation;
	int rc;

	homa_gate_lock(&c->lock);
	generation = c->att->generation;
	homa_svc_drain(c, NULL);
	rc = end_slot(c, token, error);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	return rc > 0 ? send_abort(c, token, generation) : rc;
}

/* All requests are aborted one by one: a command for all could end another thread's next one. */
int homa_svc_abort(void *host, uint64_t id, int error)
{
	struct homa_svc *c = host;
	int rc = homa_svc_error(c);
	u32 i, top;

	if (rc)
		return rc;
	if (id)
		return id & 1 ? -EINVAL :
				abort_one(c, homa_svc_token(c, id), error);
	top = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);
	for (i = 0; i < top && !rc; i++) {
		u64 token = __atomic_load_n(&c->slots[i].token, __ATOMIC_ACQUIRE);

		if (token)
			rc = abort_one(c, token, error);
		/* -EINVAL means that the request came to its end by itself. */
		if (rc == -EINVAL)
			rc = 0;
	}
	return rc;
}
