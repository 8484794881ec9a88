/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Are states that look the same the same? For some of them a copy is kept; who comes to
 * one of these by another way has to have the same choices, and each has to lead to
 * what looks the same again. If not, canon() leaves out something that matters.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 4096u

struct kept {
	u64 hash;
	u8 *state;
};

static struct kept *kept;
static u64 every;
static struct xp_sink ours, theirs;
static u64 compared;

bool xp_compare_init(u64 one_in)
{
	every = one_in;
	kept = one_in ? calloc(KEPT, sizeof(*kept)) : NULL;
	return !one_in || kept;
}

void xp_compare_keep(u64 hash)
{
	struct kept *k;

	if (!every || hash % every)
		return;
	k = &kept[hash / every % KEPT];
	if (!k->state)
		k->state = malloc(xp_most_bytes);
	if (!k->state)
		return;
	k->hash = hash;
	memcpy(k->state, xp_world, xp_bytes);
}

static void after(const u8 *state, struct xp_choice c, struct xp_sink *sink)
{
	memcpy(xp_world, state, xp_bytes);
	xp_apply_guarded(xp_world, c);
	xp_full = false;
	xp_canon(xp_world, sink);
}

static void differ(struct xp_choice c)
{
	char text[200];
	u32 i = 0;

	while (i < ours.n && i < theirs.n && ours.word[i] == theirs.word[i])
		i++;
	xp_choice_text(xp_world, c, text, sizeof(text));
	xp_fail("states look the same and are not: after \"%s\" word %u of %u and %u is %llx or %llx",
		text, i, ours.n, theirs.n, (unsigned long long)ours.word[i],
		(unsigned long long)theirs.word[i]);
}

void xp_compare(u64 hash)
{
	struct xp_choice a[XP_CHOICES], b[XP_CHOICES];
	struct kept *k;
	u8 *state;
	u32 i, n;

	if (!every || hash % every)
		return;
	k = &kept[hash / every % KEPT];
	if (!k->state || k->hash != hash)
		return;
	state = malloc(xp_bytes);
	if (!state)
		return;
	memcpy(state, xp_world, xp_bytes);
	n = xp_choices(xp_world, a);
	memcpy(xp_world, k->state, xp_bytes);
	if (n != xp_choices(xp_world, b) || memcmp(a, b, n * sizeof(*a)) != 0)
		xp_fail("states look the same and have other choices");
	for (i = 0; i < n && !xp_why[0]; i++) {
		after(state, a[i], &ours);
		after(k->state, a[i], &theirs);
		if (!xp_why[0] &&
		    (ours.n != theirs.n ||
		     memcmp(ours.word, theirs.word, ours.n * sizeof(u64)) != 0))
			differ(a[i]);
	}
	compared++;
	memcpy(xp_world, state, xp_bytes);
	free(state);
}

u64 xp_compared(void)
{
	return compared;
}
