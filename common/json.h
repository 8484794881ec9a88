/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * JSON in and out of our tools, over cJSON: files that appear whole or not at
 * all, histograms that merge exactly. Numbers are doubles, so counts are exact
 * up to 2^53.
 */
#ifndef HOMA_JSON_H
#define HOMA_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "hist.h"

/**
 * homa_json_write() - write a document to a file ("-": standard output)
 * Written beside it and renamed, so that a reader never sees half of one.
 * Return: 0 or a negative errno, @err has one sentence.
 */
int homa_json_write(const cJSON *json, const char *path, char *err,
		    size_t errlen);

/**
 * homa_json_read() - read a document from a file
 * @out: receives it; release with cJSON_Delete().
 * Return: 0 or a negative errno, @err has one sentence.
 */
int homa_json_read(cJSON **out, const char *path, char *err, size_t errlen);

/** homa_json_number() - member @name of @object, or @otherwise */
double homa_json_number(const cJSON *object, const char *name, double otherwise);

/**
 * homa_json_round() - add a number of at most @digits decimals
 * A measurement printed with 17 digits reads as if it had them.
 */
void homa_json_round(cJSON *object, const char *name, double value, int digits);

/**
 * homa_json_summary() - {count, mean, p50, p90, p99, p999, min, max}
 * @scale: histogram units per unit shown (1000 for slowdowns kept in 1/1000).
 */
cJSON *homa_json_summary(const struct homa_hist *h, double scale);

/** homa_json_machine() - {cpu, cores, kernel, arch, memory_mib, load_average} of this one */
cJSON *homa_json_machine(void);
/**
 * homa_json_hist() - a histogram as {count, sum, min, max, values[], counts[]}
 * Only buckets in use; values[i] is the smallest value of its bucket.
 */
cJSON *homa_json_hist(const struct homa_hist *h);

/**
 * homa_json_hist_read() - the reverse, added to what @h already holds
 * Return: 0, or -EINVAL and nothing added.
 */
int homa_json_hist_read(struct homa_hist *h, const cJSON *json);

#endif
