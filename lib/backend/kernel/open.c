// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening and closing a handle of the kernel backend. A child of fork() has a copy of
 * the socket's descriptor, which would keep its port and its RPCs alive when the
 * parent closes or ends: so it is closed there, and nothing else is touched.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend_kernel.h"

#define SPIN_DEFAULT_US 50 /* as in options.c; the kernel polls by itself */

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static struct homa_list handles = { &handles, &handles };

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_fds(struct homa_ksock *c)
{
	close_one(c->ep_fd);
	close_one(c->level_fd);
	close_one(c->send_fd);
	close_one(c->nudge_fd);
	close_one(c->fd);
}

static void before_fork(void)
{
	pthread_mutex_lock(&handles_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&handles_lock);
}

static void in_child(void)
{
	struct homa_list *node;

	for (node = handles.next; node != &handles; node = node->next)
		close_fds(homa_container_of(node, struct homa_ksock, all));
	homa_list_init(&handles);
	pthread_mutex_unlock(&handles_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void list_handle(struct homa_ksock *c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&handles_lock);
	homa_list_add_tail(&handles, &c->all);
	pthread_mutex_unlock(&handles_lock);
}

static int open_socket(struct homa_ksock *c, char *err, size_t errlen)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC, error;

	c->family = AF_INET6;
	c->fd = socket(AF_INET6, type, IPPROTO_HOMA);
	if (c->fd < 0 && (errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT)) {
		c->family = AF_INET;
		c->fd = socket(AF_INET, type, IPPROTO_HOMA);
	}
	if (c->fd >= 0)
		return 0;
	error = errno;
	if (error == EPROTONOSUPPORT || error == ESOCKTNOSUPPORT)
		snprintf(err, errlen,
			 "the kernel has no Homa: load its module (modprobe homa, ./homa kernel load), or choose another host");
	else
		snprintf(err, errlen, "cannot make a Homa socket: %s",
			 strerror(error));
	return error == EPROTONOSUPPORT || error == ESOCKTNOSUPPORT ?
		       -EOPNOTSUPP :
		       -error;
}

static int give_region(struct homa_ksock *c)
{
	struct homa_rcvbuf_args args = { (uintptr_t)c->region, c->region_bytes };

	return setsockopt(c->fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &args,
			  sizeof(args)) ?
		       -errno :
		       0;
}

static int map_region(struct homa_ksock *c, size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	madvise(mem, bytes, MADV_DONTFORK);
	c->region = mem;
	c->region_bytes = bytes;
	c->own_region = true;
	return 0;
}

static void unmap_region(struct homa_ksock *c)
{
	if (c->own_region)
		munmap(c->region, c->region_bytes);
	c->own_region = false;
	c->region = NULL;
}

/* Give the kernel a region of the size that was asked for, or of the size that it needs for all
 * its cores. */
static int make_region(struct homa_ksock *c,
		       const struct homa_backend_options *options, char *err,
		       size_t errlen)
{
	size_t least = (size_t)sysconf(_SC_NPROCESSORS_CONF) * HOMA_BPAGE_SIZE +
		       (2 << 20);
	int rc;

	if (options->region) {
		c->region = options->region;
		c->region_bytes = options->rcvbuf;
		rc = give_region(c);
	} else {
		rc = map_region(c, options->rcvbuf);
		if (!rc)
			rc = give_region(c);
		if (rc == -EINVAL && options->rcvbuf < least) {
			unmap_region(c);
			rc = map_region(c, least);
			if (!rc)
				rc = give_region(c);
		}
	}
	if (rc)
		snprintf(err, errlen,
			 "the kernel refuses a receive buffer of %zu bytes: %s",
			 c->region_bytes, strerror(-rc));
	return rc;
}

static struct homa_ksock *new_handle(const struct homa_backend_options *options)
{
	struct homa_ksock *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = c->nudge_fd = c->ep_fd = c->level_fd = c->send_fd = -1;
	if (options->spin_us < 0)
		c->spin_ns = HOMA_KSOCK_NEVER;
	else if (options->spin_us != SPIN_DEFAULT_US)
		c->spin_ns = (u64)options->spin_us * 1000;
	homa_list_init(&c->all);
	homa_list_init(&c->waiters);
	homa_list_init(&c->ready);
	return c;
}

/* Free the handle. Messages that the application holds are lost, as in every host. */
static void free_handle(struct homa_ksock *c)
{
	struct homa_list *node;

	close_fds(c);
	while ((node = homa_list_pop(&c->ready))) {
		struct homa_ksock_item *item =
			homa_container_of(node, struct homa_ksock_item, list);

		if (item->msg.kind == HOMA_REQUEST)
			free(item);
	}
	homa_ksock_slots_free(c);
	homa_ksock_pages_free(c);
	unmap_region(c);
	free(c);
}

static int homa_ksock_open(void **out, const struct homa_backend_options *options,
			   char *err, size_t errlen)
{
	struct homa_ksock *c = new_handle(options);
	int rc = -ENOMEM;

	err[0] = '\0';
	if (!c)
		return rc;
	rc = open_socket(c, err, errlen);
	if (!rc)
		rc = make_region(c, options, err, errlen);
	if (!rc)
		rc = homa_ksock_slots_init(c);
	if (!rc)
		rc = homa_ksock_pages_init(c);
	if (!rc) {
		c->nudge_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		rc = c->nudge_fd < 0 ? -errno : 0;
	}
	if (rc) {
		if (!err[0])
			snprintf(err, errlen, "cannot use a Homa socket: %s",
				 strerror(-rc));
		free_handle(c);
		return rc;
	}
	list_handle(c);
	*out = c;
	return 0;
}

static int homa_ksock_shutdown(void *host)
{
	struct homa_ksock *c = host;

	__atomic_store_n(&c->shut, 1, __ATOMIC_RELEASE);
	/* This ends the threads' calls in the kernel, and the socket's RPCs. */
	shutdown(c->fd, SHUT_RDWR);
	return 0;
}

static void homa_ksock_close(void *host)
{
	struct homa_ksock *c = host;

	pthread_mutex_lock(&handles_lock);
	homa_list_del(&c->all);
	pthread_mutex_unlock(&handles_lock);
	homa_gate_lock(&c->lock);
	__atomic_store_n(&c->shut, 1, __ATOMIC_RELEASE);
	if (c->inside) {
		shutdown(c->fd, SHUT_RDWR);
		homa_ksock_end_waits(c);
	}
	homa_gate_unlock(&c->lock);
	free_handle(c);
}

static int homa_ksock_bind(void *host, uint16_t port)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6,
				     .sin6_port = htons(port) };
	struct sockaddr_in name4 = { .sin_family = AF_INET,
				     .sin_port = htons(port) };
	struct homa_ksock *c = host;
	bool v4 = c->family == AF_INET;
	int rc;

	homa_gate_lock(&c->lock);
	rc = homa_ksock_error(c);
	if (!rc && c->bound)
		rc = -EINVAL;
	if (!rc &&
	    bind(c->fd, v4 ? (struct sockaddr *)&name4 : (struct sockaddr *)&name,
		 v4 ? sizeof(name4) : sizeof(name)))
		rc = -errno;
	c->bound |= !rc;
	homa_gate_unlock(&c->lock);
	return rc;
}

static int homa_ksock_getsockname(void *host, struct sockaddr_storage *addr)
{
	struct homa_ksock *c = host;
	socklen_t len = sizeof(*addr);

	return getsockname(c->fd, (struct sockaddr *)addr, &len) ? -errno : 0;
}

static uint16_t homa_ksock_udp_port(void *host)
{
	(void)host;
	return 0;
}

/* Only libhoma-preload asks for this, and it does not use this host. */
static int not_here(void *host)
{
	(void)host;
	return -EOPNOTSUPP;
}

static int no_set_region(void *host, void *region, size_t bytes)
{
	(void)region;
	(void)bytes;
	return not_here(host);
}

static int no_listen(void *host, uint16_t port, unsigned int flags)
{
	(void)port;
	(void)flags;
	return not_here(host);
}

static int no_rpcs(void *host,
		   void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		   void *arg)
{
	(void)visit;
	(void)arg;
	return not_here(host);
}

const struct homa_backend_ops *homa_ksock_get(void)
{
	static const struct homa_backend_ops ops = {
		.abi = HOMA_BACKEND_ABI,
		.open = homa_ksock_open,
		.close = homa_ksock_close,
		.bind = homa_ksock_bind,
		.getsockname = homa_ksock_getsockname,
		.udp_port = homa_ksock_udp_port,
		.request = homa_ksock_request,
		.reply = homa_ksock_reply,
		.receive = homa_ksock_receive,
		.receive_batch = homa_ksock_receive_batch,
		.release = homa_ksock_release,
		.abort = homa_ksock_abort,
		.fd = homa_ksock_fd,
		.poll = homa_ksock_poll,
		.metrics = homa_ksock_metrics,
		.fd_edges = not_here,
		.set_region = no_set_region,
		.listen = no_listen,
		.release_pages = homa_ksock_release_pages,
		.rpcs = no_rpcs,
		.shutdown = homa_ksock_shutdown,
		.reject = homa_ksock_reject,
		.alive = homa_ksock_alive,
		.wait_send = homa_ksock_wait_send,
		.send_fd = homa_ksock_send_fd,
	};

	return &ops;
}
