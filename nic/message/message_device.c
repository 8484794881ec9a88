// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Finding the device and leaving it. Its socket is an abstract one, which anybody in the
 * network namespace could have bound, so it must be root's or our own user's. The memory it hands
 * over must be sealed against shrinking, or reading it could end this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "message.h"

#define FDS_MAX (1 + 2 * MNIC_QUEUES_MAX)
/* The time that the device has to greet when the nic is opened, in ms. */
#define GREET_MS 2000

static void close_fds(const int *fds, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Read the greeting. Returns the number of descriptors that came, or a negative errno; -EAGAIN:
 * it has not come. */
static int greet(int fd, struct mnic_hello *hello, int *fds)
{
	_Alignas(8) u8 control[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	struct iovec iov = { hello, sizeof(*hello) };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t len;
	u32 n = 0;

	len = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (len < 0)
		return -errno;
	for (c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
		u32 count = (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = homa_min_u32(count, FDS_MAX - n);
		memcpy(fds + n, CMSG_DATA(c), count * sizeof(int));
		n += count;
	}
	if (len == sizeof(*hello) && !hello->queues &&
	    hello->magic == MNIC_MAGIC) {
		close_fds(fds, n);
		return -EBUSY;
	}
	if (len != sizeof(*hello) || mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    !mnic_hello_ok(hello) || n != 1 + 2 * hello->queues) {
		close_fds(fds, n);
		return -EPROTO;
	}
	return (int)n;
}

static bool trusted(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (!peer.uid || peer.uid == geteuid());
}

/* Connect to the device, without waiting for it. Returns the connection, or a negative errno. */
static int call(const char *interface)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int len = mnic_address(interface, name.sun_path, sizeof(name.sun_path));
	int fd, rc = 0;

	if (len < 0)
		return -EINVAL;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (u32)len)))
		rc = -errno;
	else if (!trusted(fd))
		rc = -EPERM;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static int map_memory(struct message_device *d, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	d->bytes = mnic_bytes(&d->hello);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    st.st_size < 0 || (u64)st.st_size < d->bytes)
		return -EPROTO;
	d->memory =
		mmap(NULL, d->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (d->memory == MAP_FAILED) {
		d->memory = NULL;
		return -errno;
	}
	return 0;
}

/* A descriptor that blocks would have us wait for the device. */
static bool never_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int take_queues(struct message *m, const int *fds)
{
	struct message_device *d = &m->device;
	int rc = 0;

	for (u32 i = 0; i < d->hello.queues; i++) {
		struct message_queue *q = &d->q[i];

		memset(q, 0, sizeof(*q));
		q->shared = (struct mnic_queue *)(d->memory + mnic_queue_at(i));
		q->bell = fds[1 + 2 * i];
		q->call = fds[2 + 2 * i];
		for (u32 slot = 0; slot < d->hello.slots; slot++)
			q->free[q->n_free++] = (u8)slot;
		if (!never_block(q->bell) || !never_block(q->call))
			rc = -EPROTO;
		if (!rc)
			rc = nic_ether_watch(&m->eth, q->call, EPOLLIN);
	}
	return rc;
}

/* What the device tells of itself once; numbers that cannot be are taken for the nearest. */
static void learn(struct message *m)
{
	struct mnic_device device;
	struct nic_info *info = &m->eth.nic.info;

	memcpy(&device, m->device.memory, sizeof(device));
	m->device.features =
		m->no_offload ? 0 : device.features & MNIC_FEATURES_ALL;
	if (device.mtu >= NIC_MIN_MTU)
		nic_paths_limit_mtu(&m->eth.paths, device.mtu);
	info->mtu = m->eth.netif.mtu;
	info->link_mbps = device.mbps;
	info->max_segs =
		m->device.features & MNIC_FEATURE_LSO ? MNIC_PIECES_MAX : 1;
	snprintf(info->detail, sizeof(info->detail),
		 "%s, a message NIC with %u queue%s%s%s%s", m->eth.netif.name,
		 m->device.hello.queues, m->device.hello.queues == 1 ? "" : "s",
		 m->device.features & MNIC_FEATURE_LSO ? ", LSO" : "",
		 m->device.features & MNIC_FEATURE_LRO ? ", LRO" : "",
		 m->device.features & MNIC_FEATURE_RSS ? ", RSS" : "");
}

int message_call(struct message *m, char *err, size_t errlen)
{
	int fd = call(m->eth.netif.name);

	if (fd >= 0 && nic_ether_watch(&m->eth, fd, EPOLLIN | EPOLLRDHUP)) {
		close(fd);
		fd = -EIO;
	}
	if (fd < 0)
		return nic_fail(err, errlen, fd,
				"no message NIC can be used for %s: %s",
				m->eth.netif.name,
				fd == -EPERM ? "its process is another user's" :
					       strerror(-fd));
	m->calling = fd;
	return 0;
}

/* Begin with a device that has greeted with @fds. */
static int begin(struct message *m, const int *fds, u32 n)
{
	struct message_device *d = &m->device;
	int rc = map_memory(d, fds[0]);

	close(fds[0]);
	if (rc)
		close_fds(fds + 1, n - 1);
	else
		rc = take_queues(m, fds);
	if (rc) {
		message_disconnect(m);
		return rc;
	}
	learn(m);
	for (u32 i = 0; i < d->hello.queues; i++)
		message_post(m, &d->q[i]);
	return 0;
}

int message_greeted(struct message *m, char *err, size_t errlen)
{
	int fds[FDS_MAX];
	int rc, n = greet(m->calling, &m->device.hello, fds);

	if (n == -EAGAIN)
		return n;
	if (n < 0) {
		close(m->calling);
		m->calling = -1;
		return nic_fail(err, errlen, n,
				n == -EBUSY ?
					"another process uses the message NIC of %s" :
					"the message NIC of %s does not greet as one",
				m->eth.netif.name);
	}
	m->device.fd = m->calling;
	m->calling = -1;
	rc = begin(m, fds, (u32)n);
	return rc ? nic_fail(err, errlen, rc,
			     "the message NIC of %s cannot be used: %s",
			     m->eth.netif.name, strerror(-rc)) :
		    0;
}

int message_connect(struct message *m, char *err, size_t errlen)
{
	struct pollfd greeting = { .events = POLLIN };
	int rc = message_call(m, err, errlen);

	if (rc)
		return rc;
	greeting.fd = m->calling;
	poll(&greeting, 1, GREET_MS);
	rc = message_greeted(m, err, errlen);
	return rc == -EAGAIN ? nic_fail(err, errlen, -ETIMEDOUT,
					"the message NIC of %s does not greet",
					m->eth.netif.name) :
			       rc;
}

void message_disconnect(struct message *m)
{
	struct message_device *d = &m->device;

	if (d->fd < 0)
		return;
	if (d->memory) {
		for (u32 i = 0; i < d->hello.queues; i++) {
			close(d->q[i].bell);
			close(d->q[i].call);
		}
		munmap(d->memory, d->bytes);
	}
	close(d->fd);
	memset(d, 0, sizeof(*d));
	d->fd = -1;
}
