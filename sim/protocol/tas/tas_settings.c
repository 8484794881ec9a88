// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Settings of the TCP engine in simulated hosts; those that a data centre would have. */
#include <errno.h>

#include "tas_host.h"

/* shared buffer of a switch, as for DCTCP (tcp.c) */
#define SWITCH_BYTES (13ull << 20)
#define FRAME 1538u

const struct sim_option sim_tas_options[] = {
	[SIM_TAS_CONGESTION] = { "congestion", TAS_RATE_DCTCP, 0, TAS_CONTROLS - 1, "",
				 "0: NewReno; 1: DCTCP by window; 2: CUBIC; 3: DCTCP by "
				 "rate (TAS); 4: TIMELY; 5: constant rate" },
	[SIM_TAS_INTERVAL] = { "control-interval", 0, 0, 1000000, "us",
			       "time between two decisions of a control by rate; 0: two "
			       "round trips (TAS, section 3.2)" },
	[SIM_TAS_STEP] = { "rate-step", 10000, 1, 10000000, "kbit/s",
			   "additive increase of a rate (TAS, section 3.2: 10 Mbit/s)" },
	[SIM_TAS_RATE] = { "rate", 100000, 100, 400000000, "kbit/s", "of a constant rate" },
	[SIM_TAS_LOW] = { "timely-low", 30, 1, 1000000, "us",
			  "TIMELY: with less queueing the rate grows" },
	[SIM_TAS_HIGH] = { "timely-high", 480, 1, 1000000, "us",
			   "TIMELY: with more queueing it shrinks" },
	[SIM_TAS_PACING] = { "pacing", 0, 0, 1, "", "controls by window are paced, too" },
	[SIM_TAS_INITIAL] = { "initial-window", 10, 1, 256, "packets",
			      "congestion window of a new connection (RFC 6928)" },
	[SIM_TAS_RTO_MIN] = { "rto-min", 10, 1, 60000, "ms",
			      "least time-out, and that of a SYN" },
	[SIM_TAS_K] = { "k", 65, 0, 100000, "packets",
			"marking threshold at 10 Gbit/s, scaled to the host link's rate; "
			"--ecn overrides it (TAS, section 5: 65)" },
	[SIM_TAS_SACK] = { "sack", 1, 0, 1, "", "selective acknowledgements" },
	[SIM_TAS_GAPS] = { "intervals", 4, 1, 8, "",
			   "out-of-order intervals that a receiver keeps (TAS: 1)" },
	{ NULL, 0, 0, 0, NULL, NULL },
};

int sim_tas_defaults(struct sim_config *cfg)
{
	u32 i;

	for (i = 0; sim_tas_options[i].name; i++)
		cfg->option[i] = sim_tas_options[i].def;
	cfg->queue = SIM_QUEUE_PRIORITY;
	cfg->balance = SIM_ECMP;
	cfg->shared_bytes = SWITCH_BYTES;
	cfg->shared_alpha = 256;
	cfg->ecn_bytes = SIM_TAS_ECN_AUTO;
	return 0;
}

static bool listens_to_marks(u64 control)
{
	return control == TAS_DCTCP || control == TAS_RATE_DCTCP;
}

int sim_tas_settle(struct sim_config *cfg, struct tas_engine *engine)
{
	const u64 *option = cfg->option;
	int bad = 0;

	if (cfg->ecn_bytes == SIM_TAS_ECN_AUTO)
		cfg->ecn_bytes = option[SIM_TAS_K] * FRAME * cfg->host_mbps / 10000;
	bad |= tas_set(engine, "congestion", option[SIM_TAS_CONGESTION]);
	bad |= tas_set(engine, "control_interval_us", option[SIM_TAS_INTERVAL]);
	bad |= tas_set(engine, "rate_step_kbps", option[SIM_TAS_STEP]);
	bad |= tas_set(engine, "rate_kbps", option[SIM_TAS_RATE]);
	bad |= tas_set(engine, "timely_low_us", option[SIM_TAS_LOW]);
	bad |= tas_set(engine, "timely_high_us", option[SIM_TAS_HIGH]);
	bad |= tas_set(engine, "pacing", option[SIM_TAS_PACING]);
	bad |= tas_set(engine, "initial_window", option[SIM_TAS_INITIAL]);
	bad |= tas_set(engine, "sack", option[SIM_TAS_SACK]);
	bad |= tas_set(engine, "max_intervals", option[SIM_TAS_GAPS]);
	bad |= tas_set(engine, "rto_min_ms", option[SIM_TAS_RTO_MIN]);
	bad |= tas_set(engine, "rto_initial_ms", option[SIM_TAS_RTO_MIN]);
	bad |= tas_set(engine, "ecn", listens_to_marks(option[SIM_TAS_CONGESTION]) ? 1 : 0);
	/* The engine makes one segment at a time, as the host's port takes them, and acks
	 * as the other models do. */
	bad |= tas_set(engine, "max_segment", 536);
	bad |= tas_set(engine, "delack_ms", 1);
	bad |= tas_set(engine, "delack_most_ms", 1);
	bad |= tas_set(engine, "time_wait_ms", 1);
	return bad ? -EINVAL : 0;
}
