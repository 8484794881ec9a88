/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Intrusive doubly linked list: a ring through a head. A node that is in no
 * list points to itself, so that leaving a list twice is harmless and "is it
 * queued?" needs no flag.
 *
 * Guarded by: the owner of the head, whose lock is held for all calls and for the nodes in the
 * list.
 */
#ifndef HOMA_LIST_H
#define HOMA_LIST_H

#include "homa_plat.h"

/** struct homa_list - head of a list, or a node in one */
struct homa_list {
	/* The node after this one; of a head, the first node; the struct itself if there is
	 * none. */
	struct homa_list *next;
	/* The node before this one; of a head, the last node; the struct itself if there is
	 * none. */
	struct homa_list *prev;
};

/** homa_list_init() - make a head empty, or a node belong to no list */
static inline void homa_list_init(struct homa_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool homa_list_empty(const struct homa_list *head)
{
	return head->next == head;
}

/** homa_list_linked() - is this node in a list? (It was initialised.) */
static inline bool homa_list_linked(const struct homa_list *node)
{
	return node->next != node;
}

static inline void homa_list_link(struct homa_list *node,
				  struct homa_list *prev, struct homa_list *next)
{
	node->prev = prev;
	node->next = next;
	homa_publish(&prev->next, node);
	next->prev = node;
}

/** homa_list_add_head() - @node, which is in no list, becomes the first */
static inline void homa_list_add_head(struct homa_list *head,
				      struct homa_list *node)
{
	homa_list_link(node, head, head->next);
}

/** homa_list_add_tail() - @node, which is in no list, becomes the last */
static inline void homa_list_add_tail(struct homa_list *head,
				      struct homa_list *node)
{
	homa_list_link(node, head->prev, head);
}

/** homa_list_del() - leave the list, if in one; the node is initialised then */
static inline void homa_list_del(struct homa_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	homa_list_init(node);
}

/** homa_list_del_first() - remove @node, which is the first one of the list @head, and initialise
 *  it. homa_list_del() reads which node stands before it; here that is @head. */
static inline void homa_list_del_first(struct homa_list *head,
				       struct homa_list *node)
{
	struct homa_list *next = node->next;

	head->next = next;
	next->prev = head;
	homa_list_init(node);
}

/** homa_list_pop() - remove and return the first node, NULL if empty */
static inline struct homa_list *homa_list_pop(struct homa_list *head)
{
	struct homa_list *node = head->next;

	if (node == head)
		return NULL;
	homa_list_del_first(head, node);
	return node;
}

/** homa_list_splice_tail() - append all nodes of @from, which becomes empty */
static inline void homa_list_splice_tail(struct homa_list *head,
					 struct homa_list *from)
{
	if (homa_list_empty(from))
		return;
	from->next->prev = head->prev;
	from->prev->next = head;
	head->prev->next = from->next;
	head->prev = from->prev;
	homa_list_init(from);
}

#define homa_list_entry(ptr, type, member) homa_container_of(ptr, type, member)

/** homa_list_first() - the first node, NULL if empty */
static inline struct homa_list *homa_list_first(const struct homa_list *head)
{
	return head->next == head ? NULL : head->next;
}

/* Walks over the nodes of the list @head; @pos is a struct homa_list * and has the node.
 * The list must not change meanwhile. */
#define homa_list_for_each(pos, head) \
	for (pos = (head)->next; pos != (head); pos = pos->next)

/* The same, but @pos may be taken out of the list; @tmp is another struct homa_list *. */
#define homa_list_for_each_safe(pos, tmp, head)                  \
	for (pos = (head)->next, tmp = pos->next; pos != (head); \
	     pos = tmp, tmp = pos->next)

/*
 * A walk without the list's lock (HOMA_RCU): nodes may leave it and be used
 * anew meanwhile, so a walk can end anywhere or go in circles. It is short, and
 * what it does not find must be looked for again with the lock.
 */
#define HOMA_LIST_GLANCE 8u

#define homa_list_glance(pos, n, head)                     \
	for (n = 0, pos = HOMA_READ_ONCE((head)->next);    \
	     n < HOMA_LIST_GLANCE && pos && pos != (head); \
	     n++, pos = HOMA_READ_ONCE(pos->next))

#endif
