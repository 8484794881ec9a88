// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * More memory for an application. Only a part of what it may have has memory behind
 * it, and the slow path is asked for more before that is used up, since nothing here
 * may wait for the kernel. Until it answers messages wait for pages as they do when
 * their application keeps all that it got.
 */
#include <unistd.h>
#include "fast.h"

void homad_want_memory(struct homad_thread *t, struct homad_app *app, u32 pages)
{
	struct homad *d = t->d;
	u64 one = 1;

	if (__atomic_exchange_n(&app->asked_memory, true, __ATOMIC_ACQUIRE))
		return;
	app->want_pages = pages;
	HOMAD_PUSH(&d->wanting, app, next_wanting);
	t->counters.memory_asked++;
	if (write(d->dead_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

static void want_pages(struct homad_thread *t, struct homad_app *app, u32 factor)
{
	u32 pages = (u32)(app->pool_bytes >> HOMA_BPAGE_SHIFT);

	if (app->pool_backed < pages)
		homad_want_memory(t, app,
				  homa_min_u32(pages, factor * app->pool_backed));
}

HOMA_RARE void homad_lacks_pages(struct homad_thread *t, struct homad_app *app)
{
	want_pages(t, app, 4);
}

HOMA_RARE void homad_look_at_pool(struct homad_thread *t, struct homad_app *app)
{
	if ((size_t)app->pool_backed << HOMA_BPAGE_SHIFT >= app->pool_bytes)
		return;
	if (homa_sock_starved(app->sock))
		want_pages(t, app, 4);
	else if (homa_pool_low(app->sock))
		want_pages(t, app, 2);
}
