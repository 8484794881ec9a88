// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What acks say of bytes that came out of order (SACK, RFC 2018): what the
 * receiver puts into them, and what follows of it for the sender. Bytes before
 * the highest of them that no ack has spoken of are lost, as nothing overtakes
 * here; window_loss.c sends them again.
 */
#include <string.h>

#include "window.h"

u64 window_sack_highest(const struct window_flow *f)
{
	const struct window_ranges *r = &f->sacked;

	return r->num ? r->at[r->num - 1].to : f->snd_una;
}

/* Returns the number of bytes in [from, to) that no ack has spoken of. */
static u64 window_unsacked(const struct window_flow *f, u64 from, u64 to)
{
	u64 bytes = to > from ? to - from : 0;
	u32 i;

	for (i = 0; i < f->sacked.num; i++) {
		u64 a = f->sacked.at[i].from, b = f->sacked.at[i].to;

		a = a > from ? a : from;
		b = b < to ? b : to;
		if (b > a)
			bytes -= b - a;
	}
	return bytes;
}

/* Returns the first byte from @at on that no ack has spoken of. */
static u64 window_first_unsacked(const struct window_flow *f, u64 at)
{
	u32 i;

	for (i = 0; i < f->sacked.num; i++)
		if (at >= f->sacked.at[i].from && at < f->sacked.at[i].to)
			at = f->sacked.at[i].to;
	return at;
}

u64 window_sack_pipe(const struct window_flow *f)
{
	u64 from = f->high_rxt > f->snd_una ? f->high_rxt : f->snd_una;
	u64 skip_from = from > f->skip_from ? from : f->skip_from;

	return window_unsacked(f, f->snd_una, f->snd_max) -
	       window_unsacked(f, from, f->lost_to) +
	       window_unsacked(f, skip_from,
			       f->skip_to < f->lost_to ? f->skip_to : f->lost_to);
}

/* Returns @at, or the end of what was sent again and is under way if it is in that. */
static u64 window_skip(const struct window_flow *f, u64 at)
{
	return at >= f->skip_from && at < f->skip_to ? f->skip_to : at;
}

u64 window_sack_come(const struct window_flow *f)
{
	return f->snd_max - window_unsacked(f, f->snd_una, f->snd_max);
}

bool window_sack_hole(const struct window_flow *f, u64 *from, u64 *to)
{
	u64 at = window_skip(f, f->high_rxt > f->snd_una ? f->high_rxt : f->snd_una);
	u32 i;

	for (i = 0; i < f->sacked.num; i++) {
		const struct window_range *r = &f->sacked.at[i];

		if (at < r->from)
			break;
		if (at < r->to)
			at = window_skip(f, r->to);
	}
	if (at >= f->lost_to)
		return false;
	*from = at;
	*to = i < f->sacked.num && f->sacked.at[i].from < f->lost_to ?
		      f->sacked.at[i].from :
		      f->lost_to;
	if (at < f->skip_from && *to > f->skip_from && f->skip_to > f->skip_from)
		*to = f->skip_from;
	return true;
}

void window_sack_blocks(const struct window_flow *f, u64 latest, struct sim_pkt *pkt)
{
	struct window_range *block = (struct window_range *)(void *)pkt->hdr;
	u32 i = f->in.num, n = 0;

	/* The range of the segment that came last, and those below it. */
	while (i > 0 && f->in.at[i - 1].from > latest)
		i--;
	for (; i > 0 && n < WINDOW_SACK_BLOCKS; i--)
		memcpy(&block[n++], &f->in.at[i - 1], sizeof(*block));
	pkt->hdr_len = (u8)(n * sizeof(*block));
}

void window_sack_take(struct window_flow *f, const struct sim_pkt *pkt)
{
	struct window_range block;
	u64 first;
	u32 at;

	for (at = 0; at < pkt->hdr_len; at += sizeof(block)) {
		memcpy(&block, pkt->hdr + at, sizeof(block));
		if (block.from < f->snd_una || block.to <= block.from)
			continue;
		/* Something that was sent again has come, and what was sent again before it
		 * has not. */
		first = window_first_unsacked(f, block.from);
		if (first >= block.to) {
			continue;
		} else if (first >= f->skip_from && first < f->skip_to) {
			f->skip_from = first;
		} else if (first < f->high_rxt) {
			f->overtaken = true;
			f->come = f->come > first ? f->come : first;
		}
		window_ranges_add(&f->sacked, block.from, block.to);
	}
}
