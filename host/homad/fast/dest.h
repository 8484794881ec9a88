/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ways to destinations that a fast-path thread remembers, and who may ask for
 * more of them.
 */
#ifndef HOMAD_DEST_H
#define HOMAD_DEST_H

#include <sys/types.h>
#include "homa_addr.h"
#include "job.h"

struct homad_port;

#define HOMAD_DEST_SETS 1024u /* a power of two */
#define HOMAD_DEST_WAYS 4u /* destinations remembered whose hash is the same */
#define HOMAD_BELIEVE_NS 1000000000u /* how long the kernel's word counts */
/* a thread has so many questions under way at most */
#define HOMAD_QUESTIONS 8u

/**
 * struct homad_dest - the way to a destination, believed for a second, and while the
 *	kernel is asked anew for another one
 * @addr: as applications name it. @way: with the encapsulation that is used.
 * @checked: when the kernel was asked, ns; 0: the entry is free.
 * @used: when somebody last sent to it, ns.
 * @user: for whom the kernel was first asked. @others_at: when another user last
 *	sent to it, ns; 0: none has.
 * @bulk_until: so long its UDP port is known to be its homad's (bulk.c).
 * @bulk_ask: when the peer is asked next whether its homad has the UDP port, ns.
 * @bulk_wait: how long homad waits after a question that got no answer, ns; it doubles.
 * @bulk_nonce: the number that the answer to the question under way must repeat; 0: no
 *	question is under way.
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
 * @questions: those to the kernel, one for each user.
 */
struct homad_dests {
	u64 key[2];
	struct homad_question questions[HOMAD_QUESTIONS];
	struct homad_dest sets[HOMAD_DEST_SETS][HOMAD_DEST_WAYS];
};

/** homad_dests_init() - 0 or a negative errno. */
int homad_dests_init(struct homad_dests *dests);

/** homad_dest() - the port towards @addr for @user; may complete @addr (unspecified
 *  address, default encapsulation, bulk). 0, a negative errno of the route, or
 *  -EAGAIN: the kernel is being asked, or will be when @user's question is answered. */
int homad_dest(struct homad_thread *t, uid_t user, struct homa_addr *addr,
	       u32 length, struct homad_port **port);

/** homad_dest_learn() - what the kernel says to @question, for @question->user; its errno
 *  for senders. */
int homad_dest_learn(struct homad_thread *t,
		     const struct homad_question *question);

/** homad_ask_route() - have @question answered: its job runs when it is. */
void homad_ask_route(struct homad *d, struct homad_question *question);

/** homad_ring_routes() - the thread for routes has something to do. */
void homad_ring_routes(struct homad *d);

/** homad_ask_way() - a nic_way_asker; @arg: struct homad_port. */
int homad_ask_way(void *arg, const struct nic_way *way);

/** homad_unspecified() - zeros, of either family. */
bool homad_unspecified(const struct homa_addr *addr);

#endif
