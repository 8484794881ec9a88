/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the UDP backend: one socket, a pool of large receive buffers that
 * hold GRO bundles, and message headers prepared once for the batch calls.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic.
 */
#ifndef HOMA_NIC_UDP_H
#define HOMA_NIC_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "icmp.h"
#include "nic_backend.h"
#include "rtnl.h"

/* The oldest C library that we build against does not have these. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define UDP_PORT 54321
/* The most messages that one recvmmsg() or sendmmsg() moves. */
#define UDP_BATCH 32
/* The most GRO bundles that one recvmmsg() asks for if the last ones had more bytes than
 * UDP_BUNDLE_LARGE. */
#define UDP_BUNDLE_BATCH 4
#define UDP_BUNDLE_LARGE 16384
/* Bytes of the map with udp.news: the kernel maps whole pages. */
#define UDP_NEWS_BYTES 4096u
#define UDP_BUFS 128	  /* receive buffers, by default */
#define UDP_BUF_GRO 65536 /* bytes of a receive buffer */
/* The most packets in a GSO message, as the kernel's UDP_MAX_SEGMENTS, and the most bytes. */
#define UDP_GSO_SEGS 64
#define UDP_GSO_BYTES 64000
/* What is remembered of ways to peers is kept in this many sets, of which a secret hash of
 * the address chooses one, and in this many entries of a set. */
#define UDP_ROUTE_SETS 256u
#define UDP_ROUTE_WAYS 4u
/* Bytes for the control messages: packet info, TOS, GRO size, and dropped packets. */
#define UDP_RX_CONTROL 160
/* Bytes for the control messages: TOS, source address and GSO size. */
#define UDP_TX_CONTROL 128

/**
 * struct udp_bundle - a received message and what was not handed out of it yet
 * @buf: the number of its receive buffer.
 * @at: the offset in bytes of the next packet in the buffer.
 * @end: the offset in bytes of the end of the message.
 * @seg: the size of each packet in bytes; the last may be shorter.
 * @prio: the priority of all its packets, as in struct nic_rx.
 * @ecn: the ECN bits of all its packets, as in struct nic_rx.
 * @src: the sender of all its packets.
 * @dst: the address of ours that all its packets were sent to.
 */
struct udp_bundle {
	u32 buf;
	u32 at;
	u32 end;
	u32 seg;
	u8 prio;
	u8 ecn;
	struct homa_addr src;
	struct homa_addr dst;
};

/**
 * struct udp_route - what is remembered of the way to a peer
 * @dst: the peer's address; its port does not matter.
 * @src: the source address that the kernel would choose.
 * @heard: the address of ours that the peer last sent to; unspecified if there is none.
 * @rc: 0, or the negative errno why it cannot be reached.
 * @mtu: the path's MTU in bytes, as in struct nic_info.
 * @expires_ms: the time from which the kernel is asked again, in ms; 0 in an unused entry.
 * @used_ms: the time at which the entry was last asked for, in ms.
 * @pinned: true if @heard is not @src, so that sending has to name it.
 */
struct udp_route {
	struct homa_addr dst;
	struct homa_addr src;
	struct homa_addr heard;
	int rc;
	u32 mtu;
	u64 expires_ms;
	u64 used_ms;
	bool pinned;
};

/**
 * struct udp_device - the device that was last looked up
 * @index: its interface index.
 * @mtu: its MTU in bytes, 0 if unknown.
 * @expires_ms: the time until which @mtu is believed, in ms.
 */
struct udp_device {
	int index;
	u32 mtu;
	u64 expires_ms;
};

/**
 * struct udp_batch - the arguments of sendmmsg(), built in place
 * @hdrs: the header of each message.
 * @names: the destination of each message.
 * @iovs: the pieces of all messages; a packet takes one or two.
 * @control: the control messages of each message.
 * @first: the index of each message's first packet.
 * @count: the number of packets in each message.
 * @bytes: the bytes of these packets, Homa header and payload.
 * @n: the number of messages.
 * @n_iovs: the number of pieces in use.
 */
struct udp_batch {
	struct mmsghdr hdrs[UDP_BATCH];
	struct sockaddr_storage names[UDP_BATCH];
	struct iovec iovs[UDP_BATCH * UDP_GSO_SEGS * 2];
	_Alignas(8) u8 control[UDP_BATCH][UDP_TX_CONTROL];
	int first[UDP_BATCH];
	int count[UDP_BATCH];
	u32 bytes[UDP_BATCH];
	int n;
	int n_iovs;
};

/**
 * struct udp - the backend
 * @nic: the part that nic.c knows.
 * @fd: the socket.
 * @epfd: an epoll set of the socket, by which a thread sleeps.
 * @v6: true for an IPv6 (dual-stack) socket, false for an IPv4 socket.
 * @bound: our address, if @has_bound.
 * @has_bound: true if the socket is bound to one address.
 * @port: our port, in host byte order.
 * @scope: the interface index of link-local peers, 0 until one was heard.
 * @gso: true if messages of several packets are sent.
 * @gro: true if such messages may be received.
 * @blocked: true if the socket buffer was full since the last nic_arm(), so that the next one has
 *	to wait for room.
 * @awaits_room: true if @epfd becomes readable when there is room to send.
 * @news: the number of datagrams that have come, which the kernel counts in memory, or NULL;
 *	see udp_watch.c.
 * @sleeps: the number of calls of nic_arm() since a datagram came or errors were taken.
 * @bufs: the receive buffers.
 * @n_bufs: the number of receive buffers.
 * @buf_size: the size of a receive buffer in bytes.
 * @refs: for each buffer the number of its packets that the caller holds, and one more while
 *	it has packets that were not handed out yet.
 * @free: a stack of the unused buffers.
 * @n_free: the number of unused buffers.
 * @bundles: a ring of received messages with packets that were not handed out yet.
 * @b_head: the position of the next message to hand out; it counts up for ever.
 * @b_tail: the position of the next message to put in; it counts up for ever.
 * @rx_hdrs: arguments of recvmmsg().
 * @rx_iovs: arguments of recvmmsg().
 * @rx_names: arguments of recvmmsg().
 * @rx_control: arguments of recvmmsg().
 * @rx_vlen: the number of messages to ask for next; it follows the number that came.
 * @batch: arguments of sendmmsg().
 * @icmp: the sockets for port unreachable, which are negative without the privilege.
 * @rtnl: the netlink socket for path MTUs; its fd is -1 if netlink is forbidden.
 * @routes: what is remembered of the ways to peers.
 * @route_key: the secret key of the hash for @routes.
 * @device: the device to which the last look-up led.
 * @pins: true if a peer is answered from an address that the kernel would not choose.
 * @last_src: the sender of the last message.
 * @last_dst: the address of ours to which the last message was sent.
 * @kernel_drops: the last value of the socket's counter of dropped packets.
 */
struct udp {
	struct nic nic;
	int fd;
	int epfd;
	bool v6;
	struct homa_addr bound;
	bool has_bound;
	u16 port;
	u32 scope;
	bool gso;
	bool gro;
	bool blocked;
	bool awaits_room;
	const u64 *news;
	u32 sleeps;
	u8 *bufs;
	u32 n_bufs;
	u32 buf_size;
	u32 *refs;
	u32 *free;
	u32 n_free;
	struct udp_bundle bundles[UDP_BATCH];
	u32 b_head;
	u32 b_tail;
	struct mmsghdr rx_hdrs[UDP_BATCH];
	struct iovec rx_iovs[UDP_BATCH];
	struct sockaddr_storage rx_names[UDP_BATCH];
	_Alignas(8) u8 rx_control[UDP_BATCH][UDP_RX_CONTROL];
	u32 rx_vlen;
	struct udp_batch batch;
	struct nic_icmp icmp;
	struct nic_rtnl rtnl;
	struct udp_route routes[UDP_ROUTE_SETS][UDP_ROUTE_WAYS];
	u64 route_key[2];
	struct udp_device device;
	bool pins;
	struct homa_addr last_src;
	struct homa_addr last_dst;
	u32 kernel_drops;
};

static inline struct udp *udp_of(struct nic *nic)
{
	return homa_container_of(nic, struct udp, nic);
}

/* udp_watch.c */
const u64 *udp_watch(struct nic *nic);
void udp_watch_end(struct udp *u);

/* udp_addr.c */
socklen_t udp_to_sockaddr(const struct udp *u, const struct homa_addr *addr,
			  struct sockaddr_storage *ss);
void udp_from_sockaddr(const struct sockaddr_storage *ss, struct homa_addr *addr);

/* udp_rx.c */
int udp_rx_open(struct udp *u, u32 bufs);
void udp_rx_close(struct udp *u);
int udp_rx(struct nic *nic, struct nic_rx *pkts, int n);
void udp_rx_release(struct nic *nic, const struct nic_rx *pkts, int n);

/* udp_tx.c */
int udp_tx_room(struct nic *nic);
int udp_tx(struct nic *nic, const struct nic_tx *pkts, int n);

/* udp_err.c: the error queue, and errors of our own */
int udp_errors(struct nic *nic, struct nic_error *errors, int n);
void udp_take_errors(struct udp *u);
void udp_refuse(struct udp *u, const struct nic_tx *pkt, int error, u32 mtu);
void udp_port_unreachable(struct nic *nic, const struct nic_rx *pkt);

/* udp_route.c */
int udp_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu);
void udp_route_forget(struct udp *u, const struct homa_addr *dst);
void udp_route_heard(struct udp *u, const struct homa_addr *peer,
		     const struct homa_addr *local);
/* The address that packets to @dst must come from; NULL if the kernel chooses it. */
const struct homa_addr *udp_route_source(struct udp *u,
					 const struct homa_addr *dst);

#endif
