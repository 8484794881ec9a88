/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the AF_XDP backend: one UMEM (packet buffers shared with the kernel)
 * for all queues of the nic, four rings per queue, the XDP program, and the
 * slow side (netlink, ICMP).
 *
 * A buffer ("frame") is always in exactly one place: on the free stack, in a
 * fill ring or with the kernel for receiving, with the caller between nic_rx()
 * and nic_rx_release(), or in a send ring until the kernel completes it.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic, except for
 * nic_tcp_port(): any thread may call it, and it changes @takes_tcp and the map of ports only,
 * bit by bit.
 */
#ifndef HOMA_NIC_AFXDP_H
#define HOMA_NIC_AFXDP_H

#include <xdp/xsk.h>

#include "ether.h"

/* The oldest kernel headers that we build against do not have these. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

#define AFXDP_QUEUES_MAX NIC_QUEUES
/* So many queues of a nic have as many frames as their rings take; more queues share that many, but
 * each has two send rings' worth of them. */
#define AFXDP_QUEUES_FULL 16u
#define AFXDP_RING 4096	      /* descriptors per receive and fill ring */
#define AFXDP_FILL 512	      /* frames that a fill ring has at least */
#define AFXDP_TX_RING 1024    /* descriptors per send and completion ring */
#define AFXDP_BURSTS 8	      /* bursts for which a fill ring has frames */
#define AFXDP_HEADROOM 256    /* bytes that the kernel keeps before a packet */
#define AFXDP_JUMBO_SLOTS 512 /* multi-buffer packets that may be in use */
#define AFXDP_PIECES 64u      /* frames that such a packet may have */
/* The length of the longest IPv6 packet's frame in bytes. */
#define AFXDP_UNIT_MAX (NIC_FRAME_HLEN_MAX + 65535)

/* These top bits of nic_rx.token say where a received packet's bytes lie, if not in the UMEM. */
#define AFXDP_TOKEN_LOOP ((u64)1 << 63)
#define AFXDP_TOKEN_JUMBO ((u64)1 << 62)

/**
 * struct afxdp_jumbo - a multi-buffer packet that was received
 * @pieces: its parts, each in a frame of its own.
 * @num_pieces: the number of these frames; 0: it was copied together.
 */
struct afxdp_jumbo {
	struct nic_piece pieces[AFXDP_PIECES];
	u32 num_pieces;
};

/**
 * struct afxdp_queue - one receive and send queue of the device
 * @id: its number on the device.
 * @fd: the AF_XDP socket.
 * @claim: a descriptor that keeps other Homa processes off the queue; negative if there is none.
 * @xsk: libxdp's object, which owns the mappings of the four rings.
 * @rx: the ring in which the kernel gives us frames with received packets.
 * @fill: the ring in which we give the kernel empty frames.
 * @tx: the ring in which we give the kernel frames to send.
 * @comp: the ring in which the kernel gives sent frames back.
 * @unkicked: the number of packets put in the send ring since the last kick.
 * @in_flight: the number of frames in the send ring or with the kernel.
 * @fill_target: the number of frames to keep in the fill ring.
 * @burst: the most packets that were found waiting since @fill_target was last decided.
 * @jumbo: the slot of a multi-buffer packet whose end has not come yet, or -1.
 * @jumbo_len: the bytes of that packet that have come so far; @jumbo_size of struct afxdp if
 *	the rest of a packet is skipped.
 * @dropped: the packets of this queue that were counted in rx_dropped already.
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
 * @obj: the program that we loaded; NULL when another process's is shared.
 * @link_fd: a descriptor of the attachment, which ends when no process has one any more.
 * @xsks_fd: a descriptor of the map from queue to socket.
 * @addrs_fd: a descriptor of the map with the addresses whose packets are taken.
 * @ports_fd: a descriptor of the map with the TCP ports whose segments are taken.
 * @ports: the mapping of that map, which has a bit for each port for each queue.
 * @generic: true if the program is attached in generic (SKB) mode.
 * @shared: true if another process attached the program.
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
 * @eth: what it shares with other backends.
 * @last_dst: the address of ours that the last packet was for; unspecified when
 *	addresses have changed.
 * @last_src: the sender of the last packet.
 * @several: true if the interface has several addresses of one family and scope.
 * @area: the UMEM, which consists of frames.
 * @area_len: the size of the UMEM in bytes.
 * @frames: the number of frames.
 * @frame_size: the size of a frame in bytes.
 * @free: a stack of the unused frames, as offsets in bytes into @area.
 * @n_free: the number of unused frames.
 * @rx_owned: the number of frames that the kernel has for receiving or the caller holds.
 * @rx_max: the most such frames, so that receiving never starves sending.
 * @fill_most: the most frames that a fill ring gets, so that no queue starves another.
 * @multi_buffer: true if packets of the interface's MTU span several frames.
 * @units: true if TCP segments of up to 64 KB may come over several frames, which a kernel on a
 *	virtual device does not cut to the MTU.
 * @zero_copy: true if the driver works on our frames.
 * @busy_poll: true if nic_rx() drives the device.
 * @takes_tcp: true once nic_tcp_port() was called. It is atomic.
 * @unit_fd: the packet socket by which TCP segments leave together, or -1.
 * @unit_errors: the number of units in a row that the kernel has refused for what they are.
 * @umem: libxdp's object for the UMEM.
 * @q: the queues.
 * @n_queues: the number of queues.
 * @next_queue: the queue with which the next nic_rx() begins.
 * @jumbo: AFXDP_JUMBO_SLOTS slots for multi-buffer packets, or NULL.
 * @jumbo_area: for each slot, memory in which the packet may be copied together.
 * @jumbo_size: the most bytes of such a packet.
 * @homa_max: the length in bytes of the longest frame that a Homa packet may fill. If there are
 *	@units it follows the MTU, as longer ones may contain several packets.
 * @jumbo_free: a stack of the unused slots.
 * @n_jumbo_free: the number of unused slots.
 * @prog: the XDP program.
 * @slept: true from nic_arm() to the next nic_rx(): the thread may have slept.
 * @armed: true if the AF_XDP sockets are in the epoll set.
 * @armed_for_room: true if they are there for room to send, too.
 * @armed_packets: the number of packets received since the last nic_arm().
 * @adapt_ms: the time at which the fill rings were last adapted, in ms.
 */
struct afxdp {
	struct nic_ether eth;
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
	u32 fill_most;
	bool multi_buffer;
	bool units;
	bool zero_copy;
	bool busy_poll;
	bool takes_tcp;
	int unit_fd;
	u32 unit_errors;
	struct xsk_umem *umem;
	struct afxdp_queue q[AFXDP_QUEUES_MAX];
	u32 n_queues;
	u32 next_queue;
	struct afxdp_jumbo *jumbo;
	u8 *jumbo_area;
	u32 jumbo_size;
	u32 homa_max;
	u16 jumbo_free[AFXDP_JUMBO_SLOTS];
	u32 n_jumbo_free;
	struct afxdp_prog prog;
	bool slept;
	bool armed;
	bool armed_for_room;
	u32 armed_packets;
	u64 adapt_ms;
};

static inline struct afxdp *afxdp_of(struct nic *nic)
{
	return homa_container_of(nic, struct afxdp, eth.nic);
}

/* afxdp_prog.c */
int afxdp_prog_attach(struct afxdp_prog *prog, const struct nic_netif *netif,
		      bool generic, char *err, size_t errlen);
void afxdp_prog_detach(struct afxdp_prog *prog);
int afxdp_prog_add(const struct afxdp_prog *prog, u32 queue, int fd);
int afxdp_prog_addresses(const struct afxdp_prog *prog,
			 const struct nic_netif *netif);

/** afxdp_prog_port() - say whether TCP segments to @port that come on @queue are taken. */
void afxdp_prog_port(const struct afxdp_prog *prog, u32 queue, u16 port, bool on);
/** afxdp_prog_has_port() - are TCP segments to @port that come on @queue taken? */
bool afxdp_prog_has_port(const struct afxdp_prog *prog, u32 queue, u16 port);

/* afxdp_diag.c */
/** afxdp_queue_taken() - 1 if a living socket is bound to the queue, 0 if there is none, or a
 *  negative errno if the kernel cannot say. */
int afxdp_queue_taken(int ifindex, u32 queue);
/** afxdp_queue_claim() - claim the queue among Homa processes. Returns a descriptor, which keeps
 *  it, or -EBUSY if another process has it. */
int afxdp_queue_claim(int ifindex, u32 queue);

/* afxdp_umem.c */
/** afxdp_size_frames() - decide how long frames and the packets in them are, by the MTU and @units
 *  of @x. */
void afxdp_size_frames(struct afxdp *x);
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

/* afxdp_units.c */
/** afxdp_units_open() - have TCP segments leave together, if the device cuts them. */
void afxdp_units_open(struct afxdp *x);
void afxdp_units_close(struct afxdp *x);
/** afxdp_unit_begins() - may the first of @n packets and the second leave together? */
bool afxdp_unit_begins(const struct nic_tx *pkts, int n);
/** afxdp_unit() - send packets together, from the first of @n on, which is one of TCP with
 *  payload. Returns how many were sent; 0: the first one has to leave by the send ring. */
int afxdp_unit(struct afxdp *x, const struct nic_path *path,
	       const struct nic_tx *pkts, int n);

/* afxdp_ctl.c */
int afxdp_ctl_open(struct afxdp *x, char *err, size_t errlen);
void afxdp_ctl_poll(struct afxdp *x);
void afxdp_ctl_addresses(struct afxdp *x);
bool afxdp_arm(struct nic *nic);
void afxdp_disarm(struct afxdp *x);

/* The number of calls of nic_rx() after which the slow side is looked at. */
#define AFXDP_CTL_CALLS 64

#endif
