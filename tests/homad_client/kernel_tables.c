// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * lib/backend/kernel/slots.c and pages.c: names are used once, no request is answered
 * twice, and no piece is given back that was not out.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include "backend_kernel.h"

#define REGION (2u << 20)

static struct homa_ksock *c;

static int setup(void **state)
{
	(void)state;
	c = calloc(1, sizeof(*c));
	c->fd = -1;
	c->region_bytes = REGION;
	homa_list_init(&c->waiters);
	homa_list_init(&c->ready);
	return homa_ksock_slots_init(c) || homa_ksock_pages_init(c);
}

static int teardown(void **state)
{
	(void)state;
	homa_ksock_slots_free(c);
	homa_ksock_pages_free(c);
	free(c);
	return 0;
}

static void slot__names_once(void **state)
{
	struct homa_ksock_slot *a = homa_ksock_slot_get(c);
	struct homa_ksock_slot *b = homa_ksock_slot_get(c);
	u64 before;

	(void)state;
	assert_non_null(a);
	assert_ptr_not_equal(a, b);
	assert_int_not_equal(a->token, 0);
	assert_ptr_equal(homa_ksock_slot(c, a->token), a);
	assert_null(homa_ksock_slot(c, 0));
	before = a->token;
	a->done = a->gone = a->is_private = true;
	a->id = 12;
	homa_ksock_slot_put(c, a);
	assert_null(homa_ksock_slot(c, before));
	assert_ptr_equal(homa_ksock_slot_get(c), a);
	assert_int_not_equal(a->token, before);
	assert_false(a->done || a->gone || a->is_private || a->id);
	assert_null(homa_ksock_slot(c, before));
}

static void slot__all_of_them(void **state)
{
	struct homa_ksock_slot *slot;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_KSOCK_SLOTS; i++)
		assert_non_null(homa_ksock_slot_get(c));
	assert_null(homa_ksock_slot_get(c));
	slot = &c->slots[777];
	homa_ksock_slot_put(c, slot);
	assert_ptr_equal(homa_ksock_slot_get(c), slot);
	assert_null(homa_ksock_slot_get(c));
}

static void answer__once(void **state)
{
	u64 a = homa_ksock_asked(c), b = homa_ksock_asked(c), again;

	(void)state;
	assert_true((a & 1) && a != b);
	assert_false(homa_ksock_answer(c, 0));
	assert_true(homa_ksock_answer(c, a));
	assert_false(homa_ksock_answer(c, a));
	/* It could not be sent: later. */
	homa_ksock_answered(c, a, true);
	assert_true(homa_ksock_answer(c, a));
	homa_ksock_answered(c, a, false);
	assert_false(homa_ksock_answer(c, a));
	/* The place is used again, under another name. */
	again = homa_ksock_asked(c);
	assert_int_equal((again ^ a) & 0x1fffff, 0);
	assert_int_not_equal(again, a);
	assert_true(homa_ksock_answer(c, b));
	assert_true(homa_ksock_answer(c, again));
	assert_false(homa_ksock_answer(c, again));
	homa_ksock_answered(c, again, false);
	homa_ksock_answered(c, b, false);
	/* Places are used again, the last one first, and none twice. */
	assert_int_equal((homa_ksock_asked(c) ^ b) & 0x1fffff, 0);
	assert_int_equal((homa_ksock_asked(c) ^ a) & 0x1fffff, 0);
	assert_int_equal((homa_ksock_asked(c) & 0x1fffff) >> 1, 2);
}

static void answer__many_never_answered(void **state)
{
	u64 first = homa_ksock_asked(c), claimed = homa_ksock_asked(c), last = 0;
	u32 i;

	(void)state;
	assert_true(homa_ksock_answer(c, claimed));
	for (i = 0; i < HOMA_KSOCK_ASKED; i++)
		last = homa_ksock_asked(c);
	/* The oldest are forgotten, but nobody says that they were answered. */
	assert_true(homa_ksock_answer(c, first));
	homa_ksock_answered(c, first, false);
	homa_ksock_answered(c, claimed, false);
	assert_true(homa_ksock_answer(c, last));
	assert_false(homa_ksock_answer(c, last));
	homa_ksock_answered(c, last, false);
	assert_false(homa_ksock_answer(c, last));
	/* Also when their places were answered since. */
	assert_true(homa_ksock_answer(c, first));
	assert_true(homa_ksock_answer(c, claimed));
}

static void out(u32 num, u32 first)
{
	struct homa_recvmsg_args args = { .num_bpages = num };
	u32 i;

	for (i = 0; i < num; i++)
		args.bpage_offsets[i] = first + i * 65536;
	homa_ksock_pages_out(c, &args);
}

static void pages__back_once(void **state)
{
	u32 good[2] = { 0, 65536 }, bad[3] = { 64, 65536 + 4, REGION };
	struct homa_recvmsg_args args;
	u32 i;

	(void)state;
	out(2, 0);
	assert_int_equal(c->pieces, 2);
	for (i = 0; i < 3; i++)
		assert_int_equal(homa_ksock_release_pages(c, &bad[i], 1),
				 -EINVAL);
	homa_ksock_pages_back(c, &args);
	assert_int_equal(args.num_bpages, 0);
	assert_int_equal(homa_ksock_release_pages(c, good, 2), 0);
	assert_int_equal(homa_ksock_release_pages(c, good, 2), -EINVAL);
	homa_ksock_pages_back(c, &args);
	assert_int_equal(args.num_bpages, 2);
	assert_int_equal(args.bpage_offsets[0] + args.bpage_offsets[1], 65536);
	assert_int_equal(c->pieces, 0);
	homa_ksock_pages_back(c, &args);
	assert_int_equal(args.num_bpages, 0);
}

static void pages__at_once_when_half_is_out(void **state)
{
	u32 one = 0;

	(void)state;
	out(15, 0);
	assert_int_equal(homa_ksock_release_pages(c, &one, 1), 0);
	assert_int_equal(c->num_back, 1);
	assert_int_equal(c->counters.flushes, 0);
	/* 16 of 32; the socket is none, but it was asked. */
	out(2, 15 * 65536);
	one = 65536;
	assert_int_equal(homa_ksock_release_pages(c, &one, 1), 0);
	assert_int_equal(c->counters.flushes, 1);
	assert_int_equal(c->num_back, 0);
	assert_int_equal(c->pieces, 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(slot__names_once), T(slot__all_of_them),
		T(answer__once),     T(answer__many_never_answered),
		T(pages__back_once), T(pages__at_once_when_half_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
