// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp_handed.c: segments that one thread hands to another come out as they
 * went in, in order, and those that find no room are refused.
 */
#include <pthread.h>
#include "service_world.h"
#include "tcp_handed.h"
#include "unit.h"

#define PORT 3u
#define MANY 20000u
#define LONGEST HOMAD_HANDED_LONGEST

static struct homad_handed *ring_new(void)
{
	return homad_handed_new(HOMAD_HANDED_LEAST);
}

/* Returns the length of segment @i. */
static u32 length_of(u32 i)
{
	static const u32 lengths[] = { 20, 21, 1500, 4096, 63, 64, 65, 9000 };

	return i % 61 ? lengths[i % 8] : LONGEST - i % 3;
}

static u8 byte_of(u32 i, u32 at)
{
	return (u8)(i * 7 + at + (at >> 8));
}

static void fill(u8 *bytes, u32 i)
{
	u32 at;

	for (at = 0; at < length_of(i); at++)
		bytes[at] = byte_of(i, at);
}

/* Puts segment @i, in one, two or three pieces. */
static bool put(struct homad_handed *h, u32 i)
{
	static u8 bytes[LONGEST];
	u32 length = length_of(i), third = length / 3;
	struct nic_piece piece[3] = {
		{ bytes, third },
		{ bytes + third, i % 3 == 1 ? length - third : third },
		{ bytes + 2 * third, length - 2 * third + 5 },
	};
	struct nic_rx pkt = {
		.data = bytes,
		.len = length,
		.ecn = i & 3,
		.proto = NIC_TCP,
		.pieces = i % 3 ? piece : NULL,
	};

	fill(bytes, i);
	return homad_handed_put(h,
				&(struct homad_handing){ .port = PORT + i % 2,
							 .asked = i },
				&pkt);
}

/* Takes the next segment, which is number @i; false: there is none. */
static bool take(struct homad_handed *h, u32 i)
{
	struct homad_handing with = { 0 };
	const struct nic_rx *pkt = homad_handed_first(h, &with);
	const u8 *data;
	u32 at;

	if (!pkt)
		return false;
	data = pkt->data;
	assert_int_equal(with.port, PORT + i % 2);
	assert_int_equal(with.asked, i);
	assert_int_equal(pkt->len, length_of(i));
	assert_int_equal(pkt->ecn, i & 3);
	assert_null(pkt->pieces);
	for (at = 0; at < pkt->len; at++)
		if (data[at] != byte_of(i, at))
			fail_msg("segment %u differs at byte %u", i, at);
	homad_handed_drop(h);
	return true;
}

static void handed__full_and_empty(void **state)
{
	struct homad_handed *h = ring_new();
	u32 in = 0, out = 0, turns;

	(void)state;
	assert_false(take(h, 0));
	for (turns = 0; turns < 200; turns++) {
		while (put(h, in))
			in++;
		/* Nothing was refused while there was room. */
		assert_true(h->bytes - (h->tail - h->head) < 2 * (LONGEST + 256));
		for (; out < in - turns % 5; out++)
			assert_true(take(h, out));
	}
	while (take(h, out))
		out++;
	assert_int_equal(in, out);
	assert_true(in > 1000);
	free(h);
}

/* However much comes from devices, a program of this host finds room. */
static void handed__from_outside_leaves_room(void **state)
{
	static u8 bytes[LONGEST];
	struct homad_handing outside = { .outside = true }, here = { 0 }, with;
	struct nic_rx pkt = { .data = bytes, .len = LONGEST };
	struct homad_handed *h = ring_new();
	u32 turns;

	(void)state;
	for (turns = 0; turns < 50; turns++) {
		pkt.len = 60 + turns;
		while (homad_handed_put(h, &outside, &pkt))
			;
		assert_true(homad_handed_room(h));
		pkt.len = LONGEST;
		assert_true(homad_handed_put(h, &here, &pkt));
		pkt.len = 60;
		assert_false(homad_handed_put(h, &outside, &pkt));
		while (homad_handed_first(h, &with) && !homad_handed_room(h))
			homad_handed_drop(h);
	}
	free(h);
}

static void handed__longer_than_any(void **state)
{
	struct homad_handed *h = ring_new();
	struct nic_rx pkt = { .data = NULL, .len = LONGEST + 1 };
	struct homad_handing with = { 0 };

	(void)state;
	assert_false(homad_handed_put(h, &with, &pkt));
	pkt.len = UINT32_MAX;
	assert_false(homad_handed_put(h, &with, &pkt));
	assert_int_equal(h->tail, 0);
	free(h);
}

static void *putter(void *arg)
{
	u32 i;

	for (i = 0; i < MANY; i++)
		while (!put(arg, i))
			sched_yield();
	return NULL;
}

static void handed__by_two_threads(void **state)
{
	struct homad_handed *h = ring_new();
	pthread_t thread;
	u32 i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, putter, h), 0);
	for (i = 0; i < MANY; i++)
		while (!take(h, i))
			sched_yield();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(take(h, i));
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handed__full_and_empty),
		cmocka_unit_test(handed__from_outside_leaves_room),
		cmocka_unit_test(handed__longer_than_any),
		cmocka_unit_test(handed__by_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
