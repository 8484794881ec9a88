// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad ends, evicts us or answers strangely in the middle of a call, and what the other
 * threads of the program do meanwhile.
 */
#include "client_test.h"

#include <poll.h>
#include <sys/wait.h>

/* What the thread of the fake homad counts. */
static u32 count(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void set(u32 *word, u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* ---- homad ends while it is asked ---- */

/* A question whose answer is the same from the next homad is put to that one. */
static void ends__while_a_route_is_asked_for(void **state)
{
	(void)state;
	open_handle();
	f.hang_up_op = HOMA_CTL_ROUTE;
	f.hang_ups = 1;
	assert_int_equal(try_request(10), 0);
	assert_int_equal(count(&f.attaches), 2);
	assert_int_equal(fake_next(&f).length, 10);
}

static void ends__while_a_port_is_asked_for(void **state)
{
	(void)state;
	open_handle();
	f.hang_up_op = HOMA_CTL_BIND;
	f.hang_ups = 1;
	assert_int_equal(homa_bind(h, 77), 0);
	assert_int_equal(count(&f.attaches), 2);
	assert_int_equal(f.bound, 77);
}

/* The next homad has other requests by the same names. */
static void ends__while_a_client_is_asked_for(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	fake_request(&f, 0x10000, "q", 1);
	receive(&msg, HOMA_REQUEST);
	f.alive = 1;
	assert_int_equal(homa_alive(h, &msg), 1);
	f.hang_up_op = HOMA_CTL_ALIVE;
	f.hang_ups = 1;
	assert_int_equal(homa_alive(h, &msg), 0);
	assert_int_equal(homa_alive(h, &msg), 0);
	assert_int_equal(count(&f.questions[HOMA_CTL_ALIVE]), 2);
	homa_release(h, &msg);
}

/* One that gives up for good is not asked for ever. */
static void ends__each_time(void **state)
{
	(void)state;
	open_handle();
	f.hang_up_op = HOMA_CTL_ROUTE;
	f.hang_ups = 1000;
	assert_int_equal(try_request(10), -ECONNREFUSED);
	assert_true(count(&f.hang_ups) > 900);
	__atomic_store_n(&f.hang_ups, 0, __ATOMIC_SEQ_CST);
}

static void await_attaches(u32 n)
{
	struct homa_message msg;

	while (count(&f.attaches) < n)
		homa_receive(h, &msg, 0, 10);
}

/* A program that asks for its descriptor then gets one, which says when to try again. */
static void ends__before_the_descriptor_is_asked_for(void **state)
{
	struct homa_message msg;
	int fd;

	(void)state;
	open_handle();
	request(data, 10, 0);
	fake_kill(&f);
	fd = homa_fd(h);
	fake_start(&f);
	assert_true(fd >= 0);
	while (count(&f.attaches) < 2) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		assert_int_equal(poll(&p, 1, -1), 1);
		homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);
	}
	assert_int_equal(homa_fd(h), fd);
}

/* ---- answers that are none ---- */

/* Its answer came late, or is no answer. homad may live and serve the attachment on, and with it
 * the port that we are about to ask for again, until our connection ends. */
static void strange__answer_ends_the_connection(void **state)
{
	(void)state;
	open_handle();
	f.hang_up_op = HOMA_CTL_ROUTE;
	f.strange = 1;
	assert_int_equal(try_request(10), -ECONNREFUSED);
	await_attaches(2);
	assert_int_equal(count(&f.left_open), 0);
	assert_int_equal(try_request(10), 0);
}

/* Memory whose descriptor was lost is homad's loss; what comes after it is of use. */
static void strange__segment_without_its_memory(void **state)
{
	struct homa_sqe sqe;
	u32 n = 0;

	(void)state;
	open_handle();
	f.lose_fds = 1;
	while (n < 10 && !try_request(HOMA_MAX_MESSAGE))
		n++;
	assert_in_range(n, 1, 9);
	assert_int_equal(count(&f.lose_fds), 0);
	assert_int_equal(try_request(HOMA_MAX_MESSAGE), 0);
	assert_int_equal(f.segs, 3);
	while (n--)
		assert_int_equal(fake_next(&f).segment, 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.segment, 2);
	assert_memory_equal(fake_bytes(&f, &sqe), data, HOMA_MAX_MESSAGE);
}

static void ignore(void *arg, const struct homa_ctl_rpc *rpc)
{
	(void)arg;
	(void)rpc;
}

/* What is left of an answer is not the answer to the next question. */
static void strange__records_that_stop(void **state)
{
	(void)state;
	open_handle();
	set(&f.cut, 1);
	assert_int_equal(homa_internal_rpcs(h, ignore, NULL), -ECONNRESET);
	assert_int_equal(homa_bind(h, 77), 0);
	assert_int_equal(count(&f.attaches), 2);
	set(&f.cut, 1);
	assert_int_equal(counter("host_losses"), 2);
	await_attaches(3);
	assert_int_equal(f.bound, 77);
	assert_int_equal(try_request(10), 0);
	assert_int_equal(count(&f.left_open), 0);
}

static void evicted__is_said_to_who_asks(void **state)
{
	(void)state;
	open_handle();
	fake_evict(&f);
	assert_int_equal(try_request(10), -ECONNABORTED);
	assert_int_equal(homa_bind(h, 7), -ECONNABORTED);
	assert_int_equal(count(&f.attaches), 1);
}

static void evicted__before_the_descriptor_is_asked_for(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct homa_message msg;

	(void)state;
	open_handle();
	fake_evict(&f);
	p.fd = homa_fd(h);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0),
			 -ECONNABORTED);
}

/* ---- threads ---- */

static u64 fill_ring(void)
{
	u64 first = 0, id;

	while (!homa_request(h, (struct sockaddr *)&server, sizeof(server),
			     data, 10, 7, HOMA_NONBLOCK, &id))
		if (!first)
			first = id;
	return first;
}

static void *restart_when_somebody_waits(void *arg)
{
	while (!counter("host_ring_waits"))
		usleep(1000);
	fake_kill(&f);
	fake_start(&f);
	return arg;
}

/* An abort waits for room when homad ends. The next one's requests have the same names. */
static void abort__is_not_told_the_next_homad(void **state)
{
	struct homa_sqe sqe;
	pthread_t thread;
	u64 id;

	(void)state;
	f.id_key[0] = 1;
	open_handle();
	id = fill_ring();
	pthread_create(&thread, NULL, restart_when_somebody_waits, NULL);
	homa_abort(h, id, 0);
	pthread_join(thread, NULL);
	await_attaches(2);
	request(data, 10, 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REQUEST);
	assert_true(fake_quiet(&f));
}

/* Who waits for memory waits no longer than he said for room in the ring. */
static void wait_send__of_a_full_ring_waits_in_one_place(void **state)
{
	(void)state;
	open_handle();
	fill_ring();
	assert_int_equal(homa_wait_send(h, HOMA_MAX_MESSAGE, 1), -EAGAIN);
	assert_int_equal(counter("host_ring_waits"), 0);
}

struct waiting {
	u64 id;
	int rc;
};

static void *receive_one(void *arg)
{
	struct waiting *w = arg;
	struct homa_message msg;

	w->rc = homa_receive_id(h, &msg, w->id, 60000);
	if (!w->rc)
		homa_release(h, &msg);
	return NULL;
}

/* Each but one hears that there is nothing to wait for any more. */
static void receive_id__of_several_threads(void **state)
{
	struct waiting w[4];
	pthread_t threads[4];
	u32 i, got = 0;

	(void)state;
	open_handle();
	w[0].id = request(data, 10, HOMA_PRIVATE);
	for (i = 0; i < 4; i++) {
		w[i].id = w[0].id;
		pthread_create(&threads[i], NULL, receive_one, &w[i]);
	}
	usleep(50000);
	fake_respond(&f, w[0].id >> 1, "one", 3);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		if (w[i].rc)
			assert_int_equal(w[i].rc, -ENOENT);
		else
			got++;
	}
	assert_int_equal(got, 1);
}

/* One sleeps, and another one, which does not wait, takes what it sleeps for. */
static void receive_id__taken_by_who_looks_first(void **state)
{
	u32 i;

	(void)state;
	open_handle();
	for (i = 0; i < 50; i++) {
		struct waiting w = { .id = request(data, 10, HOMA_PRIVATE) };
		struct homa_message msg;
		pthread_t thread;
		int rc;

		pthread_create(&thread, NULL, receive_one, &w);
		usleep(1000);
		fake_respond(&f, w.id >> 1, "one", 3);
		rc = homa_receive_id(h, &msg, w.id, 0);
		pthread_join(thread, NULL);
		if (!rc)
			homa_release(h, &msg);
		assert_int_equal(!rc + !w.rc, 1);
		assert_int_equal(rc ? rc : w.rc, -ENOENT);
	}
}

/* ---- children ---- */

static void *open_it(void *arg)
{
	(void)arg;
	open_handle();
	return NULL;
}

/* A child of a program that is about to attach does not keep that attachment alive. */
static void fork__while_another_thread_attaches(void **state)
{
	int status, pipes[2];
	pthread_t thread;
	pid_t pid;
	char byte;

	(void)state;
	f.hold = 1;
	assert_int_equal(pipe(pipes), 0);
	pthread_create(&thread, NULL, open_it, NULL);
	while (!count(&f.held))
		usleep(1000);
	pid = fork();
	if (pid == 0) {
		close(pipes[1]);
		_exit(read(pipes[0], &byte, 1) != 0);
	}
	close(pipes[0]);
	__atomic_store_n(&f.hold, 0, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	homa_close(h);
	h = NULL;
	while (__atomic_load_n(&f.conn, __ATOMIC_SEQ_CST) >= 0)
		usleep(1000);
	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A lock that its owner takes for fork(), too, as libhoma-preload does with its sockets'. */
static pthread_mutex_t callers = PTHREAD_MUTEX_INITIALIZER;

static void lock_callers(void)
{
	pthread_mutex_lock(&callers);
}

static void unlock_callers(void)
{
	pthread_mutex_unlock(&callers);
}

static void *open_under_lock(void *arg)
{
	lock_callers();
	open_it(arg);
	unlock_callers();
	return NULL;
}

static void *answer_later(void *arg)
{
	(void)arg;
	usleep(50000);
	__atomic_store_n(&f.hold, 0, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Without an order of the two locks that all keep, nobody would ever go on. */
static void fork__while_a_lock_of_it_is_held_over_attaching(void **state)
{
	pthread_t opener, answerer;
	int status;
	pid_t pid;

	(void)state;
	f.hold = 1;
	pthread_create(&opener, NULL, open_under_lock, NULL);
	while (!count(&f.held))
		usleep(1000);
	pthread_create(&answerer, NULL, answer_later, NULL);
	pid = fork();
	if (pid == 0)
		_exit(0);
	pthread_join(answerer, NULL);
	pthread_join(opener, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ends__while_a_route_is_asked_for),
		T(ends__while_a_port_is_asked_for),
		T(ends__while_a_client_is_asked_for),
		T(ends__each_time),
		T(ends__before_the_descriptor_is_asked_for),
		T(strange__answer_ends_the_connection),
		T(strange__segment_without_its_memory),
		T(strange__records_that_stop),
		T(evicted__is_said_to_who_asks),
		T(evicted__before_the_descriptor_is_asked_for),
		T(abort__is_not_told_the_next_homad),
		T(wait_send__of_a_full_ring_waits_in_one_place),
		T(receive_id__of_several_threads),
		T(receive_id__taken_by_who_looks_first),
		T(fork__while_another_thread_attaches),
		T(fork__while_a_lock_of_it_is_held_over_attaching),
	};

	pthread_atfork(lock_callers, unlock_callers, unlock_callers);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
