// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The settings of two studies.
 *
 * "sigcomm18": Montazeri et al., SIGCOMM'18, with the parameters of its
 * published simulator configurations. One RTTbytes is what a host sends in the
 * time from a full packet's departure to the arrival of the grant for it, in
 * thousands of bytes on the wire: 10,000 in the study's network, where that
 * time is worth 9,680. The engine counts message bytes: 9,328. Each workload
 * has its split of the eight levels; as many messages are granted to as there
 * are scheduled levels. Where the study has no split or no cutoffs for it the
 * engine chooses the cutoffs.
 *
 * "low-queue": ours, the first with a third of its queues or less for somewhat
 * longer messages; docs/low-queue.md has what it costs. Less than two RTTbytes
 * may be outstanding toward a receiver, half of one kept for its best message;
 * silent senders' grants make room (engine/homa/homa_grant_quiet.h); five
 * eighths of RTTbytes are unscheduled.
 *
 * "linux": Ousterhout, ATC'21: 40 hosts at 25 Gbit/s on one switch, RPCs, true
 * headers, all of the engine's settings as they are when it ships. Its cutoffs
 * are those that it would learn from the traffic within seconds. The hosts'
 * software takes so long that 100 bytes are echoed in 15.1 us, as measured
 * there; how it spends that time (and where it queues) is not modelled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "homa_host.h"

/* scheduled levels for workloads that the study does not have */
#define DEFAULT_LEVELS 7u

const char *const sim_homa_presets[] = { "sigcomm18", "low-queue", "linux", NULL };

const struct sim_option sim_homa_options[] = {
	[SIM_HOMA_SCHEDULED] = { "scheduled-levels", 0, 0, 8, "levels",
				 "priorities for scheduled packets and messages granted to at once; 0 = of the preset" },
	[SIM_HOMA_UNSCHEDULED] = { "unscheduled-levels", 0, 0, 8, "levels",
				   "priorities for unscheduled packets; 0 = of the preset" },
	[SIM_HOMA_CUTOFFS] = { "known-cutoffs", SIM_HOMA_CUTOFFS_KNOWN, 0, 1, "bool",
			       "unscheduled cutoffs fit the workload and are known to all from the beginning; 0 = learnt from traffic" },
	[SIM_HOMA_CARD] = { "card", 0, 0, 1, "bool",
			    "a network card of hosts that does not say when it has room, so the engine paces by its clock" },
	{ 0 },
};

/**
 * struct study - how the SIGCOMM'18 study splits the levels, and its cutoffs in ascending
 * order (W4 and W5 have one unscheduled level); test_homa.c compares them with what the
 * engine would choose
 */
static const struct study {
	/* name of the workload. */
	const char *workload;
	/* numbers of scheduled and unscheduled levels. */
	u32 scheduled, unscheduled;
	/* longest message of each unscheduled level but the last, in bytes. */
	u32 cutoffs[HOMA_PRIORITIES - 1];
} studies[] = {
	{ "w1", 1, 7, { 11, 125, 273, 468, 764, 1275 } },
	{ "w2", 3, 5, { 269, 366, 512, 1463 } },
	{ "w3", 4, 4, { 433, 2339, 6756 } },
	{ "w4", 7, 1, { 0 } },
	{ "w5", 7, 1, { 0 } },
};

static const struct study *study_of(const struct homa_workload *workload)
{
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(studies); i++)
		if (!strcmp(studies[i].workload, workload->name))
			return &studies[i];
	return NULL;
}

/* ---- before the user's flags ---- */

static void linux_defaults(struct sim_config *cfg)
{
	homa_params_default(&cfg->homa);
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = 40;
	cfg->host_mbps = 25000;
	cfg->sigcomm_headers = false;
	cfg->rpc = true;
	cfg->load_kind = SIM_LOAD_PAYLOAD;
	cfg->cut = HOMA_WORKLOAD_CUT;
	cfg->send_ps = 3600 * SIM_NS;
	cfg->recv_ps = 3600 * SIM_NS;
	cfg->option[SIM_HOMA_CUTOFFS] = SIM_HOMA_CUTOFFS_KNOWN;
}

static void sigcomm_defaults(struct sim_config *cfg)
{
	homa_params_sigcomm(&cfg->homa);
	/* 0: sim_homa_settle() computes it from the network */
	cfg->homa.unsched_bytes = 0;
	cfg->homa.max_incoming = 0x7fffffff; /* the study has no such limit */
	/* The study has no time-outs. The interval is long so that starved messages are not
	 * asked for. */
	cfg->homa.resend_interval_us = 100000;
	cfg->homa.timeout_us = 10000000;
	cfg->option[SIM_HOMA_CUTOFFS] = SIM_HOMA_CUTOFFS_KNOWN;
}

static bool sigcomm_like(const struct sim_config *cfg)
{
	return !strcmp(cfg->preset, "sigcomm18") || !strcmp(cfg->preset, "low-queue");
}

int sim_homa_defaults(struct sim_config *cfg)
{
	cfg->queue = SIM_QUEUE_PRIORITY;
	cfg->balance = SIM_SPRAY;
	memset(cfg->option, 0, sizeof(cfg->option));
	if (!cfg->preset[0])
		strcpy(cfg->preset, sim_homa_presets[0]);
	if (sigcomm_like(cfg))
		sigcomm_defaults(cfg);
	else if (!strcmp(cfg->preset, "linux"))
		linux_defaults(cfg);
	else
		return -EINVAL;
	return 0;
}

int sim_homa_set(struct sim_config *cfg, const char *name, u64 value)
{
	u32 i;

	if (value > UINT32_MAX || homa_param_set(&cfg->homa, name, (u32)value))
		return -EINVAL;
	for (i = 0; i < homa_param_count; i++)
		if (!strcmp(homa_param_table[i].name, name))
			cfg->option[SIM_HOMA_GIVEN] |= 1ull << i;
	return 0;
}

/* Did the user give the setting at @offset of struct homa_params? */
static bool is_set(const struct sim_config *cfg, size_t offset)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++)
		if (homa_param_table[i].offset == offset)
			return cfg->option[SIM_HOMA_GIVEN] >> i & 1;
	return false;
}

#define IS_SET(cfg, name) is_set(cfg, offsetof(struct homa_params, name))

/* ---- when the network is there ---- */

/* Returns the time that an IP packet takes from host to host on the idle network, in ps. */
static u64 path_ps(const struct sim *sim, u32 src, u32 dst, u32 ip_bytes)
{
	u32 ps[8], hops, i;
	u64 delay[8], sum = 0;

	hops = sim_path(sim, src, dst, ps, delay);
	for (i = 0; i < hops; i++)
		sum += (u64)sim_wire(ip_bytes) * ps[i] + delay[i];
	return sum;
}

/* Returns the network's RTTbytes in message bytes; the top of the file says how. */
static u32 network_rtt_bytes(const struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	u32 segment = sim_homa_segment(cfg), last = cfg->hosts - 1;
	u32 full = sim_wire(sim_homa_data_ip(cfg, segment));
	u64 ps = path_ps(sim, 0, last, sim_homa_data_ip(cfg, segment)) +
		 path_ps(sim, last, 0, sim_homa_ctrl_ip(cfg, HOMA_GRANT_LEN));
	u64 wire = (ps / sim->hosts[0].up->ps_per_byte + 999) / 1000 * 1000;
	u32 packets = (u32)(wire / full), rest = (u32)(wire % full);
	u32 header = full - segment;

	return packets * segment + (rest > header ? rest - header : 0);
}

static void settle_levels(const struct sim *sim, struct sim_homa *homa)
{
	const struct sim_config *cfg = &sim->cfg;
	const struct study *study = study_of(&sim->workload);
	struct homa_params *params = &homa->params;
	u32 scheduled = (u32)cfg->option[SIM_HOMA_SCHEDULED];
	u32 unscheduled = (u32)cfg->option[SIM_HOMA_UNSCHEDULED];
	u32 total = params->num_priorities;

	if (!scheduled && IS_SET(cfg, max_overcommit))
		scheduled = homa_min_u32(params->max_overcommit, total);
	if (!unscheduled && IS_SET(cfg, unsched_levels))
		unscheduled = params->unsched_levels;
	if (!scheduled)
		scheduled = study ? study->scheduled : DEFAULT_LEVELS;
	if (!unscheduled)
		unscheduled = study ? study->unscheduled : HOMA_PRIORITIES - DEFAULT_LEVELS;
	if (!IS_SET(cfg, num_priorities))
		total = homa_min_u32(scheduled + unscheduled, HOMA_PRIORITIES);
	params->num_priorities = total;
	if (!IS_SET(cfg, max_overcommit))
		params->max_overcommit = scheduled;
	params->unsched_levels = homa_min_u32(unscheduled, total > 1 ? total - 1 : 0);
	if (study && params->unsched_levels == study->unscheduled &&
	    !IS_SET(cfg, unsched_bytes)) {
		homa->levels = study->unscheduled;
		memcpy(homa->cutoffs, study->cutoffs, sizeof(study->cutoffs));
	}
}

/* Makes the settings of preset low-queue, as multiples of @rtt_bytes; docs/low-queue.md
 * says where the factors come from. */
static void settle_low_queue(const struct sim *sim, struct homa_params *params,
			     u32 rtt_bytes)
{
	const struct sim_config *cfg = &sim->cfg;
	u32 segment = sim_homa_segment(cfg);
	u64 rtt_ps = (u64)rtt_bytes * sim->hosts[0].up->ps_per_byte;

	if (!IS_SET(cfg, unsched_bytes))
		params->unsched_bytes =
			homa_max_u32(rtt_bytes * 5 / 8 / segment, 1) * segment;
	if (!IS_SET(cfg, window))
		params->window = rtt_bytes;
	if (!IS_SET(cfg, max_incoming))
		params->max_incoming = homa_max_u32(2 * rtt_bytes - segment, rtt_bytes);
	if (!IS_SET(cfg, reserved_incoming))
		params->reserved_incoming = rtt_bytes / 2;
	if (!IS_SET(cfg, quiet_us))
		params->quiet_us = (u32)homa_max_u64(rtt_ps * 4 / 3 / SIM_US, 1);
}

int sim_homa_settle(const struct sim *sim, struct sim_homa *homa)
{
	const struct sim_config *cfg = &sim->cfg;
	bool sigcomm = sigcomm_like(cfg);
	u32 i;

	homa->params = cfg->homa;
	/* With this MTU the engine cuts segments of the size that the header model has. */
	homa->mtu = sim_homa_segment(cfg) + 20 + HOMA_DATA_HDR;
	if (sigcomm && !IS_SET(cfg, unsched_bytes) && !homa->params.unsched_bytes)
		homa->params.unsched_bytes = network_rtt_bytes(sim);
	if (!strcmp(cfg->preset, "low-queue"))
		settle_low_queue(sim, &homa->params, network_rtt_bytes(sim));
	if (sigcomm || cfg->option[SIM_HOMA_SCHEDULED] || cfg->option[SIM_HOMA_UNSCHEDULED])
		settle_levels(sim, homa);
	if (!cfg->option[SIM_HOMA_CUTOFFS]) {
		homa->levels = 0;
		return 0;
	}
	if (sigcomm && !IS_SET(cfg, cutoff_interval_ms))
		homa->params.cutoff_interval_ms = 0;
	if (homa->levels)
		return 0;
	homa->sample = calloc(SIM_HOMA_SAMPLE, sizeof(*homa->sample));
	if (!homa->sample)
		return -ENOMEM;
	for (i = 0; i < SIM_HOMA_SAMPLE; i++)
		homa->sample[i] =
			homa_workload_size(&sim->workload, (i + 0.5) / SIM_HOMA_SAMPLE);
	return 0;
}
