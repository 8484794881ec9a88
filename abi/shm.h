/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What homad and the applications attached to it share: the layout of the shared memory,
 * and in shm_ctl.h the messages on the attach socket. Both sides are built against these
 * headers, and perhaps not of the same day.
 *
 * Versions: the version is 256 * major + minor. Who has another major version cannot
 * be understood, and is told so. All else is said by bits: HOMA_SHM_CAN_* of the
 * application in ATTACH's @features, and of homad in the header's. Each side uses what
 * both can do, and ignores bits that it does not know. Those before @features compare
 * the whole version with 1; so an application says that, and homad answers with
 * the version that it was asked in.
 *
 * An application has one *attachment* for each open handle: a connection to
 * the attach socket (SOCK_SEQPACKET), whose end is the end of the attachment,
 * and memory that homad made and sealed against resizing:
 *
 *	queues	struct homa_shm_header, then the rings, at the places that a table names
 *	data	segment 0 of bytes to send; more segments on demand
 *	pool	64 KiB pages where messages arrive; the application reads them
 *
 * homad has memory behind what is in use, and charges it to the user; behind the rest
 * it comes with use: of the pool before messages arrive there, of a submission ring
 * and its stage when @sqs says that the ring is in use. Entries of a ring are taken
 * when its memory is there.
 *
 *	submission rings (one for each thread)	application -> homad
 *	release ring	pages given back	application -> homad
 *	completion ring				homad -> application
 *
 * Every ring has one producer and one consumer at a time; indices count up
 * for ever, an entry is at index & (entries - 1). A producer fills entries,
 * then stores the index (release); a consumer loads it (acquire).
 *
 * Trust: homad believes nothing that it reads here. It reads each value once,
 * checks it, and ends the attachment if it is impossible (state becomes
 * HOMA_SHM_EVICTED). Applications trust homad.
 *
 * The bell: most looks at most attachments find nothing, so homad shall not have to look at
 * each submission ring to see that. If both sides have HOMA_SHM_CAN_BELL, who submits to
 * another ring than the first stores its tail, loads @bell of the first ring behind a full
 * barrier, and stores 1 there if it is 0. Then homad looks at the first ring's tail and at
 * the bell, which lie in one cache line. When the bell is not 0 it stores 0, and looks at
 * all rings behind a full barrier. So either the submitter finds the bell at 0 and rings it,
 * or homad, which stores that 0 afterwards, finds the tail. Who uses the first ring only
 * never touches the bell, and threads that submit to others while homad has not come yet
 * only read it. A submission without the bell waits until homad would sleep.
 *
 * Sleeping: homad stops looking at an attachment that is quiet and says in
 * @need_kick what it wants to be told of by the kick eventfd: submissions
 * (always), pages given back (messages wait for them), completions consumed (the
 * ring was full; an application need only look if it found the ring full). An
 * application that wants to sleep sets @armed, looks at the completion ring once
 * more, and waits for its wake pipe (and for the end of the connection). Each
 * side stores its index or word and then loads the other's word, with a full
 * barrier between.
 *
 * Room: an application that found no room in a submission ring, in its stage or in the memory to
 * send from, and wants to sleep until there is, sets HOMA_SHM_ARM_ROOM in @armed if homad has
 * HOMA_SHM_CAN_ROOM, rings the bell as for a submission, looks for room once more, and waits for
 * its wake pipe. homad stores the head of a ring that it has moved, or the completion ring's tail
 * behind HOMA_CQE_FREE, then loads @armed behind a full barrier. If the bit is there it clears it
 * and writes to the pipe. So either the application finds the room, or homad finds the bit. As
 * most applications never set the bit, homad does not look for it after each turn, but only from
 * when it found it set as it answered a bell; then it writes at once, because heads may have moved
 * since the bit was set. It writes for any ring, so that there may be no room yet.
 */
#ifndef HOMA_ABI_SHM_H
#define HOMA_ABI_SHM_H

#include <stdint.h>
#include "shm_ctl.h"

#define HOMA_SHM_MAGIC 0x616d6f48u /* "Homa" */
#define HOMA_SHM_VERSION 1u
#define HOMA_SHM_MAJOR(version) ((version) >> 8)

#define HOMA_SHM_SOCKET "/run/homa/homad.sock" /* $HOMA_SERVICE_SOCKET */

#define HOMA_SHM_LINE 64u
#define HOMA_SHM_SQS 8u /* submission rings of an attachment */
/* Default, least and most entries of a submission ring, the completion ring and the release
 * ring; powers of two. */
#define HOMA_SHM_SQ_ENTRIES 256u
#define HOMA_SHM_SQ_MIN 16u
#define HOMA_SHM_SQ_MAX 1024u
#define HOMA_SHM_CQ_ENTRIES 1024u
#define HOMA_SHM_CQ_MIN 16u
#define HOMA_SHM_CQ_MAX 8192u
#define HOMA_SHM_RELEASES 8192u
#define HOMA_SHM_RELEASES_MIN 64u
#define HOMA_SHM_RELEASES_MAX 65536u
/* most data segments of an attachment: messages to send */
#define HOMA_SHM_SEGMENTS 64u
#define HOMA_SHM_STAGE (64u << 10) /* bytes for short messages of one ring */
#define HOMA_SHM_COPY_MAX 4096u	   /* longest message copied when submitted */
/* most pool pages of 64 KiB in which one message lies */
#define HOMA_SHM_PAGES 16u
#define HOMA_SHM_MESSAGE_MAX 1000000u
/* Low bits of a request's number that its RPC's id shows unchanged; see id_key. */
#define HOMA_SHM_NUMBER_BITS 17u
#define HOMA_SHM_NUMBERS_AHEAD ((uint64_t)1 << 18) /* see id_key */

/* ---- rings ---- */

enum homa_sqe_op {
	HOMA_SQE_REQUEST = 1,
	HOMA_SQE_REPLY,
	HOMA_SQE_ABORT,
	HOMA_SQE_REJECT, /* if @features has HOMA_SHM_CAN_REJECT */
};

enum {
	HOMA_SQE_PRIVATE = 1, /* REQUEST: completes with HOMA_CQE_PRIVATE */
	/* REQUEST, REPLY, @length <= HOMA_SHM_COPY_MAX: the application may use the bytes
	 * again when the ring's head has passed this entry. Without this bit it may when
	 * HOMA_CQE_FREE says so. */
	HOMA_SQE_COPY = 2,
	/* REQUEST: homad and the application compute the RPC's id from the number in bits 16
	 * to 63 of @token; see homa_shm_header.id_key. */
	HOMA_SQE_NUMBERED = 4,
	/* REQUEST: @deadline is valid. An older homad does not look at it, and tells
	 * nobody. */
	HOMA_SQE_DEADLINE = 8,
};

/**
 * struct homa_sqe - a command
 * @op: what to do, enum homa_sqe_op.
 * @flags: bits from HOMA_SQE_PRIVATE to HOMA_SQE_DEADLINE.
 * @port: REQUEST: the server's Homa port.
 * @length: REQUEST, REPLY: the length of the message in bytes, 1 to 1,000,000. ABORT: the
 *	positive errno with which the RPCs fail, or 0 if they shall end without a failure.
 *	REJECT: the errno that the client hears, 1 to 511.
 * @offset: REQUEST, REPLY: the message begins at this byte of the data segment @segment.
 * @segment: REQUEST, REPLY: the number of the data segment in which the message lies.
 * @encap: REQUEST: the server's UDP encapsulation port; 0: the default way.
 * @ip: REQUEST: the server's address (IPv4 as ::ffff:a.b.c.d).
 * @cookie: REQUEST: a value of the application's, which comes back with the completion.
 * @token: REQUEST: the application's name for the RPC, not 0. Its low 16 bits are below
 *	homa_ctl_answer.max_rpcs, and no other open request has the same ones. With
 *	HOMA_SQE_NUMBERED the upper 48 bits are the number that the RPC's id is made of, which
 *	is used only once. REPLY, REJECT: the request's homa_cqe.token. ABORT: the token of one
 *	of the application's requests, or 0 for all of them.
 * @deadline: REQUEST, with HOMA_SQE_DEADLINE: when the application stops waiting for the
 *	response, ns of homad's CLOCK_MONOTONIC; 0: it does not say. The server is told how long
 *	that is from now; homad does nothing when it passes.
 * @reserved: The application writes 0; homad does not read it.
 *
 * Written by: the application, before it raises the ring's tail; read by: homad, after that.
 */
struct homa_sqe {
	uint8_t op;
	uint8_t flags;
	uint16_t port;
	uint32_t length;
	uint32_t offset;
	uint16_t segment;
	uint16_t encap;
	uint8_t ip[16];
	uint64_t cookie;
	uint64_t token;
	uint64_t deadline;
	uint64_t reserved;
};

enum homa_cqe_kind {
	/* a whole request has arrived; @token is for REPLY */
	HOMA_CQE_REQUEST = 1,
	HOMA_CQE_RESPONSE, /* the response to request @token has arrived */
	HOMA_CQE_FAILED,   /* request @token failed with @error */
	HOMA_CQE_GONE,	   /* request @token was aborted with errno 0 */
	/* The application may use the bytes of a message to send again, which lie at offset
	 * @length of segment @num_pages: homad does not need them any more. */
	HOMA_CQE_FREE,
};

enum { HOMA_CQE_PRIVATE = 1 };

/**
 * struct homa_cqe - something happened
 * @kind: what happened, enum homa_cqe_kind.
 * @flags: HOMA_CQE_PRIVATE if the request had HOMA_SQE_PRIVATE.
 * @port: REQUEST, RESPONSE: the other end's Homa port. FAILED may have it, @ip and @encap, too.
 * @error: FAILED: why, a positive errno.
 * @length: REQUEST, RESPONSE: the length of the message in bytes. FREE: the offset of the
 *	bytes in their segment.
 * @num_pages: REQUEST, RESPONSE: the number of valid entries of @pages. FREE: the number of
 *	the segment in which the bytes are.
 * @token: RESPONSE, FAILED, GONE: the request's homa_sqe.token. REQUEST: homad's name for the
 *	RPC, by which the application replies or rejects.
 * @ip: REQUEST, RESPONSE: the other end's address (IPv4 as ::ffff:a.b.c.d).
 * @encap: REQUEST, RESPONSE: its UDP encapsulation port; 0: none.
 * @cookie: RESPONSE, FAILED, GONE: the value that the request had.
 * @deadline: REQUEST: when its client stops waiting, as the client says: ns of homad's
 *	CLOCK_MONOTONIC; 0: it does not say, or this homad is older than that. Any value may
 *	come. An application in another time namespace than homad cannot use either.
 * @id: REQUEST: the RPC's id at this end; if its client is an application of this
 *	host that does not number its requests, 2 * its token + 1.
 * @reserved: Nobody writes or reads it; it is 0.
 * @pages: @num_pages offsets into the pool, one for each 64 KiB of the message. The
 *	application may use each page until it puts it into the release ring.
 *
 * Written by: homad, before it raises the ring's tail; read by: the application, after that.
 */
struct homa_cqe {
	uint8_t kind;
	uint8_t flags;
	uint16_t port;
	uint32_t error;
	uint32_t length;
	uint32_t num_pages;
	uint64_t id;
	union {
		uint64_t cookie;
		uint64_t deadline;
	};
	uint64_t token;
	uint8_t ip[16];
	uint16_t encap;
	uint16_t reserved[3];
	uint32_t pages[HOMA_SHM_PAGES];
};

/* The two indices of a ring, each in a cache line of its own. Written by: the producer (@tail)
 * and the consumer (@head), as each field says; read by: both. */
struct homa_shm_ring {
	/* Number of entries that the producer has put in, modulo 2^32. Only the producer
	 * writes it. */
	uint32_t tail;
	/* The bell, in the first submission ring only: the application writes 1, homad writes
	 * 0; see the top of the file. */
	uint32_t bell;
	uint32_t pad0[14];
	/* Number of entries that the consumer has taken out, modulo 2^32. Only the consumer
	 * writes it. */
	uint32_t head;
	uint32_t pad1[15];
};

enum homa_shm_state {
	HOMA_SHM_RUNNING = 0,
	HOMA_SHM_STOPPING, /* homad is ending */
	HOMA_SHM_EVICTED,  /* this attachment broke the rules */
	HOMA_SHM_CLOSED,   /* after HOMA_CTL_SHUTDOWN */
};

/* Bits of @armed: events for which the application wants to be woken. homad clears a bit
 * when it has signalled the event. */
enum {
	HOMA_SHM_ARM_SHARED = 1, /* wake pipe: a shared message */
	HOMA_SHM_ARM_ANY = 2,	 /* wake pipe: any completion */
	HOMA_SHM_ARM_FD = 4,	 /* HOMA_CTL_READY_FD: a shared message */
	/* wake pipe: room in a submission ring, or HOMA_CQE_FREE; see the top of the
	 * file */
	HOMA_SHM_ARM_ROOM = 8,
};

/* Bits of @features: what homad or an application can do beyond the first of its
 * version. */
enum {
	HOMA_SHM_CAN_REJECT = 1, /* HOMA_SQE_REJECT, HOMA_CTL_ALIVE */
	HOMA_SHM_CAN_SHARE = 2,	 /* HOMA_CTL_LISTEN_SHARED */
	HOMA_SHM_CAN_STREAM = 4, /* HOMA_CTL_STREAMS */
	HOMA_SHM_CAN_FORK = 8,	 /* HOMA_CTL_STREAM_SHARE */
	/* homad: its header has a table of places. Application: it looks there, so its rings
	 * may have other sizes than those of struct homa_shm_queues. */
	HOMA_SHM_CAN_PLACES = 16,
	/* homad: the bell alone tells it of submissions. Application: it rings the bell if
	 * homad has this bit. */
	HOMA_SHM_CAN_BELL = 32,
	/* homad: it knows HOMA_CTL_EXPORT. Application: it wants to hand the attachment
	 * over, for which homad keeps descriptors. */
	HOMA_SHM_CAN_HANDOVER = 64,
	HOMA_SHM_CAN_EXEC = 128, /* HOMA_CTL_FOR_EXEC */
	/* homad: it knows HOMA_SHM_ARM_ROOM, for applications that ring the bell. */
	HOMA_SHM_CAN_ROOM = 256,
	/* homad: it can send HOMA_STREAM_UNJOINED. Application: it knows that event. */
	HOMA_SHM_CAN_UNJOINED = 512,
	HOMA_SHM_CAN_PATIENCE = 1024, /* HOMA_STREAM_PATIENCE */
	HOMA_SHM_CAN_PASS = 2048,     /* HOMA_CTL_STREAM_TAKE */
	HOMA_SHM_CAN_URGENT = 4096, /* HOMA_STREAM_URGENT, HOMA_STREAM_HAS_URGENT */
	HOMA_SHM_CAN_BACKLOG = 8192, /* HOMA_STREAM_BACKLOG */
	HOMA_SHM_CAN_BEGUN = 16384,  /* HOMA_STREAM_BEGUN */
	HOMA_SHM_CAN_SENT = 32768,   /* homa_stream_slot.tx_sent */
};

/* Bits of @need_kick: events for which homad wants a kick. */
enum {
	HOMA_SHM_KICK_SUBMIT = 1,  /* an entry in a submission ring */
	HOMA_SHM_KICK_RELEASE = 2, /* an entry in the release ring */
	HOMA_SHM_KICK_CONSUME = 4, /* the completion ring is not full any more */
};

enum homa_shm_place_kind {
	HOMA_SHM_SUBMIT = 1, /* its entries are struct homa_sqe */
	HOMA_SHM_COMPLETE,   /* its entries are struct homa_cqe */
	HOMA_SHM_RELEASE,    /* uint32_t */
};

#define HOMA_SHM_PLACES_MAX 64u /* most entries of a table of places */

/**
 * struct homa_shm_place - where one ring is in the queues memory
 *
 * Written by: homad, before the application sees it; read by: the application. Offsets are
 * multiples of HOMA_SHM_LINE.
 * @kind: enum homa_shm_place_kind; an application ignores kinds that it does not know.
 * @number: the number of the ring among those of its kind, from 0.
 * @entry_bytes: the size of an entry, bytes: that of the type of its kind, or more for an
 *	application that said by a bit that it expects more.
 * @entries: the number of entries, a power of two.
 * @indices: offset of its struct homa_shm_ring.
 * @first: offset of its first entry.
 * @reserved: homad writes 0.
 */
struct homa_shm_place {
	uint16_t kind;
	uint16_t number;
	uint32_t entry_bytes;
	uint32_t entries;
	uint32_t indices;
	uint32_t first;
	uint32_t reserved;
};

/**
 * struct homa_shm_header - begin of the queues memory
 * @magic: HOMA_SHM_MAGIC; homad writes it before the application sees it, as it does
 *	@version, @bytes, @id_key, @features, @places and @num_places.
 * @version: the version that the answer to ATTACH has.
 * @bytes: the size of the queues memory, bytes.
 * @id_key: A request with HOMA_SQE_NUMBERED has an id that both sides compute, from its
 *	number n and SipHash-1-3 of the 20 bytes @ip, @encap (as here), 0, 0 under this key:
 *
 *                 (hash << (HOMA_SHM_NUMBER_BITS + 1)) + (n << 1)
 *
 *         When k requests were submitted, n is less than 2 * k + HOMA_SHM_NUMBERS_AHEAD.
 *         Two zeros: this homad knows no numbers.
 * @features: bits of HOMA_SHM_CAN_* that homad has.
 * @places: offset of a table of struct homa_shm_place, a multiple of 8, if @features has
 *	HOMA_SHM_CAN_PLACES; else the rings are where struct homa_shm_queues has them.
 * @num_places: number of entries of that table, at most HOMA_SHM_PLACES_MAX.
 * @armed: the application writes here for what homad shall wake it, HOMA_SHM_ARM_*; homad
 *	clears each bit that it has signalled for.
 * @sqs: the application writes here how many submission rings are in use, from the first; 1
 *	at first.
 * @need_kick: homad writes here after what the application shall write to the kick eventfd,
 *	HOMA_SHM_KICK_*; 0 while homad polls the rings.
 * @state: homad writes an enum homa_shm_state.
 * @sq: indices of the submission rings.
 * @release: indices of the release ring.
 * @cq: indices of the completion ring.
 *
 * Written by: homad, except for @armed and @sqs, which the application writes, and the rings;
 * read by: both.
 */
struct homa_shm_header {
	uint32_t magic;
	uint32_t version;
	uint64_t bytes;
	uint64_t id_key[2];
	uint32_t features;
	uint32_t places;
	uint32_t num_places;
	uint32_t pad0[5];
	uint32_t armed;
	uint32_t sqs;
	uint32_t pad1[14];
	uint32_t need_kick;
	uint32_t state;
	uint32_t pad2[14];
	struct homa_shm_ring sq[HOMA_SHM_SQS];
	struct homa_shm_ring release;
	struct homa_shm_ring cq;
};

/**
 * struct homa_shm_queues - the whole of the queues memory, but for the table of places
 *	behind it, of an application that asks for no other sizes
 * Written by: the application (@sqe, @released) and homad (@cqe); @h says it by field.
 */
struct homa_shm_queues {
	/* What homad says of the memory, and the indices of all rings. */
	struct homa_shm_header h;
	/* The entries of the submission rings, one row for each ring. */
	struct homa_sqe sqe[HOMA_SHM_SQS][HOMA_SHM_SQ_ENTRIES];
	/* The entries of the completion ring. */
	struct homa_cqe cqe[HOMA_SHM_CQ_ENTRIES];
	/* The entries of the release ring: offsets of pages in the pool, in bytes. */
	uint32_t released[HOMA_SHM_RELEASES];
};

/* Segment 0: what homad gives at once; short messages are staged in its first
 * HOMA_SHM_SQS * HOMA_SHM_STAGE bytes, one part for each submission ring, and longer
 * ones may lie behind those. No message may reach into the stage of a ring that is not
 * in use (yet). The rest is the application's own affair: homad only checks bounds. */

HOMA_ABI_ASSERT(sizeof(struct homa_shm_place) == 24, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_sqe) == 64, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_cqe) == 128, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_shm_ring) == 2 * HOMA_SHM_LINE, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_shm_header) == 192 + 10 * 128, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_shm_queues) ==
			1472 + 8 * 256 * 64 + 1024 * 128 + 8192 * 4,
		"ABI");

#endif
