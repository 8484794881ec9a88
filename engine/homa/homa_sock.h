/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sockets: ports, and what belongs to them.
 */
#ifndef HOMA_SOCK_H
#define HOMA_SOCK_H

#include "homa_heap.h"
#include "homa_list.h"
#include "homa_pool.h"

/* Number of hash buckets for ports if homa_limits.sock_buckets is 0. */
#define HOMA_SOCK_BUCKETS 256u
/* Most sockets that may share a port. */
#define HOMA_MATES 64u

/*
 * struct homa_sock - a port
 *
 * Guarded by: what each field says. "Counter" means that any context adds to it, atomically.
 */
struct homa_sock {
	/* Links the socket into its hash bucket; sock table lock. */
	struct homa_list hash;
	/* References: one while the socket is open, one of each RPC and of each caller that
	 * looks at it. */
	struct homa_ref refs;
	/* The sock lock. */
	struct homa_lock lock;
	/* Port of the socket, in host order. Sock table lock; read without it. */
	u16 port;
	/* True if the socket takes requests. Written by the host; read without a lock. */
	bool server;
	/* True if it takes requests of IPv4 peers only. Written by the host; read without a
	 * lock. */
	bool only_v4;
	/* True once homa_sock_close() has begun. Sock lock; read without it. */
	bool closing;
	/* Which messages of one packet are handed to the application at once, an enum
	 * homa_whole; read without a lock. */
	u8 deliver_whole;
	/* True while DATA for the socket is dropped, see homa_sock_refuse(); read without a
	 * lock. */
	bool refuse;
	/* True if the port does not say that a request is for the socket: others have the
	 * port, too, or may come (homa_mates.c), or it takes only some of the requests
	 * (homa_place.c). Sock table lock; read without it. */
	bool shared;
	/* Odd while the socket has its port alone and takes all that comes to place.local and
	 * nothing else; even: only the ring of mates says what it takes. Each change makes it
	 * higher, so who reads it twice knows whether place.local was the same between. Sock
	 * table lock; read without it. */
	u32 at_local;
	/* List of the socket's RPCs that are not dead; sock lock. */
	struct homa_list rpcs;
	/* Heap of incoming messages that wait for pages, the one with the fewest bytes
	 * missing first; sock lock. */
	struct homa_heap starving;
	/* List of incomplete messages that have pages, in the order in which they are
	 * checked for pages to take back; sock lock. */
	struct homa_list holders;
	/* Number of messages in @holders that take several pages; sock lock. */
	u32 num_long;
	/* Number of pages that were promised to messages in @holders and not yet taken;
	 * sock lock. */
	u32 owed;
	/* Time before which @holders is not searched again, in ns; sock lock. */
	u64 reclaim_at;
	/* Pages that incoming messages are placed in; NULL: the host places messages
	 * itself. Sock lock; read without it. */
	struct homa_pool *pool;
	/* Account that the socket's RPCs are charged to; constant while it has some. */
	struct homa_owner *owner;
	/* Number of requests that the application has not taken; counter. */
	u64 backlog;
	/* Number of records of gaps that its incoming messages use; counter. */
	u64 gaps;
	/* Ring without a head of the sockets that share the port. Only one of them, the
	 * first, is in the table by its @hash. Valid if @shared; sock table lock. */
	struct homa_list mates;
	/* Number of requests that its application has taken and not answered, in memory
	 * that the host owns and writes and that is read without a lock. NULL: the socket
	 * does not share its requests with others. Sock table lock. */
	const u32 *taken;
	/* Which requests to the port it takes. Sock table lock; @local is read without it, see
	 * @at_local. */
	struct homa_place place;
	/* In the first socket of the ring: socket that is considered first for the next
	 * request. Sock table lock. */
	struct homa_sock *turn;
};

static inline u32 homa_sock_buckets(const struct homa_limits *limits)
{
	return limits->sock_buckets ? limits->sock_buckets : HOMA_SOCK_BUCKETS;
}

/* Returns the socket of a port with a reference for the caller; NULL: there is none. */
HOMA_HOT struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port);
/* Releases a reference. */
void homa_sock_put(struct homa_sock *sock);
/* Removes @sock from the table and frees its port; false: it was not in the table. */
bool homa_sock_unhash(struct homa_engine *engine, struct homa_sock *sock);
/* Chooses among the sockets that have the port of @sock the one that gets a request of
 * @peer, and returns it with a reference for the caller instead of the caller's reference to
 * @sock; NULL: none takes it. */
struct homa_sock *homa_sock_choose(struct homa_ctx *ctx, struct homa_sock *sock,
				   u16 port, const struct homa_addr *peer);

/* Is @sock the only one that a packet to its port can be for which came to @local? */
static inline bool homa_sock_sole(const struct homa_sock *sock,
				  const struct homa_from *local)
{
	u32 before;

	if (!HOMA_READ_ONCE(sock->shared))
		return true;
	before = HOMA_READ_FIRST(sock->at_local);
	return (before & 1) &&
	       HOMA_READ_FIRST(sock->place.local.word[0]) == local->word[0] &&
	       HOMA_READ_FIRST(sock->place.local.word[1]) == local->word[1] &&
	       HOMA_READ_ONCE(sock->at_local) == before;
}

/* Does @sock take requests of @peer? */
bool homa_sock_serves(const struct homa_sock *sock, const struct homa_addr *peer);

/* ---- homa_place.c; the sock table is locked ---- */

/*
 * struct homa_coming - what is known of a request when its socket is looked for
 * @local: address of ours that it came to.
 * @device: number of the device that it came on; 0: the host gives none.
 * @v4: true if it is of an IPv4 peer.
 *
 * Written by: who looks for the socket, before homa_mates_pick().
 */
struct homa_coming {
	const struct homa_from *local;
	u32 device;
	bool v4;
};

/* Does a place leave out requests by their address or link, so that the port does not say
 * that a request is for the socket? */
bool homa_place_narrow(const struct homa_place *place);
/* Has the ring of mates say what @sock takes, until homa_mates_alone(). */
void homa_place_ask(struct homa_sock *sock);
/* Gives @sock another place; NULL: it takes all requests. */
void homa_place_set(struct homa_engine *engine, struct homa_sock *sock,
		    const struct homa_place *place);
/* Can there be a request that both @a and @b take? */
bool homa_place_overlap(const struct homa_place *a, const struct homa_place *b);
bool homa_place_same(const struct homa_place *a, const struct homa_place *b);
/* Returns how much @place says about a request; 0: it does not take it. */
u32 homa_place_rank(const struct homa_place *place,
		    const struct homa_coming *coming);

/* ---- homa_mates.c; the sock table is locked ---- */

/* Makes @sock the only member of a ring that others may join. */
void homa_mates_begin(struct homa_sock *sock);
/* May @sock have the port of @first at @place, and share requests if @taken is not NULL?
 * Returns 0, -EADDRINUSE, or -ENOBUFS if HOMA_MATES other sockets have the port already. */
int homa_mates_admit(const struct homa_engine *engine,
		     const struct homa_sock *first, const struct homa_sock *sock,
		     const u32 *taken, const struct homa_place *place);
/* Adds @sock, which is in no table, to those that have the port of @first. */
void homa_mates_join(struct homa_sock *first, struct homa_sock *sock);
/* Sets homa_sock.shared and at_local of a socket that may be alone at its port as they have
 * to be. */
void homa_mates_alone(struct homa_sock *sock);
/* Removes @sock from those that share its port. True: others keep the port, and @sock is in
 * no table any more. */
bool homa_mates_leave(struct homa_sock *first, struct homa_sock *sock);
/* Returns the socket that gets the next request, if it is @coming; NULL: none takes it. */
struct homa_sock *homa_mates_pick(const struct homa_engine *engine,
				  const struct homa_sock *first,
				  const struct homa_coming *coming);
/* @sock got a request: the turn is the next one's. */
void homa_mates_next(struct homa_sock *first, const struct homa_sock *sock);

#endif
