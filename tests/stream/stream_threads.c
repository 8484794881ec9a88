// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Many streams and threads, with a fake homad that works off the rings on a thread of
 * its own, sleeps and is kicked.
 */
#include "stream_test.h"

#define PAIRS 3u
#define BYTES (1u << 19) /* each way */

static struct homa_stream *listener;
static u16 port;

static u8 value(u32 stream, u32 position)
{
	return (u8)(position * 13 + position / 251 + stream * 17);
}

/* Waits until the stream is ready for @what: with the context, as a program would. */
static void wait_for(struct homa_stream *stream, unsigned int what)
{
	struct homa_stream *news[8];
	int rc = 0;

	while (!(homa_stream_ready(stream) & (what | HOMA_STREAM_ERROR)) &&
	       rc >= 0) {
		rc = homa_streams_wait(ctx, 10000000);
		homa_streams_poll(ctx, news, 8);
	}
}

static void *write_all(void *arg)
{
	struct homa_stream *stream = arg;
	u32 number = (u32)(uintptr_t)homa_stream_user(stream), sent = 0, n, i;
	u8 bytes[3000];
	ssize_t rc;

	while (sent < BYTES) {
		n = homa_min_u32(1 + (sent * 7) % sizeof(bytes), BYTES - sent);
		for (i = 0; i < n; i++)
			bytes[i] = value(number, sent + i);
		rc = put(stream, bytes, n);
		if (rc == -EAGAIN)
			wait_for(stream, HOMA_STREAM_OUT);
		else if (rc < 0)
			return (void *)1;
		else
			sent += (u32)rc;
	}
	homa_stream_shutdown(stream);
	return NULL;
}

static void *read_all(void *arg)
{
	struct homa_stream *stream = arg;
	u32 number = (u32)(uintptr_t)homa_stream_user(stream), taken = 0, i;
	u8 bytes[2500];
	ssize_t rc;

	while ((rc = get(stream, bytes, 1 + taken % sizeof(bytes)))) {
		if (rc == -EAGAIN) {
			wait_for(stream, HOMA_STREAM_IN | HOMA_STREAM_EOF);
			continue;
		}
		if (rc < 0)
			return (void *)1;
		for (i = 0; i < (u32)rc; i++)
			if (bytes[i] != value(number, taken + i))
				return (void *)2;
		taken += (u32)rc;
	}
	return taken == BYTES ? NULL : (void *)3;
}

static void start(void)
{
	open_context();
	port = listen_on(&listener);
	fake_run(&f);
}

static struct homa_stream *accept_one(void)
{
	struct homa_stream *stream;

	wait_for(listener, HOMA_STREAM_IN);
	assert_int_equal(homa_stream_accept(listener, &stream), 0);
	return stream;
}

/* Each stream has a thread that writes and one that reads, at both ends. */
static void threads__read_and_write(void **state)
{
	struct homa_stream *pair[PAIRS][2];
	pthread_t thread[PAIRS][4];
	u32 i, j;
	void *rc;

	(void)state;
	f.tx_shift = 14;
	f.rx_shift = 13;
	start();
	for (i = 0; i < PAIRS; i++) {
		pair[i][0] = connect_to(port);
		pair[i][1] = accept_one();
		wait_for(pair[i][0], HOMA_STREAM_OUT);
		homa_stream_set_user(pair[i][0], (void *)(uintptr_t)i);
		homa_stream_set_user(pair[i][1], (void *)(uintptr_t)i);
	}
	for (i = 0; i < PAIRS; i++)
		for (j = 0; j < 4; j++)
			pthread_create(&thread[i][j], NULL,
				       j < 2 ? write_all : read_all,
				       pair[i][j % 2]);
	for (i = 0; i < PAIRS; i++)
		for (j = 0; j < 4; j++) {
			pthread_join(thread[i][j], &rc);
			assert_ptr_equal(rc, NULL);
		}
}

struct onlooker {
	struct homa_stream *(*pair)[2];
	u32 stop; /* atomic */
};

static void *look_on(void *arg)
{
	struct onlooker *o = arg;
	u32 i;

	while (!__atomic_load_n(&o->stop, __ATOMIC_RELAXED))
		for (i = 0; i < 2 * PAIRS; i++)
			homa_stream_ready(o->pair[i / 2][i % 2]);
	return NULL;
}

/* Others ask what streams are ready for while they are read and written: a thread that was
 * interrupted as it asked sees words of different moments, and nothing comes of that. */
static void threads__onlookers(void **state)
{
	struct homa_stream *pair[PAIRS][2];
	struct onlooker o = { .pair = pair };
	pthread_t thread[PAIRS][4], onlooker[2];
	u32 i, j;
	void *rc;

	(void)state;
	start();
	for (i = 0; i < PAIRS; i++) {
		pair[i][0] = connect_to(port);
		pair[i][1] = accept_one();
		wait_for(pair[i][0], HOMA_STREAM_OUT);
		homa_stream_set_user(pair[i][0], (void *)(uintptr_t)i);
		homa_stream_set_user(pair[i][1], (void *)(uintptr_t)i);
	}
	for (i = 0; i < 2; i++)
		pthread_create(&onlooker[i], NULL, look_on, &o);
	for (i = 0; i < PAIRS; i++)
		for (j = 0; j < 4; j++)
			pthread_create(&thread[i][j], NULL,
				       j < 2 ? write_all : read_all,
				       pair[i][j % 2]);
	for (i = 0; i < PAIRS; i++)
		for (j = 0; j < 4; j++) {
			pthread_join(thread[i][j], &rc);
			assert_ptr_equal(rc, NULL);
		}
	__atomic_store_n(&o.stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(onlooker[i], NULL);
	assert_false(homa_streams_gone(ctx));
}

/* Connections that are short, opened and closed by several threads. */
static void *short_ones(void *arg)
{
	struct homa_stream *stream;
	u8 byte;
	u32 i;

	(void)arg;
	for (i = 0; i < 200; i++) {
		stream = connect_to(port);
		wait_for(stream, HOMA_STREAM_OUT);
		if (i % 3 == 0) {
			homa_stream_abort(stream);
			continue;
		}
		if (put(stream, &byte, 1) != 1)
			return (void *)1;
		homa_stream_shutdown(stream);
		wait_for(stream, HOMA_STREAM_EOF);
		homa_stream_close(stream);
	}
	return NULL;
}

static void *serve(void *arg)
{
	struct homa_stream *stream;

	while (!__atomic_load_n((u32 *)arg, __ATOMIC_SEQ_CST)) {
		if (homa_stream_accept(listener, &stream)) {
			struct homa_stream *news[8];

			homa_streams_wait(ctx, 1000000);
			homa_streams_poll(ctx, news, 8);
		} else {
			homa_stream_close(stream);
		}
	}
	return NULL;
}

static void threads__open_and_close(void **state)
{
	pthread_t client[3], server;
	u32 stop = 0, i;
	void *rc;

	(void)state;
	start();
	pthread_create(&server, NULL, serve, &stop);
	for (i = 0; i < 3; i++)
		pthread_create(&client[i], NULL, short_ones, NULL);
	for (i = 0; i < 3; i++) {
		pthread_join(client[i], &rc);
		assert_ptr_equal(rc, NULL);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(server, NULL);
	assert_false(homa_streams_gone(ctx));
	fake_stop(&f);
	assert_int_equal(f.commands[HOMA_STREAM_CONNECT], 600);
}

/* Many streams at once, each with a few bytes. */
static void streams__many(void **state)
{
	static struct homa_stream *pair[400][2];
	u32 i;
	u8 byte;

	(void)state;
	start();
	for (i = 0; i < 400; i++) {
		pair[i][0] = connect_to(port);
		pair[i][1] = accept_one();
	}
	for (i = 0; i < 400; i++) {
		wait_for(pair[i][0], HOMA_STREAM_OUT);
		byte = (u8)i;
		assert_int_equal(put(pair[i][0], &byte, 1), 1);
	}
	for (i = 0; i < 400; i++) {
		wait_for(pair[i][1], HOMA_STREAM_IN);
		assert_int_equal(get(pair[i][1], &byte, 1), 1);
		assert_int_equal(byte, (u8)i);
	}
}

/* Threads that sleep while another one takes the news: each gets its own in the end. */
static void *wait_and_count(void *arg)
{
	struct homa_stream *news[1];
	u32 *left = arg;

	while (__atomic_load_n(left, __ATOMIC_SEQ_CST)) {
		if (homa_streams_wait(ctx, -1) != 1)
			return NULL;
		if (homa_streams_poll(ctx, news, 1) == 1 && news[0] != listener)
			__atomic_fetch_sub(left, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void wait__of_several_threads(void **state)
{
	struct homa_stream *pair[2];
	pthread_t thread[3];
	u32 left = 300, i;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	swallow();
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, wait_and_count, &left);
	/* Each arrival waits for the one before to be noticed; a lost wake-up would hang. */
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST)) {
		u32 before = __atomic_load_n(&left, __ATOMIC_SEQ_CST);

		f.still = true;
		fake_arrive(&f, pair[before % 2]->index, data, 1);
		if (before % 50 == 0)
			usleep(2000);
		while (__atomic_load_n(&left, __ATOMIC_SEQ_CST) == before)
			usleep(50);
	}
	homa_streams_lose(ctx);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(left, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(threads__read_and_write),  T(threads__onlookers),
		T(threads__open_and_close),  T(streams__many),
		T(wait__of_several_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
