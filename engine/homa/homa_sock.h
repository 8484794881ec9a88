/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sockets: ports, and what belongs to them.
 */
#ifndef HOMA_SOCK_H
#define HOMA_SOCK_H

#include "homa_heap.h"
#include "homa_list.h"
#include "homa_pool.h"

/* Sockets are found in so many lists, unless limits say otherwise. */
#define HOMA_SOCK_BUCKETS 256u
/* So many sockets may share a port. */
#define HOMA_MATES 64u

/*
 * struct homa_sock - a port
 */
struct homa_sock {
	/* Links the socket into its bucket; sock table lock. */
	struct homa_list hash;
	/* One for being open, one for each RPC and each caller that looks at it. */
	struct homa_ref refs;
	struct homa_lock lock;
	/* Its port. Sock table lock; read anywhere. */
	u16 port;
	/* It takes requests. The host writes it; read anywhere. */
	bool server;
	/* It takes requests of IPv4 peers only. The host writes it; read anywhere. */
	bool only_v4;
	/* homa_sock_close() has begun. Sock lock; read anywhere. */
	bool closing;
	/* Whole messages are given away at once, see homa_sock_give(); read anywhere. */
	bool give;
	/* No DATA is taken now, see homa_sock_refuse(); read anywhere. */
	bool refuse;
	/* It shares its port with others, or would; see homa_mates.c. Sock table lock; read
	 * anywhere. */
	bool shared;
	/* Its RPCs that are not dead; sock lock. */
	struct homa_list rpcs;
	/* Messages that wait for pages, fewest bytes left first; sock lock. */
	struct homa_heap starving;
	/* Incomplete messages that have pages, in the order in which they are looked at;
	 * sock lock. */
	struct homa_list holders;
	/* So many of @holders are of several pages; sock lock. */
	u32 num_long;
	/* So many pages were promised to these and not yet taken; sock lock. */
	u32 owed;
	/* @holders are not looked at before this time, ns; sock lock. */
	u64 reclaim_at;
	/* Where messages go; NULL: the host places them. Sock lock; read anywhere. */
	struct homa_pool *pool;
	/* Who pays for its RPCs; constant while it has some. */
	struct homa_owner *owner;
	/* So many requests were not taken by its application; counter. */
	u64 backlog;
	/* So many records of gaps are in messages that are coming in; counter. */
	u64 gaps;
	/* If it is @shared: the ring of those that share its port, which has no head. Only one
	 * of them, the first, is in the table by its @hash. Sock table lock. */
	struct homa_list mates;
	/* If it is @shared: so many requests its application has and has not answered. The
	 * host's memory, and the host writes it; read anywhere. */
	const u32 *taken;
	/* If it is the first: the one that is looked at first for the next request. Sock table
	 * lock. */
	struct homa_sock *turn;
};

static inline u32 homa_sock_buckets(const struct homa_limits *limits)
{
	return limits->sock_buckets ? limits->sock_buckets : HOMA_SOCK_BUCKETS;
}

/* The socket of a port, with a reference for the caller; NULL: there is none. */
struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port);
/* Lets a reference go. */
void homa_sock_put(struct homa_sock *sock);
/* Nobody finds @sock any more, and its port is free; false: so it was before. */
bool homa_sock_unhash(struct homa_engine *engine, struct homa_sock *sock);
/* Which of those that share the port of @sock gets a request of @peer, with a reference for
 * the caller, who has one to @sock and loses it; NULL: none takes it. */
struct homa_sock *homa_sock_choose(struct homa_engine *engine,
				   struct homa_sock *sock, u16 port,
				   const struct homa_addr *peer);

/* Does it take requests of @peer? */
bool homa_sock_serves(const struct homa_sock *sock, const struct homa_addr *peer);

/* ---- homa_mates.c; the sock table is locked ---- */

/* @sock is ready to share its port, and alone there. */
void homa_mates_begin(struct homa_sock *sock, const u32 *taken);
/* May @sock share the port of @first? 0, -EADDRINUSE, or -ENOBUFS: so many do already. */
int homa_mates_admit(const struct homa_engine *engine,
		     const struct homa_sock *first, const struct homa_sock *sock);
/* @sock, which is in no table, shares the port of @first from now on. */
void homa_mates_join(struct homa_sock *first, struct homa_sock *sock,
		     const u32 *taken);
/* @sock shares its port no longer. true: others have the port, and @sock is in no table. */
bool homa_mates_leave(struct homa_sock *first, struct homa_sock *sock);
/* Who gets a request, @v4: of an IPv4 peer; NULL: nobody takes it. */
struct homa_sock *homa_mates_pick(struct homa_sock *first, bool v4);

#endif
