/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Work that is done a little later in a softirq, when others have had theirs; later.c. */
#ifndef HOMA_LATER_H
#define HOMA_LATER_H

#include <linux/llist.h>
#include <linux/types.h>

/* struct homak_later - a piece of work. Written by: any CPU, unless a field says otherwise. */
struct homak_later {
	/* Links it into the list of the CPU that queued it. */
	struct llist_node node;
	/* 1 if it is in a list, else 0. */
	int waits;
	/* What is to be done, with bottom halves off; constant. */
	void (*run)(struct homak_later *later);
};

/** homak_later_init() - makes @later a piece of work that is not queued. */
void homak_later_init(struct homak_later *later,
		      void (*run)(struct homak_later *later));
/** homak_later_queue() - has it run soon on this CPU, once, if it does not wait already. Bottom
 *  halves are off. */
void homak_later_queue(struct homak_later *later);
/** homak_later_wait() - waits until it is in no list; it may be running then, until the next grace
 *  period of RCU. Nobody queues it any more. Sleeps. */
void homak_later_wait(const struct homak_later *later);
int homak_laters_init(void);
void homak_laters_exit(void);

#endif
