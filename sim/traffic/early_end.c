// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs that need not go on to their end, because what is asked of them is known
 * before: whether the network carries a load.
 */
#include "sim_stats.h"
#include "traffic_impl.h"

#define UNSTABLE_AFTER (SIM_SAMPLES / 4)
#define UNSTABLE_SHARE 0.08

/* Does the protocol fall behind by so much that the rest of the window cannot make up for
 * it? */
static bool hopeless(const struct sim *sim)
{
	const struct sim_traffic *t = sim->traffic;
	double seconds = (double)(sim->now - t->opened_at) / SIM_S;
	double offered = (double)t->offered.payload / seconds;
	struct sim_trend trend;

	if (sim->stats->samples < UNSTABLE_AFTER)
		return false;
	if (t->load.wire_load > 1)
		return true;
	sim_stats_trend(sim->stats, sim->stats->reference, &trend);
	return trend.growth > UNSTABLE_SHARE * offered &&
	       (sim->stats->reference || trend.end > 2 * trend.start);
}

/*
 * Has the backlog grown by more than asked in the first third of the window, alone and above
 * the oracle's? Both, because who judges takes one or the other (lab/sim/sustain.py). What
 * is offered is taken from the oracle's run, so that it is that of the whole window.
 */
static bool overtaken(const struct sim *sim)
{
	const struct sim_reference *reference = sim->stats->reference;
	double limit = sim->traffic->stop_growth;
	struct sim_trend own, excess;

	if (limit <= 0 || !reference || sim->stats->samples != SIM_FIRST_WINDOW)
		return false;
	sim_stats_trend(sim->stats, NULL, &own);
	sim_stats_trend(sim->stats, reference, &excess);
	return own.growth > limit * reference->offered &&
	       excess.growth > limit * reference->offered;
}

bool sim_traffic_ends_early(const struct sim *sim)
{
	return (sim->traffic->abort_unstable && hopeless(sim)) || overtaken(sim);
}

double sim_traffic_offered(const struct sim *sim)
{
	const struct sim_traffic *t = sim->traffic;

	if (!t->closed || t->closed_at <= t->opened_at)
		return 0;
	return (double)t->offered.payload * SIM_S / (double)(t->closed_at - t->opened_at);
}
