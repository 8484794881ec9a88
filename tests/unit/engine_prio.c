/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_prio.c: the published workloads go in, and what a sender
 * that obeys the cutoffs would put on each level is counted.
 */
#include "engine_bed.h"
#include "engine_world.h"

#include "workload.h"

#define SECOND 1000000000ull

/* Level of @size by the rule of the wire format. */
static u32 level_of(const struct homa_engine *engine, u32 size)
{
	u32 i;

	for (i = HOMA_PRIORITIES - 1; i > 0; i--)
		if (engine->prio.cutoffs[i] >= size)
			return i;
	return 0;
}

/*
 * One message sent: unscheduled bytes at its beginning and, if asked for, at
 * its end, to the levels of their packets.
 */
static void send(const struct homa_engine *engine, u32 rtt, u32 length, u64 *bytes)
{
	const struct homa_params *p = &engine->params;
	u32 seg = 1424, at;

	for (at = 0; at < length; at += seg) {
		u32 n = homa_min_u32(seg, length - at);

		if (at >= rtt && (!p->last_rtt_unsched || length - at > rtt))
			continue;
		bytes[level_of(engine, p->prio_by_remaining ? length - at : length)] +=
			n;
	}
}

static void learn(struct world *w, const struct homa_workload *load, u32 n,
		  struct homa_rng *rng)
{
	u32 i;

	for (i = 0; i < n; i++)
		homa_prio_saw(&w->ctx,
			      homa_workload_size(load,
						 (double)homa_rng_below(rng,
									1u << 30) /
							 (1u << 30)));
	w->ctx.now += SECOND;
	homa_prio_recompute(&w->ctx, w->link);
}

static void parse(struct homa_workload *load, const char *name)
{
	char err[200];

	assert_int_equal(homa_workload_parse(load, name, HOMA_WORKLOAD_CUT, err,
					     sizeof(err)),
			 0);
}

/* Learn a workload, then see how evenly it loads the unscheduled levels. */
static u32 balance(struct world *w, const char *name, double worst)
{
	struct homa_workload load;
	u64 bytes[HOMA_PRIORITIES] = { 0 }, low = (u64)-1, high = 0;
	u32 levels, i, top = w->engine->params.num_priorities;
	struct homa_rng rng;

	parse(&load, name);
	homa_rng_init(&rng, unit_seed());
	learn(w, &load, 200000, &rng);
	levels = top > 1 ? top - w->engine->prio.sched_levels : 1;
	for (i = 0; i < 400000; i++)
		send(w->engine, w->link->derived.rtt_bytes,
		     homa_workload_size(&load,
					(double)homa_rng_below(&rng, 1u << 30) /
						(1u << 30)),
		     bytes);
	for (i = 0; i < HOMA_PRIORITIES; i++) {
		if (i < top - levels || i >= top) {
			assert_int_equal(bytes[i], 0);
			continue;
		}
		low = homa_min_u64(low, bytes[i]);
		high = homa_max_u64(high, bytes[i]);
	}
	if ((double)high > worst * (double)low) {
		for (i = 0; i < HOMA_PRIORITIES; i++)
			print_message("%s: level %u: cutoff %u, %llu bytes\n",
				      name, i, w->engine->prio.cutoffs[i],
				      (unsigned long long)bytes[i]);
		fail_msg("%s: levels differ by more than %.1f", name, worst);
	}
	homa_workload_free(&load);
	return levels;
}

static const char *const names[] = { "w1", "w2", "w3", "w4", "w5" };

static void prio_recompute__workloads_load_the_levels_evenly(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct world w;
		u32 levels;

		world_init(&w, 25000, 1500);
		levels = balance(&w, names[i], 2.0);
		assert_true(levels >= 1 && levels <= 7);
		world_free(&w);
	}
}

/* The simulations of SIGCOMM'18 used these numbers of levels. */
static void prio_recompute__sigcomm_splits_of_the_levels(void **state)
{
	static const u32 published[] = { 7, 5, 4, 1, 1 };
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct world w;
		u32 levels;

		world_init(&w, 10000, 1500);
		w.engine->params.last_rtt_unsched = 1;
		w.engine->params.prio_by_remaining = 1;
		w.engine->params.unsched_bytes = 9328;
		homa_link_derive(w.link);
		levels = balance(&w, names[i], 2.0);
		assert_true(levels + 1 >= published[i] &&
			    levels <= published[i] + 1);
		world_free(&w);
	}
}

static void prio_recompute__every_number_of_levels(void **state)
{
	u32 num, unsched;

	(void)state;
	for (num = 1; num <= HOMA_PRIORITIES; num++) {
		for (unsched = 0; unsched < num; unsched++) {
			struct world w;
			u32 levels;

			world_init(&w, 25000, 1500);
			w.engine->params.num_priorities = num;
			w.engine->params.unsched_levels = unsched;
			homa_prio_init(w.engine);
			levels = balance(&w, "w3", 2.5);
			if (unsched)
				assert_int_equal(levels, unsched);
			world_free(&w);
		}
	}
}

/* What every sender needs to choose right, whatever we learned. */
static void check_form(const struct homa_engine *engine)
{
	const struct homa_prio *prio = &engine->prio;
	u32 num = engine->params.num_priorities, i;

	assert_int_equal(prio->cutoffs[0], 0x7fffffff);
	assert_in_range(prio->sched_levels, 1, num);
	for (i = 0; i < HOMA_PRIORITIES; i++) {
		if (i >= num)
			assert_int_equal(prio->cutoffs[i], 0);
		else if (i)
			assert_true(prio->cutoffs[i] <= prio->cutoffs[i - 1]);
	}
	/* The longest message travels on the lowest unscheduled level. */
	assert_int_equal(level_of(engine, 0x7fffffff),
			 num > 1 ? prio->sched_levels : 0);
	for (i = 1; i < 100000; i = i * 3 + 1)
		assert_int_equal(homa_prio_unsched(engine, i),
				 level_of(engine, i));
}

static void prio_init__cutoffs_of_the_linux_module(void **state)
{
	static const u32 expected[] = { 0x7fffffff, 0x7fffffff, 0x7fffffff,
					0x7fffffff, 0x7fffffff, 15000,
					2800,	    200 };
	struct world w;
	u32 num, unsched;

	(void)state;
	world_init(&w, 25000, 1500);
	assert_memory_equal(w.engine->prio.cutoffs, expected, sizeof(expected));
	assert_int_equal(w.engine->prio.sched_levels, 4);
	assert_int_equal(w.engine->prio.version, 1);
	for (num = 1; num <= 8; num++) {
		for (unsched = 0; unsched <= 7; unsched++) {
			w.engine->params.num_priorities = num;
			w.engine->params.unsched_levels = unsched;
			homa_prio_init(w.engine);
			check_form(w.engine);
		}
	}
	world_free(&w);
}

static void prio_recompute__little_traffic_changes_nothing(void **state)
{
	struct homa_workload load;
	struct homa_rng rng;
	struct world w;

	(void)state;
	world_init(&w, 25000, 1500);
	parse(&load, "w1");
	homa_rng_init(&rng, unit_seed());
	learn(&w, &load, 50, &rng);
	assert_int_equal(w.engine->prio.version, 1);
	assert_int_equal(w.ctx.metrics[HOMA_M_cutoff_changes], 0);
	world_free(&w);
}

static void prio_recompute__steady_traffic_changes_once(void **state)
{
	u32 i, n;

	(void)state;
	for (n = 0; n < 5; n++) {
		struct homa_workload load;
		struct homa_rng rng;
		struct world w;

		world_init(&w, 25000, 1500);
		parse(&load, names[n]);
		homa_rng_init(&rng, unit_seed());
		learn(&w, &load, 100000, &rng);
		for (i = 0; i < 20; i++)
			learn(&w, &load, 100000, &rng);
		assert_true(w.engine->prio.version <= 3);
		assert_int_equal(w.engine->prio.version - 1,
				 w.ctx.metrics[HOMA_M_cutoff_changes]);
		check_form(w.engine);
		world_free(&w);
	}
}

static void prio_recompute__follows_a_change_of_workload(void **state)
{
	struct homa_workload load;
	struct homa_rng rng;
	struct world w;
	u32 i;

	(void)state;
	world_init(&w, 25000, 1500);
	homa_rng_init(&rng, unit_seed());
	parse(&load, "fixed:1000000");
	learn(&w, &load, 10000, &rng);
	assert_int_equal(w.engine->prio.sched_levels, 7);
	homa_workload_free(&load);
	parse(&load, "w1");
	for (i = 0; i < 16; i++)
		learn(&w, &load, 10000, &rng);
	homa_workload_free(&load);
	assert_true(w.engine->prio.sched_levels <= 2);
	assert_true(w.engine->prio.version >= 3);
	world_free(&w);
}

static void prio_recompute__not_before_its_time(void **state)
{
	struct world w;
	u32 i;

	(void)state;
	world_init(&w, 25000, 1500);
	homa_prio_recompute(&w.ctx, w.link);
	for (i = 0; i < 1000; i++)
		homa_prio_saw(&w.ctx, 100);
	w.ctx.now += SECOND - 1;
	homa_prio_recompute(&w.ctx, w.link);
	assert_int_equal(w.engine->prio.version, 1);
	w.ctx.now += 1;
	w.engine->params.cutoff_interval_ms = 0;
	homa_prio_recompute(&w.ctx, w.link);
	assert_int_equal(w.engine->prio.version, 1);
	w.engine->params.cutoff_interval_ms = 1000;
	homa_prio_recompute(&w.ctx, w.link);
	assert_int_equal(w.engine->prio.version, 2);
	world_free(&w);
}

static void prio_saw__extreme_lengths(void **state)
{
	static const u32 lengths[] = { 1, 2, 3, 4, 5, 0x7ffffffe, 0x7fffffff };
	struct world w;
	u32 i, n;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		world_init(&w, 25000, 1500);
		w.engine->params.unsched_levels = 7;
		for (n = 0; n < 100000; n++)
			homa_prio_saw(&w.ctx, lengths[i]);
		w.ctx.now += SECOND;
		homa_prio_recompute(&w.ctx, w.link);
		check_form(w.engine);
		world_free(&w);
	}
}

static u64 counted(const struct world *w)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < HOMA_SIZE_BINS; i++)
		sum += w->engine->prio.bins[i];
	return sum;
}

static void prio_saw__contexts_count_when_they_are_full(void **state)
{
	struct homa_ctx other;
	struct world w;
	u32 i;

	(void)state;
	world_init(&w, 25000, 1500);
	homa_ctx_init(&other, w.engine, 1);
	for (i = 1; i < HOMA_CTX_SIZES; i++) {
		homa_prio_saw(&w.ctx, 100);
		homa_prio_saw(&other, 100000);
	}
	assert_int_equal(counted(&w), 0);
	homa_prio_saw(&other, 100000);
	assert_int_equal(counted(&w), HOMA_CTX_SIZES);
	/* Who computes counts its own first. */
	w.ctx.now += SECOND;
	homa_prio_recompute(&w.ctx, w.link);
	assert_int_equal(counted(&w), 2 * HOMA_CTX_SIZES - 1);
	world_free(&w);
}

static void prio_recompute__version_zero_is_skipped(void **state)
{
	struct world w;
	u32 i;

	(void)state;
	world_init(&w, 25000, 1500);
	w.engine->prio.version = 0xffff;
	for (i = 0; i < 1000; i++)
		homa_prio_saw(&w.ctx, 100);
	homa_prio_recompute(&w.ctx, w.link);
	assert_int_equal(w.engine->prio.version, 1);
	world_free(&w);
}

/* Cutoffs that all have agreed on: what homa_engine.h says they are. */
static void set_cutoffs__levels_of_sizes(void **state)
{
	static const u32 sizes[] = { 100, 200, 5000 }, bad[] = { 100, 99 };
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 9, sizes),
			 -HOMA_EINVAL);
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 0, sizes),
			 -HOMA_EINVAL);
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 3, bad), -HOMA_EINVAL);
	assert_false(w.engine->prio.agreed);
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 4, sizes), 0);
	assert_true(w.engine->prio.agreed);
	assert_int_equal(w.engine->prio.sched_levels, 4);
	assert_int_equal(homa_prio_unsched(w.engine, 1), 7);
	assert_int_equal(homa_prio_unsched(w.engine, 100), 7);
	assert_int_equal(homa_prio_unsched(w.engine, 101), 6);
	assert_int_equal(homa_prio_unsched(w.engine, 5000), 5);
	assert_int_equal(homa_prio_unsched(w.engine, 5001), 4);
	assert_int_equal(homa_prio_unsched(w.engine, 0x7fffffff), 4);
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 1, NULL), 0);
	assert_int_equal(homa_prio_unsched(w.engine, 1), 7);
	assert_int_equal(homa_prio_unsched(w.engine, 0x7fffffff), 7);
	assert_int_equal(w.engine->prio.sched_levels, 7);
	w.engine->params.num_priorities = 1;
	assert_int_equal(homa_engine_set_cutoffs(w.engine, 1, NULL), 0);
	assert_int_equal(homa_prio_unsched(w.engine, 5), 0);
	assert_int_equal(w.engine->prio.sched_levels, 1);
	world_free(&w);
}

/* From a sample, they are what the engine chooses when it sees that traffic. */
static void learn_cutoffs__as_from_traffic(void **state)
{
	struct homa_workload load;
	u32 sizes[10000], i;
	struct world a, b;

	(void)state;
	parse(&load, "w3");
	world_init(&a, 10000, 1500);
	world_init(&b, 10000, 1500);
	for (i = 0; i < 10000; i++) {
		sizes[i] = homa_workload_size(&load, (i + 0.5) / 10000);
		homa_prio_saw(&b.ctx, sizes[i]);
	}
	assert_int_equal(homa_engine_learn_cutoffs(&a.ctx, a.link, sizes, 99),
			 -HOMA_EINVAL);
	assert_int_equal(homa_engine_learn_cutoffs(&a.ctx, a.link, sizes, 10000),
			 0);
	b.ctx.now += SECOND;
	homa_prio_recompute(&b.ctx, b.link);
	assert_true(a.engine->prio.agreed && !b.engine->prio.agreed);
	assert_int_equal(a.engine->prio.sched_levels,
			 b.engine->prio.sched_levels);
	assert_memory_equal(a.engine->prio.cutoffs, b.engine->prio.cutoffs,
			    sizeof(a.engine->prio.cutoffs));
	homa_workload_free(&load);
	world_free(&a);
	world_free(&b);
}

/* Requests of 1,000 strangers that are said to be long, or that are; @whole: all packets
 * come. */
static u16 version_after(u32 length, bool whole)
{
	const u32 n = 1000, seg = 1000;
	struct homa_event event;
	struct homa_seeds seeds;
	struct bed b;
	u32 i, at;
	u16 version;

	homa_seeds_fixed(&seeds, 1);
	bed_init(&b, &seeds, n, n);
	for (i = 0; i < n; i++) {
		struct homa_addr from = address(i);

		for (at = 0; at < (whole ? length : seg); at += seg)
			request_part(&b, &from, 1000, length, at, seg);
	}
	b.ctx.now += SECOND;
	homa_prio_recompute(&b.ctx, b.link);
	version = b.engine->prio.version;
	while (homa_event_next(&b.ctx, &event))
		;
	bed_free(&b);
	return version;
}

static void prio_recompute__lengths_that_are_only_said_change_nothing(void **state)
{
	(void)state;
	assert_int_equal(version_after(1000000, false), 1);
	assert_int_equal(version_after(10000, true), 2);
	assert_int_equal(version_after(1000, true), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prio_recompute__workloads_load_the_levels_evenly),
		cmocka_unit_test(prio_recompute__sigcomm_splits_of_the_levels),
		cmocka_unit_test(prio_recompute__every_number_of_levels),
		cmocka_unit_test(prio_init__cutoffs_of_the_linux_module),
		cmocka_unit_test(prio_recompute__little_traffic_changes_nothing),
		cmocka_unit_test(prio_recompute__steady_traffic_changes_once),
		cmocka_unit_test(prio_recompute__follows_a_change_of_workload),
		cmocka_unit_test(prio_recompute__not_before_its_time),
		cmocka_unit_test(prio_saw__extreme_lengths),
		cmocka_unit_test(prio_saw__contexts_count_when_they_are_full),
		cmocka_unit_test(prio_recompute__version_zero_is_skipped),
		cmocka_unit_test(
			prio_recompute__lengths_that_are_only_said_change_nothing),
		cmocka_unit_test(set_cutoffs__levels_of_sizes),
		cmocka_unit_test(learn_cutoffs__as_from_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
