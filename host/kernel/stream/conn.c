// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections: their life, and telling their sockets. A connection is in its carrier's table
 * from when it is made until its socket is closed and all its requests are answered; whoever
 * finds it there gets a reference.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "homa_stream.h"

struct homak_conn *homak_conn_new(struct homak_carrier *carrier, u32 window,
				  work_func_t timer)
{
	struct homak_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);
	int err;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->pending);
	INIT_DELAYED_WORK(&conn->timer, timer);
	conn->idle = HOMAK_KEEPALIVE;
	conn->secret = get_random_u64();
	homak_ring_start(&conn->ring, carrier->hsk, window);
	/* One for the caller, one for the table. */
	refcount_set(&conn->ref, 2);
	homak_carrier_get(carrier);
	conn->carrier = carrier;
	/* It is found as soon as it is in the table, but its secret is known to nobody. */
	err = xa_alloc_cyclic(&carrier->conns, &conn->key, conn, xa_limit_31b,
			      &carrier->next_key, GFP_KERNEL_ACCOUNT);
	if (err >= 0)
		return conn;
	homak_carrier_put(carrier);
	kfree(conn);
	return ERR_PTR(err);
}

struct homak_conn *homak_conn_find(struct homak_carrier *carrier, u32 key)
{
	struct homak_conn *conn;

	rcu_read_lock();
	conn = xa_load(&carrier->conns, key);
	if (conn && !refcount_inc_not_zero(&conn->ref))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

void homak_conn_put(struct homak_conn *conn)
{
	if (!refcount_dec_and_test(&conn->ref))
		return;
	homak_ring_end(&conn->ring);
	homak_carrier_put(conn->carrier);
	kfree_rcu(conn, rcu);
}

void homak_conn_kill(struct homak_conn *conn)
{
	bool first;

	spin_lock(&conn->lock);
	first = !conn->killed;
	conn->killed = true;
	spin_unlock(&conn->lock);
	if (!first)
		return;
	xa_erase(&conn->carrier->conns, conn->key);
	if (cancel_delayed_work(&conn->timer))
		homak_conn_put(conn);
	homak_conn_put(conn);
}

/* Is the timer set to fire within @delay jiffies? */
static bool homak_conn_fires(const struct homak_conn *conn, unsigned long delay)
{
	return delayed_work_pending(&conn->timer) &&
	       !time_before(jiffies + delay, conn->timer.timer.expires);
}

/* Has the timer fire after @delay jiffies, if the socket is closed or not as @closed says. While
 * it is open the timer has several purposes, none of which puts off another. */
static void homak_conn_timer(struct homak_conn *conn, unsigned long delay,
			     bool closed)
{
	bool queued;

	refcount_inc(&conn->ref);
	spin_lock(&conn->lock);
	/* homak_conn_kill() stops a timer that is set before. */
	queued = !conn->killed && conn->closed == closed &&
		 (closed || !homak_conn_fires(conn, delay)) &&
		 homak_carrier_delay(&conn->timer, delay);
	spin_unlock(&conn->lock);
	if (!queued)
		homak_conn_put(conn);
}

void homak_conn_delay(struct homak_conn *conn, unsigned long delay)
{
	homak_conn_timer(conn, delay, false);
}

void homak_conn_expire(struct homak_conn *conn, unsigned long delay)
{
	homak_conn_timer(conn, delay, true);
}

/* ---- telling ---- */

/* Returns the connection's socket with a reference; NULL: it has none. */
static struct sock *homak_conn_sock(struct homak_conn *conn)
{
	struct sock *sk;

	spin_lock(&conn->lock);
	sk = conn->sk;
	if (sk)
		sock_hold(sk);
	spin_unlock(&conn->lock);
	return sk;
}

void homak_conn_wake(struct homak_conn *conn, u32 what)
{
	struct sock *sk = what ? homak_conn_sock(conn) : NULL;

	if (!sk)
		return;
	if (what & HOMAK_WAKE_READ)
		sk->sk_data_ready(sk);
	if (what & HOMAK_WAKE_WRITE)
		sk->sk_write_space(sk);
	if (what & HOMAK_WAKE_ALL)
		sk->sk_state_change(sk);
	sock_put(sk);
}

/* Ends the connection if it is in one of @states, which are bits; returns whether it was. */
static bool homak_conn_break_in(struct homak_conn *conn, u32 states, int error)
{
	bool first;

	spin_lock(&conn->lock);
	first = BIT(conn->state) & states;
	if (first) {
		conn->error = error;
		if (conn->sk)
			WRITE_ONCE(conn->sk->sk_err, error);
		/* Who sees that it is dead sees the error, too (homak_conn_dead()). */
		smp_store_release(&conn->state, HOMAK_CONN_DEAD);
	}
	spin_unlock(&conn->lock);
	if (first)
		homak_conn_wake(conn, HOMAK_WAKE_ALL);
	return first;
}

void homak_conn_break(struct homak_conn *conn, int error)
{
	homak_conn_break_in(conn, BIT(HOMAK_CONN_OPENING) | BIT(HOMAK_CONN_LIVE),
			    error);
}

bool homak_conn_give_up(struct homak_conn *conn, int error)
{
	return homak_conn_break_in(conn, BIT(HOMAK_CONN_OPENING), error);
}

u32 homak_conn_room(const struct homak_conn *conn, u32 sndbuf)
{
	u64 room;

	if (conn->state != HOMAK_CONN_LIVE || conn->out >= HOMAK_STREAM_OUT ||
	    conn->out_bytes >= sndbuf || conn->sent >= conn->edge)
		return 0;
	room = min(conn->edge - conn->sent, (u64)(sndbuf - conn->out_bytes));
	return (u32)min(room, (u64)HOMAK_STREAM_CHUNK);
}
