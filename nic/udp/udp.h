/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the UDP backend: one socket, a pool of large receive buffers that
 * hold GRO bundles, and message headers prepared once for the batch calls.
 */
#ifndef HOMA_NIC_UDP_H
#define HOMA_NIC_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "icmp.h"
#include "nic_backend.h"
#include "rtnl.h"

/* Younger than the oldest C library that we build against. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define UDP_PORT 54321
#define UDP_BATCH 32	       /* messages per recvmmsg() or sendmmsg() */
#define UDP_BUNDLE_BATCH 4     /* the same for GRO bundles ... */
#define UDP_BUNDLE_LARGE 16384 /* ... of more bytes than this */
#define UDP_BUFS 128	       /* receive buffers, by default */
#define UDP_BUF_GRO 65536      /* bytes of one, with GRO */
#define UDP_GSO_SEGS 64 /* packets per message: the kernel's UDP_MAX_SEGMENTS */
#define UDP_GSO_BYTES 64000 /* and bytes */
/* of path MTUs remembered, by a secret hash of the address */
#define UDP_ROUTE_SETS 256u
#define UDP_ROUTE_WAYS 4u
#define UDP_RX_CONTROL 160 /* packet info, TOS, GRO size */
#define UDP_TX_CONTROL 128 /* TOS, source address, GSO size */

/**
 * struct udp_bundle - what is left of a received message
 * @buf: receive buffer.
 * @at: offset of the next packet in it.
 * @end: end of the message.
 * @seg: bytes per packet; the last may be shorter.
 * @prio, @ecn, @src, @dst: as in struct nic_rx, the same for all its packets.
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
 * struct udp_route - a remembered look-up
 * @dst: peer; its port is that of whoever asked first.
 * @src: the source address that the kernel would choose.
 * @heard: address of ours that the peer last sent to; unspecified: none.
 * @rc: 0 or why it cannot be reached.
 * @mtu: as in struct nic_info.
 * @expires_ms: when to ask again; 0: unused.
 * @pinned: @heard is not @src, so sending has to name it.
 * @used_ms: when it was last asked for.
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

/** struct udp_device - its MTU, bytes, believed until @expires_ms */
struct udp_device {
	int index;
	u32 mtu;
	u64 expires_ms;
};

/**
 * struct udp_batch - the arguments of sendmmsg(), built in place
 * @hdrs: one per message.
 * @names: destination of each.
 * @iovs: pieces; a packet takes one or two.
 * @control: cmsg space of each.
 * @first: index of each message's first packet.
 * @count: packets in each.
 * @n: messages.
 * @n_iovs: pieces used.
 */
struct udp_batch {
	struct mmsghdr hdrs[UDP_BATCH];
	struct sockaddr_storage names[UDP_BATCH];
	struct iovec iovs[UDP_BATCH * UDP_GSO_SEGS * 2];
	_Alignas(8) u8 control[UDP_BATCH][UDP_TX_CONTROL];
	int first[UDP_BATCH];
	int count[UDP_BATCH];
	int n;
	int n_iovs;
};

/**
 * struct udp - the backend
 * @nic: what nic.c knows.
 * @fd: the socket.
 * @epfd: the socket, and later what else must wake a sleeper.
 * @v6: an IPv6 (dual-stack) socket; else IPv4.
 * @bound: our address when bound to one.
 * @has_bound: it is.
 * @port: our port, host order.
 * @scope: interface of link-local peers, 0 until one was heard.
 * @gso, @gro: in use.
 * @blocked: the socket buffer was full; nic_arm() waits for room.
 * @awaits_room: @epfd is told to become readable when there is room to send.
 * @sleeps: how often nic_arm() was called since a datagram came, or errors were taken.
 * @bufs: receive memory, @n_bufs buffers of @buf_size bytes.
 * @refs: packets of each buffer that the caller still holds, plus one while
 *	it has packets that were not handed out yet.
 * @free: stack of unused buffers, @n_free high.
 * @bundles: messages received but not handed out, a ring.
 * @b_head, @b_tail: its ends; count up for ever.
 * @rx_hdrs, @rx_iovs, @rx_names, @rx_control: arguments of recvmmsg().
 * @rx_vlen: messages to ask for next: follows what came.
 * @batch: arguments of sendmmsg().
 * @icmp: for port unreachable; both -1 without the privilege.
 * @rtnl: for path MTUs; fd -1 if netlink is forbidden.
 * @routes: remembered look-ups. @route_key: of the hash.
 * @device: what the last of them led over.
 * @pins: some peer is answered from an address that is not the kernel's choice.
 * @last_src, @last_dst: who sent the last message, and to which address.
 * @kernel_drops: last value of the socket's drop counter.
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
/* The address that packets to @dst must come from, NULL: the kernel's choice. */
const struct homa_addr *udp_route_source(struct udp *u,
					 const struct homa_addr *dst);

#endif
