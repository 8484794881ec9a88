/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Histograms as JSON: a summary for people, and the buckets in use, from which
 * a reader can rebuild and merge them without loss.
 */
#include <errno.h>
#include <math.h>

#include "json.h"

cJSON *homa_json_summary(const struct homa_hist *h, double scale)
{
	static const struct {
		/* Name of the percentile in the JSON. */
		const char *name;
		/* The percentile, 0 to 100. */
		double percent;
	} wanted[] = {
		{ "p50", 50 },
		{ "p90", 90 },
		{ "p99", 99 },
		{ "p999", 99.9 },
	};
	int digits = scale == 1 ? 1 : 3;
	cJSON *json = cJSON_CreateObject();
	size_t i;

	cJSON_AddNumberToObject(json, "count", (double)h->count);
	if (!h->count)
		return json;
	homa_json_round(json, "mean", homa_hist_mean(h) / scale, digits);
	homa_json_round(json, "min", (double)h->min / scale, digits);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		uint64_t value = homa_hist_percentile(h, wanted[i].percent);

		homa_json_round(json, wanted[i].name, (double)value / scale,
				digits);
	}
	homa_json_round(json, "max", (double)h->max / scale, digits);
	return json;
}

cJSON *homa_json_hist(const struct homa_hist *h)
{
	cJSON *json = cJSON_CreateObject();
	cJSON *values = cJSON_AddArrayToObject(json, "values");
	cJSON *counts = cJSON_AddArrayToObject(json, "counts");
	uint32_t i, last;

	cJSON_AddNumberToObject(json, "count", (double)h->count);
	cJSON_AddNumberToObject(json, "sum", (double)h->sum);
	if (!h->count)
		return json;
	cJSON_AddNumberToObject(json, "min", (double)h->min);
	cJSON_AddNumberToObject(json, "max", (double)h->max);
	last = homa_hist_index(h->max);
	for (i = homa_hist_index(h->min); i <= last; i++) {
		if (!h->counts[i])
			continue;
		cJSON_AddItemToArray(values, cJSON_CreateNumber(
						     (double)homa_hist_value(i)));
		cJSON_AddItemToArray(counts,
				     cJSON_CreateNumber((double)h->counts[i]));
	}
	return json;
}

/* A non-negative whole number that a double holds exactly. */
static int is_whole(const cJSON *item)
{
	return cJSON_IsNumber(item) && item->valuedouble >= 0 &&
	       item->valuedouble <= 0x1p63 &&
	       item->valuedouble == floor(item->valuedouble);
}

int homa_json_hist_read(struct homa_hist *h, const cJSON *json)
{
	const cJSON *values = cJSON_GetObjectItemCaseSensitive(json, "values");
	const cJSON *counts = cJSON_GetObjectItemCaseSensitive(json, "counts");
	const cJSON *sum = cJSON_GetObjectItemCaseSensitive(json, "sum");
	const cJSON *min = cJSON_GetObjectItemCaseSensitive(json, "min");
	const cJSON *max = cJSON_GetObjectItemCaseSensitive(json, "max");
	const cJSON *v, *c;
	double total = 0;

	if (!cJSON_IsArray(values) || !cJSON_IsArray(counts) || !is_whole(sum))
		return -EINVAL;
	for (v = values->child, c = counts->child; v && c;
	     v = v->next, c = c->next) {
		if (!is_whole(v) || !is_whole(c))
			return -EINVAL;
		total += c->valuedouble;
	}
	if (v || c || total != homa_json_number(json, "count", -1))
		return -EINVAL;
	if (total == 0)
		return 0;
	if (!is_whole(min) || !is_whole(max) ||
	    min->valuedouble > max->valuedouble)
		return -EINVAL;
	for (v = values->child, c = counts->child; v; v = v->next, c = c->next) {
		uint64_t value = (uint64_t)v->valuedouble;

		/* The ends are known exactly, the bucket's floor may lie below. */
		if (homa_hist_index(value) <
			    homa_hist_index((uint64_t)min->valuedouble) ||
		    homa_hist_index(value) >
			    homa_hist_index((uint64_t)max->valuedouble))
			return -EINVAL;
	}
	for (v = values->child, c = counts->child; v; v = v->next, c = c->next)
		h->counts[homa_hist_index((uint64_t)v->valuedouble)] +=
			(uint64_t)c->valuedouble;
	h->count += (uint64_t)total;
	h->sum += (uint64_t)sum->valuedouble;
	if ((uint64_t)min->valuedouble < h->min)
		h->min = (uint64_t)min->valuedouble;
	if ((uint64_t)max->valuedouble > h->max)
		h->max = (uint64_t)max->valuedouble;
	return 0;
}
