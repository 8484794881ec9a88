// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/observe/http_users.c: shares of connections and of questions. Connections are numbers
 * here, but where the kernel is asked who has the other end.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_users.h"

/* Users of whom none is root or the one who runs this. */
#define ANN 64001u
#define BEN 64002u
#define CID 64003u
#define DAN 64004u
#define EVE 64005u
#define SECOND 1000000000ull

/* @n connections of @user, numbered from @first on, come in. */
static void enter(int first, uid_t user, u32 n)
{
	int victim;

	for (; n; n--)
		assert_true(homad_http_enter(first++, user, &victim));
}

static void leave_all(void)
{
	int fd;

	for (fd = 0; fd < 1000; fd++)
		homad_http_leave(fd);
}

static void share__of_a_user(void **state)
{
	int victim = 0;

	(void)state;
	enter(100, ANN, HOMAD_HTTP_SHARE);
	assert_false(homad_http_enter(110, ANN, &victim));
	assert_int_equal(victim, -1);
	enter(200, BEN, 1);
	homad_http_leave(101);
	enter(111, ANN, 1);
	assert_false(homad_http_enter(112, ANN, &victim));
	leave_all();
}

static void share__of_who_has_most_shrinks(void **state)
{
	int victim;

	(void)state;
	enter(100, ANN, 4);
	enter(200, BEN, 4);
	enter(300, CID, 4);
	enter(400, DAN, 4);
	assert_false(homad_http_enter(500, EVE, &victim));
	assert_int_equal(victim, 100);
	homad_http_leave(victim);
	enter(500, EVE, 1);
	assert_false(homad_http_enter(501, EVE, &victim));
	assert_int_equal(victim, 200);
	/* Who has nearly as many is not given more. */
	assert_false(homad_http_enter(104, ANN, &victim));
	assert_int_equal(victim, -1);
	leave_all();
}

static void share__of_root_is_all(void **state)
{
	int victim;

	(void)state;
	enter(100, 0, HOMAD_HTTP_CONNECTIONS);
	assert_false(homad_http_enter(200, 0, &victim));
	assert_int_equal(victim, -1);
	assert_false(homad_http_enter(200, ANN, &victim));
	assert_int_equal(victim, -1);
	leave_all();
}

/* As many users as there are places, with one connection each, leave one for root. */
static void share__of_many_users_is_roots_too(void **state)
{
	int victim, fd;

	(void)state;
	enter(100, 0, 2);
	for (fd = 102; fd < 100 + (int)HOMAD_HTTP_CONNECTIONS; fd++)
		enter(fd, ANN + (uid_t)fd, 1);
	assert_false(homad_http_enter(200, EVE, &victim));
	assert_int_equal(victim, -1);
	assert_false(homad_http_enter(200, 0, &victim));
	assert_int_equal(victim, 102);
	leave_all();
}

/* Those of whom the kernel does not say who they are make room for each other. */
static void share__of_nobody(void **state)
{
	int victim;

	(void)state;
	enter(100, (uid_t)-1, HOMAD_HTTP_SHARE);
	assert_false(homad_http_enter(200, (uid_t)-1, &victim));
	assert_int_equal(victim, 100);
	homad_http_leave(victim);
	enter(200, (uid_t)-1, 1);
	leave_all();
}

/* Who asks a little more often than twice in a second is answered twice in each, not once. */
static void questions__nothing_of_the_time_is_lost(void **state)
{
	u64 now = 100 * SECOND;
	u32 n, answered = 0;

	(void)state;
	enter(100, CID, 1);
	while (homad_http_may_ask(100, now))
		;
	for (n = 0; n < 100; n++)
		answered +=
			homad_http_may_ask(100, now += SECOND / 2 - SECOND / 50);
	assert_true(answered >= 94);
	leave_all();
}

static void questions__are_counted_for_users(void **state)
{
	u64 now = 100 * SECOND;
	u32 n;

	(void)state;
	enter(100, ANN, 2);
	enter(200, BEN, 1);
	enter(300, 0, 1);
	for (n = 0; homad_http_may_ask(100 + (int)(n & 1), now); n++)
		assert_true(n < 100);
	assert_true(n > 1);
	assert_true(homad_http_may_ask(200, now));
	assert_true(homad_http_may_ask(300, now));
	/* A new connection is no way round it, and waiting is. */
	homad_http_leave(100);
	enter(102, ANN, 1);
	assert_false(homad_http_may_ask(102, now));
	assert_true(homad_http_may_ask(102, now + SECOND));
	for (n = 0; n < 1000; n++)
		assert_true(homad_http_may_ask(300, now));
	leave_all();
}

static void users__of_both_kinds_of_sockets(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);
	int fds[2], listener = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0), served;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(homad_http_user(fds[0]), geteuid());
	assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, size), 0);
	served = accept(listener, NULL, NULL);
	assert_int_equal(homad_http_user(served), geteuid());
	/* Of a socket that nobody has any more the kernel would say that it is root's. */
	close(client);
	assert_int_equal(homad_http_user(served), (uid_t)-1);
	close(served);
	close(listener);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(homad_http_user(-1), (uid_t)-1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__of_a_user),
		cmocka_unit_test(share__of_who_has_most_shrinks),
		cmocka_unit_test(share__of_root_is_all),
		cmocka_unit_test(share__of_many_users_is_roots_too),
		cmocka_unit_test(share__of_nobody),
		cmocka_unit_test(questions__are_counted_for_users),
		cmocka_unit_test(questions__nothing_of_the_time_is_lost),
		cmocka_unit_test(users__of_both_kinds_of_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
