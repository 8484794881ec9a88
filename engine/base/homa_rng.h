/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Random numbers that a seed determines: simulations and failed tests can be
 * repeated. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); not for secrets, for
 * each number tells all that follow.
 *
 * Guarded by: the owner, who lets one thread at a time draw.
 */
#ifndef HOMA_RNG_H
#define HOMA_RNG_H

#include "homa_hash.h"

struct homa_rng {
	/* The state, which any value may be; each draw changes it. */
	u64 state;
};

static inline void homa_rng_init(struct homa_rng *rng, u64 seed)
{
	rng->state = seed;
}

static inline u64 homa_rng_next(struct homa_rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ull;
	return homa_hash_mix(rng->state);
}

/** homa_rng_below() - a random number below @n, which is not 0; its bias is below n / 2^32 */
static inline u32 homa_rng_below(struct homa_rng *rng, u32 n)
{
	return (u32)(((homa_rng_next(rng) >> 32) * n) >> 32);
}

#endif
