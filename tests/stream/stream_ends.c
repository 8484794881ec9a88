// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* homad that ends, throws us out or says what cannot be; children of fork(); exec. */
#include "stream_test.h"
#include "stream_fork.h"

#include <stdio.h>
#include <sys/wait.h>

/* ---- homad ends ---- */

static void *wait_for_ever(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)homa_streams_wait(ctx, -1);
}

static void death__ends_waits_and_streams(void **state)
{
	struct homa_stream *pair[2], *listener, *opening, *news[8];
	pthread_t thread[3];
	void *rc;
	u32 i;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	fake_arrive(&f, pair[1]->index, data, 10);
	opening = connect_to(9);
	swallow();
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, wait_for_ever, NULL);
	usleep(50000);
	fake_kill(&f);
	for (i = 0; i < 3; i++) {
		pthread_join(thread[i], &rc);
		assert_int_equal((intptr_t)rc, -ECONNRESET);
	}
	assert_int_equal(homa_streams_poll(ctx, news, 8), 4);
	assert_int_equal(homa_streams_poll(ctx, news, 8), -ECONNRESET);
	assert_int_equal(homa_streams_arm(ctx), 0);
	assert_true(readable(homa_streams_fd(ctx)));
	assert_int_equal(homa_stream_error(opening), ECONNRESET);
	assert_int_equal(homa_stream_error(listener), ECONNRESET);
	assert_int_equal(get(pair[1], got, 100), 10);
	assert_int_equal(get(pair[1], got, 100), -ECONNRESET);
	assert_int_equal(put(pair[0], data, 1), -ECONNRESET);
	assert_true(homa_stream_ready(pair[0]) & HOMA_STREAM_HUP);
	homa_stream_close(pair[0]);
	homa_stream_close(opening);
	homa_stream_close(listener);
	homa_streams_close(ctx);
	/* Another homad. */
	memset(&f, 0, sizeof(f));
	fake_start(&f);
	open_context();
	make_pair(pair, &listener);
}

/* Somebody who only polls hears of it, too. */
static void death__is_noticed_without_sleeping(void **state)
{
	struct homa_stream *news[8];
	u32 i;
	int rc = 0;

	(void)state;
	open_context();
	fake_kill(&f);
	for (i = 0; i < 100000 && !rc; i++) {
		rc = homa_streams_poll(ctx, news, 8);
		usleep(100);
	}
	assert_int_equal(rc, -ECONNRESET);
	memset(&f, 0, sizeof(f));
	fake_start(&f);
}

static void eviction__ends_it(void **state)
{
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	__atomic_store_n(&f.q->h.state, HOMA_SHM_EVICTED, __ATOMIC_SEQ_CST);
	assert_int_equal(homa_streams_wait(ctx, -1), 1);
	swallow();
	assert_int_equal(homa_streams_wait(ctx, -1), -ECONNRESET);
	assert_int_equal(homa_stream_error(pair[0]), ECONNRESET);
}

/* ---- rings that are full ---- */

/* homad takes no command before it can answer the one that is first, and its answers wait until
 * somebody reads them: who has a command and no room for it makes that. */
static void command__makes_room_for_answers(void **state)
{
	struct homa_stream *pair[2], *listener, *more[4];
	u32 i, opened = 0;
	u16 port;

	(void)state;
	f.entries = 4;
	open_context();
	port = listen_on(&listener);
	pair[0] = connect_to(port);
	fake_step(&f);
	assert_int_equal(homa_stream_accept(listener, &pair[1]), 0);
	for (i = 0; i < 4; i++)
		more[i] = connect_to(port);
	fake_run(&f);
	for (i = 0; i < 40; i++)
		assert_int_equal(homa_stream_options(pair[0], i % 2), 0);
	for (i = 0; i < 40; i++)
		assert_int_equal(put(pair[0], data, 1), 1);
	while (opened < 4) {
		struct homa_stream *stream;

		opened += !homa_stream_accept(listener, &stream);
	}
	for (i = 0; i < 4; i++) {
		while (!(homa_stream_ready(more[i]) & HOMA_STREAM_OUT))
			usleep(100);
		assert_int_equal(homa_stream_error(more[i]), 0);
	}
	homa_stream_close(listener);
	for (i = 0; i < 4; i++)
		homa_stream_close(more[i]);
	swallow();
	assert_int_equal(ctx->kept_num, 0);
	fake_stop(&f);
}

/* ---- lies ---- */

/* homad says what cannot be: the context ends, and nothing else happens. */
static void lies__end_the_context(void **state)
{
	static const struct homa_stream_event lies[] = {
		{ .kind = HOMA_STREAM_OPENED, .token = 12345 },
		{ .kind = HOMA_STREAM_FAILED, .token = (u64)1 << 32 | 3 },
		{ .kind = HOMA_STREAM_ACCEPTED, .token = 3 },
		{ .kind = HOMA_STREAM_ACCEPTED, .token = 1, .slot = 1 << 20 },
		{ .kind = HOMA_STREAM_ACCEPTED, .token = 1, .slot = 0 },
		{ .kind = HOMA_STREAM_CHANGED, .slot = FAKE_SLOTS },
		{ .kind = HOMA_STREAM_UNLISTENED, .token = 99 },
		{ .kind = 77 },
	};
	struct homa_stream *pair[2], *listener;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lies) + 3; i++) {
		open_context();
		make_pair(pair, &listener);
		assert_int_equal(listener->token, 1);
		if (i < HOMA_ARRAY_SIZE(lies))
			fake_event(&f, lies[i]);
		else if (i == HOMA_ARRAY_SIZE(lies))
			f.slot[pair[0]->index].rx_end = 5000;
		else if (i == HOMA_ARRAY_SIZE(lies) + 1)
			f.slot[pair[0]->index].tx_shift = 21;
		else
			f.slot[pair[0]->index].tx_free = 1;
		homa_stream_ready(pair[0]);
		swallow();
		assert_int_equal(homa_stream_error(pair[0]), ECONNRESET);
		assert_int_equal(put(pair[0], data, 1), -ECONNRESET);
		homa_streams_close(ctx);
		ctx = NULL;
		fake_kill(&f);
		memset(&f, 0, sizeof(f));
		fake_start(&f);
	}
}

/* ---- fork ---- */

static int in_child(struct homa_stream *pair[2], struct homa_stream *listener)
{
	struct homa_stream *news[2], *stream;
	struct iovec piece[2];

	if (get(pair[1], got, 10) != -ECONNRESET ||
	    put(pair[0], data, 10) != -ECONNRESET)
		return 1;
	if (homa_streams_poll(ctx, news, 2) != -ECONNRESET ||
	    homa_streams_wait(ctx, -1) != -ECONNRESET ||
	    homa_streams_fd(ctx) != -ECONNRESET)
		return 2;
	if (homa_stream_accept(listener, &stream) != -ECONNRESET ||
	    homa_stream_shutdown(pair[0]) != -ECONNRESET ||
	    homa_stream_options(pair[0], 1) != -ECONNRESET)
		return 3;
	if (homa_stream_arrived(pair[1], piece) ||
	    homa_stream_room(pair[0], piece) ||
	    homa_stream_error(pair[0]) != ECONNRESET)
		return 4;
	homa_stream_close(pair[0]);
	homa_streams_close(ctx);
	return 0;
}

static void fork__child_touches_nothing(void **state)
{
	struct homa_stream *pair[2], *listener;
	u32 commands;
	int status;
	pid_t pid;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	put(pair[0], data, 100);
	fake_step(&f);
	commands = ctx->command_tail;
	pid = fork();
	if (!pid)
		_exit(in_child(pair, listener));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* And the parent goes on. */
	assert_int_equal(ctx->command_tail, commands);
	assert_int_equal(get(pair[1], got, 1000), 100);
}

/* ---- exec ---- */

/* The mappings of memory that the fake has made. */
static u32 mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	u32 n = 0;

	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:fake") != NULL;
	fclose(maps);
	return n;
}

/* homad says no, after it has handed over memory: nothing of that stays. */
static void exec__refused_leaves_nothing(void **state)
{
	struct homa_stream_carried carried = { .listens = 1 };
	struct homa_stream *stream = NULL;
	const u8 token[16] = { 0 };

	(void)state;
	assert_int_equal(homa_streams_after_exec(&ctx, NULL, token, &carried, 1,
						 &stream),
			 -EINVAL);
	assert_null(ctx);
	assert_null(stream);
	/* What the fake itself has mapped: the queues and the streams. */
	assert_int_equal(mappings(), 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(death__ends_waits_and_streams),
		T(death__is_noticed_without_sleeping),
		T(eviction__ends_it),
		T(command__makes_room_for_answers),
		T(lies__end_the_context),
		T(fork__child_touches_nothing),
		T(exec__refused_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
