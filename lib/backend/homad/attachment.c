// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The memory of an attachment, from its mapping to its end, and the descriptor by
 * which homad is woken. Mappings of rings and of bytes to send do not go to a child
 * of fork(), which must not write there; the receive pool does, for a child may read
 * what its parent had received.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"

void *homa_svc_map(int fd, u64 bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		return NULL;
	madvise(mem, bytes, MADV_DONTFORK);
	return mem;
}

int homa_svc_map_pool(struct homa_svc_att *att, int fd, u64 bytes, void *at)
{
	int flags = MAP_SHARED | (at ? MAP_FIXED : 0);
	int prot = PROT_READ | (at ? PROT_WRITE : 0);
	u8 *pool, *out;

	out = mmap(NULL, bytes / HOMA_SVC_GRANULE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (out == MAP_FAILED)
		return -ENOMEM;
	pool = mmap(at, bytes, prot, flags, fd, 0);
	if (pool == MAP_FAILED) {
		munmap(out, bytes / HOMA_SVC_GRANULE);
		return -ENOMEM;
	}
	att->pool = pool;
	att->pool_bytes = bytes;
	att->lent = at != NULL;
	att->out = out;
	return 0;
}

/* Unmap and close all memory and descriptors of an attachment that nobody uses any more. */
static void destroy(struct homa_svc_att *att)
{
	u32 i;

	homa_svc_close_fds(att);
	if (att->queues)
		munmap(att->queues, att->answer.queues_bytes);
	for (i = 0; i < HOMA_SHM_SEGMENTS; i++) {
		if (att->seg[i])
			munmap(att->seg[i], att->seg_bytes[i] ?
						    att->seg_bytes[i] :
						    att->answer.data_bytes);
		homa_svc_heap_free(&att->heap[i]);
	}
	/* Lent memory becomes the caller's again when the handle is closed. */
	if (att->pool && !att->lent)
		munmap(att->pool, att->pool_bytes);
	if (att->out)
		munmap(att->out, att->pool_bytes / HOMA_SVC_GRANULE);
	free(att);
}

void homa_svc_att_put(struct homa_svc_att *att)
{
	if (__atomic_sub_fetch(&att->refs, 1, __ATOMIC_ACQ_REL) == 0)
		destroy(att);
}

void homa_svc_kick(struct homa_svc *c, struct homa_svc_att *att)
{
	u64 value = 1;

	__atomic_fetch_add(&c->counters.kicks, 1, __ATOMIC_RELAXED);
	/* This fails only if the counter is full, and then homad has been told. */
	if (write(att->kick_fd, &value, sizeof(value)) < 0)
		return;
}
