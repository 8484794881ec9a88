/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Room for long messages in one data segment: blocks of 4 KiB units, next fit,
 * neighbours that are free become one. Its book-keeping lies in our own memory,
 * not in what homad sees.
 *
 * Guarded by: homa_svc_att.heap_lock.
 */
#ifndef HOMA_SVC_HEAP_H
#define HOMA_SVC_HEAP_H

#include "homa_plat.h"

#define HOMA_SVC_UNIT 4096u

/**
 * struct homa_svc_heap - the units of a segment
 * @tags: for each unit that is the first or last of a block, the block's length
 *	in units times two, plus one if it is taken.
 * @units: the number of units.
 * @rover: the first unit of the block where the next search starts.
 * @used: the number of units that are taken.
 */
struct homa_svc_heap {
	u32 *tags;
	u32 units;
	u32 rover;
	u32 used;
};

/** homa_svc_heap_init() - make a heap of @bytes, all free; 0 or -ENOMEM. */
int homa_svc_heap_init(struct homa_svc_heap *heap, u64 bytes);
void homa_svc_heap_free(struct homa_svc_heap *heap);
/** homa_svc_heap_get() - take @bytes (> 0); returns their offset in bytes, or -ENOBUFS. */
s64 homa_svc_heap_get(struct homa_svc_heap *heap, u32 bytes);
/** homa_svc_heap_put() - give the block at @offset back; -EINVAL if none begins there. */
int homa_svc_heap_put(struct homa_svc_heap *heap, u32 offset);
/** homa_svc_heap_check() - check tags that another process wrote, and take over @rover and @used,
 *  which belong to them; 0, or -EINVAL if they fit no heap. */
int homa_svc_heap_check(struct homa_svc_heap *heap, u32 rover, u32 used);

#endif
