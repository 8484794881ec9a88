// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The log. Three things may not happen: that a line blocks the daemon (a pipe
 * that nobody reads, a stopped terminal), that a line ends it (EPIPE, a full
 * disk), and that an application can write lines of its own choice or fill the
 * disk. So a line is built in a buffer, control characters are replaced, and it
 * goes out in one write(2) only if poll(2) says that there is room; each call
 * site may log SITE_BURST lines at once and one more in each SITE_INTERVAL, and
 * says how many it left out. What cannot be written is counted and told of in
 * the next line that can.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "homa_clock.h"
#include "log.h"

/* The longest message, bytes. With escapes it may become six times as long, and is cut. */
#define LINE 1024u
/* The bytes for which every line has room at its end: the quote and the brace of JSON, and
 * the newline. */
#define TAIL 3u
/* The number of places that log and are told apart, a power of two. */
#define SITES 256u
#define SITE_BURST 20u
/* The time in which a place may log one more line, in ns, and the number of lines that it
 * may log at once. */
#define SITE_INTERVAL 250000000ull

/**
 * struct site - a place in the code that logs, known by its format's address
 * @format: The address of the format, by which the place is known.
 * @paid_until: Each line adds SITE_INTERVAL to this time, which may not come after the present;
 *	it is at most SITE_BURST intervals before the present. In ns.
 * @left_out: The number of lines that were left out since the last one that was allowed.
 */
struct site {
	const char *format;
	u64 paid_until;
	u32 left_out;
};

static struct {
	/* Protects the other fields. */
	pthread_mutex_t lock;
	/* Messages of greater levels are left out. */
	int level;
	/* The form in which lines are written. */
	enum homad_log_format format;
	/* Places in the code that log, by a hash of their format's address. */
	struct site sites[SITES];
	/* Number of lines that could not be written, and how many of them a line has told of. */
	unsigned long lost, told;
} state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.level = HOMAD_INFO,
};

static const char *const levels[] = { "error", "warning", "info", "debug" };

void homad_log_init(int level, enum homad_log_format format)
{
	pthread_mutex_lock(&state.lock);
	state.level = level;
	state.format = format;
	pthread_mutex_unlock(&state.lock);
}

unsigned long homad_log_lost(void)
{
	return __atomic_load_n(&state.lost, __ATOMIC_RELAXED);
}

static struct site *find_site(const char *format)
{
	u32 hash = (u32)(((uintptr_t)format * 0x9e3779b97f4a7c15ull) >> 40);
	u32 i;

	for (i = 0; i < SITES; i++) {
		struct site *site = &state.sites[(hash + i) & (SITES - 1)];

		if (!site->format)
			site->format = format;
		if (site->format == format)
			return site;
	}
	return NULL;
}

/* May this place log now? If so, *@left_out receives how many lines it left out before. */
static bool allowed(const char *format, u32 *left_out)
{
	struct site *site = find_site(format);
	u64 now = homa_clock_ns();

	*left_out = 0;
	if (!site)
		return true;
	if (site->paid_until + SITE_BURST * SITE_INTERVAL < now)
		site->paid_until = now - SITE_BURST * SITE_INTERVAL;
	if (site->paid_until + SITE_INTERVAL > now) {
		site->left_out++;
		return false;
	}
	site->paid_until += SITE_INTERVAL;
	*left_out = site->left_out;
	site->left_out = 0;
	return true;
}

/* ---- text ---- */

/* struct line - a line that is being built; @cut: something had no room and was left out */
struct line {
	/* The bytes of the line. */
	char text[4096];
	/* The number of bytes of @text that are used. */
	size_t used;
	bool cut;
};

/* Adds all of @text, or nothing if there is no room for it before the last TAIL bytes. */
static void put(struct line *line, const char *text, size_t length)
{
	if (length > sizeof(line->text) - TAIL - line->used) {
		line->cut = true;
		return;
	}
	memcpy(line->text + line->used, text, length);
	line->used += length;
}

/* Adds one character of the TAIL. */
static void put_last(struct line *line, char c)
{
	line->text[line->used++] = c;
}

static void put_string(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

static void put_time(struct line *line)
{
	struct timespec now;
	struct tm tm;
	char text[48];
	size_t used;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + used, sizeof(text) - used, ".%03ldZ",
		 now.tv_nsec / 1000000);
	put_string(line, text);
}

static void put_plain(struct line *line, const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		put(line, (u8)text[i] < ' ' || text[i] == 127 ? "?" : text + i,
		    1);
}

static void put_json(struct line *line, const char *text, size_t length)
{
	char escape[8];
	size_t i;

	put(line, "\"", 1);
	for (i = 0; i < length && !line->cut; i++) {
		u8 c = (u8)text[i];

		/* Bytes beyond ASCII, which only names have, may not be UTF-8. */
		if (c == '"' || c == '\\')
			snprintf(escape, sizeof(escape), "\\%c", c);
		else if (c < ' ' || c >= 127)
			snprintf(escape, sizeof(escape), "\\u%04x", c);
		else
			snprintf(escape, sizeof(escape), "%c", c);
		put_string(line, escape);
	}
	if (!line->cut)
		put(line, "\"", 1);
}

/* Returns the length of the pair at @text: it ends at the closing quote of key="...", or
 * else before the next " key=". */
static size_t pair_length(const char *text)
{
	const char *equals = strchr(text, '='), *p = text, *q;

	if (equals && equals[1] == '"') {
		p = strchr(equals + 2, '"');
		return p ? (size_t)(p + 1 - text) : strlen(text);
	}
	while ((p = strchr(p, ' '))) {
		for (q = p + 1; (*q >= 'a' && *q <= 'z') || *q == '_'; q++)
			;
		if (q > p + 1 && *q == '=')
			return (size_t)(p - text);
		p++;
	}
	return strlen(text);
}

/* Writes numbers as numbers and the rest as strings, without the quotes that the text form
 * has around it. */
static void put_json_value(struct line *line, const char *value, size_t length)
{
	bool number = length && length < 16 &&
		      strspn(value, "0123456789") >= length &&
		      (*value != '0' || length == 1);

	if (number) {
		put(line, value, length);
		return;
	}
	if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
		value++;
		length -= 2;
	}
	put_json(line, value, length);
}

static void put_json_pairs(struct line *line, const char *pairs)
{
	const char *equals;
	size_t length, before;

	for (; *pairs; pairs += length + (pairs[length] == ' ')) {
		length = pair_length(pairs);
		equals = memchr(pairs, '=', length);
		if (!equals)
			continue;
		before = line->used;
		put_string(line, ",");
		put_json(line, pairs, (size_t)(equals - pairs));
		put_string(line, ":");
		put_json_value(line, equals + 1,
			       (size_t)(pairs + length - equals - 1));
		if (line->cut) {
			line->used = before;
			line->cut = false;
		}
	}
}

static void build(struct line *line, int level, const char *text,
		  const char *pairs)
{
	if (state.format == HOMAD_LOG_JSON) {
		put_string(line, "{\"time\":\"");
		put_time(line);
		put_string(line, "\",\"level\":\"");
		put_string(line, levels[level]);
		put_string(line, "\",\"message\":");
		put_json(line, text, strlen(text));
		/* A message that was cut has no quote yet, and there is no room for pairs. */
		if (line->cut)
			put_last(line, '"');
		else
			put_json_pairs(line, pairs);
		put_last(line, '}');
	} else {
		put_time(line);
		put_string(line, " ");
		put_string(line, levels[level]);
		put_string(line, " ");
		put_plain(line, text, strlen(text));
		if (*pairs) {
			put_string(line, " ");
			put_plain(line, pairs, strlen(pairs));
		}
	}
	put_last(line, '\n');
}

static bool write_line(const struct line *line)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	/* A pipe is writable when PIPE_BUF bytes fit, more than a line has. */
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	return write(STDERR_FILENO, line->text, line->used) ==
	       (ssize_t)line->used;
}

void homad_log(int level, const char *format, ...)
{
	char text[LINE], note[96], *pairs;
	struct line line;
	u32 left_out;
	va_list args;
	size_t used;

	if (level > __atomic_load_n(&state.level, __ATOMIC_RELAXED))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&state.lock);
	if (!allowed(format, &left_out))
		goto out;
	pairs = strchr(text, '\t');
	if (pairs)
		*pairs++ = '\0';
	else
		pairs = text + strlen(text);
	if (left_out || state.lost != state.told) {
		used = strlen(pairs);
		snprintf(note, sizeof(note), "%sleft_out=%u lost=%lu",
			 used ? " " : "", left_out, state.lost - state.told);
		if (pairs + used + strlen(note) < text + sizeof(text))
			strcpy(pairs + used, note);
	}
	line.used = 0;
	line.cut = false;
	build(&line, level, text, pairs);
	if (write_line(&line))
		state.told = state.lost;
	else
		__atomic_store_n(&state.lost, state.lost + 1, __ATOMIC_RELAXED);
out:
	pthread_mutex_unlock(&state.lock);
}
