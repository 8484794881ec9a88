/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Segments that come to a homad of several threads, and programs that listen there. */
#ifndef TEST_STEERING_BED_H
#define TEST_STEERING_BED_H

#include "several_bed.h"

#define SYNS 20u

static inline void released(struct nic *nic, const struct nic_rx *pkts, int n)
{
	(void)nic;
	(void)pkts;
	(void)n;
}

static inline struct several *spread_new(void)
{
	struct several *s = several_new();

	s->ops.rx_release = released;
	homad_scale_to(&s->bed->d, THREADS);
	/* Before its first round an engine takes nothing in. */
	rounds(s);
	return s;
}

static inline struct homad_tcp *instance(const struct several *s, u32 index)
{
	return s->bed->d.steering->tcp[index];
}

/* A segment comes to the queue of @thread, which has handed it to its instance's ring. */
static inline void is_handed(struct several *s, u32 thread, u8 flags, u16 from,
			     u32 to)
{
	struct homad_thread *t = s->bed->d.threads[thread];
	struct tas_segment seg = { .sport = from, .dport = PORT, .flags = flags };
	struct homa_addr me = number(to);
	u8 bytes[HEADER];

	homad_now(t);
	t->rx[0] = segment(bytes, from);
	assert_int_equal(tas_encode(&seg, bytes), HEADER);
	memcpy(t->rx[0].dst.ip, me.ip, sizeof(me.ip));
	assert_int_equal(homad_tcp_steer(t, t->ports[0], 1), 0);
}

/* A segment to the local address @to comes to the queue of @thread, and all have a round. */
static inline void comes(struct several *s, u32 thread, u8 flags, u16 from, u32 to)
{
	is_handed(s, thread, flags, from, to);
	/* It may be asked about at each instance, and then given to one. */
	for (u32 i = 0; i < 2 * THREADS; i++)
		rounds(s);
}

/* A program of the instance listens at @at; 0: at all addresses. */
static inline void listens(struct several *s, u32 index,
			   struct homad_tcp_listener *listener, u32 at,
			   bool reuse)
{
	struct tas_listener *l = &listener->l;
	struct homa_addr me = number(at);

	memset(listener, 0, sizeof(*listener));
	if (at)
		memcpy(l->local, me.ip, sizeof(me.ip));
	l->port = PORT;
	l->backlog = 2 * SYNS;
	l->rx_shift = HOMA_STREAM_MIN_SHIFT;
	l->rx_max = 1u << HOMA_STREAM_MIN_SHIFT;
	l->reuse = reuse;
	listener->tcp = instance(s, index);
	assert_int_equal(tas_listen(&instance(s, index)->engine, l), 0);
	homad_steering_set(s->bed->d.steering, PORT, index, true);
	homad_steering_listen(s->bed->d.steering, listener);
}

/* It listens no more. */
static inline void ends(struct several *s, struct homad_tcp_listener *listener)
{
	homad_steering_unlisten(s->bed->d.steering, listener);
	tas_unlisten(&listener->tcp->engine, &listener->l);
}

static inline u64 resets(const struct several *s, u32 index)
{
	return instance(s, index)->engine.metrics.resets_sent;
}

static inline u64 all_resets(const struct several *s)
{
	return resets(s, 0) + resets(s, 1) + resets(s, 2);
}

#endif
