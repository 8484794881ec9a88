// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments in: from a nic's batch through the engine, payload copied once, from the
 * packet into the application's receive buffer.
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

/* Bytes of a TCP header that hold both ports. */
#define TCP_PORTS 4u

/* Copies bytes to position @to of the stream, in two pieces if the buffer ends between them. */
static void copy_in(const struct homad_stream *stream, const u8 *bytes,
		    u32 length, u32 to)
{
	u8 *span = homad_stream_buffer(stream, HOMAD_RX, stream->rx_map);
	u32 first = homa_min_u32(length, homa_stream_to_end(stream->rx_map, to));

	memcpy(span + homa_stream_at(stream->rx_map, to), bytes, first);
	if (unlikely(first < length))
		memcpy(span, bytes + first, length - first);
}

/* Copies a segment's bytes to their stream. */
static void copy_packet(const struct homad_stream *stream,
			const struct nic_rx *pkt, const struct tas_copy *copy)
{
	const struct nic_piece *piece = pkt->pieces;
	u32 from = copy->from, left = copy->length, to = copy->to, here;

	if (likely(!piece)) {
		copy_in(stream, pkt->data + from, left, to);
		return;
	}
	for (; left; piece++) {
		if (from >= piece->len) {
			from -= piece->len;
			continue;
		}
		here = homa_min_u32(piece->len - from, left);
		copy_in(stream, piece->data + from, here, to);
		from = 0;
		to += here;
		left -= here;
	}
}

struct homad_stream *homad_tcp_place(struct homad_thread *t,
				     struct tas_engine *engine,
				     const struct tas_copy *copy)
{
	struct homad_stream *stream;

	/* The connection may have become open with this very segment, or with one that came in
	 * the same batch. The slot that the engine has seen is its, however many wait. */
	if (unlikely(!copy->conn->host))
		homad_conn_accept(t, engine, copy->conn);
	stream = copy->conn->host;
	if (likely(stream && stream->home && !stream->closed)) {
		/* What lies behind a gap counts, too: the application can see it. This comes before
		 * commands, by which it may open windows. */
		if (unlikely(stream->limit))
			homad_limit_received(stream, copy->length);
		return stream;
	}
	/* The engine counts the bytes as received, but there is no place for them, so the peer
	 * gets a reset. */
	t->tcp->counters.no_place++;
	tas_abort(engine, copy->conn);
	return NULL;
}

/* Records a segment, for a trace that runs. */
static void trace_in(struct homad_thread *t, const struct homad_port *port,
		     const struct tas_pair *pair, const struct nic_rx *pkt)
{
	struct homad_traced seg = {
		.kind = HOMAD_TRACE_RX,
		.tos = pkt->ecn,
		.port = port,
		.from = pair->remote,
		.to = pair->local,
		.bytes = pkt->len,
		.header = pkt->data,
		.header_bytes = nic_rx_here(pkt),
		.pieces = pkt->pieces,
	};
	struct tas_pair whole = *pair;

	if (pkt->len >= TCP_PORTS) {
		whole.remote_port = homa_get_be16(pkt->data);
		whole.local_port = homa_get_be16((const u8 *)pkt->data + 2);
		seg.app = homad_tcp_app(&t->tcp->engine, &whole);
	}
	homad_trace_segment(t, &seg);
}

/* Gives a segment between the ends of @pair to @engine; returns how many of its bytes are new. */
static inline u32 take_in(struct homad_thread *t, struct tas_engine *engine,
			  struct tas_pair *pair, const struct nic_rx *pkt)
{
	struct homad_stream *stream;
	struct tas_copy copy;

	if (unlikely(tas_rx_packet(engine, pair, pkt->data, pkt->len, pkt->ecn,
				   &copy))) {
		t->tcp->counters.malformed++;
		return 0;
	}
	if (likely(!copy.conn))
		return 0;
	stream = homad_tcp_place(t, engine, &copy);
	if (unlikely(!stream))
		return 0;
	copy_packet(stream, pkt, &copy);
	return copy.length;
}

void homad_tcp_segment(struct homad_thread *t, const struct homad_port *port,
		       const struct nic_rx *pkt)
{
	struct tas_pair pair;

	homad_tcp_refill(t->tcp, &t->tcp->engine);
	memcpy(pair.local, pkt->dst.ip, sizeof(pair.local));
	memcpy(pair.remote, pkt->src.ip, sizeof(pair.remote));
	if (unlikely(t->trace))
		trace_in(t, port, &pair, pkt);
	take_in(t, &t->tcp->engine, &pair, pkt);
}

/* The other end of a connection that an application has opened has answered: its instance gets
 * what the connection sends, whoever else has its port. */
static void learn_peer(struct homad_tcp *tcp, const struct tas_pair *pair,
		       u32 from)
{
	const struct tas_conn *conn = tas_known(&tcp->local, pair);
	struct homad_stream *stream = conn ? conn->host : NULL;

	if (stream)
		stream->peer = (u8)(from + 1);
}

void homad_tcp_local_segment(struct homad_thread *t, const struct nic_rx *pkt,
			     u32 from)
{
	struct tas_pair pair;

	homad_tcp_refill(t->tcp, &t->tcp->local);
	memcpy(pair.local, pkt->dst.ip, sizeof(pair.local));
	memcpy(pair.remote, pkt->src.ip, sizeof(pair.remote));
	t->tcp->counters.local_bytes += take_in(t, &t->tcp->local, &pair, pkt);
	if (unlikely(((const u8 *)pkt->data)[HOMAD_TCP_FLAGS_AT] & TAS_SYN))
		learn_peer(t->tcp, &pair, from);
}

int homad_tcp_part(struct homad_thread *t, int n, struct nic_rx *tcp, int *num)
{
	int i, homa = 0;

	*num = 0;
	for (i = 0; i < n; i++) {
		if (t->rx[i].proto == NIC_TCP)
			tcp[(*num)++] = t->rx[i];
		else if (homa++ != i)
			t->rx[homa - 1] = t->rx[i];
	}
	return homa;
}

int homad_tcp_take(struct homad_thread *t, struct homad_port *port, int n)
{
	struct homad_tcp *tcp = t->tcp;
	int i, taken, homa = homad_tcp_part(t, n, tcp->rx, &taken);

	for (i = 0; i < taken; i++) {
		if (i + 1 < taken)
			homa_prefetch(tcp->rx[i + 1].data);
		homad_tcp_segment(t, port, &tcp->rx[i]);
	}
	if (taken) {
		nic_rx_release(port->nic, tcp->rx, taken);
		homad_listeners_accept(t);
	}
	return homa;
}

/* The kernel gives an error to all queues of a device. Of those that @t serves one is heard. */
static bool is_heard(const struct homad_thread *t, const struct homad_port *port)
{
	u32 i = 0;

	while (t->ports[i]->ifindex != port->ifindex ||
	       t->ports[i]->encap != port->encap)
		i++;
	return t->ports[i] == port;
}

void homad_tcp_icmp(struct homad_thread *t, const struct homad_port *port,
		    const struct nic_error *error)
{
	struct tas_pair pair = { .local_port = error->sport,
				 .remote_port = error->dport };
	const struct homad_tcp *first = t->tcp;

	if (!is_heard(t, port))
		return;
	memcpy(pair.local, error->src.ip, sizeof(pair.local));
	memcpy(pair.remote, error->dst.ip, sizeof(pair.remote));
	/* All threads get it; it is for the instance that has the local port. */
	do
		if (!t->steering ||
		    homad_steering_has(t->steering, error->sport, t->tcp->index))
			tas_icmp(&t->tcp->engine, &pair, error->seq,
				 error->error == EMSGSIZE ? 0 : -error->error,
				 error->mtu);
	while (homad_tcp_another(t, first));
}
