// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * libhoma's homad backend against a homad of the test's own making: attaching, what
 * goes into the rings and what comes out of them, and what happens when something
 * is full.
 */
#include "client_test.h"

#include <arpa/inet.h>

/* ---- opening ---- */

static void open__attaches(void **state)
{
	struct sockaddr_storage us;
	char text[80];

	(void)state;
	open_handle();
	assert_string_equal(homa_via(h), "service");
	assert_string_equal(homa_via_reason(h), "");
	assert_int_equal(homa_getsockname(h, &us), 0);
	assert_string_equal(homa_format_address(&us, text, sizeof(text)),
			    "127.0.0.1:40000");
	assert_int_equal(homa_udp_port(h), 54321);
	assert_true(strlen(f.name) > 0);
	assert_int_equal(homa_bind(h, 13), -EPERM);
	assert_string_equal(homa_error(h), "homa_bind: port 13 is not yours");
	assert_int_equal(homa_bind(h, 0), -EINVAL);
	assert_non_null(strstr(homa_error(h), "1 to 32767"));
	assert_int_equal(homa_bind(h, 99), 0);
	assert_int_equal(homa_bind(h, 98), -EINVAL);
	homa_getsockname(h, &us);
	assert_int_equal(ntohs(((struct sockaddr_in *)&us)->sin_port), 99);
}

static void refused(int code, const char *words)
{
	struct homa_options options = { .via = "service" };

	assert_int_equal(homa_open(&h, &options), code);
	if (!strstr(homa_open_error(), words))
		fail_msg("'%s' does not say '%s'", homa_open_error(), words);
	assert_null(h);
}

static void open__no_homad(void **state)
{
	(void)state;
	setenv("HOMA_SERVICE_SOCKET", "/nonexistent/socket", 1);
	refused(-ECONNREFUSED, "start homad");
}

static void open__other_version(void **state)
{
	(void)state;
	f.version = HOMA_SHM_VERSION + 256;
	refused(-EPROTONOSUPPORT, "version 257");
}

static void open__refusal_in_its_own_words(void **state)
{
	(void)state;
	f.refuse = -EACCES;
	f.text = "users of your kind may not attach";
	refused(-EACCES, f.text);
}

/* Only where nothing is asked for that homad decides. */
static void open__auto(void **state)
{
	struct homa_options local = { .address = "127.0.0.1" };

	(void)state;
	assert_int_equal(homa_open(&h, NULL), 0);
	assert_string_equal(homa_via(h), "service");
	homa_close(h);
	assert_int_equal(homa_open(&h, &local), 0);
	assert_string_equal(homa_via(h), "udp");
	homa_close(h);
	f.refuse = -EPERM;
	f.text = "not you";
	assert_int_equal(homa_open(&h, NULL), 0);
	assert_string_equal(homa_via(h), "udp");
	assert_non_null(strstr(homa_via_reason(h), "not you"));
	homa_close(h);
	setenv("HOMA_SERVICE_SOCKET", "/nonexistent/socket", 1);
	assert_int_equal(homa_open(&h, NULL), 0);
	assert_non_null(strstr(homa_via_reason(h), "homad is not running"));
}

/* ---- requests ---- */

static void request__short(void **state)
{
	struct homa_message msg;
	struct homa_sqe sqe;
	u64 id;

	(void)state;
	open_handle();
	id = request(data, 100, 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REQUEST);
	assert_int_equal(sqe.flags, HOMA_SQE_COPY);
	assert_int_equal(sqe.length, 100);
	assert_int_equal(sqe.port, 4000);
	assert_int_equal(sqe.cookie, 7);
	assert_int_equal(sqe.ip[15], 3);
	assert_int_equal(sqe.token << 1, id);
	assert_true((sqe.token & 0xffff) < 1000);
	assert_memory_equal(fake_bytes(&f, &sqe), data, 100);
	fake_respond(&f, sqe.token, "answer", 6);
	receive(&msg, HOMA_RESPONSE);
	assert_int_equal(msg.id, id);
	assert_int_equal(msg.cookie, 7);
	assert_int_equal(msg.length, 6);
	assert_memory_equal(msg.iov[0].iov_base, "answer", 6);
	assert_int_equal(homa_receive_id(h, &msg, id, 0), -ENOENT);
}

static void request__long(void **state)
{
	struct homa_sqe a, b;
	struct homa_cqe done = { .kind = HOMA_CQE_FREE,
				 .flags = HOMA_CQE_PRIVATE };
	struct iovec iov[2] = { { data, 300000 }, { data + 300000, 400000 } };
	struct homa_message msg;

	(void)state;
	open_handle();
	assert_int_equal(homa_requestv(h, (struct sockaddr *)&server,
				       sizeof(server), iov, 2, 0, 0, NULL),
			 0);
	a = fake_next(&f);
	assert_int_equal(a.flags, 0);
	assert_memory_equal(fake_bytes(&f, &a), data, 700000);
	request(data, 5000, 0);
	b = fake_next(&f);
	if (b.segment == a.segment && b.offset < a.offset)
		assert_true(b.offset + 5000 <= a.offset);
	else if (b.segment == a.segment)
		assert_true(b.offset >= a.offset + 700000);
	assert_memory_equal(fake_bytes(&f, &a), data, 700000);
	fake_respond(&f, a.token, data, 500000);
	receive(&msg, HOMA_RESPONSE);
	assert_int_equal(msg.iovcnt, 8);
	assert_memory_equal(msg.iov[7].iov_base, data + 7 * 65536,
			    500000 - 7 * 65536);
	done.num_pages = a.segment;
	done.length = a.offset;
	fake_put(&f, done, NULL);
}

/* Nothing comes back: all segments are used, then there is no room. */
static void request__segments_exhausted(void **state)
{
	struct homa_cqe done = { .kind = HOMA_CQE_FREE };
	struct homa_sqe sqe = { 0 };
	int i, rc = 0, count = 0;

	(void)state;
	f.max_segments = 3;
	open_handle();
	for (i = 0; i < 100 && !rc; i++) {
		rc = try_request(900000);
		if (!rc) {
			sqe = fake_next(&f);
			count++;
		}
	}
	assert_int_equal(rc, -ENOBUFS);
	assert_int_equal(f.segs, 3);
	/* 3.5 MiB of the first segment, then 4 and 8 MiB: as much as all before. */
	assert_int_equal(count, 4 + 4 + 9);
	done.num_pages = sqe.segment;
	done.length = sqe.offset;
	fake_put(&f, done, NULL);
	assert_int_equal(try_request(900000), 0);
	assert_int_equal(try_request(900000), -ENOBUFS);
	/* Short ones have room of their own. */
	assert_int_equal(try_request(100), 0);
}

static void request__too_many(void **state)
{
	struct homa_cqe failed = { .kind = HOMA_CQE_FAILED, .error = ETIMEDOUT };
	struct homa_message msg;
	int i;

	(void)state;
	f.max_rpcs = 16;
	open_handle();
	for (i = 0; i < 16; i++)
		assert_int_equal(try_request(10), 0);
	assert_int_equal(try_request(10), -ENOBUFS);
	failed.token = fake_next(&f).token;
	fake_put(&f, failed, NULL);
	/* A failed one counts until it was received. */
	assert_int_equal(try_request(10), -ENOBUFS);
	receive(&msg, HOMA_ERROR);
	assert_int_equal(msg.error, -ETIMEDOUT);
	assert_int_equal(try_request(10), 0);
	assert_int_equal(try_request(10), -ENOBUFS);
}

static void request__asks_for_a_route_once(void **state)
{
	struct homa_cqe failed = { .kind = HOMA_CQE_FAILED,
				   .error = EHOSTUNREACH };
	struct homa_message msg;

	(void)state;
	f.unreachable = 9;
	open_handle();
	request(data, 10, 0);
	request(data, 10, 0);
	assert_int_equal(f.routes, 1);
	homa_parse_address("10.1.2.9:4000", &server);
	assert_int_equal(try_request(10), -EHOSTUNREACH);
	assert_int_equal(try_request(100000), -EHOSTUNREACH);
	assert_int_equal(f.routes, 3);
	/* What was reachable is asked for again after it was not. */
	failed.token = fake_next(&f).token;
	fake_put(&f, failed, NULL);
	receive(&msg, HOMA_ERROR);
	homa_parse_address("10.1.2.3:4000", &server);
	assert_int_equal(try_request(10), 0);
	assert_int_equal(f.routes, 4);
}

/* Whoever writes to very many destinations does not wait for each. */
static void request__asks_for_few_routes(void **state)
{
	char text[40];
	u32 i;

	(void)state;
	open_handle();
	for (i = 0; i < 700; i++) {
		snprintf(text, sizeof(text), "10.2.%u.%u:4000", i / 250, i % 250);
		homa_parse_address(text, &server);
		assert_int_equal(try_request(10), 0);
		fake_next(&f);
	}
	/* 200 a second. */
	assert_in_range(f.routes, 100, 600);
}

static void *consume_later(void *arg)
{
	u32 i, *count = arg;

	usleep(100000);
	for (i = 0; i < *count; i++)
		fake_next(&f);
	return NULL;
}

static void request__waits_for_room(void **state)
{
	u32 count = HOMA_SHM_SQ_ENTRIES + 20, i;
	pthread_t thread;

	(void)state;
	open_handle();
	pthread_create(&thread, NULL, consume_later, &count);
	for (i = 0; i < count; i++)
		assert_int_equal(try_request(1), 0);
	pthread_join(thread, NULL);
	/* The stage is full before the ring is. */
	count = 40;
	pthread_create(&thread, NULL, consume_later, &count);
	for (i = 0; i < count; i++)
		assert_int_equal(try_request(HOMA_SHM_COPY_MAX), 0);
	pthread_join(thread, NULL);
	for (i = 0; i < HOMA_SHM_SQ_ENTRIES; i++)
		assert_int_equal(try_request(1), 0);
	assert_int_equal(try_request(1), -ENOBUFS);
}

static void *kill_later(void *arg)
{
	(void)arg;
	usleep(100000);
	fake_kill(&f);
	return NULL;
}

static void request__waiting_ends_with_homad(void **state)
{
	pthread_t thread;
	int i, rc = 0;

	(void)state;
	open_handle();
	request(data, 1, 0);
	pthread_create(&thread, NULL, kill_later, NULL);
	for (i = 0; i < 10 * (int)HOMA_SHM_SQ_ENTRIES && !rc; i++)
		rc = try_request(1);
	assert_int_equal(rc, -ECONNREFUSED);
	assert_non_null(strstr(homa_error(h), "homad is not running"));
	pthread_join(thread, NULL);
	fake_start(&f);
}

/* ---- replies, aborts, buffers ---- */

static void reply__once(void **state)
{
	struct homa_message msg, copy;
	struct homa_sqe sqe;

	(void)state;
	open_handle();
	fake_request(&f, 0x50003, "question", 8);
	receive(&msg, HOMA_REQUEST);
	assert_int_equal(msg.id, 0x50003 * 2 + 1);
	copy = msg;
	homa_release(h, &msg);
	assert_int_equal(homa_reply(h, &copy, "x", 1), 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REPLY);
	assert_int_equal(sqe.token, 0x50003);
	assert_int_equal(homa_reply(h, &copy, "x", 1), -EINVAL);
	assert_int_equal(homa_reply(h, &copy, data, 100000), -EINVAL);
	assert_true(fake_quiet(&f));
	/* Its place is used again: the first client had given up. */
	fake_request(&f, 0x60003, "question", 8);
	receive(&msg, HOMA_REQUEST);
	fake_request(&f, 0x70003, "question", 8);
	receive(&copy, HOMA_REQUEST);
	assert_int_equal(homa_reply(h, &msg, "x", 1), 0);
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_reply(h, &copy, "x", 1), 0);
	assert_int_equal(fake_next(&f).token, 0x70003);
	/* That the later one is answered says nothing of the earlier one. */
	assert_int_equal(homa_reply(h, &msg, "x", 1), 0);
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_reply(h, &copy, "x", 1), -EINVAL);
}

static void abort__vanishes_at_once(void **state)
{
	struct homa_message msg;
	struct homa_sqe sqe;
	u64 id;

	(void)state;
	open_handle();
	id = request(data, 10, 0);
	sqe = fake_next(&f);
	assert_int_equal(homa_abort(h, id, 0), 0);
	assert_int_equal(homa_abort(h, id, 0), -EINVAL);
	assert_int_equal(homa_abort(h, id | 1, 0), -EINVAL);
	assert_int_equal(homa_receive_id(h, &msg, id, 1000), -ENOENT);
	assert_int_equal(fake_next(&f).op, HOMA_SQE_ABORT);
	/* The response was on its way already: nobody gets it, nothing is lost. */
	fake_respond(&f, sqe.token, data, 70000);
	assert_int_equal(homa_receive(h, &msg, 0, 20), -EAGAIN);
	homa_poll(h);
	assert_int_equal(fake_released(&f), 2);
	assert_int_equal(try_request(10), 0);
}

static void abort__complete_ones(void **state)
{
	struct homa_message msg;
	u64 a, b;

	(void)state;
	open_handle();
	a = request(data, 10, 0);
	b = request(data, 10, 0);
	fake_respond(&f, a >> 1, "a", 1);
	fake_respond(&f, b >> 1, "b", 1);
	/* With an error it comes too late, without it they vanish. */
	assert_int_equal(homa_abort(h, a, ECANCELED), 0);
	assert_int_equal(homa_abort(h, b, 0), 0);
	receive(&msg, HOMA_RESPONSE);
	assert_int_equal(msg.id, a);
	assert_int_equal(homa_receive(h, &msg, 0, 20), -EAGAIN);
	a = request(data, 10, 0);
	b = request(data, 10, HOMA_PRIVATE);
	assert_int_equal(homa_abort(h, 0, EINTR), 0);
	fake_next(&f);
	fake_next(&f);
	fake_next(&f);
	fake_next(&f);
	/* For homad they just end: we know the error. */
	assert_int_equal(fake_next(&f).op, HOMA_SQE_ABORT);
	assert_int_equal(fake_next(&f).op, HOMA_SQE_ABORT);
}

static void failed_with(u64 id, int error)
{
	struct homa_message msg;

	assert_int_equal(homa_receive_id(h, &msg, id, 0), 0);
	assert_int_equal(msg.kind, HOMA_ERROR);
	assert_int_equal(msg.error, -error);
	assert_int_equal(msg.id, id);
}

static void abort__fails_at_once(void **state)
{
	struct homa_cqe gone = { .kind = HOMA_CQE_GONE };
	u64 a, b, c;

	(void)state;
	open_handle();
	a = request(data, 10, 0);
	b = request(data, 10, HOMA_PRIVATE);
	assert_int_equal(homa_abort(h, a, ECANCELED), 0);
	assert_int_equal(homa_abort(h, b, EINTR), 0);
	/* Nothing has come from homad yet. */
	failed_with(a, ECANCELED);
	assert_int_equal(homa_abort(h, a, 0), -EINVAL);
	/* Its place is not free before homad has let go of it. */
	c = request(data, 10, 0);
	assert_int_not_equal((a >> 1) & 0xffff, (c >> 1) & 0xffff);
	fake_respond(&f, a >> 1, data, 70000);
	gone.token = b >> 1;
	fake_put(&f, gone, NULL);
	homa_poll(h);
	failed_with(b, EINTR);
	assert_int_equal(fake_released(&f), 2);
	assert_int_equal((request(data, 10, 0) >> 1) & 0xffff, (b >> 1) & 0xffff);
	assert_int_equal((request(data, 10, 0) >> 1) & 0xffff, (a >> 1) & 0xffff);
}

static void release__once(void **state)
{
	struct homa_message msg, copy;
	u32 page;

	(void)state;
	open_handle();
	fake_respond(&f, request(data, 10, 0) >> 1, data, 200000);
	receive(&msg, HOMA_RESPONSE);
	copy = msg;
	page = homa_internal_pages(&msg)[1];
	homa_release(h, &msg);
	homa_release(h, &msg);
	homa_release(h, &copy);
	assert_int_equal(homa_internal_release_pages(h, &page, 1), -EINVAL);
	page = 64;
	assert_int_equal(homa_internal_release_pages(h, &page, 1), -EINVAL);
	page = 0xffffffc0;
	assert_int_equal(homa_internal_release_pages(h, &page, 1), -EINVAL);
	homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);
	assert_int_equal(fake_released(&f), 4);
}

static void region__messages_land_there(void **state)
{
	static u8 mine[2 << 20] __attribute__((aligned(4096)));
	struct homa_message msg;

	(void)state;
	open_handle();
	assert_int_equal(homa_internal_set_region(h, mine, sizeof(mine)), 0);
	fake_respond(&f, request(data, 10, 0) >> 1, data, 100000);
	receive(&msg, HOMA_RESPONSE);
	assert_ptr_equal(msg.iov[1].iov_base,
			 mine + homa_internal_pages(&msg)[1]);
	assert_memory_equal(msg.iov[0].iov_base, data, 65536);
	assert_int_equal(homa_internal_set_region(h, NULL, sizeof(mine)), -EBUSY);
	homa_close(h);
	h = NULL;
	/* Plain memory again. */
	mine[0] = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(open__attaches),
		T(open__no_homad),
		T(open__other_version),
		T(open__refusal_in_its_own_words),
		T(open__auto),
		T(request__short),
		T(request__long),
		T(request__segments_exhausted),
		T(request__too_many),
		T(request__asks_for_a_route_once),
		T(request__asks_for_few_routes),
		T(request__waits_for_room),
		T(request__waiting_ends_with_homad),
		T(reply__once),
		T(abort__vanishes_at_once),
		T(abort__complete_ones),
		T(abort__fails_at_once),
		T(release__once),
		T(region__messages_land_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
