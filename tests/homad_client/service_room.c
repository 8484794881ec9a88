// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_send_fd() with a homad that tells when there is room to send: the descriptor is readable
 * when it does and not before, and nothing is lost, whoever reads the wake pipe besides.
 */
#include <poll.h>
#include "client_test.h"

#define TIMES 20000u

static void open_telling(void)
{
	f.features = HOMA_SHM_CAN_BELL | HOMA_SHM_CAN_ROOM;
	open_handle();
	assert_true(homa_send_fd(h) >= 0);
}

static int send_now(u32 length)
{
	u64 id;

	return homa_request(h, (struct sockaddr *)&server, sizeof(server), data,
			    length, 7, HOMA_NONBLOCK, &id);
}

static bool may_send(int timeout_ms)
{
	struct pollfd p = { .fd = homa_send_fd(h), .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	assert_true(n >= 0);
	return n == 1;
}

/* Until there is no room, which says how many found some. */
static u32 fill(u32 length)
{
	u32 n = 0;
	int rc;

	while (!(rc = send_now(length)))
		n++;
	assert_int_equal(rc, -EAGAIN);
	return n;
}

/* No timer runs: without the event the descriptor would never be readable. */
static void ring__is_told_of(void **state)
{
	u32 i;

	(void)state;
	open_telling();
	assert_true(may_send(0));
	assert_int_equal(counter("host_room_asks"), 0);
	assert_int_equal(fill(10), HOMA_SHM_SQ_ENTRIES);
	for (i = 1; i < 10; i++) {
		assert_int_equal(counter("host_room_asks"), i);
		assert_true(f.q->h.armed & HOMA_SHM_ARM_ROOM);
		assert_int_equal(f.q->h.sq[0].bell, 1);
		assert_false(may_send(0));
		fake_next(&f);
		assert_false(f.q->h.armed & HOMA_SHM_ARM_ROOM);
		assert_true(may_send(0));
		assert_int_equal(send_now(10), 0);
		assert_true(may_send(0));
		assert_int_equal(send_now(10), -EAGAIN);
	}
	assert_false(may_send(0));
}

static void memory__is_told_of(void **state)
{
	u32 length = HOMA_MAX_MESSAGE, asks;
	struct homa_sqe sqe, next;

	(void)state;
	open_telling();
	assert_true(fill(length) >= 3);
	assert_false(may_send(0));
	sqe = fake_next(&f);
	/* A ring has room; the memory has none. */
	assert_true(may_send(0));
	assert_int_equal(send_now(length), -EAGAIN);
	assert_false(may_send(0));
	asks = (u32)counter("host_room_asks");
	fake_free(&f, &sqe);
	assert_true(may_send(0));
	assert_int_equal(send_now(length), 0);
	/* What was free before it asked is found at once. */
	next = fake_next(&f);
	fake_free(&f, &next);
	assert_int_equal(send_now(length), 0);
	assert_int_equal(counter("host_room_asks"), asks);
}

/* Memory that homad has never had comes back without it. */
static void memory__that_the_application_gives_back(void **state)
{
	u32 length = HOMA_MAX_MESSAGE;
	void *rooms[4];
	u32 n = 0;

	(void)state;
	open_telling();
	f.no_memory = 1;
	while (n < 4 && !homa_alloc(h, length, &rooms[n]))
		n++;
	assert_true(n >= 1 && n < 4);
	assert_int_equal(send_now(length), -EAGAIN);
	assert_false(may_send(0));
	assert_int_equal(homa_free(h, rooms[--n]), 0);
	assert_true(may_send(0));
	assert_int_equal(send_now(length), 0);
	while (n)
		homa_free(h, rooms[--n]);
}

/* None of it is in use, so none comes back: then time says when to try again. */
static void memory__that_there_never_was(void **state)
{
	u32 length = HOMA_MAX_MESSAGE;
	void *room;

	(void)state;
	open_telling();
	assert_int_equal(homa_alloc(h, 10, &room), 0);
	f.no_memory = 1;
	fill(length);
	fake_next(&f);
	assert_true(may_send(-1));
	homa_free(h, room);
}

static void homad_that_dies__is_told(void **state)
{
	struct homa_message msg;
	u32 i;

	(void)state;
	open_telling();
	for (i = 0; i < 3; i++) {
		fill(10);
		assert_false(may_send(0));
		fake_kill(&f);
		assert_true(may_send(-1));
		assert_int_equal(send_now(10), -ECONNREFUSED);
		assert_true(may_send(-1));
		fake_start(&f);
		/* The next one tells, too. */
		while (send_now(10))
			homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);
		while (!homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0))
			;
		fill(10);
		assert_false(may_send(0));
		fake_next(&f);
		assert_true(may_send(0));
	}
}

static void handle_that_is_shut__is_told(void **state)
{
	(void)state;
	open_telling();
	fill(10);
	assert_false(may_send(0));
	assert_int_equal(homa_internal_shutdown(h), 0);
	assert_true(may_send(-1));
	assert_int_equal(send_now(10), -ESHUTDOWN);
}

/* ---- threads ---- */

static void *send_all(void *arg)
{
	u32 length = *(u32 *)arg, i;
	int rc;

	for (i = 0; i < TIMES; i++) {
		while ((rc = send_now(length)) == -EAGAIN || rc == -ENOBUFS) {
			if (rc == -ENOBUFS)
				sched_yield();
			else
				may_send(-1);
		}
		assert_int_equal(rc, 0);
	}
	return NULL;
}

static void *receive_all(void *arg)
{
	u32 i, n = *(u32 *)arg;

	for (i = 0; i < n; i++) {
		struct homa_message msg;

		receive(&msg, HOMA_RESPONSE);
		homa_release(h, &msg);
	}
	return NULL;
}

/* One that sleeps in the poll as often as it can beside one that sleeps in homa_receive(): they
 * read the same pipe. A signal lost is a sleep for ever. */
static void sleepers__are_always_woken(u32 senders, u32 length)
{
	u32 n = senders * TIMES, i;
	pthread_t threads[3], receiver;

	open_telling();
	fake_echo(&f);
	pthread_create(&receiver, NULL, receive_all, &n);
	for (i = 0; i < senders; i++)
		pthread_create(&threads[i], NULL, send_all, &length);
	for (i = 0; i < senders; i++)
		pthread_join(threads[i], NULL);
	pthread_join(receiver, NULL);
	assert_true(counter("host_room_asks") > 0);
}

static void one_thread__loses_nothing(void **state)
{
	(void)state;
	sleepers__are_always_woken(1, HOMA_SHM_COPY_MAX);
}

static void one_thread__loses_nothing_long(void **state)
{
	(void)state;
	sleepers__are_always_woken(1, 100000);
}

static void threads__lose_nothing(void **state)
{
	(void)state;
	sleepers__are_always_woken(3, HOMA_SHM_COPY_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ring__is_told_of),
		T(memory__is_told_of),
		T(memory__that_the_application_gives_back),
		T(memory__that_there_never_was),
		T(homad_that_dies__is_told),
		T(handle_that_is_shut__is_told),
		T(one_thread__loses_nothing),
		T(one_thread__loses_nothing_long),
		T(threads__lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
