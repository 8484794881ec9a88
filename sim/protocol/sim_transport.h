/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a protocol offers to the simulator. One file (or a few) per protocol;
 * transports.c lists them. Each file begins with a comment that says where the
 * protocol is described, its parameters with their source, and where the model
 * simplifies.
 */
#ifndef SIM_TRANSPORT_H
#define SIM_TRANSPORT_H

#include "sim.h"

/** struct sim_option - a setting of a protocol: cfg.option[index in the table] */
struct sim_option {
	const char *name;
	u64 def, min, max;
	const char *unit;
	const char *text; /* with its source */
};

/**
 * struct sim_transport - a protocol
 * @name: as in --protocol. @title: as in figures. @text: one line for --help.
 * @options: ends with a NULL name; NULL: none.
 * @presets: NULL-terminated names, the first is the default; NULL: none.
 * @defaults: what the protocol wants of the network (queue discipline,
 *	buffers, marking, balance) and its settings; before the user's flags.
 *	cfg->preset is set. -EINVAL: no such preset.
 * @set: a setting that is not in @options (the engine's); -EINVAL. May be NULL.
 * @start: allocate per-host state (sim->hosts[i].proto); 0 or negative errno.
 * @stop: free everything, also with messages and packets still about.
 * @send: a message to send, at msg->src; take a reference while it is kept.
 *	Must lead to sim_port_kick(sim, host->up) if there is something to send.
 * @tx: the host's port is free: the next packet to send, or NULL.
 *	sim->now is the time; the transport fills in everything but times.
 *	If NULL is returned the port asks again only after a kick.
 * @rx: a packet for this host, after the host's receive delay; consumes it
 *	(sim_pkt_free() or reuse). May kick the port.
 * @metrics: counters for the report: calls @put(arg, name, value). May be NULL.
 * @packetless: it moves no packets (the oracle); @tx and @rx are NULL.
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
