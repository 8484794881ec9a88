/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Seedable random numbers for experiments: the same seed gives the same
 * arrivals on every machine and for every transport, which is what makes two
 * runs comparable. xoshiro256** (Blackman and Vigna, "Scrambled linear
 * pseudorandom number generators", 2018), seeded by splitmix64. Not for
 * anything that an adversary must not guess.
 */
#ifndef HOMA_PRNG_H
#define HOMA_PRNG_H

#include <stdint.h>

/** struct homa_prng - state of one generator; one thread uses it at a time */
struct homa_prng {
	/* State of the generator; not all of it is 0. */
	uint64_t s[4];
};

/**
 * homa_prng_seed() - start a generator
 * @seed: the experiment's seed.
 * @stream: which of the experiment's independent streams (e.g. host index).
 */
void homa_prng_seed(struct homa_prng *rng, uint64_t seed, uint64_t stream);

/** homa_prng_next() - 64 random bits */
uint64_t homa_prng_next(struct homa_prng *rng);

/** homa_prng_double() - uniform in [0, 1), 53 bits */
double homa_prng_double(struct homa_prng *rng);

/** homa_prng_exp() - exponentially distributed with this mean, > 0 */
double homa_prng_exp(struct homa_prng *rng, double mean);

/** homa_prng_below() - uniform in 0 .. n - 1, without bias; 0 if n is 0 */
uint32_t homa_prng_below(struct homa_prng *rng, uint32_t n);

#endif
