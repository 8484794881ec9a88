// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How a message becomes the application's: its pages are handed over, a request's
 * service begins, a response ends its RPC and is acknowledged.
 *
 * Messages that are whole in one packet do that at once. Where the host says so
 * (homa_sock_deliver_whole()) such a message is the application's as soon as it is
 * received: no deadline is set for bytes that are here, the grant scheduler never
 * sees it, and the steps between arrival, copy and taking fall away. The host
 * copies the payload to its page afterwards; nobody but the application looks
 * there. A request counts as waiting for the application until the host says that
 * it has it (homa_sock_taken()), also when its client has aborted it meanwhile.
 */
#include "homa_busy.h"
#include "homa_owner.h"
#include "homa_rx.h"

void homa_sock_deliver_whole(struct homa_sock *sock, enum homa_whole which)
{
	HOMA_WRITE_ONCE(sock->deliver_whole, (u8)which);
}

void homa_sock_refuse(struct homa_sock *sock, bool refuse)
{
	HOMA_WRITE_ONCE(sock->refuse, refuse);
}

void homa_sock_taken(struct homa_sock *sock, u32 requests)
{
	homa_backlog_add(sock, -(u64)requests);
}

static void homa_fill_info(struct homa_rpc *rpc, struct homa_msg_info *info)
{
	info->error = 0;
	info->length = 0;
	info->num_pages = 0;
	info->id = rpc->id;
	info->cookie = rpc->cookie; /* with a request it is the deadline */
	info->peer = rpc->peer->addr;
	info->peer_port = rpc->dport;
	if (rpc->state == HOMA_RPC_FAILED) {
		info->kind = HOMA_EV_FAILED;
		info->error = rpc->error;
		return;
	}
	info->kind = homa_rpc_is_client(rpc) ? HOMA_EV_RESPONSE : HOMA_EV_REQUEST;
	info->length = rpc->in.length;
	if (rpc->flags & HOMA_RPC_OWN_PAGES) {
		info->num_pages = rpc->num_pages;
		memcpy(info->pages, rpc->pages,
		       rpc->num_pages * sizeof(rpc->pages[0]));
		rpc->flags &= 0xff ^ HOMA_RPC_OWN_PAGES;
	}
}

HOMA_HOT void homa_rpc_serve(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->state = HOMA_RPC_IN_SERVICE;
	rpc->flags |= HOMA_RPC_EXECUTED;
	homa_busy_over(rpc);
	homa_wheel_leave(&rpc->shard->wheel, &rpc->timer);
	homa_count(ctx, HOMA_M_requests_received, 1);
}

void homa_rpc_end(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (rpc->state == HOMA_RPC_READY) {
		homa_peer_add_ack(ctx, rpc);
		homa_count(ctx, HOMA_M_responses_taken, 1);
	}
	homa_rpc_kill(ctx, rpc);
}

void homa_rpc_deliver(struct homa_ctx *ctx, struct homa_rpc *rpc,
		      struct homa_msg_info *info)
{
	homa_fill_info(rpc, info);
	if (homa_rpc_is_client(rpc)) {
		homa_rpc_end(ctx, rpc);
		return;
	}
	homa_rpc_serve(ctx, rpc);
	homa_sock_taken(rpc->sock, 1);
}

/* ---- in one packet ---- */

HOMA_HOT bool homa_rx_deliver_whole(struct homa_ctx *ctx, struct homa_rpc *rpc,
				    struct homa_rx_pkt *pkt)
{
	struct homa_rx_message *m = &pkt->message;
	u8 which = HOMA_READ_ONCE(rpc->sock->deliver_whole);

	/* The whole message has come once already, and another caller copies it now. */
	if (rpc->in.received || !which || !(rpc->flags & HOMA_RPC_OWN_PAGES) ||
	    (rpc->flags & HOMA_RPC_FOR_ONE && which != HOMA_WHOLE_ALL))
		return false;
	/* The host names the packet's sender as the peer. */
	if (homa_rpc_is_client(rpc) &&
	    unlikely(!homa_addr_equal(pkt->src, &rpc->peer->addr)))
		return false;
	homa_count(ctx, HOMA_M_rx_fresh_bytes, rpc->in.length);
	homa_prio_saw(ctx, rpc->in.length);
	/* After a START_MSG the grant scheduler has the message, and reads this. */
	HOMA_WRITE_ONCE(rpc->in.received, rpc->in.length);
	rpc->copied = rpc->in.length;
	rpc->flags &= 0xff ^ HOMA_RPC_OWN_PAGES;
	/*
	 * A START_MSG may have come before: the message leaves the grant scheduler's
	 * heap first, whose node that of the messages that wait for pages is as well.
	 */
	homa_grant_remove(ctx, rpc);
	if (rpc->flags & HOMA_RPC_HOLDING)
		homa_rpc_complete(rpc);
	pkt->verdict = HOMA_RX_MESSAGE;
	pkt->skip = HOMA_DATA_HDR;
	pkt->offset = 0;
	pkt->length = rpc->in.length;
	pkt->fresh = rpc->in.length;
	pkt->whole = true;
	m->sock = rpc->sock;
	m->handle = homa_rpc_handle(rpc);
	m->rpc = rpc;
	m->cookie = rpc->cookie; /* with a request it is the deadline */
	m->page = rpc->pages[0];
	m->peer_port = rpc->dport;
	m->kind = HOMA_EV_REQUEST;
	if (!homa_rpc_is_client(rpc)) {
		homa_rpc_serve(ctx, rpc);
		return true;
	}
	m->kind = HOMA_EV_RESPONSE;
	homa_peer_add_ack(ctx, rpc);
	homa_count(ctx, HOMA_M_responses_taken, 1);
	homa_rpc_over(ctx, rpc);
	return true;
}
