// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting: for a message, and for room to send; and how a thread that waits is
 * told. A thread that waits for a message sleeps at once, as with other sockets. Two
 * things let it look for the message for a short time first, which is cheaper than a
 * sleep and a wake-up when the answer is a few microseconds away:
 *
 * SO_BUSY_POLL (its default is sysctl net.core.busy_read): the thread itself asks the
 * network card whose NAPI context the socket's last packet came from. The kernel's loop
 * ends as soon as somebody else wants the CPU.
 *
 * The setting poll_usecs, where no such card is polled: the thread looks whether another
 * one has brought the message. Between two looks it lets others run whether they ask for
 * it or not: on a machine with one CPU the message comes from a thread that waits for
 * this one to stop.
 */
#include <linux/sched/signal.h>
#include <net/busy_poll.h>

#include "homa_sockets.h"

#define HOMAK_PICK 4 /* waiters that are looked at to find one that polls */

/* ---- threads that wait, seen from others (homak_sock.lock) ---- */

/* The flags of a synchronous wake-up: the thread need not run before who wakes it is done. */
static int homak_wake_sync __ro_after_init;

static int homak_wake_learn(struct wait_queue_entry *entry, unsigned int mode,
			    int flags, void *key)
{
	homak_wake_sync = flags;
	return 0;
}

/* The kernel tells these flags to nobody but functions that a wait queue calls. */
void homak_wait_init(void)
{
	struct wait_queue_entry entry;
	struct wait_queue_head wq;

	init_waitqueue_head(&wq);
	init_waitqueue_func_entry(&entry, homak_wake_learn);
	add_wait_queue(&wq, &entry);
	__wake_up_sync_key(&wq, TASK_INTERRUPTIBLE, NULL);
	remove_wait_queue(&wq, &entry);
}

/*
 * Wakes the thread of @waiter. The thread may return from recvmsg() as soon as it sees @what, but
 * a task's memory stays for a grace period, and bottom halves are off. So it is woken as by a wait
 * queue, of which there is nothing but the entry that names it.
 */
HOMAK_HOT void homak_rouse(struct homak_waiter *waiter, enum homak_waited what)
{
	struct task_struct *task = waiter->task;
	struct wait_queue_entry entry HOMA_NOINIT;

	smp_store_release(&waiter->what, (u8)what);
	/* Pairs with set_current_state() before its last look (homak_sleep_handed()). */
	smp_mb();
	if (task_is_running(task))
		return;
	init_waitqueue_entry(&entry, task);
	default_wake_function(&entry, TASK_INTERRUPTIBLE, homak_wake_sync, NULL);
}

struct homak_waiter *homak_waiter_pick(struct homak_sock *hsk)
{
	struct homak_waiter *waiter, *best = NULL;
	int n = 0;

	hlist_for_each_entry(waiter, &hsk->waiters, list) {
		if (!best)
			best = waiter;
		if (!READ_ONCE(waiter->asleep))
			return waiter;
		if (++n == HOMAK_PICK)
			break;
	}
	return best;
}

/* ---- the threads themselves ---- */

/* Was the waiter handed something, or shall it look again? */
static bool homak_waited(struct homak_waiter *waiter)
{
	return smp_load_acquire(&waiter->what) != HOMAK_WAITS;
}

#ifdef CONFIG_NET_RX_BUSY_POLL

/* struct homak_busy - a thread that polls a network card. Written by: the thread, before. */
struct homak_busy {
	/* The socket, whose SO_BUSY_POLL says for how long. */
	const struct sock *sk;
	/* The thread. */
	struct homak_waiter *waiter;
};

static bool homak_busy_end(void *arg, unsigned long start)
{
	const struct homak_busy *busy = arg;

	return homak_waited(busy->waiter) || signal_pending(current) ||
	       sk_busy_loop_timeout((struct sock *)busy->sk, start);
}

/* Does what homak_busy_poll() says, for a socket with SO_BUSY_POLL. */
static noinline bool homak_busy_loop(struct homak_sock *hsk,
				     struct homak_waiter *waiter)
{
	const struct sock *sk = &hsk->inet.sk;
	struct homak_busy busy = { .sk = sk, .waiter = waiter };
	unsigned int napi_id = READ_ONCE(sk->sk_napi_id);
	u16 budget = READ_ONCE(sk->sk_busy_poll_budget);

	if (!sk_can_busy_loop(sk) || napi_id < MIN_NAPI_ID)
		return false;
	homak_host_count_at(hsk->hnet, HOMAK_H_host_busy_polls, 1);
	napi_busy_loop(napi_id, waiter ? homak_busy_end : NULL, &busy,
		       READ_ONCE(sk->sk_prefer_busy_poll),
		       budget ? budget : BUSY_POLL_BUDGET);
	return true;
}

/* Most sockets are not polled: that is all that is found out about them. */
bool homak_busy_poll(struct homak_sock *hsk, struct homak_waiter *waiter)
{
	return unlikely(READ_ONCE(hsk->inet.sk.sk_ll_usec)) &&
	       homak_busy_loop(hsk, waiter);
}

#else

bool homak_busy_poll(struct homak_sock *hsk, struct homak_waiter *waiter)
{
	return false;
}

#endif

/* Looks for @usecs whether the waiter was handed something. The first look, after which a thread
 * often has its message, is not counted, so that it need not know the time. */
static noinline bool homak_look_on(struct homak_waiter *waiter, u32 usecs)
{
	u64 now = 0, end = 0;

	do {
		schedule();
		if (homak_waited(waiter))
			return true;
		cpu_relax();
		now = ktime_get_ns();
		if (!end)
			end = now + (u64)usecs * NSEC_PER_USEC;
	} while (now < end && !signal_pending(current));
	return false;
}

static HOMAK_HOT bool homak_poll_handed(struct homak_sock *hsk,
					struct homak_waiter *waiter)
{
	u32 usecs = READ_ONCE(hsk->hnet->settings.poll_usecs);

	if (homak_waited(waiter))
		return true;
	if (homak_busy_poll(hsk, waiter))
		return homak_waited(waiter);
	return usecs && homak_look_on(waiter, usecs);
}

static HOMAK_HOT int homak_sleep_handed(struct homak_waiter *waiter, long *timeo)
{
	int err = 0;

	WRITE_ONCE(waiter->asleep, true);
	for (;;) {
		/* This is a full barrier: either our state is seen, or we see what was
		 * given. */
		set_current_state(TASK_INTERRUPTIBLE);
		if (homak_waited(waiter))
			break;
		if (signal_pending(current)) {
			err = sock_intr_errno(*timeo);
			break;
		}
		if (!*timeo) {
			err = -EAGAIN;
			break;
		}
		if (likely(*timeo == MAX_SCHEDULE_TIMEOUT))
			schedule();
		else
			*timeo = schedule_timeout(*timeo);
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

/* Takes @waiter out of all lists. waiter->what then says what it was handed at the last
 * moment. */
static void homak_unwait(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter)
{
	struct homak_waiter **p;

	spin_lock_bh(&hsk->lock);
	hlist_del_init(&waiter->list);
	for (p = krpc ? &krpc->waiter : NULL; p && *p; p = &(*p)->next) {
		if (*p != waiter)
			continue;
		*p = waiter->next;
		break;
	}
	spin_unlock_bh(&hsk->lock);
}

HOMAK_HOT int homak_wait(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter, long *timeo,
			 enum homak_host_metric *how)
{
	int err = 0;

	*how = HOMAK_H_host_polls;
	if (!homak_poll_handed(hsk, waiter)) {
		*how = HOMAK_H_host_sleeps;
		err = homak_sleep_handed(waiter, timeo);
	}
	/* Who is told to look may still be in the chain of @krpc, as at the end of the socket. */
	if (likely(homak_waited(waiter) &&
		   !(krpc && waiter->what == HOMAK_WAITED_LOOK)))
		return 0;
	homak_unwait(hsk, krpc, waiter);
	return waiter->what == HOMAK_WAITS ? err : 0;
}

/* ---- room to send ---- */

static void homak_room_wake(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
							      EPOLLWRBAND);
	rcu_read_unlock();
}

void homak_write_space(struct sock *sk)
{
	struct homak_sock *hsk = homak_sk(sk);

	/* This comes after the bytes were subtracted; pairs with those who wait. */
	smp_mb();
	if (!READ_ONCE(hsk->tx_full) || !homak_sock_room(hsk))
		return;
	WRITE_ONCE(hsk->tx_full, false);
	homak_room_wake(sk);
}

void homak_short(struct homak_sock *hsk)
{
	struct sock *sk = &hsk->inet.sk;

	WRITE_ONCE(hsk->tx_short, true);
	/* The RPCs that there may be, and memory, are not this socket's alone: nobody says when
	 * there are more. So it is as in homak_wait_tick(). */
	sk_reset_timer(sk, &sk->sk_timer, jiffies + 1);
}

void homak_short_over(struct timer_list *timer)
{
	struct sock *sk = container_of(timer, struct sock, sk_timer);

	WRITE_ONCE(homak_sk(sk)->tx_short, false);
	homak_room_wake(sk);
	sock_put(sk);
}

int homak_wait_room(struct homak_sock *hsk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &hsk->inet.sk;
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	for (;;) {
		WRITE_ONCE(hsk->tx_full, true);
		smp_mb();
		if (homak_sock_room(hsk) || READ_ONCE(hsk->shutdown))
			break;
		err = -EAGAIN;
		if (!*timeo)
			break;
		err = sock_intr_errno(*timeo);
		if (signal_pending(current))
			break;
		err = 0;
		*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

int homak_wait_tick(struct homak_sock *hsk, long *timeo)
{
	long before = *timeo;

	if (!before)
		return -EAGAIN;
	schedule_timeout_interruptible(1);
	if (before != MAX_SCHEDULE_TIMEOUT)
		*timeo = before - 1;
	return signal_pending(current) ? sock_intr_errno(before) : 0;
}
