/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reading the unloaded round-trip times that slowdowns are divided by: the
 * "unloaded" list of a result of `homa-bench client --unloaded`, or a list of
 * the same form that merges several (the best of any transport, per size).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "bench_stats.h"

static int add_point(struct bench_denominators *d, double size, double rtt,
		     const char *path, char *err, size_t errlen)
{
	if (d->count == BENCH_MAX_SIZES * 4) {
		snprintf(err, errlen, "%s: more than %d sizes", path,
			 BENCH_MAX_SIZES * 4);
		return -EINVAL;
	}
	if (!(size >= 1) || !(rtt > 0)) {
		snprintf(err, errlen,
			 "%s: entry %u of \"unloaded\" has no positive size and p50_ns",
			 path, d->count);
		return -EINVAL;
	}
	if (d->count && size <= d->sizes[d->count - 1]) {
		snprintf(err, errlen,
			 "%s: sizes of \"unloaded\" must increase (%.0f after %.0f)",
			 path, size, d->sizes[d->count - 1]);
		return -EINVAL;
	}
	d->sizes[d->count] = size;
	d->rtt_ns[d->count++] = rtt;
	return 0;
}

int bench_denominators_load(struct bench_denominators *d, const char *path,
			    char *err, size_t errlen)
{
	const cJSON *list, *item;
	cJSON *json;
	int ret;

	d->count = 0;
	ret = homa_json_read(&json, path, err, errlen);
	if (ret)
		return ret;
	list = cJSON_GetObjectItemCaseSensitive(json, "unloaded");
	if (!cJSON_IsArray(list) || !list->child) {
		snprintf(err, errlen,
			 "%s: no \"unloaded\" list in it; make one with 'homa-bench client --unloaded --json %s'",
			 path, path);
		ret = -EINVAL;
	}
	for (item = ret ? NULL : list->child; item && !ret; item = item->next)
		ret = add_point(d, homa_json_number(item, "size", 0),
				homa_json_number(item, "p50_ns", 0), path, err,
				errlen);
	cJSON_Delete(json);
	return ret;
}
