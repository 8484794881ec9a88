// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The segments of an attachment, from which long messages are sent, and what is free in
 * them. homad reads a message where it lies. A completion says when it has done so.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"
#include "svc_memory.h"

int homa_svc_segment_get(struct homa_svc_att *att, u32 bytes, u32 *segment,
			 u32 *offset)
{
	s64 found = -ENOBUFS;
	u32 i;

	homa_gate_lock(&att->heap_lock);
	for (i = 0; i < att->num_segs && found < 0; i++) {
		found = homa_svc_heap_get(&att->heap[i], bytes);
		*segment = i;
	}
	homa_gate_unlock(&att->heap_lock);
	if (found < 0)
		return -ENOBUFS;
	*offset = (u32)found + (*segment ? 0 : HOMA_SVC_STAGES);
	return 0;
}

void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset)
{
	homa_gate_lock(&att->heap_lock);
	if (segment < att->num_segs && (segment || offset >= HOMA_SVC_STAGES))
		homa_svc_heap_put(&att->heap[segment],
				  offset - (segment ? 0 : HOMA_SVC_STAGES));
	homa_gate_unlock(&att->heap_lock);
}

void homa_svc_long_tell(struct homa_svc_att *att, int timer)
{
	homa_gate_lock(&att->heap_lock);
	att->room_timer = 1 + timer;
	homa_gate_unlock(&att->heap_lock);
}

void homa_svc_long_back(struct homa_svc_att *att, u32 segment, u32 offset)
{
	static const struct itimerspec at_once = { .it_value.tv_nsec = 1 };

	homa_svc_long_put(att, segment, offset);
	homa_gate_lock(&att->heap_lock);
	/* Under the lock, as the timer is closed only after it was taken away from here. */
	if (unlikely(att->room_timer))
		timerfd_settime(att->room_timer - 1, 0, &at_once, NULL);
	att->room_timer = 0;
	homa_gate_unlock(&att->heap_lock);
}

void homa_svc_unalloc(const struct homa_room *room)
{
	struct homa_svc_att *att = room->owner;

	homa_svc_long_back(att, room->segment, room->offset);
	homa_svc_att_put(att);
}

u64 homa_svc_long_used(struct homa_svc_att *att)
{
	u64 used = 0;
	u32 i;

	homa_gate_lock(&att->heap_lock);
	for (i = 0; i < att->num_segs; i++)
		used += (u64)att->heap[i].used * HOMA_SVC_UNIT;
	homa_gate_unlock(&att->heap_lock);
	return used;
}

int homa_svc_segment_add(struct homa_svc_att *att, u32 segment, int fd, u64 bytes)
{
	struct homa_svc_heap heap;
	void *mem;

	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	madvise(mem, bytes, MADV_DONTFORK);
	if (homa_svc_heap_init(&heap, bytes)) {
		munmap(mem, bytes);
		return -ENOMEM;
	}
	homa_gate_lock(&att->heap_lock);
	att->seg[segment] = mem;
	att->seg_bytes[segment] = bytes;
	att->heap[segment] = heap;
	att->num_segs = segment + 1;
	homa_gate_unlock(&att->heap_lock);
	return 0;
}

bool homa_svc_long_has(struct homa_svc_att *att, const void *at)
{
	bool has = false;
	u32 i;

	homa_gate_lock(&att->heap_lock);
	for (i = 0; i < att->num_segs && !has; i++)
		has = (uintptr_t)at - (uintptr_t)att->seg[i] < att->seg_bytes[i];
	homa_gate_unlock(&att->heap_lock);
	return has;
}
