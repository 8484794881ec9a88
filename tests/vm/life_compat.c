// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The API as 32-bit programs have it: system calls of that kind, by int 0x80, with their layouts
 * in memory below 4 GB. An RPC through each call of the API.
 */
#include <setjmp.h>
#include <signal.h>
#include "life.h"

#ifdef __x86_64__

/* Numbers of the 32-bit table. */
enum {
	IOCTL32 = 54,
	SOCKET32 = 359,
	BIND32 = 361,
	GETSOCKOPT32 = 365,
	SETSOCKOPT32 = 366,
	SENDMSG32 = 370,
	RECVMSG32 = 372,
};

/* A 64-bit number is aligned to 4 bytes there. */
typedef uint64_t u64_32 __attribute__((aligned(4)));

struct info32 {
	uint32_t rpc_info, rpc_info_length;
	u64_32 bpool_avail_bytes;
	uint32_t port, num_rpcs;
	char error_msg[HOMA_ERROR_MSG_SIZE];
};

struct rcvbuf32 {
	u64_32 start;
	uint32_t length;
};

struct iovec32 {
	uint32_t base, len;
};

struct msghdr32 {
	uint32_t name, namelen, iov, iovlen, control, controllen, flags;
};

/* What the calls read and write, all below 4 GB. */
struct arena {
	union address name;
	struct msghdr32 msg;
	struct iovec32 iov;
	struct homa_sendmsg_args send;
	struct homa_recvmsg_args recv;
	struct homa_exchange_args exchange;
	struct homa_abort_args abort;
	struct rcvbuf32 rcvbuf;
	struct info32 info;
	struct homa_rpc_info rpcs[4];
	uint32_t len;
	char bytes[64];
	char guard[16];
};

_Static_assert(sizeof(struct info32) == 124 && sizeof(struct rcvbuf32) == 12,
	       "layouts of 32-bit programs");

#define INFO32 _IOWR('h', 0x90, struct info32)
#define REGION32 ((size_t)4 << 20)

static struct arena *a;

static long call32(long nr, long one, long two, long three, long four, long five)
{
	long rc;

	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(nr), "b"(one), "c"(two), "d"(three), "S"(four),
			   "D"(five)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)rc;
}

static uint32_t low(const void *p)
{
	CHECK((uintptr_t)p >> 32 == 0, "%p is not below 4 GB", p);
	return (uint32_t)(uintptr_t)p;
}

static void *low_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	CHECK(p != MAP_FAILED, "no memory below 4 GB");
	return p;
}

static sigjmp_buf no_calls;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(no_calls, 1);
}

/* Kernels may have no such calls. */
static void needs_calls(void)
{
	struct sigaction act = { .sa_handler = on_fault }, before;

	sigaction(SIGSEGV, &act, &before);
	if (sigsetjmp(no_calls, 1))
		skip("this kernel runs no 32-bit programs");
	/* getpid() */
	if (call32(20, 0, 0, 0, 0, 0) != getpid())
		skip("this kernel runs no 32-bit programs");
	sigaction(SIGSEGV, &before, NULL);
}

static int open32(void **region)
{
	int fd = (int)call32(SOCKET32, family, SOCK_DGRAM, IPPROTO_HOMA, 0, 0);

	CHECK(fd >= 0, "socket: %d", fd);
	*region = low_memory(REGION32);
	a->rcvbuf.start = low(*region);
	a->rcvbuf.length = REGION32;
	/* As 64-bit programs have it, it is not a 32-bit program's. */
	CHECK(call32(SETSOCKOPT32, fd, IPPROTO_HOMA, SO_HOMA_RCVBUF,
		     low(&a->rcvbuf), 11) == -EINVAL,
	      "a short value");
	CHECK(!call32(SETSOCKOPT32, fd, IPPROTO_HOMA, SO_HOMA_RCVBUF,
		      low(&a->rcvbuf), sizeof(a->rcvbuf)),
	      "SO_HOMA_RCVBUF");
	memset(&a->rcvbuf, 0xff, sizeof(a->rcvbuf));
	a->len = sizeof(a->rcvbuf);
	memset(&a->info, 0xee, 4);
	CHECK(!call32(GETSOCKOPT32, fd, IPPROTO_HOMA, SO_HOMA_RCVBUF,
		      low(&a->rcvbuf), low(&a->len)),
	      "getsockopt");
	CHECK(a->len == 12 && a->rcvbuf.start == low(*region) &&
		      a->rcvbuf.length == REGION32,
	      "the region: %u bytes", a->rcvbuf.length);
	CHECK(a->info.rpc_info == 0xeeeeeeee, "more was written");
	return fd;
}

static void set_message(const char *text, void *control, size_t controllen)
{
	strcpy(a->bytes, text);
	a->iov = (struct iovec32){ low(a->bytes), (uint32_t)strlen(text) };
	a->msg = (struct msghdr32){ .name = low(&a->name),
				    .namelen = size_of(family),
				    .iov = low(&a->iov),
				    .iovlen = 1,
				    .control = low(control),
				    .controllen = (uint32_t)controllen };
}

static void send32(int fd, const union address *to, const char *text, uint64_t id)
{
	a->name = *to;
	a->send = (struct homa_sendmsg_args){ .id = id };
	set_message(text, &a->send, 0);
	CHECK(!call32(SENDMSG32, fd, low(&a->msg), 0, 0, 0), "sendmsg %s", text);
}

/* Receives @want, and says from whom in a->name. */
static void receive32(int fd, const char *region, const char *want)
{
	long n;

	memset(&a->recv, 0, sizeof(a->recv));
	set_message("", &a->recv, sizeof(a->recv));
	n = call32(RECVMSG32, fd, low(&a->msg), 0, 0, 0);
	CHECK(n == (long)strlen(want), "recvmsg: %ld", n);
	CHECK(a->msg.namelen == size_of(family) && !a->msg.controllen,
	      "name %u, control %u", a->msg.namelen, a->msg.controllen);
	CHECK(!memcmp(region + a->recv.bpage_offsets[0], want, strlen(want)),
	      "other bytes than %s", want);
}

static void info32(int fd, uint32_t rpcs, uint64_t id)
{
	memset(&a->info, 0, sizeof(a->info));
	a->info.rpc_info = low(a->rpcs);
	a->info.rpc_info_length = sizeof(a->rpcs);
	CHECK(!call32(IOCTL32, fd, INFO32, low(&a->info), 0, 0), "HOMAIOCINFO");
	CHECK(a->info.num_rpcs == rpcs && a->info.rpc_info == low(a->rpcs) &&
		      a->info.rpc_info_length == sizeof(a->rpcs),
	      "%u RPCs", a->info.num_rpcs);
	CHECK(a->info.port && a->info.port < 65536 &&
		      a->info.bpool_avail_bytes <= REGION32,
	      "port %u, %llu bytes", a->info.port,
	      (unsigned long long)a->info.bpool_avail_bytes);
	CHECK(!rpcs || a->rpcs[0].id == id, "RPC %llu",
	      (unsigned long long)a->rpcs[0].id);
}

void life_compat(void)
{
	union address to = address(family, ip, 4040), from;
	void *at_client, *at_server;
	int client, server_fd;
	uint64_t id;

	needs_calls();
	a = low_memory(sizeof(*a));
	client = open32(&at_client);
	server_fd = open32(&at_server);
	a->name = to;
	CHECK(!call32(BIND32, server_fd, low(&a->name), size_of(family), 0, 0),
	      "bind");
	send32(client, &to, "question", 0);
	id = a->send.id;
	CHECK(id && !(id & 1), "the id of the request");
	receive32(server_fd, at_server, "question");
	CHECK(a->recv.id & 1, "the id of the request");
	info32(client, 1, id);
	from = a->name;
	send32(server_fd, &from, "an answer", a->recv.id);
	receive32(client, at_client, "an answer");
	CHECK(a->recv.id == id, "the id of the response");
	info32(client, 0, 0);

	/* An answer and the next request in one call. */
	send32(client, &to, "one", 0);
	receive32(server_fd, at_server, "one");
	memset(&a->exchange, 0, sizeof(a->exchange));
	memcpy(&a->exchange.peer, &a->name, size_of(family));
	a->exchange.send.id = a->recv.id;
	a->exchange.send.flags = HOMA_SENDMSG_RECEIVE;
	id = a->exchange.send.id;
	send32(client, &to, "two", 0);
	set_message("first", &a->exchange, 0);
	a->msg.name = 0;
	a->msg.namelen = 0;
	CHECK(call32(SENDMSG32, server_fd, low(&a->msg), 0, 0, 0) == 3,
	      "HOMA_SENDMSG_RECEIVE");
	CHECK(a->exchange.recv.id != id &&
		      !memcmp((char *)at_server +
				      a->exchange.recv.bpage_offsets[0],
			      "two", 3),
	      "the next request");
	receive32(client, at_client, "first");

	/* What is open ends. */
	a->abort = (struct homa_abort_args){ .error = ECANCELED };
	CHECK(!call32(IOCTL32, client, HOMAIOCABORT, low(&a->abort), 0, 0),
	      "HOMAIOCABORT");
	memset(&a->recv, 0, sizeof(a->recv));
	set_message("", &a->recv, sizeof(a->recv));
	CHECK(call32(RECVMSG32, client, low(&a->msg), 0, 0, 0) == -ECANCELED,
	      "the end");
	CHECK(!call32(IOCTL32, client, HOMAIOCFREEZE, 0, 0, 0), "HOMAIOCFREEZE");
	/* Others are the kernel's. */
	CHECK(call32(IOCTL32, client, _IO('h', 0x77), 0, 0, 0) == -ENOTTY,
	      "an unknown ioctl");
	CHECK(call32(IOCTL32, client, INFO32, 8, 0, 0) == -EFAULT, "no memory");
	close(client);
	close(server_fd);
}

#else
void life_compat(void)
{
	skip("int 0x80 is x86-64's");
}
#endif
