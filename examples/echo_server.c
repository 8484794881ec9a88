/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Echo server: answers every request with its own bytes. echo_server [PORT] */
#include <homa/libhoma.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 4000;
	struct homa_message msg;
	struct homa *h;

	if (port < 1 || port > 32767) {
		fprintf(stderr, "usage: echo-server [PORT]   (1 to 32767)\n");
		return 1;
	}
	if (homa_open(&h, NULL)) {
		fprintf(stderr, "echo_server: %s\n", homa_open_error());
		return 1;
	}
	if (homa_bind(h, (uint16_t)port)) {
		fprintf(stderr, "echo_server: %s\n", homa_error(h));
		return 1;
	}
	printf("serving port %d over %s (UDP port %u)\n", port, homa_via(h),
	       homa_udp_port(h));
	fflush(stdout);

	while (homa_receive(h, &msg, HOMA_RECV_REQUEST, -1) == 0) {
		/* The request lies in the receive buffer: no copy is made here. */
		if (homa_replyv(h, &msg, msg.iov, msg.iovcnt))
			fprintf(stderr, "echo_server: %s\n", homa_error(h));
		homa_release(h, &msg);
	}
	fprintf(stderr, "echo_server: %s\n", homa_error(h));
	homa_close(h);
	return 1;
}
