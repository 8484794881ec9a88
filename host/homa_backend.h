/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What stands between libhoma's thin core and a host that runs the protocol:
 * one table of functions. The core checks arguments, words errors and chooses
 * the host; a host behind this table never prints and never words an error
 * except for homa_backend_ops.open().
 *
 * A host is a plug-in opened on demand (libhoma-<name>.so exports
 * homa_backend_get()), so that a program that uses another host never loads
 * the packet I/O libraries. The static variant links it in.
 *
 * Written by: the core, which fills the structs and passes them to one call; a host reads them
 * and keeps no pointer to them. What a host fills is said at the struct.
 */
#ifndef HOMA_BACKEND_H
#define HOMA_BACKEND_H

#include <homa/libhoma.h>

struct homa_ctl_rpc;

/* Grows when this header changes; core and plug-in must agree. */
#define HOMA_BACKEND_ABI 9u

/* struct homa_message.priv, as shared by core and hosts. */
enum {
	HOMA_PRIV_PAGES = 0, /* 0..7: u32[16], offset of each piece in the region */
	HOMA_PRIV_HOST = 8,    /* 8, 9: the host's */
	HOMA_PRIV_HANDLE = 10, /* the core's: which handle received it */
	HOMA_PRIV_HELD = 11,   /* the core's: 1 until released */
};

/**
 * struct homa_backend_options - settings after defaults and environment
 * @nic: packet I/O: "afxdp" or "udp".
 * @interface: the device to use ("afxdp") or whose packet size and rate to
 *	expect ("udp"); NULL: unknown.
 * @address: local numeric address or NULL.
 * @udp_port, @link_mbps: 0: not given.
 * @rcvbuf: bytes, a multiple of 64 KiB.
 * @spin_us: -1 or microseconds.
 * @flags: HOMA_OPEN_*.
 * @config: up to two strings of settings, applied in this order, or NULL.
 * @own_rcvbuf: @rcvbuf is what the program asked for, not the default.
 * @region: @rcvbuf bytes of the caller's where messages shall arrive, aligned to
 *	a page of memory; NULL: the host's own.
 */
struct homa_backend_options {
	const char *nic;
	const char *interface;
	const char *address;
	uint16_t udp_port;
	uint32_t link_mbps;
	size_t rcvbuf;
	int32_t spin_us;
	uint32_t flags;
	const char *config[2];
	int own_rcvbuf;
	void *region;
};

/**
 * struct homa_message_out - a message to send
 * @iov, @iovcnt: its pieces.
 * @length: their sum, 1 .. HOMA_MAX_MESSAGE.
 * @room: the host's memory that the only piece lies at the begin of, or NULL. When the call
 *	succeeds the room is the host's again, else it stays the caller's.
 * @deadline: of a request: when its application stops waiting, ns of CLOCK_MONOTONIC, which a
 *	host tells the server if it can; 0: it does not say.
 */
struct homa_message_out {
	const struct iovec *iov;
	int iovcnt;
	size_t length;
	const struct homa_room *room;
	uint64_t deadline;
};

/**
 * struct homa_room - memory of a host that messages can be sent from without a copy
 * @at, @size: where it is, and its bytes.
 * @owner, @segment, @offset: the host's.
 *
 * Written by: the host, in @alloc; the core hands it back as it is.
 */
struct homa_room {
	void *at;
	size_t size;
	void *owner;
	uint32_t segment;
	uint32_t offset;
};

/**
 * struct homa_backend_ops - a host
 * @abi: HOMA_BACKEND_ABI.
 * @open: @err receives one sentence on failure.
 * @close: ends calls of other threads with -ESHUTDOWN, then frees.
 * @bind: makes the host a server on @port.
 * @getsockname: writes the address and port that peers see into @addr.
 * @udp_port: returns the UDP port in use, in host order; 0: packets are not in UDP.
 * @receive: @id 0: any message that @flags ask for; waits for ever if
 *	@timeout_ns is negative. The cookie of a request is when its client stops waiting, in
 *	the same form, or 0.
 * @receive_batch: @receive of any message, and what else is there then, up to @n; how
 *	many.
 * @fd_edges: from now on the descriptor of @fd has an edge (as epoll sees it)
 *	for every further message, not only when it becomes readable.
 * @set_region: exchange the region for @bytes at @region (NULL: the host's own);
 *	-EBUSY if a message has been received or an RPC is open.
 * @release_pages: give pieces back by their offsets; -EINVAL if one was not out
 *	(the others are given back).
 * @rpcs: visit the open RPCs.
 * @reject: the request will not be answered; its client hears @error, a positive errno,
 *	if it understands that. -EINVAL: answered or rejected before. -EOPNOTSUPP: what
 *	runs the protocol is older than this call.
 * @request: with HOMA_NONBLOCK it does not wait, and gives -EAGAIN if it had to.
 * @reply: sends the response to @request, which the host copies or pins before it returns.
 * @release: gives back the pages of a message.
 * @abort: ends the request of this side with @id, 0: all of them, with the errno @error; with 0
 *	nobody hears of it.
 * @fd: returns a descriptor that is readable while a message waits.
 * @poll: does what can be done without waiting.
 * @metrics: calls @visit for each counter.
 * @wait_send: until such a request of @length bytes would find room; -EAGAIN: not
 *	within the time.
 * @send_fd: a descriptor that is readable when such a request may be worth another try;
 *	the host's until @close.
 * @alive: does the client of the request, which was not answered, still wait? 1, 0, or an
 *	error as above.
 * @alloc: memory that messages of up to @length bytes can be sent from without a copy; it
 *	stays valid until @unalloc or a call that sends it, also when the host is closed.
 *	-ENOBUFS: there is none. NULL: the host copies what it sends.
 * @unalloc: give it back; the host may be closed already.
 * @sends_from: does this address lie in such memory, whoever has it?
 * @listen: take requests on @port, 0: on the present one, or no longer: @flags
 *	are HOMA_CTL_LISTEN_* of abi/shm.h. Moves a socket that is bound already.
 * @shutdown: end all RPCs; later calls and those that wait get -ESHUTDOWN, and the
 *	descriptor of @fd is readable for ever; only @close remains.
 *
 * All return 0 or a negative errno, with the meanings of libhoma.h. Arguments
 * have been checked by the core. Any thread may call any of them at any time
 * between @open and @close.
 *
 * Written by: the host, as a constant.
 */
struct homa_backend_ops {
	unsigned int abi;
	int (*open)(void **out, const struct homa_backend_options *options,
		    char *err, size_t errlen);
	void (*close)(void *host);
	int (*bind)(void *host, uint16_t port);
	int (*getsockname)(void *host, struct sockaddr_storage *addr);
	uint16_t (*udp_port)(void *host);
	int (*request)(void *host, const struct sockaddr *dest,
		       const struct homa_message_out *out, uint64_t cookie,
		       unsigned int flags, uint64_t *id);
	int (*reply)(void *host, const struct homa_message *request,
		     const struct homa_message_out *out);
	int (*receive)(void *host, struct homa_message *msg, uint64_t id,
		       unsigned int flags, int64_t timeout_ns);
	int (*receive_batch)(void *host, struct homa_message *msgs,
			     unsigned int n, unsigned int flags,
			     int64_t timeout_ns);
	int (*release)(void *host, struct homa_message *msg);
	int (*abort)(void *host, uint64_t id, int error);
	int (*fd)(void *host);
	int (*poll)(void *host);
	void (*metrics)(void *host,
			void (*visit)(void *arg, const char *name,
				      const char *description, uint64_t value),
			void *arg);
	int (*fd_edges)(void *host);
	int (*set_region)(void *host, void *region, size_t bytes);
	int (*release_pages)(void *host, const uint32_t *pages, unsigned int num);
	int (*rpcs)(void *host,
		    void (*visit)(void *arg, const struct homa_ctl_rpc *rpc),
		    void *arg);
	int (*shutdown)(void *host);
	int (*listen)(void *host, uint16_t port, unsigned int flags);
	int (*reject)(void *host, const struct homa_message *request, int error);
	int (*alive)(void *host, const struct homa_message *request);
	int (*wait_send)(void *host, size_t length, int64_t timeout_ns);
	int (*send_fd)(void *host);
	int (*alloc)(void *host, size_t length, struct homa_room *room);
	void (*unalloc)(const struct homa_room *room);
	int (*sends_from)(void *host, const void *at);
};

/** homa_backend_get() - exported by a plug-in. */
__attribute__((visibility("default"))) const struct homa_backend_ops *
homa_backend_get(void);

#endif
