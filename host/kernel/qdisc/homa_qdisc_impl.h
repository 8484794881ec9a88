/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the "homa" queueing discipline share: qdisc.c (queues and
 * shares), qdisc_room.c (how much may leave, and how much Homa may put in) and
 * qdisc_class.c (whose packet is it).
 */
#ifndef HOMA_QDISC_IMPL_H
#define HOMA_QDISC_IMPL_H

#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "homa_net.h"
#include "homa_qdisc.h"
#include "homa_tx.h"

#define HOMAK_Q_FLOWS 128u
/* A flow's packets may be in so many of the HOMAK_Q_FLOWS places. */
#define HOMAK_Q_WAYS 8u
/* Packets of at most so many bytes are short; as defer_min_bytes' default. */
#define HOMAK_Q_SHORT 1000u

/* struct homak_flow - packets of others that have one hash */
struct homak_flow {
	/* Links the flow into homak_q.active while it has packets. */
	struct list_head node;
	/* The first and the last of its packets; skb->next links them. */
	struct sk_buff *head, *tail;
	/* The hash of all of its packets. */
	u32 hash;
	/* How many bytes they have. */
	u32 bytes;
	/* How many bytes the flow may still send in this round (deficit round robin). */
	s32 deficit;
};

/* struct homak_q - an instance of the qdisc; the qdisc's lock protects it */
struct homak_q {
	/* The packets of Homa that wait, by priority. */
	struct qdisc_skb_head homa[HOMA_PRIORITIES];
	/* The short packets and acknowledgments of others, which go first, but only so many in a
	 * row. */
	struct qdisc_skb_head fast;
	/* The flows that have packets, in the order in which they are served. */
	struct list_head active;
	/* The device, once a packet of Homa has come; NULL before. */
	struct homak_dev *hdev;
	/* How many bytes of Homa wait. */
	u32 homa_bytes;
	/* How many packets of others wait. */
	u32 other;
	/* What Homa has had less than its share, in bytes times percent. */
	s32 balance;
	/* How many short packets were served in a row. */
	u32 fast_run;
	/* How many packets of others may wait; an option. */
	u32 limit;
	/* How much Homa gets when both wait, percent; 0: as net.homa.homa_share says. */
	u32 share;
	/* What this instance adds to homak_dev.q_room, bytes; 0: it limits nothing. */
	u32 room;
	/* The limit is our own estimate of what waits in the device, and not the device's
	 * queue that is full. */
	bool by_time;
	/* Has the qdisc asked for a packet again when by that estimate there is room. */
	struct qdisc_watchdog watchdog;
	struct homak_flow flows[HOMAK_Q_FLOWS];
};

/* ---- qdisc_class.c ---- */

enum homak_q_class {
	HOMAK_Q_HOMA,
	/* An acknowledgment of others, which goes before all other packets. */
	HOMAK_Q_ACK,
	HOMAK_Q_OTHER,
};

/** homak_q_classify() - says whose packet it is, and writes the priority of one of Homa to
 *  @prio. */
enum homak_q_class homak_q_classify(struct sk_buff *skb, u32 *prio);

/* ---- qdisc_room.c; the qdisc's lock is held ---- */

/** homak_q_attach() - sets @q->hdev; called when the device's first packet of Homa comes. */
void homak_q_attach(struct Qdisc *sch, struct homak_q *q);
/** homak_q_set_room() - sets @q->room. With 0 the engine paces the link by its rate. */
void homak_q_set_room(struct homak_q *q, u32 room);
/** homak_q_find_room() - computes how much @q->room should be, and sets it. */
void homak_q_find_room(struct Qdisc *sch, struct homak_q *q);
/** homak_q_wants() - says whether packets of Homa wait, or will when the engine was asked. */
bool homak_q_wants(const struct homak_q *q);
/** homak_q_count() - counts @bytes of Homa that came, or that left if it is negative. */
void homak_q_count(struct homak_q *q, s32 bytes);
/** homak_q_open() - says whether a packet may leave. If not, the watchdog is set. */
bool homak_q_open(struct Qdisc *sch, struct homak_q *q);
/** homak_q_spent() - is told that @skb leaves. */
void homak_q_spent(struct homak_q *q, const struct sk_buff *skb);

/* Adds to a counter of the host; before the first packet of Homa nothing is counted. */
static inline void homak_q_metric(const struct homak_q *q,
				  enum homak_host_metric m, u64 n)
{
	if (likely(q->hdev))
		homak_host_count_at(q->hdev->hnet, m, n);
}

#endif
