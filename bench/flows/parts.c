/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The window in parts of equal length, each with the latencies of what was answered in it. */
#include <errno.h>
#include <stdlib.h>

#include "flow_load.h"

int flows_parts_init(const struct flows_config *config,
		     struct flows_result *result)
{
	uint32_t n;

	if (!config->part_ns)
		return 0;
	n = (uint32_t)((config->duration_ns + config->part_ns - 1) /
		       config->part_ns);
	result->parts = calloc(n, sizeof(*result->parts));
	if (!result->parts)
		return -ENOMEM;
	for (; result->nparts < n; result->nparts++) {
		int rc = homa_hist_init(&result->parts[result->nparts]);

		if (rc)
			return rc;
	}
	return 0;
}

void flows_parts_free(struct flows_result *result)
{
	for (uint32_t i = 0; i < result->nparts; i++)
		homa_hist_free(&result->parts[i]);
	free(result->parts);
}

void flows_parts_record(const struct flows_config *config,
			struct flows_result *result, uint64_t since_ns,
			uint64_t latency_ns)
{
	/* The window closes when the client looks at the clock, so an answer can come just behind
	 * its last part. */
	if (config->part_ns && since_ns / config->part_ns < result->nparts)
		homa_hist_record(&result->parts[since_ns / config->part_ns],
				 latency_ns);
}
