// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Client of the libhoma tests: one named check against an api_server. Ends
 * with status 0 and prints "ok", or says what was wrong and ends with 1.
 *
 *	api_client CHECK ADDRESS [ARGUMENT]
 *
 * After every check no RPC may be left.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api_calls.h"
#include "api_common.h"

static struct homa *h;
static struct sockaddr_storage server;
static const char *argument;
static unsigned char data[HOMA_MAX_MESSAGE];

static void open_handle(size_t rcvbuf, int spin_us)
{
	struct homa_options options = { .rcvbuf = rcvbuf, .spin_us = spin_us };

	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
}

static uint64_t request(const void *buf, size_t length, uint64_t cookie,
			unsigned int flags)
{
	uint64_t id;

	API_CHECK(!homa_request(h, (struct sockaddr *)&server, sizeof(server),
				buf, length, cookie, flags, &id),
		  "%s", homa_error(h));
	return id;
}

static uint64_t order(enum api_what what, unsigned int value, unsigned int seed,
		      uint64_t cookie, unsigned int flags)
{
	struct api_order o = { API_ORDER, (unsigned char)what,
			       (unsigned short)seed, value };

	return request(&o, sizeof(o), cookie, flags);
}

static void receive(struct homa_message *msg)
{
	API_CHECK(!homa_receive(h, msg, 0, 20000), "%s", homa_error(h));
	if (msg->kind != HOMA_RESPONSE)
		homa_metrics(h, api_show, NULL);
	API_CHECK(msg->kind == HOMA_RESPONSE, "kind %d error %d (%s)",
		  msg->kind, msg->error, strerror(-msg->error));
}

static void echo(size_t length, unsigned int seed)
{
	struct homa_message msg;

	api_fill(data, length, seed);
	API_CHECK(!homa_call(h, (struct sockaddr *)&server, sizeof(server),
			     data, length, &msg, 20000),
		  "%zu bytes: %s", length, homa_error(h));
	api_verify(&msg, length, seed);
	api_verify_view(&msg, data, seed);
	homa_release(h, &msg);
}

/* Every size around a segment's, a page's and the limits. */
static void check_sizes(void)
{
	static const size_t edges[] = { 1,	2,	64,	1000,	1384,
					1416,	1424,	1444,	2832,	4096,
					8900,	10000,	40000,	65464,	65536,
					100000, 131072, 196608, 500000, 983040,
					999998 };
	size_t i;
	int d;

	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (d = -2; d <= 2; d++)
			if ((long)edges[i] + d > 0)
				echo((size_t)((long)edges[i] + d),
				     (unsigned int)i);
	for (i = 1; i <= 3000; i += 37)
		echo(i, 7);
}

/* Many outstanding, mixed sizes; every cookie comes back once. */
static void check_async(void)
{
	enum { COUNT = 400, WINDOW = 64 };
	static const size_t sizes[] = { 1, 100, 1500, 3000, 20000, 70000, 300000 };
	static unsigned char seen[COUNT];
	struct homa_message msg;
	int sent = 0, got = 0;

	while (got < COUNT) {
		while (sent < COUNT && sent - got < WINDOW) {
			size_t length = sizes[sent % 7];

			api_fill(data, length, (unsigned int)sent);
			request(data, length, (uint64_t)sent, 0);
			sent++;
		}
		receive(&msg);
		API_CHECK(msg.cookie < COUNT && !seen[msg.cookie]++,
			  "cookie %llu", (unsigned long long)msg.cookie);
		api_verify(&msg, sizes[msg.cookie % 7], (unsigned int)msg.cookie);
		homa_release(h, &msg);
		got++;
	}
	API_CHECK(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, -1) == -EAGAIN,
		  "one response too many");
}

/* A lent message is sent as it lies there, and not touched once its RPC is over:
 * its memory is gone then. Nor after an abort, in the middle of sending. */
static void check_borrow(void)
{
	static const size_t sizes[] = { 1, 1500, 70000, 999998 };
	struct homa_message msg;
	int i;

	for (i = 0; i < 40; i++) {
		size_t length = sizes[i % 4];
		unsigned char *lent = mmap(NULL, length, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t id;

		API_CHECK(lent != MAP_FAILED, "no memory");
		api_fill(lent, length, (unsigned int)i);
		id = request(lent, length, (uint64_t)i, HOMA_BORROW);
		if (i % 10 == 9) {
			API_CHECK(!homa_abort(h, id, 0), "%s", homa_error(h));
		} else {
			receive(&msg);
			api_verify(&msg, length, (unsigned int)i);
			homa_release(h, &msg);
		}
		munmap(lent, length);
	}
	echo(100000, 1);
}

/* Private RPCs are for receive_id alone, in any order. */
static void check_private(void)
{
	enum { COUNT = 10 };
	struct homa_message msg;
	uint64_t ids[COUNT];
	int i;

	for (i = 0; i < COUNT; i++) {
		api_fill(data, 5000, (unsigned int)i);
		ids[i] = request(data, 5000, 77, HOMA_PRIVATE);
	}
	API_CHECK(homa_receive(h, &msg, 0, 300) == -EAGAIN,
		  "a private response came from homa_receive()");
	for (i = COUNT - 1; i >= 0; i--) {
		API_CHECK(!homa_receive_id(h, &msg, ids[i], 20000), "%s",
			  homa_error(h));
		API_CHECK(msg.id == ids[i] && msg.cookie == 77, "wrong RPC");
		api_verify(&msg, 5000, (unsigned int)i);
		homa_release(h, &msg);
		API_CHECK(homa_receive_id(h, &msg, ids[i], 1000) == -ENOENT,
			  "taken twice");
	}
}

/* Shared RPCs by id too, and then they are gone from the queue. */
static void check_receive_id(void)
{
	struct homa_message msg;
	uint64_t a, b;

	api_fill(data, 300, 1);
	a = request(data, 300, 1, 0);
	api_fill(data, 300, 2);
	b = request(data, 300, 2, 0);
	API_CHECK(!homa_receive_id(h, &msg, b, 20000), "%s", homa_error(h));
	api_verify(&msg, 300, 2);
	homa_release(h, &msg);
	receive(&msg);
	API_CHECK(msg.id == a, "wrong RPC");
	api_verify(&msg, 300, 1);
	homa_release(h, &msg);
	API_CHECK(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0) == -EAGAIN,
		  "left over");
	API_CHECK(homa_receive_id(h, &msg, 424242, 1000) == -ENOENT,
		  "no such RPC");
}

/* Ending our requests: silently, with an error, one, all, and none. */
static void check_abort(void)
{
	struct homa_message msg;
	uint64_t id;
	int i;

	id = order(API_IGNORE, 0, 0, 5, 0);
	API_CHECK(!homa_abort(h, id, ECANCELED), "%s", homa_error(h));
	API_CHECK(!homa_receive(h, &msg, 0, 5000), "%s", homa_error(h));
	API_CHECK(msg.kind == HOMA_ERROR && msg.error == -ECANCELED &&
			  msg.id == id && msg.cookie == 5 && msg.iovcnt == 0,
		  "kind %d error %d", msg.kind, msg.error);
	homa_release(h, &msg);
	API_CHECK(homa_abort(h, id, 0) == -EINVAL, "it is gone");
	API_CHECK(strstr(homa_error(h), "no such RPC"), "%s", homa_error(h));

	id = order(API_IGNORE, 0, 0, 0, HOMA_PRIVATE);
	API_CHECK(!homa_abort(h, id, 0), "%s", homa_error(h));
	API_CHECK(homa_receive_id(h, &msg, id, 1000) == -ENOENT, "not gone");

	for (i = 0; i < 20; i++)
		order(API_IGNORE, 0, 0, (uint64_t)i, 0);
	API_CHECK(!homa_abort(h, 0, EINTR), "%s", homa_error(h));
	for (i = 0; i < 20; i++) {
		API_CHECK(!homa_receive(h, &msg, 0, 5000), "%s", homa_error(h));
		API_CHECK(msg.kind == HOMA_ERROR && msg.error == -EINTR,
			  "kind %d error %d", msg.kind, msg.error);
	}
	API_CHECK(homa_receive(h, &msg, 0, 50) == -EAGAIN, "one too many");
	echo(2000, 1);
}

static void *abort_later(void *arg)
{
	usleep(300000);
	API_CHECK(!homa_abort(h, *(uint64_t *)arg, ECANCELED), "%s",
		  homa_error(h));
	return NULL;
}

/* A thread asleep in the library learns what another one's call did to it. */
static void check_abort_waiting(void)
{
	struct homa_message msg;
	pthread_t thread;
	uint64_t id;
	int private;

	for (private = 0; private < 2; private++) {
		id = order(API_IGNORE, 0, 0, 5, private ? HOMA_PRIVATE : 0);
		API_CHECK(!pthread_create(&thread, NULL, abort_later, &id),
			  "no thread");
		API_CHECK(!(private ? homa_receive_id(h, &msg, id, -1) :
				      homa_receive(h, &msg, 0, -1)),
			  "%s", homa_error(h));
		API_CHECK(msg.kind == HOMA_ERROR && msg.error == -ECANCELED,
			  "kind %d error %d", msg.kind, msg.error);
		pthread_join(thread, NULL);
	}
}

/* Without a receive loop: poll() on the descriptor. */
static void check_fd(void)
{
	struct homa_message msg;
	struct pollfd fd = { .events = POLLIN };
	int i, j;

	fd.fd = homa_fd(h);
	API_CHECK(fd.fd >= 0, "%s", homa_error(h));
	API_CHECK(poll(&fd, 1, 100) == 0, "readable with nothing to read");
	for (i = 0; i < 20; i++) {
		for (j = 0; j < 5; j++) {
			api_fill(data, 20000, (unsigned int)j);
			request(data, 20000, (uint64_t)j, 0);
		}
		for (j = 0; j < 5; j++) {
			API_CHECK(poll(&fd, 1, 20000) == 1, "not readable");
			API_CHECK(!homa_receive(h, &msg, HOMA_RECV_NONBLOCK, -1),
				  "readable, but: %s", homa_error(h));
			API_CHECK(msg.kind == HOMA_RESPONSE, "error %d",
				  msg.error);
			api_verify(&msg, 20000, (unsigned int)msg.cookie);
			homa_release(h, &msg);
		}
		API_CHECK(poll(&fd, 1, 0) == 0, "still readable");
	}
}

/* Buffers stay valid until released, in whatever order that happens. */
static void check_release_order(void)
{
	enum { HELD = 16 };
	static const int places[HELD] = { 3,  14, 0,  7, 15, 1, 9, 4,
					  12, 2,  11, 5, 13, 8, 6, 10 };
	struct homa_message held[HELD];
	unsigned int round;
	int i;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < HELD; i++) {
			size_t length = (size_t)(i * 30011 + 1);

			api_fill(data, length, round * HELD + (unsigned int)i);
			request(data, length, (uint64_t)i, 0);
			receive(&held[i]);
		}
		for (i = 0; i < HELD; i++) {
			struct homa_message *msg = &held[places[i]];

			api_verify(msg, (size_t)(msg->cookie * 30011 + 1),
				   round * HELD + (unsigned int)msg->cookie);
			homa_release(h, msg);
			homa_release(h, msg);
			echo(70000, 1);
		}
	}
}

/* 2 MiB of buffers: what does not fit comes when there is room again. */
static void check_no_buffers(void)
{
	enum { COUNT = 8, LENGTH = 900000 };
	struct homa_message held[COUNT];
	int i, got, rc = 0;

	for (i = 0; i < COUNT; i++)
		order(API_LENGTH, LENGTH, (unsigned int)i, (uint64_t)i, 0);
	for (got = 0; got < COUNT && !rc; got++)
		rc = homa_receive(h, &held[got], 0, 1000);
	API_CHECK(rc == -EAGAIN, "%d messages of %d bytes in 2 MiB", got, LENGTH);
	got--;
	API_CHECK(got >= 1 && got <= 2, "%d messages fitted into 2 MiB", got);
	for (i = 0; i < COUNT; i++) {
		if (i >= got)
			receive(&held[i]);
		API_CHECK(held[i].kind == HOMA_RESPONSE, "error %d",
			  held[i].error);
		api_verify(&held[i], LENGTH, (unsigned int)held[i].cookie);
		homa_release(h, &held[i]);
	}
}

/*
 * The application computes while long responses are on their way: they arrive
 * all the same, by the progress thread (reading a counter runs no protocol).
 */
static void check_compute(void)
{
	enum { COUNT = 4, LENGTH = 800000 };
	struct homa_message msg;
	uint64_t fresh;
	int i;

	for (i = 0; i < COUNT; i++)
		order(API_LENGTH, LENGTH, (unsigned int)i, (uint64_t)i, 0);
	for (i = 0, fresh = 0; i < 150 && fresh < COUNT * LENGTH; i++) {
		api_compute(0.15);
		fresh = api_metric(h, "rx_fresh_bytes");
	}
	API_CHECK(fresh == COUNT * LENGTH, "only %llu bytes arrived",
		  (unsigned long long)fresh);
	API_CHECK(api_metric(h, "host_progress_rounds") > 0,
		  "the progress thread did nothing");
	for (i = 0; i < COUNT; i++) {
		API_CHECK(!homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0), "%s",
			  homa_error(h));
		api_verify(&msg, LENGTH, (unsigned int)msg.cookie);
		homa_release(h, &msg);
	}
}

/* The server computes, longer than any RESEND interval. */
static void check_slow_server(void)
{
	struct homa_message msg;
	int i;

	for (i = 0; i < 4; i++)
		order(API_WORK, 150, 0, 0, 0);
	for (i = 0; i < 4; i++) {
		receive(&msg);
		homa_release(h, &msg);
	}
	API_CHECK(!api_metric(h, "rpcs_failed"), "an RPC failed");
}

/* Nobody answers, ever; the server lives, so the RPC does too. Then abort. */
static void check_nobody(void)
{
	struct homa_message msg;
	int rc = homa_call(h, (struct sockaddr *)&server, sizeof(server), "x",
			   1, &msg, 20000);

	API_CHECK(rc == -atoi(argument), "%d (%s) instead of -%s", rc,
		  homa_error(h), argument);
	API_CHECK(strlen(homa_error(h)) > 20, "%s", homa_error(h));
}

/* Packets too long for the path: a message may fail, and then they fit. */
static void check_path_mtu(void)
{
	struct homa_message msg;
	int tries, rc = -1;

	api_fill(data, 50000, 3);
	for (tries = 0; tries < 20 && rc; tries++)
		rc = homa_call(h, (struct sockaddr *)&server, sizeof(server),
			       data, 50000, &msg, 20000);
	API_CHECK(!rc, "%s", homa_error(h));
	api_verify(&msg, 50000, 3);
	homa_release(h, &msg);
	echo(300000, 4);
}

/* Without a progress thread, never waiting. */
static void check_poll(void)
{
	struct homa_options options = { .flags = HOMA_OPEN_NO_THREAD };
	struct homa_message msg;
	int i, rc;

	homa_close(h);
	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
	for (i = 0; i < 50; i++) {
		api_fill(data, 50000, (unsigned int)i);
		request(data, 50000, 0, 0);
		while ((rc = homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0)) ==
		       -EAGAIN)
			API_CHECK(!homa_poll(h), "%s", homa_error(h));
		API_CHECK(!rc && msg.kind == HOMA_RESPONSE, "%s", homa_error(h));
		api_verify(&msg, 50000, (unsigned int)i);
		homa_release(h, &msg);
	}
}

/* A failure that is not waited for comes as a message with its cookie. */
static void check_fails(void)
{
	struct homa_message msg;
	uint64_t id;

	id = order(API_EXIT, 0, 0, 99, 0);
	API_CHECK(!homa_receive(h, &msg, 0, 20000), "%s", homa_error(h));
	API_CHECK(msg.kind == HOMA_ERROR && msg.id == id && msg.cookie == 99,
		  "kind %d", msg.kind);
	API_CHECK(msg.error == -ENOTCONN || msg.error == -ETIMEDOUT ||
			  msg.error == -EPROTONOSUPPORT,
		  "error %d", msg.error);
}

/* A handle is the parent's; its child is told so and does no harm. */
static void check_fork(void)
{
	struct homa_message msg;
	int status;
	pid_t pid;

	echo(100, 1);
	pid = fork();
	API_CHECK(pid >= 0, "fork");
	if (pid == 0) {
		API_CHECK(homa_receive(h, &msg, 0, 0) == -EINVAL, "usable");
		API_CHECK(homa_request(h, (struct sockaddr *)&server,
				       sizeof(server), "x", 1, 0, 0,
				       NULL) == -EINVAL,
			  "usable");
		API_CHECK(strstr(homa_error(h), "fork"), "%s", homa_error(h));
		homa_close(h);
		_exit(0);
	}
	API_CHECK(waitpid(pid, &status, 0) == pid && status == 0,
		  "the child ended with %d", status);
	echo(100000, 2);
}

/* Idle inside and outside of a call: hardly any thread of ours runs at all. */
static void check_idle(void)
{
	struct homa_message msg;
	int i, waiting;

	for (waiting = 0; waiting < 2; waiting++) {
		const char *how = waiting ? "waiting" : "away";
		long slept, used;

		echo(1000, 1);
		/* Acks, collection of the peer and the like come to an end. */
		if (waiting)
			API_CHECK(homa_receive(h, &msg, 0, 2000) == -EAGAIN,
				  "a message");
		else
			for (i = 0; i < 20; i++)
				usleep(100000);
		slept = api_sleeps();
		used = api_processor_ms();
		if (waiting)
			API_CHECK(homa_receive(h, &msg, 0, 2000) == -EAGAIN,
				  "a message");
		else
			sleep(2);
		slept = api_sleeps() - slept;
		used = api_processor_ms() - used;
		API_CHECK(slept <= 20, "%ld times asleep while %s", slept, how);
		API_CHECK(used <= 100, "%ld ms of processor time while %s",
			  used, how);
	}
}

/* Acks and the like come to an end; nothing else comes. */
static void settle(void)
{
	struct homa_message msg;
	int i;

	for (i = 0; i < 400 && api_metric(h, "rpcs"); i++)
		API_CHECK(homa_receive(h, &msg, 0, 50) == -EAGAIN, "a message");
}

static const struct {
	const char *name;
	void (*run)(void);
	size_t rcvbuf;
	int spin_us;
} checks[] = {
	{ "sizes", check_sizes, 0, 0 },
	{ "async", check_async, 0, 0 },
	{ "spinning", check_async, 0, -1 },
	{ "blocking", check_async, 0, 1 },
	{ "borrow", check_borrow, 0, 0 },
	{ "private", check_private, 0, 0 },
	{ "receive_id", check_receive_id, 0, 0 },
	{ "abort", check_abort, 0, 0 },
	{ "abort_waiting", check_abort_waiting, 0, 0 },
	{ "fd", check_fd, 0, 0 },
	{ "release_order", check_release_order, 0, 0 },
	{ "no_buffers", check_no_buffers, 2 << 20, 0 },
	{ "compute", check_compute, 0, 0 },
	{ "slow_server", check_slow_server, 0, 0 },
	{ "poll", check_poll, 0, 0 },
	{ "nobody", check_nobody, 0, 0 },
	{ "path_mtu", check_path_mtu, 0, 0 },
	{ "fails", check_fails, 0, 0 },
	{ "fork", check_fork, 0, 0 },
	{ "idle", check_idle, 0, 0 },
};

static int finish(void)
{
	settle();
	API_CHECK(api_metric(h, "rpcs") == 0, "%llu RPCs are left",
		  (unsigned long long)api_metric(h, "rpcs"));
	API_CHECK(api_metric(h, "host_out_bytes") == 0, "memory is left");
	homa_close(h);
	printf("ok\n");
	return 0;
}

int main(int argc, char **argv)
{
	api_call_check *call;
	size_t i;

	API_CHECK(argc > 2, "usage: api_client CHECK ADDRESS [ARGUMENT]");
	API_CHECK(!homa_parse_address(argv[2], &server), "%s", homa_open_error());
	argument = argc > 3 ? argv[3] : "0";
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (strcmp(checks[i].name, argv[1]))
			continue;
		open_handle(checks[i].rcvbuf, checks[i].spin_us);
		checks[i].run();
		return finish();
	}
	call = api_find_call(argv[1]);
	if (call) {
		open_handle(0, 0);
		call(h, &server);
		return finish();
	}
	api_die("unknown check %s", argv[1]);
}
