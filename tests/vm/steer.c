// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Genomes, and what the kernel says they reach; see steer.h. */
#include <fcntl.h>
#include <linux/kcov.h>
#include <sys/ioctl.h>
#include "steer.h"

enum {
	MAP = 1 << 17,	 /* of edges, by their hash */
	TRACE = 1 << 16, /* words of a thread */
	KEPT = 1024,
	HIGH_FD = 50 /* out of reach of calls with any descriptor */
};

/* What all lives write to. */
static struct {
	unsigned long calls;
	uint32_t edges, fresh[WHO], used[WHO];
	uint8_t map[MAP];
} *shared;

static struct genome kept[KEPT];
static uint32_t kept_count;
static uint64_t rng;
static FILE *replay;

static __thread unsigned long *trace;
static __thread unsigned int trace_of;

/* Of the way from one place of the code to the next; there are many. */
static uint32_t edge(unsigned long from, unsigned long to)
{
	return (uint32_t)((from * 31 + to) * 0x9e3779b97f4a7c15ull >> 40) % MAP;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t state = a ^ b * 0x9e3779b97f4a7c15ull;

	return rng_next(&state);
}

uint64_t draw(struct draws *d)
{
	const struct genome *g = d->genome;
	uint32_t i, at = d->at++;

	for (i = 0; i < g->edits; i++)
		if (g->edit[i].at == at)
			return mix(g->edit[i].number, d->thread);
	for (i = g->parts - 1; g->part[i].from > at; i--)
		;
	return mix(mix(g->part[i].seed, d->thread), at);
}

void steer_begin(uint64_t seed, const char *file)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED, "no memory");
	rng = seed;
	if (!file)
		return;
	replay = fopen(file, "re");
	CHECK(replay, "%s", file);
}

/* Half of the new ones go another way from somewhere on, the others differ in some numbers. */
static void make(struct genome *g)
{
	uint32_t n, from;

	if (!kept_count || !rng_below(&rng, 4)) {
		*g = (struct genome){ .parts = 1 };
		g->part[0].seed = rng_next(&rng);
		return;
	}
	*g = kept[rng_below(&rng, kept_count)];
	if (rng_below(&rng, 2)) {
		from = 1 + rng_below(&rng, g->length);
		while (g->parts > 1 &&
		       (g->part[g->parts - 1].from >= from || g->parts == PARTS))
			g->parts--;
		g->part[g->parts].from = from;
		g->part[g->parts++].seed = rng_next(&rng);
		return;
	}
	for (n = 1 + rng_below(&rng, 4); n; n--) {
		uint32_t i =
			g->edits < EDITS ? g->edits++ : rng_below(&rng, EDITS);

		g->edit[i].at = rng_below(&rng, g->length + 1);
		g->edit[i].number = rng_next(&rng);
	}
}

/* "SEED/FROM:SEED...+AT=NUMBER...", all in hexadecimal. */
static void to_text(const struct genome *g, char *text)
{
	uint32_t i;

	text += sprintf(text, "%llx", (unsigned long long)g->part[0].seed);
	for (i = 1; i < g->parts; i++)
		text += sprintf(text, "/%x:%llx", g->part[i].from,
				(unsigned long long)g->part[i].seed);
	for (i = 0; i < g->edits; i++)
		text += sprintf(text, "+%x=%llx", g->edit[i].at,
				(unsigned long long)g->edit[i].number);
}

static void from_text(struct genome *g, char *text)
{
	*g = (struct genome){ .parts = 1 };
	g->part[0].seed = strtoull(text, &text, 16);
	while (*text == '/' && g->parts < PARTS) {
		g->part[g->parts].from = (uint32_t)strtoul(text + 1, &text, 16);
		g->part[g->parts++].seed = strtoull(text + 1, &text, 16);
	}
	while (*text == '+' && g->edits < EDITS) {
		g->edit[g->edits].at = (uint32_t)strtoul(text + 1, &text, 16);
		g->edit[g->edits++].number = strtoull(text + 1, &text, 16);
	}
}

static bool from_file(struct genome *g)
{
	char line[GENOME_TEXT + 64];
	int at = 0;

	while (fgets(line, sizeof(line), replay)) {
		if (sscanf(line, "# at %*u %n", &at) == 0 && at) {
			from_text(g, line + at);
			return true;
		}
		at = 0;
	}
	return false;
}

bool steer_next(struct genome *g, unsigned long long number)
{
	char text[GENOME_TEXT];

	if (!replay)
		make(g);
	else if (!from_file(g))
		return false;
	to_text(g, text);
	printf("# at %llu %s\n", number, text);
	fflush(NULL);
	return true;
}

void steer_lived(const struct genome *g, unsigned int who)
{
	if (shared->fresh[who]) {
		uint32_t i = kept_count < KEPT ? kept_count++ :
						 rng_below(&rng, KEPT);

		kept[i] = *g;
		kept[i].length = shared->used[who];
	}
	shared->fresh[who] = shared->used[who] = 0;
}

void cover(unsigned int who)
{
	int low = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC), fd;

	trace = NULL;
	trace_of = who;
	if (low < 0)
		return;
	fd = fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
	close(low);
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, TRACE))
		return;
	trace = mmap(NULL, TRACE * sizeof(*trace), PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		trace = NULL;
}

void covered(const struct draws *d)
{
	unsigned long i, n, before = 0;

	__atomic_fetch_add(&shared->calls, 1, __ATOMIC_RELAXED);
	if (d->at > shared->used[trace_of])
		shared->used[trace_of] = d->at;
	if (!trace)
		return;
	n = __atomic_load_n(&trace[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < TRACE; i++) {
		uint8_t *slot = &shared->map[edge(before, trace[i])];

		before = trace[i];
		if (!*slot && !__atomic_exchange_n(slot, 1, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&shared->edges, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&shared->fresh[trace_of], 1,
					   __ATOMIC_RELAXED);
		}
	}
	__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
}

void steer_print(unsigned long long rounds, const char *what)
{
	printf("# %llu %s, %lu calls, %u edges, %u kept\nok\n", rounds, what,
	       shared->calls, shared->edges, kept_count);
}
