// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The queues memory: the header, the submission rings, the completion ring, the release
 * ring, and behind all of them the table that says where they are. With the usual sizes
 * that is struct homa_shm_queues, which applications without the table go by.
 */
#include "layout.h"

#define PLACES (HOMA_SHM_SQS + 2u)

/* Chooses @asked, or @usual if that is 0; returns false if it is out of bounds or no power of
 * two. */
static bool size_of(u32 asked, u32 usual, u32 min, u32 max, u32 *entries)
{
	*entries = asked ? asked : usual;
	return *entries >= min && *entries <= max &&
	       (*entries & (*entries - 1)) == 0;
}

bool homad_layout_make(struct homad_layout *l, const struct homa_ctl_rings *asked)
{
	struct homa_ctl_rings *e = &l->entries;

	if (!size_of(asked->submit, HOMA_SHM_SQ_ENTRIES, HOMA_SHM_SQ_MIN,
		     HOMA_SHM_SQ_MAX, &e->submit) ||
	    !size_of(asked->complete, HOMA_SHM_CQ_ENTRIES, HOMA_SHM_CQ_MIN,
		     HOMA_SHM_CQ_MAX, &e->complete) ||
	    !size_of(asked->release, HOMA_SHM_RELEASES, HOMA_SHM_RELEASES_MIN,
		     HOMA_SHM_RELEASES_MAX, &e->release))
		return false;
	l->submit = sizeof(struct homa_shm_header);
	l->complete = (u32)homad_layout_ring_end(l, HOMA_SHM_SQS - 1);
	l->release = l->complete + e->complete * (u32)sizeof(struct homa_cqe);
	l->places = l->release + e->release * (u32)sizeof(u32);
	l->bytes = l->places + PLACES * (u32)sizeof(struct homa_shm_place);
	return true;
}

static u32 offset_of(const struct homa_shm_header *h,
		     const struct homa_shm_ring *ring)
{
	return (u32)((const u8 *)ring - (const u8 *)h);
}

void homad_layout_tell(const struct homad_layout *l, struct homa_shm_header *h)
{
	struct homa_shm_place *place =
		(struct homa_shm_place *)((u8 *)h + l->places);
	u32 i;

	h->places = l->places;
	h->num_places = PLACES;
	for (i = 0; i < HOMA_SHM_SQS; i++)
		*place++ = (struct homa_shm_place){
			.kind = HOMA_SHM_SUBMIT,
			.number = (u16)i,
			.entry_bytes = sizeof(struct homa_sqe),
			.entries = l->entries.submit,
			.indices = offset_of(h, &h->sq[i]),
			.first = l->submit + i * l->entries.submit *
						     (u32)sizeof(struct homa_sqe),
		};
	*place++ = (struct homa_shm_place){
		.kind = HOMA_SHM_COMPLETE,
		.entry_bytes = sizeof(struct homa_cqe),
		.entries = l->entries.complete,
		.indices = offset_of(h, &h->cq),
		.first = l->complete,
	};
	*place = (struct homa_shm_place){
		.kind = HOMA_SHM_RELEASE,
		.entry_bytes = sizeof(u32),
		.entries = l->entries.release,
		.indices = offset_of(h, &h->release),
		.first = l->release,
	};
}

void homad_layout_use(const struct homad_layout *l, struct homad_app *app)
{
	u8 *base = (u8 *)app->queues;
	struct homad_rings *r = &app->rings;

	r->sqe = (struct homa_sqe *)(base + l->submit);
	r->cqe = (struct homa_cqe *)(base + l->complete);
	r->released = (u32 *)(base + l->release);
	r->sq_entries = l->entries.submit;
	r->cq_entries = l->entries.complete;
	r->releases = l->entries.release;
}
