/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the AF_XDP backend: one UMEM (packet buffers shared with the kernel)
 * for all queues of the nic, four rings per queue, the XDP program, and the
 * slow side (netlink, ICMP).
 *
 * A buffer ("frame") is always in exactly one place: on the free stack, in a
 * fill ring or with the kernel for receiving, with the caller between nic_rx()
 * and nic_rx_release(), or in a send ring until the kernel completes it.
 */
#ifndef HOMA_NIC_AFXDP_H
#define HOMA_NIC_AFXDP_H

#include <xdp/xsk.h>

#include "icmp.h"
#include "loop.h"
#include "nic_backend.h"
#include "path.h"

/* Younger than the oldest kernel headers that we build against. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

#define AFXDP_QUEUES_MAX 16
#define AFXDP_RING 4096	      /* descriptors per receive and fill ring */
#define AFXDP_FILL 512	      /* frames that a fill ring has at least */
#define AFXDP_TX_RING 1024    /* per send and completion ring */
#define AFXDP_BURSTS 8	      /* bursts that the fill ring is kept ready for */
#define AFXDP_HEADROOM 256    /* what the kernel keeps in front of a packet */
#define AFXDP_JUMBO_SLOTS 512 /* contiguous copies of multi-buffer packets */
/* the longest IPv6 packet's frame */
#define AFXDP_UNIT_MAX (NIC_FRAME_HLEN_MAX + 65535)

/* Where a received packet's bytes live: top bits of nic_rx.token. */
#define AFXDP_TOKEN_LOOP ((u64)1 << 63)
#define AFXDP_TOKEN_JUMBO ((u64)1 << 62)

/**
 * struct afxdp_queue - one receive and send queue of the device
 * @id: its number on the device.
 * @fd: the socket.
 * @claim: keeps other Homa processes off the queue; -1 if none.
 * @xsk: libxdp's object; owns the four ring mappings.
 * @rx, @fill: receiving: full frames from the kernel, empty ones to it.
 * @tx, @comp: sending: frames to the kernel, and back when sent.
 * @unkicked: packets put in the send ring since the last kick.
 * @in_flight: frames in the send ring or with the kernel.
 * @fill_target: frames to keep in the fill ring.
 * @burst: most packets found waiting since that was last decided.
 * @jumbo: slot of a multi-buffer packet whose end has not come yet, or -1.
 * @jumbo_len: its bytes so far; above the slot's size: being skipped.
 * @dropped: this queue's part of rx_dropped.
 */
struct afxdp_queue {
	u32 id;
	int fd;
	int claim;
	struct xsk_socket *xsk;
	struct xsk_ring_cons rx;
	struct xsk_ring_prod fill;
	struct xsk_ring_prod tx;
	struct xsk_ring_cons comp;
	u32 unkicked;
	u32 in_flight;
	u32 fill_target;
	u32 burst;
	s32 jumbo;
	u32 jumbo_len;
	u64 dropped;
};

/**
 * struct afxdp_prog - the XDP program on the interface
 * @obj: the program we loaded; NULL when another process's is shared.
 * @link_fd: holds the attachment: it ends with the last holder, however that
 *	one ends.
 * @xsks_fd: map from queue to socket.
 * @addrs_fd: map with the addresses to take packets for.
 * @ports_fd: map with the TCP ports to take segments for; @ports: the map itself, for each
 *	queue a bit for each port.
 * @generic: attached in generic (SKB) mode.
 * @shared: another process attached it.
 */
struct afxdp_prog {
	struct bpf_object *obj;
	int link_fd;
	int xsks_fd;
	int addrs_fd;
	int ports_fd;
	u64 *ports;
	bool generic;
	bool shared;
};

/**
 * struct afxdp - the backend
 * @nic: what nic.c knows.
 * @netif: our interface.
 * @bound: only source address, when @has_bound.
 * @last_dst: address of ours that the last packet was for; unspecified when
 *	addresses changed.
 * @last_src: who sent it.
 * @several: the interface has several addresses of one family and scope.
 * @area: the UMEM, @area_len bytes in frames of @frame_size.
 * @frames: how many frames.
 * @free: stack of unused frames (byte offsets into @area).
 * @n_free: its height.
 * @rx_owned: frames with the kernel for receiving or with the caller; at most
 *	@rx_max, so that receiving never starves sending.
 * @multi_buffer: packets of the interface's MTU span frames.
 * @units: virtual device: TCP segments that the kernel has not cut to the MTU may come, of
 *	up to 64 KB, over several frames.
 * @zero_copy: the driver works on our frames.
 * @q: queues, @n_queues of them.
 * @next_queue: where the next nic_rx() begins.
 * @jumbo: AFXDP_JUMBO_SLOTS buffers of @jumbo_size bytes, or NULL.
 * @jumbo_free: stack of unused ones, @n_jumbo_free high.
 * @ctl_calls: calls until the slow side is looked at again.
 * @ctl_ms: when that was last done.
 * @adapt_ms: when the fill rings were last adapted.
 * @armed: sockets are in the epoll set.
 * @busy_poll: drive the device from nic_rx().
 * @takes_tcp: nic_tcp_port() was called.
 * @homa_max: longest frame that a Homa packet may fill, bytes.
 */
struct afxdp {
	struct nic nic;
	struct nic_netif netif;
	struct homa_addr bound;
	bool has_bound;
	struct homa_addr last_dst;
	struct homa_addr last_src;
	bool several;
	u8 *area;
	size_t area_len;
	u32 frames;
	u32 frame_size;
	u64 *free;
	u32 n_free;
	u32 rx_owned;
	u32 rx_max;
	bool multi_buffer;
	bool units;
	bool zero_copy;
	bool busy_poll;
	bool takes_tcp;
	struct xsk_umem *umem;
	struct afxdp_queue q[AFXDP_QUEUES_MAX];
	u32 n_queues;
	u32 next_queue;
	u8 *jumbo;
	u32 jumbo_size;
	u32 homa_max;
	u16 jumbo_free[AFXDP_JUMBO_SLOTS];
	u32 n_jumbo_free;
	struct afxdp_prog prog;
	struct nic_rtnl rtnl;
	struct nic_paths paths;
	struct nic_icmp icmp;
	struct nic_loop loop;
	int epfd;
	bool armed;
	u32 ctl_calls;
	u64 ctl_ms;
	u64 adapt_ms;
};

static inline struct afxdp *afxdp_of(struct nic *nic)
{
	return homa_container_of(nic, struct afxdp, nic);
}

/* afxdp_prog.c */
int afxdp_prog_attach(struct afxdp_prog *prog, const struct nic_netif *netif,
		      bool generic, char *err, size_t errlen);
void afxdp_prog_detach(struct afxdp_prog *prog);
int afxdp_prog_add(const struct afxdp_prog *prog, u32 queue, int fd);
int afxdp_prog_addresses(const struct afxdp_prog *prog,
			 const struct nic_netif *netif);

/** afxdp_prog_port() - TCP segments to @port that come on @queue are taken, or not. */
void afxdp_prog_port(const struct afxdp_prog *prog, u32 queue, u16 port, bool on);
/** afxdp_prog_has_port() - are they? */
bool afxdp_prog_has_port(const struct afxdp_prog *prog, u32 queue, u16 port);

/* afxdp_diag.c: 1 if a living socket is bound to the queue, 0 if none, negative
 * errno if the kernel cannot say. */
int afxdp_queue_taken(int ifindex, u32 queue);
/* A descriptor that keeps the queue ours among Homa processes; -EBUSY. */
int afxdp_queue_claim(int ifindex, u32 queue);

/* afxdp_umem.c */
int afxdp_umem_open(struct afxdp *x, const struct nic_config *config,
		    u32 bind_flags, char *err, size_t errlen);
void afxdp_umem_close(struct afxdp *x);
void afxdp_fill(struct afxdp *x, struct afxdp_queue *q);
void afxdp_fill_adapt(struct afxdp *x, struct afxdp_queue *q);

/* afxdp_rx.c */
int afxdp_rx(struct nic *nic, struct nic_rx *pkts, int n);
void afxdp_rx_release(struct nic *nic, const struct nic_rx *pkts, int n);

/* afxdp_tx.c */
int afxdp_tx_room(struct nic *nic);
int afxdp_tx(struct nic *nic, const struct nic_tx *pkts, int n);
void afxdp_flush(struct nic *nic);
void afxdp_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		   int error);

/* afxdp_ctl.c */
int afxdp_ctl_open(struct afxdp *x, char *err, size_t errlen);
void afxdp_ctl_close(struct afxdp *x);
void afxdp_ctl_poll(struct afxdp *x);
void afxdp_ctl_addresses(struct afxdp *x);
int afxdp_errors(struct nic *nic, struct nic_error *errors, int n);
void afxdp_port_unreachable(struct nic *nic, const struct nic_rx *pkt);
bool afxdp_arm(struct nic *nic);
void afxdp_disarm(struct afxdp *x);
int afxdp_fd(const struct nic *nic);
void afxdp_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu);
int afxdp_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu);

#define AFXDP_CTL_CALLS 64

#endif
