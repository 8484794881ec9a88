/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * xoshiro256** seeded by splitmix64; see prng.h. Seed and stream are mixed
 * separately, so that host 1 with seed 2 shares nothing with host 2, seed 1.
 */

#include "prng.h"
#include "samemath.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void homa_prng_seed(struct homa_prng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t state = splitmix64(&seed);
	int i;

	state ^= rotl(splitmix64(&stream), 17);
	for (i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&state);
}

uint64_t homa_prng_next(struct homa_prng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

double homa_prng_double(struct homa_prng *rng)
{
	return (double)(homa_prng_next(rng) >> 11) * 0x1p-53;
}

double homa_prng_exp(struct homa_prng *rng, double mean)
{
	/* 1 - u is in (0, 1], so the logarithm is finite. */
	return -mean * homa_log(1.0 - homa_prng_double(rng)) + 1e-9;
}

uint32_t homa_prng_below(struct homa_prng *rng, uint32_t n)
{
	/* Lemire's multiply-shift; rejects the few values that would bias. */
	uint64_t m = (homa_prng_next(rng) >> 32) * n;
	uint32_t threshold;

	if ((uint32_t)m < n) {
		threshold = -n % n;
		while ((uint32_t)m < threshold)
			m = (homa_prng_next(rng) >> 32) * n;
	}
	return m >> 32;
}
