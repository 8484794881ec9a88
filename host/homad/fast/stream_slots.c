// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The free slots of an attachment for streams. A slot whose stream has ended keeps its
 * buffers' memory for a while (it is *warm*) and is the first to be used again; then the
 * slow path takes the memory back. Cold slots are a stack that grows from the begin of
 * @free, warm ones a stack that grows from its end.
 */
#include "fast.h"
#include "stream_grow.h"
#include "streams.h"
#include "tcp_stream.h"

static bool is_warm(const struct homad_backing *b)
{
	return b->have[HOMAD_RX] > HOMA_STREAM_MIN_SHIFT ||
	       b->have[HOMAD_TX] > HOMA_STREAM_MIN_SHIFT;
}

void homad_slot_put(struct homad_streams *s, u32 slot)
{
	const struct homad_backing *b = &s->backing[slot];

	/* The slow path changes the slot's memory; homad_streams_grown() frees the slot when that
	 * is done. */
	if (unlikely(b->busy))
		return;
	if (unlikely(is_warm(b)))
		s->free[s->num_slots - ++s->num_warm] = slot;
	else
		s->free[s->num_free - s->num_warm] = slot;
	s->num_free++;
}

u32 homad_slot_take(struct homad_streams *s)
{
	s->num_free--;
	if (likely(!s->num_warm))
		return s->free[s->num_free];
	s->num_warm--;
	s->warm_least = homa_min_u32(s->warm_least, s->num_warm);
	return s->free[s->num_slots - 1 - s->num_warm];
}
