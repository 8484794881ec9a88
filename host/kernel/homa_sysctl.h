/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What sysctl.c shows its tests: the tables of names, and how it reads lists. Written by: sysctl.c,
 * before the files are there; constant after that. */
#ifndef HOMA_SYSCTL_H
#define HOMA_SYSCTL_H

#include "homa_kernel.h"

/* The kind of value that a name stands for. */
enum homak_knob_kind {
	HOMAK_KNOB_ENGINE, /* @offset in struct homa_params */
	HOMAK_KNOB_HOST,   /* @offset in struct homak_settings */
	/* as HOMAK_KNOB_HOST, and told to homak_encap_set() */
	HOMAK_KNOB_ENCAP,
	/* as HOMAK_KNOB_HOST, and told to homak_prerouting_set() */
	HOMAK_KNOB_PREROUTING,
	HOMAK_KNOB_LIST, /* u32[8] at @offset in struct homak_settings */
};

/*
 * struct homak_knob - one setting
 * @name: the name of its file.
 * @kind: the kind of its value, an enum homak_knob_kind.
 * @offset: where the value is stored, as @kind says.
 * @scale: the number of stored units in a shown unit; 0 means 1. A stored value is rounded
 *	up when it is shown, so that a short time is never shown as 0.
 * @min: the least value, in the shown unit.
 * @max: the greatest value, in the shown unit.
 */
struct homak_knob {
	const char *name;
	u8 kind;
	u32 offset;
	u32 scale;
	u32 min, max;
};

/**
 * homak_knob_next() - returns the names other than the engine's, one in each call; NULL:
 * there is no other.
 */
const struct homak_knob *homak_knob_next(u32 *index);
/** homak_knob_shown() - converts a stored value to the unit that is shown. */
u32 homak_knob_shown(const struct homak_knob *knob, u32 stored);

/**
 * homak_cutoffs_parse() - converts a list of cutoffs for the engine: @levels receives the
 * number of levels for unscheduled packets, and @sizes the longest message on each but the
 * lowest, highest level first (8 entries of room). All zeros: the engine shall choose, no
 * levels. -EINVAL: lengths grow with the level.
 */
int homak_cutoffs_parse(const u32 *cutoffs, u32 *levels, u32 *sizes);

#endif
