// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets in. A batch is decoded once; acks are handled first because they
 * free memory for what follows, then each packet under its RPC's shard lock,
 * which is kept while consecutive packets stay in one shard (a long message,
 * or a host with a single shard). This file finds or makes the RPC and deals
 * with DATA; homa_rx_ctrl.c has one function per control packet.
 */
#include "homa_busy.h"
#include "homa_life.h"
#include "homa_owner.h"
#include "homa_rx.h"

static const u16 homa_wire_drops[HOMA_WIRE_ERROR_LIMIT] = {
	[HOMA_WIRE_SHORT] = HOMA_M_drop_short,
	[HOMA_WIRE_TYPE] = HOMA_M_drop_type,
	[HOMA_WIRE_LENGTH] = HOMA_M_drop_length,
	[HOMA_WIRE_OFFSET] = HOMA_M_drop_offset,
	[HOMA_WIRE_EMPTY] = HOMA_M_drop_empty,
	[HOMA_WIRE_COUNT] = HOMA_M_drop_count,
};

static HOMA_HOT void homa_rx_drop(struct homa_ctx *ctx, struct homa_rx_pkt *pkt,
				  enum homa_metric reason)
{
	pkt->verdict = HOMA_RX_DROP;
	pkt->reason = (u16)reason;
	homa_count(ctx, reason, 1);
}

/* Notes that the peer has just said something about this RPC. */
static void homa_rx_heard(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->heard_at = ctx->now;
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
}

/* ---- the first packet of a message ---- */

/* Begins an incoming message of @length bytes, of which @granted may come; false: it is too
 * long. */
static HOMA_HOT bool homa_rx_begin(struct homa_ctx *ctx,
				   const struct homa_rx_in *in,
				   struct homa_rpc *rpc, u32 length, u32 granted)
{
	if (length > ctx->engine->params.max_message_length)
		return false;
	rpc->in.length = length;
	if (!homa_rpc_find_pages(ctx, rpc, in->start, in->end)) {
		rpc->in.length = 0;
		return false;
	}
	rpc->state = HOMA_RPC_INCOMING;
	rpc->in.birth = rpc->birth;
	rpc->fresh_at = ctx->now;
	if (rpc->flags & HOMA_RPC_NO_BUFFER) {
		homa_count(ctx, HOMA_M_buffer_waits, 1);
		return true;
	}
	HOMA_WRITE_ONCE(rpc->in.granted, homa_min_u32(granted, length));
	/* One packet that is here needs no grant. */
	if (!in->whole || length > HOMA_READ_ONCE(in->link->mtu))
		homa_grant_add(ctx, rpc);
	return true;
}

/* Does what comes before the response to one of our requests begins. */
static HOMA_HOT void homa_rx_answered(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u64 first = HOMA_READ_ONCE(rpc->out.first_at);

	if (first && rpc->out.length <= rpc->out.send.packet && !rpc->probes)
		homa_link_rtt_sample(ctx, rpc->link, homa_since(ctx->now, first));
	homa_out_cancel(ctx, rpc);
}

/* Returns 0 if this packet may start an RPC here, else the reason to drop it. */
static u16 homa_rx_admit(struct homa_ctx *ctx, const struct homa_sock *sock,
			 bool doubtful)
{
	if (doubtful)
		return HOMA_M_drop_restart;
	if (!ctx->spare_rpc)
		return HOMA_M_drop_no_rpc;
	return homa_owner_admit(ctx->engine, sock);
}

static bool homa_peer_admit(struct homa_ctx *ctx, const struct homa_sock *sock,
			    struct homa_peer *peer)
{
	/* Two CPUs that look at once may both go on (homa_owner.c). */
	if (HOMA_READ_ONCE(peer->server_rpcs) >=
	    homa_peer_share(ctx->engine, sock))
		return false;
	homa_counter_add32(&peer->server_rpcs, 1);
	return true;
}

static void homa_peer_unadmit(struct homa_peer *peer)
{
	homa_counter_add32(&peer->server_rpcs, (u32)-1);
}

/* Sets the deadline at which the sender is asked if nothing more has come. */
static void homa_rx_arm(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_rpc_arm(rpc,
		     ctx->now + HOMA_READ_ONCE(rpc->link->derived.resend_ns));
}

/* Makes the RPC of a request that is new here. NULL: it does not begin, and @pkt has its
 * verdict. */
static HOMA_HOT struct homa_rpc *homa_rx_request(struct homa_ctx *ctx,
						 const struct homa_rx_in *in,
						 struct homa_rx_pkt *pkt,
						 const struct homa_hdr *hdr,
						 bool retransmit)
{
	u64 id = hdr->sender_id ^ 1;
	struct homa_sock *sock;
	struct homa_peer *peer = NULL;
	struct homa_once *once = NULL;
	struct homa_rpc *rpc = NULL;
	u16 reason;

	sock = homa_sock_find(ctx->engine, hdr->dport);
	if (sock && unlikely(!homa_sock_sole(sock, &ctx->heard_at)))
		sock = homa_sock_choose(ctx, sock, hdr->dport, pkt->src);
	if (!sock || !homa_sock_serves(sock, pkt->src)) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_no_listener);
		pkt->verdict = HOMA_RX_NO_LISTENER;
		goto out;
	}
	peer = homa_peer_get(ctx, in->link, pkt->src, HOMA_PEER_STRANGER);
	if (!peer) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_no_peer);
		goto out;
	}
	if (unlikely(homa_life_other(ctx->engine, pkt->data))) {
		if (!in->start)
			homa_rx_other_life(ctx, in->link, pkt->src,
					   hdr->sender_id, hdr->sport,
					   hdr->dport);
		homa_rx_drop(ctx, pkt, HOMA_M_drop_life);
		goto out;
	}
	reason = homa_rx_admit(ctx, sock,
			       retransmit && homa_life_doubts(ctx, in->link,
							      pkt->data));
	if (reason) {
		homa_rx_drop(ctx, pkt, reason);
		goto out;
	}
	if (!homa_peer_admit(ctx, sock, peer)) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_peer_limit);
		goto out;
	}
	reason = homa_once_begin(ctx, in->link, peer, id, in->whole, &once);
	if (reason) {
		homa_peer_unadmit(peer);
		homa_rx_drop(ctx, pkt, reason);
		goto out;
	}
	rpc = homa_rpc_create(ctx, in->shard, sock, peer, in->link, id,
			      in->hash, hdr->sport, 0);
	if (rpc) {
		rpc->once = once;
		/* the socket may have moved to another port since */
		rpc->sport = hdr->dport;
		ctx->rx_rpc = rpc;
		if (!in->whole)
			homa_rx_arm(ctx, rpc);
		sock = NULL;
		peer = NULL;
	} else {
		if (once)
			homa_once_end(ctx, in->link, peer, id, once, false);
		homa_peer_unadmit(peer);
		homa_rx_drop(ctx, pkt, HOMA_M_drop_no_rpc);
	}
out:
	if (sock)
		homa_sock_put(sock);
	if (peer)
		homa_peer_put(ctx, peer);
	return rpc;
}

static inline struct homa_rpc *homa_rx_goes_on(struct homa_ctx *ctx,
					       struct homa_rpc *rpc)
{
	homa_rx_heard(ctx, rpc);
	if (unlikely(homa_is_patient(rpc)))
		homa_patience_ends(ctx, rpc);
	return rpc;
}

/* The server's application rejects our request: the RPC ends as with a response, but the
 * payload, one byte that means nothing, is copied nowhere. */
static void homa_rx_rejected(struct homa_ctx *ctx, struct homa_rpc *rpc, int error)
{
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
	homa_count(ctx, HOMA_M_rpcs_rejected, 1);
	homa_peer_add_ack(ctx, rpc);
	homa_rpc_fail(ctx, rpc, error);
}

/* Finds or makes the RPC of a DATA or START_MSG that is the first of its message, which has
 * @length bytes, or drops a packet that makes no sense. @data NULL: it is a START_MSG. */
static HOMA_HOT struct homa_rpc *
homa_rx_first(struct homa_ctx *ctx, const struct homa_rx_in *in,
	      struct homa_rx_pkt *pkt, const struct homa_hdr *hdr,
	      const struct homa_data *data, u32 length)
{
	u32 granted = data ? homa_max_u32(data->incoming, in->end) : 0;
	bool from_client = !(hdr->sender_id & 1);
	struct homa_rpc *rpc = ctx->rx_rpc;
	bool begins = false, begun;

	if (!rpc && from_client) {
		rpc = homa_rx_request(ctx, in, pkt, hdr,
				      data && data->retransmit);
		if (!rpc)
			return NULL;
		begins = true;
	} else if (!rpc) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_unknown_rpc);
		return NULL;
	} else if (!homa_rx_fits(rpc, hdr)) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_ports);
		return NULL;
	} else if (!from_client && rpc->state == HOMA_RPC_OUTGOING) {
		if (!homa_life_same(rpc, pkt->data)) {
			homa_rx_drop(ctx, pkt, HOMA_M_drop_life);
			return NULL;
		}
		if (data && unlikely(data->error)) {
			homa_rx_rejected(ctx, rpc, data->error);
			return NULL;
		}
		homa_rx_answered(ctx, rpc);
		begins = true;
	}
	begun = !begins || homa_rx_begin(ctx, in, rpc, length, granted);
	/* An RPC that failed before its response began has no length. */
	if (!begun || (rpc->in.length && rpc->in.length != length)) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_length);
		if (!begun && from_client)
			homa_rpc_kill(ctx, rpc);
		else if (!begun)
			homa_rpc_fail(ctx, rpc, HOMA_ENOBUFS);
		return NULL;
	}
	if (rpc->state == HOMA_RPC_INCOMING)
		return homa_rx_goes_on(ctx, rpc);
	homa_rx_heard(ctx, rpc);
	homa_rx_drop(ctx, pkt,
		     rpc->state == HOMA_RPC_FAILED ? HOMA_M_drop_state :
						     HOMA_M_rx_duplicates);
	return NULL;
}

/* Finds the RPC of a DATA or START_MSG, and makes it ready to take bytes. */
static inline HOMA_HOT struct homa_rpc *
homa_rx_incoming(struct homa_ctx *ctx, const struct homa_rx_in *in,
		 struct homa_rx_pkt *pkt, const struct homa_hdr *hdr,
		 const struct homa_data *data, u32 length)
{
	struct homa_rpc *rpc = ctx->rx_rpc;

	if (likely(rpc && rpc->state == HOMA_RPC_INCOMING &&
		   rpc->in.length == length && homa_rx_fits(rpc, hdr)))
		return homa_rx_goes_on(ctx, rpc);
	return homa_rx_first(ctx, in, pkt, hdr, data, length);
}

/* ---- DATA ---- */

/* Tells the sender which cutoffs it should use, at most once a millisecond. */
static void homa_rx_cutoffs_stale(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u32 now = (u32)homa_div64(ctx->now, 1000000);
	struct homa_peer *peer = rpc->peer;
	struct homa_ctrl *ctrl;
	bool due;

	homa_lock(&peer->lock);
	due = peer->cutoffs_sent_ms != now;
	peer->cutoffs_sent_ms = now;
	homa_unlock(&peer->lock);
	if (!due)
		return;
	ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_CUTOFFS);
	homa_lock(&prio->lock);
	memcpy(ctrl->cutoffs, prio->cutoffs, sizeof(ctrl->cutoffs));
	ctrl->num = prio->version;
	homa_unlock(&prio->lock);
}

/* Notes how long the client waits. Several packets may say so; the earliest end counts, as
 * that packet was under way for the shortest time. */
HOMA_RARE static void homa_rx_left(const struct homa_ctx *ctx,
				   struct homa_rpc *rpc, u16 left)
{
	u64 deadline = ctx->now + homa_left_ns(left);

	if (!homa_rpc_is_client(rpc) &&
	    (!rpc->deadline || deadline < rpc->deadline))
		rpc->deadline = deadline;
}

/* Notes what the client says about the response that it wants. */
static void homa_rx_wishes(const struct homa_ctx *ctx, struct homa_rpc *rpc,
			   const struct homa_data *d)
{
	if (unlikely(d->left))
		homa_rx_left(ctx, rpc, d->left);
	if (d->resp_limit_kib)
		rpc->resp_limit_kib = d->resp_limit_kib;
	if (d->may_reject && !homa_rpc_is_client(rpc))
		rpc->out.may_reject = 1;
}

static HOMA_HOT void homa_rx_data(struct homa_ctx *ctx, struct homa_rx_in *in,
				  struct homa_rx_pkt *pkt,
				  const struct homa_hdr *hdr,
				  const struct homa_data *d)
{
	u32 end = d->offset + d->payload_len;
	u32 fresh_start, fresh_end, gaps;
	struct homa_rpc *rpc;
	int fresh;

	homa_count(ctx, HOMA_M_rx_data, 1);
	homa_count(ctx, HOMA_M_rx_bytes, d->payload_len);
	if (d->retransmit)
		homa_count(ctx, HOMA_M_rx_retransmits, 1);
	in->start = d->offset;
	in->end = end;
	in->whole = d->payload_len == d->length;
	rpc = homa_rx_incoming(ctx, in, pkt, hdr, d, d->length);
	if (!rpc)
		return;
	if (d->wishes)
		homa_rx_wishes(ctx, rpc, d);
	if (unlikely(d->cutoff_version !=
		     HOMA_READ_ONCE(ctx->engine->prio.version)))
		homa_rx_cutoffs_stale(ctx, rpc);
	if (in->whole) {
		if (homa_rx_deliver_whole(ctx, rpc, pkt))
			return;
		if (!homa_wheel_linked(&rpc->timer))
			homa_rx_arm(ctx, rpc);
	}
	if (unlikely(HOMA_READ_ONCE(rpc->sock->refuse) ||
		     (homa_rpc_lacks(rpc, d->offset, end) &&
		      !homa_rpc_more_pages(ctx, rpc, d->offset, end)))) {
		homa_rx_drop(ctx, pkt, HOMA_M_drop_no_buffer);
		return;
	}
	gaps = rpc->ranges.gaps;
	fresh = homa_ranges_add(&rpc->ranges, d->offset, end, &ctx->spare_range,
				&fresh_start, &fresh_end);
	if (unlikely(rpc->ranges.gaps != gaps)) {
		if (!d->retransmit)
			homa_rpc_gaps(ctx, rpc, rpc->ranges.gaps > gaps, end);
		ctx->spare_ranges -= rpc->ranges.gaps - gaps;
		homa_counter_add(&rpc->sock->gaps, (u64)rpc->ranges.gaps - gaps);
	}
	if (unlikely(fresh <= 0)) {
		homa_rx_drop(ctx, pkt,
			     fresh ? HOMA_M_drop_no_range : HOMA_M_rx_duplicates);
		return;
	}
	homa_count(ctx, HOMA_M_rx_fresh_bytes, (u32)fresh);
	rpc->fresh_at = ctx->now;
	homa_grant_received(ctx, rpc, (u32)fresh);
	if (unlikely(d->retransmit))
		homa_rpc_repaired(ctx, rpc, fresh_end);
	if (unlikely(rpc->flags & HOMA_RPC_NO_BUFFER))
		homa_rpc_speaks(ctx, rpc);
	homa_ref_get(&rpc->refs);
	pkt->verdict = HOMA_RX_DATA;
	pkt->rpc = rpc;
	pkt->skip = HOMA_DATA_HDR + fresh_start - d->offset;
	pkt->offset = fresh_start;
	pkt->length = fresh_end - fresh_start;
	pkt->fresh = (u32)fresh;
	pkt->whole = rpc->in.received == rpc->in.length;
}

static HOMA_RARE void homa_rx_start(struct homa_ctx *ctx, struct homa_rx_in *in,
				    struct homa_rx_pkt *pkt,
				    const struct homa_packet *p)
{
	struct homa_rpc *rpc;

	homa_count(ctx, HOMA_M_rx_start, 1);
	in->start = 0;
	in->end = 1;
	in->whole = false;
	rpc = homa_rx_incoming(ctx, in, pkt, &p->hdr, NULL, p->start.length);
	if (rpc && rpc->flags & HOMA_RPC_NO_BUFFER)
		homa_rpc_speaks(ctx, rpc);
}

/* ---- the batch ---- */

/* Checks what the decoder said of a packet, and the fields that all packets have; false: the
 * packet has its verdict. */
static HOMA_INLINE bool homa_rx_decoded(struct homa_ctx *ctx,
					struct homa_rx_pkt *pkt,
					const struct homa_hdr *hdr, int err)
{
	pkt->verdict = HOMA_RX_CONTROL;
	pkt->rpc = NULL;
	if (unlikely(err)) {
		homa_rx_drop(ctx, pkt, homa_wire_drops[-err]);
		return false;
	}
	/* Ids begin with 2; 0 means "any" to applications. But older homads ask with 1
	 * whether a host is there, and need an answer. */
	if (unlikely(!hdr->sport || !hdr->dport ||
		     (hdr->sender_id < 2 &&
		      (hdr->type != HOMA_NEED_ACK || !hdr->sender_id)))) {
		homa_rx_drop(ctx, pkt,
			     hdr->type == HOMA_FREEZE ? HOMA_M_drop_freeze :
							HOMA_M_drop_id);
		return false;
	}
	return true;
}

/* Takes in the ack that rides on DATA; no lock is held. It can wait, because ending an RPC must
 * not delay answering another. */
static HOMA_HOT void homa_rx_put_off(struct homa_ctx *ctx,
				     const struct homa_addr *src,
				     const struct homa_ack *ack)
{
	struct homa_owed *put;

	if (unlikely(ctx->num_acks == HOMA_CTX_ACKS))
		homa_rx_owed(ctx);
	put = &ctx->acks[ctx->num_acks++];
	put->peer = *src;
	put->server_port = ack->server_port;
	put->client_id = ack->client_id;
}

static inline void homa_rx_unlock(struct homa_ctx *ctx, struct homa_rx_in *in)
{
	ctx->rx_rpc = NULL;
	if (in->shard)
		homa_unlock(&in->shard->lock);
	in->shard = NULL;
}

/*
 * Locks the shard that @hdr's RPC belongs to, and finds the RPC. Packets come in trains:
 * most are about the RPC of the one before, which is not looked for again.
 */
static HOMA_INLINE void homa_rx_look_up(struct homa_ctx *ctx,
					struct homa_rx_in *in,
					const struct homa_hdr *hdr,
					const struct homa_addr *src)
{
	u64 id = hdr->sender_id ^ 1;
	struct homa_shard *shard;

	if (ctx->rx_rpc && homa_rx_about(ctx->rx_rpc, hdr, src))
		return;
	in->hash = homa_rpc_hash(ctx, id, src);
	shard = homa_shard_at(ctx->engine, in->hash);
	if (shard != in->shard) {
		homa_rx_unlock(ctx, in);
		homa_lock(&shard->lock);
		in->shard = shard;
	}
	ctx->rx_rpc = homa_rpc_find(shard, in->hash, id, id & 1 ? src : NULL);
}

static inline bool homa_rx_is(const struct homa_rx_pkt *pkt, u8 type)
{
	return pkt->len >= HOMA_COMMON_HDR && homa_peek_type(pkt->data) == type;
}

/* Takes one DATA packet; the locked shard in @in may be another one afterwards. What is decoded
 * is given to inlined functions only, so that the compiler keeps it in registers. */
static HOMA_HOT void homa_rx_one_data(struct homa_ctx *ctx, struct homa_rx_in *in,
				      struct homa_rx_pkt *pkt)
{
	struct homa_hdr hdr HOMA_NOINIT;
	struct homa_data d HOMA_NOINIT;
	int err = homa_data_decode(&hdr, &d, pkt->data, pkt->len);

	if (!homa_rx_decoded(ctx, pkt, &hdr, err))
		return;
	if (d.ack.client_id) {
		homa_rx_unlock(ctx, in);
		homa_rx_put_off(ctx, pkt->src, &d.ack);
	}
	homa_rx_look_up(ctx, in, &hdr, pkt->src);
	homa_rx_data(ctx, in, pkt, &hdr, &d);
}

/* Does the same for a packet of any other type. */
static void homa_rx_one_other(struct homa_ctx *ctx, struct homa_rx_in *in,
			      struct homa_rx_pkt *pkt)
{
	struct homa_packet p HOMA_NOINIT;
	int err = homa_packet_decode(&p, pkt->data, pkt->len);

	if (!homa_rx_decoded(ctx, pkt, &p.hdr, err))
		return;
	if (p.hdr.type == HOMA_ACK) {
		homa_rx_unlock(ctx, in);
		homa_rx_acks(ctx, pkt, &p);
		return;
	}
	homa_rx_look_up(ctx, in, &p.hdr, pkt->src);
	if (p.hdr.type == HOMA_START_MSG)
		homa_rx_start(ctx, in, pkt, &p);
	else
		homa_rx_control(ctx, in, pkt, &p);
}

/* Takes one of several packets. */
static void homa_rx_next(struct homa_ctx *ctx, struct homa_rx_in *in,
			 struct homa_rx_pkt *pkt)
{
	if (likely(homa_rx_is(pkt, HOMA_DATA)))
		homa_rx_one_data(ctx, in, pkt);
	else
		homa_rx_one_other(ctx, in, pkt);
}

/* Ends a call that has taken in packets of @link. */
static inline void homa_rx_over(struct homa_ctx *ctx, struct homa_rx_in *in)
{
	homa_rx_unlock(ctx, in);
	if (unlikely(ctx->now >= HOMA_READ_ONCE(ctx->engine->maintain_at)))
		homa_maintain(ctx, in->link);
}

HOMA_HOT void homa_rx_alone(struct homa_ctx *ctx, struct homa_link *link,
			    struct homa_rx_pkt *pkt)
{
	struct homa_rx_in in HOMA_NOINIT;
	struct homa_rx_pkt other HOMA_NOINIT;

	if (unlikely(!homa_rx_is(pkt, HOMA_DATA))) {
		/* A copy, so that @pkt may be in registers elsewhere. */
		other = *pkt;
		homa_rx(ctx, link, &other, 1);
		*pkt = other;
		return;
	}
	in.link = link;
	in.shard = NULL;
	homa_count(ctx, HOMA_M_rx_packets, 1);
	homa_rx_one_data(ctx, &in, pkt);
	homa_rx_over(ctx, &in);
}

void homa_rx(struct homa_ctx *ctx, struct homa_link *link,
	     struct homa_rx_pkt *pkts, u32 n)
{
	struct homa_rx_in in HOMA_NOINIT;
	bool acks = false;
	u32 i;

	in.link = link;
	in.shard = NULL;
	homa_count(ctx, HOMA_M_rx_packets, n);
	for (i = 0; i < n && n > 1; i++) {
		if (homa_rx_is(&pkts[i], HOMA_ACK)) {
			homa_rx_next(ctx, &in, &pkts[i]);
			acks = true;
		}
	}
	for (i = 0; i < n; i++)
		if (!acks || !homa_rx_is(&pkts[i], HOMA_ACK))
			homa_rx_next(ctx, &in, &pkts[i]);
	homa_rx_over(ctx, &in);
}
