/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One search by several processes. All know what was seen by any of them. Who has
 * nothing left asks, and another gives away choices of a state near its beginning,
 * where most is left behind them.
 */
#include "explore.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 16

enum { BUSY = 0, ASKING, BEING_GIVEN, GIVEN };

/* What a process without work is given. */
struct deal {
	u32 state;
	u32 len, num;
	struct xp_choice prefix[XP_DEPTH];
	struct xp_choice choice[XP_CHOICES];
};

/* What all processes see. */
struct common {
	u32 stop;
	u32 asking;
	u32 result[WORKERS];
	struct xp_stats stats[WORKERS];
	struct deal deal[WORKERS];
};

static struct common *common;
static const struct xp_job *job;
static u32 me;
static volatile sig_atomic_t told_to_stop;

u64 xp_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

static void on_stop(int sig)
{
	(void)sig;
	told_to_stop = 1;
}

/* ---- sharing ---- */

/* The state nearest to the beginning with choices that nobody has tried. */
static bool give_to(struct xp_search *search, struct deal *deal)
{
	u32 i, k, at = 0;

	for (i = 0; i < search->depth; i++) {
		at = search->frames[i].at ? search->frames[i].at : 1;
		if (search->frames[i].num >= at + 2)
			break;
	}
	if (i == search->depth || search->num_prefix + i > XP_DEPTH)
		return false;
	deal->len = deal->num = 0;
	for (k = 0; k < search->num_prefix; k++)
		deal->prefix[deal->len++] = search->prefix[k];
	for (k = 0; k < i; k++)
		deal->prefix[deal->len++] =
			search->frames[k].choice[search->frames[k].at - 1];
	/* Half of them, the last ones. */
	k = at + (search->frames[i].num - at) / 2;
	while (k < search->frames[i].num)
		deal->choice[deal->num++] =
			search->frames[i].choice[--search->frames[i].num];
	return true;
}

static void share_work(struct xp_search *search)
{
	u32 i, asking;

	for (i = 0; i < job->workers; i++) {
		struct deal *deal = &common->deal[i];

		asking = ASKING;
		if (!__atomic_compare_exchange_n(&deal->state, &asking,
						 BEING_GIVEN, false,
						 __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		if (!give_to(search, deal)) {
			__atomic_store_n(&deal->state, ASKING, __ATOMIC_RELEASE);
			return;
		}
		__atomic_fetch_sub(&common->asking, 1, __ATOMIC_ACQ_REL);
		__atomic_store_n(&deal->state, GIVEN, __ATOMIC_RELEASE);
	}
}

static bool stopped(void)
{
	if (told_to_stop || (job->until_ms && xp_clock_ms() >= job->until_ms))
		__atomic_store_n(&common->stop, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&common->stop, __ATOMIC_RELAXED);
}

static bool pause_now(struct xp_search *search)
{
	/* Nothing is given to who has seen already that all stop. */
	if (stopped())
		return true;
	if (xp_table_used() > xp_table_size() / 8 * 7) {
		fprintf(stderr, "\nthe table of states is full: --memory\n");
		return true;
	}
	if (__atomic_load_n(&common->asking, __ATOMIC_RELAXED))
		share_work(search);
	return false;
}

enum answer { NOTHING_LEFT, SOMETHING, NO_WAY };

/* Take what was given; or, if all stop, what is being given at this moment. */
static enum answer ask(struct xp_search *search)
{
	struct deal *deal = &common->deal[me];
	u32 asking = ASKING;

	__atomic_store_n(&deal->state, ASKING, __ATOMIC_RELEASE);
	__atomic_fetch_add(&common->asking, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&deal->state, __ATOMIC_ACQUIRE) != GIVEN) {
		if (__atomic_load_n(&common->asking, __ATOMIC_ACQUIRE) ==
		    job->workers)
			return NOTHING_LEFT;
		if (stopped() &&
		    __atomic_compare_exchange_n(&deal->state, &asking, BUSY,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&common->asking, 1, __ATOMIC_ACQ_REL);
			return NOTHING_LEFT;
		}
		asking = ASKING;
		usleep(200);
	}
	__atomic_store_n(&deal->state, BUSY, __ATOMIC_RELAXED);
	search->num_prefix = deal->len;
	memcpy(search->prefix, deal->prefix, deal->len * sizeof(deal->prefix[0]));
	return xp_search_at(search, job->faults, deal->choice, deal->num) ?
		       SOMETHING :
		       NO_WAY;
}

/* ---- one process ---- */

static void tell_failure(void)
{
	FILE *f = job->trace ? fopen(job->trace, "w") : stdout;

	fprintf(stderr, "%s: %s; looking for a shorter way to it\n",
		job->scenario->name, xp_why);
	xp_shrink(job->faults);
	if (!f) {
		perror(job->trace);
		f = stdout;
	}
	xp_trace_print(f, job->faults);
	if (f != stdout)
		fclose(f);
	fflush(stdout);
}

static enum xp_result search_all(struct xp_search *search)
{
	enum xp_result result = XP_ALL_SEEN;
	enum answer got = NOTHING_LEFT;
	bool begun = false;

	if (job->again) {
		if (!xp_load(job->dir, me, search) ||
		    !xp_search_again(search, job->faults)) {
			fprintf(stderr, "%s holds no search to go on with\n",
				job->dir);
			return XP_STOPPED;
		}
		begun = true;
	} else if (!me) {
		xp_search_first(search);
		begun = true;
	}
	while (begun || (got = ask(search)) == SOMETHING) {
		begun = false;
		result = xp_search_run(search);
		if (result != XP_ALL_SEEN)
			break;
	}
	if (result == XP_ALL_SEEN && got == NO_WAY) {
		fprintf(stderr,
			"\na state that was given away does not exist here\n");
		return XP_STOPPED;
	}
	if (result == XP_BROKEN) {
		if (!__atomic_exchange_n(&common->stop, 1, __ATOMIC_RELAXED))
			tell_failure();
		return result;
	}
	if (stopped())
		result = XP_STOPPED;
	if (job->dir && !xp_save(job->dir, me, search))
		perror(job->dir);
	return result;
}

static void work(void)
{
	static struct xp_search search;

	if (!xp_search_new(&search)) {
		fprintf(stderr, "there is no memory for a search\n");
		common->result[me] = XP_STOPPED;
		common->stop = 1;
		return;
	}
	search.stats = &common->stats[me];
	search.pause = pause_now;
	xp_guard_init();
	xp_world_begin(job->scenario, job->faults);
	common->result[me] = search_all(&search);
	/* The others shall not wait for who is gone. */
	if (common->result[me] != XP_ALL_SEEN)
		__atomic_store_n(&common->stop, 1, __ATOMIC_RELAXED);
}

/* ---- all of them ---- */

static void sum_up(struct xp_stats *sum)
{
	u32 i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < job->workers; i++) {
		const struct xp_stats *s = &common->stats[i];

		sum->states += s->states;
		sum->steps += s->steps;
		sum->ends += s->ends;
		sum->pruned += s->pruned;
		sum->depth = s->depth > sum->depth ? s->depth : sum->depth;
		sum->deepest =
			s->deepest > sum->deepest ? s->deepest : sum->deepest;
	}
}

static void show(u64 began)
{
	struct xp_stats sum;
	u64 ms = xp_clock_ms() - began + 1;

	sum_up(&sum);
	fprintf(stderr,
		"\r%-8s %u faults: %7.2f M states, %7.2f M steps, %6.0f k steps/s, depth %3u of %3u, table %2llu %% full ",
		job->scenario->name, job->faults, (double)sum.states / 1e6,
		(double)sum.steps / 1e6, (double)sum.steps / (double)ms,
		sum.depth, sum.deepest,
		(unsigned long long)(xp_table_used() * 100 / xp_table_size()));
}

static u32 wait_for_all(u64 began, u32 left)
{
	u32 crashed = 0;
	int status;

	while (left) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			left--;
			if (!WIFEXITED(status) || WEXITSTATUS(status)) {
				crashed++;
				common->stop = 1;
			}
			continue;
		}
		usleep(20000);
		if (told_to_stop)
			common->stop = 1;
		if (job->progress)
			show(began);
	}
	if (job->progress)
		fprintf(stderr, "\r%118s\r", "");
	return crashed;
}

/* What this process ran, in a build that counts it (./homa explore --coverage). */
static void count_branches(void)
{
#ifdef XP_COVERAGE
	extern void __gcov_dump(void);

	__gcov_dump();
#endif
}

enum xp_result xp_work(const struct xp_job *what, struct xp_stats *sum)
{
	enum xp_result result = XP_ALL_SEEN;
	u64 began = xp_clock_ms();
	u32 i, crashed;

	job = what;
	if (!common) {
		common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (common == MAP_FAILED)
			return XP_STOPPED;
		signal(SIGINT, on_stop);
		signal(SIGTERM, on_stop);
	}
	memset(common, 0, sizeof(*common));
	fflush(stdout);
	for (i = 0; i < job->workers; i++) {
		pid_t pid = fork();

		if (pid > 0)
			continue;
		if (pid < 0) {
			perror("fork");
			common->stop = 1;
			break;
		}
		me = i;
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		work();
		fflush(stdout);
		count_branches();
		_exit(0);
	}
	crashed = wait_for_all(began, i);
	if (i < job->workers)
		crashed++;
	for (i = 0; i < job->workers; i++)
		if (common->result[i] > result)
			result = common->result[i];
	sum_up(sum);
	return crashed && result != XP_BROKEN ? XP_STOPPED : result;
}
