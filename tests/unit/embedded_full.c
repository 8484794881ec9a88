// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/embedded/txpath.c: what a nic does not take is no work, so whoever runs the protocol may
 * sleep, and it is sent when there is room.
 */
#include <netinet/in.h>
#include "embedded.h"
#include "nic_backend.h"
#include "nic_memory.h"
#include "unit.h"

/* The packets that the nic takes still, and what it is like besides. */
static int room;
static const struct nic_ops *beneath;

static int narrow_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	int taken = n < room ? n : room;

	room -= taken;
	return taken ? beneath->tx(nic, pkts, taken) : 0;
}

static struct homa_addr number(u8 n)
{
	return (struct homa_addr){ .ip = { [10] = 0xff, 0xff, 10, 0, 0, n } };
}

/* A host with a narrow nic in memory, and a peer that says nothing. */
struct bed {
	struct homa_emb *e;
	struct nic_memory *wire;
	struct nic *peer;
	struct nic_ops ops;
};

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
	bed->e->encap = false;
	beneath = bed->e->nic->ops;
	bed->ops = *beneath;
	bed->ops.tx = narrow_tx;
	bed->e->nic->ops = &bed->ops;
	room = 0;
}

static void end(struct bed *bed)
{
	room = 1000;
	homa_emb_close(bed->e);
	nic_close(bed->peer);
	nic_memory_destroy(bed->wire);
}

static int round_of(struct bed *bed)
{
	int done;

	homa_emb_lock(bed->e);
	done = homa_emb_round(bed->e);
	homa_gate_unlock(&bed->e->lock);
	return done;
}

static bool may_sleep(struct bed *bed)
{
	bool may;

	homa_emb_lock(bed->e);
	may = homa_emb_next_deadline(bed->e) > bed->e->ctx.now;
	homa_gate_unlock(&bed->e->lock);
	return may;
}

static u64 sent(const struct bed *bed)
{
	struct nic_stats stats;

	nic_stats(bed->e->nic, &stats);
	return stats.tx_packets;
}

static void full__lets_the_protocol_sleep(void **state)
{
	u8 bytes[100] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct homa_message_out out = { .iov = &iov,
					.iovcnt = 1,
					.length = sizeof(bytes) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(99) };
	struct bed bed;
	uint64_t id;

	(void)state;
	begin(&bed);
	to.sin_addr.s_addr = htonl(0x0a000003);
	assert_int_equal(homa_emb_request(bed.e, (struct sockaddr *)&to, &out,
					  0, 0, &id),
			 0);
	assert_int_equal(round_of(&bed), 0);
	assert_true(bed.e->tx_blocked);
	assert_true(may_sleep(&bed));
	assert_int_equal(sent(&bed), 0);
	room = 1;
	assert_int_equal(round_of(&bed), 1);
	assert_int_equal(sent(&bed), 1);
	assert_false(bed.e->tx_blocked);
	end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full__lets_the_protocol_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
