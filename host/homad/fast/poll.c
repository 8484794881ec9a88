// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Whose rings are looked at: an attachment is polled from a sign of life on until it was
 * quiet for a while (turns.c), and is kept with its user's others.
 */
#include "fast.h"

void homad_polled_init(struct homad_polled *user)
{
	homa_list_init(&user->apps);
	user->num = 0;
	user->credit = 0;
}

void homad_poll_app(struct homad_thread *t, struct homad_app *app)
{
	struct homad_polled *user;

	/* Only the attachment's home thread may touch its other fields. */
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t)
		return;
	app->quiet_since = t->ctx.now;
	if (app->is_polled || app->phase != HOMAD_APP_OPEN || app->evicted)
		return;
	app->is_polled = true;
	t->num_polled++;
	user = homad_polled_of(t, app);
	if (user->num++ == 0) {
		user->credit = 0;
		t->num_users++;
		homa_list_add_tail(&t->users, &user->node);
	}
	homa_list_add_tail(&user->apps, &app->polled);
	__atomic_store_n(&app->queues->need_kick, 0, __ATOMIC_RELAXED);
}

void homad_unpoll_app(struct homad_thread *t, struct homad_app *app)
{
	struct homad_polled *user;

	if (t->put_off == app)
		t->put_off = NULL;
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t ||
	    !app->is_polled)
		return;
	app->is_polled = false;
	t->num_polled--;
	homa_list_del(&app->polled);
	user = homad_polled_of(t, app);
	if (--user->num == 0) {
		t->num_users--;
		homa_list_del(&user->node);
	}
}
