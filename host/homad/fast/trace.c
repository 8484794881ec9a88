// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The recorder: one writer (the thread whose ring it is), one reader (the slow
 * path), two counters. A record is built in its slot and published with the
 * store of the tail. Packets are filtered by what their header says: no look-up
 * of sockets, no lock.
 */
#include <stdlib.h>
#include "fast.h"
#include "homa_look.h"
#include "homad_trace.h"

/* Bytes of a TCP header that hold both ports. */
#define TCP_PORTS 4u

struct homad_trace *homad_trace_new(const struct homad_trace_want *want,
				    size_t memory)
{
	struct homad_trace *trace = aligned_alloc(64, sizeof(*trace));
	size_t slots = 1;

	if (!trace)
		return NULL;
	memset(trace, 0, sizeof(*trace));
	trace->want = want;
	trace->slot_bytes =
		(u32)((sizeof(struct homad_trace_record) + want->snap + 7) & ~7ul);
	while (slots * 2 * trace->slot_bytes <= memory)
		slots *= 2;
	trace->mask = (u32)slots - 1;
	trace->slots = malloc(slots * trace->slot_bytes);
	if (!trace->slots) {
		free(trace);
		return NULL;
	}
	return trace;
}

void homad_trace_free(struct homad_trace *trace)
{
	if (!trace)
		return;
	free(trace->slots);
	free(trace);
}

static struct homad_trace_record *slot_at(const struct homad_trace *trace,
					  u64 index)
{
	return (struct homad_trace_record *)(trace->slots +
					     (size_t)(index & trace->mask) *
						     trace->slot_bytes);
}

const struct homad_trace_record *homad_trace_peek(const struct homad_trace *trace)
{
	if (trace->head == __atomic_load_n(&trace->tail, __ATOMIC_ACQUIRE))
		return NULL;
	return slot_at(trace, trace->head);
}

void homad_trace_pop(struct homad_trace *trace)
{
	__atomic_store_n(&trace->head, trace->head + 1, __ATOMIC_RELEASE);
}

int homad_trace_attach(struct homad_thread *t, void *arg)
{
	t->trace = arg;
	return 0;
}

/* ---- fast path ---- */

static struct homad_trace_record *record_begin(struct homad_thread *t,
					       enum homad_trace_kind kind)
{
	struct homad_trace *trace = t->trace;
	struct homad_trace_record *r;

	if (trace->tail - __atomic_load_n(&trace->head, __ATOMIC_ACQUIRE) >
	    trace->mask) {
		HOMA_WRITE_ONCE(trace->lost, trace->lost + 1);
		return NULL;
	}
	r = slot_at(trace, trace->tail);
	memset(r, 0, sizeof(*r));
	r->at_ns = homa_clock_ns();
	r->kind = (u8)kind;
	r->thread = (u16)t->index;
	return r;
}

static void record_end(struct homad_trace *trace)
{
	__atomic_store_n(&trace->tail, trace->tail + 1, __ATOMIC_RELEASE);
}

static bool wants_app(const struct homad_trace_want *want, u64 app, u16 port)
{
	u32 i, n = HOMA_READ_ONCE(want->num_apps);

	if (!want->by_app)
		return true;
	for (i = 0; i < n && i < HOMAD_TRACE_APPS; i++)
		if (app ? HOMA_READ_ONCE(want->app[i]) == app :
			  HOMA_READ_ONCE(want->app_port[i]) == port)
			return true;
	return false;
}

static bool wants_packet(const struct homad_trace_want *want, const u8 *peer_ip,
			 u16 own, u16 peer)
{
	if (!want->packets || !wants_app(want, 0, own))
		return false;
	if (want->by_peer && memcmp(want->peer, peer_ip, 16))
		return false;
	return !want->port || want->port == own || want->port == peer;
}

/* Copies as much of @len bytes at @from as there is still room for. */
static void capture(const struct homad_trace *trace,
		    struct homad_trace_record *r, const u8 *from, u32 len)
{
	const u32 room = trace->want->snap - r->captured;
	u8 *to = (u8 *)(r + 1) + r->captured;

	if (len > room)
		len = room;
	if (len)
		memcpy(to, from, len);
	r->captured = (u16)(r->captured + len);
}

static void set_addr(u8 ip[16], u16 *encap, const struct homa_addr *addr)
{
	memcpy(ip, addr->ip, 16);
	*encap = addr->encap;
}

/* Returns the id of the RPC as this end would call it. A packet for another application of
 * this host is both in and out. */
static u64 rpc_of(const struct homa_wire_common *h, bool received)
{
	const u64 id = homa_get_be64(&h->sender_id);

	return received ? id ^ 1 : id;
}

void homad_trace_rx_slow(struct homad_thread *t, const struct homad_port *port,
			 const struct nic_rx *pkt)
{
	const struct homa_wire_common *h = (const void *)pkt->data;
	const bool whole = pkt->len >= HOMA_COMMON_HDR;
	const u16 own = whole ? homa_get_be16(&h->dport) : 0;
	const u16 peer = whole ? homa_get_be16(&h->sport) : 0;
	struct homad_trace_record *r;

	if (!wants_packet(t->trace->want, pkt->src.ip, own, peer))
		return;
	r = record_begin(t, HOMAD_TRACE_RX);
	if (!r)
		return;
	r->port = (u8)port->index;
	r->prio = pkt->prio;
	r->length = pkt->len;
	r->own_port = own;
	r->peer_port = peer;
	r->rpc = whole ? rpc_of(h, true) : 0;
	set_addr(r->src, &r->src_encap, &pkt->src);
	set_addr(r->dst, &r->dst_encap, &pkt->dst);
	capture(t->trace, r, pkt->data, pkt->len);
	record_end(t->trace);
}

void homad_trace_tx_slow(struct homad_thread *t, const struct homad_port *port,
			 enum homad_trace_kind kind, const struct nic_tx *pkt)
{
	const struct homa_wire_common *h = (const void *)pkt->hdr;
	const u16 own = homa_get_be16(&h->sport);
	const u16 peer = homa_get_be16(&h->dport);
	const struct homad_trace_want *want = t->trace->want;
	struct homad_trace_record *r;

	if (!wants_packet(want, pkt->dst.ip, own, peer) &&
	    (kind != HOMAD_TRACE_LOCAL ||
	     !wants_packet(want, pkt->dst.ip, peer, own)))
		return;
	r = record_begin(t, kind);
	if (!r)
		return;
	r->port = (u8)port->index;
	r->prio = pkt->prio;
	r->length = pkt->hdr_len + pkt->payload_len;
	r->own_port = own;
	r->peer_port = peer;
	r->rpc = rpc_of(h, false);
	if (port->info)
		set_addr(r->src, &r->src_encap, &port->info->address);
	else
		memcpy(r->src, pkt->dst.ip, 16);
	set_addr(r->dst, &r->dst_encap, &pkt->dst);
	capture(t->trace, r, pkt->hdr, pkt->hdr_len);
	capture(t->trace, r, pkt->payload, pkt->payload_len);
	record_end(t->trace);
}

/* Is a connection between these ports, and of one of these attachments, wanted? */
static bool wants_segment(const struct homad_trace_want *want,
			  const struct homad_traced *seg, u16 own, u16 peer)
{
	const u8 *peer_ip = seg->kind == HOMAD_TRACE_RX ? seg->from : seg->to;

	if (!want->packets || (want->by_peer && memcmp(want->peer, peer_ip, 16)))
		return false;
	if (want->port && want->port != own && want->port != peer)
		return false;
	return !want->by_app || (seg->app && wants_app(want, seg->app, 0)) ||
	       (seg->to_app && wants_app(want, seg->to_app, 0));
}

/* Captures what is behind the first piece of a segment. */
static void capture_pieces(const struct homad_trace *trace,
			   struct homad_trace_record *r,
			   const struct homad_traced *seg)
{
	const struct nic_piece *piece = seg->pieces + 1;
	u32 left = seg->bytes - seg->header_bytes, len;

	for (; left; piece++, left -= len) {
		len = homa_min_u32(piece->len, left);
		capture(trace, r, piece->data, len);
	}
}

void homad_trace_segment(struct homad_thread *t, const struct homad_traced *seg)
{
	const bool whole = seg->header_bytes >= TCP_PORTS;
	const bool in = seg->kind == HOMAD_TRACE_RX;
	const u16 sport = whole ? homa_get_be16(seg->header) : 0;
	const u16 dport = whole ? homa_get_be16(seg->header + 2) : 0;
	const u16 own = in ? dport : sport, peer = in ? sport : dport;
	struct homad_trace_record *r;

	if (!wants_segment(t->trace->want, seg, own, peer))
		return;
	r = record_begin(t, seg->kind);
	if (!r)
		return;
	r->flags = HOMAD_TRACE_TCP;
	r->app = seg->app;
	r->port = (u8)seg->port->index;
	r->prio = seg->tos;
	r->length = seg->bytes;
	r->own_port = own;
	r->peer_port = peer;
	memcpy(r->src, seg->from, sizeof(r->src));
	memcpy(r->dst, seg->to, sizeof(r->dst));
	capture(t->trace, r, seg->header, seg->header_bytes);
	capture(t->trace, r, seg->payload, seg->payload_bytes);
	if (seg->pieces)
		capture_pieces(t->trace, r, seg);
	if (seg->rest)
		capture(t->trace, r, seg->rest,
			seg->bytes - seg->header_bytes - seg->payload_bytes);
	record_end(t->trace);
}

void homad_trace_rpc_slow(struct homad_thread *t, enum homad_trace_kind kind,
			  const struct homad_rpc *rpc, u32 length, int error)
{
	const struct homad_trace_want *want = t->trace->want;
	struct homad_trace_record *r;
	struct homa_rpc_look look;
	bool known;

	if (!want->rpcs || !rpc->app || !wants_app(want, rpc->app->id, 0))
		return;
	/* The RPC is gone at the end; the reader has learnt at the beginning whose it
	 * was. */
	known = kind != HOMAD_TRACE_END &&
		!homa_rpc_look(&t->ctx, rpc->handle, &look);
	if (known && want->by_peer && memcmp(want->peer, look.peer.ip, 16))
		return;
	if (known && want->port && want->port != look.port &&
	    want->port != look.peer_port)
		return;
	r = record_begin(t, kind);
	if (!r)
		return;
	r->app = rpc->app->id;
	r->rpc = rpc->handle.id;
	r->flags = rpc->client ? HOMAD_TRACE_CLIENT : 0;
	r->length = length;
	r->error = error;
	if (known) {
		r->own_port = look.port;
		r->peer_port = look.peer_port;
		set_addr(r->dst, &r->dst_encap, &look.peer);
	}
	record_end(t->trace);
}
