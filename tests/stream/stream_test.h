/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* One context and one fake homad for each test of this folder. */
#ifndef STREAM_TEST_H
#define STREAM_TEST_H

#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "fake_streams.h"
#include "stream_impl.h"

static struct fake f;
static struct homa_streams *ctx;
static u8 data[4u << 20];
static __attribute__((unused)) u8 got[4u << 20];

static inline int setup(void **state)
{
	u32 i;

	(void)state;
	memset(&f, 0, sizeof(f));
	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 7 + i / 251);
	fake_start(&f);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	homa_streams_close(ctx);
	ctx = NULL;
	fake_kill(&f);
	return 0;
}

static inline void open_context(void)
{
	assert_int_equal(homa_streams_open(&ctx, NULL), 0);
}

/* A port that is the fake's then; a listener that is @out's. */
static inline u16 listen_on(struct homa_stream **out)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t length = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &length), 0);
	assert_int_equal(homa_stream_listen(ctx, fd, 16, out), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static inline struct homa_stream *connect_to(u16 port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct homa_stream *stream;

	in.sin_addr.s_addr = htonl(0x0a010101);
	assert_int_equal(homa_stream_connect(ctx, NULL, (struct sockaddr *)&in,
					     sizeof(in), &stream),
			 0);
	return stream;
}

/* Two ends of a connection; without the fake's thread. */
static inline void make_pair(struct homa_stream *pair[2],
			     struct homa_stream **listener)
{
	u16 port = listen_on(listener);

	pair[0] = connect_to(port);
	fake_step(&f);
	assert_int_equal(homa_stream_accept(*listener, &pair[1]), 0);
	assert_true(homa_stream_ready(pair[0]) & HOMA_STREAM_OUT);
}

static inline ssize_t put(struct homa_stream *stream, const void *bytes, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, n };

	return homa_stream_write(stream, &iov, 1);
}

static inline ssize_t get(struct homa_stream *stream, void *bytes, size_t n)
{
	struct iovec iov = { bytes, n };

	return homa_stream_read(stream, &iov, 1, 0);
}

static inline bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* All news that there is; how much. */
static inline int swallow(void)
{
	struct homa_stream *news[16];
	int n, all = 0;

	while ((n = homa_streams_poll(ctx, news, 16)) > 0)
		all += n;
	return all;
}

#endif
