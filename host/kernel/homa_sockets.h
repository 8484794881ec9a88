/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the socket API share. */
#ifndef HOMA_SOCKETS_H
#define HOMA_SOCKETS_H

#include "homa_kernel.h"

/** homak_error_text() - remember a sentence for HOMAIOCINFO, returns @err. */
static inline int homak_error_text(struct homak_sock *hsk, int err, const char *text)
{
	strscpy(hsk->error, text, sizeof(hsk->error));
	return err;
}

/* ---- sockname.c: names ---- */

/*
 * struct homak_name - a peer as the application names it
 * @marked: it says how the peer is reached (a UDP port of its own).
 */
struct homak_name {
	struct homa_addr addr;
	u16 port;
	bool marked;
};

/** homak_use() - before the socket begins an RPC or lets others do so. */
static inline void homak_use(struct homak_sock *hsk)
{
	if (unlikely(!READ_ONCE(hsk->used)))
		smp_store_mb(hsk->used, true);
}

int homak_bind(struct socket *sock, homak_bind_addr *addr, int len);
int homak_connect(struct socket *sock, homak_bind_addr *addr, int len, int flags);
int homak_getname(struct socket *sock, struct sockaddr *addr, int peer);
/** homak_name_get() - from msg_name; -EINVAL, -EAFNOSUPPORT, -ENETUNREACH. */
int homak_name_get(struct homak_sock *hsk, const struct msghdr *msg,
		   struct homak_name *name);
/** homak_name_put() - to @to, which has room for any; its size. */
int homak_name_put(const struct homak_sock *hsk, const struct homa_addr *peer,
		   u16 port, struct sockaddr_storage *to);
/** homak_name_fits() - can the socket's address family name it? */
static inline bool homak_name_fits(const struct homak_sock *hsk,
				   const struct homa_addr *peer)
{
	const struct sock *sk = &hsk->inet.sk;

	if (homa_addr_is_v4(peer))
		return !ipv6_only_sock(sk);
	return sk->sk_family == AF_INET6;
}

/* ---- user.c: who answers for sockets ---- */

/** homak_user_get() - hsk->user of who makes the socket; -EADDRINUSE: he has his share of
 *  the ports, -ENOMEM. May sleep. */
int homak_user_get(struct homak_sock *hsk);
/** homak_user_put() - the socket has no RPC any more, nor will have one. */
void homak_user_put(struct homak_sock *hsk);
/** homak_user_owner() - what the engine's socket is charged to. */
struct homa_owner *homak_user_owner(struct homak_user *user);

/* ---- option.c ---- */

int homak_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		     unsigned int len);
int homak_getsockopt(struct socket *sock, int level, int name, char __user *value,
		     int __user *len);

/** homak_pool_delete() - bookkeeping of a receive region, or NULL. */
void homak_pool_delete(void *pool);

/* ---- inbox.c: the reader's side ---- */

#define HOMAK_PIPE_BYTES 65536u	/* so many to copy are worth waking a reader */
#define HOMAK_POLL_BYTES (256u << 10) /* the same for poll() */

/**
 * homak_inbox_next() - what is there for any thread, into @waiter->what: a shared RPC to
 * read, now the caller's, with the list's hold; or a message. HOMAK_WAITS: nothing, and
 * @waiter waits from now on if @wait.
 */
void homak_inbox_next(struct homak_sock *hsk, struct homak_waiter *waiter, bool wait);
/** homak_inbox_private() - the same for one private RPC, which the caller holds. */
bool homak_inbox_private(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter, bool wait);
/**
 * homak_inbox_back() - after @batch was dealt with, in the engine; @done: the RPC is over
 * or the application has its message. True: there is more to read, now in @batch;
 * false: the RPC is not the caller's any more, nor is its hold.
 */
bool homak_inbox_back(struct homak_cpu *cpu, struct homak_sock *hsk,
		      struct homak_rpc *krpc, struct homak_batch *batch, bool done);
/** homak_batch_free() - of copied or dropped packets. In the engine. */
void homak_batch_free(struct homak_sock *hsk, struct homak_batch *batch);
/** homak_inbox_forget() - an RPC was aborted silently; the caller holds it. In the engine. */
void homak_inbox_forget(struct homak_cpu *cpu, struct homak_sock *hsk,
			struct homak_rpc *krpc);

/* ---- one_packet.c: messages that came whole ---- */

#define HOMAK_GIVEN_MOST 1024u	/* of them wait, or some more, before no more are given */

/** homak_given_take() - the next one, if it is its turn; NULL: none. Socket locked. */
struct sk_buff *homak_given_take(struct homak_sock *hsk);
/** homak_given_free() - it was copied or is not wanted; any context. */
void homak_given_free(struct homak_sock *hsk, struct sk_buff *skb);
/** homak_given_abort() - the response to request @id waits to be received (0: any)? @silent:
 *  it is wanted no more. In the engine. */
bool homak_given_abort(struct homak_cpu *cpu, struct homak_sock *hsk, u64 id, bool silent);
/** homak_given_purge() - the socket closes; some at a time: true while there is more. */
bool homak_given_purge(struct homak_sock *hsk);

/* ---- room.c: packets that wait to be copied ---- */

/** homak_room_take() - @skb waits from now on. Socket locked; @engine_sock: the engine's. */
void homak_room_take(struct homak_sock *hsk, struct homa_sock *engine_sock,
		     const struct sk_buff *skb);
/** homak_room_give() - @bytes of skbs wait no longer. Socket not locked; any context. */
void homak_room_give(struct homak_sock *hsk, u32 bytes);
/** homak_room_open() - the socket has a receive region. */
void homak_room_open(struct homak_sock *hsk);

/* ---- room.c: who pays for memory ---- */

/** homak_pay() - tx_bytes grew: charge the socket's memory cgroup. False: there is no
 *  memory; the bytes are still counted. Socket not locked; any context. */
bool homak_pay(struct homak_sock *hsk);
/** homak_pay_less() - less is used: give back what is much too much. */
void homak_pay_less(struct homak_sock *hsk);
/** homak_pay_end() - sk_destruct: nothing is used any more. */
void homak_pay_end(struct sock *sk);

/* ---- wait.c ---- */

/** homak_waiter_pick() - who gets the next shared RPC; NULL: nobody waits. Socket locked. */
struct homak_waiter *homak_waiter_pick(struct homak_sock *hsk);
/** homak_rouse() - @waiter, in no list any more, has got @what. Socket locked. */
void homak_rouse(struct homak_waiter *waiter, enum homak_waited what);
/**
 * homak_wait() - until @waiter is handed something or woken, *@timeo is over or a signal
 * comes. @krpc: the private one it waits for, or NULL. 0: see waiter->what; -EAGAIN,
 * -EINTR, -ERESTARTSYS: it waits no longer.
 */
int homak_wait(struct homak_sock *hsk, struct homak_rpc *krpc,
	       struct homak_waiter *waiter, long *timeo, enum homak_host_metric *how);
/** homak_wait_room() - until there is room to send; 0 or an error as above. */
int homak_wait_room(struct homak_sock *hsk, long *timeo);
/** homak_wait_tick() - a moment: objects are short. 0 or an error. */
int homak_wait_tick(struct homak_sock *hsk, long *timeo);
/** homak_write_space() - sk_write_space: senders and pollers that wait for room. */
void homak_write_space(struct sock *sk);

static inline void homak_waiter_init(struct homak_waiter *waiter, u64 id)
{
	INIT_LIST_HEAD(&waiter->list);
	waiter->next = NULL;
	waiter->task = current;
	waiter->id = id;
	waiter->what = HOMAK_WAITS;
	waiter->asleep = false;
}

#endif
