/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Streams of bytes over Homa messages (docs/protocol.md, "Streams over Homa"): what the
 * files of this folder share. Four kinds of object:
 *
 *	carrier	    a Homa socket of the kernel's own, whose RPCs carry the messages. A
 *		    listener and all connections that it accepted have one together, a
 *		    client's connection has one for itself.
 *	connection  one end of a stream. It outlives its socket until all that was sent is
 *		    answered.
 *	ring	    bytes that were received and not read yet.
 *	stream	    the socket that a program has.
 *
 * All of it is process context. Packets for a carrier queue at its Homa socket as for any
 * other; a work item per carrier takes whole messages from there, one at a time.
 *
 * References: a stream holds its connection and its carrier; a connection holds its carrier;
 * the carrier's table holds connections until they are taken out (homak_conn_kill()).
 * What calls upward - from a carrier to its connections - is a function pointer.
 *
 * Locks: lock_sock() of a stream keeps its readers and writers apart, and is never taken by
 * the work item, so a program that stops in the middle of a copy stops itself only.
 * homak_conn.lock protects what both sides use. Nothing is called with it held.
 *
 *	lock order: lock_sock() > homak_carrier.lock, homak_conn.lock (never nested)
 */
#ifndef HOMA_KERNEL_STREAM_H
#define HOMA_KERNEL_STREAM_H

#include <linux/refcount.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "homa_net.h"
#include "homa_stream_wire.h"

/* The most requests that a connection may have without an answer when it sends bytes. */
#define HOMAK_STREAM_OUT 64u
/* The most parts of a ring that may have come with a gap before them. */
#define HOMAK_RING_SPANS 64u

/* ---- ring.c ---- */

/* struct homak_span - a part of a stream. Guarded by: homak_conn.lock. */
struct homak_span {
	/* The offset of its first byte. */
	u64 from;
	/* The offset behind its last byte. */
	u64 to;
};

/*
 * struct homak_ring - received bytes of a stream from @read on. Guarded by: homak_conn.lock, but
 * for @pages: the work item fills a place for bytes from @next on, and the reader, with
 * lock_sock(), empties those before @next.
 * @payer: the Homa socket that is charged for the pages.
 * @pages: the places for pages, one more than the window has pages; a place without a page is
 *	NULL. It is NULL itself until the first byte comes.
 * @spans: the parts of the stream that have come with a gap before them, in order.
 * @window: how many bytes from @read on the peer may send, a multiple of PAGE_SIZE.
 * @num_pages: the number of entries of @pages.
 * @num_spans: the number of entries of @spans in use, HOMAK_RING_SPANS at most.
 * @read: the offset in the stream up to which the program has read, in bytes. The reader
 *	writes it, locked.
 * @next: the offset up to which all bytes have come. The work item writes it, locked.
 */
struct homak_ring {
	struct homak_sock *payer;
	struct page **pages;
	struct homak_span *spans;
	u32 window;
	u32 num_pages;
	u32 num_spans;
	u64 read;
	u64 next;
};

/** homak_ring_start() - makes a ring for @window bytes, which @payer pays for. */
void homak_ring_start(struct homak_ring *ring, struct homak_sock *payer,
		      u32 window);
/** homak_ring_end() - frees all memory; where the stream is the ring still knows. */
void homak_ring_end(struct homak_ring *ring);
/** homak_ring_pages() - provides memory for the bytes [@from, @to), which lie in the window; 0
 *  or -ENOMEM. Only the work item calls it. */
int homak_ring_pages(struct homak_ring *ring, u64 from, u64 to);
/** homak_ring_write() - copies bytes of @skb to offset @to; there is memory for them. */
int homak_ring_write(struct homak_ring *ring, u64 to, struct sk_buff *skb,
		     u32 at, u32 n);
/** homak_ring_note() - says that the bytes [@from, @to) are there; locked. -ENOSPC: there are
 *  too many gaps. */
int homak_ring_note(struct homak_ring *ring, u64 from, u64 to);
/** homak_ring_copy() - copies up to @n bytes from offset @from on to the program; returns how
 *  many. */
size_t homak_ring_copy(const struct homak_ring *ring, u64 from, size_t n,
		       struct iov_iter *to);
/** homak_ring_free() - frees memory of what lies before offset @upto; the reader calls it
 *  before it sets @read to that. */
void homak_ring_free(struct homak_ring *ring, u64 upto);

/* ---- carrier.c ---- */

struct homak_carried;
struct homak_carrier;

/*
 * struct homak_carrier - a Homa socket that carries messages of streams. Guarded by: @lock what
 * follows it; what is before that is constant once homak_carrier_new() has set it.
 * @ref: the number of references; a work item that is queued has one.
 * @sock: the Homa socket, as the kernel knows it.
 * @hsk: the Homa socket, as this module knows it.
 * @memcg: the memory cgroup of the program that made the carrier; it pays for connections.
 * @work: the work item that takes messages from the Homa socket.
 * @end: the work item that ends the carrier when the last reference is gone.
 * @arrived: the function that is called for each message that has come.
 * @conns: the connections, by their keys; each entry is a reference.
 * @next_key: the key with which xa_alloc_cyclic() begins to look for a free one. So a key that
 *	was used comes back only after all others.
 * @lock: the lock of the fields that follow.
 * @listener: the socket that listens; NULL if none does.
 * @pending: the connections that were not accepted yet, each with a reference.
 * @num_pending: the number of connections in @pending.
 * @backlog: the most connections that there may be in @pending.
 * @rcu: delays the freeing of the memory until no packet looks at the carrier any more.
 */
struct homak_carrier {
	refcount_t ref;
	struct socket *sock;
	struct homak_sock *hsk;
	struct mem_cgroup *memcg;
	struct work_struct work;
	struct work_struct end;
	void (*arrived)(struct homak_carrier *carrier, struct homak_carried *m);
	struct xarray conns;
	u32 next_key;
	spinlock_t lock;
	struct sock *listener;
	struct list_head pending;
	u32 num_pending;
	u32 backlog;
	struct rcu_head rcu;
};

/** homak_carrier_new() - makes a carrier for the stream socket @sk, with one reference; or an
 *  ERR_PTR. */
struct homak_carrier *
homak_carrier_new(struct sock *sk, void (*arrived)(struct homak_carrier *carrier,
						   struct homak_carried *m));
static inline void homak_carrier_get(struct homak_carrier *carrier)
{
	refcount_inc(&carrier->ref);
}
void homak_carrier_put(struct homak_carrier *carrier);
/** homak_carrier_serve() - lets it receive, into so many pages of 64 KiB, as the program has set
 *  its socket @sk until now; 0 or an error, -EOPNOTSUPP if a filter is attached to @sk, which
 *  would see no packet. */
int homak_carrier_serve(struct homak_carrier *carrier, struct sock *sk,
			u32 pages);
/** homak_carrier_delay() - has @work done after @delay jiffies; false: it was queued before, and
 *  that has changed. */
bool homak_carrier_delay(struct delayed_work *work, unsigned long delay);
int homak_carriers_init(void);
void homak_carriers_exit(void);

/* ---- carry_in.c: messages that came ---- */

/*
 * struct homak_carried - a message that a carrier received. Written by: homak_carry_take(), for
 * the work item that called it.
 * @info: the message's kind, length, sender and cookie. A request of ours that failed has no
 *	bytes.
 * @skbs: the packets of the message; the control block of each says where its bytes are.
 * @one: true if a single packet is the whole message, so that its control block is a struct
 *	homak_whole_cb.
 */
struct homak_carried {
	struct homa_msg_info info;
	struct sk_buff *skbs;
	bool one;
};

/** homak_carry_take() - takes the next message; false: there is none. */
bool homak_carry_take(struct homak_carrier *carrier, struct homak_carried *m);
/** homak_carry_free() - frees its packets, and gives back its place in the receive region. */
void homak_carry_free(struct homak_carrier *carrier, struct homak_carried *m);
/** homak_carry_bytes() - copies @n bytes at offset @at of the message to @to; -EINVAL: it is
 *  shorter. */
int homak_carry_bytes(const struct homak_carried *m, u32 at, void *to, u32 n);
/** homak_carry_to_ring() - copies the message's bytes from @at on to offset @to of the ring. */
int homak_carry_to_ring(const struct homak_carried *m, u32 at,
			struct homak_ring *ring, u64 to);

/* ---- carry_out.c: messages to send ---- */

/*
 * struct homak_ask - a request to send. Written by: the thread that sends it.
 * @peer: the address of the receiver.
 * @port: the Homa port of the receiver.
 * @cookie: a value that comes back with the answer, see homak_cookie().
 * @hdr: the header with which the message begins.
 * @more: the bytes that follow the header; NULL if none do.
 * @n: the number of bytes of @more.
 * @local: where to write the address of ours that the request leaves from; or NULL.
 * @told: homak_conn.told as it was before this request, should it not be sent.
 */
struct homak_ask {
	struct homa_addr peer;
	u16 port;
	u64 cookie;
	struct homak_stream_hdr hdr;
	struct iov_iter *more;
	u32 n;
	struct in6_addr *local;
	u64 told;
};

/** homak_carry_ask() - sends a request; 0, -ENOBUFS (try again a little later) or another
 *  error. May sleep. */
int homak_carry_ask(struct homak_carrier *carrier, const struct homak_ask *ask);
/** homak_carry_answer() - answers a request. @more: @n bytes that follow the header. */
void homak_carry_answer(struct homak_carrier *carrier,
			const struct homak_carried *m,
			const struct homak_stream_hdr *hdr, const void *more,
			u32 n);
/** homak_carry_local() - writes the address of ours that a request came to; false: the request
 *  is over. */
bool homak_carry_local(struct homak_carrier *carrier,
		       const struct homak_carried *m, struct in6_addr *local);

/* ---- conn.c ---- */

enum homak_conn_state {
	HOMAK_CONN_OPENING, /* we have sent OPEN, and it is not answered yet */
	HOMAK_CONN_LIVE, /* both ends know each other, and bytes may be sent */
	HOMAK_CONN_DEAD, /* it has failed; homak_conn.error says why */
};

/*
 * struct homak_conn - one end of a stream. Guarded by: @lock what follows it; what is before that
 * is constant once the connection was opened.
 * @ref: the number of references.
 * @carrier: the carrier of its messages, on which it has a reference.
 * @key: the number by which homak_carrier.conns finds it, and which the peer's requests name.
 * @secret: a random number that the peer's requests have to name, too, so that nobody else can
 *	send for it.
 * @peer: the address of the other end.
 * @peer_port: the Homa port of the other end.
 * @local: the address of ours that the peer knows.
 * @lock: the lock of the fields that follow.
 * @sk: the socket of the program; NULL if it was not accepted yet, or is closed.
 * @state: an enum homak_conn_state.
 * @error: why a dead connection has failed, a positive errno; 0 once the program was told.
 * @closed: true if the program has closed the socket. The connection then goes as soon as all
 *	requests are answered.
 * @filling: true while the work item writes to @ring, which it does unlocked.
 * @killed: true if homak_carrier.conns does not have it any more.
 * @peer_key: the key of the connection at the other end.
 * @peer_secret: the secret of the connection at the other end.
 * @sent: the offset in the outgoing stream up to which bytes were sent.
 * @edge: the offset up to which the peer lets us send.
 * @out: the number of requests that are not answered yet.
 * @out_bytes: the number of the stream's bytes in those requests.
 * @want_room: true if a thread of the program, or poll(), waits until more can be sent, or
 *	close() until all is answered (SO_LINGER).
 * @send_later: true from when a call that does not wait has failed for want of memory or of RPCs,
 *	until an answer comes or @timer fires: poll() says that nothing can be sent meanwhile.
 * @fin_sent: true if FIN was sent, so that no more bytes will be.
 * @fin_known: true if the peer has sent FIN, so that @fin is valid.
 * @fin: the offset at which the incoming stream ends.
 * @told: the largest offset up to which the peer was told that it may send.
 * @edge_out: true if a request is under way that only tells the peer such an offset.
 * @ring: the bytes that were received and not read yet.
 * @pending: links it into homak_carrier.pending.
 * @idle: the time after which an idle peer is asked whether it is there, in s. Written under
 *	lock_sock(), read without a lock.
 * @timer: a timer with three purposes (homak_say_timer()): it ends a connection that was closed
 *	and gets no answers, asks an idle peer whether it is there (SO_KEEPALIVE), and tries again
 *	what could not be sent for want of memory: bytes, and the offset up to which the peer may
 *	send.
 * @rcu: delays the freeing of the memory until no reader under RCU looks at it any more.
 */
struct homak_conn {
	refcount_t ref;
	struct homak_carrier *carrier;
	u32 key;
	u64 secret;
	struct homa_addr peer;
	u16 peer_port;
	struct in6_addr local;
	spinlock_t lock;
	struct sock *sk;
	u8 state;
	int error;
	bool closed;
	bool filling;
	bool killed;
	u32 peer_key;
	u64 peer_secret;
	u64 sent;
	u64 edge;
	u32 out;
	u32 out_bytes;
	bool want_room;
	bool send_later;
	bool fin_sent;
	bool fin_known;
	u64 fin;
	u64 told;
	bool edge_out;
	u32 idle;
	struct homak_ring ring;
	struct list_head pending;
	struct delayed_work timer;
	struct rcu_head rcu;
};

/** homak_conn_new() - makes a connection in the carrier's table, with a reference for the
 *  caller; or an ERR_PTR. @timer: what its timer does. */
struct homak_conn *homak_conn_new(struct homak_carrier *carrier, u32 window,
				  work_func_t timer);
/** homak_conn_find() - returns the connection with @key, with a reference; NULL: there is
 *  none. */
struct homak_conn *homak_conn_find(struct homak_carrier *carrier, u32 key);
void homak_conn_put(struct homak_conn *conn);
/** homak_conn_kill() - takes the connection out of the table. */
void homak_conn_kill(struct homak_conn *conn);

/** homak_conn_delay() - has the timer fire after @delay jiffies at the latest, with a reference;
 *  not if the connection was taken out or its socket is closed. */
void homak_conn_delay(struct homak_conn *conn, unsigned long delay);
/** homak_conn_expire() - as homak_conn_delay(), if the socket is closed: the timer then ends the
 *  connection, and nobody puts it off. */
void homak_conn_expire(struct homak_conn *conn, unsigned long delay);

/* Bits for homak_conn_wake(): which threads at the connection's socket are woken. */
enum {
	HOMAK_WAKE_READ = 1,  /* those that read, because bytes have come */
	HOMAK_WAKE_WRITE = 2, /* those that write, because there is room */
	HOMAK_WAKE_ALL =
		4, /* all, because the connection's state or error has changed */
};
/** homak_conn_wake() - tells the threads that wait at the connection's socket. */
void homak_conn_wake(struct homak_conn *conn, u32 what);
/** homak_conn_break() - ends the connection with @error, a positive errno. */
void homak_conn_break(struct homak_conn *conn, int error);
/** homak_conn_give_up() - does that if the connection is still being opened; false: it is not. */
bool homak_conn_give_up(struct homak_conn *conn, int error);
/** homak_conn_dead() - has it been ended? If so the caller sees its socket's error and all bytes
 *  that came before. */
static inline bool homak_conn_dead(const struct homak_conn *conn)
{
	return smp_load_acquire(&conn->state) == HOMAK_CONN_DEAD;
}
/** homak_conn_edge() - returns the edge to tell the peer now, and takes it as told; locked. */
static inline u64 homak_conn_edge(struct homak_conn *conn)
{
	conn->told = conn->ring.read + conn->ring.window;
	return conn->told;
}
/** homak_conn_at_end() - has everything come that the peer sends? Locked. */
static inline bool homak_conn_at_end(const struct homak_conn *conn)
{
	return conn->fin_known && conn->ring.next == conn->fin;
}
/** homak_conn_room() - returns how many bytes a request may have now; locked. */
u32 homak_conn_room(const struct homak_conn *conn, u32 sndbuf);

/* ---- say.c: what a connection sends ---- */

/* The time after which an idle peer is asked whether it is there, unless TCP_KEEPIDLE says
 * another, in s. */
#define HOMAK_KEEPALIVE 60
/* The time after which something is tried again that could not be sent for want of memory, in
 * jiffies. */
#define HOMAK_SAY_LATER (HZ / 50 + 1)

/* Flags of a cookie beside HOMAK_STREAM_FLAGS, which say what the request was. */
#define HOMAK_COOKIE_OPEN 4 /* it is an OPEN */
#define HOMAK_COOKIE_EDGE \
	8 /* it only tells the peer up to which offset it may send */

/* Makes the cookie of a request, by which its answer is understood: the key of the connection,
 * flags that say what the request was, and the number @n of the stream's bytes in it. */
static inline u64 homak_cookie(u32 key, u32 flags, u32 n)
{
	return (u64)key << 32 | flags << 24 | n;
}

static inline u32 homak_cookie_key(u64 cookie)
{
	return (u32)(cookie >> 32);
}

static inline u32 homak_cookie_flags(u64 cookie)
{
	return (u32)cookie >> 24;
}

static inline u32 homak_cookie_bytes(u64 cookie)
{
	return (u32)cookie & 0xffffff;
}

/** homak_say_timer() - what homak_conn.timer does. */
void homak_say_timer(struct work_struct *work);

/** homak_say_open() - asks the peer for a connection; 0 or an error. */
int homak_say_open(struct homak_conn *conn);
/** homak_say_bytes() - sends @n bytes of @from, for which there is room; 0 or an error, with
 *  nothing sent. One thread at a time calls it. */
int homak_say_bytes(struct homak_conn *conn, struct iov_iter *from, u32 n);
/** homak_say() - sends a request without payload, with @flags (FIN, RESET). */
void homak_say(struct homak_conn *conn, u16 flags);
/** homak_say_edge() - tells the peer that there is room again, if it could wait for that. If that
 *  cannot be sent now, the timer tries again. */
void homak_say_edge(struct homak_conn *conn);
/** homak_say_close() - the connection has no socket any more: frees what nobody will read, sends
 *  what has to be said and lets it end. @reset: bytes are lost. */
void homak_say_close(struct homak_conn *conn, bool reset);

/* ---- arrive.c ---- */

/** homak_stream_arrived() - homak_carrier.arrived of all carriers. */
void homak_stream_arrived(struct homak_carrier *carrier, struct homak_carried *m);

/* ---- the socket ---- */

/* The number of options whose values are kept, and the place of TCP_KEEPIDLE, in s. */
#define HOMAK_STREAM_OPTIONS 18
#define HOMAK_OPTION_IDLE 0

/*
 * struct homak_stream - a stream socket. Guarded by: lock_sock(); poll() reads @carrier and @conn
 * without it.
 * @inet: the kernel's own part of the socket, which must be first.
 * @carrier: the carrier of the messages, with a reference; NULL if the socket has no port yet.
 * @conn: the connection, with a reference; NULL if there is none, as at a listener.
 * @bound: the address that bind() named; :: stands for any.
 * @connected: true if connect() or accept() has told the program that @conn is live.
 * @options: the values of options that are numbers, in the order of stream_option.c.
 */
struct homak_stream {
	struct inet_sock inet;
	struct homak_carrier *carrier;
	struct homak_conn *conn;
	struct in6_addr bound;
	bool connected;
	int options[HOMAK_STREAM_OPTIONS];
};

/* struct homak6_stream - a stream socket of AF_INET6. Guarded by: lock_sock(). */
struct homak6_stream {
	/* The part that sockets of both families have; it must be first. */
	struct homak_stream stream;
	/* The kernel's state of an IPv6 socket; it must be last. */
	struct ipv6_pinfo inet6;
};

static inline struct homak_stream *homak_stream(const struct sock *sk)
{
	return (struct homak_stream *)sk;
}

/* The receive window of a socket whose program has not set SO_RCVBUF, in bytes. */
#define HOMAK_STREAM_WINDOW (256u << 10)

/** homak_stream_window() - returns the receive window that follows from SO_RCVBUF. */
static inline u32 homak_stream_window(const struct sock *sk)
{
	u32 window = (u32)clamp(READ_ONCE(sk->sk_rcvbuf), 0, 8 << 20) / 2;

	if (!(sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		return HOMAK_STREAM_WINDOW;
	return ALIGN(clamp(window, 32u << 10, 4u << 20), PAGE_SIZE);
}

/* setup.c */
int homak_stream_bind(struct socket *sock, homak_bind_addr *addr, int len);
int homak_stream_connect(struct socket *sock, homak_bind_addr *addr, int len,
			 int flags);
int homak_stream_getname(struct socket *sock, struct sockaddr *addr, int peer);
/* accept.c */
int homak_stream_listen(struct socket *sock, int backlog);
int homak_stream_accept_conn(struct socket *sock, struct socket *newsock,
			     int flags);
/** homak_stream_unlisten() - ends the listener, and the connections nobody accepted. */
void homak_stream_unlisten(struct homak_stream *stream);
/* move.c */
/** homak_stream_connected() - the socket has a connection that is open. */
void homak_stream_connected(struct sock *sk);
/** homak_stream_keepalive() - SO_KEEPALIVE is @on: an idle peer is asked from now on. */
void homak_stream_keepalive(struct sock *sk, int on);
int homak_stream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int homak_stream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
			 int flags);
/* stream_option.c */
/** homak_stream_options_init() - gives a new socket's options their values. */
void homak_stream_options_init(struct homak_stream *stream);
int homak_stream_setsockopt(struct socket *sock, int level, int name,
			    sockptr_t value, unsigned int len);
int homak_stream_getsockopt(struct socket *sock, int level, int name,
			    char __user *value, int __user *len);

/**
 * homak_stream_wait() - sleeps with the socket unlocked until it is told something, *@timeo
 * jiffies are over or a signal comes. @done: what is waited for; it is asked with the socket
 * unlocked. Returns 0 (look again), -EAGAIN, or as sock_intr_errno() says.
 */
int homak_stream_wait(struct sock *sk, long *timeo,
		      bool (*done)(struct sock *sk));

#endif
