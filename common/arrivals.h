/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Open-loop arrivals: when which host sends a message of which size to whom,
 * as a Poisson process. They depend on the seed, the host's index, the
 * workload, the rate and the number of peers, and on nothing that a transport
 * does; so every transport meets the same arrivals.
 */
#ifndef HOMA_ARRIVALS_H
#define HOMA_ARRIVALS_H

#include <stdint.h>

#include "prng.h"
#include "workload.h"

/**
 * struct homa_arrival - one message to send
 * @at_ns: when, ns since the start of the process; never decreases.
 * @size: bytes.
 * @peer: 0 .. peers - 1, uniform.
 * @decile: tenth of all messages by size that it belongs to, 0..9.
 * @quantile: its place among all messages by size, the draw itself, 0 .. 1.
 */
struct homa_arrival {
	uint64_t at_ns;
	uint32_t size;
	uint32_t peer;
	uint32_t decile;
	double quantile;
};

/** struct homa_arrivals - one host's stream; the workload must outlive it */
struct homa_arrivals {
	/* Generator of all that is drawn at random here. */
	struct homa_prng rng;
	/* Distribution of the messages' sizes. */
	const struct homa_workload *workload;
	/* Mean time between two arrivals, ns; 0: @at_ns stays 0. */
	double gap_ns;
	/* Time of the last arrival, ns since the start of the process. */
	double at_ns;
	/* Number of hosts to choose from, at least 1. */
	uint32_t peers;
};

/**
 * homa_arrivals_init() - start a stream
 * @gap_ns: mean time between two arrivals, ns; 0: at_ns stays 0 (closed loop,
 *	where only sizes and peers are wanted).
 * @peers: how many hosts to choose from, >= 1.
 * @seed, @host: the experiment's seed and this host's index in it.
 */
void homa_arrivals_init(struct homa_arrivals *a,
			const struct homa_workload *workload, double gap_ns,
			uint32_t peers, uint64_t seed, uint32_t host);

/** homa_arrivals_next() - the next message */
void homa_arrivals_next(struct homa_arrivals *a, struct homa_arrival *arrival);

#endif
