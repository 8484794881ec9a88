// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The link in memory: faithful without settings, as faulty as told with them,
 * repeatable with a seed, and with the same promises as the real backends.
 */
#include "unit.h"

#include <errno.h>
#include <poll.h>

#include "netif.h"
#include "nic_memory.h"

#define PACKETS 20000

struct fixture {
	struct nic_memory *link;
	struct nic *a;
	struct nic *b;
	struct homa_addr addr_a;
	struct homa_addr addr_b;
};

static void open_pair(struct fixture *f, const struct nic_memory_config *config)
{
	nic_addr_parse("10.0.0.1", &f->addr_a);
	nic_addr_parse("10.0.0.2", &f->addr_b);
	assert_int_equal(nic_memory_create(&f->link, config), 0);
	assert_int_equal(nic_memory_attach(f->link, &f->addr_a, &f->a), 0);
	assert_int_equal(nic_memory_attach(f->link, &f->addr_b, &f->b), 0);
}

static void close_pair(struct fixture *f)
{
	nic_close(f->a);
	nic_close(f->b);
	nic_memory_destroy(f->link);
}

static void send(struct fixture *f, u32 id, u32 payload_len)
{
	static u8 payload[2000];
	u8 hdr[28] = { 0 };
	struct nic_tx tx = {
		.dst = f->addr_b,
		.hdr = hdr,
		.hdr_len = sizeof(hdr),
		.payload = payload,
		.payload_len = payload_len,
		.prio = 2,
	};

	homa_put_be16(hdr, 1000);
	homa_put_be16(hdr + 2, 2000);
	homa_put_be64(hdr + 20, id);
	assert_int_equal(nic_tx(f->a, &tx, 1), 1);
}

struct tally {
	u32 received;
	u32 late;
	u32 damaged;
	u64 hash;
};

static struct tally transfer(struct nic_memory_config config)
{
	struct tally t = { 0 };
	struct fixture f;
	struct nic_rx rx[32];
	u64 last = 0;

	open_pair(&f, &config);
	for (u32 id = 1; id <= PACKETS; id++) {
		int n;

		send(&f, id, 10);
		/* several wait, so that one can overtake */
		if (id % 16 && id != PACKETS)
			continue;
		while ((n = nic_rx(f.b, rx, 32)) > 0) {
			for (int i = 0; i < n; i++) {
				u64 got = homa_get_be64(rx[i].data + 20);
				u32 set = 0;

				assert_int_equal(rx[i].len, 38);
				for (u32 k = 28; k < 38; k++)
					set += rx[i].data[k] != 0;
				if (got < 1 || got > PACKETS || set)
					t.damaged++;
				else if (got < last)
					t.late++;
				last = got;
				t.received++;
				t.hash = t.hash * 31 + got;
			}
			nic_rx_release(f.b, rx, n);
		}
	}
	close_pair(&f);
	return t;
}

static void memory__faithful(void **state)
{
	struct tally t = transfer((struct nic_memory_config){ .seed = 1 });

	(void)state;
	assert_int_equal(t.received, PACKETS);
	assert_int_equal(t.late + t.damaged, 0);
}

/* Within six standard deviations of the expected number. */
static void assert_about(u32 got, double rate)
{
	double mean = PACKETS * rate, d = got - mean;

	assert_true(d * d <= 36 * mean);
}

static void memory__rates_are_as_told(void **state)
{
	struct tally t;

	(void)state;
	t = transfer((struct nic_memory_config){ .seed = 7, .loss = 100000 });
	assert_about(PACKETS - t.received, 0.1);
	t = transfer((struct nic_memory_config){ .seed = 7, .duplicate = 50000 });
	assert_about(t.received - PACKETS, 0.05);
	t = transfer((struct nic_memory_config){ .seed = 7, .reorder = 100000 });
	assert_int_equal(t.received, PACKETS);
	assert_in_range(t.late, 1000, 2500);
	t = transfer((struct nic_memory_config){ .seed = 7, .corrupt = 200000 });
	/* a bit of the packet's 38 bytes: 18 of them are looked at here, of the
	 * id half a dozen bits leave it plausible */
	assert_int_equal(t.received, PACKETS);
	assert_in_range(t.damaged, 1000, 4000);
}

static void memory__equal_seeds_give_equal_runs(void **state)
{
	struct nic_memory_config config = {
		.seed = 42,
		.loss = 50000,
		.duplicate = 50000,
		.reorder = 50000,
	};
	struct tally one = transfer(config), two = transfer(config);

	(void)state;
	assert_true(one.hash == two.hash);
	config.seed = 43;
	two = transfer(config);
	assert_true(one.hash != two.hash);
}

static void memory__errors_come_back(void **state)
{
	struct nic_memory_config config = { .seed = 1 };
	struct nic_error e;
	struct fixture f;
	struct nic_rx rx;
	u32 mtu = 0;

	(void)state;
	open_pair(&f, &config);
	send(&f, 8, 0);
	assert_int_equal(nic_rx(f.b, &rx, 1), 1);
	nic_port_unreachable(f.b, &rx);
	nic_rx_release(f.b, &rx, 1);
	assert_int_equal(nic_errors(f.a, &e, 1), 1);
	assert_int_equal(e.error, ECONNREFUSED);
	assert_int_equal(e.sport, 1000);
	assert_int_equal(e.dport, 2000);
	assert_int_equal(e.sender_id, 8);
	assert_true(homa_addr_equal(&e.dst, &f.addr_b));

	send(&f, 9, 1500 - 20 - 28 + 1);
	assert_int_equal(nic_errors(f.a, &e, 1), 1);
	assert_int_equal(e.error, EMSGSIZE);
	assert_int_equal(e.mtu, 1500);

	assert_int_equal(nic_route(f.a, &f.addr_b, &mtu), 0);
	assert_int_equal(mtu, 1500);
	f.addr_b.ip[15] = 9;
	assert_int_equal(nic_route(f.a, &f.addr_b, &mtu), -EHOSTUNREACH);
	send(&f, 10, 0);
	assert_int_equal(nic_errors(f.a, &e, 1), 1);
	assert_int_equal(e.error, EHOSTUNREACH);
	close_pair(&f);
}

static void memory__peers_are_address_and_port(void **state)
{
	struct nic_memory_config config = { .seed = 1 };
	struct homa_addr third;
	struct fixture f;
	struct nic *c, *again;
	struct nic_rx rx;

	(void)state;
	open_pair(&f, &config);
	third = f.addr_b;
	third.encap = 5000;
	assert_int_equal(nic_memory_attach(f.link, &third, &c), 0);
	assert_int_equal(nic_memory_attach(f.link, &third, &again), -EADDRINUSE);
	send(&f, 1, 0);
	assert_int_equal(nic_rx(c, &rx, 1), 0);
	assert_int_equal(nic_rx(f.b, &rx, 1), 1);
	nic_rx_release(f.b, &rx, 1);
	nic_close(c);
	assert_int_equal(nic_memory_attach(f.link, &third, &c), 0);
	nic_close(c);
	close_pair(&f);
}

static bool readable(struct nic *nic)
{
	struct pollfd p = { .fd = nic_fd(nic), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void memory__arm_and_wake(void **state)
{
	struct nic_memory_config config = { .seed = 1 };
	struct fixture f;
	struct nic_rx rx;

	(void)state;
	open_pair(&f, &config);
	assert_false(nic_arm(f.b));
	assert_false(readable(f.b));
	send(&f, 1, 0);
	assert_true(readable(f.b));
	assert_true(nic_arm(f.b)); /* one waits already */
	assert_int_equal(nic_rx(f.b, &rx, 1), 1);
	nic_rx_release(f.b, &rx, 1);
	assert_false(readable(f.b));
	assert_false(nic_arm(f.b));
	close_pair(&f);
}

static void memory__queue_is_bounded(void **state)
{
	struct nic_memory_config config = { .seed = 1, .queue = 5 };
	struct nic_stats stats;
	struct fixture f;
	struct nic_rx rx[8];

	(void)state;
	open_pair(&f, &config);
	for (u32 i = 0; i < 8; i++)
		send(&f, i, 0);
	assert_int_equal(nic_rx(f.b, rx, 8), 5);
	nic_rx_release(f.b, rx, 5);
	nic_stats(f.b, &stats);
	assert_int_equal(stats.rx_dropped, 3);
	close_pair(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__faithful),
		cmocka_unit_test(memory__rates_are_as_told),
		cmocka_unit_test(memory__equal_seeds_give_equal_runs),
		cmocka_unit_test(memory__errors_come_back),
		cmocka_unit_test(memory__peers_are_address_and_port),
		cmocka_unit_test(memory__arm_and_wake),
		cmocka_unit_test(memory__queue_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
