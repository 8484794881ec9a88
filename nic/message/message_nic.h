/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A message NIC as software sees it: queues of descriptors in shared memory, and a
 * doorbell for each. docs/hardware.md tells how they are used. This header is all that
 * driver and device share, and needs nothing but the C library's fixed-width types.
 *
 * The device listens on the abstract Unix address of mnic_address(). A driver that connects
 * gets a struct mnic_hello and descriptors: one of the shared memory, and then two eventfds for
 * each queue, that which the driver writes and that which the device writes. The memory is new
 * for each driver and all zero but for struct mnic_device. Whoever closes the connection, or
 * dies, ends this: nothing in the memory is looked at afterwards.
 *
 * All numbers have the machine's byte order. The memory has struct mnic_device, padded to
 * MNIC_PAGE; then a struct mnic_queue for each queue; then the slots of each queue, @slots for
 * frames to send and behind them @slots for frames received. Neither side believes the other:
 * what is read of this memory is read once, copied and checked (message_check.h).
 */
#ifndef HOMA_MESSAGE_NIC_H
#define HOMA_MESSAGE_NIC_H

#include <stdint.h>

#define MNIC_MAGIC 0x4d4e4943u
#define MNIC_VERSION 1u
#define MNIC_PAGE 4096u
#define MNIC_QUEUES_MAX 16u
/* The entries of each ring, a power of two. */
#define MNIC_ENTRIES 64u
/* The most bytes of a frame, of a super-frame and of a unit. */
#define MNIC_FRAME_MAX 65535u
/* The most packets in a unit. */
#define MNIC_PIECES_MAX 64u
/* In a slot the frame is at 0, and the list of a unit's packets behind it, at MNIC_LIST_AT. */
#define MNIC_LIST_AT 65536u
#define MNIC_SLOT_BYTES (MNIC_LIST_AT + 8u * MNIC_PIECES_MAX)

/* Bits of mnic_device.features. A driver does without those that are missing. */
#define MNIC_FEATURE_LSO \
	0x1u /* It cuts super-frames: mnic_send.seg may be other than 0. */
#define MNIC_FEATURE_LRO \
	0x2u /* It joins packets: mnic_got.pieces may be more than 1. */
#define MNIC_FEATURE_RSS 0x4u /* It spreads RPCs over the queues. */
#define MNIC_FEATURES_ALL 0x7u

/* mnic_done.status */
#define MNIC_SENT 0u	/* All of the frame was given to the port. */
#define MNIC_REFUSED 1u /* Nothing was: the device cannot cut it. */
#define MNIC_CUT 2u	/* It ended before its headers say. */
#define MNIC_INVALID 3u /* The descriptor itself is impossible. */

/* mnic_got.class_: what the frame is, as homa_nic_pkg.sv numbers it. */
#define MNIC_CLASS_HOMA 5u

/**
 * struct mnic_hello - the message to a driver that has connected
 * @magic: MNIC_MAGIC.
 * @version: MNIC_VERSION.
 * @queues: the number of queues, 1 to MNIC_QUEUES_MAX; 0 if another driver has the device. Then
 *	no descriptors come.
 * @slots: the slots of each direction of a queue, 1 to MNIC_ENTRIES.
 *
 * Written by: the device, which sends it once; read by: the driver.
 */
struct mnic_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t queues;
	uint32_t slots;
};

/**
 * struct mnic_device - what the device can, at the begin of the memory
 * @features: bits MNIC_FEATURE_*.
 * @mtu: the most bytes of an IP packet on the link.
 * @mbps: what the link carries, in Mbit/s; 0 if it is unknown.
 * @mac: the Ethernet address.
 *
 * Written by: the device, before the driver has the memory; read by: the driver.
 */
struct mnic_device {
	uint32_t features;
	uint32_t mtu;
	uint32_t mbps;
	uint8_t mac[8];
};

/**
 * struct mnic_send - a frame to send; the driver may reuse the slot once it is done
 * @slot: the number of the slot that it is in.
 * @len: its bytes, with the Ethernet header.
 * @seg: 0, or of a super-frame the bytes of the message that each packet is to have. The frame
 *	has one DATA header, as if the link had its length, and no checksum but IPv4's.
 * @prio: 0 to 7. Of the frames that wait in different queues, those of the highest are next.
 * @zero: these bytes are 0.
 *
 * Written by: the driver, before it raises @made; read by: the device.
 */
struct mnic_send {
	uint32_t slot;
	uint32_t len;
	uint16_t seg;
	uint8_t prio;
	uint8_t zero[21];
};

/**
 * struct mnic_done - a completion: exactly one for each struct mnic_send
 * @slot: the number of the slot.
 * @packets: the number of packets that were made of it.
 * @status: MNIC_SENT or another.
 * @zero: these bytes are 0.
 *
 * Written by: the device, before it raises @made; read by: the driver.
 */
struct mnic_done {
	uint32_t slot;
	uint16_t packets;
	uint8_t status;
	uint8_t zero[25];
};

/**
 * struct mnic_post - slot @slot is empty, and the device may fill it
 * @zero: these bytes are 0.
 *
 * Written by: the driver, before it raises @made; read by: the device.
 */
struct mnic_post {
	uint32_t slot;
	uint8_t zero[28];
};

/**
 * struct mnic_got - a frame or unit that was received
 * @slot: the number of the slot, which the driver posted.
 * @len: its bytes.
 * @hash: the RSS hash.
 * @pieces: the number of packets in it, at least 1.
 * @seg: bytes of the message in each packet of a unit but the last.
 * @class_: what it is.
 * @bad: 1 if headers and length contradict each other.
 * @at: the offset of the Homa header.
 * @time: when its first byte arrived, in ns of the device's clock.
 * @zero: these bytes are 0.
 *
 * A unit (@pieces > 1) has the headers of the first packet, but for a data offset of 13, its
 * payload, and then for each further packet its offset in the message (4 bytes, big endian) and
 * its payload, without gaps. The slot's list has a struct mnic_piece for each packet.
 *
 * Written by: the device, before it raises @made; read by: the driver.
 */
struct mnic_got {
	uint64_t time;
	uint32_t slot;
	uint32_t len;
	uint32_t hash;
	uint16_t pieces;
	uint16_t seg;
	uint8_t class_;
	uint8_t bad;
	uint8_t at;
	uint8_t zero[5];
};

/**
 * struct mnic_piece - where a unit's packet belongs in the message
 * @offset: the offset of the packet's first byte in the message.
 * @length: the number of its bytes of the message.
 *
 * Written by: the device, before it raises @made of the ring whose entry names the slot; read
 * by: the driver.
 */
struct mnic_piece {
	uint32_t offset;
	uint32_t length;
};

/**
 * struct mnic_ring - the numbers of a ring; each counts up for ever and is atomic
 * @made: the entries that were put in; the producer writes it, with release.
 * @taken: the entries that were taken out; the consumer writes it, with release.
 * @asleep: 1 if the consumer wants its eventfd written when @made has been raised. It writes 1
 *	and looks at @made once more before it sleeps; the producer writes 0 and the eventfd.
 *
 * Written by: the producer (@made) and the consumer (@taken), each in its own cache line, and both
 * (@asleep); read by: both.
 */
struct mnic_ring {
	uint32_t made;
	uint32_t asleep;
	uint8_t pad0[56];
	uint32_t taken;
	uint8_t pad1[60];
};

/**
 * struct mnic_queue - a queue of each direction
 * @send_ring, @done_ring, @post_ring, @got_ring: the numbers of the four rings. The driver
 *	makes the entries of @send and @post, the device those of @done and @got.
 *
 * Written by: the driver (@send, @post) and the device (@done, @got); each ring says who else.
 */
struct mnic_queue {
	struct mnic_ring send_ring;
	struct mnic_ring done_ring;
	struct mnic_ring post_ring;
	struct mnic_ring got_ring;
	struct mnic_send send[MNIC_ENTRIES];
	struct mnic_done done[MNIC_ENTRIES];
	struct mnic_post post[MNIC_ENTRIES];
	struct mnic_got got[MNIC_ENTRIES];
};

#endif
