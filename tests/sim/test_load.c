// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What a load is: bytes of messages and bytes on the wire, and how they are computed. */
#include "unit.h"

#include <math.h>

#include "traffic.h"

/*
 * Published: application / wire bytes are .65, .80, .89, .90, .90. Ours differ
 * by up to .011 and for known reasons: W1 has no messages below 8 bytes here,
 * of which the study's own table has a fifth (with that table: .653); a packet
 * of a long message carries 1,442 bytes instead of 1,456 (with those: .898).
 */
static void load_ratio__as_in_the_study(void **state)
{
	static const double ratio[] = { .65, .80, .89, .90, .90 };
	struct homa_workload w;
	struct sim_config cfg;
	struct sim_load load;
	char name[] = "w1", err[256];
	u32 i;

	(void)state;
	sim_config_default(&cfg);
	for (i = 0; i < 5; i++) {
		name[1] = (char)('1' + i);
		assert_int_equal(homa_workload_parse(&w, name, UINT32_MAX, err,
						     sizeof(err)),
				 0);
		sim_load_compute(&cfg, &w, &load);
		if (fabs(load.payload / load.wire - ratio[i]) > 0.012)
			fail_msg("%s: %.4f instead of %.2f", name,
				 load.payload / load.wire, ratio[i]);
		assert_true(fabs(load.wire_load - 0.8) < 1e-9);
		assert_true(fabs(load.payload_load -
				 0.8 * load.payload / load.wire) < 1e-9);
	}
}

/* The closed form against all of a fine grid of draws, with and without a cut. */
static void load_means__exact(void **state)
{
	static const u32 cuts[] = { UINT32_MAX, 1000000, 20000, 1442, 100 };
	enum { DRAWS = 200000 };
	struct homa_workload w;
	struct sim_config cfg;
	struct sim_load load;
	char name[] = "w1", err[256];
	u32 i, j, k;

	(void)state;
	sim_config_default(&cfg);
	for (i = 0; i < 25; i++) {
		double wire = 0, payload = 0;

		j = i / 5;
		name[1] = (char)('1' + i % 5);
		assert_int_equal(homa_workload_parse(&w, name, cuts[j], err,
						     sizeof(err)),
				 0);
		sim_load_compute(&cfg, &w, &load);
		for (k = 0; k < DRAWS; k++) {
			u32 size = homa_workload_size(&w, (k + 0.5) / DRAWS);

			wire += (double)sim_load_wire(&cfg, size) / DRAWS;
			payload += (double)size / DRAWS;
		}
		if (fabs(load.wire / wire - 1) > 2e-3 ||
		    fabs(load.payload / payload - 1) > 2e-3)
			fail_msg("%s cut at %u: wire %.3f, by draws %.3f; payload %.3f, by draws %.3f",
				 name, cuts[j], load.wire, wire, load.payload,
				 payload);
	}
}

static void load_wire__packets_and_grants(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	assert_int_equal(sim_load_wire(&cfg, 1), 97);
	assert_int_equal(sim_load_wire(&cfg, 1442), 1538);
	assert_int_equal(sim_load_wire(&cfg, 1443), 1538 + 97);
	assert_int_equal(sim_load_wire(&cfg, 7 * 1442), 7 * 1538);
	assert_int_equal(sim_load_wire(&cfg, 8 * 1442), 8 * 1538 + 84);
	assert_int_equal(sim_load_wire(&cfg, 100 * 1442), 100 * 1538 + 93 * 84);
	cfg.sigcomm_headers = false;
	assert_int_equal(sim_load_wire(&cfg, 1), 38 + 20 + 56 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_ratio__as_in_the_study),
		cmocka_unit_test(load_means__exact),
		cmocka_unit_test(load_wire__packets_and_grants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
