// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What a rule with NFQUEUE and a program that accepts every packet do, without either: Homa
// packets that come in are taken away right before homa.ko's hook of PRE_ROUTING, and a task that
// has bottom halves on and may run on any CPU puts them back there, one by one. A hook behind
// homa.ko's sees those that homa.ko has left to IP: of two hooks of one priority the one that
// was there first comes last. For kernels before 6.10; later ones let no module put packets back.

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_queue.h>

#define IPPROTO_OF_HOMA 146

/* How many packets were put back; the one task writes it. */
static unsigned long passed;
module_param(passed, ulong, 0444);

/* How many of them a hook took that came first. */
static unsigned long stolen;
module_param(stolen, ulong, 0444);

/* The one that the task is putting back has come to the last hook. */
static bool reached;

static LIST_HEAD(waiting);
static DEFINE_SPINLOCK(lock);
static DECLARE_WAIT_QUEUE_HEAD(news);
static struct task_struct *task;

static struct nf_queue_entry *take(void)
{
	struct nf_queue_entry *entry;

	spin_lock_bh(&lock);
	entry = list_first_entry_or_null(&waiting, struct nf_queue_entry, list);
	if (entry)
		list_del(&entry->list);
	spin_unlock_bh(&lock);
	return entry;
}

static int put_back(void *unused)
{
	struct nf_queue_entry *entry;

	while (!kthread_should_stop()) {
		wait_event_interruptible(news, !list_empty_careful(&waiting) ||
						       kthread_should_stop());
		while ((entry = take())) {
			reached = false;
			rcu_read_lock();
			nf_reinject(entry, NF_ACCEPT);
			rcu_read_unlock();
			WRITE_ONCE(stolen, stolen + !reached);
			WRITE_ONCE(passed, passed + 1);
			cond_resched();
		}
	}
	return 0;
}

static int queue(struct nf_queue_entry *entry, unsigned int number)
{
	spin_lock_bh(&lock);
	list_add_tail(&entry->list, &waiting);
	spin_unlock_bh(&lock);
	wake_up_interruptible(&news);
	return 0;
}

/* A namespace goes, or hooks: what waits must not come back to them. */
static void drop(struct net *net)
{
	struct nf_queue_entry *entry;

	while ((entry = take())) {
		kfree_skb(entry->skb);
		nf_queue_entry_free(entry);
	}
}

static const struct nf_queue_handler handler = {
	.outfn = queue,
	.nf_hook_drop = drop,
};

static unsigned int hook_v4(void *priv, struct sk_buff *skb,
			    const struct nf_hook_state *state)
{
	return ip_hdr(skb)->protocol == IPPROTO_OF_HOMA ? NF_QUEUE : NF_ACCEPT;
}

static unsigned int hook_v6(void *priv, struct sk_buff *skb,
			    const struct nf_hook_state *state)
{
	return ipv6_hdr(skb)->nexthdr == IPPROTO_OF_HOMA ? NF_QUEUE : NF_ACCEPT;
}

static unsigned int last(void *priv, struct sk_buff *skb,
			 const struct nf_hook_state *state)
{
	if (current == task && !in_softirq())
		reached = true;
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{
		.hook = hook_v4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST - 1,
	},
	{
		.hook = last,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = hook_v6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_LAST - 1,
	},
	{
		.hook = last,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_LAST,
	},
};

static int __net_init begin(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit end(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations in_each = { .init = begin, .exit = end };

static int __init requeue_init(void)
{
	int err;

	task = kthread_run(put_back, NULL, "requeue");
	if (IS_ERR(task))
		return PTR_ERR(task);
	nf_register_queue_handler(&handler);
	err = register_pernet_subsys(&in_each);
	if (err) {
		nf_unregister_queue_handler();
		kthread_stop(task);
	}
	return err;
}

static void __exit requeue_exit(void)
{
	unregister_pernet_subsys(&in_each);
	nf_unregister_queue_handler();
	kthread_stop(task);
	drop(NULL);
}

module_init(requeue_init);
module_exit(requeue_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("puts Homa packets back from a task, as NFQUEUE does");
