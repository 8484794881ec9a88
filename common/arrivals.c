/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Poisson arrivals; see arrivals.h. Each arrival uses exactly three draws, so
 * the sizes and peers of a stream do not change when only the rate does.
 */
#include "arrivals.h"

void homa_arrivals_init(struct homa_arrivals *a,
			const struct homa_workload *workload, double gap_ns,
			uint32_t peers, uint64_t seed, uint32_t host)
{
	homa_prng_seed(&a->rng, seed, host);
	a->workload = workload;
	a->gap_ns = gap_ns;
	a->at_ns = 0;
	a->peers = peers;
}

void homa_arrivals_next(struct homa_arrivals *a, struct homa_arrival *arrival)
{
	double u, who;

	/* A closed loop draws too, but spares itself the logarithm. */
	if (a->gap_ns > 0)
		a->at_ns += homa_prng_exp(&a->rng, a->gap_ns);
	else
		homa_prng_next(&a->rng);
	u = homa_prng_double(&a->rng);
	who = homa_prng_double(&a->rng);
	arrival->at_ns = (uint64_t)a->at_ns;
	arrival->size = homa_workload_size(a->workload, u);
	arrival->decile = homa_decile(u);
	arrival->quantile = u;
	arrival->peer = (uint32_t)(who * a->peers);
}
