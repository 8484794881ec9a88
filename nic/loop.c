// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The loop to ourselves. While packets wait here, a full queue means "not now":
 * the same thread will receive them next. When the receiver sits on all
 * buffers, waiting for it could last for ever, so the packet is dropped like on
 * any full link.
 */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int allocate(struct nic_loop *loop, u32 max)
{
	loop->slots = malloc((size_t)max * NIC_LOOP_SLOTS);
	loop->pkts = calloc(NIC_LOOP_SLOTS, sizeof(*loop->pkts));
	if (!loop->slots || !loop->pkts) {
		nic_loop_fini(loop);
		return -ENOMEM;
	}
	loop->slot_size = max;
	for (u32 i = 0; i < NIC_LOOP_SLOTS; i++)
		loop->free[i] = (u16)(NIC_LOOP_SLOTS - 1 - i);
	loop->n_free = NIC_LOOP_SLOTS;
	return 0;
}

int nic_loop_tx(struct nic_loop *loop, const struct nic_tx *pkt,
		const struct homa_addr *addr, u32 max)
{
	u32 len = pkt->hdr_len + pkt->payload_len;
	struct nic_rx *rx;
	u16 slot;
	u8 *at;

	if (!loop->slots) {
		int rc = allocate(loop, max);

		if (rc)
			return rc;
	}
	if (len > loop->slot_size)
		return -EMSGSIZE;
	if (!loop->n_free)
		return nic_loop_waiting(loop) ? -EAGAIN : -ENOBUFS;
	slot = loop->free[--loop->n_free];
	at = loop->slots + (size_t)slot * loop->slot_size;
	memcpy(at, pkt->hdr, pkt->hdr_len);
	if (pkt->payload_len)
		memcpy(at + pkt->hdr_len, pkt->payload, pkt->payload_len);
	rx = &loop->pkts[slot];
	memset(rx, 0, sizeof(*rx));
	rx->data = at;
	rx->len = len;
	rx->prio = pkt->prio;
	rx->src = *addr;
	rx->dst = *addr;
	rx->token = slot;
	loop->queue[loop->tail++ % NIC_LOOP_SLOTS] = slot;
	return 0;
}

int nic_loop_rx(struct nic_loop *loop, struct nic_rx *pkts, int n)
{
	int got = 0;

	while (got < n && nic_loop_waiting(loop))
		pkts[got++] =
			loop->pkts[loop->queue[loop->head++ % NIC_LOOP_SLOTS]];
	return got;
}

void nic_loop_release(struct nic_loop *loop, u32 slot)
{
	if (loop->slots && slot < NIC_LOOP_SLOTS && loop->n_free < NIC_LOOP_SLOTS)
		loop->free[loop->n_free++] = (u16)slot;
}

void nic_loop_fini(struct nic_loop *loop)
{
	free(loop->slots);
	free(loop->pkts);
	memset(loop, 0, sizeof(*loop));
}
