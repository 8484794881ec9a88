// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Checks of api_client: what servers do instead of answering, messages many at a time,
 * sending without waiting, and both ends on one handle.
 */
#include "api_calls.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "api_common.h"

static uint64_t order(struct homa *h, const struct sockaddr_storage *server,
		      enum api_what what, unsigned int value, unsigned int flags)
{
	struct api_order o = { API_ORDER, (unsigned char)what, 0, value };
	uint64_t id;

	API_CHECK(!homa_request(h, (const struct sockaddr *)server,
				sizeof(*server), &o, sizeof(o), value, flags, &id),
		  "%s", homa_error(h));
	return id;
}

/* The first byte of the server's answer. */
static char ask(struct homa *h, const struct sockaddr_storage *server,
		enum api_what what)
{
	uint64_t id = order(h, server, what, 0, HOMA_PRIVATE);
	struct homa_message msg;
	char answer = 0;

	API_CHECK(!homa_receive_id(h, &msg, id, 20000), "%s", homa_error(h));
	API_CHECK(msg.kind == HOMA_RESPONSE, "error %d", msg.error);
	homa_copy(&msg, &answer, 1);
	homa_release(h, &msg);
	return answer;
}

static void failed(struct homa *h, const struct sockaddr_storage *server,
		   const struct homa_message *msg, uint64_t id, int error)
{
	char ours[100], theirs[100];

	API_CHECK(msg->kind == HOMA_ERROR && msg->error == -error,
		  "kind %d, error %d", msg->kind, msg->error);
	API_CHECK(msg->id == id && !msg->length && !msg->iovcnt, "%zu bytes",
		  msg->length);
	homa_format_address(server, ours, sizeof(ours));
	homa_format_address(&msg->peer, theirs, sizeof(theirs));
	API_CHECK(!strcmp(ours, theirs), "%s instead of %s", theirs, ours);
	(void)h;
}

static void check_reject(struct homa *h, const struct sockaddr_storage *server)
{
	static const int errors[] = { EACCES, HOMA_MAX_REJECT, 1,
				      0,      EHOSTUNREACH,    EAGAIN };
	static unsigned char big[300000];
	struct api_order o = { API_ORDER, API_REJECT, 0, EPERM };
	struct homa_message msg;
	unsigned int i;
	uint64_t id;
	int rc;

	for (i = 0; i < 2 * sizeof(errors) / sizeof(errors[0]); i++) {
		int error = errors[i / 2];

		id = order(h, server, API_REJECT, (unsigned int)error,
			   i & 1 ? HOMA_PRIVATE : 0);
		rc = i & 1 ? homa_receive_id(h, &msg, id, 20000) :
			     homa_receive(h, &msg, 0, 20000);
		API_CHECK(!rc, "%s", homa_error(h));
		failed(h, server, &msg, id, error ? error : ECANCELED);
		API_CHECK(msg.cookie == (uint64_t)error, "cookie");
		homa_release(h, &msg);
	}
	/* A long request, and what homa_call() makes of it. */
	memcpy(big, &o, sizeof(o));
	rc = homa_call(h, (const struct sockaddr *)server, sizeof(*server), big,
		       sizeof(big), &msg, 20000);
	API_CHECK(rc == -EPERM, "%d", rc);
}

/* What the server says is left of @within_ns, a request of @length bytes having come there. */
static int64_t left_of(struct homa *h, const struct sockaddr_storage *server,
		       size_t length, int64_t within_ns)
{
	static unsigned char big[300000];
	struct api_order o = { API_ORDER, API_LEFT, 0, 0 };
	struct homa_message msg;
	int64_t left = 0;
	uint64_t id;

	memcpy(big, &o, sizeof(o));
	API_CHECK(!homa_request_within(h, (const struct sockaddr *)server,
				       sizeof(*server), big, length, 4711,
				       HOMA_PRIVATE, within_ns, &id),
		  "%s", homa_error(h));
	API_CHECK(!homa_receive_id(h, &msg, id, 20000), "%s", homa_error(h));
	API_CHECK(msg.kind == HOMA_RESPONSE && msg.length == sizeof(left),
		  "error %d", msg.error);
	API_CHECK(msg.cookie == 4711, "cookie");
	API_CHECK(homa_time_left(&msg) == INT64_MAX,
		  "time is left of a response");
	homa_copy(&msg, &left, sizeof(left));
	homa_release(h, &msg);
	return left;
}

/* Servers learn how long clients wait, by the packet, and from homa_call(). Machines may be
 * slow: an hour is more than an answer takes, and a nanosecond less. */
static void check_within(struct homa *h, const struct sockaddr_storage *server)
{
	static const int64_t hour = 3600ll * 1000000000, day = 24 * hour;
	static const size_t lengths[] = { sizeof(struct api_order), 1400, 20000,
					  300000 };
	struct api_order o = { API_ORDER, API_LEFT, 0, 0 };
	struct homa_message msg;
	int64_t left;
	size_t i;

	/* libhoma cannot tell the kernel's module. */
	if (!strcmp(homa_via(h), "kernel")) {
		left = left_of(h, server, sizeof(o), 1);
		API_CHECK(left == INT64_MAX, "%lld ns", (long long)left);
		return;
	}
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		left = left_of(h, server, lengths[i], hour);
		API_CHECK(left > hour - hour / 10 && left <= hour + hour / 1000,
			  "%lld ns", (long long)left);
		left = left_of(h, server, lengths[i], 1);
		API_CHECK(left <= 3000 && left > -hour, "%lld ns",
			  (long long)left);
		left = left_of(h, server, lengths[i], -1);
		API_CHECK(left == INT64_MAX, "%lld ns", (long long)left);
	}
	/* Longer than can be told is nothing told; but a neighbour needs no packet for it. */
	left = left_of(h, server, sizeof(o), day);
	API_CHECK(left > day - hour, "%lld ns", (long long)left);
	left = left_of(h, server, sizeof(o), INT64_MAX);
	API_CHECK(left == INT64_MAX, "%lld ns", (long long)left);
	API_CHECK(!homa_call(h, (const struct sockaddr *)server,
			     sizeof(*server), &o, sizeof(o), &msg, 100000),
		  "%s", homa_error(h));
	homa_copy(&msg, &left, sizeof(left));
	API_CHECK(left > 0 && left <= 100100ll * 1000000, "%lld ns",
		  (long long)left);
	homa_release(h, &msg);
}

/* More than a server may leave unanswered. */
static void check_discard_many(struct homa *h,
			       const struct sockaddr_storage *server)
{
	unsigned int sent = 0, got = 0;

	while (got < 6000) {
		struct homa_message msg;

		for (; sent < 6000 && sent - got < 300; sent++)
			order(h, server, API_REJECT, 0, 0);
		API_CHECK(!homa_receive(h, &msg, 0, 20000), "%u: %s", got,
			  homa_error(h));
		API_CHECK(msg.kind == HOMA_ERROR && msg.error == -ECANCELED,
			  "error %d", msg.error);
		homa_release(h, &msg);
		got++;
	}
}

static void check_alive(struct homa *h, const struct sockaddr_storage *server)
{
	uint64_t id = order(h, server, API_KEEP, 0, 0);
	struct homa_message msg;
	double end = api_now() + 20;
	char answer = '1';

	/* The server may take the next one first. */
	while (ask(h, server, API_ASK) != '1')
		API_CHECK(api_now() < end, "the server says that nobody waits");
	API_CHECK(homa_receive_id(h, &msg, id, 0) == -EAGAIN, "an answer");
	API_CHECK(!homa_abort(h, id, 0), "%s", homa_error(h));
	while (answer == '1') {
		API_CHECK(api_now() < end,
			  "the server does not notice that nobody waits");
		answer = ask(h, server, API_ASK);
	}
	/* It may discard it all the same. */
	ask(h, server, API_DROP);
}

#define BATCHED 500u

/* Every answer comes once, however they are taken. */
static void check_batch(struct homa *h, const struct sockaddr_storage *server)
{
	static struct homa_message msgs[32];
	unsigned char seen[BATCHED] = { 0 };
	unsigned int sent = 0, got = 0, calls = 0;

	API_CHECK(homa_receive_batch(h, msgs, 32, 0, 0) == -EAGAIN, "a message");
	while (got < BATCHED) {
		int i, n;

		for (; sent < BATCHED && sent - got < 100; sent++)
			API_CHECK(!homa_request(h, (const struct sockaddr *)server,
						sizeof(*server), "\1request", 8,
						sent, 0, NULL),
				  "%s", homa_error(h));
		n = homa_receive_batch(h, msgs, 1 + calls++ % 32, 0, 20000);
		API_CHECK(n > 0 && n <= 32, "%d: %s", n, homa_error(h));
		for (i = 0; i < n; i++, got++) {
			API_CHECK(msgs[i].kind == HOMA_RESPONSE &&
					  msgs[i].length == 8,
				  "error %d", msgs[i].error);
			API_CHECK(msgs[i].cookie < sent && !seen[msgs[i].cookie]++,
				  "cookie");
			API_CHECK(!memcmp(msgs[i].iov[0].iov_base, "\1request", 8),
				  "bytes");
			homa_release(h, &msgs[i]);
		}
	}
	API_CHECK(homa_receive_batch(h, msgs, 32, 0, 1) == -EAGAIN,
		  "more than was asked for");
}

/* What was accepted is answered; what was not costs nothing. */
static void check_nonblock(struct homa *h, const struct sockaddr_storage *server)
{
	static const size_t lengths[] = { 8, 4000, 100000, 1000000 };
	static unsigned char data[HOMA_MAX_MESSAGE] = { 1 };
	unsigned int sent = 0, got = 0, refused = 0;
	struct pollfd ready = { .events = POLLIN };
	struct homa_message msg;

	while (got < 400) {
		size_t length = lengths[sent % 40 ? sent % 2 : 2 + sent / 40 % 2];
		int rc = -EAGAIN;

		if (sent < 400)
			rc = homa_request(h, (const struct sockaddr *)server,
					  sizeof(*server), data, length, sent,
					  HOMA_NONBLOCK, NULL);
		API_CHECK(!rc || rc == -EAGAIN || rc == -ENOBUFS, "%s",
			  homa_error(h));
		if (!rc) {
			sent++;
			continue;
		}
		refused++;
		rc = sent < 400 ? homa_wait_send(h, length, 1) : -EAGAIN;
		API_CHECK(!rc || rc == -EAGAIN, "%s", homa_error(h));
		rc = homa_receive(h, &msg, 0, sent < 400 ? 0 : 20000);
		if (rc == -EAGAIN && sent < 400)
			continue;
		API_CHECK(!rc && msg.kind == HOMA_RESPONSE, "%s, error %d",
			  homa_error(h), msg.error);
		homa_release(h, &msg);
		got++;
	}
	/* All is answered: there is room, and the descriptor says so. */
	ready.fd = homa_send_fd(h);
	API_CHECK(ready.fd >= 0 && poll(&ready, 1, 20000) == 1, "%s",
		  homa_error(h));
	API_CHECK(refused >= 400 && sent == 400, "%u", sent);
}

/* One message out of memory of homa_alloc(), there and back. */
static void exchange_given(struct homa *h, const struct sockaddr_storage *server,
			   size_t length, unsigned int seed)
{
	const struct sockaddr *to = (const struct sockaddr *)server;
	struct api_order *o;
	struct homa_message msg;
	void *buf;

	API_CHECK(!homa_alloc(h, length, &buf), "%s", homa_error(h));
	api_fill(buf, length, seed);
	API_CHECK(!homa_call(h, to, sizeof(*server), buf, length, &msg, 20000),
		  "%s", homa_error(h));
	api_verify(&msg, length, seed);
	homa_release(h, &msg);
	API_CHECK(homa_free(h, buf) == -EINVAL,
		  "a request that was sent can be freed");

	API_CHECK(!homa_alloc(h, sizeof(*o), &buf), "%s", homa_error(h));
	o = buf;
	*o = (struct api_order){ API_ORDER, API_GIVEN, (unsigned short)seed,
				 (unsigned int)length };
	API_CHECK(!homa_call(h, to, sizeof(*server), buf, sizeof(*o), &msg, 20000),
		  "%s", homa_error(h));
	api_verify(&msg, length, seed);
	homa_release(h, &msg);
}

/* Lengths around the edges of packets, units and pages, over whatever host. */
static void check_given(struct homa *h, const struct sockaddr_storage *server)
{
	static const size_t edges[] = {
		2,    1400,  1433,   1500,   4096,
		8192, 65536, 131072, 500000, HOMA_MAX_MESSAGE - 1
	};
	unsigned int i, long_ones = 0;
	size_t length;
	void *buf;

	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		for (length = edges[i] - 1; length <= edges[i] + 1; length++) {
			exchange_given(h, server, length, i);
			long_ones += length > 4096;
		}
	}
	if (!strcmp(homa_via(h), "service"))
		API_CHECK(api_metric(h, "host_given") == long_ones,
			  "%u long ones", long_ones);
	/* One that was sent, and one that was freed. */
	for (i = 0; i < 2; i++) {
		API_CHECK(!homa_alloc(h, 10000, &buf), "%s", homa_error(h));
		api_fill(buf, 10000, i);
		API_CHECK(!homa_free(h, buf), "%s", homa_error(h));
		API_CHECK(homa_free(h, buf) == -EINVAL, "it was freed twice");
		API_CHECK(homa_request(h, (const struct sockaddr *)server,
				       sizeof(*server), buf, 10000, 0, 0,
				       NULL) == -EINVAL,
			  "it was sent after that");
	}
}

/* Client and server on one handle and one thread. */
static void check_self(struct homa *h, const struct sockaddr_storage *server)
{
	static unsigned char data[500000];
	struct homa_message question, answer;
	struct sockaddr_storage us;
	uint64_t id;
	size_t length;

	(void)server;
	API_CHECK(!homa_bind(h, 77), "%s", homa_error(h));
	API_CHECK(!homa_getsockname(h, &us), "%s", homa_error(h));
	for (length = 1; length < sizeof(data); length = length * 3 + 1) {
		api_fill(data, length, 5);
		API_CHECK(!homa_request(h, (struct sockaddr *)&us, sizeof(us),
					data, length, 8, 0, &id),
			  "%s", homa_error(h));
		API_CHECK(!homa_receive(h, &question, HOMA_RECV_REQUEST, 20000),
			  "%s", homa_error(h));
		API_CHECK(question.kind == HOMA_REQUEST, "kind %d",
			  question.kind);
		api_verify(&question, length, 5);
		API_CHECK(!homa_replyv(h, &question, question.iov,
				       question.iovcnt),
			  "%s", homa_error(h));
		API_CHECK(homa_reply(h, &question, "x", 1) == -EINVAL,
			  "replied twice");
		homa_release(h, &question);
		API_CHECK(!homa_receive(h, &answer, 0, 20000), "%s",
			  homa_error(h));
		API_CHECK(answer.kind == HOMA_RESPONSE, "error %d", answer.error);
		API_CHECK(answer.id == id && answer.cookie == 8, "wrong RPC");
		api_verify(&answer, length, 5);
		homa_release(h, &answer);
	}
}

static const struct {
	const char *name;
	api_call_check *run;
} checks[] = {
	{ "reject", check_reject },
	{ "within", check_within },
	{ "discard_many", check_discard_many },
	{ "alive", check_alive },
	{ "batch", check_batch },
	{ "nonblock", check_nonblock },
	{ "given", check_given },
	{ "self", check_self },
};

api_call_check *api_find_call(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, name))
			return checks[i].run;
	return NULL;
}
