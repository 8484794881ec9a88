// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The same, over time: sleeping and waking, homad that ends, comes back or throws us
 * out, children, and many threads.
 */
#include "client_test.h"
#include "homa_addr.h"
#include "homa_hash.h"

#include <poll.h>
#include <sys/wait.h>

/* ---- sleeping ---- */

static void *respond_later(void *arg)
{
	usleep(200000);
	fake_respond(&f, *(u64 *)arg, "late", 4);
	return NULL;
}

static void receive__sleeps_and_is_woken(void **state)
{
	struct homa_message msg;
	pthread_t thread;
	u64 token;
	int i;

	(void)state;
	open_handle();
	for (i = 0; i < 3; i++) {
		u64 id = request(data, 10, 0);

		token = id >> 1;
		pthread_create(&thread, NULL, respond_later, &token);
		if (i == 1)
			assert_int_equal(homa_receive_id(h, &msg, id, -1), 0);
		else
			receive(&msg, HOMA_RESPONSE);
		assert_int_equal(msg.id, id);
		pthread_join(thread, NULL);
	}
	assert_int_equal(f.q->h.armed & HOMA_SHM_ARM_ANY, 0);
}

static void submit__kicks_who_sleeps(void **state)
{
	u64 count;

	(void)state;
	open_handle();
	request(data, 10, 0);
	assert_int_equal(read(f.kick_fd, &count, sizeof(count)), -1);
	f.q->h.need_kick = HOMA_SHM_KICK_SUBMIT;
	request(data, 10, 0);
	assert_int_equal(read(f.kick_fd, &count, sizeof(count)), 8);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void fd__readable_if_a_message_is_there(void **state)
{
	struct homa_message msg;
	u64 shared, private;
	int fd, i;

	(void)state;
	open_handle();
	fd = homa_fd(h);
	assert_true(fd >= 0);
	assert_int_equal(homa_fd(h), fd);
	for (i = 0; i < 5; i++) {
		struct homa_cqe cqe = { .kind = HOMA_CQE_RESPONSE,
					.flags = HOMA_CQE_PRIVATE,
					.length = 1 };

		assert_false(readable(fd));
		shared = request(data, 10, 0);
		private = request(data, 10, HOMA_PRIVATE);
		cqe.token = private >> 1;
		fake_put(&f, cqe, "p");
		assert_false(readable(fd));
		fake_respond(&f, shared >> 1, "s", 1);
		assert_true(readable(fd));
		assert_int_equal(homa_receive_id(h, &msg, private, 0), 0);
		assert_true(readable(fd));
		fake_request(&f, 0x10000u * (u32)(i + 1), "q", 1);
		assert_int_equal(homa_receive(h, &msg, HOMA_RECV_RESPONSE, 0), 0);
		assert_true(readable(fd));
		assert_int_equal(homa_receive(h, &msg, 0, 0), 0);
	}
	assert_false(readable(fd));
	fake_kill(&f);
	assert_true(readable(fd));
	assert_int_equal(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0), -EAGAIN);
	fake_start(&f);
	/* The time to try again comes by itself. */
	for (i = 0; i < 100 && homa_wait_send(h, 1, 0); i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		poll(&p, 1, 1000);
		homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);
	}
	assert_int_equal(f.attaches, 2);
	assert_false(readable(fd));
	fake_request(&f, 0x90000, "q", 1);
	assert_true(readable(fd));
}

/* ---- homad ends ---- */

static void *restart_later(void *arg)
{
	(void)arg;
	usleep(100000);
	fake_kill(&f);
	usleep(100000);
	fake_start(&f);
	while (!__atomic_load_n(&f.binds, __ATOMIC_SEQ_CST))
		usleep(1000);
	usleep(10000);
	fake_request(&f, 0x10000, "new", 3);
	return NULL;
}

static void restart__a_server_serves_on(void **state)
{
	struct homa_message held, before, msg;
	pthread_t thread;
	u64 id;

	(void)state;
	open_handle();
	assert_int_equal(homa_bind(h, 77), 0);
	fake_request(&f, 0x10000, "held", 4);
	receive(&held, HOMA_REQUEST);
	fake_request(&f, 0x10001, "before", 6);
	receive(&before, HOMA_REQUEST);
	id = request(data, 10, HOMA_PRIVATE);
	f.binds = 0;
	pthread_create(&thread, NULL, restart_later, NULL);
	/* Without an end of its own. */
	assert_int_equal(homa_receive(h, &msg, HOMA_RECV_REQUEST, -1), 0);
	assert_memory_equal(msg.iov[0].iov_base, "new", 3);
	pthread_join(thread, NULL);
	assert_int_equal(f.bound, 77);
	/* What was received stays until released; whom it came from has gone. */
	assert_memory_equal(held.iov[0].iov_base, "held", 4);
	assert_int_equal(homa_reply(h, &held, "x", 1), 0);
	assert_true(fake_quiet(&f));
	homa_release(h, &held);
	assert_memory_equal(before.iov[0].iov_base, "before", 6);
	homa_release(h, &before);
	assert_int_equal(fake_released(&f), 0);
	/* A request that was open has failed. */
	assert_int_equal(homa_receive_id(h, &held, id, 0), 0);
	assert_int_equal(held.kind, HOMA_ERROR);
	assert_int_equal(held.error, -ECONNRESET);
	assert_int_equal(homa_reply(h, &msg, "y", 1), 0);
	assert_int_equal(fake_next(&f).token, 0x10000);
	homa_release(h, &msg);
}

/* ---- ids, where homad knows numbers ---- */

static u64 id_of(const struct homa_sqe *sqe)
{
	struct homa_addr to = { .encap = sqe->encap };

	assert_true(sqe->flags & HOMA_SQE_NUMBERED);
	memcpy(to.ip, sqe->ip, sizeof(to.ip));
	return (homa_siphash_addr(&to, f.id_key[0], f.id_key[1]) << 18) +
	       (sqe->token >> 16 << 1);
}

static void set_key(u64 key)
{
	f.id_key[0] = key;
	f.id_key[1] = ~key * 3;
}

static void ids__are_those_in_the_packets(void **state)
{
	struct homa_message msg;
	struct homa_sqe first, second, other;
	u64 a, b, elsewhere;

	(void)state;
	set_key(0x123456789);
	open_handle();
	a = request(data, 100, 0);
	first = fake_next(&f);
	b = request(data, 100000, HOMA_PRIVATE);
	second = fake_next(&f);
	assert_int_equal(homa_parse_address("10.1.2.4:4000", &server), 0);
	elsewhere = request(data, 100, 0);
	other = fake_next(&f);
	assert_true(a == id_of(&first) && b == id_of(&second));
	assert_true(elsewhere == id_of(&other));
	/* One after another, but who is asked knows nothing of those to others. */
	assert_int_equal(first.token >> 16, 1);
	assert_int_equal(b - a, 2);
	assert_true(elsewhere >> 18 != a >> 18);
	fake_respond(&f, first.token, "a", 1);
	fake_respond(&f, second.token, "b", 1);
	assert_int_equal(homa_receive_id(h, &msg, b, 20000), 0);
	assert_true(msg.id == b);
	receive(&msg, HOMA_RESPONSE);
	assert_true(msg.id == a);
	assert_int_equal(homa_receive_id(h, &msg, b, 0), -ENOENT);
	assert_int_equal(homa_abort(h, b, 0), -EINVAL);
	assert_int_equal(homa_abort(h, elsewhere, 0), 0);
	assert_int_equal(fake_next(&f).token, other.token);
}

/* Numbers begin anew with their key; what was open keeps its name until it is taken. */
static void ids__of_a_homad_after_another(void **state)
{
	static const u64 keys[] = { 77, 0, 99 };
	struct homa_message msg;
	struct homa_sqe sqe;
	u64 ids[3];
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		set_key(keys[i]);
		if (!keys[i])
			f.id_key[1] = 0;
		if (i)
			fake_start(&f);
		else
			open_handle();
		while (__atomic_load_n(&f.attaches, __ATOMIC_SEQ_CST) <= i)
			homa_receive(h, &msg, HOMA_RECV_REQUEST, 10);
		ids[i] = request(data, 100, 0);
		sqe = fake_next(&f);
		if (keys[i]) {
			/* That of the first one is passed over. */
			assert_int_equal(sqe.token >> 16, i ? 2 : 1);
			assert_true(ids[i] == id_of(&sqe));
		} else {
			assert_false(sqe.flags & HOMA_SQE_NUMBERED);
			assert_true(ids[i] == sqe.token << 1);
		}
		if (i < 2)
			fake_kill(&f);
	}
	fake_respond(&f, sqe.token, "new", 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(homa_receive_id(h, &msg, ids[i], 20000), 0);
		assert_true(msg.id == ids[i]);
		assert_int_equal(msg.cookie, 7);
		assert_int_equal(msg.error, i < 2 ? -ECONNRESET : 0);
	}
}

static void restart__calls_fail_clearly(void **state)
{
	struct homa_message msg;
	u64 ids[3];
	int i;

	(void)state;
	open_handle();
	for (i = 0; i < 3; i++)
		ids[i] = request(data, 10, 0);
	fake_respond(&f, ids[0] >> 1, "just in time", 12);
	fake_kill(&f);
	receive(&msg, HOMA_RESPONSE);
	assert_memory_equal(msg.iov[0].iov_base, "just in time", 12);
	for (i = 1; i < 3; i++) {
		struct homa_message bad;

		receive(&bad, HOMA_ERROR);
		assert_int_equal(bad.error, -ECONNRESET);
		assert_int_equal(bad.cookie, 7);
		assert_int_equal(bad.peer.ss_family, AF_INET);
	}
	assert_int_equal(homa_receive(h, &msg, 0, 30), -EAGAIN);
	assert_int_equal(try_request(10), -ECONNREFUSED);
	assert_int_equal(homa_bind(h, 5), -ECONNREFUSED);
	assert_int_equal(homa_abort(h, ids[1], 0), -EINVAL);
	fake_start(&f);
	for (i = 0; i < 1000 && try_request(10); i++)
		usleep(1000);
	assert_true(i < 1000);
	assert_int_equal(fake_next(&f).length, 10);
}

/* homad ends, and is back at once, while a long request waits for memory to lie in. */
static void restart__while_memory_is_asked_for(void **state)
{
	u32 n = 0, length = HOMA_MAX_MESSAGE;

	(void)state;
	open_handle();
	f.hang_ups = 1;
	while (n < 10 && f.hang_ups) {
		assert_int_equal(try_request(length), 0);
		n++;
	}
	assert_in_range(n, 2, 9);
	assert_int_equal(f.attaches, 2);
	/* The last one went to the homad that is there now, the others ended with the former. */
	assert_int_equal(fake_next(&f).length, length);
	assert_true(fake_quiet(&f));
	while (--n) {
		struct homa_message msg;

		receive(&msg, HOMA_ERROR);
		assert_int_equal(msg.error, -ECONNRESET);
	}
}

/* A reply that waits for memory when homad ends has nobody to go to, which is no error. */
static void restart__while_a_reply_asks_for_memory(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	assert_int_equal(homa_bind(h, 77), 0);
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	while (!homa_request(h, (struct sockaddr *)&server, sizeof(server),
			     data, sizeof(data), 7, HOMA_NONBLOCK, NULL))
		;
	f.hang_ups = 1;
	assert_int_equal(homa_reply(h, &msg, data, sizeof(data)), 0);
	assert_int_equal(f.hang_ups, 0);
	homa_release(h, &msg);
	assert_int_equal(f.bound, 77);
}

/* The next homad has no memory for the reply, and does not know its request anyway. */
static void restart__a_long_reply_needs_no_memory(void **state)
{
	struct homa_message msg, other;

	(void)state;
	open_handle();
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	fake_kill(&f);
	f.no_memory = 1;
	fake_start(&f);
	while (counter("host_attaches") < 2)
		homa_receive(h, &other, 0, 1);
	while (!homa_request(h, (struct sockaddr *)&server, sizeof(server),
			     data, sizeof(data), 7, HOMA_NONBLOCK, NULL))
		;
	assert_int_equal(try_request(sizeof(data)), -ENOBUFS);
	assert_int_equal(homa_reply(h, &msg, data, sizeof(data)), 0);
	homa_release(h, &msg);
}

static void *send_until_no_more_hang_ups(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&f.hang_ups, __ATOMIC_SEQ_CST)) {
		int rc = try_request(HOMA_MAX_MESSAGE);

		if (rc)
			return (void *)homa_error(h);
	}
	return NULL;
}

/* Who waits for another thread's question to homad gets memory of the next homad, and memory
 * that the next homad gave is not forgotten: the one after it has the right number. */
static void restart__while_threads_ask_for_memory(void **state)
{
	pthread_t threads[3];
	void *failed;
	u32 i;

	(void)state;
	open_handle();
	f.hang_up_us = 2000;
	f.hang_ups = 40;
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, send_until_no_more_hang_ups,
			       NULL);
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], &failed);
		if (failed)
			fail_msg("%s", (char *)failed);
	}
	for (i = 0; i < 30 && f.segs < 3; i++)
		assert_int_equal(try_request(HOMA_MAX_MESSAGE), 0);
	assert_int_equal(f.segs, 3);
}

static void eviction__is_said(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	request(data, 10, 0);
	fake_evict(&f);
	assert_int_equal(homa_receive(h, &msg, 0, 20000), -ECONNABORTED);
	assert_non_null(strstr(homa_error(h), "overwritten"));
	assert_int_equal(try_request(10), -ECONNABORTED);
	assert_int_equal(homa_receive(h, &msg, 0, 0), -ECONNABORTED);
	assert_int_equal(homa_bind(h, 7), -ECONNABORTED);
	assert_int_equal(homa_abort(h, 0, 0), -ECONNABORTED);
	assert_int_equal(f.attaches, 1);
}

static void shutdown__ends_calls(void **state)
{
	struct homa_message msg;
	int fd;

	(void)state;
	open_handle();
	fd = homa_fd(h);
	request(data, 10, 0);
	assert_int_equal(homa_internal_shutdown(h), 0);
	assert_int_equal(homa_receive(h, &msg, 0, -1), -ESHUTDOWN);
	assert_int_equal(try_request(10), -ESHUTDOWN);
	assert_true(readable(fd));
}

/* A child has no part in it, and does not keep it alive. */
static void fork__child_holds_nothing(void **state)
{
	int status, pipes[2];
	pid_t pid;
	char byte;

	(void)state;
	open_handle();
	request(data, 10, 0);
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		struct homa_message msg;
		int rc = homa_receive(h, &msg, 0, 0) != -EINVAL;

		homa_close(h);
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) < 0)
			rc = 1;
		_exit(rc);
	}
	close(pipes[0]);
	request(data, 10, 0);
	homa_close(h);
	h = NULL;
	/* homad sees the end although the child lives. */
	while (__atomic_load_n(&f.conn, __ATOMIC_SEQ_CST) >= 0)
		usleep(1000);
	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- threads ---- */

#define THREADS 12
#define CALLS 300

static void *call_many(void *arg)
{
	u32 seed = (u32)(uintptr_t)arg, i;
	struct homa_message msg;
	u8 buf[6000];

	for (i = 0; i < CALLS; i++) {
		u32 length = i % 20 ? 100 + seed : 5000 + seed;

		memset(buf, (int)(seed + i), length);
		if (homa_call(h, (struct sockaddr *)&server, sizeof(server),
			      buf, length, &msg, 60000) ||
		    msg.length != length ||
		    memcmp(msg.iov[0].iov_base, buf, length))
			return (void *)(uintptr_t)(i + 1);
		homa_release(h, &msg);
	}
	return NULL;
}

static void threads__share_a_handle(void **state)
{
	pthread_t threads[THREADS];
	void *failed;
	uintptr_t i;

	(void)state;
	open_handle();
	fake_echo(&f);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call_many, (void *)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(receive__sleeps_and_is_woken),
		T(submit__kicks_who_sleeps),
		T(fd__readable_if_a_message_is_there),
		T(restart__a_server_serves_on),
		T(ids__are_those_in_the_packets),
		T(ids__of_a_homad_after_another),
		T(restart__calls_fail_clearly),
		T(restart__while_memory_is_asked_for),
		T(restart__while_a_reply_asks_for_memory),
		T(restart__a_long_reply_needs_no_memory),
		T(restart__while_threads_ask_for_memory),
		T(eviction__is_said),
		T(shutdown__ends_calls),
		T(fork__child_holds_nothing),
		T(threads__share_a_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
