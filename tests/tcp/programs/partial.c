// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Calls that move less than was asked for, or nothing: ended by a signal, by a time limit or by
 * a full buffer.
 */
#include <sys/sendfile.h>
#include "tcp_calls.h"

/* A thread in a call that waits, and what came of it. */
struct mover {
	int fd;
	bool sends;
	int flags;
	size_t wanted;
	_Atomic pid_t thread;
	ssize_t result;
	int error;
	char *bytes;
};

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void handle_signal(int flags)
{
	struct sigaction action = { .sa_handler = count_signal,
				    .sa_flags = flags };

	MUST(sigaction(SIGUSR1, &action, NULL));
}

static void *move(void *argument)
{
	struct mover *m = argument;

	m->thread = gettid();
	errno = 0;
	m->result = m->sends ? send(m->fd, m->bytes, m->wanted, m->flags) :
			       recv(m->fd, m->bytes, m->wanted, m->flags);
	m->error = errno;
	return NULL;
}

/* Begin the call in a thread, and go on when it sleeps. */
static pthread_t begin(struct mover *m)
{
	pthread_t thread;

	m->thread = 0;
	m->result = -2;
	SAME(pthread_create(&thread, NULL, move, m), 0);
	while (!m->thread)
		usleep(1000);
	tcp_await_sleep(m->thread);
	return thread;
}

static void await_bytes(int fd, int bytes)
{
	int waiting = 0;

	while (waiting < bytes)
		MUST(ioctl(fd, FIONREAD, &waiting));
}

/* ---- files that are none ---- */

static void sendfile_wrong__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* The input of sendfile() is a file in which one can go about; else nothing is read from it. */
static void sendfile_wrong__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), ends[2], folder;
	off_t offset = 0;
	char bytes[5];

	MUST(pipe(ends));
	SAME(write(ends[1], "12345", 5), 5);
	FAILS(sendfile(fd, ends[0], NULL, 5), EINVAL);
	FAILS(sendfile(fd, ends[0], &offset, 5), ESPIPE);
	FAILS(sendfile(fd, fd, NULL, 5), EINVAL);
	FAILS(sendfile(fd, ends[1], NULL, 5), EBADF);
	FAILS(sendfile(fd, 999, NULL, 5), EBADF);
	SAME(read(ends[0], bytes, 5), 5);
	folder = (int)MUST(open("/", O_RDONLY | O_DIRECTORY));
	FAILS(sendfile(fd, folder, NULL, 5), EINVAL);
	offset = -1;
	folder = (int)MUST(open("/proc/self/exe", O_RDONLY));
	FAILS(sendfile(fd, folder, &offset, 5), EINVAL);
	offset = 1;
	FAILS(sendfile(fd, folder, &offset, (size_t)INT64_MAX + 1), EINVAL);
	FAILS(sendfile(fd, folder, &offset, SIZE_MAX), EINVAL);
	SAME(sendfile(fd, folder, &offset, 3), 3);
	SAME(offset, 4);
	SAME(recv(fd, bytes, 3, MSG_WAITALL), 3);
	EXPECT(!memcmp(bytes, "ELF", 3));
	tcp_close(fd);
}

/* ---- receiving ---- */

/* MSG_PEEK with MSG_WAITALL waits for all bytes, and takes none. */
static void peek_waits__server(struct tcp_end *end)
{
	char bytes[10000];
	struct mover m = { .fd = tcp_accept_one(end),
			   .flags = MSG_PEEK | MSG_WAITALL,
			   .wanted = sizeof(bytes),
			   .bytes = bytes };
	pthread_t thread;

	await_bytes(m.fd, 400);
	thread = begin(&m);
	tcp_tell(end);
	SAME(pthread_join(thread, NULL), 0);
	SAME(m.result, sizeof(bytes));
	EXPECT(tcp_filled(bytes, sizeof(bytes), 0));
	tcp_receive(m.fd, sizeof(bytes), 0);
	/* At the end of the stream there are fewer. */
	tcp_tell(end);
	SAME(recv(m.fd, bytes, 100, MSG_PEEK | MSG_WAITALL), 7);
	tcp_receive(m.fd, 7, 0);
	tcp_expect_eof(m.fd);
	tcp_close(m.fd);
}

static void peek_waits__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 400, 0);
	tcp_await(end);
	tcp_send(fd, 9600, 400);
	tcp_await(end);
	tcp_send(fd, 7, 0);
	tcp_close(fd);
}

static void receive_signalled(struct tcp_end *end, struct mover *m, int bytes,
			      int flags)
{
	pthread_t thread;

	handle_signal(flags);
	await_bytes(m->fd, bytes);
	thread = begin(m);
	SAME(pthread_kill(thread, SIGUSR1), 0);
	if (!bytes && flags == SA_RESTART) {
		tcp_await_sleep(m->thread);
		tcp_tell(end);
	}
	SAME(pthread_join(thread, NULL), 0);
}

/* A signal ends a receive that has something, whatever SA_RESTART says; else that counts. */
static void receive_signalled__server(struct tcp_end *end)
{
	char bytes[1000];
	struct mover m = { .fd = tcp_accept_one(end),
			   .flags = MSG_WAITALL,
			   .wanted = sizeof(bytes),
			   .bytes = bytes };

	receive_signalled(end, &m, 400, SA_RESTART);
	SAME(m.result, 400);
	EXPECT(tcp_filled(bytes, 400, 0));
	receive_signalled(end, &m, 0, 0);
	SAME(m.result, -1);
	SAME(m.error, EINTR);
	receive_signalled(end, &m, 0, SA_RESTART);
	SAME(m.result, 1000);
	/* A call that succeeds leaves no error behind. */
	SAME(m.error, 0);
	EXPECT(tcp_filled(bytes, 1000, 400));
	/* Bytes that were looked at are told of, and stay. */
	tcp_tell(end);
	m.flags = MSG_WAITALL | MSG_PEEK;
	receive_signalled(end, &m, 30, SA_RESTART);
	SAME(m.result, 30);
	/* So are those below SO_RCVLOWAT. */
	m.flags = 0;
	tcp_set(m.fd, SOL_SOCKET, SO_RCVLOWAT, 100);
	receive_signalled(end, &m, 30, SA_RESTART);
	SAME(m.result, 30);
	EXPECT(tcp_filled(bytes, 30, 1400));
	SAME(signals, 5);
	tcp_tell(end);
	tcp_expect_eof(m.fd);
	tcp_close(m.fd);
}

static void receive_signalled__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 400, 0);
	tcp_await(end);
	tcp_send(fd, 1000, 400);
	tcp_await(end);
	tcp_send(fd, 30, 1400);
	tcp_await(end);
	tcp_close(fd);
}

/* So does one that waits for room to send. */
static void send_signalled__server(struct tcp_end *end)
{
	struct mover m = { .fd = tcp_accept_one(end),
			   .sends = true,
			   .flags = MSG_NOSIGNAL,
			   .wanted = TCP_MUCH };
	pthread_t thread;
	ssize_t sent;

	m.bytes = calloc(1, TCP_MUCH);
	EXPECT(m.bytes);
	handle_signal(SA_RESTART);
	thread = begin(&m);
	SAME(pthread_kill(thread, SIGUSR1), 0);
	SAME(pthread_join(thread, NULL), 0);
	EXPECT(m.result > 0);
	EXPECT(m.result < TCP_MUCH);
	sent = m.result;
	/* The socket is full, but for a little. */
	tcp_send_full(m.fd);
	handle_signal(0);
	thread = begin(&m);
	SAME(pthread_kill(thread, SIGUSR1), 0);
	SAME(pthread_join(thread, NULL), 0);
	EXPECT(m.result > 0 || m.error == EINTR);
	EXPECT(sent > 0);
	SAME(signals, 2);
	free(m.bytes);
	tcp_tell(end);
	tcp_close(m.fd);
}

static void drain(int fd)
{
	static char bytes[65536];

	while (MUST(recv(fd, bytes, sizeof(bytes), 0)) > 0)
		;
}

static void send_signalled__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	drain(fd);
	tcp_close(fd);
}

/* ---- time ---- */

#define ROUNDS 1500

/* Whether the other end has said that it has given up. */
static bool gave_up(struct tcp_end *end)
{
	return tcp_ask(end->sync, POLLIN) != 0;
}

static void limit_time(int fd, int name)
{
	struct timeval time = { .tv_usec = 300000 };

	MUST(setsockopt(fd, SOL_SOCKET, name, &time, sizeof(time)));
}

/* SO_RCVTIMEO is how long a call waits, not how long for each of its bytes. */
static void receive_time__server(struct tcp_end *end)
{
	static char bytes[100000];
	int fd = tcp_accept_one(end);
	ssize_t got;

	tcp_tell(end);
	limit_time(fd, SO_RCVTIMEO);
	got = MUST(recv(fd, bytes, sizeof(bytes), MSG_WAITALL));
	EXPECT(!gave_up(end));
	EXPECT(got > 0);
	tcp_tell(end);
	while (MUST(recv(fd, bytes, sizeof(bytes), 0)) > 0)
		;
	tcp_close(fd);
}

/* A byte every ten milliseconds, for a while. */
static void receive_time__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), i;

	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	tcp_await(end);
	for (i = 0; i < ROUNDS && !gave_up(end); i++) {
		tcp_send(fd, 1, 0);
		usleep(10000);
	}
	tcp_tell(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* So is SO_SNDTIMEO. */
static void send_time__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char *bytes = calloc(1, TCP_MUCH);

	EXPECT(bytes);
	tcp_tell(end);
	limit_time(fd, SO_SNDTIMEO);
	EXPECT(MUST(send(fd, bytes, TCP_MUCH, 0)) < TCP_MUCH);
	EXPECT(!gave_up(end));
	tcp_tell(end);
	free(bytes);
	tcp_close(fd);
	tcp_await(end);
}

static void send_time__client(struct tcp_end *end)
{
	static char bytes[20000];
	int fd = tcp_connect(end), i;

	tcp_await(end);
	for (i = 0; i < ROUNDS && !gave_up(end); i++) {
		MUST(recv(fd, bytes, sizeof(bytes), 0));
		usleep(10000);
	}
	tcp_tell(end);
	drain(fd);
	tcp_close(fd);
}

/* ---- more than fits ---- */

/* SO_RCVLOWAT of more than the buffer holds does not wait for ever. */
static void low_water_large__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char *bytes = malloc(8 << 20);
	size_t all = 0;
	ssize_t got;

	EXPECT(bytes);
	tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
	EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
	while ((got = MUST(recv(fd, bytes, 8 << 20, 0))) > 0) {
		EXPECT(tcp_filled(bytes, (size_t)got, all));
		all += (size_t)got;
	}
	SAME(all, 20000000);
	free(bytes);
	tcp_close(fd);
}

static void low_water_large__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 20000000, 0);
	tcp_close(fd);
}

/* ---- nothing ---- */

/* recv() of no bytes waits for one and does not take it; read() of none returns at once. */
static void nothing_received__server(struct tcp_end *end)
{
	char byte;
	struct mover m = { .fd = tcp_accept_one(end), .bytes = &byte };
	struct iovec none = { &byte, 0 };
	pthread_t thread;

	FAILS(recv(m.fd, &byte, 0, MSG_DONTWAIT), EAGAIN);
	SAME(read(m.fd, &byte, 0), 0);
	SAME(readv(m.fd, &none, 1), 0);
	thread = begin(&m);
	tcp_tell(end);
	SAME(pthread_join(thread, NULL), 0);
	SAME(m.result, 0);
	tcp_receive(m.fd, 1, 9);
	tcp_expect_eof(m.fd);
	SAME(recv(m.fd, &byte, 0, MSG_DONTWAIT), 0);
	tcp_close(m.fd);
}

static void nothing_received__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 1, 9);
	tcp_close(fd);
}

static void nothing_sent__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* send() of no bytes fails where one of some bytes would. */
static void nothing_sent__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	struct iovec none = { NULL, 0 };

	tcp_send_full(fd);
	SAME(send(fd, "", 0, MSG_DONTWAIT), 0);
	SAME(write(fd, "", 0), 0);
	MUST(shutdown(fd, SHUT_WR));
	FAILS(send(fd, "", 0, MSG_NOSIGNAL), EPIPE);
	SAME(writev(fd, &none, 1), 0);
	signal(SIGPIPE, SIG_IGN);
	FAILS(write(fd, "", 0), EPIPE);
	drain(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_partial_cases[] = {
	TCP_CASE(sendfile_wrong),    TCP_CASE(peek_waits),
	TCP_CASE(receive_signalled), TCP_CASE(send_signalled),
	TCP_CASE(receive_time),	     TCP_CASE(send_time),
	TCP_CASE(low_water_large),   TCP_CASE(nothing_received),
	TCP_CASE(nothing_sent),	     { 0 },
};
