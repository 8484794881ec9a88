/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A search that was stopped: each process's way, so that it can be gone again. What was
 * seen is in the table's own file. A file that ends too early is no file.
 */
#include "explore.h"

#include <stdio.h>
#include <unistd.h>

static FILE *open_way(const char *dir, u32 worker, const char *mode)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s/way.%u", dir, worker);
	return fopen(name, mode);
}

bool xp_save(const char *dir, u32 worker, const struct xp_search *search)
{
	FILE *f = open_way(dir, worker, "w");
	bool ok;

	if (!f)
		return false;
	ok = fwrite(&search->num_prefix, 4, 1, f) == 1 &&
	     fwrite(&search->depth, 4, 1, f) == 1 &&
	     fwrite(search->stats, sizeof(*search->stats), 1, f) == 1 &&
	     fwrite(search->prefix, sizeof(struct xp_choice),
		    search->num_prefix, f) == search->num_prefix &&
	     fwrite(search->frames, sizeof(struct xp_frame), search->depth, f) ==
		     search->depth;
	return !fclose(f) && ok;
}

bool xp_load(const char *dir, u32 worker, struct xp_search *search)
{
	FILE *f = open_way(dir, worker, "r");
	char name[4096];
	bool ok;

	if (!f)
		return false;
	ok = fread(&search->num_prefix, 4, 1, f) == 1 &&
	     fread(&search->depth, 4, 1, f) == 1 &&
	     search->num_prefix + search->depth <= XP_DEPTH &&
	     fread(search->stats, sizeof(*search->stats), 1, f) == 1 &&
	     fread(search->prefix, sizeof(struct xp_choice), search->num_prefix,
		   f) == search->num_prefix &&
	     fread(search->frames, sizeof(struct xp_frame), search->depth, f) ==
		     search->depth;
	fclose(f);
	/* The table goes on without it: this way is good for one time only. */
	snprintf(name, sizeof(name), "%s/way.%u", dir, worker);
	return !unlink(name) && ok;
}
