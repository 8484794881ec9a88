// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A socket has room for net.homa.wmem_max bytes of messages that are not
 * acknowledged yet. When it is full a sender waits, is told so, is woken; and
 * memory that is not there is an error of the call, and of nothing else.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "life.h"

#define ROOM 300000
#define EACH 50000

/* Full of requests that nobody answers. */
static struct sock full_socket(pid_t *pid, int port)
{
	struct sock s;
	int i;

	if (sysctl_set("wmem_max", ROOM))
		skip("net.homa.wmem_max cannot be set");
	*pid = start_server(port);
	s = open_sock(family, 0);
	memset(buf, 0, EACH);
	buf[0] = IGNORE;
	for (i = 0; i < 100; i++) {
		struct homa_sendmsg_args args = { 0 };

		if (send_raw(s.fd, &server, size_of(family), buf, EACH, &args,
			     MSG_DONTWAIT)) {
			CHECK(errno == EAGAIN, "not EAGAIN");
			/* May be exceeded by one message. */
			CHECK(i >= ROOM / EACH - 1 && i <= ROOM / EACH + 1,
			      "full after %d", i);
			return s;
		}
	}
	CHECK(0, "never full");
}

static void done(struct sock *s, pid_t pid)
{
	close_sock(s);
	end(pid);
	sysctl_set("wmem_max", 100000000);
}

static int send_one(struct sock *s, int flags)
{
	struct homa_sendmsg_args args = { 0 };

	return (int)send_raw(s->fd, &server, size_of(family), buf, EACH, &args,
			     flags);
}

void life_full(void)
{
	struct homa_abort_args all = { 0 };
	pid_t pid;
	struct sock s = full_socket(&pid, 4020);

	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	CHECK(rpcs_become(s.fd, 0, 10000) == 0, "%u RPCs", rpcs_of(s.fd));
	CHECK(!send_one(&s, MSG_DONTWAIT), "no room after all were aborted");
	done(&s, pid);
}

void life_full_timeout(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	pid_t pid;
	struct sock s = full_socket(&pid, 4021);
	double begin = now();

	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)),
	      "SO_SNDTIMEO");
	FAILS(send_one(&s, 0), EAGAIN);
	CHECK(now() - begin > 0.09, "did not wait");
	done(&s, pid);
}

static void nothing(int sig)
{
	(void)sig;
}

void life_full_signal(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	pid_t pid;
	struct sock s = full_socket(&pid, 4022);

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	FAILS(send_one(&s, 0), EINTR);
	done(&s, pid);
}

static unsigned int abort_error;

static void *abort_soon(void *arg)
{
	struct homa_abort_args all = { .error = abort_error };

	usleep(100000);
	CHECK(!ioctl(*(int *)arg, HOMAIOCABORT, &all), "abort");
	return NULL;
}

void life_full_wakes(void)
{
	pid_t pid;
	struct sock s = full_socket(&pid, 4023);
	pthread_t id;
	int i;

	abort_error = ECANCELED;
	CHECK(!pthread_create(&id, NULL, abort_soon, &s.fd), "thread");
	/* The failed ones hold their bytes until they are received, or not: room comes. */
	for (i = 0; i < 100; i++) {
		if (!send_one(&s, MSG_DONTWAIT))
			break;
		receive(&s, 0, MSG_DONTWAIT);
		usleep(20000);
	}
	CHECK(i < 100, "no room");
	pthread_join(id, NULL);
	done(&s, pid);
}

void life_full_poll(void)
{
	pid_t pid;
	struct sock s = full_socket(&pid, 4024);
	struct pollfd p = { .fd = s.fd, .events = POLLOUT };
	pthread_t id;

	CHECK(poll(&p, 1, 0) == 0, "writable: %x", p.revents);
	CHECK(!pthread_create(&id, NULL, abort_soon, &s.fd), "thread");
	CHECK(poll(&p, 1, 20000) == 1 && p.revents & POLLOUT,
	      "not writable: %x", p.revents);
	pthread_join(id, NULL);
	done(&s, pid);
}

/* Value of SO_SNDBUF. */
static int sndbuf_of(const struct sock *s)
{
	socklen_t size = sizeof(int);
	int value = 0;

	CHECK(!getsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &value, &size),
	      "SO_SNDBUF");
	return value;
}

static void set_sndbuf(const struct sock *s, int name, int value)
{
	CHECK(!setsockopt(s->fd, SOL_SOCKET, name, &value, sizeof(value)),
	      "option %d", name);
}

/* Sends until there is no room; the number of messages. */
static int fill_up(struct sock *s)
{
	int i;

	for (i = 0; i < 100; i++)
		if (send_one(s, MSG_DONTWAIT)) {
			CHECK(errno == EAGAIN, "not EAGAIN");
			return i;
		}
	CHECK(0, "never full");
}

static void *more_room_soon(void *arg)
{
	usleep(100000);
	set_sndbuf(arg, SO_SNDBUFFORCE, 400000);
	return NULL;
}

/* Twice the option's value is the room, and not wmem_max. */
void life_sndbuf(void)
{
	pid_t pid = start_server(4026);
	struct sock s = open_sock(family, 0);
	struct pollfd p = { .fd = s.fd, .events = POLLOUT };
	pthread_t id;
	int n;

	memset(buf, 0, EACH);
	buf[0] = IGNORE;
	set_sndbuf(&s, SO_SNDBUF, 100000);
	CHECK(sndbuf_of(&s) == 200000, "%d", sndbuf_of(&s));
	n = fill_up(&s);
	CHECK(n >= 3 && n <= 5, "full after %d", n);
	CHECK(!poll(&p, 1, 0), "room by poll()");
	/* More than net.core.wmem_max is only for who may. */
	set_sndbuf(&s, SO_SNDBUFFORCE, 300000);
	CHECK(sndbuf_of(&s) == 600000, "%d", sndbuf_of(&s));
	CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLOUT), "no room by poll()");
	n += fill_up(&s);
	CHECK(n >= 11 && n <= 13, "full after %d", n);
	CHECK(!pthread_create(&id, NULL, more_room_soon, &s), "thread");
	CHECK(!send_one(&s, 0), "it did not wake");
	pthread_join(id, NULL);
	done(&s, pid);
}

void life_bad_memory(void)
{
	pid_t pid = start_server(4025);
	struct sock s = open_sock(family, 0);
	unsigned char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct homa_sendmsg_args args = { 0 };
	struct iovec iov = { two + 4096 - 10, 100 };
	struct msghdr hdr = {
		.msg_name = &server,
		.msg_namelen = size_of(family),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &args,
	};
	int i;

	munmap(two + 4096, 4096);
	for (i = 0; i < 20; i++) {
		iov.iov_base = two + 4096 - 10;
		iov.iov_len = i % 2 ? 100 : 500000;
		FAILS(sendmsg(s.fd, &hdr, 0), EFAULT);
		iov.iov_base = (void *)16;
		FAILS(sendmsg(s.fd, &hdr, 0), EFAULT);
		iov.iov_base = (void *)0xffff880000001000;
		FAILS(sendmsg(s.fd, &hdr, 0), EFAULT);
	}
	iov.iov_base = two;
	iov.iov_len = 100;
	hdr.msg_control = (void *)16;
	FAILS(sendmsg(s.fd, &hdr, 0), EFAULT);
	CHECK(rpcs_become(s.fd, 0, 10000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	hdr.msg_control = (void *)0xffff880000001000;
	hdr.msg_controllen = sizeof(struct homa_recvmsg_args);
	FAILS(recvmsg(s.fd, &hdr, MSG_DONTWAIT), EFAULT);
	FAILS(ioctl(s.fd, HOMAIOCINFO, 16), EFAULT);
	FAILS(ioctl(s.fd, HOMAIOCABORT, 16), EFAULT);
	FAILS(setsockopt(s.fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, (void *)16, 16),
	      EFAULT);
	call(&s, 10000, 1);
	close_sock(&s);
	end(pid);
}

/* Part of the region goes, or may no longer be written to: the RPC fails, the socket does not. */
void life_bad_region(void)
{
	pid_t pid = start_server(4026);
	struct sock s = open_sock(family, 0);
	struct homa_info info = { 0 };
	ssize_t n;
	int i;

	CHECK(!mprotect(s.region, s.region_size, PROT_READ), "mprotect");
	for (i = 0; i < 5; i++) {
		fill(buf, 300000, 1);
		request(&s, &server, buf, 300000, 5, 0);
		n = receive(&s, 0, 0);
		CHECK(n < 0 && errno == EFAULT, "%zd", n);
		CHECK(s.args.completion_cookie == 5 || !s.args.id, "cookie");
		s.args.num_bpages = 0;
	}
	CHECK(!mprotect(s.region, s.region_size, PROT_READ | PROT_WRITE),
	      "mprotect");
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	call(&s, 500000, 2);
	CHECK(!munmap(s.region, s.region_size), "munmap");
	request(&s, &server, buf, 100, 6, 0);
	n = receive(&s, 0, 0);
	CHECK(n < 0 && errno == EFAULT, "%zd", n);
	s.region = NULL;
	close_sock(&s);
	end(pid);
}

/* ---- messages that nobody reads for a while ---- */

/* of 100 bytes: more than half the memory that may wait */
#define UNREAD 13000u

static struct sock small_sock(int port)
{
	struct sock s = open_bare(family, 0);

	give_region(&s,
		    (2 << 20) + 65536 * (size_t)sysconf(_SC_NPROCESSORS_ONLN));
	if (port)
		bind_sock(&s, port);
	return s;
}

/* The message's number; each comes once. */
static unsigned int take_numbered(struct sock *s, unsigned char *seen)
{
	ssize_t n = receive(s, 0, 0);
	unsigned int number;

	CHECK(n == 100, "%zd of 100 bytes", n);
	memcpy(&number, s->region + s->args.bpage_offsets[0], sizeof(number));
	CHECK(number < UNREAD && !seen[number], "message %u again", number);
	seen[number] = 1;
	return number;
}

void life_unread(void)
{
	static unsigned char asked[UNREAD], answered[UNREAD];
	struct sock s = small_sock(4030), c = small_sock(0);
	union address to = address(family, ip, 4030);
	unsigned int i;

	/* They wait for minutes where memory is checked: no questions meanwhile. */
	sysctl_set("resend_ticks", 10000);
	memset(buf, 0, 100);
	for (i = 0; i < UNREAD; i++) {
		memcpy(buf, &i, sizeof(i));
		request(&c, &to, buf, 100, i, 0);
	}
	for (i = 0; i < UNREAD; i++) {
		unsigned int number = take_numbered(&s, asked);
		struct homa_sendmsg_args args = { .id = s.args.id };

		memcpy(buf, &number, sizeof(number));
		CHECK(!send_raw(s.fd, &s.from, s.from_size, buf, 100, &args, 0),
		      "no answer to %u", number);
	}
	for (i = 0; i < UNREAD; i++) {
		unsigned int number = take_numbered(&c, answered);

		CHECK(c.args.completion_cookie == number, "another RPC");
	}
	close_sock(&c);
	close_sock(&s);
	sysctl_set("resend_ticks", 0);
}
