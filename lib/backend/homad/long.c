// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for messages that are too long to be staged. homad reads them where
 * they lie, until it says otherwise by a completion. When segments are full, what
 * completions give back comes first, then another segment, and then the caller
 * hears that there is no room.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "client.h"

#define ROUND 65536u

static int get(struct homa_svc_att *att, u32 bytes, u32 *segment, u32 *offset)
{
	s64 found = -ENOBUFS;
	u32 i;

	homa_turn_lock(&att->heap_lock);
	for (i = 0; i < att->num_segs && found < 0; i++) {
		found = homa_svc_heap_get(&att->heap[i], bytes);
		*segment = i;
	}
	homa_turn_unlock(&att->heap_lock);
	if (found < 0)
		return -ENOBUFS;
	*offset = (u32)found + (*segment ? 0 : HOMA_SVC_STAGES);
	return 0;
}

void homa_svc_long_put(struct homa_svc_att *att, u32 segment, u32 offset)
{
	homa_turn_lock(&att->heap_lock);
	if (segment < att->num_segs && (segment || offset >= HOMA_SVC_STAGES))
		homa_svc_heap_put(&att->heap[segment],
				  offset - (segment ? 0 : HOMA_SVC_STAGES));
	homa_turn_unlock(&att->heap_lock);
}

u64 homa_svc_long_used(struct homa_svc_att *att)
{
	u64 used = 0;
	u32 i;

	homa_turn_lock(&att->heap_lock);
	for (i = 0; i < att->num_segs; i++)
		used += (u64)att->heap[i].used * HOMA_SVC_UNIT;
	homa_turn_unlock(&att->heap_lock);
	return used;
}

static int add_segment(struct homa_svc_att *att, int fd, u64 bytes)
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
	homa_turn_lock(&att->heap_lock);
	att->seg[att->num_segs] = mem;
	att->seg_bytes[att->num_segs] = bytes;
	att->heap[att->num_segs] = heap;
	att->num_segs++;
	homa_turn_unlock(&att->heap_lock);
	return 0;
}

/* As large as the first one if homad allows, else as large as needed. */
static int grow(struct homa_svc *c, struct homa_svc_att *att, u32 bytes)
{
	u64 sizes[2] = { att->seg_bytes[0],
			 ((u64)bytes + ROUND - 1) / ROUND * ROUND };
	struct homa_ctl_answer answer = { 0 };
	int i, fd = -1, rc = -ENOBUFS;

	for (i = 0; i < 2 && rc; i++) {
		struct homa_ctl_request request = { .op = HOMA_CTL_SEGMENT,
						    .bytes = sizes[i] };

		if (sizes[i] < bytes || (i && sizes[i] == sizes[0]))
			continue;
		rc = homa_svc_question(c, &request, &answer, &fd);
		c->counters.segments++;
	}
	if (rc)
		return rc;
	if (fd < 0)
		return -EMFILE;
	if (c->att != att) {
		close(fd);
		return 0;
	}
	if (answer.segment != att->num_segs || answer.data_bytes < bytes) {
		close(fd);
		return -EPROTO;
	}
	return add_segment(att, fd, answer.data_bytes);
}

static int make_room(struct homa_svc *c, struct homa_svc_att *att, u32 bytes,
		     u32 *segment, u32 *offset)
{
	int rc;

	homa_turn_lock(&c->lock);
	homa_svc_drain(c, NULL);
	homa_svc_fd_touch(c);
	homa_turn_unlock(&c->lock);
	if (!get(att, bytes, segment, offset))
		return 0;
	pthread_mutex_lock(&c->ctl);
	/* Another thread may have been faster. */
	rc = get(att, bytes, segment, offset);
	if (rc && c->att == att && att->num_segs < HOMA_SHM_SEGMENTS &&
	    att->num_segs < att->answer.max_segments) {
		rc = grow(c, att, bytes);
		if (!rc)
			rc = get(att, bytes, segment, offset);
	}
	pthread_mutex_unlock(&c->ctl);
	return rc ? -ENOBUFS : 0;
}

/* On success the caller has a reference to @att. */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset)
{
	struct homa_svc_ring *ring;
	int rc;

	rc = homa_svc_begin(c, 0, &ring);
	if (rc)
		return rc;
	*att = c->att;
	homa_svc_att_get(*att);
	homa_turn_unlock(&ring->lock);
	rc = get(*att, bytes, segment, offset);
	if (rc)
		rc = make_room(c, *att, bytes, segment, offset);
	if (rc)
		homa_svc_att_put(*att);
	return rc;
}
