// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How streams and contexts begin and end; news and sleeping. */
#include "stream_test.h"

/* ---- contexts ---- */

static void no_slots(struct homa_stream_area *area)
{
	area->num_slots = 0;
}

static void slots_outside(struct homa_stream_area *area)
{
	area->slots = (u32)(area->bytes - 64);
}

static void odd_ring(struct homa_stream_area *area)
{
	area->ring_entries = 1000;
}

static void open__refuses_what_cannot_be(void **state)
{
	void (*spoils[])(struct homa_stream_area *) = { no_slots, slots_outside,
							odd_ring };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(spoils); i++) {
		f.spoil = spoils[i];
		assert_int_equal(homa_streams_open(&ctx, NULL), -EPROTO);
	}
	f.spoil = NULL;
	f.cannot = HOMA_SHM_CAN_STREAM;
	assert_int_equal(homa_streams_open(&ctx, NULL), -EOPNOTSUPP);
	assert_int_equal(homa_streams_open(&ctx, "/nowhere/homad.sock"),
			 -ECONNREFUSED);
	f.cannot = 0;
	open_context();
}

static bool takes(const char *ip, u16 port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	return homa_streams_takes(ctx, (struct sockaddr *)&in, sizeof(in));
}

/* The fake has a rule for 10.1.128.0/20, ports 100 to 200. */
static void takes__what_rules_say(void **state)
{
	struct sockaddr unix_one = { .sa_family = AF_UNIX };

	(void)state;
	open_context();
	assert_true(takes("10.1.128.1", 100));
	assert_true(takes("10.1.143.255", 200));
	assert_false(takes("10.1.144.0", 150));
	assert_false(takes("10.1.127.1", 150));
	assert_false(takes("10.1.128.1", 99));
	assert_false(takes("10.1.128.1", 201));
	assert_false(homa_streams_takes(ctx, &unix_one, sizeof(unix_one)));
}

/* ---- connect ---- */

static void connect__fails_and_is_news(void **state)
{
	struct homa_stream *stream, *news[4];

	(void)state;
	open_context();
	stream = connect_to(9);
	assert_int_equal(homa_stream_ready(stream), 0);
	assert_int_equal(put(stream, data, 1), -EAGAIN);
	assert_int_equal(get(stream, got, 1), -EAGAIN);
	assert_int_equal(homa_stream_shutdown(stream), -ENOTCONN);
	fake_step(&f);
	assert_int_equal(homa_streams_poll(ctx, news, 4), 1);
	assert_ptr_equal(news[0], stream);
	assert_int_equal(homa_stream_ready(stream),
			 HOMA_STREAM_ERROR | HOMA_STREAM_HUP);
	assert_int_equal(homa_stream_error(stream), ECONNREFUSED);
	assert_int_equal(get(stream, got, 1), -ECONNREFUSED);
	assert_int_equal(put(stream, data, 1), -ECONNREFUSED);
	homa_stream_close(stream);
	assert_int_equal(homa_streams_poll(ctx, news, 4), 0);
}

/* homad says at once if it cannot open a connection, and nothing if it can. */
static void await_way__tells_what_homad_says(void **state)
{
	struct homa_stream *listener, *stream;
	u16 port;

	(void)state;
	open_context();
	port = listen_on(&listener);
	fake_run(&f);
	assert_int_equal(homa_stream_await_way(connect_to(9)), -ECONNREFUSED);
	stream = connect_to(port);
	assert_int_equal(homa_stream_await_way(stream), 0);
	assert_int_equal(__atomic_load_n(&f.commands[HOMA_STREAM_CONNECT],
					 __ATOMIC_SEQ_CST),
			 2);
}

static void listen__with_any_backlog(void **state)
{
	static const int backlogs[] = { 7, 0, -1 };
	static const u32 told[] = { 7, 1, UINT32_MAX };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct homa_stream *listener;
	u32 i;

	(void)state;
	open_context();
	for (i = 0; i < HOMA_ARRAY_SIZE(told); i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
		assert_int_equal(homa_stream_listen(ctx, fd, backlogs[i],
						    &listener),
				 0);
		assert_int_equal(f.backlog, told[i]);
		close(fd);
	}
}

static void connect__closed_before_it_opens(void **state)
{
	struct homa_stream *listener, *stream, *other;

	(void)state;
	open_context();
	stream = connect_to(listen_on(&listener));
	homa_stream_set_user(stream, &f);
	homa_stream_close(stream);
	fake_step(&f);
	swallow();
	fake_step(&f);
	assert_int_equal(f.commands[HOMA_STREAM_ABORT], 1);
	assert_int_equal(homa_stream_accept(listener, &other), 0);
	assert_int_equal(get(other, got, 1), -ECONNRESET);
	assert_false(f.end[0].used);
}

static void connect__no_more_at_once_than_slots(void **state)
{
	u32 i;

	(void)state;
	f.num_slots = 4;
	open_context();
	for (i = 0; i < 4; i++)
		connect_to(9);
	{
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = 9 };
		struct homa_stream *stream;

		assert_int_equal(homa_stream_connect(ctx, NULL,
						     (struct sockaddr *)&in,
						     sizeof(in), &stream),
				 -ENOBUFS);
	}
	fake_step(&f);
	connect_to(9);
}

static void options__before_and_after(void **state)
{
	struct homa_stream *listener, *stream;

	(void)state;
	open_context();
	stream = connect_to(listen_on(&listener));
	assert_int_equal(homa_stream_options(stream, HOMA_STREAM_NODELAY), 0);
	assert_int_equal(homa_stream_options(stream, 16), -EINVAL);
	fake_step(&f);
	swallow();
	fake_step(&f);
	assert_int_equal(f.options, HOMA_STREAM_OPT_NODELAY);
	assert_int_equal(homa_stream_options(stream, HOMA_STREAM_CORK), 0);
	assert_int_equal(homa_stream_options(stream, HOMA_STREAM_CORK), 0);
	fake_step(&f);
	assert_int_equal(f.options, HOMA_STREAM_OPT_CORK);
	assert_int_equal(f.commands[HOMA_STREAM_OPTIONS], 2);
}

static void patience__before_and_after(void **state)
{
	struct homa_stream *listener, *stream, *accepted;

	(void)state;
	open_context();
	stream = connect_to(listen_on(&listener));
	assert_int_equal(homa_stream_patience(stream, HOMA_STREAM_KEEP_IDLE, 7),
			 0);
	assert_int_equal(homa_stream_patience(stream, HOMA_STREAM_KEEP_IDLE, 0),
			 -EINVAL);
	assert_int_equal(homa_stream_patience(stream, 4, 1), -EINVAL);
	fake_step(&f);
	swallow();
	fake_step(&f);
	assert_int_equal(f.patience[HOMA_STREAM_KEEP_IDLE], 7);
	assert_int_equal(homa_stream_patience(stream, HOMA_STREAM_USER_TIMEOUT,
					      1234),
			 0);
	fake_step(&f);
	assert_int_equal(f.patience[HOMA_STREAM_USER_TIMEOUT], 1234);
	/* What was said before is not said again. */
	assert_int_equal(f.commands[HOMA_STREAM_PATIENCE], 2);
	/* A connection has what its listener has. */
	assert_int_equal(homa_stream_patience(listener, HOMA_STREAM_KEEP_PROBES,
					      3),
			 0);
	assert_int_equal(homa_stream_accept(listener, &accepted), 0);
	fake_step(&f);
	assert_int_equal(f.patience[HOMA_STREAM_KEEP_PROBES], 3);
	assert_int_equal(f.commands[HOMA_STREAM_PATIENCE], 3);
}

static void patience__of_an_older_homad(void **state)
{
	struct homa_stream *listener, *stream;

	(void)state;
	f.cannot = HOMA_SHM_CAN_PATIENCE;
	open_context();
	stream = connect_to(listen_on(&listener));
	assert_int_equal(homa_stream_patience(stream, HOMA_STREAM_KEEP_IDLE, 7),
			 -EOPNOTSUPP);
}

static void facts__of_a_stream(void **state)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	f.still = true;
	put(pair[0], data, 77);
	fake_step(&f);
	assert_int_equal(homa_stream_facts(pair[0], &facts), 0);
	assert_int_equal(facts.unsent, 77);
	assert_int_equal(facts.mss, 1448);
	assert_int_equal(facts.local.ss_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)&facts.local)->sin_port,
			 htons(80));
	assert_int_equal(facts.remote.ss_family, AF_INET6);
	facts.size = offsetof(struct homa_stream_facts, mss);
	facts.mss = 1;
	assert_int_equal(homa_stream_facts(pair[0], &facts), 0);
	assert_int_equal(facts.mss, 1);
	assert_int_equal(homa_stream_facts(listener, &facts), -ENOTCONN);
}

/* ---- the end ---- */

static void shutdown__halves(void **state)
{
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	put(pair[0], data, 100);
	assert_int_equal(homa_stream_shutdown(pair[0]), 0);
	assert_int_equal(homa_stream_shutdown(pair[0]), 0);
	assert_int_equal(put(pair[0], data, 1), -EPIPE);
	fake_step(&f);
	assert_int_equal(f.commands[HOMA_STREAM_SHUT], 1);
	assert_int_equal(homa_stream_ready(pair[1]),
			 HOMA_STREAM_IN | HOMA_STREAM_EOF | HOMA_STREAM_OUT);
	assert_int_equal(get(pair[1], got, 1000), 100);
	assert_int_equal(get(pair[1], got, 1000), 0);
	/* The other half is open. */
	assert_int_equal(put(pair[1], data, 50), 50);
	homa_stream_shutdown(pair[1]);
	fake_step(&f);
	assert_int_equal(homa_stream_ready(pair[1]),
			 HOMA_STREAM_EOF | HOMA_STREAM_HUP);
	assert_int_equal(get(pair[0], got, 1000), 50);
	assert_int_equal(get(pair[0], got, 1000), 0);
}

/* What was written is still sent, and the slot is another stream's later. */
static void close__sends_what_was_written(void **state)
{
	struct homa_stream *pair[2], *listener, *news[8];
	u32 i, n;

	(void)state;
	open_context();
	for (i = 0; i < 20; i++) {
		make_pair(pair, &listener);
		put(pair[0], data, 3000);
		homa_stream_close(pair[0]);
		fake_step(&f);
		assert_int_equal(get(pair[1], got, 4000), 3000);
		assert_int_equal(get(pair[1], got, 4000), 0);
		homa_stream_close(pair[1]);
		homa_stream_close(listener);
		fake_step(&f);
	}
	/* Events about the closed ones are nobody's news. */
	n = (u32)homa_streams_poll(ctx, news, 8);
	assert_int_equal(n, 0);
	assert_false(f.end[0].used || f.end[1].used);
}

static void abort__resets(void **state)
{
	struct homa_stream *pair[2], *listener;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	fake_arrive(&f, pair[1]->index, data, 10);
	homa_stream_abort(pair[0]);
	fake_step(&f);
	/* What had arrived first, then the error. */
	assert_int_equal(homa_stream_ready(pair[1]),
			 HOMA_STREAM_IN | HOMA_STREAM_ERROR | HOMA_STREAM_HUP);
	assert_int_equal(get(pair[1], got, 100), 10);
	assert_int_equal(get(pair[1], got, 100), -ECONNRESET);
	assert_int_equal(put(pair[1], data, 1), -ECONNRESET);
}

/* ---- listeners ---- */

static void listen__closed_with_some_not_accepted(void **state)
{
	struct homa_stream *listener, *stream, *news[8];
	u32 slot[3], i;

	(void)state;
	open_context();
	listen_on(&listener);
	for (i = 0; i < 3; i++) {
		slot[i] = fake_incoming(&f, (u32)listener->token);
		fake_arrive(&f, slot[i], data, 5);
	}
	/* Streams that are not accepted are no news. */
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
	assert_ptr_equal(news[0], listener);
	assert_int_equal(homa_stream_accept(listener, &stream), 0);
	/* What had come before is. */
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
	assert_ptr_equal(news[0], stream);
	/* One more is on its way when it is closed. */
	homa_stream_close(listener);
	fake_incoming(&f, 1);
	fake_step(&f);
	swallow();
	fake_step(&f);
	assert_int_equal(f.commands[HOMA_STREAM_ABORT], 3);
	assert_int_equal(f.commands[HOMA_STREAM_UNLISTEN], 1);
	assert_true(f.end[slot[0]].used);
	assert_false(f.end[slot[1]].used || f.end[slot[2]].used);
	/* UNLISTENED was the last word of it. */
	assert_true(homa_list_empty(&ctx->listeners));
	assert_int_equal(get(stream, got, 10), 5);
}

/* One that is shut down takes no more; what nobody has accepted is reset. */
static void listen__shut_down(void **state)
{
	struct homa_stream *listener, *stream, *news[8];

	(void)state;
	open_context();
	listen_on(&listener);
	fake_incoming(&f, (u32)listener->token);
	assert_int_equal(homa_stream_shutdown(listener), 0);
	fake_step(&f);
	assert_int_equal(homa_stream_accept(listener, &stream), -EINVAL);
	assert_int_equal(f.commands[HOMA_STREAM_ABORT], 1);
	assert_int_equal(f.commands[HOMA_STREAM_UNLISTEN], 1);
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
	assert_ptr_equal(news[0], listener);
	/* Twice is once. */
	assert_int_equal(homa_stream_shutdown(listener), 0);
	assert_int_equal(f.commands[HOMA_STREAM_UNLISTEN], 1);
	homa_stream_close(listener);
	assert_true(homa_list_empty(&ctx->listeners));
}

static void *poll_until_stopped(void *arg)
{
	struct homa_stream *news[4];

	while (!__atomic_load_n((u32 *)arg, __ATOMIC_RELAXED)) {
		homa_streams_poll(ctx, news, 4);
		usleep(100);
	}
	return NULL;
}

/* A connection comes before this side knows the listener's number. */
static void listen__connections_before_its_number(void **state)
{
	struct homa_stream *listener, *stream;
	pthread_t thread;
	u32 stop = 0;

	(void)state;
	open_context();
	f.late = 50000;
	pthread_create(&thread, NULL, poll_until_stopped, &stop);
	listen_on(&listener);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(homa_stream_accept(listener, &stream), 0);
	assert_int_equal(homa_stream_accept(listener, &stream), -EAGAIN);
}

/* ---- news and sleep ---- */

static void poll__each_stream_once(void **state)
{
	struct homa_stream *pair[2], *listener, *news[8];
	u32 i, tail;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	swallow();
	tail = f.tail;
	for (i = 0; i < 10; i++)
		fake_arrive(&f, pair[1]->index, data, 10);
	assert_int_equal(f.tail, tail + 1);
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
	assert_ptr_equal(news[0], pair[1]);
	assert_int_equal(homa_streams_poll(ctx, news, 8), 0);
	fake_arrive(&f, pair[1]->index, data, 10);
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
}

/* What was said of a stream that is closed is not news of the next one in its slot. */
static void poll__not_of_the_next_in_the_slot(void **state)
{
	struct homa_stream *listener, *first, *second, *news[8];
	u32 slot, generation;

	(void)state;
	open_context();
	listen_on(&listener);
	slot = fake_incoming(&f, 1);
	generation = f.slot[slot].generation;
	assert_int_equal(homa_stream_accept(listener, &first), 0);
	homa_stream_close(first);
	fake_step(&f);
	assert_int_equal(fake_incoming(&f, 1), slot);
	assert_int_equal(homa_stream_accept(listener, &second), 0);
	swallow();
	fake_event(&f, (struct homa_stream_event){ .kind = HOMA_STREAM_CHANGED,
						   .slot = slot,
						   .generation = generation });
	assert_int_equal(homa_streams_poll(ctx, news, 8), 0);
	fake_changed(&f, slot);
	assert_int_equal(homa_streams_poll(ctx, news, 8), 1);
	assert_ptr_equal(news[0], second);
}

static void fd__is_readable_until_news_is_taken(void **state)
{
	struct homa_stream *pair[2], *listener, *news[2];
	int fd;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	swallow();
	fd = homa_streams_fd(ctx);
	/* Not armed: no signal. */
	fake_arrive(&f, pair[1]->index, data, 10);
	assert_false(readable(fd));
	assert_int_equal(homa_streams_arm(ctx), 0);
	swallow();
	assert_int_equal(homa_streams_arm(ctx), 1);
	fake_arrive(&f, pair[0]->index, data, 10);
	fake_arrive(&f, pair[1]->index, data, 10);
	assert_true(readable(fd));
	assert_int_equal(homa_streams_poll(ctx, news, 1), 1);
	assert_true(readable(fd));
	assert_int_equal(homa_streams_poll(ctx, news, 1), 1);
	assert_false(readable(fd));
	assert_int_equal(homa_streams_wait(ctx, 0), 0);
}

static void *arrive_later(void *arg)
{
	usleep(100000);
	fake_arrive(&f, *(u32 *)arg, data, 10);
	return NULL;
}

static void wait__sleeps_and_is_woken(void **state)
{
	struct homa_stream *pair[2], *listener;
	pthread_t thread;
	int i;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	swallow();
	assert_int_equal(homa_streams_wait(ctx, 20000000), 0);
	for (i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, arrive_later, &pair[1]->index);
		assert_int_equal(homa_streams_wait(ctx, -1), 1);
		pthread_join(thread, NULL);
		assert_int_equal(swallow(), 1);
	}
}

static void *wait_a_minute(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)homa_streams_wait(ctx, 60000000000);
}

/* A thread sleeps, and another one takes the news and empties the pipe before the first has
 * seen it: the next news wakes it nevertheless. */
static void wait__others_take_the_news(void **state)
{
	struct homa_stream *pair[2], *listener;
	pthread_t thread;
	u32 sleepers;
	void *rc;

	(void)state;
	open_context();
	make_pair(pair, &listener);
	swallow();
	pthread_create(&thread, NULL, wait_a_minute, NULL);
	do {
		homa_gate_lock(&ctx->look);
		sleepers = ctx->sleepers;
		homa_gate_unlock(&ctx->look);
		usleep(100);
	} while (!sleepers);
	/* As if homad had signalled, and the byte had been taken. */
	__atomic_store_n(&f.area->armed, 0, __ATOMIC_SEQ_CST);
	fake_arrive(&f, pair[0]->index, data, 1);
	assert_int_equal(swallow(), 1);
	assert_int_equal(__atomic_load_n(&f.area->armed, __ATOMIC_SEQ_CST), 1);
	fake_arrive(&f, pair[1]->index, data, 1);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(open__refuses_what_cannot_be),
		T(takes__what_rules_say),
		T(connect__fails_and_is_news),
		T(await_way__tells_what_homad_says),
		T(listen__with_any_backlog),
		T(connect__closed_before_it_opens),
		T(connect__no_more_at_once_than_slots),
		T(options__before_and_after),
		T(patience__before_and_after),
		T(patience__of_an_older_homad),
		T(facts__of_a_stream),
		T(shutdown__halves),
		T(close__sends_what_was_written),
		T(abort__resets),
		T(listen__closed_with_some_not_accepted),
		T(listen__shut_down),
		T(listen__connections_before_its_number),
		T(poll__each_stream_once),
		T(poll__not_of_the_next_in_the_slot),
		T(fd__is_readable_until_news_is_taken),
		T(wait__sleeps_and_is_woken),
		T(wait__others_take_the_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
