// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Where homad says that its rings are: homads of former times and of times to come, and tables
 * that cannot be. homad is trusted, but a mistake there must not become a wild write here.
 */
#include "client_test.h"

static void ask_and_answer(u32 times)
{
	struct homa_message msg;
	u32 i;

	for (i = 0; i < times; i++) {
		u64 id = request(data, 100, 0);

		receive(&msg, HOMA_RESPONSE);
		assert_int_equal(msg.id, id);
		assert_memory_equal(msg.iov[0].iov_base, data, 100);
		homa_release(h, &msg);
	}
}

/* The release ring wraps, and with it all others. */
static void former_homad__is_used_as_it_was(void **state)
{
	(void)state;
	f.former = true;
	open_handle();
	assert_int_equal(f.q->h.num_places, 0);
	fake_echo(&f);
	ask_and_answer(HOMA_SHM_RELEASES + 100);
}

static void later_homad__of_other_sizes_and_more_kinds(void **state)
{
	(void)state;
	f.minor = 7;
	f.features = 0xfffffe00;
	f.entries = (struct homa_ctl_rings){ 16, 32, 64 };
	open_handle();
	fake_echo(&f);
	ask_and_answer(500);
	/* Nothing was written where the rings were in former times. */
	assert_int_equal(f.q->sqe[0][0].op, 0);
	assert_int_equal(f.q->released[0], 0);
	assert_int_equal(f.q->cqe[0].kind, 0);
}

static void full_ring__is_full_when_the_table_says_so(void **state)
{
	u32 i;
	int rc;

	(void)state;
	f.entries = (struct homa_ctl_rings){ 16, 32, 64 };
	open_handle();
	for (i = 0; i < 16; i++)
		request(data, 10, 0);
	rc = homa_request(h, (struct sockaddr *)&server, sizeof(server), data,
			  10, 7, HOMA_NONBLOCK, NULL);
	assert_int_equal(rc, -EAGAIN);
	fake_next(&f);
	request(data, 10, HOMA_NONBLOCK);
}

/* ---- the bell ---- */

static void *request_once(void *arg)
{
	request(data, 10, 0);
	return arg;
}

/* By a thread that has another ring than this one. */
static u32 bell_after_request(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, request_once, NULL), 0);
	pthread_join(thread, NULL);
	fake_next(&f);
	assert_int_not_equal(f.sq_last, 0);
	return f.q->h.sq[0].bell;
}

static void bell__is_rung_for_other_rings_than_the_first(void **state)
{
	(void)state;
	f.features = HOMA_SHM_CAN_BELL;
	open_handle();
	request(data, 10, 0);
	fake_next(&f);
	assert_int_equal(f.sq_last, 0);
	assert_int_equal(f.q->h.sq[0].bell, 0);
	assert_int_equal(bell_after_request(), 1);
	f.q->h.sq[0].bell = 0;
	assert_int_equal(bell_after_request(), 1);
}

static void bell__is_left_alone_if_homad_has_none(void **state)
{
	(void)state;
	open_handle();
	request(data, 10, 0);
	fake_next(&f);
	assert_int_equal(bell_after_request(), 0);
}

/* ---- tables that cannot be ---- */

/* The entry of the table for a ring. */
static struct homa_shm_place *of(struct homa_shm_header *header, u16 kind,
				 u16 number)
{
	struct homa_shm_place *place = (void *)((u8 *)header + header->places);

	while (place->kind != kind || place->number != number)
		place++;
	return place;
}

static void table_outside(struct homa_shm_header *header)
{
	header->places = 0x7ffffff8;
}

static void table_crooked(struct homa_shm_header *header)
{
	header->places += 4;
}

static void table_endless(struct homa_shm_header *header)
{
	header->num_places = 0xffffffff;
}

static void table_empty(struct homa_shm_header *header)
{
	header->num_places = 0;
}

static void ring_missing(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_SUBMIT, 5)->kind = 77;
}

static void ring_twice(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 1)->number = 0;
}

static void no_release_ring(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_RELEASE, 0)->number = 9;
}

static void entries_outside(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 0)->first = 0xffffffc0;
}

static void entries_reach_outside(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 0)->entries = HOMA_SHM_CQ_MAX;
}

static void entries_crooked(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_SUBMIT, 0)->first += 4;
}

static void entries_too_many(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_SUBMIT, 0)->entries = 2 * HOMA_SHM_SQ_MAX;
}

static void entries_of_no_power(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 0)->entries = 1000;
}

static void entries_none(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 0)->entries = 0;
}

static void entries_of_other_bytes(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_COMPLETE, 0)->entry_bytes = 64;
}

static void indices_outside(struct homa_shm_header *header)
{
	of(header, HOMA_SHM_RELEASE, 0)->indices = 0xffffff80;
}

static void impossible_table__is_refused(void **state)
{
	static void (*const all[])(struct homa_shm_header *header) = {
		table_outside,	  table_crooked,
		table_endless,	  table_empty,
		ring_missing,	  ring_twice,
		no_release_ring,  entries_outside,
		entries_crooked,  entries_reach_outside,
		entries_too_many, entries_of_no_power,
		entries_none,	  entries_of_other_bytes,
		indices_outside,
	};
	struct homa_options options = { .via = "service" };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(all); i++) {
		f.spoil = all[i];
		if (homa_open(&h, &options) != -EPROTO)
			fail_msg("table %u was believed", i);
		assert_non_null(strstr(homa_open_error(), "another layout"));
	}
	f.spoil = NULL;
	open_handle();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(former_homad__is_used_as_it_was),
		T(later_homad__of_other_sizes_and_more_kinds),
		T(full_ring__is_full_when_the_table_says_so),
		T(bell__is_rung_for_other_rings_than_the_first),
		T(bell__is_left_alone_if_homad_has_none),
		T(impossible_table__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
