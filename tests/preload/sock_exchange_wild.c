// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * HOMA_SENDMSG_RECEIVE as nobody should call it: every combination of flags and fields, and
 * calls whose RPC is aborted, or whose socket is shut or closed, by another thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include "sock_client.h"

/* ---- all combinations ---- */

/* One of the combinations: what differs from a request that is as it should be. */
struct wild {
	uint32_t flags;
	bool answers, cookie, id_beside, reserved, bytes, bare, shut;
};

static bool is_wrong(const struct wild *w)
{
	bool rejects = w->flags & HOMA_SENDMSG_REJECT;

	if (w->reserved || w->bare || (w->flags & HOMA_SENDMSG_ASK) ||
	    (w->flags & 0x80))
		return true;
	if ((w->flags & HOMA_SENDMSG_PRIVATE) && !w->answers && w->id_beside)
		return true;
	if (rejects)
		return w->flags != HOMA_SENDMSG_REJECT || !w->answers ||
		       w->bytes || !w->cookie;
	if (w->answers)
		return w->cookie;
	return !w->bytes;
}

/* Nobody answers what is sent here, so the call has nothing to return. */
static void try_one(const struct wild *w)
{
	struct homa_exchange_args x = {
		.send.flags = w->flags,
		.send.id = w->answers ? 0x12345 : 0,
		.send.completion_cookie = w->cookie ? EBUSY : 0,
		.reserved = w->reserved,
		.recv.id = w->id_beside ? 0x777776 : 0,
	};
	struct sock s = w->bare ? open_bare(family, 0) : open_sock(family, 0);
	bool wrong = is_wrong(w);
	ssize_t n;

	if (w->shut)
		CHECK(!shutdown(s.fd, SHUT_RDWR), "shutdown");
	memcpy(buf, ignore, 1);
	n = sock_exchange(&s, &server, w->bytes ? 10 : 0, &x, MSG_DONTWAIT);
	CHECK(n == -1, "%zd bytes", n);
	if (wrong || w->shut) {
		CHECK((wrong && errno == EINVAL) ||
			      (w->shut && errno == ESHUTDOWN),
		      "error %d", errno);
		CHECK(x.send.id == (w->answers ? 0x12345 : 0), "it was sent");
	} else {
		/* An id that is none of a private RPC is refused when the message has gone. */
		CHECK(errno == (w->id_beside ? EINVAL : ENOMSG), "error %d",
		      errno);
		CHECK(w->answers ? !x.send.id : x.send.id && !(x.send.id & 1),
		      "it was not sent");
		CHECK(!x.recv.id && !x.recv.num_bpages, "an RPC is named");
	}
	close_sock(&s);
}

void check_exchange_flags(void)
{
	static const uint32_t flags[] = {
		0,
		HOMA_SENDMSG_PRIVATE,
		HOMA_SENDMSG_REJECT,
		HOMA_SENDMSG_ASK,
		HOMA_SENDMSG_REJECT | HOMA_SENDMSG_PRIVATE,
		HOMA_SENDMSG_REJECT | HOMA_SENDMSG_ASK,
		HOMA_SENDMSG_ASK | HOMA_SENDMSG_PRIVATE,
		0x80,
	};
	unsigned int i, bits;

	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		for (bits = 0; bits < 128; bits++) {
			const struct wild w = {
				.flags = flags[i],
				.answers = bits & 1,
				.cookie = bits & 2,
				.id_beside = bits & 4,
				.reserved = bits & 8,
				.bytes = bits & 16,
				.bare = bits & 32,
				.shut = bits & 64,
			};

			try_one(&w);
		}
}

/* ---- what other threads do meanwhile ---- */

enum deed { FAILS_IT, SHUTS, CLOSES };

struct meanwhile {
	int fd;
	enum deed deed;
	bool told; /* that the call is about to begin */
};

static void *disturb(void *arg)
{
	struct meanwhile *m = arg;
	struct homa_abort_args all = { .error = ECANCELED };
	struct homa_info info = { 0 };

	/* The request is under way: the call has sent, and waits or soon will. */
	while (!ioctl(m->fd, HOMAIOCINFO, &info) && !info.num_rpcs)
		usleep(1000);
	switch (m->deed) {
	case FAILS_IT:
		CHECK(!ioctl(m->fd, HOMAIOCABORT, &all), "abort");
		break;
	case SHUTS:
		CHECK(!shutdown(m->fd, SHUT_RDWR), "shutdown");
		break;
	case CLOSES:
		CHECK(!close(m->fd), "close");
		break;
	}
	return NULL;
}

static void while_other(enum deed deed, uint32_t flags)
{
	struct homa_exchange_args x = { .send.flags = flags };
	struct sock s = open_sock(family, 0);
	struct meanwhile m = { .fd = s.fd, .deed = deed };
	pthread_t thread;
	ssize_t n;
	int error;

	CHECK(!pthread_create(&thread, NULL, disturb, &m), "thread");
	/* A call on a socket that is closed may last until its response comes. */
	memcpy(buf, deed == CLOSES ? late : ignore, 1);
	n = sock_exchange(&s, &server, 1, &x, 0);
	error = errno;
	pthread_join(thread, NULL);
	CHECK(x.send.id, "it was not sent");
	switch (deed) {
	case FAILS_IT:
		CHECK(n == -1 && error == ECANCELED && x.recv.id == x.send.id,
		      "%zd, error %d, of %llx", n, error,
		      (unsigned long long)x.recv.id);
		break;
	case SHUTS:
		CHECK(n == -1 && error == ESHUTDOWN, "%zd, error %d", n, error);
		break;
	case CLOSES:
		CHECK(n == 1 || (n == -1 && error != EAGAIN), "%zd, error %d",
		      n, error);
		munmap(s.region, s.region_size);
		return;
	}
	close_sock(&s);
}

void check_exchange_meanwhile(void)
{
	unsigned int private;

	for (private = 0; private < 2; private++) {
		uint32_t flags = private ? HOMA_SENDMSG_PRIVATE : 0;

		while_other(FAILS_IT, flags);
		while_other(SHUTS, flags);
		while_other(CLOSES, flags);
	}
}

/* ---- at random ---- */

static void nothing(int number)
{
	(void)number;
}

struct stormy {
	struct sock s;
	uint64_t seed;
	pthread_t main;
};

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % n;
}

static void *storm(void *arg)
{
	struct stormy *t = arg;
	struct sock s = t->s; /* the socket is shared, and what it gave is not */
	unsigned char bytes[3000] = { 0 };
	int i;

	s.args.num_bpages = 0;
	for (i = 0; i < 300; i++) {
		struct homa_exchange_args x = {
			.send.flags = HOMA_SENDMSG_RECEIVE |
				      below(&t->seed, 2) * HOMA_SENDMSG_PRIVATE,
			.send.id = below(&t->seed, 6) ? 0 : s.args.id,
			.send.completion_cookie = below(&t->seed, 3),
			.recv.id = below(&t->seed, 6) ? 0 : s.args.id,
			.recv.num_bpages = s.args.num_bpages,
		};
		struct iovec iov = { bytes, 1 + below(&t->seed, 3000) };
		const union address *to = below(&t->seed, 8) ? &server : &nobody;
		struct homa_abort_args all = { .error = below(&t->seed, 2) * EIO };
		struct msghdr hdr = {
			.msg_name = (void *)(uintptr_t)to,
			.msg_namelen = size_of(family),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &x,
		};

		memcpy(x.recv.bpage_offsets, s.args.bpage_offsets,
		       sizeof(x.recv.bpage_offsets));
		bytes[0] = (unsigned char)(below(&t->seed, 3) ? 0 : *ignore);
		if (sendmsg(s.fd, &hdr, below(&t->seed, 3) ? MSG_DONTWAIT : 0) <
		    0) {
			/* Pages stay the caller's if nothing was taken. */
			bool taken = x.send.id != 0 || x.recv.num_bpages == 0;

			x.recv.num_bpages = taken ? 0 : s.args.num_bpages;
		}
		s.args = x.recv;
		if (!below(&t->seed, 20))
			ioctl(s.fd, HOMAIOCABORT, &all);
		if (!below(&t->seed, 10))
			pthread_kill(t->main, SIGUSR1);
	}
	return NULL;
}

/* Three threads at one socket, with limits and signals; the library and the kernel live on. */
void check_exchange_storm(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct timeval limit = { .tv_usec = 5000 };
	struct homa_abort_args all = { 0 };
	struct sock s = open_sock(family, 0), other = open_sock(family, 0);
	struct stormy ours[3];
	pthread_t threads[3];
	int i;

	CHECK(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)),
	      "SO_RCVTIMEO");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)),
	      "SO_SNDTIMEO");
	for (i = 0; i < 3; i++) {
		ours[i] = (struct stormy){ s, (uint64_t)i + 1, pthread_self() };
		CHECK(!pthread_create(&threads[i], NULL, storm, &ours[i]),
		      "thread");
	}
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	close_sock(&s);
	sock_call(&other, 70000, 5);
	close_sock(&other);
}
