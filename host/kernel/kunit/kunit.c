// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs the test suites when a module parameter is written: by KUnit where the kernel
 * has it, else by a few lines of our own (see homa_kunit.h). Not when the module is
 * loaded, as KUnit would: it does so before sockets can be made. Tests may run again
 * and again, and beside traffic.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "homa_kunit.h"

static struct kunit_suite *const homak_kunit_suites[] = {
#define SUITE(suite) &suite,
	HOMAK_KUNIT_SUITES(SUITE)
#undef SUITE
};

static DEFINE_MUTEX(homak_kunit_lock);

#if IS_ENABLED(CONFIG_KUNIT)

static bool homak_kunit_suite(struct kunit_suite *suite, u32 number)
{
	kunit_run_tests(suite);
	return kunit_suite_has_succeeded(suite) != KUNIT_FAILURE;
}

#else

static bool homak_kunit_case(const struct kunit_suite *suite,
			     const struct kunit_case *c, u32 number)
{
	struct kunit test = {};

	if (suite->init && suite->init(&test)) {
		test.failed = true;
	} else {
		c->run_case(&test);
		if (suite->exit)
			suite->exit(&test);
	}
	pr_info("    %s %u %s\n", test.failed ? "not ok" : "ok", number, c->name);
	cond_resched();
	return !test.failed;
}

static bool homak_kunit_suite(struct kunit_suite *suite, u32 number)
{
	const struct kunit_case *c;
	bool ok = true;
	u32 n = 0;

	pr_info("    # Subtest: %s\n", suite->name);
	for (c = suite->test_cases; c->run_case; c++)
		ok &= homak_kunit_case(suite, c, ++n);
	pr_info("    1..%u\n", n);
	pr_info("%s %u %s\n", ok ? "ok" : "not ok", number, suite->name);
	return ok;
}

#endif

/* Runs all suites when anything is written; -EIO: one failed. */
static int homak_kunit_run(const char *value, const struct kernel_param *param)
{
	bool ok = true;
	u32 i;

	/* It cannot run from the command line, because nothing is set up then. */
	if (READ_ONCE(THIS_MODULE->state) != MODULE_STATE_LIVE)
		return -EBUSY;
	mutex_lock(&homak_kunit_lock);
	pr_info("KTAP version 1\n");
	pr_info("1..%zu\n", ARRAY_SIZE(homak_kunit_suites));
	for (i = 0; i < ARRAY_SIZE(homak_kunit_suites); i++)
		ok &= homak_kunit_suite(homak_kunit_suites[i], i + 1);
	mutex_unlock(&homak_kunit_lock);
	return ok ? 0 : -EIO;
}

static const struct kernel_param_ops homak_kunit_ops = { .set = homak_kunit_run };
module_param_cb(selftest, &homak_kunit_ops, NULL, 0200);
MODULE_PARM_DESC(selftest, "write to run the tests of the glue");
