// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The agenda: a timing wheel of two levels and a list for what is far away.
 *
 * Nearly everything in a data centre happens within a few microseconds of its
 * cause. So the near wheel has slots of half a nanosecond, fewer events than
 * slots in use, and its lists, which are kept sorted, rarely hold more than
 * one event: adding and taking are a few instructions and hardly a comparison
 * that could be mispredicted. A bitmap finds the next slot in use; it is
 * searched word by word, which is long only when little happens.
 *
 * Time is cut into blocks (2.1 us) and eras (8.6 ms). The near wheel holds the
 * current block and the next one, the middle wheel one unsorted list for each
 * later block of the current era and the next one, the far list the rest.
 * When a block is entered the list of the block after it moves to the near
 * wheel; when an era is entered the far list is searched for what lies in the
 * era after it. Thus an event less than a block away goes straight to its
 * place, and one that is cancelled early, as most timers are, is never sorted.
 *
 * Order among equals: an event added directly is the latest of its instant, so
 * it goes behind its equals; one that comes from another level is put in place
 * by its number.
 *
 * A slot's bit may outlive its last event (cancelling does not look for it);
 * who finds such a bit clears it.
 */
#include <stdlib.h>

#include "event.h"
#include "homa_plat.h"

#define SLOT_SHIFT 9		      /* 0.512 ns */
#define BLOCK_SHIFT (SLOT_SHIFT + 12) /* 2.1 us */
#define ERA_SHIFT (BLOCK_SHIFT + 12)  /* 8.6 ms */
/* number of slots of a wheel: two blocks, or two eras */
#define SLOTS 8192u
#define WORDS (SLOTS / 64)
#define NO_SLOT SLOTS

struct wheel {
	/* A bit for each slot, 1 if it has events. */
	u64 bits[WORDS];
	/* The events of each slot, a list. */
	struct sim_event *slot[SLOTS];
};

/**
 * struct sim_agenda - events that will happen
 * @cursor: absolute number of the near slot from which an event was taken last; no event is
 *	before that slot.
 * @near_end: absolute number of the first slot that the near wheel does not hold.
 * @block: absolute number of the block that @cursor is in.
 * @seq: number of events that were added, which orders those of one time.
 * @far: list of the events that neither wheel holds.
 * @near: wheel of slots, for the current block and the next.
 * @mid: wheel of blocks, for the current era and the next.
 */
struct sim_agenda {
	u64 cursor;
	u64 near_end;
	u64 block;
	u64 seq;
	struct sim_event *far;
	struct wheel near;
	struct wheel mid;
};

struct sim_agenda *sim_agenda_new(void)
{
	struct sim_agenda *agenda = calloc(1, sizeof(*agenda));

	if (agenda)
		agenda->near_end = SLOTS;
	return agenda;
}

void sim_agenda_free(struct sim_agenda *agenda)
{
	free(agenda);
}

/* ---- lists and bitmaps ---- */

static inline void event_link(struct sim_event *ev, struct sim_event **link)
{
	ev->next = *link;
	ev->link = link;
	if (ev->next)
		ev->next->link = &ev->next;
	*link = ev;
}

static inline void event_unlink(struct sim_event *ev)
{
	*ev->link = ev->next;
	if (ev->next)
		ev->next->link = ev->link;
	ev->link = NULL;
}

static inline void wheel_mark(struct wheel *w, u32 slot)
{
	w->bits[slot / 64] |= 1ull << slot % 64;
}

static inline void wheel_clear(struct wheel *w, u32 slot)
{
	w->bits[slot / 64] &= ~(1ull << slot % 64);
}

/* Returns the first slot that holds an event, from @slot on and around the wheel, or
 * NO_SLOT. */
static inline u32 wheel_next(struct wheel *w, u32 slot)
{
	u32 word = slot / 64, i = 0;
	u64 here = w->bits[word] & ~0ull << slot % 64;

	for (;;) {
		while (unlikely(!here)) {
			if (i++ == WORDS)
				return NO_SLOT;
			word = (word + 1) % WORDS;
			here = w->bits[word];
		}
		slot = word * 64 + (u32)__builtin_ctzll(here);
		if (likely(w->slot[slot] != NULL))
			return slot;
		wheel_clear(w, slot);
		here &= here - 1;
	}
}

/* ---- placing ---- */

/*
 * Returns the list of the slot of time @at. After a take that found no event until some
 * time, an event may be added before the cursor: it shares the cursor's slot, whose list is
 * sorted like any other.
 */
static inline struct sim_event **agenda_slot(struct sim_agenda *a, u64 at)
{
	u64 number = at >> SLOT_SHIFT;
	u32 slot;

	if (unlikely(number < a->cursor))
		number = a->cursor;
	slot = number % SLOTS;
	wheel_mark(&a->near, slot);
	return &a->near.slot[slot];
}

/* Moves an event from another level to where it belongs now. */
static void agenda_place(struct sim_agenda *a, struct sim_event *ev)
{
	u64 block = ev->at >> BLOCK_SHIFT;
	struct sim_event **link;

	if (block <= a->block + 1) {
		link = agenda_slot(a, ev->at);
		while (*link && ((*link)->at < ev->at ||
				 ((*link)->at == ev->at && (*link)->seq < ev->seq)))
			link = &(*link)->next;
	} else if (ev->at >> ERA_SHIFT <= (a->block >> (ERA_SHIFT - BLOCK_SHIFT)) + 1) {
		wheel_mark(&a->mid, block % SLOTS);
		link = &a->mid.slot[block % SLOTS];
	} else {
		link = &a->far;
	}
	event_link(ev, link);
}

void sim_event_add(struct sim_agenda *agenda, struct sim_event *ev, uint64_t at)
{
	struct sim_event **link, *other;

	ev->at = at;
	ev->seq = ++agenda->seq;
	if (unlikely(at >> SLOT_SHIFT >= agenda->near_end)) {
		agenda_place(agenda, ev);
		return;
	}
	link = agenda_slot(agenda, at);
	for (other = *link; other && other->at <= at; other = other->next)
		link = &other->next;
	event_link(ev, link);
}

void sim_event_cancel(struct sim_agenda *agenda, struct sim_event *ev)
{
	(void)agenda;
	if (ev->link)
		event_unlink(ev);
}

/* ---- time goes on ---- */

static void agenda_spread(struct sim_agenda *a, struct sim_event **list)
{
	struct sim_event *ev = *list;

	*list = NULL;
	while (ev) {
		struct sim_event *next = ev->next;

		agenda_place(a, ev);
		ev = next;
	}
}

/*
 * Moves the cursor to @block; no event lies between the current block and @block. Blocks
 * that are skipped have empty lists.
 */
static void agenda_enter(struct sim_agenda *a, u64 block)
{
	const u32 shift = ERA_SHIFT - BLOCK_SHIFT;
	bool new_era = block >> shift != a->block >> shift;
	u64 i;

	a->block = block;
	a->cursor = block << (BLOCK_SHIFT - SLOT_SHIFT);
	a->near_end = a->cursor + SLOTS;
	if (new_era)
		agenda_spread(a, &a->far);
	for (i = block; i <= block + 1; i++) {
		u32 slot = i % SLOTS;

		if (a->mid.slot[slot])
			agenda_spread(a, &a->mid.slot[slot]);
	}
}

static u64 agenda_first_far(const struct sim_agenda *a)
{
	u64 first = SIM_NEVER;
	struct sim_event *ev;

	for (ev = a->far; ev; ev = ev->next)
		if (ev->at < first)
			first = ev->at;
	return first;
}

/* Goes to the first block that has an event when the near wheel is empty; false: there is
 * none, or it is after @until. */
static bool agenda_jump(struct sim_agenda *a, u64 until)
{
	u32 slot = wheel_next(&a->mid, (a->block + 2) % SLOTS);
	u64 block;

	if (slot != NO_SLOT) {
		block = a->mid.slot[slot]->at >> BLOCK_SHIFT;
	} else if (a->far) {
		block = agenda_first_far(a) >> BLOCK_SHIFT;
	} else {
		return false;
	}
	if (block << BLOCK_SHIFT > until)
		return false;
	agenda_enter(a, block);
	return true;
}

/*
 * Events and their owners are strewn over more memory than the nearest caches have. So the
 * event after the next is prefetched now, and so is @soon of the next event, which was
 * itself prefetched one event ago.
 */
static inline void agenda_look_ahead(const struct wheel *w, u32 slot)
{
	struct sim_event *const *base = &w->slot[slot / 64 * 64];
	u64 here = w->bits[slot / 64] & ~1ull << slot % 64;
	const struct sim_event *ev;

	if (!here)
		return;
	ev = base[__builtin_ctzll(here)];
	if (likely(ev != NULL)) {
		homa_prefetch(ev->soon);
		homa_prefetch((const char *)((uintptr_t)ev->soon + 64));
	}
	here &= here - 1;
	if (!here)
		return;
	ev = base[__builtin_ctzll(here)];
	homa_prefetch(ev);
	homa_prefetch((const char *)ev + 64);
}

struct sim_event *sim_event_take(struct sim_agenda *agenda, uint64_t until)
{
	struct wheel *w = &agenda->near;
	struct sim_event *ev, *next;
	u64 number;
	u32 slot;

	while (unlikely((slot = wheel_next(w, agenda->cursor % SLOTS)) == NO_SLOT))
		if (!agenda_jump(agenda, until))
			return NULL;
	ev = w->slot[slot];
	if (ev->at > until)
		return NULL;
	next = ev->next;
	ev->link = NULL;
	w->slot[slot] = next;
	if (next)
		next->link = &w->slot[slot];
	else
		wheel_clear(w, slot);
	number = agenda->cursor + (slot - agenda->cursor) % SLOTS;
	if (unlikely(number >= agenda->near_end - SLOTS / 2))
		agenda_enter(agenda, agenda->block + 1);
	agenda->cursor = number;
	agenda_look_ahead(w, slot);
	return ev;
}
