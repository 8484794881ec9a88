// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a recvmsg() brings goes to the thread that waits for just this, else to the
 * thread that received it, else to another that waits, else into a list until a thread
 * asks. Cookies of our RPCs are never 0. So a cookie shows that a message belongs to one,
 * and that recvmsg() failed because an RPC did.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "homa_sockaddr.h"
#include "backend_kernel.h"

/* The most messages that one call of homa_ksock_pull() receives. */
#define PULLS 64

HOMA_STATIC_ASSERT(sizeof(((struct homa_message *)0)->iov) / sizeof(struct iovec) ==
			   HOMA_MAX_BPAGES,
		   "one piece per page");

void homa_ksock_nudge(struct homa_ksock *c)
{
	u64 value = 1;

	/* This fails only if the counter is full, and then the descriptor is readable. */
	if (write(c->nudge_fd, &value, sizeof(value)) < 0)
		return;
}

/* ---- into the application's message ---- */

static void fill_peer(const struct homa_ksock_got *got, struct homa_message *msg)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&msg->peer;

	if (got->from.sin6_family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&got->from.sin6_addr)) {
		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = got->from.sin6_port;
		memcpy(&in->sin_addr, got->from.sin6_addr.s6_addr + 12, 4);
		return;
	}
	memcpy(&msg->peer, &got->from, sizeof(got->from));
	/* Clear the flow label, which might be taken for a UDP port. */
	homa_sockaddr_set_encap((struct sockaddr *)&msg->peer, 0);
}

static void fill_pieces(struct homa_ksock *c, const struct homa_ksock_got *got,
			struct homa_message *msg)
{
	u32 *pages = (u32 *)&msg->priv[HOMA_PRIV_PAGES];
	size_t left = got->length;
	u32 i;

	msg->length = got->length;
	msg->iovcnt = (int)got->args.num_bpages;
	for (i = 0; i < got->args.num_bpages; i++) {
		size_t n = left < HOMA_BPAGE_SIZE ? left : HOMA_BPAGE_SIZE;

		pages[i] = got->args.bpage_offsets[i];
		msg->iov[i].iov_base = c->region + pages[i];
		msg->iov[i].iov_len = n;
		left -= n;
	}
}

void homa_ksock_fill(struct homa_ksock *c, const struct homa_ksock_got *got,
		     const struct homa_ksock_slot *slot, struct homa_message *msg)
{
	fill_pieces(c, got, msg);
	c->rx_bytes += got->length;
	msg->error = -got->error;
	if (!slot) {
		msg->kind = HOMA_REQUEST;
		msg->id = got->args.id;
		msg->cookie = 0;
		fill_peer(got, msg);
		msg->priv[HOMA_PRIV_HOST] = homa_ksock_asked(c);
		return;
	}
	msg->kind = got->error ? HOMA_ERROR : HOMA_RESPONSE;
	msg->id = slot->token << 1;
	msg->cookie = slot->cookie;
	c->failed += got->error != 0;
	if (got->error)
		msg->peer = slot->peer;
	else
		fill_peer(got, msg);
}

/* ---- waiting threads ---- */

static void finish(struct homa_ksock *c, struct homa_ksock_waiter *w,
		   struct homa_ksock_waiter *self, int result)
{
	w->result = result;
	w->done = true;
	homa_list_del(&w->list);
	if (w == self)
		return;
	c->counters.handoffs++;
	if (w == c->poller && c->sleeping)
		homa_ksock_nudge(c);
	else
		homa_wake_signal(&w->wake);
}

/* Choose the thread that gets a message: one that waits for its token, or one that is awake. */
static struct homa_ksock_waiter *pick(struct homa_ksock *c, u64 token, u32 flag,
				      struct homa_ksock_waiter *self)
{
	struct homa_ksock_waiter *any = NULL;
	struct homa_list *node;

	if (self && !self->done &&
	    (self->token ? self->token == token : self->flags & flag))
		any = self;
	for (node = c->waiters.next; node != &c->waiters; node = node->next) {
		struct homa_ksock_waiter *w =
			homa_container_of(node, struct homa_ksock_waiter, list);

		if (w->direct)
			continue;
		if (w->token && w->token == token)
			return w;
		if (!any && !w->token && (w->flags & flag))
			any = w;
	}
	return any;
}

static void discard(struct homa_ksock *c, const struct homa_ksock_got *got)
{
	homa_ksock_release_pages(c, got->args.bpage_offsets,
				 got->args.num_bpages);
}

static void keep(struct homa_ksock *c, const struct homa_ksock_got *got,
		 struct homa_ksock_slot *slot)
{
	struct homa_ksock_item *item;

	item = slot ? homa_ksock_item(c, slot) : malloc(sizeof(*item));
	if (!item) {
		/* There is no memory. To the sender it is as if the server never answered. */
		discard(c, got);
		return;
	}
	homa_ksock_fill(c, got, slot, &item->msg);
	if (slot)
		slot->done = true;
	homa_list_add_tail(&c->ready, &item->list);
	c->counters.queued++;
	homa_ksock_fd_touch(c);
}

void homa_ksock_deliver(struct homa_ksock *c, const struct homa_ksock_got *got,
			struct homa_ksock_waiter *self)
{
	u64 token = got->args.completion_cookie;
	struct homa_ksock_slot *slot = homa_ksock_slot(c, token);
	struct homa_ksock_waiter *w;

	if (token && (!slot || slot->gone)) {
		discard(c, got);
		if (slot)
			homa_ksock_slot_put(c, slot);
		return;
	}
	w = pick(c, token, slot ? HOMA_RECV_RESPONSE : HOMA_RECV_REQUEST, self);
	if (unlikely(!w)) {
		keep(c, got, slot);
		return;
	}
	homa_ksock_fill(c, got, slot, w->msg);
	if (slot)
		homa_ksock_slot_put(c, slot);
	finish(c, w, self, 0);
}

int homa_ksock_pull(struct homa_ksock *c, struct homa_ksock_waiter *self)
{
	struct homa_ksock_got got;
	int rc, n = 0;

	while (n < PULLS && !(self && self->done)) {
		rc = homa_ksock_recv(c, 0, MSG_DONTWAIT, &got);
		if (rc)
			return n ? n : rc;
		homa_ksock_deliver(c, &got, self);
		n++;
	}
	return n;
}

void homa_ksock_drain(struct homa_ksock *c)
{
	int n = 0;

	if (!c->direct && !homa_ksock_error(c))
		n = homa_ksock_pull(c, NULL);
	if (n > 0)
		c->counters.progress_rounds += (u64)n;
}

/* ---- messages that were kept ---- */

static struct homa_ksock_item *oldest(struct homa_ksock *c, u32 flags)
{
	struct homa_list *node;

	for (node = c->ready.next; node != &c->ready; node = node->next) {
		struct homa_ksock_item *item =
			homa_container_of(node, struct homa_ksock_item, list);

		if (flags & (item->msg.kind == HOMA_REQUEST ? HOMA_RECV_REQUEST :
							      HOMA_RECV_RESPONSE))
			return item;
	}
	return NULL;
}

static void take_item(struct homa_ksock *c, struct homa_ksock_item *item,
		      struct homa_message *msg)
{
	*msg = item->msg;
	homa_list_del(&item->list);
	if (msg->kind == HOMA_REQUEST)
		free(item);
	else
		homa_ksock_slot_put(c, &c->slots[item - c->items]);
	homa_ksock_fd_touch(c);
}

int homa_ksock_take(struct homa_ksock *c, struct homa_ksock_waiter *w)
{
	struct homa_ksock_item *item;
	struct homa_ksock_slot *slot;

	if (w->token) {
		slot = homa_ksock_slot(c, w->token);
		if (!slot || slot->gone)
			return -ENOENT;
		if (!slot->done)
			return -EAGAIN;
		item = homa_ksock_item(c, slot);
	} else {
		item = oldest(c, w->flags);
		if (likely(!item))
			return -EAGAIN;
	}
	take_item(c, item, w->msg);
	return 0;
}

void homa_ksock_forget(struct homa_ksock *c, struct homa_ksock_slot *slot)
{
	struct homa_ksock_item *item = homa_ksock_item(c, slot);
	struct homa_list *node = c->waiters.next;

	while (node != &c->waiters) {
		struct homa_ksock_waiter *w =
			homa_container_of(node, struct homa_ksock_waiter, list);

		node = node->next;
		if (w->token == slot->token)
			finish(c, w, NULL, -ENOENT);
	}
	if (slot->done) {
		homa_ksock_release(c, &item->msg);
		homa_list_del(&item->list);
		homa_ksock_fd_touch(c);
	}
	homa_ksock_slot_put(c, slot);
}
