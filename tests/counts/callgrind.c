// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Running oneself under callgrind, and reading what it wrote; see callgrind.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "callgrind.h"

/* Of a line of costs, what counts: instructions, the first number after the place; or with
 * @misses those of reads and of writes, the fifth and the sixth. Zeros at the end are left out. */
static double cost_of(const char *line, bool misses)
{
	double cost[6] = { 0 };

	sscanf(line, "%*s %lf %lf %lf %lf %lf %lf", &cost[0], &cost[1],
	       &cost[2], &cost[3], &cost[4], &cost[5]);
	return misses ? cost[4] + cost[5] : cost[0];
}

/*
 * Sum of the costs in callgrind's output but for those of @own. The format
 * names the current file in fl=, fi= and fe= lines, "(number) name" when it is
 * new and "(number)" later, and the file of a function that is called in cfi= and
 * cfl= lines; a line after calls= repeats what is counted elsewhere.
 */
static int read_cost(const char *path, const char *own, bool misses, double *total)
{
	static bool ours[4096];
	FILE *f = fopen(path, "r");
	char line[1024];
	bool skip = false, inside = false;
	double sum = 0;
	unsigned int id;

	if (!f)
		return -1;
	memset(ours, 0, sizeof(ours));
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "fl=(", 4) || !strncmp(line, "fi=(", 4) ||
		    !strncmp(line, "fe=(", 4)) {
			id = (unsigned int)atoi(line + 4) % 4096;
			if (strstr(line, ") "))
				ours[id] = strstr(line, own) != NULL;
			inside = ours[id];
		} else if (!strncmp(line, "cfi=(", 5) ||
			   !strncmp(line, "cfl=(", 5)) {
			id = (unsigned int)atoi(line + 5) % 4096;
			if (strstr(line, ") "))
				ours[id] = strstr(line, own) != NULL;
		} else if (!strncmp(line, "calls=", 6)) {
			skip = true;
		} else if (strchr("0123456789+-*", line[0])) {
			if (!skip && !inside)
				sum += cost_of(line, misses);
			skip = false;
		}
	}
	fclose(f);
	*total = sum;
	return sum > 0 ? 0 : -1;
}

/*
 * The C library chooses among its memcpy()s by the processor; with the plainest
 * one the count is the same on all of them.
 */
#define PLAIN_LIBC "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM"

/* The cache that is simulated is the same on all machines: 32 KiB of data, 8 ways. */
#define CACHE \
	"--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64"

static int run(const char *argument, const char *profile, const char *own,
	       bool misses, char *line, size_t size, double *cost)
{
	char out[] = "/tmp/homa-callgrind.XXXXXX", self[512], command[1400];
	FILE *child;
	bool got;
	int status, ret = -1, fd = mkstemp(out);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (fd < 0 || n <= 0) {
		perror("cannot run this program under callgrind");
		return -1;
	}
	close(fd);
	self[n] = 0;
	setenv("GLIBC_TUNABLES", PLAIN_LIBC, 1);
	snprintf(command, sizeof(command),
		 "valgrind --tool=callgrind --collect-atstart=no --log-file=/dev/null %s --callgrind-out-file='%s' '%s' %s",
		 misses ? CACHE : "", profile ? profile : out, self, argument);
	child = popen(command, "r");
	got = child && fgets(line, (int)size, child);
	status = child ? pclose(child) : -1;
	if (!got || status ||
	    read_cost(profile ? profile : out, own, misses, cost))
		fprintf(stderr,
			"%s: the run under callgrind failed; is valgrind installed?\n",
			self);
	else
		ret = 0;
	unlink(out);
	return ret;
}

int bench_callgrind(const char *argument, const char *profile, const char *own,
		    char *line, size_t size, double *cost)
{
	return run(argument, profile, own, false, line, size, cost);
}

int bench_misses(const char *argument, const char *profile, const char *own,
		 char *line, size_t size, double *misses)
{
	return run(argument, profile, own, true, line, size, misses);
}
