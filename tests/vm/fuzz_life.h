/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a process of fuzz_calls does, from its beginning to its end. */
#ifndef TESTS_VM_FUZZ_LIFE_H
#define TESTS_VM_FUZZ_LIFE_H

#include "steer.h"

/** one_life() - lives as @genome says, and ends the process. @number: which of the lives at a time
 *  it is. */
void one_life(const struct genome *genome, unsigned int number)
	__attribute__((noreturn));

#endif
