// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A segment goes to the instance that has its local port. Most ports are one instance's. Those that
 * nobody has are the first instance's, which answers with resets.
 *
 * A port may be several instances': programs listen at different addresses, or at the same one with
 * SO_REUSEPORT, or a listener has ended while its connections go on and another program listens.
 * Then the instances are asked one after the other whether they know the connection. If none does,
 * it is for one of those that listen: at its address alone, or if nobody does, at all addresses. A
 * hash of the ends says who is asked first, more often one with more listeners. It spreads new
 * connections over listeners that share a port, and as long as the same ones have the port, it
 * finds them at once. Each instance is asked once, so a stranger's segment costs a bounded number
 * of copies.
 *
 * A listener may end while a SYN for it lies in a ring. Then those that listen still are looked for
 * anew, without the instances where that has happened to this SYN. So they are if the instance that
 * knows the connection has it in TIME_WAIT, the SYN is newer, and nobody listens there any more.
 *
 * No thread waits for another one, and no lock is taken. An instance may move while its segments
 * are under way: they lie in its rings.
 */
#include "fast.h"
#include "tcp_listener.h"
#include "tcp_steer.h"

/* Most segments that are taken out of one ring in a round. */
#define TURN (HOMAD_RX_BATCHES * HOMAD_BATCH)
/* Bytes of a TCP header that hold both ports. */
#define TCP_PORTS 4u

static bool runs(const struct homad_thread *t, u32 index)
{
	return t->tcps >> index & 1;
}

static struct homad_port *port_of(const struct homad_thread *t,
				  const struct homad_handing *with)
{
	return &t->d->ports[with->port];
}

/* The current instance takes a segment in. */
static void take_in(struct homad_thread *t, const struct homad_handing *with,
		    const struct nic_rx *pkt)
{
	if (likely(with->outside)) {
		homad_tcp_segment(t, port_of(t, with), pkt);
		return;
	}
	homad_tcp_local_segment(t, pkt, with->from);
	/* Many segments in a row must not need more resets than the engine keeps. */
	homad_tcp_local_reset(t);
}

/* Returns the engine of an instance that has connections of such segments. */
static struct tas_engine *engine_for(struct homad_tcp *tcp,
				     const struct homad_handing *with)
{
	return with->outside ? &tcp->engine : &tcp->local;
}

/* Hands the segment to an instance of another thread. */
static void hand(struct homad_thread *t, u32 index, struct homad_handing with,
		 const struct nic_rx *pkt, u32 asked)
{
	with.asked = asked;
	homad_tcp_hand(t, index, &with, pkt);
}

/* The segment is this instance's, whatever it makes of it. */
static void give(struct homad_thread *t, u32 index,
		 const struct homad_handing *with, const struct nic_rx *pkt)
{
	if (!runs(t, index)) {
		hand(t, index, *with, pkt, HOMAD_HANDED_FINAL);
		return;
	}
	homad_tcp_enter(t, t->steering->tcp[index]);
	take_in(t, with, pkt);
}

/* Returns the ends of the segment, whose header has both ports. */
static struct tas_pair ends_of(const struct nic_rx *pkt)
{
	struct tas_pair pair = {
		.remote_port = homa_get_be16(pkt->data),
		.local_port = homa_get_be16((const u8 *)pkt->data + 2),
	};

	memcpy(pair.local, pkt->dst.ip, sizeof(pair.local));
	memcpy(pair.remote, pkt->src.ip, sizeof(pair.remote));
	return pair;
}

static bool opens(const struct nic_rx *pkt)
{
	return pkt->len > HOMAD_TCP_FLAGS_AT &&
	       (((const u8 *)pkt->data)[HOMAD_TCP_FLAGS_AT] &
		(TAS_SYN | TAS_ACK | TAS_RST)) == TAS_SYN;
}

/* The current instance, where nobody listens for this SYN, takes it in as a segment of a connection
 * that it knows. Returns whether that one was in TIME_WAIT and has ended by it. */
static bool ends_by(struct homad_thread *t, const struct homad_handing *with,
		    const struct nic_rx *pkt, const struct tas_pair *pair)
{
	struct tas_engine *engine = engine_for(t->tcp, with);

	engine->elsewhere = homad_steering_listens(t->steering, pair);
	take_in(t, with, pkt);
	engine->elsewhere = false;
	return !tas_knows(engine, pair);
}

/* Gives this SYN, which came to the current instance, to another one that listens for it. Nobody
 * listens here: a listener has ended while the SYN lay in a ring, or is gone for longer and has
 * left a connection in TIME_WAIT. False: the instance has to take the SYN in. */
static bool give_on(struct homad_thread *t, struct homad_handing with,
		    const struct nic_rx *pkt)
{
	const struct homad_steering *steering = t->steering;
	struct tas_engine *engine = engine_for(t->tcp, &with);
	const struct tas_pair pair = ends_of(pkt);
	u32 left;

	if (likely(tas_listens(engine, &pair)))
		return false;
	if (tas_knows(engine, &pair) && !ends_by(t, &with, pkt, &pair))
		return true;
	with.missed |= (u16)(1u << t->tcp->index);
	left = homad_steering_listening(steering, &pair) & ~(u32)with.missed;
	if (!left)
		return false;
	give(t,
	     homad_steering_choose(steering, pair.local_port, left,
				   homad_steering_hash(steering, &pair)),
	     &with, pkt);
	return true;
}

/* The segment is the current instance's, or that of one which listens for it. */
static void settle(struct homad_thread *t, const struct homad_handing *with,
		   const struct nic_rx *pkt)
{
	if (likely(!opens(pkt)) || !give_on(t, *with, pkt))
		take_in(t, with, pkt);
}

/* Asks one after the other the instances that have the port; see above. */
HOMA_RARE static void ask(struct homad_thread *t,
			  const struct homad_handing *with,
			  const struct nic_rx *pkt)
{
	const struct homad_steering *steering = t->steering;
	const struct tas_pair pair = ends_of(pkt);
	u32 claims = __atomic_load_n(&steering->claims[pair.local_port],
				     __ATOMIC_ACQUIRE);
	u32 left, index, hash, asked = with->asked;

	hash = homad_steering_hash(steering, &pair);
	while ((left = claims & ~asked)) {
		index = homad_steering_choose(steering, pair.local_port, left,
					      hash);
		if (!runs(t, index)) {
			hand(t, index, *with, pkt, asked);
			return;
		}
		if (tas_knows(engine_for(steering->tcp[index], with), &pair)) {
			homad_tcp_enter(t, steering->tcp[index]);
			settle(t, with, pkt);
			return;
		}
		asked |= 1u << index;
	}
	left = homad_steering_listening(steering, &pair);
	left = left ? left : claims;
	give(t,
	     left ? homad_steering_choose(steering, pair.local_port, left, hash) :
		    0,
	     with, pkt);
}

static void steer(struct homad_thread *t, const struct homad_port *port,
		  const struct nic_rx *pkt)
{
	struct homad_handing with = { .port = port->index, .outside = true };
	u32 claims = 0;

	if (likely(nic_rx_here(pkt) >= TCP_PORTS))
		claims = __atomic_load_n(&t->steering->claims[homa_get_be16(
						 (const u8 *)pkt->data + 2)],
					 __ATOMIC_ACQUIRE);
	if (likely(!(claims & (claims - 1))))
		give(t, claims ? (u32)__builtin_ctz(claims) : 0, &with, pkt);
	else
		ask(t, &with, pkt);
}

/* Takes the connections that have come to listeners of all instances of the thread. */
static void accept_all(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;

	do
		homad_listeners_accept(t);
	while (homad_tcp_another(t, first));
}

int homad_tcp_steer(struct homad_thread *t, struct homad_port *port, int n)
{
	struct nic_rx taken[HOMAD_BATCH];
	int i, num, homa = homad_tcp_part(t, n, taken, &num);

	for (i = 0; i < num; i++) {
		if (i + 1 < num)
			homa_prefetch(taken[i + 1].data);
		steer(t, port, &taken[i]);
	}
	if (num)
		nic_rx_release(port->nic, taken, num);
	if (num && t->tcp)
		accept_all(t);
	return homa;
}

/* Takes in as many segments of one ring to the thread's current instance as of one port. */
static int take(struct homad_thread *t, struct homad_handed *h)
{
	struct homad_tcp *tcp = t->tcp;
	const struct nic_rx *pkt;
	struct homad_handing with;
	int n = 0;

	while (n < TURN && (pkt = homad_handed_first(h, &with))) {
		if (unlikely(with.asked != HOMAD_HANDED_FINAL))
			ask(t, &with, pkt);
		else
			settle(t, &with, pkt);
		homad_tcp_enter(t, tcp);
		homad_handed_drop(h);
		n++;
	}
	/* An answer for which a timer is due may be among those that are left. */
	if (n == TURN && homad_handed_first(h, &with))
		t->rx_left = true;
	return n;
}

int homad_tcp_handed(struct homad_thread *t)
{
	const struct homad_tcp *first = t->tcp;
	int n = 0;
	u32 i;

	if (likely(!t->steering))
		return 0;
	do {
		for (i = 0; i < t->d->num_threads; i++)
			if (t->tcp->handed[i])
				n += take(t, t->tcp->handed[i]);
	} while (homad_tcp_another(t, first));
	if (n)
		accept_all(t);
	return n;
}
