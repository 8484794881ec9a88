/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How many faults of each kind a search may have, in words and back.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#define MOST 15u /* of one kind; xp_canon() has four bits for each */

u8 xp_bound[XP_NUM_FAULTS];
bool xp_bounded;

/* One "name=number" of a length; false: it is none. */
static bool read_one(const char *text, size_t len)
{
	char *end;
	u64 n;
	u32 i;

	for (i = 0; i < XP_NUM_FAULTS; i++) {
		size_t name = strlen(xp_fault_names[i]);

		if (len < name + 2 ||
		    strncmp(text, xp_fault_names[i], name) != 0 ||
		    text[name] != '=' || text[name + 1] < '0' ||
		    text[name + 1] > '9')
			continue;
		n = strtoull(text + name + 1, &end, 10);
		if (end != text + len || n > MOST)
			return false;
		xp_bound[i] = (u8)n;
		return true;
	}
	return false;
}

bool xp_bound_read(const char *text)
{
	size_t len;

	memset(xp_bound, 0, sizeof(xp_bound));
	xp_bounded = true;
	for (;; text += len + 1) {
		len = strcspn(text, ",\n");
		if (!read_one(text, len))
			return false;
		if (text[len] != ',')
			return true;
	}
}

void xp_bound_text(char *text, size_t size)
{
	u32 i;
	int n = 0;

	text[0] = 0;
	for (i = 0; i < XP_NUM_FAULTS && n >= 0 && (size_t)n < size; i++)
		if (xp_bound[i])
			n += snprintf(text + n, size - (size_t)n, "%s%s=%u",
				      n ? "," : "", xp_fault_names[i],
				      xp_bound[i]);
}

u32 xp_all_faults(const struct xp_scenario *scenario)
{
	const u8 *faults = xp_bounded ? xp_bound : scenario->faults;
	u32 i, n = 0;

	for (i = 0; i < XP_NUM_FAULTS; i++)
		n += faults[i];
	return n;
}
