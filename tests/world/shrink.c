/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A world that fails has dozens of faults, and most have nothing to do with it. Half of
 * them are left out, then quarters, then one after the other, as long as it fails; each
 * attempt is a process of its own, for it may crash. What is left is printed.
 */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A hang is a failure too. */
#define ATTEMPT_S 600

static bool fails(struct world_plan *plan)
{
	int status, null;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return false;
	if (!child) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		dup2(null, 2);
		alarm(ATTEMPT_S);
		world_run(plan);
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && status != 0;
}

/* Leaves out @n faults from the @from-th on that are still there; true: it fails. */
static bool without(struct world_plan *plan, u32 from, u32 n)
{
	bool before[WORLD_MAX_FAULTS];
	u32 i, left = 0;

	for (i = 0; i < plan->num_faults; i++) {
		before[i] = plan->faults[i].off;
		if (i >= from && i < from + n && !plan->faults[i].off) {
			plan->faults[i].off = true;
			left++;
		}
	}
	if (left && fails(plan))
		return true;
	for (i = 0; i < plan->num_faults; i++)
		plan->faults[i].off = before[i];
	return false;
}

static void print_fault(const struct world_plan *p, u32 i)
{
	const struct world_fault *f = &p->faults[i];

	printf("  %2u %10.3f to %10.3f s  %-12s host %u, host %u, hosts %03x, %u, %.3f ms: %s\n",
	       i, (double)(f->at + 2 * PAIR_S) / 1e9,
	       (double)(f->end + 2 * PAIR_S) / 1e9, world_fault_name[f->kind],
	       f->a, f->b, f->mask, f->amount, (double)f->ns / 1e6,
	       world_fault_text[f->kind]);
}

static void print_plan(const struct world_plan *p)
{
	u32 i, shown = 0;

	printf("%u hosts, the last %u lie, %.3f s; left of its faults:\n",
	       p->cfg.hosts, p->liars, (double)p->span / 1e9);
	for (i = 0; i < p->num_faults; i++)
		if (!p->faults[i].off)
			print_fault(p, i);
	printf("again: --seed %llu --hosts %u --without ",
	       (unsigned long long)p->seed, p->cfg.hosts);
	for (i = 0; i < p->num_faults; i++)
		if (p->faults[i].off)
			printf("%s%u", shown++ ? "," : "", i);
	printf("%s\n", shown ? "" : "none");
}

void world_shrink(struct world_plan *plan)
{
	u32 n, from;

	if (!fails(plan)) {
		printf("this world does not fail\n");
		return;
	}
	for (n = plan->num_faults; n; n /= 2)
		for (from = 0; from < plan->num_faults; from += n)
			without(plan, from, n);
	print_plan(plan);
}
