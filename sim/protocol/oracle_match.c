// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Centralised SRPT: take all messages in the order of what is left of them,
 * and match each if its sender and its receiver are both still free. That is
 * the greedy matching by a common order, and there is exactly one matching
 * without a "blocking" message, one that waits although at each of its two
 * ends there is nothing or something longer. So it need not be built anew:
 * any way of removing blocking messages leads to it.
 *
 * Only two kinds of event can make a message blocking. One arrives: if it is
 * shorter than what both of its ends do, it displaces that. One is complete or
 * displaced: the other end of it becomes free, and takes the shortest waiting
 * message whose other end is free or does something longer, which displaces
 * that, and so on. While time passes what is matched only gets shorter, and
 * what waits stays what it is, so in between nothing changes. Each step puts
 * a message in and throws out only longer ones, so it ends.
 *
 * Cost: an event touches the sides along one or two such chains, of two to
 * four sides as a rule. At each, the waiting messages are looked at from the
 * shortest until one fits, and an insertion or removal is a binary search and
 * a move of what is shorter. With w messages waiting at a side that is O(w) at
 * worst, but w is some tens below saturation, and independent of the number of
 * hosts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_match.h"

int oracle_match_init(struct oracle_match *match, u32 hosts)
{
	memset(match, 0, sizeof(*match));
	match->num_sides = 2 * hosts;
	match->sides = calloc(match->num_sides, sizeof(*match->sides));
	match->freed = calloc(match->num_sides, sizeof(*match->freed));
	return match->sides && match->freed ? 0 : -ENOMEM;
}

void oracle_match_free(struct oracle_match *match)
{
	u32 i;

	for (i = 0; match->sides && i < match->num_sides; i++)
		free(match->sides[i].waiting);
	free(match->sides);
	free(match->freed);
	match->sides = NULL;
	match->freed = NULL;
}

/* ---- what waits at a side ---- */

/* Makes room for one more waiting job, because the current job may have to wait later. */
static bool side_room(struct oracle_side *side)
{
	struct oracle_entry *more;
	u32 cap;

	if (side->jobs < side->cap)
		return true;
	cap = side->cap ? 2 * side->cap : 16;
	more = realloc(side->waiting, cap * sizeof(*more));
	if (!more)
		return false;
	side->waiting = more;
	side->cap = cap;
	return true;
}

/* Returns the place of (left, serial) in a list that begins with the longest. */
static u32 side_place(const struct oracle_side *side, u64 left, u64 serial)
{
	u32 low = 0, high = side->num;

	while (low < high) {
		u32 mid = low + (high - low) / 2;
		const struct oracle_entry *e = &side->waiting[mid];

		if (e->left > left || (e->left == left && e->job->serial > serial))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void side_insert(struct oracle_side *side, struct oracle_job *job)
{
	u32 place = side_place(side, job->left, job->serial);

	memmove(&side->waiting[place + 1], &side->waiting[place],
		(side->num - place) * sizeof(*side->waiting));
	side->waiting[place].left = job->left;
	side->waiting[place].job = job;
	side->num++;
}

static void side_remove(struct oracle_side *side, const struct oracle_job *job)
{
	u32 place = side_place(side, job->left, job->serial);

	side->num--;
	memmove(&side->waiting[place], &side->waiting[place + 1],
		(side->num - place) * sizeof(*side->waiting));
}

/* ---- matching ---- */

static u64 match_left(const struct oracle_match *match, const struct oracle_job *job)
{
	return job->left - (job->matched ? match->now - job->since : 0);
}

/* Does @side prefer @job, which waits, to its current job? */
static bool match_prefers(const struct oracle_match *match,
			  const struct oracle_side *side, const struct oracle_job *job)
{
	u64 left;

	if (!side->current)
		return true;
	left = match_left(match, side->current);
	return job->left < left ||
	       (job->left == left && job->serial < side->current->serial);
}

static void match_freed(struct oracle_match *match, u32 side)
{
	match->sides[side].current = NULL;
	if (match->sides[side].queued)
		return;
	match->sides[side].queued = true;
	match->freed[match->num_freed++] = side;
}

/* Makes a side free by stopping its current job, which waits again; that job's other side
 * is free then, too. */
static void match_displace(struct oracle_match *match, u32 side)
{
	struct oracle_job *job = match->sides[side].current;

	if (!job)
		return;
	job->left = match_left(match, job);
	job->matched = false;
	match_freed(match, job->tx);
	match_freed(match, job->rx);
	side_insert(&match->sides[job->tx], job);
	side_insert(&match->sides[job->rx], job);
	match->stopped(match->arg, job);
}

/* Starts @job, which is in no waiting list, on both its sides. */
static void match_start(struct oracle_match *match, struct oracle_job *job)
{
	match_displace(match, job->tx);
	match_displace(match, job->rx);
	match->sides[job->tx].current = job;
	match->sides[job->rx].current = job;
	job->matched = true;
	job->since = match->now;
	match->started(match->arg, job);
}

static void match_side(struct oracle_match *match, u32 index)
{
	struct oracle_side *side = &match->sides[index];
	u32 i;

	for (i = side->num; i-- > 0;) {
		struct oracle_job *job = side->waiting[i].job;
		u32 other = job->tx == index ? job->rx : job->tx;

		match->steps++;
		/* The side may have got a job since it was put into the list of free
		 * sides. */
		if (!match_prefers(match, side, job))
			return;
		if (!match_prefers(match, &match->sides[other], job))
			continue;
		side_remove(&match->sides[job->tx], job);
		side_remove(&match->sides[job->rx], job);
		match_start(match, job);
		return;
	}
}

static void match_settle(struct oracle_match *match)
{
	while (match->num_freed) {
		u32 index = match->freed[--match->num_freed];

		match->sides[index].queued = false;
		match_side(match, index);
	}
}

int oracle_match_add(struct oracle_match *match, struct oracle_job *job, u64 now)
{
	struct oracle_side *tx = &match->sides[job->tx], *rx = &match->sides[job->rx];

	match->now = now;
	if (!side_room(tx) || !side_room(rx))
		return -ENOMEM;
	tx->jobs++;
	rx->jobs++;
	job->matched = false;
	if (match_prefers(match, tx, job) && match_prefers(match, rx, job)) {
		match_start(match, job);
		match_settle(match);
	} else {
		side_insert(tx, job);
		side_insert(rx, job);
	}
	return 0;
}

void oracle_match_done(struct oracle_match *match, struct oracle_job *job, u64 now)
{
	match->now = now;
	job->matched = false;
	job->left = 0;
	match->sides[job->tx].jobs--;
	match->sides[job->rx].jobs--;
	match_freed(match, job->tx);
	match_freed(match, job->rx);
	match_settle(match);
}
