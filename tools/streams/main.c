// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* homa-streams on | off | status; stream_rule.h says what it does. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "stream_rule.h"

#define BPFFS "/sys/fs/bpf"
#define FOLDER BPFFS "/homa-streams"

/* Status of a command line that is wrong, and of `status` if there is no rule. */
enum { EXIT_USAGE = 2, EXIT_NONE };

static const char usage[] =
	"usage: homa-streams on --cgroup DIR|--user USER|--program NAME ...\n"
	"       homa-streams off [the same options]     without options: all rules\n"
	"       homa-streams status                     3: there is no rule\n"
	"\n"
	"Programs that a rule chooses get stream sockets over Homa from now on when they\n"
	"ask for TCP's; they need not be changed, and may be static. Both ends need them:\n"
	"such a socket does not talk to TCP. A rule chooses programs for which all of its\n"
	"options hold, and lasts until `off` or until the machine starts again.\n"
	"\n"
	"  --cgroup DIR     of cgroup2, with all cgroups in it: a path, or one below\n"
	"                   /sys/fs/cgroup, e.g. system.slice\n"
	"  --user USER      who runs the program: name or number\n"
	"  --program NAME   the program's name without its path; 15 characters count\n"
	"\n"
	"It takes root, homa.ko, and Linux 6.6 or newer with CONFIG_MPTCP.\n";

void complain(int error, const char *format, ...)
{
	va_list args;

	fputs("homa-streams: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "%s%s\n", error ? ": " : "",
		error ? strerror(error) : "");
}

/* Makes the folder of rules in bpffs, which holds what is in it. */
static bool folder_make(void)
{
	struct statfs fs;

	if (statfs(BPFFS, &fs)) {
		complain(errno, BPFFS);
		return false;
	}
	if (fs.f_type != BPF_FS_MAGIC &&
	    mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0700")) {
		complain(errno, "cannot mount bpffs on " BPFFS);
		return false;
	}
	if (mkdir(FOLDER, 0700) && errno != EEXIST) {
		complain(errno, FOLDER);
		return false;
	}
	return true;
}

static void path_of(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", FOLDER, name);
}

static int on(const struct rule *rule)
{
	char name[STREAMS_NAME], path[PATH_MAX];

	if (!rule_check(rule))
		return EXIT_USAGE;
	if (rule->cgroup && rule->cgroup_fd < 0) {
		complain(0, "the cgroup is gone");
		return EXIT_FAILURE;
	}
	if (!attach_available() || !folder_make())
		return EXIT_FAILURE;
	rule_to_name(rule, name);
	path_of(path, name);
	if (!access(path, F_OK))
		return EXIT_SUCCESS;
	return attach_rule(rule, path) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Calls @each with the path and the rule of each; returns how many there are, or -1. */
static int rules(bool (*each)(const char *path, const struct rule *rule))
{
	const struct dirent *entry;
	char path[PATH_MAX];
	struct rule rule;
	bool ok = true;
	DIR *folder;
	int n = 0;

	folder = opendir(FOLDER);
	if (!folder && errno == ENOENT)
		return 0;
	if (!folder) {
		complain(errno, FOLDER);
		return -1;
	}
	while ((entry = readdir(folder))) {
		if (!rule_from_name(&rule, entry->d_name))
			continue;
		path_of(path, entry->d_name);
		ok &= each(path, &rule);
		n++;
	}
	closedir(folder);
	return ok ? n : -1;
}

static bool off_one(const char *path, const struct rule *rule)
{
	(void)rule;
	return attach_end(path);
}

static int off(const struct rule *rule)
{
	char name[STREAMS_NAME], path[PATH_MAX];

	rule_to_name(rule, name);
	if (!*name)
		return rules(off_one) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	path_of(path, name);
	if (access(path, F_OK) && errno == ENOENT) {
		complain(0, "there is no such rule; status lists them");
		return EXIT_FAILURE;
	}
	return attach_end(path) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool status_one(const char *path, const struct rule *rule)
{
	(void)path;
	rule_print(rule);
	return true;
}

static int status(void)
{
	int n = rules(status_one);

	if (n < 0)
		return EXIT_FAILURE;
	if (!n)
		printf("no program gets streams over Homa for TCP\n");
	else if (access("/sys/module/homa", F_OK))
		complain(0,
			 "the module is not loaded: without it these programs have no sockets");
	return n ? EXIT_SUCCESS : EXIT_NONE;
}

/* Reads the options behind the command; 0, or the status to end with. */
static int options(int argc, char **argv, struct rule *rule)
{
	static const struct option known[] = {
		{ "cgroup", required_argument, NULL, 'c' },
		{ "user", required_argument, NULL, 'u' },
		{ "program", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "", known, NULL)) != -1)
		ok = (c == 'c' && rule_cgroup(rule, optarg)) ||
		     (c == 'u' && rule_user(rule, optarg)) ||
		     (c == 'p' && rule_program(rule, optarg));
	if (ok && optind < argc) {
		complain(0, "what is '%s'?", argv[optind]);
		ok = false;
	}
	return ok ? 0 : EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	struct rule rule;
	int i, rc;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		}
	rule_init(&rule);
	rc = argc > 1 ? options(argc - 1, argv + 1, &rule) : 0;
	if (rc)
		return rc;
	if (!strcmp(command, "on"))
		return on(&rule);
	if (!strcmp(command, "off"))
		return off(&rule);
	if (!strcmp(command, "status") && argc == 2)
		return status();
	fputs(usage, stderr);
	return EXIT_USAGE;
}
