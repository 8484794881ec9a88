// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a server does with requests but answer them, and what programs do with messages:
 * entry by entry, as homad sees it.
 */
#include <poll.h>
#include "client_test.h"

static struct homa_message taken(u64 token)
{
	struct homa_message msg;

	fake_request(&f, token, "question", 8);
	receive(&msg, HOMA_REQUEST);
	homa_release(h, &msg);
	return msg;
}

static void reject__once(void **state)
{
	struct homa_message msg;
	struct homa_sqe sqe;

	(void)state;
	open_handle();
	msg = taken(0x50003);
	assert_int_equal(homa_reject(h, &msg, 0), -EINVAL);
	assert_int_equal(homa_reject(h, &msg, -EIO), -EINVAL);
	assert_int_equal(homa_reject(h, &msg, HOMA_MAX_REJECT + 1), -EINVAL);
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_reject(h, &msg, HOMA_MAX_REJECT), 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REJECT);
	assert_int_equal(sqe.token, 0x50003);
	assert_int_equal(sqe.length, HOMA_MAX_REJECT);
	assert_int_equal(homa_reject(h, &msg, EIO), -EINVAL);
	assert_int_equal(homa_discard(h, &msg), -EINVAL);
	assert_int_equal(homa_reply(h, &msg, "x", 1), -EINVAL);
	assert_true(fake_quiet(&f));
}

static void discard__has_an_errno_of_its_own(void **state)
{
	struct homa_message msg;
	struct homa_sqe sqe;

	(void)state;
	open_handle();
	msg = taken(0x50003);
	assert_int_equal(homa_discard(h, &msg), 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REJECT);
	assert_int_equal(sqe.length, ECANCELED);
}

/* Its place is used again: the first client had given up. */
static void reject__of_one_that_is_gone_is_nothing(void **state)
{
	struct homa_message first, second;

	(void)state;
	open_handle();
	first = taken(0x60003);
	second = taken(0x70003);
	assert_int_equal(homa_reject(h, &first, EIO), 0);
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_alive(h, &first), 0);
	assert_int_equal(f.alives, 0);
	assert_int_equal(homa_reply(h, &second, "x", 1), 0);
	assert_int_equal(fake_next(&f).token, 0x70003);
}

static void alive__is_asked(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	msg = taken(0x50003);
	f.alive = 1;
	assert_int_equal(homa_alive(h, &msg), 1);
	f.alive = 0;
	assert_int_equal(homa_alive(h, &msg), 0);
	assert_int_equal(f.alives, 2);
	assert_int_equal(homa_reply(h, &msg, "x", 1), 0);
	assert_int_equal(homa_alive(h, &msg), 0);
	assert_int_equal(f.alives, 2);
}

/* The request can still be answered. */
static void reject__wants_a_homad_that_can(void **state)
{
	struct homa_message msg;

	(void)state;
	f.cannot = HOMA_SHM_CAN_REJECT;
	open_handle();
	msg = taken(0x50003);
	assert_int_equal(homa_reject(h, &msg, EIO), -EOPNOTSUPP);
	assert_non_null(strstr(homa_error(h), "older"));
	assert_int_equal(homa_alive(h, &msg), -EOPNOTSUPP);
	assert_int_equal(f.alives, 0);
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_reply(h, &msg, "x", 1), 0);
	assert_int_equal(fake_next(&f).op, HOMA_SQE_REPLY);
}

/* Who asked has gone with homad. */
static void reject__after_homad_ended(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	msg = taken(0x50003);
	fake_kill(&f);
	assert_int_equal(homa_reject(h, &msg, EIO), 0);
	assert_int_equal(homa_alive(h, &msg), 0);
	fake_start(&f);
}

static int open_sharing(void)
{
	struct homa_options options = { .via = "service",
					.flags = HOMA_OPEN_SHARED_PORT };

	return homa_open(&h, &options);
}

static void shared_port__is_asked_for(void **state)
{
	u64 wanted = HOMA_CTL_LISTEN_ON | HOMA_CTL_LISTEN_SHARED;

	(void)state;
	assert_int_equal(open_sharing(), 0);
	/* homad knows why. */
	assert_int_equal(homa_bind(h, 14), -EADDRINUSE);
	assert_non_null(strstr(homa_error(h), "port 14 is another handle's"));
	assert_int_equal(homa_bind(h, 99), 0);
	assert_int_equal(homa_bind(h, 98), -EINVAL);
	assert_int_equal(f.questions[HOMA_CTL_BIND], 0);
	assert_int_equal(f.bound, 99);
	assert_int_equal(f.listen, wanted);
	/* And asked for again when homad is back. */
	fake_kill(&f);
	f.listen = f.bound = 0;
	fake_start(&f);
	while (try_request(10) == -ECONNREFUSED)
		usleep(1000);
	assert_int_equal(f.bound, 99);
	assert_int_equal(f.listen, wanted);
}

static void shared_port__nobody_else_asks_for_it(void **state)
{
	(void)state;
	open_handle();
	assert_int_equal(homa_bind(h, 99), 0);
	assert_int_equal(f.questions[HOMA_CTL_BIND], 1);
	assert_int_equal(f.questions[HOMA_CTL_LISTEN], 0);
}

static void shared_port__wants_a_homad_that_can(void **state)
{
	(void)state;
	f.cannot = HOMA_SHM_CAN_SHARE;
	assert_int_equal(open_sharing(), -EOPNOTSUPP);
	assert_non_null(strstr(homa_open_error(), "older"));
}

/* What is in the ring is taken under one turn of the lock. */
static void batch__is_one_turn(void **state)
{
	struct homa_message msgs[8];
	struct homa_message msg;
	u64 ids[8];
	int i;

	(void)state;
	open_handle();
	assert_int_equal(homa_receive_batch(h, msgs, 8, 0, 0), -EAGAIN);
	for (i = 0; i < 8; i++)
		ids[i] = request(data, 10, i == 3 ? HOMA_PRIVATE : 0);
	for (i = 0; i < 8; i++)
		if (i != 3)
			fake_respond(&f, ids[i] >> 1, data, (u32)i + 1);
	/* No more than there is room for; one by one nothing is counted. */
	receive(&msg, HOMA_RESPONSE);
	assert_int_equal(counter("host_batched"), 0);
	assert_int_equal(homa_receive_batch(h, msgs, 4, 0, 1000), 4);
	assert_int_equal(counter("host_batched"), 3);
	for (i = 0; i < 4; i++) {
		int which = i + 1 + (i >= 2);

		assert_int_equal(msgs[i].id, ids[which]);
		assert_int_equal(msgs[i].length, which + 1);
		homa_release(h, &msgs[i]);
	}
	/* The rest, and then it does not wait for more. */
	assert_int_equal(homa_receive_batch(h, msgs, 8, 0, -1), 2);
	assert_int_equal(counter("host_batched"), 4);
	homa_release(h, &msgs[0]);
	homa_release(h, &msgs[1]);
	homa_release(h, &msg);
	assert_int_equal(homa_receive_batch(h, msgs, 8, HOMA_RECV_NONBLOCK, -1),
			 -EAGAIN);
}

/* Kinds that were not asked for stay. */
static void batch__of_one_kind(void **state)
{
	struct homa_message msgs[8];
	u64 id;

	(void)state;
	open_handle();
	id = request(data, 10, 0);
	fake_request(&f, 0x50001, "one", 3);
	fake_respond(&f, id >> 1, "two", 3);
	fake_request(&f, 0x50002, "three", 5);
	assert_int_equal(homa_receive_batch(h, msgs, 8, HOMA_RECV_REQUEST, 1000),
			 2);
	assert_int_equal(msgs[0].length, 3);
	assert_int_equal(msgs[1].length, 5);
	assert_int_equal(homa_receive_batch(h, msgs, 8, 0, 1000), 1);
	assert_int_equal(msgs[0].kind, HOMA_RESPONSE);
}

static void batch__mistakes(void **state)
{
	struct homa_message msg;

	(void)state;
	open_handle();
	assert_int_equal(homa_receive_batch(h, &msg, 0, 0, 0), -EINVAL);
	assert_int_equal(homa_receive_batch(h, NULL, 1, 0, 0), -EINVAL);
	assert_int_equal(homa_receive_batch(h, &msg, 1, 0x80, 0), -EINVAL);
	assert_int_equal(homa_receive_batch(NULL, &msg, 1, 0, 0), -EINVAL);
}

/* ---- sending without waiting ---- */

static int send_now(u32 length, u64 *id)
{
	return homa_request(h, (struct sockaddr *)&server, sizeof(server), data,
			    length, 7, HOMA_NONBLOCK, id);
}

/* What is accepted is sent, once and in order; what is not, is not. */
static void nonblock__of_a_full_ring(void **state)
{
	u64 ids[HOMA_SHM_SQ_ENTRIES + 1];
	struct homa_sqe sqe;
	u32 i, n = 0;

	(void)state;
	open_handle();
	assert_int_equal(homa_wait_send(h, 10, 0), 0);
	while (n <= HOMA_SHM_SQ_ENTRIES && !send_now(10, &ids[n]))
		n++;
	assert_int_equal(n, HOMA_SHM_SQ_ENTRIES);
	assert_int_equal(send_now(10, &ids[n]), -EAGAIN);
	assert_non_null(strstr(homa_error(h), "homa_wait_send"));
	assert_int_equal(homa_wait_send(h, 10, 0), -EAGAIN);
	assert_int_equal(homa_wait_send(h, 10, 1), -EAGAIN);
	assert_int_equal(counter("host_ring_waits"), 0);
	/* There is a way to everywhere, or the RPC fails: nobody was asked. */
	assert_int_equal(f.routes, 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.token, ids[0] >> 1);
	assert_int_equal(homa_wait_send(h, 10, 0), 0);
	assert_int_equal(send_now(10, &ids[0]), 0);
	assert_int_equal(send_now(10, &ids[n]), -EAGAIN);
	for (i = 1; i < n; i++)
		assert_int_equal(fake_next(&f).token, ids[i] >> 1);
	assert_int_equal(fake_next(&f).token, ids[0] >> 1);
	assert_true(fake_quiet(&f));
}

static void *take_one_later(void *arg)
{
	usleep(20000);
	fake_next(arg);
	return NULL;
}

static bool may_send(int timeout_ms)
{
	struct pollfd p = { .fd = homa_send_fd(h), .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	assert_true(n >= 0);
	return n == 1;
}

/* Readable at first and as long as requests are accepted; not after one that is not, and
 * later again, for as many tries as it takes. */
static void send_fd__says_when_to_try_again(void **state)
{
	int fd, i, n = 0;
	u64 id;

	(void)state;
	open_handle();
	fd = homa_send_fd(h);
	assert_true(fd >= 0);
	assert_int_equal(homa_send_fd(h), fd);
	assert_true(may_send(-1));
	while (!send_now(10, &id))
		n++;
	assert_int_equal(n, HOMA_SHM_SQ_ENTRIES);
	for (i = 0; i < 12; i++) {
		assert_int_equal(send_now(10, &id), -EAGAIN);
		assert_true(may_send(-1));
	}
	/* This homad knows nothing of it, so that was time that passed. */
	assert_int_equal(counter("host_room_asks"), 0);
	fake_next(&f);
	assert_true(may_send(-1));
	assert_int_equal(send_now(10, &id), 0);
	assert_true(may_send(0));
	assert_int_equal(send_now(10, &id), -EAGAIN);
	assert_true(may_send(-1));
}

/* Whoever asks for it later, and whatever thread sends. */
static void send_fd__of_a_ring_that_is_full_already(void **state)
{
	pthread_t thread;
	u64 id;

	(void)state;
	open_handle();
	while (!send_now(10, &id))
		;
	assert_true(may_send(-1));
	pthread_create(&thread, NULL, take_one_later, &f);
	while (send_now(10, &id) == -EAGAIN)
		assert_true(may_send(-1));
	pthread_join(thread, NULL);
}

static void wait_send__until_there_is_room(void **state)
{
	pthread_t thread;
	u64 id;

	(void)state;
	open_handle();
	while (!send_now(10, &id))
		;
	pthread_create(&thread, NULL, take_one_later, &f);
	assert_int_equal(homa_wait_send(h, 10, -1), 0);
	assert_int_equal(send_now(10, &id), 0);
	pthread_join(thread, NULL);
	assert_int_equal(homa_wait_send(h, HOMA_MAX_MESSAGE + 1, 0), -EMSGSIZE);
}

/* Long messages: more memory is asked for by who waits, never by who does not. */
static void nonblock__asks_for_no_memory(void **state)
{
	u32 n = 0, length = HOMA_MAX_MESSAGE;
	u64 id;

	(void)state;
	open_handle();
	while (n < 10 && !send_now(length, &id))
		n++;
	assert_true(n >= 3 && n < 5);
	assert_int_equal(send_now(length, &id), -EAGAIN);
	assert_int_equal(homa_wait_send(h, length, 0), -EAGAIN);
	assert_int_equal(counter("host_segments"), 0);
	/* A short one has room. */
	assert_int_equal(homa_wait_send(h, 10, 0), 0);
	assert_int_equal(send_now(10, &id), 0);
	assert_int_equal(homa_wait_send(h, length, 10000), 0);
	assert_int_equal(counter("host_segments"), 1);
	assert_int_equal(send_now(length, &id), 0);
	while (n--)
		assert_int_equal(fake_next(&f).length, length);
	assert_int_equal(fake_next(&f).length, 10);
	assert_int_equal(fake_next(&f).length, length);
	assert_true(fake_quiet(&f));
}

/* A user who may have no more: homad is not asked each time that we look. */
static void wait_send__asks_for_memory_now_and_then(void **state)
{
	u32 looks = 0, length = HOMA_MAX_MESSAGE;
	u64 id;

	(void)state;
	open_handle();
	f.no_memory = 1;
	while (looks < 10 && !send_now(length, &id))
		looks++;
	assert_true(looks < 10);
	assert_int_equal(homa_wait_send(h, length, 50), -EAGAIN);
	/* Two sizes at the begin, and again if we were kept from running for long. */
	assert_in_range(__atomic_load_n(&f.segment_questions, __ATOMIC_SEQ_CST),
			1, 4);
	/* It is asked again, and what it then gives is taken. */
	__atomic_store_n(&f.no_memory, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(homa_wait_send(h, length, -1), 0);
	assert_int_equal(send_now(length, &id), 0);
}

static void nonblock__without_homad(void **state)
{
	struct homa_message msg;
	u64 id;

	(void)state;
	open_handle();
	request(data, 10, 0);
	fake_kill(&f);
	receive(&msg, HOMA_ERROR);
	assert_int_equal(msg.error, -ECONNRESET);
	assert_int_equal(send_now(10, &id), -ECONNREFUSED);
	assert_int_equal(send_now(100000, &id), -ECONNREFUSED);
	assert_int_equal(homa_wait_send(h, 10, 0), -ECONNREFUSED);
	fake_start(&f);
}

/* ---- names of requests ---- */

static void ticket__answers_once(void **state)
{
	struct homa_message msg;
	struct homa_ticket ticket, copy, bad;
	struct homa_sqe sqe;
	u32 i;

	(void)state;
	open_handle();
	msg = taken(0x50003);
	assert_int_equal(homa_ticket_get(&msg, &ticket), 0);
	memset(&msg, 0xa5, sizeof(msg));
	copy = ticket;
	f.alive = 1;
	assert_int_equal(homa_ticket_alive(h, &copy), 1);
	/* A name of which any byte is another one is none. */
	for (i = 0; i < sizeof(ticket); i++) {
		bad = ticket;
		((u8 *)&bad)[i] ^= 1;
		assert_int_equal(homa_ticket_reply(h, &bad, "x", 1), -EINVAL);
		assert_int_equal(homa_ticket_reject(h, &bad, EIO), -EINVAL);
		assert_int_equal(homa_ticket_alive(h, &bad), -EINVAL);
	}
	assert_true(fake_quiet(&f));
	assert_int_equal(homa_ticket_reply(h, &copy, "answer", 6), 0);
	sqe = fake_next(&f);
	assert_int_equal(sqe.op, HOMA_SQE_REPLY);
	assert_int_equal(sqe.token, 0x50003);
	assert_int_equal(homa_ticket_reply(h, &ticket, "answer", 6), -EINVAL);
	assert_int_equal(homa_ticket_reject(h, &ticket, EIO), -EINVAL);
	msg = taken(0x50004);
	assert_int_equal(homa_ticket_get(&msg, &ticket), 0);
	assert_int_equal(homa_ticket_reject(h, &ticket, EIO), 0);
	assert_int_equal(fake_next(&f).op, HOMA_SQE_REJECT);
	assert_true(fake_quiet(&f));
}

static void ticket__is_of_a_request_and_a_handle(void **state)
{
	struct homa_message msg = { .kind = HOMA_RESPONSE };
	struct homa_ticket ticket = { 0 };

	(void)state;
	open_handle();
	assert_int_equal(homa_ticket_get(&msg, &ticket), -EINVAL);
	assert_int_equal(homa_ticket_get(NULL, &ticket), -EINVAL);
	assert_int_equal(homa_ticket_reply(h, &ticket, "x", 1), -EINVAL);
	assert_int_equal(homa_ticket_reply(h, NULL, "x", 1), -EINVAL);
	msg = taken(0x50003);
	assert_int_equal(homa_ticket_get(&msg, NULL), -EINVAL);
	assert_int_equal(homa_ticket_get(&msg, &ticket), 0);
	homa_close(h);
	open_handle();
	assert_int_equal(homa_ticket_reply(h, &ticket, "x", 1), -EINVAL);
	assert_int_equal(homa_ticket_reply(NULL, &ticket, "x", 1), -EINVAL);
	assert_true(fake_quiet(&f));
}

/* ---- bytes in one piece ---- */

static void view__copies_only_what_is_in_pieces(void **state)
{
	static char area[300], room[300];
	struct homa_message msg = { .kind = HOMA_RESPONSE };
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(area); i++)
		area[i] = (char)i;
	assert_non_null(homa_view(&msg, NULL, 0));
	msg.length = 100;
	msg.iovcnt = 1;
	msg.iov[0] = (struct iovec){ area, 100 };
	assert_ptr_equal(homa_view(&msg, NULL, 0), area);
	/* Pieces that follow each other are one. */
	msg.length = 150;
	msg.iovcnt = 2;
	msg.iov[1] = (struct iovec){ area + 100, 50 };
	assert_ptr_equal(homa_view(&msg, room, sizeof(room)), area);
	msg.iov[1].iov_base = area + 200;
	assert_null(homa_view(&msg, NULL, 0));
	assert_null(homa_view(&msg, room, 149));
	assert_ptr_equal(homa_view(&msg, room, 150), room);
	assert_memory_equal(room, area, 100);
	assert_memory_equal(room + 100, area + 200, 50);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(reject__once),
		T(discard__has_an_errno_of_its_own),
		T(reject__of_one_that_is_gone_is_nothing),
		T(alive__is_asked),
		T(reject__wants_a_homad_that_can),
		T(reject__after_homad_ended),
		T(shared_port__is_asked_for),
		T(shared_port__nobody_else_asks_for_it),
		T(shared_port__wants_a_homad_that_can),
		T(batch__is_one_turn),
		T(batch__of_one_kind),
		T(batch__mistakes),
		T(nonblock__of_a_full_ring),
		T(send_fd__says_when_to_try_again),
		T(send_fd__of_a_ring_that_is_full_already),
		T(wait_send__until_there_is_room),
		T(nonblock__asks_for_no_memory),
		T(wait_send__asks_for_memory_now_and_then),
		T(nonblock__without_homad),
		T(ticket__answers_once),
		T(ticket__is_of_a_request_and_a_handle),
		T(view__copies_only_what_is_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
