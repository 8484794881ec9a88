/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Many worlds, from a seed that no run had before, or one of them again. See world.h.
 */
#include "world.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: world [OPTIONS]\n"
	"Clusters of 3 to 12 engines in virtual time, with the faults that a seed chooses.\n"
	"  --seconds S     of processor time (default 20)\n"
	"  --count N       so many worlds instead\n"
	"  --first N       seed of the first one (default: from the clock)\n"
	"  --seed N        this world alone\n"
	"  --each          print each seed before its world, so that a crash has one\n"
	"  --hosts N       3 to 12 (default: from the seed)\n"
	"  --without LIST  leave out these faults of the plan, by number\n"
	"  --forget        engines remember no request: status 0 if one is seen to run twice\n"
	"  --shrink        leave out all faults that a failure does not need, and show the rest\n"
	"  --faults        name all faults\n"
	"A failure prints its seed. PAIR_TRACE= and PAIR_DUMP=1 show more of it.\n";

struct options {
	double seconds;
	u64 count, first, seed;
	bool one, each, shrink, forget;
	u32 hosts;
	const char *without;
};

static struct options opt = { .seconds = 20 };
static const char *program;
static u64 current;

static void failed(const char *text)
{
	fprintf(stderr, "%s\nagain: %s --seed %llu", text, program,
		(unsigned long long)current);
	if (opt.hosts)
		fprintf(stderr, " --hosts %u", opt.hosts);
	if (opt.without)
		fprintf(stderr, " --without %s", opt.without);
	fputc('\n', stderr);
	fflush(NULL);
	/* What such engines do wrong, and nothing else, is what --forget looks for. */
	_exit(opt.forget && strstr(text, "executed twice") ? 0 : 1);
}

static void leave_out(struct world_plan *plan, const char *list)
{
	char *end;

	while (list && *list && strcmp(list, "none")) {
		unsigned long i = strtoul(list, &end, 10);

		if (end == list || i >= plan->num_faults) {
			fprintf(stderr,
				"world: --without %s: this plan has %u faults\n",
				list, plan->num_faults);
			exit(2);
		}
		plan->faults[i].off = true;
		list = *end == ',' ? end + 1 : end;
	}
}

static void one(u64 seed)
{
	struct world_plan *plan = malloc(sizeof(*plan));

	if (!plan)
		abort();
	current = seed;
	if (opt.each) {
		printf("seed %llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	world_draw(plan, seed, opt.hosts);
	if (opt.forget)
		plan->cfg.tombstones = 0;
	leave_out(plan, opt.without);
	if (opt.shrink)
		world_shrink(plan);
	else
		world_run(plan);
	free(plan);
}

static void list_faults(void)
{
	u32 i;

	for (i = 0; i < WORLD_KINDS; i++)
		printf("%-14s %s\n", world_fault_name[i], world_fault_text[i]);
}

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "first", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 'n' },
		{ "hosts", required_argument, NULL, 'h' },
		{ "without", required_argument, NULL, 'w' },
		{ "each", no_argument, NULL, 'e' },
		{ "forget", no_argument, NULL, 'm' },
		{ "shrink", no_argument, NULL, 'k' },
		{ "faults", no_argument, NULL, 'l' },
		{ 0 },
	};
	int c;

	/* A million worlds take longer than a second. */
	opt.first = (u64)time(NULL) * 1000000;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			opt.seconds = atof(optarg);
		else if (c == 'c')
			opt.count = strtoull(optarg, NULL, 0);
		else if (c == 'f')
			opt.first = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			opt.seed = strtoull(optarg, NULL, 0), opt.one = true;
		else if (c == 'h')
			opt.hosts = (u32)atoi(optarg);
		else if (c == 'w')
			opt.without = optarg;
		else if (c == 'e')
			opt.each = true;
		else if (c == 'm')
			opt.forget = true;
		else if (c == 'k')
			opt.shrink = true;
		else if (c == 'l')
			list_faults(), exit(0);
		else
			return false;
	}
	if (opt.hosts &&
	    (opt.hosts < WORLD_MIN_HOSTS || opt.hosts > WORLD_MAX_HOSTS))
		return false;
	return optind == argc && (opt.one || !(opt.shrink || opt.without));
}

int main(int argc, char **argv)
{
	clock_t start = clock();
	u64 seed;
	double seconds;

	program = argv[0];
	pair_fail_hook = failed;
	if (!parse(argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	if (opt.one) {
		printf("world --seed %llu\n", (unsigned long long)opt.seed);
		one(opt.seed);
		if (opt.shrink)
			return 0;
	} else {
		printf("worlds from --seed %llu\n",
		       (unsigned long long)opt.first);
		fflush(stdout);
		/* At least some, however slow the machine or the sanitizer. */
		for (seed = opt.first;
		     opt.count ?
			     seed < opt.first + opt.count :
			     seed < opt.first + 5 ||
				     (double)(clock() - start) / CLOCKS_PER_SEC <
					     opt.seconds;)
			one(seed++);
	}
	if (opt.forget) {
		fputs("no request was executed twice: the judge is blind\n",
		      stderr);
		return 1;
	}
	seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	return world_cover_print(seconds > 0 ? seconds : 1e-6) ? 0 : 1;
}
