// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Size-classed buffers of outgoing messages; see homa_msgbuf.h. A buffer is
 * allocated once and then circulates, most recently used first, so that the
 * bytes copied into it meet a warm cache.
 */
#include <stdlib.h>
#include "homa_msgbuf.h"

/* How many bytes of idle memory each size keeps. */
#define KEEP_BYTES (8u << 20)

static u32 class_of(u32 size)
{
	int shift = size > 1 ? homa_fls32(size - 1) : 0;

	return shift <= HOMA_MSGBUF_MIN_SHIFT ?
		       0 :
		       (u32)(shift - HOMA_MSGBUF_MIN_SHIFT);
}

static u32 class_bytes(u32 cls)
{
	return 1u << (cls + HOMA_MSGBUF_MIN_SHIFT);
}

void *homa_msgbuf_get(struct homa_msgbufs *bufs, u32 size)
{
	u32 cls = class_of(size);
	void *buf;

	if (size == 0 || cls >= HOMA_MSGBUF_CLASSES)
		return NULL;
	buf = bufs->free[cls];
	if (likely(buf)) {
		memcpy(&bufs->free[cls], buf, sizeof(void *));
		bufs->idle[cls]--;
	} else {
		buf = malloc(class_bytes(cls));
		if (!buf)
			return NULL;
	}
	HOMA_WRITE_ONCE(bufs->used, bufs->used + class_bytes(cls));
	return buf;
}

void homa_msgbuf_put(struct homa_msgbufs *bufs, void *buf, u32 size)
{
	u32 cls = class_of(size);

	if (!buf)
		return;
	HOMA_WRITE_ONCE(bufs->used, bufs->used - class_bytes(cls));
	if (bufs->idle[cls] >= KEEP_BYTES / class_bytes(cls)) {
		free(buf);
		return;
	}
	memcpy(buf, &bufs->free[cls], sizeof(void *));
	bufs->free[cls] = buf;
	bufs->idle[cls]++;
}

void homa_msgbuf_drain(struct homa_msgbufs *bufs)
{
	u32 cls;

	for (cls = 0; cls < HOMA_MSGBUF_CLASSES; cls++) {
		void *buf = bufs->free[cls];

		while (buf) {
			void *next;

			memcpy(&next, buf, sizeof(void *));
			free(buf);
			buf = next;
		}
		bufs->free[cls] = NULL;
		bufs->idle[cls] = 0;
	}
}
