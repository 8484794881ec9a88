// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Giving an attachment another home: for a moment it is at home nowhere, and no thread polls it. */
#include <errno.h>
#include "fast.h"
#include "moving.h"

static int give_app(struct homad_thread *t, void *arg)
{
	struct homad_app **app = arg;

	/* Messages that wait for the attachment are delivered before it goes. */
	homad_deliver(t);
	*app = homad_session_detach(t, *app);
	return *app ? 0 : -ESHUTDOWN;
}

static int take_app(struct homad_thread *t, void *arg)
{
	return homad_session_take(t, *(struct homad_app **)arg);
}

int homad_move_app(struct homad *d, struct homad_app *app, u32 from, u32 to)
{
	int rc = homad_call(d->threads[from], give_app, &app);

	if (rc)
		return rc;
	rc = homad_call(d->threads[to], take_app, &app);
	if (rc)
		homad_call(d->threads[from], take_app, &app);
	return rc;
}
