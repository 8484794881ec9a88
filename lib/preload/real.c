// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Finding the real functions. Every one is looked up by the constructor, so
 * that a hook called in a signal handler never is the first to do it; code
 * that runs before our constructor makes it happen earlier. Doing it twice at
 * once is harmless: both find the same.
 */
#include <dlfcn.h>
#include "real.h"

struct homa_pl_real homa_pl_real;

void homa_pl_resolve(void)
{
#define X(ret, name, args)                                                     \
	__atomic_store_n((void **)&homa_pl_real.name, dlsym(RTLD_NEXT, #name), \
			 __ATOMIC_RELAXED);
	HOMA_PL_FUNCTIONS(X)
#undef X
}

__attribute__((constructor)) static void resolve_first(void)
{
	homa_pl_resolve();
}
