// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments out: the engine is asked only in TCP's turns on a link (egress.c), and as
 * long as every device has room for the largest unit that it may name, so that nothing has
 * to be kept here. A unit of several segments is cut here, as a device with segmentation
 * offload would. Payload is read from the application's memory now; what it changes there
 * meanwhile is what the peer gets.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "homad_trace.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_stream.h"

/* Most segments that the engine names at once, unless a peer asked for smaller segments
 * than packets can be: of such a unit a full device loses the rest, which is sent again. */
#define UNIT_SEGMENTS 16u
#define SEQ_AT 4u
#define IPV4_HEADER 20u
#define IPV6_HEADER 40u
/* Bytes that a frame has on the cable beside its IP packet: Ethernet header, CRC, preamble, gap. */
#define CABLE_BYTES 38u
/* Most connections that are passed by in search of one for a device. */
#define PASSES 16

HOMA_STATIC_ASSERT(UNIT_SEGMENTS <= HOMAD_TCP_BATCH, "a unit fits in a batch");

/** struct batch - packets for one device that are not handed over yet */
struct batch {
	/* The thread that sends. */
	struct homad_thread *t;
	/* The port of the device. */
	struct homad_port *port;
	/* The number of packets in homad_tcp.tx that are not handed over. */
	int n;
	/* The number of packets that were handed over so far. */
	int total;
};

static void flush(struct batch *b)
{
	if (!b->n)
		return;
	/* Packets that a device does not take now are lost, and come again as after any
	 * loss. */
	nic_tx(b->port->nic, b->t->tcp->tx, b->n);
	b->total += b->n;
	b->n = 0;
}

/* Returns @length bytes from position @from of what the application has written. */
static const u8 *payload_of(struct homad_tcp *tcp,
			    const struct homad_stream *stream, u32 from,
			    u32 length, int i)
{
	const u8 *span = homad_stream_buffer(stream, HOMAD_TX, stream->tx_map);
	u32 first = homa_stream_to_end(stream->tx_map, from);
	const u8 *at = span + homa_stream_at(stream->tx_map, from);

	if (likely(first >= length))
		return at;
	if (unlikely(length > sizeof(tcp->joined[0])))
		return NULL;
	memcpy(tcp->joined[i], at, first);
	memcpy(tcp->joined[i] + first, span, length - first);
	return tcp->joined[i];
}

static void name_ends(struct homad_tcp *tcp, int i, const struct tas_pair *pair)
{
	struct nic_tx *tx = &tcp->tx[i];

	memset(&tcp->from[i], 0, sizeof(tcp->from[i]));
	memcpy(tcp->from[i].ip, pair->local, sizeof(pair->local));
	memset(&tx->dst, 0, sizeof(tx->dst));
	memcpy(tx->dst.ip, pair->remote, sizeof(pair->remote));
	tx->src = &tcp->from[i];
}

/* Records a segment, for a trace that runs. */
static void trace_out(struct homad_thread *t, const struct homad_port *port,
		      const struct nic_tx *tx, const struct homad_stream *stream)
{
	struct homad_traced seg = {
		.kind = HOMAD_TRACE_TX,
		.tos = (u8)(tx->dscp << 2 | tx->ecn),
		.port = port,
		.from = tx->src->ip,
		.to = tx->dst.ip,
		.bytes = tx->hdr_len + tx->payload_len,
		.header = tx->hdr,
		.header_bytes = tx->hdr_len,
		.payload = tx->payload,
		.payload_bytes = tx->payload_len,
		.app = stream && stream->home ? stream->home->app->id : 0,
	};

	homad_trace_segment(t, &seg);
}

/* Adds a segment of the unit @out to the batch: @length bytes of payload at @offset. */
static bool add(struct batch *b, const struct tas_out *out,
		const struct homad_stream *stream, u32 offset, u32 length)
{
	struct homad_tcp *tcp = b->t->tcp;
	int i = b->n;
	struct nic_tx *tx = &tcp->tx[i];
	u8 *header = tcp->headers[i];

	memcpy(header, out->header, out->header_length);
	if (offset)
		homa_put_be32(header + SEQ_AT,
			      homa_get_be32(out->header + SEQ_AT) + offset);
	if (offset + length < out->length)
		header[HOMAD_TCP_FLAGS_AT] &= (u8)~(TAS_FIN | TAS_PSH);
	if (offset)
		header[HOMAD_TCP_FLAGS_AT] &= (u8)~TAS_CWR;
	name_ends(tcp, i, out->pair);
	tx->proto = NIC_TCP;
	tx->ecn = out->ecn;
	tx->prio = 0;
	tx->dscp = stream ? stream->dscp : 0;
	tx->hdr = header;
	tx->hdr_len = out->header_length;
	tx->payload =
		length ? payload_of(tcp, stream, out->from + offset, length, i) :
			 NULL;
	tx->payload_len = length;
	tx->owner = stream && stream->home ? stream->home->app->uid + 1 : 0;
	if (unlikely(length && !tx->payload))
		return false;
	if (unlikely(b->t->trace))
		trace_out(b->t, b->port, tx, stream);
	b->n++;
	return true;
}

/* Returns the bytes on the cable for the unit in @segments pieces. */
static u64 wire_bytes(const struct tas_out *out, u32 segments)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	u32 ip = memcmp(out->pair->remote, mapped, sizeof(mapped)) ?
			 IPV6_HEADER :
			 IPV4_HEADER;

	return out->length +
	       (u64)segments * (out->header_length + ip + CABLE_BYTES);
}

static void send_unit(struct batch *b, const struct tas_out *out)
{
	struct homad_port *port = homad_tcp_port_towards(b->t, out->pair);
	struct homad_stream *stream = out->conn ? out->conn->host : NULL;
	u32 offset = 0, length, segments = 0;
	u64 wire;

	if (unlikely(!port || (out->length && (!stream || !stream->home)))) {
		b->t->tcp->counters.no_device += !port;
		return;
	}
	if (port != b->port || b->n + (int)UNIT_SEGMENTS + 1 > HOMAD_TCP_BATCH)
		flush(b);
	b->port = port;
	do {
		length = homa_min_u32(out->length - offset, out->mss);
		if (!add(b, out, stream, offset, length))
			return;
		offset += length;
		segments++;
		if (b->n == HOMAD_TCP_BATCH)
			flush(b);
	} while (offset < out->length);
	wire = wire_bytes(out, segments);
	homa_link_spent(&b->t->ctx, port->link, wire);
	/* ACKs alone are at the peer's bidding. */
	if (unlikely(stream && stream->limit && out->length))
		homad_limit_sent(stream, out->from + out->length, out->length,
				 wire);
}

/* Can every device take a whole unit beside what is in the batch? */
static bool have_room(struct homad_thread *t, int waiting)
{
	u32 i;

	for (i = 0; i < t->num_ports; i++)
		if (!t->ports[i]->encap && nic_tx_room(t->ports[i]->nic) <
						   waiting + (int)UNIT_SEGMENTS)
			return false;
	return true;
}

/* Does the current instance have something to send by @port? */
static bool waits(struct homad_thread *t, const struct homad_port *port)
{
	struct tas_engine *engine = &t->tcp->engine;
	const struct tas_pair *pair;
	int tries;

	for (tries = 0; tries < PASSES; tries++) {
		pair = tas_first_out(engine);
		if (!pair)
			return false;
		if (homad_tcp_port_towards(t, pair) == port)
			return true;
		/* This unit is for another device; units behind it may be for this one. */
		if (!tas_pass_out(engine))
			return false;
	}
	return false;
}

bool homad_tcp_waits(struct homad_thread *t, const struct homad_port *port)
{
	const struct homad_tcp *first = t->tcp;

	do
		if (waits(t, port))
			return true;
	while (homad_tcp_another(t, first));
	return false;
}

/* Is it the turn of another instance of the thread? */
static bool others_turn(const struct homad_thread *t, const struct batch *b)
{
	return unlikely(t->tcp->next != t->tcp) &&
	       b->total + b->n >= HOMAD_TCP_BATCH;
}

int homad_tcp_tx(struct homad_thread *t, struct homad_port *port)
{
	struct batch b = { .t = t };
	struct tas_out out;
	u64 later;
	u32 i;

	do {
		if (unlikely(!have_room(t, b.n))) {
			port->tx_blocked = true;
			break;
		}
		if (!tas_next_out(&t->tcp->engine, &out))
			break;
		send_unit(&b, &out);
	} while (!others_turn(t, &b) && waits(t, port) &&
		 homa_link_turn(&t->ctx, port->link, true, &later) ==
			 HOMA_TURN_OTHERS);
	flush(&b);
	for (i = 0; b.total && i < t->num_ports; i++)
		if (!t->ports[i]->encap)
			nic_flush(t->ports[i]->nic);
	t->tcp = t->tcp->next;
	return b.total;
}
