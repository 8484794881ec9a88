// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A well-behaved application: RPCs of mixed sizes to an echo server, every
 * byte of every response checked, every failure an error, until SIGTERM or for
 * a time. Prints "going" after the first response and at the end
 *
 *	COUNT P50_US P99_US MAX_US
 *
 *	steady ADDRESS [SECONDS|0 [OUTSTANDING [LENGTH|0 [mend]]]]
 *
 * With length 0 they are mixed. Latency is that of messages up to 1000 bytes.
 * With "mend" what fails because a daemon or the server ended is sent again,
 * until it works. After SIGUSR1 "works" is printed when an RPC that began after the
 * signal has succeeded.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include "api_common.h"

enum { MOST = 64, SAMPLES = 1 << 18 };

static int stop, mend, asked;
static unsigned int samples[SAMPLES];
static unsigned int taken;
static double sent_at[MOST];
static size_t length_of[MOST];
static int begun_after[MOST]; /* asked when the RPC of that slot began */

static void on_term(int sig)
{
	(void)sig;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void on_usr1(int sig)
{
	(void)sig;
	__atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
}

static int by_value(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static void submit(struct homa *h, struct sockaddr_storage *server,
		   unsigned int slot, unsigned int serial, size_t length)
{
	static const size_t sizes[] = { 100, 1, 1500, 100, 5000, 100, 70000, 100 };
	static unsigned char data[HOMA_MAX_MESSAGE];

	length_of[slot] = length ? length : sizes[serial % 8];
	if (!length && serial % 500 == 499)
		length_of[slot] = HOMA_MAX_MESSAGE;
	api_fill(data, length_of[slot], serial);
	sent_at[slot] = api_now();
	begun_after[slot] = __atomic_load_n(&asked, __ATOMIC_RELAXED);
	for (;;) {
		int rc = homa_request(h, (struct sockaddr *)server,
				      sizeof(*server), data, length_of[slot],
				      (uint64_t)serial << 8 | slot, 0, NULL);

		if (!rc)
			return;
		API_CHECK(mend && rc == -ECONNREFUSED, "%s", homa_error(h));
		usleep(5000);
	}
}

static int can_be_mended(int error)
{
	return mend && (error == -ECONNRESET || error == -ENOTCONN ||
			error == -ETIMEDOUT || error == -EPROTONOSUPPORT ||
			error == -ECONNREFUSED);
}

static unsigned int take(struct homa *h)
{
	struct homa_message msg;
	unsigned int slot;
	int rc;

	/* Longer than an RPC may last: something has to come. */
	do
		rc = homa_receive(h, &msg, HOMA_RECV_RESPONSE, 60000);
	while (rc == -EINTR);
	API_CHECK(!rc, "%s", homa_error(h));
	slot = msg.cookie & 0xff;
	API_CHECK(msg.kind == HOMA_RESPONSE || can_be_mended(msg.error),
		  "RPC %llu failed: %d (%s)", (unsigned long long)msg.cookie >> 8,
		  msg.error, strerror(-msg.error));
	API_CHECK(slot < MOST && length_of[slot], "cookie %llx",
		  (unsigned long long)msg.cookie);
	if (msg.kind != HOMA_RESPONSE) {
		usleep(20000);
		homa_release(h, &msg);
		return slot;
	}
	api_verify(&msg, length_of[slot], (unsigned int)(msg.cookie >> 8));
	if (begun_after[slot] && __atomic_load_n(&asked, __ATOMIC_RELAXED)) {
		__atomic_store_n(&asked, 0, __ATOMIC_RELAXED);
		printf("works\n");
		fflush(stdout);
	}
	if (length_of[slot] <= 1000)
		samples[taken++ % SAMPLES] =
			(unsigned int)((api_now() - sent_at[slot]) * 1e6);
	length_of[slot] = 0;
	homa_release(h, &msg);
	return slot;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term };
	struct sigaction ask = { .sa_handler = on_usr1 };
	double end = argc > 2 && atof(argv[2]) > 0 ? api_now() + atof(argv[2]) :
						     1e18;
	unsigned int outstanding = argc > 3 ? (unsigned int)atoi(argv[3]) : 8;
	size_t length = argc > 4 ? (size_t)atol(argv[4]) : 0;
	unsigned int serial = 0, got = 0, n;
	struct sockaddr_storage server;
	struct homa *h;

	mend = argc > 5 && !strcmp(argv[5], "mend");
	API_CHECK(argc > 1 && outstanding >= 1 && outstanding <= MOST, "usage");
	API_CHECK(!homa_parse_address(argv[1], &server), "%s", homa_open_error());
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &ask, NULL);
	API_CHECK(!homa_open(&h, NULL), "%s", homa_open_error());
	while (serial < outstanding) {
		submit(h, &server, serial, serial, length);
		serial++;
	}
	while (got < serial) {
		unsigned int slot = take(h);

		if (got++ == 0) {
			printf("going\n");
			fflush(stdout);
		}
		if (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && api_now() < end)
			submit(h, &server, slot, serial++, length);
	}
	homa_close(h);
	n = taken < SAMPLES ? taken : SAMPLES;
	qsort(samples, n, sizeof(samples[0]), by_value);
	if (n)
		printf("%u %u %u %u\n", got, samples[n / 2],
		       samples[n / 100 * 99], samples[n - 1]);
	else
		printf("%u 0 0 0\n", got);
	return 0;
}
