/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the rings of an attachment are in its queues memory. homad decides it once, tells
 * the application in the header, and goes by its own numbers ever after.
 *
 * Written by: the slow path, before the attachment begins; constant after that.
 */
#ifndef HOMAD_LAYOUT_H
#define HOMAD_LAYOUT_H

#include "app.h"

/* struct homad_layout - places in the queues memory, in bytes from its begin */
struct homad_layout {
	/* Entries of each ring, no zeros. */
	struct homa_ctl_rings entries;
	/* The first entry of the first submission ring, those of the others being right
	 * behind; of the completion ring; of the release ring; and the table of places. */
	u32 submit, complete, release, places;
	/* The size of the queues memory, in bytes. */
	u32 bytes;
};

/**
 * homad_layout_make() - compute the places of rings of the sizes that @asked says, 0: as in
 * struct homa_shm_queues. false: homad does not give such sizes.
 */
bool homad_layout_make(struct homad_layout *l,
		       const struct homa_ctl_rings *asked);
/** homad_layout_tell() - write the table of places for the application. */
void homad_layout_tell(const struct homad_layout *l, struct homa_shm_header *h);
/** homad_layout_use() - set @app->rings to the places in @app->queues. */
void homad_layout_use(const struct homad_layout *l, struct homad_app *app);

/**
 * homad_layout_ring_end() - return the offset of the end of the entries of submission ring
 * @which.
 */
static inline u64 homad_layout_ring_end(const struct homad_layout *l, u32 which)
{
	return l->submit +
	       (which + 1) * l->entries.submit * (u64)sizeof(struct homa_sqe);
}

#endif
