/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a broken assertion of the engine does in user space. Only builds with
 * -Dassertions=true have any (the sanitizer and fuzzing builds of the tests):
 * they end at once, where the debugger and the fuzzer see it. Assertions are
 * about the engine itself; no input may reach one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "homa_plat.h"

#ifdef HOMA_DEBUG
void homa_plat_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: engine assertion failed: %s\n", file, line, what);
	abort();
}
#endif
