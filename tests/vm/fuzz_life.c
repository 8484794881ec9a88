// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A life of fuzz_calls: a process with some sockets, threads and a region, which does what its
 * genome says. One socket in five is a stream's.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "fuzz_admin.h"
#include "fuzz_life.h"

enum { SOCKS = 6, THREADS = 3, BASE = 6000 };

static int fds[SOCKS];
static unsigned char *regions[SOCKS];
static unsigned char pages[16384] __attribute__((aligned(4096)));
static uint64_t ids[16];
static unsigned int next_id;
static char *hole;	     /* a page, and nothing behind it */
static struct genome genome; /* of this life */
static unsigned int who;

static __thread struct draws draws;

static uint32_t below(uint32_t n)
{
	return draw_below(&draws, n);
}

static uint64_t sore(void)
{
	static const uint64_t values[] = {
		0,	    1,	      2,	  15,	    16,	     17,
		24,	    87,	      88,	  89,	    255,     4095,
		4096,	    65535,    65536,	  65537,    1000000, 1000001,
		1u << 21,   8u << 20, 0x7fffffff, 1u << 31, ~0u,     1ull << 32,
		1ull << 63, ~0ull,
	};

	if (below(3))
		return values[below(ARRAY_SIZE(values))];
	return draw(&draws) >> below(64);
}

/* Memory for @size bytes, or none. */
static void *pointer(size_t size)
{
	switch (below(12)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)sore();
	case 2:
		return hole + 4096 - (size > 1 ? size / 2 : 1);
	case 3:
		return (void *)0xffff880000001000;
	case 4:
		return regions[below(SOCKS)];
	default:
		return pages + below(sizeof(pages) / 2);
	}
}

static int any_fd(void)
{
	/* Not those that a test reads. */
	return below(20) ? fds[below(SOCKS)] : 3 + (int)below(20);
}

static uint64_t any_id(void)
{
	return below(6) ? ids[below(16)] ^ !below(4) : sore();
}

static int random_family(void)
{
	return below(2) ? AF_INET : AF_INET6;
}

static union address to_somebody(socklen_t *size)
{
	static const char *const ip4[] = { "127.0.0.1", "127.0.0.1", "127.9.9.9",
					   "255.255.255.255", "0.0.0.0" };
	static const char *const ip6[] = { "::1", "::1", "127.0.0.1", "ff02::1",
					   "::" };
	int family = random_family();
	union address a =
		address(family, family == AF_INET ? ip4[below(5)] : ip6[below(5)],
			BASE + (int)below(8));

	*size = size_of(family);
	if (!below(10))
		*size = (socklen_t)sore() % 200;
	if (!below(20))
		a.sa.sa_family = (sa_family_t)sore();
	if (!below(20))
		a.in4.sin_port = (uint16_t)sore();
	return a;
}

static void do_send(void)
{
	struct homa_sendmsg_args args = { .flags = below(5) ? below(2) :
							      (uint32_t)sore() };
	struct iovec iov[4];
	socklen_t size;
	int flags;
	union address to = to_somebody(&size);
	struct msghdr hdr = { .msg_name = below(20) ? &to : pointer(28),
			      .msg_namelen = size,
			      .msg_iov = iov,
			      .msg_iovlen = below(5),
			      .msg_control = below(10) ? &args : pointer(24) };
	size_t i;

	for (i = 0; i < 4; i++) {
		iov[i].iov_len = below(4) ? below(3000) :
				 below(3) ? below(400000) :
					    sore();
		iov[i].iov_base = iov[i].iov_len > sizeof(pages) / 2 &&
						  regions[0] && below(3) ?
					  regions[0] :
					  pointer(iov[i].iov_len);
	}
	if (!below(3))
		args.id = any_id();
	if (!below(3))
		args.completion_cookie = sore();
	if (!below(20))
		args.reserved = 1;
	if (!below(20))
		hdr.msg_controllen = sore() % 200;
	flags = MSG_DONTWAIT | MSG_NOSIGNAL | (below(20) ? 0 : (int)sore());
	if (sendmsg(any_fd(), &hdr, flags) == 0)
		ids[next_id++ % 16] = args.id;
}

static void do_receive(void)
{
	static __thread struct homa_recvmsg_args args;
	union address from;
	struct msghdr hdr = { .msg_name = below(20) ? &from : pointer(28),
			      .msg_namelen = below(10) ? sizeof(from) :
							 (socklen_t)sore() % 200,
			      .msg_control = below(10) ? &args : pointer(88),
			      .msg_controllen =
				      below(20) ? sizeof(args) : sore() % 200 };
	size_t i;

	if (!below(4)) {
		args.num_bpages = below(20);
		for (i = 0; i < HOMA_MAX_BPAGES; i++)
			args.bpage_offsets[i] =
				below(2) ? below(128) << 16 : (uint32_t)sore();
	}
	args.reserved = !below(30);
	args.id = below(3) ? 0 : any_id();
	if (recvmsg(any_fd(), &hdr,
		    MSG_DONTWAIT | (below(10) ? 0 : (int)sore())) >= 0)
		ids[next_id++ % 16] = args.id;
	else
		args.num_bpages = 0;
}

static void do_respond(void)
{
	struct homa_recvmsg_args in = { 0 };
	struct homa_sendmsg_args out = { 0 };
	struct iovec iov = { pages, 1 + below(sizeof(pages)) };
	union address from;
	struct msghdr hdr = { .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_control = &in,
			      .msg_controllen = sizeof(in) };
	int fd = fds[below(SOCKS)];

	if (recvmsg(fd, &hdr, MSG_DONTWAIT) < 0)
		return;
	ids[next_id++ % 16] = out.id = in.id;
	hdr.msg_control = &out;
	hdr.msg_controllen = 0;
	hdr.msg_iov = &iov;
	hdr.msg_iovlen = 1;
	sendmsg(fd, &hdr, MSG_DONTWAIT);
}

/* One call that sends and receives: also what another thread aborts, shuts or closes meanwhile,
 * and waits that a signal or a limit ends. */
static void do_exchange(void)
{
	static const uint32_t also[] = { 0,
					 0,
					 HOMA_SENDMSG_PRIVATE,
					 HOMA_SENDMSG_PRIVATE,
					 HOMA_SENDMSG_REJECT,
					 HOMA_SENDMSG_ASK,
					 HOMA_SENDMSG_REJECT |
						 HOMA_SENDMSG_PRIVATE,
					 HOMA_SENDMSG_ASK | HOMA_SENDMSG_PRIVATE };
	static __thread struct homa_exchange_args x;
	socklen_t size;
	union address to = to_somebody(&size);
	struct iovec iov = { pages, 1 + below(sizeof(pages)) };
	struct msghdr hdr = { .msg_name = below(2) ? &to : NULL,
			      .msg_namelen = size,
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = below(10) ? &x : pointer(sizeof(x)) };
	int fd = below(20) ? fds[below(SOCKS)] : any_fd();
	uint32_t i;

	x.send = (struct homa_sendmsg_args){
		.flags = HOMA_SENDMSG_RECEIVE | also[below(8)],
	};
	/* As a server that answers what it has received last; else whatever. */
	if (x.recv.id & 1 && below(3))
		x.send.id = x.recv.id;
	else if (!below(3))
		x.send.id = any_id();
	if (!below(4))
		x.send.completion_cookie = sore();
	if (!below(20))
		x.send.flags |= (uint32_t)sore();
	if (!below(30))
		x.send.reserved = 1;
	x.reserved = !below(30);
	x.recv.reserved = !below(30);
	x.recv.id = below(8) ? 0 : any_id();
	if (!below(8)) {
		x.recv.num_bpages = below(20);
		for (i = 0; i < HOMA_MAX_BPAGES; i++)
			x.recv.bpage_offsets[i] =
				below(2) ? below(128) << 16 : (uint32_t)sore();
	}
	if (!below(8))
		iov = (struct iovec){ pointer(100),
				      below(3) ? below(400000) : sore() };
	if (!below(20))
		hdr.msg_controllen = sore() % 200;
	if (sendmsg(fd, &hdr, MSG_NOSIGNAL | (below(3) ? MSG_DONTWAIT : 0)) < 0)
		x.recv.num_bpages = 0;
	else
		ids[next_id++ % 16] = x.recv.id;
}

static void do_limit(void)
{
	struct timeval limit = { .tv_usec = (suseconds_t)below(30000) };

	setsockopt(fds[below(SOCKS)], SOL_SOCKET,
		   below(2) ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, sizeof(limit));
}

static void do_option(void)
{
	static const int options[] = { SO_HOMA_RCVBUF, SO_HOMA_SERVER, 9, 12, 0 };
	static const int general[] = {
		SO_SNDBUF,	 SO_RCVBUF,   SO_SNDTIMEO,  SO_REUSEADDR,
		SO_BINDTODEVICE, SO_PRIORITY, SO_MARK,	    SO_LINGER,
		SO_TIMESTAMP,	 SO_ERROR,    SO_BUSY_POLL, SO_ATTACH_FILTER
	};
	static const int levels[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6,
				      IPPROTO_TCP };
	struct homa_rcvbuf_args args = { (uintptr_t)regions[below(SOCKS)],
					 below(2) ? REGION : sore() };
	int level = below(4) ? IPPROTO_HOMA : levels[below(4)];
	int name = level == IPPROTO_HOMA ? options[below(5)] :
		   level == SOL_SOCKET	 ? general[below(12)] :
					   (int)below(80);
	socklen_t size = below(3) ? sizeof(args) : (socklen_t)sore();

	if (!below(4))
		args.start = sore();
	if (below(2))
		setsockopt(any_fd(), level, name,
			   below(4) ? (void *)&args : pointer(16),
			   size > 4096 ? 4096 : size);
	else
		getsockopt(any_fd(), level, name,
			   below(4) ? pages : pointer(16), &size);
}

static void do_ioctl(void)
{
	struct homa_info info = { .rpc_info = pointer(184 * 4),
				  .rpc_info_length =
					  below(2) ? 184 * below(8) : sore() };
	struct homa_abort_args abort = { .id = below(3) ? any_id() : 0,
					 .error = below(2) ? 0 :
							     (uint32_t)sore() };
	const unsigned long requests[] = { HOMAIOCINFO,	  HOMAIOCABORT,
					   HOMAIOCFREEZE, TIOCINQ,
					   TIOCOUTQ,	  sore() };
	unsigned long request = requests[below(6)];

	if (request == HOMAIOCINFO)
		ioctl(any_fd(), request, below(5) ? (void *)&info : pointer(136));
	else
		ioctl(any_fd(), request, below(5) ? (void *)&abort : pointer(32));
}

static void do_wait(void)
{
	struct pollfd p[3] = { { any_fd(), (short)below(256), 0 },
			       { any_fd(), POLLIN | POLLOUT, 0 },
			       { fds[0], POLLIN, 0 } };
	struct epoll_event e = { .events = below(2) ? EPOLLIN | EPOLLET :
						      (uint32_t)sore() };
	int ep;

	poll(p, below(4), (int)below(3));
	if (below(3))
		return;
	ep = epoll_create1(0);
	if (ep < 0)
		return;
	epoll_ctl(ep, EPOLL_CTL_ADD, fds[below(SOCKS)], &e);
	epoll_wait(ep, &e, 1, (int)below(3));
	close(ep);
}

static void give(int i)
{
	struct homa_rcvbuf_args args = { 0, REGION };

	regions[i] = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (regions[i] == MAP_FAILED)
		_exit(0);
	args.start = (uintptr_t)regions[i];
	setsockopt(fds[i], IPPROTO_HOMA, SO_HOMA_RCVBUF, &args, sizeof(args));
}

static void open_one(int i)
{
	int family = random_family();
	union address a = address(family, NULL, BASE + (int)below(8));

	fds[i] = socket(family,
			(below(5) ? SOCK_DGRAM : SOCK_STREAM) |
				(below(2) ? SOCK_NONBLOCK : 0),
			IPPROTO_HOMA);
	if (below(5))
		give(i);
	if (below(2))
		bind(fds[i], &a.sa, size_of(family));
}

static void in_place_of(int i, int fd)
{
	if (fd < 0)
		return;
	close(fds[i]);
	fds[i] = fd;
}

/* Takes a connection in the place of a socket. */
static void do_accept(int i)
{
	in_place_of(i,
		    accept4(any_fd(), NULL, NULL, below(2) ? SOCK_NONBLOCK : 0));
}

/* A connection, both ends of which take the place of sockets, with bytes on their way. */
static void do_connect(void)
{
	int family = random_family();
	union address a = address(family, family == AF_INET ? "127.0.0.1" : "::1",
				  BASE + 8 + (int)below(4));
	struct linger linger = { .l_onoff = (int)below(2) };
	int listener = socket(family, SOCK_STREAM, IPPROTO_HOMA);
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_HOMA);

	bind(listener, &a.sa, size_of(family));
	listen(listener, (int)below(3));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	connect(fd, &a.sa, size_of(family));
	if (below(4))
		in_place_of((int)below(SOCKS), accept(listener, NULL, NULL));
	send(fd, pages, 1 + below(sizeof(pages)), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!below(4))
		shutdown(fd, (int)below(3));
	in_place_of((int)below(SOCKS), fd);
	close(listener);
}

static void do_rare(void)
{
	int i = (int)below(SOCKS);
	socklen_t size;
	union address a = to_somebody(&size);

	switch (below(12)) {
	case 0:
		close(fds[i]);
		open_one(i);
		break;
	case 1:
		shutdown(fds[i], (int)below(4));
		break;
	case 2: /* a hole in the region, or all of it */
		if (regions[i])
			munmap(regions[i] + (below(128) << 16),
			       below(2) ? 65536 : REGION / 2);
		break;
	case 3:
		if (regions[i])
			mprotect(regions[i], REGION / 2, (int)below(4));
		break;
	case 4:
		bind(any_fd(), &a.sa, size);
		break;
	case 5:
		connect(any_fd(), &a.sa, size);
		break;
	case 6:
		getsockname(any_fd(), pointer(28), &size);
		getpeername(any_fd(), pointer(28), &size);
		break;
	case 7:
		if (!fork()) {
			do_send();
			do_respond();
			_exit(0);
		}
		break;
	case 8: {
		int copy = dup(fds[i]);

		close(copy);
		break;
	}
	case 9:
		listen(any_fd(), (int)below(4));
		do_accept(i);
		break;
	case 10:
		if (regions[i])
			madvise(regions[i], REGION, MADV_DONTNEED);
		break;
	case 11: {
		char byte;

		(void)!read(any_fd(), &byte, 1);
		(void)!write(any_fd(), &byte, 1);
		recv(any_fd(), pointer(100), 100, MSG_DONTWAIT);
		break;
	}
	}
}

/* Some calls wait for what never comes: a signal now and then, in this thread. */
static void disturb(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 50000000 }, { 0, 50000000 } };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (!timer_create(CLOCK_MONOTONIC, &event, &timer))
		timer_settime(timer, 0, &every, NULL);
}

static void *live(void *arg)
{
	int i, n, end;

	draws = (struct draws){ &genome, (uint32_t)(uintptr_t)arg, 0 };
	cover(who);
	disturb();
	n = 200 + (int)below(400);
	/* Half of the lives end by exit() in the midst of what the other threads do. */
	end = draws.thread == 1 && below(2) ? (int)below((uint32_t)n) : n;
	for (i = 0; i < n; i++) {
		if (i == end)
			_exit(0);
		switch (below(22)) {
		case 0 ... 4:
			do_send();
			break;
		case 5 ... 7:
			do_receive();
			break;
		case 8 ... 10:
			do_respond();
			break;
		case 11:
			do_option();
			break;
		case 12:
			do_ioctl();
			break;
		case 13:
			do_wait();
			break;
		case 14:
			admin_do(&draws);
			break;
		case 15 ... 17:
			do_exchange();
			break;
		case 18:
			do_limit();
			break;
		case 19:
			do_connect();
			break;
		default:
			do_rare();
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		covered(&draws);
	}
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

void one_life(const struct genome *mine, unsigned int number)
{
	struct rlimit files = { 64, 64 }, cpu = { 20, 20 },
		      data = { 1u << 30, 1u << 30 };
	const struct sigaction interrupt = { .sa_handler = nothing };
	pthread_t threads[THREADS];
	int i;

	genome = *mine;
	who = number;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	setpgid(0, 0);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_AS, &data);
	signal(SIGPIPE, SIG_IGN);
	/* Without SA_RESTART: what waits ends with EINTR. */
	sigaction(SIGALRM, &interrupt, NULL);
	draws = (struct draws){ &genome, 0, 0 };
	cover(who);
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole + 4096, 4096);
	for (i = 0; i < SOCKS; i++)
		open_one(i);
	covered(&draws);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, live,
				   (void *)(uintptr_t)(i + 1)))
			_exit(0);
	alarm(10);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
