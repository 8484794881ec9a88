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
#define HOMA_PL_REQUESTS 65536u /* the most requests that a socket keeps */
#define HOMA_PL_OPTIONS 80	/* numbers of SOL_SOCKET options are below */

/**
 * struct homa_pl_rpc - a private RPC of ours, or a request to be answered. Guarded by:
 *	homa_pl_sock.lock
 * @next: the next one in the same bucket of homa_pl_sock.rpcs.
 * @newer: the request that came after this one, or NULL.
 * @older: the request that came before this one, or NULL.
 * @id: the id that the application knows.
 * @cookie: the completion cookie of our request.
 * @private_rpc: true if it is a private RPC, false if it is a request to be answered.
 * @held: true if the private RPC's response is in @msg, for want of room in the region.
 * @msg: the request to be answered, without its bytes, or the response that is held.
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
 * struct homa_pl_held - a message that waits for room in the region. Guarded by:
 *	homa_pl_sock.lock
 * @next: the message that came after it, or NULL.
 * @msg: the message; libhoma has its bytes.
 */
struct homa_pl_held {
	struct homa_pl_held *next;
	struct homa_message msg;
};

/**
 * struct homa_pl_region - the application's receive region. Guarded by: homa_pl_sock.lock
 * @start: its address; NULL until SO_HOMA_RCVBUF.
 * @length: its size in bytes, as the application gave it.
 * @unmapped: true if the application has called munmap() for it; that is done when the socket
 *	is closed.
 * @pages: its number of pages of 64 KiB.
 * @free: the number of free pages.
 * @refs: for each page the number of pieces in it; for @slices one more.
 * @out: a bit for each 64 bytes, which is 1 if a piece begins there that the application has.
 * @next: the page at which the search for a free one begins.
 * @slices: the number of the page that short messages share, or -1.
 * @used: the bytes of the shared page that were given out.
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
 * struct homa_pl_sock - a Homa socket; never freed, but used again. Guarded by: @lock from
 *	@region to @held_end, else written by: the call of the program that opens the socket or
 *	changes the setting
 * @refs: the number of its descriptors, and of calls that are using it. It is atomic.
 * @h: libhoma's handle; NULL for a TCP socket or an epoll set.
 * @tcp: what is known of a TCP socket (tcp.h); NULL if it is none.
 * @set: what is known of an epoll set with TCP sockets; NULL if it is none.
 * @drop: the function that ends a TCP socket or an epoll set; NULL for a Homa socket.
 * @generation: the value of homa_pl_generation in the process to which @h belongs.
 * @family: AF_INET or AF_INET6.
 * @status: O_NONBLOCK or 0.
 * @reborn: true if it was opened again in the child of fork(), which may give back pages that
 *	its parent got.
 * @lent: true if messages arrive in the application's region; else they are copied there.
 * @has_region: true if there is a receive region, so that messages may be taken.
 * @armed: true if its descriptors stand for libhoma's readiness descriptor.
 * @no_out: true if poll() never finds that descriptor writable, so that hooks have to say it.
 * @edges: true if an epoll set waits for edges.
 * @shut: true after shutdown().
 * @server: true if it takes requests.
 * @port_missing: true in a child of fork() as long as the parent has the port.
 * @port: the port that it is bound to, or 0.
 * @out_fd: a descriptor that is always writable, for epoll; -1 if there is none yet.
 * @rcvtimeo: how long a receive waits in ns (SO_RCVTIMEO), -1 for ever.
 * @sndtimeo: how long sending waits in ns (SO_SNDTIMEO), -1 for ever.
 * @region: the receive region. @lock protects it, and all fields up to @held_end but @returned.
 * @returned: a futex that grows when pages come back.
 * @peer: the peer that connect() named; AF_UNSPEC if there is none.
 * @rpcs: HOMA_PL_BUCKETS lists of RPCs by id; NULL if there were none.
 * @oldest: the request to be answered that came first.
 * @newest: the request to be answered that came last.
 * @requests: the number of requests to be answered.
 * @held: the first message that waits for room in the region.
 * @held_end: where the next one is linked.
 * @options: the values of SOL_SOCKET options that have no effect.
 * @error: the last error in words.
 * @next: the next one in the list of all sockets that there ever were.
 * @next_free: the next one in the list of sockets that are not in use.
 * @lock: the lock of @region and what follows it.
 * @reading: the lock of a thread that reads a TCP socket.
 * @writing: the lock of a thread that writes a TCP socket.
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
	struct sockaddr_storage peer;
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

/** homa_pl_live - the number of sockets that the table has; if it is 0, no hook need look. */
extern uint32_t homa_pl_live;

/**
 * homa_pl_find() - the socket of a descriptor, with a reference, or NULL
 * It takes no lock and may be called in signal handlers. If the socket is one of TCP or an epoll
 * set, this thread's signal handlers wait until homa_pl_put() (pl_signals.h).
 */
struct homa_pl_sock *homa_pl_find(int fd);
/** homa_pl_table_set() - put @s, which may be NULL, into the table; returns what was there. */
struct homa_pl_sock *homa_pl_table_set(int fd, struct homa_pl_sock *s);
/** homa_pl_table_next() - the lowest Homa descriptor >= @fd, or -1. */
int homa_pl_table_next(int fd);
/** homa_pl_table_room() - make sure that homa_pl_table_set(@fd) works. */
int homa_pl_table_room(int fd);

/* ---- sock.c ---- */

/** homa_pl_socket() - open a Homa socket; returns its descriptor. */
int homa_pl_socket(int family, int type);
/** homa_pl_adopt() - make a socket for @fd, a descriptor of the kernel's; NULL if there is no
 *  memory. The table has its one reference. @fill, which gets @arg, says what kind of socket it
 *  is before others can find it. */
struct homa_pl_sock *
homa_pl_adopt(int fd, int family, int status,
	      void (*fill)(struct homa_pl_sock *s, void *arg), void *arg);
/** homa_pl_put() - drop a reference of homa_pl_find(). */
void homa_pl_put(struct homa_pl_sock *s);
/** homa_pl_drop() - drop a reference of the table's. */
void homa_pl_drop(struct homa_pl_sock *s);
/** homa_pl_close() - close a descriptor that is known to be a socket's. */
int homa_pl_close(int fd);
/** homa_pl_dup() - duplicate @old, a descriptor of @s, as F_DUPFD does. */
int homa_pl_dup(struct homa_pl_sock *s, int old, int lowest, bool cloexec);
/** homa_pl_add_fd() - note that @fd, which is in no table yet, is another descriptor of @s. */
void homa_pl_add_fd(struct homa_pl_sock *s, int fd);
/** homa_pl_dup_to() - do dup3(@old, @fd, @flags). @s is the socket of @old, NULL if it has none. */
int homa_pl_dup_to(struct homa_pl_sock *s, int old, int fd, int flags);
/** homa_pl_arm() - make its descriptors tell of messages, before somebody waits for them. @edges:
 *  for each message. */
int homa_pl_arm(struct homa_pl_sock *s, bool edges);
/**
 * homa_pl_ready() - may we go on with calls of libhoma on @s?
 * In the child of fork() this opens the socket anew.
 */
int homa_pl_ready(struct homa_pl_sock *s);
/** homa_pl_claim_port() - take the port after fork(), if the parent has given it up. */
void homa_pl_claim_port(struct homa_pl_sock *s);
/** homa_pl_missing_ports - the number of sockets that wait for their parent's port. */
extern uint32_t homa_pl_missing_ports;
/** homa_pl_claim_ports() - do homa_pl_claim_port() for all sockets. */
void homa_pl_claim_ports(void);

/**
 * homa_pl_bind(), homa_pl_connect(), homa_pl_getsockname(), homa_pl_getpeername(),
 * homa_pl_shutdown() - do what the calls do
 */
int homa_pl_bind(struct homa_pl_sock *s, const struct sockaddr *addr,
		 socklen_t len);
int homa_pl_connect(struct homa_pl_sock *s, const struct sockaddr *addr,
		    socklen_t len);
int homa_pl_getsockname(struct homa_pl_sock *s, struct sockaddr *addr,
			socklen_t *len);
int homa_pl_getpeername(struct homa_pl_sock *s, struct sockaddr *addr,
			socklen_t *len);
/** homa_pl_peer() - write the peer that connect() named to @peer; its size in bytes, or 0. */
socklen_t homa_pl_peer(struct homa_pl_sock *s, struct sockaddr_storage *peer);
/** homa_pl_serve() - take requests from now on, or refuse them (SO_HOMA_SERVER). */
int homa_pl_serve(struct homa_pl_sock *s, bool on);
int homa_pl_shutdown(struct homa_pl_sock *s);

/** homa_pl_error() - remember what went wrong, for HOMAIOCINFO; returns @rc. */
int homa_pl_error(struct homa_pl_sock *s, int rc, const char *text);
/** homa_pl_debug() - write a line to standard error if HOMA_PRELOAD_DEBUG is set. */
void homa_pl_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * homa_pl_enter() - begin a call that may take locks; homa_pl_leave() ends it
 * Returns -EDEADLK in a signal handler that came while this thread was inside such a call.
 */
int homa_pl_enter(void);
void homa_pl_leave(void);
/** homa_pl_inside() - is this thread inside such a call? */
bool homa_pl_inside(void);

/* ---- send.c, recv.c, exchange.c ---- */
/** homa_pl_send() - send a message and receive none. */
int64_t homa_pl_send(struct homa_pl_sock *s, const struct msghdr *msg, int flags);
/** homa_pl_sendmsg() - do what sendmsg() does, also with HOMA_SENDMSG_RECEIVE. */
int64_t homa_pl_sendmsg(struct homa_pl_sock *s, const struct msghdr *msg,
			int flags);
int64_t homa_pl_recvmsg(struct homa_pl_sock *s, struct msghdr *msg, int flags);
/** homa_pl_check_receive() - check what the caller of recvmsg() wrote; 0 or -EINVAL. */
int homa_pl_check_receive(struct homa_pl_sock *s,
			  const struct homa_recvmsg_args *args);
/** homa_pl_name() - write @peer to @name in the socket's family; returns its size in bytes. */
socklen_t homa_pl_name(const struct homa_pl_sock *s,
		       const struct sockaddr_storage *peer,
		       struct sockaddr_storage *name);
/** homa_pl_now() - the time of the monotonic clock, in ns. */
int64_t homa_pl_now(void);

/* ---- region.c: the caller has the socket's lock, unless something else is said ---- */
int homa_pl_region_set(struct homa_pl_sock *s, uint64_t start, size_t length);
/** homa_pl_region_get() - take room for @length bytes; returns the number of pieces, whose begins
 *  are written to @offsets (bytes), or -ENOBUFS. */
int homa_pl_region_get(struct homa_pl_region *r, size_t length,
		       uint32_t *offsets);
/** homa_pl_region_note() - note that libhoma has put a message there. */
void homa_pl_region_note(struct homa_pl_region *r, uint32_t num,
			 const uint32_t *offsets);
/** homa_pl_region_put() - give pieces back; -EINVAL if one of them is not in use. */
int homa_pl_region_put(struct homa_pl_region *r, uint32_t num,
		       const uint32_t *offsets);
/** homa_pl_region_free() - forget the region of a socket that is closed. It takes the lock. */
void homa_pl_region_free(struct homa_pl_sock *s);
/** homa_pl_region_unmap() - do munmap() of memory that may be of a region. It takes the locks. */
int homa_pl_region_unmap(uint8_t *start, size_t length);
/** homa_pl_region_avail() - the number of free bytes. */
uint64_t homa_pl_region_avail(const struct homa_pl_region *r);

/* ---- rpcs.c: the caller has the socket's lock ---- */
/** homa_pl_rpc_private(), homa_pl_rpc_request() - remember a private RPC of ours, or a request. */
int homa_pl_rpc_private(struct homa_pl_sock *s, uint64_t id, uint64_t cookie);
int homa_pl_rpc_request(struct homa_pl_sock *s, const struct homa_message *msg);
/** homa_pl_rpc_find() - the request @id of @peer, or our private RPC @id if @peer is NULL. */
struct homa_pl_rpc *homa_pl_rpc_find(struct homa_pl_sock *s, uint64_t id,
				     const struct sockaddr *peer);
/** homa_pl_rpc_take() - take it out of the table; the caller frees it. */
void homa_pl_rpc_take(struct homa_pl_sock *s, struct homa_pl_rpc *rpc);
/** homa_pl_rpc_forget() - forget the private RPC @id that has ended, or all if @id is 0. Those
 *  whose response is held stay. */
void homa_pl_rpc_forget(struct homa_pl_sock *s, uint64_t id);
/** homa_pl_rpc_held() - call @visit for each private response that waits for room. */
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
