// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How much may leave, and how much Homa may put into the "homa" discipline. A queue
 * behind us spoils every order we make, so it must be short, and we must know
 * when there is room in it. Who tells, the best first:
 *
 * - a shaper above us: it asks when it wants a packet;
 * - the link's rate, if it is known: what was handed on is being sent since then,
 *   and no more than max_nic_queue_usecs' worth is handed on, whosever it is. All
 *   queues of a device share its link, so they share the estimate. Where the
 *   driver counts what it has (byte queue limits), that corrects it: what is not
 *   there need not be waited for, so too low a rate does no harm;
 * - byte queue limits alone: the queue is stopped when they are reached, and we are
 *   asked when there is room. They are what the device needs, and grow with how
 *   late its driver hears of what was sent;
 * - else the driver, which stops its queue when its ring is full.
 *
 * The engine is paced by room: it keeps a few packets here, enough to bridge the
 * time until the puller runs, and is woken when half of them are gone. What is
 * forwarded takes no room, for others could send so much that none is left. Only who
 * knows the rate and wants no limit (0) is left to the engine's own pacing.
 */
#include "homa_qdisc_impl.h"

/* most room in bytes; packets in it are not ordered by SRPT any more */
#define HOMAK_Q_ROOM 65536u
#define HOMAK_Q_FRAME 24u /* preamble, checksum and gap of a frame, bytes */

/* ---- the estimate ---- */

/* Returns the time that the device takes for @bytes; 0: unknown. */
static u64 homak_q_ns(const struct homak_dev *hdev, u64 bytes)
{
	u32 usage = READ_ONCE(hdev->hnet->params.max_link_usage);
	u64 mbps = READ_ONCE(hdev->rate_mbps);

	return mbps ? div64_u64(bytes * 800000, mbps * max(usage, 1u)) : 0;
}

/* Returns the time for which the device may have bytes waiting, in ns: as the setting says,
 * but at least that of two packets, so that one is there while another is sent. 0: no
 * limit. */
static u64 homak_q_limit_ns(const struct homak_dev *hdev,
			    const struct net_device *dev)
{
	u32 usecs = READ_ONCE(hdev->hnet->settings.max_nic_queue_usecs);
	u64 least = homak_q_ns(hdev, 2 * (psched_mtu(dev) + HOMAK_Q_FRAME));

	return usecs && least ? max(usecs * (u64)NSEC_PER_USEC, least) : 0;
}

/* Returns the bytes that the device sends in @ns. */
static u64 homak_q_bytes(const struct homak_dev *hdev, u64 ns)
{
	return div64_u64(ns * READ_ONCE(hdev->rate_mbps), 8000);
}

/* Returns the bytes that the driver says it has; it may learn late of what was sent. */
static u64 homak_q_in_device(const struct Qdisc *sch)
{
#ifdef CONFIG_BQL
	const struct dql *dql = &sch->dev_queue->dql;
	unsigned int queued = READ_ONCE(dql->num_queued);

	if (queued)
		return queued - READ_ONCE(dql->num_completed);
#endif
	return U32_MAX; /* the driver does not say */
}

bool homak_q_open(struct Qdisc *sch, struct homak_q *q)
{
	u64 limit, now, really;
	s64 idle;

	if (!q->by_time)
		return true;
	now = ktime_get_ns();
	limit = homak_q_limit_ns(q->hdev, qdisc_dev(sch));
	idle = atomic64_read(&q->hdev->q_idle_at);
	if (!limit || (u64)idle <= now + limit)
		return true;
	really = homak_q_ns(q->hdev, homak_q_in_device(sch));
	if (really < limit) {
		/* The estimate is corrected by what the driver says, and goes on from
		 * there, because the device may take much before the driver says more. */
		atomic64_try_cmpxchg(&q->hdev->q_idle_at, &idle,
				     (s64)(now + really));
		return true;
	}
	qdisc_watchdog_schedule_ns(&q->watchdog, (u64)idle - limit);
	return false;
}

void homak_q_spent(struct homak_q *q, const struct sk_buff *skb)
{
	u32 frames = max_t(u32, skb_shinfo(skb)->gso_segs, 1);
	s64 idle, then;
	u64 ns;

	if (!q->by_time)
		return;
	ns = homak_q_ns(q->hdev, qdisc_pkt_len(skb) + frames * HOMAK_Q_FRAME);
	idle = atomic64_read(&q->hdev->q_idle_at);
	do {
		then = max_t(s64, idle, (s64)ktime_get_ns()) + (s64)ns;
	} while (!atomic64_try_cmpxchg(&q->hdev->q_idle_at, &idle, then));
}

/* ---- room for the engine ---- */

void homak_q_attach(struct Qdisc *sch, struct homak_q *q)
{
	struct net_device *dev = qdisc_dev(sch);
	struct homak_net *hnet = homak_net(dev_net(dev));

	if (!homak_net_engine(hnet))
		return;
	q->hdev = homak_dev_get(hnet, dev);
	/* Some may be here already, if there was no memory for the struct before. */
	if (q->hdev)
		atomic_add((int)q->own_bytes, &q->hdev->q_bytes);
}

void homak_q_set_room(struct homak_q *q, u32 room)
{
	struct homak_dev *hdev = q->hdev;

	if (!hdev || room == q->room)
		return;
	/* Queues of one device may come and go at the same time. */
	spin_lock(&hdev->hnet->dev_lock);
	atomic_add((int)(room - q->room), &hdev->q_room);
	/* A device that has such a qdisc shares no link with others. */
	if (!q->room && atomic_inc_return(&hdev->q_limits) == 1) {
		homa_link_pace_by_room(homak_dev_own(hdev));
		homak_dev_look(hdev);
	}
	if (!room && atomic_dec_and_test(&hdev->q_limits)) {
		homa_link_pace_by_rate(homak_dev_own(hdev));
		homak_dev_look(hdev);
	}
	spin_unlock(&hdev->hnet->dev_lock);
	q->room = room;
}

/* Is there nothing above this qdisc but the device, or mq? */
static bool homak_q_is_last(const struct Qdisc *sch)
{
	return rcu_access_pointer(sch->dev_queue->qdisc) == sch;
}

/* Returns the room in bytes if no qdisc above limits; 0: the engine paces. */
static u32 homak_q_own_room(const struct Qdisc *sch, struct homak_q *q)
{
	u64 limit = homak_q_limit_ns(q->hdev, qdisc_dev(sch));

	q->by_time = limit;
	if (limit)
		return (u32)min_t(u64, homak_q_bytes(q->hdev, limit),
				  HOMAK_Q_ROOM);
#ifdef CONFIG_BQL
	if (READ_ONCE(sch->dev_queue->dql.num_queued))
		return min(READ_ONCE(sch->dev_queue->dql.limit), HOMAK_Q_ROOM);
#endif
	return READ_ONCE(q->hdev->rate_mbps) ? 0 : HOMAK_Q_ROOM;
}

void homak_q_find_room(struct Qdisc *sch, struct homak_q *q)
{
	u32 least = 4 * min(psched_mtu(qdisc_dev(sch)), HOMAK_Q_MOST_TURN), room;

	if (unlikely(!q->hdev))
		return;
	if (!homak_q_is_last(sch)) {
		q->by_time = false;
		room = least;
	} else {
		room = homak_q_own_room(sch, q);
		room = room ? max(room, least) : 0;
	}
	homak_q_set_room(q, room);
}

bool homak_q_wants(const struct homak_q *q)
{
	const struct homak_dev *hdev = q->hdev;

	return q->homa_bytes || (q->room && (READ_ONCE(hdev->q_waits) ||
					     READ_ONCE(hdev->again.waits)));
}

void homak_q_count(struct homak_q *q, const struct sk_buff *skb, bool own,
		   bool came)
{
	s32 bytes = came ? (s32)qdisc_pkt_len(skb) : -(s32)qdisc_pkt_len(skb);
	struct homak_dev *hdev = q->hdev;

	q->homa_bytes += (u32)bytes;
	if (!own)
		return;
	q->own_bytes += (u32)bytes;
	if (!hdev)
		return;
	atomic_add(bytes, &hdev->q_bytes);
	if (came)
		return;
	/* Pairs with homak_tx_room(): the bytes are subtracted before q_waits is read. */
	smp_mb__after_atomic();
	if (READ_ONCE(hdev->q_waits) &&
	    homak_q_left(hdev) >= atomic_read(&hdev->q_room) / 2) {
		WRITE_ONCE(hdev->q_waits, false);
		homak_q_metric(q, HOMAK_H_host_q_pulls, 1);
		homak_later_queue(&hdev->again);
	}
}
