// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Echo server over Homa sockets, in the ways that servers are written:
 *
 *	sock_server 4|6 PORT block|poll|epoll|edge|threads|fork|nonblock|
 *	exchange|deaf
 *
 * "fork" leaves the serving to a child, as daemons do; "fork-poll" and
 * "fork-epoll" to one that waits before its parent ends, "handover" to one whose
 * parent closes the socket and lives on; "exchange" answers and receives in one
 * call; "deaf" takes no requests. Prints "ready"
 * when it serves.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "sock.h"

static struct sock shared;

static void respond(struct sock *s, const struct homa_recvmsg_args *request,
		    const union address *to, struct iovec *iov, int n)
{
	struct homa_sendmsg_args args = { .id = request->id };
	struct msghdr hdr = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = size_of(s->family),
		.msg_iov = iov,
		.msg_iovlen = (size_t)n,
		.msg_control = &args,
	};

	CHECK(sendmsg(s->fd, &hdr, 0) == 0, "no response");
}

static void serve(struct sock *s, ssize_t size)
{
	struct iovec iov[HOMA_MAX_BPAGES];
	int n;

	if (size < 0)
		return;
	CHECK(s->args.id & 1, "a client's id at the server");
	CHECK(!s->args.completion_cookie, "a request with a cookie");
	n = pieces(s, (size_t)size, iov);
	switch (*(unsigned char *)iov[0].iov_base) {
	case IGNORE:
		return;
	case LATE:
		usleep(100000);
		break;
	case TELL:
		memcpy((unsigned char *)iov[0].iov_base + 1, &s->args.id,
		       sizeof(s->args.id));
		break;
	}
	respond(s, &s->args, &s->from, iov, n);
}

static void *block(void *arg)
{
	struct sock s = shared;

	(void)arg;
	for (;;) {
		ssize_t n = receive(&s, 0, 0);

		CHECK(n >= 0, "receive");
		serve(&s, n);
	}
	return NULL;
}

static void with_poll(void)
{
	for (;;) {
		ssize_t n;

		if (!readable(shared.fd, -1))
			continue;
		n = receive(&shared, 0, MSG_DONTWAIT);
		CHECK(n >= 0 || errno == EAGAIN, "receive");
		serve(&shared, n);
	}
}

static void with_epoll(unsigned int flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	ssize_t n;

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, shared.fd, &event), "epoll_ctl");
	for (;;) {
		CHECK(epoll_wait(ep, &event, 1, -1) == 1 || errno == EINTR,
		      "epoll_wait");
		do {
			n = receive(&shared, 0, MSG_DONTWAIT);
			CHECK(n >= 0 || errno == EAGAIN, "receive");
			serve(&shared, n);
		} while (n >= 0 && (flags & EPOLLET));
	}
}

static void nonblock(void)
{
	int flags = fcntl(shared.fd, F_GETFL);

	CHECK((flags & O_ACCMODE) == O_RDWR, "%x", flags);
	CHECK(!fcntl(shared.fd, F_SETFL, flags | O_NONBLOCK), "F_SETFL");
	CHECK(fcntl(shared.fd, F_GETFL) & O_NONBLOCK, "F_GETFL");
	for (;;) {
		ssize_t n = receive(&shared, 0, 0);

		CHECK(n >= 0 || errno == EAGAIN, "receive");
		serve(&shared, n);
		if (n < 0)
			readable(shared.fd, -1);
	}
}

/* Answers what @s has received, @size bytes, and receives the next; its size. */
static ssize_t exchange_one(struct sock *s, ssize_t size)
{
	struct homa_exchange_args args = {
		.send = { .id = s->args.id, .flags = HOMA_SENDMSG_RECEIVE },
		.recv = s->args,
	};
	struct iovec iov[HOMA_MAX_BPAGES];
	struct msghdr hdr = { .msg_iov = iov, .msg_control = &args };

	hdr.msg_iovlen = (size_t)pieces(s, (size_t)size, iov);
	if (*(unsigned char *)iov[0].iov_base == LATE)
		usleep(100000);
	args.recv.id = 0;
	memcpy(&args.peer, &s->from, size_of(s->family));
	size = sendmsg(s->fd, &hdr, 0);
	s->args = args.recv;
	memcpy(&s->from, &args.peer, sizeof(args.peer));
	return size;
}

static void exchange(void)
{
	struct sock s = shared;
	ssize_t n = receive(&s, 0, 0);

	for (;;) {
		CHECK(n > 0, "receive");
		if (*(s.region + s.args.bpage_offsets[0]) == IGNORE)
			n = receive(&s, 0, 0);
		else
			n = exchange_one(&s, n);
	}
}

/* As daemons do; who awaits the end of our output must not wait for a child. */
static void detach(void)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	CHECK(dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2,
	      "dup2");
	close(null);
}

static void daemonize(int late_end)
{
	if (fork()) {
		usleep(late_end ? 300000 : 0);
		_exit(0);
	}
	detach();
}

/* The child has the socket now; we live on without it. */
static void hand_over(void)
{
	pid_t child = fork();

	if (!child) {
		detach();
		return;
	}
	close_sock(&shared);
	waitpid(child, NULL, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how;
	pthread_t thread;
	int i, no = 0;

	CHECK(argc == 4, "arguments");
	how = argv[3];
	shared = open_sock(*argv[1] == '4' ? AF_INET : AF_INET6, 0);
	bind_sock(&shared, atoi(argv[2]));
	CHECK(strcmp(how, "deaf") || !setsockopt(shared.fd, IPPROTO_HOMA,
						 SO_HOMA_SERVER, &no, sizeof(no)),
	      "SO_HOMA_SERVER");
	printf("ready\n");
	fflush(stdout);
	if (!strncmp(how, "fork", 4)) {
		daemonize(how[4] == '-');
		how += how[4] == '-' ? 5 : 4;
	}
	if (!strcmp(how, "handover"))
		hand_over();
	if (!strcmp(how, "poll"))
		with_poll();
	if (!strcmp(how, "epoll"))
		with_epoll(0);
	if (!strcmp(how, "edge"))
		with_epoll(EPOLLET);
	if (!strcmp(how, "nonblock"))
		nonblock();
	if (!strcmp(how, "exchange"))
		exchange();
	for (i = 0; !strcmp(how, "threads") && i < 3; i++)
		CHECK(!pthread_create(&thread, NULL, block, NULL), "thread");
	block(NULL);
	return 0;
}
