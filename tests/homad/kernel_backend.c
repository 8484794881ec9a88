// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What libhoma's kernel backend adds to a Homa socket, on one handle that is client
 * and server of itself: receives for one kind or one RPC beside those that take
 * all, timeouts of many threads on one socket, pages given back in any order.
 * Over the kernel's module, or over libhoma-preload, which has the same sockets.
 *
 *	kernel_backend CHECK
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#include "api_common.h"

enum { ROUNDS = 300, SENDERS = 3, LENGTH = 3000 };

static struct homa *h;
static struct sockaddr_storage us;
static unsigned int answered, collected, cookies, stop;

static uint64_t request(size_t length, uint64_t cookie, unsigned int flags)
{
	unsigned char *buf = malloc(length);
	uint64_t id;

	API_CHECK(buf, "out of memory");
	api_fill(buf, length, (unsigned int)cookie);
	API_CHECK(!homa_request(h, (struct sockaddr *)&us, sizeof(us), buf,
				length, cookie, flags, &id),
		  "%s", homa_error(h));
	free(buf);
	return id;
}

static void serve(struct homa_message *msg)
{
	API_CHECK(!homa_replyv(h, msg, msg->iov, msg->iovcnt), "%s",
		  homa_error(h));
	API_CHECK(homa_reply(h, msg, "x", 1) == -EINVAL, "answered twice");
	homa_release(h, msg);
	__atomic_fetch_add(&answered, 1, __ATOMIC_RELAXED);
}

static void collect(struct homa_message *msg)
{
	API_CHECK(msg->kind == HOMA_RESPONSE, "error %d", msg->error);
	api_verify(msg, LENGTH, (unsigned int)msg->cookie);
	__atomic_fetch_add(&cookies, (unsigned int)msg->cookie, __ATOMIC_RELAXED);
	__atomic_fetch_add(&collected, 1, __ATOMIC_RELAXED);
	homa_release(h, msg);
}

/* @arg: what to ask for. Each asks in one of the ways to wait. */
static void *receiver(void *arg)
{
	unsigned int flags = (unsigned int)(uintptr_t)arg;
	static unsigned int next;
	unsigned int i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	static const int waits[] = { 3, 1000, 40, 0 };
	struct homa_message msg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int rc = homa_receive(h, &msg, flags, waits[i++ % 4]);

		if (rc == -EAGAIN)
			continue;
		API_CHECK(!rc, "%s", homa_error(h));
		API_CHECK(!flags || (msg.kind == HOMA_REQUEST) ==
					    (flags == HOMA_RECV_REQUEST),
			  "kind %d for flags %u", msg.kind, flags);
		if (msg.kind == HOMA_REQUEST)
			serve(&msg);
		else
			collect(&msg);
	}
	return NULL;
}

/* Shared RPCs that anybody may collect, some waited for by id, and private ones. */
static void *sender(void *arg)
{
	uint64_t base = (uintptr_t)arg * ROUNDS;
	struct homa_message msg;
	int i, rc;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t id = request(LENGTH, base + (uint64_t)i,
				      i % 3 == 0 ? HOMA_PRIVATE : 0);

		if (i % 3 == 2)
			continue;
		rc = homa_receive_id(h, &msg, id, i % 2 ? -1 : 20000);
		/* A shared one may go to a receiver that was faster. */
		if (rc == -ENOENT && i % 3 == 1)
			continue;
		API_CHECK(!rc, "%s", homa_error(h));
		API_CHECK(msg.id == id, "another RPC");
		collect(&msg);
	}
	return NULL;
}

static pthread_t start(void *(*run)(void *), uintptr_t arg)
{
	pthread_t thread;

	API_CHECK(!pthread_create(&thread, NULL, run, (void *)arg), "no thread");
	return thread;
}

static void run_kinds(const unsigned int *flags, int receivers)
{
	const unsigned int all = SENDERS * ROUNDS;
	pthread_t threads[16];
	int i, n = 0;

	answered = collected = cookies = stop = 0;
	for (i = 0; i < receivers; i++)
		threads[n++] = start(receiver, flags[i]);
	usleep(20000); /* all wait, before it is known what will come */
	for (i = 0; i < SENDERS; i++)
		threads[n++] = start(sender, (uintptr_t)i);
	for (i = 0;
	     i < 600 && (__atomic_load_n(&collected, __ATOMIC_RELAXED) < all ||
			 __atomic_load_n(&answered, __ATOMIC_RELAXED) < all);
	     i++)
		usleep(50000);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	if (collected != all)
		homa_metrics(h, api_show, NULL);
	API_CHECK(collected == all && answered == all,
		  "%u answered and %u collected of %u", answered, collected, all);
	API_CHECK(cookies == all * (all - 1) / 2, "cookies add up to %u",
		  cookies);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void check_kinds(void)
{
	static const unsigned int split[] = { HOMA_RECV_REQUEST,
					      HOMA_RECV_REQUEST,
					      HOMA_RECV_RESPONSE,
					      HOMA_RECV_RESPONSE };
	static const unsigned int mixed[] = { HOMA_RECV_REQUEST, 0,
					      HOMA_RECV_RESPONSE, 0 };
	static const unsigned int all[] = { 0, 0, 0 };

	run_kinds(split, 4);
	run_kinds(mixed, 4);
	run_kinds(all, 3);
}

static void *one_forever(void *arg)
{
	struct homa_message msg;

	API_CHECK(!homa_receive(h, &msg, HOMA_RECV_REQUEST, -1), "%s",
		  homa_error(h));
	*(double *)arg = api_now();
	serve(&msg);
	return NULL;
}

/* Nobody gives up early, and who waits for ever is not disturbed by who does not. */
static void check_timeouts(void)
{
	static const double waits[] = { 0.002, 0.03, 0.3, 0.05, 0.001 };
	struct homa_message msg;
	double at = 0, begin;
	pthread_t thread;
	uint64_t id;
	size_t i;

	thread = start(one_forever, (uintptr_t)&at);
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		begin = api_now();
		API_CHECK(homa_receive_ns(h, &msg, HOMA_RECV_RESPONSE,
					  (int64_t)(waits[i] * 1e9)) == -EAGAIN,
			  "a message");
		API_CHECK(api_now() - begin >= waits[i], "%f s instead of %f",
			  api_now() - begin, waits[i]);
	}
	API_CHECK(at == 0, "a message");
	id = request(LENGTH, 1, HOMA_PRIVATE);
	pthread_join(thread, NULL);
	API_CHECK(!homa_receive_id(h, &msg, id, -1), "%s", homa_error(h));
	collect(&msg);

	/* Private ones that nobody answers yet. */
	id = request(LENGTH, 2, HOMA_PRIVATE);
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		begin = api_now();
		API_CHECK(homa_receive_id(h, &msg, id, (int)(waits[i] * 1e3)) ==
				  -EAGAIN,
			  "answered");
		API_CHECK(api_now() - begin >= waits[i] * 0.999,
			  "%f s instead of %f", api_now() - begin, waits[i]);
	}
	API_CHECK(!homa_receive(h, &msg, HOMA_RECV_REQUEST, 200000), "%s",
		  homa_error(h));
	serve(&msg);
	API_CHECK(!homa_receive_id(h, &msg, id, 20000), "%s", homa_error(h));
	collect(&msg);
}

static void *blocked(void *arg)
{
	struct homa_message msg;
	uint64_t id = *(uint64_t *)arg;
	int rc = id ? homa_receive_id(h, &msg, id, -1) :
		      homa_receive(h, &msg, 0, -1);

	API_CHECK(rc == -ESHUTDOWN, "%d", rc);
	return NULL;
}

/* Closing ends every kind of wait. */
static void check_close(void)
{
	struct homa_message question;
	uint64_t none = 0, shared, secret;
	pthread_t threads[5];
	int i;

	shared = request(LENGTH, 1, 0);
	secret = request(LENGTH, 2, HOMA_PRIVATE);
	for (i = 0; i < 2; i++)
		API_CHECK(!homa_receive(h, &question, HOMA_RECV_REQUEST, 200000),
			  "%s", homa_error(h));
	threads[0] = start(blocked, (uintptr_t)&none);
	threads[1] = start(blocked, (uintptr_t)&none);
	threads[2] = start(blocked, (uintptr_t)&shared);
	threads[3] = start(blocked, (uintptr_t)&shared);
	threads[4] = start(blocked, (uintptr_t)&secret);
	usleep(200000);
	homa_close(h);
	h = NULL;
	for (i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
}

/* What was taken for somebody else makes the descriptor readable, until taken. */
static void check_kept(void)
{
	struct homa_message question, answer;
	struct pollfd fd = { .events = POLLIN };
	uint64_t id;

	fd.fd = homa_fd(h);
	API_CHECK(fd.fd >= 0, "%s", homa_error(h));
	id = request(LENGTH, 1, 0);
	API_CHECK(homa_receive(h, &answer, HOMA_RECV_RESPONSE, 300) == -EAGAIN,
		  "answered");
	API_CHECK(poll(&fd, 1, 0) == 1, "not readable");
	API_CHECK(!homa_receive(h, &question,
				HOMA_RECV_NONBLOCK | HOMA_RECV_REQUEST, 0),
		  "%s", homa_error(h));
	API_CHECK(poll(&fd, 1, 0) == 0, "still readable");
	serve(&question);
	API_CHECK(homa_receive(h, &question, HOMA_RECV_REQUEST, 300) == -EAGAIN,
		  "a request");
	API_CHECK(poll(&fd, 1, 0) == 1, "not readable");
	/* Complete: an error comes too late, vanishing does not. */
	API_CHECK(!homa_abort(h, id, EIO), "%s", homa_error(h));
	API_CHECK(poll(&fd, 1, 0) == 1, "not readable");
	API_CHECK(!homa_abort(h, id, 0), "%s", homa_error(h));
	API_CHECK(poll(&fd, 1, 0) == 0, "still readable");
	API_CHECK(homa_receive_id(h, &answer, id, 10) == -ENOENT, "not gone");
}

static void *take_long(void *arg)
{
	struct homa_message msg;

	/* Waits in the kernel for buffers that another thread will release. */
	API_CHECK(!homa_receive_id(h, &msg, *(uint64_t *)arg, -1), "%s",
		  homa_error(h));
	api_verify(&msg, 900000, 9);
	homa_release(h, &msg);
	return NULL;
}

/* All buffers are out; what one thread gives back reaches another that is blocked. */
static void check_starved(void)
{
	enum { HELD = 64 };
	static struct homa_message held[HELD];
	struct homa_message copy;
	pthread_t thread;
	uint64_t id;
	int i, n;

	for (n = 0; n < HELD; n++) {
		request(65536, (uint64_t)n, 0);
		if (homa_receive(h, &held[n], HOMA_RECV_REQUEST, 1000))
			break;
	}
	API_CHECK(n > 8 && n < HELD, "%d messages of a page in 2 MiB", n);
	id = request(900000, 9, HOMA_PRIVATE);
	thread = start(take_long, (uintptr_t)&id);
	usleep(100000);
	for (i = 0; i < n; i++) {
		copy = held[i];
		homa_release(h, &held[i]);
		homa_release(h, &held[i]);
		homa_release(h, &copy);
	}
	/* The one that did not fit, and the long one. */
	for (i = 0; i < 2; i++) {
		API_CHECK(!homa_receive(h, &copy, HOMA_RECV_REQUEST, 200000),
			  "%s", homa_error(h));
		serve(&copy);
	}
	pthread_join(thread, NULL);
	API_CHECK(!homa_abort(h, 0, 0), "%s", homa_error(h));
}

/* Programs may have more pieces than a system call takes. */
static void check_pieces(void)
{
	enum { PIECES = 3000 };
	static unsigned char data[PIECES];
	static struct iovec iov[PIECES];
	struct homa_message msg;
	uint64_t id;
	int i;

	api_fill(data, PIECES, 4);
	for (i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ &data[i], 1 };
	API_CHECK(!homa_requestv(h, (struct sockaddr *)&us, sizeof(us), iov,
				 PIECES, 0, 0, &id),
		  "%s", homa_error(h));
	API_CHECK(!homa_receive(h, &msg, HOMA_RECV_REQUEST, 200000), "%s",
		  homa_error(h));
	api_verify(&msg, PIECES, 4);
	API_CHECK(!homa_replyv(h, &msg, iov, PIECES), "%s", homa_error(h));
	homa_release(h, &msg);
	API_CHECK(!homa_receive_id(h, &msg, id, 20000), "%s", homa_error(h));
	api_verify(&msg, PIECES, 4);
	homa_release(h, &msg);
}

/* Somebody who is reached by UDP is nobody here, and is told so. */
static void check_addresses(void)
{
	struct sockaddr_storage to;
	struct homa_message msg;

	API_CHECK(!homa_parse_address("127.0.0.1:77/40000", &to), "parse");
	API_CHECK(homa_request(h, (struct sockaddr *)&to, sizeof(to), "x", 1, 0,
			       0, NULL) == -EPROTONOSUPPORT,
		  "sent");
	API_CHECK(strstr(homa_error(h), "via=udp"), "%s", homa_error(h));
	API_CHECK(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0) == -EAGAIN,
		  "a message");
	API_CHECK(api_metric(h, "rpcs") == 0, "an RPC is left");
	API_CHECK(homa_bind(h, 78) == -EINVAL, "bound twice");
}

static const struct {
	const char *name;
	void (*run)(void);
	size_t rcvbuf;
} checks[] = {
	{ "kinds", check_kinds, 0 },
	{ "timeouts", check_timeouts, 0 },
	{ "close", check_close, 0 },
	{ "kept", check_kept, 0 },
	{ "starved", check_starved, 2 << 20 },
	{ "pieces", check_pieces, 0 },
	{ "addresses", check_addresses, 0 },
};

int main(int argc, char **argv)
{
	struct homa_options options = { .via = "kernel" };
	size_t i;

	API_CHECK(argc > 1, "usage: kernel_backend CHECK");
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (strcmp(checks[i].name, argv[1]))
			continue;
		options.rcvbuf = checks[i].rcvbuf;
		API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
		API_CHECK(!strcmp(homa_via(h), "kernel"), "%s", homa_via(h));
		API_CHECK(!homa_bind(h, (uint16_t)(100 + i)), "%s",
			  homa_error(h));
		API_CHECK(!homa_getsockname(h, &us), "%s", homa_error(h));
		checks[i].run();
		homa_close(h);
		printf("ok\n");
		return 0;
	}
	api_die("unknown check %s", argv[1]);
}
