// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Where searches of TCP begin: a connection is opened, used a little, and closed. */
#include "tas_world.h"

/* Timers run at the ends of the wheel's ticks; so all times are, and where in a tick something
 * happened makes no difference. */
#define TICK (1ull << 20) /* ns */
#define LATE (480 * TICK) /* much less than TIME_WAIT lasts */

#define NETWORK [XP_LOSS] = 3, [XP_DUP] = 3, [XP_REORDER] = 3, [XP_LATE] = 2

static const struct xt_what orderly = { .bytes = { 1, 1 } };
static const struct xt_what one_way = { .bytes = { 2, 0 } };
static const struct xt_what simultaneous = { .bytes = { 1, 1 }, .both = true };
static const struct xt_what abrupt = { .bytes = { 1, 1 }, .abrupt = true };
static const struct xt_what talk = { .bytes = { 2, 2 } };
static const struct xt_what compact = { .bytes = { 1, 0 }, .ended = true };
static const struct xt_what stamped = { .bytes = { 1, 0 }, .timestamps = true };

const struct xp_scenario xt_scenarios[] = {
	{ "orderly",
	  "a byte each way, and both wait for the other's end",
	  2,
	  { NETWORK, [XP_ABORT] = 1 },
	  1,
	  LATE,
	  &orderly },
	{ "one_way",
	  "two bytes one way",
	  2,
	  { NETWORK, [XP_ABORT] = 1 },
	  1,
	  LATE,
	  &one_way },
	{ "talk",
	  "two bytes each way: enough for the short form of book-keeping",
	  2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1 },
	  0,
	  LATE,
	  &talk },
	{ "both",
	  "both ends connect at the same time",
	  2,
	  { NETWORK, [XP_ABORT] = 1 },
	  1,
	  LATE,
	  &simultaneous },
	{ "abrupt", "both close whenever they like", 2, { NETWORK }, 1, LATE, &abrupt },
	{ "compact", "TIME_WAIT in little memory", 2, { NETWORK }, 2, LATE, &compact },
	{ "stamped", "a byte one way, with timestamps", 2, { NETWORK }, 1, LATE, &stamped },
	{ "again",
	  "a host that loses everything",
	  2,
	  { [XP_LOSS] = 1, [XP_RESTART] = 1 },
	  2,
	  LATE,
	  &orderly },
	{ "forged",
	  "segments of a stranger who may not guess",
	  2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_FORGE] = 2 },
	  1,
	  LATE,
	  &orderly },
};

static void begin(struct xp_world *w, const struct xp_scenario *s)
{
	u32 i;

	(void)s;
	w->now = 1000000 * TICK;
	for (i = 0; i < 2; i++) {
		w->life[i] = 1;
		xt_start(w, i, false);
	}
	xt_connect(w, 0);
	if (xt_what->both)
		xt_connect(w, 1);
}

static const struct xp_proto xp_tcp = {
	.name = "tcp",
	.size = xt_size,
	.begin = begin,
	.start = xt_start,
	.deliver = xt_deliver,
	.next_timer = xt_next_timer,
	.timer = xt_timer,
	.choices = xt_choices,
	.may_wait = xt_may_wait,
	.act = xt_act,
	.ended = xt_ended,
	.check = xt_check,
	.check_end = xt_check_end,
	.canon = xt_canon,
	.canon_host = xt_canon_host,
	.extents = xt_extents,
	.describe = xt_describe,
	.name_of = xt_name_of,
	.summary = xt_summary,
	.scenarios = xt_scenarios,
	.num_scenarios = HOMA_ARRAY_SIZE(xt_scenarios),
};

const struct xp_proto *const xp_shipped = &xp_tcp;
