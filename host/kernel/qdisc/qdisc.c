// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The queueing discipline "homa": lets Homa share a device with TCP without
 * losing its order of messages or waiting behind bulk data.
 *
 * Homa's own packets come in the engine's order, shortest message first; what
 * spoils that is a queue behind the engine. So while something limits what leaves
 * here - a driver with byte queue limits, or a shaper above - the engine gets to
 * fill no more than a short queue, by levels of priority, and pulls again when
 * some of it has left: room in the device makes dequeue() be called, this hands
 * out a finished packet and wakes the puller. Where nothing limits, the engine
 * paces by the link's rate as without this discipline.
 *
 * Others' packets: short ones and pure acknowledgments pass at once, unless their
 * own flow waits already; the rest is served by deficit round robin over hashed
 * flows. When Homa and others both wait, bytes are shared by homa_share percent.
 * Works as the root, below mq (one per queue, the room is the device's) and below
 * a shaper.
 */
#include "homa_qdisc_impl.h"

#define HOMAK_Q_FAST_RUN 16u /* most short packets in a row while others wait */
#define HOMAK_Q_BALANCE (64 * 1024 * 100)

/* ---- in ---- */

/* Returns the place of a flow: one of a few, so that two flows share one only where all are
 * taken. */
static struct homak_flow *homak_flow_find(struct homak_q *q, u32 hash)
{
	u32 set = reciprocal_scale(hash, HOMAK_Q_FLOWS / HOMAK_Q_WAYS);
	struct homak_flow *flow = &q->flows[set * HOMAK_Q_WAYS];
	struct homak_flow *place = NULL;
	u32 i;

	for (i = 0; i < HOMAK_Q_WAYS; i++) {
		if (!flow[i].head)
			place = &flow[i];
		else if (flow[i].hash == hash)
			return &flow[i];
	}
	place = place ? place : &flow[hash % HOMAK_Q_WAYS];
	return place;
}

static void homak_flow_add(struct homak_q *q, struct homak_flow *flow,
			   struct sk_buff *skb)
{
	skb->next = NULL;
	if (flow->head) {
		flow->tail->next = skb;
	} else {
		flow->head = skb;
		list_add_tail(&flow->node, &q->active);
	}
	flow->tail = skb;
	flow->bytes += qdisc_pkt_len(skb);
}

static struct sk_buff *homak_flow_take(struct homak_flow *flow)
{
	struct sk_buff *skb = flow->head;

	flow->head = skb->next;
	flow->bytes -= qdisc_pkt_len(skb);
	skb_mark_not_on_list(skb);
	if (!flow->head) {
		list_del(&flow->node);
		flow->deficit = 0;
	}
	return skb;
}

/* Drops the oldest packet of the longest flow, because too many packets wait. */
static void homak_q_drop(struct Qdisc *sch, struct homak_q *q,
			 struct sk_buff **to_free)
{
	struct homak_flow *flow, *longest = NULL;
	struct sk_buff *skb;

	list_for_each_entry(flow, &q->active, node)
		if (!longest || flow->bytes > longest->bytes)
			longest = flow;
	if (longest)
		skb = homak_flow_take(longest);
	else
		skb = __qdisc_dequeue_head(&q->fast);
	if (!skb)
		return;
	q->other--;
	sch->q.qlen--;
	homak_q_metric(q, HOMAK_H_host_q_drops, 1);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_drop(skb, sch, to_free);
	qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
}

static void homak_q_add_other(struct Qdisc *sch, struct homak_q *q,
			      struct sk_buff *skb, bool ack)
{
	u32 hash = skb_get_hash(skb);
	struct homak_flow *flow;

	q->other++;
	if (!ack) {
		flow = homak_flow_find(q, hash);
		if (flow->head || qdisc_pkt_len(skb) > HOMAK_Q_SHORT) {
			flow->hash = hash;
			homak_flow_add(q, flow, skb);
			return;
		}
	}
	__qdisc_enqueue_tail(skb, &q->fast);
}

/* Has this host sent the packet? A forwarded one came by a device, or belongs to a socket of
 * another namespace, as below a macvlan, or to a tap's. */
static bool homak_q_is_own(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	if (!sk)
		return !skb->skb_iif;
	return sk_fullsock(sk) && sk->sk_protocol == IPPROTO_HOMA &&
	       net_eq(sock_net(sk), dev_net(skb->dev));
}

/* Takes a packet of Homa in; false: so many wait that it has to be dropped. Those that are
 * forwarded do not wait for room. */
static bool homak_q_add_homa(struct Qdisc *sch, struct homak_q *q,
			     struct sk_buff *skb, u32 prio)
{
	bool own = homak_q_is_own(skb);
	u32 waits = own ? q->own_bytes : q->homa_bytes - q->own_bytes;

	if (waits > HOMAK_Q_SHORT * q->limit)
		return false;
	if (unlikely(!q->hdev))
		homak_q_attach(sch, q);
	__qdisc_enqueue_tail(skb, &q->homa[own][prio]);
	homak_q_count(q, skb, own, true);
	homak_q_find_room(sch, q);
	return true;
}

static int homak_q_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct homak_q *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	u32 prio = 0;
	enum homak_q_class class = homak_q_classify(skb, &prio);

	if (class == HOMAK_Q_HOMA) {
		if (unlikely(!homak_q_add_homa(sch, q, skb, prio))) {
			homak_q_metric(q, HOMAK_H_host_q_drops, 1);
			return qdisc_drop(skb, sch, to_free);
		}
	} else {
		homak_q_add_other(sch, q, skb, class == HOMAK_Q_ACK);
	}
	sch->q.qlen++;
	sch->qstats.backlog += len;
	if (unlikely(q->other > q->limit))
		homak_q_drop(sch, q, to_free);
	return NET_XMIT_SUCCESS;
}

/* ---- out ---- */

/* Takes a packet of Homa. What this host has sent and what it forwards have half of the bytes each
 * while both wait, for others could send so much that nothing of ours would leave. */
static struct sk_buff *homak_q_take_homa(struct homak_q *q)
{
	bool both = q->own_bytes && q->own_bytes < q->homa_bytes;
	bool own = both ? q->ahead <= 0 : q->own_bytes;
	struct sk_buff *skb;
	s32 len;
	int i;

	for (i = HOMA_PRIORITIES - 1; i >= 0; i--) {
		skb = __qdisc_dequeue_head(&q->homa[own][i]);
		if (!skb)
			continue;
		len = (s32)qdisc_pkt_len(skb);
		q->ahead = both ? q->ahead + (own ? len : -len) : 0;
		q->fast_run = 0;
		homak_q_count(q, skb, own, false);
		return skb;
	}
	return NULL;
}

static struct sk_buff *homak_q_take_flow(struct Qdisc *sch, struct homak_q *q)
{
	struct homak_flow *flow;
	struct sk_buff *skb;

	for (;;) {
		flow = list_first_entry_or_null(&q->active, struct homak_flow,
						node);
		if (!flow)
			return NULL;
		if (flow->deficit > 0)
			break;
		/* The loop ends, because each turn adds, whatever MTU the device has, and a
		 * packet's debt is bounded. */
		flow->deficit +=
			(s32)clamp(2 * psched_mtu(qdisc_dev(sch)),
				   HOMAK_Q_LEAST_TURN, HOMAK_Q_MOST_TURN);
		list_move_tail(&flow->node, &q->active);
	}
	skb = homak_flow_take(flow);
	if (flow->head)
		flow->deficit -= (s32)qdisc_pkt_len(skb);
	q->other--;
	return skb;
}

/* Takes a short packet first, but not without end. */
static struct sk_buff *homak_q_take_other(struct Qdisc *sch, struct homak_q *q)
{
	struct sk_buff *skb;

	if (q->fast.head &&
	    (q->fast_run++ < HOMAK_Q_FAST_RUN || list_empty(&q->active))) {
		skb = __qdisc_dequeue_head(&q->fast);
		q->other--;
		homak_q_metric(q, HOMAK_H_host_q_short, 1);
		return skb;
	}
	q->fast_run = 0;
	return homak_q_take_flow(sch, q);
}

/* Is it Homa's turn? While both wait, bytes are shared by homa_share, with bounded
 * credit. */
static bool homak_q_homas_turn(const struct homak_q *q)
{
	if (!q->homa_bytes || !q->other)
		return q->homa_bytes;
	if (q->fast.head && q->fast_run < HOMAK_Q_FAST_RUN)
		return false;
	return q->balance >= 0;
}

static s32 homak_q_share(const struct Qdisc *sch, const struct homak_q *q)
{
	u32 share = q->share;

	if (!share)
		share = READ_ONCE(
			homak_net(dev_net(qdisc_dev(sch)))->settings.homa_share);
	/* Neither kind may starve. */
	return (s32)clamp(share, 1u, 99u);
}

/* Counts a packet of @len bytes that leaves while both kinds wait. Homa makes up later for
 * what it misses while none of its packets is here, but not for more than its room. */
static void homak_q_charge(const struct Qdisc *sch, struct homak_q *q, u32 len,
			   bool homa)
{
	s32 share = homak_q_share(sch, q);
	s64 most = q->homa_bytes || homa ? HOMAK_Q_BALANCE : (s64)q->room * share;
	s64 balance = q->balance + (s64)len * (homa ? share - 100 : share);

	if (balance > q->balance)
		balance = max_t(s64, q->balance, min(balance, most));
	q->balance =
		(s32)clamp_t(s64, balance, -HOMAK_Q_BALANCE, HOMAK_Q_BALANCE);
}

static struct sk_buff *homak_q_dequeue(struct Qdisc *sch)
{
	struct homak_q *q = qdisc_priv(sch);
	bool both = q->other && homak_q_wants(q);
	bool homa = homak_q_homas_turn(q);
	struct sk_buff *skb;

	if (!sch->q.qlen || !homak_q_open(sch, q))
		return NULL;
	skb = homa ? homak_q_take_homa(q) : homak_q_take_other(sch, q);
	if (!skb)
		return NULL;
	if (both)
		homak_q_charge(sch, q, qdisc_pkt_len(skb), homa);
	else
		q->balance = 0;
	homak_q_spent(q, skb);
	homak_q_metric(q,
		       homa ? HOMAK_H_host_q_homa_bytes :
			      HOMAK_H_host_q_other_bytes,
		       qdisc_pkt_len(skb));
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

/* ---- set-up ---- */

static const struct nla_policy homak_q_policy[HOMA_QDISC_ATTR_COUNT] = {
	[HOMA_QDISC_ATTR_LIMIT] =
		NLA_POLICY_RANGE(NLA_U32, 1, HOMA_QDISC_LIMIT_MAX),
	[HOMA_QDISC_ATTR_SHARE] = NLA_POLICY_RANGE(NLA_U32, 0, 100),
};

static int homak_q_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct nlattr *tb[HOMA_QDISC_ATTR_COUNT];
	struct homak_q *q = qdisc_priv(sch);
	struct sk_buff *dropped = NULL;
	int err;

	if (!opt)
		return 0;
	/* The attributes come without NLA_F_NESTED, as tc has always sent options. */
	err = nla_parse_nested_deprecated(tb, HOMA_QDISC_ATTR_MAX, opt,
					  homak_q_policy, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	if (tb[HOMA_QDISC_ATTR_LIMIT])
		q->limit = nla_get_u32(tb[HOMA_QDISC_ATTR_LIMIT]);
	if (tb[HOMA_QDISC_ATTR_SHARE])
		q->share = nla_get_u32(tb[HOMA_QDISC_ATTR_SHARE]);
	while (q->other > q->limit)
		homak_q_drop(sch, q, &dropped);
	sch_tree_unlock(sch);
	kfree_skb_list_reason(dropped, SKB_DROP_REASON_QDISC_DROP);
	return 0;
}

static int homak_q_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct homak_q *q = qdisc_priv(sch);
	u32 i;

	memset(q->homa, 0, sizeof(q->homa));
	INIT_LIST_HEAD(&q->active);
	for (i = 0; i < HOMAK_Q_FLOWS; i++)
		INIT_LIST_HEAD(&q->flows[i].node);
	q->limit = HOMA_QDISC_LIMIT;
	qdisc_watchdog_init(&q->watchdog, sch);
	return homak_q_change(sch, opt, extack);
}

static void homak_q_reset(struct Qdisc *sch)
{
	struct homak_q *q = qdisc_priv(sch);
	struct sk_buff *skb;

	qdisc_watchdog_cancel(&q->watchdog);
	while ((skb = homak_q_take_homa(q)))
		rtnl_kfree_skbs(skb, skb);
	while ((skb = __qdisc_dequeue_head(&q->fast)))
		rtnl_kfree_skbs(skb, skb);
	while (!list_empty(&q->active)) {
		skb = homak_flow_take(
			list_first_entry(&q->active, struct homak_flow, node));
		rtnl_kfree_skbs(skb, skb);
	}
	q->other = 0;
	q->balance = 0;
	q->fast_run = 0;
}

static void homak_q_destroy(struct Qdisc *sch)
{
	struct homak_q *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	local_bh_disable();
	homak_q_set_room(q, 0);
	/* Packets that waited for room may go by rate now. */
	if (q->hdev)
		homak_later_queue(&q->hdev->again);
	local_bh_enable();
}

static int homak_q_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct homak_q *q = qdisc_priv(sch);
	struct nlattr *opts = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u32(skb, HOMA_QDISC_ATTR_LIMIT, q->limit) ||
	    nla_put_u32(skb, HOMA_QDISC_ATTR_SHARE, (u32)homak_q_share(sch, q))) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static struct Qdisc_ops homak_q_ops __read_mostly = {
	.id = "homa",
	.priv_size = sizeof(struct homak_q),
	.enqueue = homak_q_enqueue,
	.dequeue = homak_q_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = homak_q_init,
	.reset = homak_q_reset,
	.destroy = homak_q_destroy,
	.change = homak_q_change,
	.dump = homak_q_dump,
	.owner = THIS_MODULE,
};

int __init homak_qdisc_init(void)
{
	return register_qdisc(&homak_q_ops);
}

void homak_qdisc_exit(void)
{
	unregister_qdisc(&homak_q_ops);
}

MODULE_ALIAS("sch_homa");
MODULE_ALIAS("net-sch-homa");
