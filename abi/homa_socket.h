/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Homa socket API: what a program needs to use Homa through
 * socket(AF_INET or AF_INET6, SOCK_DGRAM, IPPROTO_HOMA). Names, numbers and
 * layouts are those of the Linux module's homa.h of July 2026, so that its
 * programs compile and run here; the asserts at the end freeze them.
 * include/compat/homa.h makes this reachable under the usual name.
 *
 * A request is sent by sendmsg() with a struct homa_sendmsg_args in
 * msg_control (and msg_controllen 0); recvmsg() with a struct
 * homa_recvmsg_args in msg_control waits for requests, responses and
 * failures. Message bytes arrive in a region that the application maps and
 * hands over once by setsockopt(IPPROTO_HOMA, SO_HOMA_RCVBUF): recvmsg() says
 * at which offsets they are, and the next recvmsg() takes the offsets back.
 *
 * Written by: the program before the call; what the kernel writes during the call is said at
 * the field ("recvmsg() writes", "the call writes") or at the struct. Nobody else has the
 * memory, and the kernel reads each value once.
 */
#ifndef HOMA_ABI_SOCKET_H
#define HOMA_ABI_SOCKET_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#endif

#ifndef IPPROTO_HOMA
#define IPPROTO_HOMA 146
#endif

/* Longest request or response, in bytes; the shortest has 1. */
#define HOMA_MAX_MESSAGE_LENGTH 1000000

/* Size of a page of the receive region, as a power of two and in bytes, and most pages that
 * one message takes. */
#define HOMA_BPAGE_SHIFT 16
#define HOMA_BPAGE_SIZE (1 << HOMA_BPAGE_SHIFT)
#define HOMA_MAX_BPAGES \
	((HOMA_MAX_MESSAGE_LENGTH + HOMA_BPAGE_SIZE - 1) >> HOMA_BPAGE_SHIFT)

/* Servers bind ports below this; from here on the kernel gives ports to clients. */
#define HOMA_MIN_DEFAULT_PORT 0x8000

/**
 * struct homa_sendmsg_args - msg_control of sendmsg()
 * @id: The caller writes 0 to send a request; sendmsg() then writes the request's id here.
 *	To send a response, the caller writes the id of the request that it answers, as
 *	recvmsg() gave it, and msg_name is the sender of that request.
 * @completion_cookie: A request's cookie comes back with its response. A response has 0.
 * @flags: The caller sets bits of HOMA_SENDMSG_*.
 * @reserved: The caller writes 0.
 */
struct homa_sendmsg_args {
	__u64 id;
	__u64 completion_cookie;
	__u32 flags;
	__u32 reserved;
};

/* The response is for recvmsg() with this id only, and poll() ignores it. */
#define HOMA_SENDMSG_PRIVATE 0x01
#define HOMA_SENDMSG_VALID_FLAGS 0x01

/*
 * Flags of this implementation, which the existing module refuses (EINVAL). They go with
 * the id of a request that was received and not answered, and with a message of no bytes.
 * REJECT: the request will not be answered. Its client gets completion_cookie, an errno
 * from 1 to 511, at once if it understands that, and times out if not. In the client's
 * recvmsg() only the cookie tells EAGAIN and EINTR of a rejection from errors of that call.
 * ASK: does the client of the request still wait? ENOENT: it does not.
 * RECEIVE: when the message has been taken, the same call receives as recvmsg() does; see
 * struct homa_exchange_args. It may go with PRIVATE and with REJECT. The existing module
 * refuses it, too.
 */
#define HOMA_SENDMSG_REJECT 0x10000
#define HOMA_SENDMSG_ASK 0x20000
#define HOMA_SENDMSG_RECEIVE 0x40000

/**
 * struct homa_recvmsg_args - msg_control of recvmsg(), msg_controllen is its size
 * @id: The caller writes the id of a private RPC to wait for that one, or 0 to wait for any
 *	RPC that is not private. recvmsg() writes the id of the RPC whose message it returns,
 *	or which has failed.
 * @completion_cookie: recvmsg() writes the cookie of the request if the message is a
 *	response, else 0.
 * @num_bpages: The caller writes how many entries of @bpage_offsets it gives back;
 *	recvmsg() writes how many are valid.
 * @reserved: The caller writes 0.
 * @bpage_offsets: These offsets in bytes say where the message lies in the receive region.
 *	Each entry but the last names a whole page of HOMA_BPAGE_SIZE bytes, aligned to that.
 */
struct homa_recvmsg_args {
	__u64 id;
	__u64 completion_cookie;
	__u32 num_bpages;
	__u32 reserved;
	__u32 bpage_offsets[HOMA_MAX_BPAGES];
};

/**
 * struct homa_exchange_args - msg_control of a sendmsg() that also receives
 * @send: The message to send, as for sendmsg(), with HOMA_SENDMSG_RECEIVE in flags. When it
 *	has been taken, sendmsg() changes @send.id: to the id of the request, or to 0 if it was
 *	a response or a rejection. If the call fails and @send.id is what it was, nothing was
 *	sent and no page was given back.
 * @peer: sendmsg() writes from whom the message comes that it returns. If the caller sends a
 *	response and msg_name is NULL, it goes there. A request goes to msg_name or, if that is
 *	NULL, to the peer that connect() named.
 * @reserved: The caller writes 0.
 * @recv: As for recvmsg(). With HOMA_SENDMSG_PRIVATE the caller writes 0 as its id, and the
 *	call waits for the response to the request that it sends.
 *
 * sendmsg() returns what recvmsg() would: the length of the message that it received, or the
 * error. MSG_DONTWAIT and the time limits of both calls apply. When the message has been taken,
 * ENOMSG instead of EAGAIN says that nothing was there to receive in time, and a signal ends the
 * wait with EINTR even if its handler has SA_RESTART: a call that began again would send twice.
 */
struct homa_exchange_args {
	struct homa_sendmsg_args send;
	union {
		/* The family is in the same place in all of them. */
		__u16 family;
		/* It is the address if the socket is of AF_INET. */
		struct sockaddr_in in4;
		/* It is the address if the socket is of AF_INET6. */
		struct sockaddr_in6 in6;
	} peer;
	__u32 reserved;
	struct homa_recvmsg_args recv;
};

/**
 * struct homa_abort_args - argument of HOMAIOCABORT
 * @id: The caller names one request that this socket sent, or writes 0 for all of them.
 * @error: The requests fail with this positive errno; with 0 they vanish.
 */
struct homa_abort_args {
	__u64 id;
	__u32 error;
	__u32 _pad1;
	__u64 _pad2[2];
};

/* Socket options of level IPPROTO_HOMA. */
#define SO_HOMA_RCVBUF 10 /* struct homa_rcvbuf_args: the receive region */
/* int: 1 if requests are taken; bind() sets it, too */
#define SO_HOMA_SERVER 11

/**
 * struct homa_rcvbuf_args - argument of SO_HOMA_RCVBUF
 * @start: The region begins at this address, which is on a page boundary.
 * @length: The region has this many bytes.
 */
struct homa_rcvbuf_args {
	__u64 start;
	size_t length;
};

/* A bit of the existing module's sysctl net.homa.flags, which homa.ko does not have. */
#define HOMA_FLAG_DONT_THROTTLE 2

/**
 * struct homa_rpc_info - one RPC, as HOMAIOCINFO describes it
 * @id: The id is odd if this socket is the RPC's server, and even if it is the client.
 * @peer: This is the other end's address, in the socket's address family.
 * @completion_cookie: This is the cookie of a request that this socket sent, else 0.
 * @tx_length: The outgoing message has this many bytes; -1 means that there is none yet.
 * @tx_sent: This many bytes of the outgoing message have left at least once.
 * @tx_granted: This many bytes of the outgoing message may leave.
 * @tx_prio: Granted bytes leave at this priority level.
 * @rx_length: The incoming message has this many bytes; -1 means that this is not known yet.
 * @rx_remaining: This many bytes of the incoming message have not arrived yet.
 * @rx_gaps: The bytes that have arrived have this many holes between them.
 * @rx_gap_bytes: The holes have this many bytes together.
 * @rx_granted: The sender may send this many bytes of the incoming message.
 * @flags: Each set bit of HOMA_RPC_* says something about the RPC.
 *
 * Written by: the kernel, all of it.
 */
struct homa_rpc_info {
	__u64 id;
	union {
		/* It is a place for any address, and all bytes of it are written. */
		struct sockaddr_storage storage;
		/* It is the address if the socket is of AF_INET. */
		struct sockaddr_in in4;
		/* It is the address if the socket is of AF_INET6. */
		struct sockaddr_in6 in6;
	} peer;
	__u64 completion_cookie;
	__s32 tx_length;
	__u32 tx_sent;
	__u32 tx_granted;
	__u32 tx_prio;
	__s32 rx_length;
	__u32 rx_remaining;
	__u32 rx_gaps;
	__u32 rx_gap_bytes;
	__u32 rx_granted;
	__u16 flags;
};

/* the message waits for room in the receive region */
#define HOMA_RPC_BUF_STALL 1
#define HOMA_RPC_PRIVATE 2
/* the message is complete and waits for recvmsg() */
#define HOMA_RPC_RX_READY 4
/* bytes have arrived that are not in the region yet */
#define HOMA_RPC_RX_COPY 8

#define HOMA_ERROR_MSG_SIZE 100

/**
 * struct homa_info - argument of HOMAIOCINFO
 * @rpc_info: The caller says where the records of RPCs shall be written.
 * @rpc_info_length: The caller says how many bytes may be written there.
 * @bpool_avail_bytes: The call writes how many bytes of the receive region are free.
 * @port: The call writes the socket's port.
 * @num_rpcs: The call writes how many RPCs are open, also those without room for a record.
 * @error_msg: The call writes a sentence on the last error of a call on this socket.
 */
struct homa_info {
	struct homa_rpc_info *rpc_info;
	size_t rpc_info_length;
	__u64 bpool_avail_bytes;
	__u32 port;
	__u32 num_rpcs;
	char error_msg[HOMA_ERROR_MSG_SIZE];
};

#define HOMAIOCINFO _IOWR('h', 0x90, struct homa_info)
#define HOMAIOCABORT _IOWR('h', 0x91, struct homa_abort_args)
#define HOMAIOCFREEZE _IO('h', 0x92)

/* ---- what must never change ---- */

#ifdef __cplusplus
#define HOMA_SOCKET_ASSERT(cond) static_assert(cond, "Homa socket ABI")
#else
#define HOMA_SOCKET_ASSERT(cond) _Static_assert(cond, "Homa socket ABI")
#endif
#define HOMA_SOCKET_AT(type, field, offset) \
	HOMA_SOCKET_ASSERT(offsetof(struct type, field) == (offset))

HOMA_SOCKET_ASSERT(HOMA_BPAGE_SIZE == 65536 && HOMA_MAX_BPAGES == 16);
HOMA_SOCKET_ASSERT(sizeof(struct homa_sendmsg_args) == 24);
HOMA_SOCKET_AT(homa_sendmsg_args, completion_cookie, 8);
HOMA_SOCKET_AT(homa_sendmsg_args, flags, 16);
HOMA_SOCKET_AT(homa_sendmsg_args, reserved, 20);
HOMA_SOCKET_ASSERT(sizeof(struct homa_recvmsg_args) == 88);
HOMA_SOCKET_AT(homa_recvmsg_args, completion_cookie, 8);
HOMA_SOCKET_AT(homa_recvmsg_args, num_bpages, 16);
HOMA_SOCKET_AT(homa_recvmsg_args, reserved, 20);
HOMA_SOCKET_AT(homa_recvmsg_args, bpage_offsets, 24);
HOMA_SOCKET_ASSERT(sizeof(struct homa_exchange_args) == 144);
HOMA_SOCKET_AT(homa_exchange_args, peer, 24);
HOMA_SOCKET_AT(homa_exchange_args, reserved, 52);
HOMA_SOCKET_AT(homa_exchange_args, recv, 56);
HOMA_SOCKET_ASSERT(sizeof(struct homa_abort_args) == 32);
HOMA_SOCKET_AT(homa_abort_args, error, 8);
#if defined(__LP64__)
HOMA_SOCKET_ASSERT(sizeof(struct homa_rcvbuf_args) == 16);
HOMA_SOCKET_AT(homa_rcvbuf_args, length, 8);
HOMA_SOCKET_ASSERT(sizeof(struct homa_rpc_info) == 184);
HOMA_SOCKET_AT(homa_rpc_info, peer, 8);
HOMA_SOCKET_AT(homa_rpc_info, completion_cookie, 136);
HOMA_SOCKET_AT(homa_rpc_info, tx_length, 144);
HOMA_SOCKET_AT(homa_rpc_info, tx_sent, 148);
HOMA_SOCKET_AT(homa_rpc_info, tx_granted, 152);
HOMA_SOCKET_AT(homa_rpc_info, tx_prio, 156);
HOMA_SOCKET_AT(homa_rpc_info, rx_length, 160);
HOMA_SOCKET_AT(homa_rpc_info, rx_remaining, 164);
HOMA_SOCKET_AT(homa_rpc_info, rx_gaps, 168);
HOMA_SOCKET_AT(homa_rpc_info, rx_gap_bytes, 172);
HOMA_SOCKET_AT(homa_rpc_info, rx_granted, 176);
HOMA_SOCKET_AT(homa_rpc_info, flags, 180);
HOMA_SOCKET_ASSERT(sizeof(struct homa_info) == 136);
HOMA_SOCKET_AT(homa_info, rpc_info_length, 8);
HOMA_SOCKET_AT(homa_info, bpool_avail_bytes, 16);
HOMA_SOCKET_AT(homa_info, port, 24);
HOMA_SOCKET_AT(homa_info, num_rpcs, 28);
HOMA_SOCKET_AT(homa_info, error_msg, 32);
HOMA_SOCKET_ASSERT(HOMAIOCINFO == 0xC0886890);
#endif
#if defined(__i386__) || defined(__arm__)
HOMA_SOCKET_ASSERT(sizeof(struct homa_rpc_info) == 184);
HOMA_SOCKET_AT(homa_rpc_info, peer, 8);
HOMA_SOCKET_AT(homa_rpc_info, completion_cookie, 136);
HOMA_SOCKET_AT(homa_rpc_info, tx_length, 144);
HOMA_SOCKET_AT(homa_rpc_info, flags, 180);
HOMA_SOCKET_AT(homa_rcvbuf_args, length, 8);
HOMA_SOCKET_AT(homa_info, rpc_info_length, 4);
HOMA_SOCKET_AT(homa_info, bpool_avail_bytes, 8);
HOMA_SOCKET_AT(homa_info, port, 16);
HOMA_SOCKET_AT(homa_info, error_msg, 24);
#endif
#if defined(__i386__)
HOMA_SOCKET_ASSERT(sizeof(struct homa_rcvbuf_args) == 12);
HOMA_SOCKET_ASSERT(sizeof(struct homa_info) == 124);
HOMA_SOCKET_ASSERT(HOMAIOCINFO == 0xC07C6890);
#endif
HOMA_SOCKET_ASSERT(HOMAIOCABORT == 0xC0206891 && HOMAIOCFREEZE == 0x6892);

#endif
