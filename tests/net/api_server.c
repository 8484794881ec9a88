// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Server of the libhoma tests: echoes, or does what the request orders (see
 * api_common.h). Prints "ready VIA UDP_PORT" when it serves and, when ended by
 * SIGTERM, all counters that are not zero as "name=value" lines.
 *
 *	api_server PORT [THREADS [RCVBUF]]
 *
 * Other options come through the environment of libhoma.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "api_common.h"

static struct homa *h;
static int stop;

static void on_term(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void reply_length(const struct homa_message *msg,
			 const struct api_order *order)
{
	unsigned char *buf = malloc(order->value);

	API_CHECK(buf, "out of memory");
	api_fill(buf, order->value, order->seed);
	API_CHECK(!homa_reply(h, msg, buf, order->value), "%s", homa_error(h));
	free(buf);
}

static void reply_given(const struct homa_message *msg,
			const struct api_order *order)
{
	void *buf;

	API_CHECK(!homa_alloc(h, order->value, &buf), "%s", homa_error(h));
	api_fill(buf, order->value, order->seed);
	API_CHECK(!homa_reply(h, msg, buf, order->value), "%s", homa_error(h));
	API_CHECK(homa_free(h, buf) == -EINVAL,
		  "a reply that was sent can be freed");
}

/* Requests that this thread answers late. */
#define LATE 64
static _Thread_local struct {
	struct homa_ticket ticket;
	double since;
} late[LATE];
static _Thread_local int lates;

static void answer_late(double age)
{
	while (lates && api_now() - late[0].since >= age) {
		API_CHECK(!homa_ticket_reply(h, &late[0].ticket, "late", 4),
			  "%s", homa_error(h));
		memmove(late, late + 1, sizeof(late[0]) * (size_t)--lates);
	}
}

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct homa_ticket kept;
static int has_kept;

/* A request that is rejected is over. What comes later is a mistake, unless the client
 * has heard of it and nothing is left that could be answered. */
static void reject(const struct homa_message *msg, int error)
{
	int rc = error ? homa_reject(h, msg, error) : homa_discard(h, msg);

	API_CHECK(!rc, "%s", homa_error(h));
	rc = homa_reject(h, msg, EIO);
	API_CHECK(!rc || rc == -EINVAL, "rejected twice: %d", rc);
	rc = homa_reply(h, msg, "x", 1);
	API_CHECK(!rc || rc == -EINVAL, "rejected and answered: %d", rc);
	API_CHECK(homa_alive(h, msg) == 0, "rejected, and somebody waits");
}

static void keep(const struct homa_message *msg)
{
	API_CHECK(homa_alive(h, msg) == 1, "nobody waits: %s", homa_error(h));
	pthread_mutex_lock(&kept_lock);
	API_CHECK(!homa_ticket_get(msg, &kept), "%s", homa_open_error());
	has_kept = 1;
	pthread_mutex_unlock(&kept_lock);
}

static void about_kept(const struct homa_message *msg, enum api_what what)
{
	int rc = 0;

	/* Another thread may not have kept it yet, though it came before this one. */
	pthread_mutex_lock(&kept_lock);
	if (has_kept)
		rc = what == API_ASK ? homa_ticket_alive(h, &kept) :
				       homa_ticket_reject(h, &kept, EIO);
	pthread_mutex_unlock(&kept_lock);
	API_CHECK(rc >= 0, "%s", homa_error(h));
	API_CHECK(!homa_reply(h, msg, rc ? "1" : "0", 1), "%s", homa_error(h));
}

static void serve(struct homa_message *msg)
{
	struct api_order order = { 0 };
	int64_t left;

	if (msg->length >= sizeof(order))
		homa_copy(msg, &order, sizeof(order));
	if (order.mark != API_ORDER)
		order.what = 0;
	switch (order.what) {
	case API_IGNORE:
		API_CHECK(lates < LATE, "too many");
		API_CHECK(!homa_ticket_get(msg, &late[lates].ticket), "%s",
			  homa_open_error());
		late[lates++].since = api_now();
		break;
	case API_EXIT:
		_exit(3);
	case API_ID:
		API_CHECK(!homa_reply(h, msg, &msg->id, sizeof(msg->id)), "%s",
			  homa_error(h));
		break;
	case API_REJECT:
		reject(msg, (int)order.value);
		break;
	case API_KEEP:
		keep(msg);
		break;
	case API_ASK:
	case API_DROP:
		about_kept(msg, order.what);
		break;
	case API_LENGTH:
		reply_length(msg, &order);
		break;
	case API_LEFT:
		left = homa_time_left(msg);
		API_CHECK(!homa_reply(h, msg, &left, sizeof(left)), "%s",
			  homa_error(h));
		break;
	case API_GIVEN:
		reply_given(msg, &order);
		break;
	case API_WORK:
		api_compute(order.value / 1e3);
		/* fall through */
	default:
		API_CHECK(!homa_replyv(h, msg, msg->iov, msg->iovcnt), "%s",
			  homa_error(h));
	}
	homa_release(h, msg);
}

static void *work(void *arg)
{
	struct homa_message msg;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int rc = homa_receive(h, &msg, HOMA_RECV_REQUEST, 100);

		if (!rc)
			serve(&msg);
		else
			API_CHECK(rc == -EAGAIN || rc == -EINTR, "%s",
				  homa_error(h));
		answer_late(API_LATE_S);
	}
	answer_late(0);
	return NULL;
}

static void settle(void)
{
	struct homa_message msg;
	double end = api_now() + 30;

	while (api_now() < end && api_metric(h, "rpcs"))
		if (!homa_receive(h, &msg, 0, 50))
			serve(&msg);
}

static void show(void *arg, const char *name, const char *text, uint64_t value)
{
	(void)arg;
	(void)text;
	if (value)
		printf("%s=%llu\n", name, (unsigned long long)value);
}

int main(int argc, char **argv)
{
	struct homa_options options = { 0 };
	struct sigaction action = { .sa_handler = on_term };
	int i, threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t ids[16];

	API_CHECK(argc > 1 && threads >= 1 && threads <= 16, "bad arguments");
	options.rcvbuf = argc > 3 ? (size_t)atol(argv[3]) : 0;
	sigaction(SIGTERM, &action, NULL);
	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
	API_CHECK(!homa_bind(h, (uint16_t)atoi(argv[1])), "%s", homa_error(h));
	printf("ready %s %u\n", homa_via(h), homa_udp_port(h));
	fflush(stdout);
	for (i = 1; i < threads; i++)
		API_CHECK(!pthread_create(&ids[i], NULL, work, NULL),
			  "no thread");
	work(NULL);
	for (i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	/* Clients that ended without an ack are forgotten in time. */
	settle();
	homa_metrics(h, show, NULL);
	homa_close(h);
	return 0;
}
