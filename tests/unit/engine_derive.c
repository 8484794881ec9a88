/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* engine/homa/homa_derive.c: what follows from rate and round trip. */
#include "engine_world.h"

#define US 1000ull
#define MS 1000000ull
#define SECOND 1000000000ull

static void sample(struct world *w, u64 after, u64 ns)
{
	w->ctx.now += after;
	homa_link_rtt_sample(&w->ctx, w->link, ns);
}

static void link_derive__unknown_rate(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 0, 1500);
	assert_int_equal(w.link->sched.ps_per_byte, 0);
	assert_int_equal(w.link->derived.rtt_bytes, 60000);
	assert_int_equal(w.link->derived.max_incoming, 1600000);
	assert_int_equal(w.link->derived.window, 0);
	assert_int_equal(w.link->derived.resend_ns, 5 * MS);
	assert_int_equal(w.link->derived.timeout_ns, 100 * MS);
	world_free(&w);
}

static void link_derive__ten_gigabit(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	/* 0.8 ns a byte, of which 99 % are used. */
	assert_int_equal(w.link->sched.ps_per_byte, 808);
	/* Guess: 4 packets of 1538 bytes and 20 us, 1.25 bytes per ns. */
	assert_in_range(w.link->derived.rtt_bytes, 35500, 36000);
	assert_int_equal(w.link->derived.max_incoming, 400000);
	assert_int_equal(w.link->derived.resend_ns, 5 * MS);
	sample(&w, 1, 12 * US);
	assert_int_equal(w.link->derived.rtt_bytes, 15000 + 4500);
	/* Less to guard against than before the round trip was known. */
	assert_int_equal(w.link->derived.max_incoming, 200000);
	assert_int_equal(w.link->derived.reserved, 0);
	assert_int_equal(w.link->derived.resend_ns, 5 * MS);
	world_free(&w);
}

/* A demo link: nothing of the defaults for 25 Gbps may be left. */
static void link_derive__two_hundred_megabit(void **state)
{
	const struct homa_derived *d;
	struct world w;

	(void)state;
	world_init(&w, 200, 1500);
	d = &w.link->derived;
	sample(&w, 1, 300 * US);
	assert_int_equal(w.link->sched.ps_per_byte, 40404);
	assert_int_equal(d->rtt_bytes, 7500 + 4500);
	assert_int_equal(d->max_incoming, 4 * d->rtt_bytes);
	assert_int_equal(d->reserved, 2 * d->rtt_bytes);
	assert_int_equal(d->fifo_increment, d->rtt_bytes);
	/* 14 * 5 * 12,000 bytes at 40 ns each */
	assert_int_equal(d->resend_ns, 33600 * US);
	assert_int_equal(d->timeout_ns, 20 * d->resend_ns);
	world_free(&w);
}

static void link_derive__clamps(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 100, 1500);
	sample(&w, 1, 1);
	assert_int_equal(w.link->derived.rtt_bytes, 10000);
	world_free(&w);
	world_init(&w, 400000, 9000);
	sample(&w, 1, 100 * MS);
	assert_int_equal(w.link->derived.rtt_bytes, 1000000);
	assert_int_equal(w.link->derived.max_incoming, 8000000);
	world_free(&w);
	world_init(&w, 1, 65535);
	w.engine->params.max_link_usage = 1;
	homa_link_derive(w.link);
	assert_int_equal(w.link->sched.ps_per_byte, 800000000);
	assert_int_equal(w.link->derived.resend_ns, 50 * MS);
	world_free(&w);
}

static void link_derive__settings_win(void **state)
{
	struct homa_params *p;
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	p = &w.engine->params;
	p->unsched_bytes = 1234;
	p->max_incoming = 5678;
	p->resend_interval_us = 7;
	p->timeout_us = 9;
	p->window = 11;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.rtt_bytes, 1234);
	assert_int_equal(w.link->derived.max_incoming, 5678);
	assert_int_equal(w.link->derived.resend_ns, 7 * US);
	assert_int_equal(w.link->derived.timeout_ns, 9 * US);
	assert_int_equal(w.link->derived.window, 11);
	/* Who asks has to ask before he or the other end gives up, or forgets. */
	p->resend_interval_us = 1000000;
	p->timeout_us = 500000;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.resend_ns, 125 * MS);
	p->timeout_us = 0;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.resend_ns, 250 * MS);
	assert_int_equal(w.link->derived.timeout_ns, 5000 * MS);
	p->timeout_us = 60000000;
	p->tombstone_ms = 0;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.resend_ns, 1000 * MS);
	p->timeout_us = 9;
	p->resend_interval_us = 0;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.resend_ns, 5 * MS);
	p->unsched_bytes = 0;
	p->rtt_us = 10;
	homa_link_derive(w.link);
	sample(&w, 1, 50 * US);
	assert_int_equal(w.link->derived.rtt_bytes, 12500 + 4500);
	p->window = 0;
	p->sigcomm_grants = 1;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.window, 17000);
	assert_int_equal(w.link->derived.reserved, 0);
	/* The largest values overflow nothing. */
	p->max_incoming = 0;
	p->unsched_bytes = 0x7fffffff;
	p->max_overcommit = 32;
	homa_link_derive(w.link);
	assert_int_equal(w.link->derived.max_incoming, 0x7fffffff);
	world_free(&w);
}

static void link_rtt_sample__smallest_counts(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	sample(&w, 1, 30 * US);
	assert_int_equal(w.link->rtt_ns, 30 * US);
	sample(&w, 1, 300 * US);
	assert_int_equal(w.link->rtt_ns, 30 * US);
	sample(&w, 1, 20 * US);
	assert_int_equal(w.link->rtt_ns, 20 * US);
	/* Not different enough to derive everything again. */
	sample(&w, 1, 19 * US);
	assert_int_equal(w.link->rtt_ns, 20 * US);
	sample(&w, 1, 17 * US);
	assert_int_equal(w.link->rtt_ns, 17 * US);
	world_free(&w);
}

static void link_rtt_sample__rises_after_two_epochs(void **state)
{
	struct world w;
	u32 i;

	(void)state;
	world_init(&w, 10000, 1500);
	sample(&w, 1, 20 * US);
	for (i = 0; i < 19; i++) {
		sample(&w, SECOND / 10, 60 * US);
		assert_int_equal(w.link->rtt_ns, 20 * US);
	}
	for (i = 0; i < 3; i++)
		sample(&w, SECOND / 10, 60 * US);
	assert_int_equal(w.link->rtt_ns, 60 * US);
	world_free(&w);
}

static void link_rtt_sample__silence_ages_the_minimum(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	sample(&w, 1, 20 * US);
	sample(&w, 10 * SECOND, 60 * US);
	assert_int_equal(w.link->rtt_ns, 60 * US);
	world_free(&w);
}

static void link_rtt_sample__stalls_are_ignored(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 10000, 1500);
	sample(&w, 1, SECOND + 1);
	assert_int_equal(w.link->rtt_ns, 0);
	sample(&w, 1, (u64)-1);
	assert_int_equal(w.link->rtt_ns, 0);
	sample(&w, 1, 0);
	assert_int_equal(w.link->rtt_ns, 1);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_derive__unknown_rate),
		cmocka_unit_test(link_derive__ten_gigabit),
		cmocka_unit_test(link_derive__two_hundred_megabit),
		cmocka_unit_test(link_derive__clamps),
		cmocka_unit_test(link_derive__settings_win),
		cmocka_unit_test(link_rtt_sample__smallest_counts),
		cmocka_unit_test(link_rtt_sample__rises_after_two_epochs),
		cmocka_unit_test(link_rtt_sample__silence_ages_the_minimum),
		cmocka_unit_test(link_rtt_sample__stalls_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
