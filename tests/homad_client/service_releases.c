// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * More receive buffers are given back than the release ring has room for, and homad does not take
 * any: each of them comes to homad later, once.
 */
#include "client_test.h"

#define RING HOMA_SHM_RELEASES_MIN
#define PIECES (3 * RING)

static struct homa_message msgs[PIECES];
static u32 came[PIECES];

/* All pieces are the application's: piece i is granule i of the pool. */
static void receive_all(void)
{
	u32 i;

	f.entries = (struct homa_ctl_rings){ HOMA_SHM_SQ_MIN, 4 * RING, RING };
	open_handle();
	memset(came, 0, sizeof(came));
	for (i = 0; i < PIECES; i++) {
		fake_put(&f,
			 (struct homa_cqe){ .kind = HOMA_CQE_REQUEST,
					    .length = 1,
					    .num_pages = 1,
					    .pages = { 64 * i },
					    .token = 0x10000 + i,
					    .id = 2 * i + 1 },
			 NULL);
		receive(&msgs[i], HOMA_REQUEST);
	}
}

/* homad takes up to @most of what is in the ring; how many there were. */
static u32 take(u32 most)
{
	struct homa_shm_ring *ring = &f.q->h.release;
	u32 n = 0;

	assert_in_range(fake_released(&f) - f.release_head, 0, RING);
	for (; n < most && f.release_head != fake_released(&f); n++) {
		u32 page = f.pages_back[f.release_head++ % RING];

		assert_int_equal(page % 64, 0);
		assert_in_range(page / 64, 0, PIECES - 1);
		came[page / 64]++;
	}
	__atomic_store_n(&ring->head, f.release_head, __ATOMIC_RELEASE);
	return n;
}

static void assert_each_came_once(void)
{
	u32 i;

	for (i = 0; i < PIECES; i++)
		if (came[i] != 1)
			fail_msg("piece %u came %u times", i, came[i]);
}

static void full_ring__loses_nothing(void **state)
{
	u64 count;
	u32 i;

	(void)state;
	receive_all();
	for (i = 0; i < PIECES; i++)
		homa_release(h, &msgs[i]);
	assert_int_equal(counter("host_releases_kept"), PIECES - RING);
	/* homad, which does not look, was told of the full ring. */
	assert_int_equal(read(f.kick_fd, &count, sizeof(count)), 8);
	while (take(RING))
		homa_poll(h);
	assert_each_came_once();
	assert_int_equal(counter("host_releases_kept"), PIECES - RING);
}

/* Room comes in small parts, while others are given back. */
static void little_room__is_used(void **state)
{
	u32 i;

	(void)state;
	receive_all();
	for (i = 0; i < PIECES; i++) {
		homa_release(h, &msgs[i]);
		if (i > RING && i % 2)
			take(1);
	}
	while (take(5))
		homa_poll(h);
	assert_each_came_once();
}

/* One that waits for room is not the application's any more. */
static void kept__is_given_back(void **state)
{
	u32 page, i;

	(void)state;
	receive_all();
	for (i = 0; i < PIECES; i++)
		homa_release(h, &msgs[i]);
	for (i = 0; i < PIECES; i++) {
		page = 64 * i;
		assert_int_equal(homa_internal_release_pages(h, &page, 1),
				 -EINVAL);
	}
	while (take(RING))
		homa_poll(h);
	assert_each_came_once();
}

static void *wait_for_one(void *arg)
{
	struct homa_message *msg = arg;

	receive(msg, HOMA_REQUEST);
	return NULL;
}

/* homad may have no page for any message before it has those that are kept. */
static void kept__comes_while_the_program_sleeps(void **state)
{
	struct homa_message msg;
	pthread_t thread;
	u32 i, tries, taken = 0;

	(void)state;
	receive_all();
	for (i = 0; i < PIECES; i++)
		homa_release(h, &msgs[i]);
	pthread_create(&thread, NULL, wait_for_one, &msg);
	while (!(__atomic_load_n(&f.q->h.armed, __ATOMIC_SEQ_CST) &
		 HOMA_SHM_ARM_ANY))
		usleep(1000);
	for (tries = 0; tries < 20000 && taken < PIECES; tries++) {
		taken += take(RING);
		usleep(1000);
	}
	assert_each_came_once();
	fake_put(&f,
		 (struct homa_cqe){
			 .kind = HOMA_CQE_REQUEST, .token = 0x20000, .id = 1 },
		 NULL);
	pthread_join(thread, NULL);
}

/* With homad its pages have gone; the next one hears of its own only. */
static void kept__ends_with_homad(void **state)
{
	struct homa_message msg;
	u32 i;

	(void)state;
	receive_all();
	for (i = 0; i < PIECES; i++)
		homa_release(h, &msgs[i]);
	fake_kill(&f);
	fake_start(&f);
	while (__atomic_load_n(&f.attaches, __ATOMIC_SEQ_CST) < 2) {
		homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);
		usleep(1000);
	}
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	homa_release(h, &msg);
	homa_poll(h);
	assert_int_equal(fake_released(&f), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(full_ring__loses_nothing),
		T(little_room__is_used),
		T(kept__is_given_back),
		T(kept__comes_while_the_program_sleeps),
		T(kept__ends_with_homad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
