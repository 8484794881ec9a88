/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Message size distributions: W1-W5 of the Homa papers (published quantiles,
 * interpolated log-linearly), a fixed size, or sizes from a CSV file. The load
 * generator and the simulator draw from the same code, so that what is
 * simulated is what is measured. Nothing here does I/O but
 * homa_workload_load_csv(), which has a file of its own.
 */
#ifndef HOMA_WORKLOAD_H
#define HOMA_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

/** The papers cut messages here; larger samples are clamped, not redrawn. */
#define HOMA_WORKLOAD_CUT 1000000u

/** Message-count classes in which results are reported. */
#define HOMA_DECILES 10

/** struct homa_quantile - a point of a cumulative distribution */
struct homa_quantile {
	double probability; /* of a message of at most @bytes */
	double bytes;
};

/** How the distribution goes on between two points. */
enum homa_workload_shape {
	HOMA_WORKLOAD_LOG_LINEAR, /* log of size linear in probability */
	HOMA_WORKLOAD_STEP,	  /* only the points' sizes occur */
};

/**
 * struct homa_workload - a message size distribution
 * @name: "w1" .. "w5", "fixed:N", or the file's name.
 * @shape: see enum homa_workload_shape.
 * @cut: larger samples become this, bytes.
 * @count: points, >= 1, in strictly increasing order of probability except
 *	that the last two may both be 1, of non-decreasing size.
 * @points: the distribution; the last has probability 1.
 * @owned: @points if they are to be freed, else NULL.
 */
struct homa_workload {
	char name[64];
	enum homa_workload_shape shape;
	uint32_t cut;
	uint32_t count;
	const struct homa_quantile *points;
	struct homa_quantile *owned;
};

/**
 * struct homa_wire_format - what carries a message, to count bytes on the wire
 * @mtu: IP MTU.
 * @headers: IP and transport header of each packet, bytes (inside the MTU).
 * @framing: preamble, Ethernet header, FCS, gap: 38.
 * @min_frame: shortest frame including framing: 84.
 */
struct homa_wire_format {
	uint32_t mtu;
	uint32_t headers;
	uint32_t framing;
	uint32_t min_frame;
};

/** Homa's DATA packets over IPv4 and IPv6 at this MTU. */
#define HOMA_WIRE_V4(mtu) ((struct homa_wire_format){ (mtu), 20 + 56, 38, 84 })
#define HOMA_WIRE_V6(mtu) ((struct homa_wire_format){ (mtu), 40 + 56, 38, 84 })

/**
 * homa_workload_parse() - find a distribution by its text form
 * @w: filled in; release with homa_workload_free().
 * @text: "w1" .. "w5" (any case), "fixed:N", or else the path of a CSV file.
 * @cut: largest message, usually HOMA_WORKLOAD_CUT.
 * @err: receives one sentence on failure: what is wrong and how to mend it.
 *
 * Return: 0, -EINVAL (nonsense), -ENOENT or another errno from opening the
 * file, -ENOMEM.
 */
int homa_workload_parse(struct homa_workload *w, const char *text, uint32_t cut,
			char *err, size_t errlen);

/** homa_workload_free() - release; harmless on an all-zero workload */
void homa_workload_free(struct homa_workload *w);

/**
 * homa_workload_load_csv() - read sizes from a file
 * One size per line (each equally likely), or "size_bytes,cumulative_probability"
 * lines with both columns increasing and the last probability 1. Blank lines,
 * lines starting with '#', and a header line are skipped.
 * Return and @err: as homa_workload_parse(); @err has file, line and reason.
 */
int homa_workload_load_csv(struct homa_workload *w, const char *path,
			   uint32_t cut, char *err, size_t errlen);

/**
 * homa_workload_size() - the smallest size whose cumulative probability is at
 * least @u (0 <= u < 1), after the cut; bytes, at least 1
 */
uint32_t homa_workload_size(const struct homa_workload *w, double u);

/** homa_workload_mean() - mean size after the cut, bytes (closed form) */
double homa_workload_mean(const struct homa_workload *w);

/** homa_workload_wire_mean() - mean bytes on the wire per message */
double homa_workload_wire_mean(const struct homa_workload *w,
			       const struct homa_wire_format *format);

/** homa_workload_is_fixed() - do all messages have one size? */
int homa_workload_is_fixed(const struct homa_workload *w);

/** homa_wire_bytes() - bytes on the wire of one message of @size bytes */
uint64_t homa_wire_bytes(uint32_t size, const struct homa_wire_format *format);

/** homa_decile() - which tenth of all messages the draw @u belongs to, 0..9 */
static inline uint32_t homa_decile(double u)
{
	uint32_t d = (uint32_t)(u * HOMA_DECILES);

	return d < HOMA_DECILES ? d : HOMA_DECILES - 1;
}

/** homa_workload_table() - a built-in distribution by name, or NULL */
const struct homa_quantile *homa_workload_table(const char *name,
						uint32_t *count);

#endif
