// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bounds of what the other side of a message NIC wrote. Nothing here reads the shared memory
 * but the three numbers of a ring; descriptors are copied by the caller first.
 */
#include "message_check.h"

#include <stdio.h>
#include <string.h>

#define ETHERNET 14u
/* The DATA header up to its offset, and that offset. */
#define HEADER 52u
#define OFFSET 4u

_Static_assert(sizeof(struct mnic_send) == 32, "size");
_Static_assert(sizeof(struct mnic_done) == 32, "size");
_Static_assert(sizeof(struct mnic_post) == 32, "size");
_Static_assert(sizeof(struct mnic_got) == 32, "size");
_Static_assert(sizeof(struct mnic_ring) == 128, "size");

int mnic_address(const char *interface, char *out, size_t size)
{
	int len = snprintf(out, size, "%choma-message-nic/%s", 0, interface);

	return len < 0 || (size_t)len >= size ? -1 : len;
}

bool mnic_hello_ok(const struct mnic_hello *hello)
{
	return hello->magic == MNIC_MAGIC && hello->version == MNIC_VERSION &&
	       hello->queues >= 1 && hello->queues <= MNIC_QUEUES_MAX &&
	       hello->slots >= 1 && hello->slots <= MNIC_ENTRIES;
}

size_t mnic_queue_at(uint32_t queue)
{
	return MNIC_PAGE + (size_t)queue * sizeof(struct mnic_queue);
}

size_t mnic_slot_at(const struct mnic_hello *hello, uint32_t queue, bool got,
		    uint32_t slot)
{
	size_t before = (size_t)hello->slots * (2u * queue + got) + slot;

	return mnic_queue_at(hello->queues) + before * MNIC_SLOT_BYTES;
}

size_t mnic_bytes(const struct mnic_hello *hello)
{
	return mnic_slot_at(hello, hello->queues, false, 0);
}

int mnic_waiting(const struct mnic_ring *ring, uint32_t taken)
{
	uint32_t made = __atomic_load_n(&ring->made, __ATOMIC_ACQUIRE);

	return made - taken <= MNIC_ENTRIES ? (int)(made - taken) : -1;
}

int mnic_room(const struct mnic_ring *ring, uint32_t made)
{
	uint32_t taken = __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE);

	return made - taken <= MNIC_ENTRIES ?
		       (int)(MNIC_ENTRIES - (made - taken)) :
		       -1;
}

bool mnic_publish(struct mnic_ring *ring, uint32_t made)
{
	__atomic_store_n(&ring->made, made, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->asleep, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&ring->asleep, 0, __ATOMIC_RELAXED);
}

void mnic_consumed(struct mnic_ring *ring, uint32_t taken)
{
	__atomic_store_n(&ring->taken, taken, __ATOMIC_RELEASE);
}

bool mnic_sleep(struct mnic_ring *ring, uint32_t taken)
{
	__atomic_store_n(&ring->asleep, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return mnic_waiting(ring, taken) == 0;
}

bool mnic_send_ok(const struct mnic_send *send, uint32_t slots, uint32_t features)
{
	return send->slot < slots && send->len >= ETHERNET &&
	       send->len <= MNIC_FRAME_MAX && send->prio <= 7 &&
	       (!send->seg || features & MNIC_FEATURE_LSO);
}

bool mnic_got_ok(const struct mnic_got *got, uint32_t slots)
{
	if (got->slot >= slots || got->len < ETHERNET || got->len > MNIC_FRAME_MAX)
		return false;
	if (!got->pieces || got->pieces > MNIC_PIECES_MAX)
		return false;
	return got->pieces == 1 ||
	       (got->at >= ETHERNET && got->len >= got->at + HEADER + OFFSET);
}

static uint32_t offset_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

bool mnic_unit_ok(const uint8_t *unit, uint32_t bytes,
		  const struct mnic_piece *list, uint32_t pieces)
{
	uint32_t at = HEADER;
	uint32_t i;

	for (i = 0; i < pieces; i++) {
		uint32_t length = list[i].length;

		if (!length || length > list[0].length ||
		    (i + 1 < pieces && length != list[0].length))
			return false;
		if (at > bytes || bytes - at < OFFSET ||
		    bytes - at - OFFSET < length)
			return false;
		if (offset_at(unit + at) != list[i].offset)
			return false;
		at += OFFSET + length;
	}
	return at == bytes;
}
