/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a protocol offers to the simulator. One file (or a few) per protocol;
 * transports.c lists them. Each file begins with a comment that says where the
 * protocol is described, its parameters with their source, and where the model
 * simplifies.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_TRANSPORT_H
#define SIM_TRANSPORT_H

#include "sim.h"

/**
 * struct sim_option - a setting of a protocol; its value is in sim_config.option, at the
 *	setting's index in the table
 * @name: name of the setting.
 * @def: default value, in @unit.
 * @min: least value, in @unit.
 * @max: greatest value, in @unit.
 * @unit: unit of its values.
 * @text: what it does, and the source that says so.
 */
struct sim_option {
	const char *name;
	u64 def, min, max;
	const char *unit;
	const char *text;
};

/**
 * struct sim_transport - a protocol
 * @name: name of the protocol in --protocol.
 * @title: name of the protocol in figures.
 * @text: one line about the protocol for --help.
 * @options: settings of the protocol, behind which one has a NULL name; NULL: it has none.
 * @presets: names of its presets and a NULL; the first is the default. NULL: it has none.
 * @defaults: sets what the protocol wants of the network (queue discipline,
 *	buffers, marking, balance) and its settings. It is called before the user's flags are
 *	looked at, with cfg->preset set. -EINVAL: there is no such preset.
 * @set: sets a setting that is not in @options (the engine's); -EINVAL: there is none. May be
 *	NULL.
 * @start: allocates state of each host (sim->hosts[i].proto); 0 or a negative errno.
 * @stop: frees everything, also if there are messages and packets left.
 * @send: takes a message to send, at msg->src, and a reference while it keeps it.
 *	It must lead to sim_port_kick(sim, host->up) if there is something to send.
 * @tx: returns the next packet to send, as the host's port is free, or NULL.
 *	sim->now is the time; the transport fills in everything but times.
 *	If NULL is returned the port asks again only after a kick.
 * @rx: takes a packet for this host, after the host's receive delay, and frees or reuses it.
 *	It may kick the port.
 * @metrics: calls @put(arg, name, value) with each counter for the report. May be NULL.
 * @packetless: the protocol moves no packets (the oracle); @tx and @rx are NULL.
 */
struct sim_transport {
	const char *name, *title, *text;
	const struct sim_option *options;
	const char *const *presets;
	int (*defaults)(struct sim_config *cfg);
	int (*set)(struct sim_config *cfg, const char *name, u64 value);
	int (*start)(struct sim *sim);
	void (*stop)(struct sim *sim);
	void (*send)(struct sim *sim, struct sim_host *host, struct sim_msg *msg);
	struct sim_pkt *(*tx)(struct sim *sim, struct sim_host *host);
	void (*rx)(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);
	void (*metrics)(struct sim *sim,
			void (*put)(void *arg, const char *name, double value), void *arg);
	bool packetless;
};

extern const struct sim_transport sim_homa, sim_pfabric, sim_phost, sim_pias, sim_ndp,
	sim_dctcp, sim_tcp, sim_tas, sim_oracle;
/** sim_transports - all of them, NULL-terminated (transports.c) */
extern const struct sim_transport *const sim_transports[];

#endif
