/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How long a stream waits for a silent peer, as the application wants it. */
#ifndef HOMA_STREAM_PATIENCE_H
#define HOMA_STREAM_PATIENCE_H

#include "shm_stream.h"

/** struct homa_patience - values by enum homa_stream_patience of abi/shm_stream.h
 * Written by: the thread that has the lock of what it is part of.
 * @value: The values; units and bounds are those of the ABI.
 * @set: Bit n is set if the application has set @value[n]; else it is homad's own. */
struct homa_patience {
	uint32_t value[HOMA_STREAM_PATIENCES];
	uint32_t set;
};

static inline void homa_patience_set(struct homa_patience *patience,
				     unsigned int which, uint32_t value)
{
	patience->value[which] = value;
	patience->set |= 1u << which;
}

/** homa_patience_possible() - is @patience, which another program has told, within bounds? */
static inline bool homa_patience_possible(const struct homa_patience *patience)
{
	unsigned int which;

	for (which = 0; which < HOMA_STREAM_PATIENCES; which++)
		if ((patience->set >> which & 1 ||
		     which == HOMA_STREAM_PATIENCE_USER) &&
		    !homa_stream_may_wait(which, patience->value[which]))
			return false;
	return !(patience->set >> HOMA_STREAM_PATIENCES);
}

#endif
