/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sampling a size distribution and its means. A sample is the inverse of the
 * cumulative distribution at a uniform draw; keeping the draw lets a result be
 * filed under its decile by message count even where many messages share one
 * size. Means take the cut into account, because the load is computed from
 * them.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "samemath.h"
#include "workload.h"

static int parse_fixed(struct homa_workload *w, const char *text, uint32_t cut,
		       char *err, size_t errlen)
{
	struct homa_quantile *point;
	unsigned long long bytes;
	char *end;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end != '\0' || errno ||
	    bytes < 1 || bytes > cut) {
		snprintf(err, errlen,
			 "fixed message size '%s' is not a number from 1 to %u",
			 text, cut);
		return -EINVAL;
	}
	point = malloc(sizeof(*point));
	if (!point)
		return -ENOMEM;
	point->probability = 1;
	point->bytes = (double)bytes;
	snprintf(w->name, sizeof(w->name), "fixed:%llu", bytes);
	w->shape = HOMA_WORKLOAD_STEP;
	w->count = 1;
	w->points = w->owned = point;
	return 0;
}

/* Is this meant to be a file rather than a misspelt name? */
static int looks_like_path(const char *text)
{
	size_t len = strlen(text);

	return strchr(text, '/') ||
	       (len > 4 && strcasecmp(text + len - 4, ".csv") == 0);
}

int homa_workload_parse(struct homa_workload *w, const char *text, uint32_t cut,
			char *err, size_t errlen)
{
	const struct homa_quantile *table;
	int ret;

	memset(w, 0, sizeof(*w));
	w->cut = cut;
	table = homa_workload_table(text, &w->count);
	if (table) {
		snprintf(w->name, sizeof(w->name), "w%c", text[1]);
		w->shape = HOMA_WORKLOAD_LOG_LINEAR;
		w->points = table;
		return 0;
	}
	if (strncmp(text, "fixed:", 6) == 0)
		ret = parse_fixed(w, text + 6, cut, err, errlen);
	else
		ret = homa_workload_load_csv(w, text, cut, err, errlen);
	if (ret == -ENOENT && !looks_like_path(text))
		snprintf(err, errlen,
			 "unknown workload '%s': use w1, w2, w3, w4, w5, fixed:BYTES or the name of a CSV file",
			 text);
	return ret;
}

void homa_workload_free(struct homa_workload *w)
{
	free(w->owned);
	w->owned = NULL;
	w->points = NULL;
	w->count = 0;
}

/* Index of the first point whose probability is at least @u. */
static uint32_t find_point(const struct homa_workload *w, double u)
{
	uint32_t lo = 0, hi = w->count - 1;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (w->points[mid].probability >= u)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

uint32_t homa_workload_size(const struct homa_workload *w, double u)
{
	uint32_t i = find_point(w, u);
	const struct homa_quantile *b = &w->points[i];
	const struct homa_quantile *a = i ? b - 1 : b;
	double bytes = b->bytes;

	if (w->shape == HOMA_WORKLOAD_LOG_LINEAR && a->bytes < b->bytes &&
	    a->probability < b->probability) {
		double f =
			(u - a->probability) / (b->probability - a->probability);

		bytes = rint(a->bytes *
			     homa_exp(f * homa_log(b->bytes / a->bytes)));
	}
	if (bytes >= w->cut)
		return w->cut;
	return bytes < 1 ? 1 : (uint32_t)bytes;
}

/* Mean size between two points, times the probability between them. */
static double segment_mean(const struct homa_quantile *a,
			   const struct homa_quantile *b, double cut)
{
	double p = b->probability - a->probability;
	double growth, below;

	if (a->bytes >= cut)
		return p * cut;
	if (a->bytes == b->bytes)
		return p * b->bytes;
	/* size = a e^(f ln(b/a)); its integral over f is (b - a) / ln(b/a). */
	growth = homa_log(b->bytes / a->bytes);
	if (b->bytes <= cut)
		return p * (b->bytes - a->bytes) / growth;
	below = homa_log(cut / a->bytes) / growth;
	return p * ((cut - a->bytes) / growth + (1 - below) * cut);
}

double homa_workload_mean(const struct homa_workload *w)
{
	double mean = 0, before = 0;
	uint32_t i;

	if (w->shape == HOMA_WORKLOAD_LOG_LINEAR) {
		for (i = 1; i < w->count; i++)
			mean += segment_mean(&w->points[i - 1], &w->points[i],
					     w->cut);
		return mean;
	}
	for (i = 0; i < w->count; i++) {
		mean += (w->points[i].probability - before) *
			fmin(w->points[i].bytes, w->cut);
		before = w->points[i].probability;
	}
	return mean;
}

uint64_t homa_wire_bytes(uint32_t size, const struct homa_wire_format *format)
{
	uint32_t payload = format->mtu - format->headers;
	uint64_t full = size / payload;
	uint32_t rest = size % payload;
	uint64_t bytes = full * (format->mtu + format->framing);
	uint32_t last;

	if (rest) {
		last = rest + format->headers + format->framing;
		bytes += last < format->min_frame ? format->min_frame : last;
	}
	return bytes;
}

double homa_workload_wire_mean(const struct homa_workload *w,
			       const struct homa_wire_format *format)
{
	/* Packets make steps of the curve: average over many draws of each segment. */
	enum { DRAWS = 4096 };
	double mean = 0, before = 0, sum;
	uint32_t i, k;

	for (i = 0; i < w->count; i++) {
		double p = w->points[i].probability;

		if (p <= before)
			continue;
		sum = 0;
		if (w->shape == HOMA_WORKLOAD_STEP) {
			sum = (double)homa_wire_bytes(homa_workload_size(w, p),
						      format);
		} else {
			for (k = 0; k < DRAWS; k++) {
				double u = before +
					   (p - before) * (k + 0.5) / DRAWS;

				sum += (double)
					homa_wire_bytes(homa_workload_size(w, u),
							format);
			}
			sum /= DRAWS;
		}
		mean += (p - before) * sum;
		before = p;
	}
	return mean;
}

int homa_workload_is_fixed(const struct homa_workload *w)
{
	return homa_workload_size(w, 0) == homa_workload_size(w, 1);
}
