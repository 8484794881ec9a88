/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A program that counts its own instructions: it runs itself under callgrind,
 * which collects only between marks, and reads the sum.
 */
#ifndef HOMA_TESTS_BENCH_CALLGRIND_H
#define HOMA_TESTS_BENCH_CALLGRIND_H

#include <stddef.h>

/**
 * bench_callgrind() - run this program with @argument under callgrind
 * @argument: words for the command line of the run.
 * @profile: where callgrind's output stays, or NULL.
 * @own: part of the name of the source file whose instructions do not count:
 *	the marks are some, too.
 * @line: receives the first line that the run prints; @size bytes.
 * @cost: instructions between the marks.
 * Return: 0, or -1 after a complaint on stderr.
 */
int bench_callgrind(const char *argument, const char *profile, const char *own,
		    char *line, size_t size, double *cost);

/** bench_misses() - the same, but reads and writes of data that miss the first cache of 32 KiB,
 *	as callgrind simulates it; @profile has them, too, beside the instructions. */
int bench_misses(const char *argument, const char *profile, const char *own,
		 char *line, size_t size, double *misses);

#endif
