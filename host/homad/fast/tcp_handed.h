/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A device with several queues brings segments to any thread, and each belongs to an instance of
 * TCP that one thread runs (tcp_steer.c). Each thread has a ring to each instance, into which it
 * copies what is not for an instance of its own. The ring stays where it is when the instance
 * moves to another thread.
 */
#ifndef HOMAD_TCP_HANDED_H
#define HOMAD_TCP_HANDED_H

#include "nic.h"

/* The bytes of a thread's rings together, and the most and the fewest bytes of a ring; powers of
 * two. */
#define HOMAD_HANDED_ALL (4u << 20)
#define HOMAD_HANDED_MOST (1u << 20)
#define HOMAD_HANDED_LEAST (1u << 18)
/* The longest segment with its header, bytes: within this host the payload may be 64 KiB. */
#define HOMAD_HANDED_LONGEST (65536u + 64u)

/**
 * struct homad_handed - segments that a thread hands to an instance
 *
 * Each record lies in one piece. Positions count bytes and wrap.
 *
 * Written by: the thread that hands over, @tail and @ring; the thread that runs the instance,
 * @head.
 * @tail: The thread that hands over has written up to here. It stores it with release.
 * @head: The instance's thread has read up to here. It stores it with release.
 * @bytes: The bytes of @ring, a power of two.
 * @ring: The records.
 */
struct homad_handed {
	u32 tail;
	u32 pad0[15];
	u32 head;
	u32 pad1[15];
	u32 bytes;
	u32 pad2[15];
	u8 ring[];
};

/* In struct homad_handing: nothing was asked, the instance gets the segment whatever it knows. */
#define HOMAD_HANDED_FINAL 0xffffffffu

/**
 * struct homad_handing - what goes with a segment
 *
 * Written by: the thread that hands over.
 * @port: index of the port that it came in by.
 * @asked: which instances have been asked about it, see tcp_steer.c.
 * @from: index of the instance that sent it, if it stays within this host.
 * @missed: a bit for each instance whose listener had ended when the segment, which begins a
 *	connection, got there. None of them gets it again.
 * @outside: it came from a device. Such segments leave room for the longest one of this host, so
 *	that strangers who send many of them do not stop what programs of this host send each other.
 */
struct homad_handing {
	u32 port, asked;
	u16 from, missed;
	bool outside;
};

/** homad_handed_new() - make a ring of @bytes bytes; NULL: no memory. free() frees it. */
struct homad_handed *homad_handed_new(u32 bytes);
/** homad_handed_put() - copy @pkt with @with into the ring. False: it has no room for it. Called by
 *  the thread that hands over. */
bool homad_handed_put(struct homad_handed *h, const struct homad_handing *with,
		      const struct nic_rx *pkt);
/** homad_handed_room() - has the ring room for the longest segment? The thread that hands over
 *  asks. */
bool homad_handed_room(const struct homad_handed *h);
/** homad_handed_first() - the oldest packet in the ring, whose bytes are in one piece, and what
 *  goes with it; NULL: there is none. It stays until homad_handed_drop(). The thread that runs the
 *  instance calls both. */
const struct nic_rx *homad_handed_first(struct homad_handed *h,
					struct homad_handing *with);
void homad_handed_drop(struct homad_handed *h);

#endif
