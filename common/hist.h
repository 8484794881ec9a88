/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A histogram of 64-bit values (latencies in ns) with three significant
 * decimal digits over the whole range, in the bucket layout of HdrHistogram
 * (unit 1, 2,048 sub-buckets): log-linear, no value is refused, recording is a
 * count-leading-zeros and an increment. Values in one bucket differ by less
 * than 0.1 %. Merging histograms is exact, so the results of several hosts can
 * be added after the fact.
 */
#ifndef HOMA_HIST_H
#define HOMA_HIST_H

#include <stdint.h>

/** Buckets for every 64-bit value. */
#define HOMA_HIST_BUCKETS ((64 - 11 + 2) * 1024)

/**
 * struct homa_hist - a histogram; one thread records at a time
 * @counts: HOMA_HIST_BUCKETS counters, touched lazily.
 * @count: values recorded.
 * @sum: their exact sum (wraps beyond 2^64).
 * @min: smallest, UINT64_MAX if empty.
 * @max: largest, 0 if empty.
 */
struct homa_hist {
	uint64_t *counts;
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
};

/** homa_hist_init() - make an empty histogram. Return: 0 or -ENOMEM */
int homa_hist_init(struct homa_hist *h);

/** homa_hist_free() - release; harmless on an all-zero one */
void homa_hist_free(struct homa_hist *h);

/** homa_hist_index() - the bucket of a value */
static inline uint32_t homa_hist_index(uint64_t value)
{
	uint32_t bucket = 53u - (uint32_t)__builtin_clzll(value | 2047);
	uint32_t sub = (uint32_t)(value >> bucket);

	return (bucket << 10) + sub;
}

/** homa_hist_value() - smallest value of a bucket */
static inline uint64_t homa_hist_value(uint32_t index)
{
	uint32_t bucket = index < 2048 ? 0 : (index >> 10) - 1;

	return (uint64_t)(index - (bucket << 10)) << bucket;
}

/** homa_hist_record_n() - add @n times @value */
static inline void homa_hist_record_n(struct homa_hist *h, uint64_t value,
				      uint64_t n)
{
	h->counts[homa_hist_index(value)] += n;
	h->count += n;
	h->sum += value * n;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/** homa_hist_record() - add @value */
static inline void homa_hist_record(struct homa_hist *h, uint64_t value)
{
	homa_hist_record_n(h, value, 1);
}

/** homa_hist_merge() - add all values of @from to @into, exactly */
void homa_hist_merge(struct homa_hist *into, const struct homa_hist *from);

/**
 * homa_hist_percentile() - the value that @percent of all values do not exceed
 * Like HdrHistogram the highest value of the bucket, but never above the
 * largest recorded; 0 if empty. @percent 0 is the smallest.
 */
uint64_t homa_hist_percentile(const struct homa_hist *h, double percent);

/** homa_hist_mean() - exact mean, 0 if empty */
double homa_hist_mean(const struct homa_hist *h);

#endif
