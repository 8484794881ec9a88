/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * explore: every state that a scenario's faults can lead to. First without a fault in all
 * scenarios, then with one, with two, ..., so that what fails fails with few.
 */
#include "explore.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct options {
	const char *scenario, *dir, *trace, *replay, *bound;
	u32 from, most, workers;
	u64 seconds, memory, compare;
	bool again, list, quiet, quick;
};

static const char usage[] =
	"usage: explore [OPTION]... \n"
	"Goes through every state that faults can lead the engine into, and checks each.\n"
	"\n"
	"  --scenario NAME   only this one; --list names them\n"
	"  --faults N        at most N faults in one way (default: all that a scenario allows)\n"
	"  --bound KINDS     instead of what a scenario allows: so many faults of each kind, as\n"
	"                    loss=2,dup=1,restart=1; all of them in one way unless --faults says\n"
	"  --from N          begin with N faults instead of none\n"
	"  --quick           at most two faults, in large scenarios one\n"
	"  --seconds S       stop after so long (default: when all was seen)\n"
	"  --memory MIB      of the table of states seen (default 1024, 128 with --quick)\n"
	"  --workers N       processes (default 2)\n"
	"  --dir DIR         keep a search that is stopped there, with --scenario and --from\n"
	"  --again           go on with the search that is kept in --dir\n"
	"  --compare N       keep one in N states, and compare those that look like it\n"
	"  --trace FILE      write a counterexample there instead of to the output\n"
	"  --replay FILE     do again what a counterexample says\n"
	"  --quiet           no progress; with --replay: only whether it fails\n"
	"  --list            name all scenarios\n"
	"\n"
	"Exit status: 0 all was seen and holds, 1 something does not hold, 2 wrong arguments,\n"
	"3 stopped before all was seen, 4 steps of --replay are not possible any more, 5 what was\n"
	"seen holds, and states with more packets under way than there is room for were left out.\n";

enum {
	SCENARIO = 256,
	FAULTS,
	FROM,
	SECONDS,
	MEMORY,
	WORKERS,
	COMPARE,
	DIR_,
	AGAIN,
	TRACE,
	REPLAY,
	QUIET,
	QUICK,
	LIST,
	BOUND,
	HELP,
};

static const struct option names[] = {
	{ "scenario", required_argument, NULL, SCENARIO },
	{ "faults", required_argument, NULL, FAULTS },
	{ "from", required_argument, NULL, FROM },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "memory", required_argument, NULL, MEMORY },
	{ "workers", required_argument, NULL, WORKERS },
	{ "compare", required_argument, NULL, COMPARE },
	{ "dir", required_argument, NULL, DIR_ },
	{ "again", no_argument, NULL, AGAIN },
	{ "trace", required_argument, NULL, TRACE },
	{ "replay", required_argument, NULL, REPLAY },
	{ "quick", no_argument, NULL, QUICK },
	{ "quiet", no_argument, NULL, QUIET },
	{ "bound", required_argument, NULL, BOUND },
	{ "list", no_argument, NULL, LIST },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static u64 number(const char *name, const char *text, u64 most)
{
	char *end;
	u64 n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > most) {
		fprintf(stderr,
			"explore: --%s %s: a number up to %llu is wanted\n",
			name, text, (unsigned long long)most);
		exit(2);
	}
	return n;
}

static void parse(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){ .most = ~0u, .workers = 2 };
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case SCENARIO:
			o->scenario = optarg;
			break;
		case FAULTS:
			o->most = (u32)number("faults", optarg, 100);
			break;
		case FROM:
			o->from = (u32)number("from", optarg, 100);
			break;
		case SECONDS:
			o->seconds = number("seconds", optarg, 1u << 30);
			break;
		case MEMORY:
			o->memory = number("memory", optarg, 1u << 20);
			break;
		case WORKERS:
			o->workers = (u32)number("workers", optarg, 16);
			break;
		case COMPARE:
			o->compare = number("compare", optarg, 1u << 30);
			break;
		case DIR_:
			o->dir = optarg;
			break;
		case AGAIN:
			o->again = true;
			break;
		case TRACE:
			o->trace = optarg;
			break;
		case REPLAY:
			o->replay = optarg;
			break;
		case QUICK:
			o->quick = true;
			break;
		case QUIET:
			o->quiet = true;
			break;
		case LIST:
			o->list = true;
			break;
		case BOUND:
			o->bound = optarg;
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			fputs("try: explore --help\n", stderr);
			exit(2);
		}
	}
	if (optind < argc || !o->workers ||
	    ((o->dir || o->again) && !o->scenario) || (o->again && !o->dir) ||
	    (o->bound && !xp_bound_read(o->bound))) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void list(void)
{
	u32 i, k;

	for (i = 0; i < xp_proto->num_scenarios; i++) {
		const struct xp_scenario *s = &xp_proto->scenarios[i];

		printf("%-10s %s\n          ", s->name, s->text);
		for (k = 0; k < XP_NUM_FAULTS; k++)
			if (s->faults[k])
				printf(" %s %u", xp_fault_names[k], s->faults[k]);
		printf("\n");
	}
}

static enum xp_result one(const struct options *o, const struct xp_scenario *s,
			  u32 faults, u64 until, struct xp_stats *total)
{
	struct xp_job job = { .scenario = s,
			      .faults = faults,
			      .workers = o->workers,
			      .until_ms = until,
			      .dir = o->dir,
			      .again = o->again,
			      .progress = !o->quiet,
			      .trace = o->trace };
	static const char *const results[] = { "all seen", "stopped ",
					       "BROKEN  ", "left out" };
	u64 began = xp_clock_ms(), ms;
	char file[4096];
	struct xp_stats sum;
	enum xp_result result;
	bool left_out;

	if (o->dir)
		snprintf(file, sizeof(file), "%s/table", o->dir);
	if (!xp_table_new(o->dir ? file : NULL, o->memory << 20)) {
		perror("explore: the table of states");
		exit(2);
	}
	result = xp_work(&job, &sum);
	ms = xp_clock_ms() - began + 1;
	left_out = result == XP_ALL_SEEN && sum.pruned;
	printf("%-10s %u faults  %s %10llu states %11llu steps %8llu ends  depth %3u  %6.1f s %5.0f k steps/s",
	       s->name, faults, results[left_out ? 3 : result],
	       (unsigned long long)sum.states, (unsigned long long)sum.steps,
	       (unsigned long long)sum.ends, sum.deepest, (double)ms / 1e3,
	       (double)sum.steps / (double)ms);
	if (sum.pruned)
		printf("  %llu steps to states with more than %u packets left out",
		       (unsigned long long)sum.pruned, XP_PACKETS);
	printf("\n");
	fflush(stdout);
	xp_table_end();
	total->states += sum.states;
	total->steps += sum.steps;
	total->pruned += sum.pruned;
	return result;
}

static void closing(const struct xp_stats *total, u64 ms, enum xp_result result)
{
	double n = (double)total->states;

	printf("%llu states, %llu steps in %.0f s: %.0f k steps/s; a state was missed for its fingerprint with a chance of %.1e at most\n",
	       (unsigned long long)total->states,
	       (unsigned long long)total->steps, (double)ms / 1e3,
	       (double)total->steps / (double)(ms + 1),
	       n * n / 36893488147419103232.0);
	if (result == XP_STOPPED)
		printf("stopped before all was seen\n");
}

int main(int argc, char **argv)
{
	static const int status[] = { 0, 3, 1 };
	enum xp_result result = XP_ALL_SEEN;
	struct xp_stats total = { 0 };
	struct options o;
	u64 began = xp_clock_ms();
	u32 i, faults, named = 0, more = 1;

	parse(&o, argc, argv);
	if (!xp_world_new(xp_shipped)) {
		fprintf(stderr, "explore: there is no memory\n");
		return 2;
	}
	if (!xp_compare_init(o.compare)) {
		fprintf(stderr, "explore: there is no memory\n");
		return 2;
	}
	if (!o.memory) /* each page of the table is a page fault */
		o.memory = o.quick ? 128 : 1024;
	if (o.bound && o.most == ~0u)
		o.from = o.most = xp_all_faults(NULL);
	if (o.list)
		list();
	if (o.replay)
		return xp_replay(o.replay, o.quiet);
	for (faults = o.from;
	     !o.list && more && faults <= o.most && result == XP_ALL_SEEN;
	     faults++) {
		more = 0;
		for (i = 0;
		     i < xp_proto->num_scenarios && result == XP_ALL_SEEN; i++) {
			const struct xp_scenario *s = &xp_proto->scenarios[i];

			if (o.scenario && strcmp(o.scenario, s->name) != 0)
				continue;
			named++;
			if (faults > (o.quick ? s->quick : xp_all_faults(s)))
				continue;
			more = 1;
			result = one(&o, s, faults,
				     o.seconds ? began + o.seconds * 1000 : 0,
				     &total);
		}
	}
	if (o.list)
		return 0;
	if (!named) {
		fprintf(stderr, "explore: there is no scenario %s; see --list\n",
			o.scenario);
		return 2;
	}
	closing(&total, xp_clock_ms() - began, result);
	return result == XP_ALL_SEEN && total.pruned ? 5 : status[result];
}
