/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A run with its traffic, from beginning to end, for tests. */
#ifndef SIM_TEST_TRAFFIC_RUN_H
#define SIM_TEST_TRAFFIC_RUN_H

#include "unit.h"

#include "traffic.h"

/** traffic_begin() - a simulation whose traffic is planned; @tap may be NULL */
static inline struct sim *traffic_begin(const struct sim_config *cfg,
					struct sim_tap *tap)
{
	char err[256] = "";
	struct sim *sim = sim_new(cfg, err, sizeof(err));

	if (!sim || sim_traffic_start(sim, err, sizeof(err)))
		fail_msg("%s", err);
	if (tap) {
		tap->next = sim->taps;
		sim->taps = tap;
	}
	return sim;
}

/** traffic_run() - all of it, until nothing more is measured */
static inline void traffic_run(struct sim *sim)
{
	while (!sim->stop)
		sim_run(sim, sim->now + 100 * SIM_US);
	sim_traffic_finish(sim);
}

static inline void traffic_end(struct sim *sim)
{
	sim_traffic_free(sim);
	sim_free(sim);
}

#endif
