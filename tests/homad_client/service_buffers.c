// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_alloc(): messages are sent from where they were written, and whose the memory is is always
 * clear. The bytes of data memory in use (host_out_bytes) say whether there was a copy.
 */
#include "client_test.h"

#define UNIT 4096u

static u8 *alloc(u32 length)
{
	void *buf;

	if (homa_alloc(h, length, &buf))
		fail_msg("%s", homa_error(h));
	return buf;
}

/* A buffer with a message. */
static u8 *written(u32 length)
{
	u8 *buf = alloc(length);

	memcpy(buf, data, length);
	return buf;
}

static int try_send(const void *buf, u32 length)
{
	return homa_request(h, (struct sockaddr *)&server, sizeof(server), buf,
			    length, 7, 0, NULL);
}

static void request__is_sent_from_there(void **state)
{
	struct homa_sqe sqe;
	u8 *buf;

	(void)state;
	open_handle();
	buf = written(100000);
	assert_int_equal(counter("host_out_bytes"), 25 * UNIT);
	assert_int_equal(try_send(buf, 100000), 0);
	assert_int_equal(counter("host_out_bytes"), 25 * UNIT);
	assert_int_equal(counter("host_given"), 1);
	assert_int_equal(counter("host_given_copied"), 0);
	sqe = fake_next(&f);
	assert_false(sqe.flags & HOMA_SQE_COPY);
	assert_int_equal(sqe.length, 100000);
	assert_memory_equal(fake_bytes(&f, &sqe), data, 100000);
	/* It is the same memory. */
	buf[3] ^= 1;
	assert_int_equal(fake_bytes(&f, &sqe)[3], data[3] ^ 1);
	fake_free(&f, &sqe);
	assert_int_equal(counter("host_out_bytes"), 0);
}

static void reply__is_sent_from_there(void **state)
{
	struct homa_message msg;
	struct homa_sqe sqe;

	(void)state;
	open_handle();
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	assert_int_equal(homa_reply(h, &msg, written(50000), 40000), 0);
	assert_int_equal(counter("host_given"), 1);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REPLY);
	assert_memory_equal(fake_bytes(&f, &sqe), data, 40000);
	fake_free(&f, &sqe);
	assert_int_equal(counter("host_out_bytes"), 0);
	/* A second answer is an error, and leaves the buffer where it is. */
	assert_int_equal(homa_reply(h, &msg, alloc(50000), 40000), -EINVAL);
	assert_int_equal(counter("host_out_bytes"), 13 * UNIT);
	homa_release(h, &msg);
}

/* Every length around the edges of units, packets and pages, and back. */
static void sizes__arrive_whole(void **state)
{
	static const u32 middles[] = { 2,	  1400,	    1500,   2 * 1400,
				       UNIT,	  2 * UNIT, 8192,   9000,
				       16 * 1400, 65536,    131072, 500000 };
	u32 i, length, long_ones = 0, all = 0;

	(void)state;
	open_handle();
	fake_echo(&f);
	for (i = 0; i < HOMA_ARRAY_SIZE(middles); i++) {
		for (length = middles[i] - 1; length <= middles[i] + 1; length++) {
			struct homa_message msg;
			u32 got = length == 500001 ? HOMA_MAX_MESSAGE : length;
			u8 *back = calloc(1, got);

			if (homa_call(h, (struct sockaddr *)&server,
				      sizeof(server), written(got), got, &msg,
				      60000))
				fail_msg("%u bytes: %s", got, homa_error(h));
			assert_int_equal(homa_copy(&msg, back, got), got);
			assert_int_equal(msg.length, got);
			assert_memory_equal(back, data, got);
			homa_release(h, &msg);
			free(back);
			long_ones += got > HOMA_SHM_COPY_MAX;
			all++;
		}
	}
	assert_int_equal(counter("host_given"), long_ones);
	assert_int_equal(counter("host_given_copied"), all - long_ones);
}

static void sent__is_not_ours(void **state)
{
	u8 *buf;

	(void)state;
	open_handle();
	buf = written(10000);
	assert_int_equal(try_send(buf, 10000), 0);
	assert_int_equal(try_send(buf, 10000), -EINVAL);
	assert_non_null(strstr(homa_error(h), "already"));
	assert_int_equal(try_send(buf + 100, 10), -EINVAL);
	assert_int_equal(homa_free(h, buf), -EINVAL);
	assert_int_equal(fake_next(&f).length, 10000);
	assert_true(fake_quiet(&f));
	/* A short one is copied, and over at once. */
	buf = written(100);
	assert_int_equal(try_send(buf, 100), 0);
	assert_int_equal(try_send(buf, 100), -EINVAL);
	assert_int_equal(homa_free(h, buf), -EINVAL);
	assert_int_equal(counter("host_out_bytes"), 3 * UNIT);
}

static void freed__is_not_ours(void **state)
{
	struct iovec two[2] = { { data, 10 } };
	u8 *buf;

	(void)state;
	open_handle();
	assert_int_equal(homa_free(h, data), -EINVAL);
	buf = written(10000);
	assert_int_equal(homa_free(h, buf + UNIT), -EINVAL);
	assert_int_equal(homa_free(h, buf), 0);
	assert_int_equal(homa_free(h, buf), -EINVAL);
	assert_int_equal(try_send(buf, 10000), -EINVAL);
	two[1] = (struct iovec){ buf, 10 };
	assert_int_equal(homa_requestv(h, (struct sockaddr *)&server,
				       sizeof(server), two, 2, 0, 0, NULL),
			 -EINVAL);
	assert_true(fake_quiet(&f));
	assert_int_equal(counter("host_out_bytes"), 0);
	assert_int_equal(homa_alloc(h, 0, (void **)&buf), -EINVAL);
	assert_int_equal(homa_alloc(h, HOMA_MAX_MESSAGE + 1, (void **)&buf),
			 -EMSGSIZE);
	assert_int_equal(homa_free(h, NULL), -EINVAL);
}

/* What is sent in part, or beside other bytes, is copied. */
static void part__stays_ours(void **state)
{
	struct homa_sqe sqe;
	struct iovec two[2];
	u8 *buf;

	(void)state;
	open_handle();
	buf = written(20000);
	assert_int_equal(try_send(buf + 5000, 15000), 0);
	sqe = fake_next(&f);
	assert_memory_equal(fake_bytes(&f, &sqe), data + 5000, 15000);
	two[0] = two[1] = (struct iovec){ buf, 20000 };
	assert_int_equal(homa_requestv(h, (struct sockaddr *)&server,
				       sizeof(server), two, 2, 0, 0, NULL),
			 0);
	sqe = fake_next(&f);
	assert_memory_equal(fake_bytes(&f, &sqe) + 20000, data, 20000);
	assert_int_equal(try_send(buf + 5000, 15001), -EINVAL);
	assert_int_equal(try_send(buf, 20001), -EINVAL);
	assert_int_equal(counter("host_given"), 0);
	assert_int_equal(try_send(buf, 20000), 0);
	assert_int_equal(counter("host_given"), 1);
}

static void failed__stays_ours(void **state)
{
	struct sockaddr_storage nowhere;
	u8 *buf;

	(void)state;
	f.unreachable = 9;
	open_handle();
	assert_int_equal(homa_parse_address("10.1.2.9:4000", &nowhere), 0);
	buf = written(10000);
	assert_int_equal(homa_request(h, (struct sockaddr *)&nowhere,
				      sizeof(nowhere), buf, 10000, 7, 0, NULL),
			 -EHOSTUNREACH);
	assert_int_equal(try_send(buf, 10000), 0);
	assert_memory_equal(buf, data, 10000);
	assert_int_equal(counter("host_out_bytes"), 3 * UNIT);
}

static void alloc__of_all_there_is(void **state)
{
	void *bufs[64], *more;
	u32 n = 0;

	(void)state;
	f.no_memory = 1;
	open_handle();
	while (n < 64 && !homa_alloc(h, 500000, &bufs[n]))
		n++;
	assert_in_range(n, 6, 8);
	assert_int_equal(homa_alloc(h, 500000, &more), -ENOBUFS);
	assert_int_equal(homa_free(h, bufs[1]), 0);
	assert_int_equal(homa_alloc(h, 500000, &more), 0);
	assert_ptr_equal(more, bufs[1]);
	/* homad gives more. */
	f.no_memory = 0;
	assert_int_equal(homa_alloc(h, 500000, &more), 0);
	assert_int_equal(f.segs, 2);
	memcpy(more, data, 500000);
	assert_int_equal(try_send(more, 500000), 0);
	assert_int_equal(fake_next(&f).segment, 1);
}

static void await_next_homad(u32 attaches)
{
	struct homa_message msg;

	while (counter("host_attaches") < attaches)
		homa_receive(h, &msg, 0, 1);
}

static void restart__what_was_written_is_copied(void **state)
{
	struct homa_sqe sqe;
	u8 *sent, *freed, *kept;
	void *none;

	(void)state;
	open_handle();
	sent = written(200000);
	freed = written(10000);
	kept = written(10000);
	assert_int_equal(try_send(kept, 10001), -EINVAL);
	fake_kill(&f);
	while (homa_alloc(h, 10, &none) != -ECONNREFUSED)
		homa_poll(h);
	assert_memory_equal(sent, data, 200000);
	assert_int_equal(homa_free(h, freed), 0);
	fake_start(&f);
	await_next_homad(2);
	assert_int_equal(homa_free(h, freed), -EINVAL);
	assert_int_equal(try_send(sent, 200000), 0);
	assert_int_equal(counter("host_given_copied"), 1);
	assert_int_equal(counter("host_given"), 0);
	sqe = fake_next(&f);
	assert_memory_equal(fake_bytes(&f, &sqe), data, 200000);
	assert_int_equal(homa_free(h, sent), -EINVAL);
	assert_memory_equal(kept, data, 10000);
	assert_int_equal(try_send(kept, 10001), -EINVAL);
	/* It dies with the handle. */
}

/* Whom nobody waits for costs the buffer all the same. */
static void restart__a_reply_to_nobody(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	fake_kill(&f);
	while (homa_alloc(h, 10, &(void *){ NULL }) != -ECONNREFUSED)
		homa_poll(h);
	fake_start(&f);
	await_next_homad(2);
	assert_int_equal(homa_reply(h, &msg, written(10000), 10000), 0);
	assert_int_equal(counter("host_out_bytes"), 0);
	homa_release(h, &msg);
}

static void *send_it(void *buf)
{
	return (void *)(intptr_t)try_send(buf, 10000);
}

static void threads__one_sends_it(void **state)
{
	pthread_t threads[3];
	struct homa_sqe sqe;
	u32 i, round, sent;
	void *rc;

	(void)state;
	open_handle();
	for (round = 0; round < 50; round++) {
		u8 *buf = written(10000);

		for (i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, send_it, buf);
		for (sent = i = 0; i < 3; i++) {
			pthread_join(threads[i], &rc);
			sent += !rc;
			if (rc)
				assert_int_equal((int)(intptr_t)rc, -EINVAL);
		}
		assert_int_equal(sent, 1);
		sqe = fake_next(&f);
		assert_true(fake_quiet(&f));
		fake_free(&f, &sqe);
	}
	assert_int_equal(counter("host_given"), 50);
	assert_int_equal(counter("host_out_bytes"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(request__is_sent_from_there),
		T(reply__is_sent_from_there),
		T(sizes__arrive_whole),
		T(sent__is_not_ours),
		T(freed__is_not_ours),
		T(part__stays_ours),
		T(failed__stays_ours),
		T(alloc__of_all_there_is),
		T(restart__what_was_written_is_copied),
		T(restart__a_reply_to_nobody),
		T(threads__one_sends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
