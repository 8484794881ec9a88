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

#define HOMA_Q_FLOWS 128u
#define HOMA_Q_WAYS 8u		/* places where a flow may be */
#define HOMA_Q_SHORT 1000u	/* bytes; defer_min_bytes' default */

/*
 * struct homa_flow - packets of others with one hash
 * @node: in homa_q.active, while there are some.
 */
struct homa_flow {
	struct list_head node;
	struct sk_buff *head, *tail;
	u32 hash;
	u32 bytes;
	s32 deficit;
};

/*
 * struct homa_q - an instance (its qdisc lock)
 * @homa: Homa's packets by priority. @fast: others that pass.
 * @active: flows that wait, in the order in which they are served.
 * @hdev: of the device, once Homa has used it.
 * @homa_bytes, @other: bytes of Homa, packets of others waiting.
 * @balance: in favour of Homa, in bytes times percent.
 * @fast_run: short packets served in a row.
 * @share: percent for Homa; 0: as the setting says.
 * @room: this instance's part of homa_dev.q_room; 0: nothing limits here.
 * @by_time: what limits is our own estimate of the device's queue; @watchdog
 *	asks again when that is shorter.
 */
struct homa_q {
	struct qdisc_skb_head homa[HOMA_PRIORITIES];
	struct qdisc_skb_head fast;
	struct list_head active;
	struct homa_dev *hdev;
	u32 homa_bytes;
	u32 other;
	s32 balance;
	u32 fast_run;
	u32 limit;
	u32 share;
	u32 room;
	bool by_time;
	struct qdisc_watchdog watchdog;
	struct homa_flow flows[HOMA_Q_FLOWS];
};

/* ---- qdisc_class.c ---- */

enum homa_q_class {
	HOMA_Q_HOMA,
	HOMA_Q_ACK,	/* passes */
	HOMA_Q_OTHER,
};

/** homa_q_classify() - @prio: out, of a packet of Homa. */
enum homa_q_class homa_q_classify(struct sk_buff *skb, u32 *prio);

/* ---- qdisc_room.c; the qdisc's lock held ---- */

/** homa_q_attach() - the device's link is ours when its first Homa packet comes. */
void homa_q_attach(struct Qdisc *sch, struct homa_q *q);
/** homa_q_set_room() - the engine gets @room, 0: paces by rate. */
void homa_q_set_room(struct homa_q *q, u32 room);
/** homa_q_find_room() - set it to what it should be. */
void homa_q_find_room(struct Qdisc *sch, struct homa_q *q);
/** homa_q_wants() - Homa waits here, or will when the puller has run. */
bool homa_q_wants(const struct homa_q *q);
/** homa_q_count() - Homa bytes came (positive) or went. */
void homa_q_count(struct homa_q *q, s32 bytes);
/** homa_q_open() - may a packet leave? Else the watchdog is set. */
bool homa_q_open(struct Qdisc *sch, struct homa_q *q);
/** homa_q_spent() - @skb leaves. */
void homa_q_spent(struct homa_q *q, const struct sk_buff *skb);

/* Counted from the first Homa packet on. */
static inline void homa_q_metric(const struct homa_q *q, enum homa_host_metric m, u64 n)
{
	if (likely(q->hdev))
		homa_host_count_at(q->hdev->hnet, m, n);
}

#endif
