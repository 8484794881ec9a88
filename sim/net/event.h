/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Virtual time and what happens in it. Time is an integer number of
 * picoseconds: a byte takes 800 of them at 10 Gbit/s, 80 at 100 and 20 at 400,
 * so that no transmission time is ever rounded; 2^64 are 213 days. The engine
 * sees nanoseconds (sim_ns()).
 *
 * Events are intrusive: whatever can happen owns its struct sim_event and
 * nothing is allocated here. Two events of one instant happen in the order in
 * which they were added, so a run is a function of its configuration and seed.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_NS 1000ull
#define SIM_US 1000000ull
#define SIM_MS 1000000000ull
#define SIM_S 1000000000000ull
#define SIM_NEVER UINT64_MAX

struct sim;
struct sim_event;
struct sim_agenda;

/** sim_fn - what happens; @ev is not pending any more and may be added again */
typedef void (*sim_fn)(struct sim *sim, struct sim_event *ev);

/**
 * struct sim_event - something that will happen; zeroed before first use
 *
 * The owner writes @fn and @soon, event.c the other fields.
 * @next: the next event of a list.
 * @link: pointer that points to this event; NULL: it is not pending.
 * @at: time at which it will happen, ps.
 * @seq: number that orders events of one time.
 * @fn: function that is called then.
 * @soon: memory that @fn will want besides the event, or NULL; it is only prefetched.
 */
struct sim_event {
	struct sim_event *next, **link;
	uint64_t at;
	uint64_t seq;
	sim_fn fn;
	const void *soon;
};

static inline uint64_t sim_ns(uint64_t ps)
{
	return ps / SIM_NS;
}

static inline bool sim_event_pending(const struct sim_event *ev)
{
	return ev->link != NULL;
}

struct sim_agenda *sim_agenda_new(void);
void sim_agenda_free(struct sim_agenda *agenda);
/** sim_event_add() - let @ev, which is not pending, happen at @at, ps; @at is not before the
 *  time of the event that was taken last */
void sim_event_add(struct sim_agenda *agenda, struct sim_event *ev, uint64_t at);
/** sim_event_cancel() - @ev shall not happen; harmless if it is not pending */
void sim_event_cancel(struct sim_agenda *agenda, struct sim_event *ev);
/** sim_event_take() - remove and return the next one at or before @until, or NULL */
struct sim_event *sim_event_take(struct sim_agenda *agenda, uint64_t until);

#endif
