// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Where the rings of an attachment are. homad's header has a table that says so, whose
 * words are read once, here, and checked: what does not lie within the memory, or has
 * entries of another kind than ours, is homad's mistake, and the attachment does not begin.
 * A ring of a kind that this library does not know is left alone. A homad without the
 * table has all rings where struct homa_shm_queues has them.
 */
#include <errno.h>
#include "client.h"
#include "svc_att.h"

/* struct kind - what this library expects of the rings of a kind */
struct kind {
	/* The size of an entry in bytes, and the least and greatest number of entries. */
	u32 entry_bytes, min, max;
};

static const struct kind kinds[] = {
	[HOMA_SHM_SUBMIT] = { sizeof(struct homa_sqe), HOMA_SHM_SQ_MIN,
			      HOMA_SHM_SQ_MAX },
	[HOMA_SHM_COMPLETE] = { sizeof(struct homa_cqe), HOMA_SHM_CQ_MIN,
				HOMA_SHM_CQ_MAX },
	[HOMA_SHM_RELEASE] = { sizeof(u32), HOMA_SHM_RELEASES_MIN,
			       HOMA_SHM_RELEASES_MAX },
};

/* Set the places that the rings have with a homad that has no table. */
static int usual(struct homa_svc_att *att)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)att->queues;
	u32 i;

	if (att->answer.queues_bytes < sizeof(*q))
		return -EPROTO;
	for (i = 0; i < HOMA_SHM_SQS; i++)
		att->submit[i] = (struct homa_svc_place){ &q->h.sq[i], q->sqe[i],
							  HOMA_SHM_SQ_ENTRIES };
	att->complete =
		(struct homa_svc_place){ &q->h.cq, q->cqe, HOMA_SHM_CQ_ENTRIES };
	att->release = (struct homa_svc_place){ &q->h.release, q->released,
						HOMA_SHM_RELEASES };
	return 0;
}

/* Do @bytes at @offset lie within the memory, at a whole line? */
static bool within(const struct homa_svc_att *att, u32 offset, u64 bytes)
{
	return offset % HOMA_SHM_LINE == 0 &&
	       offset + bytes <= att->answer.queues_bytes;
}

/* The ring of ours that @place is for; NULL if this library does not know it. */
static struct homa_svc_place *ours(struct homa_svc_att *att,
				   const struct homa_shm_place *place)
{
	if (place->kind == HOMA_SHM_SUBMIT)
		return place->number < HOMA_SHM_SQS ?
			       &att->submit[place->number] :
			       NULL;
	if (place->number)
		return NULL;
	if (place->kind == HOMA_SHM_COMPLETE)
		return &att->complete;
	return place->kind == HOMA_SHM_RELEASE ? &att->release : NULL;
}

static int take(struct homa_svc_att *att, const struct homa_shm_place *place)
{
	struct homa_svc_place *to = ours(att, place);
	const struct kind *kind;
	u8 *base = (u8 *)att->queues;

	if (!to)
		return 0;
	kind = &kinds[place->kind];
	if (to->index || place->entry_bytes != kind->entry_bytes ||
	    place->entries < kind->min || place->entries > kind->max ||
	    (place->entries & (place->entries - 1)) ||
	    !within(att, place->indices, sizeof(*to->index)) ||
	    !within(att, place->first, (u64)place->entries * kind->entry_bytes))
		return -EPROTO;
	*to = (struct homa_svc_place){ (struct homa_shm_ring *)(base +
								place->indices),
				       base + place->first, place->entries };
	return 0;
}

static int from_table(struct homa_svc_att *att)
{
	const struct homa_shm_header *h = att->queues;
	const struct homa_shm_place *places;
	u32 i, at = h->places, num = h->num_places;
	int rc = 0;

	if (num > HOMA_SHM_PLACES_MAX || at % 8 ||
	    at + (u64)num * sizeof(*places) > att->answer.queues_bytes)
		return -EPROTO;
	places = (const struct homa_shm_place *)((u8 *)att->queues + at);
	for (i = 0; i < num && !rc; i++) {
		struct homa_shm_place place = places[i];

		rc = take(att, &place);
	}
	for (i = 0; i < HOMA_SHM_SQS && !rc; i++)
		rc = att->submit[i].index ? 0 : -EPROTO;
	return rc					 ? rc :
	       att->complete.index && att->release.index ? 0 :
							   -EPROTO;
}

int homa_svc_find_rings(struct homa_svc_att *att)
{
	u32 features = att->queues->features;
	int rc = features & HOMA_SHM_CAN_PLACES ? from_table(att) : usual(att);

	if (!rc && (features & HOMA_SHM_CAN_BELL))
		att->bell = &att->submit[0].index->bell;
	return rc;
}
