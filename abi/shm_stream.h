/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP streams between homad and an attached application: the memory that both share and
 * what they say there. An attachment (shm.h) asks for it once with HOMA_CTL_STREAMS; its
 * end is the end of all its streams. What shm.h says of trust holds here, too: homad
 * reads each value once, checks it, and ends the attachment if it is impossible.
 *
 * The memory begins with struct homa_stream_area: rings and one *slot* for each stream
 * that there can be. Each slot has two buffers, for bytes that have arrived and for bytes to
 * send, which are circular and may grow. A buffer of HOMA_STREAM_FIRST bytes, as all are at
 * first, lies beside those of the other slots, so that many idle streams need few pages and
 * page tables. A larger one lies in a span of HOMA_STREAM_SPAN bytes, of which only the
 * first are backed by memory.
 *
 * Positions in a stream count its bytes from 0 modulo 2^32. A *map* says where they lie:
 * byte p of a stream is at ((p - origin) & (size - 1)) of its first buffer or, if size is
 * more than HOMA_STREAM_FIRST, of its span. Who writes a buffer owns its map. He may change
 * it only so that the bytes in the buffer keep their places, or, from the first buffer to
 * the span, after he has copied them; he writes nothing more to the first buffer then, so
 * that who has the old map still finds them there. He stores the map before the position
 * that makes the next byte visible; who reads loads that position first and then the map,
 * both with acquire.
 *
 * homad chooses the slot of a stream. A slot belongs to a stream from HOMA_STREAM_OPENED
 * or HOMA_STREAM_ACCEPTED on until the application's HOMA_STREAM_CLOSE; @generation
 * tells one stream in a slot from the next.
 *
 * Doorbells: after the application has moved a position in a slot it exchanges @rung with
 * 1, and if it was 0 it puts HOMA_STREAM_RING into the command ring. homad exchanges it
 * with 0 before it looks at the slot. The same in the other direction: homad changes
 * words of a slot, and puts HOMA_STREAM_CHANGED into the event ring only if @told was 0.
 * So each stream is in a ring once at most.
 *
 * Answers: a command that is answered by an event which names no slot (FAILED, UNLISTENED,
 * NOTHING) is not taken before there is room for that event, and those behind it wait, too.
 * So an application that waits for room in the command ring takes events out of their ring
 * meanwhile. UNLISTENED comes behind every ACCEPTED of its listener.
 *
 * Sharing: after fork() two processes have the same streams, each by an attachment of its
 * own. The parent asks for a ticket (HOMA_CTL_STREAM_SHARE) before it forks, the child
 * redeems it (HOMA_CTL_STREAM_JOIN). From then on a stream has several *holders*. Its slot
 * and its buffers stay where they are, in the memory of the first one, which the others have
 * mapped, too. Each of the others has a slot of its own area for it, too, of which only
 * @told and @rung are used, and which its commands and events name. The first one's CLOSE
 * and that of others let go of one hold each; the last ends the stream. While @holders is
 * more than 1, whoever reads takes @rx_lock and whoever writes @tx_lock, and begins with the
 * positions that stand in the slot. A lock is held by who has put his area's @id there; homad
 * opens the locks of who has ended. Processes that are not parent and child share a stream in
 * the same way after one has passed it to the other (HOMA_CTL_FOR_PASS).
 *
 * A listener with several holders hands out nothing by itself. Its holders hear of
 * HOMA_STREAM_WAITING, and get a connection by HOMA_STREAM_ACCEPT: whoever asks first. A
 * connection that came before and was not accepted goes back with HOMA_STREAM_RETURN.
 *
 * Sleeping: a command is followed by a kick as shm.h says (@need_kick of the attachment,
 * HOMA_SHM_KICK_SUBMIT). An application that wants to sleep sets @armed, looks at the
 * event ring once more, and waits for the pipe of HOMA_CTL_STREAMS to become readable.
 * homad clears @armed when it signals.
 */
#ifndef HOMA_ABI_SHM_STREAM_H
#define HOMA_ABI_SHM_STREAM_H

#include <stdbool.h>

#include "shm.h"

#define HOMA_STREAM_MAGIC 0x70635448u /* "HTcp" */
#define HOMA_STREAM_SLOTS 65536u      /* most slots that an area may have */
/* bytes reserved for a buffer of a stream */
#define HOMA_STREAM_SPAN (1u << 20)
#define HOMA_STREAM_MIN_SHIFT 12u /* log2 of the least bytes of a buffer */
#define HOMA_STREAM_MAX_SHIFT 20u /* log2 of the most bytes of a buffer */
#define HOMA_STREAM_FIRST (1u << HOMA_STREAM_MIN_SHIFT)
#define HOMA_STREAM_RULES 64u
#define HOMA_STREAM_RING_MAX 32768u /* most entries of a ring, a power of two */

/* Descriptors of HOMA_CTL_STREAMS's answer, in this order; its queues_bytes is the size of
 * the memory. */
enum {
	HOMA_STREAM_FD_MEMORY,
	HOMA_STREAM_FD_EVENT, /* read end of a pipe: homad writes, the application waits */
	HOMA_STREAM_FDS,
};

enum homa_stream_op {
	HOMA_STREAM_CONNECT = 1, /* open a connection to @remote */
	HOMA_STREAM_RING,	 /* positions in @slot have moved */
	/* the application writes no more: a FIN goes behind the last byte */
	HOMA_STREAM_SHUT,
	/* release the stream; what was written is still sent */
	HOMA_STREAM_CLOSE,
	HOMA_STREAM_ABORT,    /* release the stream with a reset */
	HOMA_STREAM_OPTIONS,  /* @value: HOMA_STREAM_OPT_* */
	HOMA_STREAM_UNLISTEN, /* @slot: a listener's number */
	/* Commands if @features has HOMA_SHM_CAN_FORK. */
	HOMA_STREAM_ACCEPT, /* @slot: the number of a listener that has several holders */
	/* give back a connection of a listener that was not accepted */
	HOMA_STREAM_RETURN,
	/* if @features has HOMA_SHM_CAN_PATIENCE: @token, an enum homa_stream_patience, becomes
	 * @value */
	HOMA_STREAM_PATIENCE,
	/* if @features has HOMA_SHM_CAN_URGENT: the byte before position @value of those to send is
	 * urgent. It comes before the doorbell for that byte, and takes the place of one before. */
	HOMA_STREAM_URGENT,
	/* if @features has HOMA_SHM_CAN_BACKLOG: at most @value connections, but one at least, wait
	 * for the application at the listener with number @slot */
	HOMA_STREAM_BACKLOG,
};

/* How long a stream waits for a peer that is silent. */
enum homa_stream_patience {
	/* Bytes have waited for an answer for so many ms when the stream fails. 0, as at the begin:
	 * the number of retransmissions counts. At most 2^31 - 1. */
	HOMA_STREAM_PATIENCE_USER,
	/* There was silence for so many s when the first keepalive probe is sent; 1 to 32767. */
	HOMA_STREAM_PATIENCE_IDLE,
	/* So many s are between two probes; 1 to 32767. */
	HOMA_STREAM_PATIENCE_INTERVAL,
	/* So many probes had no answer when the stream fails; 1 to 127. */
	HOMA_STREAM_PATIENCE_PROBES,
	HOMA_STREAM_PATIENCES,
};

/* Bits of a stream's options; each command names all that shall be set. */
enum {
	HOMA_STREAM_OPT_NODELAY = 1,
	HOMA_STREAM_OPT_CORK = 2,
	HOMA_STREAM_OPT_KEEPALIVE = 4,
	/* the stream is reset if the attachment ends while it has the stream */
	HOMA_STREAM_OPT_RESET = 8,
	/* for CONNECT alone, if @features has HOMA_SHM_CAN_BEGUN: HOMA_STREAM_BEGUN is wanted */
	HOMA_STREAM_OPT_BEGUN = 16,
	/* For OPTIONS alone; what they say is done once and not kept. An older homad does nothing.
	 * QUICK: an ACK that waits leaves at once, and so do the next ones; SLOW: ACKs wait for
	 * bytes that carry them, as far as they may. */
	HOMA_STREAM_OPT_QUICK = 32,
	HOMA_STREAM_OPT_SLOW = 64,
};

/**
 * struct homa_stream_end - an address and port
 * @ip: network order, IPv4 as ::ffff:a.b.c.d; all zeros: any.
 * @port: host order; 0: any.
 * @reserved: It is 0.
 *
 * Written by: who writes the struct that it is in.
 */
struct homa_stream_end {
	uint8_t ip[16];
	uint16_t port;
	uint16_t reserved;
};

/**
 * struct homa_stream_command - application to homad
 * @op: the command, an enum homa_stream_op.
 * @reserved: The application writes 0.
 * @slot: The command is about the stream in this slot. CONNECT: the
 *	HOMA_STREAM_PATIENCE_USER of the connection while it is being opened and later, if
 *	@features has HOMA_SHM_CAN_PATIENCE.
 * @generation: The stream in @slot has this generation, except for CONNECT.
 * @token: homad returns the token of a CONNECT with OPENED or FAILED. PATIENCE: what it sets.
 * @value: CONNECT and OPTIONS carry all bits of HOMA_STREAM_OPT_* that shall be set.
 * @remote: CONNECT opens a connection to this address and port.
 * @local: CONNECT uses this source address; with zeros homad takes the route's. The port is
 *	0, and homad chooses one.
 *
 * Written by: the application, before it raises the ring's tail; read by: homad, after that.
 */
struct homa_stream_command {
	uint16_t op;
	uint16_t reserved;
	uint32_t slot;
	uint32_t generation;
	uint32_t value;
	uint64_t token;
	struct homa_stream_end remote;
	struct homa_stream_end local;
};

enum homa_stream_event_kind {
	HOMA_STREAM_OPENED =
		1, /* CONNECT @token has become stream @slot, which is open */
	HOMA_STREAM_FAILED,   /* CONNECT @token has failed with @error */
	HOMA_STREAM_ACCEPTED, /* stream @slot came to listener @token */
	HOMA_STREAM_CHANGED,  /* words of @slot have changed */
	/* listener @token takes no more connections; its last event */
	HOMA_STREAM_UNLISTENED,
	HOMA_STREAM_WAITING, /* connections wait for HOMA_STREAM_ACCEPT of listener @token */
	/* The answer to HOMA_STREAM_ACCEPT if no connection waits at listener @token, or if there
	 * is no memory for it; if there is one, the answer is HOMA_STREAM_ACCEPTED. A command
	 * waits while homad finds out whether there is memory. It also comes unasked, when the
	 * last connection of which HOMA_STREAM_WAITING told was taken: @slot is 1 then, in an
	 * answer 0. */
	HOMA_STREAM_NOTHING,
	/* After HOMA_CTL_STREAM_JOIN, the child has joined a stream of its parent. @token is the
	 * parent's name of it, generation << 32 | slot; @slot and @generation are the child's. */
	HOMA_STREAM_JOINED,
	/* The same for a listener: @token is its number at the parent, @slot that at the child. */
	HOMA_STREAM_LISTENING,
	/* The child does not join @token streams and listeners that it was promised, because its
	 * user has no memory for them. They stay the parent's. It comes only to an application
	 * that said HOMA_SHM_CAN_UNJOINED; for others homad asks for memory again now and then,
	 * and they join the rest when there is some. */
	HOMA_STREAM_UNJOINED,
	/* CONNECT @token, which asked for it by HOMA_STREAM_OPT_BEGUN, is being opened in @slot,
	 * whose @local says where it comes from, unless @generation of the slot is another one when
	 * that was read. OPENED or FAILED follows. There is none if there was no room for it, and
	 * it wakes nobody who sleeps. */
	HOMA_STREAM_BEGUN,
};

/**
 * struct homa_stream_event - homad to application
 * @kind: homad writes what has happened, an enum homa_stream_event_kind.
 * @reserved: homad writes 0.
 * @error: FAILED carries the reason as a positive errno.
 * @slot: The event is about the stream in this slot.
 * @generation: The stream in @slot has this generation.
 * @token: Its meaning depends on @kind: the token of a CONNECT, or the number of a listener.
 *
 * Written by: homad, before it raises the ring's tail; read by: the application, after that.
 */
struct homa_stream_event {
	uint16_t kind;
	uint16_t reserved;
	uint32_t error;
	uint32_t slot;
	uint32_t generation;
	uint64_t token;
	uint64_t pad;
};

/* What has happened to a stream; bits of homa_stream_slot.state, which are only ever set. */
enum {
	HOMA_STREAM_IS_OPEN = 1, /* bytes may flow */
	HOMA_STREAM_HAS_END =
		2, /* the peer writes no more; @rx_end is the last position */
	HOMA_STREAM_HAS_ERROR =
		4, /* it has failed with @error; nothing more will come */
	HOMA_STREAM_HAS_URGENT =
		8, /* the peer has sent urgent bytes; see @rx_urgent */
};

/**
 * struct homa_stream_slot - a stream
 *
 * Written by: homad, up to @remote, and the applications that hold the stream, from @rx_read on,
 * which are other cache lines; where the other side writes, too, the field says so. Read by: all
 * of them.
 * @generation: homad writes a number that tells this stream from others in the same slot, before
 *	it writes anything else of the stream.
 * @state: homad sets bits of HOMA_STREAM_IS_OPEN and the constants after it.
 * @error: homad writes a positive errno if the stream has failed.
 * @rx_end: homad writes the position behind the last byte that has arrived in order.
 * @rx_map: homad writes the map of the buffer with bytes that have arrived.
 * @tx_free: homad writes the position before which the peer has all bytes, so that homad needs
 *	their room no more.
 * @tx_shift: homad writes log2 of the bytes of the send buffer that have memory; the size in
 *	@tx_map may be as large.
 * @told: homad writes 1 when a CHANGED of the stream is in the event ring; the application
 *	writes 0 before it looks at the slot.
 * @mss: A full segment had this many bytes at the stream's last event.
 * @rtt_us: The smoothed round trip took this long at the stream's last event, in us.
 * @cwnd: The congestion window had this many bytes at the stream's last event.
 * @retransmits: homad had sent this many segments again by the stream's last event.
 * @holders: homad writes the number of attachments that have the stream, or are about to.
 * @tx_stays: homad writes 1 while the send buffer will not get more memory than @tx_shift says,
 *	however full it is: it is as large as it may be, or its user has no memory for more.
 * @tx_sent: homad had sent all bytes before this position at the stream's last event, if @features
 *	has HOMA_SHM_CAN_SENT. It may have sent more since, and does not keep it ahead of @tx_free.
 * @local: This is the address and port on this host.
 * @remote: This is the address and port of the peer.
 * @rx_urgent: homad writes the position of the peer's last urgent byte, which may have to come
 *	yet, and in the upper half how many there were.
 * @rx_read: The application writes the position behind the last byte that it has taken.
 * @tx_end: The application writes the position behind the last byte that it has written.
 * @tx_map: The application writes the map of the buffer with bytes to send.
 * @rung: The application writes 1 when a RING of the stream is in the command ring; homad
 *	writes 0 before it looks at the slot.
 * @rx_rung: The reader writes the value that @rx_read had at its last RING, so that the next
 *	holder knows what homad has been told. It is used only while @holders is more than 1.
 * @shut: The application writes 1 when it will write no more.
 * @rx_lock: The @id of the area whose application reads now, or 0 if nobody does. Who reads
 *	exchanges it; homad writes 0 if that application has ended.
 * @tx_lock: The @id of the area whose application writes now, or 0 if nobody does; written in
 *	the same way.
 * @urgent_given: The upper half of @rx_urgent for the urgent byte that a program was last given by
 *	itself. homad writes 0 at first, to the next two, too, and does not look at them.
 * @urgent_seen: The reader writes @rx_urgent as it last saw it.
 * @urgent_past: The upper half of @rx_urgent for the last urgent byte that was read past.
 * @common: The processes that have the stream keep here what they have agreed on, such as
 *	O_NONBLOCK. homad does not look at it, and it may be anything when a stream begins.
 *
 * A map is (uint64_t)shift << 32 | origin.
 */
struct homa_stream_slot {
	uint32_t generation;
	uint32_t state;
	uint32_t error;
	uint32_t rx_end;
	uint64_t rx_map;
	uint32_t tx_free;
	uint32_t tx_shift;
	uint32_t told;
	uint32_t mss;
	uint32_t rtt_us;
	uint32_t cwnd;
	uint32_t retransmits;
	uint32_t holders;
	uint32_t tx_stays;
	uint32_t tx_sent;
	struct homa_stream_end local;
	struct homa_stream_end remote;
	uint64_t rx_urgent;
	uint32_t pad1[4];
	uint32_t rx_read;
	uint32_t tx_end;
	uint64_t tx_map;
	uint32_t rung;
	uint32_t rx_rung;
	uint32_t shut;
	uint32_t rx_lock, tx_lock;
	uint32_t urgent_given;
	uint64_t urgent_seen;
	uint32_t urgent_past;
	uint32_t pad2[3];
	uint64_t common[8];
};

/**
 * struct homa_stream_rule - homad carries connections to these addresses and ports
 * @ip: An address matches if it begins like this one; written as in struct homa_stream_end.
 * @prefix: This many of the first bits of @ip are compared.
 * @reserved, @reserved2: homad writes 0.
 * @from: This is the lowest port that matches.
 * @to: This is the highest port that matches.
 *
 * Written by: homad, before the application sees it; read by: the application.
 */
struct homa_stream_rule {
	uint8_t ip[16];
	uint8_t prefix;
	uint8_t reserved;
	uint16_t from, to;
	uint16_t reserved2;
};

/**
 * struct homa_stream_area - begin of the memory
 * Written by: homad, before the application sees it, except for @armed and the indices, which
 * both sides write; read by: the application.
 * @magic: HOMA_STREAM_MAGIC.
 * @num_slots: number of slots.
 * @bytes: size of the memory, bytes.
 * @commands: offset of the command ring's entries.
 * @events: offset of the event ring's entries.
 * @slots: offset of the slots.
 * @ring_entries: number of entries of each of the two rings.
 * @spans: offset of the first slot's span for bytes that arrive; the one for bytes to send
 *	is HOMA_STREAM_SPAN behind it, and the next slot's twice that.
 * @num_rules: number of entries of @rules that are used.
 * @id: number of this area, not 0.
 * @firsts: offset of the first slot's first buffer for bytes that arrive; the one for bytes
 *	to send is HOMA_STREAM_FIRST behind it, and the next slot's twice that.
 * @rules: addresses and ports whose connections homad carries.
 * @armed: the application writes 1 when it is about to sleep; homad writes 0 when it wakes it.
 * @command: indices of the command ring, as in shm.h. homad raises its head when the answers that
 *	it has at once, such as BEGUN of a CONNECT or FAILED without a way, are in the event ring.
 * @event: indices of the event ring, as in shm.h.
 */
struct homa_stream_area {
	uint32_t magic;
	uint32_t num_slots;
	uint64_t bytes;
	uint32_t commands, events, slots, ring_entries;
	uint64_t spans;
	uint32_t num_rules;
	uint32_t id;
	uint64_t firsts;
	uint32_t pad2[2];
	uint32_t armed;
	uint32_t pad1[15];
	struct homa_shm_ring command;
	struct homa_shm_ring event;
	struct homa_stream_rule rules[HOMA_STREAM_RULES];
};

/** homa_stream_is_first() - does a buffer with @map lie beside those of other slots? */
static inline bool homa_stream_is_first(uint64_t map)
{
	return map >> 32 == HOMA_STREAM_MIN_SHIFT;
}

/** homa_stream_at() - returns the offset of byte @position of a stream in its buffer */
static inline uint32_t homa_stream_at(uint64_t map, uint32_t position)
{
	return (position - (uint32_t)map) & ((1u << ((map >> 32) & 31)) - 1);
}

/**
 * homa_stream_to_end() - returns the number of bytes from @position to the end of the
 * buffer
 */
static inline uint32_t homa_stream_to_end(uint64_t map, uint32_t position)
{
	return (1u << ((map >> 32) & 31)) - homa_stream_at(map, position);
}

static inline uint64_t homa_stream_map(uint32_t shift, uint32_t origin)
{
	return (uint64_t)shift << 32 | origin;
}

/** homa_stream_may_wait() - may @which, an enum homa_stream_patience, be @value? */
static inline bool homa_stream_may_wait(uint64_t which, uint32_t value)
{
	if (which == HOMA_STREAM_PATIENCE_USER)
		return value <= 0x7fffffff;
	return which < HOMA_STREAM_PATIENCES && value &&
	       value <= (which == HOMA_STREAM_PATIENCE_PROBES ? 127 : 32767);
}

HOMA_ABI_ASSERT(sizeof(struct homa_stream_end) == 20, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_stream_command) == 64, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_stream_event) == 32, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_stream_slot) == 256, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_stream_rule) == 24, "ABI");
HOMA_ABI_ASSERT(sizeof(struct homa_stream_area) == 128 + 256 + 64 * 24, "ABI");

#endif
