/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Logarithm and exponential with the same bits on every machine. libm's differ
 * in the last place between processors (with and without fused multiply-add)
 * and versions, and an arrival that moves by a nanosecond is another
 * experiment. Made only of IEEE additions, multiplications and divisions in a
 * fixed order; good to about 1e-15, which is more than a model of traffic needs.
 */
#ifndef HOMA_SAMEMATH_H
#define HOMA_SAMEMATH_H

/** homa_log() - natural logarithm of a positive, normal @x */
double homa_log(double x);
/** homa_exp() - e to the power of @x, -700 .. 700 */
double homa_exp(double x);

#endif
