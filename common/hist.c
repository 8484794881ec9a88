/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The histogram's slow side: memory, merging, percentiles. See hist.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "hist.h"

int homa_hist_init(struct homa_hist *h)
{
	h->counts = calloc(HOMA_HIST_BUCKETS, sizeof(*h->counts));
	h->count = 0;
	h->sum = 0;
	h->min = UINT64_MAX;
	h->max = 0;
	return h->counts ? 0 : -ENOMEM;
}

void homa_hist_free(struct homa_hist *h)
{
	free(h->counts);
	h->counts = NULL;
	h->count = 0;
}

void homa_hist_merge(struct homa_hist *into, const struct homa_hist *from)
{
	uint32_t i, last;

	if (!from->count)
		return;
	last = homa_hist_index(from->max);
	for (i = homa_hist_index(from->min); i <= last; i++)
		into->counts[i] += from->counts[i];
	into->count += from->count;
	into->sum += from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t homa_hist_percentile(const struct homa_hist *h, double percent)
{
	uint64_t wanted, seen = 0, value;
	uint32_t i, last;

	if (!h->count)
		return 0;
	if (percent <= 0)
		return h->min;
	/* The small shift keeps 99.9 % of 1,000 values at 999 of them. */
	wanted = (uint64_t)ceil(percent / 100 * (double)h->count - 1e-6);
	if (wanted < 1)
		wanted = 1;
	last = homa_hist_index(h->max);
	for (i = homa_hist_index(h->min); i <= last; i++) {
		seen += h->counts[i];
		if (seen >= wanted) {
			value = homa_hist_value(i + 1) - 1;
			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}

double homa_hist_mean(const struct homa_hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
