/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recording results; see bench_stats.h. CPU time comes from getrusage() for this
 * process and from /proc/stat for the machine, because work in the kernel's
 * softirqs is not charged to whoever caused it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench_stats.h"

int bench_stats_init(struct bench_stats *stats, const struct bench_config *config)
{
	uint32_t i;

	stats->class_count =
		homa_workload_is_fixed(&config->workload) ? 1 : HOMA_DECILES;
	if (homa_hist_init(&stats->lag) || homa_hist_init(&stats->from_send) ||
	    homa_hist_init(&stats->apart_error_ns))
		return -ENOMEM;
	for (i = 0; i <= BENCH_APART; i++)
		if ((i < stats->class_count || i == BENCH_APART) &&
		    (homa_hist_init(&stats->classes[i].latency) ||
		     homa_hist_init(&stats->classes[i].slowdown)))
			return -ENOMEM;
	return 0;
}

void bench_stats_free(struct bench_stats *stats)
{
	uint32_t i;

	homa_hist_free(&stats->lag);
	homa_hist_free(&stats->from_send);
	homa_hist_free(&stats->apart_error_ns);
	for (i = 0; i <= BENCH_APART; i++) {
		homa_hist_free(&stats->classes[i].latency);
		homa_hist_free(&stats->classes[i].slowdown);
	}
}

void bench_stats_slowdown(struct bench_stats *stats, uint32_t class,
			  uint32_t size, uint64_t ns)
{
	double best;

	if (!stats->denominators.count)
		return;
	best = bench_denominator(&stats->denominators, size);
	homa_hist_record(&stats->classes[class].slowdown,
			 (uint64_t)((double)ns * BENCH_SLOWDOWN_SCALE / best));
}

void bench_errors_add(struct bench_errors *errors, int error)
{
	uint32_t i;

	if (error < 0)
		error = -error;
	for (i = 0; i < BENCH_ERROR_KINDS - 1; i++)
		if (errors->codes[i] == error || !errors->codes[i])
			break;
	/* The last entry counts all errnos that have no entry of their own. */
	if (i < BENCH_ERROR_KINDS - 1)
		errors->codes[i] = error;
	errors->counts[i]++;
}

double bench_denominator(const struct bench_denominators *d, uint32_t size)
{
	uint32_t lo = 0, hi = d->count - 1, mid;
	double slope;

	if (size <= d->sizes[0] || d->count == 1)
		return d->rtt_ns[0];
	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (d->sizes[mid] <= size)
			lo = mid;
		else
			hi = mid;
	}
	/* Beyond the largest size the slope of the last two points is used. */
	slope = (d->rtt_ns[hi] - d->rtt_ns[lo]) / (d->sizes[hi] - d->sizes[lo]);
	if (slope < 0)
		slope = 0;
	return d->rtt_ns[lo] + slope * (size - d->sizes[lo]);
}

void bench_window_opens(struct bench_stats *stats)
{
	bench_netdevs_now(&stats->net_start);
	bench_cpu_now(&stats->cpu_start);
	stats->window_start_ns = bench_now();
}

void bench_window_closes(struct bench_stats *stats)
{
	stats->window_end_ns = bench_now();
	bench_cpu_now(&stats->cpu_end);
	bench_netdevs_now(&stats->net_end);
}

static void cpu_machine(struct bench_cpu *cpu)
{
	unsigned long long v[8] = { 0 };
	double tick = (double)sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	int i;

	if (!file)
		return;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
		   &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 8) {
		for (i = 0; i < 8; i++)
			cpu->total += (double)v[i] / tick;
		cpu->busy = cpu->total - (double)(v[3] + v[4] + v[7]) / tick;
		cpu->steal = (double)v[7] / tick;
	}
	fclose(file);
}

void bench_cpu_now(struct bench_cpu *cpu)
{
	struct rusage usage;

	memset(cpu, 0, sizeof(*cpu));
	cpu->wall_ns = bench_now();
	if (!getrusage(RUSAGE_SELF, &usage)) {
		cpu->user = (double)usage.ru_utime.tv_sec +
			    (double)usage.ru_utime.tv_usec * 1e-6;
		cpu->system = (double)usage.ru_stime.tv_sec +
			      (double)usage.ru_stime.tv_usec * 1e-6;
		cpu->voluntary = (uint64_t)usage.ru_nvcsw;
		cpu->involuntary = (uint64_t)usage.ru_nivcsw;
	}
	cpu_machine(cpu);
}
