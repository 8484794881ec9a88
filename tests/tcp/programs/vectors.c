// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * All the other calls that move bytes: vectors, messages, files, pipes, stdio.
 */
#include <sys/sendfile.h>
#include <sys/time.h>
#include "tcp_calls.h"

#define FILE_LENGTH 500000

/* Three pieces of a buffer, one of them empty. */
static void pieces(struct iovec *out, char *bytes, size_t length)
{
	out[0] = (struct iovec){ bytes, length / 3 };
	out[1] = (struct iovec){ bytes + length / 3, 0 };
	out[2] = (struct iovec){ bytes + length / 3, length - length / 3 };
}

static void vectors__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	struct iovec iov[3];
	char bytes[900];
	size_t all = 0;

	while (all < sizeof(bytes)) {
		ssize_t got;

		pieces(iov, bytes + all, sizeof(bytes) - all);
		got = MUST(readv(fd, iov, 3));
		EXPECT(got > 0);
		all += (size_t)got;
	}
	EXPECT(tcp_filled(bytes, sizeof(bytes), 0));
	pieces(iov, bytes, sizeof(bytes));
	SAME(writev(fd, iov, 3), sizeof(bytes));
	tcp_expect_eof(fd);
	SAME(readv(fd, iov, 3), 0);
	tcp_close(fd);
}

static void vectors__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	/* The compiler need not know that it is wrong. */
	volatile int wrong = -1;
	struct iovec iov[3];
	char bytes[900];

	tcp_fill(bytes, sizeof(bytes), 0);
	pieces(iov, bytes, sizeof(bytes));
	SAME(writev(fd, iov, 3), sizeof(bytes));
	FAILS(writev(fd, iov, wrong), EINVAL);
	tcp_receive(fd, sizeof(bytes), 0);
	tcp_close(fd);
}

static void messages__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	struct iovec iov[3];
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 3 };
	char bytes[900], control[64];

	pieces(iov, bytes, sizeof(bytes));
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	SAME(recvmsg(fd, &message, MSG_WAITALL), sizeof(bytes));
	EXPECT(tcp_filled(bytes, sizeof(bytes), 0));
	SAME(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
	SAME(message.msg_controllen, 0);
	message.msg_control = NULL;
	SAME(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(bytes));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void messages__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	struct iovec iov[3];
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 3 };
	char bytes[900];

	tcp_fill(bytes, sizeof(bytes), 0);
	pieces(iov, bytes, sizeof(bytes));
	SAME(sendmsg(fd, &message, 0), sizeof(bytes));
	tcp_receive(fd, sizeof(bytes), 0);
	tcp_close(fd);
}

/* Several messages in a call; of a stream they are pieces. */
static void several_messages__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	struct mmsghdr messages[4] = { 0 };
	struct iovec iov[4];
	char bytes[400];
	size_t all = 0;

	while (all < sizeof(bytes)) {
		int count;

		for (size_t i = 0; i < 4; i++) {
			iov[i] = (struct iovec){ bytes + 100 * i, 100 };
			messages[i].msg_hdr.msg_iov = &iov[i];
			messages[i].msg_hdr.msg_iovlen = 1;
		}
		count = (int)MUST(recvmmsg(fd, messages, 4, MSG_WAITFORONE, NULL));
		EXPECT(count > 0);
		for (int i = 0; i < count; i++) {
			/* The end of the stream is a message, too: of no length. */
			EXPECT(messages[i].msg_len > 0 || all == sizeof(bytes));
			EXPECT(tcp_filled(iov[i].iov_base, messages[i].msg_len,
					  all));
			all += messages[i].msg_len;
		}
	}
	SAME(all, sizeof(bytes));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void several_messages__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	struct mmsghdr messages[4] = { 0 };
	struct iovec iov[4];
	char bytes[400];

	tcp_fill(bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ bytes + 100 * i, 100 };
		messages[i].msg_hdr =
			(struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	SAME(sendmmsg(fd, messages, 4, 0), 4);
	for (size_t i = 0; i < 4; i++)
		SAME(messages[i].msg_len, 100);
	tcp_close(fd);
}

static void to_addresses__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* sendto() without an address, and recvfrom(), whose address a stream does not fill in. */
static void to_addresses__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char bytes[10];

	SAME(sendto(fd, "abcdefghij", 10, 0, NULL, 0), 10);
	SAME(recvfrom(fd, bytes, 10, MSG_WAITALL, NULL, NULL), 10);
	SAME(memcmp(bytes, "abcdefghij", 10), 0);
	FAILS(lseek(fd, 0, SEEK_SET), ESPIPE);
	FAILS(pread(fd, bytes, 1, 0), ESPIPE);
	tcp_greet(fd);
	tcp_close(fd);
}

static int filled_file(void)
{
	char path[] = "/tmp/tcp-calls-XXXXXX";
	int file = (int)MUST(mkstemp(path));
	static char bytes[FILE_LENGTH];

	unlink(path);
	tcp_fill(bytes, sizeof(bytes), 0);
	SAME(write(file, bytes, sizeof(bytes)), sizeof(bytes));
	return file;
}

static void receive_file__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, FILE_LENGTH, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define sendfile__server receive_file__server

/* From an offset of its own, then from the file's. */
static void sendfile__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), file = filled_file();
	off_t at = 0;

	while (at < FILE_LENGTH / 2)
		EXPECT(sendfile(fd, file, &at, (size_t)(FILE_LENGTH / 2 - at)) >
		       0);
	SAME(lseek(file, 0, SEEK_CUR), FILE_LENGTH);
	SAME(lseek(file, FILE_LENGTH / 2, SEEK_SET), FILE_LENGTH / 2);
	while (MUST(sendfile(fd, file, NULL, FILE_LENGTH)) > 0)
		;
	SAME(lseek(file, 0, SEEK_CUR), FILE_LENGTH);
	tcp_close(fd);
}

#define splice__client sendfile_nonblocking__client
#define sendfile_nonblocking__server receive_file__server

/* A non-blocking sender is told how much went. */
static void sendfile_nonblocking__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), file = filled_file();
	off_t at = 0;

	tcp_nonblocking(fd, true);
	while (at < FILE_LENGTH) {
		ssize_t sent = sendfile(fd, file, &at, FILE_LENGTH);

		if (sent < 0) {
			SAME(errno, EAGAIN);
			EXPECT(tcp_poll(fd, POLLOUT) & POLLOUT);
		}
	}
	SAME(at, FILE_LENGTH);
	tcp_close(fd);
}

/* Socket to pipe; the pipe is read like any other. */
static void splice__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2];
	static char bytes[65536];
	size_t all = 0;
	ssize_t moved;

	MUST(pipe(ends));
	while ((moved = MUST(splice(fd, NULL, ends[1], NULL, 60000, 0))) > 0) {
		SAME(read(ends[0], bytes, sizeof(bytes)), moved);
		EXPECT(tcp_filled(bytes, (size_t)moved, all));
		all += (size_t)moved;
	}
	SAME(all, FILE_LENGTH);
	tcp_close(fd);
}

/* stdio over a socket, as line-based protocols are often served. */
static void stdio__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	FILE *in = fdopen(fd, "r"), *out = fdopen((int)MUST(dup(fd)), "w");
	char line[100];

	EXPECT(in && out);
	while (fgets(line, sizeof(line), in)) {
		fprintf(out, "you said %s", line);
		fflush(out);
	}
	EXPECT(!ferror(in));
	SAME(fclose(out), 0);
	SAME(fclose(in), 0);
}

static void stdio__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char text[20];

	for (int i = 0; i < 3; i++) {
		MUST(dprintf(fd, "hello %d\n", i));
		SAME(recv(fd, text, 17, MSG_WAITALL), 17);
		SAME(memcmp(text, "you said hello ", 15), 0);
		SAME(text[15], '0' + i);
	}
	tcp_close(fd);
}

/* preadv2() and pwritev2() are readv() and writev() with flags; a socket has no places. */
static void vectors_at__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char bytes[100];
	struct iovec iov[2] = { { bytes, 40 }, { bytes + 40, 60 } };

	FAILS(preadv2(fd, iov, 2, -1, RWF_NOWAIT), EAGAIN);
	FAILS(preadv2(fd, iov, 2, 0, 0), ESPIPE);
	FAILS(pwritev2(fd, iov, 2, 0, 0), ESPIPE);
	FAILS(preadv(fd, iov, 2, 0), ESPIPE);
	FAILS(pread(fd, bytes, 10, 0), ESPIPE);
	FAILS(preadv2(fd, iov, 2, -1, 1 << 30), EOPNOTSUPP);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	SAME(preadv2(fd, iov, 2, -1, 0), 100);
	EXPECT(tcp_filled(bytes, 100, 0));
	SAME(pwritev2(fd, iov, 2, -1, 0), 100);
	SAME(preadv2(fd, iov, 2, -1, 0), 0);
	tcp_close(fd);
}

static void vectors_at__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 100, 0);
	tcp_receive(fd, 100, 0);
	tcp_close(fd);
}

static void nothing(int number)
{
	(void)number;
}

/* sendmmsg() ends with a message of which it has sent a part: what follows is not sent in the place
 * of the rest. */
static void messages_in_part__server(struct tcp_end *end)
{
	static char bytes[TCP_MUCH];
	struct iovec all = { bytes, sizeof(bytes) }, one = { bytes, 1 };
	struct mmsghdr messages[] = {
		{ .msg_hdr = { .msg_iov = &all, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &one, .msg_iovlen = 1 } },
	};
	struct sigaction act = { .sa_handler = nothing };
	struct itimerval soon = { .it_value = { .tv_usec = 200000 } };
	int fd = tcp_accept_one(end);

	MUST(sigaction(SIGALRM, &act, NULL));
	MUST(setitimer(ITIMER_REAL, &soon, NULL));
	SAME(sendmmsg(fd, messages, 2, 0), 1);
	EXPECT(messages[0].msg_len > 0 && messages[0].msg_len < sizeof(bytes));
	tcp_tell(end);
	tcp_close(fd);
}

static void messages_in_part__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_close(fd);
}

const struct tcp_case tcp_vector_cases[] = {
	TCP_CASE(vectors),
	TCP_CASE(vectors_at),
	TCP_CASE(messages),
	TCP_CASE(several_messages),
	TCP_CASE(messages_in_part),
	TCP_CASE(to_addresses),
	TCP_CASE(sendfile),
	TCP_CASE(sendfile_nonblocking),
	TCP_CASE(splice),
	TCP_CASE(stdio),
	{ 0 },
};
