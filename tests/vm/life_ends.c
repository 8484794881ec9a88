// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What is left of a socket that ends: by its threads, and of its user's share of the host. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include "life.h"

/* ---- threads ---- */

/*
 * They wait for the response to a request that another thread is still sending. The socket is
 * shut down: they leave, their stacks go, and only then does the request end, because the sender's
 * memory goes too.
 */
#define WAITERS 24
#define SENT 500000u
/* Bytes of the message that are there. */
#define THERE (128u << 10)

/* struct sender - a request whose end is in memory that is not there yet. Written by: the check;
 * @args: sendmsg(), too. */
struct sender {
	/* The socket. */
	struct sock s;
	/* The arguments of sendmsg(); the id in them is that of the request. */
	struct homa_sendmsg_args args;
	/* The message. */
	unsigned char *bytes;
	/* What sendmsg() failed with. */
	int error;
};

static void *send_slowly(void *arg)
{
	struct sender *sender = arg;

	errno = 0;
	send_raw(sender->s.fd, &server, size_of(family), sender->bytes, SENT,
		 &sender->args, 0);
	sender->error = errno;
	return NULL;
}

static void *wait_for_it(void *arg)
{
	struct sender *sender = arg;
	struct sock s = sender->s;

	FAILS(receive(&s, sender->args.id, 0), ESHUTDOWN);
	return NULL;
}

/* Who touches the end of @bytes waits, until the file is closed that is returned. */
static int hold_back(unsigned char *bytes)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register end = {
		.range = { (uintptr_t)bytes + THERE, (512 << 10) - THERE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		skip("no userfaultfd()");
	CHECK(!ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
	CHECK(!ioctl(fd, UFFDIO_REGISTER, &end), "UFFDIO_REGISTER");
	return fd;
}

void life_waiters_leave(void)
{
	pid_t pid = start_server(4031);
	struct sender sender = { .s = open_sock(family, 0),
				 .args.flags = HOMA_SENDMSG_PRIVATE };
	pthread_t waiters[WAITERS], sends;
	struct pollfd faults = { .events = POLLIN };
	int i;

	sender.bytes = mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(sender.bytes != MAP_FAILED, "mmap");
	memset(sender.bytes, IGNORE, THERE);
	faults.fd = hold_back(sender.bytes);
	CHECK(!pthread_create(&sends, NULL, send_slowly, &sender), "thread");
	/* It has the id, and cannot go on. */
	CHECK(poll(&faults, 1, 60000) == 1 && faults.revents == POLLIN,
	      "the message is not read");
	CHECK(sender.args.id, "no id");
	for (i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&waiters[i], NULL, wait_for_it, &sender),
		      "thread");
	usleep(300000);
	CHECK(!shutdown(sender.s.fd, SHUT_RDWR), "shutdown");
	for (i = 0; i < WAITERS; i++)
		pthread_join(waiters[i], NULL);
	usleep(300000);
	CHECK(!munmap(sender.bytes + THERE, (512 << 10) - THERE), "munmap");
	close(faults.fd);
	pthread_join(sends, NULL);
	CHECK(sender.error == EFAULT, "error %d", sender.error);
	close_sock(&sender.s);
	end(pid);
}

/* ---- requests ---- */

#define UNTAKEN 100
#define OWNER_BACKLOG 350

/* Requests that a server had not taken when it ended do not count as waiting any longer. */
void life_untaken(void)
{
	struct sock s, c = open_sock(family, 0);
	union address to = address(family, ip, 4032);
	struct homa_abort_args all = { 0 };
	pid_t pid;
	int i, round;

	CHECK(!sysctl_set("max_owner_backlog", OWNER_BACKLOG), "sysctl");
	for (round = 0; round < 2 * OWNER_BACKLOG / UNTAKEN; round++) {
		long long before = metric("requests_received");

		s = open_sock(family, 0);
		bind_sock(&s, 4032);
		for (i = 0; i < UNTAKEN; i++)
			request(&c, &to, (char[]){ IGNORE }, 1, 0, 0);
		for (i = 0; i < 600; i++) {
			if (metric("requests_received") >= before + UNTAKEN)
				break;
			usleep(100000);
		}
		CHECK(i < 600, "%lld requests came in round %d",
		      metric("requests_received") - before, round);
		close_sock(&s);
		CHECK(!ioctl(c.fd, HOMAIOCABORT, &all), "abort");
	}
	pid = start_server(4033);
	call(&c, 100, 1);
	end(pid);
	close_sock(&c);
	sysctl_set("max_owner_backlog", 65536);
}
