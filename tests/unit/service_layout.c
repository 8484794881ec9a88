// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Where homad puts rings: as ever if nobody asks, and never one over the other. */
#include "unit.h"

#include <stddef.h>
#include <stdlib.h>
#include "layout.h"

static void usual__is_what_former_applications_know(void **state)
{
	struct homa_ctl_rings nothing = { 0 };
	struct homad_layout l;

	(void)state;
	assert_true(homad_layout_make(&l, &nothing));
	assert_int_equal(l.submit, offsetof(struct homa_shm_queues, sqe));
	assert_int_equal(homad_layout_ring_end(&l, 0),
			 offsetof(struct homa_shm_queues, sqe[1]));
	assert_int_equal(l.complete, offsetof(struct homa_shm_queues, cqe));
	assert_int_equal(l.release, offsetof(struct homa_shm_queues, released));
	assert_int_equal(l.places, sizeof(struct homa_shm_queues));
}

/* The table names every ring once, and none lies over the header, another, or the table. */
static void check_table(const struct homad_layout *l)
{
	struct homa_shm_header *h = calloc(1, l->bytes);
	const struct homa_shm_place *place;
	u64 end = sizeof(*h);
	u32 i, seen[HOMA_SHM_RELEASE + 1] = { 0 };

	homad_layout_tell(l, h);
	assert_int_equal(h->places % 8, 0);
	assert_true(h->places + h->num_places * sizeof(*place) <= l->bytes);
	place = (const struct homa_shm_place *)((u8 *)h + h->places);
	for (i = 0; i < h->num_places; i++, place++) {
		assert_int_equal(place->number, seen[place->kind]++);
		assert_int_equal(place->first % HOMA_SHM_LINE, 0);
		assert_true(place->first >= end);
		end = place->first + (u64)place->entries * place->entry_bytes;
		assert_true(place->indices + sizeof(struct homa_shm_ring) <=
			    sizeof(*h));
	}
	assert_true(end <= h->places);
	assert_int_equal(seen[HOMA_SHM_SUBMIT], HOMA_SHM_SQS);
	assert_int_equal(seen[HOMA_SHM_COMPLETE], 1);
	assert_int_equal(seen[HOMA_SHM_RELEASE], 1);
	free(h);
}

static void every_size__has_its_place(void **state)
{
	struct homa_ctl_rings r;
	struct homad_layout l;
	u32 given = 0;

	(void)state;
	for (r.submit = HOMA_SHM_SQ_MIN; r.submit <= HOMA_SHM_SQ_MAX;
	     r.submit *= 2)
		for (r.complete = HOMA_SHM_CQ_MIN;
		     r.complete <= HOMA_SHM_CQ_MAX; r.complete *= 2)
			for (r.release = HOMA_SHM_RELEASES_MIN;
			     r.release <= HOMA_SHM_RELEASES_MAX; r.release *= 2) {
				assert_true(homad_layout_make(&l, &r));
				assert_memory_equal(&l.entries, &r, sizeof(r));
				check_table(&l);
				given++;
			}
	assert_int_equal(given, 7 * 10 * 11);
}

static void other_sizes__are_refused(void **state)
{
	static const struct homa_ctl_rings wrong[] = {
		{ .submit = HOMA_SHM_SQ_MIN / 2 },
		{ .submit = HOMA_SHM_SQ_MAX * 2 },
		{ .submit = 1u << 31 },
		{ .submit = 100 },
		{ .complete = HOMA_SHM_CQ_MIN / 2 },
		{ .complete = HOMA_SHM_CQ_MAX * 2 },
		{ .complete = ~0u },
		{ .release = HOMA_SHM_RELEASES_MIN / 2 },
		{ .release = HOMA_SHM_RELEASES_MAX * 2 },
		{ .release = 65 },
	};
	struct homad_layout l;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(wrong); i++)
		assert_false(homad_layout_make(&l, &wrong[i]));
}

/* Believes its own words, not those in shared memory. */
static void used__without_the_table(void **state)
{
	struct homa_ctl_rings sizes = { 16, 64, 128 };
	struct homad_app app = { 0 };
	struct homad_layout l;

	(void)state;
	assert_true(homad_layout_make(&l, &sizes));
	app.queues = calloc(1, l.bytes);
	homad_layout_use(&l, &app);
	assert_ptr_equal(app.rings.sqe, (u8 *)app.queues + l.submit);
	assert_ptr_equal(app.rings.cqe, (u8 *)app.queues + l.complete);
	assert_ptr_equal(app.rings.released, (u8 *)app.queues + l.release);
	assert_int_equal(app.rings.sq_entries, 16);
	assert_int_equal(app.rings.cq_entries, 64);
	assert_int_equal(app.rings.releases, 128);
	free(app.queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual__is_what_former_applications_know),
		cmocka_unit_test(every_size__has_its_place),
		cmocka_unit_test(other_sizes__are_refused),
		cmocka_unit_test(used__without_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
