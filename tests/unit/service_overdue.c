// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Timers that are due wait until homad has looked at all packets that have arrived
 * (homa_overdue.h), but a flood does not keep them for ever.
 */
#include "homa_overdue.h"
#include "service_bed.h"
#include "unit.h"

/* So many packets homad takes in a round at most: 8 batches. */
#define ROUND (8 * HOMAD_BATCH)

static struct bed *bed_with_peer(struct nic **peer)
{
	struct homa_addr addr = number(3);
	struct bed *bed = bed_new();

	assert_int_equal(nic_memory_attach(bed->wire, &addr, peer), 0);
	return bed;
}

/* Packets that are no messages, so that nothing follows from them. */
static void send(struct nic *peer, u32 n)
{
	u8 header[28] = { 0 };
	struct nic_tx tx = {
		.dst = number(2),
		.hdr = header,
		.hdr_len = sizeof(header),
	};

	while (n--)
		assert_int_equal(nic_tx(peer, &tx, 1), 1);
}

/* A round in which timers are due. Returns true if they ran. */
static bool round_when_due(struct bed *bed)
{
	u64 waited = bed->t->counters.timers_waited;

	bed->t->deadline = 0;
	homad_round(bed->t);
	if (bed->t->deadline != 0)
		return true;
	assert_int_equal(bed->t->counters.timers_waited, waited + 1);
	return false;
}

static void end(struct bed *bed, struct nic *peer)
{
	nic_close(peer);
	bed_free(bed);
}

static void timers__wait_for_what_has_arrived(void **state)
{
	struct nic *peer;
	struct bed *bed = bed_with_peer(&peer);

	(void)state;
	send(peer, ROUND - 1);
	assert_true(round_when_due(bed));
	assert_int_equal(bed->t->counters.timers_waited, 0);
	send(peer, 2 * ROUND + 1);
	assert_false(round_when_due(bed));
	assert_false(round_when_due(bed));
	assert_true(round_when_due(bed));
	assert_true(round_when_due(bed));
	assert_int_equal(bed->t->counters.timers_waited, 2);
	end(bed, peer);
}

static void timers__run_in_a_flood(void **state)
{
	struct nic *peer;
	struct bed *bed = bed_with_peer(&peer);
	u32 i, ran = 0;

	(void)state;
	send(peer, ROUND);
	for (i = 1; i <= 3 * HOMA_OVERDUE_PACKETS / ROUND; i++) {
		send(peer, ROUND);
		ran += round_when_due(bed);
		assert_int_equal(ran, i / (HOMA_OVERDUE_PACKETS / ROUND));
	}
	assert_int_equal(ran, 3);
	end(bed, peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers__wait_for_what_has_arrived),
		cmocka_unit_test(timers__run_in_a_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
