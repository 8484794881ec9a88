// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Complete messages: handed to a thread that waits for them, or kept until
 * one asks. A message waits inside its RPC, linked through the host's bytes
 * there, so that nothing is left over when the RPC ends in another way
 * (taken by id, aborted, given up by the client). Private RPCs wait in the
 * engine alone: only a receive by id can want them.
 */
#include <errno.h>
#include <unistd.h>
#include "embedded.h"
#include "homa_sockaddr.h"

HOMA_STATIC_ASSERT((int)HOMA_EV_REQUEST == (int)HOMA_REQUEST &&
			   (int)HOMA_EV_RESPONSE == (int)HOMA_RESPONSE &&
			   (int)HOMA_EV_FAILED == (int)HOMA_ERROR,
		   "kinds are the same");

static void ready_signal(struct homa_emb *e)
{
	u64 value = 1;

	if (e->ready_fd < 0 || e->closing ||
	    (e->ready_count > 0) == e->ready_signalled)
		return;
	/* Neither call can block or fail, because the counter is small. */
	if (e->ready_count)
		e->ready_signalled =
			write(e->ready_fd, &value, sizeof(value)) > 0;
	else
		e->ready_signalled = read(e->ready_fd, &value, sizeof(value)) < 0;
}

void homa_emb_unready(struct homa_emb *e, struct homa_emb_rpc *priv)
{
	if (!priv->ready.next || !homa_list_linked(&priv->ready))
		return;
	homa_list_del(&priv->ready);
	e->ready_count--;
	ready_signal(e);
}

/* Signals one more message to those who want a signal for each. */
static void ready_edge(struct homa_emb *e)
{
	if (e->fd_edges)
		e->ready_signalled = false;
	ready_signal(e);
}

static void fill(struct homa_emb *e, struct homa_handle handle,
		 const struct homa_msg_info *info, struct homa_message *msg)
{
	u32 *pages = (u32 *)&msg->priv[HOMA_PRIV_PAGES];
	u32 i, left = info->length;

	msg->kind = (enum homa_kind)info->kind;
	msg->error = -info->error;
	msg->id = info->id;
	msg->cookie = info->cookie; /* with a request it is the deadline */
	msg->length = info->error ? 0 : info->length;
	msg->iovcnt = (int)info->num_pages;
	for (i = 0; i < info->num_pages; i++) {
		u32 n = homa_min_u32(left, HOMA_BPAGE_SIZE);

		msg->iov[i].iov_base = e->region + info->pages[i];
		msg->iov[i].iov_len = n;
		pages[i] = info->pages[i];
		left -= n;
	}
	homa_sockaddr_from_addr(&msg->peer, &info->peer, info->peer_port);
	if (info->num_pages < HOMA_MAX_BPAGES)
		pages[info->num_pages] = HOMA_EMB_NO_PAGE;
	msg->priv[HOMA_PRIV_HOST] = handle.id;
	msg->priv[HOMA_PRIV_HOST + 1] =
		(u64)handle.generation << 32 | handle.hash;
}

/* Fills @msg with the message of @handle, or returns -EAGAIN if it is not there. */
int homa_emb_take_handle(struct homa_emb *e, struct homa_handle handle,
			 struct homa_message *msg)
{
	struct homa_msg_info info;
	int rc;

	rc = homa_rx_take(&e->ctx, handle, &info);
	if (rc)
		return -EAGAIN;
	e->received = true;
	fill(e, handle, &info, msg);
	return 0;
}

/* Returns the oldest message that @flags ask for, or NULL. */
struct homa_emb_rpc *homa_emb_oldest(struct homa_emb *e, u32 flags)
{
	static const u32 wanted[HOMA_EMB_QUEUES] = {
		[HOMA_EMB_REQUESTS] = HOMA_RECV_REQUEST,
		[HOMA_EMB_RESPONSES] = HOMA_RECV_RESPONSE,
	};
	struct homa_emb_rpc *best = NULL;
	int i;

	for (i = 0; i < HOMA_EMB_QUEUES; i++) {
		struct homa_emb_rpc *priv;

		if (!(flags & wanted[i]) || homa_list_empty(&e->ready[i]))
			continue;
		priv = homa_container_of(e->ready[i].next, struct homa_emb_rpc,
					 ready);
		if (!best || priv->order < best->order)
			best = priv;
	}
	return best;
}

static void finish(struct homa_emb *e, struct homa_emb_waiter *w, int result)
{
	w->result = result;
	w->done = true;
	homa_list_del(&w->list);
	if (w != e->poller) {
		e->counters.handoffs++;
		homa_wake_signal(&w->wake);
	} else if (e->blocked) {
		/* A call of another thread has ended this RPC, not a packet. */
		homa_emb_kick(e);
	}
}

/* Chooses who gets this message: first whoever waits for its id, then the thread that is
 * awake anyway. */
static struct homa_emb_waiter *find_waiter(struct homa_emb *e,
					   const struct homa_event *event)
{
	u32 flag = event->kind == HOMA_EV_REQUEST ? HOMA_RECV_REQUEST :
						    HOMA_RECV_RESPONSE;
	struct homa_emb_waiter *any = NULL;
	struct homa_list *node;

	for (node = e->waiters.next; node != &e->waiters; node = node->next) {
		struct homa_emb_waiter *w =
			homa_container_of(node, struct homa_emb_waiter, list);

		if (w->id) {
			if (w->id == event->handle.id)
				return w;
		} else if ((w->flags & flag) && !event->private_rpc &&
			   (!any || w == e->poller)) {
			any = w;
		}
	}
	return any;
}

void homa_emb_events(struct homa_emb *e)
{
	enum homa_emb_queue queue;
	struct homa_event event;

	while (homa_event_next(&e->ctx, &event)) {
		struct homa_emb_rpc *priv = homa_rpc_priv(event.rpc);
		struct homa_emb_waiter *w = find_waiter(e, &event);

		priv->handle = event.handle;
		if (w) {
			if (!homa_emb_take_handle(e, event.handle, w->msg))
				finish(e, w, 0);
		} else if (!event.private_rpc) {
			/* An RPC that fails may be queued as complete already. */
			homa_emb_unready(e, priv);
			homa_list_init(&priv->ready);
			priv->order = e->order++;
			queue = event.kind == HOMA_EV_REQUEST ?
					HOMA_EMB_REQUESTS :
					HOMA_EMB_RESPONSES;
			homa_list_add_tail(&e->ready[queue], &priv->ready);
			e->ready_count++;
			ready_edge(e);
		}
	}
}

/* Is told that an RPC is gone, so that whoever waits for just that one does not wait on. */
void homa_emb_gone(struct homa_emb *e, u64 id)
{
	struct homa_list *node = e->waiters.next;

	while (node != &e->waiters) {
		struct homa_emb_waiter *w =
			homa_container_of(node, struct homa_emb_waiter, list);

		node = node->next;
		if (w->id == id)
			finish(e, w, -ENOENT);
	}
}
