/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/base/homa_hash.h and homa_rng.h against published algorithms: SipHash
 * values come from Python 3.11's hash() of bytes with PYTHONHASHSEED=0, which
 * is SipHash-1-3 with an all-zero key; SplitMix64's from its author's code.
 */
#include "unit.h"

static void siphash_addr__matches_python(void **state)
{
	struct homa_addr a = { 0 };
	u8 *b = (u8 *)&a;
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		b[i] = (u8)i;
	assert_true(homa_siphash_addr(&a, 0, 0) == 0x639e355ae68c0100ull);

	memset(&a, 0, sizeof(a));
	memcpy(a.ip + 10, "\xff\xff\x0a\x01\x00\x01", 6);
	b[16] = 0xd4;
	b[17] = 0x31;
	assert_true(homa_siphash_addr(&a, 0, 0) == 0xa301ef2a8aabd016ull);
}

static void hash_addr__depends_on_every_byte_and_on_the_seed(void **state)
{
	struct homa_addr a = { 0 };
	u64 h = homa_hash_addr(&a, 1);
	u8 *b = (u8 *)&a;
	int i;

	(void)state;
	assert_true(homa_hash_addr(&a, 2) != h);
	assert_true(homa_hash_addr(&a, 1) == h);
	for (i = 0; i < 20; i++) {
		b[i] ^= 0x10;
		assert_true(homa_hash_addr(&a, 1) != h);
		b[i] ^= 0x10;
	}
}

static void hash_id__same_for_client_and_server(void **state)
{
	(void)state;
	assert_true(homa_hash_id(1000, 7) == homa_hash_id(1001, 7));
	assert_true(homa_hash_id(1000, 7) != homa_hash_id(1002, 7));
	assert_true(homa_hash_id(1000, 7) != homa_hash_id(1000, 8));
}

/* Ids that count up by two - what every client produces - spread evenly, eight
 * neighbours into neighbouring buckets. */
static void hash_id__spreads_consecutive_ids(void **state)
{
	u32 bucket[256] = { 0 };
	u64 seed = unit_seed(), chi = 0, id;
	int i;

	(void)state;
	for (id = 0; id < 256 * 64; id++)
		bucket[homa_hash_id(2 * id, seed) & 255]++;
	for (i = 0; i < 256; i++) {
		s64 d = (s64)bucket[i] - 64;

		chi += (u64)(d * d);
	}
	/* Eight buckets always have the same count, so chi / 64 has mean 256 and
	 * deviation 64: ten deviations of slack. */
	unit_assert(seed, chi / 64 < 900);
	for (id = 1; id < 8; id++)
		unit_assert(seed, homa_hash_id(2 * id, seed) ==
					  homa_hash_id(0, seed) + id);
}

static void rng_next__matches_splitmix64(void **state)
{
	struct homa_rng rng;

	(void)state;
	homa_rng_init(&rng, 0);
	assert_true(homa_rng_next(&rng) == 0xe220a8397b1dcdafull);
	assert_true(homa_rng_next(&rng) == 0x6e789e6aa1b965f4ull);
	assert_true(homa_rng_next(&rng) == 0x06c45d188009454full);
	homa_rng_init(&rng, 1234567);
	assert_true(homa_rng_next(&rng) == 6457827717110365317ull);
	assert_true(homa_rng_next(&rng) == 3203168211198807973ull);
}

static void rng_below__stays_below_and_reaches_all(void **state)
{
	struct homa_rng rng;
	u32 seen = 0;
	int i;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (i = 0; i < 1000; i++) {
		u32 v = homa_rng_below(&rng, 10);

		assert_true(v < 10);
		seen |= 1u << v;
	}
	assert_int_equal(seen, 0x3ff);
	assert_int_equal(homa_rng_below(&rng, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_addr__matches_python),
		cmocka_unit_test(
			hash_addr__depends_on_every_byte_and_on_the_seed),
		cmocka_unit_test(hash_id__same_for_client_and_server),
		cmocka_unit_test(hash_id__spreads_consecutive_ids),
		cmocka_unit_test(rng_next__matches_splitmix64),
		cmocka_unit_test(rng_below__stays_below_and_reaches_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
