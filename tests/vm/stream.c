// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams of homa.ko, socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_HOMA), by plain socket
 * calls as programs for TCP make them:
 *
 *	stream checks 4|6 IP [CHECK...]		TAP; both ends in one namespace
 *	stream serve 4|6 PORT			echoes what each client sends, until killed
 *	stream client 4|6 IP PORT BYTES		sends so many and compares what comes back;
 *						0: one after the other, until there is an error;
 *						it waits for no echo, for who only waits has
 *						nothing under way that could time out
 */
#include <pthread.h>
#include <sys/wait.h>
#include "vm_stream.h"

int family;
const char *server_ip;

int stream_new(int flags)
{
	int fd = socket(family, SOCK_STREAM | flags, IPPROTO_HOMA);

	CHECK(fd >= 0, "no stream socket");
	return fd;
}

int stream_listen(int port, int backlog)
{
	union address a = address(family, NULL, port);
	int fd = stream_new(0);

	CHECK(!bind(fd, &a.sa, size_of(family)), "bind to %d", port);
	CHECK(!listen(fd, backlog), "listen");
	return fd;
}

int stream_connect(int port)
{
	union address a = address(family, server_ip, port);
	int fd = stream_new(0);

	CHECK(!connect(fd, &a.sa, size_of(family)), "connect to %d", port);
	return fd;
}

struct link link_up(int port)
{
	struct link link;

	link.listener = stream_listen(port, 8);
	link.client = stream_connect(port);
	link.server = accept(link.listener, NULL, NULL);
	CHECK(link.server >= 0, "accept");
	link.name = address(family, server_ip, port);
	return link;
}

void link_down(struct link *link)
{
	if (link->client >= 0)
		close(link->client);
	if (link->server >= 0)
		close(link->server);
	if (link->listener >= 0)
		close(link->listener);
}

unsigned char byte_of(unsigned int seed, uint64_t offset)
{
	return (unsigned char)(seed * 31 + offset + (offset >> 8) * 7 +
			       (offset >> 16) * 13);
}

void put(int fd, unsigned int seed, uint64_t from, uint64_t to, size_t step)
{
	unsigned char *buf = malloc(step);

	while (from < to) {
		size_t i, n = to - from < step ? to - from : step, done = 0;

		for (i = 0; i < n; i++)
			buf[i] = byte_of(seed, from + i);
		while (done < n) {
			ssize_t sent =
				send(fd, buf + done, n - done, MSG_NOSIGNAL);

			CHECK(sent > 0, "send at %llu",
			      (unsigned long long)from + done);
			done += (size_t)sent;
		}
		from += n;
	}
	free(buf);
}

void get(int fd, unsigned int seed, uint64_t from, uint64_t to, size_t step)
{
	unsigned char *buf = malloc(step);

	while (from < to) {
		size_t i, want = to - from < step ? to - from : step;
		ssize_t n = recv(fd, buf, want, 0);

		CHECK(n > 0, "recv at %llu gave %zd", (unsigned long long)from,
		      n);
		for (i = 0; i < (size_t)n; i++)
			CHECK(buf[i] == byte_of(seed, from + i), "byte %llu",
			      (unsigned long long)from + i);
		from += (uint64_t)n;
	}
	free(buf);
}

void quiet(void)
{
	int i;

	/* Nothing ends this but the limit of the check, which shows what was said. */
	for (i = 1; socks_open() > 0; i++) {
		if (i % 1000 == 0)
			fprintf(stderr, "%d sockets are left\n", socks_open());
		usleep(20000);
	}
	CHECK(!socks_open(), "it is not known how many sockets are left");
}

/* ---- bytes ---- */

static void echo_small(void)
{
	struct link l = link_up(500);
	int i;

	for (i = 0; i < 200; i++) {
		put(l.client, 1, (uint64_t)i * 10, (uint64_t)i * 10 + 10, 10);
		get(l.server, 1, (uint64_t)i * 10, (uint64_t)i * 10 + 10, 100);
		put(l.server, 2, (uint64_t)i * 10, (uint64_t)i * 10 + 10, 10);
		get(l.client, 2, (uint64_t)i * 10, (uint64_t)i * 10 + 10, 100);
	}
	link_down(&l);
	quiet();
}

struct flow {
	int fd;
	unsigned int seed;
	uint64_t bytes;
	size_t step;
};

static void *pour(void *arg)
{
	struct flow *flow = arg;

	put(flow->fd, flow->seed, 0, flow->bytes, flow->step);
	return NULL;
}

/* Both directions at once, in steps of many sizes. */
static void bulk(void)
{
	static const size_t steps[] = { 1000, 4096, 65496, 65497, 300000, 777 };
	struct link l = link_up(501);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct flow up = { l.client, 3, 2000000, steps[i] };
		struct flow down = { l.server, 4, 2000000, steps[i] / 2 + 1 };
		pthread_t threads[3];

		CHECK(!pthread_create(&threads[0], NULL, pour, &up), "thread");
		CHECK(!pthread_create(&threads[1], NULL, pour, &down), "thread");
		if (fork() == 0) {
			get(l.server, 3, 0, 2000000, 50000);
			_exit(0);
		}
		get(l.client, 4, 0, 2000000, 70001);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		int status;

		CHECK(wait(&status) > 0 && !status, "the reader");
	}
	link_down(&l);
	quiet();
}

/* Many short writes, and nobody reads at first. */
static void many_short(void)
{
	struct link l = link_up(502);
	uint64_t bytes = slowness() > 1 ? 1000 : 20000;
	struct flow up = { l.client, 5, bytes, 1 };
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, pour, &up), "thread");
	usleep(200000);
	get(l.server, 5, 0, bytes, 777);
	pthread_join(thread, NULL);
	link_down(&l);
	quiet();
}

static void half_close(void)
{
	struct link l = link_up(503);
	char c;

	put(l.client, 6, 0, 100000, 5000);
	CHECK(!shutdown(l.client, SHUT_WR), "shutdown");
	FAILS(send(l.client, "x", 1, MSG_NOSIGNAL), EPIPE);
	get(l.server, 6, 0, 100000, 9999);
	CHECK(recv(l.server, &c, 1, 0) == 0, "no end");
	CHECK(recv(l.server, &c, 1, 0) == 0, "no end");
	put(l.server, 7, 0, 100000, 50000);
	close(l.server);
	l.server = -1;
	get(l.client, 7, 0, 100000, 9999);
	CHECK(recv(l.client, &c, 1, 0) == 0, "no end");
	link_down(&l);
	quiet();
}

/* Sends and goes: all of it comes. */
static void send_and_close(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		struct link l = link_up(504);
		uint64_t n = (uint64_t)i * 5000 + 1;
		char c;

		put(l.client, 8, 0, n, 30000);
		close(l.client);
		l.client = -1;
		get(l.server, 8, 0, n, 4000);
		CHECK(recv(l.server, &c, 1, 0) == 0, "no end");
		link_down(&l);
		quiet();
	}
}

static const struct check checks[] = {
	{ "short messages there and back", echo_small },
	{ "megabytes in both directions", bulk },
	{ "many writes of one byte", many_short },
	{ "half close", half_close },
	{ "send and close", send_and_close },
};

/* ---- between two hosts ---- */

static void *echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[30000];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	close(fd);
	return NULL;
}

static int serve(int port)
{
	int listener = stream_listen(port, 64);
	pthread_t thread;

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0, "accept");
		CHECK(!pthread_create(&thread, NULL, echo, (void *)(intptr_t)fd),
		      "thread");
		pthread_detach(thread);
	}
}

static int client(int port, uint64_t bytes)
{
	union address a = address(family, server_ip, port);
	struct flow up = { -1, 11, bytes, 100000 };
	pthread_t thread;
	uint64_t at;
	char c;

	for (;;) {
		up.fd = stream_new(0);
		if (!connect(up.fd, &a.sa, size_of(family)))
			break;
		close(up.fd);
		usleep(50000);
	}
	for (at = 0; !bytes; at++) {
		ssize_t n;

		put(up.fd, 11, at, at + 1, 1);
		do {
			n = recv(up.fd, &c, 1, MSG_DONTWAIT);
		} while (n > 0);
		CHECK(n < 0 && errno == EAGAIN, "recv gave %zd", n);
		usleep(1000);
	}
	CHECK(!pthread_create(&thread, NULL, pour, &up), "thread");
	get(up.fd, 11, 0, bytes, 50000);
	pthread_join(thread, NULL);
	shutdown(up.fd, SHUT_WR);
	CHECK(recv(up.fd, &c, 1, 0) == 0, "end");
	close(up.fd);
	printf("ok\n");
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc >= 4, "usage: stream checks|serve|client 4|6 ...");
	family = argv[2][0] == '6' ? AF_INET6 : AF_INET;
	server_ip = argv[3];
	if (!strcmp(argv[1], "serve"))
		return serve(atoi(argv[3]));
	if (!strcmp(argv[1], "client"))
		return client(atoi(argv[4]), strtoull(argv[5], NULL, 10));
	run_checks(checks, ARRAY_SIZE(checks), "stream: ", 120, argv + 4);
	run_checks(stream_calls, stream_num_calls, "stream: ", 120, argv + 4);
	run_checks(stream_ends, stream_num_ends, "stream: ", 120, argv + 4);
	run_checks(stream_options, stream_num_options, "stream: ", 120, argv + 4);
	run_checks(stream_hostile, stream_num_hostile, "stream: ", 120, argv + 4);
	print_plan();
	return 0;
}
