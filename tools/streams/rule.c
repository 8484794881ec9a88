// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Rules: from the command line, to and from names of files, and in words. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <mntent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "stream_rule.h"

/* The id of the cgroup that all processes are in. */
#define CGROUP_ROOT 1

void rule_init(struct rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->cgroup_fd = -1;
}

/* ---- from words ---- */

/* Writes where cgroup2 is mounted; false: nowhere. */
static bool cgroup_root(char *path, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const struct mntent *mount;
	bool found = false;

	while (mounts && !found && (mount = getmntent(mounts))) {
		found = !strcmp(mount->mnt_type, "cgroup2");
		if (found)
			snprintf(path, size, "%s", mount->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

/* A cgroup that has no folder any more goes by its id. */
static bool rule_cgroup_gone(struct rule *rule, const char *id)
{
	int error = errno;
	char *end;

	errno = 0;
	rule->cgroup = isdigit((unsigned char)*id) ? strtoull(id, &end, 10) : 0;
	if (rule->cgroup && !*end && !errno)
		return true;
	errno = error;
	return false;
}

bool rule_cgroup(struct rule *rule, const char *path)
{
	char root[4096], below[8192];
	struct statfs fs;
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && cgroup_root(root, sizeof(root))) {
		snprintf(below, sizeof(below), "%s/%s", root, path);
		fd = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0 && rule_cgroup_gone(rule, path))
		return true;
	if (fd < 0) {
		complain(errno, "--cgroup %s", path);
		return false;
	}
	if (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC ||
	    fstat(fd, &st)) {
		complain(0, "--cgroup %s: this folder is no cgroup (cgroup2)",
			 path);
		close(fd);
		return false;
	}
	if (rule->cgroup_fd >= 0)
		close(rule->cgroup_fd);
	rule->cgroup_fd = fd;
	rule->cgroup = st.st_ino;
	return true;
}

bool rule_user(struct rule *rule, const char *user)
{
	const struct passwd *known = getpwnam(user);
	unsigned long number;
	char *end;

	rule->has_user = true;
	if (known) {
		rule->user = known->pw_uid;
		return true;
	}
	errno = 0;
	number = strtoul(user, &end, 10);
	if (!isdigit((unsigned char)*user) || *end || errno ||
	    number >= UINT32_MAX) {
		complain(0, "--user %s: there is no such user", user);
		return false;
	}
	rule->user = (uint32_t)number;
	return true;
}

bool rule_program(struct rule *rule, const char *name)
{
	if (!*name || strchr(name, '/')) {
		complain(0, "--program '%s': give a name without a path", name);
		return false;
	}
	memset(rule->program, 0, sizeof(rule->program));
	/* What is longer the kernel cuts off, too. */
	memcpy(rule->program, name, strnlen(name, sizeof(rule->program) - 1));
	return true;
}

bool rule_check(const struct rule *rule)
{
	if (!rule->cgroup && !rule->has_user && !rule->program[0]) {
		complain(0, "which programs? give --cgroup, --user or --program");
		return false;
	}
	if (rule->program[0] || (rule->has_user && rule->user) ||
	    (rule->cgroup && rule->cgroup != CGROUP_ROOT))
		return true;
	complain(0,
		 "this would take TCP from all that root runs, remote shells too; give --program besides");
	return false;
}

/* ---- names of files ---- */

static bool plain(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

void rule_to_name(const struct rule *rule, char name[STREAMS_NAME])
{
	size_t n = 0;
	const char *c;

	if (rule->cgroup)
		n += (size_t)snprintf(name + n, STREAMS_NAME - n, "cgroup=%llu,",
				      (unsigned long long)rule->cgroup);
	if (rule->has_user)
		n += (size_t)snprintf(name + n, STREAMS_NAME - n, "user=%u,",
				      rule->user);
	if (rule->program[0]) {
		n += (size_t)snprintf(name + n, STREAMS_NAME - n, "program=");
		for (c = rule->program; *c; c++)
			n += (size_t)snprintf(name + n, STREAMS_NAME - n,
					      plain(*c) ? "%c" : "%%%02X",
					      (unsigned char)*c);
		n += (size_t)snprintf(name + n, STREAMS_NAME - n, ",");
	}
	name[n ? n - 1 : 0] = '\0';
}

/* Reads "KEY=" at *@at and the number behind it. */
static bool name_number(const char **at, const char *key, uint64_t most,
			uint64_t *number)
{
	size_t n = strlen(key);
	char *end;

	if (strncmp(*at, key, n) != 0 || !isdigit((unsigned char)(*at)[n]))
		return false;
	errno = 0;
	*number = strtoull(*at + n, &end, 10);
	*at = *end == ',' ? end + 1 : end;
	return !errno && *number <= most;
}

/* Reads the program's name, to the end. */
static bool name_program(const char *at, char program[STREAMS_COMM])
{
	unsigned int byte;
	size_t n;

	for (n = 0; *at; n++) {
		if (n == STREAMS_COMM - 1)
			return false;
		if (*at != '%') {
			program[n] = *at++;
		} else {
			if (sscanf(at, "%%%2X", &byte) != 1 || !byte ||
			    !at[1] || !at[2])
				return false;
			program[n] = (char)byte;
			at += 3;
		}
	}
	return n > 0;
}

bool rule_from_name(struct rule *rule, const char *name)
{
	uint64_t user = 0;

	rule_init(rule);
	if (!*name)
		return false;
	name_number(&name, "cgroup=", UINT64_MAX, &rule->cgroup);
	rule->has_user = name_number(&name, "user=", UINT32_MAX - 1, &user);
	rule->user = (uint32_t)user;
	if (strncmp(name, "program=", 8) == 0)
		return name_program(name + 8, rule->program);
	return !*name && (rule->cgroup || rule->has_user);
}

/* ---- in words ---- */

/* What seek() looks for, and where it is. nftw() has no argument for that. */
static uint64_t sought;
static char sought_path[4096];

static int seek(const char *path, const struct stat *st, int kind,
		struct FTW *where)
{
	(void)where;
	if (kind != FTW_D || st->st_ino != sought)
		return 0;
	snprintf(sought_path, sizeof(sought_path), "%s", path);
	return 1;
}

/* Returns the path of a cgroup, or its id if it has none any more. */
static const char *cgroup_path(uint64_t id)
{
	char root[4096];

	sought = id;
	if (cgroup_root(root, sizeof(root)) &&
	    nftw(root, seek, 16, FTW_PHYS | FTW_MOUNT) == 1)
		return sought_path;
	snprintf(sought_path, sizeof(sought_path), "%llu (gone)",
		 (unsigned long long)id);
	return sought_path;
}

void rule_print(const struct rule *rule)
{
	const struct passwd *user;
	const char *gap = "";

	if (rule->cgroup) {
		printf("cgroup %s", cgroup_path(rule->cgroup));
		gap = ", ";
	}
	if (rule->has_user) {
		user = getpwuid(rule->user);
		printf("%suser %u%s%s%s", gap, rule->user, user ? " (" : "",
		       user ? user->pw_name : "", user ? ")" : "");
		gap = ", ";
	}
	if (rule->program[0])
		printf("%sprogram %s", gap, rule->program);
	printf("\n");
}
