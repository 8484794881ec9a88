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

/*
 * Sum of the costs in callgrind's output but for those of @own. The format
 * names the current file in fl=, fi= and fe= lines, "(number) name" when it is
 * new and "(number)" later, and the file of a function that is called in cfi= and
 * cfl= lines; a line after calls= repeats what is counted elsewhere.
 */
static int read_cost(const char *path, const char *own, double *instructions)
{
	static bool ours[4096];
	FILE *f = fopen(path, "r");
	char line[1024];
	bool skip = false, inside = false;
	double sum = 0, cost;
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
			if (!skip && !inside &&
			    sscanf(line, "%*s %lf", &cost) == 1)
				sum += cost;
			skip = false;
		}
	}
	fclose(f);
	*instructions = sum;
	return sum > 0 ? 0 : -1;
}

/*
 * The C library chooses among its memcpy()s by the processor; with the plainest
 * one the count is the same on all of them.
 */
#define PLAIN_LIBC "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM"

int bench_callgrind(const char *argument, const char *profile, const char *own,
		    char *line, size_t size, double *cost)
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
		 "valgrind --tool=callgrind --collect-atstart=no --log-file=/dev/null --callgrind-out-file='%s' '%s' %s",
		 profile ? profile : out, self, argument);
	child = popen(command, "r");
	got = child && fgets(line, (int)size, child);
	status = child ? pclose(child) : -1;
	if (!got || status || read_cost(profile ? profile : out, own, cost))
		fprintf(stderr,
			"%s: the run under callgrind failed; is valgrind installed?\n",
			self);
	else
		ret = 0;
	unlink(out);
	return ret;
}
