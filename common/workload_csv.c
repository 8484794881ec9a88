/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Message sizes from a file that a user wrote. Every line is checked, because
 * a table that is silently misread gives results that look right; a complaint
 * names file, line and reason.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define MAX_LINES 1000000u
#define MAX_BYTES 4294967295.0

/**
 * struct csv - a file while it is read
 * @path: name of the file, for messages.
 * @err: where a sentence on an error is written.
 * @errlen: size of @err in bytes.
 * @line: number of the line that was read last, from 1.
 * @columns: 1 or 2, 0 before the first line with numbers.
 * @skipped: lines without numbers before the first, to allow one header.
 * @points: the points read so far, @count of them.
 * @count: number of points in @points.
 * @room: number of points for which @points has memory.
 */
struct csv {
	const char *path;
	char *err;
	size_t errlen;
	unsigned long line;
	int columns;
	int skipped;
	struct homa_quantile *points;
	uint32_t count;
	uint32_t room;
};

static int complain(struct csv *csv, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int complain(struct csv *csv, const char *format, ...)
{
	va_list args;
	int n;

	n = snprintf(csv->err, csv->errlen, "%s:%lu: ", csv->path, csv->line);
	va_start(args, format);
	if (n >= 0 && (size_t)n < csv->errlen)
		vsnprintf(csv->err + n, csv->errlen - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

static int add_point(struct csv *csv, double probability, double bytes)
{
	if (csv->count == csv->room) {
		uint32_t room = csv->room ? 2 * csv->room : 256;
		void *grown = realloc(csv->points, room * sizeof(*csv->points));

		if (!grown)
			return -ENOMEM;
		csv->points = grown;
		csv->room = room;
	}
	csv->points[csv->count].probability = probability;
	csv->points[csv->count].bytes = bytes;
	csv->count++;
	return 0;
}

/* Reads a number and the blanks around it; false if there is none. */
static bool read_number(const char **p, double *value)
{
	char *end;

	*value = strtod(*p, &end);
	if (end == *p || !isfinite(*value))
		return false;
	*p = end + strspn(end, " \t");
	return true;
}

static int check_order(struct csv *csv, double bytes, double probability)
{
	const struct homa_quantile *last = &csv->points[csv->count - 1];

	if (!(probability > 0 && probability <= 1))
		return complain(csv, "cumulative probability %g is not in (0, 1]",
				probability);
	if (!csv->count)
		return 0;
	if (probability <= last->probability)
		return complain(csv,
				"cumulative probability %g is not above the previous line's %g",
				probability, last->probability);
	if (bytes <= last->bytes)
		return complain(csv,
				"size %.0f is not above the previous line's %.0f",
				bytes, last->bytes);
	return 0;
}

static int read_line(struct csv *csv, const char *text)
{
	const char *p = text + strspn(text, " \t");
	double bytes, probability = 1;
	int columns = 1, ret;

	if (*p == '\0' || *p == '#')
		return 0;
	if (!read_number(&p, &bytes)) {
		if (!csv->columns && !csv->skipped++)
			return 0;
		return complain(csv, "'%.40s' is not a message size in bytes",
				text);
	}
	if (*p == ',') {
		columns = 2;
		p++;
		p += strspn(p, " \t");
		if (!read_number(&p, &probability))
			return complain(csv,
					"'%.40s' is not a cumulative probability",
					p);
	}
	if (*p != '\0')
		return complain(csv, "unexpected '%.40s' after the numbers", p);
	if (csv->columns && columns != csv->columns)
		return complain(csv, "%d columns, but %d in the lines before",
				columns, csv->columns);
	csv->columns = columns;
	if (bytes < 1 || bytes > MAX_BYTES || bytes != floor(bytes))
		return complain(csv,
				"size %g is not a whole number of bytes from 1 to %.0f",
				bytes, MAX_BYTES);
	if (columns == 2) {
		ret = check_order(csv, bytes, probability);
		if (ret)
			return ret;
	}
	return add_point(csv, probability, bytes);
}

static int read_lines(struct csv *csv, FILE *file)
{
	char text[256];
	size_t len;
	int ret;

	while (fgets(text, sizeof(text), file)) {
		csv->line++;
		len = strcspn(text, "\r\n");
		if (text[len] == '\0' && len + 1 == sizeof(text))
			return complain(csv, "line longer than %zu characters",
					sizeof(text) - 2);
		if (text[len] == '\0' && !feof(file))
			return complain(csv,
					"a NUL character: is this a text file?");
		text[len] = '\0';
		if (csv->line > MAX_LINES)
			return complain(csv, "more than %u lines", MAX_LINES);
		ret = read_line(csv, text);
		if (ret)
			return ret;
	}
	if (ferror(file)) {
		ret = errno ? -errno : -EIO;
		snprintf(csv->err, csv->errlen, "%s: cannot be read: %s",
			 csv->path, strerror(-ret));
		return ret;
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	double x = ((const struct homa_quantile *)a)->bytes;
	double y = ((const struct homa_quantile *)b)->bytes;

	return (x > y) - (x < y);
}

/* Turns a list of sizes into a distribution, equal sizes into one point. */
static void count_sizes(struct csv *csv)
{
	uint32_t i, out = 0;

	qsort(csv->points, csv->count, sizeof(*csv->points), by_size);
	for (i = 0; i < csv->count; i++) {
		if (i + 1 < csv->count &&
		    csv->points[i].bytes == csv->points[i + 1].bytes)
			continue;
		csv->points[out].bytes = csv->points[i].bytes;
		csv->points[out++].probability = (i + 1.0) / csv->count;
	}
	csv->count = out;
}

static int finish(struct csv *csv)
{
	struct homa_quantile *last;

	if (!csv->count) {
		snprintf(csv->err, csv->errlen,
			 "%s: no message sizes in it: one size per line, or size_bytes,cumulative_probability",
			 csv->path);
		return -EINVAL;
	}
	if (csv->columns == 1)
		count_sizes(csv);
	last = &csv->points[csv->count - 1];
	if (last->probability < 1 - 1e-6)
		return complain(csv,
				"the last cumulative probability is %g, it must be 1",
				last->probability);
	last->probability = 1;
	return 0;
}

int homa_workload_load_csv(struct homa_workload *w, const char *path,
			   uint32_t cut, char *err, size_t errlen)
{
	struct csv csv = { .path = path, .err = err, .errlen = errlen };
	const char *base = strrchr(path, '/');
	FILE *file;
	int ret;

	memset(w, 0, sizeof(*w));
	file = fopen(path, "re");
	if (!file) {
		ret = -errno;
		snprintf(err, errlen, "%s: cannot be opened: %s", path,
			 strerror(-ret));
		return ret;
	}
	ret = read_lines(&csv, file);
	if (!ret)
		ret = finish(&csv);
	fclose(file);
	if (ret) {
		if (ret == -ENOMEM)
			snprintf(err, errlen, "%s: out of memory", path);
		free(csv.points);
		return ret;
	}
	snprintf(w->name, sizeof(w->name), "%s", base ? base + 1 : path);
	w->shape = HOMA_WORKLOAD_STEP;
	w->cut = cut;
	w->count = csv.count;
	w->points = w->owned = csv.points;
	return 0;
}
