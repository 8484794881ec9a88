// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A homad that takes connections and answers late: calls wait for it no longer than they were
 * asked to, and the connection is kept for its answer. Had a call waited in vain, the next one
 * would have asked anew, which the fake homad counts.
 */
#include "client_test.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static u32 count(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void set(u32 *word, u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* homad ends, and its successor does not answer questions of the kind @op. */
static void restart(u16 op)
{
	fake_kill(&f);
	f.hold_op = op;
	set(&f.held, 0);
	set(&f.hold, 1);
	fake_start(&f);
}

static int look(void)
{
	struct homa_message msg;
	int rc = homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0);

	if (!rc)
		homa_release(h, &msg);
	return rc;
}

static void look_until_held(void)
{
	while (!count(&f.held)) {
		assert_int_equal(look(), -EAGAIN);
		usleep(100);
	}
}

static int try_now(void)
{
	return homa_request(h, (struct sockaddr *)&server, sizeof(server), data,
			    10, 7, HOMA_NONBLOCK, NULL);
}

/* homad answers; @asked: how many questions to attach it had heard in all then. */
static void go_on(u32 asked)
{
	int rc;

	set(&f.hold, 0);
	while ((rc = try_now()) == -ECONNREFUSED) {
		look();
		usleep(100);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(fake_next(&f).length, 10);
	assert_int_equal(count(&f.questions[HOMA_CTL_ATTACH]), asked);
}

/* @wait_send: what homa_wait_send() gives then. */
static void calls_without_an_answer(int wait_send)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(look(), -EAGAIN);
		assert_int_equal(try_now(), -ECONNREFUSED);
		assert_int_equal(homa_wait_send(h, 10, 0), wait_send);
	}
}

static void calls_that_do_not_wait(void)
{
	calls_without_an_answer(-EAGAIN);
}

static void attach__is_not_waited_for(void **state)
{
	(void)state;
	open_handle();
	restart(HOMA_CTL_ATTACH);
	look_until_held();
	calls_that_do_not_wait();
	go_on(2);
}

static void attach__of_a_server_is_not_waited_for(void **state)
{
	(void)state;
	open_handle();
	assert_int_equal(homa_bind(h, 77), 0);
	f.bound = 0;
	restart(HOMA_CTL_LISTEN);
	look_until_held();
	calls_that_do_not_wait();
	go_on(2);
	assert_int_equal(f.bound, 77);
}

/* The descriptor says when the answer is there, and not before. */
static void await_by_descriptor(u16 op)
{
	struct pollfd p = { .events = POLLIN };

	open_handle();
	p.fd = homa_fd(h);
	restart(op);
	look_until_held();
	calls_that_do_not_wait();
	assert_int_equal(poll(&p, 1, 0), 0);
	set(&f.hold, 0);
	do {
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(look(), -EAGAIN);
	} while (try_now() == -ECONNREFUSED);
	assert_int_equal(count(&f.questions[HOMA_CTL_ATTACH]), 2);
	assert_int_equal(poll(&p, 1, 0), 0);
	fake_respond(&f, fake_next(&f).token, "x", 1);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(look(), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static void attach__is_awaited_by_descriptor(void **state)
{
	(void)state;
	await_by_descriptor(HOMA_CTL_ATTACH);
}

static void attach__with_a_descriptor_is_not_waited_for(void **state)
{
	(void)state;
	await_by_descriptor(HOMA_CTL_READY_FD);
}

/* The descriptor is made while homad does not answer. */
static void attach__and_then_a_descriptor(void **state)
{
	struct pollfd p = { .events = POLLIN };

	(void)state;
	open_handle();
	restart(HOMA_CTL_ATTACH);
	look_until_held();
	p.fd = homa_fd(h);
	assert_true(p.fd >= 0);
	look();
	assert_int_equal(poll(&p, 1, 0), 0);
	set(&f.hold, 0);
	while (count(&f.questions[HOMA_CTL_READY_FD]) < 1 || try_now()) {
		assert_int_equal(poll(&p, 1, -1), 1);
		look();
	}
	assert_int_equal(count(&f.questions[HOMA_CTL_ATTACH]), 2);
}

/* As long as the call was asked to wait, and no longer. */
static void attach__is_waited_for_as_long_as_asked(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	restart(HOMA_CTL_ATTACH);
	while (!count(&f.held))
		assert_int_equal(homa_receive(h, &msg, 0, 1), -EAGAIN);
	assert_int_equal(homa_receive(h, &msg, 0, 1), -EAGAIN);
	assert_int_equal(homa_wait_send(h, 10, 1), -EAGAIN);
	go_on(2);
}

static void *send_one(void *arg)
{
	(void)arg;
	return try_request(10) ? (void *)homa_error(h) : NULL;
}

static void *receive_one(void *arg)
{
	struct homa_message msg;

	(void)arg;
	return homa_receive(h, &msg, 0, -1) ? (void *)homa_error(h) : NULL;
}

/* Another thread waits for homad's answer; it needs us to let homad go on. */
static void attach__that_another_thread_waits_for(void **state)
{
	pthread_t sender, receiver;
	void *failed;

	(void)state;
	open_handle();
	restart(HOMA_CTL_ATTACH);
	look_until_held();
	pthread_create(&receiver, NULL, receive_one, NULL);
	pthread_create(&sender, NULL, send_one, NULL);
	usleep(20000);
	calls_that_do_not_wait();
	set(&f.hold, 0);
	pthread_join(sender, &failed);
	if (failed)
		fail_msg("%s", (char *)failed);
	assert_int_equal(count(&f.questions[HOMA_CTL_ATTACH]), 2);
	/* The sanitizer sees no order through the fake homad's mapping: by a lock, then. */
	assert_int_equal(look(), -EAGAIN);
	fake_respond(&f, fake_next(&f).token, "x", 1);
	pthread_join(receiver, &failed);
	if (failed)
		fail_msg("%s", (char *)failed);
}

/* Then the next one is asked. */
static void attach__ends_without_an_answer(void **state)
{
	(void)state;
	open_handle();
	f.hang_up_op = HOMA_CTL_ATTACH;
	set(&f.hang_ups, 2);
	restart(HOMA_CTL_ATTACH);
	look_until_held();
	go_on(4);
}

#define MANY 200

static int dial(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	assert_true(fd >= 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", f.path);
	if (!connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		return fd;
	assert_int_equal(errno, EAGAIN);
	close(fd);
	return -1;
}

/* homad does not even take connections, and as many wait for that as may. */
static void attach__finds_no_room(void **state)
{
	struct homa_ctl_request r = { .op = HOMA_CTL_ATTACH };
	int fds[MANY], n = 0;

	(void)state;
	open_handle();
	assert_true(homa_fd(h) >= 0);
	/* Somebody else attaches, whom the fake homad takes in our place. */
	set(&f.held, 0);
	set(&f.hold, 1);
	fds[n++] = dial();
	assert_int_equal(send(fds[0], &r, sizeof(r), 0), sizeof(r));
	while (!count(&f.held))
		usleep(1000);
	while (n < MANY && (fds[n] = dial()) >= 0)
		n++;
	assert_in_range(n, 2, MANY - 1);
	while (try_now() != -ECONNREFUSED)
		look();
	calls_without_an_answer(-ECONNREFUSED);
	while (n--)
		close(fds[n]);
	set(&f.hold, 0);
	while (try_now()) {
		look();
		usleep(100);
	}
	assert_int_equal(fake_next(&f).length, 10);
}

static void attach__ends_with_the_handle(void **state)
{
	(void)state;
	open_handle();
	restart(HOMA_CTL_ATTACH);
	look_until_held();
	homa_close(h);
	h = NULL;
	set(&f.hold, 0);
	while (__atomic_load_n(&f.conn, __ATOMIC_SEQ_CST) >= 0)
		usleep(1000);
}

static void *send_until_closed(void *arg)
{
	(void)arg;
	/* The handle may be gone when it returns. */
	return (void *)(intptr_t)try_request(10);
}

static void *bind_until_closed(void *arg)
{
	(void)arg;
	homa_bind(h, 77);
	return NULL;
}

static void *close_handle(void *arg)
{
	(void)arg;
	homa_close(h);
	return NULL;
}

/* A call waits for homad's answer, and the answer comes when the handle is being closed. */
static void *close_while_it_waits(void *(*call)(void *))
{
	pthread_t sender, closer;
	void *rc;

	open_handle();
	restart(HOMA_CTL_ATTACH);
	pthread_create(&sender, NULL, call, NULL);
	while (!count(&f.held))
		usleep(100);
	pthread_create(&closer, NULL, close_handle, NULL);
	usleep(20000);
	set(&f.hold, 0);
	pthread_join(sender, &rc);
	pthread_join(closer, NULL);
	h = NULL;
	return rc;
}

static void attach__whose_request_is_closed(void **state)
{
	(void)state;
	assert_int_equal((int)(intptr_t)close_while_it_waits(send_until_closed),
			 -ESHUTDOWN);
}

/* It may have the port already, and then it says so. */
static void attach__whose_bind_is_closed(void **state)
{
	(void)state;
	close_while_it_waits(bind_until_closed);
}

/* The pool that homad has made cannot be mapped, so the handle goes back to one that can: what
 * homad wrote to the other one would never be read. */
static void region__that_cannot_be_mapped(void **state)
{
	static u8 mine[2 << 20] __attribute__((aligned(4096)));
	struct homa_message msg;
	u64 id;

	(void)state;
	open_handle();
	/* Here nothing can be mapped: the last pages of the address space are the kernel's. */
	assert_int_equal(homa_internal_set_region(h, (void *)-(uintptr_t)(4 << 20),
						  sizeof(mine)),
			 -ENOMEM);
	id = request(data, 10, 0);
	assert_int_equal(f.attaches, 2);
	fake_respond(&f, id >> 1, data, 100000);
	receive(&msg, HOMA_RESPONSE);
	assert_memory_equal(msg.iov[0].iov_base, data, 65536);
	homa_release(h, &msg);
	assert_int_equal(homa_internal_set_region(h, mine, sizeof(mine)), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(attach__is_not_waited_for),
		T(attach__of_a_server_is_not_waited_for),
		T(attach__is_awaited_by_descriptor),
		T(attach__with_a_descriptor_is_not_waited_for),
		T(attach__and_then_a_descriptor),
		T(attach__is_waited_for_as_long_as_asked),
		T(attach__that_another_thread_waits_for),
		T(attach__ends_without_an_answer),
		T(region__that_cannot_be_mapped),
		T(attach__finds_no_room),
		T(attach__ends_with_the_handle),
		T(attach__whose_request_is_closed),
		T(attach__whose_bind_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
