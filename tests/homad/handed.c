// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The rules of homa_export() and homa_import(), each tried in one process, which hands handles
 * over to itself. Prints "ok".
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#include "api_common.h"

#define PORT 4000
#define PATIENCE 120000 /* ms */
enum { THREADS = 9 };

static struct homa *server, *client;
static struct sockaddr_storage to;
static char bytes[HOMA_MAX_MESSAGE];

static struct homa *opened(unsigned int flags)
{
	struct homa_options options = { .flags = flags };
	struct homa *h;

	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
	return h;
}

static void both(void)
{
	server = opened(HOMA_OPEN_HANDOVER);
	client = opened(HOMA_OPEN_HANDOVER);
	API_CHECK(!homa_bind(server, PORT), "%s", homa_error(server));
}

static void neither(void)
{
	homa_close(server);
	homa_close(client);
}

/* The same handle, in what might be another process. */
static void move(struct homa **h)
{
	struct homa_handover handover;
	struct homa *next;

	API_CHECK(!homa_export(*h, &handover), "%s", homa_error(*h));
	API_CHECK(!homa_import(&next, &handover, NULL), "%s", homa_open_error());
	homa_close(*h);
	*h = next;
}

static uint64_t ask(size_t length, unsigned int seed, unsigned int flags)
{
	uint64_t id;

	api_fill(bytes, length, seed);
	API_CHECK(!homa_request(client, (struct sockaddr *)&to, sizeof(to),
				bytes, length, seed, flags, &id),
		  "%s", homa_error(client));
	return id;
}

static void take(struct homa *h, struct homa_message *msg, int kind)
{
	API_CHECK(!homa_receive(h, msg, 0, PATIENCE), "%s", homa_error(h));
	API_CHECK((int)msg->kind == kind, "kind %d, %s", msg->kind,
		  strerror(-msg->error));
}

/* The next request gets its own bytes back. */
static void echo(size_t length, unsigned int seed)
{
	struct homa_message msg;

	take(server, &msg, HOMA_REQUEST);
	api_verify(&msg, length, seed);
	api_fill(bytes, length, seed);
	API_CHECK(!homa_reply(server, &msg, bytes, length), "%s",
		  homa_error(server));
	homa_release(server, &msg);
}

static void response(size_t length, unsigned int seed)
{
	struct homa_message msg;

	take(client, &msg, HOMA_RESPONSE);
	API_CHECK(msg.cookie == seed, "cookie");
	api_verify(&msg, length, seed);
	homa_release(client, &msg);
}

static void refused(struct homa *h, int error, const char *why)
{
	struct homa_handover handover;
	int rc = homa_export(h, &handover);

	API_CHECK(rc == error && strstr(homa_error(h), why), "%d: %s", rc,
		  homa_error(h));
}

/* ---- who cannot ---- */

static void not_asked_for__refused(void)
{
	struct homa_options udp = { .via = "udp", .flags = HOMA_OPEN_HANDOVER };
	struct homa *h = opened(0);

	refused(h, -EOPNOTSUPP, "HOMA_OPEN_HANDOVER");
	homa_close(h);
	API_CHECK(homa_open(&h, &udp) == -EOPNOTSUPP &&
			  strstr(homa_open_error(), "HOMA_OPEN_HANDOVER"),
		  "%s", homa_open_error());
	udp.flags = 0;
	API_CHECK(!homa_open(&h, &udp), "%s", homa_open_error());
	refused(h, -EOPNOTSUPP, "\"udp\" cannot");
	homa_close(h);
	refused(NULL, -EINVAL, "no handle");
}

static void *waits(void *arg)
{
	struct homa_message msg;
	int rc = homa_receive(arg, &msg, 0, PATIENCE);

	API_CHECK(!rc, "%d", rc);
	homa_release(arg, &msg);
	return NULL;
}

static void in_use__busy_and_as_before(void)
{
	struct homa_message msg;
	pthread_t thread;
	uint64_t before;
	void *buf;

	both();
	ask(70000, 1, 0);
	take(server, &msg, HOMA_REQUEST);
	refused(server, -EBUSY, "not released");
	API_CHECK(!homa_reply(server, &msg, "1", 1), "%s", homa_error(server));
	homa_release(server, &msg);
	take(client, &msg, HOMA_RESPONSE);
	refused(client, -EBUSY, "not released");
	homa_release(client, &msg);
	API_CHECK(!homa_alloc(client, 10000, &buf), "%s", homa_error(client));
	refused(client, -EBUSY, "homa_alloc()");
	API_CHECK(!homa_free(client, buf), "%s", homa_error(client));
	/* The client may have waited before, too. */
	before = api_metric(client, "host_blocks");
	pthread_create(&thread, NULL, waits, client);
	while (api_metric(client, "host_blocks") == before)
		usleep(1000);
	refused(client, -EBUSY, "another thread");
	ask(100, 2, 0);
	echo(100, 2);
	pthread_join(thread, NULL);
	move(&client);
	ask(100, 3, 0);
	echo(100, 3);
	response(100, 3);
	neither();
}

static void bad_tokens_and_options__refused(void)
{
	static const char *const tokens[] = { "",
					      "0",
					      "0123456789abcdef0123456789abcde",
					      "0123456789abcdef0123456789abcdef0",
					      "0123456789ABCDEF0123456789abcdef",
					      "0123456789abcdef 123456789abcdef" };
	static const struct homa_options options[] = {
		{ .via = "udp" },
		{ .rcvbuf = 1 << 22 },
		{ .flags = HOMA_OPEN_SHARED_PORT },
		{ .flags = 0x800 },
		{ .spin_us = -2 },
	};
	struct homa_handover handover;
	struct homa *h, *next;
	size_t i;

	for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		memset(&handover, 'x', sizeof(handover));
		snprintf(handover.token, sizeof(handover.token), "%s", tokens[i]);
		API_CHECK(homa_import(&h, &handover, NULL) == -EINVAL && !h,
			  "'%s'", tokens[i]);
	}
	memset(&handover, 'a', sizeof(handover));
	API_CHECK(homa_import(&h, &handover, NULL) == -EINVAL, "no end");
	API_CHECK(homa_import(&h, NULL, NULL) == -EINVAL, "NULL");
	API_CHECK(homa_import(NULL, &handover, NULL) == -EINVAL, "nowhere");
	h = opened(HOMA_OPEN_HANDOVER);
	API_CHECK(homa_export(h, NULL) == -EINVAL, "%s", homa_error(h));
	API_CHECK(!homa_export(h, &handover), "%s", homa_error(h));
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		API_CHECK(homa_import(&next, &handover, &options[i]) == -EINVAL,
			  "option %zu", i);
	homa_close(h);
	API_CHECK(!homa_import(&next, &handover, NULL), "%s", homa_open_error());
	API_CHECK(homa_import(&h, &handover, NULL) == -ENOENT && !h, "twice");
	homa_close(next);
}

/* ---- the former handle ---- */

static void handed_over__the_former_handle_is_shut(void)
{
	struct homa_handover handover;
	struct homa_message msg, request;
	struct homa_ticket ticket;
	struct pollfd fd;
	struct homa *next;
	void *buf;

	both();
	fd = (struct pollfd){ .fd = homa_fd(server), .events = POLLIN };
	ask(100, 1, 0);
	take(server, &request, HOMA_REQUEST);
	API_CHECK(!homa_ticket_get(&request, &ticket), "%s", homa_open_error());
	homa_release(server, &request);
	API_CHECK(poll(&fd, 1, 0) == 0, "there is something");
	API_CHECK(!homa_export(server, &handover), "%s", homa_error(server));
	API_CHECK(poll(&fd, 1, 0) == 1, "its descriptor is silent");
#define SHUT(call) API_CHECK((call) == -ESHUTDOWN, "%s", homa_error(server))
	SHUT(homa_receive(server, &msg, 0, -1));
	SHUT(homa_receive(server, &msg, HOMA_RECV_NONBLOCK, 0));
	SHUT(homa_request(server, (struct sockaddr *)&to, sizeof(to), "1", 1, 0,
			  0, NULL));
	SHUT(homa_request(server, (struct sockaddr *)&to, sizeof(to), bytes,
			  100000, 0, 0, NULL));
	SHUT(homa_reply(server, &request, "1", 1));
	SHUT(homa_reply(server, &request, bytes, 100000));
	SHUT(homa_ticket_reject(server, &ticket, EIO));
	SHUT(homa_poll(server));
	SHUT(homa_abort(server, 0, 0));
	SHUT(homa_alloc(server, 10000, &buf));
	SHUT(homa_wait_send(server, 100, -1));
	SHUT(homa_export(server, &handover));
	homa_metrics(server, api_count,
		     &(struct api_counter){ .name = "nothing" });
	API_CHECK(!homa_import(&next, &handover, NULL), "%s", homa_open_error());
	API_CHECK(homa_ticket_alive(next, &ticket) == 1, "%s", homa_error(next));
	API_CHECK(!homa_ticket_reply(next, &ticket, "1", 1), "%s",
		  homa_error(next));
	take(client, &msg, HOMA_RESPONSE);
	homa_release(client, &msg);
	homa_close(server);
	server = next;
	/* The end of the former one is no end of this. */
	ask(100, 2, 0);
	echo(100, 2);
	response(100, 2);
	neither();
}

/* ---- what goes along ---- */

static void messages_that_nobody_took__go_along(void)
{
	struct homa_message msg;
	struct pollfd fd;
	uint64_t id, gone;
	unsigned int i;

	both();
	id = ask(150000, 100, HOMA_PRIVATE);
	gone = ask(100, 101, 0);
	for (i = 0; i < 20; i++)
		ask(1000 + i, i, 0);
	API_CHECK(!homa_abort(client, gone, 0), "%s", homa_error(client));
	/* Some are in the library, the others in the ring. */
	for (i = 0; i < 50; i++)
		homa_poll(server);
	move(&server);
	move(&server);
	for (i = 0; i < 21; i++) {
		struct homa_ticket ticket;
		size_t length;
		unsigned int seed;

		take(server, &msg, HOMA_REQUEST);
		length = msg.length;
		/* The aborted one may come or not. */
		if (length == 100) {
			homa_discard(server, &msg);
			homa_release(server, &msg);
			i--;
			continue;
		}
		seed = length == 150000 ? 100 : (unsigned int)length - 1000;
		api_verify(&msg, length, seed);
		API_CHECK(!homa_ticket_get(&msg, &ticket), "%s",
			  homa_open_error());
		homa_release(server, &msg);
		api_fill(bytes, length, seed);
		API_CHECK(!homa_ticket_reply(server, &ticket, bytes, length),
			  "%s", homa_error(server));
	}
	fd = (struct pollfd){ .fd = homa_fd(client), .events = POLLIN };
	API_CHECK(poll(&fd, 1, PATIENCE) == 1, "no response");
	move(&client);
	fd.fd = homa_fd(client);
	for (i = 0; i < 20; i++) {
		API_CHECK(poll(&fd, 1, PATIENCE) == 1, "%u responses", i);
		take(client, &msg, HOMA_RESPONSE);
		api_verify(&msg, 1000 + (size_t)msg.cookie,
			   (unsigned int)msg.cookie);
		homa_release(client, &msg);
	}
	API_CHECK(!homa_receive_id(client, &msg, id, PATIENCE), "%s",
		  homa_error(client));
	api_verify(&msg, 150000, 100);
	homa_release(client, &msg);
	API_CHECK(homa_receive_id(client, &msg, gone, PATIENCE) == -ENOENT,
		  "one that was aborted");
	neither();
}

static void long_messages_in_many_segments__go_along(void)
{
	unsigned int i, n = 24;
	void *buf;

	both();
	/* Nobody takes them: they stay in the memory to send from. */
	for (i = 0; i < n; i++)
		ask(1000000 - i, i, 0);
	move(&client);
	for (i = 0; i < n; i++) {
		struct homa_message msg;
		unsigned int seed;

		take(server, &msg, HOMA_REQUEST);
		seed = 1000000 - (unsigned int)msg.length;
		api_verify(&msg, msg.length, seed);
		if (i == n / 2) {
			API_CHECK(!homa_reply(server, &msg, "1", 1), "%s",
				  homa_error(server));
			homa_release(server, &msg);
			move(&client);
			continue;
		}
		API_CHECK(!homa_reply(server, &msg, "1", 1), "%s",
			  homa_error(server));
		homa_release(server, &msg);
	}
	for (i = 0; i < n; i++) {
		struct homa_message msg;

		take(client, &msg, HOMA_RESPONSE);
		homa_release(client, &msg);
	}
	/* And all of that memory is there again. */
	for (i = 0; i < n; i++) {
		API_CHECK(!homa_alloc(client, HOMA_MAX_MESSAGE, &buf), "%u: %s",
			  i, homa_error(client));
		API_CHECK(!homa_free(client, buf), "%s", homa_error(client));
	}
	move(&client);
	neither();
}

/* ---- many times, many threads ---- */

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void a_hundred_times__nothing_is_left(void)
{
	unsigned int i;
	int before = descriptors();

	both();
	for (i = 0; i < 100; i++) {
		ask(60000, i, 0);
		move(i & 1 ? &server : &client);
		echo(60000, i);
		move(i & 2 ? &server : &client);
		response(60000, i);
		API_CHECK(homa_fd(client) >= 0, "%s", homa_error(client));
	}
	neither();
	API_CHECK(descriptors() == before, "%d descriptors instead of %d",
		  descriptors(), before);
}

static void *calls(void *arg)
{
	struct homa_message msg;
	int i;

	for (i = 0; i < 50; i++) {
		API_CHECK(!homa_call(client, (struct sockaddr *)&to, sizeof(to),
				     arg, 3000, &msg, PATIENCE),
			  "%s", homa_error(client));
		homa_release(client, &msg);
	}
	return NULL;
}

static void *serves(void *arg)
{
	struct homa_message msg;
	int i;

	(void)arg;
	for (i = 0; i < THREADS * 50; i++) {
		take(server, &msg, HOMA_REQUEST);
		API_CHECK(!homa_reply(server, &msg, "1", 1), "%s",
			  homa_error(server));
		homa_release(server, &msg);
	}
	return NULL;
}

static void all_rings_are_used__before_and_after(void)
{
	pthread_t thread[THREADS], serving;
	int round, i;

	both();
	for (round = 0; round < 3; round++) {
		pthread_create(&serving, NULL, serves, NULL);
		for (i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, calls, bytes);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		pthread_join(serving, NULL);
		move(&client);
		move(&server);
	}
	neither();
}

static void shared_port__stays_shared(void)
{
	unsigned int flags = HOMA_OPEN_HANDOVER | HOMA_OPEN_SHARED_PORT;
	struct homa *other = opened(flags);
	unsigned int i;

	server = opened(flags);
	client = opened(HOMA_OPEN_HANDOVER);
	API_CHECK(!homa_bind(other, PORT), "%s", homa_error(other));
	API_CHECK(!homa_bind(server, PORT), "%s", homa_error(server));
	move(&server);
	for (i = 0; i < 20; i++)
		ask(100, 1, 0);
	/* Each has half of them. */
	for (i = 0; i < 20; i++) {
		struct homa *h = server;

		server = i < 10 ? h : other;
		echo(100, 1);
		server = h;
	}
	for (i = 0; i < 20; i++)
		response(100, 1);
	homa_close(other);
	neither();
}

int main(void)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&to;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(PORT);
	not_asked_for__refused();
	in_use__busy_and_as_before();
	bad_tokens_and_options__refused();
	handed_over__the_former_handle_is_shut();
	messages_that_nobody_took__go_along();
	long_messages_in_many_segments__go_along();
	a_hundred_times__nothing_is_left();
	all_rings_are_used__before_and_after();
	shared_port__stays_shared();
	printf("ok\n");
	return 0;
}
