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
#define HOMAK_Q_WAYS 8u		/* places where a flow may be */
#define HOMAK_Q_SHORT 1000u	/* bytes; defer_min_bytes' default */

/*
 * struct homak_flow - packets of others with one hash
 * @node: in homak_q.active, while there are some.
 */
struct homak_flow {
	struct list_head node;
	struct sk_buff *head, *tail;
	u32 hash;
	u32 bytes;
	s32 deficit;
};

/*
 * struct homak_q - an instance (its qdisc lock)
 * @homa: Homa's packets by priority. @fast: others that pass.
 * @active: flows that wait, in the order in which they are served.
 * @hdev: of the device, once Homa has used it.
 * @homa_bytes, @other: bytes of Homa, packets of others waiting.
 * @balance: in favour of Homa, in bytes times percent.
 * @fast_run: short packets served in a row.
 * @share: percent for Homa; 0: as the setting says.
 * @room: this instance's part of homak_dev.q_room; 0: nothing limits here.
 * @by_time: what limits is our own estimate of the device's queue; @watchdog
 *	asks again when that is shorter.
 */
struct homak_q {
	struct qdisc_skb_head homa[HOMA_PRIORITIES];
	struct qdisc_skb_head fast;
	struct list_head active;
	struct homak_dev *hdev;
	u32 homa_bytes;
	u32 other;
	s32 balance;
	u32 fast_run;
	u32 limit;
	u32 share;
	u32 room;
	bool by_time;
	struct qdisc_watchdog watchdog;
	struct homak_flow flows[HOMAK_Q_FLOWS];
};

/* ---- qdisc_class.c ---- */

enum homak_q_class {
	HOMAK_Q_HOMA,
	HOMAK_Q_ACK,	/* passes */
	HOMAK_Q_OTHER,
};

/** homak_q_classify() - @prio: out, of a packet of Homa. */
enum homak_q_class homak_q_classify(struct sk_buff *skb, u32 *prio);

/* ---- qdisc_room.c; the qdisc's lock held ---- */

/** homak_q_attach() - the device's link is ours when its first Homa packet comes. */
void homak_q_attach(struct Qdisc *sch, struct homak_q *q);
/** homak_q_set_room() - the engine gets @room, 0: paces by rate. */
void homak_q_set_room(struct homak_q *q, u32 room);
/** homak_q_find_room() - set it to what it should be. */
void homak_q_find_room(struct Qdisc *sch, struct homak_q *q);
/** homak_q_wants() - Homa waits here, or will when the puller has run. */
bool homak_q_wants(const struct homak_q *q);
/** homak_q_count() - Homa bytes came (positive) or went. */
void homak_q_count(struct homak_q *q, s32 bytes);
/** homak_q_open() - may a packet leave? Else the watchdog is set. */
bool homak_q_open(struct Qdisc *sch, struct homak_q *q);
/** homak_q_spent() - @skb leaves. */
void homak_q_spent(struct homak_q *q, const struct sk_buff *skb);

/* Counted from the first Homa packet on. */
static inline void homak_q_metric(const struct homak_q *q, enum homak_host_metric m, u64 n)
{
	if (likely(q->hdev))
		homak_host_count_at(q->hdev->hnet, m, n);
}

#endif
