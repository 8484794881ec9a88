// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP between two applications of this host. Both ends are connections of an engine of
 * their own, so all that TCP promises comes from there: backlogs, half closes, resets,
 * windows. What it sends goes no further than to this file: the header comes back as if a
 * device had brought it, and the bytes are copied once, from the memory of the one
 * application into that of the other. There is no packet, no checksum, no link and no
 * loss. If the two applications belong to different instances of TCP, header and bytes go through
 * the ring to the other instance (tcp_steer.c), and nothing is sent while such a ring is full.
 *
 * Nobody else reaches that engine: a packet of a device with addresses of this host is the
 * other engine's, which knows none of these connections. And it is for those alone who
 * could have connected by the kernel: an application of another network namespace is told
 * that homad does not do this, so that its own kernel looks.
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "homad_trace.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_steer.h"
#include "tcp_stream.h"

/* Most segments that are moved in a round, before other work gets its turn. */
#define ROUND_SEGMENTS 256u
#define ROUND_BYTES (1u << 18)

/* ---- the way ---- */

static void usual_source(const u8 to[16], u8 from[16])
{
	struct homa_addr addr = { 0 };

	memcpy(addr.ip, to, sizeof(addr.ip));
	memcpy(from, to, sizeof(addr.ip));
	if (homa_addr_is_v4(&addr) && to[12] == 127)
		memcpy(from + 13, "\0\0\1", 3);
}

int homad_tcp_local_way(struct homad_thread *t, const struct homad_streams *s,
			const struct homa_stream_end *wanted,
			struct tas_pair *pair)
{
	struct homa_addr from = { 0 }, to = { 0 };
	struct tas_pair there = { .local_port = pair->remote_port };
	struct homad_port *port;
	int rc;

	memcpy(there.local, pair->remote, sizeof(there.local));
	if (!s->same_network || wanted->port ||
	    !(tas_listens(&t->tcp->local, &there) ||
	      (t->steering && homad_steering_listens(t->steering, &there))))
		return -EOPNOTSUPP;
	memcpy(from.ip, wanted->ip, sizeof(from.ip));
	memcpy(to.ip, pair->remote, sizeof(to.ip));
	if (homa_addr_is_any(&from)) {
		usual_source(pair->remote, pair->local);
		return 0;
	}
	memcpy(pair->local, from.ip, sizeof(pair->local));
	if (homa_addr_is_v4(&from) != homa_addr_is_v4(&to))
		return -EADDRNOTAVAIL;
	rc = homad_dest(t, s->app->uid, &from, 1, &port);
	if (rc)
		return rc == -EAGAIN ? rc : -EADDRNOTAVAIL;
	return port == t->d->local ? 0 : -EADDRNOTAVAIL;
}

/* ---- segments ---- */

/* Copies @length bytes from position @from of what one application has written to position
 * @to of what the other has got. */
static void copy_over(const struct homad_stream *source, u32 from,
		      const struct homad_stream *sink, u32 to, u32 length)
{
	const u8 *src = homad_stream_buffer(source, HOMAD_TX, source->tx_map);
	u8 *dst = homad_stream_buffer(sink, HOMAD_RX, sink->rx_map);
	u32 n;

	for (; length; length -= n, from += n, to += n) {
		n = homa_min_u32(length,
				 homa_stream_to_end(source->tx_map, from));
		n = homa_min_u32(n, homa_stream_to_end(sink->rx_map, to));
		memcpy(dst + homa_stream_at(sink->rx_map, to),
		       src + homa_stream_at(source->tx_map, from), n);
	}
}

/* Records a segment, for a trace that runs. What it carries may lie in two pieces in the
 * sender's buffer. */
static void trace_over(struct homad_thread *t, const struct tas_out *out,
		       const struct homad_stream *source,
		       const struct tas_pair *to)
{
	struct homad_traced seg = {
		.kind = HOMAD_TRACE_LOCAL,
		.tos = out->ecn,
		.port = t->d->local,
		.from = to->remote,
		.to = to->local,
		.bytes = out->header_length + out->length,
		.header = out->header,
		.header_bytes = out->header_length,
		.app = source && source->home ? source->home->app->id : 0,
		.to_app = homad_tcp_app(&t->tcp->local, to),
	};

	if (out->length) {
		const u8 *span =
			homad_stream_buffer(source, HOMAD_TX, source->tx_map);

		seg.payload = span + homa_stream_at(source->tx_map, out->from);
		seg.payload_bytes =
			homa_min_u32(out->length,
				     homa_stream_to_end(source->tx_map,
							out->from));
		seg.rest = seg.payload_bytes < out->length ? span : NULL;
	}
	homad_trace_segment(t, &seg);
}

/* Sends the segment to whichever instance has the other end of @pair, which this one does not. */
HOMA_RARE static void hand_away(struct homad_thread *t, const struct tas_out *out,
				const struct homad_stream *source,
				const struct tas_pair *pair)
{
	u8 *bytes = t->tcp->joined[0];
	struct nic_rx pkt = {
		.data = bytes,
		.len = out->header_length + out->length,
		.ecn = out->ecn,
		.proto = NIC_TCP,
	};
	u32 first;

	if (pkt.len > sizeof(t->tcp->joined))
		return;
	memcpy(bytes, out->header, out->header_length);
	if (out->length) {
		const u8 *span =
			homad_stream_buffer(source, HOMAD_TX, source->tx_map);

		first = homa_min_u32(out->length,
				     homa_stream_to_end(source->tx_map,
							out->from));
		memcpy(bytes + out->header_length,
		       span + homa_stream_at(source->tx_map, out->from), first);
		memcpy(bytes + out->header_length + first, span,
		       out->length - first);
	}
	memcpy(pkt.dst.ip, pair->local, sizeof(pair->local));
	memcpy(pkt.src.ip, pair->remote, sizeof(pair->remote));
	homad_tcp_steer_local(t, &pkt, pair, source);
}

static void hand_over(struct homad_thread *t, const struct tas_out *out)
{
	struct homad_stream *source = out->conn ? out->conn->host : NULL, *sink;
	struct tas_engine *engine = &t->tcp->local;
	struct tas_pair pair = { .local_port = out->pair->remote_port,
				 .remote_port = out->pair->local_port };
	struct tas_segment seg;
	struct tas_copy copy;

	if (unlikely(out->length && (!source || !source->home)))
		return;
	memcpy(pair.local, out->pair->remote, sizeof(pair.local));
	memcpy(pair.remote, out->pair->local, sizeof(pair.remote));
	if (unlikely(tas_decode(&seg, out->header, out->header_length)))
		return;
	seg.length = out->length;
	if (unlikely(t->trace))
		trace_over(t, out, source, &pair);
	if (unlikely(source && source->limit && out->length))
		homad_limit_sent(source, out->from + out->length, out->length,
				 out->length);
	if (unlikely(t->steering) && !tas_knows(engine, &pair)) {
		hand_away(t, out, source, &pair);
		return;
	}
	homad_tcp_refill(t->tcp, engine);
	tas_rx(engine, &pair, &seg, out->ecn, &copy);
	if (!copy.conn)
		return;
	sink = homad_tcp_place(t, engine, &copy);
	if (unlikely(!sink))
		return;
	copy_over(source, out->from + copy.from, sink, copy.to, copy.length);
	t->tcp->counters.local_bytes += copy.length;
}

int homad_tcp_local(struct homad_thread *t)
{
	u32 n = 0, bytes = 0;
	struct tas_out out;

	while (n < ROUND_SEGMENTS && bytes < ROUND_BYTES &&
	       likely(!t->steering || homad_steering_room(t)) &&
	       tas_next_out(&t->tcp->local, &out)) {
		hand_over(t, &out);
		bytes += out.length;
		n++;
	}
	if (n)
		homad_listeners_accept(t);
	return (int)n;
}

void homad_tcp_local_reset(struct homad_thread *t)
{
	const struct tas_engine *engine = &t->tcp->local;

	if (engine->stray_tail - engine->stray_head >= TAS_STRAYS / 2)
		homad_tcp_local(t);
}
