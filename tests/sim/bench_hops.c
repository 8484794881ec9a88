// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the network costs without a protocol: random packets at some load on
 * the 144-host network (or a fat tree), nanoseconds of wall time per packet
 * and link and per event.
 *
 *	sim_hops [percent] [simulated us] [fat tree's k]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "blast.h"

static double wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	u32 percent = argc > 1 ? (u32)atoi(argv[1]) : 80;
	u64 until = (argc > 2 ? strtoull(argv[2], NULL, 10) : 5000) * SIM_US;
	struct sim_config cfg;
	struct sim *sim;
	double begun, ns;

	sim_config_default(&cfg);
	if (argc > 3) {
		cfg.topology = SIM_FAT_TREE;
		cfg.k = (u32)atoi(argv[3]);
		cfg.hosts = 0;
	}
	sim = blast_new(&cfg);
	if (!sim || !percent)
		return 1;
	blast_load(sim, percent, until);
	begun = wall_ns();
	sim_run(sim, SIM_NEVER);
	ns = wall_ns() - begun;
	printf("%llu packets, %llu hops, %llu events: %.1f ns a hop, %.1f ns an event, %.1f simulated ms/s\n",
	       (unsigned long long)sim->counts.pkts_sent,
	       (unsigned long long)sim->counts.hops,
	       (unsigned long long)sim->counts.events,
	       ns / (double)sim->counts.hops, ns / (double)sim->counts.events,
	       (double)sim->now / ns);
	printf("drops %llu, live %llu, simulated %.3f ms\n",
	       (unsigned long long)sim->counts.pkts_dropped,
	       (unsigned long long)sim->counts.pkts_live, (double)sim->now / 1e9);
	sim_free(sim);
	return 0;
}
