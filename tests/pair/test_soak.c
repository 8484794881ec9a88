/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Random worlds: every setting of the harness and many of the protocol are
 * drawn from the seed, then hosts send, abort, close, restart and are cut off.
 * Each run draws from seeds that no run had before, from PAIR_SOAK_FIRST on if set, and
 * says which: PAIR_SOAK_COUNT worlds, or as many as PAIR_SOAK_SECONDS of processor time
 * allow (20 if neither is set). A failure prints its seed; PAIR_SEED runs that one alone.
 */
#include <time.h>

#include "pair_test.h"

struct soak {
	bool restarts; /* of servers too: late copies may run twice */
	bool closes;
	u32 gap;
	u32 bits;
};

static void disturb(struct pair_world *w, const struct soak *s)
{
	struct pair_rng *r = &w->rng_test;
	u8 a = (u8)pair_below(r, w->cfg.hosts),
	   b = (u8)pair_below(r, w->cfg.hosts);
	struct pair_rpc *rpc;

	switch (pair_below(r, 40)) {
	case 0:
	case 1:
		if (!w->num_rpcs)
			return;
		rpc = w->book[w->num_rpcs - 1 - pair_below(r, w->num_rpcs) / 4];
		if (rpc->state == PAIR_PENDING &&
		    rpc->client_life == w->hosts[rpc->client].life)
			pair_rpc_abort(w, rpc,
				       pair_chance(r, 500) ? HOMA_EINTR : 0);
		return;
	case 2:
		pair_cut(w, a, b, true);
		return;
	case 3:
	case 4:
		pair_cut(w, a, b, false);
		return;
	case 5:
		if (s->restarts)
			pair_restart(&w->hosts[a]);
		return;
	case 6:
		if (s->closes && w->hosts[a].socks[1].open &&
		    pair_chance(r, 300)) {
			pair_sock_close(&w->hosts[a], 1, 1 + pair_below(r, 5));
		} else if (s->closes && !w->hosts[a].socks[1].sock) {
			pair_sock_open(&w->hosts[a], 0);
		}
		return;
	case 7:
		if (pair_chance(r, 200) && s->closes && w->hosts[a].socks[0].open)
			pair_sock_close(&w->hosts[a], 0, 1 + pair_below(r, 5));
		else if (s->closes && !w->hosts[a].socks[0].sock)
			pair_sock_open(&w->hosts[a], PAIR_SERVER_PORT);
		return;
	default:
		return;
	}
}

/* Log-uniform: lengths of all magnitudes up to 2^@bits. */
static u32 random_length(struct pair_world *w, u32 bits)
{
	return 1 + pair_below(&w->rng_test, 1u << pair_below(&w->rng_test, bits));
}

static void soak_one(u64 seed)
{
	struct pair_rng draw = { .s = pair_mix(seed) };
	struct pair_config cfg;
	struct pair_world *w;
	struct soak s;
	u32 i, j;

	pair_config_default(&cfg);
	cfg.seed = seed;
	pair_draw_config(&draw, &cfg);
	s.restarts = pair_chance(&draw, 300);
	s.closes = pair_chance(&draw, 400);
	s.gap = pair_one_of(&draw, 1000, 100000, 2000000);
	s.bits = 4 + pair_below(&draw, 17);
	/* Hardly more than the longest message needs. */
	if (cfg.pool_pages && pair_chance(&draw, 250))
		cfg.pool_pages = 1 + (1u << s.bits) / HOMA_BPAGE_SIZE +
				 pair_below(&draw, 4);
	w = pair_world_new(&cfg);
	/* What a former server life executed may come again, late. */
	if (s.restarts && (cfg.faults.dup || cfg.faults.reorder))
		w->corrupting = true;
	for (i = 0; i < 120; i++) {
		u8 a = (u8)pair_below(&w->rng_test, cfg.hosts);
		u8 b = (u8)pair_below(&w->rng_test, cfg.hosts);
		u8 sock = pair_chance(&w->rng_test, 200) ? 0 : 1;
		u32 burst = pair_chance(&w->rng_test, 50) ? 20 : 1;

		for (j = 0; j < burst && w->hosts[a].socks[sock].open; j++)
			pair_rpc_start(w, a, sock, b, PAIR_SERVER_PORT,
				       random_length(w, s.bits),
				       random_length(w, s.bits), NULL);
		disturb(w, &s);
		pair_run_for(w, pair_below(&w->rng_test, s.gap));
	}
	pair_check(w, pair_run_while_pending(w, 300 * PAIR_S),
		   "%u of %u never end", w->pending, w->num_rpcs);
	pair_finish(w);
}

static void soak__random_worlds(void **state)
{
	const char *text = getenv("PAIR_SOAK_SECONDS");
	double limit = text ? atof(text) : 20;
	clock_t start = clock();
	/* A million worlds take longer than a second. */
	u64 seed, first = (u64)time(NULL) * 1000000;
	u64 count = 0;

	(void)state;
	if (pair_seed_fixed()) {
		soak_one(pair_seed(0));
		return;
	}
	text = getenv("PAIR_SOAK_FIRST");
	if (text)
		first = strtoull(text, NULL, 0);
	text = getenv("PAIR_SOAK_COUNT");
	if (text)
		count = strtoull(text, NULL, 0);
	print_message("worlds from PAIR_SEED=%llu\n", (unsigned long long)first);
	/* At least some, however slow the machine or the sanitizer. */
	for (seed = first;
	     count ? seed < first + count :
		     seed < first + 20 ||
			     (double)(clock() - start) / CLOCKS_PER_SEC < limit;)
		soak_one(seed++);
	print_message("%llu worlds to PAIR_SEED=%llu\n",
		      (unsigned long long)(seed - first),
		      (unsigned long long)seed - 1);
}

/* What random worlds have found, each of them again. */
static void soak__worlds_that_failed_once(void **state)
{
	static const u64 seeds[] = {
		5032998, /* a copy 0.4 s late of a request asked for again 0.65 s long */
	};
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(seeds) && !pair_seed_fixed(); i++)
		soak_one(seeds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soak__worlds_that_failed_once),
		cmocka_unit_test(soak__random_worlds),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
