/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * In place of homa_list.h, for a proof about an array of lists, since pointers into such an array
 * are too much for the solver and numbers are not: a node knows the number of its list, and a
 * head knows nothing. The first node of a list is any of it. That homa_list.h does the same, but
 * for the order, is not proved.
 */
#ifndef CBMC_BAG_H
#define CBMC_BAG_H

#define HOMA_LIST_H /* not the engine's */

#include "proof.h"

struct homa_list {
	/* A node: the number of its list, from 1 on; 0: it is in none. One byte, so that the
	 * difference of two heads is no division. */
	u8 in;
};

/* The proof knows its heads, which have numbers from 1 on, and its nodes. */
static u8 bag_number(const struct homa_list *head);
/* Any node of list @number, or NULL if it has none. */
static struct homa_list *bag_any(u8 number);

static inline void homa_list_init(struct homa_list *node)
{
	node->in = 0;
}

static inline bool homa_list_linked(const struct homa_list *node)
{
	return node->in;
}

static inline bool homa_list_empty(const struct homa_list *head)
{
	return !bag_any(bag_number(head));
}

static inline void homa_list_add_tail(struct homa_list *head,
				      struct homa_list *node)
{
	prove(!node->in);
	node->in = bag_number(head);
}

static inline void homa_list_del(struct homa_list *node)
{
	node->in = 0;
}

static inline struct homa_list *homa_list_first(const struct homa_list *head)
{
	return bag_any(bag_number(head));
}

#define homa_list_entry(ptr, type, member) homa_container_of(ptr, type, member)

#endif
