// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Quantities as people write them; see units.h. A number is split into digits
 * before and after the point, so that nothing is rounded on its way to whole
 * picoseconds, bytes or Mbit/s: "0.1us" is 100,000 ps, and what would need a
 * fraction of the unit is refused.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "units.h"

#define MAX_TIME_PS 17280000000000000000ull /* 200 days */
#define MAX_BYTES (1ull << 50)

struct unit {
	/* The unit as it is written; NULL ends the list. */
	const char *name;
	/* What a value in this unit is multiplied by. */
	u64 factor;
};

static bool mul(u64 a, u64 b, u64 *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

/* Reads a number such as "12.5", which ends at @end, and multiplies it by @factor; false:
 * the product is not whole. */
static bool scaled(const char *text, const char *end, u64 factor, u64 *value)
{
	u64 whole = 0, part = 0, scale = 1;
	bool point = false, digits = false;

	for (; text < end; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		digits = true;
		if (!point) {
			if (!mul(whole, 10, &whole) ||
			    __builtin_add_overflow(whole, (u64)(*text - '0'), &whole))
				return false;
		} else if (!mul(scale, 10, &scale) || !mul(part, 10, &part)) {
			return false;
		} else {
			part += (u64)(*text - '0');
		}
	}
	if (!digits || !mul(whole, factor, &whole) || !mul(part, factor, &part) ||
	    part % scale)
		return false;
	return !__builtin_add_overflow(whole, part / scale, value);
}

static bool with_unit(const char *text, const struct unit *units, u64 max, u64 *value)
{
	const char *end = text + strspn(text, "0123456789.");

	for (; units->name; units++)
		if (!strcasecmp(end, units->name))
			return scaled(text, end, units->factor, value) && *value <= max;
	return false;
}

bool sim_parse_rate(const char *text, u32 *mbps)
{
	static const struct unit units[] = {
		{ "mbit", 1 },	  { "gbit", 1000 },    { "tbit", 1000000 }, { "mbps", 1 },
		{ "gbps", 1000 }, { "tbps", 1000000 }, { NULL, 0 },
	};
	u64 value;

	if (!with_unit(text, units, 8000000, &value) || !value)
		return false;
	*mbps = (u32)value;
	return true;
}

bool sim_parse_time(const char *text, u64 *ps)
{
	static const struct unit units[] = {
		{ "ps", 1 },	      { "ns", 1000 },	      { "us", 1000000 },
		{ "ms", 1000000000 }, { "s", 1000000000000 }, { NULL, 0 },
	};

	if (!strcmp(text, "0")) {
		*ps = 0;
		return true;
	}
	return with_unit(text, units, MAX_TIME_PS, ps);
}

bool sim_parse_bytes(const char *text, u64 *bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "b", 1 },
		{ "kb", 1000 },
		{ "mb", 1000000 },
		{ "gb", 1000000000 },
		{ "kib", 1024 },
		{ "mib", 1048576 },
		{ "gib", 1073741824 },
		{ NULL, 0 },
	};

	return with_unit(text, units, MAX_BYTES, bytes);
}

bool sim_parse_number(const char *text, u64 max, u64 *value)
{
	static const struct unit units[] = { { "", 1 }, { NULL, 0 } };

	return with_unit(text, units, max, value) && !strchr(text, '.');
}

bool sim_parse_real(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && isfinite(*value) && *value >= min && *value <= max;
}
