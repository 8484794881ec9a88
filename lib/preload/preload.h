/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * libhoma-preload: programs written for Homa sockets run over libhoma.
 *
 *	hooks_*.c	the C library's functions, replaced: is this descriptor a
 *			Homa socket? If not, the real function gets the call
 *	table.c		from descriptors to sockets, read without locks
 *	sock.c		life of a socket; its descriptor; after fork()
 *	send.c, recv.c	sendmsg() and recvmsg()
 *	region.c	the receive region's pages
 *	rpcs.c		private RPCs and requests that wait for a response
 *	options.c, control.c	socket options; ioctls
 *	report.c, clock.c	what is said of failures; the time
 *
 * The descriptor that the program holds is a real one. At first it is an
 * eventfd that is always writable; the first poll, select or epoll_ctl on it
 * puts libhoma's readiness descriptor in its place (homa_pl_arm()), because
 * to keep that up to date has a price that a program which only blocks in
 * recvmsg() need not pay.
 *
 * Functions named homa_pl_* return negative errno; only hooks set errno.
 */
#ifndef HOMA_PRELOAD_H
#define HOMA_PRELOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <homa/libhoma.h>
#include "../../abi/homa_socket.h"

#define HOMA_PL_LIKELY(x) __builtin_expect(!!(x), 1)

#define HOMA_PL_BUCKETS 1024u
#define HOMA_PL_REQUESTS 65536u /* kept for a response, of one socket */
#define HOMA_PL_OPTIONS 80	/* SOL_SOCKET options that are only kept */

/**
 * struct homa_pl_rpc - a private RPC of ours, or a request to be answered
 * @next: in its bucket.
 * @newer, @older: requests by age.
 * @id: as the application knows it.
 * @cookie: of our request.
 * @private_rpc: which of the two it is.
 * @held: it completed, but there was no room in the region; @msg has it.
 * @msg: the request, without its bytes.
 */
struct homa_pl_rpc {
	struct homa_pl_rpc *next, *newer, *older;
	uint64_t id;
	uint64_t cookie;
	bool private_rpc;
	bool held;
	struct homa_message msg;
};

/**
 * struct homa_pl_held - a message that waits for room in the region
 */
struct homa_pl_held {
	struct homa_pl_held *next;
	struct homa_message msg;
};

/**
 * struct homa_pl_region - the application's receive region
 * @start: NULL until SO_HOMA_RCVBUF; @length: as given.
 * @unmapped: the application unmapped it; done when the socket is closed.
 * @pages: of 64 KiB.
 * @free: of them.
 * @refs: for each: messages and pieces of messages in it.
 * @out: a bit for each 64 bytes: a piece that the application has begins there.
 * @next: where to look for a free page.
 * @slices: the page that short messages share, or -1; @used: bytes of it.
 */
struct homa_pl_region {
	uint8_t *start;
	size_t length;
	bool unmapped;
	uint32_t pages;
	uint32_t free;
	uint32_t *refs;
	uint64_t *out;
	uint32_t next;
	int64_t slices;
	uint32_t used;
};

/**
 * struct homa_pl_sock - a Homa socket; never freed, but used again
 * @refs: descriptors, and calls that are using it.
 * @tcp: it is a TCP socket, tcp.h; @set: it is an epoll set with such; @drop: what ends it
 *	then; all NULL for a Homa socket.
 * @h: libhoma's handle; @generation: the process it belongs to.
 * @family: AF_INET or AF_INET6.
 * @status: O_NONBLOCK or 0.
 * @reborn: opened again in the child of fork(); it may give back what came
 *	before.
 * @has_region: there is a receive region, so messages may be taken.
 * @lent: messages arrive in the application's region; else they are copied.
 * @armed: the descriptors are libhoma's readiness descriptor.
 * @no_out: poll() never finds them writable, so hooks say it.
 * @out_fd: a descriptor that is always writable, for epoll; -1: none yet.
 * @edges: an epoll instance waits for edges.
 * @shut: after shutdown().
 * @server: takes requests.
 * @port: bound to; 0: none.
 * @port_missing: after fork(): the parent still has the port.
 * @rcvtimeo, @sndtimeo: ns, -1: for ever.
 * @region, @rpcs and what follows: under @lock.
 * @returned: grows when pages come back; a futex.
 * @held: messages that wait for room in the region.
 * @options: SOL_SOCKET options that have no effect.
 * @error: the last error in words.
 * @next: of all sockets there ever were; @next_free: of those not in use.
 * @reading, @writing: one thread at a time reads a TCP socket, and one writes it.
 */
struct homa_pl_sock {
	uint32_t refs;
	struct homa *h;
	struct homa_pl_tcp *tcp;
	struct homa_pl_set *set;
	void (*drop)(struct homa_pl_sock *s);
	unsigned int generation;
	int family;
	int status;
	bool reborn;
	bool lent;
	bool has_region;
	bool armed;
	bool no_out;
	bool edges;
	bool shut;
	bool server;
	bool port_missing;
	uint16_t port;
	int out_fd;
	int64_t rcvtimeo, sndtimeo;

	struct homa_pl_region region;
	uint32_t returned;
	struct homa_pl_rpc **rpcs;
	struct homa_pl_rpc *oldest, *newest;
	uint32_t requests;
	struct homa_pl_held *held, **held_end;
	int options[HOMA_PL_OPTIONS];
	char error[HOMA_ERROR_MSG_SIZE];

	struct homa_pl_sock *next, *next_free;
	pthread_mutex_t lock;
	pthread_mutex_t reading, writing;
};

/* ---- table.c ---- */

/** homa_pl_live - Homa sockets there are; 0: no hook needs to look. */
extern uint32_t homa_pl_live;

/**
 * homa_pl_find() - the socket of a descriptor, with a reference, or NULL
 * Lock-free, also in signal handlers. If it is one of TCP or an epoll set, this thread's
 * handlers wait until homa_pl_put() (pl_signals.h).
 */
struct homa_pl_sock *homa_pl_find(int fd);
/** homa_pl_table_set() - @s may be NULL; returns what was there. */
struct homa_pl_sock *homa_pl_table_set(int fd, struct homa_pl_sock *s);
/** homa_pl_table_next() - the lowest Homa descriptor >= @fd, or -1. */
int homa_pl_table_next(int fd);
/** homa_pl_table_room() - make sure that homa_pl_table_set(@fd) works. */
int homa_pl_table_room(int fd);

/* ---- sock.c ---- */

/** homa_pl_socket() - open one; returns a descriptor. */
int homa_pl_socket(int family, int type);
/** homa_pl_adopt() - @fd, the kernel's, becomes a socket's, with one reference; NULL: no
 *  memory. The caller sets what it is by @fill before others can find it. */
struct homa_pl_sock *
homa_pl_adopt(int fd, int family, int status,
	      void (*fill)(struct homa_pl_sock *s, void *arg), void *arg);
/** homa_pl_put() - drop a reference of homa_pl_find(). */
void homa_pl_put(struct homa_pl_sock *s);
/** homa_pl_drop() - drop a reference of the table's. */
void homa_pl_drop(struct homa_pl_sock *s);
/** homa_pl_close() - a descriptor known to be a socket's. */
int homa_pl_close(int fd);
/** homa_pl_dup() - F_DUPFD of @old, a descriptor of @s. */
int homa_pl_dup(struct homa_pl_sock *s, int old, int lowest, bool cloexec);
/** homa_pl_add_fd() - @fd, which is no socket's yet, is a duplicate of one of @s. */
void homa_pl_add_fd(struct homa_pl_sock *s, int fd);
/** homa_pl_dup_to() - dup3(@old, @fd); @s NULL: @old is no Homa socket. */
int homa_pl_dup_to(struct homa_pl_sock *s, int old, int fd, int flags);
/** homa_pl_arm() - before somebody waits for its descriptor. */
int homa_pl_arm(struct homa_pl_sock *s, bool edges);
/**
 * homa_pl_ready() - may we go on with calls of libhoma on @s?
 * Opens it anew in the child of fork().
 */
int homa_pl_ready(struct homa_pl_sock *s);
/** homa_pl_claim_port() - after fork(): does the parent's port fall to us? */
void homa_pl_claim_port(struct homa_pl_sock *s);
/** homa_pl_missing_ports - how many sockets wait for their parent's port. */
extern uint32_t homa_pl_missing_ports;
/** homa_pl_claim_ports() - of all sockets. */
void homa_pl_claim_ports(void);

/**
 * homa_pl_bind(), homa_pl_getsockname(), homa_pl_shutdown() - as the calls.
 * homa_pl_connect() changes nothing: each message names its peer.
 */
int homa_pl_bind(struct homa_pl_sock *s, const struct sockaddr *addr,
		 socklen_t len);
int homa_pl_connect(struct homa_pl_sock *s, const struct sockaddr *addr,
		    socklen_t len);
int homa_pl_getsockname(struct homa_pl_sock *s, struct sockaddr *addr,
			socklen_t *len);
/** homa_pl_serve() - SO_HOMA_SERVER: take requests, or refuse them? */
int homa_pl_serve(struct homa_pl_sock *s, bool on);
int homa_pl_shutdown(struct homa_pl_sock *s);

/** homa_pl_error() - remember what went wrong, for HOMAIOCINFO; gives @rc. */
int homa_pl_error(struct homa_pl_sock *s, int rc, const char *text);
/** homa_pl_debug() - to stderr if HOMA_PRELOAD_DEBUG is set. */
void homa_pl_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * homa_pl_enter() - begin of a call that may take locks
 * Returns -EDEADLK in a signal handler that came while this thread was inside
 * another one. homa_pl_leave() ends it.
 */
int homa_pl_enter(void);
void homa_pl_leave(void);
bool homa_pl_inside(void);

/* ---- send.c, recv.c ---- */
int64_t homa_pl_sendmsg(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags);
int64_t homa_pl_recvmsg(struct homa_pl_sock *s, struct msghdr *msg, int flags);
/** homa_pl_name() - @peer as an address of the socket's family; its size. */
socklen_t homa_pl_name(const struct homa_pl_sock *s,
		       const struct sockaddr_storage *peer,
		       struct sockaddr_storage *name);
int64_t homa_pl_now(void);

/* ---- region.c: under the socket's lock ---- */
int homa_pl_region_set(struct homa_pl_sock *s, uint64_t start, size_t length);
/** homa_pl_region_get() - room for @length bytes; number of @offsets, or -ENOBUFS. */
int homa_pl_region_get(struct homa_pl_region *r, size_t length,
		       uint32_t *offsets);
/** homa_pl_region_note() - libhoma gave a message room there. */
void homa_pl_region_note(struct homa_pl_region *r, uint32_t num,
			 const uint32_t *offsets);
/** homa_pl_region_put() - -EINVAL if one of them is not in use. */
int homa_pl_region_put(struct homa_pl_region *r, uint32_t num,
		       const uint32_t *offsets);
/** homa_pl_region_free() - the socket is closed. */
void homa_pl_region_free(struct homa_pl_sock *s);
/** homa_pl_region_unmap() - munmap() of memory that may be of a region. */
int homa_pl_region_unmap(uint8_t *start, size_t length);
uint64_t homa_pl_region_avail(const struct homa_pl_region *r);

/* ---- rpcs.c: under the socket's lock ---- */
/** homa_pl_rpc_private(), homa_pl_rpc_request() - remember it. */
int homa_pl_rpc_private(struct homa_pl_sock *s, uint64_t id, uint64_t cookie);
int homa_pl_rpc_request(struct homa_pl_sock *s, const struct homa_message *msg);
/** homa_pl_rpc_find() - @peer NULL: a private one. */
struct homa_pl_rpc *homa_pl_rpc_find(struct homa_pl_sock *s, uint64_t id,
				     const struct sockaddr *peer);
/** homa_pl_rpc_take() - out of the table; the caller frees it. */
void homa_pl_rpc_take(struct homa_pl_sock *s, struct homa_pl_rpc *rpc);
/** homa_pl_rpc_forget() - a private RPC ended; 0: all. */
void homa_pl_rpc_forget(struct homa_pl_sock *s, uint64_t id);
/** homa_pl_rpc_held() - visit the private ones that wait for room in the region. */
void homa_pl_rpc_held(struct homa_pl_sock *s,
		      void (*visit)(void *arg, const struct homa_message *msg),
		      void *arg);
void homa_pl_rpcs_free(struct homa_pl_sock *s);

/* ---- options.c, control.c ---- */
int homa_pl_setsockopt(struct homa_pl_sock *s, int level, int name,
		       const void *value, socklen_t len);
int homa_pl_getsockopt(struct homa_pl_sock *s, int level, int name, void *value,
		       socklen_t *len);
int homa_pl_ioctl(struct homa_pl_sock *s, int fd, unsigned long request,
		  void *arg);

#endif
