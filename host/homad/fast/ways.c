// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a device queue wants to know of the kernel: route and next hop of a destination to
 * which it is about to send, be it that somebody of this host asked for that or that a
 * stranger's packet is answered. The thread for routes asks (slow/routes.c), the answer
 * comes back as a job, and the device holds packets to that destination meanwhile, so that
 * no round waits for netlink.
 */
#include "fast.h"

/* Takes the answer. Device queues move between threads (slow/scaling.c), perhaps just
 * now. */
static int way_answered(struct homad_thread *t, void *arg)
{
	struct homad_way_question *q = arg;
	u32 home = HOMA_READ_ONCE(q->port->thread);

	if (home != t->index) {
		homad_post(q->d->threads[home], &q->job);
		return 0;
	}
	homad_now(t);
	nic_learn(q->port->nic, &q->way);
	q->open = false;
	return 0;
}

int homad_ask_way(void *arg, const struct nic_way *way)
{
	struct homad_port *port = arg;
	struct homad_way_question *q = port->ways;
	u32 i;

	if (!__atomic_load_n(&port->d->routes, __ATOMIC_ACQUIRE))
		return -1;
	for (i = 0; i < HOMAD_WAYS_ASKED && q->open; i++)
		q++;
	if (i == HOMAD_WAYS_ASKED)
		return 0;
	*q = (struct homad_way_question){
		.job = { .run = way_answered, .arg = q },
		.d = port->d,
		.port = port,
		.way = *way,
		.open = true,
	};
	port->d->threads[port->thread]->counters.ways_asked++;
	HOMAD_PUSH(&port->d->way_questions, q, next);
	homad_ring_routes(port->d);
	return 1;
}
