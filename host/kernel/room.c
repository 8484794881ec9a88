// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Room for packets that wait to be copied. They take more than their payload, for which
 * the receive region has pages: so they have a limit of their own, which SO_RCVBUF
 * sets, or else follows from the region.
 *
 * Above half of it, or when many messages wait that the engine delivered whole (one_packet.c), it
 * delivers no more of them so, so that every packet can be refused. Above all of it packets
 * are refused before the engine has accepted their payload: they are losses like any
 * other, the RPC goes on, and its peer is asked again. What other CPUs are receiving at
 * that moment still comes in, which is a few packets each.
 *
 * Who pays. Packets that wait, messages that are not acknowledged, RPCs and records of
 * gaps are charged to the memory cgroup of the socket, as TCP's memory is, in steps: @paid
 * is all that is paid for, sk_rmem_alloc, tx_bytes and homa_sock_memory() are what is used of
 * it. So memory may come from a pool, and pass from one user to the next: it is whose socket
 * it is for. sk_forward_alloc, where the kernel counts what is paid, is SO_RESERVE_MEM's alone,
 * which would take for unused what we have used. RPCs that begin and end are noticed with the next
 * packet or message of the socket. A socket without packets takes the next one, whether
 * there is memory for it or not: else nobody would look again. The limit for all Homa sockets
 * refuses packets; that of a memory cgroup does not, because Linux lets charges pass it that
 * cannot wait, and makes the cgroup's programs pay for them.
 *
 * Delivering whole messages and refusing are switches of the engine's socket that are set here
 * under homak_sock.lock.
 * Who takes room adds, and then looks at the switches; who gives it back subtracts,
 * and then looks: one of the two sees what the other has done.
 */
#include "homa_sockets.h"

#define HOMAK_PAY_STEP 16384u /* bytes that are paid for in advance */
/* most bytes that are paid for later, if a thread changes the socket's options now */
#define HOMAK_PAY_LATER (1u << 20)
/* unused bytes above which a charge is given back */
#define HOMAK_PAY_LEAVE 65536u
/* bytes of an RPC, the host's and the engine's */
#define HOMAK_RPC_BYTES 768u

static u32 homak_room_limit(const struct homak_sock *hsk)
{
	const struct sock *sk = &hsk->inet.sk;

	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		return (u32)READ_ONCE(sk->sk_rcvbuf);
	return (u32)clamp_t(u64, 8ull * hsk->region_size, 4u << 20, 1u << 30);
}

static u32 homak_room_used(const struct homak_sock *hsk)
{
	return (u32)atomic_read(&hsk->inet.sk.sk_rmem_alloc);
}

/* ---- who pays ---- */

/* Returns how many bytes are used beyond what is paid for; if negative, how many paid ones
 * are unused. */
static s64 homak_unpaid(const struct homak_sock *hsk)
{
	const struct homa_sock *engine_sock = READ_ONCE(hsk->engine_sock);
	s64 used = homak_room_used(hsk) + atomic64_read(&hsk->tx_bytes) +
		   atomic64_read(&hsk->ring_bytes);

	/* The engine's socket may end while the last message goes; its memory stays for a
	 * grace period. */
	if (likely(engine_sock))
		used += (s64)homa_sock_memory(engine_sock, HOMAK_RPC_BYTES);
	return used - READ_ONCE(hsk->paid);
}

/* Charges @bytes, rounded up to pages, or takes back as many whole pages as are in -@bytes.
 * Returns 0; -ENOBUFS: there is no memory; -EAGAIN: a thread has the kernel's part of the socket
 * (lock_sock()), where SO_RESERVE_MEM counts in sk_forward_alloc, as the kernel's functions here
 * do. The socket is locked. */
static int homak_pay_change(struct homak_sock *hsk, int bytes)
{
	struct sock *sk = &hsk->inet.sk;
	int reserved, err = -EAGAIN;

	/* The lock is only tried, so that it has no order with ours. */
	if (!spin_trylock(&sk->sk_lock.slock))
		return err;
	if (likely(!sock_owned_by_user_nocheck(sk))) {
		err = 0;
		reserved = sk->sk_forward_alloc;
		WRITE_ONCE(sk->sk_forward_alloc, reserved + hsk->paid);
		if (bytes < 0)
			__sk_mem_reclaim(sk, -bytes);
		else if (!__sk_mem_schedule(sk, bytes, SK_MEM_RECV))
			err = -ENOBUFS;
		WRITE_ONCE(hsk->paid, sk->sk_forward_alloc - reserved);
		WRITE_ONCE(sk->sk_forward_alloc, reserved);
	}
	spin_unlock(&sk->sk_lock.slock);
	return err;
}

/* Pays for the bytes that are used. Returns false if there is no memory. The socket is
 * locked. */
static bool homak_pay_more(struct homak_sock *hsk)
{
	s64 more = homak_unpaid(hsk);
	int err;

	if (likely(more <= 0))
		return true;
	/* What is paid is counted in an int, and the kernel rounds up to pages. */
	if (more + HOMAK_PAY_STEP + hsk->paid >= INT_MAX - (int)PAGE_SIZE)
		return false;
	err = homak_pay_change(hsk, (int)(more + HOMAK_PAY_STEP));
	return !err || (err == -EAGAIN && more <= HOMAK_PAY_LATER);
}

bool homak_pay(struct homak_sock *hsk)
{
	bool ok;

	if (likely(homak_unpaid(hsk) <= 0))
		return true;
	spin_lock_bh(&hsk->lock);
	ok = homak_pay_more(hsk);
	spin_unlock_bh(&hsk->lock);
	return ok;
}

void homak_pay_less(struct homak_sock *hsk)
{
	s64 left;

	/* No more can be unused than is paid for. */
	if (likely(READ_ONCE(hsk->paid) <= (int)HOMAK_PAY_LEAVE))
		return;
	if (homak_unpaid(hsk) >= -(s64)HOMAK_PAY_LEAVE)
		return;
	spin_lock_bh(&hsk->lock);
	left = -homak_unpaid(hsk);
	if (left > HOMAK_PAY_LEAVE)
		homak_pay_change(hsk, (int)(HOMAK_PAY_STEP - left));
	spin_unlock_bh(&hsk->lock);
}

void homak_pay_end(struct sock *sk)
{
	struct homak_sock *hsk = homak_sk(sk);

	/* What is left of it is SO_RESERVE_MEM's, and goes with the kernel's part. */
	sk->sk_forward_alloc += hsk->paid;
	if (hsk->paid)
		__sk_mem_reclaim(sk, hsk->paid);
	hsk->destruct(sk);
}

/* ---- room ---- */

/* Writes both switches where the engine reads them. The socket is locked. */
static void homak_room_switch(struct homak_sock *hsk,
			      struct homa_sock *engine_sock, bool deliver_whole,
			      bool full)
{
	WRITE_ONCE(hsk->deliver_whole, deliver_whole);
	WRITE_ONCE(hsk->full, full);
	homa_sock_deliver_whole(engine_sock, deliver_whole);
	homa_sock_refuse(engine_sock, full);
}

/* Computes which switches are on, when there is or was little room. The socket is locked. */
static void homak_room_look(struct homak_sock *hsk, struct homa_sock *engine_sock)
{
	u32 limit = homak_room_limit(hsk), used = homak_room_used(hsk);
	u32 given = skb_queue_len(&hsk->messages);
	bool deliver_whole = hsk->deliver_whole, full = hsk->full;

	if (used > limit || (used && !homak_pay_more(hsk)))
		full = true;
	else if (used <= limit - limit / 4)
		full = false;
	if (full || used > limit / 2 || given > HOMAK_WHOLE_MOST)
		deliver_whole = false;
	else if (used <= limit / 4 && given <= HOMAK_WHOLE_MOST / 2)
		deliver_whole = hsk->region_size != 0;
	if (deliver_whole != hsk->deliver_whole || full != hsk->full)
		homak_room_switch(hsk, engine_sock, deliver_whole, full);
}

/* Does the same when room was taken, after which there may be little. */
static noinline void homak_room_taken(struct homak_sock *hsk,
				      struct homa_sock *engine_sock)
{
	homak_room_look(hsk, engine_sock);
	/* A reader may have freed the last of these skbs in between. */
	smp_mb();
	homak_room_look(hsk, engine_sock);
}

HOMAK_HOT void homak_room_take(struct homak_sock *hsk,
			       struct homa_sock *engine_sock,
			       const struct sk_buff *skb)
{
	u32 used = (u32)atomic_add_return((int)skb->truesize,
					  &hsk->inet.sk.sk_rmem_alloc);

	if (likely(used <= homak_room_limit(hsk) / 2 && homak_unpaid(hsk) <= 0 &&
		   (!hsk->deliver_whole ||
		    skb_queue_len(&hsk->messages) <= HOMAK_WHOLE_MOST)))
		return;
	homak_room_taken(hsk, engine_sock);
}

HOMAK_HOT void homak_room_release(struct homak_sock *hsk, u32 bytes)
{
	/* The operation is fully ordered: the bytes are subtracted before the switches are
	 * read. */
	atomic_sub_return((int)bytes, &hsk->inet.sk.sk_rmem_alloc);
	homak_pay_less(hsk);
	if (likely(READ_ONCE(hsk->deliver_whole) && !READ_ONCE(hsk->full)))
		return;
	if (homak_room_used(hsk) >
	    homak_room_limit(hsk) - homak_room_limit(hsk) / 4)
		return;
	homak_room_open(hsk);
}

void homak_room_open(struct homak_sock *hsk)
{
	spin_lock_bh(&hsk->lock);
	/* A socket that is being closed stays closed for packets. */
	if (!hsk->shutdown)
		homak_room_look(hsk, hsk->engine_sock);
	spin_unlock_bh(&hsk->lock);
}
