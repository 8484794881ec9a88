// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/slow/throttle.c: requests are counted for users. Nothing here depends on how long
 * it takes: debts are of minutes.
 */
#include "unit.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach.h"

#define MINUTES 1000000u /* requests, which take minutes to pay */

struct bed {
	struct homad d;
	struct homad_slow slow;
	struct homad_attach attach;
};

static struct bed *bed_new(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	u32 i;

	homad_config_default(&bed->d.config);
	for (i = 0; i < HOMAD_USER_BUCKETS; i++)
		homa_list_init(&bed->attach.users[i]);
	homa_list_init(&bed->attach.waiting);
	bed->attach.d = &bed->d;
	bed->attach.pause.fd = -1;
	bed->slow.attach = &bed->attach;
	bed->d.slow = &bed->slow;
	return bed;
}

static void bed_free(struct bed *bed)
{
	homad_users_stop(&bed->d);
	free(bed);
}

/* A new connection of a user. */
static struct homad_client *client_new(struct bed *bed, uid_t uid)
{
	struct homad_client *client = calloc(1, sizeof(*client));

	client->user = homad_user_get(&bed->d, uid);
	assert_non_null(client->user);
	client->user->fresh++;
	homa_list_init(&client->waiting);
	return client;
}

static void client_end(struct homad_client *client)
{
	homa_list_del(&client->waiting);
	client->user->fresh--;
	homad_user_put(client->user);
	free(client);
}

static void throttle__is_of_all_connections_of_a_user(void **state)
{
	struct bed *bed = bed_new();
	struct homad_client *first = client_new(bed, 1000),
			    *second = client_new(bed, 1000),
			    *other = client_new(bed, 1001);

	(void)state;
	assert_false(homad_throttle(&bed->d, first));
	homad_throttle_count(first, MINUTES);
	assert_true(homad_throttle(&bed->d, first));
	assert_true(homad_throttle(&bed->d, second));
	assert_true(homa_list_linked(&second->waiting));
	assert_false(homad_throttle(&bed->d, other));
	assert_false(homa_list_linked(&other->waiting));
	client_end(first);
	client_end(second);
	client_end(other);
	bed_free(bed);
}

static void throttle__does_not_begin_anew_with_a_connection(void **state)
{
	struct bed *bed = bed_new();
	struct homad_client *client = client_new(bed, 1000);

	(void)state;
	assert_false(homad_throttle(&bed->d, client));
	homad_throttle_count(client, MINUTES);
	/* The only one of the user's. */
	client_end(client);
	client = client_new(bed, 1000);
	assert_true(homad_throttle(&bed->d, client));
	client_end(client);
	bed_free(bed);
}

static void throttle__forgets_who_asked_little(void **state)
{
	struct bed *bed = bed_new();
	struct homad_client *client = client_new(bed, 1000);

	(void)state;
	assert_false(homad_throttle(&bed->d, client));
	assert_false(homad_throttle_counts(client->user));
	client_end(client);
	assert_true(
		homa_list_empty(&bed->attach.users[1000 % HOMAD_USER_BUCKETS]));
	bed_free(bed);
}

/* A service opens hundreds of handles when it starts, and each asks a few times. */
static void throttle__does_not_slow_a_service_that_starts(void **state)
{
	struct bed *bed = bed_new();
	struct homad_client *client;
	u32 handle;

	(void)state;
	for (handle = 0; handle < bed->d.config.quota.attachments; handle++) {
		client = client_new(bed, 1000);
		assert_false(homad_throttle(&bed->d, client));
		homad_throttle_count(client, 3);
		assert_false(homad_throttle(&bed->d, client));
		client_end(client);
	}
	bed_free(bed);
}

/* The event for which the connection is ready now; 0 if there is none. */
static u32 ready(struct bed *bed)
{
	struct epoll_event event;

	return epoll_wait(bed->slow.loop.epfd, &event, 1, 0) == 1 ? event.events :
								    0;
}

/* A connection whose owner has only closed the sending end is not ready again and again while it
 * waits, and goes on then. */
static void throttle__holds_half_closed_connections_as_others(void **state)
{
	struct bed *bed = bed_new();
	struct homad_client *client = client_new(bed, 1000);
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	bed->slow.loop.epfd = epoll_create1(0);
	client->conn.fd = fds[0];
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
	assert_int_equal(homad_client_watch(&bed->d, client), 0);
	assert_int_equal(ready(bed), EPOLLIN | EPOLLRDHUP);
	assert_false(homad_throttle(&bed->d, client));
	homad_throttle_count(client, MINUTES);
	assert_true(homad_throttle(&bed->d, client));
	assert_int_equal(homad_client_watch(&bed->d, client), 0);
	assert_int_equal(ready(bed), 0);
	/* It may ask again. */
	homa_list_del(&client->waiting);
	assert_int_equal(homad_client_watch(&bed->d, client), 0);
	assert_int_equal(ready(bed), EPOLLIN | EPOLLRDHUP);
	/* The end of both directions is heard while it waits. */
	assert_true(homad_throttle(&bed->d, client));
	assert_int_equal(homad_client_watch(&bed->d, client), 0);
	close(fds[1]);
	assert_true(ready(bed) & EPOLLHUP);
	close(fds[0]);
	close(bed->slow.loop.epfd);
	client_end(client);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(throttle__is_of_all_connections_of_a_user),
		cmocka_unit_test(throttle__does_not_begin_anew_with_a_connection),
		cmocka_unit_test(throttle__forgets_who_asked_little),
		cmocka_unit_test(throttle__does_not_slow_a_service_that_starts),
		cmocka_unit_test(throttle__holds_half_closed_connections_as_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
