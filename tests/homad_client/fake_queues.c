// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The queues memory as a homad of today, of former times, or of times to come makes it: the
 * last has rings of sizes and at places of its own, rings of a kind that nobody knows yet, and
 * feature bits that nobody knows.
 */
#include <string.h>
#include "fake_parts.h"
#include "fake_queues.h"

#define LATER_KIND 77u

static struct homa_shm_place *table;
static u32 end;

/* A ring behind all that was before; its first entry. */
static void *place(struct fake *f, u16 kind, u32 number,
		   struct homa_shm_ring *indices, u32 entries, u32 bytes)
{
	u8 *base = (u8 *)f->q;

	*table++ = (struct homa_shm_place){
		.kind = kind,
		.number = (u16)number,
		.entry_bytes = bytes,
		.entries = entries,
		.indices = (u32)((u8 *)indices - base),
		.first = end,
	};
	f->q->h.num_places++;
	end = (end + entries * bytes + HOMA_SHM_LINE - 1) / HOMA_SHM_LINE *
	      HOMA_SHM_LINE;
	return base + table[-1].first;
}

static void place_all(struct fake *f)
{
	struct homa_shm_header *h = &f->q->h;
	u32 i;

	h->places = sizeof(*f->q);
	table = (struct homa_shm_place *)((u8 *)f->q + h->places);
	end = h->places + 1024;
	f->pages_back = place(f, HOMA_SHM_RELEASE, 0, &h->release,
			      f->entries.release, sizeof(u32));
	place(f, LATER_KIND, 0, &h->release, 3, 5);
	for (i = HOMA_SHM_SQS; i-- > 0;)
		f->sqe[i] = place(f, HOMA_SHM_SUBMIT, i, &h->sq[i],
				  f->entries.submit, sizeof(struct homa_sqe));
	f->cqe = place(f, HOMA_SHM_COMPLETE, 0, &h->cq, f->entries.complete,
		       sizeof(struct homa_cqe));
	/* More rings than a library of today uses. */
	place(f, HOMA_SHM_COMPLETE, 1, &h->cq, 16, sizeof(struct homa_cqe));
	place(f, HOMA_SHM_SUBMIT, HOMA_SHM_SQS, &h->sq[0], 16,
	      sizeof(struct homa_sqe));
}

int fake_queues(struct fake *f)
{
	struct homa_ctl_rings usual = { HOMA_SHM_SQ_ENTRIES,
					HOMA_SHM_CQ_ENTRIES, HOMA_SHM_RELEASES };
	struct homa_shm_header *h;
	u32 i;
	int fd;

	if (!f->entries.submit)
		f->entries = usual;
	f->queues_bytes = sizeof(*f->q);
	if (!f->former)
		f->queues_bytes +=
			1024 + (HOMA_SHM_SQS + 1) * (f->entries.submit + 1) * 64 +
			f->entries.complete * 128 + f->entries.release * 4 + 4096;
	fd = fake_memory(&f->q, f->queues_bytes);
	h = &f->q->h;
	h->magic = HOMA_SHM_MAGIC;
	h->version = HOMA_SHM_VERSION + f->minor;
	h->sqs = 1;
	memcpy(h->id_key, f->id_key, sizeof(f->id_key));
	h->features = (HOMA_SHM_CAN_REJECT | HOMA_SHM_CAN_SHARE) & ~f->cannot;
	for (i = 0; i < HOMA_SHM_SQS; i++)
		f->sqe[i] = f->q->sqe[i];
	f->cqe = f->q->cqe;
	f->pages_back = f->q->released;
	if (!f->former) {
		h->features |= HOMA_SHM_CAN_PLACES | f->features;
		place_all(f);
	}
	if (f->spoil)
		f->spoil(h);
	return fd;
}
