// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for messages that are too long to be staged. When segments (segments.c) are
 * full, what completions give back comes first, then another segment, and then the
 * caller hears that there is no room.
 */
#include <errno.h>
#include <unistd.h>
#include "client.h"
#include "fd.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_ring.h"
#include "svc_wait.h"

#define ROUND 65536u
#define SEGMENT_MOST ((u64)8 << 20)

/* The usual size of the next segment in bytes: as many as all segments have, up to a limit, so
 * that there are few. */
static u64 next_size(const struct homa_svc_att *att)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < att->num_segs; i++)
		sum += att->seg_bytes[i];
	return sum < SEGMENT_MOST ? (sum + ROUND - 1) / ROUND * ROUND :
				    SEGMENT_MOST;
}

/* Ask homad for another segment of the usual size or, if it refuses, of @bytes. The segment
 * belongs to the attachment that the handle has when homad answers, which may be a new one. */
static int grow(struct homa_svc *c, u32 bytes)
{
	u64 needed = ((u64)bytes + ROUND - 1) / ROUND * ROUND;
	u64 usual = next_size(c->att);
	u64 sizes[2] = { usual > needed ? usual : needed, needed };
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
	if (answer.segment < c->att->num_segs ||
	    answer.segment >= HOMA_SHM_SEGMENTS || answer.data_bytes < bytes) {
		close(fd);
		return -EPROTO;
	}
	return homa_svc_segment_add(c->att, answer.segment, fd,
				    answer.data_bytes);
}

/* Find @bytes that completions give back, or add a segment. Returns -EAGAIN if the homad of @att
 * has ended meanwhile, so that its memory is of no use any more. */
static int make_room(struct homa_svc *c, struct homa_svc_att *att, u32 bytes,
		     u32 *segment, u32 *offset)
{
	bool ended;
	int rc;

	homa_gate_lock(&c->lock);
	homa_svc_drain(c, NULL);
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	if (!homa_svc_segment_get(att, bytes, segment, offset))
		return 0;
	pthread_mutex_lock(&c->ctl);
	/* Another thread may have been faster. */
	rc = homa_svc_segment_get(att, bytes, segment, offset);
	if (rc && c->att == att && att->num_segs < HOMA_SHM_SEGMENTS &&
	    att->num_segs < att->answer.max_segments) {
		rc = grow(c, bytes);
		if (!rc && c->att == att)
			rc = homa_svc_segment_get(att, bytes, segment, offset);
	}
	ended = c->att != att || homa_svc_state(c) != HOMA_SVC_UP;
	pthread_mutex_unlock(&c->ctl);
	if (ended)
		return -EAGAIN;
	return rc ? -ENOBUFS : 0;
}

/* Take @bytes in the present attachment, to which the caller gets a reference even if there are
 * none. The caller has @ring's lock; this function unlocks it. */
static int first_look(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		      struct homa_svc_att **att, u32 *segment, u32 *offset)
{
	*att = c->att;
	homa_svc_att_get(*att);
	homa_gate_unlock(&ring->lock);
	return homa_svc_segment_get(*att, bytes, segment, offset);
}

/* The same, but homad is asked for more if need be, and only on success the caller has a reference
 * to @att. Returns -EAGAIN if homad has ended meanwhile. */
static int look_and_ask(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
			struct homa_svc_att **att, u32 *segment, u32 *offset)
{
	int rc = first_look(c, ring, bytes, att, segment, offset);

	if (rc)
		rc = make_room(c, *att, bytes, segment, offset);
	if (rc)
		homa_svc_att_put(*att);
	return rc;
}

/* If homad ends while it is asked, the next homad is asked: homa_svc_begin() attaches to it, or
 * says that there is none. */
int homa_svc_long_get(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset)
{
	struct homa_svc_ring *ring;
	int rc;

	do {
		rc = homa_svc_begin(c, 0, &ring);
		if (!rc)
			rc = look_and_ask(c, ring, bytes, att, segment, offset);
	} while (rc == -EAGAIN);
	return rc;
}

int homa_svc_long_keep(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		       u32 *segment, u32 *offset)
{
	struct homa_svc_ring *ring = homa_svc_my_ring(c);
	int rc;

	do {
		rc = homa_svc_revive(c);
		if (rc)
			break;
		homa_gate_lock(&ring->lock);
		rc = look_and_ask(c, ring, bytes, att, segment, offset);
	} while (rc == -EAGAIN);
	return rc;
}

int homa_svc_long_ask(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset)
{
	struct homa_svc_ring *ring;
	int rc = homa_svc_try_begin(c, 0, &ring);

	return rc ? rc : look_and_ask(c, ring, bytes, att, segment, offset);
}

int homa_svc_long_try(struct homa_svc *c, u32 bytes, struct homa_svc_att **att,
		      u32 *segment, u32 *offset)
{
	struct homa_svc_ring *ring;
	int rc = homa_svc_try_begin(c, 0, &ring);

	if (rc)
		return rc;
	rc = first_look(c, ring, bytes, att, segment, offset);
	if (rc && homa_gate_trylock(&c->lock)) {
		/* Take what completions give back, if no other thread has the lock. */
		if (homa_svc_state(c) == HOMA_SVC_UP)
			homa_svc_drain(c, NULL);
		homa_svc_fd_touch(c);
		homa_gate_unlock(&c->lock);
		rc = homa_svc_segment_get(*att, bytes, segment, offset);
	}
	if (rc)
		homa_svc_att_put(*att);
	return rc ? -EAGAIN : 0;
}
