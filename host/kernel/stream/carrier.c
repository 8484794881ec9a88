// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Carriers: a Homa socket that no program has, and a work item that takes its messages.
 * The socket is an ordinary one: it has a port, a user whose share its RPCs count to, and
 * is shown like others. Nothing of its receive region is memory: a message's
 * bytes go from its packets to the connection's ring, and pages are only counted.
 *
 * The last reference may be given back anywhere, the socket ends in a work item of its own.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "homa_bind.h"
#include "homa_stream.h"
#include "homa_sockets.h"

/* The most messages that the work item takes before others have their turn. */
#define HOMAK_CARRIER_TURN 64

static struct workqueue_struct *homak_stream_wq;

/* ---- messages ---- */

static void homak_carrier_queue(struct homak_carrier *carrier)
{
	if (refcount_inc_not_zero(&carrier->ref) &&
	    !queue_work(homak_stream_wq, &carrier->work))
		homak_carrier_put(carrier);
}

/* The Homa socket's sk_data_ready. */
static void homak_carrier_ready(struct sock *sk)
{
	struct homak_carrier *carrier;

	rcu_read_lock();
	carrier = rcu_dereference_sk_user_data(sk);
	if (carrier)
		homak_carrier_queue(carrier);
	rcu_read_unlock();
}

static void homak_carrier_work(struct work_struct *work)
{
	struct homak_carrier *carrier =
		container_of(work, struct homak_carrier, work);
	struct mem_cgroup *memcg = set_active_memcg(carrier->memcg);
	struct homak_carried m;
	int i;

	for (i = 0; i < HOMAK_CARRIER_TURN; i++) {
		if (!homak_carry_take(carrier, &m))
			break;
		carrier->arrived(carrier, &m);
		homak_carry_free(carrier, &m);
		cond_resched();
	}
	set_active_memcg(memcg);
	if (i == HOMAK_CARRIER_TURN)
		homak_carrier_queue(carrier);
	homak_carrier_put(carrier);
}

bool homak_carrier_delay(struct delayed_work *work, unsigned long delay)
{
	return !mod_delayed_work(homak_stream_wq, work, delay);
}

/* ---- life ---- */

static void homak_carrier_end(struct work_struct *work)
{
	struct homak_carrier *carrier =
		container_of(work, struct homak_carrier, end);

	rcu_assign_sk_user_data(carrier->sock->sk, NULL);
	/* This ends all RPCs that are left. */
	sock_release(carrier->sock);
	WARN_ON_ONCE(!xa_empty(&carrier->conns));
	xa_destroy(&carrier->conns);
	mem_cgroup_put(carrier->memcg);
	/* A packet may just be looking at it. */
	kfree_rcu(carrier, rcu);
}

void homak_carrier_put(struct homak_carrier *carrier)
{
	if (refcount_dec_and_test(&carrier->ref))
		queue_work(homak_stream_wq, &carrier->end);
}

/* What concerns the packets of the Homa socket @own is as the program has set its socket @sk. */
static void homak_carrier_follow(struct sock *own, struct sock *sk)
{
	WRITE_ONCE(own->sk_bound_dev_if, READ_ONCE(sk->sk_bound_dev_if));
	WRITE_ONCE(own->sk_mark, READ_ONCE(sk->sk_mark));
	WRITE_ONCE(own->sk_priority, READ_ONCE(sk->sk_priority));
}

/* Makes the Homa socket. */
static int homak_carrier_socket(struct homak_carrier *carrier, struct sock *sk)
{
	static struct lock_class_key slock_key, lock_key;
	struct sock *own;
	int err;

	/* It belongs to the program and to its namespace, as if the program had made it. */
	err = __sock_create(sock_net(sk), sk->sk_family, SOCK_DGRAM,
			    IPPROTO_HOMA, &carrier->sock, 0);
	if (err)
		return err;
	own = carrier->sock->sk;
	/* It is locked with the stream's socket locked, which is of the same family. */
	sock_lock_init_class_and_name(own, "slock-HOMA-CARRIER", &slock_key,
				      "sk_lock-HOMA-CARRIER", &lock_key);
	homak_carrier_follow(own, sk);
	own->sk_ipv6only = sk->sk_ipv6only;
	carrier->hsk = homak_sk(own);
	carrier->hsk->only_v6 = sk->sk_ipv6only;
	return 0;
}

struct homak_carrier *
homak_carrier_new(struct sock *sk, void (*arrived)(struct homak_carrier *carrier,
						   struct homak_carried *m))
{
	struct homak_carrier *carrier =
		kzalloc(sizeof(*carrier), GFP_KERNEL_ACCOUNT);
	int err;

	if (!carrier)
		return ERR_PTR(-ENOMEM);
	refcount_set(&carrier->ref, 1);
	carrier->arrived = arrived;
	INIT_WORK(&carrier->work, homak_carrier_work);
	INIT_WORK(&carrier->end, homak_carrier_end);
	xa_init_flags(&carrier->conns, XA_FLAGS_ALLOC1);
	spin_lock_init(&carrier->lock);
	INIT_LIST_HEAD(&carrier->pending);
	err = homak_carrier_socket(carrier, sk);
	if (err) {
		kfree(carrier);
		return ERR_PTR(err);
	}
	carrier->memcg = get_mem_cgroup_from_mm(current->mm);
	rcu_assign_sk_user_data(carrier->sock->sk, carrier);
	/* From now on messages are taken; there are none yet. */
	WRITE_ONCE(carrier->sock->sk->sk_data_ready, homak_carrier_ready);
	return carrier;
}

int homak_carrier_serve(struct homak_carrier *carrier, struct sock *sk, u32 pages)
{
	struct sock *own = carrier->sock->sk;
	int err = 0;

	if (rcu_access_pointer(sk->sk_filter))
		return -EOPNOTSUPP;
	lock_sock(own);
	/* It may be there since bind(). */
	homak_carrier_follow(own, sk);
	homak_rehash(own);
	if (!carrier->hsk->pool)
		err = homak_region_give(carrier->hsk, 0, pages);
	if (!err)
		homak_serve(carrier->hsk, true);
	release_sock(own);
	return err;
}

int homak_carriers_init(void)
{
	homak_stream_wq = alloc_workqueue("homa_stream", WQ_UNBOUND, 0);
	return homak_stream_wq ? 0 : -ENOMEM;
}

void homak_carriers_exit(void)
{
	destroy_workqueue(homak_stream_wq);
}
