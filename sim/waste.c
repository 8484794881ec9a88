// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bandwidth that a receiver wastes by withholding grants while its downlink is idle.
 */
#include "sim.h"

/*
 * Brings host->waste_ps up to date. The downlink is idle from the end of its last
 * transmission until the next begins. The part of that time after withheld_at, since which
 * the count of withheld messages is unchanged, is waste if the count is not 0.
 */
static void until_now(struct sim *sim, struct sim_host *host)
{
	u64 from = host->withheld_at;

	if (host->down->busy_until > from)
		from = host->down->busy_until;
	if (host->withheld && sim->now > from)
		host->waste_ps += sim->now - from;
	host->withheld_at = sim->now;
}

void sim_withheld(struct sim *sim, struct sim_host *host, u32 n)
{
	if (n == host->withheld)
		return;
	until_now(sim, host);
	host->withheld = n;
}

void sim_downlink_starts(struct sim *sim, struct sim_host *host)
{
	until_now(sim, host);
}
