// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that have a port together. Some share its requests: workers of one owner that answer
 * each other's clients. A request goes to the one that has the fewest requests that are not
 * answered, so that an idle worker gets the next one and one that stands still gets no more
 * than its share; of several with as few it is the one whose turn it is. Others take different
 * requests, by their places (homa_place.c).
 *
 * They are a ring without a head, the *mates*. One of them, the first, is in the table of
 * sockets, as a socket with a port of its own is, so a request to such a port costs nothing
 * more. The first also says whose turn it is. When it leaves, the next one takes its place.
 *
 * Which socket has a request is decided with the request's first packet, and stays so:
 * the RPC is found by its id afterwards. So when a mate closes, its requests end as they
 * do when a server closes that was alone, and what is remembered of requests that ran
 * (homa_once.c) holds for all mates, since it belongs to the link and not to a socket.
 */
#include "homa_impl.h"

static struct homa_sock *homa_mate_after(const struct homa_sock *sock)
{
	return homa_list_entry(sock->mates.next, struct homa_sock, mates);
}

/* Number of requests of @sock that were not answered, also of those that are still
 * coming. */
static u64 homa_mate_load(const struct homa_sock *sock)
{
	return HOMA_READ_ONCE(sock->backlog) +
	       (sock->taken ? HOMA_READ_ONCE(*sock->taken) : 0);
}

/* Does @sock take requests of IPv4 peers (@v4) or of others? See homa_sock_serves(). */
static bool homa_mate_serves(const struct homa_sock *sock, bool v4)
{
	return HOMA_READ_ONCE(sock->server) &&
	       (v4 || !HOMA_READ_ONCE(sock->only_v4));
}

void homa_mates_begin(struct homa_sock *sock)
{
	homa_list_init(&sock->mates);
	sock->turn = sock;
	HOMA_WRITE_ONCE(sock->shared, true);
}

void homa_mates_alone(struct homa_sock *sock)
{
	bool needed = sock->taken || homa_place_narrow(&sock->place);

	homa_place_ask(sock);
	if (sock->shared && homa_list_linked(&sock->mates))
		return;
	if (needed && !sock->shared)
		homa_mates_begin(sock);
	else if (!needed)
		HOMA_WRITE_ONCE(sock->shared, false);
	if (needed && !sock->taken && !sock->place.device)
		HOMA_WRITE_LAST(sock->at_local, sock->at_local + 1);
}

/* May two sockets have places that overlap? */
static bool homa_mates_overlap(const struct homa_engine *engine,
			       const struct homa_sock *mate,
			       const struct homa_sock *sock, const u32 *taken,
			       const struct homa_place *place)
{
	/* The engine's own account belongs to no user, so its sockets share no port. */
	if (mate->owner != sock->owner || sock->owner == &engine->own)
		return false;
	if (mate->taken && taken)
		return true;
	return mate->place.shares && place->shares &&
	       !homa_place_same(&mate->place, place);
}

int homa_mates_admit(const struct homa_engine *engine,
		     const struct homa_sock *first, const struct homa_sock *sock,
		     const u32 *taken, const struct homa_place *place)
{
	const struct homa_sock *mate = first;
	u32 n = 0;

	do {
		if (mate != sock) {
			if (homa_place_overlap(&mate->place, place) &&
			    !homa_mates_overlap(engine, mate, sock, taken, place))
				return -HOMA_EADDRINUSE;
			n++;
		}
		if (!mate->shared)
			break;
		mate = homa_mate_after(mate);
	} while (mate != first);
	return n < HOMA_MATES ? 0 : -HOMA_ENOBUFS;
}

void homa_mates_join(struct homa_sock *first, struct homa_sock *sock)
{
	if (!first->shared)
		homa_mates_begin(first);
	homa_place_ask(first);
	homa_mates_begin(sock);
	homa_list_add_tail(&first->mates, &sock->mates);
}

bool homa_mates_leave(struct homa_sock *first, struct homa_sock *sock)
{
	struct homa_sock *next = homa_mate_after(sock);

	HOMA_WRITE_ONCE(sock->shared, false);
	homa_place_ask(sock);
	if (next == sock)
		return false;
	if (first->turn == sock)
		first->turn = next;
	homa_list_del(&sock->mates);
	if (first == sock) {
		next->turn = sock->turn;
		homa_list_add_head(&sock->hash, &next->hash);
		homa_list_del(&sock->hash);
	}
	homa_mates_alone(next);
	return true;
}

struct homa_sock *homa_mates_pick(const struct homa_engine *engine,
				  const struct homa_sock *first,
				  const struct homa_coming *coming)
{
	struct homa_sock *sock = first->turn, *best = NULL;
	u32 rank, highest = 0;
	u64 load, least = 0;

	do {
		rank = homa_mate_serves(sock, coming->v4) ?
			       homa_place_rank(&sock->place, coming) :
			       0;
		if (rank && rank >= highest) {
			load = homa_mate_load(sock);
			if (rank > highest || load < least) {
				best = sock;
				highest = rank;
				least = load;
			}
			/* Without places there is no better one. */
			if (!least && !engine->num_placed)
				break;
		}
		sock = homa_mate_after(sock);
	} while (sock != first->turn);
	return best;
}

void homa_mates_next(struct homa_sock *first, const struct homa_sock *sock)
{
	first->turn = homa_mate_after(sock);
}
