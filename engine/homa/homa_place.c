// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Places: a socket may take only those requests to its port that come to one address of this
 * host, on one link, or from peers of one address family (struct homa_place). Then several
 * sockets have the port, and a request goes to the one whose place says most about it.
 *
 * They are the mates of homa_mates.c, so a port that one socket has for all its requests costs
 * nothing more. Also a socket that has its port alone is a ring of its own if its place leaves
 * out requests by address or link: homa_mates_pick() says that they are nobody's. Most such
 * sockets are bound to an address and no device: what comes to that address is found to be
 * theirs without a lock (homa_sock_sole()).
 */
#include "homa_impl.h"

#define HOMA_PLACE_ALL (HOMA_PLACE_V4 | HOMA_PLACE_V6)

static bool homa_place_anywhere(const struct homa_place *place)
{
	return !(place->local.word[0] | place->local.word[1]);
}

static u32 homa_place_families(const struct homa_place *place)
{
	return place->families ? place->families : HOMA_PLACE_ALL;
}

static bool homa_from_same(const struct homa_from *a, const struct homa_from *b)
{
	return !((a->word[0] ^ b->word[0]) | (a->word[1] ^ b->word[1]));
}

bool homa_place_narrow(const struct homa_place *place)
{
	return place->device || !homa_place_anywhere(place);
}

/* Does a place leave out any requests? */
static bool homa_place_less(const struct homa_place *place)
{
	return homa_place_narrow(place) || place->families;
}

void homa_place_ask(struct homa_sock *sock)
{
	if (sock->at_local & 1)
		HOMA_WRITE_ONCE(sock->at_local, sock->at_local + 1);
}

void homa_place_set(struct homa_engine *engine, struct homa_sock *sock,
		    const struct homa_place *place)
{
	static const struct homa_place all;

	if (!place)
		place = &all;
	engine->num_placed -= homa_place_less(&sock->place);
	homa_place_ask(sock);
	HOMA_WRITE_LAST(sock->place.local.word[0], place->local.word[0]);
	HOMA_WRITE_LAST(sock->place.local.word[1], place->local.word[1]);
	sock->place.device = place->device;
	sock->place.families = place->families;
	sock->place.shares = place->shares;
	engine->num_placed += homa_place_less(&sock->place);
}

bool homa_place_overlap(const struct homa_place *a, const struct homa_place *b)
{
	if (a->device && b->device && a->device != b->device)
		return false;
	if (homa_place_anywhere(a) || homa_place_anywhere(b))
		return homa_place_families(a) & homa_place_families(b);
	return homa_from_same(&a->local, &b->local);
}

bool homa_place_same(const struct homa_place *a, const struct homa_place *b)
{
	return a->device == b->device && homa_from_same(&a->local, &b->local) &&
	       homa_place_families(a) == homa_place_families(b);
}

u32 homa_place_rank(const struct homa_place *place,
		    const struct homa_coming *coming)
{
	u32 family = coming->v4 ? HOMA_PLACE_V4 : HOMA_PLACE_V6;
	u32 rank = 1;

	if (!(homa_place_families(place) & family))
		return 0;
	if (homa_place_families(place) == family)
		rank += 1;
	if (place->device) {
		if (place->device != coming->device)
			return 0;
		rank += 2;
	}
	if (!homa_place_anywhere(place)) {
		if (!homa_from_same(&place->local, coming->local))
			return 0;
		rank += 4;
	}
	return rank;
}
