// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Addresses to which homad had a way a moment ago. A connect() that does not wait has to know
 * before it comes back whether homad opens the connection, and homad answers in its next round. So
 * this is remembered for a while, and connections that are opened one after the other do not wait
 * for it. If routes change meanwhile, such a connection fails.
 */
#include <netinet/in.h>
#include <string.h>
#include "tcp.h"

/* The number of addresses that are remembered. */
#define PLACES 64u
/* How long, in ns. */
#define BELIEVED_NS 1000000000

/** struct way - an address to which homad has a way. Guarded by: homa_pl_tcp_lock() */
struct way {
	/* The address; an IPv4 one is in the first bytes. */
	uint8_t ip[16];
	/* AF_INET or AF_INET6; 0: there is none. */
	sa_family_t family;
	/* Until when it is believed, a time of homa_pl_now(). */
	int64_t until;
};

static struct way ways[PLACES];

static struct way way_of(const struct sockaddr *to)
{
	struct way way = { .family = to->sa_family };

	if (to->sa_family == AF_INET)
		memcpy(way.ip, &((const struct sockaddr_in *)to)->sin_addr, 4);
	else
		memcpy(way.ip, &((const struct sockaddr_in6 *)to)->sin6_addr, 16);
	return way;
}

/* The one place where an address may be. */
static struct way *place(const struct way *way)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < sizeof(way->ip); i++)
		sum = sum * 31 + way->ip[i];
	return &ways[sum % PLACES];
}

bool homa_pl_tcp_knows_way(const struct sockaddr *to)
{
	struct way way = way_of(to);
	const struct way *known = place(&way);
	bool knows;

	homa_pl_tcp_lock();
	knows = known->family == way.family &&
		!memcmp(known->ip, way.ip, sizeof(way.ip)) &&
		homa_pl_now() < known->until;
	homa_pl_tcp_unlock();
	return knows;
}

void homa_pl_tcp_note_way(const struct sockaddr *to)
{
	struct way way = way_of(to);

	way.until = homa_pl_now() + BELIEVED_NS;
	homa_pl_tcp_lock();
	*place(&way) = way;
	homa_pl_tcp_unlock();
}
