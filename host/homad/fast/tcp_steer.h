/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which instance of TCP gets a segment that a device has brought to a thread: the one that has the
 * local port. See tcp_steer.c.
 */
#ifndef HOMAD_TCP_STEER_H
#define HOMAD_TCP_STEER_H

#include "homad_tcp.h"
#include "tcp_handed.h"

/* The number of parts into which the connections to a port of several instances are divided, a
 * power of 2 so large that 16 instances have one each. */
#define HOMAD_PARTS 64u

/**
 * struct homad_steering - homad.steering
 *
 * Written by: control; read by: the threads. @num, @tcp and @key stay as they are while threads
 * run.
 * @claims is changed while threads read it, each entry atomically. It has an entry for each port,
 * so what applications open makes it neither longer nor slower.
 *
 * @num: the number of instances.
 * @tcp: the instances.
 * @key: a secret, for the hash that decides which instance is asked first about a port that several
 *	have.
 * @claims: for each local port, a bit for each instance that has it: it keeps the port for
 *	connections that applications open, or has a listener there, or connections that came to
 *	one.
 * @first: for each local port at which several instances have listeners, who is asked first about
 *	a connection, by a hash of its ends: the number of an instance plus 1. The more listeners an
 *	instance has, the more entries are its. 0: at most one instance has listeners.
 * @listeners: for each local port, the first of the listeners there, linked by
 *	homad_tcp_listener.next_here. A thread may read one until its round is over. They decide
 *	which instances get a new connection.
 */
struct homad_steering {
	u32 num;
	struct homad_tcp *tcp[HOMAD_MAX_THREADS];
	u64 key[2];
	u16 claims[65536];
	u8 first[65536][HOMAD_PARTS];
	struct homad_tcp_listener *listeners[65536];
};

HOMA_STATIC_ASSERT(HOMAD_MAX_THREADS <= 16, "an instance has a bit of a u16");

/* ---- tcp_table.c ---- */

/** homad_steering_new() - make it, without instances; NULL: no memory, or no random numbers. */
struct homad_steering *homad_steering_new(void);
/** homad_steering_rings() - make the rings by which @num_threads threads hand to the instances; 0
 *  or -ENOMEM. */
int homad_steering_rings(struct homad_steering *steering, u32 num_threads);
/** homad_steering_set() - @has: the instance @index has @port from now on; else it has not. */
void homad_steering_set(struct homad_steering *steering, u16 port, u32 index,
			bool has);
/** homad_steering_listen(), homad_steering_unlisten() - new connections can come to @listener from
 *  now on, or not any more. */
void homad_steering_listen(struct homad_steering *steering,
			   struct homad_tcp_listener *listener);
void homad_steering_unlisten(struct homad_steering *steering,
			     const struct homad_tcp_listener *listener);
/** homad_steering_spread() - @listeners: how many listeners each instance has at @port that take
 *  connections. New ones are spread so that each listener gets as many as the others. */
void homad_steering_spread(struct homad_steering *steering, u16 port,
			   const u32 listeners[HOMAD_MAX_THREADS]);
/** homad_steering_hash() - a keyed hash of both ends of @pair. homad_steering_choose() - the number
 *  of the instance among @bits, not 0, that is asked first about a connection to @port with that
 *  @hash. */
u32 homad_steering_hash(const struct homad_steering *steering,
			const struct tas_pair *pair);
u32 homad_steering_choose(const struct homad_steering *steering, u16 port,
			  u32 bits, u32 hash);
/** homad_steering_has() - has the instance @index the port? What nobody has is the first one's. */
bool homad_steering_has(const struct homad_steering *steering, u16 port,
			u32 index);
/** homad_steering_listens() - are there listeners for connections to @pair's local end?
 *  homad_steering_listening() - a bit for each instance that has one; those at this address alone
 *  go before those at all addresses. A thread asks. */
bool homad_steering_listens(const struct homad_steering *steering,
			    const struct tas_pair *pair);
u32 homad_steering_listening(const struct homad_steering *steering,
			     const struct tas_pair *pair);
/** homad_steering_room() - has each ring that @t puts segments into room for the longest? */
bool homad_steering_room(const struct homad_thread *t);
/** homad_tcp_steer_local() - give a segment that the stream @source of this host has sent, or NULL,
 *  to the instance that has the other end. @pkt: the segment, whose bytes may go away then; @pair:
 *  its ends, as seen from there. */
void homad_tcp_steer_local(struct homad_thread *t, const struct nic_rx *pkt,
			   const struct tas_pair *pair,
			   const struct homad_stream *source);
/** homad_tcp_hand() - put a segment into the ring to the instance @index. */
void homad_tcp_hand(struct homad_thread *t, u32 index,
		    const struct homad_handing *with, const struct nic_rx *pkt);

/* ---- tcp_steer.c ---- */

/**
 * homad_tcp_steer() - take the TCP packets out of @n in homad_thread.rx, and give each to its
 * instance, of this or of another thread. Returns how many packets are left. A segment for which
 * the other thread's ring has no room is dropped, as if it were lost on the cable.
 */
int homad_tcp_steer(struct homad_thread *t, struct homad_port *port, int n);
/** homad_tcp_handed() - take in segments that other threads have handed to instances of this one, a
 *  bounded number of each; returns how many. */
int homad_tcp_handed(struct homad_thread *t);

#endif
