// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hostile lives through the kernel: memory, descriptors, the attach socket, death. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hostile.h"

static void push(struct hostile *h, struct raw *r)
{
	struct homa_sqe sqe = hostile_sqe(h, r, 0);
	struct homa_cqe cqe;

	raw_push(r, below(h, 2), &sqe);
	while (raw_next(r, &cqe, 0))
		raw_release(r, &cqe);
}

static void must_fail(int rc, const char *what, int fd)
{
	if (rc >= 0)
		raw_die("homad's memory (descriptor %d) could be %s", fd, what);
}

/* Shrink, grow, unseal: must not work. Holes: may, and must not hurt homad. */
void live_memory(struct hostile *h)
{
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		int which = (int)below(h, 3); /* queues, data, pool */
		size_t sizes[] = { r.answer.queues_bytes, r.answer.data_bytes,
				   r.answer.pool_bytes };
		void *maps[] = { r.q, r.data, r.pool };
		int fd = r.fd[which];
		size_t bytes = sizes[which];
		size_t at = below(h, (uint32_t)(bytes >> 12)) << 12;

		switch (below(h, 8)) {
		case 0:
			must_fail(ftruncate(fd, (off_t)at), "cut off", fd);
			break;
		case 1:
			must_fail(ftruncate(fd, (off_t)bytes + 4096),
				  "extended", fd);
			break;
		case 2:
			must_fail(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE),
				  "made read-only", fd);
			break;
		case 3:
			(void)!fallocate(fd,
					 FALLOC_FL_PUNCH_HOLE |
						 FALLOC_FL_KEEP_SIZE,
					 (off_t)at, (off_t)(bytes - at));
			break;
		case 4:
			madvise((char *)maps[which] + at, bytes - at,
				MADV_REMOVE);
			break;
		case 5:
			madvise((char *)maps[which] + at, bytes - at,
				MADV_DONTNEED);
			break;
		default:
			push(h, &r);
		}
	}
	raw_close(&r);
}

/* As much as goes into a descriptor, whichever end of whatever it is. */
static void stuff(int fd)
{
	static const char junk[4096];
	uint64_t most = ~1ull;
	char path[64];
	int again;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)!write(fd, &most, sizeof(most));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_NONBLOCK);
	if (again < 0)
		return;
	while (write(again, junk, sizeof(junk)) > 0)
		;
	close(again);
}

/* The daemon's process. */
static pid_t homad(const struct raw *r)
{
	struct ucred peer = { .pid = getpid() };
	socklen_t length = sizeof(peer);

	getsockopt(r->sock, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer.pid;
}

/*
 * Flags and content of descriptors that homad signals by, or is signalled by,
 * may be shared with it: full, emptied, made blocking, owned by somebody else,
 * closed.
 */
void live_eventfds(struct hostile *h)
{
	char any[64];
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		int *fd = &r.fd[HOMA_CTL_FD_WAKE + below(h, 2)];

		switch (below(h, 7)) {
		case 0:
			fcntl(*fd, F_SETFL, below(h, 4) ? 0 : O_NONBLOCK);
			break;
		case 1:
			stuff(*fd);
			/* Homad is to find it full and blocking. */
			fcntl(*fd, F_SETFL, 0);
			break;
		case 2:
			fcntl(*fd, F_SETFL, O_NONBLOCK);
			(void)!read(*fd, any, sizeof(any));
			fcntl(*fd, F_SETFL, 0);
			break;
		case 3:
			/* A signal on every event, to homad. */
			fcntl(*fd, F_SETOWN, homad(&r));
			fcntl(*fd, F_SETFL, O_ASYNC | O_NONBLOCK);
			break;
		case 4:
			if (below(h, 50))
				break;
			close(*fd);
			*fd = -1;
			break;
		default:
			r.q->h.armed = HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED |
				       HOMA_SHM_ARM_FD;
			fcntl(r.fd[HOMA_CTL_FD_KICK], F_SETFL, O_NONBLOCK);
			push(h, &r);
		}
	}
	raw_close(&r);
}

static void send_garbage(struct hostile *h, int sock)
{
	static uint8_t packet[70000];
	struct homa_ctl_request request =
		raw_request((enum homa_ctl_op)below(h, HOMA_CTL_SHUTDOWN + 3));
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { packet, sizeof(request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int i;

	request.bytes = bits(h);
	request.port = (uint16_t)bits(h);
	request.encap = (uint16_t)bits(h);
	memcpy(packet, &request, sizeof(request));
	if (below(h, 3) == 0)
		for (i = 0; i < 4; i++)
			packet[below(h, sizeof(request))] = (uint8_t)bits(h);
	if (below(h, 3) == 0)
		iov.iov_len = below(h, below(h, 8) ? 200 : sizeof(packet));
	if (below(h, 4) == 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * 8);
		for (i = 0; i < 8; i++)
			memcpy(CMSG_DATA(c) + i * (int)sizeof(int), &sock,
			       sizeof(int));
	}
	sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void read_answers(int sock)
{
	char any[8192];

	while (recv(sock, any, sizeof(any), MSG_DONTWAIT) > 0)
		;
}

/* Packets that are none, in the wrong order, with descriptors nobody wants. */
void live_ctl_garbage(struct hostile *h)
{
	while (going(h)) {
		struct raw r;
		int i, n = (int)below(h, 200);

		if (below(h, 2))
			hostile_attach(h, &r);
		else
			memset(&r, 0, sizeof(r)),
				memset(r.fd, 0xff, sizeof(r.fd)),
				r.sock = raw_connect();
		for (i = 0; i < n && r.sock >= 0; i++) {
			send_garbage(h, r.sock);
			if (below(h, 2))
				read_answers(r.sock);
		}
		raw_close(&r);
	}
}

/* Asks and asks, and never reads an answer. */
void live_ctl_deaf(struct hostile *h)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_METRICS);
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		if (send(r.sock, &request, sizeof(request),
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			usleep(1000);
	}
	raw_close(&r);
}

/* Connections from which nothing ever comes, as many as there can be. */
void live_silent(struct hostile *h)
{
	static int socks[4000];
	struct rlimit files = { 4100, 4100 };
	int i, n = 0;

	setrlimit(RLIMIT_NOFILE, &files);
	while (going(h)) {
		while (n < 4000 && (socks[n] = raw_connect()) >= 0)
			n++;
		usleep(1000);
		for (i = 0; i < n / 2; i++)
			close(socks[--n]);
	}
	for (i = 0; i < n; i++)
		close(socks[i]);
}

void live_attach_many(struct hostile *h)
{
	struct raw all[64];
	int i, n = 0;

	while (going(h) && n < 64) {
		int rc = raw_attach(&all[n++], 2 << 20);

		if (rc)
			break;
	}
	for (i = 0; i < n; i++)
		raw_close(&all[i]);
}

/* A process in full work, to be killed or stopped. */
static pid_t worker(struct hostile *h, struct raw *r)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			push(h, r);
	}
	if (pid < 0)
		raw_die("fork: %s", strerror(errno));
	return pid;
}

void live_killed(struct hostile *h)
{
	struct raw r;
	pid_t pid;

	hostile_attach(h, &r);
	pid = worker(h, &r);
	close(r.sock); /* the worker's is the last one */
	r.sock = -1;
	usleep(below(h, (uint32_t)h->ms * 1000));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	raw_close(&r);
}

void live_stopped(struct hostile *h)
{
	struct raw r;
	pid_t pid;

	hostile_attach(h, &r);
	pid = worker(h, &r);
	usleep(below(h, 20000));
	kill(pid, SIGSTOP);
	usleep((useconds_t)h->ms * 1000);
	if (below(h, 2)) {
		kill(pid, SIGCONT);
		usleep(below(h, 20000));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	raw_close(&r);
}

/* Nothing wrong at all: proves that the others' requests are proper, too. */
void live_polite(struct hostile *h)
{
	uint8_t expected[64];
	struct homa_sqe sqe;
	struct homa_cqe cqe;
	struct raw r;
	uint32_t i;

	hostile_attach(h, &r);
	while (going(h)) {
		for (i = 0; i < sizeof(expected); i++)
			r.data[i] = expected[i] = (uint8_t)below(h, 128);
		sqe = raw_sqe(&r, h->ip, h->port, 0, sizeof(expected));
		sqe.flags = HOMA_SQE_COPY;
		if (!raw_push(&r, 0, &sqe))
			raw_die("a ring of %u entries is full with one in it",
				HOMA_SHM_SQ_ENTRIES);
		if (!raw_next(&r, &cqe, 30000))
			raw_die("no completion within 30 s");
		if (cqe.kind != HOMA_CQE_RESPONSE || cqe.token != sqe.token ||
		    cqe.length != sizeof(expected) || cqe.num_pages != 1 ||
		    memcmp(r.pool + cqe.pages[0], expected, sizeof(expected)))
			raw_die("completion of kind %u, error %u, %u bytes, %u pages",
				cqe.kind, cqe.error, cqe.length, cqe.num_pages);
		raw_release(&r, &cqe);
	}
	raw_close(&r);
}
