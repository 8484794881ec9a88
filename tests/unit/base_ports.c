/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* engine/base/homa_ports.h against a search. */
#include "unit.h"

#include "homa_ports.h"

static u32 search(const bool *taken, u32 from)
{
	u32 i;

	for (i = 0; i < HOMA_PORTS; i++)
		if (!taken[(from + i) % HOMA_PORTS])
			return (from + i) % HOMA_PORTS;
	return HOMA_PORTS;
}

static void ports_next__like_a_search(void **state)
{
	static struct homa_ports ports;
	static bool taken[HOMA_PORTS];
	u64 seed = unit_seed();
	struct homa_rng rng;
	u32 round, i;

	(void)state;
	homa_rng_init(&rng, seed);
	memset(&ports, 0, sizeof(ports));
	for (round = 0; round < 300; round++) {
		u32 at = homa_rng_below(&rng, HOMA_PORTS);
		u32 n = homa_rng_below(&rng, 6000);
		bool take = homa_rng_below(&rng, 3);

		for (i = at; i < at + n; i++) {
			u32 port = i % HOMA_PORTS;

			taken[port] = take;
			if (take)
				homa_ports_take(&ports, port);
			else
				homa_ports_free(&ports, port);
		}
		for (i = 0; i < 20; i++) {
			u32 from = homa_rng_below(&rng, HOMA_PORTS);

			unit_assert(seed, homa_ports_next(&ports, from) ==
						  search(taken, from));
		}
	}
}

static void ports_next__none_and_one(void **state)
{
	static struct homa_ports ports;
	u32 i;

	(void)state;
	memset(&ports, 0, sizeof(ports));
	for (i = 0; i < HOMA_PORTS; i++)
		homa_ports_take(&ports, i);
	for (i = 0; i < HOMA_PORTS; i += 7)
		assert_int_equal(homa_ports_next(&ports, i), HOMA_PORTS);
	homa_ports_free(&ports, 4711);
	for (i = 0; i < HOMA_PORTS; i += 7)
		assert_int_equal(homa_ports_next(&ports, i), 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_next__like_a_search),
		cmocka_unit_test(ports_next__none_and_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
