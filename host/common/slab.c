// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Chunked objects of one size; see homa_slab.h. */
#include <stdlib.h>
#include <sys/mman.h>
#include "homa_slab.h"

#define ALIGN 64u
#define CHUNK_OBJECTS 128u
/* From this many objects on, further chunks are huge pages: one entry of the processor's table of
 * pages finds all objects in one, and not two or three of them. */
#define MANY_OBJECTS 1024u
#define HUGE_BYTES (2u << 20)

void homa_slab_init(struct homa_slab *slab, size_t size, u32 limit)
{
	memset(slab, 0, sizeof(*slab));
	slab->size = (size + ALIGN - 1) / ALIGN * ALIGN;
	slab->limit = limit;
}

static bool slab_grow(struct homa_slab *slab)
{
	u32 most = slab->limit - slab->total;
	u32 n = homa_min_u32(CHUNK_OBJECTS, most);
	u32 in_page = (u32)((HUGE_BYTES - ALIGN) / slab->size);
	size_t bytes = ALIGN + n * slab->size;
	bool huge = slab->total >= MANY_OBJECTS && most >= in_page;
	u8 *chunk;

	if (n == 0)
		return false;
	if (huge) {
		n = in_page;
		bytes = HUGE_BYTES;
	}
	chunk = aligned_alloc(huge ? HUGE_BYTES : ALIGN, bytes);
	if (!chunk)
		return false;
	/* A kernel that has no huge page now gives small ones. */
	if (huge && !madvise(chunk, bytes, MADV_HUGEPAGE))
		slab->huge++;
	memset(chunk, 0, bytes);
	memcpy(chunk, &slab->chunks, sizeof(void *));
	slab->chunks = chunk;
	slab->fresh = chunk + ALIGN;
	slab->left = n;
	slab->total += n;
	return true;
}

void *homa_slab_get(struct homa_slab *slab)
{
	void *object = slab->free;

	if (object) {
		memcpy(&slab->free, object, sizeof(void *));
		return object;
	}
	if (!slab->left && !slab_grow(slab))
		return NULL;
	object = slab->fresh;
	slab->fresh += slab->size;
	slab->left--;
	return object;
}

void homa_slab_put(struct homa_slab *slab, void *object)
{
	memcpy(object, &slab->free, sizeof(void *));
	slab->free = object;
}

void homa_slab_drain(struct homa_slab *slab)
{
	void *chunk = slab->chunks;

	while (chunk) {
		void *next;

		memcpy(&next, chunk, sizeof(void *));
		free(chunk);
		chunk = next;
	}
	slab->chunks = NULL;
	slab->free = NULL;
	slab->left = 0;
	slab->total = 0;
}
