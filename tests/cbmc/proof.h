/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What proofs share. CBMC takes each function without a body that is called nondet_*
 * to return anything. prove() must hold for all of it, given() says of which of
 * it. The beginning of each file says how often which loops may go round; CBMC proves
 * that too (--unwinding-assertions), so a bound that is too small is a failure.
 */
#ifndef CBMC_PROOF_H
#define CBMC_PROOF_H

#include "homa_plat.h"

u8 nondet_u8(void);
u16 nondet_u16(void);
u32 nondet_u32(void);
u64 nondet_u64(void);
bool nondet_bool(void);
void *malloc(size_t size);
void __CPROVER_assume(_Bool condition);
void __CPROVER_assert(_Bool condition, const char *text);

/* The end of each proof: it must fail, or the proof was about nothing. */
#define reached() __CPROVER_assert(0, "this line is reached")
#define given(condition) __CPROVER_assume(condition)
#define prove(condition) __CPROVER_assert(condition, #condition)

#endif
