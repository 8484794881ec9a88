// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Entries of the kernel's set whose events are for us and not for the program. Each is marked by
 * the address of a spot, so that an event leads to its watch at once, however many there are. Spots
 * stay where they are until the set ends: an event may come after its watch has ended, and must not
 * be taken for one of the program's.
 */
#include <stdlib.h>
#include "tcp_ready.h"

/* The number of spots of a set's first chunk; each further one has as many as all before. */
#define FIRST_SPOTS 8u

/** struct homa_pl_spot - a mark in the kernel's set */
struct homa_pl_spot {
	/* The watch whose events have the mark; NULL if none has. */
	struct homa_pl_watch *watch;
	/* The next spot that is free. */
	struct homa_pl_spot *next_free;
};

/** struct homa_pl_spots - spots of a set that lie together */
struct homa_pl_spots {
	/* The next chunk, which is smaller; NULL: this is the first one that the set got. */
	struct homa_pl_spots *next;
	/* The number of spots. */
	unsigned int num;
	/* The spots. */
	struct homa_pl_spot spot[];
};

static bool grow(struct homa_pl_set *set)
{
	unsigned int num = set->spots ? 2 * set->spots->num : FIRST_SPOTS, i;
	struct homa_pl_spots *more =
		calloc(1, sizeof(*more) + num * sizeof(more->spot[0]));

	if (!more)
		return false;
	more->num = num;
	for (i = 0; i < num; i++) {
		more->spot[i].next_free = set->free_spot;
		set->free_spot = &more->spot[i];
	}
	more->next = set->spots;
	__atomic_store_n(&set->spots, more, __ATOMIC_RELEASE);
	return true;
}

void *homa_pl_spot_take(struct homa_pl_watch *w)
{
	struct homa_pl_set *set = w->set;

	if (w->spot || (!set->free_spot && !grow(set)))
		return w->spot;
	w->spot = set->free_spot;
	set->free_spot = w->spot->next_free;
	w->spot->watch = w;
	return w->spot;
}

void homa_pl_spot_leave(struct homa_pl_watch *w)
{
	if (HOMA_PL_LIKELY(!w->spot))
		return;
	w->spot->watch = NULL;
	w->spot->next_free = w->set->free_spot;
	w->set->free_spot = w->spot;
	w->spot = NULL;
}

bool homa_pl_spot_is(const struct homa_pl_set *set, const void *mark,
		     struct homa_pl_watch **w)
{
	const struct homa_pl_spots *chunk;

	for (chunk = set->spots; chunk; chunk = chunk->next) {
		uintptr_t at = (uintptr_t)mark - (uintptr_t)chunk->spot;

		if (at >= chunk->num * sizeof(chunk->spot[0]))
			continue;
		*w = chunk->spot[at / sizeof(chunk->spot[0])].watch;
		return true;
	}
	return false;
}

void homa_pl_spots_free(struct homa_pl_set *set)
{
	struct homa_pl_spots *chunk;

	while ((chunk = set->spots)) {
		set->spots = chunk->next;
		free(chunk);
	}
}
