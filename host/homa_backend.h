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
 * @nic: the kind of packet I/O: "afxdp", "message" or "udp".
 * @interface: the device to use ("afxdp", "message") or whose packet size and rate to
 *	expect ("udp"); NULL if it is unknown.
 * @address: the local numeric address, or NULL if the program named none.
 * @udp_port: the UDP port to use, in host order; 0 if the program named none.
 * @link_mbps: the rate of the link in Mbit/s; 0 if the program named none.
 * @rcvbuf: the size of the receive buffer in bytes, a multiple of 64 KiB.
 * @spin_us: how long a receive polls before it blocks, in microseconds; -1: for ever.
 * @flags: bits HOMA_OPEN_*.
 * @config: up to two strings of settings, applied in this order; NULL: there is none.
 * @own_rcvbuf: true if @rcvbuf is what the program asked for, not the default.
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
 * @iov: the pieces of the message, in order.
 * @iovcnt: the number of pieces.
 * @length: the sum of their bytes, 1 .. HOMA_MAX_MESSAGE.
 * @room: memory of the host's, which the only piece lies at the begin of, or NULL. When the call
 *	succeeds the room is the host's again, else it stays the caller's.
 * @deadline: in a request the time at which its application stops waiting, in ns of
 *	CLOCK_MONOTONIC, which a host tells the server if it can; 0: it does not say.
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
 * @at: the address at which it begins.
 * @size: its size in bytes.
 * @owner, @segment, @offset: what the host knows it by; the core does not look at them.
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
 * struct homa_backend_ops - the functions of a host
 * @abi: the value of HOMA_BACKEND_ABI that the host was built with.
 * @open: makes an endpoint and writes it to @out. On failure @err receives one sentence.
 * @close: ends calls of other threads with -ESHUTDOWN, then frees.
 * @bind: makes the host a server on @port.
 * @getsockname: writes the address and port that peers see into @addr.
 * @udp_port: returns the UDP port in use, in host order; 0: packets are not in UDP.
 * @receive: waits for the message of the RPC @id, or with 0 for any message that @flags ask for;
 *	for ever if @timeout_ns is negative. It writes into a request's cookie when its client
 *	stops waiting, as homa_message_out.deadline.
 * @receive_batch: waits for any message as @receive does, and takes what else is there then, up
 *	to @n messages in all. It returns how many it took.
 * @fd_edges: has the descriptor of @fd give an edge (as epoll sees it) for every further
 *	message from now on, not only when it becomes readable.
 * @set_region: exchanges the region for @bytes at @region (NULL: for the host's own memory);
 *	-EBUSY if a message has been received or an RPC is open.
 * @release_pages: gives pieces of the region back by their offsets; -EINVAL if one was not out
 *	(the others are given back).
 * @rpcs: calls @visit for each open RPC.
 * @reject: refuses a request, which will not be answered. Its client hears @error, a positive
 *	errno, if it understands that. -EINVAL: it was answered or rejected before.
 *	-EOPNOTSUPP: what runs the protocol is older than this call.
 * @request: sends a request and writes its @id. With HOMA_NONBLOCK it does not wait, and gives
 *	-EAGAIN where it would have to.
 * @reply: sends the response to @request, which the host copies or pins before it returns.
 * @release: gives back the pages of a message.
 * @abort: ends the request of this side with @id, 0: all of them, with the errno @error; with 0
 *	nobody hears of it.
 * @fd: returns a descriptor that is readable while a message waits.
 * @poll: does what can be done without waiting.
 * @metrics: calls @visit for each counter.
 * @wait_send: waits until @request with HOMA_NONBLOCK would find room for @length bytes;
 *	-EAGAIN: it would not within the time.
 * @send_fd: returns a descriptor that is readable when @request with HOMA_NONBLOCK may be worth
 *	another try. It is the host's until @close.
 * @alive: returns 1 if the client of a request that was not answered still waits, 0 if it does
 *	not, or an error as @reject.
 * @alloc: writes to @room memory that messages of up to @length bytes can be sent from without a
 *	copy. It stays valid until @unalloc or a call that sends it, also when the host is
 *	closed. -ENOBUFS: there is none. NULL: the host copies what it sends.
 * @unalloc: gives such memory back; the host may be closed already.
 * @sends_from: returns 1 if the address @at lies in such memory, whoever has it, else 0.
 * @listen: takes requests on @port, with 0 on the present one, or takes none any more: @flags
 *	are HOMA_CTL_LISTEN_* of abi/shm_ctl.h. It moves a socket that is bound already.
 * @shutdown: ends all RPCs. Later calls and those that wait get -ESHUTDOWN, and the
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
