/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets to ourselves, for a backend whose device does not loop back: a
 * bounded queue in memory.
 */
#ifndef HOMA_NIC_LOOP_H
#define HOMA_NIC_LOOP_H

#include "nic_backend.h"

#define NIC_LOOP_SLOTS 1024

/**
 * struct nic_loop - slots are allocated with the first packet
 * @slots: NIC_LOOP_SLOTS buffers of @slot_size bytes, or NULL.
 * @pkts: description of the packet in each slot.
 * @slot_size: bytes per slot.
 * @queue: slots with a packet not yet received, oldest at @head.
 * @head: next to receive, counts up for ever.
 * @tail: next to fill.
 * @free: stack of unused slots.
 * @n_free: how many.
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
 * @addr: our address that it is sent to, and comes from.
 * @max: largest packet, bytes; the first call fixes the slot size.
 * Returns 0, -EAGAIN while packets wait to be received (try again later),
 * -ENOBUFS when the receiver holds all buffers, -EMSGSIZE, -ENOMEM.
 */
int nic_loop_tx(struct nic_loop *loop, const struct nic_tx *pkt,
		const struct homa_addr *addr, u32 max);
/** nic_loop_rx() - take packets out; token is the slot. */
int nic_loop_rx(struct nic_loop *loop, struct nic_rx *pkts, int n);
void nic_loop_release(struct nic_loop *loop, u32 slot);
void nic_loop_fini(struct nic_loop *loop);

static inline bool nic_loop_waiting(const struct nic_loop *loop)
{
	return loop->head != loop->tail;
}

#endif
