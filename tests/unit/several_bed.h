/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A homad of several threads, each with a queue of the device, and as many instances of TCP, whose
 * rounds a test runs by hand. At first the first thread is the only active one.
 */
#ifndef TEST_SEVERAL_BED_H
#define TEST_SEVERAL_BED_H

#include "nic_backend.h"
#include "streams_bed.h"
#include "tcp_homes.h"
#include "tcp_steer.h"

#define THREADS 3u
#define HEADER 20u

/* A homad with a device of as many queues as threads. The first one's is that of the bed. */
struct several {
	struct bed *bed;
	struct nic *nic[THREADS];
	struct nic_ops ops;
};

/* Address 7 is one of the device's, beside its first. */
static inline bool has_address(const struct nic *nic, const struct homa_addr *addr)
{
	struct homa_addr seven = number(7);

	(void)nic;
	return !memcmp(addr->ip, seven.ip, sizeof(seven.ip));
}

static inline struct several *several_new(void)
{
	struct several *s = calloc(1, sizeof(*s));
	struct homad *d;
	u32 i;

	s->bed = bed_new();
	d = &s->bed->d;
	d->config.num_tcp_rules = 1;
	s->nic[0] = s->bed->nic;
	for (i = 1; i < THREADS; i++) {
		struct homa_addr me = number(100 + i);

		assert_int_equal(homad_thread_make(d, i), 0);
		assert_int_equal(nic_memory_attach(s->bed->wire, &me, &s->nic[i]),
				 0);
		/* The first thread is the only active one. */
		assert_int_equal(homad_thread_serve(s->bed->t,
						    add_port(d, s->nic[i])),
				 0);
	}
	d->num_threads = THREADS;
	s->ops = *s->nic[0]->ops;
	s->ops.has_address = has_address;
	for (i = 0; i < THREADS; i++)
		s->nic[i]->ops = &s->ops;
	d->steering = homad_steering_new();
	d->steering->num = THREADS;
	for (i = 0; i < THREADS; i++) {
		d->steering->tcp[i] = tcp_new(i);
		homad_tcp_run(s->bed->t, d->steering->tcp[i]);
		d->threads[i]->steering = d->steering;
	}
	assert_int_equal(homad_steering_rings(d->steering, THREADS), 0);
	return s;
}

static inline void several_free(struct several *s)
{
	u32 i;

	for (i = 1; i < THREADS; i++) {
		homad_thread_free(s->bed->d.threads[i]);
		nic_close(s->nic[i]);
	}
	/* Threads free the instances that they run. */
	free(s->bed->d.steering);
	bed_free(s->bed);
	free(s);
}

/* Each thread has a round. */
static inline void rounds(struct several *s)
{
	u32 i;

	for (i = 0; i < THREADS; i++)
		homad_round(s->bed->d.threads[i]);
}

static inline void leave(struct several *s, struct side *side)
{
	homad_session_close(side->app.thread, &side->app);
	while (side->app.phase != HOMAD_APP_DEAD)
		rounds(s);
	s->bed->d.dead = NULL;
	detach_closed(side);
}

/* Writes a segment from port @from that belongs to no connection, so that it is answered by a
 * reset. */
static inline struct nic_rx segment(u8 bytes[HEADER], u16 from)
{
	struct tas_segment seg = { .sport = from, .dport = PORT, .flags = TAS_ACK };
	struct homa_addr me = number(2), peer = number(9);
	struct nic_rx pkt = { .data = bytes, .len = HEADER, .proto = NIC_TCP };

	assert_int_equal(tas_encode(&seg, bytes), HEADER);
	memcpy(pkt.dst.ip, me.ip, sizeof(me.ip));
	memcpy(pkt.src.ip, peer.ip, sizeof(peer.ip));
	return pkt;
}

#endif
