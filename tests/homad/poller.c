// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A program that asks for messages without ever waiting. As long as it asks in vain it
 * must let others run, homad above all: on every such call, or, with a descriptor
 * to wait for, from the second one on.
 *
 *	poller ADDRESS		of an echo server
 */
#include <errno.h>
#include <poll.h>
#include "api_common.h"

static void ask_in_vain(struct homa *h, unsigned int times)
{
	struct homa_message msg;

	while (times--)
		API_CHECK(homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0) == -EAGAIN,
			  "%s", homa_error(h));
}

static void expect(struct homa *h, unsigned int yields)
{
	uint64_t found = api_metric(h, "host_yields");

	API_CHECK(found == yields, "%llu yields, not %u",
		  (unsigned long long)found, yields);
}

int main(int argc, char **argv)
{
	struct sockaddr_storage server;
	struct homa_message msg;
	struct pollfd fd;
	struct homa *h;

	API_CHECK(argc > 1 && !homa_parse_address(argv[1], &server), "usage");
	API_CHECK(!homa_open(&h, NULL), "%s", homa_open_error());
	ask_in_vain(h, 10);
	expect(h, 10);
	fd = (struct pollfd){ .fd = homa_fd(h), .events = POLLIN };
	API_CHECK(fd.fd >= 0, "%s", homa_error(h));
	API_CHECK(!homa_request(h, (struct sockaddr *)&server, sizeof(server),
				"x", 1, 0, 0, NULL),
		  "%s", homa_error(h));
	API_CHECK(poll(&fd, 1, 60000) == 1, "no response");
	API_CHECK(!homa_receive(h, &msg, HOMA_RECV_NONBLOCK, 0) &&
			  msg.kind == HOMA_RESPONSE,
		  "%s", homa_error(h));
	homa_release(h, &msg);
	/* One more, as before going to wait. */
	ask_in_vain(h, 1);
	expect(h, 10);
	ask_in_vain(h, 10);
	expect(h, 20);
	homa_close(h);
	return 0;
}
