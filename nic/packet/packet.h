/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the backend for a packet socket: Homa as IP protocol 146 on a device that takes no AF_XDP.
 * It is for a host whose peers have AF_XDP, and so send natively: UDP would not hear them.
 *
 * The socket gets a copy of what the kernel receives. The kernel itself would answer that it does
 * not know the protocol; it does not while somebody has a raw socket for the protocol, so there is
 * one of each family, which receives nothing.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic.
 */
#ifndef HOMA_NIC_PACKET_H
#define HOMA_NIC_PACKET_H

#include <sys/socket.h>

#include "ether.h"

/* The most frames that one recvmmsg() or sendmmsg() moves. */
#define PACKET_BATCH 32
/* The number of receive buffers. */
#define PACKET_BUFS 1024u
/* The largest IP packet in bytes for which buffers are made, even if the MTU is smaller: it may be
 * raised later. Memory that is never used is none. */
#define PACKET_MTU 9216u
/* This bit of nic_rx.token says that the packet is one to ourselves. */
#define PACKET_TOKEN_LOOP ((u64)1 << 63)
/* The number of calls of nic_rx() between two looks at the slow side. */
#define PACKET_CTL_CALLS 64u

/**
 * struct packet_batch - the arguments of sendmmsg(), built in place
 * @hdrs: the header of each message.
 * @iovs: the pieces of all messages: the headers up to IP's, Homa's header, and the payload.
 * @heads: the headers up to IP's of each message.
 * @index: the number of each message's packet in this nic_tx().
 * @bytes: the bytes of Homa header and payload of each message.
 * @n: the number of messages.
 */
struct packet_batch {
	struct mmsghdr hdrs[PACKET_BATCH];
	struct iovec iovs[PACKET_BATCH][3];
	u8 heads[PACKET_BATCH][NIC_FRAME_HLEN_MAX];
	int index[PACKET_BATCH];
	u32 bytes[PACKET_BATCH];
	int n;
};

/**
 * struct packet_nic - the backend
 * @eth: what it shares with other backends.
 * @fd: the packet socket, bound to the device.
 * @quiet4: a raw socket that keeps the kernel from answering; negative if there is none.
 * @quiet6: the same for IPv6.
 * @armed: true if the caller may have slept since the last nic_rx().
 * @blocked: true if the socket had no room, so that nic_arm() has to wait for some.
 * @awaits_room: true if the epoll set becomes readable when there is room to send.
 * @bufs: the receive buffers.
 * @buf_size: the size of a receive buffer in bytes.
 * @free: a stack of the unused buffers.
 * @n_free: the number of unused buffers.
 * @rx_hdrs: arguments of recvmmsg().
 * @rx_iovs: arguments of recvmmsg().
 * @batch: arguments of sendmmsg().
 */
struct packet_nic {
	struct nic_ether eth;
	int fd;
	int quiet4;
	int quiet6;
	bool armed;
	bool blocked;
	bool awaits_room;
	u8 *bufs;
	u32 buf_size;
	u32 free[PACKET_BUFS];
	u32 n_free;
	struct mmsghdr rx_hdrs[PACKET_BATCH];
	struct iovec rx_iovs[PACKET_BATCH];
	struct packet_batch batch;
};

static inline struct packet_nic *packet_of(const struct nic *nic)
{
	return (struct packet_nic *)homa_container_of(nic,
						      const struct packet_nic,
						      eth.nic);
}

/* packet_filter.c */
/** packet_filter() - have the kernel give the socket Homa packets to our addresses alone, as the
 *  XDP program does: whole ones, without a VLAN tag. Returns 0 or a negative errno. */
int packet_filter(const struct packet_nic *nic);
/** packet_filter_nothing() - have the kernel give the socket @fd nothing. */
int packet_filter_nothing(int fd);

/* packet_rx.c: receiving, the slow side, and sleeping */
int packet_rx_open(struct packet_nic *p);
void packet_rx_close(struct packet_nic *p);
int packet_rx(struct nic *nic, struct nic_rx *pkts, int n);
void packet_rx_release(struct nic *nic, const struct nic_rx *pkts, int n);
bool packet_arm(struct nic *nic);

/* packet_tx.c */
int packet_tx_room(struct nic *nic);
int packet_tx(struct nic *nic, const struct nic_tx *pkts, int n);
void packet_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		    int error);

#endif
