// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The calls of stream sockets: their errors and names, and waiting in all its ways. */
#include <net/if.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include "cgroup.h"
#include "vm_stream.h"

/* ---- errors ---- */

static void refused(void)
{
	union address a = address(family, server_ip, 505);
	struct pollfd p = { .events = POLLOUT };
	int fd = stream_new(0), error = 0;
	socklen_t size = sizeof(error);
	struct sock other;

	FAILS(connect(fd, &a.sa, size_of(family)), ECONNREFUSED);
	close(fd);
	p.fd = stream_new(SOCK_NONBLOCK);
	CHECK(connect(p.fd, &a.sa, size_of(family)) &&
		      (errno == EINPROGRESS || errno == ECONNREFUSED),
	      "connect");
	/* The refusal may have come before connect() looked. */
	if (errno == EINPROGRESS) {
		CHECK(poll(&p, 1, -1) == 1 && (p.revents & POLLERR), "%x",
		      p.revents);
		CHECK(!getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &size) &&
			      error == ECONNREFUSED,
		      "error %d", error);
	}
	FAILS(send(p.fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(p.fd);
	/* A socket that listens not, and one that is bound to another address. */
	fd = stream_new(0);
	CHECK(!bind(fd, &a.sa, size_of(family)), "bind");
	p.fd = stream_new(0);
	FAILS(connect(p.fd, &a.sa, size_of(family)), ECONNREFUSED);
	FAILS(recv(fd, &error, 1, 0), ENOTCONN);
	FAILS(accept(fd, NULL, NULL), EINVAL);
	close(fd);
	close(p.fd);
	quiet();
	other = open_sock(family, 0);
	bind_sock(&other, 505);
	fd = stream_new(0);
	FAILS(bind(fd, &a.sa, size_of(family)), EADDRINUSE);
	close(fd);
	close_sock(&other);
	quiet();
}

static void bound(void)
{
	union address here = address(family, server_ip, 506);
	union address any = address(family, NULL, 506), is;
	socklen_t size = sizeof(is);
	int fd = stream_new(0), client;

	any.in4.sin_port = htons(40000);
	FAILS(bind(fd, &any.sa, size_of(family)), EADDRNOTAVAIL);
	is = address(family, family == AF_INET ? "192.0.2.9" : "2001:db8::9",
		     506);
	FAILS(bind(fd, &is.sa, size_of(family)), EADDRNOTAVAIL);
	CHECK(!bind(fd, &here.sa, size_of(family)), "bind");
	CHECK(!listen(fd, 1), "listen");
	CHECK(!getsockname(fd, &is.sa, &size) && size == size_of(family) &&
		      !memcmp(&is, &here, size),
	      "name");
	client = stream_connect(506);
	if (family == AF_INET) {
		int other = stream_new(0);

		is = address(family, "127.0.0.9", 506);
		FAILS(connect(other, &is.sa, size_of(family)), ECONNREFUSED);
		close(other);
	}
	close(client);
	close(fd);
	quiet();
}

static void names(void)
{
	struct link l = link_up(507);
	union address a, b;
	socklen_t size;

	size = sizeof(a);
	CHECK(!getpeername(l.client, &a.sa, &size) && size == size_of(family) &&
		      !memcmp(&a, &l.name, size),
	      "the server's name");
	size = sizeof(a);
	CHECK(!getsockname(l.server, &a.sa, &size) && !memcmp(&a, &l.name, size),
	      "the server's own name");
	size = sizeof(a);
	CHECK(!getsockname(l.client, &a.sa, &size) && a.in4.sin_port, "own name");
	size = sizeof(b);
	CHECK(!getpeername(l.server, &b.sa, &size) && !memcmp(&a, &b, size),
	      "the client's name");
	FAILS(getpeername(l.listener, &a.sa, &size), ENOTCONN);
	FAILS(connect(l.client, &l.name.sa, size_of(family)), EISCONN);
	link_down(&l);
	quiet();
}

/* Names of link-local addresses have their device. */
static void link_local(void)
{
	union address a = address(AF_INET6, "fe80::78", 523), is;
	socklen_t size = sizeof(is);
	int fd, client, server;

	if (family != AF_INET6)
		return;
	CHECK(!system("ip addr add fe80::78/64 dev lo nodad"), "address");
	a.in6.sin6_scope_id = if_nametoindex("lo");
	fd = stream_new(0);
	client = stream_new(0);
	CHECK(!bind(fd, &a.sa, size_of(family)), "bind");
	CHECK(!getsockname(fd, &is.sa, &size) && !memcmp(&is, &a, size),
	      "the listener's name");
	CHECK(!listen(fd, 1), "listen");
	CHECK(!connect(client, &a.sa, size_of(family)), "connect");
	server = accept(fd, NULL, NULL);
	CHECK(!getsockname(server, &is.sa, &size) && !memcmp(&is, &a, size),
	      "the server's name");
	CHECK(!getpeername(client, &is.sa, &size) && !memcmp(&is, &a, size),
	      "the client's peer");
	CHECK(!getsockname(client, &is.sa, &size) &&
		      is.in6.sin6_scope_id == a.in6.sin6_scope_id,
	      "the client's name");
	close(server);
	close(client);
	close(fd);
	quiet();
	CHECK(!system("ip addr del fe80::78/64 dev lo"), "address");
}

static void backlog(void)
{
	union address a = address(family, server_ip, 508);
	int listener = stream_listen(508, 2), fds[2], i, fd;

	for (i = 0; i < 2; i++)
		fds[i] = stream_connect(508);
	fd = stream_new(0);
	FAILS(connect(fd, &a.sa, size_of(family)), ECONNREFUSED);
	close(fd);
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0, "accept");
	close(fd);
	fd = stream_connect(508);
	close(fd);
	/* Those that were not accepted are reset. */
	close(listener);
	CHECK(recv(fds[1], &a, 1, 0) == -1 && errno == ECONNRESET, "no reset");
	close(fds[0]);
	close(fds[1]);
	quiet();
}

static void reset(void)
{
	struct link l = link_up(509);
	struct pollfd p;
	char c;

	/* It has not read what was sent when it goes. */
	put(l.client, 1, 0, 1000, 1000);
	CHECK(recv(l.server, &c, 1, MSG_PEEK) == 1, "peek");
	close(l.server);
	l.server = -1;
	p = (struct pollfd){ .fd = l.client, .events = POLLIN | POLLOUT };
	CHECK(poll(&p, 1, -1) == 1, "poll");
	while (!(p.revents & POLLERR))
		poll(&p, 1, 100);
	CHECK(p.revents & POLLHUP, "%x", p.revents);
	FAILS(recv(l.client, &c, 1, 0), ECONNRESET);
	CHECK(recv(l.client, &c, 1, 0) == 0, "after an error");
	FAILS(send(l.client, "x", 1, MSG_NOSIGNAL), EPIPE);
	signal(SIGPIPE, SIG_IGN);
	FAILS(write(l.client, "x", 1), EPIPE);
	link_down(&l);
	/* The peer goes; then something is sent to it. */
	l = link_up(509);
	close(l.server);
	l.server = -1;
	CHECK(recv(l.client, &c, 1, 0) == 0, "end");
	send(l.client, "x", 1, MSG_NOSIGNAL);
	p.fd = l.client;
	do {
		CHECK(poll(&p, 1, -1) == 1, "poll");
	} while (!(p.revents & POLLERR));
	FAILS(send(l.client, "x", 1, MSG_NOSIGNAL), ECONNRESET);
	link_down(&l);
	quiet();
}

static void *close_it(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/* A reader that looks just while a reset comes hears of it, and of no end. */
static void reset_is_no_end(void)
{
	int listener = stream_listen(518, 8), i, rounds = 200 / slowness();

	for (i = 0; i < rounds; i++) {
		int client = stream_connect(518);
		int server = accept(listener, NULL, NULL);
		pthread_t thread;
		ssize_t n;
		char c;

		CHECK(server >= 0, "accept");
		put(client, 1, 0, 1, 1);
		CHECK(recv(server, &c, 1, MSG_PEEK) == 1, "peek");
		CHECK(!pthread_create(&thread, NULL, close_it,
				      (void *)(intptr_t)server),
		      "thread");
		do {
			n = recv(client, &c, 1, MSG_DONTWAIT);
		} while (n < 0 && errno == EAGAIN);
		CHECK(n < 0 && errno == ECONNRESET, "round %d: %zd", i, n);
		pthread_join(thread, NULL);
		close(client);
	}
	close(listener);
	quiet();
}

/* A process that is killed in the middle of a transfer. */
static void killed(void)
{
	int listener = stream_listen(510, 8), fd, status, i;
	char buf[5000];
	pid_t pid;

	for (i = 0; i < 4; i++) {
		pid = fork();
		if (!pid) {
			fd = stream_connect(510);
			put(fd, 1, 0, 1ull << 40, i % 2 ? 100000 : 10);
		}
		fd = accept(listener, NULL, NULL);
		CHECK(recv(fd, buf, sizeof(buf), 0) > 0, "recv");
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		while (recv(fd, buf, sizeof(buf), 0) > 0)
			;
		close(fd);
	}
	close(listener);
	quiet();
}

/* ---- waiting ---- */

static void nonblocking(void)
{
	struct link l = link_up(511);
	struct pollfd p = { .fd = l.client, .events = POLLIN | POLLOUT };
	uint64_t sent = 0;
	char buf[3000];
	ssize_t n;
	size_t i;

	FAILS(accept4(l.listener, NULL, NULL,
		      0 * fcntl(l.listener, F_SETFL, O_NONBLOCK)),
	      EAGAIN);
	fcntl(l.client, F_SETFL, O_NONBLOCK);
	FAILS(recv(l.client, buf, 1, 0), EAGAIN);
	CHECK(poll(&p, 1, 0) == 1 && p.revents == POLLOUT, "%x", p.revents);
	for (;;) {
		for (i = 0; i < sizeof(buf); i++)
			buf[i] = (char)byte_of(9, sent + i);
		n = send(l.client, buf, sizeof(buf), 0);
		if (n < 0) {
			CHECK(errno == EAGAIN, "send");
			/* The window is full when nothing moves for a while. */
			if (poll(&p, 1, 300) == 0 && sent >= 32768)
				break;
			continue;
		}
		sent += (uint64_t)n;
	}
	CHECK(sent < 64u << 20, "%llu bytes", (unsigned long long)sent);
	get(l.server, 9, 0, sent, 10000);
	CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLOUT, "%x", p.revents);
	link_down(&l);
	quiet();
}

static void epolls(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					   EPOLLET };
	int ep = epoll_create1(0), n;
	struct link l = link_up(512);
	char c;

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, l.client, &e), "add");
	n = epoll_wait(ep, &e, 1, -1);
	CHECK(n == 1 && e.events == EPOLLOUT, "%d %x", n, e.events);
	CHECK(epoll_wait(ep, &e, 1, 0) == 0, "told twice");
	put(l.server, 1, 0, 1, 1);
	n = epoll_wait(ep, &e, 1, -1);
	CHECK(n == 1 && e.events == (EPOLLIN | EPOLLOUT), "%d %x", n, e.events);
	get(l.client, 1, 0, 1, 1);
	close(l.server);
	l.server = -1;
	n = epoll_wait(ep, &e, 1, -1);
	CHECK(n == 1 && e.events == (EPOLLIN | EPOLLOUT | EPOLLRDHUP), "%d %x",
	      n, e.events);
	CHECK(recv(l.client, &c, 1, 0) == 0, "end");
	close(ep);
	link_down(&l);
	quiet();
}

static void flags(void)
{
	struct timeval tv = { .tv_usec = 50000 };
	struct link l = link_up(513);
	unsigned char buf[100];

	put(l.client, 1, 0, 10, 10);
	CHECK(recv(l.server, buf, 100, MSG_PEEK) == 10, "peek");
	CHECK(recv(l.server, buf, 4, MSG_PEEK) == 4, "peek");
	get(l.server, 1, 0, 4, 4);
	if (fork() == 0) {
		usleep(100000);
		put(l.client, 1, 10, 30, 5);
		_exit(0);
	}
	CHECK(recv(l.server, buf, 26, MSG_WAITALL) == 26, "all");
	CHECK(buf[25] == byte_of(1, 29), "last byte");
	CHECK(wait(NULL) > 0, "child");
	FAILS(recv(l.server, buf, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(!setsockopt(l.server, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)),
	      "timeout");
	FAILS(recv(l.server, buf, 1, 0), EAGAIN);
	FAILS(recv(l.server, buf, 1, MSG_OOB), EINVAL);
	FAILS(send(l.server, buf, 1, MSG_OOB), EOPNOTSUPP);
	put(l.client, 1, 0, 5, 5);
	FAILS(recv(l.server, NULL, 5, 0), EFAULT);
	get(l.server, 1, 0, 5, 5);
	FAILS(send(l.client, NULL, 5, 0), EFAULT);
	put(l.client, 1, 5, 9, 5);
	get(l.server, 1, 5, 9, 5);
	link_down(&l);
	quiet();
}

/* Connections by the hundred; forked children serve what their parent accepted. */
static void many(void)
{
	int listener = stream_listen(515, 128), fds[100], i, status;
	pid_t pid;

	for (i = 0; i < 100; i++)
		fds[i] = stream_connect(515);
	pid = fork();
	if (!pid) {
		for (i = 0; i < 100; i++) {
			int fd = accept(listener, NULL, NULL);

			get(fd, 1, 0, 100, 100);
			put(fd, 2, 0, 100, 100);
		}
		_exit(0);
	}
	close(listener);
	for (i = 0; i < 100; i++)
		put(fds[i], 1, 0, 100, 100);
	for (i = 0; i < 100; i++) {
		get(fds[i], 2, 0, 100, 100);
		close(fds[i]);
	}
	waitpid(pid, &status, 0);
	CHECK(!status, "the child");
	quiet();
}

/* Four threads read one stream, and another looks ahead: each byte comes to one of the four. */
struct share {
	int fd;
	bool peek;
	uint64_t got;
	uint64_t sum;
};

static void *take(void *arg)
{
	struct share *share = arg;
	unsigned char buf[30000];
	ssize_t n, i;

	for (;;) {
		n = share->peek ? recv(share->fd, buf, sizeof(buf),
				       MSG_PEEK | MSG_WAITALL) :
				  recv(share->fd, buf, 1 + share->got % 9000, 0);
		CHECK(n >= 0, "recv");
		if (!n)
			return NULL;
		share->got += (uint64_t)n;
		for (i = 0; i < n; i++)
			share->sum += buf[i];
	}
}

static void readers(void)
{
	struct link l = link_up(516);
	struct share shares[5] = { 0 };
	uint64_t bytes = 1000000, i, got = 0, sum = 0, want = 0;
	pthread_t threads[5];

	for (i = 0; i < 5; i++) {
		shares[i].fd = l.server;
		shares[i].peek = i == 4;
		CHECK(!pthread_create(&threads[i], NULL, take, &shares[i]),
		      "thread");
	}
	put(l.client, 12, 0, bytes, 7000);
	CHECK(!shutdown(l.client, SHUT_WR), "shutdown");
	for (i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 4; i++) {
		got += shares[i].got;
		sum += shares[i].sum;
	}
	for (i = 0; i < bytes; i++)
		want += byte_of(12, i);
	CHECK(got == bytes && sum == want, "%llu bytes", (unsigned long long)got);
	link_down(&l);
	quiet();
}

/* Files go out, and bytes into a pipe, without a buffer of the program. */
static void files(void)
{
	struct link l = link_up(518);
	FILE *f = tmpfile();
	int i, pipes[2];
	off_t at = 0;
	ssize_t n;

	CHECK(f && !pipe(pipes), "no file");
	for (i = 0; i < 150000; i++)
		putc(byte_of(13, (uint64_t)i), f);
	CHECK(!fflush(f), "file");
	while (at < 150000) {
		n = sendfile(l.client, fileno(f), &at, 150000 - (size_t)at);
		CHECK(n > 0, "sendfile");
	}
	get(l.server, 13, 0, 149000, 10000);
	n = splice(l.server, NULL, pipes[1], NULL, 1000, 0);
	CHECK(n == 1000, "splice gave %zd", n);
	for (i = 149000; i < 150000; i++) {
		unsigned char c;

		CHECK(read(pipes[0], &c, 1) == 1 && c == byte_of(13, (uint64_t)i),
		      "byte %d", i);
	}
	fclose(f);
	link_down(&l);
	quiet();
}

/* Bytes that nobody reads are memory of who made the sockets. */
static void pays(void)
{
	struct link l;

	cgroup_join();
	l = link_up(517);
	put(l.client, 1, 0, 200000, 50000);
	/* Nothing is on its way any more when the client has gone. */
	close(l.client);
	l.client = -1;
	cgroup_becomes_charged("sock", 180000, 2000000);
	get(l.server, 1, 0, 200000, 50000);
	cgroup_becomes_charged("sock", 0, 150000);
	link_down(&l);
	quiet();
	cgroup_leave();
}

const struct check stream_calls[] = {
	{ "nobody listens", refused },
	{ "bind to an address", bound },
	{ "names", names },
	{ "link-local names", link_local },
	{ "backlog", backlog },
	{ "reset and SIGPIPE", reset },
	{ "a reset is no end", reset_is_no_end },
	{ "kill -9 in the middle", killed },
	{ "non-blocking", nonblocking },
	{ "epoll", epolls },
	{ "flags of recv", flags },
	{ "many connections, and fork", many },
	{ "many readers of one stream", readers },
	{ "sendfile and splice", files },
	{ "memory is charged", pays },
};
const size_t stream_num_calls = ARRAY_SIZE(stream_calls);
