// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Copying attachments and users, some at a time. Those that come or go meanwhile are in
 * the copy or are not; each that is in it is as it was at one moment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "admin.h"
#include "apps.h"
#include "attach.h"
#include "tcp_slow.h"

#define APPS_AT_ONCE 32u
#define BUCKETS_AT_ONCE 32u
#define USERS_AT_ONCE 64u

/* struct some_apps - an errand for the control thread: it writes copies of the next @num
 * attachments, from number @from on, to @app */
struct some_apps {
	u64 from;
	struct homad_app_view app[APPS_AT_ONCE];
	u32 num;
};

/* struct some_users - an errand for the control thread: it writes copies of the next @num
 * users to @user. It begins in the hash bucket @bucket, after the first @skip users of it,
 * and moves both on. */
struct some_users {
	u32 bucket, skip;
	struct homad_user_view user[USERS_AT_ONCE];
	u32 num;
};

/* Counts the entries in a ring. The application writes the indices, so they may be any
 * numbers. */
static u32 queue_depth(const struct homa_shm_ring *ring, u32 entries)
{
	const u32 depth = HOMA_READ_ONCE(ring->tail) - HOMA_READ_ONCE(ring->head);

	return depth <= entries ? depth : entries;
}

static void view_rings(struct homad_app_view *v, const struct homad_app *app)
{
	const struct homa_shm_header *h = app->queues;
	u32 i;

	for (i = 0; i < HOMA_SHM_SQS; i++)
		v->submitted += queue_depth(&h->sq[i], app->rings.sq_entries);
	v->completed = queue_depth(&h->cq, app->rings.cq_entries);
	v->rings.submit = app->rings.sq_entries;
	v->rings.complete = app->rings.cq_entries;
	v->rings.release = app->rings.releases;
}

static void view(struct homad_app_view *v, const struct homad_attached *attached)
{
	struct homad_app *app = attached->app;

	memset(v, 0, sizeof(*v));
	v->id = app->id;
	memcpy(v->name, app->name, sizeof(v->name));
	v->pid = app->pid;
	v->uid = app->uid;
	v->phase = HOMA_READ_ONCE(app->phase);
	v->port = v->phase == HOMAD_APP_OPEN && app->sock ?
			  homa_sock_port(app->sock) :
			  attached->port;
	v->shares = HOMA_READ_ONCE(app->shares);
	v->polled = HOMA_READ_ONCE(app->is_polled);
	v->since_ns = attached->since_ns;
	v->thread = app->thread ? app->thread->index : 0;
	v->rpcs = HOMA_READ_ONCE(app->rpcs);
	v->max_rpcs = app->max_rpcs;
	v->pool_bytes = app->pool_bytes;
	v->memory = homad_attachment(app)->memory;
	v->send_bytes = homad_attachment(app)->send_bytes;
	v->has_streams = app->streams;
	if (app->streams) {
		v->streams = HOMA_READ_ONCE(app->streams->num_open);
		v->stream_tx = HOMA_READ_ONCE(app->streams->tx_bytes);
		v->stream_rx = HOMA_READ_ONCE(app->streams->rx_bytes);
	}
	if (app->queues)
		view_rings(v, app);
#define X(name, text) v->counters.name = HOMA_READ_ONCE(app->counters.name);
	HOMAD_APP_COUNTERS(X)
#undef X
}

static void look_at_apps(struct homad *d, void *arg)
{
	struct some_apps *some = arg;
	struct homa_list *pos;

	some->num = 0;
	homa_list_for_each(pos, &homad_slow(d)->apps) {
		const struct homad_attached *attached =
			homa_list_entry(pos, struct homad_attached, list);

		if (attached->app->id < some->from)
			continue;
		if (some->num == APPS_AT_ONCE)
			return;
		view(&some->app[some->num++], attached);
	}
}

/* Copies the users of a bucket; returns false if there was no room for all of them. */
static bool look_at_bucket(struct some_users *some, struct homa_list *bucket)
{
	struct homa_list *pos;
	u32 at = 0;

	/* Nobody hears when the last of a user's peers is forgotten, or when what he has asked is
	 * paid for. */
	if (!some->skip)
		homad_users_sweep(bucket);
	homa_list_for_each(pos, bucket) {
		const struct homad_user *user =
			homa_list_entry(pos, struct homad_user, list);

		if (at++ < some->skip)
			continue;
		if (some->num == USERS_AT_ONCE)
			return false;
		some->user[some->num++] = (struct homad_user_view){
			.uid = user->uid,
			.memory = user->bytes.shared,
			.rpcs = HOMA_READ_ONCE(user->owner.rpcs),
			.peers = HOMA_READ_ONCE(user->owner.peers),
			.peers_refused =
				HOMA_READ_ONCE(user->owner.peers_refused),
			.copied = HOMA_READ_ONCE(user->bytes.copies),
			.listeners = user->listeners,
			.stream_tx = user->tcp_tx_bytes,
			.stream_rx = user->tcp_rx_bytes,
		};
		some->skip++;
	}
	some->skip = 0;
	return true;
}

static void look_at_users(struct homad *d, void *arg)
{
	struct some_users *some = arg;
	u32 budget = BUCKETS_AT_ONCE;

	some->num = 0;
	while (budget-- && some->bucket < HOMAD_USER_BUCKETS &&
	       look_at_bucket(some, &homad_attach(d)->users[some->bucket]))
		some->bucket++;
}

static void look_at_counts(struct homad *d, void *arg)
{
	const struct homad_slow *slow = homad_slow(d);
	struct homad_slow_view *v = arg;

	v->num_apps = slow->num_apps;
	v->attached = slow->attached;
	v->detached = slow->detached;
	v->refused = slow->refused;
	v->evicted = slow->evicted;
	v->handed_over = slow->handed_over;
	v->handovers_expired = slow->handovers_expired;
	v->memory_grown = homad_attach(d)->memory_grown;
	v->memory_shrunk = homad_attach(d)->memory_shrunk;
	v->memory_refused = homad_attach(d)->memory_refused;
	if (!slow->tcp)
		return;
	v->listens_refused = slow->tcp->listens_refused;
	v->taken = slow->tcp->taken;
	v->takes_refused = slow->tcp->takes_refused;
	v->takes_elsewhere = slow->tcp->takes_elsewhere;
}

/* ---- putting the pieces together ---- */

/* Appends @num entries from @from to the list at @to, which has @count entries of @size
 * bytes. */
static int append(void *to, u32 *count, const void *from, u32 num, size_t size)
{
	u8 **list = to, *grown;

	if (!num)
		return 0;
	grown = realloc(*list, (*count + num) * size);
	if (!grown)
		return -ENOMEM;
	memcpy(grown + *count * size, from, num * size);
	*count += num;
	*list = grown;
	return 0;
}

static int get_apps(struct homad *d, struct homad_apps *apps)
{
	struct some_apps *some = calloc(1, sizeof(*some));
	int rc = some ? 0 : -ENOMEM;

	while (!rc) {
		homad_control(d, look_at_apps, some);
		if (!some->num)
			break;
		some->from = some->app[some->num - 1].id + 1;
		rc = append(&apps->app, &apps->num_apps, some->app, some->num,
			    sizeof(*apps->app));
	}
	free(some);
	return rc;
}

static int by_uid(const void *a, const void *b)
{
	const struct homad_user_view *left = a, *right = b;

	return left->uid < right->uid ? -1 : left->uid > right->uid;
}

static int get_users(struct homad *d, struct homad_apps *apps)
{
	struct some_users *some = calloc(1, sizeof(*some));
	int rc = some ? 0 : -ENOMEM;

	while (!rc && some->bucket < HOMAD_USER_BUCKETS) {
		homad_control(d, look_at_users, some);
		rc = append(&apps->user, &apps->num_users, some->user,
			    some->num, sizeof(*apps->user));
	}
	free(some);
	if (apps->num_users)
		qsort(apps->user, apps->num_users, sizeof(*apps->user), by_uid);
	return rc;
}

/* Adds the streams of open attachments to their users; the users' accounts only have those
 * of attachments that have ended. */
static void add_streams(struct homad_apps *apps)
{
	u32 i;

	for (i = 0; i < apps->num_apps; i++) {
		const struct homad_app_view *app = &apps->app[i];
		struct homad_user_view key = { .uid = app->uid }, *user = NULL;

		if (app->has_streams && apps->num_users)
			user = bsearch(&key, apps->user, apps->num_users,
				       sizeof(key), by_uid);
		if (!user)
			continue;
		user->streams += app->streams;
		user->stream_tx += app->stream_tx;
		user->stream_rx += app->stream_rx;
	}
}

int homad_apps_look(struct homad *d, struct homad_apps *apps)
{
	int rc;

	memset(apps, 0, sizeof(*apps));
	homad_control(d, look_at_counts, &apps->slow);
	rc = get_apps(d, apps);
	if (!rc)
		rc = get_users(d, apps);
	add_streams(apps);
	return rc;
}

void homad_apps_free(struct homad_apps *apps)
{
	free(apps->app);
	free(apps->user);
	memset(apps, 0, sizeof(*apps));
}

u32 homad_apps_polled(const struct homad_apps *apps, u32 thread)
{
	u32 i, n = 0;

	for (i = 0; i < apps->num_apps; i++)
		n += apps->app[i].polled && apps->app[i].thread == thread;
	return n;
}
