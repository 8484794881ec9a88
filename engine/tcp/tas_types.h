/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the TCP engine and its host say to each other.
 *
 * The engine is TCP as TAS splits it (Kaufmann et al., EuroSys 2019): a fast path for
 * segments of established connections and a slow path for everything else, both without
 * payload. Its host moves bytes: it copies what a verdict tells it to into the
 * application's receive buffer, and sends headers that the engine wrote before bytes of
 * the application's send buffer. Time, memory and randomness are the host's, too.
 *
 * One engine belongs to one thread. A host with several threads has an engine for each
 * and steers the packets of a connection to one of them.
 *
 * Written by: the one thread that the engine belongs to.
 */
#ifndef HOMA_TAS_TYPES_H
#define HOMA_TAS_TYPES_H

#include "homa_plat.h"
#include "tas_wire.h"

#define TAS_NEVER UINT64_MAX  /* a time that does not come */
#define TAS_MSEC 1000000ull   /* ns */
#define TAS_SEC 1000000000ull /* ns */

/* Errors are negative errno values as the application sees them. */
enum tas_error {
	TAS_ENOMEM = -12,
	TAS_EINVAL = -22,
	TAS_EPIPE = -32,
	TAS_EADDRINUSE = -98,
	TAS_ECONNRESET = -104,
	TAS_ENOTCONN = -107,
	TAS_ETIMEDOUT = -110,
	TAS_ECONNREFUSED = -111,
};

/**
 * struct tas_pair - the two ends of a connection, seen from here
 * @local: our address, in network order, IPv4 as ::ffff:a.b.c.d.
 * @remote: the peer's address, in the same form.
 * @local_port: our port, in host order.
 * @remote_port: the peer's port, in host order.
 */
struct tas_pair {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
};

HOMA_STATIC_ASSERT(sizeof(struct tas_pair) == 36, "compared as words");

static inline bool tas_pair_equal(const struct tas_pair *a,
				  const struct tas_pair *b)
{
	return !((homa_get_le64(a->remote + 8) ^ homa_get_le64(b->remote + 8)) |
		 (homa_get_le64(a->remote) ^ homa_get_le64(b->remote)) |
		 (homa_get_le64(a->local + 8) ^ homa_get_le64(b->local + 8)) |
		 (homa_get_le64(a->local) ^ homa_get_le64(b->local)) |
		 (u64)(a->local_port ^ b->local_port) |
		 (u64)(a->remote_port ^ b->remote_port));
}

/* Code points of the IP header's ECN field (RFC 3168). */
enum tas_ecn {
	TAS_ECN_NONE = 0,
	TAS_ECN_ECT1 = 1,
	TAS_ECN_ECT0 = 2,
	TAS_ECN_CE = 3,
};

struct tas_conn;
struct tas_engine;

/**
 * struct tas_copy - what the host is to do with a segment's payload
 * @conn: connection into whose receive buffer it is copied; NULL: nothing is to be copied.
 * @from: offset of the first byte to copy, in bytes from the beginning of the payload.
 * @length: number of bytes to copy.
 * @to: position of that byte in the stream, counted from 0 modulo 2^32; the host copies it to
 *	@to modulo the size of the receive buffer.
 */
struct tas_copy {
	struct tas_conn *conn;
	u32 from;
	u32 length;
	u32 to;
};

/**
 * struct tas_out - a segment to send
 * @pair: the two ends; the segment goes from @local to @remote. The engine may change it in its
 *	next call.
 * @conn: connection from whose send buffer the payload comes; NULL: there is no payload.
 * @from: position in the stream of the payload's first byte, as in struct tas_copy.
 * @length: number of bytes of payload.
 * @mss: if @length is more than this, the host's device cuts the payload into segments of
 *	@mss bytes, each with a copy of the header, as segmentation offloads do.
 * @ecn: code point for the IP header, an enum tas_ecn.
 * @header_length: bytes of @header that are used.
 * @header: the TCP header. The host fills in the checksum, which is 0.
 */
struct tas_out {
	const struct tas_pair *pair;
	struct tas_conn *conn;
	u32 from;
	u32 length;
	u16 mss;
	u8 ecn;
	u8 header_length;
	u8 header[TAS_HDR_MAX];
};

/* What has happened to a connection since its host asked last; bits. */
enum tas_event {
	TAS_EV_OPEN = 1, /* connect() has succeeded, or accept() may take it */
	TAS_EV_READABLE =
		2, /* there are more bytes in order, or the stream has ended */
	TAS_EV_WRITABLE = 4, /* bytes were acknowledged */
	TAS_EV_ERROR = 8,    /* the connection has failed; see tas_conn.error */
	TAS_EV_END = 16, /* the peer sends no more, and all bytes are in order */
	TAS_EV_FREE =
		/* the connection is closed and over; its memory is the host's again */
	32,
	TAS_EV_SENT =
		/* the connection is closed, and the peer has acknowledged all bytes and the
		 * FIN */
	64,
	TAS_EV_URGENT =
		128, /* a byte is urgent, which may have to come yet; see tas_urgent_at() */
};

enum tas_state {
	TAS_CLOSED,
	TAS_SYN_SENT,
	TAS_SYN_RECEIVED,
	TAS_ESTABLISHED,
	TAS_FIN_WAIT_1,
	TAS_FIN_WAIT_2,
	TAS_CLOSE_WAIT,
	TAS_CLOSING,
	TAS_LAST_ACK,
	TAS_TIME_WAIT,
};

/* Congestion controls; see tas_cc.c. */
enum tas_control {
	TAS_NEWRENO,
	TAS_DCTCP,
	TAS_CUBIC,
	TAS_RATE_DCTCP,
	TAS_TIMELY,
	TAS_CONSTANT,
	TAS_CONTROLS,
};

/* The settings that tas_params.def lists, with their units. */
struct tas_params {
#define X(name, value, least, most, unit, text) u32 name;
#include "tas_params.def"
#undef X
};

/* The counters that tas_metrics.def lists. The engine adds to them. */
struct tas_metrics {
#define X(name, text) u64 name;
#include "tas_metrics.def"
#undef X
};

#endif
