// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Many TCP streams through homad, for tests:
 *
 *	many serve PORT			echo
 *	many hold ADDRESS PORT N	open N, a byte there and back on each, "held N"; the same
 *					again after each SIGUSR1, "again N"
 *	many churn ADDRESS PORT N W	open and close N, W at once; this end closes first
 */
#include <arpa/inet.h>
#include <errno.h>
#include <homa/stream.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NEWS 64
#define MINUTE 60000000000ll

static struct homa_streams *ctx;
static struct sockaddr_in remote = { .sin_family = AF_INET };
static long opened, echoed, failed, last_error;

static void fail(const char *what, int rc)
{
	fprintf(stderr, "many: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void said(const char *what, long n)
{
	printf("%s %ld\n", what, n);
	fflush(stdout);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must_wait(void)
{
	int rc = homa_streams_wait(ctx, MINUTE);

	if (rc != 1 && rc != -EINTR)
		fail("no news for a minute", rc ? rc : -ETIMEDOUT);
}

/* ---- serve ---- */

static void echo(struct homa_stream *stream)
{
	char bytes[4096];
	struct iovec iov = { bytes, sizeof(bytes) };
	ssize_t n;

	while ((n = homa_stream_read(stream, &iov, 1, 0)) > 0) {
		struct iovec out = { bytes, (size_t)n };

		if (homa_stream_write(stream, &out, 1) != n)
			fail("a few bytes found no room", -EAGAIN);
	}
	if (n == -EAGAIN)
		return;
	if (n)
		homa_stream_abort(stream);
	else
		homa_stream_close(stream);
}

static void serve(const char *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_port = htons((uint16_t)atoi(port)) };
	struct homa_stream *listener, *news[NEWS], *stream;
	int fd = socket(AF_INET, SOCK_STREAM, 0), n, i, rc;

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)))
		fail("bind", -errno);
	rc = homa_stream_listen(ctx, fd, 4096, &listener);
	if (rc)
		fail("listen", rc);
	said("serving", 0);
	for (;;) {
		while ((n = homa_streams_poll(ctx, news, NEWS)) > 0)
			for (i = 0; i < n; i++)
				if (news[i] != listener)
					echo(news[i]);
				else
					while (!homa_stream_accept(listener,
								   &stream)) {
						echo(stream);
					}
		if (n < 0)
			fail("poll", n);
		if (!n) {
			rc = homa_streams_wait(ctx, -1);
			if (rc < 0 && rc != -EINTR)
				fail("wait", rc);
		}
	}
}

/* ---- hold ---- */

static void say_byte(struct homa_stream *stream)
{
	char one = 'x';
	struct iovec iov = { &one, 1 };
	ssize_t rc = homa_stream_write(stream, &iov, 1);

	if (rc != 1)
		fail("write", (int)rc);
}

static void open_one(void)
{
	struct homa_stream *stream;
	int rc = homa_stream_connect(ctx, NULL, (struct sockaddr *)&remote,
				     sizeof(remote), &stream);

	if (rc)
		fail("connect", rc);
}

/* Take what came; false: it has failed. */
static int take_byte(struct homa_stream *stream)
{
	char bytes[16];
	struct iovec iov = { bytes, sizeof(bytes) };
	ssize_t rc = homa_stream_read(stream, &iov, 1, 0);

	if (rc > 0)
		echoed += rc;
	return rc > 0 || rc == -EAGAIN;
}

static void hold(long n)
{
	struct homa_stream **streams = calloc((size_t)n, sizeof(*streams)),
			   *news[NEWS];
	long begun = 0, i;
	sigset_t usr1;
	int got;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);

	while (echoed < n) {
		for (; begun < n && begun - opened - failed < 256; begun++)
			open_one();
		must_wait();
		while ((got = homa_streams_poll(ctx, news, NEWS)) > 0)
			for (i = 0; i < got; i++) {
				if (homa_stream_error(news[i]))
					fail("connect",
					     -homa_stream_error(news[i]));
				if (!homa_stream_user(news[i])) {
					homa_stream_set_user(news[i], news[i]);
					streams[opened++] = news[i];
					say_byte(news[i]);
				}
				take_byte(news[i]);
			}
	}
	said("held", echoed);
	while (!sigwait(&usr1, &got)) {
		for (i = 0, echoed = 0; i < n; i++)
			say_byte(streams[i]);
		while (echoed < n) {
			must_wait();
			while ((got = homa_streams_poll(ctx, news, NEWS)) > 0)
				for (i = 0; i < got; i++)
					if (!take_byte(news[i]))
						fail("a stream was lost",
						     -ECONNRESET);
		}
		said("again", echoed);
	}
}

/* ---- churn ---- */

static void churn(long n, long at_once)
{
	struct homa_stream *news[NEWS];
	double began = seconds();
	long begun = 0, i;
	int got;

	while (opened + failed < n) {
		for (; begun < n && begun - opened - failed < at_once; begun++)
			open_one();
		must_wait();
		while ((got = homa_streams_poll(ctx, news, NEWS)) > 0)
			for (i = 0; i < got; i++) {
				int error = homa_stream_error(news[i]);

				if (error)
					last_error = error;
				*(error ? &failed : &opened) += 1;
				homa_stream_close(news[i]);
			}
	}
	printf("churned %ld failed %ld error %ld rate %.0f\n", opened, failed,
	       last_error, (double)n / (seconds() - began));
}

int main(int argc, char **argv)
{
	int rc;

	if (argc < 3)
		return 2;
	rc = homa_streams_open(&ctx, NULL);
	if (rc)
		fail("attach", rc);
	if (!strcmp(argv[1], "serve")) {
		serve(argv[2]);
		return 0;
	}
	if (argc < 5 || inet_pton(AF_INET, argv[2], &remote.sin_addr) != 1)
		return 2;
	remote.sin_port = htons((uint16_t)atoi(argv[3]));
	if (!strcmp(argv[1], "hold"))
		hold(atol(argv[4]));
	else
		churn(atol(argv[4]), argc > 5 ? atol(argv[5]) : 16);
	homa_streams_close(ctx);
	return 0;
}
