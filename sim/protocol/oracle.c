// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The oracle: what a transport could do at best that knows everything at once.
 * A scheduler without delay, for the whole network, knows all messages the
 * moment they are created, sends those with the least left first (SRPT), one
 * at a time on each host's link in each direction, and preempts in no time.
 *
 * No packets move. A message is a fluid that flows at the rate of a host's
 * link, as many bytes of it as Homa's DATA packets would take on the wire,
 * headers and framing included; grants and other control cost nothing. The
 * core of the network is taken to be without bottlenecks, so that only the
 * hosts' links limit. When the last byte has left the message is delivered a
 * constant time later: what sim_ideal_ps() says it takes alone beyond its
 * transmission. So a message that is never held up has a slowdown of exactly
 * 1, and none has less.
 *
 * How messages are chosen, and what that costs: oracle_match.c. On one link
 * this order has the least mean completion time of all (Schrage 1968). For many
 * links no order is known to be best, and this one is what Homa's and pFabric's
 * authors take for ideal; another one could have a better tail, since SRPT
 * lets long messages wait. So it is a limit in practice, not a proven bound.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "homa_list.h"
#include "oracle_match.h"
#include "sim_transport.h"

/**
 * struct oracle_msg - a message
 * @job: Its place in the matching of senders and receivers.
 * @all: This links it into oracle->live or oracle->spare.
 * @ev: This event happens at the end of its transmission, and again at its delivery.
 * @msg: The message as the traffic knows it.
 * @latency: The time from the end of its transmission to its delivery, in ps.
 * @sent: Its transmission has ended.
 */
struct oracle_msg {
	struct oracle_job job;
	struct homa_list all;
	struct sim_event ev;
	struct sim_msg *msg;
	u64 latency;
	bool sent;
};

/**
 * struct oracle - sim->proto
 * @match: which messages are being sent.
 * @live: messages that are under way, by oracle_msg.all.
 * @spare: free memory for struct oracle_msg.
 * @ps_per_byte: time of a byte on a host's link, ps.
 * @preemptions: number of times that a message was put off for another one.
 */
struct oracle {
	struct oracle_match match;
	struct homa_list live, spare;
	u32 ps_per_byte;
	u64 preemptions;
};

static void oracle_event(struct sim *sim, struct sim_event *ev);

static struct oracle_msg *oracle_msg_new(struct oracle *oracle)
{
	struct homa_list *spare = homa_list_pop(&oracle->spare);
	struct oracle_msg *om;

	om = spare ? homa_list_entry(spare, struct oracle_msg, all) : malloc(sizeof(*om));
	if (!om)
		return NULL;
	memset(om, 0, sizeof(*om));
	om->ev.fn = oracle_event;
	homa_list_add_tail(&oracle->live, &om->all);
	return om;
}

static void oracle_msg_free(struct oracle *oracle, struct oracle_msg *om)
{
	homa_list_del(&om->all);
	homa_list_add_head(&oracle->spare, &om->all);
}

/* Returns the bytes on the wire of a message in Homa's packets. */
static u64 oracle_wire(const struct sim_config *cfg, u32 length)
{
	u32 segment = sim_homa_segment(cfg);
	u32 full = length / segment, rest = length % segment;
	u64 wire = (u64)full * sim_wire(sim_homa_data_ip(cfg, segment));

	if (rest || !full)
		wire += sim_wire(sim_homa_data_ip(cfg, rest));
	return wire;
}

/* Counts the bytes that the message's links have carried since it was matched. */
static void oracle_account(struct sim *sim, const struct oracle_job *job)
{
	const struct oracle_msg *om = homa_container_of(job, struct oracle_msg, job);
	struct oracle *oracle = sim->proto;
	u64 bytes = (sim->now - job->since) / oracle->ps_per_byte;

	if (sim->on_arrived && !om->sent)
		sim->on_arrived(sim, om->msg,
				(u32)(bytes * om->msg->length /
				      oracle_wire(&sim->cfg, om->msg->length)));

	sim->hosts[job->tx].up->stats.tx_bytes += bytes;
	sim->hosts[job->rx - sim->cfg.hosts].down->stats.tx_bytes += bytes;
}

static void oracle_started(void *arg, struct oracle_job *job)
{
	struct oracle_msg *om = homa_container_of(job, struct oracle_msg, job);
	struct sim *sim = arg;

	sim_event_add(sim->agenda, &om->ev, sim->now + job->left);
}

static void oracle_stopped(void *arg, struct oracle_job *job)
{
	struct oracle_msg *om = homa_container_of(job, struct oracle_msg, job);
	struct sim *sim = arg;
	struct oracle *oracle = sim->proto;

	sim_event_cancel(sim->agenda, &om->ev);
	oracle_account(sim, job);
	oracle->preemptions++;
}

static void oracle_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	struct oracle *oracle = sim->proto;
	struct oracle_msg *om = oracle_msg_new(oracle);
	u64 ideal;

	if (!om) {
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	om->job.left = oracle_wire(&sim->cfg, msg->length) * oracle->ps_per_byte;
	om->job.serial = msg->serial;
	om->job.tx = host->index;
	om->job.rx = sim->cfg.hosts + msg->dst;
	ideal = sim_ideal_ps(sim, msg->src, msg->dst, msg->length);
	om->latency = ideal > om->job.left ? ideal - om->job.left : 0;
	if (oracle_match_add(&oracle->match, &om->job, sim->now)) {
		oracle_msg_free(oracle, om);
		sim_failed(sim, msg, ENOMEM);
		return;
	}
	sim_msg_get(msg);
	om->msg = msg;
}

static void oracle_event(struct sim *sim, struct sim_event *ev)
{
	struct oracle_msg *om = homa_container_of(ev, struct oracle_msg, ev);
	struct oracle *oracle = sim->proto;
	struct sim_msg *msg = om->msg;

	if (!om->sent) {
		om->sent = true;
		oracle_account(sim, &om->job);
		sim_event_add(sim->agenda, &om->ev, sim->now + om->latency);
		oracle_match_done(&oracle->match, &om->job, sim->now);
		return;
	}
	oracle_msg_free(oracle, om);
	sim_delivered(sim, msg, NULL);
	sim_msg_put(sim, msg);
}

static void oracle_stop(struct sim *sim)
{
	struct oracle *oracle = sim->proto;
	struct homa_list *node;

	if (!oracle)
		return;
	homa_list_splice_tail(&oracle->spare, &oracle->live);
	while ((node = homa_list_pop(&oracle->spare)) != NULL)
		free(homa_list_entry(node, struct oracle_msg, all));
	oracle_match_free(&oracle->match);
	free(oracle);
	sim->proto = NULL;
}

static int oracle_start(struct sim *sim)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));

	if (!oracle)
		return -ENOMEM;
	sim->proto = oracle;
	homa_list_init(&oracle->live);
	homa_list_init(&oracle->spare);
	oracle->ps_per_byte = 8000000u / sim->cfg.host_mbps;
	if (oracle_match_init(&oracle->match, sim->cfg.hosts))
		return -ENOMEM; /* sim_free() calls oracle_stop() */
	oracle->match.arg = sim;
	oracle->match.started = oracle_started;
	oracle->match.stopped = oracle_stopped;
	return 0;
}

static void oracle_metrics(struct sim *sim,
			   void (*put)(void *arg, const char *name, double value),
			   void *arg)
{
	const struct oracle *oracle = sim->proto;

	put(arg, "preemptions", (double)oracle->preemptions);
	put(arg, "matching_steps", (double)oracle->match.steps);
}

const struct sim_transport sim_oracle = {
	.name = "oracle",
	.title = "Oracle",
	.text = "centralised SRPT with full knowledge and free preemption: a limit, no packets",
	.start = oracle_start,
	.stop = oracle_stop,
	.send = oracle_send,
	.metrics = oracle_metrics,
	.packetless = true,
};
