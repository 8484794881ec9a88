// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The agenda: a timing wheel of two levels and a list for what is far away.
 *
 * Nearly everything in a data centre happens within a few microseconds of its
 * cause. So the near wheel has slots of about a nanosecond, fewer events than
 * slots in use, and its lists, which are kept sorted, rarely hold more than
 * one event: adding and taking are a few instructions and no comparison that
 * could be mispredicted log n times. A bitmap and a bitmap of its words find
 * the next slot in use.
 *
 * Time is cut into blocks (4.2 us) and eras (17 ms). The near wheel holds the
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

#define SLOT_SHIFT 10			/* 1.024 ns */
#define BLOCK_SHIFT (SLOT_SHIFT + 12)	/* 4.19 us */
#define ERA_SHIFT (BLOCK_SHIFT + 12)	/* 17.2 ms */
#define SLOTS 8192u			/* two blocks, two eras */
#define WORDS (SLOTS / 64)
#define NO_SLOT SLOTS

struct wheel {
	u64 summary[WORDS / 64];
	u64 bits[WORDS];
	struct sim_event *slot[SLOTS];
};

/**
 * struct sim_agenda - what is to happen
 * @cursor: absolute number of the near slot that was last taken from; nothing
 *	is before it.
 * @block: of the cursor.
 */
struct sim_agenda {
	u64 cursor;
	u64 block;
	u64 seq;
	struct sim_event *far;
	struct wheel near;
	struct wheel mid;
};

struct sim_agenda *sim_agenda_new(void)
{
	return calloc(1, sizeof(struct sim_agenda));
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
	w->summary[slot / 4096] |= 1ull << slot / 64 % 64;
}

static inline void wheel_clear(struct wheel *w, u32 slot)
{
	u32 word = slot / 64;

	w->bits[word] &= ~(1ull << slot % 64);
	if (!w->bits[word])
		w->summary[word / 64] &= ~(1ull << word % 64);
}

/* The first word at or behind @word, in a circle, with a bit set. */
static u32 wheel_next_word(const struct wheel *w, u32 word)
{
	u32 half = word / 64;
	u64 here = w->summary[half] & ~0ull << word % 64;

	if (here)
		return half * 64 + (u32)__builtin_ctzll(here);
	if (w->summary[!half])
		return !half * 64 + (u32)__builtin_ctzll(w->summary[!half]);
	if (w->summary[half])
		return half * 64 + (u32)__builtin_ctzll(w->summary[half]);
	return WORDS;
}

/* The first slot at or behind @slot, in a circle, that holds an event. */
static inline u32 wheel_next(struct wheel *w, u32 slot)
{
	u32 word = slot / 64;
	u64 here = w->bits[word] & ~0ull << slot % 64;

	for (;;) {
		if (!here) {
			word = wheel_next_word(w, (word + 1) % WORDS);
			if (word == WORDS)
				return NO_SLOT;
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
 * Whoever asked for events until some time and got none may add one before the
 * cursor; it shares the cursor's slot, whose list is sorted like any other.
 */
static inline void agenda_add_near(struct sim_agenda *a, struct sim_event *ev)
{
	u64 number = ev->at >> SLOT_SHIFT;
	struct sim_event **link, *other;
	u32 slot;

	if (unlikely(number < a->cursor))
		number = a->cursor;
	slot = number % SLOTS;
	link = &a->near.slot[slot];
	other = *link;
	if (!other)
		wheel_mark(&a->near, slot);
	while (other && (other->at < ev->at ||
			 (other->at == ev->at && other->seq < ev->seq))) {
		link = &other->next;
		other = *link;
	}
	event_link(ev, link);
}

static void agenda_place(struct sim_agenda *a, struct sim_event *ev)
{
	u64 block = ev->at >> BLOCK_SHIFT;
	u32 slot = block % SLOTS;

	if (block <= a->block + 1) {
		agenda_add_near(a, ev);
	} else if (ev->at >> ERA_SHIFT <=
		   (a->block >> (ERA_SHIFT - BLOCK_SHIFT)) + 1) {
		wheel_mark(&a->mid, slot);
		event_link(ev, &a->mid.slot[slot]);
	} else {
		event_link(ev, &a->far);
	}
}

void sim_event_add(struct sim_agenda *agenda, struct sim_event *ev, uint64_t at)
{
	ev->at = at;
	ev->seq = ++agenda->seq;
	if (likely(at >> BLOCK_SHIFT <= agenda->block + 1))
		agenda_add_near(agenda, ev);
	else
		agenda_place(agenda, ev);
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
 * Enter @block; nothing lies between the current one and it. Blocks that are
 * skipped have empty lists.
 */
static void agenda_enter(struct sim_agenda *a, u64 block)
{
	const u32 shift = ERA_SHIFT - BLOCK_SHIFT;
	bool new_era = block >> shift != a->block >> shift;
	u64 i;

	a->block = block;
	a->cursor = block << (BLOCK_SHIFT - SLOT_SHIFT);
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

/* Nothing is near: go to the first block that has something, unless it is late. */
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

struct sim_event *sim_event_take(struct sim_agenda *agenda, uint64_t until)
{
	struct wheel *w = &agenda->near;
	struct sim_event *ev;
	u64 number;
	u32 slot;

	while ((slot = wheel_next(w, agenda->cursor % SLOTS)) == NO_SLOT)
		if (!agenda_jump(agenda, until))
			return NULL;
	ev = w->slot[slot];
	if (ev->at > until)
		return NULL;
	event_unlink(ev);
	if (!w->slot[slot])
		wheel_clear(w, slot);
	number = agenda->cursor + (slot - agenda->cursor) % SLOTS;
	if (unlikely(number >> (BLOCK_SHIFT - SLOT_SHIFT) != agenda->block))
		agenda_enter(agenda, number >> (BLOCK_SHIFT - SLOT_SHIFT));
	agenda->cursor = number;
	return ev;
}
