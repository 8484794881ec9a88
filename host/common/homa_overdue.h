/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Timers that are due wait for packets that have arrived. A thread that had no processor for
 * some milliseconds finds more packets than it takes in a round, and what a timer would ask a
 * peer for is among them: with 64 applications on two cores nearly every response was asked for
 * and sent again. So a host runs its timers when it has looked at all packets. A flood cannot
 * keep them longer than HOMA_OVERDUE_PACKETS packets.
 *
 * Guarded by: the owner, one thread or who holds the host's lock.
 */
#ifndef HOMA_OVERDUE_H
#define HOMA_OVERDUE_H

#include "homa_plat.h"

/* The most packets for which timers wait, which is more than a receive ring holds. */
#define HOMA_OVERDUE_PACKETS 8192u

struct homa_overdue {
	/* The number of packets that were taken while timers were due. */
	u32 packets;
};

/**
 * homa_overdue_wait() - shall timers that are due wait for the next round?
 * @taken: how many packets this round has taken.
 * @more: true if there may be further ones.
 */
static inline bool homa_overdue_wait(struct homa_overdue *overdue, u32 taken,
				     bool more)
{
	overdue->packets += taken;
	if (more && overdue->packets < HOMA_OVERDUE_PACKETS)
		return true;
	overdue->packets = 0;
	return false;
}

#endif
