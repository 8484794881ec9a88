/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory for the engine's objects (RPCs, peers, gap records): one size, 64-byte
 * aligned, allocated in chunks, handed out zeroed the first time, never given
 * back to the system before the end. Not thread-safe.
 */
#ifndef HOMA_SLAB_H
#define HOMA_SLAB_H

#include "homa_plat.h"

/**
 * struct homa_slab - allocator of one size
 * @size: bytes of an object, a multiple of 64.
 * @free: objects given back, linked through their first bytes.
 * @fresh, @left: rest of the newest chunk, in objects.
 * @chunks: all chunks, linked through their first bytes.
 * @total: objects ever made.
 * @limit: most objects.
 */
struct homa_slab {
	size_t size;
	void *free;
	u8 *fresh;
	u32 left;
	void *chunks;
	u32 total;
	u32 limit;
};

void homa_slab_init(struct homa_slab *slab, size_t size, u32 limit);
/** homa_slab_get() - an object or NULL (no memory, or the limit). */
void *homa_slab_get(struct homa_slab *slab);
void homa_slab_put(struct homa_slab *slab, void *object);
/** homa_slab_drain() - free every chunk; all objects die. */
void homa_slab_drain(struct homa_slab *slab);

#endif
