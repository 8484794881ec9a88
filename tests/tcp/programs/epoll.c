// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * epoll: levels, edges, one shot, sets within sets, what comes and goes while a thread waits.
 */
#include "tcp_calls.h"

static int new_set(void)
{
	return (int)MUST(epoll_create1(EPOLL_CLOEXEC));
}

static void control(int set, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(set, operation, fd, &event));
}

/* The events of the only descriptor that is ready within `timeout` ms; 0: none is. */
static uint32_t ready(int set, int fd, int timeout)
{
	struct epoll_event events[4];
	int count = (int)MUST(epoll_wait(set, events, 4, timeout));

	if (!count)
		return 0;
	SAME(count, 1);
	SAME(events[0].data.fd, fd);
	return events[0].events;
}

/* Sends ten bytes whenever it is told to, and closes in the end. */
static void tens(struct tcp_end *end, int times)
{
	int fd = tcp_connect(end);

	for (int i = 0; i < times; i++) {
		tcp_await(end);
		tcp_send(fd, 10, (size_t)i * 10);
	}
	tcp_await(end);
	tcp_close(fd);
}

static void epoll_level__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set();

	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	SAME(ready(set, fd, 0), 0);
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
	SAME(ready(set, fd, 0), EPOLLIN);
	tcp_receive(fd, 4, 0);
	SAME(ready(set, fd, 0), EPOLLIN);
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
	SAME(ready(set, fd, 0), EPOLLIN | EPOLLOUT);
	tcp_receive(fd, 6, 4);
	SAME(ready(set, fd, 0), EPOLLOUT);
	control(set, EPOLL_CTL_MOD, fd, EPOLLRDHUP);
	SAME(ready(set, fd, 0), 0);
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLRDHUP);
	control(set, EPOLL_CTL_DEL, fd, 0);
	SAME(ready(set, fd, 0), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
	tcp_close(set);
}

static void epoll_level__client(struct tcp_end *end)
{
	tens(end, 1);
}

/* An edge for each arrival, also when the former bytes were not taken. */
static void epoll_edge__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set();

	control(set, EPOLL_CTL_ADD, fd,
		EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLOUT);
	SAME(ready(set, fd, 0), 0);
	for (int i = 0; i < 3; i++) {
		tcp_tell(end);
		SAME(ready(set, fd, TCP_PATIENCE) & EPOLLIN, EPOLLIN);
		SAME(ready(set, fd, 0), 0);
	}
	tcp_receive(fd, 30, 0);
	/* Set anew, what is there is told again. */
	control(set, EPOLL_CTL_MOD, fd,
		EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLOUT);
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE) & (EPOLLIN | EPOLLRDHUP),
	     EPOLLIN | EPOLLRDHUP);
	SAME(ready(set, fd, 0), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_edge__client(struct tcp_end *end)
{
	tens(end, 3);
}

/* One event, then silence until the descriptor is armed again. */
static void epoll_oneshot__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set();

	control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT);
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
	SAME(ready(set, fd, 0), 0);
	tcp_tell(end);
	tcp_receive(fd, 15, 0);
	SAME(ready(set, fd, 0), 0);
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
	SAME(ready(set, fd, 0), 0);
	tcp_receive(fd, 5, 15);
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT | EPOLLET);
	SAME(ready(set, fd, 0), 0);
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_oneshot__client(struct tcp_end *end)
{
	tens(end, 2);
}

/* A set can be awaited in another set, and by poll(). */
static void epoll_nested__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), inner = new_set(), outer = new_set();

	control(inner, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(outer, EPOLL_CTL_ADD, inner, EPOLLIN);
	SAME(ready(outer, inner, 0), 0);
	tcp_tell(end);
	SAME(ready(outer, inner, TCP_PATIENCE), EPOLLIN);
	SAME(tcp_ask(inner, POLLIN), POLLIN);
	SAME(tcp_ask(outer, POLLIN), POLLIN);
	SAME(ready(inner, fd, 0), EPOLLIN);
	tcp_receive(fd, 10, 0);
	SAME(ready(inner, fd, 0), 0);
	SAME(ready(outer, inner, 0), 0);
	SAME(tcp_ask(outer, POLLIN), 0);
	tcp_tell(end);
	SAME(tcp_poll(outer, POLLIN), POLLIN);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_nested__client(struct tcp_end *end)
{
	tens(end, 1);
}

static void epoll_misuse__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set(), other;
	struct epoll_event event = { .events = EPOLLIN };

	FAILS(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event), ENOENT);
	FAILS(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL), ENOENT);
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), EEXIST);
	FAILS(epoll_ctl(fd, EPOLL_CTL_ADD, set, &event), EINVAL);
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, 999, &event), EBADF);
	FAILS(epoll_wait(set, &event, 0, 0), EINVAL);
	FAILS(epoll_wait(fd, &event, 1, 0), EINVAL);
	/* A duplicate is an entry of its own, and another set has its own entries. */
	other = (int)MUST(dup(fd));
	control(set, EPOLL_CTL_ADD, other, EPOLLIN);
	control(set, EPOLL_CTL_DEL, fd, 0);
	tcp_tell(end);
	SAME(ready(set, other, TCP_PATIENCE), EPOLLIN);
	tcp_receive(other, 10, 0);
	tcp_tell(end);
	SAME(ready(set, other, TCP_PATIENCE), EPOLLIN);
	tcp_close(other);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_misuse__client(struct tcp_end *end)
{
	tens(end, 1);
}

/* What is closed leaves the set by itself, and its number may come back as another socket. */
static void epoll_closed__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), set = new_set(), first, second;

	tcp_ready();
	first = tcp_accept(listener);
	control(set, EPOLL_CTL_ADD, first, EPOLLIN | EPOLLOUT);
	SAME(ready(set, first, 0), EPOLLOUT);
	tcp_close(first);
	SAME(ready(set, first, 0), 0);
	second = tcp_accept(listener);
	SAME(second, first);
	SAME(ready(set, second, 0), 0);
	control(set, EPOLL_CTL_ADD, second, EPOLLIN);
	tcp_tell(end);
	SAME(ready(set, second, TCP_PATIENCE), EPOLLIN);
	tcp_close(set);
	tcp_expect_eof(second);
	tcp_close(second);
}

static void epoll_closed__client(struct tcp_end *end)
{
	int first = tcp_connect(end), second = tcp_connect(end);

	tcp_expect_eof(first);
	tcp_await(end);
	tcp_close(second);
	tcp_close(first);
}

struct awaiting {
	int set, fd;
};

static void *await_event(void *argument)
{
	struct awaiting *it = argument;

	SAME(ready(it->set, it->fd, TCP_PATIENCE), EPOLLIN);
	return NULL;
}

/* With EPOLLET the outer set tells once of each arrival, whatever is left in the inner one. */
static void nested_edge__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), inner = new_set(), outer = new_set();

	control(inner, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(outer, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLET);
	for (int i = 0; i < 3; i++) {
		SAME(ready(outer, inner, 0), 0);
		tcp_tell(end);
		SAME(ready(outer, inner, TCP_PATIENCE), EPOLLIN);
		SAME(ready(outer, inner, 0), 0);
		SAME(ready(inner, fd, 0), EPOLLIN);
	}
	tcp_receive(fd, 30, 0);
	SAME(ready(inner, fd, 0), 0);
	SAME(ready(outer, inner, 0), 0);
	tcp_tell(end);
	SAME(ready(outer, inner, TCP_PATIENCE), EPOLLIN);
	/* What has left the inner set is nothing in the outer one. */
	control(inner, EPOLL_CTL_DEL, fd, 0);
	control(outer, EPOLL_CTL_MOD, inner, EPOLLIN);
	SAME(ready(outer, inner, 0), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
	tcp_close(inner);
	SAME(ready(outer, inner, 0), 0);
	tcp_close(outer);
}

static void nested_edge__client(struct tcp_end *end)
{
	tens(end, 3);
}

static void *await_by_select(void *argument)
{
	const struct awaiting *it = argument;
	struct timeval patience = { .tv_sec = TCP_PATIENCE / 1000 };
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(it->set, &reads);
	SAME(select(it->set + 1, &reads, NULL, NULL, &patience), 1);
	EXPECT(FD_ISSET(it->set, &reads));
	return NULL;
}

/*
 * Threads that wait at the outermost of three sets, by its own call and by select(), are woken by
 * what arrives, by a pipe in the innermost set, and by a connection that is added there.
 */
static void nested_deep__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), inner = new_set(), middle = new_set();
	struct awaiting it = { .set = new_set(), .fd = middle };
	pthread_t threads[2];
	int ends[2];
	char byte;

	MUST(pipe(ends));
	control(middle, EPOLL_CTL_ADD, inner, EPOLLIN);
	control(it.set, EPOLL_CTL_ADD, middle, EPOLLIN);
	control(inner, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	for (int i = 0; i < 3; i++) {
		SAME(ready(it.set, middle, 0), 0);
		SAME(pthread_create(&threads[0], NULL, await_event, &it), 0);
		SAME(pthread_create(&threads[1], NULL, await_by_select, &it), 0);
		usleep(10000);
		if (i == 0)
			SAME(write(ends[1], "", 1), 1);
		if (i == 1) {
			tcp_tell(end);
			SAME(tcp_poll(fd, POLLIN), POLLIN);
			control(inner, EPOLL_CTL_ADD, fd, EPOLLIN);
		}
		if (i == 2)
			tcp_tell(end);
		SAME(pthread_join(threads[0], NULL), 0);
		SAME(pthread_join(threads[1], NULL), 0);
		SAME(ready(middle, inner, 0), EPOLLIN);
		SAME(ready(inner, i ? fd : ends[0], 0), EPOLLIN);
		if (i)
			tcp_receive(fd, 10, (size_t)(i - 1) * 10);
		else
			SAME(read(ends[0], &byte, 1), 1);
	}
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void nested_deep__client(struct tcp_end *end)
{
	tens(end, 2);
}

/* A descriptor that is added while another thread waits wakes it. */
static void epoll_added__server(struct tcp_end *end)
{
	struct awaiting it = { .set = new_set() };
	pthread_t thread;

	it.fd = tcp_accept_one(end);
	SAME(pthread_create(&thread, NULL, await_event, &it), 0);
	usleep(10000);
	control(it.set, EPOLL_CTL_ADD, it.fd, EPOLLIN);
	tcp_tell(end);
	SAME(pthread_join(thread, NULL), 0);
	tcp_receive(it.fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(it.fd);
	tcp_close(it.fd);
}

static void epoll_added__client(struct tcp_end *end)
{
	tens(end, 1);
}

/* An edge when a full socket takes bytes again. */
static void epoll_room__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set();
	size_t sent;

	control(set, EPOLL_CTL_ADD, fd, EPOLLOUT | EPOLLET);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLOUT);
	sent = tcp_send_full(fd);
	/* Acknowledgements may have made room meanwhile; then the socket is full anew. */
	while (ready(set, fd, 0))
		;
	tcp_tell(end);
	SAME(ready(set, fd, TCP_PATIENCE), EPOLLOUT);
	tcp_send(fd, 1000, sent);
	tcp_close(fd);
}

static void epoll_room__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	static char bytes[65536];
	size_t all = 0;
	ssize_t got;

	tcp_await(end);
	while ((got = MUST(recv(fd, bytes, sizeof(bytes), 0))) > 0) {
		EXPECT(tcp_filled(bytes, (size_t)got, all));
		all += (size_t)got;
	}
	EXPECT(all > 1000);
	tcp_close(fd);
}

/* A set is asked for one event at a time, a connection and a pipe are always ready in it, and it
 * is in another set: they are told in turn. */
static void epoll_in_turn__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set(), outer = new_set();
	int pipes[2];

	MUST(pipe(pipes));
	MUST(write(pipes[1], "x", 1));
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(set, EPOLL_CTL_ADD, pipes[0], EPOLLIN);
	control(outer, EPOLL_CTL_ADD, set, EPOLLIN);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	SAME(ready(outer, set, TCP_PATIENCE), EPOLLIN);
	for (int i = 0; i < 20; i++) {
		struct epoll_event one[2];

		SAME(epoll_wait(set, &one[0], 1, 0), 1);
		SAME(epoll_wait(set, &one[1], 1, 0), 1);
		EXPECT(one[0].data.fd != one[1].data.fd);
		SAME(ready(outer, set, 0), EPOLLIN);
	}
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_in_turn__client(struct tcp_end *end)
{
	tens(end, 1);
}

/* What is ready is told at once, also just after the set was looked at in vain for it: to a wait
 * of no time, and of a descriptor that was just added or armed. A connection is always ready. */
static void epoll_all_told__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set(), pipes[2], others[2];
	const uint32_t once = EPOLLIN | EPOLLONESHOT;
	struct epoll_event events[4];

	MUST(pipe(pipes));
	MUST(pipe(others));
	MUST(write(others[1], "x", 1));
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(set, EPOLL_CTL_ADD, pipes[0], EPOLLIN);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	for (int i = 0; i < 50; i++) {
		char byte;

		SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
		MUST(write(pipes[1], "x", 1));
		SAME(epoll_wait(set, events, 4, 0), 2);
		SAME(read(pipes[0], &byte, 1), 1);
		SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
		control(set, EPOLL_CTL_ADD, others[0], once);
		SAME(epoll_wait(set, events, 4, TCP_PATIENCE), 2);
		SAME(ready(set, fd, TCP_PATIENCE), EPOLLIN);
		control(set, EPOLL_CTL_MOD, others[0], once);
		SAME(epoll_wait(set, events, 4, TCP_PATIENCE), 2);
		control(set, EPOLL_CTL_DEL, others[0], 0);
	}
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void epoll_all_told__client(struct tcp_end *end)
{
	tens(end, 1);
}

/* Many are ready, few are asked for: everybody has a turn. */
static void epoll_fair__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64), set = new_set(), fds[20];
	bool seen[1024] = { 0 };

	tcp_ready();
	for (int i = 0; i < 20; i++) {
		fds[i] = tcp_accept(listener);
		control(set, EPOLL_CTL_ADD, fds[i], EPOLLIN);
	}
	tcp_tell(end);
	tcp_await(end);
	/* What was sent may take longer than all the turns. */
	for (int i = 0; i < 20; i++)
		SAME(tcp_poll(fds[i], POLLIN), POLLIN);
	for (int turns = 0, all = 0; all < 20; turns++) {
		struct epoll_event events[3];
		int count = (int)MUST(epoll_wait(set, events, 3, TCP_PATIENCE));

		EXPECT(count > 0);
		EXPECT(turns < 1000);
		for (int i = 0; i < count; i++) {
			all += !seen[events[i].data.fd];
			seen[events[i].data.fd] = true;
		}
	}
}

static void epoll_fair__client(struct tcp_end *end)
{
	int fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = tcp_connect(end);
	tcp_await(end);
	for (int i = 0; i < 20; i++)
		tcp_send(fds[i], 10, 0);
	tcp_tell(end);
	for (int i = 0; i < 20; i++) {
		char byte;

		/* The server goes away without reading. */
		FAILS(recv(fds[i], &byte, 1, 0), ECONNRESET);
	}
}

#define ROUNDS 60

struct pair_of_waiters {
	int set;
	pthread_barrier_t both;
};

static void *take_one_of_two(void *argument)
{
	struct pair_of_waiters *w = argument;

	for (int i = 0; i < ROUNDS; i++) {
		struct epoll_event event;

		SAME(epoll_wait(w->set, &event, 1, -1), 1);
		tcp_receive(event.data.fd, 1, 0);
		/* The other one has the other socket, or this never ends. */
		pthread_barrier_wait(&w->both);
	}
	return NULL;
}

/* Two threads wait at one set, and ask for one event each: none keeps the other's from it. */
static void two_waiters__server(struct tcp_end *end)
{
	struct pair_of_waiters w = { .set = new_set() };
	int listener = tcp_listening(end, 2), fds[2];
	pthread_t threads[2];

	SAME(pthread_barrier_init(&w.both, NULL, 3), 0);
	tcp_ready();
	for (int i = 0; i < 2; i++) {
		fds[i] = tcp_accept(listener);
		control(w.set, EPOLL_CTL_ADD, fds[i], EPOLLIN | EPOLLET);
	}
	for (int i = 0; i < 2; i++)
		SAME(pthread_create(&threads[i], NULL, take_one_of_two, &w), 0);
	for (int i = 0; i < ROUNDS; i++) {
		tcp_tell(end);
		pthread_barrier_wait(&w.both);
	}
	for (int i = 0; i < 2; i++) {
		SAME(pthread_join(threads[i], NULL), 0);
		tcp_close(fds[i]);
	}
}

static void two_waiters__client(struct tcp_end *end)
{
	int fds[2] = { tcp_connect(end), tcp_connect(end) };

	for (int i = 0; i < ROUNDS; i++) {
		tcp_await(end);
		tcp_send(fds[0], 1, 0);
		tcp_send(fds[1], 1, 0);
	}
	tcp_expect_eof(fds[0]);
	tcp_expect_eof(fds[1]);
}

const struct tcp_case tcp_epoll_cases[] = {
	TCP_CASE(epoll_level),
	TCP_CASE(epoll_edge),
	TCP_CASE(epoll_oneshot),
	TCP_CASE(epoll_nested),
	TCP_CASE(nested_edge),
	TCP_CASE(nested_deep),
	TCP_CASE(epoll_misuse),
	TCP_CASE(epoll_closed),
	TCP_CASE(epoll_added),
	TCP_CASE(epoll_room),
	TCP_CASE(epoll_in_turn),
	TCP_CASE(epoll_all_told),
	TCP_CASE(epoll_fair),
	TCP_CASE(two_waiters),
	{ 0 },
};
