// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Workers that share a port, and who asks them.
 *
 *	sharer echo PORT NAME	answer every request with the letter NAME at once
 *	sharer hold PORT NAME	keep requests; after SIGUSR1 answer them, and further ones at once
 *	sharer ask ADDRESS COUNT [AT_ONCE [LENGTH]]
 *
 * A worker prints "serving" when it has the port, or a sentence and ends with status 1.
 * Who asks says which was the first failure on standard error, prints "nearly" when fewer
 * than AT_ONCE answers are missing, and at the end
 *
 *	{"A": 10, "B": 10, "failed": 0}
 */
#include <errno.h>
#include <signal.h>
#include "api_common.h"

enum { KEPT = 4096 };

static int answering;
static struct homa_message kept[KEPT];
static unsigned int num_kept;

static void on_usr1(int sig)
{
	(void)sig;
	__atomic_store_n(&answering, 1, __ATOMIC_RELAXED);
}

static void answer_all(struct homa *h, const char *name)
{
	while (num_kept) {
		struct homa_message *msg = &kept[--num_kept];

		API_CHECK(!homa_reply(h, msg, name, 1), "%s", homa_error(h));
		homa_release(h, msg);
	}
}

static int work(int port, const char *name)
{
	struct homa_options options = { .flags = HOMA_OPEN_SHARED_PORT };
	struct sigaction action = { .sa_handler = on_usr1 };
	struct homa *h;
	int rc;

	sigaction(SIGUSR1, &action, NULL);
	API_CHECK(!homa_open(&h, &options), "%s", homa_open_error());
	API_CHECK(!homa_bind(h, (uint16_t)port), "%s", homa_error(h));
	printf("serving\n");
	fflush(stdout);
	for (;;) {
		/* A signal just before it is seen a little later. */
		rc = homa_receive(h, &kept[num_kept], HOMA_RECV_REQUEST, 100);
		API_CHECK(!rc || rc == -EINTR || rc == -EAGAIN ||
				  rc == -ECONNREFUSED,
			  "%s", homa_error(h));
		if (!rc)
			num_kept++;
		API_CHECK(num_kept < KEPT, "too many requests");
		if (__atomic_load_n(&answering, __ATOMIC_RELAXED))
			answer_all(h, name);
	}
}

static int ask(const char *address, unsigned int count, unsigned int at_once,
	       size_t length)
{
	static const char request[4096] = "?";
	unsigned int i, sent = 0, got = 0, failed = 0, by[26] = { 0 };
	struct sockaddr_storage server;
	struct homa_message msg;
	const char *comma = "";
	struct homa *h;
	int rc;

	API_CHECK(length > 0 && length <= sizeof(request), "length");
	API_CHECK(!homa_parse_address(address, &server), "%s", homa_open_error());
	API_CHECK(!homa_open(&h, NULL), "%s", homa_open_error());
	while (got < count) {
		for (; sent < count && sent - got < at_once; sent++)
			API_CHECK(!homa_request(h, (struct sockaddr *)&server,
						sizeof(server), request, length,
						0, 0, NULL),
				  "%s", homa_error(h));
		do
			rc = homa_receive(h, &msg, HOMA_RECV_RESPONSE, 120000);
		while (rc == -EINTR);
		API_CHECK(!rc, "%s", homa_error(h));
		if (msg.kind == HOMA_RESPONSE)
			by[(*(unsigned char *)msg.iov[0].iov_base - 'A') % 26]++;
		else if (failed++ == 0)
			fprintf(stderr, "first failure: %s\n",
				strerror(-msg.error));
		homa_release(h, &msg);
		if (++got + at_once == count + 1) {
			printf("nearly\n");
			fflush(stdout);
		}
	}
	printf("{");
	for (i = 0; i < 26; i++) {
		if (by[i]) {
			printf("%s\"%c\": %u", comma, 'A' + (int)i, by[i]);
			comma = ", ";
		}
	}
	printf("%s\"failed\": %u}\n", comma, failed);
	homa_close(h);
	return 0;
}

int main(int argc, char **argv)
{
	API_CHECK(argc > 3, "usage");
	if (!strcmp(argv[1], "ask"))
		return ask(argv[2], (unsigned int)atoi(argv[3]),
			   argc > 4 ? (unsigned int)atoi(argv[4]) : 1,
			   argc > 5 ? (size_t)atol(argv[5]) : 1);
	answering = !strcmp(argv[1], "echo");
	return work(atoi(argv[2]), argv[3]);
}
