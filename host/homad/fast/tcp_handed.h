/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP has one engine, which belongs to the first fast-path thread. A device with several
 * queues brings segments to other threads, too. These put them into a ring that the first
 * thread empties in each round (tcp_handed.c). Each other thread has a ring of its own.
 */
#ifndef HOMAD_TCP_HANDED_H
#define HOMAD_TCP_HANDED_H

#include "nic.h"

struct homad;
struct homad_port;
struct homad_thread;

/* The bytes of a ring, a power of two. */
#define HOMAD_HANDED_BYTES (1u << 20)

/**
 * struct homad_handed - segments that a thread hands to the first one
 *
 * Each record lies in one piece. Positions count bytes and wrap.
 *
 * Written by: the thread that hands over, @tail and @ring; the first thread, @head.
 * @tail: The thread that hands over has written up to here. It stores it with release.
 * @head: The first thread has read up to here. It stores it with release.
 * @ring: The records, HOMAD_HANDED_BYTES bytes.
 */
struct homad_handed {
	u32 tail;
	u32 pad0[15];
	u32 head;
	u32 pad1[15];
	u8 ring[HOMAD_HANDED_BYTES];
};

/** homad_handed_make() - make a ring for each thread but the first; 0 or -ENOMEM. */
int homad_handed_make(struct homad *d);
/** homad_handed_put() - copy @pkt, which came in by the port with index @port, into the ring.
 *  False: it has no room for it. Called by the thread that hands over. */
bool homad_handed_put(struct homad_handed *h, u32 port, const struct nic_rx *pkt);
/** homad_handed_first() - the oldest packet in the ring, whose bytes are in one piece, and the
 *  index of its port; NULL: there is none. It stays until homad_handed_drop(). The first thread
 *  calls both. */
const struct nic_rx *homad_handed_first(struct homad_handed *h, u32 *port);
void homad_handed_drop(struct homad_handed *h);
/**
 * homad_tcp_hand() - take the TCP packets out of @n in homad_thread.rx, and hand them to the
 * first thread. Returns how many packets are left. A segment for which the ring has no room is
 * dropped, as if it were lost on the cable.
 */
int homad_tcp_hand(struct homad_thread *t, struct homad_port *port, int n);
/** homad_tcp_handed() - take in segments that other threads have handed over, a bounded number
 *  of each; returns how many. */
int homad_tcp_handed(struct homad_thread *t);

#endif
