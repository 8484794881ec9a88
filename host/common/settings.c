// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Protocol settings as text. Every mistake is answered with the piece of text
 * that was wrong and what would have been right, because these strings come
 * from command lines and environments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "homa_settings.h"

static const struct homa_param_info *find(const char *name)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++)
		if (strcmp(homa_param_table[i].name, name) == 0)
			return &homa_param_table[i];
	return NULL;
}

static int apply(struct homa_params *params, char *piece, char *err, size_t errlen)
{
	const struct homa_param_info *info;
	char *equals = strchr(piece, '=');
	unsigned long long value;
	char *end;

	if (strcmp(piece, "sigcomm") == 0) {
		homa_params_sigcomm(params);
		return 0;
	}
	if (!equals) {
		snprintf(err, errlen, "setting '%s': write it as name=value",
			 piece);
		return -EINVAL;
	}
	*equals = '\0';
	info = find(piece);
	if (!info) {
		snprintf(err, errlen,
			 "unknown setting '%s'; docs/protocol.md lists them",
			 piece);
		return -EINVAL;
	}
	errno = 0;
	value = strtoull(equals + 1, &end, 10);
	if (equals[1] < '0' || equals[1] > '9' || *end || errno ||
	    value < info->min || value > info->max ||
	    homa_param_set(params, piece, (u32)value)) {
		snprintf(err, errlen,
			 "setting %s=%s: it must be a number from %u to %u (%s)",
			 piece, equals + 1, info->min, info->max, info->unit);
		return -EINVAL;
	}
	return 0;
}

int homa_settings_parse(struct homa_params *params, const char *text, char *err,
			size_t errlen)
{
	char *copy, *piece, *save = NULL;
	int rc = 0;

	if (!text)
		return 0;
	copy = strdup(text);
	if (!copy) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	for (piece = strtok_r(copy, ", ", &save); piece && !rc;
	     piece = strtok_r(NULL, ", ", &save))
		rc = apply(params, piece, err, errlen);
	free(copy);
	return rc;
}
