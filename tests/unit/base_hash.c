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

static void siphash_addr__depends_on_every_byte_and_on_both_keys(void **state)
{
	struct homa_addr a = { 0 };
	u64 h = homa_siphash_addr(&a, 1, 2);
	u8 *b = (u8 *)&a;
	int i;

	(void)state;
	assert_true(homa_siphash_addr(&a, 1, 2) == h);
	assert_true(homa_siphash_addr(&a, 3, 2) != h);
	assert_true(homa_siphash_addr(&a, 1, 3) != h);
	for (i = 0; i < 20; i++) {
		b[i] ^= 0x10;
		assert_true(homa_siphash_addr(&a, 1, 2) != h);
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

/* Squares of the distances from the mean, over the mean: with mean 256 and
 * deviation 23 where 256 buckets are filled at random. */
static u64 chi_square(const u32 *bucket, u32 mean)
{
	u64 chi = 0;
	int i;

	for (i = 0; i < 256; i++) {
		s64 d = (s64)bucket[i] - mean;

		chi += (u64)(d * d);
	}
	return chi / mean;
}

/* Ids that count up by two - what every client produces - spread evenly, eight
 * neighbours into eight neighbouring buckets. */
static void hash_id__spreads_consecutive_ids(void **state)
{
	u32 bucket[256] = { 0 }, seen;
	u64 seed = unit_seed(), id;

	(void)state;
	for (id = 0; id < 256 * 64; id++)
		bucket[homa_hash_id(2 * id, seed) & 255]++;
	/* Eight buckets always have the same count, so the deviation is 64: ten
	 * of it are slack. */
	unit_assert(seed, chi_square(bucket, 64) < 900);
	for (id = 0, seen = 0; id < 8; id++) {
		unit_assert(seed, homa_hash_id(2 * id, seed) >> 3 ==
					  homa_hash_id(0, seed) >> 3);
		seen |= 1u << (homa_hash_id(2 * id, seed) & 7);
	}
	unit_assert(seed, seen == 0xff);
}

/* Ids that somebody chose: any step between them. */
static void hash_id__spreads_ids_at_any_distance(void **state)
{
	u64 seed = unit_seed(), id;
	u32 step;

	(void)state;
	for (step = 1; step < 50; step++) {
		u32 bucket[256] = { 0 };

		for (id = 0; id < 256 * 64; id++)
			bucket[homa_hash_id(id << step, seed) & 255]++;
		unit_assert(seed, chi_square(bucket, 64) < 900);
	}
}

/* One id under many keys, which is what many addresses have. */
static void hash_id__spreads_one_id_under_many_keys(void **state)
{
	u32 bucket[256] = { 0 }, i;
	u64 seed = unit_seed();
	struct homa_addr addr;

	(void)state;
	memset(&addr, 0, sizeof(addr));
	for (i = 0; i < 256 * 64; i++) {
		addr.encap = (u16)i;
		bucket[homa_hash_id(4711, homa_siphash_addr(&addr, seed, 1)) & 255]++;
	}
	unit_assert(seed, chi_square(bucket, 64) < 256 + 10 * 23);
}

/* The @n-th of addresses that count up in one of their bytes: the last three of IPv4, a
 * host's part and a network's of IPv6. */
static void address(struct homa_addr *a, u32 way, u32 n)
{
	static const u8 at[] = { 15, 14, 13, 15, 11, 7, 3 };
	u32 i;

	memset(a, 0, sizeof(*a));
	memcpy(a->ip, way < 3 ? "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a" : "\xfd",
	       way < 3 ? 13 : 1);
	for (i = at[way]; n; i--, n >>= 8)
		a->ip[i] ^= (u8)n;
}

/* Every table takes the lowest bits. Under any of many keys: bad ones are what was wrong. */
static void hash_ip__spreads_consecutive_addresses(void **state)
{
	u64 seed = unit_seed();
	struct homa_rng rng;
	u32 way, key, n;

	(void)state;
	homa_rng_init(&rng, seed);
	for (way = 0; way < 7; way++) {
		for (key = 0; key < 300; key++) {
			u64 k0 = homa_rng_next(&rng), k1 = homa_rng_next(&rng);
			u32 bucket[256] = { 0 };

			for (n = 0; n < 256 * 16; n++) {
				struct homa_addr a;

				address(&a, way, n);
				bucket[homa_hash_ip(a.ip, k0, k1) & 255]++;
			}
			unit_assert(seed, chi_square(bucket, 16) < 256 + 10 * 23);
		}
	}
}

static void hash_ip__depends_on_every_byte_and_on_both_keys(void **state)
{
	u8 ip[16] = { 0 };
	u64 h = homa_hash_ip(ip, 1, 2);
	u32 i;

	(void)state;
	assert_true(homa_hash_ip(ip, 3, 2) != h);
	assert_true(homa_hash_ip(ip, 1, 3) != h);
	for (i = 0; i < 16; i++) {
		ip[i] ^= 0x10;
		assert_true(homa_hash_ip(ip, 1, 2) != h);
		ip[i] ^= 0x10;
	}
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
			siphash_addr__depends_on_every_byte_and_on_both_keys),
		cmocka_unit_test(hash_id__same_for_client_and_server),
		cmocka_unit_test(hash_id__spreads_consecutive_ids),
		cmocka_unit_test(hash_id__spreads_ids_at_any_distance),
		cmocka_unit_test(hash_id__spreads_one_id_under_many_keys),
		cmocka_unit_test(hash_ip__spreads_consecutive_addresses),
		cmocka_unit_test(hash_ip__depends_on_every_byte_and_on_both_keys),
		cmocka_unit_test(rng_next__matches_splitmix64),
		cmocka_unit_test(rng_below__stays_below_and_reaches_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
