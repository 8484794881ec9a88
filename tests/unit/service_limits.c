// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_limits.c: buckets by a clock of the test's, and which rule decides.
 */
#include "unit.h"

#include "homa_rng.h"
#include "stream_limits.h"
#include "tcp_stream.h"

#define SECOND 1000000000ull

/* Whatever the steps in which it is looked at: no byte too many, and nearly all. */
static void homad_bucket_fill__is_the_rate_in_any_steps(void **state)
{
	static const u64 rates[] = { 8000, 1000000, 1500001, 125000000,
				     12500000000ull };
	u64 seed, base = unit_seed();
	struct homad_bucket bucket;
	struct homa_rng rng;
	u32 i;

	(void)state;
	for (seed = base; seed < base + 20; seed++) {
		homa_rng_init(&rng, seed);
		for (i = 0; i < HOMA_ARRAY_SIZE(rates); i++) {
			u64 now = 77, spent = 0, begin;

			homad_bucket_set(&bucket, rates[i]);
			homad_bucket_fill(&bucket, now);
			bucket.tokens = 0;
			begin = now;
			while (now - begin < SECOND / 10) {
				now += 1 + homa_rng_below(&rng, 100000);
				homad_bucket_fill(&bucket, now);
				unit_assert(seed, bucket.tokens <= bucket.burst);
				spent += (u64)bucket.tokens;
				bucket.tokens = 0;
			}
			unit_assert(seed,
				    spent <= rates[i] * (now - begin) / SECOND);
			unit_assert(seed,
				    spent + 2 >= rates[i] * (now - begin) /
							 SECOND * 999 / 1000);
		}
	}
}

static void homad_bucket_fill__is_full_after_rest_and_pays_debts_first(void **state)
{
	struct homad_bucket bucket;

	(void)state;
	homad_bucket_set(&bucket, 1000000);
	assert_int_equal(bucket.burst, 20000);
	homad_bucket_fill(&bucket, SECOND);
	homad_bucket_fill(&bucket, 1000000 * SECOND);
	assert_int_equal(bucket.tokens, 20000);
	bucket.tokens = -3000000;
	homad_bucket_fill(&bucket, 1000002 * SECOND);
	assert_int_equal(bucket.tokens, -1000000);
	homad_bucket_fill(&bucket, 1000004 * SECOND);
	assert_int_equal(bucket.tokens, 20000);
}

/* Threads that share a limit have clocks of their own rounds, so a bucket may have been filled up
 * to a time that is ahead of the next thread's. That thread gains nothing. */
static void homad_bucket_fill__by_a_clock_that_is_behind(void **state)
{
	struct homad_bucket bucket;

	(void)state;
	homad_bucket_set(&bucket, 1000000);
	homad_bucket_fill(&bucket, 2 * SECOND);
	bucket.tokens = -3000;
	homad_bucket_fill(&bucket, 2 * SECOND - 1);
	assert_int_equal(bucket.tokens, -3000);
	homad_bucket_fill(&bucket, SECOND);
	assert_int_equal(bucket.tokens, -3000);
	/* What was gained before is not gained again. */
	homad_bucket_fill(&bucket, 2 * SECOND + 1000000);
	assert_int_equal(bucket.tokens, -2000);
}

static void homad_policy__the_first_that_matches(void **state)
{
	static const u8 ten[16] = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [15] = 2
	};
	static const u8 eleven[16] = { [10] = 0xff, [11] = 0xff, [12] = 11 };
	static struct homad_policy policy;

	(void)state;
	policy.num = 3;
	policy.part[0].rule =
		(struct homad_tcp_rule){ .connect = { 80, 90 }, .prefix = 104 };
	memcpy(policy.part[0].rule.ip, ten, sizeof(ten));
	policy.part[1].rule = (struct homad_tcp_rule){ .listen = { 5, 6 } };
	policy.part[2].rule = (struct homad_tcp_rule){ .listen = { 1, 9 },
						       .connect = { 1, 85 } };
	assert_int_equal(homad_policy_connect(&policy, ten, 80), 0);
	assert_int_equal(homad_policy_connect(&policy, ten, 79), 2);
	assert_int_equal(homad_policy_connect(&policy, eleven, 80), 2);
	assert_int_equal(homad_policy_connect(&policy, eleven, 86), -1);
	assert_int_equal(homad_policy_connect(&policy, ten, 91), -1);
	assert_int_equal(homad_policy_listen(&policy, 6), 1);
	assert_int_equal(homad_policy_listen(&policy, 7), 2);
	assert_int_equal(homad_policy_listen(&policy, 10), -1);
}

/* A limit that comes with a reload counts only what is sent from then on, headers and what is
 * sent again at once, wherever the stream is in its 2^32 positions. */
static void homad_limit_join__in_the_middle_of_a_stream(void **state)
{
	static const u32 sent[] = { 0, 1000, 1u << 31, 3u << 30, ~0u - 500 };
	static struct homad_stream stream;
	static struct homad_policy policy;
	static struct homad_limit limit;
	u32 i;

	(void)state;
	homad_bucket_set(&limit.send, 10000000);
	policy.num = 1;
	policy.part[0].limit = &limit;
	for (i = 0; i < HOMA_ARRAY_SIZE(sent); i++) {
		stream = (struct homad_stream){ .conn.iss = 0xfffffff0u + i };
		stream.conn.f.snd_nxt = stream.conn.iss + 1 + sent[i];
		homad_limit_join(&stream, &policy, 0, false);
		limit.send.tokens = 0;
		homad_limit_sent(&stream, sent[i] + 1000, 1000, 1078);
		assert_int_equal(limit.send.tokens, -78);
		homad_limit_sent(&stream, sent[i] + 1000, 1000, 1078);
		assert_int_equal(limit.send.tokens, -78 - 1078);
	}
	assert_int_equal(limit.connections, HOMA_ARRAY_SIZE(sent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(homad_bucket_fill__is_the_rate_in_any_steps),
		cmocka_unit_test(
			homad_bucket_fill__is_full_after_rest_and_pays_debts_first),
		cmocka_unit_test(homad_bucket_fill__by_a_clock_that_is_behind),
		cmocka_unit_test(homad_policy__the_first_that_matches),
		cmocka_unit_test(homad_limit_join__in_the_middle_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
