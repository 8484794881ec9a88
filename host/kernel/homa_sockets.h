/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the socket API share. Written by: the one call that has the struct. */
#ifndef HOMA_SOCKETS_H
#define HOMA_SOCKETS_H

#include <net/busy_poll.h>

#include "homa_kernel.h"

/** homak_error_text() - keeps a sentence for HOMAIOCINFO, and returns @err. */
static inline int homak_error_text(struct homak_sock *hsk, int err,
				   const char *text)
{
	strscpy(hsk->error, text, sizeof(hsk->error));
	return err;
}

/* ---- names ---- */

/*
 * struct homak_name - a peer as the application names it
 * @marked: true if the name says that the peer is reached at a UDP port of its own.
 */
struct homak_name {
	/* the address, with the encapsulation by which it is reached. */
	struct homa_addr addr;
	/* the Homa port, in host order. */
	u16 port;
	bool marked;
};

/* struct homak_peer - what connect() named; it never changes */
struct homak_peer {
	/* The peer. */
	struct homak_name name;
	/* Its memory lives until nobody reads it any more. */
	struct rcu_head rcu;
};

static inline int homak_name_size(const struct sock *sk)
{
	return sk->sk_family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6);
}

/* ---- sockname.c: names of peers ---- */

int homak_connect(struct socket *sock, homak_bind_addr *addr, int len, int flags);
/** homak_getpeer() - writes the name of the peer that connect() named; returns its size, or
 *  -ENOTCONN. */
int homak_getpeer(struct homak_sock *hsk, struct sockaddr *addr);
/** homak_disconnect() - forgets what connect() named; the socket is locked, or has no users. */
void homak_disconnect(struct homak_sock *hsk);
/** homak_name_get() - reads the name @sa of @len bytes; NULL: the peer that connect() named. 0,
 *  -EINVAL, -EAFNOSUPPORT or -ENETUNREACH. */
HOMAK_HOT int homak_name_get(struct homak_sock *hsk, const struct sockaddr *sa,
			     int len, struct homak_name *name);
/** homak_name_put() - writes a name to @to, which has room for any; returns its size. */
HOMAK_HOT int homak_name_put(const struct homak_sock *hsk,
			     const struct homa_addr *peer, u16 port,
			     struct sockaddr_storage *to);
/** homak_name_fits() - can the socket's address family name the peer? */
static inline bool homak_name_fits(const struct homak_sock *hsk,
				   const struct homa_addr *peer)
{
	const struct sock *sk = &hsk->inet.sk;

	if (homa_addr_is_v4(peer))
		return !ipv6_only_sock(sk);
	return sk->sk_family == AF_INET6;
}

/* ---- send.c ---- */

/* struct homak_sending - a message to send */
struct homak_sending {
	/* What the caller wants, copied once. */
	struct homa_sendmsg_args args;
	/* The peer. */
	struct homak_name name;
	/* The length of the message, in bytes. */
	u32 length;
	/* The number of its bytes that were copied. */
	u32 filled;
	/* The message; NULL: the length is invalid. */
	struct homak_msg *msg;
	/* The engine's name of the RPC. */
	struct homa_handle handle;
	/* Where to write the address of ours that a request leaves from; or NULL. */
	struct in6_addr *local;
	struct homa_rpc *rpc; /* held while there is more to copy, else NULL */
};

/** homak_send_rpc() - gives the engine a request, between homak_enter() and homak_leave(). If
 *  this returns 0 the message belongs to the RPC. */
int homak_send_rpc(struct homak_cpu *cpu, struct homak_sock *hsk,
		   struct homak_sending *s);
/** homak_send_reply() - gives the engine the response to @s->args.id, or a rejection. *@ours
 *  becomes false if the message no longer belongs to the caller. -EINVAL: there is such an
 *  RPC, but it cannot be answered, or there is no message. */
int homak_send_reply(struct homak_cpu *cpu, struct homak_sock *hsk,
		     struct homak_sending *s, bool *ours);

/** homak_send_args() - reads the arguments of sendmsg(); 0, -EINVAL or -EFAULT. */
HOMAK_HOT int homak_send_args(struct homak_sock *hsk, const struct msghdr *msg,
			      struct homak_sending *s);
/** homak_send() - checks and sends the message that @s has the arguments and the peer of. */
HOMAK_HOT int homak_send(struct homak_sock *hsk, struct msghdr *msg, size_t len,
			 struct homak_sending *s);

/* ---- recv.c ---- */

/*
 * struct homak_receipt - one recvmsg()
 * @args: the caller's arguments.
 * @info: message or failure, if the call ends with one.
 * @skb: a message that came whole, if the call ends with HOMAK_RECEIVED_WHOLE.
 * @held: a private RPC that is held while the thread waits for it, or NULL.
 * @how: counter for how the last wait ended; HOMAK_H_COUNT: there was none.
 * @polled: true if a call that must not wait has polled its network card (SO_BUSY_POLL).
 * @timeo: time that the call may still wait, jiffies.
 */
struct homak_receipt {
	struct homa_recvmsg_args args;
	struct homa_msg_info info;
	struct sk_buff *skb;
	struct homa_rpc *held;
	enum homak_host_metric how;
	bool polled;
	long timeo;
};

/** homak_copy_piece() - copies @n bytes to the application, from @at bytes behind the beginning of
 *  @skb's data; 0 or -EFAULT. copy.c */
HOMAK_HOT int homak_copy_piece(struct sk_buff *skb, u32 at, void __user *to,
			       u32 n);
/** homak_copy_long() - does the same for a packet of a longer message, of which most bytes are in
 *  pages and not in the linear part. */
HOMAK_HOT int homak_copy_long(struct sk_buff *skb, u32 at, void __user *to,
			      u32 n);
/** homak_args_read_send() - reads the arguments of sendmsg(); 0 or -EFAULT. */
HOMAK_HOT int homak_args_read_send(const struct homa_sendmsg_args __user *from,
				   struct homa_sendmsg_args *args);
/** homak_args_read() - reads those of recvmsg() but for the cookie, which it only writes; of
 *  bpage_offsets the entries that the caller gives back. Of too many, which
 *  homak_receipt_check() refuses, it reads as many as there is room for. 0 or -EFAULT. */
HOMAK_HOT int homak_args_read(const struct homa_recvmsg_args __user *from,
			      struct homa_recvmsg_args *args);
/** homak_args_write_whole() - writes what recvmsg() says of a message that came whole; 0 or
 *  -EFAULT. @to->reserved is 0 already. */
HOMAK_HOT int homak_args_write_whole(const struct homak_whole_cb *cb,
				     struct homa_recvmsg_args __user *to);
/** homak_receipt_check() - checks what the caller wrote into @r->args; 0, -EINVAL or -EFAULT. */
HOMAK_HOT int homak_receipt_check(struct homak_sock *hsk,
				  const struct homak_receipt *r);
/** homak_receive() - gives the pages of @r->args back and waits for a message, as recvmsg() with
 *  @flags. Returns 1 if @r->info has a message or a failure, HOMAK_RECEIVED_WHOLE if @r->skb
 *  has one that is to be copied, else an error. */
HOMAK_HOT int homak_receive(struct homak_sock *hsk, struct homak_receipt *r,
			    int flags);
#define HOMAK_RECEIVED_WHOLE 2
/** homak_receive_whole() - copies @r->skb to the receive region and frees it. Returns 1 if
 *  @r->info has the message, or the failure, of which the application is to hear; else an
 *  error. */
int homak_receive_whole(struct homak_sock *hsk, struct homak_receipt *r);
/** homak_whole_copy() - copies the message @r->skb to its page; 0 or -EFAULT. */
HOMAK_HOT int homak_whole_copy(struct homak_sock *hsk,
			       const struct homak_receipt *r);
/** homak_whole_read() - frees @r->skb, which was copied, and counts. */
HOMAK_HOT void homak_whole_read(struct homak_sock *hsk, struct homak_receipt *r);
/** homak_whole_name() - does what homak_name_put() says, for the peer of such a message. */
HOMAK_HOT int homak_whole_name(const struct homak_sock *hsk,
			       const struct homak_whole_cb *cb, void *to);
/** homak_whole_cookie() - returns the cookie that recvmsg() says with such a message. */
static __always_inline u64 homak_whole_cookie(const struct homak_whole_cb *cb)
{
	return cb->id & 1 ? 0 : cb->cookie;
}

/** homak_whole_args() - writes to @args what recvmsg() says of such a message. */
static __always_inline void homak_whole_args(const struct homak_whole_cb *cb,
					     struct homa_recvmsg_args *args)
{
	args->id = cb->id;
	args->completion_cookie = homak_whole_cookie(cb);
	args->num_bpages = 1;
	args->bpage_offsets[0] = cb->page;
}

/** homak_receipt_put() - writes what @r->info says to @r->args. */
HOMAK_HOT void homak_receipt_put(struct homak_receipt *r);
/** homak_receipt_undo() - gives back the message of @r, of which the application cannot learn. */
void homak_receipt_undo(struct homak_sock *hsk, const struct homak_receipt *r);

/* ---- user.c: users who have sockets ---- */

/** homak_user_get() - finds or makes the user who makes the socket, and sets hsk->user. Returns
 *  0, -EADDRINUSE (he has his share of the ports) or -ENOMEM. May sleep. */
int homak_user_get(struct homak_sock *hsk);
/** homak_user_put() - gives hsk->user back, when the socket neither has nor gets RPCs. */
void homak_user_put(struct homak_sock *hsk);
/** homak_user_owner() - returns the owner that the engine charges the socket's RPCs to. */
struct homa_owner *homak_user_owner(struct homak_user *user);

/* ---- ioctl.c ---- */

/** homak_sock_info() - does HOMAIOCINFO; @info is what the program asks, and what it is told. */
int homak_sock_info(struct homak_sock *hsk, struct homa_info *info);

/* ---- option.c ---- */

int homak_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		     unsigned int len);
int homak_getsockopt(struct socket *sock, int level, int name,
		     char __user *value, int __user *len);

/** homak_region_give() - gives the socket a receive region of @pages 64 KiB pages at address
 *  @start of who reads; 0 or an error. The socket is locked, and has none. */
int homak_region_give(struct homak_sock *hsk, unsigned long start, u32 pages);
/** homak_serve() - says whether the socket takes requests; it is locked. */
void homak_serve(struct homak_sock *hsk, bool on);
/** homak_pool_delete() - frees the bookkeeping of a receive region; NULL is fine. */
void homak_pool_delete(void *pool);

/* ---- inbox.c: the reader's side ---- */

/* least bytes to copy for which a reader is woken */
#define HOMAK_PIPE_BYTES 65536u
/* least bytes to copy for which poll() reports the socket */
#define HOMAK_POLL_BYTES (256u << 10)

/**
 * homak_inbox_next() - looks for what any thread may have, and writes to @waiter what it
 * found: a shared RPC to read, or a message. The hold that the list had on the RPC passes
 * to the caller. If @waiter->what stays HOMAK_WAITS there is nothing, and if @wait is set,
 * @waiter is in the list of those that wait. Bottom halves are off.
 */
HOMAK_HOT void homak_inbox_next(struct homak_sock *hsk,
				struct homak_waiter *waiter, bool wait);
/** homak_inbox_private() - does the same for one private RPC, which the caller holds. */
bool homak_inbox_private(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter, bool wait);
/** homak_inbox_whole() - as homak_inbox_next(), but it only finds messages and RPCs whose
 *  message is all there, or that failed; nobody waits. */
void homak_inbox_whole(struct homak_sock *hsk, struct homak_waiter *waiter);
/** homak_inbox_unread() - puts the packets of @batch, of which the engine has been told, back to
 *  the beginning of their RPC's queue: one that is missing is on its way there, on another CPU.
 *  True: it is not there yet, and the caller has neither the RPC nor its hold any more; false:
 *  homak_inbox_back() is next. Between homak_enter() and homak_leave(). */
bool homak_inbox_unread(struct homak_sock *hsk, struct homak_rpc *krpc,
			struct homak_batch *batch);
/**
 * homak_inbox_back() - gives an RPC back whose @batch has been dealt with. @done says that
 * the RPC is over or that the application has its message. Returns true if there is more to
 * read, which then is in @batch; false if the caller has neither the RPC nor its hold any
 * more. Called between homak_enter() and homak_leave().
 */
bool homak_inbox_back(struct homak_cpu *cpu, struct homak_sock *hsk,
		      struct homak_rpc *krpc, struct homak_batch *batch,
		      bool done);
/** homak_batch_free() - frees packets that were copied; between
 *  homak_enter() and homak_leave(). */
void homak_batch_free(struct homak_sock *hsk, struct homak_batch *batch);
/** homak_inbox_forget() - drops what waits of an RPC that was aborted silently. The caller
 *  holds the RPC, and is between homak_enter() and homak_leave(). */
void homak_inbox_forget(struct homak_cpu *cpu, struct homak_sock *hsk,
			struct homak_rpc *krpc);

/* ---- one_packet.c: messages that came whole ---- */

/* number of messages that wait, about, above which no more are given */
#define HOMAK_WHOLE_MOST 1024u

/** homak_whole_take() - takes the next such message if it is its turn; NULL: it is not, or
 *  there is none. The socket is locked. */
struct sk_buff *homak_whole_take(struct homak_sock *hsk);
/** homak_whole_free() - frees such a message, which was copied. Bottom halves are off. */
HOMAK_HOT void homak_whole_free(struct homak_sock *hsk, struct sk_buff *skb);
/**
 * homak_whole_abort() - does the response to request @id wait to be received? @id 0: does
 * any response? With @silent it is dropped. Between homak_enter() and homak_leave().
 */
bool homak_whole_abort(struct homak_cpu *cpu, struct homak_sock *hsk, u64 id,
		       bool silent);
/** homak_whole_purge() - frees messages of a closing socket, some in each call. Returns true
 *  while there are more. */
bool homak_whole_purge(struct homak_sock *hsk);

/* ---- room.c: packets that wait to be copied ---- */

/** homak_room_take() - counts @skb, which waits to be copied from now on. The socket is
 *  locked; @engine_sock is the engine's. */
HOMAK_HOT void homak_room_take(struct homak_sock *hsk,
			       struct homa_sock *engine_sock,
			       const struct sk_buff *skb);
/**
 * homak_room_release() - counts that @bytes of skbs wait no longer. The socket is not locked;
 * in any context.
 */
void homak_room_release(struct homak_sock *hsk, u32 bytes);
/**
 * homak_room_open() - opens the socket for packets, if there is room; called when it gets a
 * receive region, too.
 */
void homak_room_open(struct homak_sock *hsk);

/* ---- room.c: who pays for memory ---- */

/** homak_pay() - charges the socket's memory cgroup for what tx_bytes grew by. Returns false
 *  if the cgroup has no memory left; the bytes are counted nevertheless. The socket is not
 *  locked; in any context. */
bool homak_pay(struct homak_sock *hsk);
/** homak_pay_less() - gives back a charge that is much more than what is used. */
void homak_pay_less(struct homak_sock *hsk);
/** homak_pay_end() - gives back all charges; called by sk_destruct. */
void homak_pay_end(struct sock *sk);

/* ---- wait.c ---- */

/** homak_wait_init() - is called when the module is loaded, before there are sockets. */
void homak_wait_init(void);
/** homak_waiter_pick() - chooses who gets the next shared RPC; NULL: nobody waits. The socket
 *  is locked. */
struct homak_waiter *homak_waiter_pick(struct homak_sock *hsk);
/** homak_rouse() - tells @waiter, which is in no list any more, that it has got @what, and
 *  wakes it. The socket is locked. */
HOMAK_HOT void homak_rouse(struct homak_waiter *waiter, enum homak_waited what);
/**
 * homak_wait() - sleeps until @waiter is handed something or is woken, *@timeo jiffies are
 * over or a signal comes. @krpc is the private RPC that it waits for, or NULL. Returns 0 if
 * waiter->what says what happened; -EAGAIN, -EINTR or -ERESTARTSYS if it waits no longer.
 */
HOMAK_HOT int homak_wait(struct homak_sock *hsk, struct homak_rpc *krpc,
			 struct homak_waiter *waiter, long *timeo,
			 enum homak_host_metric *how);
/** homak_busy_poll() - has the network card polled from which the socket's last packet came, if
 *  SO_BUSY_POLL wants that: until @waiter is handed something, or for as long as the option
 *  says; NULL: once. False: there was nothing to poll. Others get the CPU if they want it. */
bool homak_busy_poll(struct homak_sock *hsk, struct homak_waiter *waiter);
/** homak_wait_room() - sleeps until there is room to send; 0 or an error as above. */
int homak_wait_room(struct homak_sock *hsk, long *timeo);
/** homak_short() - is told that a call, which does not wait, has failed because objects are short:
 *  poll() says for a moment that there is no room, and wakes then. */
void homak_short(struct homak_sock *hsk);
/** homak_short_over() - sk_timer's function: that moment is over. */
void homak_short_over(struct timer_list *timer);
/** homak_wait_tick() - sleeps for a moment, when objects are short; 0 or an error as above. */
int homak_wait_tick(struct homak_sock *hsk, long *timeo);
/**
 * homak_write_space() - the socket's sk_write_space: wakes senders and pollers that wait
 * for room.
 */
void homak_write_space(struct sock *sk);

/** homak_note_napi() - notes which NAPI context brought @skb, for SO_BUSY_POLL and
 *  SO_INCOMING_NAPI_ID. What no such context brought, as over loopback, changes nothing. The
 *  socket is locked. */
static inline void homak_note_napi(struct homak_sock *hsk,
				   const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		sk_mark_napi_id(&hsk->inet.sk, skb);
#endif
}

static inline void homak_waiter_init(struct homak_waiter *waiter, u64 id)
{
	INIT_HLIST_NODE(&waiter->list);
	waiter->next = NULL;
	waiter->task = current;
	waiter->id = id;
	waiter->what = HOMAK_WAITS;
	waiter->asleep = false;
}

#endif
