/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/plat/user/homa_plat.h: byte order at any alignment, and arithmetic
 * that must not fall back on the compiler's run-time library.
 */
#include "unit.h"

static void get_put__big_endian_at_any_alignment(void **state)
{
	u8 buf[24];
	int at;

	(void)state;
	for (at = 0; at < 9; at++) {
		memset(buf, 0xee, sizeof(buf));
		homa_put_be64(buf + at, 0x0102030405060708ull);
		assert_memory_equal(buf + at, "\1\2\3\4\5\6\7\10\xee", 9);
		assert_true(homa_get_be64(buf + at) == 0x0102030405060708ull);
		assert_int_equal(homa_get_be32(buf + at), 0x01020304);
		assert_int_equal(homa_get_be16(buf + at), 0x0102);
		homa_put_be32(buf + at, 0xfffefdfc);
		assert_memory_equal(buf + at, "\xff\xfe\xfd\xfc\5", 5);
		homa_put_be16(buf + at, 0xabcd);
		assert_memory_equal(buf + at, "\xab\xcd\xfd", 3);
	}
}

static void fls32__highest_bit(void **state)
{
	(void)state;
	assert_int_equal(homa_fls32(0), 0);
	assert_int_equal(homa_fls32(1), 1);
	assert_int_equal(homa_fls32(0x80000000), 32);
}

static void ctz64__lowest_bit(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 64; i++) {
		assert_int_equal(homa_ctz64(1ull << i), i);
		assert_int_equal(homa_ctz64(UINT64_MAX << i), i);
	}
}

static void min_max__unsigned(void **state)
{
	(void)state;
	assert_int_equal(homa_min_u32(1, 0xffffffff), 1);
	assert_true(homa_max_u32(1, 0xffffffff) == 0xffffffff);
	assert_true(homa_min_u64(1, UINT64_MAX) == 1);
	assert_true(homa_max_u64(1, UINT64_MAX) == UINT64_MAX);
}

static void ref__last_put_says_so(void **state)
{
	struct homa_ref ref;

	(void)state;
	homa_ref_init(&ref, 1);
	homa_ref_get(&ref);
	assert_int_equal(homa_ref_read(&ref), 2);
	assert_false(homa_ref_put(&ref));
	assert_true(homa_ref_put(&ref));
}

static void counter_add__returns_the_old_value(void **state)
{
	u64 counter = 5;

	(void)state;
	assert_true(homa_counter_add(&counter, 2) == 5);
	assert_true(homa_counter_add(&counter, 2) == 7);
	assert_true(counter == 9);
}

#if __SIZEOF_POINTER__ >= 8
static void div64__like_the_operator(void **state)
{
	(void)state;
	assert_true(homa_div64(UINT64_MAX, 3) == 0x5555555555555555ull);
	assert_true(homa_div64(5, 7) == 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_put__big_endian_at_any_alignment),
		cmocka_unit_test(fls32__highest_bit),
		cmocka_unit_test(ctz64__lowest_bit),
		cmocka_unit_test(min_max__unsigned),
		cmocka_unit_test(ref__last_put_says_so),
		cmocka_unit_test(counter_add__returns_the_old_value),
#if __SIZEOF_POINTER__ >= 8
		cmocka_unit_test(div64__like_the_operator),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
