// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Several threads on one handle, in one process with its server, so that the
 * thread sanitizer sees both. Callers wait for their own RPCs, collectors
 * share what senders asked for, and everything is counted at the end.
 *
 *	api_threads [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "api_common.h"

enum { CALLERS = 3, SENDERS = 2, COLLECTORS = 2, SERVERS = 3 };

static struct homa *client, *service;
static struct sockaddr_storage server;
static int rounds = 300;
static unsigned int collected, sum, stop;

static void *serve(void *arg)
{
	struct homa_message msg;

	(void)arg;
	for (;;) {
		int rc = homa_receive(service, &msg, HOMA_RECV_REQUEST, -1);

		if (rc == -ESHUTDOWN)
			return NULL;
		API_CHECK(!rc, "%s", homa_error(service));
		API_CHECK(!homa_replyv(service, &msg, msg.iov, msg.iovcnt),
			  "%s", homa_error(service));
		homa_release(service, &msg);
	}
}

static void *call(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	unsigned char *buf = malloc(20000);
	struct homa_message msg;
	int i;

	for (i = 0; i < rounds; i++) {
		size_t length = i % 10 ? 200 : 20000;

		api_fill(buf, length, seed + (unsigned int)i);
		API_CHECK(!homa_call(client, (struct sockaddr *)&server,
				     sizeof(server), buf, length, &msg, 20000),
			  "%s", homa_error(client));
		api_verify(&msg, length, seed + (unsigned int)i);
		homa_release(client, &msg);
	}
	free(buf);
	return NULL;
}

static void *post(void *arg)
{
	unsigned char buf[3000];
	int i;

	(void)arg;
	for (i = 0; i < rounds; i++) {
		api_fill(buf, sizeof(buf), 1);
		API_CHECK(!homa_request(client, (struct sockaddr *)&server,
					sizeof(server), buf, sizeof(buf),
					(uint64_t)i, 0, NULL),
			  "%s", homa_error(client));
		if (i % 20 == 0)
			usleep(1000);
	}
	return NULL;
}

static void *collect(void *arg)
{
	struct homa_message msg;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int rc = homa_receive(client, &msg, HOMA_RECV_RESPONSE, 200);

		if (rc == -EAGAIN)
			continue;
		API_CHECK(!rc, "%s", homa_error(client));
		API_CHECK(msg.kind == HOMA_RESPONSE, "error %d", msg.error);
		api_verify(&msg, 3000, 1);
		__atomic_fetch_add(&sum, (unsigned int)msg.cookie,
				   __ATOMIC_RELAXED);
		homa_release(client, &msg);
		if (__atomic_add_fetch(&collected, 1, __ATOMIC_RELAXED) ==
		    (unsigned int)(SENDERS * rounds))
			__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static pthread_t start(void *(*run)(void *), uintptr_t arg)
{
	pthread_t thread;

	API_CHECK(!pthread_create(&thread, NULL, run, (void *)arg), "no thread");
	return thread;
}

/* Waiting threads are told when the handle closes. */
static void *wait_for_close(void *arg)
{
	struct homa_message msg;

	(void)arg;
	API_CHECK(homa_receive(client, &msg, 0, -1) == -ESHUTDOWN, "not told");
	return NULL;
}

int main(int argc, char **argv)
{
	/* A busy machine and a sanitizer may stop a thread for a while. */
	struct homa_options options = {
		.via = "udp",
		.address = "127.0.0.1",
		.config = "timeout_us=20000000,restart_guard_us=1",
	};
	pthread_t threads[CALLERS + SENDERS + COLLECTORS], servers[SERVERS];
	int i, n = 0;

	rounds = argc > 1 ? atoi(argv[1]) : rounds;
	API_CHECK(!homa_open(&service, &options), "%s", homa_open_error());
	API_CHECK(!homa_bind(service, 99), "%s", homa_error(service));
	API_CHECK(!homa_getsockname(service, &server), "%s", homa_error(service));
	API_CHECK(!homa_open(&client, &options), "%s", homa_open_error());
	for (i = 0; i < SERVERS; i++)
		servers[i] = start(serve, 0);
	for (i = 0; i < CALLERS; i++)
		threads[n++] = start(call, (uintptr_t)i * 1000);
	for (i = 0; i < SENDERS; i++)
		threads[n++] = start(post, 0);
	for (i = 0; i < COLLECTORS; i++)
		threads[n++] = start(collect, 0);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	API_CHECK(collected == (unsigned int)(SENDERS * rounds), "%u collected",
		  collected);
	API_CHECK(sum == (unsigned int)(SENDERS * (rounds * (rounds - 1) / 2)),
		  "cookies add up to %u", sum);
	API_CHECK(api_metric(client, "rpcs") == 0, "RPCs are left");

	n = 0;
	threads[n++] = start(wait_for_close, 0);
	threads[n++] = start(wait_for_close, 0);
	usleep(50000);
	homa_close(client);
	homa_close(service);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < SERVERS; i++)
		pthread_join(servers[i], NULL);
	printf("ok\n");
	return 0;
}
