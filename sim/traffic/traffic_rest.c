// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Beginning in the middle. A network that starts empty takes as long as its
 * longest messages are under way, often hundreds of milliseconds, until as many
 * of them are there as ever will be, and until then it has less to carry than
 * it was asked to. A run that begins with what another one left unfinished (the
 * oracle's, which costs next to nothing) is spared that. Messages begin with
 * what is missing of them as their length; so nothing short waits among them.
 */
#include <errno.h>
#include <stdlib.h>

#include "traffic_impl.h"

static void rest_fires(struct sim *sim, struct sim_event *ev)
{
	const struct sim_rest *rest = sim->traffic->rest;
	size_t i;

	(void)ev;
	for (i = 0; i < rest->count && !sim->stop; i++)
		sim_traffic_message(sim, rest->list[i].src, rest->list[i].dst,
				    rest->list[i].length, 0, false);
}

void sim_traffic_begin_with(struct sim *sim, const struct sim_rest *rest)
{
	struct sim_traffic *t = sim->traffic;

	t->rest = rest;
	t->rest_ev.fn = rest_fires;
	sim_event_add(sim->agenda, &t->rest_ev, 0);
}

int sim_traffic_rest(const struct sim *sim, struct sim_rest *rest)
{
	const struct sim_traffic *t = sim->traffic;
	size_t i;

	*rest = (struct sim_rest){ .list = malloc((t->num_open + 1) * sizeof(*rest->list)) };
	if (!rest->list)
		return -ENOMEM;
	for (i = 0; i < t->used; i++) {
		const struct sim_msg *msg = t->open[i].msg;

		if (!sim_traffic_is_open(&t->open[i]) || msg->arrived >= msg->length)
			continue;
		rest->list[rest->count++] =
			(struct sim_recorded){ .src = msg->src,
					       .dst = msg->dst,
					       .length = msg->length - msg->arrived };
	}
	return 0;
}
