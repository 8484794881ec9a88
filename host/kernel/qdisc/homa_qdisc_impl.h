/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the "homa" queueing discipline share: qdisc.c (queues and
 * shares), qdisc_room.c (how much may leave, and how much Homa may put in) and
 * qdisc_class.c (whose packet is it).
 *
 * Guarded by: the lock of the qdisc.
 */
#ifndef HOMA_QDISC_IMPL_H
#define HOMA_QDISC_IMPL_H

#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "homa_net.h"
#include "homa_qdisc.h"
#include "homa_transmit.h"

#define HOMAK_Q_FLOWS 128u
/* The number of places, of HOMAK_Q_FLOWS, among which a flow gets one. */
#define HOMAK_Q_WAYS 8u
/* The most bytes of a short packet, as the default of defer_min_bytes. */
#define HOMAK_Q_SHORT 1000u
/* The least number of bytes that a flow may send in its turn. */
#define HOMAK_Q_LEAST_TURN 3000u
/* The most bytes that its MTU lets it send in a turn: MTUs may be as large as an int. */
#define HOMAK_Q_MOST_TURN (1u << 20)

/* struct homak_flow - packets of others that have one hash */
struct homak_flow {
	/* Links the flow into homak_q.active while it has packets. */
	struct list_head node;
	/* The first and the last of its packets; skb->next links them. */
	struct sk_buff *head, *tail;
	/* The hash of all of its packets. */
	u32 hash;
	/* The number of bytes of these packets. */
	u32 bytes;
	/* The number of bytes that the flow may still send in this round (deficit round
	 * robin). */
	s32 deficit;
};

/* struct homak_q - an instance of the qdisc; the qdisc's lock protects it */
struct homak_q {
	/* The packets of Homa that wait, by priority: those that are forwarded, and those that this
	 * host has sent. */
	struct qdisc_skb_head homa[2][HOMA_PRIORITIES];
	/* The short packets and acknowledgments of others, which go first, but only
	 * HOMAK_Q_FAST_RUN in a row. */
	struct qdisc_skb_head fast;
	/* The flows that have packets, in the order in which they are served. */
	struct list_head active;
	/* The device, once a packet of Homa has come; NULL before. */
	struct homak_dev *hdev;
	/* The number of bytes of Homa that wait. */
	u32 homa_bytes;
	/* The number of those that this host has sent. */
	u32 own_bytes;
	/* By how many bytes more of these than of forwarded ones were served while both waited. */
	s32 ahead;
	/* The number of packets of others that wait. */
	u32 other;
	/* The amount by which Homa has had less than its share, in bytes times percent. */
	s32 balance;
	/* The number of short packets that were served in a row. */
	u32 fast_run;
	/* The most packets of others that may wait; an option. */
	u32 limit;
	/* The share that Homa gets when both wait, percent; 0: net.homa.homa_share. */
	u32 share;
	/* The part of homak_dev.q_room that this instance has added, bytes; 0: it limits
	 * nothing. */
	u32 room;
	/* True if the limit is our own estimate of what waits in the device; false if it is
	 * the device's queue that is full. */
	bool by_time;
	/* Has the qdisc asked for a packet again at the time when, by that estimate, there
	 * is room. */
	struct qdisc_watchdog watchdog;
	/* Places for flows of others, each chosen by a hash. */
	struct homak_flow flows[HOMAK_Q_FLOWS];
};

/* ---- qdisc_class.c ---- */

enum homak_q_class {
	HOMAK_Q_HOMA,
	/* An acknowledgment of others, which goes before all other packets. */
	HOMAK_Q_ACK,
	HOMAK_Q_OTHER,
};

/**
 * homak_q_classify() - returns the class of a packet, and writes the priority of one of
 * Homa to @prio.
 */
enum homak_q_class homak_q_classify(struct sk_buff *skb, u32 *prio);

/* ---- qdisc_room.c; the qdisc's lock is held ---- */

/** homak_q_attach() - sets @q->hdev; called when the device's first packet of Homa comes. */
void homak_q_attach(struct Qdisc *sch, struct homak_q *q);
/** homak_q_set_room() - sets @q->room. With 0 the engine paces the link by its rate. */
void homak_q_set_room(struct homak_q *q, u32 room);
/** homak_q_find_room() - computes the room that @q should have, and sets it. */
void homak_q_find_room(struct Qdisc *sch, struct homak_q *q);
/** homak_q_wants() - do packets of Homa wait, or would the engine have some? */
bool homak_q_wants(const struct homak_q *q);
/** homak_q_count() - counts a packet of Homa, which came or left. @own: this host has sent it; the
 *  engine's room is for these alone. */
void homak_q_count(struct homak_q *q, const struct sk_buff *skb, bool own,
		   bool came);
/** homak_q_open() - may a packet leave? If not, the watchdog is set. */
bool homak_q_open(struct Qdisc *sch, struct homak_q *q);
/** homak_q_spent() - counts that @skb leaves. */
void homak_q_spent(struct homak_q *q, const struct sk_buff *skb);

/* Adds to a counter of the host; before the first packet of Homa nothing is counted. */
static inline void homak_q_metric(const struct homak_q *q,
				  enum homak_host_metric m, u64 n)
{
	if (likely(q->hdev))
		homak_host_count_at(q->hdev->hnet, m, n);
}

#endif
