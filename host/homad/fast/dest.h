/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ways to destinations that a fast-path thread remembers, and who may ask for
 * more of them.
 *
 * Written by: the fast-path thread that the destinations belong to.
 */
#ifndef HOMAD_DEST_H
#define HOMAD_DEST_H

#include <sys/types.h>
#include "homa_addr.h"
#include "job.h"

struct homad_port;

/* The number of sets in which a thread remembers destinations, by their hash; a power of
 * two. */
#define HOMAD_DEST_SETS 1024u
/* The number of destinations for which a set has room. */
#define HOMAD_DEST_WAYS 4u
/* The time for which the kernel's answer is believed, ns. */
#define HOMAD_BELIEVE_NS 1000000000u
/* The most questions to the kernel that a thread has under way. */
#define HOMAD_QUESTIONS 8u

/**
 * struct homad_dest - the way to a destination, believed for a second, and while the
 *	kernel is asked anew for another one
 * @addr: the destination as applications name it.
 * @way: the destination with the encapsulation that homad uses for it.
 * @checked: the time at which the kernel was asked, ns; 0: the entry is free.
 * @used: the time at which somebody last sent to it, ns.
 * @port: the port by which homad sends to it; NULL if @error is not 0.
 * @error: 0, or why the kernel knows no way, a negative errno.
 * @user: the user for whom the kernel was first asked.
 * @others_at: the time at which another user last sent to it, ns; 0: none has.
 * @bulk_until: the time until which its UDP port is taken for its homad's (bulk.c), ns.
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
 * struct homad_dests - the destinations that a thread remembers
 * @key: the secret key of the hash that chooses a destination's set.
 * @questions: questions to the kernel; a user has at most one of them under way.
 * @sets: the destinations; a free entry has @checked 0.
 */
struct homad_dests {
	u64 key[2];
	struct homad_question questions[HOMAD_QUESTIONS];
	struct homad_dest sets[HOMAD_DEST_SETS][HOMAD_DEST_WAYS];
};

/** homad_dests_init() - draw a key for @dests. Returns 0 or a negative errno. */
int homad_dests_init(struct homad_dests *dests);

/** homad_dest() - find the port towards @addr for a message of @length bytes of @user. It may
 *  complete @addr (unspecified address, default encapsulation, bulk). Returns 0, the route's
 *  negative errno, or -EAGAIN if the kernel is being asked, or will be when @user's question
 *  is answered. */
int homad_dest(struct homad_thread *t, uid_t user, struct homa_addr *addr,
	       u32 length, struct homad_port **port);

/** homad_dest_learn() - remember what the kernel has answered to @question, on the account of
 *  @question->user. Returns 0 or the negative errno that senders get. */
int homad_dest_learn(struct homad_thread *t,
		     const struct homad_question *question);

/** homad_ask_route() - let the thread for routes answer @question; its job runs then. */
void homad_ask_route(struct homad *d, struct homad_question *question);

/** homad_ring_routes() - wake the thread for routes, because there are questions. */
void homad_ring_routes(struct homad *d);

/** homad_ask_way() - let the thread for routes answer a question of a device queue. This is a
 *  nic_way_asker; @arg is the struct homad_port. */
int homad_ask_way(void *arg, const struct nic_way *way);

#endif
