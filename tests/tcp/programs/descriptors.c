// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Descriptors of one socket: duplicates, replaced ones, the last that closes.
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "tcp_calls.h"

static void echo__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

#define dup_closed__server echo__server

/* The connection lives as long as one of its descriptors. */
static void dup_closed__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), other = (int)MUST(dup(fd));

	tcp_greet(fd);
	tcp_close(fd);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EBADF);
	tcp_greet(other);
	SAME(fcntl(other, F_GETFD), 0);
	fd = (int)MUST(fcntl(other, F_DUPFD_CLOEXEC, 200));
	EXPECT(fd >= 200);
	SAME(fcntl(fd, F_GETFD), FD_CLOEXEC);
	tcp_close(other);
	tcp_greet(fd);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define dup_flags__server echo__server

/* O_NONBLOCK and options are the socket's, FD_CLOEXEC is the descriptor's. */
static void dup_flags__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), other = (int)MUST(dup3(fd, 300, O_CLOEXEC));
	char byte;

	SAME(other, 300);
	SAME(fcntl(other, F_GETFD), FD_CLOEXEC);
	SAME(fcntl(fd, F_GETFD), 0);
	tcp_nonblocking(fd, true);
	FAILS(recv(other, &byte, 1, 0), EAGAIN);
	tcp_nonblocking(other, false);
	tcp_set(other, IPPROTO_TCP, TCP_NODELAY, 1);
	SAME(tcp_get(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	FAILS(dup3(fd, fd, 0), EINVAL);
	SAME(dup2(fd, fd), fd);
	tcp_send(fd, 1, 7);
	tcp_receive(other, 1, 7);
	tcp_close(fd);
	tcp_close(other);
}

/* dup2() over a connection closes it. */
static void dup_over__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), first, second;

	tcp_ready();
	first = tcp_accept(listener);
	second = tcp_accept(listener);
	tcp_greet(second);
	tcp_expect_eof(first);
	tcp_send(second, 1, 5);
	tcp_expect_eof(second);
	tcp_close(first);
	tcp_close(second);
}

static void dup_over__client(struct tcp_end *end)
{
	int first = tcp_connect(end), second = tcp_connect(end);

	tcp_greet(second);
	SAME(dup2(second, first), first);
	tcp_receive(first, 1, 5);
	tcp_close(second);
	tcp_close(first);
}

/* A file may take a connection's place, and a connection a file's. */
static void dup_files__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_ready();
	fd = tcp_accept(listener);
	tcp_receive(fd, 100, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void dup_files__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), file = (int)MUST(open("/dev/null", O_RDWR));
	char byte;

	SAME(dup2(fd, file), file);
	tcp_close(fd);
	tcp_send(file, 100, 0);
	fd = (int)MUST(open("/dev/zero", O_RDWR));
	SAME(dup2(fd, file), file);
	SAME(read(file, &byte, 1), 1);
	SAME(byte, 0);
	SAME(write(file, &byte, 1), 1);
	FAILS(recv(file, &byte, 1, 0), ENOTSOCK);
	tcp_close(fd);
	tcp_close(file);
}

/* Numbers are used again: the lowest free one is given, whatever it was before. */
static void numbers__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64);

	tcp_ready();
	for (int i = 0; i < 50; i++)
		tcp_echo(tcp_accept(listener));
}

static void numbers__client(struct tcp_end *end)
{
	int first = -1;

	for (int i = 0; i < 50; i++) {
		int fd = tcp_connect(end), file;
		struct stat what;

		if (first < 0)
			first = fd;
		SAME(fd, first);
		MUST(fstat(fd, &what));
		EXPECT(S_ISSOCK(what.st_mode));
		tcp_greet(fd);
		tcp_close(fd);
		file = (int)MUST(open("/dev/null", O_RDONLY));
		SAME(file, first);
		FAILS(send(file, "x", 1, 0), ENOTSOCK);
		tcp_close(file);
	}
}

/* Sockets of other families are as they were. */
static void other_families__server(struct tcp_end *end)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int pair[2], packets = (int)MUST(
			     socket(end->address.any.sa_family, SOCK_DGRAM, 0));
	int local = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	socklen_t length = sizeof(name);
	union tcp_address own = { .any.sa_family = end->address.any.sa_family };

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	tcp_send(pair[0], 1000, 0);
	tcp_receive(pair[1], 1000, 0);
	MUST(shutdown(pair[1], SHUT_WR));
	tcp_expect_eof(pair[0]);
	SAME(tcp_get(pair[0], SOL_SOCKET, SO_DOMAIN), AF_UNIX);
	MUST(bind(packets, &own.any, end->length));
	length = sizeof(own);
	MUST(getsockname(packets, &own.any, &length));
	MUST(connect(packets, &own.any, length));
	tcp_send(packets, 100, 3);
	tcp_receive(packets, 100, 3);
	FAILS(listen(packets, 1), EOPNOTSUPP);
	MUST(bind(local, (struct sockaddr *)&name, sizeof(sa_family_t)));
	MUST(listen(local, 1));
	FAILS(socketpair(AF_INET, SOCK_STREAM, 0, pair), EOPNOTSUPP);
	FAILS(socket(AF_INET, SOCK_STREAM, 250), EPROTONOSUPPORT);
	tcp_echo(tcp_accept_one(end));
}

static void other_families__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

#define NUMBERS 1024

/* Ways in which a program closes all that it does not know. */
static void close_one_by_one(void)
{
	for (int fd = 3; fd < NUMBERS; fd++)
		close(fd);
}

static void close_a_range(void)
{
	close_range(3, ~0u, 0);
}

static void close_all_from(void)
{
	closefrom(3);
}

/* As inetd does it: a child makes a connection its standard input and output, closes the rest, and
 * runs a program. */
static void serve_by(const char *program, const char *word, int listener,
		     void (*close_rest)(void))
{
	int fd = tcp_accept(listener);
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		MUST(dup2(fd, 0));
		MUST(dup2(fd, 1));
		close_rest();
		execlp(program, program, word, NULL);
		_exit(1);
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

static void closes_rest__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	serve_by("cat", NULL, listener, close_one_by_one);
	serve_by("cat", NULL, listener, close_a_range);
	serve_by("cat", NULL, listener, close_all_from);
	tcp_close(listener);
}

static void closes_rest__client(struct tcp_end *end)
{
	for (int i = 0; i < 3; i++)
		tcp_talk(tcp_connect(end));
}

static void keep_open(void)
{
}

/* The program that is run reads and writes by stdio. */
static void standard_streams__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	serve_by("sed", "s/hello/you said hello/", listener, keep_open);
	tcp_close(listener);
}

static void standard_streams__client(struct tcp_end *end)
{
	static const char wanted[] = "you said hello\nyou said hello\n";
	int fd = tcp_connect(end);
	char text[sizeof(wanted)];

	SAME(write(fd, "hello\nhello\n", 12), 12);
	MUST(shutdown(fd, SHUT_WR));
	SAME(recv(fd, text, sizeof(text), MSG_WAITALL), sizeof(text) - 1);
	SAME(memcmp(text, wanted, sizeof(text) - 1), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void close_unknown(int known)
{
	for (int fd = 3; fd < NUMBERS; fd++)
		if (fd != known)
			close(fd);
}

/* Numbers that the program chooses are its own. */
static void take_numbers(void)
{
	for (int fd = 10; fd < 100; fd++)
		SAME(dup2(2, fd), fd);
}

/* What the program has goes on when it has closed all that it does not know. */
static void closes_unknown__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	close_unknown(listener);
	tcp_ready();
	fd = tcp_accept(listener);
	SAME(fd, listener + 1);
	close_unknown(fd);
	take_numbers();
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void closes_unknown__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	close_unknown(fd);
	take_numbers();
	tcp_greet(fd);
	tcp_close(fd);
}

/* close() by an instruction of the program's own, which nobody sees. */
static long close_by_instruction(int fd)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_close), "D"(fd)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(SYS_close, fd);
#endif
}

/* A program closes a connection by the system call itself, and its next socket has the number. */
static void closed_unseen__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	SAME(close_by_instruction(fd), 0);
	while (tcp_socket(end) != fd)
		;
	tcp_await(end);
}

static void closed_unseen__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_tell(end);
	tcp_close(fd);
}

/* Node closes so: by the number of the call. The peer hears of it, and the other calls are those of
 * the same socket, too. */
static void called_by_number__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd, other;
	char byte;

	tcp_ready();
	fd = (int)MUST(syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC));
	SAME(syscall(SYS_write, fd, "x", 1), 1);
	SAME(syscall(SYS_read, fd, &byte, 1), 1);
	SAME(byte, 'y');
	other = (int)MUST(syscall(SYS_dup, fd));
	SAME(syscall(SYS_close, fd), 0);
	FAILS(syscall(SYS_close, fd), EBADF);
	SAME(syscall(SYS_sendto, other, "z", 1, MSG_NOSIGNAL, NULL, 0), 1);
	SAME(syscall(SYS_close, other), 0);
	tcp_await(end);
	tcp_close(listener);
}

static void called_by_number__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	SAME(recv(fd, &byte, 1, 0), 1);
	SAME(send(fd, "y", 1, 0), 1);
	SAME(recv(fd, &byte, 1, 0), 1);
	SAME(byte, 'z');
	tcp_expect_eof(fd);
	tcp_tell(end);
	tcp_close(fd);
}

/* Standard streams that were used before a connection is put in their place. */
static void stdio_replaced__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());
	char line[20];

	if (!child) {
		printf("early ");
		MUST(dup2(fd, 0));
		MUST(dup2(fd, 1));
		printf("hello\n");
		SAME(fflush(stdout), 0);
		EXPECT(fgets(line, sizeof(line), stdin));
		EXPECT(!strcmp(line, "world\n"));
		_exit(0);
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

static void stdio_replaced__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char bytes[12];

	SAME(recv(fd, bytes, 12, MSG_WAITALL), 12);
	EXPECT(!memcmp(bytes, "early hello\n", 12));
	SAME(send(fd, "world\n", 6, 0), 6);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_descriptor_cases[] = {
	TCP_CASE(dup_closed),
	TCP_CASE(dup_flags),
	TCP_CASE(dup_over),
	TCP_CASE(dup_files),
	TCP_CASE(numbers),
	TCP_CASE(other_families),
	TCP_CASE(closes_rest),
	TCP_CASE(closes_unknown),
	TCP_CASE(standard_streams),
	TCP_CASE(closed_unseen),
	TCP_CASE(called_by_number),
	TCP_CASE(stdio_replaced),
	{ 0 },
};
