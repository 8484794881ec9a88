// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From the engine to readers. Packets with payload queue at their RPC; an RPC
 * with something for the application is in exactly one place: a list of its
 * socket, or with the thread that reads it. The lists are
 *
 *	ready	  shared RPCs whose message is all here, or that failed, oldest first
 *	partial	  shared ones with the beginning of a message
 *	privates  private ones with either
 *
 * (Messages that are whole in one packet need none of this: one_packet.c.)
 *
 * A thread that waits is handed an RPC at once: the newest waiter, for its cache is
 * warm, and one that still polls before one that sleeps. Bytes of a long
 * message are handed over in pieces, so that they are copied while more arrive.
 *
 * Who holds what: a queued packet pins its RPC as the engine gave it, a list holds
 * the RPC besides, and a hand-over passes the list's hold. An RPC may end while it
 * is in a list, or while it is read. Nobody looks for it then: whoever
 * comes to it finds homa_rx_take() refused and lets go. That is why a thread
 * about to sleep first reads even short beginnings, which may belong to the dead.
 */
#include "homa_sockets.h"
#include "homa_trace.h"

#define HOMAK_PURGE 64 /* most RPCs that are released in a turn */

/* ---- queues of packets (homak_sock.lock) ---- */

static void homak_queue_add(struct homak_rpc *krpc, struct sk_buff *skb)
{
	skb->next = NULL;
	if (krpc->rx_tail)
		krpc->rx_tail->next = skb;
	else
		krpc->rx_head = skb;
	krpc->rx_tail = skb;
	krpc->rx_bytes += homak_rx_cb(skb)->length;
}

static struct sk_buff *homak_queue_take(struct homak_rpc *krpc)
{
	struct sk_buff *skbs = krpc->rx_head;

	krpc->rx_head = NULL;
	krpc->rx_tail = NULL;
	krpc->rx_bytes = 0;
	return skbs;
}

static void homak_batch_take(struct homak_rpc *krpc, struct homak_batch *batch)
{
	batch->whole = krpc->whole;
	batch->over = krpc->over;
	batch->skbs = homak_queue_take(krpc);
}

/* ---- lists (homak_sock.lock) ---- */

static void homak_list_out(struct homak_sock *hsk, struct homak_rpc *krpc)
{
	if (krpc->on == HOMAK_LIST_PARTIAL)
		hsk->partial_bytes -= krpc->rx_bytes;
	list_del_init(&krpc->list);
	krpc->on = HOMAK_LIST_NONE;
}

static void homak_list_in(struct homak_sock *hsk, struct homak_rpc *krpc)
{
	if (krpc->is_private) {
		krpc->on = HOMAK_LIST_PRIVATE;
		list_add_tail(&krpc->list, &hsk->privates);
	} else if (krpc->whole || krpc->over) {
		krpc->on = HOMAK_LIST_READY;
		list_add_tail(&krpc->list, &hsk->ready);
	} else {
		krpc->on = HOMAK_LIST_PARTIAL;
		hsk->partial_bytes += krpc->rx_bytes;
		list_add_tail(&krpc->list, &hsk->partial);
	}
}

/* ---- threads (homak_sock.lock) ---- */

static void homak_hand_over(struct homak_cpu *cpu, struct homak_waiter *waiter,
			    struct homak_rpc *krpc)
{
	hlist_del_init(&waiter->list);
	krpc->on = HOMAK_LIST_READER;
	homak_batch_take(krpc, &waiter->batch);
	trace_homa_handoff(homa_rpc_handle(krpc->rpc).id, krpc->over,
			   waiter->task);
	homak_host_count(cpu, HOMAK_H_host_handoffs, 1);
	waiter->handed = krpc;
	homak_rouse(waiter, HOMAK_WAITED_RPC);
}

static void homak_wake(struct homak_waiter *waiter)
{
	hlist_del_init(&waiter->list);
	homak_rouse(waiter, HOMAK_WAITED_LOOK);
}

/* Makes all threads that wait for a private RPC look at it again. */
static void homak_wake_private(struct homak_rpc *krpc)
{
	struct homak_waiter *waiter = krpc->waiter;

	krpc->waiter = NULL;
	while (waiter) {
		struct homak_waiter *next = waiter->next;

		homak_wake(waiter);
		waiter = next;
	}
}

/* Does an RPC have enough to copy that a thread should be woken for it? */
static bool homak_ripe(const struct homak_sock *hsk, const struct homak_rpc *krpc)
{
	return krpc->whole || krpc->over || krpc->rx_bytes >= HOMAK_PIPE_BYTES ||
	       hsk->partial_bytes + krpc->rx_bytes >= HOMAK_POLL_BYTES;
}

/* Returns the waiting thread to which @krpc can be handed, or NULL. A thread that waits for
 * this RPC alone is taken out of @krpc. */
static struct homak_waiter *homak_taker(struct homak_sock *hsk,
					struct homak_rpc *krpc)
{
	struct homak_waiter *waiter;

	if (!krpc->is_private)
		return homak_waiter_pick(hsk);
	waiter = krpc->waiter;
	if (waiter)
		krpc->waiter = waiter->next;
	return waiter;
}

/*
 * Hands @krpc, which is in no list and has packets or an end to tell, to a waiting thread,
 * or puts it into a list. The caller's hold on it passes to either. True: threads in poll()
 * should be told.
 */
static bool homak_offer(struct homak_cpu *cpu, struct homak_sock *hsk,
			struct homak_rpc *krpc)
{
	struct homak_waiter *waiter = NULL;

	if (homak_ripe(hsk, krpc))
		waiter = homak_taker(hsk, krpc);
	if (waiter) {
		homak_hand_over(cpu, waiter, krpc);
		return false;
	}
	homak_list_in(hsk, krpc);
	return krpc->on == HOMAK_LIST_READY ||
	       (krpc->on == HOMAK_LIST_PARTIAL &&
		hsk->partial_bytes >= HOMAK_POLL_BYTES);
}

/* Is called when more has come of an RPC that is in a list already. */
static bool homak_offer_again(struct homak_cpu *cpu, struct homak_sock *hsk,
			      struct homak_rpc *krpc)
{
	/* An RPC that is ready stays where it is, and so does one that no thread wants
	 * yet. */
	if (krpc->on == HOMAK_LIST_READY ||
	    (krpc->on == HOMAK_LIST_PRIVATE && !krpc->waiter))
		return false;
	if (krpc->on == HOMAK_LIST_PARTIAL && !krpc->whole && !krpc->over &&
	    hlist_empty(&hsk->waiters))
		return hsk->partial_bytes >= HOMAK_POLL_BYTES;
	homak_list_out(hsk, krpc);
	return homak_offer(cpu, hsk, krpc);
}

/* ---- from the engine ---- */

/* Puts an RPC whose queue has got one more packet into the list where it belongs now. */
static bool homak_place(struct homak_cpu *cpu, struct homak_sock *hsk,
			struct homak_rpc *krpc)
{
	switch (krpc->on) {
	case HOMAK_LIST_READER:
		return false;
	case HOMAK_LIST_NONE:
		homa_rpc_hold_more(krpc->rpc);
		return homak_offer(cpu, hsk, krpc);
	default:
		return homak_offer_again(cpu, hsk, krpc);
	}
}

/* Queues a packet, whose cb is written, and wakes whoever waits for it. @whole: the message has
 * all its packets now. */
static noinline void homak_inbox_add(struct homak_cpu *cpu, struct sk_buff *skb,
				     bool whole)
{
	struct homa_rpc *rpc = homak_rx_cb(skb)->rpc;
	struct homak_sock *hsk = homak_sock_of(homa_rpc_sock(rpc));
	struct homak_rpc *krpc = homak_rpc(rpc);
	struct sock *sk = &hsk->inet.sk;
	bool tell = false, keep;

	spin_lock(&hsk->lock);
	keep = !hsk->shutdown && !krpc->gone;
	if (likely(keep)) {
		homak_note_napi(hsk, skb);
		homak_room_take(hsk, homa_rpc_sock(rpc), skb);
		if (krpc->on == HOMAK_LIST_PARTIAL)
			hsk->partial_bytes += homak_rx_cb(skb)->length;
		homak_queue_add(krpc, skb);
		krpc->whole |= whole;
		tell = homak_place(cpu, hsk, krpc);
	}
	spin_unlock(&hsk->lock);
	/* The socket's memory outlives this: SOCK_RCU_FREE. */
	if (tell)
		sk->sk_data_ready(sk);
	if (likely(keep))
		return;
	homa_rpc_release(&cpu->ctx, rpc);
	kfree_skb_reason(skb, SKB_DROP_REASON_NO_SOCKET);
}

HOMAK_HOT void homak_inbox_data(struct homak_cpu *cpu, struct homa_rx_pkt *pkt,
				struct sk_buff *skb, u32 at)
{
	*homak_rx_cb(skb) = (struct homak_rx_cb){
		.rpc = pkt->rpc,
		.offset = pkt->offset,
		.length = pkt->length,
		.fresh = pkt->fresh,
		.at = at,
	};
	pkt->rpc = NULL;
	homak_inbox_add(cpu, skb, pkt->whole);
}

void homak_inbox_event(struct homak_cpu *cpu, struct homa_event *event)
{
	struct homak_sock *hsk = homak_sock_of(event->sock);
	struct homak_rpc *krpc = homak_rpc(event->rpc);
	struct sock *sk = &hsk->inet.sk;
	bool tell = false, passed = false;

	if (event->kind == HOMA_EV_GONE) {
		homak_inbox_forget(cpu, hsk, krpc);
		homa_rpc_release(&cpu->ctx, event->rpc);
		return;
	}
	trace_homa_msg_ready(event);
	spin_lock(&hsk->lock);
	if (!hsk->shutdown) {
		krpc->over = true;
		passed = krpc->on == HOMAK_LIST_NONE;
		if (passed)
			tell = homak_offer(cpu, hsk, krpc);
		else if (krpc->on != HOMAK_LIST_READER)
			tell = homak_offer_again(cpu, hsk, krpc);
	}
	spin_unlock(&hsk->lock);
	if (tell)
		sk->sk_data_ready(sk);
	if (!passed)
		homa_rpc_release(&cpu->ctx, event->rpc);
}

/* ---- letting go ---- */

/* Frees the packets of @batch, which were copied or are dropped. */
static __always_inline void
homak_batch_end(struct homak_sock *hsk, struct homak_batch *batch, bool copied)
{
	struct sk_buff *skb = batch->skbs;
	u32 truesize = 0;

	while (skb) {
		struct sk_buff *next = skb->next;

		truesize += skb->truesize;
		skb_mark_not_on_list(skb);
		/* Bottom halves are off, so memory is freed where packets are made. */
		if (copied)
			napi_consume_skb(skb, 1);
		else
			kfree_skb_reason(skb, SKB_DROP_REASON_NO_SOCKET);
		skb = next;
	}
	batch->skbs = NULL;
	if (truesize)
		homak_room_release(hsk, truesize);
}

/* Tells the engine that the packets of @batch were not copied. The caller has entered it. */
static void homak_batch_drop(struct homak_cpu *cpu, struct homak_sock *hsk,
			     struct homak_batch *batch)
{
	struct sk_buff *skb;

	for (skb = batch->skbs; skb; skb = skb->next)
		homa_rpc_release(&cpu->ctx, homak_rx_cb(skb)->rpc);
	homak_batch_end(hsk, batch, false);
}

void homak_batch_free(struct homak_sock *hsk, struct homak_batch *batch)
{
	homak_batch_end(hsk, batch, true);
}

void homak_inbox_forget(struct homak_cpu *cpu, struct homak_sock *hsk,
			struct homak_rpc *krpc)
{
	struct homak_batch batch;
	bool listed;

	spin_lock(&hsk->lock);
	krpc->gone = true;
	listed = krpc->on != HOMAK_LIST_NONE && krpc->on != HOMAK_LIST_READER;
	if (listed)
		homak_list_out(hsk, krpc);
	batch.skbs =
		krpc->on == HOMAK_LIST_READER ? NULL : homak_queue_take(krpc);
	homak_wake_private(krpc);
	spin_unlock(&hsk->lock);
	homak_batch_drop(cpu, hsk, &batch);
	if (listed)
		homa_rpc_release(&cpu->ctx, krpc->rpc);
}

static struct homak_rpc *homak_any(struct homak_sock *hsk)
{
	struct list_head *lists[] = { &hsk->ready, &hsk->partial, &hsk->privates };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists); i++)
		if (!list_empty(lists[i]))
			return list_first_entry(lists[i], struct homak_rpc, list);
	return NULL;
}

bool homak_inbox_purge(struct homak_cpu *cpu, struct homak_sock *hsk)
{
	struct homak_batch batch;
	struct homak_rpc *krpc;
	int i;

	for (i = 0; i < HOMAK_PURGE; i++) {
		spin_lock(&hsk->lock);
		krpc = homak_any(hsk);
		if (krpc) {
			homak_list_out(hsk, krpc);
			batch.skbs = homak_queue_take(krpc);
		}
		spin_unlock(&hsk->lock);
		if (!krpc)
			return false;
		homak_batch_drop(cpu, hsk, &batch);
		homa_rpc_release(&cpu->ctx, krpc->rpc);
	}
	return true;
}

HOMAK_HOT void homak_rpc_retired(struct homak_rpc *krpc)
{
	trace_homa_rpc_end(krpc);
	WARN_ON_ONCE(krpc->rx_head || krpc->on != HOMAK_LIST_NONE);
	if (krpc->msg)
		homak_msg_over(krpc->msg);
	krpc->msg = NULL;
}

void homak_inbox_wake_all(struct homak_sock *hsk)
{
	struct homak_waiter *waiter;
	struct hlist_node *next;

	spin_lock_bh(&hsk->lock);
	hlist_for_each_entry_safe(waiter, next, &hsk->waiters, list)
		homak_wake(waiter);
	/* These threads take themselves out of the chains of their RPCs. */
	hlist_for_each_entry_safe(waiter, next, &hsk->private_waiters, list)
		homak_wake(waiter);
	spin_unlock_bh(&hsk->lock);
}

/* ---- to readers ---- */

static struct homak_rpc *homak_first(struct list_head *list)
{
	return list_first_entry_or_null(list, struct homak_rpc, list);
}

/* Takes an RPC out of its list, so that it is the caller's to read. */
static void homak_claim(struct homak_sock *hsk, struct homak_rpc *krpc,
			struct homak_waiter *waiter)
{
	homak_list_out(hsk, krpc);
	krpc->on = HOMAK_LIST_READER;
	homak_batch_take(krpc, &waiter->batch);
	waiter->handed = krpc;
	waiter->what = HOMAK_WAITED_RPC;
}

/* Finds an RPC to read in any of the lists. */
static HOMAK_HOT void homak_find(struct homak_sock *hsk,
				 struct homak_waiter *waiter)
{
	struct homak_rpc *krpc;

	waiter->skb = homak_whole_take(hsk);
	if (waiter->skb) {
		waiter->what = HOMAK_WAITED_MESSAGE;
		return;
	}
	krpc = homak_first(&hsk->ready);
	if (!krpc)
		krpc = homak_first(&hsk->partial);
	if (krpc)
		homak_claim(hsk, krpc, waiter);
}

void homak_inbox_whole(struct homak_sock *hsk, struct homak_waiter *waiter)
{
	struct homak_rpc *krpc = NULL;

	spin_lock_bh(&hsk->lock);
	if (likely(!hsk->shutdown)) {
		waiter->skb = homak_whole_take(hsk);
		if (waiter->skb)
			waiter->what = HOMAK_WAITED_MESSAGE;
		else
			krpc = homak_first(&hsk->ready);
	}
	if (krpc)
		homak_claim(hsk, krpc, waiter);
	spin_unlock_bh(&hsk->lock);
}

/* Puts packets to the beginning of an RPC's queue. */
static void homak_queue_back(struct homak_rpc *krpc, struct sk_buff *skbs)
{
	struct sk_buff *last = skbs;

	if (!skbs)
		return;
	krpc->rx_bytes += homak_rx_cb(last)->length;
	while (last->next) {
		last = last->next;
		krpc->rx_bytes += homak_rx_cb(last)->length;
	}
	last->next = krpc->rx_head;
	if (!krpc->rx_head)
		krpc->rx_tail = last;
	krpc->rx_head = skbs;
}

bool homak_inbox_unread(struct homak_sock *hsk, struct homak_rpc *krpc,
			struct homak_batch *batch)
{
	struct sk_buff *skb;
	bool parked;

	for (skb = batch->skbs; skb; skb = skb->next) {
		homa_rpc_hold_more(krpc->rpc);
		homak_rx_cb(skb)->fresh = 0;
	}
	spin_lock(&hsk->lock);
	parked = !krpc->gone && !krpc->over && !krpc->rx_head;
	homak_queue_back(krpc, batch->skbs);
	if (parked) {
		/* Whatever comes for it puts it into the list where it belongs. */
		krpc->on = HOMAK_LIST_PARTIAL;
		hsk->partial_bytes += krpc->rx_bytes;
		list_add_tail(&krpc->list, &hsk->partial);
	}
	spin_unlock(&hsk->lock);
	batch->skbs = NULL;
	return parked;
}

void homak_inbox_next(struct homak_sock *hsk, struct homak_waiter *waiter,
		      bool wait)
{
	spin_lock(&hsk->lock);
	if (unlikely(hsk->shutdown))
		waiter->what = HOMAK_WAITED_LOOK;
	else
		homak_find(hsk, waiter);
	if (wait && waiter->what == HOMAK_WAITS)
		hlist_add_head(&waiter->list, &hsk->waiters);
	spin_unlock(&hsk->lock);
}

bool homak_inbox_private(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter, bool wait)
{
	bool mine;

	spin_lock_bh(&hsk->lock);
	mine = krpc->on == HOMAK_LIST_PRIVATE && !hsk->shutdown;
	if (mine) {
		homak_claim(hsk, krpc, waiter);
	} else if (hsk->shutdown || krpc->gone) {
		waiter->what = HOMAK_WAITED_LOOK;
	} else if (wait) {
		waiter->next = krpc->waiter;
		krpc->waiter = waiter;
		hlist_add_head(&waiter->list, &hsk->private_waiters);
	}
	spin_unlock_bh(&hsk->lock);
	return mine;
}

bool homak_inbox_back(struct homak_cpu *cpu, struct homak_sock *hsk,
		      struct homak_rpc *krpc, struct homak_batch *batch,
		      bool done)
{
	struct homak_batch rest = { .skbs = NULL };
	bool again = false, hold = false;

	spin_lock(&hsk->lock);
	if (done || krpc->gone) {
		/* Packets that still come are dropped. */
		krpc->gone = true;
		rest.skbs = homak_queue_take(krpc);
		krpc->on = HOMAK_LIST_NONE;
		homak_wake_private(krpc);
	} else if (krpc->over && !batch->over) {
		again = true;
	} else if (!krpc->rx_head) {
		krpc->on = HOMAK_LIST_NONE;
	} else if (krpc->is_private || krpc->whole || list_empty(&hsk->ready)) {
		again = true;
	} else {
		/* Other RPCs are whole already and come first. */
		homak_list_in(hsk, krpc);
		hold = true;
	}
	if (again)
		homak_batch_take(krpc, batch);
	spin_unlock(&hsk->lock);
	if (rest.skbs)
		homak_batch_drop(cpu, hsk, &rest);
	if (!again && !hold)
		homa_rpc_release(&cpu->ctx, krpc->rpc);
	return again;
}
