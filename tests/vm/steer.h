/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the fuzzers share: where their numbers come from, what the module did
 * with them, and which are worth going on from.
 *
 * All that a life (or a round) does follows from a row of numbers, and these from
 * a genome: number i of thread t is a hash of both and of the seed that holds
 * there, except where the genome puts another in its place. So a genome is a
 * line of text, the same text lives the same life, and a changed one is the same
 * up to where it was changed.
 *
 * Where the kernel counts what is reached (KCOV; of homa.ko alone, in the calls of
 * a thread and not in softirq), genomes that reach something new are kept, and
 * most new ones are made of those. Otherwise all are made of fresh seeds.
 */
#ifndef TESTS_VM_STEER_H
#define TESTS_VM_STEER_H

#include "guest.h"

enum {
	PARTS = 8, /* seeds in a genome */
	EDITS = 12,
	GENOME_TEXT = 17 * 2 * (PARTS + EDITS) + 2,
	WHO = 2 /* lives at a time */
};

struct genome {
	uint32_t parts, edits;
	struct {
		uint32_t from; /* the first number of this seed; 0 in part 0 */
		uint64_t seed;
	} part[PARTS];
	struct {
		uint32_t at;
		uint64_t number;
	} edit[EDITS];
	uint32_t length; /* numbers that a thread used, at most */
};

/** struct draws - the numbers of a thread */
struct draws {
	const struct genome *genome;
	uint32_t thread, at;
};

uint64_t draw(struct draws *d);

static inline uint32_t draw_below(struct draws *d, uint32_t n)
{
	return (uint32_t)(draw(d) % n);
}

/**
 * steer_begin() - first of all, in the process that all others come from
 * @seed: of the run.
 * @file: NULL, or lines "# at N GENOME" (among others): live these.
 */
void steer_begin(uint64_t seed, const char *file);
/** steer_next() - a genome to live, printed as round @number; false: the file is at its end. */
bool steer_next(struct genome *genome, unsigned long long number);
/** steer_lived() - @who has ended with it. */
void steer_lived(const struct genome *genome, unsigned int who);
/** cover() - this thread's calls count for life @who from here on. */
void cover(unsigned int who);
/** covered() - after each call (not of other threads): look at what it reached. */
void covered(const struct draws *d);
/** steer_print() - the counts: calls, edges, kept. */
void steer_print(unsigned long long rounds, const char *what);

#endif
