// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Next fit with boundary tags; see heap.h. Messages that need this are longer
 * than 4 KiB and their number is small, so a search visits few blocks, and next
 * fit keeps it from walking over the same short-lived ones each time.
 */
#include <errno.h>
#include <stdlib.h>
#include "heap.h"

static void set_block(struct homa_svc_heap *heap, u32 start, u32 len, u32 taken)
{
	heap->tags[start] = len << 1 | taken;
	heap->tags[start + len - 1] = len << 1 | taken;
}

int homa_svc_heap_init(struct homa_svc_heap *heap, u64 bytes)
{
	memset(heap, 0, sizeof(*heap));
	heap->units = (u32)(bytes / HOMA_SVC_UNIT);
	if (!heap->units)
		return 0;
	heap->tags = calloc(heap->units, sizeof(*heap->tags));
	if (!heap->tags)
		return -ENOMEM;
	set_block(heap, 0, heap->units, 0);
	return 0;
}

void homa_svc_heap_free(struct homa_svc_heap *heap)
{
	free(heap->tags);
	memset(heap, 0, sizeof(*heap));
}

s64 homa_svc_heap_get(struct homa_svc_heap *heap, u32 bytes)
{
	u32 want = (bytes + HOMA_SVC_UNIT - 1) / HOMA_SVC_UNIT;
	u32 at = heap->rover, walked = 0, len;

	if (want > heap->units - heap->used)
		return -ENOBUFS;
	while (walked < heap->units) {
		len = heap->tags[at] >> 1;
		if (!(heap->tags[at] & 1) && len >= want) {
			if (len > want)
				set_block(heap, at + want, len - want, 0);
			set_block(heap, at, want, 1);
			heap->used += want;
			heap->rover = at + want < heap->units ? at + want : 0;
			return (s64)at * HOMA_SVC_UNIT;
		}
		walked += len;
		at += len;
		if (at >= heap->units)
			at = 0;
	}
	return -ENOBUFS;
}

int homa_svc_heap_put(struct homa_svc_heap *heap, u32 offset)
{
	u32 at = offset / HOMA_SVC_UNIT, len;

	/* Tags inside of a block are out of date; only a block's first unit has a matching last. */
	if (offset % HOMA_SVC_UNIT || at >= heap->units || !(heap->tags[at] & 1))
		return -EINVAL;
	len = heap->tags[at] >> 1;
	if (len == 0 || len > heap->units - at ||
	    heap->tags[at + len - 1] != heap->tags[at])
		return -EINVAL;
	heap->used -= len;
	if (at + len < heap->units && !(heap->tags[at + len] & 1)) {
		if (heap->rover == at + len)
			heap->rover = at;
		len += heap->tags[at + len] >> 1;
	}
	if (at > 0 && !(heap->tags[at - 1] & 1)) {
		u32 before = heap->tags[at - 1] >> 1;

		if (heap->rover == at)
			heap->rover = at - before;
		at -= before;
		len += before;
	}
	set_block(heap, at, len, 0);
	return 0;
}

int homa_svc_heap_check(struct homa_svc_heap *heap, u32 rover, u32 used)
{
	u32 at, len, taken = 0;
	bool begins = rover == 0;

	for (at = 0; at < heap->units; at += len) {
		len = heap->tags[at] >> 1;
		if (len == 0 || len > heap->units - at ||
		    heap->tags[at + len - 1] != heap->tags[at])
			return -EINVAL;
		begins |= at == rover;
		taken += heap->tags[at] & 1 ? len : 0;
	}
	if (!begins || taken != used)
		return -EINVAL;
	heap->rover = rover;
	heap->used = used;
	return 0;
}
