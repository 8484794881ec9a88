// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Memory cgroups of a guest; see cgroup.h. */
#include <sys/mount.h>
#include <sys/stat.h>
#include "cgroup.h"

long long cgroup_charged(const char *what)
{
	size_t n = strlen(what);
	FILE *f = fopen(OURS "/memory.stat", "r");
	long long bytes = -1;
	char line[256];

	CHECK(f, "memory.stat");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, n) &&
		    sscanf(line + n, " %lld", &bytes) == 1)
			break;
	fclose(f);
	CHECK(bytes >= 0, "no line \"%s\" in memory.stat", what);
	return bytes;
}

void cgroup_becomes_charged(const char *what, long long low, long long high)
{
	double end = now() + 30 * patience();
	long long bytes;

	while ((bytes = cgroup_charged(what)) < low || bytes > high) {
		CHECK(now() < end,
		      "%lld bytes are charged for %s, not %lld to %lld", bytes,
		      what, low, high);
		usleep(100000);
	}
}

void cgroup_enter(const char *cgroup)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	snprintf(text, sizeof(text), "%d", getpid());
	CHECK(!write_file(path, text), "%s", path);
}

void cgroup_join(void)
{
	mkdir(CGROUP, 0755);
	if (mount("none", CGROUP, "cgroup2", 0, NULL) && errno == ENODEV)
		skip("a kernel without cgroups");
	CHECK(!access(CGROUP "/cgroup.procs", F_OK), "cgroup2 is not there");
	if (write_file(CGROUP "/cgroup.subtree_control", "+memory"))
		skip("no memory controller");
	CHECK(!mkdir(OURS, 0755) || errno == EEXIST, "mkdir");
	/* A check that failed may have left a limit. */
	CHECK(!write_file(OURS "/memory.max", "max"), "memory.max");
	cgroup_enter(OURS);
}

void cgroup_leave(void)
{
	cgroup_enter(CGROUP);
	rmdir(OURS);
}
