/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/common/msgbuf.c: buffers of random sizes given out and back in
 * random order never overlap, the account is right, idle memory is bounded.
 */
#include "unit.h"

#include "homa_msgbuf.h"

#define HELD 64

static void get__sizes(void **state)
{
	struct homa_msgbufs bufs = { 0 };
	u32 size;

	(void)state;
	assert_null(homa_msgbuf_get(&bufs, 0));
	assert_null(homa_msgbuf_get(&bufs, (1u << 20) + 1));
	for (size = 1; size <= 1u << 20; size = size * 2 - size / 3) {
		u8 *buf = homa_msgbuf_get(&bufs, size);

		assert_non_null(buf);
		memset(buf, 0xa5, size);
		assert_in_range(bufs.used, size,
				size < 256 ? 256 : 2 * (u64)size);
		homa_msgbuf_put(&bufs, buf, size);
		assert_int_equal(bufs.used, 0);
	}
	homa_msgbuf_put(&bufs, NULL, 100);
	homa_msgbuf_drain(&bufs);
}

static void get__most_recently_used_first(void **state)
{
	struct homa_msgbufs bufs = { 0 };
	void *a = homa_msgbuf_get(&bufs, 300), *b = homa_msgbuf_get(&bufs, 500);

	(void)state;
	homa_msgbuf_put(&bufs, a, 300);
	homa_msgbuf_put(&bufs, b, 500);
	assert_ptr_equal(homa_msgbuf_get(&bufs, 257), b);
	assert_ptr_equal(homa_msgbuf_get(&bufs, 512), a);
	homa_msgbuf_put(&bufs, a, 512);
	homa_msgbuf_put(&bufs, b, 257);
	homa_msgbuf_drain(&bufs);
}

static void put__idle_memory_is_bounded(void **state)
{
	struct homa_msgbufs bufs = { 0 };
	static void *held[100];
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		held[i] = homa_msgbuf_get(&bufs, 1u << 20);
	for (i = 0; i < 100; i++)
		homa_msgbuf_put(&bufs, held[i], 1u << 20);
	assert_int_equal(bufs.idle[HOMA_MSGBUF_CLASSES - 1], 8);
	homa_msgbuf_drain(&bufs);
	assert_int_equal(bufs.idle[HOMA_MSGBUF_CLASSES - 1], 0);
}

static void random__no_overlap(void **state)
{
	struct homa_msgbufs bufs = { 0 };
	struct homa_rng rng;
	struct {
		u8 *buf;
		u32 size;
		u8 mark;
	} held[HELD] = { { 0 } };
	u64 seed = unit_seed();
	int round;
	u32 i;

	(void)state;
	homa_rng_init(&rng, seed);
	for (round = 0; round < 20000; round++) {
		u32 at = (u32)homa_rng_next(&rng) % HELD;

		if (held[at].buf) {
			for (i = 0; i < held[at].size; i += 61)
				unit_assert(seed,
					    held[at].buf[i] == held[at].mark);
			homa_msgbuf_put(&bufs, held[at].buf, held[at].size);
			held[at].buf = NULL;
			continue;
		}
		held[at].size = 1 + (u32)homa_rng_next(&rng) %
					    (1u << (homa_rng_next(&rng) % 15));
		held[at].mark = (u8)homa_rng_next(&rng);
		held[at].buf = homa_msgbuf_get(&bufs, held[at].size);
		unit_assert(seed, held[at].buf != NULL);
		memset(held[at].buf, held[at].mark, held[at].size);
	}
	for (i = 0; i < HELD; i++)
		homa_msgbuf_put(&bufs, held[i].buf,
				held[i].buf ? held[i].size : 1);
	unit_assert(seed, bufs.used == 0);
	homa_msgbuf_drain(&bufs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__sizes),
		cmocka_unit_test(get__most_recently_used_first),
		cmocka_unit_test(put__idle_memory_is_bounded),
		cmocka_unit_test(random__no_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
