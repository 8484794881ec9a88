/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP echo server over homad. Bytes are copied once: from where homad put those that
 * have arrived to where it takes those to send. homad's configuration must have a
 * [[tcp_rule]] with this port.
 */
#include <homa/stream.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Copy what fits of two pieces to two others; how many bytes. */
static size_t copy(struct iovec to[2], struct iovec from[2])
{
	size_t n, all = 0;
	int i = 0, j = 0;

	while (i < 2 && j < 2) {
		n = smaller(to[i].iov_len, from[j].iov_len);
		if (n)
			memcpy(to[i].iov_base, from[j].iov_base, n);
		to[i] = (struct iovec){ (char *)to[i].iov_base + n,
					to[i].iov_len - n };
		from[j] = (struct iovec){ (char *)from[j].iov_base + n,
					  from[j].iov_len - n };
		all += n;
		i += to[i].iov_len == 0;
		j += j < 2 && from[j].iov_len == 0;
	}
	return all;
}

/* Echo as much as there is room for; what is left is done when there is news again. */
static void serve(struct homa_stream *stream)
{
	struct iovec in[2], out[2];
	unsigned int ready;
	size_t n;

	/* Before the bytes are looked at: none comes after the end. */
	ready = homa_stream_ready(stream);
	while (homa_stream_arrived(stream, in) && homa_stream_room(stream, out)) {
		n = copy(out, in);
		if (homa_stream_written(stream, n))
			break;
		homa_stream_taken(stream, n);
	}
	if (ready & HOMA_STREAM_ERROR)
		homa_stream_abort(stream);
	else if ((ready & HOMA_STREAM_EOF) && !homa_stream_arrived(stream, in))
		homa_stream_close(stream);
}

static void accept_all(struct homa_stream *listener)
{
	struct homa_stream *stream;

	while (!homa_stream_accept(listener, &stream))
		serve(stream);
}

/* The kernel's socket says that we may have the port. */
static int bound_socket(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), zero = 0;

	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int fail(const char *what, int rc)
{
	fprintf(stderr, "stream-echo-server: %s: %s\n", what, strerror(-rc));
	return 1;
}

int main(int argc, char **argv)
{
	int port = argc == 2 ? atoi(argv[1]) :
		   argc == 1 ? 5000 :
			       0,
	    fd, rc, n, i;
	struct homa_stream *listener, *news[64];
	struct homa_streams *ctx;

	if (port <= 0 || port > 65535) {
		puts("usage: stream-echo-server [PORT]\n"
		     "Sends back what comes over TCP to PORT (5000), through homad.");
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	rc = homa_streams_open(&ctx, NULL);
	if (rc)
		return fail("homad", rc);
	fd = bound_socket((uint16_t)port);
	if (fd < 0) {
		perror("stream-echo-server: bind");
		return 1;
	}
	rc = homa_stream_listen(ctx, fd, 128, &listener);
	if (rc)
		return fail("listen", rc);
	close(fd);
	printf("serving port %d\n", port);
	fflush(stdout);
	for (;;) {
		n = homa_streams_poll(ctx, news, 64);
		if (n < 0)
			return fail("homad", n);
		for (i = 0; i < n; i++) {
			if (news[i] == listener)
				accept_all(listener);
			else
				serve(news[i]);
		}
		if (!n)
			homa_streams_wait(ctx, -1);
	}
}
