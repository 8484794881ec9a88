/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the programs that test libhoma share: message contents that can be
 * checked at the other end, orders to the server inside a request, and
 * failing with a sentence.
 *
 * A request whose first byte is API_ORDER and whose length is at least
 * sizeof(struct api_order) orders the server to do something; every other
 * request is answered with its own bytes.
 */
#ifndef API_COMMON_H
#define API_COMMON_H

#include <homa/libhoma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define API_ORDER 0xEE

#define API_LATE_S 1.5

enum api_what {
	API_IGNORE =
		1, /* answer only after API_LATE_S, when nobody waits any more */
	API_WORK,  /* compute (not sleep) for @value ms, then echo */
	API_LENGTH, /* answer with @value bytes, pattern of seed @seed */
	API_EXIT,   /* end at once, without a word */
	API_ID,	    /* answer with the id that the request has at the server */
	API_REJECT, /* homa_reject() with @value, homa_discard() if that is 0 */
	API_KEEP,   /* do not answer before API_ASK or API_DROP */
	API_ASK, /* answer '1' if the client of what was kept still waits, else '0' */
	API_DROP,  /* discard what was kept, and echo */
	API_GIVEN, /* as API_LENGTH, out of memory of homa_alloc() */
	API_LEFT,  /* answer with homa_time_left() of the request */
};

struct api_order {
	unsigned char mark;
	unsigned char what;
	unsigned short seed;
	unsigned int value;
};

static inline unsigned char api_byte(unsigned int seed, size_t i)
{
	/* Never API_ORDER at 0: the top bit is clear there. */
	unsigned int v = (unsigned int)(i * 2654435761u >> 7) + seed * 131u;

	return (unsigned char)(i ? v : v & 0x7f);
}

static inline void api_fill(void *buf, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		((unsigned char *)buf)[i] = api_byte(seed, i);
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void
api_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

#define API_CHECK(cond, ...)                                               \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, \
				#cond);                                    \
			api_die(__VA_ARGS__);                              \
		}                                                          \
	} while (0)

/* Is this the message that api_fill() made? */
static inline void api_verify(const struct homa_message *msg, size_t length,
			      unsigned int seed)
{
	size_t at = 0, j;
	int i;

	API_CHECK(msg->length == length, "length %zu instead of %zu",
		  msg->length, length);
	for (i = 0; i < msg->iovcnt; i++) {
		const unsigned char *p = msg->iov[i].iov_base;

		for (j = 0; j < msg->iov[i].iov_len; j++, at++)
			API_CHECK(p[j] == api_byte(seed, at),
				  "byte %zu of %zu is %u instead of %u", at,
				  length, p[j], api_byte(seed, at));
	}
	API_CHECK(at == length, "pieces have %zu bytes of %zu", at, length);
}

/* The same in one piece; @buf has room for it. */
static inline void api_verify_view(const struct homa_message *msg, void *buf,
				   unsigned int seed)
{
	const unsigned char *view = homa_view(msg, buf, msg->length);
	size_t last = msg->length - 1;

	API_CHECK(view && view[0] == api_byte(seed, 0) &&
			  view[last] == api_byte(seed, last),
		  "%zu bytes are not the same in one piece", msg->length);
}

static inline double api_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Use the processor without calling the library. */
static inline void api_compute(double seconds)
{
	double end = api_now() + seconds;

	while (api_now() < end)
		;
}

/*
 * How often a thread of ours went to sleep, so how often one was woken. A thread
 * that yields or is preempted because other programs run is not counted.
 */
static inline long api_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

/* Processor time of all our threads, in ms. */
static inline long api_processor_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct api_counter {
	const char *name;
	uint64_t value;
	int found;
};

static inline void api_count(void *arg, const char *name, const char *text,
			     uint64_t value)
{
	struct api_counter *counter = arg;

	(void)text;
	if (strcmp(name, counter->name))
		return;
	counter->value = value;
	counter->found = 1;
}

/* For the log of a test that failed. */
static inline void api_show(void *arg, const char *name, const char *text,
			    uint64_t value)
{
	(void)arg;
	(void)text;
	if (value)
		fprintf(stderr, "%s=%llu ", name, (unsigned long long)value);
}

static inline uint64_t api_metric(struct homa *h, const char *name)
{
	struct api_counter counter = { name, 0, 0 };

	homa_metrics(h, api_count, &counter);
	API_CHECK(counter.found, "no counter %s", name);
	return counter.value;
}

#endif
