// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the cases of tcp_calls have in common: sockets, bytes, and waiting for the other end.
 */
#include <stdarg.h>
#include <sys/un.h>
#include <time.h>
#include "tcp_calls.h"

#define PIECE 65536

void tcp_wrong(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("%s:%d: ", file, line);
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	fflush(stdout);
	_exit(1);
}

int tcp_socket(const struct tcp_end *end)
{
	return (int)MUST(socket(end->address.any.sa_family, SOCK_STREAM, 0));
}

int tcp_bound(const struct tcp_end *end)
{
	int fd = tcp_socket(end);

	tcp_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(bind(fd, &end->address.any, end->length));
	return fd;
}

int tcp_listening(const struct tcp_end *end, int backlog)
{
	int fd = tcp_bound(end);

	MUST(listen(fd, backlog));
	return fd;
}

void tcp_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

int tcp_accept(int listener)
{
	return (int)MUST(accept(listener, NULL, NULL));
}

int tcp_accept_one(const struct tcp_end *end)
{
	int listener = tcp_listening(end, 16);
	int fd;

	tcp_ready();
	fd = tcp_accept(listener);
	tcp_close(listener);
	return fd;
}

int tcp_connect(const struct tcp_end *end)
{
	int fd = tcp_socket(end);

	MUST(connect(fd, &end->address.any, end->length));
	return fd;
}

void tcp_close(int fd)
{
	MUST(close(fd));
}

void tcp_nonblocking(int fd, bool on)
{
	int flags = (int)MUST(fcntl(fd, F_GETFL));

	MUST(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void tcp_set(int fd, int level, int name, int value)
{
	MUST(setsockopt(fd, level, name, &value, sizeof(value)));
}

int tcp_get(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	MUST(getsockopt(fd, level, name, &value, &length));
	SAME(length, sizeof(value));
	return value;
}

void tcp_fill(void *bytes, size_t length, size_t position)
{
	unsigned char *to = bytes;

	for (size_t i = 0; i < length; i++)
		to[i] = (unsigned char)((position + i) % 251);
}

bool tcp_filled(const void *bytes, size_t length, size_t position)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < length; i++)
		if (from[i] != (unsigned char)((position + i) % 251))
			return false;
	return true;
}

void tcp_send(int fd, size_t length, size_t position)
{
	unsigned char piece[PIECE];

	while (length > 0) {
		size_t want = length < sizeof(piece) ? length : sizeof(piece);
		ssize_t sent;

		tcp_fill(piece, want, position);
		sent = MUST(send(fd, piece, want, MSG_NOSIGNAL));
		EXPECT(sent > 0);
		length -= (size_t)sent;
		position += (size_t)sent;
	}
}

void tcp_receive(int fd, size_t length, size_t position)
{
	unsigned char piece[PIECE];

	while (length > 0) {
		size_t want = length < sizeof(piece) ? length : sizeof(piece);
		ssize_t got = MUST(recv(fd, piece, want, 0));

		if (got == 0)
			WRONG("the stream ended %zu bytes too early", length);
		EXPECT(tcp_filled(piece, (size_t)got, position));
		length -= (size_t)got;
		position += (size_t)got;
	}
}

void tcp_expect_eof(int fd)
{
	char byte;

	SAME(recv(fd, &byte, 1, 0), 0);
}

void tcp_greet(int fd)
{
	tcp_send(fd, 1, 7);
	tcp_receive(fd, 1, 7);
}

void tcp_talk(int fd)
{
	tcp_send(fd, 5000, 0);
	tcp_receive(fd, 5000, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

void tcp_echo(int fd)
{
	char piece[PIECE];
	ssize_t got;

	while ((got = MUST(recv(fd, piece, sizeof(piece), 0))) > 0)
		for (ssize_t done = 0; done < got;)
			done += MUST(send(fd, piece + done,
					  (size_t)(got - done), MSG_NOSIGNAL));
	tcp_close(fd);
}

void tcp_echo_later(struct tcp_end *end)
{
	int fd = tcp_bound(end);

	tcp_ready();
	tcp_await(end);
	MUST(listen(fd, 4));
	tcp_tell(end);
	tcp_echo(tcp_accept(fd));
}

size_t tcp_send_full(int fd)
{
	return tcp_send_full_from(fd, 0);
}

size_t tcp_send_full_from(int fd, size_t position)
{
	unsigned char piece[PIECE];
	size_t all = 0;

	while (all < TCP_MUCH) {
		ssize_t sent;

		tcp_fill(piece, sizeof(piece), position + all);
		sent = send(fd, piece, sizeof(piece),
			    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			SAME(errno, EAGAIN);
			return all;
		}
		all += (size_t)sent;
	}
	WRONG("a socket whose reader sleeps took %zu bytes", all);
}

short tcp_poll(int fd, short events)
{
	struct pollfd entry = { .fd = fd, .events = events };

	SAME(poll(&entry, 1, TCP_PATIENCE), 1);
	return entry.revents;
}

short tcp_ask(int fd, short events)
{
	struct pollfd entry = { .fd = fd, .events = events };

	MUST(poll(&entry, 1, 0));
	return entry.revents;
}

/* The server waits for the other end's process, which tries until it is there. */
static void join(struct tcp_end *end)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd;

	if (end->sync >= 0)
		return;
	EXPECT(end->path);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", end->path);
	fd = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	if (end->server) {
		MUST(bind(fd, (struct sockaddr *)&name, sizeof(name)));
		MUST(listen(fd, 1));
		end->sync = (int)MUST(accept(fd, NULL, NULL));
		close(fd);
		return;
	}
	while (connect(fd, (struct sockaddr *)&name, sizeof(name)))
		usleep(2000);
	end->sync = fd;
}

void tcp_tell(struct tcp_end *end)
{
	join(end);
	SAME(write(end->sync, "", 1), 1);
}

void tcp_await(struct tcp_end *end)
{
	char byte;

	join(end);
	SAME(read(end->sync, &byte, 1), 1);
}

void tcp_child_ended(pid_t child)
{
	int status;

	SAME(waitpid(child, &status, 0), child);
	SAME(status, 0);
}

void tcp_await_sleep(pid_t thread)
{
	char path[64], text[512], *state;
	int asleep = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	/* Several times in a row: it may sleep for a moment for a page or a lock. */
	for (int i = 0; asleep < 5 && i < TCP_PATIENCE / 5; i++) {
		int fd = (int)MUST(open(path, O_RDONLY));
		ssize_t got = MUST(read(fd, text, sizeof(text) - 1));

		close(fd);
		text[got] = 0;
		state = strrchr(text, ')');
		EXPECT(state);
		asleep = state[2] == 'S' ? asleep + 1 : 0;
		usleep(5000);
	}
	SAME(asleep, 5);
}
