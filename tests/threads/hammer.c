/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Four threads on one engine, made for TSan and the checker of lock order:
 * messages of all kinds, lost and repeated packets, aborts, sockets closed
 * while others use them, short messages delivered whole with their packet or handed
 * out with their call. Nothing is asserted about speed; at the end nothing may
 * be left. HAMMER_SECONDS sets how long each case runs (2), HAMMER_SEED what
 * happens (as far as four threads can be told), HAMMER_TEST which cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hammer.h"

static void hammer_all(struct hammer *h)
{
	const char *text = getenv("HAMMER_SECONDS");
	struct homa_counts counts;
	u64 delivered = 0, ended = 0, whole = 0, at_once = 0, elsewhere = 0;
	u32 i;

	h->outstanding = 16;
	h->any_link = true;
	h->deliver_whole = true;
	hammer_run(h, text ? atof(text) : 2);
	for (i = 0; i < h->threads; i++) {
		delivered += h->thread[i].delivered;
		ended += h->thread[i].ended;
		whole += h->thread[i].whole;
		at_once += h->thread[i].at_once;
		elsewhere += h->thread[i].elsewhere;
	}
	homa_engine_counts(h->engine, &counts);
	print_message("%llu RPCs, %llu data packets, %llu messages given, "
		      "%llu sent at once, %llu read by another thread\n",
		      (unsigned long long)ended, (unsigned long long)delivered,
		      (unsigned long long)whole, (unsigned long long)at_once,
		      (unsigned long long)elsewhere);
	assert_int_equal(counts.rpcs, 0);
	assert_int_equal(hammer_lost_pages(h), 0);
	assert_true(ended > 0);
	if (h->length <= 1000)
		assert_true(whole && at_once && elsewhere);
	assert_int_equal(hammer_free(h), 0);
}

static void hammer(u32 shards, u32 lose, u32 length, u32 aborts)
{
	struct hammer *h = hammer_new(4, shards, 64, 42);

	h->lose = lose;
	h->repeat = lose;
	h->length = length;
	h->abort = aborts;
	h->reopen = aborts ? 500 : 0;
	hammer_all(h);
}

static void hammer__short_messages(void **state)
{
	(void)state;
	hammer(4, 0, 1000, 0);
}

static void hammer__one_shard(void **state)
{
	(void)state;
	hammer(1, 10, 20000, 20);
}

static void hammer__long_messages(void **state)
{
	(void)state;
	hammer(16, 0, 300000, 0);
}

static void hammer__losses_aborts_and_closed_sockets(void **state)
{
	(void)state;
	hammer(4, 20, 30000, 50);
	hammer(64, 20, 5000, 100);
}

/* Announced, messages wait for grants when they are delivered whole; repeated, they
 * come while others copy them. */
static void hammer__announced_and_repeated(void **state)
{
	struct hammer *h = hammer_new(4, 16, 64, 46);

	(void)state;
	h->length = 1000;
	h->announce = 900;
	h->repeat = 200;
	h->abort = 20;
	hammer_all(h);
}

/* A request may come, or be sent, at the very moment when its socket closes. */
static void hammer__sockets_come_and_go(void **state)
{
	struct hammer *h = hammer_new(4, 16, 64, 43);

	(void)state;
	h->length = 1000;
	h->reopen = 10;
	h->unguarded = true;
	hammer_all(h);
}

/* Messages wait for pages, are fed, aborted and closed meanwhile. */
static void hammer__few_pages(void **state)
{
	struct hammer *h = hammer_new(4, 16, 3, 44);

	(void)state;
	h->length = 150000;
	h->lose = 5;
	h->abort = 20;
	h->reopen = 200;
	hammer_all(h);
}

static void hammer__pieces(void **state)
{
	struct hammer *h = hammer_new(4, 16, 64, 45);

	(void)state;
	h->length = 50000;
	h->lose = 5;
	h->repeat = 20;
	h->abort = 20;
	h->pieces = true;
	hammer_all(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hammer__short_messages),
		cmocka_unit_test(hammer__one_shard),
		cmocka_unit_test(hammer__long_messages),
		cmocka_unit_test(hammer__losses_aborts_and_closed_sockets),
		cmocka_unit_test(hammer__announced_and_repeated),
		cmocka_unit_test(hammer__sockets_come_and_go),
		cmocka_unit_test(hammer__few_pages),
		cmocka_unit_test(hammer__pieces),
	};

	if (getenv("HAMMER_TEST"))
		cmocka_set_test_filter(getenv("HAMMER_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
