// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory that ends inside what a call is told or gives: the call fails with EFAULT, nothing is
 * lost or kept of it, and the next one is as if it had not been. And calls that find no room and
 * are made again, by the program and by io_uring.
 */
#include <linux/io_uring.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include "life.h"

#define LONG 300000u
#define PAGE 4096u

/* Makes two pages, the second of which nobody may use; returns where that begins. */
static unsigned char *edge(void)
{
	unsigned char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(two != MAP_FAILED && !mprotect(two + PAGE, PAGE, PROT_NONE),
	      "memory");
	return two + PAGE;
}

/* A server of this process. */
static struct sock serve_here(int port)
{
	struct sock t = open_sock(family, 0);

	bind_sock(&t, port);
	server = address(family, ip, port);
	return t;
}

/* Answers what @t received last with @size bytes of @buf. */
static void answer(const struct sock *t, size_t size)
{
	struct homa_sendmsg_args args = { .id = t->args.id };

	CHECK(!send_raw(t->fd, &t->from, size_of(family), buf, size, &args, 0),
	      "response of %zu bytes", size);
}

/* Bytes of messages and packets that the kernel has charged to the socket for sending. */
static uint32_t sending(const struct sock *s)
{
	uint32_t mem[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(mem);

	CHECK(!getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, mem, &size),
	      "SO_MEMINFO");
	return mem[SK_MEMINFO_WMEM_ALLOC];
}

static void nothing_is_left(const struct sock *s)
{
	double end = now() + 10 * patience();

	CHECK(rpcs_become(s->fd, 0, 10000) == 0, "%u RPCs are left",
	      rpcs_of(s->fd));
	while (sending(s) && now() < end)
		usleep(5000);
	CHECK(!sending(s), "%u bytes of messages are left", sending(s));
}

/* ---- recvmsg() ---- */

/* Receives with arguments of which only the first @there bytes are memory. */
static ssize_t receive_cut(struct sock *s, unsigned char *end, size_t there,
			   uint64_t id)
{
	struct msghdr hdr = {
		.msg_name = &s->from,
		.msg_namelen = sizeof(s->from),
		.msg_control = end - there,
		.msg_controllen = sizeof(s->args),
	};

	s->args.id = id;
	memcpy(end - there, &s->args, there);
	return recvmsg(s->fd, &hdr, MSG_DONTWAIT);
}

/* A message of @size bytes waits; calls with too little memory for arguments do not take it. */
static void cut_off(struct sock *s, size_t size, unsigned int flags)
{
	const size_t there[] = {
		sizeof(s->args) - 1,
		sizeof(s->args) - 4,
		offsetof(struct homa_recvmsg_args, bpage_offsets[1]),
		offsetof(struct homa_recvmsg_args, bpage_offsets),
		16,
		1,
	};
	unsigned char *end = edge();
	uint64_t id, which;
	size_t i;

	fill(buf, size, 3);
	id = request(s, &server, buf, size, 3, flags);
	which = flags & HOMA_SENDMSG_PRIVATE ? id : 0;
	CHECK(which || readable(s->fd, 60000 * patience()), "no response");
	for (i = 0; i < ARRAY_SIZE(there); i++)
		FAILS(receive_cut(s, end, there[i], which), EFAULT);
	CHECK(receive(s, which, 0) == (ssize_t)size, "the message is lost");
	CHECK(s->args.id == id && s->args.completion_cookie == 3, "another one");
	verify(s, size, 3);
	munmap(end - PAGE, 2 * PAGE);
}

void life_args_end(void)
{
	pid_t pid = start_server(4050);
	struct sock s = open_sock(family, 0);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		cut_off(&s, 100, 0);
		cut_off(&s, LONG, 0);
		cut_off(&s, 100, HOMA_SENDMSG_PRIVATE);
		cut_off(&s, LONG, HOMA_SENDMSG_PRIVATE);
	}
	/* The pages that such a call would have given back are given by a later one. */
	call(&s, REGION / 16, 5);
	nothing_is_left(&s);
	close_sock(&s);
	end(pid);
}

/* ---- sendmsg() ---- */

static ssize_t send_pieces(const struct sock *s, const struct iovec *iov,
			   size_t n, struct homa_sendmsg_args *args)
{
	struct msghdr hdr = {
		.msg_name = (void *)(uintptr_t)(args->id ? &s->from : &server),
		.msg_namelen = size_of(family),
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = n,
		.msg_control = args,
	};

	return sendmsg(s->fd, &hdr, 0);
}

/* Sends @size bytes of @buf in pieces of which some are empty, as each of these lists has them. */
static void send_lists(struct sock *s, struct sock *t, size_t size)
{
	void *nowhere = (void *)16;
	struct iovec lists[][6] = {
		{ { buf, size } },
		{ { nowhere, 0 }, { buf, size } },
		{ { buf, size }, { nowhere, 0 }, { NULL, 0 } },
		{ { buf, 1 }, { buf + 1, size - 1 } },
		{ { buf, size - 1 }, { NULL, 0 }, { buf + size - 1, 1 } },
		{ { NULL, 0 },
		  { buf, 1 },
		  { nowhere, 0 },
		  { buf + 1, 1 },
		  { buf + 2, size - 2 },
		  { NULL, 0 } },
	};
	const size_t pieces_of[] = { 1, 2, 3, 2, 3, 6 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		struct homa_sendmsg_args args = { 0 };

		fill(buf, size, i);
		CHECK(!send_pieces(s, lists[i], pieces_of[i], &args),
		      "list %u of %zu bytes", i, size);
		CHECK(receive(t, 0, 0) == (ssize_t)size, "list %u", i);
		verify(t, size, i);
		args = (struct homa_sendmsg_args){ .id = t->args.id };
		fill(buf, size, i + 100);
		CHECK(!send_pieces(t, lists[i], pieces_of[i], &args),
		      "response %u of %zu bytes", i, size);
		CHECK(receive(s, 0, 0) == (ssize_t)size, "response %u", i);
		verify(s, size, i + 100);
	}
}

/* A piece in the middle is no memory: no request, no response, and then there are both. */
static void send_faults(struct sock *s, struct sock *t, size_t size)
{
	unsigned char *end = edge();
	const struct iovec one = { buf, size };
	const struct iovec bad[] = {
		{ buf, size / 3 },
		{ NULL, 0 },
		{ end - 1, size / 3 + 1 },
		{ buf, size - 2 * (size / 3) },
	};
	struct homa_sendmsg_args args = { .completion_cookie = 1 };

	FAILS(send_pieces(s, bad, 4, &args), EFAULT);
	FAILS(send_pieces(s, bad + 2, 1, &args), EFAULT);
	CHECK(!args.id && !rpcs_of(s->fd), "a request began");
	fill(buf, size, 7);
	CHECK(!send_pieces(s, &one, 1, &args), "the next one");
	CHECK(receive(t, 0, 0) == (ssize_t)size, "the next one is lost");
	verify(t, size, 7);
	args = (struct homa_sendmsg_args){ .id = t->args.id };
	FAILS(send_pieces(t, bad, 4, &args), EFAULT);
	FAILS(send_pieces(t, bad + 2, 1, &args), EFAULT);
	fill(buf, size, 8);
	CHECK(!send_pieces(t, &one, 1, &args), "the response after errors");
	CHECK(receive(s, 0, 0) == (ssize_t)size, "the response is lost");
	CHECK(s->args.completion_cookie == 1, "another one");
	verify(s, size, 8);
	munmap(end - PAGE, 2 * PAGE);
}

void life_pieces(void)
{
	const size_t sizes[] = { 3, 100, 256, 1000, 1536, 1537, 20000 };
	struct sock t = serve_here(4051), s = open_sock(family, 0);
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		send_lists(&s, &t, sizes[i]);
		for (k = 0; k < 20; k++)
			send_faults(&s, &t, sizes[i]);
	}
	nothing_is_left(&s);
	close_sock(&s);
	nothing_is_left(&t);
	close_sock(&t);
}

/* Sends a request with arguments of which only the first @there bytes are memory. */
static void send_cut(const struct sock *s, unsigned char *end, size_t there,
		     uint32_t flags)
{
	struct homa_sendmsg_args args = { .flags = flags };
	struct iovec iov = { buf, 100 };
	struct msghdr hdr = {
		.msg_name = &server,
		.msg_namelen = size_of(family),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = end - there,
	};

	memset(end - there, 0, there);
	memcpy(end - there, &args, there < sizeof(args) ? there : sizeof(args));
	FAILS(sendmsg(s->fd, &hdr, 0), EFAULT);
	CHECK(!rpcs_of(s->fd), "a request began");
}

/* The arguments of sendmsg() end too early, or cannot be written: no request is left. */
void life_send_args_end(void)
{
	struct sock t = serve_here(4052), s = open_sock(family, 0);
	const size_t size = sizeof(struct homa_sendmsg_args);
	unsigned char *end = edge();
	struct homa_sendmsg_args *args = (void *)(end - PAGE);
	struct iovec iov = { buf, 100 };
	size_t there;

	for (there = 0; there < size; there += 4)
		send_cut(&s, end, there, 0);
	for (; there < sizeof(struct homa_exchange_args); there += 4)
		send_cut(&s, end, there, HOMA_SENDMSG_RECEIVE);
	memset(args, 0, size);
	CHECK(!mprotect(args, PAGE, PROT_READ), "mprotect");
	FAILS(send_pieces(&s, &iov, 1, args), EFAULT);
	iov.iov_len = LONG;
	FAILS(send_pieces(&s, &iov, 1, args), EFAULT);
	nothing_is_left(&s);
	munmap(args, 2 * PAGE);
	close_sock(&s);
	close_sock(&t);
}

/* ---- no room ---- */

#define EACH 20000u
#define MANY 1000u

/* A request with its number in it. */
static void paint(unsigned char *to, unsigned int number)
{
	fill(to, EACH, number);
	memcpy(to + 4, &number, sizeof(number));
}

/* Sends requests from number @from on until there is no room; returns the number of the first that
 * was not sent. */
static unsigned int send_until_full(struct sock *s, unsigned int from)
{
	for (;; from++) {
		struct homa_sendmsg_args args = { .completion_cookie = from };

		CHECK(from < MANY, "never full");
		paint(buf, from);
		if (send_raw(s->fd, &server, size_of(family), buf, EACH, &args,
			     MSG_DONTWAIT))
			break;
	}
	CHECK(errno == EAGAIN, "not EAGAIN");
	return from;
}

/* Receives a request at @t, answers it, and receives the response at @s. */
static void serve_one(struct sock *s, struct sock *t)
{
	static unsigned char want[EACH], seen[MANY];
	const unsigned char *got;
	unsigned int number;

	CHECK(receive(t, 0, 0) == (ssize_t)EACH, "no request");
	got = t->region + t->args.bpage_offsets[0];
	memcpy(&number, got + 4, sizeof(number));
	paint(want, number);
	CHECK(!memcmp(got, want, EACH), "bytes of request %u", number);
	CHECK(number < MANY && !seen[number]++, "request %u again", number);
	fill(buf, 10, number);
	answer(t, 10);
	CHECK(receive(s, 0, 0) == 10, "no response to %u", number);
	CHECK(s->args.completion_cookie == number, "response to %llu, not %u",
	      (unsigned long long)s->args.completion_cookie, number);
	verify(s, 10, number);
}

/* As often as SO_SNDBUF is full, an answer makes room for the request that had none. */
void life_again(void)
{
	struct sock t = serve_here(4053), s = open_sock(family, 0);
	struct pollfd p = { .fd = s.fd, .events = POLLOUT };
	unsigned int served, next = 0, full;
	int bytes = 50000;

	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)),
	      "SO_SNDBUF");
	for (served = 0; served < 100 / (unsigned int)slowness(); served++) {
		full = send_until_full(&s, next);
		CHECK(served || full >= 4, "full after %u", full);
		CHECK(full > next, "no room for request %u", next);
		next = full;
		serve_one(&s, &t);
		CHECK(poll(&p, 1, 60000 * patience()) == 1 &&
			      (p.revents & POLLOUT),
		      "an answer makes no room");
	}
	for (; served < next; served++)
		serve_one(&s, &t);
	nothing_is_left(&s);
	close_sock(&s);
	close_sock(&t);
}

/* ---- io_uring ---- */

/* struct ring - an io_uring for one call at a time. Written by: its thread. */
struct ring {
	/* Its descriptor. */
	int fd;
	/* What the kernel said of it. */
	struct io_uring_params p;
	/* The memory of both queues. */
	unsigned char *rings;
	/* The entries of the queue of calls. */
	struct io_uring_sqe *sqes;
};

static void ring_make(struct ring *r)
{
	size_t size, other;

	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(SYS_io_uring_setup, 4, &r->p);
	if (r->fd < 0)
		skip("no io_uring");
	CHECK(r->p.features & IORING_FEAT_SINGLE_MMAP, "two rings");
	size = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
	other = r->p.sq_off.array + r->p.sq_entries * sizeof(uint32_t);
	if (size < other)
		size = other;
	r->rings = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	CHECK(r->rings != MAP_FAILED, "rings");
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		       IORING_OFF_SQES);
	CHECK(r->sqes != MAP_FAILED, "entries");
}

static uint32_t *ring_word(const struct ring *r, uint32_t offset)
{
	return (uint32_t *)(void *)(r->rings + offset);
}

/* Does sendmsg() by the ring, as a program does that knows nothing of what Homa's calls wait for.
 * Returns what the call has returned. */
static int ring_send(struct ring *r, int fd, const struct msghdr *hdr)
{
	uint32_t tail = *ring_word(r, r->p.sq_off.tail);
	uint32_t at = tail & *ring_word(r, r->p.sq_off.ring_mask);
	uint32_t head = *ring_word(r, r->p.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);

	memset(&r->sqes[at], 0, sizeof(r->sqes[at]));
	r->sqes[at].opcode = IORING_OP_SENDMSG;
	r->sqes[at].fd = fd;
	r->sqes[at].addr = (uintptr_t)hdr;
	r->sqes[at].len = 1;
	ring_word(r, r->p.sq_off.array)[at] = at;
	__atomic_store_n(ring_word(r, r->p.sq_off.tail), tail + 1,
			 __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		      NULL, 0) == 1,
	      "io_uring_enter");
	CHECK(__atomic_load_n(ring_word(r, r->p.cq_off.tail),
			      __ATOMIC_ACQUIRE) != head,
	      "no result");
	return cqes[head & *ring_word(r, r->p.cq_off.ring_mask)].res;
}

/* ---- no RPCs ---- */

static struct ring ring;
/* What a thread sends while there may be no more RPCs, and by which socket. */
static struct msghdr late_hdr;
static int late_fd;

static void *ring_sends(void *arg)
{
	int res = ring_send(&ring, late_fd, &late_hdr);

	(void)arg;
	CHECK(!res, "io_uring's call returned %d", res);
	return NULL;
}

static void *thread_sends(void *arg)
{
	(void)arg;
	CHECK(!sendmsg(late_fd, &late_hdr, 0), "sendmsg");
	return NULL;
}

/* Begins as many requests of a byte as there may be, some at least if there are none. */
static void use_all_rpcs(const struct sock *s)
{
	unsigned int n;

	for (n = 0; n < 17; n++) {
		struct homa_sendmsg_args args = { 0 };

		if (!send_raw(s->fd, &server, size_of(family), "x", 1, &args,
			      MSG_DONTWAIT))
			continue;
		CHECK(errno == EAGAIN && (n || rpcs_of(s->fd)), "not EAGAIN");
		return;
	}
	CHECK(0, "never full");
}

/* While there may be no more RPCs, another thread sends. Its message has all bytes when it goes. */
static void send_late(int port, void *(*sends)(void *))
{
	static unsigned char bytes[100];
	struct homa_sendmsg_args args = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct sock t, s;
	pthread_t thread;
	ssize_t got;

	if (sysctl_set("max_rpcs", 16))
		skip("net.homa.max_rpcs cannot be set");
	t = serve_here(port);
	s = open_sock(family, 0);
	use_all_rpcs(&s);
	fill(bytes, sizeof(bytes), 9);
	late_hdr = (struct msghdr){ .msg_name = &server,
				    .msg_namelen = size_of(family),
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &args };
	late_fd = s.fd;
	CHECK(!pthread_create(&thread, NULL, sends, NULL), "thread");
	/* It finds no room meanwhile. */
	usleep(200000);
	do {
		got = receive(&t, 0, 0);
		CHECK(got == 1 || got == sizeof(bytes), "%zd bytes", got);
		answer(&t, 1);
		CHECK(receive(&s, 0, 0) == 1, "no response");
	} while (got == 1);
	verify(&t, sizeof(bytes), 9);
	pthread_join(thread, NULL);
	sysctl_set("max_rpcs", 1000000);
	close_sock(&s);
	close_sock(&t);
}

void life_no_rpcs(void)
{
	send_late(4054, thread_sends);
}

/* io_uring asks without waiting, hears EAGAIN, and begins the same call again with what is left of
 * the message: that must be all of it. */
void life_ring(void)
{
	ring_make(&ring);
	send_late(4055, ring_sends);
}

/* A program that polls until it may send, while there may be no more RPCs, is not told all the
 * time that it may; nor is it forgotten. */
void life_no_rpcs_poll(void)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	int set = epoll_create1(0), told = 0, i;
	struct sock t, s;
	struct pollfd p;

	if (sysctl_set("max_rpcs", 16))
		skip("net.homa.max_rpcs cannot be set");
	t = serve_here(4056);
	s = open_sock(family, 0);
	p = (struct pollfd){ .fd = s.fd, .events = POLLOUT };
	CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, s.fd, &event), "epoll");
	for (i = 0; i < 100; i++) {
		use_all_rpcs(&s);
		/* If this thread had to wait long enough in between, it is told at once. */
		told += poll(&p, 1, 0);
		CHECK(poll(&p, 1, 60000 * patience()) == 1, "poll forgets");
	}
	CHECK(told < 100, "poll always says that there is room");
	for (i = 0; i < 10; i++) {
		while (epoll_wait(set, &event, 1, 0) > 0)
			;
		use_all_rpcs(&s);
		CHECK(epoll_wait(set, &event, 1, 60000 * patience()) == 1,
		      "epoll forgets");
	}
	sysctl_set("max_rpcs", 1000000);
	CHECK(poll(&p, 1, 60000 * patience()) == 1, "no room");
	CHECK(!send_raw(s.fd, &server, size_of(family), "x", 1,
			&(struct homa_sendmsg_args){ 0 }, MSG_DONTWAIT),
	      "a request when there may be more RPCs");
	close(set);
	close_sock(&s);
	close_sock(&t);
}
