/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the socket API share. */
#ifndef HOMA_SOCKETS_H
#define HOMA_SOCKETS_H

#include "homa_kernel.h"

/* ---- sockname.c: names ---- */

/*
 * struct homa_name - a peer as the application names it
 * @marked: it says how the peer is reached (a UDP port of its own).
 */
struct homa_name {
	struct homa_addr addr;
	u16 port;
	bool marked;
};

/** homa_use() - before the socket begins an RPC or lets others do so. */
static inline void homa_use(struct homa_ksock *hsk)
{
	if (unlikely(!READ_ONCE(hsk->used)))
		smp_store_mb(hsk->used, true);
}

int homa_bind(struct socket *sock, homa_bind_addr *addr, int len);
int homa_connect(struct socket *sock, homa_bind_addr *addr, int len, int flags);
int homa_getname(struct socket *sock, struct sockaddr *addr, int peer);
/** homa_name_get() - from msg_name; -EINVAL, -EAFNOSUPPORT, -ENETUNREACH. */
int homa_name_get(struct homa_ksock *hsk, const struct msghdr *msg,
		  struct homa_name *name);
/** homa_name_put() - to @to, which has room for any; its size. */
int homa_name_put(const struct homa_ksock *hsk, const struct homa_addr *peer,
		  u16 port, struct sockaddr_storage *to);
/** homa_name_fits() - can the socket's address family name it? */
bool homa_name_fits(const struct homa_ksock *hsk, const struct homa_addr *peer);

/* ---- user.c: who answers for sockets ---- */

/** homa_user_get() - hsk->user of who makes the socket; -EADDRINUSE: he has his share of
 *  the ports, -ENOMEM. May sleep. */
int homa_user_get(struct homa_ksock *hsk);
/** homa_user_put() - the socket has no RPC any more, nor will have one. */
void homa_user_put(struct homa_ksock *hsk);
/** homa_user_owner() - what the engine's socket is charged to. */
struct homa_owner *homa_user_owner(struct homa_user *user);

/* ---- option.c ---- */

int homa_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		    unsigned int len);
int homa_getsockopt(struct socket *sock, int level, int name, char __user *value,
		    int __user *len);

/** homa_pool_delete() - bookkeeping of a receive region, or NULL. */
void homa_pool_delete(void *pool);

/* ---- inbox.c: the reader's side ---- */

#define HOMA_PIPE_BYTES 65536u	/* so many to copy are worth waking a reader */
#define HOMA_POLL_BYTES (256u << 10) /* the same for poll() */

/**
 * homa_inbox_next() - what is there for any thread, into @waiter->what: a shared RPC to
 * read, now the caller's, with the list's hold; or a message. HOMA_WAITS: nothing, and
 * @waiter waits from now on if @wait.
 */
void homa_inbox_next(struct homa_ksock *hsk, struct homa_waiter *waiter, bool wait);
/** homa_inbox_private() - the same for one private RPC, which the caller holds. */
bool homa_inbox_private(struct homa_ksock *hsk, struct homa_krpc *krpc,
			struct homa_waiter *waiter, bool wait);
/** homa_inbox_unwait() - it waits no longer; waiter->what says what it was handed at the
 *  last moment. */
void homa_inbox_unwait(struct homa_ksock *hsk, struct homa_krpc *krpc,
		       struct homa_waiter *waiter);
/** homa_waiter_pick() - who gets the next shared RPC; NULL: nobody waits. Socket locked. */
struct homa_waiter *homa_waiter_pick(struct homa_ksock *hsk);
/** homa_rouse() - @waiter, in no list any more, has got @what. Socket locked. */
void homa_rouse(struct homa_waiter *waiter, enum homa_waited what);
/**
 * homa_inbox_back() - after @batch was dealt with, in the engine; @done: the RPC is over
 * or the application has its message. True: there is more to read, now in @batch;
 * false: the RPC is not the caller's any more, nor is its hold.
 */
bool homa_inbox_back(struct homa_cpu *cpu, struct homa_ksock *hsk,
		     struct homa_krpc *krpc, struct homa_batch *batch, bool done);
/** homa_batch_free() - of copied or dropped packets. In the engine. */
void homa_batch_free(struct homa_ksock *hsk, struct homa_batch *batch);
/** homa_inbox_forget() - an RPC was aborted silently; the caller holds it. In the engine. */
void homa_inbox_forget(struct homa_cpu *cpu, struct homa_ksock *hsk,
		       struct homa_krpc *krpc);

/* ---- one_packet.c: messages that came whole ---- */

#define HOMA_GIVEN_MOST 1024u	/* of them wait, or some more, before no more are given */

/** homa_given_take() - the next one, if it is its turn; NULL: none. Socket locked. */
struct sk_buff *homa_given_take(struct homa_ksock *hsk);
/** homa_given_free() - it was copied or is not wanted; any context. */
void homa_given_free(struct homa_ksock *hsk, struct sk_buff *skb);
/** homa_given_abort() - the response to request @id waits to be received (0: any)? @silent:
 *  it is wanted no more. In the engine. */
bool homa_given_abort(struct homa_cpu *cpu, struct homa_ksock *hsk, u64 id, bool silent);
/** homa_given_purge() - the socket closes; some at a time: true while there is more. */
bool homa_given_purge(struct homa_ksock *hsk);

/* ---- room.c: packets that wait to be copied ---- */

/** homa_room_take() - @skb waits from now on. Socket locked; @engine_sock: the engine's. */
void homa_room_take(struct homa_ksock *hsk, struct homa_sock *engine_sock,
		    const struct sk_buff *skb);
/** homa_room_give() - @bytes of skbs wait no longer. Socket not locked; any context. */
void homa_room_give(struct homa_ksock *hsk, u32 bytes);
/** homa_room_open() - the socket has a receive region. */
void homa_room_open(struct homa_ksock *hsk);

/* ---- room.c: who pays for memory ---- */

/** homa_pay() - tx_bytes grew: charge the socket's memory cgroup. False: there is no
 *  memory; the bytes are still counted. Socket not locked; any context. */
bool homa_pay(struct homa_ksock *hsk);
/** homa_pay_less() - less is used: give back what is much too much. */
void homa_pay_less(struct homa_ksock *hsk);
/** homa_pay_end() - sk_destruct: nothing is used any more. */
void homa_pay_end(struct sock *sk);

/* ---- wait.c ---- */

/**
 * homa_wait() - until @waiter is handed something or woken, *@timeo is over or a signal
 * comes. @krpc: the private one it waits for, or NULL. 0: see waiter->what; -EAGAIN,
 * -EINTR, -ERESTARTSYS: it waits no longer.
 */
int homa_wait(struct homa_ksock *hsk, struct homa_krpc *krpc,
	      struct homa_waiter *waiter, long *timeo, enum homa_host_metric *how);
/** homa_wait_room() - until there is room to send; 0 or an error as above. */
int homa_wait_room(struct homa_ksock *hsk, long *timeo);
/** homa_wait_tick() - a moment: objects are short. 0 or an error. */
int homa_wait_tick(struct homa_ksock *hsk, long *timeo);
/** homa_write_space() - sk_write_space: senders and pollers that wait for room. */
void homa_write_space(struct sock *sk);

static inline void homa_waiter_init(struct homa_waiter *waiter, u64 id)
{
	INIT_LIST_HEAD(&waiter->list);
	waiter->next = NULL;
	waiter->task = current;
	waiter->id = id;
	waiter->what = HOMA_WAITS;
	waiter->asleep = false;
}

#endif
