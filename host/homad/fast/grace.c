// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * With several fast-path threads one may find an attachment, by its port or by an RPC with
 * it, before it has the lock of that attachment (direct.c). What it has found stays there
 * until it has begun another round, or sleeps: nobody hands an attachment over before.
 */
#include "fast.h"

void homad_grace_begin(struct homad_thread *t, struct homad_app *app)
{
	const struct homad *d = t->d;
	u32 i;

	app->graced = true;
	for (i = 0; i < d->num_threads; i++)
		app->passed[i] = __atomic_load_n(&d->threads[i]->passed,
						 __ATOMIC_ACQUIRE);
}

bool homad_grace_over(struct homad_thread *t, const struct homad_app *app)
{
	const struct homad *d = t->d;
	u32 i;

	for (i = 0; i < d->num_threads; i++)
		if (d->threads[i] != t &&
		    __atomic_load_n(&d->threads[i]->passed, __ATOMIC_ACQUIRE) ==
			    app->passed[i] &&
		    !__atomic_load_n(&d->threads[i]->asleep, __ATOMIC_ACQUIRE))
			return false;
	return true;
}
