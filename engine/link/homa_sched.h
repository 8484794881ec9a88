/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The send scheduler of a link: whose packet goes next, and when. It schedules
 * *sendables* and knows nothing of what they are: a protocol embeds one in whatever it
 * sends, says when that can send something and how many bytes it has left, and makes
 * the packet of the one that is chosen.
 *
 * Sendables wait in a heap ordered by bytes left, so the shortest goes first (SRPT). A
 * share of what is sent while several wait goes to the oldest of those that are not
 * brief, so that long ones finish under overload. A device is paced by the link's own
 * clock if its rate is known, by the room that the host reports if it can, else not at
 * all. Nothing is queued behind this: the host pulls one packet when the device has
 * room, so the choice is made at the last moment.
 *
 * All functions want the lock that the link has for its scheduler, but homa_sched_claim().
 */
#ifndef HOMA_SCHED_H
#define HOMA_SCHED_H

#include "homa_heap.h"
#include "homa_turns.h"

/* Most credit that the oldest sendable saves up, in 1/1000 bytes. */
#define HOMA_SCHED_CREDIT_MAX 100000000ll

/**
 * struct homa_sendable - what a link's scheduler knows of something that sends
 *
 * Guarded by: the link lock, unless a field says otherwise.
 *
 * @node: links the sendable into homa_sched.heap while it can send. Its key is the
 *	number of bytes left, its tie the age that homa_sched_enter() was given.
 * @fifo: links the sendable into homa_sched.fifo while @node is in the heap, unless
 *	@brief. Its key is the age.
 * @packet: bytes of payload that a full packet of it carries. The protocol writes it
 *	before the sendable is scheduled.
 * @overhead: bytes that a packet of it takes on the cable besides payload, the gap
 *	before the next one included. Written as @packet.
 * @queued: says that @node is in the heap. The scheduler writes it; others may read
 *	it without the lock.
 * @brief: says that all of it may go unasked. Then it takes no part in the share of
 *	the oldest, and its last bytes are not paced. Written as @packet.
 */
struct homa_sendable {
	struct homa_heap_node node;
	struct homa_heap_node fifo;
	u16 packet;
	u16 overhead;
	u8 queued;
	bool brief;
};

/**
 * struct homa_sched - the scheduler
 *
 * Guarded by: the link lock, unless a field says otherwise.
 *
 * @heap: holds the sendables that can send, fewest bytes left first.
 * @fifo: holds those of them that are not brief, oldest first.
 * @idle_at: says when the device will have sent all that it was given, ns, by the
 *	link's own clock. Changed by homa_swap(), also without the lock.
 * @backlog_ns: says how far @idle_at may lie in the future, ns. Whoever derives the
 *	link's values writes it; read without the lock.
 * @room: counts the bytes that the device can still take; with @by_room only.
 * @credit: counts what the oldest is owed of the bytes sent, 1/1000 bytes. Below 0
 *	it has had more than its share.
 * @ps_per_byte: says how long the device needs for a byte, ps; 0: not paced. Written
 *	as @backlog_ns.
 * @by_room: says that the host reports @room, which then paces instead of the clock.
 * @turns: says whose turn it is where others than sendables send on the link, too.
 */
struct homa_sched {
	struct homa_heap heap;
	struct homa_heap fifo;
	u64 idle_at;
	u64 backlog_ns;
	u64 room;
	s64 credit;
	u32 ps_per_byte;
	bool by_room;
	struct homa_turns turns;
};

void homa_sched_init(struct homa_sched *sched);

static inline void homa_sendable_init(struct homa_sendable *s)
{
	homa_heap_node_init(&s->node);
	homa_heap_node_init(&s->fifo);
	s->queued = 0;
}

/**
 * homa_sched_enter() - add @s, which can send and is not in the scheduler
 * @left: bytes that it has left.
 * @age: number by which it is ordered among others with as many bytes left, and by age; for
 *	example a time in ns.
 * @id: decides between sendables of one age.
 */
void homa_sched_enter(struct homa_sched *sched, struct homa_sendable *s,
		      u64 left, u64 age, u64 id);

/**
 * homa_sched_leave() - remove @s, which is in the scheduler and can send nothing any more
 */
void homa_sched_leave(struct homa_sched *sched, struct homa_sendable *s);

/**
 * homa_sched_first() - return the sendable with the fewest bytes left; NULL: none can send
 */
static inline struct homa_sendable *homa_sched_first(const struct homa_sched *sched)
{
	struct homa_heap_node *node = homa_heap_min(&sched->heap);

	return node ? homa_container_of(node, struct homa_sendable, node) : NULL;
}

/**
 * homa_sched_open() - can the device take a packet of @packet bytes?
 * @not_before: time at which to ask again if it cannot, in ns; HOMA_SCHED_ROOM: when the host
 *	has reported more room.
 */
#define HOMA_SCHED_ROOM ((u64)-1)
static inline bool homa_sched_open(const struct homa_sched *sched, u32 packet,
				   u64 now, u64 *not_before)
{
	u64 limit, idle_at;

	if (sched->by_room) {
		*not_before = HOMA_SCHED_ROOM;
		return sched->room >= packet;
	}
	idle_at = HOMA_READ_ONCE(sched->idle_at);
	if (!sched->ps_per_byte || idle_at <= now)
		return true;
	limit = HOMA_READ_ONCE(sched->backlog_ns);
	*not_before = idle_at - homa_min_u64(limit, idle_at);
	return *not_before <= now;
}

/**
 * homa_sched_ready() - may @s send now?
 * @left: bytes that it has left.
 * @unpaced: a brief sendable with no more bytes left than these need not wait for the
 *	device.
 * @not_before: as in homa_sched_open().
 */
static inline bool homa_sched_ready(const struct homa_sched *sched,
				    const struct homa_sendable *s, u64 left,
				    u32 unpaced, u64 now, u64 *not_before)
{
	if (left <= unpaced && s->brief)
		return true;
	return homa_sched_open(sched, s->packet, now, not_before);
}

/**
 * homa_sched_oldest() - return the oldest sendable, if its share is due and it is not
 * @first
 *
 * Else it returns NULL. It is called only when the link could take a packet of @first, so that
 * waiting costs the oldest nothing.
 */
static inline struct homa_sendable *
homa_sched_oldest(const struct homa_sched *sched,
		  const struct homa_sendable *first)
{
	struct homa_heap_node *node = homa_heap_min(&sched->fifo);
	struct homa_sendable *oldest;

	if (likely(sched->credit < first->packet * 1000ll) || !node)
		return NULL;
	oldest = homa_container_of(node, struct homa_sendable, fifo);
	return oldest == first ? NULL : oldest;
}

/**
 * homa_sched_burst() - return the number of packets of @s that fit into the device, from 1
 * to @most
 */
u32 homa_sched_burst(const struct homa_sched *sched,
		     const struct homa_sendable *s, u32 most);

/** homa_sched_occupy() - count @bytes, headers and gaps included, that the device was given */
static inline void homa_sched_occupy(struct homa_sched *sched, u64 now, u64 bytes)
{
	if (sched->by_room) {
		sched->room -= homa_min_u64(sched->room, bytes);
	} else if (sched->ps_per_byte) {
		u64 ns = homa_div64(bytes * sched->ps_per_byte, 1000), idle_at;

		do {
			idle_at = HOMA_READ_ONCE(sched->idle_at);
		} while (!homa_swap(&sched->idle_at, idle_at,
				    homa_max_u64(idle_at, now) + ns));
	}
}

/**
 * homa_sched_claim() - count a packet of @bytes, headers and gap included, if a device that is
 * paced by the clock can take it
 *
 * It wants no lock. False: the device cannot take it, or somebody else counted another packet at
 * the same moment; nothing was counted.
 */
static inline bool homa_sched_claim(struct homa_sched *sched, u64 now, u64 bytes)
{
	u64 idle_at = HOMA_READ_ONCE(sched->idle_at);
	u64 ns = homa_div64(bytes * HOMA_READ_ONCE(sched->ps_per_byte), 1000);

	if (idle_at > now + HOMA_READ_ONCE(sched->backlog_ns))
		return false;
	return homa_swap(&sched->idle_at, idle_at,
			 homa_max_u64(idle_at, now) + ns);
}

/** homa_sched_charge() - count @bytes of a sendable, or of other packets of its protocol */
static inline void homa_sched_charge(struct homa_sched *sched, u64 now, u64 bytes)
{
	homa_sched_occupy(sched, now, bytes);
	if (unlikely(sched->turns.quantum[HOMA_TURN_OWN]))
		homa_turns_spend(&sched->turns, HOMA_TURN_OWN, bytes);
}

/** homa_sched_charge_others() - count @bytes of the other senders on the link */
static inline void homa_sched_charge_others(struct homa_sched *sched, u64 now,
					    u64 bytes)
{
	homa_sched_occupy(sched, now, bytes);
	if (sched->turns.quantum[HOMA_TURN_OTHERS])
		homa_turns_spend(&sched->turns, HOMA_TURN_OTHERS, bytes);
}

/**
 * homa_sched_credit() - count that @bytes were sent, of which the oldest is owed @share
 * thousandths
 */
static inline void homa_sched_credit(struct homa_sched *sched, u32 bytes,
				     u32 share)
{
	if (sched->heap.count > 1 && sched->credit < HOMA_SCHED_CREDIT_MAX)
		sched->credit += (s64)bytes * share;
}

/**
 * homa_sched_debit() - count that @bytes of the oldest were sent: a burst may be more than
 * the credit
 */
static inline void homa_sched_debit(struct homa_sched *sched, u32 bytes)
{
	sched->credit -= bytes * 1000ll;
}

/**
 * homa_sched_again() - note that @s, which has sent something, has @left bytes left and can
 * send them
 */
static inline void homa_sched_again(struct homa_sched *sched,
				    struct homa_sendable *s, u64 left)
{
	/* The first sendable stays the first if it has fewer bytes left than before. */
	if (homa_heap_min(&sched->heap) == &s->node)
		s->node.key = left;
	else
		homa_heap_update(&sched->heap, &s->node, left, s->node.tie);
}

#endif
