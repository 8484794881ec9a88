/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whether a packet may leave at once, so that who sends one needs no lock to find out.
 */
#ifndef HOMA_LINK_OPEN_H
#define HOMA_LINK_OPEN_H

#include "homa_link.h"

/* Sets @link->open after something has changed that it follows from; link locked. */
static inline void homa_link_look(struct homa_link *link)
{
	bool open = !homa_sched_first(&link->sched) &&
		    link->ctrl_head == link->ctrl_tail && !link->sched.by_room;

	/* Most changes change nothing here, and other CPUs keep the line. */
	if (open != link->open)
		HOMA_WRITE_ONCE(link->open, open);
}

#endif
