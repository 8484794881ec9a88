/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counterexamples: made shorter, told in words, replayed. The file is both: lines that
 * begin with "step" are what is done again, the others are for people.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

static struct xp_choice trial[XP_DEPTH + 1];
static u32 skipped; /* steps of the last run() that were not possible */

/* The words of a failure without its numbers. */
static void kind_of(const char *why, char *kind, size_t size)
{
	size_t n = 0;

	for (; *why && n + 1 < size; why++)
		if (*why < '0' || *why > '9')
			kind[n++] = *why;
	kind[n] = 0;
}

static bool offered(struct xp_choice c, u32 *n)
{
	struct xp_choice all[XP_CHOICES];
	u32 i;

	*n = xp_choices(xp_world, all);
	for (i = 0; i < *n; i++)
		if (xp_choice_same(all[i], c) && all[i].fault == c.fault)
			return true;
	return false;
}

/* What xp_search_run() would find wrong after the last step. */
static void at_end(void)
{
	if (xp_why[0])
		return;
	if (!xp_proto->ended(xp_world))
		xp_fail("nothing can happen any more, and something is left");
	else
		xp_proto->check_end(xp_world);
}

/*
 * Do as many of @steps as are possible, then what happens by itself. What was done is
 * left in xp_path. True: something does not hold.
 */
static bool run(const struct xp_choice *steps, u32 num, u32 faults)
{
	struct xp_choice all[XP_CHOICES];
	static u64 hashes[XP_DEPTH];
	u32 i, k, n = 1, own = 0;

	xp_world_begin(xp_scenario, faults);
	xp_path_len = 0;
	skipped = 0;
	for (i = 0; i < num && !xp_why[0] && !xp_full; i++) {
		if (!offered(steps[i], &n)) {
			skipped++;
			continue;
		}
		xp_path[xp_path_len++] = steps[i];
		xp_apply_guarded(xp_world, steps[i]);
	}
	while (!xp_why[0] && !xp_full && xp_path_len < XP_DEPTH &&
	       (n = xp_choices(xp_world, all))) {
		hashes[own] = xp_hash(xp_world);
		for (k = 0; k < own; k++)
			if (hashes[k] == hashes[own])
				xp_fail("for ever the same: nothing comes to an end");
		own++;
		if (xp_why[0])
			break;
		xp_path[xp_path_len++] = all[0];
		xp_apply_guarded(xp_world, all[0]);
	}
	if (xp_full)
		return false;
	if (xp_path_len == XP_DEPTH)
		xp_fail("no end after %u steps", xp_path_len);
	at_end();
	return xp_why[0];
}

void xp_shrink(u32 faults)
{
	static struct xp_choice best[XP_DEPTH + 1];
	char want[sizeof(xp_why)], got[sizeof(xp_why)];
	u32 len = xp_path_len, i, k;
	bool better;

	memcpy(best, xp_path, sizeof(best));
	memcpy(want, xp_why, sizeof(want));
	if (!run(best, len, faults)) { /* it was about more than one way */
		memcpy(xp_why, want, sizeof(want));
		memcpy(xp_path, best, sizeof(best));
		xp_path_len = len;
		return;
	}
	kind_of(xp_why, want, sizeof(want));
	len = xp_path_len;
	memcpy(best, xp_path, sizeof(best));
	do {
		better = false;
		for (i = 0; i < len; i++) {
			for (k = 0; k < len - 1; k++)
				trial[k] = best[k < i ? k : k + 1];
			if (!run(trial, len - 1, faults))
				continue;
			kind_of(xp_why, got, sizeof(got));
			if (strcmp(want, got) != 0 || xp_path_len >= len)
				continue;
			len = xp_path_len;
			memcpy(best, xp_path, sizeof(best));
			better = true;
			i--;
		}
	} while (better);
	run(best, len, faults);
}

static const u8 *faults_of(void)
{
	return xp_bounded ? xp_bound : xp_scenario->faults;
}

void xp_trace_print(FILE *f, u32 faults)
{
	char text[256], why[sizeof(xp_why)];
	u32 i, k;

	memcpy(why, xp_why, sizeof(why));
	fprintf(f, "# %s: %s\nscenario %s\nfaults %u\n", xp_proto->name, why,
		xp_scenario->name, faults);
	xp_bound_text(text, sizeof(text));
	if (xp_bounded)
		fprintf(f, "bound %s\n", text);
	for (k = 0; k < XP_NUM_FAULTS; k++)
		if (faults_of()[k])
			fprintf(f, "#   at most %u: %s\n", faults_of()[k],
				xp_fault_texts[k]);
	xp_story = f;
	xp_world_begin(xp_scenario, faults);
	for (i = 0; i < xp_path_len; i++) {
		xp_choice_text(xp_world, xp_path[i], text, sizeof(text));
		fprintf(f, "step %u %u %u %u\t# %s\n", xp_path[i].kind,
			xp_path[i].fault, xp_path[i].host, xp_path[i].arg, text);
		xp_apply_guarded(xp_world, xp_path[i]);
	}
	at_end();
	xp_story = NULL;
	xp_proto->summary(xp_world, text, sizeof(text));
	fprintf(f, "# %s\nfails: %s\n", text, xp_why[0] ? xp_why : why);
}

static const struct xp_scenario *scenario_named(const char *name)
{
	u32 i;

	for (i = 0; i < xp_proto->num_scenarios; i++)
		if (!strcmp(xp_proto->scenarios[i].name, name))
			return &xp_proto->scenarios[i];
	return NULL;
}

int xp_replay(const char *file, bool quiet)
{
	FILE *f = fopen(file, "r");
	char line[1024], name[200];
	u32 kind, fault, host, arg, num = 0, faults = 0;
	bool bound_ok = true;

	if (!f) {
		fprintf(stderr, "%s cannot be read\n", file);
		return 2;
	}
	xp_scenario = NULL;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "scenario %63s", name) == 1)
			xp_scenario = scenario_named(name);
		else if (sscanf(line, "bound %199s", name) == 1)
			bound_ok = xp_bound_read(name);
		else if (sscanf(line, "step %u %u %u %u", &kind, &fault, &host,
				&arg) == 4 &&
			 num < XP_DEPTH)
			trial[num++] = (struct xp_choice){ (u8)kind, (u8)fault,
							   (u8)host, (u8)arg };
		else
			sscanf(line, "faults %u", &faults);
	}
	fclose(f);
	if (!xp_scenario || !bound_ok) {
		fprintf(stderr, "%s names no scenario or bound of %s\n", file,
			xp_proto->name);
		return 2;
	}
	xp_guard_init();
	if (!run(trial, num, faults)) {
		/* Something else than what was found happens then. */
		if (skipped)
			printf("%s: %u of %u steps are not possible any more\n",
			       file, skipped, num);
		else
			printf("%s: holds\n", file);
		return skipped ? 4 : 0;
	}
	if (quiet)
		printf("%s: %s\n", file, xp_why);
	else
		xp_trace_print(stdout, faults);
	return 1;
}
