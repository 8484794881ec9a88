/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* engine/base/homa_list.h: order, membership, and changes while walking. */
#include "unit.h"

#include "homa_list.h"

struct item {
	int value;
	struct homa_list list;
};

static void item_init(struct item *items, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		items[i].value = i;
		homa_list_init(&items[i].list);
	}
}

/* The list holds exactly these values in this order, both ways round. */
static void expect(const struct homa_list *head, const char *values)
{
	const struct homa_list *node;
	const char *v = values;

	homa_list_for_each(node, head) {
		assert_int_equal(homa_list_entry(node, struct item, list)->value,
				 *v++ - '0');
	}
	assert_int_equal(*v, 0);
	for (node = head->prev; node != head; node = node->prev)
		assert_int_equal(homa_list_entry(node, struct item, list)->value,
				 *--v - '0');
	assert_ptr_equal(v, values);
}

static void list_add__head_and_tail(void **state)
{
	struct homa_list head;
	struct item it[4];

	(void)state;
	homa_list_init(&head);
	item_init(it, 4);
	assert_true(homa_list_empty(&head));
	assert_null(homa_list_first(&head));
	homa_list_add_tail(&head, &it[1].list);
	homa_list_add_tail(&head, &it[2].list);
	homa_list_add_head(&head, &it[0].list);
	expect(&head, "012");
	assert_ptr_equal(homa_list_first(&head), &it[0].list);
	assert_true(homa_list_linked(&it[1].list));
	assert_false(homa_list_linked(&it[3].list));
}

static void list_del__twice_is_harmless(void **state)
{
	struct homa_list head;
	struct item it[3];

	(void)state;
	homa_list_init(&head);
	item_init(it, 3);
	homa_list_add_tail(&head, &it[0].list);
	homa_list_add_tail(&head, &it[1].list);
	homa_list_add_tail(&head, &it[2].list);
	homa_list_del(&it[1].list);
	homa_list_del(&it[1].list);
	expect(&head, "02");
	assert_false(homa_list_linked(&it[1].list));
}

static void list_pop__first_until_empty(void **state)
{
	struct homa_list head;
	struct item it[2];

	(void)state;
	homa_list_init(&head);
	item_init(it, 2);
	homa_list_add_tail(&head, &it[0].list);
	homa_list_add_tail(&head, &it[1].list);
	assert_ptr_equal(homa_list_pop(&head), &it[0].list);
	assert_false(homa_list_linked(&it[0].list));
	assert_ptr_equal(homa_list_pop(&head), &it[1].list);
	assert_null(homa_list_pop(&head));
}

static void list_splice_tail__empties_the_source(void **state)
{
	struct homa_list a, b;
	struct item it[4];

	(void)state;
	homa_list_init(&a);
	homa_list_init(&b);
	item_init(it, 4);
	homa_list_splice_tail(&a, &b);
	expect(&a, "");
	homa_list_add_tail(&a, &it[0].list);
	homa_list_add_tail(&b, &it[1].list);
	homa_list_add_tail(&b, &it[2].list);
	homa_list_splice_tail(&a, &b);
	expect(&a, "012");
	expect(&b, "");
	homa_list_add_tail(&b, &it[3].list);
	homa_list_splice_tail(&b, &a);
	expect(&b, "3012");
	expect(&a, "");
}

static void list_for_each_safe__node_may_leave(void **state)
{
	struct homa_list head, *node, *tmp;
	struct item it[5];
	int i;

	(void)state;
	homa_list_init(&head);
	item_init(it, 5);
	for (i = 0; i < 5; i++)
		homa_list_add_tail(&head, &it[i].list);
	homa_list_for_each_safe(node, tmp, &head) {
		if (homa_list_entry(node, struct item, list)->value % 2 == 0)
			homa_list_del(node);
	}
	expect(&head, "13");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_add__head_and_tail),
		cmocka_unit_test(list_del__twice_is_harmless),
		cmocka_unit_test(list_pop__first_until_empty),
		cmocka_unit_test(list_splice_tail__empties_the_source),
		cmocka_unit_test(list_for_each_safe__node_may_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
