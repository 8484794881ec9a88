// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Finding the device and leaving it. Its socket is an abstract one, which anybody in the
 * network namespace could have bound, so it must be root's or our own user's. The memory it hands
 * over must be sealed against shrinking, or reading it could end this process.
 *
 * One nic of a hub calls the device, and publishes it when it has greeted. The others find it there
 * when they look for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
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

static int take_queues(struct message_device *d, const int *fds)
{
	int rc = 0;

	for (u32 i = 0; i < d->hello.queues; i++) {
		struct message_queue *q = &d->q[i];

		q->shared = (struct mnic_queue *)(d->memory + mnic_queue_at(i));
		q->bell = fds[1 + 2 * i];
		q->call = fds[2 + 2 * i];
		for (u32 slot = 0; slot < d->hello.slots; slot++)
			q->free[q->n_free++] = (u8)slot;
		if (!never_block(q->bell) || !never_block(q->call))
			rc = -EPROTO;
	}
	return rc;
}

/* What the device tells of itself once. */
static void hear(struct message_device *d, bool no_offload)
{
	struct mnic_device said;

	memcpy(&said, d->memory, sizeof(said));
	d->features = no_offload ? 0 : said.features & MNIC_FEATURES_ALL;
	d->mtu = said.mtu;
	d->mbps = said.mbps;
}

static void free_device(struct message_device *d)
{
	if (d->memory)
		munmap(d->memory, d->bytes);
	for (u32 i = 0; i < d->hello.queues; i++) {
		close(d->q[i].bell);
		close(d->q[i].call);
	}
	close(d->fd);
	free(d);
}

/* Make a device of the connection @fd, which has greeted with @hello and @fds. All descriptors are
 * its own from now on. Returns 0 or a negative errno. */
static int make_device(struct message_device **out, int fd,
		       const struct mnic_hello *hello, const int *fds, u32 n,
		       bool no_offload)
{
	struct message_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d) {
		close_fds(fds, n);
		close(fd);
		return -ENOMEM;
	}
	d->fd = fd;
	d->hello = *hello;
	rc = map_memory(d, fds[0]);
	close(fds[0]);
	if (rc) {
		close_fds(fds + 1, n - 1);
		d->hello.queues = 0;
	} else {
		rc = take_queues(d, fds);
	}
	if (rc) {
		free_device(d);
		return rc;
	}
	hear(d, no_offload);
	*out = d;
	return 0;
}

/* ---- the device of the hub ---- */

/* Tell the caller what the device can; numbers that cannot be are taken for the nearest. */
static void learn(struct message *m, const struct message_device *d)
{
	struct nic_info *info = &m->eth.nic.info;

	if (d->mtu >= NIC_MIN_MTU)
		nic_paths_limit_mtu(&m->eth.paths, d->mtu);
	info->mtu = m->eth.netif.mtu;
	info->link_mbps = d->mbps;
	info->max_segs = d->features & MNIC_FEATURE_LSO ? MNIC_PIECES_MAX : 1;
	info->parts = m->hub->parts;
	/* Others may read this, so it is what the first device had. */
	if (info->detail[0])
		return;
	snprintf(info->detail, sizeof(info->detail),
		 "%s, a message NIC with %u queue%s%s%s%s", m->eth.netif.name,
		 d->hello.queues, d->hello.queues == 1 ? "" : "s",
		 d->features & MNIC_FEATURE_LSO ? ", LSO" : "",
		 d->features & MNIC_FEATURE_LRO ? ", LRO" : "",
		 d->features & MNIC_FEATURE_RSS ? ", RSS" : "");
}

/* Use this part of the hub's device. The caller has the lock. */
static int join_device(struct message *m)
{
	struct message_device *d = m->hub->device;
	u32 first = d->hello.queues * m->part / m->hub->parts;
	u32 end = d->hello.queues * (m->part + 1) / m->hub->parts;
	int rc = nic_ether_watch(&m->eth, d->fd, EPOLLIN | EPOLLRDHUP);

	for (u32 i = first; i < end && !rc; i++)
		rc = nic_ether_watch(&m->eth, d->q[i].call, EPOLLIN);
	if (rc)
		return rc;
	m->device = d;
	m->q = d->q + first;
	m->n_queues = end - first;
	m->next_queue = 0;
	d->users++;
	learn(m, d);
	for (u32 i = 0; i < m->n_queues; i++)
		message_post(m, &m->q[i]);
	return 0;
}

void message_disconnect(struct message *m)
{
	struct message_device *d = m->device;
	struct message_hub *hub = m->hub;
	bool last;

	if (!d)
		return;
	__atomic_store_n(&d->broken, true, __ATOMIC_RELAXED);
	/* By this the others wake, and hear that it has ended. */
	shutdown(d->fd, SHUT_RDWR);
	nic_ether_unwatch(&m->eth, d->fd);
	for (u32 i = 0; i < m->n_queues; i++)
		nic_ether_unwatch(&m->eth, m->q[i].call);
	m->device = NULL;
	m->q = NULL;
	m->n_queues = 0;
	pthread_mutex_lock(&hub->lock);
	if (hub->device == d)
		hub->device = NULL;
	last = !--d->users;
	pthread_mutex_unlock(&hub->lock);
	if (last)
		free_device(d);
}

int message_hub_join(struct message *m, const struct message *beside, u32 part,
		     u32 parts)
{
	struct message_hub *hub = beside ? beside->hub : NULL;

	if (part >= (hub ? hub->parts : homa_max_u32(parts, 1)))
		return -EINVAL;
	if (!hub) {
		hub = calloc(1, sizeof(*hub));
		if (!hub)
			return -ENOMEM;
		pthread_mutex_init(&hub->lock, NULL);
		hub->parts =
			homa_min_u32(homa_max_u32(parts, 1), MNIC_QUEUES_MAX);
	}
	pthread_mutex_lock(&hub->lock);
	hub->nics++;
	pthread_mutex_unlock(&hub->lock);
	m->hub = hub;
	m->part = part;
	return 0;
}

/* This nic does not call any more. */
static void cease_to_call(struct message *m)
{
	pthread_mutex_lock(&m->hub->lock);
	if (m->hub->caller == m)
		m->hub->caller = NULL;
	pthread_mutex_unlock(&m->hub->lock);
}

void message_hub_leave(struct message *m)
{
	struct message_hub *hub = m->hub;
	bool last;

	if (!hub)
		return;
	message_disconnect(m);
	if (m->calling >= 0)
		close(m->calling);
	cease_to_call(m);
	pthread_mutex_lock(&hub->lock);
	last = !--hub->nics;
	pthread_mutex_unlock(&hub->lock);
	if (last) {
		pthread_mutex_destroy(&hub->lock);
		free(hub);
	}
}

/* ---- calling a device ---- */

static int call_device(struct message *m)
{
	int fd = call(m->eth.netif.name);

	if (fd >= 0 && nic_ether_watch(&m->eth, fd, EPOLLIN | EPOLLRDHUP)) {
		close(fd);
		fd = -EIO;
	}
	if (fd < 0)
		return fd;
	m->calling = fd;
	return 0;
}

int message_look(struct message *m)
{
	struct message_hub *hub = m->hub;
	bool ours = false;
	int rc = -EAGAIN;

	pthread_mutex_lock(&hub->lock);
	if (hub->device &&
	    !__atomic_load_n(&hub->device->broken, __ATOMIC_RELAXED)) {
		rc = join_device(m);
	} else if (!hub->caller) {
		hub->caller = m;
		ours = true;
	}
	pthread_mutex_unlock(&hub->lock);
	if (!ours)
		return rc;
	rc = call_device(m);
	if (rc)
		cease_to_call(m);
	return rc;
}

/* Let all use the device @d, if it has a queue for each. */
static int publish(struct message *m, struct message_device *d)
{
	struct message_hub *hub = m->hub;
	int rc = 0;

	pthread_mutex_lock(&hub->lock);
	hub->caller = NULL;
	/* The first nic learns how many there can be. */
	if (hub->nics == 1 && !m->eth.nic.info.parts)
		hub->parts = d->features & MNIC_FEATURE_RSS ?
				     homa_min_u32(hub->parts, d->hello.queues) :
				     1;
	if (d->hello.queues < hub->parts)
		rc = -EPROTO;
	if (!rc) {
		hub->device = d;
		rc = join_device(m);
		if (rc)
			hub->device = NULL;
	}
	pthread_mutex_unlock(&hub->lock);
	if (rc)
		free_device(d);
	return rc;
}

int message_greeted(struct message *m, char *err, size_t errlen)
{
	int fds[FDS_MAX];
	struct message_device *d;
	struct mnic_hello hello;
	int rc, fd, n = greet(m->calling, &hello, fds);

	if (n == -EAGAIN)
		return n;
	nic_ether_unwatch(&m->eth, m->calling);
	fd = m->calling;
	m->calling = -1;
	if (n < 0) {
		close(fd);
		cease_to_call(m);
		return nic_fail(err, errlen, n,
				n == -EBUSY ?
					"another process uses the message NIC of %s" :
					"the message NIC of %s does not greet as one",
				m->eth.netif.name);
	}
	rc = make_device(&d, fd, &hello, fds, (u32)n, m->no_offload);
	if (rc)
		cease_to_call(m);
	else
		rc = publish(m, d);
	return rc ? nic_fail(err, errlen, rc,
			     "the message NIC of %s cannot be used: %s",
			     m->eth.netif.name, strerror(-rc)) :
		    0;
}

int message_connect(struct message *m, char *err, size_t errlen)
{
	struct pollfd greeting = { .events = POLLIN };
	int rc = message_look(m);

	if (rc)
		return nic_fail(err, errlen, rc,
				"no message NIC can be used for %s: %s",
				m->eth.netif.name,
				rc == -EPERM ? "its process is another user's" :
					       strerror(-rc));
	if (m->device)
		return 0;
	greeting.fd = m->calling;
	poll(&greeting, 1, GREET_MS);
	rc = message_greeted(m, err, errlen);
	return rc == -EAGAIN ? nic_fail(err, errlen, -ETIMEDOUT,
					"the message NIC of %s does not greet",
					m->eth.netif.name) :
			       rc;
}
