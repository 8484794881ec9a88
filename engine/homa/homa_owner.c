// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who may have how many RPCs. Room for them is one for all (max_rpcs), and neither a
 * user nor a socket nor a peer may take so much that the others have none. A fixed
 * share each would be too little for one alone and too much when all come at once.
 * So thresholds are dynamic (Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998): an owner, or a peer, may have as many as there is room left for, a
 * socket's application may leave half as many untaken, and so may all applications of an
 * owner together. One greedy owner gets half of the room and leaves half, two get a third
 * each and leave a third; one whose applications take nothing gets a third.
 *
 * The threshold of a peer is for those who ask much of one owner. It must not hold for
 * owners with few RPCs: else a greedy owner on either of two hosts would use up what the
 * one may ask of the other, and leave nothing to the others there. Few are an eighth of the
 * room that is left; so many, to each owner one after the other, never fill it.
 *
 * What is refused is one packet of one RPC; its client asks again. Two CPUs that
 * look at once may both go on, so a threshold is passed by a few.
 */
#include "homa_owner.h"

/* The peers of an owner have no threshold while the owner has less than 1 part in this many
 * of the room that is left. */
#define HOMA_FEW 8u

void homa_sock_charge(struct homa_sock *sock, struct homa_owner *owner)
{
	sock->owner = owner;
}

bool homa_owner_full(const struct homa_engine *engine,
		     const struct homa_sock *sock)
{
	const struct homa_owner *owner = sock->owner;

	return owner != &engine->own &&
	       HOMA_READ_ONCE(owner->rpcs) > homa_rpcs_left(engine);
}

u32 homa_peer_share(const struct homa_engine *engine, const struct homa_sock *sock)
{
	u32 left = homa_rpcs_left(engine),
	    most = engine->params.max_server_rpcs_per_peer;

	if (HOMA_READ_ONCE(sock->owner->rpcs) < left / HOMA_FEW)
		return most;
	return homa_min_u32(most, left + 1);
}

u16 homa_owner_admit(const struct homa_engine *engine,
		     const struct homa_sock *sock)
{
	const struct homa_owner *owner = sock->owner;
	u32 left = homa_rpcs_left(engine), half = left / 2;
	u64 backlog = HOMA_READ_ONCE(sock->backlog);

	if (!left)
		return HOMA_M_drop_no_rpc;
	if (backlog >= engine->params.max_backlog || backlog > half)
		return HOMA_M_drop_backlog;
	if (owner == &engine->own)
		return 0;
	/* The backlog of all sockets counts, so that an owner who opens many sockets and
	 * takes nothing leaves as much as one who opens one. */
	backlog = HOMA_READ_ONCE(owner->backlog);
	if (backlog >= engine->params.max_owner_backlog || backlog > half)
		return HOMA_M_drop_owner_backlog;
	if (HOMA_READ_ONCE(owner->rpcs) > left)
		return HOMA_M_drop_owner_limit;
	return 0;
}
