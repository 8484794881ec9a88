// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a process has mapped of another one's memory, for a stream that the other one has passed to
 * it (pass.c): the stream's slot and its buffers, in whole pages. A child of fork() gets these,
 * too, as it may get the stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "stream_impl.h"

#define PAGE ((u64)4096)

enum piece {
	PIECE_SLOT,
	PIECE_FIRSTS,
	PIECE_SPANS,
	PIECES,
};

/* struct homa_stream_lent - what a process has mapped of another one's memory for a stream */
struct homa_stream_lent {
	/* The id of the area in which the stream lies, and its slot there. */
	u32 area, slot;
	/* The mapped pages of each piece. */
	struct {
		/* Where the pages begin; NULL if they are not mapped. */
		void *at;
		/* Their size in bytes, and the number of those before the piece begins. */
		u64 bytes, skip;
	} piece[PIECES];
};

static bool map_piece(struct homa_stream_lent *lent, enum piece which, int fd,
		      u64 from, u64 bytes)
{
	u64 begin = from & ~(PAGE - 1);
	u64 size = ((from + bytes + PAGE - 1) & ~(PAGE - 1)) - begin;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)begin);

	if (at == MAP_FAILED)
		return false;
	lent->piece[which].at = at;
	lent->piece[which].bytes = size;
	lent->piece[which].skip = from - begin;
	return true;
}

static void *piece(const struct homa_stream_lent *lent, enum piece which)
{
	return (u8 *)lent->piece[which].at + lent->piece[which].skip;
}

void homa_stream_give_back(struct homa_stream_lent *lent)
{
	int i;

	if (!lent)
		return;
	for (i = 0; i < PIECES; i++)
		if (lent->piece[i].at)
			munmap(lent->piece[i].at, lent->piece[i].bytes);
	free(lent);
}

void homa_stream_lent_place(const struct homa_stream_lent *lent, u32 *area,
			    u32 *slot)
{
	*area = lent->area;
	*slot = lent->slot;
}

/* Read how the memory behind @fd is laid out; NULL if that cannot be. Of what is returned, which
 * the caller frees, pointers are good for nothing but their distance from @area. */
static struct homa_streams *read_layout(int fd)
{
	struct homa_streams *layout = homa_streams_blank();
	struct stat file;
	int rc = -EPROTO;

	if (!layout)
		return NULL;
	if (!fstat(fd, &file) && file.st_size >= (off_t)sizeof(*layout->area)) {
		layout->bytes = (u64)file.st_size;
		layout->area = mmap(NULL, sizeof(*layout->area), PROT_READ,
				    MAP_SHARED, fd, 0);
		if (layout->area != MAP_FAILED) {
			rc = homa_streams_lay(layout);
			munmap(layout->area, sizeof(*layout->area));
		}
	}
	if (!rc)
		return layout;
	free(layout);
	return NULL;
}

struct homa_stream_lent *homa_stream_borrow(int fd, u32 slot)
{
	struct homa_streams *layout = read_layout(fd);
	struct homa_stream_lent *lent = calloc(1, sizeof(*lent));
	bool ok = false;

	if (layout && lent && slot < layout->num_slots) {
		const u8 *begin = (const u8 *)layout->area;
		u64 slots = (u64)((const u8 *)layout->slots - begin);
		u64 firsts = (u64)(layout->firsts - begin);
		u64 spans = (u64)(layout->spans - begin);

		lent->area = layout->id;
		lent->slot = slot;
		ok = map_piece(lent, PIECE_SLOT, fd,
			       slots + slot * sizeof(*layout->slots),
			       sizeof(*layout->slots)) &&
		     map_piece(lent, PIECE_FIRSTS, fd,
			       firsts + slot * 2 * (u64)HOMA_STREAM_FIRST,
			       2 * (u64)HOMA_STREAM_FIRST) &&
		     map_piece(lent, PIECE_SPANS, fd,
			       spans + slot * 2 * (u64)HOMA_STREAM_SPAN,
			       2 * (u64)HOMA_STREAM_SPAN);
	}
	free(layout);
	if (ok)
		return lent;
	homa_stream_give_back(lent);
	return NULL;
}

struct homa_stream_slot *homa_stream_lent_slot(const struct homa_stream_lent *lent)
{
	return piece(lent, PIECE_SLOT);
}

void homa_stream_lent_buffers(const struct homa_stream_lent *lent, u8 **firsts,
			      u8 **spans)
{
	*firsts = piece(lent, PIECE_FIRSTS);
	*spans = piece(lent, PIECE_SPANS);
}
