// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Several threads that wait, each for its own connection or all for one: what comes wakes the
 * thread that waits for it, and leaves the others asleep. The kernel counts how often a thread has
 * slept.
 */
#include <limits.h>
#include <sched.h>
#include "tcp_calls.h"

#define THREADS 4
#define EVENTS 300
/* The one of them for whom something comes. */
#define BUSY 2
/* The most wake-ups of all other threads together. */
#define MOST_OTHERS (EVENTS / 10)
/* How often the events come; the round with the fewest wake-ups counts. */
#define ROUNDS 3

enum way {
	IN_SETS,
	IN_RECV,
	IN_POLL,
	IN_POLL_WITH_PIPE,
	IN_ONE_SET,
};

/** struct sleeper - a thread of the server, which sends back each byte of its connection */
struct sleeper {
	/* How it waits. */
	enum way way;
	/* Its connection, and the set in which it waits. */
	int fd, set;
	/* A pipe into which nobody writes. */
	int pipe[2];
	_Atomic pid_t thread;
};

static int new_set(int fd, uint32_t events)
{
	int set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	return set;
}

static void await_bytes(const struct sleeper *s)
{
	struct pollfd fds[2] = { { .fd = s->fd, .events = POLLIN },
				 { .fd = s->pipe[0], .events = POLLIN } };
	struct epoll_event event;

	if (s->way == IN_SETS || s->way == IN_ONE_SET)
		SAME(epoll_wait(s->set, &event, 1, -1), 1);
	else if (s->way == IN_POLL || s->way == IN_POLL_WITH_PIPE)
		SAME(poll(fds, s->way == IN_POLL ? 1 : 2, -1), 1);
}

static void *send_back(void *argument)
{
	struct sleeper *s = argument;
	ssize_t got;
	char byte;

	s->thread = gettid();
	for (;;) {
		await_bytes(s);
		got = recv(s->fd, &byte, 1,
			   s->way == IN_ONE_SET ? MSG_DONTWAIT : 0);
		if (!got)
			return NULL;
		/* Another thread may have been quicker. */
		if (got < 0)
			SAME(errno, EAGAIN);
		else
			SAME(send(s->fd, &byte, 1, MSG_NOSIGNAL), 1);
	}
}

/* How often the thread has gone to sleep so far. */
static long sleeps_of(const struct sleeper *s)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	char path[64], text[4096], *line;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)s->thread);
	fd = (int)MUST(open(path, O_RDONLY));
	got = MUST(read(fd, text, sizeof(text) - 1));
	close(fd);
	text[got] = 0;
	line = strstr(text, name);
	EXPECT(line);
	return atol(line + sizeof(name) - 1);
}

static void begin(struct sleeper *s, pthread_t *thread)
{
	MUST(pipe(s->pipe));
	if (s->way == IN_SETS)
		s->set = new_set(s->fd, EPOLLIN);
	SAME(pthread_create(thread, NULL, send_back, s), 0);
	while (!s->thread)
		usleep(1000);
}

static void await_all_asleep(const struct sleeper *s, long *sleeps)
{
	for (int i = 0; i < THREADS; i++)
		tcp_await_sleep(s[i].thread);
	for (int i = 0; i < THREADS; i++)
		sleeps[i] = sleeps_of(&s[i]);
}

/* Serve a client by threads that wait in this way. Returns how often the threads have slept that
 * wait for something else; @all: how often all have. Each is that of the round with the fewest:
 * threads also sleep while another program keeps the one from its processor that has a lock. */
static long serve(struct tcp_end *end, enum way way, long *all)
{
	struct sleeper s[THREADS] = { 0 };
	int listener = tcp_listening(end, THREADS);
	long before[THREADS], after[THREADS], others = LONG_MAX;
	pthread_t threads[THREADS];

	tcp_ready();
	for (int i = 0; i < THREADS; i++)
		s[i] = (struct sleeper){ .way = way, .fd = tcp_accept(listener) };
	for (int i = 0; i < THREADS; i++)
		begin(&s[i], &threads[i]);
	tcp_tell(end);
	tcp_await(end);
	*all = LONG_MAX;
	for (int round = 0; round < ROUNDS; round++) {
		long now = 0, busy;

		await_all_asleep(s, before);
		tcp_tell(end);
		tcp_await(end);
		await_all_asleep(s, after);
		for (int i = 0; i < THREADS; i++)
			now += after[i] - before[i];
		busy = after[BUSY] - before[BUSY];
		others = now - busy < others ? now - busy : others;
		*all = now < *all ? now : *all;
	}
	tcp_tell(end);
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	return others;
}

static void call(struct tcp_end *end, bool in_turn)
{
	int fds[THREADS];

	for (int i = 0; i < THREADS; i++)
		fds[i] = tcp_connect(end);
	tcp_await(end);
	for (int i = 0; i < THREADS; i++)
		tcp_greet(fds[i]);
	tcp_tell(end);
	tcp_await(end);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < EVENTS; i++)
			tcp_greet(fds[in_turn ? i % THREADS : BUSY]);
		tcp_tell(end);
		tcp_await(end);
	}
	for (int i = 0; i < THREADS; i++)
		tcp_close(fds[i]);
}

static void call_one(struct tcp_end *end)
{
	call(end, false);
}

/* Serves EVENTS events for one thread, and sees that the others sleep. */
static void others_sleep(struct tcp_end *end, enum way way)
{
	long all, others = serve(end, way, &all);

	if (others > MOST_OTHERS)
		WRONG("%d events woke other threads %ld times", EVENTS, others);
}

static void wakes_in_sets__server(struct tcp_end *end)
{
	others_sleep(end, IN_SETS);
}

#define wakes_in_sets__client call_one

static void wakes_in_recv__server(struct tcp_end *end)
{
	others_sleep(end, IN_RECV);
}

#define wakes_in_recv__client call_one

static void wakes_in_poll__server(struct tcp_end *end)
{
	others_sleep(end, IN_POLL);
}

#define wakes_in_poll__client call_one

static void wakes_with_pipes__server(struct tcp_end *end)
{
	others_sleep(end, IN_POLL_WITH_PIPE);
}

#define wakes_with_pipes__client call_one

/* What comes for one after the other wakes few more: never all of them. */
static void wakes_in_turn__server(struct tcp_end *end)
{
	long all;

	serve(end, IN_SETS, &all);
	if (all > 5 * EVENTS / 2)
		WRONG("%d events woke threads %ld times", EVENTS, all);
}

static void wakes_in_turn__client(struct tcp_end *end)
{
	call(end, true);
}

/* Of the threads that wait at one set for an edge, each arrival wakes one. */
static void wakes_one_of_set__server(struct tcp_end *end)
{
	struct sleeper s[THREADS] = { 0 };
	long before[THREADS], after[THREADS], all = LONG_MAX;
	pthread_t threads[THREADS];
	int fd = tcp_accept_one(end);
	int set = new_set(fd, EPOLLIN | EPOLLET);

	for (int i = 0; i < THREADS; i++) {
		s[i] = (struct sleeper){ .way = IN_ONE_SET, .fd = fd, .set = set };
		begin(&s[i], &threads[i]);
	}
	for (int round = 0; round < ROUNDS; round++) {
		long now = 0;

		await_all_asleep(s, before);
		tcp_tell(end);
		tcp_await(end);
		await_all_asleep(s, after);
		for (int i = 0; i < THREADS; i++)
			now += after[i] - before[i];
		all = now < all ? now : all;
	}
	if (all > 3 * EVENTS / 2)
		WRONG("%d events woke threads %ld times", EVENTS, all);
	for (int i = 0; i < THREADS; i++) {
		SAME(pthread_cancel(threads[i]), 0);
		SAME(pthread_join(threads[i], NULL), 0);
	}
	tcp_tell(end);
	tcp_expect_eof(fd);
}

static void wakes_one_of_set__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < EVENTS; i++)
			tcp_greet(fd);
		tcp_tell(end);
		tcp_await(end);
	}
	tcp_close(fd);
}

/* ---- several threads that wait in one set for one connection ---- */

/** struct shared_set - a set, and what its threads were told */
struct shared_set {
	/* The set, its connection, and a pipe that ends the threads. */
	int set, fd, pipe[2];
	/* What the connection is watched for. */
	uint32_t events;
	/* Threads that were told and have not armed the connection anew. */
	_Atomic int inside;
	/* How often the connection was told. */
	_Atomic int told;
	/* Bytes that were read. */
	_Atomic size_t position;
};

static void watch(const struct shared_set *w, int operation, int fd,
		  uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(w->set, operation, fd, &event));
}

/* Start the threads that run @each. */
static void share(struct shared_set *w, pthread_t threads[THREADS],
		  void *(*each)(void *))
{
	w->set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
	MUST(pipe(w->pipe));
	watch(w, EPOLL_CTL_ADD, w->pipe[0], EPOLLIN);
	watch(w, EPOLL_CTL_ADD, w->fd, w->events);
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_create(&threads[i], NULL, each, w), 0);
}

static void join_all(const struct shared_set *w, const pthread_t threads[THREADS])
{
	SAME(write(w->pipe[1], "", 1), 1);
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_join(threads[i], NULL), 0);
}

/* Wait for the connection; false: the threads shall end. */
static bool is_told(struct shared_set *w)
{
	struct epoll_event event;

	SAME(epoll_wait(w->set, &event, 1, -1), 1);
	return event.data.fd == w->fd;
}

static void *read_alone(void *argument)
{
	struct shared_set *w = argument;

	while (is_told(w)) {
		unsigned char bytes[7];
		ssize_t got;

		SAME(w->inside++, 0);
		got = recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		EXPECT(got >= 0 || errno == EAGAIN);
		if (got > 0) {
			EXPECT(tcp_filled(bytes, (size_t)got, w->position));
			w->position += (size_t)got;
		}
		/* The end of the stream ends the threads. */
		if (!got && !w->told++)
			SAME(write(w->pipe[1], "", 1), 1);
		w->inside--;
		watch(w, EPOLL_CTL_MOD, w->fd, w->events);
	}
	return NULL;
}

/* With EPOLLONESHOT no two threads are told of the connection at once, while bytes come. */
static void wakes_oneshot__server(struct tcp_end *end)
{
	struct shared_set w = { .fd = tcp_accept_one(end),
				.events = EPOLLIN | EPOLLONESHOT };
	pthread_t threads[THREADS];

	share(&w, threads, read_alone);
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	SAME(w.position, EVENTS * 10);
	tcp_close(w.fd);
}

static void wakes_oneshot__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	for (int i = 0; i < EVENTS; i++) {
		tcp_send(fd, 10, (size_t)i * 10);
		sched_yield();
	}
	tcp_close(fd);
}

static void *count_edges(void *argument)
{
	struct shared_set *w = argument;

	while (is_told(w)) {
		tcp_receive(w->fd, 10, 0);
		/* What the peer acknowledges of it is no edge. */
		tcp_send(w->fd, 10, 0);
		w->told++;
	}
	return NULL;
}

/* With EPOLLET one thread is told of each arrival, once. */
static void wakes_edges__server(struct tcp_end *end)
{
	struct shared_set w = { .fd = tcp_accept_one(end),
				.events = EPOLLIN | EPOLLET };
	pthread_t threads[THREADS];

	share(&w, threads, count_edges);
	tcp_await(end);
	join_all(&w, threads);
	SAME(w.told, EVENTS);
	tcp_close(w.fd);
}

static void wakes_edges__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	for (int i = 0; i < EVENTS; i++) {
		tcp_send(fd, 10, 0);
		tcp_receive(fd, 10, 0);
	}
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_wake_cases[] = {
	TCP_CASE(wakes_in_sets),
	TCP_CASE(wakes_in_recv),
	TCP_CASE(wakes_in_poll),
	TCP_CASE(wakes_with_pipes),
	TCP_CASE(wakes_in_turn),
	TCP_CASE(wakes_one_of_set),
	TCP_CASE(wakes_oneshot),
	TCP_CASE(wakes_edges),
	{ 0 },
};
