// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* TAP, and small things that the programs for guests need; see guest.h. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "guest.h"

#define SKIPPED 77

static int number, failed;

static bool memory_is_checked(void)
{
	return !access("/sys/kernel/debug/failslab", F_OK);
}

int slowness(void)
{
	return memory_is_checked() ? 4 : 1;
}

int patience(void)
{
	return memory_is_checked() ? 20 : 1;
}

void skip(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(SKIPPED);
}

/* What a check said, as comments; for a skip it is the reason, on the line itself. */
static void show(FILE *said, bool as_notes)
{
	char line[1024];

	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		line[strcspn(line, "\n")] = 0;
		printf(as_notes ? "# %s\n" : " %s", line);
	}
	if (!as_notes)
		printf("\n");
}

/* Its status as wait() has it, -1 if it did not end. */
static int run_one(const struct check *check, FILE *said, int seconds)
{
	double end = now() + seconds * patience();
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		/* A page of a region is a page: huge ones are more than a guest has. */
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		dup2(fileno(said), 2);
		dup2(fileno(said), 1);
		check->run();
		fflush(NULL);
		_exit(0);
	}
	CHECK(pid > 0, "fork");
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() > end) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(2000);
	}
	/* Children of its own that it forgot. */
	kill(-pid, SIGKILL);
	return status;
}

static bool wanted(const char *name, char **names)
{
	if (!names || !*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

int run_checks(const struct check *checks, size_t n, const char *prefix,
	       int seconds, char **names)
{
	size_t i;

	for (i = 0; i < n; i++) {
		FILE *said;
		int status;

		if (!wanted(checks[i].name, names))
			continue;
		said = tmpfile();
		CHECK(said, "no temporary file");
		status = run_one(&checks[i], said, seconds);
		number++;
		if (status != -1 && WIFEXITED(status) &&
		    WEXITSTATUS(status) == SKIPPED) {
			printf("ok %d - %s%s # SKIP", number, prefix,
			       checks[i].name);
			show(said, false);
		} else if (!status) {
			printf("ok %d - %s%s\n", number, prefix, checks[i].name);
		} else {
			failed++;
			printf("not ok %d - %s%s\n", number, prefix,
			       checks[i].name);
			show(said, true);
			if (status == -1)
				printf("# did not end within %d s\n",
				       seconds * patience());
			else if (WIFSIGNALED(status))
				printf("# died of signal %d\n", WTERMSIG(status));
		}
		fclose(said);
		fflush(stdout);
	}
	return failed;
}

void print_plan(void)
{
	printf("1..%d\n", number);
	fflush(stdout);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -errno;
	close(fd);
	return rc;
}

int sysctl_set(const char *name, long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/proc/sys/net/homa/%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	return write_file(path, text);
}

long long metric(const char *name)
{
	FILE *f = fopen("/proc/net/homa_metrics", "r");
	char line[512], key[128];
	long long value, sum = -1;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%127s %lld", key, &value) == 2 &&
		    !strcmp(key, name))
			sum = (sum < 0 ? 0 : sum) + value;
	fclose(f);
	return sum;
}

unsigned int rpcs_of(int fd)
{
	struct homa_info info = { 0 };

	CHECK(!ioctl(fd, HOMAIOCINFO, &info), "HOMAIOCINFO");
	return info.num_rpcs;
}

unsigned int rpcs_become(int fd, unsigned int want, int ms)
{
	double end = now() + ms / 1e3;

	while (rpcs_of(fd) != want && now() < end)
		usleep(5000);
	return rpcs_of(fd);
}

/* "HOMA  1160  3 ..." and "HOMAv6 ..." in /proc/net/protocols: the third word. */
int socks_open(void)
{
	FILE *f = fopen("/proc/net/protocols", "r");
	int n, size, sum = -1;
	char line[512], key[64];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %d %d", key, &size, &n) == 3 &&
		    !strncasecmp(key, "homa", 4))
			sum = (sum < 0 ? 0 : sum) + n;
	}
	fclose(f);
	return sum;
}
