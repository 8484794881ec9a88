// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Signal handlers: they may read, write, poll and close in the middle of such calls, and what
 * the program has set up for them is what it gets.
 */
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include "tcp_calls.h"

#define ROUNDS 3000

static int own; /* the handler's connection */
static volatile sig_atomic_t runs, closed_one;
static int to_close = -1;

static void use_own(int number)
{
	struct pollfd entry = { .fd = own, .events = POLLIN };
	int before = errno;
	char bytes[64];

	(void)number;
	if (to_close >= 0) {
		close(to_close);
		to_close = -1;
		closed_one = 1;
	}
	if (send(own, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		runs++;
	if (poll(&entry, 1, 0) == 1 &&
	    recv(own, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		runs++;
	errno = before;
}

static void handler_works__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 16), ends[3], i;
	pid_t echo;

	tcp_ready();
	for (i = 0; i < 3; i++)
		ends[i] = tcp_accept(listener);
	echo = (pid_t)MUST(fork());
	if (!echo) {
		close(ends[0]);
		close(ends[2]);
		tcp_echo(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	tcp_expect_eof(ends[2]);
	tcp_echo(ends[0]);
	tcp_child_ended(echo);
}

/* A handler that comes all the time uses a connection in the middle of calls of another one. */
static void handler_works__client(struct tcp_end *end)
{
	struct sigaction act = { .sa_handler = use_own, .sa_flags = SA_RESTART };
	struct itimerval often = { .it_interval.tv_usec = 100,
				   .it_value.tv_usec = 100 };
	struct itimerval never = { 0 };
	int fd = tcp_connect(end), i;
	char byte;

	own = tcp_connect(end);
	to_close = tcp_connect(end);
	MUST(sigaction(SIGALRM, &act, NULL));
	MUST(setitimer(ITIMER_REAL, &often, NULL));
	for (i = 0; i < ROUNDS || runs < 100; i++) {
		tcp_send(fd, 100, (size_t)i);
		tcp_receive(fd, 100, (size_t)i);
	}
	MUST(setitimer(ITIMER_REAL, &never, NULL));
	EXPECT(closed_one);
	MUST(shutdown(own, SHUT_WR));
	while (MUST(recv(own, &byte, 1, 0)))
		;
	tcp_close(own);
	tcp_close(fd);
}

/* ---- what is set up ---- */

static volatile sig_atomic_t told_value, was_blocked, nested, depth;

static void look(int number, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)context;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	was_blocked = sigismember(&mask, SIGUSR2) +
		      2 * sigismember(&mask, number) +
		      4 * sigismember(&mask, SIGHUP);
	told_value = info->si_value.sival_int;
}

static void again(int number)
{
	if (++depth == 1)
		raise(number);
	nested = depth > nested ? depth : nested;
	depth--;
}

static void handler_set_up__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

static void handler_set_up__client(struct tcp_end *end)
{
	struct sigaction act = { .sa_sigaction = look, .sa_flags = SA_SIGINFO },
			 old;
	int fd = tcp_connect(end);

	sigaddset(&act.sa_mask, SIGUSR2);
	MUST(sigaction(SIGUSR1, &act, NULL));
	MUST(sigaction(SIGUSR1, NULL, &old));
	EXPECT(old.sa_sigaction == look);
	SAME(old.sa_flags & (SA_SIGINFO | SA_RESTART | SA_NODEFER), SA_SIGINFO);
	SAME(sigismember(&old.sa_mask, SIGUSR2), 1);
	SAME(sigismember(&old.sa_mask, SIGHUP), 0);
	MUST(sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 4711 }));
	SAME(told_value, 4711);
	SAME(was_blocked, 3);
	/* Once, and within itself. */
	act = (struct sigaction){ .sa_handler = again, .sa_flags = SA_NODEFER };
	MUST(sigaction(SIGUSR1, &act, NULL));
	raise(SIGUSR1);
	SAME(nested, 2);
	act = (struct sigaction){ .sa_handler = again,
				  .sa_flags = (int)SA_RESETHAND };
	MUST(sigaction(SIGUSR2, &act, NULL));
	depth = 1;
	raise(SIGUSR2);
	MUST(sigaction(SIGUSR2, NULL, &old));
	EXPECT(old.sa_handler == SIG_DFL);
	EXPECT(signal(SIGUSR2, again) == SIG_DFL);
	EXPECT(signal(SIGUSR2, SIG_IGN) == again);
	raise(SIGUSR2);
	FAILS(sigaction(SIGKILL, &act, NULL), EINVAL);
	tcp_greet(fd);
	tcp_close(fd);
}

/* ---- calls that a signal ends ---- */

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	ticks++;
}

struct target {
	pthread_t thread;
	pid_t number;
};

static void *send_signal(void *arg)
{
	const struct target *target = arg;

	tcp_await_sleep(target->number);
	pthread_kill(target->thread, SIGUSR1);
	return NULL;
}

static void handler_ends_calls__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_await(end);
	tcp_close(fd);
}

/* recv() without SA_RESTART or with a time limit, and poll() always. */
static void handler_ends_calls__client(struct tcp_end *end)
{
	struct target target = { .thread = pthread_self(),
				 .number = (pid_t)syscall(SYS_gettid) };
	struct timeval long_time = { .tv_sec = 1000 };
	struct sigaction act = { .sa_handler = tick };
	int fd = tcp_connect(end), which;
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	pthread_t thread;
	char byte;

	for (which = 0; which < 3; which++) {
		act.sa_flags = which ? SA_RESTART : 0;
		MUST(sigaction(SIGUSR1, &act, NULL));
		SAME(pthread_create(&thread, NULL, send_signal, &target), 0);
		if (which == 1)
			FAILS(poll(&entry, 1, -1), EINTR);
		else
			FAILS(recv(fd, &byte, 1, 0), EINTR);
		SAME(pthread_join(thread, NULL), 0);
		SAME(ticks, which + 1);
		MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time,
				sizeof(long_time)));
	}
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- handlers that do not come back ---- */

#define JUMPS 12

static sigjmp_buf back;

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

/* Other values lie where the call that was left had its own. */
static void overwrite_stack(void)
{
	volatile char bytes[16384];

	memset((char *)bytes, 0x5a, sizeof(bytes));
}

static void sleep_in_call(int fd, int set, int which)
{
	struct pollfd entries[2] = { { .fd = fd, .events = POLLIN },
				     { .fd = set, .events = POLLIN } };
	struct epoll_event event;
	char byte;

	if (which == 0)
		epoll_wait(set, &event, 1, -1);
	else if (which == 1)
		poll(entries, 2, -1);
	else if (which == 2)
		poll(entries, 1, -1);
	else
		recv(fd, &byte, 1, 0);
}

static void *greet_for_long(void *argument)
{
	for (int i = 0; i < JUMPS * 4; i++)
		tcp_greet(*(int *)argument);
	return NULL;
}

/* A handler jumps out of calls that sleep; this thread and others go on as before. */
static void handler_jumps__client(struct tcp_end *end)
{
	struct target target = { .thread = pthread_self(),
				 .number = (pid_t)syscall(SYS_gettid) };
	struct sigaction act = { .sa_handler = jump };
	int fd = tcp_connect(end), other = tcp_connect(end);
	int set = (int)MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t thread, sender;
	volatile int i;

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	MUST(sigaction(SIGUSR1, &act, NULL));
	SAME(pthread_create(&thread, NULL, greet_for_long, &other), 0);
	for (i = 0; i < JUMPS; i++) {
		SAME(pthread_create(&sender, NULL, send_signal, &target), 0);
		if (!sigsetjmp(back, 1)) {
			sleep_in_call(fd, set, i % 4);
			WRONG("the call has come back");
		}
		overwrite_stack();
		SAME(pthread_join(sender, NULL), 0);
	}
	SAME(pthread_join(thread, NULL), 0);
	tcp_tell(end);
	tcp_greet(fd);
	SAME(tcp_ask(set, POLLIN), 0);
	tcp_tell(end);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	tcp_expect_eof(fd);
	tcp_expect_eof(other);
	tcp_close(fd);
	tcp_close(other);
}

static void handler_jumps__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 2), fd, other;

	tcp_ready();
	fd = tcp_accept(listener);
	other = tcp_accept(listener);
	for (int i = 0; i < JUMPS * 4; i++)
		tcp_greet(other);
	/* Nothing comes to the other connection before. */
	tcp_await(end);
	tcp_greet(fd);
	tcp_await(end);
	tcp_close(fd);
	tcp_close(other);
}

const struct tcp_case tcp_handler_cases[] = {
	TCP_CASE(handler_jumps),
	TCP_CASE(handler_works),
	TCP_CASE(handler_set_up),
	TCP_CASE(handler_ends_calls),
	{ 0 },
};
