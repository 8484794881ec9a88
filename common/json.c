/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * JSON documents to and from files; see json.h.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"

/* A file larger than this is not one of ours. */
#define MAX_FILE (256u << 20)

static int write_text(const char *text, const char *path)
{
	char *temporary = NULL;
	FILE *file;
	int ret = 0;

	if (strcmp(path, "-") == 0) {
		if (puts(text) < 0 || fflush(stdout))
			return -errno;
		return 0;
	}
	if (asprintf(&temporary, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	file = fopen(temporary, "we");
	if (!file) {
		ret = -errno;
		goto out;
	}
	if (fputs(text, file) < 0 || fputc('\n', file) < 0)
		ret = -errno;
	if (fclose(file) && !ret)
		ret = -errno;
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
out:
	free(temporary);
	return ret;
}

int homa_json_write(const cJSON *json, const char *path, char *err, size_t errlen)
{
	char *text = cJSON_Print(json);
	int ret = text ? write_text(text, path) : -ENOMEM;

	cJSON_free(text);
	if (ret)
		snprintf(err, errlen, "%s: cannot be written: %s", path,
			 strerror(-ret));
	return ret;
}

/* Reads a whole file into a new string. */
static int read_text(const char *path, char **out)
{
	size_t used = 0, room = 1 << 16;
	char *text = NULL, *grown;
	FILE *file = fopen(path, "re");
	int ret;

	if (!file)
		return -errno;
	for (;;) {
		grown = realloc(text, room + 1);
		if (!grown) {
			ret = -ENOMEM;
			goto fail;
		}
		text = grown;
		errno = 0;
		used += fread(text + used, 1, room - used, file);
		if (ferror(file)) {
			ret = errno ? -errno : -EIO;
			goto fail;
		}
		if (used < room)
			break;
		room *= 2;
		if (room > MAX_FILE) {
			ret = -EFBIG;
			goto fail;
		}
	}
	text[used] = '\0';
	fclose(file);
	*out = text;
	return 0;
fail:
	free(text);
	fclose(file);
	return ret;
}

int homa_json_read(cJSON **out, const char *path, char *err, size_t errlen)
{
	char *text = NULL;
	const char *at = NULL, *p;
	unsigned int line = 1;
	int ret;

	ret = read_text(path, &text);
	if (ret) {
		snprintf(err, errlen, "%s: cannot be read: %s", path,
			 strerror(-ret));
		return ret;
	}
	*out = cJSON_ParseWithOpts(text, &at, 1);
	if (!*out) {
		for (p = text; at && p < at; p++)
			line += *p == '\n';
		snprintf(err, errlen, "%s:%u: this is not JSON", path, line);
		ret = -EINVAL;
	}
	free(text);
	return ret;
}

double homa_json_number(const cJSON *object, const char *name, double otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

void homa_json_round(cJSON *object, const char *name, double value, int digits)
{
	double scale = pow(10, digits);

	if (!isfinite(value)) {
		cJSON_AddNullToObject(object, name);
		return;
	}
	cJSON_AddNumberToObject(object, name, rint(value * scale) / scale);
}
