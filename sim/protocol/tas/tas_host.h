/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The TAS transport's own state: a TCP engine in every simulated host. tas.c is the host's
 * loop, tas_settings.c its settings.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_TAS_HOST_H
#define SIM_TAS_HOST_H

#include "sim_transport.h"
#include "tas_engine.h"

#define SIM_TAS_PORT 80u
/* the engine's time at the beginning, ns */
#define SIM_TAS_EPOCH_NS 2000000000ull
#define SIM_TAS_HEADERS 20u /* IPv4 */

/* indices of cfg->option[] */
enum sim_tas_option {
	SIM_TAS_CONGESTION, /* an enum tas_control */
	SIM_TAS_INTERVAL,   /* us */
	SIM_TAS_STEP,	    /* kbit/s */
	SIM_TAS_RATE,	    /* kbit/s */
	SIM_TAS_LOW,	    /* us */
	SIM_TAS_HIGH,	    /* us */
	SIM_TAS_PACING,
	SIM_TAS_INITIAL, /* segments */
	SIM_TAS_RTO_MIN, /* ms */
	SIM_TAS_K,	 /* packets at 10 Gbit/s */
	SIM_TAS_SACK,
	SIM_TAS_GAPS, /* out-of-order intervals */
};

/* Value of cfg->ecn_bytes that says that option K and the rate decide. */
#define SIM_TAS_ECN_AUTO UINT64_MAX

/**
 * struct sim_tas_host - one engine
 * @engine: the engine.
 * @listener: takes the connections of other hosts.
 * @host: the simulated host.
 * @timer: event at the time at which the engine is to be called.
 * @port: the local port of the connection that was begun last.
 */
struct sim_tas_host {
	struct tas_engine engine;
	struct tas_listener listener;
	struct sim_host *host;
	struct sim_event timer;
	u16 port;
};

struct sim_tas_slab;

/**
 * struct sim_tas - sim->proto
 * @hosts: an engine for each host, by its number.
 * @spare: memory for connections that no engine has, linked by f.hash.
 * @slabs: memory from which connections were cut, a list.
 * @bytes: number of bytes of that memory.
 */
struct sim_tas {
	struct sim_tas_host *hosts;
	struct homa_list spare;
	struct sim_tas_slab *slabs;
	u64 bytes;
};

/* ---- tas_settings.c ---- */

extern const struct sim_option sim_tas_options[];
int sim_tas_defaults(struct sim_config *cfg);
/**
 * sim_tas_settle() - make the settings of one engine, and of the switches, from those of
 * the run
 */
int sim_tas_settle(struct sim_config *cfg, struct tas_engine *engine);

#endif
