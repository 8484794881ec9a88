// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Whose rings are looked at, and in which order. Users take turns, and of a user his
 * attachments (deficit round robin, Shreedhar and Varghese 1995, twice): one with a
 * hundred attachments gets as much of a thread as one with a single attachment, when
 * both want more than there is. A look at an attachment's rings costs its user one unit
 * of credit, and what was done there one each, as much as a turn of commands at most;
 * bytes that homad copies and commands that take long count as several. So nobody owes
 * more than he gets in the next round, and each user is looked at in each. A user who is
 * alone is not limited.
 *
 * Whoever is quiet for a while is not polled any more and has to kick; so a round costs
 * as much as there are applications at work, not as there are attached.
 */
#include "fast.h"

/* Most commands in a round over all applications, so that packets are not left waiting. */
#define ROUND_COMMANDS 256u
/* Time after which an application that is quiet must kick, ns. */
#define QUIET_NS 200000u

static struct homad_app *app_of(struct homa_list *node)
{
	return homa_container_of(node, struct homad_app, polled);
}

static struct homad_polled *user_of(struct homa_list *node)
{
	return homa_container_of(node, struct homad_polled, node);
}

/* Stops polling an application that was quiet for long: it must kick from now on, unless it
 * just did something. */
static void park(struct homad_thread *t, struct homad_app *app)
{
	homad_ask_kick(app);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (homad_rings_waiting(app)) {
		__atomic_store_n(&app->queues->need_kick, 0, __ATOMIC_RELAXED);
		return;
	}
	homad_unpoll_app(t, app);
}

/* Moves the attachment whose look-up was put off last to the front: of several attachments
 * of a user, and of more users than there can be questions, each gets its own in time,
 * since those that have been first are before those that have not. */
static void next_is_first(struct homad_thread *t)
{
	struct homad_app *app = t->put_off;
	struct homad_polled *user;

	t->put_off = NULL;
	if (__atomic_load_n(&app->thread, __ATOMIC_RELAXED) != t ||
	    !app->is_polled)
		return;
	user = homad_polled_of(t, app);
	homa_list_del(&app->polled);
	homa_list_add_head(&user->apps, &app->polled);
	homa_list_del(&user->node);
	homa_list_add_head(&t->users, &user->node);
}

/* Returns the first entry of the list and moves it to the end, so that the others come
 * before it. */
static struct homa_list *next_turn(struct homa_list *list)
{
	struct homa_list *first = list->next;

	if (first->next != list) {
		homa_list_del(first);
		homa_list_add_tail(list, first);
	}
	return first;
}

static u32 turn_of_user(struct homad_thread *t, struct homad_polled *user,
			u32 most)
{
	bool alone = t->num_users == 1;
	u32 left = user->num, total = 0, done;

	if (!alone)
		user->credit = user->credit < HOMAD_USER_CREDIT ?
				       user->credit + HOMAD_USER_CREDIT :
				       2 * HOMAD_USER_CREDIT;
	while (left && total < most && (alone || user->credit > 0) &&
	       !homa_list_empty(&user->apps)) {
		struct homad_app *app = app_of(next_turn(&user->apps));

		left--;
		homa_prefetch(&app_of(user->apps.next)->queues);
		done = homad_look_at_rings(t, app);
		total += done;
		user->credit -= homad_turn_cost(done);
		if (done)
			app->quiet_since = t->ctx.now;
		else if (homa_since(t->ctx.now, app->quiet_since) > QUIET_NS)
			park(t, app);
	}
	if (left && user->credit <= 0)
		t->counters.credit_out++;
	/* A user who got everything saves up no credit; a user who is alone owes
	 * nothing. */
	if (alone || (!left && user->credit > 0))
		user->credit = 0;
	return total;
}

int homad_commands(struct homad_thread *t)
{
	u32 left = t->num_users, total = 0;

	while (left-- && total < ROUND_COMMANDS && !homa_list_empty(&t->users)) {
		struct homad_polled *user = user_of(next_turn(&t->users));

		total += turn_of_user(t, user, ROUND_COMMANDS - total);
	}
	if (unlikely(t->put_off))
		next_is_first(t);
	if (total) {
		t->counters.commands += total;
		homad_tx_early_end(t);
	}
	return (int)total;
}

/* Returns the next polled attachment after @app: the first if @app is NULL, NULL after the
 * last. */
static struct homad_app *next_polled(struct homad_thread *t, struct homad_app *app)
{
	struct homa_list *user;

	if (app && app->polled.next != &homad_polled_of(t, app)->apps)
		return app_of(app->polled.next);
	user = app ? homad_polled_of(t, app)->node.next : t->users.next;
	return user == &t->users ? NULL : app_of(user_of(user)->apps.next);
}

bool homad_ask_kicks(struct homad_thread *t)
{
	struct homad_app *app = NULL;

	while ((app = next_polled(t, app)))
		homad_ask_kick(app);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while ((app = next_polled(t, app)))
		if (homad_rings_waiting(app))
			return true;
	return false;
}

void homad_drop_kicks(struct homad_thread *t)
{
	struct homad_app *app = NULL;

	while ((app = next_polled(t, app)))
		__atomic_store_n(&app->queues->need_kick, 0, __ATOMIC_RELAXED);
}
