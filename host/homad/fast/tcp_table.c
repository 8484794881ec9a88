// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What threads and control know of the instances of TCP together: which of them has a port, who
 * listens there, and the rings by which a thread hands a segment to an instance.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include "fast.h"
#include "homa_hash.h"
#include "tcp_listener.h"
#include "tcp_steer.h"

/* ---- control ---- */

struct homad_steering *homad_steering_new(void)
{
	struct homad_steering *steering = calloc(1, sizeof(*steering));

	if (steering && getrandom(steering->key, sizeof(steering->key), 0) !=
				(ssize_t)sizeof(steering->key)) {
		free(steering);
		return NULL;
	}
	return steering;
}

int homad_steering_rings(struct homad_steering *steering, u32 num_threads)
{
	u32 bytes = HOMAD_HANDED_MOST, i, j;

	while (bytes > HOMAD_HANDED_LEAST &&
	       bytes * steering->num > HOMAD_HANDED_ALL)
		bytes /= 2;
	for (i = 0; i < steering->num; i++) {
		for (j = 0; j < num_threads; j++) {
			steering->tcp[i]->handed[j] = homad_handed_new(bytes);
			if (!steering->tcp[i]->handed[j])
				return -ENOMEM;
		}
	}
	return 0;
}

void homad_steering_set(struct homad_steering *steering, u16 port, u32 index,
			bool has)
{
	u16 was = steering->claims[port], with = (u16)(1u << index);

	__atomic_store_n(&steering->claims[port],
			 (u16)(has ? was | with : was & ~with), __ATOMIC_RELEASE);
}

/* Divides HOMAD_PARTS by the number of listeners. Each instance with a listener has one part at
 * least, which the largest goes without. */
static void divide(const u32 *listeners, u32 num, u32 all, u32 *part)
{
	u32 upto = 0, last = 0, largest = 0, i;

	for (i = 0; i < num; i++) {
		u32 end;

		upto += listeners[i];
		end = (u32)((u64)upto * HOMAD_PARTS / all);
		part[i] = end - last;
		last = end;
		largest = part[i] > part[largest] ? i : largest;
	}
	for (i = 0; i < num; i++) {
		if (listeners[i] && !part[i]) {
			part[i]++;
			part[largest]--;
		}
	}
}

/* Gives entries of instances that have too many to those that have too few. */
static void redistribute(u8 *first, u32 *part)
{
	bool stays[HOMAD_PARTS];
	u32 i, to = 0;

	for (i = 0; i < HOMAD_PARTS; i++) {
		stays[i] = first[i] && part[first[i] - 1];
		if (stays[i])
			part[first[i] - 1]--;
	}
	for (i = 0; i < HOMAD_PARTS; i++) {
		if (stays[i])
			continue;
		while (!part[to])
			to++;
		part[to]--;
		__atomic_store_n(&first[i], (u8)(to + 1), __ATOMIC_RELAXED);
	}
}

void homad_steering_spread(struct homad_steering *steering, u16 port,
			   const u32 listeners[HOMAD_MAX_THREADS])
{
	u8 *first = steering->first[port];
	u32 part[HOMAD_MAX_THREADS], all = 0, several = 0, i;

	for (i = 0; i < steering->num; i++) {
		all += listeners[i];
		several += !!listeners[i];
	}
	if (several > 1) {
		divide(listeners, steering->num, all, part);
		redistribute(first, part);
		return;
	}
	for (i = 0; first[0] && i < HOMAD_PARTS; i++)
		__atomic_store_n(&first[HOMAD_PARTS - 1 - i], 0,
				 __ATOMIC_RELAXED);
}

void homad_steering_listen(struct homad_steering *steering,
			   struct homad_tcp_listener *listener)
{
	struct homad_tcp_listener **head = &steering->listeners[listener->l.port];

	listener->next_here = *head;
	__atomic_store_n(head, listener, __ATOMIC_RELEASE);
}

void homad_steering_unlisten(struct homad_steering *steering,
			     const struct homad_tcp_listener *listener)
{
	struct homad_tcp_listener **at = &steering->listeners[listener->l.port];

	for (; *at; at = &(*at)->next_here) {
		if (*at != listener)
			continue;
		__atomic_store_n(at, listener->next_here, __ATOMIC_RELEASE);
		return;
	}
}

/* ---- on a fast-path thread ---- */

bool homad_steering_has(const struct homad_steering *steering, u16 port, u32 index)
{
	u32 bits = __atomic_load_n(&steering->claims[port], __ATOMIC_ACQUIRE);

	return bits ? bits >> index & 1 : !index;
}

/* How closely the listener's address is @local: 3 if it is the same, 2 if the listener is at all
 * IPv4 addresses, 1 at all, 0 if it takes no connections to @local. Those with most take them. */
static u32 closeness(const struct tas_listener *l, const u8 local[16])
{
	static const u8 any[16], any_v4[16] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(local, any_v4, 12);

	if (!memcmp(l->local, local, sizeof(l->local)))
		return 3;
	if (!memcmp(l->local, any, sizeof(any)))
		return !(v4 && l->v6_only);
	return v4 && !memcmp(l->local, any_v4, sizeof(any_v4)) ? 2 : 0;
}

u32 homad_steering_hash(const struct homad_steering *steering,
			const struct tas_pair *pair)
{
	struct homa_siphash s =
		homa_siphash_begin(steering->key[0], steering->key[1]);

	homa_siphash_word(&s, homa_get_be64(pair->remote));
	homa_siphash_word(&s, homa_get_be64(pair->remote + 8));
	homa_siphash_word(&s, (u64)pair->remote_port << 16 | pair->local_port);
	return (u32)homa_siphash_end(&s);
}

u32 homad_steering_choose(const struct homad_steering *steering, u16 port,
			  u32 bits, u32 hash)
{
	u32 first = __atomic_load_n(&steering->first[port][hash % HOMAD_PARTS],
				    __ATOMIC_RELAXED);
	u32 skip;

	if (first && bits >> (first - 1) & 1)
		return first - 1;
	skip = hash % (u32)__builtin_popcount(bits);
	while (skip--)
		bits &= bits - 1;
	return (u32)__builtin_ctz(bits);
}

/** struct place - the listeners that take the connections to an address */
struct place {
	/* Their closeness; 0: there are none. */
	u32 closeness;
	/* How many they are. */
	u32 num;
	/* A bit for each instance that has one. */
	u32 instances;
};

/* Finds the place of @pair's local end. */
static struct place place_of(const struct homad_steering *steering,
			     const struct tas_pair *pair)
{
	const struct homad_tcp_listener *l =
		__atomic_load_n(&steering->listeners[pair->local_port],
				__ATOMIC_ACQUIRE);
	struct place place = { 0 };

	for (; l; l = __atomic_load_n(&l->next_here, __ATOMIC_ACQUIRE)) {
		u32 close = HOMA_READ_ONCE(l->ended) ?
				    0 :
				    closeness(&l->l, pair->local);

		if (!close || close < place.closeness)
			continue;
		if (close > place.closeness)
			place = (struct place){ .closeness = close };
		place.num++;
		place.instances |= 1u << l->tcp->index;
	}
	return place;
}

bool homad_steering_listens(const struct homad_steering *steering,
			    const struct tas_pair *pair)
{
	return place_of(steering, pair).num;
}

u32 homad_steering_listening(const struct homad_steering *steering,
			     const struct tas_pair *pair)
{
	return place_of(steering, pair).instances;
}

/* Returns the listener that gets the connection, whose SYN was sent on this host; or NULL. */
static const struct homad_tcp_listener *
listener_for(const struct homad_steering *steering, const struct tas_pair *pair)
{
	const struct place place = place_of(steering, pair);
	const struct homad_tcp_listener *l, *last = NULL;
	u32 skip = place.num > 1 ?
			   homad_steering_hash(steering, pair) % place.num :
			   0;

	if (!place.num)
		return NULL;
	l = __atomic_load_n(&steering->listeners[pair->local_port],
			    __ATOMIC_ACQUIRE);
	for (; l; l = __atomic_load_n(&l->next_here, __ATOMIC_ACQUIRE)) {
		if (HOMA_READ_ONCE(l->ended) ||
		    closeness(&l->l, pair->local) != place.closeness)
			continue;
		last = l;
		if (!skip--)
			break;
	}
	/* It is the last one if some have ended meanwhile. */
	return last;
}

bool homad_steering_room(const struct homad_thread *t)
{
	u32 i;

	for (i = 0; i < t->steering->num; i++)
		if (!homad_handed_room(t->steering->tcp[i]->handed[t->index]))
			return false;
	return true;
}

void homad_tcp_hand(struct homad_thread *t, u32 index,
		    const struct homad_handing *with, const struct nic_rx *pkt)
{
	struct homad_handed *h = t->steering->tcp[index]->handed[t->index];

	if (likely(homad_handed_put(h, with, pkt)))
		t->counters.tcp_handed++;
	else
		t->counters.tcp_handed_lost++;
}

/* Returns the instance that gets a segment to @pair's local port. It sets @with->asked to 0 if that
 * one has to ask the others, too. */
static u32 owner_of(const struct homad_steering *steering,
		    const struct tas_pair *pair, bool opens,
		    struct homad_handing *with)
{
	const struct homad_tcp_listener *l =
		opens ? listener_for(steering, pair) : NULL;
	u32 bits;

	if (l)
		return l->tcp->index;
	bits = __atomic_load_n(&steering->claims[pair->local_port],
			       __ATOMIC_ACQUIRE);
	if (bits & (bits - 1))
		with->asked = 0;
	return bits ? (u32)__builtin_ctz(bits) : 0;
}

void homad_tcp_steer_local(struct homad_thread *t, const struct nic_rx *pkt,
			   const struct tas_pair *pair,
			   const struct homad_stream *source)
{
	struct homad_handing with = {
		.port = t->d->local->index,
		.asked = HOMAD_HANDED_FINAL,
		.from = (u16)t->tcp->index,
	};
	u8 flags = ((const u8 *)pkt->data)[HOMAD_TCP_FLAGS_AT];
	u32 index;

	if (likely(source && source->peer))
		index = source->peer - 1u;
	else
		index = owner_of(t->steering, pair,
				 (flags & (TAS_SYN | TAS_ACK)) == TAS_SYN, &with);
	/* Also what is for another instance of this thread goes through the ring, as this one is at
	 * work. */
	homad_tcp_hand(t, index, &with, pkt);
}
