/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tests of the glue that need no packets, in homa.ko when it is built with
 * HOMA_KUNIT=1. Writing /sys/module/homa/parameters/selftest runs them, by KUnit if
 * the kernel has it. Others - the distributions' - get the few macros that the tests
 * use here; the results in the kernel log look the same (KTAP). Assertions (ASSERT)
 * stand in the test functions themselves only.
 *
 * Written by: the one thread that runs the tests.
 */
#ifndef HOMA_KUNIT_H
#define HOMA_KUNIT_H

#include "homa_kernel.h"

#if IS_ENABLED(CONFIG_KUNIT)
#include <kunit/test.h>
#else

/* struct kunit - a running test */
struct kunit {
	/* What the suite's @init has made for its tests. */
	void *priv;
	/* True once an expectation was not met. */
	bool failed;
};

struct kunit_case {
	/* The test. */
	void (*run_case)(struct kunit *test);
	/* Its name. */
	const char *name;
};

struct kunit_suite {
	/* The suite's name. */
	const char name[32];
	/* Runs before each test; NULL: nothing does. 0 or -errno. */
	int (*init)(struct kunit *test);
	/* Runs after each test; NULL: nothing does. */
	void (*exit)(struct kunit *test);
	/* The tests; one without a function ends the list. */
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(fn) { .run_case = fn, .name = #fn }
#define KUNIT_FAIL(test, fmt, ...)                         \
	do {                                               \
		(test)->failed = true;                     \
		pr_err("    # %s:%d: " fmt "\n", __FILE__, \
		       __LINE__, ##__VA_ARGS__);           \
	} while (0)
#define HOMAK_KUNIT_CHECK(test, cond, stop, text)              \
	do {                                                   \
		if (!(cond)) {                                 \
			KUNIT_FAIL(test, "%s is false", text); \
			stop;                                  \
		}                                              \
	} while (0)
#define HOMAK_KUNIT_COMPARE(test, a, op, b, stop)                             \
	do {                                                                  \
		const typeof(a) homa_a = (a);                                 \
		const typeof(b) homa_b = (b);                                 \
		if (!(homa_a op homa_b)) {                                    \
			KUNIT_FAIL(test, "%s %s %s is false: %lld, %lld", #a, \
				   #op, #b, (s64)homa_a, (s64)homa_b);        \
			stop;                                                 \
		}                                                             \
	} while (0)
#define KUNIT_EXPECT_TRUE(test, cond) HOMAK_KUNIT_CHECK(test, cond, , #cond)
#define KUNIT_EXPECT_FALSE(test, cond) \
	HOMAK_KUNIT_CHECK(test, !(cond), , "!" #cond)
#define KUNIT_EXPECT_EQ(test, a, b) HOMAK_KUNIT_COMPARE(test, a, ==, b, )
#define KUNIT_EXPECT_NE(test, a, b) HOMAK_KUNIT_COMPARE(test, a, !=, b, )
#define KUNIT_EXPECT_LE(test, a, b) HOMAK_KUNIT_COMPARE(test, a, <=, b, )
#define KUNIT_EXPECT_GE(test, a, b) HOMAK_KUNIT_COMPARE(test, a, >=, b, )
#define KUNIT_ASSERT_EQ(test, a, b) HOMAK_KUNIT_COMPARE(test, a, ==, b, return)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, p) \
	HOMAK_KUNIT_CHECK(test, !IS_ERR_OR_NULL(p), return, #p)

#endif

/* Lists every suite once: SUITE(name of its struct kunit_suite). */
#define HOMAK_KUNIT_SUITES(SUITE)   \
	SUITE(homak_kunit_addr)     \
	SUITE(homak_kunit_settings) \
	SUITE(homak_kunit_msg)      \
	SUITE(homak_kunit_gso)      \
	SUITE(homak_kunit_name)     \
	SUITE(homak_kunit_end)

#define SUITE(suite) extern struct kunit_suite suite;
HOMAK_KUNIT_SUITES(SUITE)
#undef SUITE

#endif
