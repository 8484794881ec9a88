/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recording packets and the life of RPCs on the fast path. Off, it costs one
 * test of homad_thread.trace; on, a thread writes records into a ring of its
 * own that the slow path drains (trace_stream.c); a full ring loses records and
 * counts them, so a trace never slows an application down by more than its
 * copies. What is not wanted is left out here, before it costs room.
 *
 * Written by: the fast-path thread (@tail, @lost and records) and the admin thread (@head, and
 * what is wanted), as the structs say.
 */
#ifndef HOMAD_TRACE_H
#define HOMAD_TRACE_H

#include "probes.h"
#include "homad.h"

#define HOMAD_TRACE_MEMORY (8u << 20) /* bytes of a thread's ring */
/* bytes of a packet that are recorded unless the viewer says otherwise */
#define HOMAD_TRACE_SNAP 128u
#define HOMAD_TRACE_SNAP_MAX 16384u
#define HOMAD_TRACE_APPS 32u /* most applications that one filter names */

struct homad_rpc;

enum homad_trace_kind {
	HOMAD_TRACE_RX = 1, /* packet */
	HOMAD_TRACE_TX,
	HOMAD_TRACE_LOCAL,
	/* a request or reply was taken from the application */
	HOMAD_TRACE_SUBMIT,
	/* a request, response or failure was put into the application's ring */
	HOMAD_TRACE_DELIVER,
	HOMAD_TRACE_END, /* an RPC was retired */
	/* Records were lost because the ring was full: homad_trace_record.rpc is their
	 * number. */
	HOMAD_TRACE_LOST,
};

enum {
	HOMAD_TRACE_CLIENT = 1,
	HOMAD_TRACE_TCP = 2,
};

/**
 * struct homad_trace_record - what happened; also the form on the monitoring socket, where
 * @captured bytes follow, padded to 8: tools/records.py reads it
 * @at_ns: time by homa_clock_ns(); on the socket: since 1970.
 * @app: SUBMIT, DELIVER, END: homad_app.id.
 * @rpc: the RPC's id at this end; of packets: as this end would call it, 0: none.
 * @kind: enum homad_trace_kind.
 * @port: index of the homad_port.
 * @prio: of a packet of Homa, its priority, 0 to 7; of a TCP segment, the byte of its IP
 *	header that has DSCP and ECN.
 * @flags: HOMAD_TRACE_CLIENT: in records of RPCs, this end is the client. HOMAD_TRACE_TCP:
 *	the packet is a TCP segment.
 * @captured: number of bytes of the packet behind the record.
 * @thread: index of the thread that wrote the record.
 * @length: of a packet, the bytes of Homa's or TCP's header and payload; of an RPC, the bytes
 *	of the message.
 * @error: DELIVER: positive errno or 0.
 * @own_port: Homa or TCP port of this end; 0 if it is not known any more.
 * @peer_port: Homa or TCP port of the other end; 0 if it is not known any more.
 * @src: sender of the packet.
 * @dst: receiver of the packet; of an RPC, the peer.
 * @src_encap: UDP encapsulation port of @src.
 * @dst_encap: UDP encapsulation port of @dst.
 */
struct homad_trace_record {
	u64 at_ns;
	u64 app;
	u64 rpc;
	u8 kind;
	u8 port;
	u8 prio;
	u8 flags;
	u16 captured;
	u16 thread;
	u32 length;
	s32 error;
	u16 own_port, peer_port;
	u16 src_encap, dst_encap;
	u8 src[16], dst[16];
};
HOMA_STATIC_ASSERT(sizeof(struct homad_trace_record) == 80,
		   "tools/records.py knows this layout");

/**
 * struct homad_trace_want - what to record
 * @packets: packets are recorded. @rpcs: the life of RPCs is recorded. @snap: most bytes of
 *	a packet that are recorded.
 * @by_app: only @num_apps attachments, by id and Homa port; the slow path may
 *	change these while the fast path reads.
 *	@app: their ids. @app_port: their Homa ports.
 * @by_peer: only the address @peer. @port: 0 or a Homa or TCP port of either side.
 */
struct homad_trace_want {
	bool packets, rpcs;
	bool by_app, by_peer;
	u32 snap;
	u32 num_apps;
	u64 app[HOMAD_TRACE_APPS];
	u16 app_port[HOMAD_TRACE_APPS];
	u8 peer[16];
	u16 port;
};

/**
 * struct homad_trace - the ring of one thread
 * @want: what is recorded; shared by all rings of a trace.
 * @slots: @mask + 1 slots of @slot_bytes each, for a record and its bytes.
 * @head: number of the record that is read next; the slow path writes it.
 * @tail: number of the record that is written next; the fast path writes it.
 * @lost: number of records for which there was no room; the fast path writes it.
 */
struct homad_trace {
	const struct homad_trace_want *want;
	u8 *slots;
	u32 slot_bytes;
	u32 mask;
	u64 head __attribute__((aligned(64)));
	u64 tail __attribute__((aligned(64)));
	u64 lost;
};

/** homad_trace_new() - make a ring of at most @memory bytes; NULL: no memory. */
struct homad_trace *homad_trace_new(const struct homad_trace_want *want,
				    size_t memory);
void homad_trace_free(struct homad_trace *trace);
/** homad_trace_peek() - return the oldest record, or NULL; its bytes stand behind it. */
const struct homad_trace_record *homad_trace_peek(const struct homad_trace *trace);
void homad_trace_pop(struct homad_trace *trace);
/**
 * homad_trace_attach() - have a thread record to @arg, a struct homad_trace, or nowhere if
 * that is NULL; for homad_call().
 */
int homad_trace_attach(struct homad_thread *t, void *arg);

/* ---- hooks of the fast path ---- */

/**
 * struct homad_traced - a TCP segment as the recorder sees it
 * @kind: HOMAD_TRACE_RX, _TX or _LOCAL.
 * @tos: DSCP and ECN, as they stand in an IP header.
 * @port: the port that it came or goes by.
 * @from, @to: addresses of its sender and receiver, 16 bytes each.
 * @bytes: the segment's length, from the TCP header on.
 * @header: @header_bytes, first the TCP header; of what comes in one piece, all.
 * @pieces: what comes in several pieces, the first of them @header; or NULL.
 * @payload: @payload_bytes that follow.
 * @rest: the bytes after these, up to @bytes, if the payload lies in two pieces.
 * @app: homad_app.id of the attachment that has the connection at this end, in a segment
 *	within this host the sender; 0: nobody has it. @to_app: of the receiver within this host.
 * Written by: the caller, who has it on its stack.
 */
struct homad_traced {
	enum homad_trace_kind kind;
	u8 tos;
	const struct homad_port *port;
	const u8 *from, *to;
	u32 bytes;
	const u8 *header;
	u32 header_bytes;
	const struct nic_piece *pieces;
	const u8 *payload;
	u32 payload_bytes;
	const u8 *rest;
	u64 app, to_app;
};

/** homad_trace_segment() - record a segment; only if homad_thread.trace is set */
void homad_trace_segment(struct homad_thread *t, const struct homad_traced *seg);

void homad_trace_rx_slow(struct homad_thread *t, const struct homad_port *port,
			 const struct nic_rx *pkt);
void homad_trace_tx_slow(struct homad_thread *t, const struct homad_port *port,
			 enum homad_trace_kind kind, const struct nic_tx *pkt);
void homad_trace_rpc_slow(struct homad_thread *t, enum homad_trace_kind kind,
			  const struct homad_rpc *rpc, u32 length, int error);

static inline void homad_trace_rx(struct homad_thread *t,
				  const struct homad_port *port,
				  const struct nic_rx *pkt)
{
	HOMAD_PROBE4(rx, port->index, pkt->data, pkt->len, pkt->src.ip);
	if (unlikely(t->trace))
		homad_trace_rx_slow(t, port, pkt);
}

static inline void homad_trace_tx(struct homad_thread *t,
				  const struct homad_port *port,
				  enum homad_trace_kind kind,
				  const struct nic_tx *pkt)
{
	HOMAD_PROBE4(tx, port->index, pkt->hdr, pkt->hdr_len + pkt->payload_len,
		     pkt->dst.ip);
	if (unlikely(t->trace))
		homad_trace_tx_slow(t, port, kind, pkt);
}

static inline void homad_trace_rpc(struct homad_thread *t,
				   enum homad_trace_kind kind,
				   const struct homad_rpc *rpc, u32 length,
				   int error)
{
	if (unlikely(t->trace))
		homad_trace_rpc_slow(t, kind, rpc, length, error);
}

#endif
