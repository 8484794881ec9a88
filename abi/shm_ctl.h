/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What homad and an application say to each other over the attach socket, before and beside
 * the shared memory of shm.h: one packet asks, one answers.
 *
 * Written by: who sends the packet, the application a request and homad all others; read by:
 * the other one, which has a copy of its own of what the socket carried.
 */
#ifndef HOMA_ABI_SHM_CTL_H
#define HOMA_ABI_SHM_CTL_H

#include <stdint.h>

#define HOMA_SHM_TEXT \
	224u /* bytes of the sentence in an answer, the last of which is 0 */

enum homa_ctl_op {
	/* the first command; its answer carries HOMA_CTL_ATTACH_FDS descriptors */
	HOMA_CTL_ATTACH = 1,
	HOMA_CTL_BIND,	  /* become a server on a port */
	HOMA_CTL_POOL,	  /* another receive pool; answer: its memory */
	HOMA_CTL_SEGMENT, /* one more data segment; answer: its memory */
	HOMA_CTL_ROUTE,	  /* can this destination be reached? */
	/* answer: the reading end of a pipe, behind homa_fd(); homad writes to it when there is
	 * a message that any receive may take */
	HOMA_CTL_READY_FD,
	HOMA_CTL_METRICS,  /* answer: @total, then packets of homa_ctl_metric */
	HOMA_CTL_RPCS,	   /* answer: @total, then packets of homa_ctl_rpc */
	HOMA_CTL_SHUTDOWN, /* end all RPCs, take no new ones; stay attached */
	HOMA_CTL_LISTEN,   /* take requests on a port, or no longer */
	HOMA_CTL_ALIVE, /* does the client of a request still wait? answer: @total */
	/* Commands for TCP streams (HOMA_SHM_CAN_STREAM); see shm_stream.h. */
	HOMA_CTL_STREAMS, /* memory for streams; answer: HOMA_STREAM_FDS descriptors */
	HOMA_CTL_STREAM_LISTEN, /* with a bound socket; answer: @total, a listener's number */
	/* Commands if @features has HOMA_SHM_CAN_FORK. SHARE comes with the read end of a
	 * pipe; when all processes that may write to it have ended, the ticket is void. The
	 * answer has a ticket in @ip, and in @total the number of streams and listeners
	 * that it is for. */
	HOMA_CTL_STREAM_SHARE,
	HOMA_CTL_STREAM_JOIN, /* @ip: a ticket of this user; answer: @total, as above */
	/* Hand-over of an attachment that said HOMA_SHM_CAN_HANDOVER. EXPORT comes with a memfd
	 * of at most HOMA_SHM_STATE_MAX bytes, sealed against other sizes, that homad does not
	 * read. Answer: @ip, a token; then homad hangs up, and keeps the attachment for a while.
	 * IMPORT and TAKE come from a connection of the same user that has not attached. IMPORT:
	 * @ip: the token; @features as of ATTACH; the answer is as of ATTACH, with @segment data
	 * segments and with HOMA_CTL_ATTACH_FDS descriptors, that memfd, and segments 1 to
	 * @segment - 1. Nobody else gets the attachment while this connection lasts. TAKE:
	 * the attachment belongs to this connection from now on, and the token is void. */
	HOMA_CTL_EXPORT,
	HOMA_CTL_IMPORT,
	HOMA_CTL_TAKE,
	/* Command if @features has HOMA_SHM_CAN_PASS, with a socket that stands for a stream or
	 * listener (HOMA_CTL_FOR_PASS): the attachment gets that. The answer is -EAGAIN while
	 * memory for one more stream is being made, -ENOENT if the socket stands for nothing of
	 * this user. */
	HOMA_CTL_STREAM_TAKE,
};

/* Bit of @bytes of SHARE and JOIN, if @features has HOMA_SHM_CAN_EXEC: the streams are for
 * a program that exec() starts, after which the memory of the program before is not mapped
 * any more. SHARE: the ticket is void after HOMA_CTL_EXEC_SECONDS as well, because a
 * program that does not know of it keeps the pipe; connections that nobody else has are
 * reset then. JOIN: the answer comes with the memory, as in HOMA_CTL_STREAMS, of up to
 * HOMA_CTL_ATTACH_FDS attachments of the same user in which streams of the ticket lie. */
#define HOMA_CTL_FOR_EXEC 1u
#define HOMA_CTL_EXEC_SECONDS 30u
/* Bit of @bytes of SHARE: the ticket is for listeners alone. As long as such a ticket is
 * valid, homad hands out connections only to holders that ask. */
#define HOMA_CTL_FOR_LISTENERS 2u
/* Bit of @bytes of SHARE: the answer is -EAGAIN if a connection has come to a listener and
 * the application has not taken that event yet, because the connection would belong to the
 * ticket and nobody would accept it. */
#define HOMA_CTL_ALL_SEEN 4u
/* Bit of @bytes of SHARE: the ticket is for one stream, which goes to another process of the user
 * through a UNIX socket (SCM_RIGHTS). What goes there is a socket that stands for the stream: one
 * of AF_UNIX that listens, with a connection that waits in its backlog. SHARE comes with the
 * other end of that connection, instead of a pipe, and with struct homa_ctl_pass. As long as
 * anybody has the listening socket, or it is on its way, the ticket is valid, and whoever shows
 * it (STREAM_TAKE) and is of the same user gets the stream. Nobody writes to that connection: homad
 * ends its own direction, and whatever comes from the other one makes the ticket void. A user has
 * as many of these as homad lets him, and apart from them as many other tickets; else -EDQUOT. */
#define HOMA_CTL_FOR_PASS 8u
/* Bit of @bytes of SHARE, with HOMA_CTL_FOR_PASS: it is for a listener. */
#define HOMA_CTL_PASS_LISTENER 16u
/* Bits of @max_segments of STREAM_TAKE's answer: it is a listener; the attachment had it
 * before. */
#define HOMA_CTL_TAKEN_LISTENER 1u
#define HOMA_CTL_TAKEN_BEFORE 2u

/*
 * struct homa_ctl_pass - what is passed
 * @name: the attachment's name of the stream: generation << 32 | slot, or a listener's number.
 * @cookie: SO_COOKIE of the listening socket that stands for it.
 */
struct homa_ctl_pass {
	uint64_t name, cookie;
};

/*
 * struct homa_ctl_rings - how many entries rings have
 * @submit: number of entries of each submission ring; 0 in a request leaves it to homad.
 * @complete: number of entries of the completion ring, in the same way.
 * @release: number of entries of the release ring, in the same way.
 */
struct homa_ctl_rings {
	uint32_t submit, complete, release;
};

/**
 * struct homa_ctl_request - application to homad, one packet
 *
 * Fields that a command does not name below are 0.
 * @magic: always HOMA_SHM_MAGIC.
 * @version: always HOMA_SHM_VERSION.
 * @op: the command, enum homa_ctl_op.
 * @bytes: the command's number. ATTACH and POOL: the size of the receive pool that they ask
 *	for, a multiple of 64 KiB; 0: homad's default. SEGMENT: the size of the segment that it
 *	asks for. READY_FD with 1 asks for a signal for every message, with 0 for one when the
 *	first message waits. LISTEN has bits of HOMA_CTL_LISTEN_*. ALIVE has the token of the
 *	request. STREAMS: the most streams that there may be; 0: homad's default. STREAM_LISTEN:
 *	the most connections that may wait. STREAM_SHARE and STREAM_JOIN have bits of
 *	HOMA_CTL_FOR_* and HOMA_CTL_ALL_SEEN.
 * @port: the Homa port that BIND or LISTEN wants; 0 with LISTEN means the present one.
 * @features: ATTACH, IMPORT: bits of HOMA_SHM_CAN_* that the application has.
 * @encap: the UDP encapsulation port of the destination that ROUTE asks about; 0: none.
 * @ip: the address of that destination (IPv4 as ::ffff:a.b.c.d). IMPORT: the token.
 *	STREAM_JOIN: the ticket.
 * @rings: the sizes of the rings that ATTACH asks for; it counts if @features has
 *	HOMA_SHM_CAN_PLACES.
 * @pass: STREAM_SHARE with HOMA_CTL_FOR_PASS: what is passed.
 * @name: ATTACH: the name under which tools show the application, NUL-terminated.
 */
struct homa_ctl_request {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	uint64_t bytes;
	uint16_t port;
	uint16_t encap;
	uint32_t features;
	union {
		uint8_t ip[16];
		struct homa_ctl_rings rings;
		struct homa_ctl_pass pass;
	};
	char name[32];
};

/**
 * struct homa_ctl_answer - homad to application, one packet for each request
 *
 * Fields that an answer does not use are 0.
 * @error: 0, or why homad refuses, a negative errno.
 * @version: the version of the request; if homad refuses that version, homad's own.
 * @op: the command that this answers, enum homa_ctl_op.
 * @port: the Homa port of the attachment. ATTACH: the one that homad has chosen. BIND and
 *	LISTEN: the one that it has now.
 * @encap: ATTACH: the UDP port on which homad receives encapsulated packets; 0: none.
 * @native: ATTACH: 1: homad has a device over which it sends without UDP to addresses that
 *	name no encapsulation port; 0: it has none.
 * @ip: ATTACH, IMPORT: an address of this host; STREAM_SHARE: the ticket; EXPORT: the token;
 *	else zeros.
 * @queues_bytes: ATTACH, IMPORT: the size of the queues memory, bytes.
 * @data_bytes: ATTACH, IMPORT: the size of data segment 0; SEGMENT: of the new one, bytes.
 * @pool_bytes: ATTACH, IMPORT, POOL: the size of the receive pool, bytes.
 * @max_rpcs: ATTACH: the most requests that may be open at once, at most 65536. STREAM_TAKE: the
 *	slot in which the stream lies, in the memory whose descriptor the answer brings.
 * @max_segments: ATTACH: the most data segments, segment 0 included. STREAM_TAKE: bits of
 *	HOMA_CTL_TAKEN_*.
 * @segment: IMPORT: the number of data segments that the attachment has. SEGMENT: the index
 *	of the new one. STREAM_TAKE: the generation of the attachment's slot for the stream.
 * @total: METRICS, RPCS: the number of records that follow. ALIVE: 1 if the client still
 *	waits, else 0. STREAM_LISTEN: the listener's number. STREAM_SHARE, STREAM_JOIN: the
 *	number of streams and listeners that the ticket is for. STREAM_TAKE: the attachment's slot
 *	for the stream, or its number of the listener, whose socket the answer brings. EXPORT: the
 *	time for which the token is valid, ms.
 * @text: with an error: one sentence that says what is wrong and how to mend it.
 * @rings: ATTACH: how many entries each ring has; zeros from a homad that knows one size only.
 * @reserved: homad writes 0.
 */
struct homa_ctl_answer {
	int32_t error;
	uint16_t version;
	uint16_t op;
	uint16_t port;
	uint16_t encap;
	uint32_t native;
	uint8_t ip[16];
	uint64_t queues_bytes;
	uint64_t data_bytes;
	uint64_t pool_bytes;
	uint32_t max_rpcs;
	uint32_t max_segments;
	uint32_t segment;
	uint32_t total;
	char text[HOMA_SHM_TEXT];
	struct homa_ctl_rings rings;
	uint32_t reserved;
};

enum {
	HOMA_CTL_LISTEN_ON = 1, /* take requests, else refuse them */
	HOMA_CTL_LISTEN_V4 = 2, /* of IPv4 peers only */
	/* The port, which is named, may be shared with other attachments of this user that
	 * set this bit, too; if @features has HOMA_SHM_CAN_SHARE. */
	HOMA_CTL_LISTEN_SHARED = 4,
};

/* Descriptors of ATTACH's answer, in this order. POOL and SEGMENT bring one. */
enum {
	HOMA_CTL_FD_QUEUES,
	HOMA_CTL_FD_DATA,
	HOMA_CTL_FD_POOL,
	HOMA_CTL_FD_WAKE, /* homad writes to it, the application waits for it */
	HOMA_CTL_FD_KICK, /* the application writes to it, homad waits for it */
	HOMA_CTL_ATTACH_FDS,
	HOMA_CTL_FD_STATE =
		HOMA_CTL_ATTACH_FDS, /* IMPORT: data segments follow behind */
};

#define HOMA_SHM_STATE_MAX (32u << 20) /* bytes; see HOMA_CTL_EXPORT */
/* Most data segments of an attachment that can be handed over, and most descriptors of
 * IMPORT's answer. */
#define HOMA_SHM_HANDOVER_SEGMENTS 12u
#define HOMA_CTL_IMPORT_FDS (HOMA_CTL_ATTACH_FDS + HOMA_SHM_HANDOVER_SEGMENTS)

#define HOMA_CTL_BATCH 16u /* records in one packet after METRICS and RPCS */

/**
 * struct homa_ctl_metric - one counter of homad's
 * @value: the counter's value.
 * @name: its name, NUL-terminated.
 * @text: what it counts, in a few words, NUL-terminated.
 */
struct homa_ctl_metric {
	uint64_t value;
	char name[48];
	char text[104];
};

/**
 * struct homa_ctl_rpc - one open RPC of the attachment
 * @id: the RPC's id as the application knows it; of its own requests the token.
 * @cookie: the cookie of a request of the application, else 0.
 * @ip: the address of the other end.
 * @encap: its UDP encapsulation port; 0: none.
 * @port: its Homa port.
 * @client: 1 if the application is the RPC's client.
 * @tx_length: the length of the outgoing message, bytes.
 * @tx_sent: the number of its bytes that have left at least once.
 * @tx_granted: the number of its bytes that may leave.
 * @rx_length: the length of the incoming message, bytes.
 * @rx_remaining: the number of its bytes that have not arrived.
 * @rx_granted: the number of its bytes that the sender may send.
 * @ready: 1: the whole message has arrived, or the RPC has failed, and the application has
 *	not taken that.
 */
struct homa_ctl_rpc {
	uint64_t id;
	uint64_t cookie;
	uint8_t ip[16];
	uint16_t encap;
	uint16_t port;
	uint32_t client;
	uint32_t tx_length, tx_sent, tx_granted;
	uint32_t rx_length, rx_remaining, rx_granted;
	uint32_t ready;
};

#ifdef __cplusplus
#define HOMA_ABI_ASSERT(cond, text) static_assert(cond, text)
#else
#define HOMA_ABI_ASSERT(cond, text) _Static_assert(cond, text)
#endif
HOMA_ABI_ASSERT(sizeof(struct homa_ctl_request) == 72, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_ctl_answer) == 88 + HOMA_SHM_TEXT, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_ctl_metric) == 160, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_ctl_rpc) == 72, "ABI");

#endif
