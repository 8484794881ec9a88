// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_commands.c: what hostile applications have done to their
 * streams, as tests/homad/hostile_streams.c does, each by hand. Rounds are run by hand, too.
 */
#include "streams_bed.h"

/* A command that waited for room among the events is there no more. homad must not wait for it:
 * it would look for it again and again, though nothing happens. */
static void commands__that_are_taken_back(void **state)
{
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	u64 asked_for = 0;

	(void)state;
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	ask(p, 1, &asked_for);
	look(bed, p);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	p->s.area->command.tail = ENTRIES;
	while (event(p).kind)
		;
	look(bed, p);
	assert_false(homad_rings_waiting(&p->side->app));
	assert_false(p->side->app.evicted);
	end(bed, p);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands__that_are_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
