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

struct homak_msg; /* bytes of an outgoing message; msg.c */
struct homak_sock;

/* The list of its socket that an RPC is in; homak_sock.lock protects it. */
enum homak_rpc_list {
	HOMAK_LIST_NONE = 0,
	/* The message has arrived, or the RPC has failed: recvmsg() will end with it. */
	HOMAK_LIST_READY,
	/* Packets with bytes to copy wait; some of the message may still be missing. */
	HOMAK_LIST_PARTIAL,
	/* As one of the two lists above, for a private RPC, which is found by its id. */
	HOMAK_LIST_PRIVATE,
	/* No list: a thread is copying its bytes. */
	HOMAK_LIST_READER,
};

/* struct homak_rpc - the host's bytes of an RPC of the engine. Guarded by: homak_sock.lock, from
 * @list on; what is before that is constant once it is set. */
struct homak_rpc {
	/* The address of ours that all of its packets leave from. At a server it is the one
	 * that the request came to, at a client the one that routing chose for the request.
	 * It is set before the engine makes the RPC of this memory (homa_ctx_next_rpc()),
	 * which reads it here, at the beginning (homa_limits.rpc_from). */
	struct in6_addr local;
	/* The RPC whose bytes these are; set when the memory is allocated. */
	struct homa_rpc *rpc;
	/* The outgoing message. It is set before the engine knows of it, and freed when the
	 * engine retires the RPC. */
	struct homak_msg *msg;

	/* Links the RPC into the list of its socket that @on names. The list holds the RPC
	 * (homa_rpc_hold()). */
	struct list_head list;
	/* The first and the last skb with bytes to copy. Each has its struct homak_rx_cb and
	 * pins the RPC. */
	struct sk_buff *rx_head, *rx_tail;
	/* The number of bytes of the message that these skbs have. */
	u32 rx_bytes;
	/* The list that the RPC is in, an enum homak_rpc_list. */
	u8 on;
	/* True if all bytes of the message have arrived. */
	bool whole;
	/* True if the engine's event has come that says that the RPC is complete or has
	 * failed. */
	bool over;
	/* True if the application has aborted the RPC silently, so that packets that still
	 * come are dropped. */
	bool gone;
	/* True if only a recvmsg() that names the id gets the message; set by sendmsg(). */
	bool is_private;
	/* The first thread that waits for this RPC, which is private; homak_waiter.next links
	 * the others. */
	struct homak_waiter *waiter;
};

static_assert(!offsetof(struct homak_rpc, local) &&
	      sizeof(struct in6_addr) == sizeof(struct homa_from));

/* struct homak_rx_cb - what the reader needs of a packet that waits to be copied. It lies
 * in skb->cb, which has 48 bytes. Written by: homak_inbox_data(); constant after that. */
struct homak_rx_cb {
	/* The packet's RPC, which the packet pins. */
	struct homa_rpc *rpc;
	/* The offset in the message to which the bytes are to be copied. */
	u32 offset;
	/* The number of bytes to copy. */
	u32 length;
	/* The number of these bytes that the engine had not had before, for
	 * homa_rx_copied(). */
	u32 fresh;
	/* The offset of the first byte to copy, counted from skb->data. */
	u32 at;
};

static inline struct homak_rx_cb *homak_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homak_rx_cb) > sizeof(skb->cb));
	return (struct homak_rx_cb *)skb->cb;
}

/*
 * struct homak_whole_cb - the same for a packet that is a whole message, which the engine
 * gave away with it: what recvmsg() says of the message. The kind follows from the id,
 * which is odd at servers. Written by: homak_whole_add(); constant after that.
 */
struct homak_whole_cb {
	/* The RPC's id on this side. */
	u64 id;
	/* The application's cookie if this is its client. */
	u64 cookie;
	/* The peer's address, as in struct homa_addr. */
	u8 ip[16];
	/* The offset in the receive region to which the message is to be copied. */
	u32 page;
	/* The offset of the first byte to copy, counted from skb->data. */
	u32 at;
	/* The length of the message in bytes. */
	u32 length;
	/* The peer's homa_addr.encap. */
	u16 encap;
	/* The peer's Homa port. */
	u16 port;
};

static inline struct homak_whole_cb *homak_whole_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homak_whole_cb) > sizeof(skb->cb));
	return (struct homak_whole_cb *)skb->cb;
}

/** homak_whole_peer() - writes the address of such a message's peer. */
static __always_inline void homak_whole_peer(const struct homak_whole_cb *cb,
					     struct homa_addr *peer)
{
	memcpy(peer->ip, cb->ip, sizeof(cb->ip));
	peer->encap = cb->encap;
	peer->zero = 0;
}

/** homak_whole_info() - says in @info what is known of a message that is one packet. */
static __always_inline void homak_whole_info(const struct homak_whole_cb *cb,
					     struct homa_msg_info *info)
{
	info->kind = cb->id & 1 ? HOMA_EV_REQUEST : HOMA_EV_RESPONSE;
	info->error = 0;
	info->length = cb->length;
	info->id = cb->id;
	info->cookie = cb->cookie;
	homak_whole_peer(cb, &info->peer);
	info->peer_port = cb->port;
	info->num_pages = 1;
	info->pages[0] = cb->page;
}

static inline struct homak_rpc *homak_rpc(struct homa_rpc *rpc)
{
	return homa_rpc_priv(rpc);
}

/* ---- per socket ---- */

/* struct homak_batch - packets that a reader took from an RPC's queue. Written by: who hands them
 * to the reader, under homak_sock.lock; the reader's alone after that. */
struct homak_batch {
	/* The first packet; skb->next links the others. */
	struct sk_buff *skbs;
	/* The value that homak_rpc.whole had when the packets were taken. */
	bool whole;
	/* The value that homak_rpc.over had then. */
	bool over;
};

/* Says what has become of a waiting thread. */
enum homak_waited {
	HOMAK_WAITS = 0,
	/* It was handed an RPC to read, with packets: @handed and @batch. */
	HOMAK_WAITED_RPC,
	/* It was handed a whole message: @skb. */
	HOMAK_WAITED_MESSAGE,
	/* It was handed nothing, but should look again. */
	HOMAK_WAITED_LOOK,
};

/* struct homak_waiter - a thread in recvmsg(), on its stack. Guarded by: homak_sock.lock */
struct homak_waiter {
	/* Links it into homak_sock.waiters (newest first), or into .private_waiters if it
	 * waits for the RPC @id. */
	struct hlist_node list;
	/* The next thread that waits for the same private RPC. */
	struct homak_waiter *next;
	/* The thread, which is woken by this. */
	struct task_struct *task;
	/* The RPC that the thread was handed, with a hold. */
	struct homak_rpc *handed;
	/* The packets to copy. */
	struct homak_batch batch;
	/* The message that the thread was handed. */
	struct sk_buff *skb;
	/* The private RPC that the thread waits for; 0: any that is not private. */
	u64 id;
	/* An enum homak_waited. The thread that takes the waiter out of @list writes it,
	 * last and with release: from then on the waiting thread may be gone. */
	u8 what;
	/* True if the thread has stopped polling. Threads that poll are preferred to it. */
	bool asleep;
};

/* Bits of homak_sock.way. A route that was found for a socket that has them is no other's. */
/* Its packets leave from homak_sock.bound or not at all. */
#define HOMAK_WAY_BOUND (1ull << 48)
/* They may leave from addresses that are not ours (IP_TRANSPARENT). */
#define HOMAK_WAY_ANY_SOURCE (1ull << 49)

/*
 * struct homak_sock - a Homa socket
 *
 * Guarded by: @lock (what waits: lists, waiters, @messages and their counts) and the kernel's
 * lock of the socket, lock_sock() (the region and what bind() and options set); other fields are
 * constant, or say who writes them.
 */
struct homak_sock {
	/* The kernel's part comes first. IPv6 finds its own part behind it: see struct
	 * homak6_sock. */
	struct inet_sock inet;
	/* The socket's namespace; constant. */
	struct homak_net *hnet;
	/* The engine's socket, whose private bytes point back here. */
	struct homa_sock *engine_sock;
	/* The user to whom its RPCs are charged. */
	struct homak_user *user;
	/* The engine's bookkeeping of the receive region. */
	void *pool;
	/* The address at which the receive region begins in the application. */
	unsigned long region;
	/* The size of the region, in bytes. */
	size_t region_size;
	/* The size of the region, in pages of HOMA_BPAGE_SIZE. */
	u32 region_pages;
	/* The address space of the region. It is only compared, so mmgrab() is enough. */
	struct mm_struct *mm;
	/* Protects the lists, the waiters and their members. Taken with bottom halves
	 * off. */
	spinlock_t lock;
	/* RPCs with something for recvmsg(), see enum homak_rpc_list. */
	struct list_head ready, partial, privates;
	/* Threads in it, the newest first; unlike other lists, these are not checked at each
	 * step by kernels that do that. */
	struct hlist_head waiters, private_waiters;
	/* Messages that are whole in their skb (one_packet.c). */
	struct sk_buff_head messages;
	/* The number of @messages that were taken since an RPC of @ready was. */
	u32 run;
	/* The number of bytes that the RPCs in @partial have to copy. */
	u32 partial_bytes;
	/* True if the engine gives messages of one packet away with the packet. */
	bool deliver_whole;
	/* True if the engine refuses packets, because too many wait to be copied
	 * (room.c). */
	bool full;
	/* The number of bytes of unfinished outgoing messages; all threads that send and
	 * end messages count them, and the kernel uses it instead of sk_wmem_alloc. */
	atomic64_t tx_bytes;
	/* The number of bytes that were charged for the socket (room.c). Written with @lock held,
	 * and when the socket's memory goes. */
	int paid;
	/* Bytes of pages of streams that the socket carries (stream/ring.c). */
	atomic64_t ring_bytes;
	/* The destructor of the address family, which is called when the socket ends. */
	void (*destruct)(struct sock *sk);
	/* The peer of messages that name none, set by connect(); NULL: there is none. Written
	 * with the socket locked. */
	struct homak_peer __rcu *peer;
	/* The address of ours that the socket is bound to, an IPv4 one in IPv6's mapped form;
	 * all 0: none. Its messages leave from there. */
	struct in6_addr bound;
	/* What else the ways of its packets depend on, in one word: the index of the device
	 * that it is bound to, and HOMAK_WAY_*. */
	u64 way;
	/* The homa_addr.encap of the peers that the socket sends to. */
	u16 encap;
	/* True if the socket takes requests; set by bind() and by the socket option. */
	bool server;
	/* True if the socket may have RPCs. */
	bool used;
	/* The value of the option IPV6_V6ONLY; an address of IPv6 makes the socket one for
	 * IPv6 only, too. */
	bool only_v6;
	/* True if some of its RPCs may be at a port that the socket has left since. */
	bool moved;
	/* True if all further calls fail, after shutdown() or close(). */
	bool shutdown;
	/* True if a thread waits until there is room, see homak_sock_room(). */
	bool tx_full;
	/* True for a moment after a call has failed for want of memory or of RPCs, although
	 * there is room: who polls is not to try again at once. sk_timer ends it. */
	bool tx_short;
	/* Links it into homak_net.socks. */
	struct list_head all;
	/* A sentence on the last error of a call, for HOMAIOCINFO. */
	char error[HOMA_ERROR_MSG_SIZE];
};

/* struct homak6_sock - a Homa socket of AF_INET6. Guarded by: what struct homak_sock says. */
struct homak6_sock {
	/* The part that sockets of both families have; it must be first. */
	struct homak_sock homa;
	/* The kernel's state of an IPv6 socket; it must be last. */
	struct ipv6_pinfo inet6;
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
