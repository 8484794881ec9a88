/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP on the fast path: an instance's engines with their packets (tcp.c, tcp_rx.c, tcp_tx.c) and
 * the connections between applications of this host (tcp_local.c).
 *
 * homad has a fixed number of instances, as many as threads can serve TCP. Each has connections,
 * listeners and local ports of its own, and shares none of them. A thread runs one or more of
 * them, linked in a circle, and works on one after the other: homad_thread.tcp. When threads come
 * and go whole instances move (tcp_move.c), so a connection never does. Attachments with streams
 * belong to an instance, and are at home at the thread that runs it.
 */
#ifndef HOMAD_TCP_H
#define HOMAD_TCP_H

#include "homa_slab.h"
#include "nic.h"
#include "tas_engine.h"
#include "tcp_stream.h"
#include "thread.h"

struct homad_handed;
struct homad_streams;
struct homad_tcp_listener;
struct homa_stream_end;

/* The most local ports that homad keeps for connections. */
#define HOMAD_TCP_PORTS 60000u
/* The longest IP packet that carries TCP, in bytes. */
#define HOMAD_TCP_MTU 9216u
/* The number of buckets in which listeners that have ended are found by their port. */
#define HOMAD_LEAVING 64u
/* The byte of a TCP header that holds its flags. */
#define HOMAD_TCP_FLAGS_AT 13u
/* The most packets with which nic_tx() is called. */
#define HOMAD_TCP_BATCH 64

/* Counters of TCP that are homad's and not the engine's: what it drops and refuses. */
/* clang-format off */
#define HOMAD_TCP_COUNTERS(X)                                                          \
	X(malformed, "TCP segments whose header was wrong")                            \
	X(no_place, "TCP connections that homad reset, as bytes came for them and nobody had them") \
	X(no_device, "TCP segments to send that no device could take")                 \
	X(connects_refused,                                                            \
	  "TCP connections that applications asked for and that homad did not open: no rule, way, port or memory") \
	X(slots_refused, "times a TCP connection had come and its application had no memory for it") \
	X(local_opened, "TCP connections between two applications of this host that homad opened") \
	X(local_bytes, "bytes that went from the memory of one application of this host to another's by TCP")
/* clang-format on */

struct homad_tcp_counters {
#define X(name, text) u64 name;
	HOMAD_TCP_COUNTERS(X)
#undef X
};

/**
 * struct homad_tcp - an instance of TCP
 *
 * Written by: the thread that runs it, unless a field says otherwise. The atomic stacks are taken
 * by the slow path.
 */
struct homad_tcp {
	/* @index: its place in homad_steering.tcp. @next: the next instance of its thread. */
	u32 index;
	struct homad_tcp *next;
	/* The thread that runs it; NULL while it moves. Atomic. */
	struct homad_thread *thread;
	/* The segments that each thread hands to it (tcp_handed.h); NULL: none does. */
	struct homad_handed *handed[HOMAD_MAX_THREADS];
	/* The number of attachments with streams that belong to it. Only the slow path uses it. */
	u32 num_homes;
	/* The number of local ports that homad keeps for its connections. Only the slow path uses
	 * it. */
	u32 kept_ports;
	/* Attachments on their way with it to another thread: open ones by homad_app.member, and
	 * those that close by homad_app.closing. */
	struct homa_list moving, closing;
	/* Attachments that are closed, except for streams whose bytes are still being sent; by
	 * homad_app.closing. */
	struct homa_list lingering;
	/* @engine runs connections with other hosts, @local those between applications of this
	 * host. A packet from a device is never given to @local. */
	struct tas_engine engine, local;
	/* Memory for struct homad_stream. */
	struct homa_slab conns;
	/* Memory for struct tas_ended, of which there are at most as many as connections. */
	struct homa_slab ended;
	/* @num_ports local ports for connections that applications open. @next_port is the index
	 * of the one that is tried next. */
	u16 ports[HOMAD_TCP_PORTS];
	u32 num_ports, next_port;
	/* True while a request for more ports waits for the slow path; atomic. */
	bool asked_ports;
	/* Time when the slow path last had no port, in ns; 0 if it had some. */
	u64 no_ports_at;
	/* Attachments with events that were added in this round. */
	struct homa_list touched;
	/* Streams that are reset when what their applications wrote last had its turn to be sent,
	 * and the engine keeps one more reset; by homad_stream.pending. */
	struct homa_list resetting;
	/* The fast path counts; other threads read. */
	struct homad_tcp_counters counters;
	/* The limits that hold streams, by homad_waiting.node. */
	struct homa_list held;
	/* Time when they are looked at again, in ns. */
	u64 held_at;
	/* Time when slots are asked for again for connections that wait for one, in ns. */
	u64 retry_at;
	/* For each port, the number of connections that came to a listener there and still
	 * need its segments. Those in TIME_WAIT do not count. */
	u32 coming[65536];
	/* Listeners that have ended while connections of their ports need segments, by port. */
	struct homa_list leaving[HOMAD_LEAVING];
	/* Stacks for the slow path, atomic. @deaf: listeners that have ended. @gone: those of them
	 * whose ports are not needed any more. */
	struct homad_tcp_listener *deaf, *gone;
	/* Atomic stacks, too. @wanting: attachments that want memory for more slots. @growing:
	 * attachments whose streams want larger buffers. */
	struct homad_streams *wanting;
	struct homad_streams *growing;
	/* An eventfd by which the slow path hears that these stacks are not empty. It belongs to
	 * the slow path. */
	int slow_fd;
	/* The packets that have come in this round. */
	struct nic_rx rx[HOMAD_BATCH];
	/* The packets that are to leave in this round. */
	struct nic_tx tx[HOMAD_TCP_BATCH];
	/* The address that each of @tx leaves from. */
	struct homa_addr from[HOMAD_TCP_BATCH];
	/* The TCP header of each of @tx. */
	u8 headers[HOMAD_TCP_BATCH][64];
	/* Memory in which payload is put together that lies in two pieces in its buffer. */
	u8 joined[HOMAD_TCP_BATCH][HOMAD_TCP_MTU];
};

/* Makes @tcp, which @t runs, the instance that @t works on. Who asks from another thread does so by
 * homad_streams_call(), or looks at homad_tcp.thread. */
static inline void homad_tcp_enter(struct homad_thread *t, struct homad_tcp *tcp)
{
	t->tcp = tcp;
}

/* Goes on to the next instance that @t runs; false: that is @first, with which @t began. */
static inline bool homad_tcp_another(struct homad_thread *t,
				     const struct homad_tcp *first)
{
	t->tcp = t->tcp->next;
	return unlikely(t->tcp != first);
}

/* Returns the engine that runs the connection of @stream. */
static inline struct tas_engine *
homad_engine_of(struct homad_tcp *tcp, const struct homad_stream *stream)
{
	return unlikely(stream->local) ? &tcp->local : &tcp->engine;
}

/* ---- tcp.c ---- */

/**
 * struct homad_tcp_seeds - secrets of the engines, which all instances share: a port that goes
 *	from one to another has the same cookies there, and sequence numbers that go on
 *
 * Written by: homad_tcp_seeds_draw().
 */
struct homad_tcp_seeds {
	/* For homad_tcp.engine and homad_tcp.local. */
	u64 engine[6], local[6];
};
/** homad_tcp_seeds_draw() - fill in @seeds; false: there are no random numbers. */
bool homad_tcp_seeds_draw(struct homad_tcp_seeds *seeds);
/**
 * homad_tcp_new() - make an instance; NULL: no memory, or no random numbers. @most: the most
 * connections. @mtu: bytes of an IP packet. homad_tcp_run(), homad_tcp_drop() - @t runs it from now
 * on, or runs it no more.
 */
struct homad_tcp *homad_tcp_new(const struct homad_tcp_seeds *seeds, u32 most,
				u32 mtu, u64 now);
void homad_tcp_free(struct homad_tcp *tcp);
void homad_tcp_run(struct homad_thread *t, struct homad_tcp *tcp);
void homad_tcp_drop(struct homad_thread *t, struct homad_tcp *tcp);
/** homad_tcp_refill() - give @engine memory for some more connections. */
void homad_tcp_refill(struct homad_tcp *tcp, struct tas_engine *engine);
/** homad_tcp_round() - begin a round; called before anything else of TCP in it. */
void homad_tcp_round(struct homad_thread *t);
/**
 * homad_tcp_use_ports() - take @num local ports for the current instance's connections, beside
 * those that there are; @num 0: the slow path has no more.
 */
void homad_tcp_use_ports(struct homad_thread *t, const u16 *ports, u32 num);
/**
 * homad_tcp_want_ports() - ask the slow path for more ports. False: it had none just now.
 */
bool homad_tcp_want_ports(struct homad_thread *t);
/** homad_tcp_call_slow() - tell the slow path that one of its stacks is not empty. */
void homad_tcp_call_slow(const struct homad_tcp *tcp);
/** homad_tcp_timers() - do what is due; returns when there is more to do, ns. */
u64 homad_tcp_timers(struct homad_thread *t);
/** homad_tcp_app() - returns the id of the attachment that has the connection of @pair in
 *  @engine; 0: nobody has it. For traces. */
u64 homad_tcp_app(struct tas_engine *engine, const struct tas_pair *pair);
/**
 * homad_tcp_port_towards() - return the device for packets of @pair; NULL: there is none.
 */
struct homad_port *homad_tcp_port_towards(struct homad_thread *t,
					  const struct tas_pair *pair);

/* ---- tcp_rx.c, tcp_tx.c ---- */

/** homad_tcp_take() - take the TCP packets out of @n in homad_thread.rx, and work them
 *  off; returns how many are left. */
int homad_tcp_take(struct homad_thread *t, struct homad_port *port, int n);
/** homad_tcp_part() - take the TCP packets out of @n in homad_thread.rx, and write them and their
 *  number, at most HOMAD_BATCH, to @tcp and @num. Returns how many others are left. */
int homad_tcp_part(struct homad_thread *t, int n, struct nic_rx *tcp, int *num);
/** homad_tcp_segment() - take in one TCP packet that came by @port. */
void homad_tcp_segment(struct homad_thread *t, const struct homad_port *port,
		       const struct nic_rx *pkt);
/** homad_tcp_place() - copy the bytes of a segment that @engine takes into their buffer.
 *  Returns the stream; if no attachment has the connection it is reset, and NULL is
 *  returned. */
struct homad_stream *homad_tcp_place(struct homad_thread *t,
				     struct tas_engine *engine,
				     const struct tas_copy *copy);
/** homad_tcp_icmp() - take in an ICMP error about a segment of ours that came to @port's nic. */
void homad_tcp_icmp(struct homad_thread *t, const struct homad_port *port,
		    const struct nic_error *error);
/** homad_tcp_waits() - does an instance of the thread have something to send by @port? It is the
 *  current one then. */
bool homad_tcp_waits(struct homad_thread *t, const struct homad_port *port);
/** homad_tcp_tx() - send the current instance's packets by @port, in TCP's turn, until it ends, the
 *  device is full (homad_port.tx_blocked) or it is another instance's turn; returns how many
 *  packets. */
int homad_tcp_tx(struct homad_thread *t, struct homad_port *port);

/** homad_tcp_local_segment() - take in a segment that a connection of the instance @from has sent
 *  within this host. */
void homad_tcp_local_segment(struct homad_thread *t, const struct nic_rx *pkt,
			     u32 from);

/* ---- tcp_local.c ---- */

/**
 * homad_tcp_local() - move a bounded number of segments between connections of this host;
 * returns how many.
 */
int homad_tcp_local(struct homad_thread *t);
/** homad_tcp_local_waits() - are there more segments to move? */
static inline bool homad_tcp_local_waits(const struct homad_tcp *tcp)
{
	return tas_first_out(&tcp->local) != NULL;
}
/** homad_tcp_local_reset() - note that a connection of this host was reset. If many were,
 *  their peers are told now, as the engine keeps no more than TAS_STRAYS resets. */
void homad_tcp_local_reset(struct homad_thread *t);
/** homad_tcp_local_way() - choose @pair for a connection to an address of this host, from
 *  @wanted if that is not zeros. 0, -EAGAIN: not in this round; -EOPNOTSUPP: no application
 *  listens there by homad, so the kernel has to carry it; -EADDRNOTAVAIL: @wanted is not
 *  ours. */
int homad_tcp_local_way(struct homad_thread *t, const struct homad_streams *s,
			const struct homa_stream_end *wanted,
			struct tas_pair *pair);

/* ---- tcp_move.c: what the slow path asks for by homad_call() ---- */

/** homad_tcp_give() - @t runs the instance @arg no more: it is nobody's then, with its attachments.
 *  Returns 0, or -ENOENT if @t does not run it. homad_tcp_take_over() - @t runs it from now on. */
int homad_tcp_give(struct homad_thread *t, void *arg);
int homad_tcp_take_over(struct homad_thread *t, void *arg);

/* ---- what the slow path asks for by homad_call() ---- */

/**
 * homad_egress_share() - give TCP the share of the thread's links that
 * homad_config.tcp_share says now.
 */
int homad_egress_share(struct homad_thread *t, void *arg);

#endif
