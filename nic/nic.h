/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packet I/O for the user-space hosts: Homa packets in, Homa packets out. A
 * backend (afxdp/, udp/, memory.c) knows how they travel; nothing here knows
 * the protocol. Headers below the Homa header (Ethernet, IP, UDP) are built
 * and removed here, neighbours and routes come from the kernel by netlink.
 *
 * Guarded by: the caller, who lets one thread at a time use a nic. What is handed to a call and
 * what a call fills is the caller's alone.
 */
#ifndef HOMA_NIC_H
#define HOMA_NIC_H

#include <stddef.h>
#include "homa_addr.h"

struct nic;

/* The most queues of a device that AF_XDP serves, by one nic or by several. */
#define NIC_QUEUES 64u

/**
 * struct nic_config - how to open a backend
 * @backend: "afxdp", "packet" (a packet socket), "message" (a message NIC) or "udp". Tests open the
 *	backend "memory" by a function of its own.
 * @interface: the name of the interface. With udp it may be NULL; else it is the one whose
 *	link-local addresses are meant.
 * @address: the local numeric address, or NULL for the first address of the interface (afxdp,
 *	packet) or any address (udp).
 * @udp_port: the local port for udp; 0 means 54321 if it is free, else any free port.
 * @queue: the first receive queue that afxdp serves.
 * @queues: the number of queues that afxdp serves from there on; 0 means all that the device
 *	uses, at most 64. Packets on a queue that nobody serves go to the kernel, which
 *	answers that it does not know the protocol.
 * @frames: the number of packet buffers; 0 means the backend's default.
 * @mode: the mode of afxdp: 1 generic (SKB), 2 native copy, 3 native zero-copy; with 0 it is
 *	chosen when the nic is opened, generic on virtual devices.
 * @no_offload: true if udp uses neither GSO nor GRO, and message none of the device's offloads.
 * @parts: the most nics that are to share the queues of a message NIC; 0 means one. nic_info.parts
 *	says how many there can be.
 * @part: the number of this one, below that. It serves its share of the queues.
 * @beside: NULL, or an open nic whose connection to the message NIC this one shares. The nics may
 *	be used by different threads; they are opened and closed by one.
 * @busy_poll: true if afxdp sets SO_PREFER_BUSY_POLL.
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
	u32 parts;
	u32 part;
	struct nic *beside;
	bool busy_poll;
};

/* The protocol of a packet. TCP only comes for ports of nic_tcp_port(). */
enum nic_proto { NIC_HOMA, NIC_TCP };

/**
 * struct nic_piece - a part of a packet
 * @data: its first byte.
 * @len: its length in bytes.
 */
struct nic_piece {
	const u8 *data;
	u32 len;
};

/**
 * struct nic_rx - one received packet, valid until nic_rx_release()
 * @data: the first byte of the Homa or TCP header.
 * @len: the length of header and payload in bytes, without the link's padding.
 * @prio: the priority, the top three bits of TOS or traffic class.
 * @ecn: the low two bits of TOS or traffic class.
 * @proto: an enum nic_proto. The checksum of a TCP segment has been checked.
 * @src: the sender; under UDP its port is the one that the packet came from.
 * @dst: the address of ours that it was sent to.
 * @token: a number by which the backend finds the packet's buffer.
 * @pieces: NULL: all bytes are at @data. Only a TCP segment may be in pieces, of which the first
 *	begins at @data and has the whole header. Together they have @len bytes or more.
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
	const struct nic_piece *pieces;
};

/** nic_rx_here() - returns the number of bytes of @pkt that are at its data. */
static inline u32 nic_rx_here(const struct nic_rx *pkt)
{
	return pkt->pieces ? homa_min_u32(pkt->pieces->len, pkt->len) : pkt->len;
}

/**
 * struct nic_tx - one packet to send; bytes are copied or sent before
 *	nic_tx() returns
 * @dst: the receiver.
 * @hdr: the Homa or TCP header.
 * @payload: the bytes of the message, in one contiguous piece.
 * @hdr_len: the length of the header in bytes.
 * @payload_len: the length of the payload in bytes.
 * @owner: the number of the user for whom it is sent, given by the caller. Each owner has a
 *	share of the packets that may be held.
 * @prio: the priority of a Homa packet, 0 to 7, written to the top three bits of TOS or traffic
 *	class.
 * @proto: an enum nic_proto. The checksum of a TCP header is 0 and is filled in.
 * @ecn: for TCP the low two bits of TOS or traffic class.
 * @dscp: for TCP the six bits above them.
 * @src: for TCP the address of ours that it comes from; NULL if it is chosen as for Homa.
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
 * @dst: the address that the packet had been sent to.
 * @src: the address of ours that it came from; unspecified if unknown.
 * @sport: our port in the Homa or TCP header that it quotes; 0 if unknown.
 * @dport: the peer's port in that header; 0 if unknown.
 * @sender_id: the RPC id of the Homa packet; 0 if unknown.
 * @error: a positive errno: ECONNREFUSED (port unreachable), EHOSTUNREACH,
 *	ENETUNREACH, EPROTONOSUPPORT, or EMSGSIZE.
 * @mtu: with EMSGSIZE the path's MTU in bytes, counted as in struct nic_info.
 * @seq: the sequence number of the TCP segment.
 * @proto: the enum nic_proto of the packet.
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
 * @name: "afxdp", "packet", "message" or "udp".
 * @detail: a sentence about it, for example "veth0 queue 0, generic copy mode".
 * @address: our address; the unspecified IPv6 address when bound to any.
 * @mtu: the IP MTU in bytes; under UDP without the 8 bytes of the UDP header, so that in both
 *	cases a packet may take @mtu less its IP header (20 or 40 bytes).
 * @link_mbps: the link rate in Mbit/s; 0 if unknown, as on virtual devices, which make one up.
 * @max_segs: the number of packets of one message that are worth sending together (GSO), at
 *	least 1.
 * @parts: of a message NIC the number of nics that share its queues; else 0.
 * @ephemeral: true if the usual UDP port was taken and another one is used.
 * @tcp: true if it carries TCP, so that nic_tcp_port() and nic_source() do something.
 */
struct nic_info {
	const char *name;
	char detail[96];
	struct homa_addr address;
	u32 mtu;
	u32 link_mbps;
	u32 max_segs;
	u32 parts;
	bool ephemeral;
	bool tcp;
};

/* The counters since the nic was opened: X(name, "what one count means"). */
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

/** nic_tx_room() - the number of packets that nic_tx() would take now. */
int nic_tx_room(struct nic *nic);
/**
 * nic_tx() - send @n packets without blocking
 *
 * Consecutive packets of one size for one peer may leave as one GSO unit. Returns how many
 * packets were taken, from the first on. A packet that cannot be delivered is taken, too, and
 * counted as an error. A packet whose neighbour is not known yet is held for a while if there
 * is room; else nic_tx_unsent() tells so.
 */
int nic_tx(struct nic *nic, const struct nic_tx *pkts, int n);
/** nic_tx_unsent() - the packets that the last nic_tx() took and that will not be sent,
 *  because it is not known yet how to reach the receiver. Bit i stands for packet i, of the
 *  first 64. The caller may send them again later. */
u64 nic_tx_unsent(const struct nic *nic);
/** nic_flush() - kick the device if the last nic_tx() left it asleep. */
void nic_flush(struct nic *nic);

/**
 * nic_tcp_port() - begin or cease to receive TCP segments to @port of this host
 *
 * The kernel gets segments to other ports, and fragments. While segments come here, nic_errors()
 * tells ICMP errors about segments from that port, too. Another thread than the nic's may call
 * it. Returns 0, or -EOPNOTSUPP if the backend cannot.
 */
int nic_tcp_port(struct nic *nic, u16 port, bool on);
/** nic_source() - write the address of ours from which packets to @dst come to @ip. Returns 0,
 *  -EAGAIN if it is not known yet, or -EADDRNOTAVAIL if there is none. */
int nic_source(struct nic *nic, const struct homa_addr *dst, u8 ip[16]);
/** nic_has_address() - is @ip an address of the interface? False if the backend has none. */
bool nic_has_address(const struct nic *nic, const u8 ip[16]);

/** nic_errors() - take up to @n ICMP errors; returns how many. */
int nic_errors(struct nic *nic, struct nic_error *errors, int n);
/**
 * nic_believe_mtu() - keep packets to @dst within @mtu from now on, as an EMSGSIZE of
 *	nic_errors() was found true
 *
 * Anybody can forge such an error. Only the caller knows whether we sent what it quotes.
 */
void nic_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu);
/** nic_port_unreachable() - answer @pkt with an ICMP error, if the backend can. */
void nic_port_unreachable(struct nic *nic, const struct nic_rx *pkt);

/** nic_fd() - the descriptor that is readable when packets or errors wait, or there
 *  is room again for sending. That holds from nic_arm() until the next nic_rx(). */
int nic_fd(const struct nic *nic);
/** nic_arm() - ask for a wake-up by nic_fd(). Returns true if packets or errors wait already
 *  of which nic_fd() would not tell, so that the caller must not sleep. */
bool nic_arm(struct nic *nic);
/** nic_watch() - return the address of a counter of packets, which the kernel writes, so that
 *  the caller need not call nic_rx() to find out that none has come. It counts a packet a moment
 *  before nic_rx() finds it, and it counts no errors. NULL: a call of nic_rx() is no system call
 *  anyway, or the kernel does not allow it (CAP_BPF). The address is good until nic_close(). */
const u64 *nic_watch(struct nic *nic);

/** nic_route() - can this destination be reached here, and with which path MTU?
 * Returns 0 and fills @mtu (bytes, counted as in struct nic_info), -EHOSTUNREACH, or
 * -ENETUNREACH. */
int nic_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu);

struct nic_way; /* way.h */

/**
 * nic_way_asker - a function that has another thread ask the kernel
 * @way: contains the question, and is to be copied.
 * Returns 1 if another thread asks, and nic_learn() will follow; 0 if it cannot ask now, so that
 * the backend tries again at the next use; -1 if there is none, so that the backend asks itself.
 */
typedef int (*nic_way_asker)(void *arg, const struct nic_way *way);

/** nic_ask_by() - have @ask, which gets @arg, ask the kernel about ways to destinations, so that
 *  no call here waits for the answer. A backend that builds frames then holds packets to a new
 *  destination until nic_learn(). */
void nic_ask_by(struct nic *nic, nic_way_asker ask, void *arg);
/** nic_learn() - take in the answer @way, even if it was not asked for. */
void nic_learn(struct nic *nic, const struct nic_way *way);

#endif
