// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Life of a Homa socket: made by socket(), shared by descriptors and the calls
 * that are using it, closed when the last of them lets go, as the kernel does
 * it. The handle of libhoma behind it may change: a child of fork() opens its
 * own the first time it uses the socket.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "libhoma_preload.h"
#include "internal.h"
#include "real.h"
#include "preload_sock.h"
#include "pl_signals.h"

#define USUAL_UDP_PORT 54321

/* One thread at a time gives a socket a handle. libhoma has locks of its own
 * then, which fork() takes in an order we do not know, so it does not take this. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock of the two lists of sockets; nothing else is done under it. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct homa_pl_sock *free_socks;
struct homa_pl_sock *homa_pl_all;
unsigned int homa_pl_generation;
uint32_t homa_pl_missing_ports;

void homa_pl_lock_list(void)
{
	pthread_mutex_lock(&list_lock);
}

void homa_pl_unlock_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

void homa_pl_reset_locks(void)
{
	pthread_mutex_init(&list_lock, NULL);
	pthread_mutex_init(&open_lock, NULL);
}

/* The error of socket(), as a kernel without Homa has it. */
static int open_errno(int rc)
{
	switch (rc) {
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return rc;
	default:
		return -EPROTONOSUPPORT;
	}
}

static int open_handle(struct homa_pl_sock *s)
{
	int rc = homa_open(&s->h, NULL);

	if (rc) {
		s->h = NULL;
		homa_pl_debug("no Homa here: %s", homa_open_error());
		return open_errno(rc);
	}
	s->generation = homa_pl_generation;
	homa_pl_debug("socket over %s%s%s", homa_via(s->h),
		      *homa_via_reason(s->h) ? ": " : "", homa_via_reason(s->h));
	return 0;
}

/* Take a socket that is not in use, or memory for one. */
static struct homa_pl_sock *get_sock(int family, int status)
{
	struct homa_pl_sock *s;

	homa_pl_lock_list();
	s = free_socks;
	if (s)
		free_socks = s->next_free;
	homa_pl_unlock_list();
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		pthread_mutex_init(&s->lock, NULL);
		pthread_mutex_init(&s->reading, NULL);
		pthread_mutex_init(&s->writing, NULL);
		homa_pl_lock_list();
		s->next = homa_pl_all;
		homa_pl_all = s;
		homa_pl_unlock_list();
	}
	/* @refs is not touched: it stays 0 for threads that still look at the old socket. */
	memset((char *)s + offsetof(struct homa_pl_sock, h), 0,
	       offsetof(struct homa_pl_sock, next) -
		       offsetof(struct homa_pl_sock, h));
	s->family = family;
	s->status = status;
	s->rcvtimeo = s->sndtimeo = -1;
	s->out_fd = -1;
	s->held_end = &s->held;
	return s;
}

static void put_sock(struct homa_pl_sock *s)
{
	homa_pl_lock_list();
	s->next_free = free_socks;
	free_socks = s;
	homa_pl_unlock_list();
}

/* Put a new socket into the table. One that is there was closed unseen, by an instruction of the
 * program or inside the C library, as the kernel has given its number anew. */
static void enter(int fd, struct homa_pl_sock *s)
{
	struct homa_pl_sock *before = homa_pl_table_set(fd, s);

	if (before)
		homa_pl_drop(before);
}

int homa_pl_socket(int family, int type)
{
	struct homa_pl_sock *s;
	int fd, rc;

	homa_pl_watch_forks();
	/* The descriptor comes first, so that it is the lowest free number as socket() promises. */
	fd = homa_pl_placeholder(type & SOCK_CLOEXEC);
	if (fd < 0)
		return fd;
	rc = homa_pl_table_room(fd);
	if (rc)
		goto fail_fd;
	s = get_sock(family, type & SOCK_NONBLOCK);
	rc = s ? open_handle(s) : -ENOMEM;
	if (rc) {
		if (s)
			put_sock(s);
		goto fail_fd;
	}
	__atomic_store_n(&s->refs, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&homa_pl_live, 1, __ATOMIC_RELEASE);
	enter(fd, s);
	return fd;
fail_fd:
	HOMA_PL_REAL(close)(fd);
	return rc;
}

struct homa_pl_sock *
homa_pl_adopt(int fd, int family, int status,
	      void (*fill)(struct homa_pl_sock *s, void *arg), void *arg)
{
	struct homa_pl_sock *s;

	homa_pl_watch_forks();
	s = homa_pl_table_room(fd) ? NULL : get_sock(family, status);
	if (!s)
		return NULL;
	s->generation = homa_pl_generation;
	fill(s, arg);
	__atomic_store_n(&s->refs, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&homa_pl_live, 1, __ATOMIC_RELEASE);
	enter(fd, s);
	return s;
}

static void free_held(struct homa_pl_sock *s)
{
	while (s->held) {
		struct homa_pl_held *held = s->held;

		s->held = held->next;
		free(held);
	}
	s->held_end = &s->held;
}

static void destroy(struct homa_pl_sock *s)
{
	/* What libhoma does here shall not be taken for the program's calls. */
	int cancel, inside = homa_pl_enter();

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (s->port_missing)
		__atomic_fetch_sub(&homa_pl_missing_ports, 1, __ATOMIC_RELAXED);
	if (s->drop)
		s->drop(s);
	homa_close(s->h);
	if (s->out_fd >= 0)
		HOMA_PL_REAL(close)(s->out_fd);
	homa_pl_rpcs_free(s);
	free_held(s);
	homa_pl_region_free(s);
	__atomic_fetch_sub(&homa_pl_live, 1, __ATOMIC_RELEASE);
	put_sock(s);
	pthread_setcancelstate(cancel, NULL);
	if (!inside)
		homa_pl_leave();
}

void homa_pl_drop(struct homa_pl_sock *s)
{
	if (!__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		destroy(s);
}

void homa_pl_put(struct homa_pl_sock *s)
{
	/* This is read before the reference is dropped, after which @s may be another socket. */
	bool held = s->drop != NULL;

	homa_pl_drop(s);
	if (held)
		homa_pl_unhold();
}

/* A child of fork() has the descriptor but not the handle. */
static int open_again(struct homa_pl_sock *s)
{
	struct homa *before = s->h;
	int rc;

	/* In a child, homa_close() leaves alone what is the parent's. */
	s->h = NULL;
	homa_close(before);
	homa_pl_rpcs_free(s);
	free_held(s);
	rc = open_handle(s);
	if (rc)
		return homa_pl_error(s, rc,
				     "cannot open Homa again after fork()");
	s->armed = s->edges = false;
	s->reborn = true;
	if (s->region.start)
		homa_pl_region_again(s);
	if (s->port) {
		s->port_missing = true;
		__atomic_fetch_add(&homa_pl_missing_ports, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

int homa_pl_ready(struct homa_pl_sock *s)
{
	int rc = 0;

	if (HOMA_PL_LIKELY(__atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) ==
			   homa_pl_generation))
		return 0;
	pthread_mutex_lock(&open_lock);
	if (s->generation != homa_pl_generation)
		rc = open_again(s);
	pthread_mutex_unlock(&open_lock);
	if (!rc)
		homa_pl_claim_port(s);
	return rc;
}

/* Peers whose address the socket's family cannot tell are refused. */
static int listen_at(struct homa_pl_sock *s, uint16_t port, bool server)
{
	unsigned int flags = server ? HOMA_CTL_LISTEN_ON : 0;

	if (s->family == AF_INET)
		flags |= HOMA_CTL_LISTEN_V4;
	return homa_internal_listen(s->h, port, flags);
}

int homa_pl_serve(struct homa_pl_sock *s, bool on)
{
	int rc = 0;

	/* If the parent still has the port, this is done when we get it. */
	if (!s->port_missing)
		rc = listen_at(s, 0, on);
	if (rc)
		return homa_pl_error(s, rc, homa_error(s->h));
	s->server = on;
	return 0;
}

void homa_pl_claim_port(struct homa_pl_sock *s)
{
	if (HOMA_PL_LIKELY(!__atomic_load_n(&s->port_missing, __ATOMIC_RELAXED)))
		return;
	/* The thread that has the lock may be waiting for us, so do not wait for it. */
	if (pthread_mutex_trylock(&open_lock))
		return;
	if (s->port_missing && s->generation == homa_pl_generation &&
	    !listen_at(s, s->port, s->server)) {
		s->port_missing = false;
		__atomic_fetch_sub(&homa_pl_missing_ports, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&open_lock);
}

void homa_pl_claim_ports(void)
{
	int fd = -1;

	/* libhoma itself calls hooks that wait; then nothing is done. */
	if (homa_pl_enter())
		return;
	while ((fd = homa_pl_table_next(fd + 1)) >= 0) {
		struct homa_pl_sock *s = homa_pl_find(fd);

		if (!s)
			continue;
		homa_pl_claim_port(s);
		homa_pl_put(s);
	}
	homa_pl_leave();
}

/*
 * close() gives a port back at once in the kernel; homad learns of it a moment
 * later, and so may a server that is started anew.
 */
static int bind_patiently(struct homa_pl_sock *s, uint16_t port)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int rc, tries = 50;

	for (;;) {
		rc = listen_at(s, port, true);
		if (rc != -EADDRINUSE || !tries--)
			return rc;
		nanosleep(&pause, NULL);
	}
}

static socklen_t name_size(const struct homa_pl_sock *s)
{
	return s->family == AF_INET ? sizeof(struct sockaddr_in) :
				      sizeof(struct sockaddr_in6);
}

/* Set whether the socket waits for its parent's port; returns whether it did so before. */
static bool set_missing(struct homa_pl_sock *s, bool missing)
{
	bool before;

	pthread_mutex_lock(&open_lock);
	before = s->port_missing;
	s->port_missing = missing;
	__atomic_fetch_add(&homa_pl_missing_ports, missing - before,
			   __ATOMIC_RELAXED);
	pthread_mutex_unlock(&open_lock);
	return before;
}

int homa_pl_bind(struct homa_pl_sock *s, const struct sockaddr *addr,
		 socklen_t len)
{
	uint16_t port;
	bool missing;
	int rc;

	if (!addr)
		return -EFAULT;
	if (len < name_size(s))
		return homa_pl_error(s, -EINVAL, "bind: the address is cut off");
	if (addr->sa_family != s->family)
		return homa_pl_error(
			s, -EAFNOSUPPORT,
			"bind: the address is of another family than the socket");
	/* The port is in the same place in both families. */
	port = ntohs(((const struct sockaddr_in *)addr)->sin_port);
	if (!port || port == s->port)
		return 0;
	if (port >= HOMA_MIN_DEFAULT_PORT)
		return homa_pl_error(s, -EINVAL,
				     "bind: servers use ports below 32768");
	missing = set_missing(s, false);
	rc = bind_patiently(s, port);
	if (rc) {
		set_missing(s, missing);
		return homa_pl_error(s, rc, homa_error(s->h));
	}
	s->port = port;
	s->server = true;
	if (homa_udp_port(s->h) && homa_udp_port(s->h) != USUAL_UDP_PORT)
		homa_pl_debug("server port %u is at UDP port %u, where clients do not look, as %u is taken",
			      port, homa_udp_port(s->h), USUAL_UDP_PORT);
	return 0;
}

int homa_pl_connect(struct homa_pl_sock *s, const struct sockaddr *addr,
		    socklen_t len)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };

	if (len && !addr)
		return -EFAULT;
	if (len < sizeof(addr->sa_family))
		return homa_pl_error(s, -EINVAL,
				     "connect: the address is cut off");
	if (addr->sa_family != AF_UNSPEC) {
		if (addr->sa_family != s->family)
			return homa_pl_error(
				s, -EAFNOSUPPORT,
				"connect: the address is of another family than the socket");
		if (len < name_size(s))
			return homa_pl_error(s, -EINVAL,
					     "connect: the address is cut off");
		memcpy(&peer, addr, name_size(s));
	}
	pthread_mutex_lock(&s->lock);
	s->peer = peer;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

socklen_t homa_pl_peer(struct homa_pl_sock *s, struct sockaddr_storage *peer)
{
	pthread_mutex_lock(&s->lock);
	*peer = s->peer;
	pthread_mutex_unlock(&s->lock);
	return peer->ss_family == AF_UNSPEC ? 0 : name_size(s);
}

int homa_pl_getpeername(struct homa_pl_sock *s, struct sockaddr *addr,
			socklen_t *len)
{
	struct sockaddr_storage peer;
	socklen_t size = homa_pl_peer(s, &peer);

	if (!size)
		return -ENOTCONN;
	if (!addr || !len)
		return -EFAULT;
	memcpy(addr, &peer, *len < size ? *len : size);
	*len = size;
	return 0;
}

uint16_t homa_pl_port(struct homa_pl_sock *s)
{
	struct sockaddr_storage ours;

	if (s->port)
		return s->port;
	if (homa_getsockname(s->h, &ours))
		return 0;
	return ntohs(((struct sockaddr_in *)&ours)->sin_port);
}

int homa_pl_getsockname(struct homa_pl_sock *s, struct sockaddr *addr,
			socklen_t *len)
{
	struct sockaddr_storage name = { .ss_family = (sa_family_t)s->family };
	socklen_t size = name_size(s);

	if (!addr || !len)
		return -EFAULT;
	((struct sockaddr_in *)&name)->sin_port = htons(homa_pl_port(s));
	memcpy(addr, &name, *len < size ? *len : size);
	*len = size;
	return 0;
}

int homa_pl_shutdown(struct homa_pl_sock *s)
{
	bool before;
	int rc;

	/* Later polls must see the shutdown, so the socket is armed first. */
	rc = homa_pl_arm(s, false);
	if (rc)
		return rc;
	before = __atomic_exchange_n(&s->shut, true, __ATOMIC_ACQ_REL);
	if (before)
		return 0;
	rc = homa_internal_shutdown(s->h);
	/* Wake threads that wait for room in the region. */
	homa_pl_wake_returned(s);
	return rc;
}
