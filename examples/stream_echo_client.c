/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP echo client over homad: sends bytes, which it writes where homad takes them from,
 * and looks at those that come back where homad put them.
 */
#include <homa/libhoma.h>
#include <homa/stream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOO_LONG_NS 10000000000 /* without any news */

/* struct half - one direction: so many bytes, of which the n-th has a value of its own */
struct half {
	size_t done, all;
};

static unsigned char value(size_t n)
{
	return (unsigned char)(n * 7 % 251);
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "stream-echo-client: %s: %s\n", what, strerror(error));
	return 1;
}

/* Write as much as there is room for. */
static int push(struct homa_stream *stream, struct half *out)
{
	struct iovec room[2];
	size_t n, k;
	int i, rc = 0;

	while (!rc && out->done < out->all && homa_stream_room(stream, room)) {
		n = 0;
		for (i = 0; i < 2; i++)
			for (k = 0;
			     k < room[i].iov_len && out->done + n < out->all; k++)
				((unsigned char *)room[i].iov_base)[k] =
					value(out->done + n++);
		rc = homa_stream_written(stream, n);
		out->done += n;
	}
	return rc;
}

/* Look at what has come back; -1: it is something else. */
static int pull(struct homa_stream *stream, struct half *in)
{
	struct iovec piece[2];
	size_t n, k;
	int i;

	while ((n = homa_stream_arrived(stream, piece))) {
		for (i = 0; i < 2; i++)
			for (k = 0; k < piece[i].iov_len; k++)
				if (((unsigned char *)piece[i].iov_base)[k] !=
				    value(in->done++))
					return -1;
		homa_stream_taken(stream, n);
	}
	return 0;
}

/* Until the peer has ended, after all bytes went there and back. */
static int exchange(struct homa_streams *ctx, struct homa_stream *stream,
		    size_t bytes)
{
	struct half out = { 0, bytes }, in = { 0, bytes };
	struct homa_stream *news[1];
	unsigned int ready;

	do {
		while (homa_streams_poll(ctx, news, 1) > 0)
			;
		/* Before the bytes are looked at: none comes after the end. */
		ready = homa_stream_ready(stream);
		if (ready & HOMA_STREAM_ERROR)
			return fail("connection", homa_stream_error(stream));
		if (push(stream, &out) || pull(stream, &in))
			return fail("echo", homa_stream_error(stream));
		if (out.done == bytes)
			homa_stream_shutdown(stream);
		if (ready & HOMA_STREAM_EOF)
			break;
	} while (homa_streams_wait(ctx, TOO_LONG_NS) == 1);
	printf("%zu of %zu bytes came back\n", in.done, bytes);
	return in.done != bytes;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;
	struct sockaddr_storage server;
	struct homa_streams *ctx;
	struct homa_stream *stream;
	int rc;

	if (argc < 2 || argc > 3 || homa_parse_address(argv[1], &server)) {
		puts("usage: stream-echo-client ADDRESS:PORT [BYTES]\n"
		     "Sends BYTES (1000000) over TCP, through homad, and checks that they come back.");
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	rc = homa_streams_open(&ctx, NULL);
	if (rc)
		return fail("homad", -rc);
	rc = homa_stream_connect(ctx, NULL, (struct sockaddr *)&server,
				 sizeof(server), &stream);
	if (rc)
		return fail("connect", -rc);
	rc = exchange(ctx, stream, bytes);
	homa_stream_close(stream);
	homa_streams_close(ctx);
	return rc;
}
