// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Why short messages are late, as in Figure 11 of the SIGCOMM'18 study: of the
 * shortest fifth of all messages (and of these, the ones that fit one packet),
 * take those whose slowdown lies between the 98th and the 99.5th percentile,
 * and average what they waited for: packets that were rightly served first,
 * and the rest of packets that were under way and should have been served
 * later, which is the lag of preemption.
 *
 * Which messages these are is known only at the end. So the sums are kept per
 * bucket of a histogram of slowdowns, which is as good as keeping messages:
 * slowdowns in a bucket differ by less than 0.1 %.
 */
#include <stdlib.h>

#include "sim_stats.h"

#define FROM_PERCENT 98.0
#define TO_PERCENT 99.5
#define BUCKETS (16u * 1024) /* slowdowns up to 33,000; beyond, the last one */

struct cause {
	/* Number of messages in the bucket. */
	u64 count;
	/* Sums over these messages: how late they were, how long they waited for packets that
	 * rightly went first, and for the rest of packets that were under way, ps. */
	u64 late_ps, wait_ps, lag_ps;
};

struct sim_causes {
	/* Number of messages in all buckets. */
	u64 count;
	/* Sums by slowdown, the last bucket for all beyond. */
	struct cause at[BUCKETS];
};

struct sim_causes *sim_causes_new(void)
{
	return calloc(1, sizeof(struct sim_causes));
}

void sim_causes_free(struct sim_causes *causes)
{
	free(causes);
}

void sim_causes_add(struct sim_causes *causes, u64 slowdown, u64 late_ps,
		    const struct sim_msg *last)
{
	u32 index = homa_hist_index(slowdown);
	struct cause *cause = &causes->at[index < BUCKETS ? index : BUCKETS - 1];

	causes->count++;
	cause->count++;
	cause->late_ps += late_ps;
	cause->wait_ps += last->wait_ps;
	cause->lag_ps += last->lag_ps;
}

cJSON *sim_causes_json(const struct sim_causes *causes)
{
	double from = (double)causes->count * FROM_PERCENT / 100;
	double to = (double)causes->count * TO_PERCENT / 100;
	double before = 0, n = 0, late = 0, wait = 0, lag = 0;
	cJSON *json = cJSON_CreateObject();
	u32 i;

	for (i = 0; i < BUCKETS && before < to; i++) {
		const struct cause *cause = &causes->at[i];
		double count = (double)cause->count;
		double first = from > before ? from - before : 0;
		double last = to - before < count ? to - before : count;
		double share;

		before += count;
		if (last <= first)
			continue;
		/* A bucket across a percentile counts in part. */
		share = (last - first) / count;
		n += last - first;
		late += share * (double)cause->late_ps;
		wait += share * (double)cause->wait_ps;
		lag += share * (double)cause->lag_ps;
	}
	homa_json_round(json, "messages", n, 1);
	if (n <= 0)
		return json;
	homa_json_round(json, "late_us", late / n / SIM_US, 4);
	homa_json_round(json, "wait_us", (wait - lag) / n / SIM_US, 4);
	homa_json_round(json, "lag_us", lag / n / SIM_US, 4);
	homa_json_round(json, "share_lag", wait > 0 ? lag / wait : 0, 4);
	return json;
}
