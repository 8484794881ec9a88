/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What sysctl.c shows its tests: the tables of names, and how it reads lists. */
#ifndef HOMA_SYSCTL_H
#define HOMA_SYSCTL_H

#include "homa_kernel.h"

/* What is behind a name. */
enum homa_knob_kind {
	HOMA_KNOB_ENGINE,	/* @offset in struct homa_params */
	HOMA_KNOB_HOST,		/* @offset in struct homa_settings */
	HOMA_KNOB_ENCAP,	/* the same, told to homa_encap_set() */
	HOMA_KNOB_EARLY,	/* the same, told to homa_early_set() */
	HOMA_KNOB_IGNORED,	/* @offset: index in homa_sysctl.ignored */
	HOMA_KNOB_LIST,		/* u32[8] at @offset in struct homa_settings */
	HOMA_KNOB_KEPT,		/* a list of numbers, @offset in homa_sysctl.kept */
};

/*
 * struct homa_knob - one setting
 * @scale: how many of the stored units make one of the shown ones; 0 is 1. What is
 *	stored rounds up when shown, so that something short is never shown as 0.
 * @min, @max: in the shown unit.
 */
struct homa_knob {
	const char *name;
	u8 kind;
	u32 offset;
	u32 scale;
	u32 min, max;
};

/** homa_knob_next() - all but the engine's own names, one after the other; NULL: no more. */
const struct homa_knob *homa_knob_next(u32 *index);
/** homa_knob_shown() - a stored value in the unit that is shown. */
u32 homa_knob_shown(const struct homa_knob *knob, u32 stored);

/**
 * homa_cutoffs_parse() - a list of cutoffs as the engine wants it: @levels for
 * unscheduled packets, and the longest message on each but the lowest, highest
 * level first (8 entries of room). All zeros: the engine shall choose, no levels.
 * -EINVAL: lengths grow with the level.
 */
int homa_cutoffs_parse(const u32 *cutoffs, u32 *levels, u32 *sizes);

#endif
