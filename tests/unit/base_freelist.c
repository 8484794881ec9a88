/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* engine/base/homa_freelist.h: every object once, and no byte beyond. */
#include "unit.h"

#include "homa_freelist.h"

struct object {
	u64 a;
	u8 b[40];
};

static void freelist_grow__all_objects_once_in_order(void **state)
{
	struct object *memory = malloc(8 * sizeof(*memory));
	struct homa_freelist list;
	int i;

	(void)state;
	homa_freelist_init(&list);
	assert_null(homa_freelist_get(&list));
	assert_int_equal(homa_freelist_grow(&list, memory, 8 * sizeof(*memory),
					    sizeof(*memory)),
			 8);
	assert_int_equal(list.free, 8);
	for (i = 0; i < 8; i++) {
		struct object *o = homa_freelist_get(&list);

		assert_ptr_equal(o, &memory[i]);
		memset(o, 0xff, sizeof(*o));
	}
	assert_null(homa_freelist_get(&list));
	assert_int_equal(list.free, 0);
	assert_int_equal(list.total, 8);
	free(memory);
}

static void freelist_grow__ignores_a_rest_that_is_too_small(void **state)
{
	struct object memory[2];
	struct homa_freelist list;

	(void)state;
	homa_freelist_init(&list);
	assert_int_equal(homa_freelist_grow(&list, memory, sizeof(memory) - 1,
					    sizeof(memory[0])),
			 1);
	assert_int_equal(
		homa_freelist_grow(&list, &memory[1], 3, sizeof(memory[0])), 0);
	assert_ptr_equal(homa_freelist_get(&list), &memory[0]);
	assert_null(homa_freelist_get(&list));
}

static void freelist_put__last_in_first_out(void **state)
{
	struct object memory[3];
	struct homa_freelist list;
	void *a, *b;

	(void)state;
	homa_freelist_init(&list);
	homa_freelist_grow(&list, memory, sizeof(memory), sizeof(memory[0]));
	a = homa_freelist_get(&list);
	b = homa_freelist_get(&list);
	homa_freelist_put(&list, a);
	homa_freelist_put(&list, b);
	assert_ptr_equal(homa_freelist_get(&list), b);
	assert_ptr_equal(homa_freelist_get(&list), a);
	assert_int_equal(list.free, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freelist_grow__all_objects_once_in_order),
		cmocka_unit_test(
			freelist_grow__ignores_a_rest_that_is_too_small),
		cmocka_unit_test(freelist_put__last_in_first_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
