// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * An instance of TCP moves from one thread to another, as threads come and go. Its attachments go
 * with it, also those that are closing, because only the thread that runs an instance looks at its
 * connections. Nothing of TCP itself changes: what comes in meanwhile waits in the rings to the
 * instance, and its timers are late.
 */
#include <errno.h>
#include "fast.h"
#include "homad_tcp.h"
#include "streams.h"

static bool belongs(const struct homad_app *app, const struct homad_tcp *tcp)
{
	return app->streams && app->streams->tcp == tcp;
}

static void take_out(struct homad_thread *t, struct homad_tcp *tcp)
{
	struct homa_list *node = t->apps.next;
	struct homad_app *app;

	while (node != &t->apps) {
		app = homa_container_of(node, struct homad_app, member);
		node = node->next;
		if (belongs(app, tcp) && homad_session_detach(t, app))
			homa_list_add_tail(&tcp->moving, &app->member);
	}
	node = t->closing.next;
	while (node != &t->closing) {
		app = homa_container_of(node, struct homad_app, closing);
		node = node->next;
		if (!belongs(app, tcp))
			continue;
		homa_list_del(&app->closing);
		homa_list_add_tail(&tcp->closing, &app->closing);
	}
}

int homad_tcp_give(struct homad_thread *t, void *arg)
{
	struct homad_tcp *tcp = arg;
	u32 i;

	if (!(t->tcps >> tcp->index & 1))
		return -ENOENT;
	/* Messages that wait for the attachments are delivered before they go. */
	homad_deliver(t);
	take_out(t, tcp);
	homad_tcp_drop(t, tcp);
	for (i = 0; !t->tcp && i < t->num_ports; i++)
		homad_egress_leave(t, t->ports[i]);
	return 0;
}

/* From now on @t has the closed attachment of @closing, about whose streams the slow path may
 * still ask. */
static void move_closed(struct homad_thread *t, struct homa_list *closing)
{
	struct homad_app *app =
		homa_container_of(closing, struct homad_app, closing);

	__atomic_store_n(&app->thread, t, __ATOMIC_SEQ_CST);
}

int homad_tcp_take_over(struct homad_thread *t, void *arg)
{
	struct homad_tcp *tcp = arg;
	struct homa_list *node;

	homad_tcp_run(t, tcp);
	/* The round that has begun is the instance's, too. */
	homad_now(t);
	homad_tcp_round(t);
	while ((node = homa_list_pop(&tcp->moving)))
		homad_session_settle(t, homa_container_of(node, struct homad_app,
							  member));
	while ((node = homa_list_pop(&tcp->closing))) {
		move_closed(t, node);
		homa_list_add_tail(&t->closing, node);
	}
	homa_list_for_each(node, &tcp->lingering)
		move_closed(t, node);
	/* Timers of the instance may be due. */
	t->deadline = 0;
	return 0;
}

/* ---- one attachment ---- */

/* Does the attachment use no stream and no listener? */
static bool is_fresh(const struct homad_streams *s)
{
	return !s->num_open && !s->num_aliases && !s->num_holding && !s->joined;
}

int homad_streams_leave(struct homad_thread *t, void *arg)
{
	struct homad_streams *s = arg;

	if (s->app->evicted)
		return -ESHUTDOWN;
	if (!is_fresh(s))
		return -EBUSY;
	homad_deliver(t);
	if (!homad_session_detach(t, s->app))
		return -ESHUTDOWN;
	homa_list_del(&s->touched);
	return 0;
}

int homad_streams_arrive(struct homad_thread *t, void *arg)
{
	struct homad_streams *s = arg;

	homad_tcp_enter(t, s->tcp);
	s->ports_tried = 0;
	if (s->starved)
		t->tcp->retry_at = 0;
	homad_streams_touch(t, s);
	homad_session_settle(t, s->app);
	t->deadline = 0;
	return 0;
}
