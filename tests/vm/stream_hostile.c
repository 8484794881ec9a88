// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Peers that lie, against streams: messages made by hand on an ordinary Homa socket, to a
 * listener and to a connection whose secret is known, since this is its other end.
 */
#include <endian.h>
#include <pthread.h>
#include "vm_stream.h"

struct liar *liar_new(int port)
{
	struct liar *l = calloc(1, sizeof(*l));
	int on = 1;

	l->s = open_sock(family, 0);
	CHECK(!setsockopt(l->s.fd, IPPROTO_HOMA, SO_HOMA_SERVER, &on, sizeof(on)),
	      "server");
	l->to = address(family, server_ip, port);
	l->hdr = (struct hdr *)l->buf;
	return l;
}

void liar_end(struct liar *l)
{
	close_sock(&l->s);
	free(l);
}

/* Sends a message of @size bytes; the answer's status, -1: it failed, -2: it is no answer. */
int liar_ask(struct liar *l, size_t size)
{
	uint64_t id =
		request(&l->s, &l->to, l->buf, size, 0, HOMA_SENDMSG_PRIVATE);
	ssize_t n = receive(&l->s, id, 0);
	const struct hdr *answer;

	if (n < 0)
		return -1;
	answer = (const struct hdr *)(l->s.region + l->s.args.bpage_offsets[0]);
	if ((size_t)n < HDR || answer->magic != htons(0x4853) ||
	    answer->kind != ANSWER)
		return -2;
	if ((size_t)n >= HDR + sizeof(struct open)) {
		const struct open *open = (const struct open *)(answer + 1);

		l->key = open->key;
		l->secret = open->secret;
	}
	l->edge = be64toh(answer->edge);
	return ntohs(answer->status);
}

void liar_header(struct liar *l, uint8_t kind, uint16_t flags)
{
	memset(l->hdr, 0, HDR);
	l->hdr->magic = htons(0x4853);
	l->hdr->version = 1;
	l->hdr->kind = kind;
	l->hdr->flags = htons(flags);
	l->hdr->edge = htobe64(100000);
}

static int liar_open(struct liar *l)
{
	struct open *open = (struct open *)(l->hdr + 1);

	liar_header(l, OPEN, 0);
	memset(open, 0, sizeof(*open));
	open->key = htonl(OURS_KEY);
	open->secret = htobe64(OURS_SECRET);
	return liar_ask(l, HDR + sizeof(*open));
}

/* Bytes [@from, @from + @n) of stream 1. */
int liar_data(struct liar *l, uint64_t from, size_t n, uint16_t flags)
{
	size_t i;

	liar_header(l, DATA, flags);
	l->hdr->key = l->key;
	l->hdr->secret = l->secret;
	l->hdr->offset = htobe64(from);
	for (i = 0; i < n; i++)
		l->buf[HDR + i] = byte_of(1, from + i);
	return liar_ask(l, HDR + n);
}

/* A liar that is connected, and what accept() gave. */
static struct liar *liar_up(int listener, int port, int *fd)
{
	struct liar *l = liar_new(port);

	CHECK(liar_open(l) == 0, "open");
	*fd = accept(listener, NULL, NULL);
	CHECK(*fd >= 0, "accept");
	return l;
}

static void nonsense(void)
{
	int listener = stream_listen(600, 8), i;
	struct liar *l = liar_new(600);
	uint64_t seed = 1;

	/* Too short, and too long. */
	memset(l->buf, 0, sizeof(l->buf));
	CHECK(liar_ask(l, 1) == EPROTO, "short");
	CHECK(liar_ask(l, HDR) == EPROTO, "zeros");
	CHECK(liar_ask(l, 90000) == EPROTO, "long");
	liar_header(l, OPEN, 0);
	CHECK(liar_ask(l, HDR) == EPROTO, "OPEN without an end");
	CHECK(liar_ask(l, HDR + 15) == EPROTO, "OPEN cut off");
	CHECK(liar_ask(l, HDR + 17) == EPROTO, "OPEN too long");
	l->hdr->version = 2;
	CHECK(liar_ask(l, HDR + 16) == EPROTO, "another version");
	liar_header(l, OPEN, 0);
	l->hdr->edge = htobe64(~0ull);
	CHECK(liar_ask(l, HDR + 16) == EPROTO, "an edge that wraps");
	liar_header(l, 9, 0);
	CHECK(liar_ask(l, HDR + 16) == EPROTO, "an unknown kind");
	liar_header(l, ANSWER, 0);
	CHECK(liar_ask(l, HDR) == EPROTO, "an answer as a request");
	for (i = 0; i < 2000; i++) {
		size_t n = 1 + rng_below(&seed, 200), at;

		for (at = 0; at < n; at++)
			l->buf[at] = (unsigned char)rng_next(&seed);
		if (i % 2 && n >= HDR) {
			liar_header(l, (uint8_t)(1 + rng_below(&seed, 4)),
				    (uint16_t)rng_below(&seed, 4));
			l->hdr->key = htonl(rng_below(&seed, 5));
			l->hdr->offset = rng_next(&seed);
		}
		liar_ask(l, n);
	}
	CHECK(metric("host_stream_bad") > 1000, "not counted");
	liar_end(l);
	close(listener);
	quiet();
}

static void guesses(void)
{
	int listener = stream_listen(601, 8), fd;
	struct liar *l = liar_up(listener, 601, &fd);
	uint64_t secret = l->secret;
	uint32_t key = l->key;

	CHECK(liar_data(l, 0, 10, 0) == 0, "the right secret");
	l->secret = secret ^ htobe64(1);
	CHECK(liar_data(l, 10, 10, 0) == ECONNRESET, "a wrong secret");
	CHECK(liar_data(l, 10, 0, RESET) == ECONNRESET, "a wrong secret");
	l->secret = secret;
	l->key = key ^ htonl(1 << 20);
	CHECK(liar_data(l, 10, 10, 0) == ECONNRESET, "a wrong key");
	l->key = 0;
	CHECK(liar_data(l, 10, 10, 0) == ECONNRESET, "key 0");
	l->key = key;
	/* The connection has not noticed. */
	CHECK(liar_data(l, 10, 10, 0) == 0, "the right secret");
	get(fd, 1, 0, 20, 20);
	close(fd);
	liar_end(l);
	close(listener);
	quiet();
}

/* What must end the connection, each on a new one. */
static int lie(struct liar *l, int which)
{
	int i, rc = 0;

	switch (which) {
	case 0:
		return liar_data(l, l->edge, 1, 0);
	case 1:
		return liar_data(l, l->edge - 10, 11, 0);
	case 2:
		return liar_data(l, ~0ull, 10, 0);
	case 3:
		return liar_data(l, 1ull << 63, 10, 0);
	case 4:
		CHECK(liar_data(l, 0, 10, FIN) == 0, "the end");
		return liar_data(l, 10, 1, 0);
	case 5:
		CHECK(liar_data(l, 0, 10, FIN) == 0, "the end");
		return liar_data(l, 0, 5, FIN);
	case 6:
		CHECK(liar_data(l, 0, 10, 0) == 0, "bytes");
		return liar_data(l, 0, 5, FIN);
	case 7:
		CHECK(liar_data(l, 20, 10, 0) == 0, "bytes behind a gap");
		return liar_data(l, 0, 25, FIN);
	default:
		/* more gaps than anybody has */
		for (i = 0; i < 100 && !rc; i++)
			rc = liar_data(l, 2 + (uint64_t)i * 2, 1, 0);
		CHECK(i > 60 && i < 100, "%d gaps", i);
		return rc;
	}
}

static void lies(void)
{
	int listener = stream_listen(602, 8), fd, i;
	long long before = metric("host_stream_bad");
	char buf[100];

	for (i = 0; i < 9; i++) {
		struct liar *l = liar_up(listener, 602, &fd);
		ssize_t n;

		CHECK(lie(l, i) == ECONNRESET, "lie %d was believed", i);
		/* What came before is read, then the error. */
		do {
			n = recv(fd, buf, sizeof(buf), 0);
		} while (n > 0);
		CHECK(n == -1 || i == 4 || i == 5, "lie %d: no error", i);
		CHECK(liar_data(l, 0, 1, 0) == ECONNRESET, "lie %d: not over", i);
		close(fd);
		liar_end(l);
	}
	CHECK(metric("host_stream_bad") >= before + 9, "not counted");
	close(listener);
	quiet();
}

/* A thread that closes a connection after a moment. */
struct closer {
	int fd;
	unsigned int turns;
};

static void *close_soon(void *arg)
{
	const struct closer *closer = arg;
	volatile unsigned int i = 0;

	while (i < closer->turns)
		i++;
	close(closer->fd);
	return NULL;
}

/* The end is said, behind bytes with a gap before them, while the other end is being closed. */
static void end_meets_close(void)
{
	int listener = stream_listen(608, 8), i;
	uint64_t seed = 4;

	for (i = 0; i < 200; i++) {
		struct liar *l = liar_new(608);
		struct closer closer = {
			.turns = (unsigned int)rng_below(&seed, 100000),
		};
		pthread_t thread;

		CHECK(liar_open(l) == 0, "open");
		closer.fd = accept(listener, NULL, NULL);
		CHECK(closer.fd >= 0, "accept");
		CHECK(liar_data(l, 20, 10, 0) == 0, "bytes behind a gap");
		CHECK(!pthread_create(&thread, NULL, close_soon, &closer),
		      "thread");
		CHECK(liar_data(l, 30, 0, FIN) >= 0, "no answer");
		CHECK(!pthread_join(thread, NULL), "join");
		liar_end(l);
	}
	close(listener);
	quiet();
}

/* Order, overlaps and what came twice are no lies. */
static void disorder(void)
{
	int listener = stream_listen(603, 8), fd, i;
	struct liar *l = liar_up(listener, 603, &fd);
	uint64_t seed = 3;

	CHECK(liar_data(l, 100, 50, 0) == 0, "second");
	CHECK(liar_data(l, 120, 80, 0) == 0, "overlap");
	CHECK(liar_data(l, 50, 60, 0) == 0, "overlap");
	CHECK(recv(fd, l->buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN,
	      "bytes behind a gap");
	CHECK(liar_data(l, 0, 70, 0) == 0, "first");
	CHECK(liar_data(l, 0, 70, 0) == 0, "again");
	get(fd, 1, 0, 200, 200);
	CHECK(liar_data(l, 0, 70, 0) == 0, "again, when it was read");
	for (i = 0; i < 300; i++)
		CHECK(liar_data(l, 200 + rng_below(&seed, 30000),
				1 + rng_below(&seed, 1300), 0) != -2,
		      "no answer");
	CHECK(liar_data(l, 200, 32000, FIN) == 0, "all");
	get(fd, 1, 200, 32200, 5000);
	CHECK(recv(fd, l->buf, 1, 0) == 0, "end");
	close(fd);
	liar_end(l);
	close(listener);
	quiet();
}

/* OPENs that nobody follows up: the listener's backlog is all they take. */
static void flood(void)
{
	int listener = stream_listen(604, 10), i, opened = 0;
	struct liar *l = liar_new(604);

	for (i = 0; i < 300; i++)
		opened += liar_open(l) == 0;
	CHECK(opened == 10, "%d were opened", opened);
	CHECK(metric("host_stream_refused") >= 290, "not counted");
	for (i = 0; i < 10; i++)
		CHECK(close(accept(listener, NULL, NULL)) == 0, "accept");
	close(stream_connect(604));
	/* Requests to the liar are never answered: its end tells. */
	liar_end(l);
	close(listener);
	quiet();
}

/* Answers that are none, to a client and to writes. */
static void wrong_answers(void)
{
	union address a = address(family, server_ip, 605);
	struct sock s = open_sock(family, 0);
	int i;

	bind_sock(&s, 605);
	for (i = 0; i < 4; i++) {
		struct homa_sendmsg_args args = { 0 };
		unsigned char answer[HDR + 16] = { 0x48, 0x53, 1, ANSWER };
		static const size_t sizes[] = { 1, HDR - 1, HDR, HDR + 16 };
		int fd = stream_new(SOCK_NONBLOCK), error = 0;
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		socklen_t size = sizeof(error);

		if (i == 3) /* an edge that wraps */
			memset(answer + HDR - 8, 0xff, 8);
		FAILS(connect(fd, &a.sa, size_of(family)), EINPROGRESS);
		CHECK(receive(&s, 0, 0) == HDR + 16, "OPEN");
		args.id = s.args.id;
		CHECK(!send_raw(s.fd, &s.from, s.from_size, answer, sizes[i],
				&args, 0),
		      "answer");
		CHECK(poll(&p, 1, -1) == 1, "poll");
		CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) &&
			      error == ECONNREFUSED,
		      "%d: error %d", i, error);
		close(fd);
	}
	close_sock(&s);
	quiet();
}

/* An error that the peer may choose is not the program's: some would have it call again. */
static void wrong_errors(void)
{
	union address a = address(family, server_ip, 606);
	struct sock s = open_sock(family, 0);
	static const int errors[] = { EAGAIN, EINTR, EINPROGRESS, 511 };
	size_t i;

	bind_sock(&s, 606);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		struct homa_sendmsg_args args = {
			.completion_cookie = (uint64_t)errors[i],
			.flags = HOMA_SENDMSG_REJECT,
		};
		int fd = stream_new(SOCK_NONBLOCK), error = 0;
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		socklen_t size = sizeof(error);

		FAILS(connect(fd, &a.sa, size_of(family)), EINPROGRESS);
		CHECK(receive(&s, 0, 0) == HDR + 16, "OPEN");
		args.id = s.args.id;
		CHECK(!send_raw(s.fd, &s.from, s.from_size, "", 0, &args, 0),
		      "rejection");
		CHECK(poll(&p, 1, -1) == 1, "poll");
		CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) &&
			      error == ECONNREFUSED,
		      "%d: error %d", errors[i], error);
		close(fd);
	}
	close_sock(&s);
	quiet();
}

/* A peer that sends and answers nothing: requests to it do not become more and more. */
static void mute(void)
{
	int listener = stream_listen(607, 8), fd, n = 0, i;
	struct liar *l = liar_up(listener, 607, &fd);
	uint64_t at = 0, upto;

	for (i = 0; i < 6; i++) {
		for (upto = at + 256 * 1024; at < upto; at += 32768)
			CHECK(liar_data(l, at, 32768, 0) == 0, "data at %llu",
			      (unsigned long long)at);
		get(fd, 1, upto - 256 * 1024, upto, 70000);
	}
	/* The first may take as long as it likes. */
	while (readable(l->s.fd, n ? 300 : -1) &&
	       receive(&l->s, 0, MSG_DONTWAIT) >= 0)
		n++;
	CHECK(n == 1, "%d requests", n);
	close(fd);
	liar_end(l);
	close(listener);
	quiet();
}

const struct check stream_hostile[] = {
	{ "nonsense", nonsense },
	{ "guessed secrets", guesses },
	{ "lies", lies },
	{ "an end while the other end is closed", end_meets_close },
	{ "disorder", disorder },
	{ "a flood of OPEN", flood },
	{ "answers that are none", wrong_answers },
	{ "errors that are none of a stream", wrong_errors },
	{ "a peer that does not answer", mute },
};
const size_t stream_num_hostile = ARRAY_SIZE(stream_hostile);
