/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the module keeps of each RPC, of each packet that waits to be copied, of each
 * thread that waits for a message, and of each socket. homa_kernel.h says how they work
 * together, and is the one that includes this file.
 */
#ifndef HOMA_KOBJECTS_H
#define HOMA_KOBJECTS_H

#include <linux/in6.h>
#include <linux/ipv6.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <net/inet_sock.h>

#include "homa_engine.h"

struct homak_net;
struct homak_user;

/* ---- per RPC ---- */

struct homak_msg;	/* bytes of an outgoing message; msg.c */
struct homak_sock;

/* Which list of its socket an RPC is in (homak_sock.lock). */
enum homak_rpc_list {
	HOMAK_LIST_NONE = 0,
	HOMAK_LIST_READY,	/* all arrived, or failed: recvmsg() will end with it */
	HOMAK_LIST_PARTIAL,	/* bytes to copy */
	HOMAK_LIST_PRIVATE,	/* the same for a private RPC, found by its id */
	HOMAK_LIST_READER,	/* a thread copies */
};

/*
 * struct homak_rpc - the host's bytes of an RPC
 * @rpc: whose they are; set when the memory is made.
 * @local: our address: all of its packets leave from there. At a server the one that
 *	the request came to, at a client the one that routing chose for the request.
 *	Set before the engine has made the RPC of this memory (homa_ctx_next_rpc()).
 * @msg: outgoing message; set before the engine knows of it, freed when the RPC
 *	is retired.
 * Under homak_sock.lock:
 * @list: place in one of the socket's lists, which hold the RPC (homa_rpc_hold).
 * @rx_head, @rx_tail: skbs with bytes to copy, each with its struct
 *	homak_rx_cb; each pins the RPC.
 * @on: enum homak_rpc_list.
 * @whole: everything has arrived.
 * @over: an event said that it is complete or failed.
 * @gone: aborted silently; what still comes is dropped.
 * @waiter: threads that wait for this private RPC (homak_waiter.next).
 */
struct homak_rpc {
	struct homa_rpc *rpc;
	struct in6_addr local;
	struct homak_msg *msg;
	struct list_head list;
	struct sk_buff *rx_head, *rx_tail;
	u32 rx_bytes;
	u8 on;
	bool whole;
	bool over;
	bool gone;
	bool is_private;
	struct homak_waiter *waiter;
};

/* In skb->cb of a queued packet: what the reader needs (48 bytes at most). */
struct homak_rx_cb {
	struct homa_rpc *rpc;	/* pinned */
	u32 offset;		/* in the message */
	u32 length;
	u32 fresh;
	u32 at;			/* first byte to copy, from skb->data */
};

static inline struct homak_rx_cb *homak_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homak_rx_cb) > sizeof(skb->cb));
	return (struct homak_rx_cb *)skb->cb;
}

/*
 * The same of a packet that is a whole message, given away with it: what recvmsg()
 * says of it. The kind follows from the id, which is odd at servers.
 */
struct homak_given_cb {
	u64 id;
	u64 cookie;
	u8 ip[16];
	u32 page;		/* where it goes, in the region */
	u32 at;			/* first byte to copy, from skb->data */
	u32 length;
	u16 encap;
	u16 port;
};

static inline struct homak_given_cb *homak_given_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homak_given_cb) > sizeof(skb->cb));
	return (struct homak_given_cb *)skb->cb;
}

static inline struct homak_rpc *homak_rpc(struct homa_rpc *rpc)
{
	return homa_rpc_priv(rpc);
}

/* ---- per socket ---- */

/*
 * struct homak_batch - packets that a reader took from an RPC's queue
 * @whole, @over: as in struct homak_rpc, at that time.
 */
struct homak_batch {
	struct sk_buff *skbs;
	bool whole;
	bool over;
};

/* What has become of a waiting thread. */
enum homak_waited {
	HOMAK_WAITS = 0,
	HOMAK_WAITED_RPC,	/* it was handed an RPC to read: @given, @batch */
	HOMAK_WAITED_MESSAGE,	/* it was handed a whole message: @skb */
	HOMAK_WAITED_LOOK,	/* nothing, but it should look again */
};

/*
 * struct homak_waiter - a thread in recvmsg(), on its stack
 * @list: in homak_sock.waiters (newest first), or in .private_waiters for @id.
 * @next: another thread that waits for the same private RPC.
 * @what: enum homak_waited. Written last and with release, under homak_sock.lock, by
 *	who took it out of @list: from then on the thread may be gone.
 * @given, @batch: the RPC it was handed, with a hold; @skb: a message.
 * @asleep: it has stopped polling (a hint for who chooses among threads).
 */
struct homak_waiter {
	struct list_head list;
	struct homak_waiter *next;
	struct task_struct *task;
	struct homak_rpc *given;
	struct homak_batch batch;
	struct sk_buff *skb;
	u64 id;
	u8 what;
	bool asleep;
};

/*
 * struct homak_sock - a Homa socket; begins with the kernel's
 * @engine_sock: the engine's; its private bytes point back here.
 * @user: on whose account its RPCs go.
 * @pool: the engine's bookkeeping of the receive region.
 * @region, @region_size: where the region is in the application.
 * @mm: whose address space that is. Held as a name (mmgrab()): only compared.
 * @lock: lists and waiters; bottom halves off.
 * @ready, @partial, @privates: see enum homak_rpc_list.
 * @partial_bytes: to copy, of those in @partial.
 * @messages: messages that are whole in their skb (one_packet.c); @run: how many were
 *	taken since one of @ready was.
 * @giving: the engine gives such messages away; @full: it refuses packets (room.c).
 * @tx_full: somebody waits until @tx_bytes is below wmem_max.
 * @tx_bytes: of unfinished outgoing messages (also in sk_wmem_alloc's place).
 * @destruct: what the address family wants done at the end.
 * @encap: homa_addr.encap of what we send to.
 * @used: it may have RPCs; @moved: some of them at a port that it has left.
 * @shutdown: no more calls.
 */
struct homak_sock {
	/* ipv6 needs pinet6 found behind inet_sock: see struct homak6_sock */
	struct inet_sock inet;
	struct homak_net *hnet;
	struct homa_sock *engine_sock;
	struct homak_user *user;
	void *pool;
	unsigned long region;
	size_t region_size;
	u32 region_pages;
	struct mm_struct *mm;
	spinlock_t lock;
	struct list_head ready, partial, privates, waiters, private_waiters;
	struct sk_buff_head messages;
	u32 run;
	u32 partial_bytes;
	bool giving, full;
	atomic64_t tx_bytes;
	void (*destruct)(struct sock *sk);
	u16 encap;
	bool server;
	bool used;
	bool moved;
	bool shutdown;
	bool tx_full;
	struct list_head all;
	char error[HOMA_ERROR_MSG_SIZE];	/* last failed call, for HOMAIOCINFO */
};

struct homak6_sock {
	struct homak_sock homa;
	struct ipv6_pinfo inet6;	/* must be last */
};

static inline struct homak_sock *homak_sk(const struct sock *sk)
{
	return (struct homak_sock *)sk;
}

static inline struct homak_sock *homak_sock_of(struct homa_sock *engine_sock)
{
	return *(struct homak_sock **)homa_sock_priv(engine_sock);
}

#endif
