/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Echo client: sends a text, prints the answer. echo_client ADDRESS:PORT [TEXT] */
#include <homa/libhoma.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *text = argc > 2 ? argv[2] : "hello, world";
	struct sockaddr_storage server;
	struct homa_message msg;
	struct homa *h;
	int i;

	if (argc < 2 || homa_parse_address(argv[1], &server)) {
		fprintf(stderr, "usage: echo-client ADDRESS:PORT [TEXT]\n");
		return 1;
	}
	if (homa_open(&h, NULL)) {
		fprintf(stderr, "echo_client: %s\n", homa_open_error());
		return 1;
	}
	if (homa_call(h, (struct sockaddr *)&server, sizeof(server), text,
		      strlen(text), &msg, 5000)) {
		fprintf(stderr, "echo_client: %s\n", homa_error(h));
		homa_close(h);
		return 1;
	}
	for (i = 0; i < msg.iovcnt; i++)
		fwrite(msg.iov[i].iov_base, 1, msg.iov[i].iov_len, stdout);
	putchar('\n');
	homa_release(h, &msg);
	homa_close(h);
	if (fflush(stdout)) {
		perror("echo_client: standard output");
		return 1;
	}
	return 0;
}
