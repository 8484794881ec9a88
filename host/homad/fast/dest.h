/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ways to destinations that a fast-path thread remembers, and who may ask for
 * more of them.
 */
#ifndef HOMAD_DEST_H
#define HOMAD_DEST_H

#include <sys/types.h>
#include "homa_addr.h"

struct homad_port;
struct homad_thread;

#define HOMAD_DEST_SETS 1024u /* a power of two */
#define HOMAD_DEST_WAYS 4u    /* destinations remembered whose hash is the same */
#define HOMAD_ROUND_LOOKUPS 8u

/**
 * struct homad_dest - the way to a destination, believed for a second
 * @addr: as applications name it. @way: with the encapsulation that is used.
 * @checked: when the kernel was asked, ns; 0: the entry is free.
 * @used: when somebody last sent to it, ns.
 * @user: for whom the kernel was first asked. @others_at: when another user last
 *	sent to it, ns; 0: none has.
 * @bulk_until: so long its UDP port is known to be its homad's (bulk.c).
 * @bulk_ask, @bulk_wait, @bulk_nonce: when to ask it next; how long after the last
 *	time without answer; the number that its answer must have, 0: none.
 */
struct homad_dest {
	struct homa_addr addr;
	struct homa_addr way;
	u64 checked, used;
	struct homad_port *port;
	int error;
	uid_t user;
	u64 others_at;
	u64 bulk_until, bulk_ask, bulk_wait, bulk_nonce;
};

/**
 * struct homad_dests - a thread's
 * @key: of the hash, secret.
 * @asked: users for whom the kernel was asked in round @round, @num_asked of them.
 */
struct homad_dests {
	u64 key[2];
	uid_t asked[HOMAD_ROUND_LOOKUPS];
	u32 num_asked;
	u64 round;
	struct homad_dest sets[HOMAD_DEST_SETS][HOMAD_DEST_WAYS];
};

/** homad_dests_init() - 0 or a negative errno. */
int homad_dests_init(struct homad_dests *dests);

/** homad_dests_exhausted() - after somebody had to wait: must all others, too? */
static inline bool homad_dests_exhausted(const struct homad_dests *dests)
{
	return dests->num_asked == HOMAD_ROUND_LOOKUPS;
}

/** homad_dest() - the port towards @addr for @user; may complete @addr (unspecified
 *  address, default encapsulation, bulk). 0, a negative errno of the route, or
 *  -EAGAIN: the kernel must be asked, and @user has had that in this round. */
int homad_dest(struct homad_thread *t, uid_t user, struct homa_addr *addr,
	       u32 length, struct homad_port **port);

/** homad_unspecified() - zeros, of either family. */
bool homad_unspecified(const struct homa_addr *addr);

/** homad_dest_find() - what is known of @addr, or NULL. */
struct homad_dest *homad_dest_find(struct homad_thread *t,
				   const struct homa_addr *addr);

#endif
