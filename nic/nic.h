/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packet I/O for the user-space hosts: Homa packets in, Homa packets out. A
 * backend (afxdp/, udp/, memory.c) knows how they travel; nothing here knows
 * the protocol. Headers below the Homa header (Ethernet, IP, UDP) are built
 * and removed here, neighbours and routes come from the kernel by netlink.
 *
 * A nic is used by one thread at a time; the caller serialises.
 */
#ifndef HOMA_NIC_H
#define HOMA_NIC_H

#include <stddef.h>
#include "homa_addr.h"

struct nic;

/**
 * struct nic_config - how to open a backend
 * @backend: "afxdp", "udp" (or "memory" in tests, opened by its own function).
 * @interface: interface name for afxdp; udp: NULL, or the one whose link-local
 *	addresses are meant.
 * @address: local numeric address, or NULL (afxdp: the interface's first
 *	address; udp: any).
 * @udp_port: udp: local port; 0: 54321 if free, else ephemeral.
 * @queue: afxdp: first receive queue to serve (default 0).
 * @queues: afxdp: how many from there on; 0: all that the device uses, at most
 *	16. Packets on a queue that nobody serves go to the kernel, which
 *	answers that it does not know the protocol.
 * @frames: packet buffers to allocate; 0: backend's default.
 * @mode: afxdp: 0 choose at start-up (generic on virtual devices), 1 generic
 *	(SKB), 2 native copy, 3 native zero-copy.
 * @no_offload: udp: use neither GSO nor GRO.
 * @busy_poll: afxdp: set SO_PREFER_BUSY_POLL.
 */
struct nic_config {
	const char *backend;
	const char *interface;
	const char *address;
	u16 udp_port;
	u32 queue;
	u32 queues;
	u32 frames;
	int mode;
	bool no_offload;
	bool busy_poll;
};

/* Which protocol a packet is of. TCP only comes for ports of nic_tcp_port(). */
enum nic_proto { NIC_HOMA, NIC_TCP };

/**
 * struct nic_rx - one received packet, valid until nic_rx_release()
 * @data: first byte of the Homa or TCP header.
 * @len: header and payload, bytes; link padding already removed.
 * @prio: priority from the top three bits of TOS or traffic class.
 * @ecn: low two bits of it.
 * @proto: enum nic_proto. The checksum of a TCP segment was looked at.
 * @src: sender (observed source port under UDP).
 * @dst: which of our addresses.
 * @token: the backend's.
 */
struct nic_rx {
	const u8 *data;
	u32 len;
	u8 prio;
	u8 ecn;
	u8 proto;
	struct homa_addr src;
	struct homa_addr dst;
	u64 token;
};

/**
 * struct nic_tx - one packet to send; bytes are copied or sent before
 *	nic_tx() returns
 * @dst: receiver.
 * @hdr: @hdr_len bytes of Homa or TCP header.
 * @payload: @payload_len bytes of message, in one contiguous piece.
 * @prio: 0..7, written into the top three bits of TOS or traffic class; TCP: not used.
 * @owner: for whom, a number of the caller's: what must be kept is shared between
 *	owners.
 * @proto: enum nic_proto. A TCP header's checksum is 0 and is filled in.
 * @ecn: TCP: the low two bits of TOS or traffic class; @dscp: the six above.
 * @src: TCP: the address of ours that it comes from; NULL: as for Homa.
 */
struct nic_tx {
	struct homa_addr dst;
	const u8 *hdr;
	const u8 *payload;
	u32 hdr_len;
	u32 payload_len;
	u32 owner;
	u8 prio;
	u8 proto;
	u8 ecn;
	u8 dscp;
	const struct homa_addr *src;
};

/**
 * struct nic_error - an ICMP error that came back for something we sent
 * @dst: where it had been sent.
 * @src: the address of ours that it came from; unspecified if unknown.
 * @sport, @dport: ports of the Homa or TCP header it quotes, @sport ours; 0 if unknown.
 * @sender_id: its RPC id; 0 if unknown.
 * @proto: enum nic_proto of the packet. @seq: TCP: its sequence number.
 * @error: positive errno: ECONNREFUSED (port unreachable), EHOSTUNREACH,
 *	ENETUNREACH, EPROTONOSUPPORT, EMSGSIZE.
 * @mtu: for EMSGSIZE: the path's MTU, counted as in struct nic_info.
 */
struct nic_error {
	struct homa_addr dst;
	struct homa_addr src;
	u16 sport;
	u16 dport;
	u64 sender_id;
	int error;
	u32 mtu;
	u32 seq;
	u8 proto;
};

/**
 * struct nic_info - what a backend is and can do
 * @name: "afxdp" or "udp".
 * @detail: e.g. "veth0 queue 0, generic copy mode".
 * @address: our address; IPv6 unspecified when bound to any.
 * @mtu: IP MTU; under UDP less the 8 bytes of the UDP header, so that in both
 *	cases a packet may take @mtu less its IP header (20 or 40 bytes).
 * @link_mbps: link rate, 0 if unknown (virtual devices only make one up).
 * @max_segs: packets of one message worth handing over together (GSO), >= 1.
 * @ephemeral: the usual port or queue was taken and another one is used.
 */
struct nic_info {
	const char *name;
	char detail[96];
	struct homa_addr address;
	u32 mtu;
	u32 link_mbps;
	u32 max_segs;
	bool ephemeral;
};

/* Counters, all since open: X(name, "what one count means"). */
#define NIC_STATS(X)                                                             \
	X(rx_packets, "packets received by the packet interface")                \
	X(rx_bytes, "bytes in them, Homa header and payload")                    \
	X(tx_packets, "packets sent by the packet interface")                    \
	X(tx_bytes, "bytes in them, Homa header and payload")                    \
	X(rx_gro, "packets that the kernel gave us joined with others")          \
	X(tx_gso, "packets that left joined with others, to be cut apart later") \
	X(rx_dropped, "packets lost before us, for lack of buffers")             \
	X(rx_malformed, "packets that were not Homa in valid IP")                \
	X(rx_checksum, "TCP segments whose checksum was wrong")                  \
	X(tx_full, "times the device took fewer packets than offered")           \
	X(tx_no_neighbour, "packets without a link address to send to")          \
	X(tx_errors, "packets the kernel refused")                               \
	X(icmp_errors, "ICMP errors that came back")                             \
	X(kernel_asked,                                                          \
	  "questions to the kernel for whose answers packets waited")            \
	X(syscalls, "system calls made for packets")

struct nic_stats {
#define X(name, text) u64 name;
	NIC_STATS(X)
#undef X
};

/**
 * nic_open() - open a backend
 * @out: receives the nic.
 * @err: receives one sentence on failure: what is wrong and how to mend it.
 * Returns 0 or a negative errno: -EINVAL, -ENODEV, -EPERM, -EBUSY (queue
 * taken), -EADDRINUSE, -EOPNOTSUPP, -ENOMEM. Leaves nothing behind on failure.
 */
int nic_open(struct nic **out, const struct nic_config *config, char *err,
	     size_t errlen);
void nic_close(struct nic *nic);
const struct nic_info *nic_info(const struct nic *nic);
void nic_stats(const struct nic *nic, struct nic_stats *stats);

/**
 * nic_rx() - receive up to @n packets without waiting; returns how many
 *
 * This is also where a backend does its slow work (neighbours, ICMP, refilling
 * rings): a host calls it regularly, even when it only sends.
 */
int nic_rx(struct nic *nic, struct nic_rx *pkts, int n);
/** nic_rx_release() - give the buffers of exactly these packets back. */
void nic_rx_release(struct nic *nic, const struct nic_rx *pkts, int n);

/** nic_tx_room() - packets that nic_tx() would take now. */
int nic_tx_room(struct nic *nic);
/**
 * nic_tx() - send; packets for one peer of one size, in order, may leave as
 * one GSO unit. Returns how many were taken (the first ones); a packet that
 * cannot be delivered (unreachable) counts as taken and is counted as dropped,
 * one whose neighbour is not known yet is kept for a while if there is room, else
 * nic_tx_unsent() tells. Never blocks.
 */
int nic_tx(struct nic *nic, const struct nic_tx *pkts, int n);
/** nic_tx_unsent() - which of the packets that the last nic_tx() took have not been
 *  sent and will not be, because nothing is known yet of how to reach the receiver:
 *  bit i for packet i, of the first 64. Later it may work. */
u64 nic_tx_unsent(const struct nic *nic);
/** nic_flush() - kick the device if the last nic_tx() left it asleep. */
void nic_flush(struct nic *nic);

/**
 * nic_tcp_port() - TCP segments to a port of this host come here, or no longer
 *
 * Those of other ports, and fragments, stay the kernel's. From then on nic_errors() tells
 * ICMP errors about segments from that port, too. May be called by another
 * thread than the nic's. Returns 0 or -EOPNOTSUPP: the backend cannot.
 */
int nic_tcp_port(struct nic *nic, u16 port, bool on);
/** nic_source() - the address of ours from which packets to @dst come: 0 and @ip, -EAGAIN:
 *  not known yet, -EADDRNOTAVAIL: none. */
int nic_source(struct nic *nic, const struct homa_addr *dst, u8 ip[16]);
/** nic_has_address() - is it one of the interface's? false for a backend without one. */
bool nic_has_address(const struct nic *nic, const u8 ip[16]);

/** nic_errors() - take up to @n ICMP errors. */
int nic_errors(struct nic *nic, struct nic_error *errors, int n);
/**
 * nic_believe_mtu() - an EMSGSIZE of nic_errors() is true: packets to @dst are to be no
 *	longer than @mtu from now on
 *
 * Anybody can forge one. Only the caller knows whether what it quotes was sent.
 */
void nic_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu);
/** nic_port_unreachable() - answer this packet with an ICMP error, if the backend can. */
void nic_port_unreachable(struct nic *nic, const struct nic_rx *pkt);

/** nic_fd() - descriptor that is readable when packets or errors wait, or there
 *  is room again for sending; valid after nic_arm() until the next nic_rx(). */
int nic_fd(const struct nic *nic);
/** nic_arm() - ask for a wake-up of nic_fd(); returns true if packets or errors
 *  wait already of which nic_fd() would not tell: then do not sleep. */
bool nic_arm(struct nic *nic);

/** nic_route() - can this destination be reached here, and with which path MTU?
 * Returns 0, -EHOSTUNREACH or -ENETUNREACH. Fills @mtu, counted as in struct nic_info. */
int nic_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu);

struct nic_way; /* way.h */

/**
 * nic_way_asker - have somebody else ask the kernel
 * @way: with its question, to be copied.
 * Returns 1: somebody does, and nic_learn() follows; 0: not now, it is tried again at the
 * next use; -1: there is nobody, so the backend asks itself.
 */
typedef int (*nic_way_asker)(void *arg, const struct nic_way *way);

/** nic_ask_by() - questions to the kernel about ways to destinations, for whose answers a
 *  call here would wait, are asked by @ask from now on. A backend that builds frames then
 *  holds packets to a new destination until nic_learn(). */
void nic_ask_by(struct nic *nic, nic_way_asker ask, void *arg);
/** nic_learn() - @way is answered; also without having been asked for. */
void nic_learn(struct nic *nic, const struct nic_way *way);

#endif
