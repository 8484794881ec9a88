// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A run: its world, its loop, its messages. What moves packets is in net.c,
 * what decides about them in the transports, what creates messages and judges
 * them in traffic.c and stats.c; here is only what ties them together.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_transport.h"
#include "software.h"

#define DIGEST_START 0xcbf29ce484222325ull
#define DIGEST_PRIME 0x100000001b3ull
#define MSGS_PER_SLAB 1024

/* struct msg_slab - memory of messages, which are recycled and freed at the end of the
 * run */
struct msg_slab {
	/* The slab that was made before this one; NULL: none was. */
	struct msg_slab *next;
	/* Memory for messages. */
	struct sim_msg msgs[MSGS_PER_SLAB];
};

void sim_config_default(struct sim_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->seed = 1;
	cfg->topology = SIM_LEAF_SPINE;
	cfg->racks = 9;
	cfg->spines = 4;
	cfg->hosts = 144;
	cfg->k = 8;
	cfg->host_mbps = 10000;
	cfg->fabric_mbps = 40000;
	cfg->switch_ps = 250 * SIM_NS;
	cfg->send_ps = 1000 * SIM_NS;
	cfg->recv_ps = 500 * SIM_NS;
	cfg->balance = SIM_SPRAY;
	cfg->queue = SIM_QUEUE_PRIORITY;
	cfg->shared_alpha = 256;
	cfg->trim_packets = 8;
	cfg->mtu = 1500;
	cfg->sigcomm_headers = true;
	strcpy(cfg->workload, "w4");
	cfg->cut = UINT32_MAX;
	cfg->load = 0.8;
	cfg->load_kind = SIM_LOAD_WIRE;
	cfg->warmup_ps = 5 * SIM_MS;
	cfg->measure_ps = 20 * SIM_MS;
	cfg->drain_ps = 1000 * SIM_MS;
	sim_costs_default(&cfg->software, SIM_STACK_HOMA);
	homa_params_default(&cfg->homa);
}

static int sim_prepare(struct sim *sim, char *err, size_t errlen)
{
	struct sim_config *cfg = &sim->cfg;
	int res;

	sim->agenda = sim_agenda_new();
	if (!sim->agenda) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	homa_prng_seed(&sim->rng_net, cfg->seed, 1ull << 40);
	homa_prng_seed(&sim->rng_proto, cfg->seed, 2ull << 40);
	res = homa_workload_parse(&sim->workload, cfg->workload, cfg->cut, err, errlen);
	if (res)
		return res;
	res = sim_net_build(sim, err, errlen);
	if (res)
		return res;
	if (cfg->software.cores && !cfg->transport->packetless && sim_software_new(sim)) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	res = cfg->transport->start(sim);
	if (res)
		snprintf(err, errlen, "%s could not start: %s", cfg->transport->name,
			 strerror(-res));
	return res;
}

struct sim *sim_new(const struct sim_config *cfg, char *err, size_t errlen)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	sim->cfg = *cfg;
	sim->digest = DIGEST_START;
	if (sim_prepare(sim, err, errlen)) {
		sim_free(sim);
		return NULL;
	}
	return sim;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	sim->cfg.transport->stop(sim);
	sim_software_free(sim);
	sim_net_free(sim);
	sim_agenda_free(sim->agenda);
	while (sim->msg_slabs) {
		struct msg_slab *slab = sim->msg_slabs;

		sim->msg_slabs = slab->next;
		free(slab);
	}
	homa_workload_free(&sim->workload);
	free(sim);
}

void sim_run(struct sim *sim, u64 until)
{
	struct sim_event *ev;

	while (!sim->stop && (ev = sim_event_take(sim->agenda, until)) != NULL) {
		sim->now = ev->at;
		sim->counts.events++;
		ev->fn(sim, ev);
	}
	if (!sim->stop && until != SIM_NEVER && sim->now < until)
		sim->now = until;
}

/* ---- messages ---- */

static bool sim_msgs_grow(struct sim *sim)
{
	struct msg_slab *slab = calloc(1, sizeof(*slab));
	u32 i;

	if (!slab)
		return false;
	slab->next = sim->msg_slabs;
	sim->msg_slabs = slab;
	for (i = 0; i < MSGS_PER_SLAB; i++) {
		slab->msgs[i].next = sim->free_msgs;
		sim->free_msgs = &slab->msgs[i];
	}
	return true;
}

struct sim_msg *sim_msg_new(struct sim *sim)
{
	struct sim_msg *msg;

	if (!sim->free_msgs && !sim_msgs_grow(sim))
		return NULL;
	msg = sim->free_msgs;
	sim->free_msgs = msg->next;
	memset(msg, 0, sizeof(*msg));
	msg->serial = ++sim->last_serial;
	msg->refs = 1;
	return msg;
}

void sim_msg_get(struct sim_msg *msg)
{
	msg->refs++;
}

void sim_msg_put(struct sim *sim, struct sim_msg *msg)
{
	struct sim_msg *request;

	while (msg && --msg->refs == 0) {
		request = msg->request;
		msg->serial = 0;
		msg->next = sim->free_msgs;
		sim->free_msgs = msg;
		msg = request;
	}
}

/* The system call that sends @msg is over. */
static void msg_called(struct sim *sim, struct sim_msg *msg)
{
	sim->cfg.transport->send(sim, &sim->hosts[msg->src], msg);
	sim_msg_put(sim, msg);
}

void sim_send(struct sim *sim, struct sim_msg *msg)
{
	struct sim_tap *tap;

	msg->created = sim->now;
	sim->counts.msgs_started++;
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->started)
			tap->started(tap->arg, sim, msg);
	if (unlikely(sim->cores)) {
		sim_msg_get(msg);
		sim_software_send(sim, msg, msg_called);
		return;
	}
	sim->cfg.transport->send(sim, &sim->hosts[msg->src], msg);
}

static void sim_digest(struct sim *sim, u64 word)
{
	sim->digest = (sim->digest ^ word) * DIGEST_PRIME;
}

/* The application has @msg. */
static void msg_taken(struct sim *sim, struct sim_msg *msg)
{
	struct sim_tap *tap;

	msg->done = sim->now;
	sim->counts.msgs_delivered++;
	sim->counts.bytes_delivered += msg->length;
	sim_digest(sim, msg->serial);
	sim_digest(sim, sim->now);
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->delivered)
			tap->delivered(tap->arg, sim, msg);
	if (sim->on_delivered)
		sim->on_delivered(sim, msg);
}

static void msg_received(struct sim *sim, struct sim_msg *msg)
{
	msg_taken(sim, msg);
	sim_msg_put(sim, msg);
}

void sim_delivered(struct sim *sim, struct sim_msg *msg, const struct sim_pkt *last)
{
	if (msg->delivered)
		return;
	msg->delivered = true;
	if (last) {
		msg->wait_ps = last->wait_ps;
		msg->lag_ps = last->lag_ps;
	}
	if (likely(!sim->cores)) {
		msg_taken(sim, msg);
		return;
	}
	sim_msg_get(msg);
	sim_software_recv(sim, msg, msg_received);
}

void sim_failed(struct sim *sim, struct sim_msg *msg, int error)
{
	if (msg->delivered)
		return;
	msg->delivered = true;
	sim->counts.msgs_failed++;
	if (sim->on_failed)
		sim->on_failed(sim, msg, error);
}
