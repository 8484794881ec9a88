// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See samemath.h. Compiled with -ffp-contract=off: a compiler that fuses a
 * multiplication and an addition changes the last bit. frexp, ldexp and floor
 * are exact by definition.
 */
#include "samemath.h"

#include <math.h>

/* ln 2 in two parts; the first has enough zeros for exact multiples. */
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LN2 0x1.62e42fefa39efp-1
#define ROOT_HALF 0x1.6a09e667f3bcdp-1

/*
 * ln m = 2 atanh(s), s = (m - 1) / (m + 1), for m in [sqrt 1/2, sqrt 2): |s| is
 * at most 0.172, and the series is cut where its terms fall below 1e-18.
 */
double homa_log(double x)
{
	int exponent, i;
	double m = frexp(x, &exponent);
	double s, square, sum = 0;

	if (m < ROOT_HALF) {
		m *= 2;
		exponent--;
	}
	s = (m - 1) / (m + 1);
	square = s * s;
	for (i = 21; i >= 1; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent * LN2_HIGH + (exponent * LN2_LOW + 2 * s * sum);
}

/* e^x = 2^k e^r with |r| <= ln 2 / 2; Taylor's series of e^r to r^14. */
double homa_exp(double x)
{
	double k = floor(x / LN2 + 0.5);
	double r = (x - k * LN2_HIGH) - k * LN2_LOW;
	double sum = 1;
	int i;

	for (i = 14; i >= 1; i--)
		sum = 1 + sum * r / i;
	return ldexp(sum, (int)k);
}
