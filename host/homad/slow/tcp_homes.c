// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Programs and instances of TCP. A program begins at the instance that has the fewest, and stays
 * there; so do all with whom it shares connections or listeners. Instance and thread belong
 * together by their numbers, as long as enough threads are active.
 */
#include <errno.h>
#include <string.h>
#include "fast.h"
#include "homad_tcp.h"
#include "log.h"
#include "moving.h"
#include "streams.h"
#include "tcp_homes.h"
#include "tcp_steer.h"

struct homad_tcp *homad_tcp_choose(const struct homad *d)
{
	const struct homad_steering *steering = d->steering;
	struct homad_tcp *best = steering->tcp[0];
	u32 i;

	for (i = 1; i < steering->num; i++)
		if (steering->tcp[i]->num_homes < best->num_homes)
			best = steering->tcp[i];
	return best;
}

static void move(struct homad_tcp *tcp, struct homad_thread *to)
{
	struct homad_thread *from = tcp->thread;

	if (from == to || homad_call(from, homad_tcp_give, tcp))
		return;
	homad_call(to, homad_tcp_take_over, tcp);
}

void homad_tcps_spread(struct homad *d, u32 active)
{
	u32 i;

	for (i = 0; d->steering && i < d->steering->num; i++)
		move(d->steering->tcp[i],
		     d->threads[i % homa_min_u32(active, d->steering->num)]);
}

int homad_bring_home(struct homad *d, struct homad_app *app,
		     const struct homad_tcp *tcp)
{
	u32 from = app->thread->index, to = tcp->thread->index;

	return from == to ? 0 : homad_move_app(d, app, from, to);
}

int homad_streams_call(const struct homad_streams *s,
		       int (*fn)(struct homad_thread *, void *), void *arg)
{
	return homad_call(s->tcp->thread, fn, arg);
}

int homad_tcp_join(struct homad_app *app, struct homad_tcp *tcp)
{
	struct homad_tcp *before = app->streams->tcp;
	int rc;

	if (before == tcp)
		return 0;
	rc = homad_call(before->thread, homad_streams_leave, app->streams);
	if (rc)
		return rc;
	app->streams->tcp = tcp;
	before->num_homes--;
	tcp->num_homes++;
	homad_call(tcp->thread, homad_streams_arrive, app->streams);
	return 0;
}
