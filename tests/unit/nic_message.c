// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What driver and device of a message NIC read of each other: numbers that cannot be are refused,
 * whatever they are, and those that can be are taken.
 */
#include "unit.h"

#include "message_check.h"

static const struct mnic_hello good_hello = { MNIC_MAGIC, MNIC_VERSION, 4, 64 };
static const struct mnic_send good_send = { .slot = 63, .len = 60, .prio = 7 };
static const struct mnic_got good_got = { .slot = 63, .len = 60, .pieces = 1 };

static void hello__numbers_that_cannot_be_are_refused(void **state)
{
	struct mnic_hello h = good_hello;

	(void)state;
	assert_true(mnic_hello_ok(&h));
	h.magic++;
	assert_false(mnic_hello_ok(&h));
	h = good_hello;
	h.version = 2;
	assert_false(mnic_hello_ok(&h));
	h = good_hello;
	h.queues = 0;
	assert_false(mnic_hello_ok(&h));
	h.queues = MNIC_QUEUES_MAX + 1;
	assert_false(mnic_hello_ok(&h));
	h.queues = UINT32_MAX;
	assert_false(mnic_hello_ok(&h));
	h = good_hello;
	h.slots = 0;
	assert_false(mnic_hello_ok(&h));
	h.slots = MNIC_ENTRIES + 1;
	assert_false(mnic_hello_ok(&h));
	h.slots = UINT32_MAX;
	assert_false(mnic_hello_ok(&h));
}

static void layout__nothing_overlaps_or_is_outside(void **state)
{
	struct mnic_hello h = good_hello;
	size_t at;

	(void)state;
	at = mnic_queue_at(0);
	assert_true(at >= sizeof(struct mnic_device));
	for (uint32_t q = 0; q < h.queues; q++) {
		assert_int_equal(mnic_queue_at(q), at);
		at += sizeof(struct mnic_queue);
	}
	for (uint32_t q = 0; q < h.queues; q++)
		for (int got = 0; got < 2; got++)
			for (uint32_t slot = 0; slot < h.slots; slot++) {
				assert_int_equal(mnic_slot_at(&h, q, got, slot),
						 at);
				assert_int_equal(at % 8, 0);
				at += MNIC_SLOT_BYTES;
			}
	assert_int_equal(mnic_bytes(&h), at);
}

static void rings__numbers_that_cannot_be_are_noticed(void **state)
{
	struct mnic_ring ring = { .made = 5 };

	(void)state;
	assert_int_equal(mnic_waiting(&ring, 5), 0);
	assert_int_equal(mnic_waiting(&ring, 2), 3);
	assert_int_equal(mnic_waiting(&ring, 5 - MNIC_ENTRIES), MNIC_ENTRIES);
	assert_int_equal(mnic_waiting(&ring, 4 - MNIC_ENTRIES), -1);
	/* The producer took back what was there already. */
	assert_int_equal(mnic_waiting(&ring, 6), -1);
	ring.taken = 5;
	assert_int_equal(mnic_room(&ring, 5), MNIC_ENTRIES);
	assert_int_equal(mnic_room(&ring, 5 + MNIC_ENTRIES), 0);
	assert_int_equal(mnic_room(&ring, 6 + MNIC_ENTRIES), -1);
	/* The consumer took what was never there. */
	assert_int_equal(mnic_room(&ring, 4), -1);
}

static void rings__a_sleeper_is_woken_once(void **state)
{
	struct mnic_ring ring = { 0 };

	(void)state;
	assert_false(mnic_publish(&ring, 1));
	assert_false(mnic_sleep(&ring, 0));
	assert_true(mnic_publish(&ring, 2));
	assert_false(mnic_publish(&ring, 3));
	assert_true(mnic_sleep(&ring, 3));
	mnic_consumed(&ring, 3);
	assert_int_equal(ring.taken, 3);
}

static void send__hostile_descriptors_are_refused(void **state)
{
	struct mnic_send s = good_send;

	(void)state;
	assert_true(mnic_send_ok(&s, 64, 0));
	s.slot = 64;
	assert_false(mnic_send_ok(&s, 64, 0));
	s.slot = UINT32_MAX;
	assert_false(mnic_send_ok(&s, 64, 0));
	s = good_send;
	s.len = 13;
	assert_false(mnic_send_ok(&s, 64, 0));
	s.len = MNIC_FRAME_MAX;
	assert_true(mnic_send_ok(&s, 64, 0));
	s.len = MNIC_FRAME_MAX + 1;
	assert_false(mnic_send_ok(&s, 64, 0));
	s.len = UINT32_MAX;
	assert_false(mnic_send_ok(&s, 64, 0));
	s = good_send;
	s.prio = 8;
	assert_false(mnic_send_ok(&s, 64, 0));
	s = good_send;
	s.seg = 1400;
	assert_false(mnic_send_ok(&s, 64, 0));
	assert_true(mnic_send_ok(&s, 64, MNIC_FEATURE_LSO));
}

static void got__hostile_descriptors_are_refused(void **state)
{
	struct mnic_got g = good_got;

	(void)state;
	assert_true(mnic_got_ok(&g, 64));
	g.slot = 64;
	assert_false(mnic_got_ok(&g, 64));
	g = good_got;
	g.len = 13;
	assert_false(mnic_got_ok(&g, 64));
	g.len = MNIC_FRAME_MAX + 1;
	assert_false(mnic_got_ok(&g, 64));
	g = good_got;
	g.pieces = 0;
	assert_false(mnic_got_ok(&g, 64));
	g.pieces = MNIC_PIECES_MAX + 1;
	assert_false(mnic_got_ok(&g, 64));
	/* A unit has its DATA header inside. */
	g = good_got;
	g.pieces = 2;
	g.at = 34;
	g.len = 34 + 55;
	assert_false(mnic_got_ok(&g, 64));
	g.len = 34 + 56;
	assert_true(mnic_got_ok(&g, 64));
	g.at = 255;
	assert_false(mnic_got_ok(&g, 64));
	g.at = 0;
	assert_false(mnic_got_ok(&g, 64));
}

/* A unit of @pieces packets of @seg bytes, but the last of @rest, at message offset 1,000. */
static uint32_t make_unit(uint8_t *unit, struct mnic_piece *list,
			  uint32_t pieces, uint32_t seg, uint32_t rest)
{
	uint32_t at = 52, offset = 1000;

	memset(unit, 0x5a, 4096);
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t len = i + 1 < pieces ? seg : rest;

		unit[at] = unit[at + 1] = 0;
		unit[at + 2] = (uint8_t)(offset >> 8);
		unit[at + 3] = (uint8_t)offset;
		list[i] = (struct mnic_piece){ offset, len };
		at += 4 + len;
		offset += len;
	}
	return at;
}

static void unit__list_and_bytes_must_agree(void **state)
{
	static uint8_t unit[4096];
	struct mnic_piece list[3];
	uint32_t bytes = make_unit(unit, list, 3, 100, 40);

	(void)state;
	assert_true(mnic_unit_ok(unit, bytes, list, 3));
	for (uint32_t cut = 0; cut < 200; cut++)
		if (cut != 0)
			assert_false(mnic_unit_ok(unit, bytes - cut, list, 3));
	assert_false(mnic_unit_ok(unit, bytes + 1, list, 3));
	assert_false(mnic_unit_ok(unit, 0, list, 3));
	assert_false(mnic_unit_ok(unit, bytes, list, 2));
	list[1].offset++;
	assert_false(mnic_unit_ok(unit, bytes, list, 3));
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t wrong[] = { 0,	      1,
						  101,	      0x7fffffff,
						  UINT32_MAX, UINT32_MAX - 55 };

		for (uint32_t k = 0; k < 6; k++) {
			bytes = make_unit(unit, list, 3, 100, 40);
			list[i].length = wrong[k];
			assert_false(mnic_unit_ok(unit, bytes, list, 3));
		}
	}
	/* Lengths whose sum wraps to the right one. */
	bytes = make_unit(unit, list, 3, 100, 40);
	list[0].length = list[1].length = 0x80000000u + 100;
	assert_false(mnic_unit_ok(unit, bytes, list, 3));
}

static void address__is_bounded(void **state)
{
	char out[108];

	(void)state;
	assert_true(mnic_address("homa0", out, sizeof(out)) > 6);
	assert_int_equal(out[0], 0);
	assert_int_equal(mnic_address("homa0", out, 8), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__numbers_that_cannot_be_are_refused),
		cmocka_unit_test(layout__nothing_overlaps_or_is_outside),
		cmocka_unit_test(rings__numbers_that_cannot_be_are_noticed),
		cmocka_unit_test(rings__a_sleeper_is_woken_once),
		cmocka_unit_test(send__hostile_descriptors_are_refused),
		cmocka_unit_test(got__hostile_descriptors_are_refused),
		cmocka_unit_test(unit__list_and_bytes_must_agree),
		cmocka_unit_test(address__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
