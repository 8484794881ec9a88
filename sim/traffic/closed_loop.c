// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Clients that wait for answers: each has so many RPCs under way, and sends
 * the next one when one of them is over. Whom it asks and for how much it draws
 * from the stream of its own that would also give its open-loop arrivals.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "traffic_impl.h"

/* Time until an RPC that failed while it was sent is replaced. */
#define REFUSED_PS (100 * SIM_US)

/**
 * struct traffic_client - a host that keeps RPCs under way
 * @ev: event at which it sends.
 * @asks: has host @host send an RPC.
 * @arrivals: lengths of its requests, and whom it asks.
 * @due: number of RPCs that it sends at @ev.
 * @waits: @ev is to happen.
 * @ended: it sends nothing more.
 */
struct traffic_client {
	struct sim_event ev;
	void (*asks)(struct sim *sim, u32 host);
	struct homa_arrivals arrivals;
	u32 due;
	bool waits, ended;
};

static void client_fires(struct sim *sim, struct sim_event *ev)
{
	struct traffic_client *client = homa_container_of(ev, struct traffic_client, ev);
	u32 due = client->due;

	client->waits = false;
	client->due = 0;
	while (due-- && !client->ended)
		client->asks(sim, (u32)(client - sim->traffic->client));
}

/* Has @client send after @delay, or when it is to send anyway, but not from within what happens
 * now. */
static void client_wakes(struct sim *sim, struct traffic_client *client, u64 delay)
{
	if (client->waits)
		return;
	client->waits = true;
	sim_event_add(sim->agenda, &client->ev, sim->now + delay);
}

void sim_closed_loop_over(struct sim *sim, const struct sim_msg *msg)
{
	struct traffic_client *client = &sim->traffic->client[msg->src];

	if (client->ended || msg->incast)
		return;
	client->due++;
	/* What was refused would be refused again at this instant, and so on for ever. */
	client_wakes(sim, client, msg->created == sim->now ? REFUSED_PS : 0);
}

void sim_closed_loop_next(struct sim *sim, u32 host, struct homa_arrival *next)
{
	homa_arrivals_next(&sim->traffic->client[host].arrivals, next);
	if (!sim->cfg.servers && next->peer >= host)
		next->peer++;
}

void sim_closed_loop_end(struct sim *sim, u32 host)
{
	sim->traffic->client[host].ended = true;
}

int sim_closed_loop_start(struct sim *sim, void (*asks)(struct sim *sim, u32 host),
			  char *err, size_t errlen)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_traffic *t = sim->traffic;
	u32 i;

	if (!cfg->closed)
		return 0;
	if (cfg->servers >= cfg->hosts) {
		snprintf(err, errlen, "--servers: of %u hosts at most %u can be servers",
			 cfg->hosts, cfg->hosts - 1);
		return -EINVAL;
	}
	t->client = calloc(cfg->hosts, sizeof(*t->client));
	if (!t->client)
		return -ENOMEM;
	for (i = 0; i < cfg->hosts; i++) {
		struct traffic_client *client = &t->client[i];

		client->ev.fn = client_fires;
		client->asks = asks;
		client->ended = i < cfg->servers;
		if (client->ended)
			continue;
		homa_arrivals_init(&client->arrivals, &sim->workload, 0,
				   cfg->servers ? cfg->servers : cfg->hosts - 1,
				   cfg->seed, i);
		client->due = cfg->closed;
		client_wakes(sim, client, 0);
		t->sources++;
	}
	return 0;
}

void sim_closed_loop_stop(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;
	u32 i;

	for (i = 0; t->client && i < sim->cfg.hosts; i++)
		sim_event_cancel(sim->agenda, &t->client[i].ev);
	free(t->client);
	t->client = NULL;
}
