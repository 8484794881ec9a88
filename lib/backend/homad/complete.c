// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Completions: handed to a thread that waits for them, or kept until one asks.
 * The thread that looks takes what is its own straight out of the ring; only what
 * it finds before that, and nobody waits for, is copied. A response waits in its
 * slot's item; a private one nowhere else, since only a receive by id can want it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client.h"
#include "homa_sockaddr.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_ring.h"
#include "svc_slot.h"
#include "svc_wait.h"
#include "transfer.h"

#define CHUNK 64 /* the number of items that are allocated at once */

HOMA_STATIC_ASSERT((int)HOMA_CQE_REQUEST == (int)HOMA_REQUEST &&
			   (int)HOMA_CQE_RESPONSE == (int)HOMA_RESPONSE &&
			   (int)HOMA_CQE_FAILED == (int)HOMA_ERROR,
		   "kinds are the same");
HOMA_STATIC_ASSERT(sizeof(((struct homa_message *)0)->iov) / sizeof(struct iovec) ==
			   HOMA_SHM_PAGES,
		   "one piece per page");

/* struct chunk - a block of items for requests; homa_svc.chunks is the list of them */
struct chunk {
	/* The next block of the list. */
	struct chunk *next;
	/* The items in this one. */
	struct homa_svc_item items[CHUNK];
};

void homa_svc_nudge(struct homa_svc *c)
{
	u64 value = 1;

	/* This fails only if the counter is full, and then the descriptor is readable. */
	if (write(c->nudge_fd, &value, sizeof(value)) < 0)
		return;
}

/* ---- into the application's message ---- */

/* Note that the application has the message's pieces from now on. */
static void own_pieces(struct homa_svc_att *att, const struct homa_cqe *cqe)
{
	u32 i;

	for (i = 0; i < cqe->num_pages; i++)
		__atomic_store_n(&att->out[cqe->pages[i] / HOMA_SVC_GRANULE],
				 HOMA_SVC_PIECE_OUT, __ATOMIC_RELAXED);
	__atomic_store_n(&att->pieces_taken, att->pieces_taken + cqe->num_pages,
			 __ATOMIC_RELAXED);
}

static void fill_peer(struct homa_svc *c, const struct homa_cqe *cqe,
		      struct homa_message *msg)
{
	struct homa_addr peer = { .encap = cqe->encap };
	const struct homa_svc_slot *slot;

	if (cqe->kind != HOMA_CQE_FAILED) {
		memcpy(peer.ip, cqe->ip, sizeof(peer.ip));
		homa_sockaddr_from_addr(&msg->peer, &peer, cqe->port);
		return;
	}
	/* The peer is the one that our request went to. */
	slot = &c->slots[cqe->token & 0xffff];
	homa_sockaddr_from_addr(&msg->peer, &slot->peer, slot->port);
}

static void fill(struct homa_svc *c, u8 *pool, u32 generation,
		 const struct homa_cqe *cqe, struct homa_message *msg)
{
	u32 *pages = (u32 *)&msg->priv[HOMA_PRIV_PAGES];
	u32 i, left = cqe->length;

	msg->kind = (enum homa_kind)cqe->kind;
	msg->error = cqe->kind == HOMA_CQE_FAILED ? -(int)cqe->error : 0;
	msg->id = cqe->kind == HOMA_CQE_REQUEST ?
			  cqe->id :
			  c->slots[cqe->token & 0xffff].id;
	msg->cookie = cqe->cookie; /* with a request it is the deadline */
	msg->length = cqe->length;
	msg->iovcnt = (int)cqe->num_pages;
	for (i = 0; i < cqe->num_pages; i++) {
		u32 n = homa_min_u32(left, 65536);

		msg->iov[i].iov_base = pool + cqe->pages[i];
		msg->iov[i].iov_len = n;
		pages[i] = cqe->pages[i];
		left -= n;
	}
	fill_peer(c, cqe, msg);
	msg->priv[HOMA_PRIV_HOST] = cqe->token;
	msg->priv[HOMA_PRIV_HOST + 1] = (u64)generation << 32 | cqe->num_pages;
}

/* ---- waiting threads ---- */

static void finish(struct homa_svc *c, struct homa_svc_waiter *w,
		   struct homa_svc_waiter *self, int result)
{
	w->result = result;
	w->done = true;
	homa_list_del(&w->list);
	if (w == self)
		return;
	if (w != c->poller) {
		c->counters.handoffs++;
		homa_wake_signal(&w->wake);
	} else if (c->blocked) {
		homa_svc_nudge(c);
	}
}

/* Choose the thread that gets this message: one that waits for its id, or one that is awake. */
static struct homa_svc_waiter *pick(struct homa_svc *c,
				    const struct homa_cqe *cqe,
				    struct homa_svc_waiter *self)
{
	bool ours = cqe->kind != HOMA_CQE_REQUEST;
	bool is_private = cqe->flags & HOMA_CQE_PRIVATE;
	u32 flag = ours ? HOMA_RECV_RESPONSE : HOMA_RECV_REQUEST;
	struct homa_svc_waiter *any = NULL;
	struct homa_list *node;

	if (self && !self->done &&
	    (self->token ? ours && self->token == cqe->token :
			   !is_private && (self->flags & flag)))
		any = self;
	if (any && self->token)
		return self;
	for (node = c->waiters.next; node != &c->waiters; node = node->next) {
		struct homa_svc_waiter *w =
			homa_container_of(node, struct homa_svc_waiter, list);

		if (w->token) {
			if (ours && w->token == cqe->token)
				return w;
		} else if ((w->flags & flag) && !is_private &&
			   (!any || (w == c->poller && any != self))) {
			any = w;
		}
	}
	return any;
}

/* ---- messages that wait ---- */

static struct homa_svc_item *new_item(struct homa_svc *c)
{
	struct chunk *chunk;
	int i;

	if (homa_list_empty(&c->items)) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = c->chunks;
		c->chunks = chunk;
		for (i = 0; i < CHUNK; i++)
			homa_list_add_tail(&c->items, &chunk->items[i].list);
	}
	return homa_container_of(homa_list_pop(&c->items), struct homa_svc_item,
				 list);
}

static void queue(struct homa_svc *c, struct homa_svc_item *item,
		  const struct homa_cqe *cqe)
{
	enum homa_svc_queue which = cqe->kind == HOMA_CQE_REQUEST ?
					    HOMA_SVC_REQUESTS :
					    HOMA_SVC_RESPONSES;

	item->cqe = *cqe;
	item->pool = c->att->pool;
	item->generation = c->att->generation;
	item->order = c->order++;
	if (cqe->kind != HOMA_CQE_REQUEST && (cqe->flags & HOMA_CQE_PRIVATE)) {
		homa_list_init(&item->list);
		return;
	}
	homa_list_add_tail(&c->ready[which], &item->list);
	c->ready_count++;
}

bool homa_svc_queue_again(struct homa_svc *c, struct homa_svc_item *item,
			  const struct homa_cqe *cqe, u64 order)
{
	enum homa_svc_queue which = cqe->kind == HOMA_CQE_REQUEST ?
					    HOMA_SVC_REQUESTS :
					    HOMA_SVC_RESPONSES;
	const struct homa_list *last = c->ready[which].prev;
	u64 next = c->order;

	/* Private responses are in no list, because only a receive by id may take them. */
	if (!(cqe->flags & HOMA_CQE_PRIVATE) && last != &c->ready[which] &&
	    homa_container_of(last, const struct homa_svc_item, list)->order >=
		    order)
		return false;
	if (!item)
		item = new_item(c);
	if (!item)
		return false;
	c->order = order;
	queue(c, item, cqe);
	c->order = next;
	return true;
}

static void unqueue(struct homa_svc *c, struct homa_svc_item *item)
{
	if (!homa_list_linked(&item->list))
		return;
	homa_list_del(&item->list);
	c->ready_count--;
}

/* Forget that @to can be reached, so that the next request asks homad again. */
static void unlearn(struct homa_svc *c, const struct homa_addr *to)
{
	u32 i;

	for (i = 0; i < HOMA_SHM_SQS; i++) {
		homa_gate_lock(&c->rings[i].lock);
		homa_svc_unlearn(&c->rings[i], to);
		homa_gate_unlock(&c->rings[i].lock);
	}
}

/* Free the slot if homad will say no more about the request, and the application has its
 * outcome. */
static void let_go(struct homa_svc *c, struct homa_svc_slot *slot)
{
	if (!slot->gone && slot->state == HOMA_SVC_OPEN)
		homa_svc_slot_put(c, slot);
}

/* End the waiting of all threads that wait for the request @token. */
static void end_waiters(struct homa_svc *c, u64 token)
{
	struct homa_list *node = c->waiters.next;

	while (node != &c->waiters) {
		struct homa_svc_waiter *w =
			homa_container_of(node, struct homa_svc_waiter, list);

		node = node->next;
		if (w->token == token)
			finish(c, w, NULL, -ENOENT);
	}
}

/* Our request is over. Give its outcome @cqe to a thread that waits, or keep it. */
static void respond(struct homa_svc *c, struct homa_svc_slot *slot,
		    const struct homa_cqe *cqe, struct homa_svc_waiter *self)
{
	struct homa_svc_waiter *w;
	bool crowded;

	if (cqe->kind == HOMA_CQE_FAILED) {
		c->failed++;
		if (cqe->error == EHOSTUNREACH || cqe->error == ENETUNREACH)
			unlearn(c, &slot->peer);
	}
	w = pick(c, cqe, self);
	if (likely(w != NULL)) {
		/* A thread that finds the outcome at its first look is not in @waits. */
		crowded = slot->waits > homa_list_linked(&w->list);
		fill(c, c->att->pool, c->att->generation, cqe, w->msg);
		let_go(c, slot);
		finish(c, w, self, 0);
		if (unlikely(crowded))
			end_waiters(c, cqe->token);
	} else {
		slot->state = HOMA_SVC_DONE;
		queue(c, &c->slot_items[slot - c->slots], cqe);
	}
}

void homa_svc_confirm(struct homa_svc *c, struct homa_svc_slot *slot)
{
	slot->gone = 0;
	let_go(c, slot);
}

/* Returns false if there is no memory to keep the request; then it stays in the ring. */
static bool got_request(struct homa_svc *c, const struct homa_cqe *cqe,
			struct homa_svc_waiter *self)
{
	struct homa_svc_waiter *w = pick(c, cqe, self);
	struct homa_svc_item *item = NULL;

	if (!w) {
		item = new_item(c);
		if (!item)
			return false;
	}
	own_pieces(c->att, cqe);
	c->rx_bytes += cqe->length;
	__atomic_store_n(&c->requests[cqe->token & 0xffff], cqe->token,
			 __ATOMIC_RELEASE);
	if (likely(w != NULL)) {
		fill(c, c->att->pool, c->att->generation, cqe, w->msg);
		finish(c, w, self, 0);
	} else {
		queue(c, item, cqe);
	}
	return true;
}

void homa_svc_forget(struct homa_svc *c, u64 token)
{
	struct homa_svc_slot *slot = homa_svc_slot(c, token);
	struct homa_svc_item *item;

	end_waiters(c, token);
	if (!slot || slot->state != HOMA_SVC_DONE)
		return;
	item = &c->slot_items[slot - c->slots];
	unqueue(c, item);
	homa_svc_discard(c, item->generation, &item->cqe);
	slot->state = HOMA_SVC_OPEN;
	let_go(c, slot);
}

void homa_svc_abort_slot(struct homa_svc *c, struct homa_svc_slot *slot,
			 u64 token, u32 error)
{
	slot->gone = 1;
	if (!error) {
		homa_svc_forget(c, token);
		return;
	}
	homa_svc_fail(c, slot, token, error);
}

void homa_svc_fail(struct homa_svc *c, struct homa_svc_slot *slot, u64 token,
		   u32 error)
{
	struct homa_cqe cqe = {
		.kind = HOMA_CQE_FAILED,
		.flags = slot->is_private ? HOMA_CQE_PRIVATE : 0,
		.error = error,
		.token = token,
		.cookie = slot->cookie,
	};

	respond(c, slot, &cqe, NULL);
}

/* Drop requests that nobody has taken, when homad has ended: nobody waits for an answer. */
void homa_svc_drop_requests(struct homa_svc *c)
{
	struct homa_list *node;
	u32 i;

	while ((node = homa_list_pop(&c->ready[HOMA_SVC_REQUESTS]))) {
		struct homa_svc_item *item =
			homa_container_of(node, struct homa_svc_item, list);

		c->ready_count--;
		homa_svc_discard(c, item->generation, &item->cqe);
		homa_list_add_head(&c->items, &item->list);
	}
	for (i = 0; i < HOMA_SVC_SLOTS; i++)
		if (__atomic_load_n(&c->requests[i], __ATOMIC_RELAXED))
			__atomic_store_n(&c->requests[i], 0, __ATOMIC_RELAXED);
}

/* ---- the ring ---- */

/* Handle one completion; false if it has to stay in the ring. */
static bool one(struct homa_svc *c, const struct homa_cqe *cqe,
		struct homa_svc_waiter *self)
{
	struct homa_svc_slot *slot;

	if (cqe->kind == HOMA_CQE_FREE) {
		homa_svc_long_put(c->att, cqe->num_pages, cqe->length);
		return true;
	}
	if (cqe->kind == HOMA_CQE_REQUEST)
		return got_request(c, cqe, self);
	slot = homa_svc_slot(c, cqe->token);
	if (cqe->kind == HOMA_CQE_GONE) {
		if (slot && !slot->gone)
			homa_svc_forget(c, cqe->token);
		if (slot && slot->token)
			homa_svc_confirm(c, slot);
		return true;
	}
	own_pieces(c->att, cqe);
	c->rx_bytes += cqe->length;
	if (likely(slot && slot->state == HOMA_SVC_OPEN && !slot->gone)) {
		respond(c, slot, cqe, self);
		return true;
	}
	homa_svc_discard(c, c->att->generation, cqe);
	if (slot && slot->gone)
		homa_svc_confirm(c, slot);
	return true;
}

u32 homa_svc_drain(struct homa_svc *c, struct homa_svc_waiter *self)
{
	const struct homa_svc_place *ring = &c->att->complete;
	struct homa_shm_header *h = c->att->queues;
	struct homa_cqe *first = ring->first;
	bool was_full = false;
	u32 n = 0;

	while (!self || !self->done) {
		const struct homa_cqe *cqe;

		if (c->cq_head == c->cq_tail) {
			c->cq_tail = __atomic_load_n(&ring->index->tail,
						     __ATOMIC_ACQUIRE);
			if (c->cq_head == c->cq_tail)
				break;
			was_full |= c->cq_tail - c->cq_head >= ring->entries;
		}
		cqe = &first[c->cq_head & (ring->entries - 1)];
		homa_prefetch(&first[(c->cq_head + 1) & (ring->entries - 1)]);
		if (!one(c, cqe, self))
			break;
		c->cq_head++;
		n++;
		__atomic_store_n(&ring->index->head, c->cq_head,
				 __ATOMIC_RELEASE);
	}
	if (unlikely(was_full)) {
		__atomic_store_n(&ring->index->head, c->cq_head,
				 __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&h->need_kick, __ATOMIC_SEQ_CST) &
		    HOMA_SHM_KICK_CONSUME)
			homa_svc_kick(c, c->att);
	}
	return n;
}

/* ---- messages that were kept ---- */

/* The oldest message that @flags ask for, or NULL. */
static struct homa_svc_item *oldest(struct homa_svc *c, u32 flags)
{
	static const u32 wanted[HOMA_SVC_QUEUES] = {
		[HOMA_SVC_REQUESTS] = HOMA_RECV_REQUEST,
		[HOMA_SVC_RESPONSES] = HOMA_RECV_RESPONSE,
	};
	struct homa_svc_item *best = NULL;
	int i;

	for (i = 0; i < HOMA_SVC_QUEUES; i++) {
		struct homa_svc_item *item;

		if (!(flags & wanted[i]) || homa_list_empty(&c->ready[i]))
			continue;
		item = homa_container_of(c->ready[i].next, struct homa_svc_item,
					 list);
		if (!best || item->order < best->order)
			best = item;
	}
	return best;
}

static void taken(struct homa_svc *c, struct homa_svc_slot *slot)
{
	slot->state = HOMA_SVC_OPEN;
	let_go(c, slot);
}

static void take_item(struct homa_svc *c, struct homa_svc_item *item,
		      struct homa_message *msg)
{
	unqueue(c, item);
	fill(c, item->pool, item->generation, &item->cqe, msg);
	if (item->cqe.kind == HOMA_CQE_REQUEST)
		homa_list_add_head(&c->items, &item->list);
	else
		taken(c, &c->slots[item->cqe.token & 0xffff]);
}

int homa_svc_take(struct homa_svc *c, struct homa_svc_waiter *w)
{
	struct homa_svc_slot *slot;
	struct homa_svc_item *item;

	if (w->token) {
		slot = homa_svc_slot(c, w->token);
		if (!slot || (slot->gone && slot->state != HOMA_SVC_DONE))
			return -ENOENT;
		if (slot->state != HOMA_SVC_DONE)
			return -EAGAIN;
		take_item(c, &c->slot_items[slot - c->slots], w->msg);
		return 0;
	}
	if (likely(!c->ready_count))
		return -EAGAIN;
	item = oldest(c, w->flags);
	if (!item)
		return -EAGAIN;
	take_item(c, item, w->msg);
	return 0;
}
