// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A recorded trace as traffic: who sent how much to whom when. A file says it
 * in lines "time_ns,src,dst,bytes". Whatever is wrong with a line is told with
 * its number, for such files are written by other people's scripts.
 *
 * A message's quantile is its rank by size among all of them, so that results
 * fall into the same classes as with a distribution.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic.h"

#define MAX_LINE 256
#define MAX_MESSAGE 0x7fffffffull
#define MAX_TIME_NS 1000000000000000ull /* 11 days */

static int complain(char *err, size_t errlen, const char *path, u32 line, const char *reason)
{
	snprintf(err, errlen, "%s:%u: %s", path, line, reason);
	return -EINVAL;
}

/* Reads a whole number and the comma or end after it, and moves *@at behind them. */
static bool number(char **at, char after, u64 *value)
{
	char *end;

	while (**at == ' ' || **at == '\t')
		(*at)++;
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*value = strtoull(*at, &end, 10);
	if (errno)
		return false;
	while (*end == ' ' || *end == '\t')
		end++;
	if (*end != after)
		return false;
	*at = end + (after != '\0');
	return true;
}

static int parse_line(struct sim_recorded *r, char *text, u32 hosts, const char *path,
		      u32 line, char *err, size_t errlen)
{
	u64 at, src, dst, bytes;
	char reason[128];

	if (!number(&text, ',', &at) || !number(&text, ',', &src) ||
	    !number(&text, ',', &dst) || !number(&text, '\0', &bytes))
		return complain(err, errlen, path, line,
				"this is not time_ns,src,dst,bytes in four whole numbers");
	if (at > MAX_TIME_NS)
		return complain(err, errlen, path, line,
				"the time is in ns from the start, at most 1e15 of them");
	if (src >= hosts || dst >= hosts) {
		snprintf(reason, sizeof(reason), "there is no host %llu: hosts are 0 to %u",
			 (unsigned long long)(src >= hosts ? src : dst), hosts - 1);
		return complain(err, errlen, path, line, reason);
	}
	if (src == dst)
		return complain(err, errlen, path, line,
				"a host does not send to itself: src and dst must differ");
	if (!bytes || bytes > MAX_MESSAGE)
		return complain(err, errlen, path, line,
				"a message has 1 to 2147483647 bytes");
	*r = (struct sim_recorded){ .at_ns = at,
				    .src = (u16)src,
				    .dst = (u16)dst,
				    .length = (u32)bytes,
				    .line = line };
	return 0;
}

static bool is_header(const char *text)
{
	return strncmp(text, "time", 4) == 0;
}

static int read_lines(struct sim_recording *rec, FILE *file, const char *path, u32 hosts,
		      char *err, size_t errlen)
{
	char text[MAX_LINE];
	size_t room = 0;
	u32 line = 0;
	int res;

	while (fgets(text, sizeof(text), file)) {
		size_t len = strcspn(text, "\r\n");

		line++;
		if (len == sizeof(text) - 1)
			return complain(err, errlen, path, line, "the line is too long");
		text[len] = '\0';
		if (text[strspn(text, " \t")] == '\0' || text[0] == '#' ||
		    (!rec->count && is_header(text)))
			continue;
		if (rec->count == room) {
			size_t more = room ? room * 2 : 1024;
			void *grown = realloc(rec->list, more * sizeof(*rec->list));

			if (!grown) {
				snprintf(err, errlen, "%s: out of memory", path);
				return -ENOMEM;
			}
			rec->list = grown;
			room = more;
		}
		res = parse_line(&rec->list[rec->count], text, hosts, path, line, err,
				 errlen);
		if (res)
			return res;
		rec->count++;
	}
	if (ferror(file)) {
		snprintf(err, errlen, "%s: cannot be read: %s", path, strerror(errno));
		return -EIO;
	}
	if (!rec->count)
		return complain(err, errlen, path, line,
				"there is no message in the file: write lines time_ns,src,dst,bytes");
	return 0;
}

static int by_length(const void *a, const void *b)
{
	const struct sim_recorded *x = a, *y = b;

	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return x->line < y->line ? -1 : 1;
}

static int by_time(const void *a, const void *b)
{
	const struct sim_recorded *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->line < y->line ? -1 : 1;
}

int sim_recording_load(struct sim_recording *rec, const char *path, u32 hosts, char *err,
		       size_t errlen)
{
	FILE *file = fopen(path, "re");
	size_t i;
	int res;

	*rec = (struct sim_recording){ 0 };
	if (!file) {
		res = -errno;
		snprintf(err, errlen, "%s: cannot be read: %s", path, strerror(-res));
		return res;
	}
	res = read_lines(rec, file, path, hosts, err, errlen);
	fclose(file);
	if (res) {
		sim_recording_free(rec);
		return res;
	}
	qsort(rec->list, rec->count, sizeof(*rec->list), by_length);
	for (i = 0; i < rec->count; i++)
		rec->list[i].quantile = (float)(((double)i + 0.5) / (double)rec->count);
	qsort(rec->list, rec->count, sizeof(*rec->list), by_time);
	return 0;
}

void sim_recording_free(struct sim_recording *rec)
{
	free(rec->list);
	*rec = (struct sim_recording){ 0 };
}
