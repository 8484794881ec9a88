// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Finding the real functions. Every one is looked up by the constructor, so
 * that a hook called in a signal handler never is the first to do it; a hook
 * that code before our constructor calls finds its own. Doing it twice is
 * harmless: the same is found.
 */
#include <dlfcn.h>
#include "real.h"

struct homa_pl_real homa_pl_real;

void homa_pl_resolve(void *where, const char *name)
{
	__atomic_store_n((void **)where, dlsym(RTLD_NEXT, name),
			 __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void resolve_all(void)
{
#define X(ret, name, args) homa_pl_resolve(&homa_pl_real.name, #name);
	HOMA_PL_FUNCTIONS(X)
#undef X
}
