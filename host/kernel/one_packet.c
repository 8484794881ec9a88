// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages that came whole in one packet. The engine delivers them as it receives
 * them (homa_sock_deliver_whole()), so the softirq is done with the RPC, and the skb goes to a
 * reader as a message: what recvmsg() must say of it is in its cb. The reader
 * copies, and enters no engine. Most messages of most workloads are of this
 * kind.
 *
 * They are short, so they go before longer messages that are ready, but not for
 * ever. When many of them wait, or many packets to be copied, the engine stops doing
 * (room.c): then the way over the RPC's queue (inbox.c) applies, where a packet can be
 * refused, and a request that its client has forgotten is found out.
 *
 * To the engine the RPC of such a request is in service. It counts among the requests
 * that wait for the application, whose number is limited, until a thread has it
 * (homa_sock_taken()) or the socket closes.
 */
#include "homa_sockets.h"
#include "homa_trace.h"

/* messages that are taken in a row before a longer one's turn */
#define HOMAK_WHOLE_RUN 8u
#define HOMAK_WHOLE_PURGE 64
/* most messages that are looked at to find one to abort */
#define HOMAK_WHOLE_LOOKS (HOMAK_WHOLE_MOST + 64)

HOMAK_HOT void homak_whole_free(struct homak_sock *hsk, struct sk_buff *skb)
{
	u32 truesize = skb->truesize;

	/* Bottom halves are off, so memory is freed where packets are made. */
	napi_consume_skb(skb, 1);
	homak_room_release(hsk, truesize);
}

/* Frees such a message that the application does not get. */
static void homak_whole_drop(struct homak_sock *hsk, struct sk_buff *skb)
{
	u32 truesize = skb->truesize;

	kfree_skb_reason(skb, SKB_DROP_REASON_NO_SOCKET);
	homak_room_release(hsk, truesize);
}

/* ---- in ---- */

/* Gives page and RPC of a request back, because this socket's family cannot tell the
 * address of its peer. */
static HOMA_RARE void homak_whole_undo(struct homak_cpu *cpu,
				       struct homa_sock *engine_sock, u32 page,
				       struct homa_handle handle)
{
	homa_pool_release(&cpu->ctx, engine_sock, &page, 1);
	homa_rpc_forget(&cpu->ctx, handle);
}

static HOMA_RARE void homak_whole_trace(u8 kind, struct homa_handle handle)
{
	struct homa_event event = {
		.kind = kind,
		.handle = handle,
	};

	trace_homa_msg_ready(&event);
}

/* Hands a message to a thread that waits, or keeps it for later ones. Returns true if
 * threads in poll() have to be told. */
static HOMAK_HOT bool homak_whole_place(struct homak_cpu *cpu,
					struct homak_sock *hsk,
					struct homa_sock *engine_sock,
					struct sk_buff *skb)
{
	struct homak_waiter *waiter = homak_waiter_pick(hsk);

	if (!waiter)
		__skb_queue_tail(&hsk->messages, skb);
	homak_note_napi(hsk, skb);
	homak_room_take(hsk, engine_sock, skb);
	if (!waiter)
		return true;
	hlist_del_init(&waiter->list);
	trace_homa_handoff(homak_whole_cb(skb)->id, true, waiter->task);
	homak_host_count(cpu, HOMAK_H_host_handoffs, 1);
	waiter->skb = skb;
	homak_rouse(waiter, HOMAK_WAITED_MESSAGE);
	return false;
}

HOMAK_HOT void homak_whole_add(struct homak_cpu *cpu,
			       const struct homa_rx_pkt *pkt,
			       struct sk_buff *skb, u32 at)
{
	const struct homa_rx_message *m = &pkt->message;
	struct homak_sock *hsk = homak_sock_of(m->sock);
	struct homak_whole_cb *cb = homak_whole_cb(skb);
	bool keep = false, tell = false;

	cb->id = m->handle.id;
	cb->cookie = m->cookie;
	memcpy(cb->ip, pkt->src->ip, sizeof(cb->ip));
	cb->page = m->page;
	cb->at = at;
	cb->length = pkt->length;
	cb->encap = pkt->src->encap;
	cb->port = m->peer_port;
	if (trace_homa_msg_ready_enabled())
		homak_whole_trace(m->kind, m->handle);
	if (unlikely(m->kind == HOMA_EV_REQUEST &&
		     !homak_name_fits(hsk, pkt->src))) {
		homak_whole_undo(cpu, m->sock, m->page, m->handle);
	} else {
		spin_lock(&hsk->lock);
		/* Closing the socket ends its RPCs and frees its pages. */
		keep = !hsk->shutdown;
		if (likely(keep))
			tell = homak_whole_place(cpu, hsk, m->sock, skb);
		spin_unlock(&hsk->lock);
	}
	if (unlikely(!keep)) {
		if (m->kind == HOMA_EV_REQUEST)
			homa_sock_taken(m->sock, 1);
		kfree_skb_reason(skb, SKB_DROP_REASON_NO_SOCKET);
		return;
	}
	/* The socket's memory outlives this: SOCK_RCU_FREE. */
	if (tell)
		hsk->inet.sk.sk_data_ready(&hsk->inet.sk);
}

/* ---- out ---- */

struct sk_buff *homak_whole_take(struct homak_sock *hsk)
{
	if (unlikely(hsk->run >= HOMAK_WHOLE_RUN) && !list_empty(&hsk->ready)) {
		hsk->run = 0;
		return NULL;
	}
	hsk->run++;
	return __skb_dequeue(&hsk->messages);
}

/* The engine has given such a message away, but to the application its RPC is open until
 * the message is received. The newest is looked at first, because an application that
 * aborts has often just sent the request. Strangers may fill the list with requests, so no
 * more than the last 1,024 messages are looked at. */
bool homak_whole_abort(struct homak_cpu *cpu, struct homak_sock *hsk, u64 id,
		       bool silent)
{
	struct sk_buff_head gone;
	struct sk_buff *skb, *tmp;
	bool found = false;
	u32 page, looks = 0;

	__skb_queue_head_init(&gone);
	spin_lock(&hsk->lock);
	skb_queue_reverse_walk_safe(&hsk->messages, skb, tmp) {
		const u64 its = homak_whole_cb(skb)->id;

		if (looks++ == HOMAK_WHOLE_LOOKS)
			break;
		if (its & 1 || (id && its != id))
			continue;
		found = true;
		if (silent) {
			__skb_unlink(skb, &hsk->messages);
			__skb_queue_tail(&gone, skb);
		}
		if (id)
			break;
	}
	spin_unlock(&hsk->lock);
	while ((skb = __skb_dequeue(&gone))) {
		page = homak_whole_cb(skb)->page;
		homak_whole_drop(hsk, skb);
		homa_pool_release(&cpu->ctx, hsk->engine_sock, &page, 1);
	}
	return found;
}

bool homak_whole_purge(struct homak_sock *hsk)
{
	struct sk_buff *skb;
	int i;

	for (i = 0; i < HOMAK_WHOLE_PURGE; i++) {
		spin_lock(&hsk->lock);
		skb = __skb_dequeue(&hsk->messages);
		spin_unlock(&hsk->lock);
		if (!skb)
			return false;
		/* The account is the user's, who may have other sockets. */
		if (homak_whole_cb(skb)->id & 1)
			homa_sock_taken(hsk->engine_sock, 1);
		homak_whole_drop(hsk, skb);
	}
	return true;
}
