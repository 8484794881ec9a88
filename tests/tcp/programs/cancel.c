// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Threads that are cancelled in calls: while they wait, before they begin, and at any moment.
 * What they leave behind is whole: no lock is taken, no descriptor left, no signal held back.
 */
#include <sys/select.h>
#include "tcp_calls.h"

#define PIECES 10
#define ROUNDS 40

enum call {
	BY_RECV,
	BY_READ,
	BY_READV,
	BY_RECVMSG,
	BY_RECVMMSG,
	BY_SEND,
	BY_WRITE,
	BY_SENDMSG,
	BY_POLL,
	BY_PPOLL,
	BY_SELECT,
	BY_EPOLL,
	CALLS,
};

struct caller {
	int fd;
	enum call by;
	bool at_once; /* cancelled before it calls */
	_Atomic pid_t thread;
};

static char bytes[8 << 20];
static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void do_message(const struct caller *c)
{
	struct iovec pieces[PIECES];
	struct mmsghdr many = { .msg_hdr = { .msg_iov = pieces,
					     .msg_iovlen = PIECES } };
	bool sends = c->by == BY_SENDMSG;

	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ bytes, sends ? sizeof(bytes) : 100 };
	if (sends)
		sendmsg(c->fd, &many.msg_hdr, MSG_NOSIGNAL);
	else if (c->by == BY_READV)
		readv(c->fd, pieces, PIECES);
	else if (c->by == BY_RECVMSG)
		recvmsg(c->fd, &many.msg_hdr, MSG_WAITALL);
	else
		recvmmsg(c->fd, &many, 1, 0, NULL);
}

static void do_wait(const struct caller *c)
{
	struct pollfd entry = { .fd = c->fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int set;
	fd_set in;

	switch (c->by) {
	case BY_POLL:
		poll(&entry, 1, -1);
		break;
	case BY_PPOLL:
		ppoll(&entry, 1, NULL, NULL);
		break;
	case BY_SELECT:
		FD_ZERO(&in);
		FD_SET(c->fd, &in);
		select(c->fd + 1, &in, NULL, NULL, NULL);
		break;
	default:
		set = (int)MUST(epoll_create1(0));
		MUST(epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &event));
		pthread_cleanup_push((void (*)(void *))(void *)close,
				     (void *)(intptr_t)set);
		epoll_wait(set, &event, 1, -1);
		pthread_cleanup_pop(1);
	}
}

static void do_call(const struct caller *c)
{
	switch (c->by) {
	case BY_RECV:
		recv(c->fd, bytes, 100, 0);
		break;
	case BY_READ:
		if (read(c->fd, bytes, 100) < 0)
			return;
		break;
	case BY_SEND:
		send(c->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
		break;
	case BY_WRITE:
		if (write(c->fd, bytes, sizeof(bytes)) < 0)
			return;
		break;
	case BY_READV:
	case BY_RECVMSG:
	case BY_RECVMMSG:
	case BY_SENDMSG:
		do_message(c);
		break;
	default:
		do_wait(c);
	}
}

/* The end of a thread that is cancelled: a handler may run. */
static void at_end(void *argument)
{
	(void)argument;
	raise(SIGUSR1);
}

static void *call(void *argument)
{
	struct caller *c = argument;

	pthread_cleanup_push(at_end, NULL);
	if (c->at_once) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		pthread_cancel(pthread_self());
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	c->thread = gettid();
	do_call(c);
	pthread_cleanup_pop(0);
	return NULL;
}

static bool sends(enum call by)
{
	return by == BY_SEND || by == BY_WRITE || by == BY_SENDMSG;
}

static void cancel_call(struct caller *c)
{
	int first = dup(c->fd), last;
	pthread_t thread;
	void *result;

	c->thread = 0;
	tcp_close(first);
	SAME(pthread_create(&thread, NULL, call, c), 0);
	while (!c->thread)
		usleep(1000);
	if (!c->at_once) {
		tcp_await_sleep(c->thread);
		SAME(pthread_cancel(thread), 0);
	}
	SAME(pthread_join(thread, &result), 0);
	if (result != PTHREAD_CANCELED)
		WRONG("call %d was not cancelled", c->by);
	last = (int)MUST(dup(c->fd));
	if (last != first)
		WRONG("call %d left descriptor %d", c->by, first);
	tcp_close(last);
}

static void cancel_all__client(struct tcp_end *end)
{
	for (int i = 0; i < CALLS; i++) {
		int fd = tcp_connect(end);

		tcp_send(fd, 10, 0);
		tcp_await(end);
		while (MUST(recv(fd, bytes, sizeof(bytes), 0)) > 0)
			;
		tcp_close(fd);
	}
}

/* In each call that waits. The connection ends when its descriptor is closed, as nothing of the
 * thread has it. */
static void cancelled_waiting__server(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_signal };
	int listener = tcp_listening(end, 16);
	struct caller c = { 0 };

	MUST(sigaction(SIGUSR1, &action, NULL));
	tcp_ready();
	for (int i = 0; i < CALLS; i++) {
		c.fd = tcp_accept(listener);
		c.by = i;
		tcp_receive(c.fd, 10, 0);
		cancel_call(&c);
		SAME(signals, i + 1);
		if (!sends(i))
			SAME(send(c.fd, "x", 1, 0), 1);
		tcp_close(c.fd);
		tcp_tell(end);
	}
	tcp_close(listener);
}

#define cancelled_waiting__client cancel_all__client

/* In each call that need not wait, as it begins: nothing is moved. */
static void cancelled_at_once__server(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_signal };
	struct caller c = { .at_once = true };
	int listener = tcp_listening(end, 16);

	MUST(sigaction(SIGUSR1, &action, NULL));
	tcp_ready();
	for (int i = 0; i < CALLS; i++) {
		c.fd = tcp_accept(listener);
		c.by = i;
		SAME(tcp_poll(c.fd, POLLIN), POLLIN);
		cancel_call(&c);
		SAME(signals, i + 1);
		tcp_receive(c.fd, 10, 0);
		tcp_close(c.fd);
		tcp_tell(end);
	}
	tcp_close(listener);
}

#define cancelled_at_once__client cancel_all__client

static void *accept_one(void *argument)
{
	struct caller *c = argument;

	c->thread = gettid();
	accept(c->fd, NULL, NULL);
	return NULL;
}

static void *connect_one(void *argument)
{
	struct tcp_end *end = argument;
	int fd = tcp_socket(end);

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	connect(fd, &end->address.any, end->length);
	return NULL;
}

/* In accept() and connect(). */
static void cancelled_opening__server(struct tcp_end *end)
{
	struct caller c = { .fd = tcp_listening(end, 4) };
	pthread_t thread;
	void *result;
	int fd;

	SAME(pthread_create(&thread, NULL, accept_one, &c), 0);
	while (!c.thread)
		usleep(1000);
	tcp_await_sleep(c.thread);
	SAME(pthread_cancel(thread), 0);
	SAME(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
	tcp_ready();
	fd = tcp_accept(c.fd);
	tcp_close(c.fd);
	tcp_echo(fd);
}

static void cancelled_opening__client(struct tcp_end *end)
{
	pthread_t thread;
	void *result;
	int fd;

	SAME(pthread_create(&thread, NULL, connect_one, end), 0);
	SAME(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
	fd = tcp_connect(end);
	tcp_greet(fd);
	tcp_close(fd);
}

static void *talk(void *argument)
{
	const struct caller *c = argument;
	char piece[1000] = "";

	for (;;) {
		if (write(c->fd, piece, sizeof(piece)) < 0)
			return NULL;
		recv(c->fd, piece, sizeof(piece), MSG_WAITALL);
	}
}

static void cancelled_anywhere__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 16), other;

	tcp_ready();
	other = tcp_accept(listener);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = tcp_accept(listener);
		char piece[1000];
		ssize_t got;

		/* The last bytes may have been reset. */
		while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
			send(fd, piece, (size_t)got, MSG_NOSIGNAL);
		tcp_close(fd);
		tcp_receive(other, 1, 7);
		tcp_send(other, 1, 7);
	}
	tcp_expect_eof(other);
	tcp_close(other);
	tcp_close(listener);
}

/* At moments that nobody knows: other connections go on. */
static void cancelled_anywhere__client(struct tcp_end *end)
{
	int other = tcp_connect(end);

	for (int i = 0; i < ROUNDS; i++) {
		struct caller c = { .fd = tcp_connect(end) };
		pthread_t thread;

		SAME(pthread_create(&thread, NULL, talk, &c), 0);
		usleep((unsigned int)(1000 + i * 37));
		SAME(pthread_cancel(thread), 0);
		SAME(pthread_join(thread, NULL), 0);
		tcp_close(c.fd);
		tcp_greet(other);
	}
	tcp_close(other);
}

const struct tcp_case tcp_cancel_cases[] = {
	TCP_CASE(cancelled_waiting),
	TCP_CASE(cancelled_at_once),
	TCP_CASE(cancelled_opening),
	TCP_CASE(cancelled_anywhere),
	{ 0 },
};
