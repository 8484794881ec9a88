/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Memory of outgoing messages: a private copy lives until its RPC is retired.
 * Sizes are powers of two from 256 bytes to 1 MiB with a free list each, so
 * that a steady load never reaches malloc; what is kept idle is bounded.
 *
 * Guarded by: the host, whose lock is held or whose one thread calls.
 */
#ifndef HOMA_MSGBUF_H
#define HOMA_MSGBUF_H

#include "homa_plat.h"

#define HOMA_MSGBUF_MIN_SHIFT 8
#define HOMA_MSGBUF_MAX_SHIFT 20
#define HOMA_MSGBUF_CLASSES (HOMA_MSGBUF_MAX_SHIFT - HOMA_MSGBUF_MIN_SHIFT + 1)

/**
 * struct homa_msgbufs - the free lists, one for each size
 * @free: the first free buffer of each size; they are linked through their first bytes.
 * @idle: how many buffers are in each list.
 * @used: how many bytes are handed out, each buffer with its whole size. Other
 *	threads may read it.
 */
struct homa_msgbufs {
	void *free[HOMA_MSGBUF_CLASSES];
	u32 idle[HOMA_MSGBUF_CLASSES];
	u64 used;
};

/** homa_msgbuf_bytes() - the size of the buffer for @size bytes, 1 .. 1 MiB. */
static inline u32 homa_msgbuf_bytes(u32 size)
{
	if (size <= 1u << HOMA_MSGBUF_MIN_SHIFT)
		return 1u << HOMA_MSGBUF_MIN_SHIFT;
	return 1u << homa_fls32(size - 1);
}

/** homa_msgbuf_get() - returns a buffer for @size bytes, 1 .. 1 MiB; NULL: no memory. */
void *homa_msgbuf_get(struct homa_msgbufs *bufs, u32 size);
/** homa_msgbuf_put() - gives a buffer back; @size as it was asked for. @buf may be NULL. */
void homa_msgbuf_put(struct homa_msgbufs *bufs, void *buf, u32 size);
/** homa_msgbuf_drain() - frees the idle buffers. */
void homa_msgbuf_drain(struct homa_msgbufs *bufs);

#endif
