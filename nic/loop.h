/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets to ourselves, for a backend whose device does not loop back: a
 * bounded queue in memory.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic.
 */
#ifndef HOMA_NIC_LOOP_H
#define HOMA_NIC_LOOP_H

#include "nic_backend.h"

#define NIC_LOOP_SLOTS 1024

/**
 * struct nic_loop - the queue; its memory is allocated with the first packet
 * @slots: NIC_LOOP_SLOTS buffers of @slot_size bytes, or NULL.
 * @pkts: the description of the packet in each slot.
 * @slot_size: the size of a slot in bytes.
 * @queue: a ring of the slots whose packets were not received yet.
 * @head: the position in @queue of the next packet to receive; it counts up for ever.
 * @tail: the position in @queue of the next packet to put in; it counts up for ever.
 * @free: a stack of the unused slots.
 * @n_free: the number of unused slots.
 */
struct nic_loop {
	u8 *slots;
	struct nic_rx *pkts;
	u32 slot_size;
	u16 queue[NIC_LOOP_SLOTS];
	u32 head;
	u32 tail;
	u16 free[NIC_LOOP_SLOTS];
	u32 n_free;
};

/**
 * nic_loop_tx() - put a packet in
 * @addr: our address, to which it is sent and from which it comes.
 * @max: the size of the largest packet in bytes; the first call sets the slot size to it.
 * Returns 0, -EAGAIN if the queue is full and packets wait to be received, -ENOBUFS if the
 * receiver holds all buffers, -EMSGSIZE, or -ENOMEM.
 */
int nic_loop_tx(struct nic_loop *loop, const struct nic_tx *pkt,
		const struct homa_addr *addr, u32 max);
/** nic_loop_rx() - take up to @n packets out; their tokens are their slots. Returns how many. */
int nic_loop_rx(struct nic_loop *loop, struct nic_rx *pkts, int n);
void nic_loop_release(struct nic_loop *loop, u32 slot);
void nic_loop_fini(struct nic_loop *loop);

static inline bool nic_loop_waiting(const struct nic_loop *loop)
{
	return loop->head != loop->tail;
}

#endif
