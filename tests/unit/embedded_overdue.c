// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * In the process, too, timers that are due wait until all packets that have arrived were looked
 * at (homa_overdue.h), a flood does not keep them for ever, and timers_waited counts.
 */
#include "embedded.h"
#include "nic_memory.h"
#include "unit.h"

struct bed {
	struct homa_emb *e;
	struct nic_memory *wire;
	struct nic *peer;
};

static struct homa_addr number(u8 n)
{
	return (struct homa_addr){ .ip = { [10] = 0xff, 0xff, 10, 0, 0, n } };
}

/* A host whose nic is exchanged for one in memory, with a peer at the other end. */
static void begin(struct bed *bed)
{
	struct nic_memory_config config = { .seed = 1, .mtu = 1500 };
	struct homa_backend_options options = {
		.nic = "udp",
		.address = "127.0.0.1",
		.rcvbuf = 4 * HOMA_BPAGE_SIZE,
		.flags = HOMA_OPEN_NO_THREAD,
	};
	struct homa_addr me = number(2), other = number(3);
	char err[256];
	void *host;

	assert_int_equal(homa_emb_open(&host, &options, err, sizeof(err)), 0);
	bed->e = host;
	nic_close(bed->e->nic);
	assert_int_equal(nic_memory_create(&bed->wire, &config), 0);
	assert_int_equal(nic_memory_attach(bed->wire, &me, &bed->e->nic), 0);
	assert_int_equal(nic_memory_attach(bed->wire, &other, &bed->peer), 0);
	bed->e->info = nic_info(bed->e->nic);
}

static void end(struct bed *bed)
{
	homa_emb_close(bed->e);
	nic_close(bed->peer);
	nic_memory_destroy(bed->wire);
}

/* Packets that are no messages, so that nothing follows from them. */
static void put(struct bed *bed, u32 n)
{
	u8 header[28] = { 0 };
	struct nic_tx tx = {
		.dst = number(2),
		.hdr = header,
		.hdr_len = sizeof(header),
	};

	while (n--)
		assert_int_equal(nic_tx(bed->peer, &tx, 1), 1);
}

/* A round in which timers are due. Returns true if they ran. */
static bool round_when_due(struct bed *bed)
{
	u64 waited = bed->e->counters.timers_waited;

	bed->e->deadline = 0;
	homa_emb_lock(bed->e);
	homa_emb_round(bed->e);
	homa_gate_unlock(&bed->e->lock);
	if (bed->e->deadline != 0)
		return true;
	assert_int_equal(bed->e->counters.timers_waited, waited + 1);
	return false;
}

static void timers__wait_for_what_has_arrived(void **state)
{
	struct bed bed;

	(void)state;
	begin(&bed);
	put(&bed, HOMA_EMB_BATCH - 1);
	assert_true(round_when_due(&bed));
	assert_int_equal(bed.e->counters.timers_waited, 0);
	put(&bed, 2 * HOMA_EMB_BATCH + 1);
	assert_false(round_when_due(&bed));
	assert_false(round_when_due(&bed));
	assert_true(round_when_due(&bed));
	assert_true(round_when_due(&bed));
	assert_int_equal(bed.e->counters.timers_waited, 2);
	end(&bed);
}

static void timers__run_in_a_flood(void **state)
{
	const u32 rounds = HOMA_OVERDUE_PACKETS / HOMA_EMB_BATCH;
	struct bed bed;
	u32 i, ran = 0;

	(void)state;
	begin(&bed);
	put(&bed, HOMA_EMB_BATCH);
	for (i = 1; i <= 3 * rounds; i++) {
		put(&bed, HOMA_EMB_BATCH);
		ran += round_when_due(&bed);
		assert_int_equal(ran, i / rounds);
	}
	assert_int_equal(bed.e->counters.timers_waited, 3 * rounds - 3);
	end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers__wait_for_what_has_arrived),
		cmocka_unit_test(timers__run_in_a_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
