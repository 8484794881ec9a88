/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Between reading the command line (options.c) and judging it as a whole
 * (options_check.c).
 */
#ifndef HOMA_BENCH_OPTIONS_H
#define HOMA_BENCH_OPTIONS_H

#include "bench.h"
#include "run.h"

/**
 * bench_options_check() - check whether the options fit together, and fill in what follows
 * from them Complains itself. Return: 0 or -EINVAL.
 */
int bench_options_check(struct bench_config *config);

#endif
