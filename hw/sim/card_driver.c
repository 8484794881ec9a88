// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Drivers that come and go. Each gets memory of its own, which is sealed so that neither side can
 * shrink it under the other. Only root and the user who runs the device may have it.
 */
#include "card.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX (1 + 2 * MNIC_QUEUES_MAX)

int card_listen(struct card *c)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int len = mnic_address(c->options.tap, name.sun_path,
			       sizeof(name.sun_path));

	c->listener = socket(AF_UNIX,
			     SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (len < 0 || c->listener < 0 ||
	    bind(c->listener, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			     (size_t)len)) ||
	    listen(c->listener, 4)) {
		perror("homa-card: cannot listen for drivers");
		return -1;
	}
	return 0;
}

/* Make the shared memory; its descriptor, or -1. */
static int make_memory(struct card *c)
{
	int fd = memfd_create("homa-message-nic",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct mnic_device *device;

	if (fd < 0)
		return -1;
	c->bytes = mnic_bytes(&c->hello);
	c->memory = MAP_FAILED;
	if (!ftruncate(fd, (off_t)c->bytes) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		c->memory = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED, fd, 0);
	if (c->memory == MAP_FAILED) {
		c->memory = NULL;
		close(fd);
		return -1;
	}
	device = (struct mnic_device *)c->memory;
	device->features = c->options.features;
	device->mtu = 1500;
	device->mbps = c->options.mbps;
	memcpy(device->mac, c->options.mac, sizeof(c->options.mac));
	return fd;
}

static int greet(int fd, const struct mnic_hello *hello, const int *fds,
		 uint32_t n)
{
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(int) * FDS_MAX)] = { 0 };
	struct iovec iov = { (void *)hello, sizeof(*hello) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg = (struct cmsghdr *)control;

	if (n) {
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n);
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
	}
	return sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static bool may_have_it(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (!peer.uid || peer.uid == geteuid());
}

/* Make what a driver gets, and greet it; -1 if that fails. */
static int serve(struct card *c, int fd)
{
	int fds[FDS_MAX];
	uint32_t n = 0, i;
	int rc = -1;

	fds[n] = make_memory(c);
	if (fds[n++] < 0)
		return -1;
	c->driver = fd;
	for (i = 0; i < c->hello.queues; i++) {
		struct card_queue *q = &c->q[i];

		memset(q, 0, sizeof(*q));
		q->shared = (struct mnic_queue *)(c->memory + mnic_queue_at(i));
		q->bell = fds[n++] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		q->call = fds[n++] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	}
	for (i = 0; i < n && fds[i] >= 0; i++)
		;
	if (i == n)
		rc = greet(fd, &c->hello, fds, n);
	close(fds[0]);
	return rc;
}

void card_accept(struct card *c)
{
	struct mnic_hello busy = c->hello;
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	busy.queues = 0;
	if (!may_have_it(fd)) {
		close(fd);
	} else if (c->driver >= 0) {
		(void)greet(fd, &busy, NULL, 0);
		close(fd);
	} else if (serve(c, fd)) {
		if (c->driver >= 0)
			card_leave(c);
		else
			close(fd);
	} else {
		c->counts.drivers++;
	}
}

void card_leave(struct card *c)
{
	if (c->driver < 0)
		return;
	for (uint32_t i = 0; i < c->hello.queues; i++) {
		close(c->q[i].bell);
		close(c->q[i].call);
	}
	munmap(c->memory, c->bytes);
	close(c->driver);
	c->driver = -1;
	c->memory = NULL;
	c->spoiled = false;
}
