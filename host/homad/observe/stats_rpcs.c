// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which RPCs are open: those in the engine, which its hash table lists, and
 * those between applications of this host that went the short way (direct.c),
 * which only the tables of their applications know. Both are shown alike. Each
 * piece is one bounded job on the thread that may look.
 */
#include "admin.h"
#include "fast.h"
#include "slowpath.h"
#include "homad_stats.h"

/* The most RPCs of the engine that one job looks up. */
#define RPCS_AT_ONCE 64u
/* The most slots that one job looks through. */
#define SLOTS_AT_ONCE 2048u

/* ---- the short way ---- */

/* Describes one end of a direct RPC as the engine would; returns false if the slot has none. */
static bool look_at_direct(const struct homad_app *app,
			   const struct homad_slot *slot, bool client,
			   struct homa_rpc_look *look)
{
	const struct homad_direct *d = slot->direct;
	const struct homad_app *other;

	if (!slot->token || !d)
		return false;
	other = client ? d->server : d->client;
	memset(look, 0, sizeof(*look));
	look->handle.id = client ? d->id : d->id | 1;
	look->sock = app->sock;
	look->link = app->thread->d->local->link;
	look->peer = d->addr;
	look->port = homa_sock_port(app->sock);
	look->peer_port = other	 ? homa_sock_port(other->sock) :
			  client ? d->server_port :
				   0;
	look->client = client;
	look->phase = !client	 ? HOMA_LOOK_IN_SERVICE :
		      d->waiting ? HOMA_LOOK_NO_BUFFER :
				   HOMA_LOOK_OUTGOING;
	look->cookie = d->cookie;
	look->birth = d->sent_ns;
	look->heard_at = d->sent_ns;
	if (client) {
		look->tx_length = look->tx_sent = d->request_length;
		look->tx_granted = d->request_length;
		look->rx_length = look->rx_granted = d->waiting ? d->length : 0;
	} else {
		look->rx_length = look->rx_received = d->request_length;
		look->rx_granted = d->request_length;
	}
	return true;
}

/* Returns a slot by one number, which counts the client's slots first, then the server's. */
static const struct homad_slot *slot_at(const struct homad_app *app, u32 index,
					bool *client)
{
	*client = index < app->max_rpcs;
	return *client ? &app->client_slots[index] :
			 &app->server_slots[index - app->max_rpcs];
}

/* struct slots - a job for a fast-path thread: from slot @next on, it writes @n direct RPCs of
 * @app to @out, which has room for @max, and sets @end when it has seen all slots */
struct slots {
	struct homad_app *app;
	u32 next;
	struct homa_rpc_look *out;
	u32 n, max;
	bool end;
};

static int look_at_slots(struct homad_thread *t, void *arg)
{
	struct slots *s = arg;
	u32 budget = SLOTS_AT_ONCE;

	(void)t;
	if (s->app->phase != HOMAD_APP_OPEN)
		s->next = 2 * s->app->max_rpcs;
	while (s->next < 2 * s->app->max_rpcs && s->n < s->max && budget--) {
		bool client;
		const struct homad_slot *slot =
			slot_at(s->app, s->next++, &client);

		homad_lock(s->app);
		if (look_at_direct(s->app, slot, client, &s->out[s->n]))
			s->n++;
		homad_unlock(s->app);
	}
	s->end = s->next >= 2 * s->app->max_rpcs;
	return 0;
}

/* Returns the first attachment from number @id on that may have direct RPCs, or NULL. */
static struct homad_app *next_app(struct homad *d, u64 id)
{
	struct homa_list *pos;

	homa_list_for_each(pos, &homad_slow(d)->apps) {
		struct homad_app *app =
			homa_list_entry(pos, struct homad_attached, list)->app;

		if (app->id >= id &&
		    HOMA_READ_ONCE(app->phase) == HOMAD_APP_OPEN &&
		    (!homa_list_empty(&app->direct_client) ||
		     !homa_list_empty(&app->direct_server)))
			return app;
	}
	return NULL;
}

static void name_owner(const struct homad_app *app, struct homad_rpc_owner *owner)
{
	memset(owner, 0, sizeof(*owner));
	if (!app)
		return;
	owner->id = app->id;
	memcpy(owner->name, app->name, sizeof(owner->name));
}

/* struct some_direct - an errand for the control thread: it has the next @n direct RPCs
 * written to @out, which has room for @max, and moves @at on; all of them are @owner's */
struct some_direct {
	struct homad_rpc_cursor *at;
	struct homa_rpc_look *out;
	struct homad_rpc_owner owner;
	u32 n, max;
};

static void some_direct(struct homad *d, void *arg)
{
	struct some_direct *some = arg;
	struct homad_rpc_cursor *at = some->at;
	struct slots s = { .out = some->out, .max = some->max, .next = at->slot };

	s.app = next_app(d, at->app);
	if (!s.app) {
		at->end = true;
		return;
	}
	if (s.app->id != at->app)
		s.next = 0;
	name_owner(s.app, &some->owner);
	homad_call(s.app->thread, look_at_slots, &s);
	at->app = s.end ? s.app->id + 1 : s.app->id;
	at->slot = s.end ? 0 : s.next;
	some->n = s.n;
}

/* ---- for tools ---- */

/* struct some - a job for a fast-path thread: from @at on, it writes @n RPCs or peers of the
 * engine, @max at most, to @out, and the attachment of each RPC to @owner */
struct some {
	struct homa_look_cursor *at;
	void *out;
	struct homad_rpc_owner *owner;
	u32 n, max;
};

/* The attachments that are found here stay until this thread's next round (fast/grace.c). */
static int some_rpcs(struct homad_thread *t, void *arg)
{
	struct some *some = arg;
	const struct homa_rpc_look *look = some->out;
	u32 i;

	homad_now(t);
	some->n = homa_rpcs_look(&t->ctx, some->at, NULL, some->out, some->max);
	for (i = 0; i < some->n; i++)
		name_owner(*(struct homad_app **)homa_sock_priv(
				   (struct homa_sock *)look[i].sock),
			   &some->owner[i]);
	return 0;
}

static int some_peers(struct homad_thread *t, void *arg)
{
	struct some *some = arg;

	homad_now(t);
	some->n = homa_peers_look(&t->ctx, some->at, some->out, some->max);
	return 0;
}

u32 homad_stats_some_rpcs(struct homad *d, struct homad_rpc_cursor *at,
			  struct homa_rpc_look *out,
			  struct homad_rpc_owner *owner, u32 max)
{
	struct some some = {
		.at = &at->engine, .out = out, .owner = owner, .max = max
	};
	struct some_direct direct = { .at = at, .out = out, .max = max };
	u32 i;

	if (!at->engine.end) {
		homad_call(d->threads[0], some_rpcs, &some);
		return some.n;
	}
	homad_control(d, some_direct, &direct);
	for (i = 0; i < direct.n; i++)
		owner[i] = direct.owner;
	return direct.n;
}

u32 homad_stats_some_peers(struct homad *d, struct homa_look_cursor *at,
			   struct homa_peer_look *out, u32 max)
{
	struct some some = { .at = at, .out = out, .max = max };

	homad_call(d->threads[0], some_peers, &some);
	return some.n;
}

/* ---- for an application ---- */

/*
 * struct app_rpcs - a job of homad_stats_rpcs() for a fast-path thread
 * @app: The attachment whose RPCs are wanted.
 * @slot: The slot at which the job goes on.
 * @at: After all slots, where it goes on among the requests received through the engine.
 * @out: The RPCs are written here.
 * @n: The number of RPCs written so far.
 * @max: The number of RPCs for which there is room.
 */
struct app_rpcs {
	struct homad_app *app;
	u32 slot;
	struct homa_look_cursor at;
	struct homa_ctl_rpc *out;
	u32 n, max;
};

static void add_rpc(struct app_rpcs *some, u64 id,
		    const struct homa_rpc_look *look)
{
	struct homa_ctl_rpc *to = &some->out[some->n++];

	memset(to, 0, sizeof(*to));
	to->id = id;
	to->cookie = look->cookie;
	memcpy(to->ip, look->peer.ip, sizeof(to->ip));
	to->encap = look->peer.encap;
	to->port = look->peer_port;
	to->client = look->client;
	to->tx_length = look->tx_length;
	to->tx_sent = look->tx_sent;
	to->tx_granted = look->tx_granted;
	to->rx_length = look->rx_length;
	to->rx_remaining = look->rx_length - look->rx_received;
	to->rx_granted = look->rx_granted;
	to->ready = look->phase == HOMA_LOOK_READY ||
		    look->phase == HOMA_LOOK_FAILED;
}

/* Adds the RPC of a slot: any RPC of a client's slot, but only a direct one of a server's,
 * for the others are found in the engine. */
static void add_slot(struct homad_thread *t, struct app_rpcs *some, u32 index)
{
	struct homa_rpc_look look;
	bool client;
	const struct homad_slot *slot = slot_at(some->app, index, &client);
	u64 id = 0;

	homad_lock(some->app);
	if (look_at_direct(some->app, slot, client, &look))
		id = client ? slot->token : slot->direct->seen_id;
	homad_unlock(some->app);
	if (id)
		add_rpc(some, id, &look);
	else if (client && slot->token &&
		 !homa_rpc_look(&t->ctx, slot->handle, &look))
		add_rpc(some, slot->token, &look);
}

/* Returns the id by which the application knows a request that came through the engine. */
static u64 seen_id(struct homad_thread *t, const struct homa_rpc_look *look)
{
	struct homa_rpc *rpc =
		homa_rpc_hold(&t->ctx, look->handle.id, &look->peer);
	u64 id = 0;

	if (rpc) {
		id = ((struct homad_rpc *)homa_rpc_priv(rpc))->seen_id;
		homa_rpc_release(&t->ctx, rpc);
	}
	return id ? id : look->handle.id;
}

static int look_at_app(struct homad_thread *t, void *arg)
{
	struct app_rpcs *some = arg;
	struct homad_app *app = some->app;
	struct homa_rpc_look look[RPCS_AT_ONCE];
	u32 i, n, budget = SLOTS_AT_ONCE;

	if (app->phase != HOMAD_APP_OPEN)
		some->at.end = true;
	while (!some->at.end && some->slot < 2 * app->max_rpcs) {
		if (!budget-- || some->n == some->max)
			return 0;
		add_slot(t, some, some->slot++);
	}
	if (some->at.end || some->n == some->max)
		return 0;
	n = homa_rpcs_look(&t->ctx, &some->at, app->sock, look,
			   homa_min_u32(RPCS_AT_ONCE, some->max - some->n));
	for (i = 0; i < n; i++)
		if (!look[i].client)
			add_rpc(some, seen_id(t, &look[i]), &look[i]);
	return 0;
}

u32 homad_stats_rpcs(struct homad_app *app, struct homa_ctl_rpc *out, u32 max,
		     bool *all, u32 *rounds)
{
	struct app_rpcs some = { .app = app, .out = out, .max = max };

	/* What was submitted before this question counts. */
	*rounds += homad_turns_of_rings(app, false);
	for (; !some.at.end && some.n < max; ++*rounds)
		homad_call(app->thread, look_at_app, &some);
	*all = some.at.end;
	return some.n;
}
