/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A transport for tests of what surrounds transports: a message takes its
 * ideal time, or waits for those before it at a receiver that takes in only so
 * many bytes in a time. No packets.
 */
#ifndef SIM_TEST_PIPE_H
#define SIM_TEST_PIPE_H

#include <errno.h>

#include "sim_transport.h"

/**
 * @percent: of a link's rate, at which a receiver takes messages in, 0: no
 *	limit. @lose: every so many-th message is never delivered, @fail: or
 *	given up after 1 us. @room: messages that may be under way, 0: all; one
 *	more fails while it is sent.
 */
struct pipe_settings {
	u32 percent, lose, fail, room;
};

static struct pipe_settings pipe_settings;

struct pipe_msg {
	struct sim_event ev;
	struct sim_msg *msg;
	bool fails;
	struct pipe_msg *next;
};

struct pipe {
	struct pipe_msg *all;
	u64 busy_until[1024];
	u64 count;
	u32 under_way;
};

static void pipe_event(struct sim *sim, struct sim_event *ev)
{
	struct pipe_msg *pm = homa_container_of(ev, struct pipe_msg, ev);
	struct sim_msg *msg = pm->msg;
	struct pipe *pipe = sim->proto;

	pm->msg = NULL;
	pipe->under_way--;
	if (pm->fails)
		sim_failed(sim, msg, ETIMEDOUT);
	else
		sim_delivered(sim, msg, NULL);
	sim_msg_put(sim, msg);
}

static void pipe_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	u64 at = sim->now + sim_ideal_ps(sim, msg->src, msg->dst, msg->length);
	struct pipe *pipe = sim->proto;
	struct pipe_msg *pm;

	(void)host;
	pipe->count++;
	if (pipe_settings.lose && pipe->count % pipe_settings.lose == 0)
		return;
	if (pipe_settings.room && pipe->under_way == pipe_settings.room) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	pipe->under_way++;
	pm = calloc(1, sizeof(*pm));
	pm->next = pipe->all;
	pipe->all = pm;
	pm->ev.fn = pipe_event;
	pm->msg = msg;
	sim_msg_get(msg);
	if (pipe_settings.percent) {
		u64 *busy = &pipe->busy_until[msg->dst];
		u64 ps = (u64)msg->length * sim->hosts[0].up->ps_per_byte *
			 100 / pipe_settings.percent;

		*busy = (*busy > sim->now ? *busy : sim->now) + ps;
		if (*busy > at)
			at = *busy;
	}
	pm->fails = pipe_settings.fail && pipe->count % pipe_settings.fail == 0;
	sim_event_add(sim->agenda, &pm->ev, pm->fails ? sim->now + SIM_US : at);
}

static int pipe_start(struct sim *sim)
{
	sim->proto = calloc(1, sizeof(struct pipe));
	return sim->proto ? 0 : -ENOMEM;
}

static void pipe_stop(struct sim *sim)
{
	struct pipe *pipe = sim->proto;

	while (pipe && pipe->all) {
		struct pipe_msg *pm = pipe->all;

		pipe->all = pm->next;
		free(pm);
	}
	free(pipe);
}

static const struct sim_transport sim_pipe = {
	.name = "pipe",
	.title = "Pipe",
	.text = "no protocol",
	.start = pipe_start,
	.stop = pipe_stop,
	.send = pipe_send,
	.packetless = true,
};

#endif
