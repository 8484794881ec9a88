/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/**
 * libhoma: remote procedure calls over the Homa transport.
 *
 * A program opens a handle, sends requests to servers and receives their responses; a server binds
 * a port, receives requests and replies. Messages have 1 .. HOMA_MAX_MESSAGE bytes; each is
 * delivered whole or not at all, in no order relative to others, and a request is executed at most
 * once. Several threads may use one handle at once; a child after fork() has to open its own.
 *
 * Errors: every function that returns int gives 0 (or a count) on success and a negative errno on
 * failure; homa_error() then says in a sentence what was wrong and how to mend it. Nothing is
 * printed. homa_open() chooses which host runs the protocol (struct homa_options.via).
 */
#ifndef HOMA_LIBHOMA_H
#define HOMA_LIBHOMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of this header. Within a major version a program runs with any
 * library that is not older than the header it was compiled with.
 */
#define HOMA_VERSION_MAJOR 0
#define HOMA_VERSION_MINOR 1
#define HOMA_VERSION_PATCH 0
/** The version as one number that can be compared: 0x00MMmmpp. */
#define HOMA_VERSION \
	(HOMA_VERSION_MAJOR << 16 | HOMA_VERSION_MINOR << 8 | HOMA_VERSION_PATCH)

/** homa_version() - HOMA_VERSION of the library that runs. */
unsigned int homa_version(void);

/** Longest message that can be sent, in bytes. */
#define HOMA_MAX_MESSAGE 1000000u

/** Ports below this can be bound by servers; the others are for clients. */
#define HOMA_MIN_CLIENT_PORT 0x8000

/** An open Homa endpoint (opaque). */
struct homa;

/**
 * struct homa_options - how to open a handle; all zero is a good default
 * @size: sizeof(struct homa_options), so that a library that is older or newer than this header
 *	knows which fields there are. 0: those up to @config, which is all of them at present.
 *	Fields that the library does not know must be 0, else homa_open() gives -E2BIG.
 * @via: which host to use: NULL or "auto" (the environment variable HOMA_VIA if set, else the best
 *	that works here), "kernel" (Homa sockets of the kernel's module), "service" (homad, through
 *	the socket $HOMA_SERVICE_SOCKET or /run/homa/homad.sock), "afxdp", "message" (a NIC of
 *	docs/hardware.md, never chosen by "auto"), "udp". A forced host that cannot run is an error,
 *	never a silent change. "auto" takes "kernel" if the module is loaded, else "service" if
 *	homad can be attached to. It takes neither if @interface, @address, @udp_port, @link_mbps or
 *	@config is given, here or in the environment: under "kernel" and "service" these five have
 *	no effect.
 * @interface: network interface for "afxdp" and "message"; NULL: $HOMA_INTERFACE, else the one that
 *	has @address. "auto" tries "afxdp" only if one of these names a device, else "udp".
 * @address: local address (numeric IPv4 or IPv6); NULL: any ("udp"), or the
 *	interface's first address ("afxdp"), or $HOMA_ADDRESS.
 * @udp_port: encapsulation port to use with "udp"; 0: 54321 if free, else any free one.
 * @link_mbps: link rate in Mbit/s used for pacing and for RTTbytes; 0: $HOMA_LINK_MBPS if set, else
 *	what the device says; if it says nothing, output is not paced.
 * @rcvbuf: bytes of receive buffer, a multiple of 64 KiB; 0 means 32 MiB, and
 *	under "service" as many as homad gives.
 * @spin_us: how long a receive polls before it blocks, in microseconds; 0: 50; -1: never blocks
 *	while a call is waiting (lowest latency, uses a whole core).
 * @flags: HOMA_OPEN_* below.
 * @config: NULL or protocol settings "name=value,name=value" (docs/protocol.md), applied after
 *	those of $HOMA_CONFIG; for experiments. timeout_us is 500000 unless set.
 */
struct homa_options {
	size_t size;
	const char *via;
	const char *interface;
	const char *address;
	uint16_t udp_port;
	uint32_t link_mbps;
	size_t rcvbuf;
	int32_t spin_us;
	uint32_t flags;
	const char *config;
};

/** Do not run a progress thread: the program calls receive or homa_poll often. */
#define HOMA_OPEN_NO_THREAD 0x1u
/**
 * homa_bind() shares the port with other handles of the same user that were opened with this flag,
 * up to 64, in this process or in others: workers that serve one port. Each request goes to the
 * handle that has the fewest requests which it has not answered (or rejected or discarded), so a
 * worker that is busy or stands still gets no more than its share. When one is closed or its
 * process ends, its requests end as those of a server that ends, and the others have the port.
 *
 * With "service" only; the other hosts cannot, and homa_open() gives -EOPNOTSUPP.
 */
#define HOMA_OPEN_SHARED_PORT 0x2u

/**
 * The handle can be handed over to another process, see homa_export(). A user can have 128 of
 * these open at once (-EDQUOT): homad keeps up to 14 descriptors for each.
 *
 * With "service" only; the other hosts give -EOPNOTSUPP.
 */
#define HOMA_OPEN_HANDOVER 0x4u

/** What a received message is. */
enum homa_kind {
	HOMA_REQUEST = 1,  /* a client's request; answer with homa_reply() */
	HOMA_RESPONSE = 2, /* the response to one of our requests */
	HOMA_ERROR = 3,	   /* one of our requests failed; see @error */
};

/**
 * struct homa_message - a message (or failure) taken by homa_receive()
 * @kind: see enum homa_kind.
 * @error: 0, or the negative errno the RPC ended with (-ETIMEDOUT, -ENOTCONN, -EHOSTUNREACH,
 *	-ECONNRESET: homad ended, what homa_abort() or the server's homa_reject() was given).
 * @id: the RPC's id; with @peer what homa_reply() needs.
 * @cookie: what homa_request() was given, in responses and errors. In a request the library
 *	keeps here what homa_time_left() needs.
 * @length: bytes in the message.
 * @iov: @iovcnt pieces of the message, in order, inside the receive buffer
 *	(zero copy); valid until homa_release().
 * @peer: who sent it.
 *
 * The structure may be copied, and a request's copy answered when the original is gone; only one of
 * the copies is released. For a request that is answered later struct homa_ticket is shorter. It
 * has no size field: within a major version its size stays, and additions are in @priv.
 */
struct homa_message {
	enum homa_kind kind;
	int error;
	uint64_t id;
	uint64_t cookie;
	size_t length;
	int iovcnt;
	struct iovec iov[16];
	struct sockaddr_storage peer;
	uint64_t priv[12]; /* the library's; do not touch */
};

/** homa_receive() flags: what to wait for. 0 means requests and responses. */
#define HOMA_RECV_REQUEST 0x1u
#define HOMA_RECV_RESPONSE 0x2u
#define HOMA_RECV_NONBLOCK 0x4u

/** homa_request() flags. */
#define HOMA_PRIVATE 0x1u /* only homa_receive_id() returns this RPC */
/**
 * Do not copy the message: the caller leaves it valid and unchanged until the response or failure
 * was received, or homa_abort() or homa_close() returned. Saves one of two copies of a long
 * request. Only a hint: messages in several pieces, and hosts that must copy, copy.
 */
#define HOMA_BORROW 0x2u
/**
 * Do not wait: where homa_request() would wait for room to send, or for homad to say whether there
 * is a way to the server, give -EAGAIN or send without asking. After -EAGAIN nothing was sent and
 * nothing is kept; homa_wait_send(), and for epoll homa_send_fd(), say when to try again. A server
 * that cannot be reached is then told by the RPC's failure.
 */
#define HOMA_NONBLOCK 0x4u

/**
 * homa_open() - open an endpoint
 * @out: receives the handle.
 * @options: NULL or options; copied.
 *
 * Errors: -EINVAL (a bad option), -E2BIG (an option that this library is too old to know), -EPERM
 * or -EACCES (needs root or CAP_NET_ADMIN, or homad's rules forbid it), -ENODEV (no such
 * interface), -ECONNREFUSED (homad is not running), -EOPNOTSUPP (that host is not available here,
 * "kernel": its module is not loaded; or it cannot do what a flag asks for), -ENOMEM.
 * homa_open_error() tells more.
 */
int homa_open(struct homa **out, const struct homa_options *options);

/** homa_open_error() - why the last homa_open() of this thread failed. */
const char *homa_open_error(void);

/** homa_close() - close @h; open RPCs end at once, and received messages are no longer valid. */
void homa_close(struct homa *h);

/**
 * struct homa_handover - what the next process of a handle needs
 * @token: text, 32 digits and letters, NUL-terminated: it may be sent through a pipe, or be
 *	put into the environment before exec(). Whoever knows it and is of the same user can
 *	take the handle.
 *
 * It has no size field: the text is the library's, and no longer within a major version.
 */
struct homa_handover {
	char token[40];
};

/**
 * homa_export() - hand the handle over to another process
 * @h: opened with HOMA_OPEN_HANDOVER, or imported.
 * @handover: receives the token for homa_import().
 *
 * For a program that replaces itself by exec(), or gives a handle to its child or to another
 * process of the same user. homad keeps the port, the open RPCs, the messages that arrive and
 * the requests that were received and not answered, for as long as quota.handover_s says (10
 * seconds unless set), whether or not this process lives. If nobody imports the handle in that
 * time, it ends as by homa_close().
 *
 * On success only homa_close() remains for @h, and all other calls give -ESHUTDOWN. Nothing that
 * points into the handle may be in use before: messages must be released, memory of homa_alloc()
 * sent or freed, and no other thread may be in a call. Requests that are to be answered by the
 * next process are kept as struct homa_ticket, which the program hands over itself; ids of its own
 * requests, too. Messages that arrived and that no receive has taken go along. After an error
 * the handle is as before.
 *
 * Errors: -EBUSY (something is in use, homa_error() says what), -EOPNOTSUPP (not opened so, or
 * not with homad), -EDQUOT (64 handles of this user wait, or there is no memory left to the user),
 * -EACCES (homad cannot tell this user from others), -EMFILE (homad has no descriptor left),
 * -ECONNREFUSED (homad has ended), -ENOMEM.
 */
int homa_export(struct homa *h, struct homa_handover *handover);

/**
 * homa_import() - take over a handle that homa_export() has handed over
 * @out: receives the handle; it can be handed over again.
 * @handover: the token; on success it cannot be used again.
 * @options: NULL, or options as for homa_open(). Only @spin_us and HOMA_OPEN_NO_THREAD have an
 *	effect; everything else stays as it was.
 *
 * The program goes on as if it had opened the handle: port, RPCs, cookies and ids are those that
 * it had. homa_fd() and homa_send_fd() are new descriptors. When it fails, and when the
 * process ends before it has returned, the token is still good for another try.
 *
 * Errors: -EINVAL (no token, or an option that cannot be), -ENOENT (nothing of this user is handed
 * over under this token: it was taken, its time is over, homad was started again), -EBUSY
 * (another process is about to take it), -EACCES (homad's rules forbid this process its port),
 * -EPROTO, -EBADMSG (written by another libhoma, or by none), -ECONNREFUSED, -EMFILE, -ENOMEM.
 * homa_open_error() tells more.
 */
int homa_import(struct homa **out, const struct homa_handover *handover,
		const struct homa_options *options);

/** homa_error() - one sentence about this thread's last failure on @h; "" if there was none. */
const char *homa_error(struct homa *h);

/** homa_via() - the host in use: "kernel", "service", "afxdp", "message", "udp". */
const char *homa_via(struct homa *h);

/** homa_via_reason() - why that host was chosen ("" if it was the first choice). */
const char *homa_via_reason(struct homa *h);

/**
 * homa_bind() - become a server on a port
 * @port: 1 .. 32767, host byte order.
 * Errors: -EADDRINUSE (another handle has the port and they do not share it; see
 * HOMA_OPEN_SHARED_PORT), -EINVAL; with HOMA_OPEN_SHARED_PORT also -ENOBUFS (64 handles
 * share it), -EACCES (homad cannot tell this user from others).
 */
int homa_bind(struct homa *h, uint16_t port);

/**
 * homa_getsockname() - the local address and Homa port of a handle
 * @addr: receives the IP address and, in its port field in network byte order, the Homa port,
 *	bound or automatic; with "udp" also the encapsulation port, as homa_parse_address() keeps
 *	it, so that the address can be given to a client.
 * Errors: -EINVAL.
 */
int homa_getsockname(struct homa *h, struct sockaddr_storage *addr);
/** homa_udp_port() - the UDP port of encapsulated packets, host byte order; 0 if there is none. */
uint16_t homa_udp_port(struct homa *h);

/**
 * homa_parse_address() - "10.0.0.1:4000", "[fd00::1]:4000", "[fe80::1%eth0]:4000", or with an
 * encapsulation port "10.0.0.1:4000/40001"
 * An encapsulation port other than 54321 is kept inside the address and stays with it when the
 * structure is copied: in sin_zero ("HE", then the port in network order) or in sin6_flowinfo
 * (htonl(0xE0000000 | port)). Addresses in homa_message.peer carry it likewise.
 * Errors: -EINVAL; homa_open_error() has the sentence.
 */
int homa_parse_address(const char *text, struct sockaddr_storage *addr);

/**
 * homa_format_address() - write an address as text, as homa_parse_address() reads it
 * @text: room for @size bytes; 80 are enough for any address. A longer text is cut.
 * Returns @text.
 */
char *homa_format_address(const struct sockaddr_storage *addr, char *text,
			  size_t size);

/**
 * homa_request() - send a request; returns before the response
 * @dest: server address, AF_INET or AF_INET6; 0.0.0.0 and :: mean this host. Its structure
 *	has @destlen bytes.
 * @buf: the message, of @length bytes, 1 .. HOMA_MAX_MESSAGE; may be reused as soon as the call
 *	returns (later with HOMA_BORROW). homa_requestv() takes @iovcnt pieces instead.
 * @cookie: returned with the response or failure.
 * @flags: 0 or HOMA_PRIVATE | HOMA_BORROW | HOMA_NONBLOCK.
 * @id: receives the RPC's id (may be NULL): the one in the packets, which the
 *	server sees with its lowest bit changed; under "kernel" libhoma's own.
 * Errors: -EINVAL (length 0, address family), -EMSGSIZE (too long), -EHOSTUNREACH (no route),
 * -ENOBUFS (too many RPCs, or too many bytes on their way under "kernel" and "service"),
 * -EPROTONOSUPPORT (under "kernel": the address names a UDP port), -EAGAIN (HOMA_NONBLOCK),
 * -ECONNREFUSED (homad is away; the handle attaches again by itself), -ECONNABORTED (homad ended
 * the attachment for good), -ESHUTDOWN.
 */
int homa_request(struct homa *h, const struct sockaddr *dest, socklen_t destlen,
		 const void *buf, size_t length, uint64_t cookie,
		 unsigned int flags, uint64_t *id);
int homa_requestv(struct homa *h, const struct sockaddr *dest,
		  socklen_t destlen, const struct iovec *iov, int iovcnt,
		  uint64_t cookie, unsigned int flags, uint64_t *id);

/**
 * homa_request_within() - homa_request() that tells the server how long the client waits
 * @within_ns: for how long the caller wants the response, in ns from now, 0 or more; -1: it
 *	waits for ever, and nothing is told.
 *
 * The server's application sees it by homa_time_left() and may leave work undone that nobody waits
 * for. Nothing else follows: the RPC does not end by itself when the time is over, and who stops
 * waiting says homa_abort(), which the server hears, too. homa_call() does both with its time-out.
 *
 * It is a hint. Nothing is told under "kernel", nor by a homad that is older than this call;
 * and a server whose Homa is the existing Linux module, or older than this, does not see it.
 * No way exists to know that, so the request is sent all the same.
 * Errors: as homa_request().
 */
int homa_request_within(struct homa *h, const struct sockaddr *dest,
			socklen_t destlen, const void *buf, size_t length,
			uint64_t cookie, unsigned int flags, int64_t within_ns,
			uint64_t *id);

/**
 * homa_time_left() - how much longer the client of a request waits, as it said
 * @request: what homa_receive() gave, or a copy; may already be released.
 *
 * Returns nanoseconds; 0 or less if the time is over; INT64_MAX if the client did not say. It is
 * the client's word about itself, and worth that: a server may use it to choose what to do for this
 * client, or to do nothing, and for nothing else. The way of the request through the network is not
 * counted, and the number is rounded by a 1024th, both in the client's favour: where clocks run
 * alike, nothing is over here that is not over there. A request whose time is over is still to be
 * answered, or to be given to homa_reject() or homa_discard(). Costs no system call.
 */
int64_t homa_time_left(const struct homa_message *request);

/**
 * homa_wait_send() - wait until there is room to send
 * @length: bytes of the request that is to be sent.
 * @timeout_ms: 0 only looks, -1 waits for ever.
 *
 * For programs that send with HOMA_NONBLOCK and got -EAGAIN. Other threads may take
 * the room first, so the request can give -EAGAIN again. It also has homad make
 * more room where that is allowed, which HOMA_NONBLOCK does not.
 *
 * Returns 0, or -EAGAIN (there is none within the time), -EMSGSIZE, -ESHUTDOWN,
 * -EINTR, -ECONNREFUSED and -ECONNABORTED as homa_request(). Too many open RPCs
 * (-ENOBUFS of homa_request()) are not its matter: receive their responses.
 */
int homa_wait_send(struct homa *h, size_t length, int timeout_ms);

/**
 * homa_send_fd() - a descriptor for poll, select and epoll: readable when a request that
 * gave -EAGAIN with HOMA_NONBLOCK is worth another try
 *
 * It is readable at first and not for a while after such an -EAGAIN. Add it to what the program
 * waits for then, and take it away when the request was accepted: it stays readable as long as
 * there may be room. Others may take the room first; the further try says. Under "service" homad
 * tells when there is room again. It cannot if it is older than this library, or if a long request
 * finds no memory although none is in use, and not to each of several threads of a handle that find
 * no room; then the descriptor is readable after some time, 20 to 500 microseconds, whether there
 * is room or not. More memory for long requests is had by homa_wait_send() with a time, not by
 * this. Under "kernel" it says that the socket can be written; in process always, as a request
 * never waits there. Do not read it or close it; homa_close() does.
 *
 * Returns the descriptor, the same one each time, or -EMFILE and the like.
 */
int homa_send_fd(struct homa *h);

/**
 * homa_alloc() - memory to write a message into that is sent without being copied
 * @length: bytes of the longest message that it shall hold, 1 .. HOMA_MAX_MESSAGE.
 * @buf: receives the memory, aligned to 4 KiB and of any content.
 *
 * It is yours until you give it to homa_free(), or until a call that sends it succeeds:
 * homa_request(), homa_reply(), homa_call() or homa_ticket_reply() with @buf itself as the
 * message. A call that fails leaves it yours, and one that sends other memory, or @buf as one of
 * several pieces, copies as ever. homa_call() that fails has sent it all the same if it failed
 * later: do not touch it then, and homa_free() tells (-EINVAL: it was sent) unless another thread
 * calls homa_alloc() meanwhile; homa_request() and homa_receive_id() leave no doubt. Memory that
 * was sent or freed cannot be sent or freed again (-EINVAL), nor read or written.
 *
 * With "service" this is the memory that homad reads, of which a handle has as much as for
 * requests and replies that are on their way. What is no longer than 4 KiB is copied all the
 * same, which is cheaper, and so is what lies in memory of a homad that has ended. With other
 * hosts it is plain memory, of which a handle has 32 MiB, and is copied. homa_close() ends it.
 *
 * Errors: -EINVAL (length 0), -EMSGSIZE (too long), -ENOBUFS (there is no such memory left),
 * -ENOMEM, -ECONNREFUSED, -ECONNABORTED and -ESHUTDOWN as homa_request().
 */
int homa_alloc(struct homa *h, size_t length, void **buf);

/** homa_free() - give memory back that was not sent; -EINVAL: it is not yours. */
int homa_free(struct homa *h, void *buf);

/**
 * homa_reply() - answer a request
 * @request: what homa_receive() gave; may already be released.
 * @buf: the response, of @length bytes, 1 .. HOMA_MAX_MESSAGE; may be reused as soon as the
 *	call returns. homa_replyv() takes @iovcnt pieces instead.
 * Returns 0 also when the client is gone meanwhile.
 * Errors: -EINVAL (not a request, length 0, replied already), -EMSGSIZE, -ENOBUFS.
 */
int homa_reply(struct homa *h, const struct homa_message *request,
	       const void *buf, size_t length);
int homa_replyv(struct homa *h, const struct homa_message *request,
		const struct iovec *iov, int iovcnt);

/** Largest errno that homa_reject() can tell a client. */
#define HOMA_MAX_REJECT 511

/**
 * homa_reject() - say that a request will not be answered
 * @request: what homa_receive() gave; may already be released.
 * @error: a positive errno, 1 .. HOMA_MAX_REJECT, with which the client's RPC fails
 *	(its HOMA_ERROR message has it as -@error).
 *
 * A server that does not answer a request calls this or homa_discard(): every request that was
 * received and not answered takes memory, and with "service" a handle can have 4,096 of them unless
 * homad's quota.rpcs says otherwise.
 *
 * The client hears it at once if its Homa is ours too, of this version or a newer one. To the
 * existing Linux module and to older ones nothing is said: there the RPC fails with -ETIMEDOUT
 * after the client's own timeout. Either way the request is not given to a server again.
 *
 * Returns 0 also when the client is gone meanwhile.
 * Errors: -EINVAL (not a request, answered or rejected already, @error out of
 * range), -ENOBUFS, -EOPNOTSUPP (homad or the kernel's module is older than this
 * call; the request can still be answered).
 */
int homa_reject(struct homa *h, const struct homa_message *request, int error);

/** homa_discard() - homa_reject() with ECANCELED: "dropped without an answer". */
int homa_discard(struct homa *h, const struct homa_message *request);

/**
 * homa_alive() - does the client of a request still wait? For servers that work long
 * @request: what homa_receive() gave; may already be released.
 *
 * Returns 1 if it waits, as far as this host knows; 0 if it gave up, aborted, ended or was
 * answered. A client that gives up says so in one packet, and again when it is asked; one that
 * vanished without a word is not noticed. Costs a system call under "kernel" and a question to
 * homad's slow path under "service": not for every loop.
 * Errors: -EINVAL (not a request), -EOPNOTSUPP (as with homa_reject()), -ESHUTDOWN.
 */
int homa_alive(struct homa *h, const struct homa_message *request);

/**
 * homa_receive() - take the next message
 * @msg: receives the message; the caller's memory, of any content.
 * @flags: HOMA_RECV_*.
 * @timeout_ms: how long to wait, in ms; 0 only looks, -1 waits for ever.
 * Returns 0 with @msg filled (a failed RPC too: kind HOMA_ERROR), or
 * -EAGAIN (nothing within the time), -ESHUTDOWN (handle closing), -EINTR.
 * The message's buffers belong to the caller until homa_release().
 */
int homa_receive(struct homa *h, struct homa_message *msg, unsigned int flags,
		 int timeout_ms);

/**
 * homa_receive_ns() - homa_receive() with the time in nanoseconds
 * For programs that have something to do at a given moment. -1 waits for ever.
 */
int homa_receive_ns(struct homa *h, struct homa_message *msg,
		    unsigned int flags, int64_t timeout_ns);

/**
 * homa_receive_batch() - take the next messages
 * @msgs: room for @n of them, at least 1; no more than 4,096 are taken at once.
 * @flags, @timeout_ms: as in homa_receive(), for the first of them.
 *
 * Waits for one message, and takes with it what else is there at that moment; it never waits for
 * the call to be full. In a program that handles many short messages this costs less than a call
 * for each. With several threads that receive, a thread that asks for many leaves less to the
 * others. Each message is released for itself.
 *
 * Returns how many messages are in @msgs, at least 1. Errors: as homa_receive().
 */
int homa_receive_batch(struct homa *h, struct homa_message *msgs,
		       unsigned int n, unsigned int flags, int timeout_ms);

/**
 * homa_receive_id() - homa_receive() for one RPC of this handle, private or shared
 * @id: what homa_request() gave.
 * Errors: as homa_receive(), and -ENOENT (there is no such RPC, or it was received already).
 */
int homa_receive_id(struct homa *h, struct homa_message *msg, uint64_t id,
		    int timeout_ms);

/** homa_release() - give a message's buffers back; harmless if done twice. */
void homa_release(struct homa *h, struct homa_message *msg);

/**
 * homa_copy() - copy a message's bytes out
 * @buf: room for @size bytes.
 * Returns how many bytes were copied: the smaller of @msg->length and @size.
 */
size_t homa_copy(const struct homa_message *msg, void *buf, size_t size);

/**
 * homa_view() - a message's bytes in one piece
 * @buf: @size bytes of the caller's, used if the message lies in several pieces
 *	that do not follow each other; may be NULL if @size is 0.
 *
 * Messages of up to 64 KiB lie in one piece. Returns where the @msg->length bytes
 * are: in the receive buffer, valid until homa_release(), or in @buf. NULL: they
 * lie in several pieces and @buf is too small.
 */
const void *homa_view(const struct homa_message *msg, void *buf, size_t size);

/**
 * struct homa_ticket - a name of a request, to answer it later
 * Plain bytes without pointers: it may be copied and kept while the message itself
 * is released and gone. It is worth something only with the handle that received
 * the request, in the process that opened it or that imported it (homa_import()); what
 * else comes in is refused (-EINVAL). All fields are the library's. It has no size field:
 * within a major version it is 64 bytes.
 */
struct homa_ticket {
	uint64_t handle;  /* number of the handle that received the request */
	uint64_t id;	  /* id of the request, as homa_message.id */
	uint64_t host[2]; /* what finds the request again */
	uint8_t peer[28]; /* address of the client, as in homa_message.peer */
	uint32_t check;	  /* sum of the bytes before, against damage */
};

/** homa_ticket_get() - the name of a request that homa_receive() gave; -EINVAL: it is none. */
int homa_ticket_get(const struct homa_message *request,
		    struct homa_ticket *ticket);

/**
 * homa_ticket_reply() - homa_reply(), homa_reject() and homa_alive() by a request's name
 * Whatever way a request is named, it is answered once.
 */
int homa_ticket_reply(struct homa *h, const struct homa_ticket *ticket,
		      const void *buf, size_t length);
int homa_ticket_reject(struct homa *h, const struct homa_ticket *ticket,
		       int error);
int homa_ticket_alive(struct homa *h, const struct homa_ticket *ticket);

/**
 * homa_call() - send a request and wait for its response
 * @timeout_ms: how long to wait, in ms; -1 waits for ever.
 *
 * The server is told that time, as by homa_request_within(), and when it is over the request is
 * aborted, as by homa_abort(). The other parameters are those of homa_request().
 *
 * Returns 0 with the response in @msg, which is to be released. Errors: as homa_request(),
 * -ETIMEDOUT (also when the time is over), -EINTR, and what the RPC failed with (see
 * homa_message.error).
 */
int homa_call(struct homa *h, const struct sockaddr *dest, socklen_t destlen,
	      const void *buf, size_t length, struct homa_message *msg,
	      int timeout_ms);

/**
 * homa_abort() - end our outstanding requests
 * @id: an RPC, or 0 for all of them.
 * @error: 0: they end without a message; else a positive errno, 1 .. 4095, with which they fail.
 * Errors: -EINVAL (no such RPC, or @error out of range).
 */
int homa_abort(struct homa *h, uint64_t id, int error);

/**
 * homa_fd() - a descriptor for poll, select and epoll: readable when homa_receive() would
 * return an RPC that is not private at once. Do not read it or close it; homa_close() does.
 *
 * Returns the descriptor, the same one each time, or a negative errno such as -EMFILE.
 */
int homa_fd(struct homa *h);

/**
 * homa_poll() - let the protocol run once; for programs that never block
 * Returns 0. Errors: -ESHUTDOWN, and -ECONNABORTED as homa_request().
 */
int homa_poll(struct homa *h);

/**
 * homa_metrics() - visit every counter of the handle's host
 * @visit: called once for each counter, with @arg, the counter's name, a line of description
 *	and its value. The texts are valid during the call.
 */
void homa_metrics(struct homa *h,
		  void (*visit)(void *arg, const char *name,
				const char *description, uint64_t value),
		  void *arg);

#ifdef __cplusplus
}
#endif
#endif
