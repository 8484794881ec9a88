// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The loop to ourselves: order, content, and what happens when it is full. */
#include "unit.h"

#include <errno.h>

#include "loop.h"
#include "netif.h"

static struct nic_loop loop;
static struct homa_addr self;
static u8 hdr[28];
static u8 body[100];

static int send(u8 mark)
{
	struct nic_tx tx = {
		.dst = self,
		.hdr = hdr,
		.hdr_len = sizeof(hdr),
		.payload = body,
		.payload_len = sizeof(body),
		.prio = 3,
	};

	hdr[0] = mark;
	memset(body, mark, sizeof(body));
	return nic_loop_tx(&loop, &tx, &self, 1500);
}

static int fresh(void **state)
{
	(void)state;
	nic_addr_parse("10.9.0.1", &self);
	memset(&loop, 0, sizeof(loop));
	return 0;
}

static int done(void **state)
{
	(void)state;
	nic_loop_fini(&loop);
	return 0;
}

static void loop__keeps_order_and_content(void **state)
{
	struct nic_rx rx[8];

	(void)state;
	for (u8 i = 0; i < 5; i++)
		assert_int_equal(send(i), 0);
	assert_int_equal(nic_loop_rx(&loop, rx, 3), 3);
	assert_int_equal(nic_loop_rx(&loop, rx + 3, 5), 2);
	for (u8 i = 0; i < 5; i++) {
		assert_int_equal(rx[i].len, 128);
		assert_int_equal(rx[i].data[0], i);
		assert_int_equal(rx[i].data[127], i);
		assert_int_equal(rx[i].prio, 3);
		assert_true(homa_addr_equal(&rx[i].src, &self));
		nic_loop_release(&loop, (u32)rx[i].token);
	}
	assert_int_equal(nic_loop_rx(&loop, rx, 8), 0);
}

static void loop__full_of_waiting_packets_means_later(void **state)
{
	struct nic_rx rx;

	(void)state;
	for (int i = 0; i < NIC_LOOP_SLOTS; i++)
		assert_int_equal(send((u8)i), 0);
	assert_int_equal(send(0), -EAGAIN);
	assert_int_equal(nic_loop_rx(&loop, &rx, 1), 1);
	nic_loop_release(&loop, (u32)rx.token);
	assert_int_equal(send(0), 0);
}

static void loop__buffers_held_by_the_receiver_mean_loss(void **state)
{
	struct nic_rx rx[NIC_LOOP_SLOTS];

	(void)state;
	for (int i = 0; i < NIC_LOOP_SLOTS; i++)
		assert_int_equal(send((u8)i), 0);
	assert_int_equal(nic_loop_rx(&loop, rx, NIC_LOOP_SLOTS), NIC_LOOP_SLOTS);
	assert_int_equal(send(0), -ENOBUFS);
	for (int i = 0; i < NIC_LOOP_SLOTS; i++) {
		assert_int_equal(rx[i].data[0], (u8)i);
		nic_loop_release(&loop, (u32)rx[i].token);
	}
	assert_int_equal(send(0), 0);
}

static void loop__too_large_is_refused(void **state)
{
	static u8 large[2000];
	struct nic_tx tx = {
		.dst = self,
		.hdr = hdr,
		.hdr_len = 28,
		.payload = large,
		.payload_len = sizeof(large),
	};

	(void)state;
	assert_int_equal(nic_loop_tx(&loop, &tx, &self, 1500), -EMSGSIZE);
	assert_false(nic_loop_waiting(&loop));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(loop__keeps_order_and_content,
						fresh, done),
		cmocka_unit_test_setup_teardown(loop__full_of_waiting_packets_means_later,
						fresh, done),
		cmocka_unit_test_setup_teardown(loop__buffers_held_by_the_receiver_mean_loss,
						fresh, done),
		cmocka_unit_test_setup_teardown(loop__too_large_is_refused,
						fresh, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
