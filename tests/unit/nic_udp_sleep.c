// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * nic/udp/udp_open.c: who goes to sleep after a datagram has come asks the kernel nothing
 * first, and an error that no call returns does not keep anybody awake.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic.h"

static struct nic *open_udp(void)
{
	struct nic_config config = { .backend = "udp", .address = "127.0.0.1" };
	char err[256] = "";
	struct nic *nic;

	for (u32 tries = 0; tries < 100; tries++) {
		config.udp_port = (u16)(20000 + ((u32)getpid() * 11 +
						 tries * 137 + (u32)rand()) %
							30000);
		if (!nic_open(&nic, &config, err, sizeof(err)))
			return nic;
	}
	fail_msg("%s", err);
	return NULL;
}

static void send_to(struct nic *a, const struct homa_addr *dst)
{
	u8 hdr[28] = { 0x80, 1, 0, 2 };
	struct nic_tx tx = { .dst = *dst, .hdr = hdr, .hdr_len = sizeof(hdr) };

	homa_put_be64(hdr + 20, 4711);
	assert_int_equal(nic_tx(a, &tx, 1), 1);
	nic_flush(a);
}

static bool readable(struct nic *nic, int ms)
{
	struct pollfd fd = { .fd = nic_fd(nic), .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

/* Takes what has come; how many packets. */
static int take(struct nic *nic)
{
	struct nic_rx rx[16];
	int n = nic_rx(nic, rx, 16);

	nic_rx_release(nic, rx, n);
	return n;
}

static u64 calls(struct nic *nic)
{
	struct nic_stats stats;

	nic_stats(nic, &stats);
	return stats.syscalls;
}

static void sleep__asks_nothing_after_a_packet(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	u64 before;

	(void)state;
	for (int i = 0; i < 50; i++) {
		send_to(a, &nic_info(b)->address);
		assert_true(readable(b, 10000));
		assert_int_equal(take(b), 1);
		assert_int_equal(take(b), 0);
		before = calls(b);
		assert_false(nic_arm(b));
		assert_int_equal(calls(b), before);
		assert_false(readable(b, 0));
	}
	nic_close(a);
	nic_close(b);
}

/* As with a socket that is there beside AF_XDP and gets nothing. */
static void sleep__of_a_quiet_socket_asks_rarely(void **state)
{
	struct nic *a = open_udp();
	u64 before = calls(a);

	(void)state;
	for (int i = 0; i < 1600; i++)
		assert_false(nic_arm(a));
	assert_in_range(calls(a) - before, 0, 100);
	nic_close(a);
}

/* What came between the last look and the sleep wakes the sleeper at once. */
static void sleep__is_short_when_a_packet_waits(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();

	(void)state;
	assert_int_equal(take(b), 0);
	send_to(a, &nic_info(b)->address);
	nic_arm(b);
	assert_true(readable(b, 10000));
	assert_int_equal(take(b), 1);
	nic_close(a);
	nic_close(b);
}

/* The error is told, and when it was, the descriptor is quiet. */
static void sleep__is_not_ended_by_an_old_error(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	struct homa_addr gone = nic_info(b)->address;
	struct nic_error e;
	bool told = false;
	int i;

	(void)state;
	/* A packet has come: now the sleeper asks for nothing. */
	send_to(b, &nic_info(a)->address);
	assert_true(readable(a, 10000));
	assert_int_equal(take(a), 1);
	nic_close(b);
	send_to(a, &gone);
	assert_true(readable(a, 10000));
	/* Woken, looked, asleep again: after some times nothing wakes. */
	for (i = 0; i < 20; i++) {
		take(a);
		nic_arm(a);
		while (nic_errors(a, &e, 1)) {
			assert_int_equal(e.sender_id, 4711);
			told = true;
		}
	}
	assert_true(told);
	assert_false(readable(a, 0));
	nic_close(a);
}

/* The counter says that a datagram has come, and nothing else does. */
static void watch__counts_datagrams(void **state)
{
	struct nic *a = open_udp(), *b = open_udp();
	const u64 *news = nic_watch(b);

	(void)state;
	if (!news) {
		nic_close(a);
		nic_close(b);
		skip(); /* BPF needs a privilege */
	}
	assert_ptr_equal(nic_watch(b), news);
	assert_int_equal(*news, 0);
	for (u64 i = 1; i <= 100; i++) {
		send_to(a, &nic_info(b)->address);
		assert_true(readable(b, 10000));
		assert_int_equal(HOMA_READ_ONCE(*news), i);
		assert_int_equal(take(b), 1);
		assert_int_equal(take(b), 0);
		assert_int_equal(HOMA_READ_ONCE(*news), i);
	}
	nic_close(a);
	nic_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleep__asks_nothing_after_a_packet),
		cmocka_unit_test(sleep__of_a_quiet_socket_asks_rarely),
		cmocka_unit_test(sleep__is_short_when_a_packet_waits),
		cmocka_unit_test(sleep__is_not_ended_by_an_old_error),
		cmocka_unit_test(watch__counts_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
