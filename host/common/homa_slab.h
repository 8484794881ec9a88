/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory for the engine's objects (RPCs, peers, gap records): one size, 64-byte
 * aligned, allocated in chunks, handed out zeroed the first time, never given
 * back to the system before the end.
 *
 * Guarded by: the owner, who lets one thread at a time call.
 */
#ifndef HOMA_SLAB_H
#define HOMA_SLAB_H

#include "homa_plat.h"

/**
 * struct homa_slab - allocator of one size
 * @size: how many bytes an object has, a multiple of 64.
 * @free: the first of the objects that were given back, linked through their first bytes.
 * @fresh: the first object of the newest chunk that was never handed out.
 * @left: how many such objects there are from @fresh on.
 * @chunks: the newest chunk; chunks are linked through their first bytes.
 * @total: how many objects the chunks have room for, up to @limit.
 * @limit: how many objects there may be at most.
 * @huge: how many chunks the kernel was asked to make of a huge page.
 */
struct homa_slab {
	size_t size;
	void *free;
	u8 *fresh;
	u32 left;
	void *chunks;
	u32 total;
	u32 limit;
	u32 huge;
};

void homa_slab_init(struct homa_slab *slab, size_t size, u32 limit);
/** homa_slab_get() - returns an object; NULL: no memory, or @limit of them are in use. */
void *homa_slab_get(struct homa_slab *slab);
/** homa_slab_put() - gives back an object of @slab. */
void homa_slab_put(struct homa_slab *slab, void *object);
/** homa_slab_drain() - free every chunk; all objects die. */
void homa_slab_drain(struct homa_slab *slab);

#endif
