// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From the engine's events to the applications' completion rings. An event
 * waits inside its RPC until the ring has room, so an application that does
 * not read costs memory of its own quota and nobody's time. Rings are filled
 * and applications woken once a round.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "probes.h"
#include "fast.h"
#include "homad_trace.h"

void homad_touch(struct homad_thread *t, struct homad_app *app, u32 want)
{
	app->wake_want |= want;
	if (app->is_touched)
		return;
	app->is_touched = true;
	homa_list_add_tail(&t->touched, &app->touched);
}

void homad_unready(struct homad_rpc *priv)
{
	if (priv->ready.next && homa_list_linked(&priv->ready))
		homa_list_del(&priv->ready);
}

u32 homad_want_of(const struct homad_rpc *priv)
{
	return priv->is_private ? HOMA_SHM_ARM_ANY :
				  HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED;
}

u64 homad_seen_id(struct homad_thread *t, u64 id)
{
	struct homa_rpc *client = homa_rpc_hold(&t->ctx, id ^ 1, NULL);
	const struct homad_rpc *priv;
	u64 token;

	if (!client)
		return 0;
	priv = homa_rpc_priv(client);
	token = priv->numbered ? 0 : priv->token;
	homa_rpc_release(&t->ctx, client);
	return token ? token << 1 | 1 : 0;
}

static u64 seen_id(struct homad_thread *t, const struct homa_event *event)
{
	if (event->kind != HOMA_EV_REQUEST ||
	    homa_rpc_link(event->rpc) != t->d->local->link)
		return 0;
	return homad_seen_id(t, event->handle.id);
}

void homad_events(struct homad_thread *t)
{
	struct homa_event event;

	/* The RPC is held, because another thread may end the RPC and the attachment
	 * meanwhile. */
	while (homa_event_hold(&t->ctx, &event)) {
		struct homad_rpc *priv = homa_rpc_priv(event.rpc);
		struct homad_app *app =
			*(struct homad_app **)homa_sock_priv(event.sock);
		u64 id = seen_id(t, &event);

		homad_lock(app);
		priv->seen_id = id;
		if (!priv->app) {
			priv->app = app;
			app->rpcs++;
		}
		priv->handle = event.handle;
		priv->event = (u8)event.kind;
		priv->is_private = event.private_rpc;
		/* An RPC that fails may be waiting as complete already. */
		homad_unready(priv);
		homa_list_init(&priv->ready);
		homa_list_add_tail(&app->ready[event.kind == HOMA_EV_REQUEST ?
						       HOMAD_READY_REQUESTS :
						       HOMAD_READY_RESPONSES],
				   &priv->ready);
		homad_touch(t, app, homad_want_of(priv));
		homad_unlock(app);
		homa_rpc_release(&t->ctx, event.rpc);
	}
}

/* Notes that a client's RPC has ended without an event, so that the application is told. */
static void slot_ended(struct homad_app *app, u32 index, u8 kind, u32 error)
{
	struct homad_slot *slot = &app->client_slots[index];

	slot->kind = kind;
	slot->error = error;
	slot->next = HOMAD_NO_SLOT;
	if (app->ended_first == HOMAD_NO_SLOT)
		app->ended_first = index;
	else
		app->client_slots[app->ended_last].next = index;
	app->ended_last = index;
}

void homad_end_slot(struct homad_thread *t, struct homad_app *app, u64 token,
		    int error, u64 cookie, bool is_private)
{
	struct homad_slot *slot = &app->client_slots[token & 0xffff];

	slot->token = token;
	slot->cookie = cookie;
	slot->flags = is_private ? HOMA_CQE_PRIVATE : 0;
	slot_ended(app, (u32)(token & 0xffff),
		   error ? HOMA_CQE_FAILED : HOMA_CQE_GONE, (u32)error);
	homad_touch(t, app,
		    is_private || !error ?
			    HOMA_SHM_ARM_ANY :
			    HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
}

void homad_refuse(struct homad_thread *t, struct homad_app *app, u64 token,
		  u64 cookie, u8 flags, int error)
{
	app->counters.refused++;
	homad_end_slot(t, app, token, -error, cookie, flags & HOMA_SQE_PRIVATE);
}

/* ---- messages that the application has back ---- */

/* Records in a block: with its head it has 4 KiB. */
#define MORE_FREED 510u

/* struct homad_freed_more - what an application is told of after homad_app.freed: the response
 * to another application's RPC does not count as one of its own RPCs while it waits there. */
struct homad_freed_more {
	/* The block that was filled before. */
	struct homad_freed_more *next;
	/* The number of records in @freed. */
	u32 num;
	struct homad_freed freed[MORE_FREED];
};

static void note_freed(struct homad_app *app, u16 segment, u32 offset)
{
	app->freed[app->num_freed].segment = segment;
	app->freed[app->num_freed++].offset = offset;
}

/* There are as many as the RPCs that have ended since the application was told, because none
 * begins by which it would get more while its ring is full of such news (direct.c). */
HOMA_RARE static void note_more(struct homad_thread *t, struct homad_app *app,
				u16 segment, u32 offset)
{
	struct homad_freed_more *more = app->freed_more;

	if (app->phase != HOMAD_APP_OPEN)
		return;
	if (!more || more->num == MORE_FREED) {
		more = malloc(sizeof(*more));
		if (!more) {
			t->counters.out_of_memory++;
			homad_app_evict(t, app, "no memory to tell what is free");
			return;
		}
		more->num = 0;
		more->next = app->freed_more;
		app->freed_more = more;
	}
	more->freed[more->num].segment = segment;
	more->freed[more->num++].offset = offset;
}

/* All of @freed has been told: moves records there from a block. */
HOMA_RARE static void take_more(struct homad_app *app)
{
	struct homad_freed_more *more = app->freed_more;

	while (more->num && app->num_freed < app->max_rpcs)
		app->freed[app->num_freed++] = more->freed[--more->num];
	if (more->num)
		return;
	app->freed_more = more->next;
	free(more);
}

void homad_freed_drop(struct homad_app *app)
{
	struct homad_freed_more *more;

	while ((more = app->freed_more)) {
		app->freed_more = more->next;
		free(more);
	}
}

bool homad_free_bytes(struct homad_thread *t, struct homad_app *app,
		      u16 segment, u32 offset)
{
	if (app->num_freed == app->max_freed)
		return false;
	note_freed(app, segment, offset);
	homad_touch(t, app, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_ROOM);
	return true;
}

HOMA_RARE void homad_free_lent(struct homad_thread *t, struct homad_app *app,
			       u16 segment, u32 offset)
{
	/* The rest is for what the application itself gives to homad meanwhile. */
	if (likely(app->num_freed < app->max_rpcs))
		note_freed(app, segment, offset);
	else
		note_more(t, app, segment, offset);
	homad_touch(t, app, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_ROOM);
}

/* Called when the engine ends an RPC that an application knows of. */
void homad_forget(struct homad_thread *t, struct homad_rpc *priv)
{
	struct homad_app *app = priv->app;

	homad_lock(app);
	homad_unready(priv);
	if (priv->token && priv->client) {
		slot_ended(app, (u32)(priv->token & 0xffff), HOMA_CQE_GONE, 0);
		homad_touch(t, app, HOMA_SHM_ARM_ANY);
	} else if (priv->token) {
		homad_slot_back(t, app, priv->token);
	}
	if (priv->out && !priv->copied)
		homad_free_lent(t, app, priv->segment, priv->offset);
	app->rpcs--;
	homad_unlock(app);
}

/* ---- which messages are delivered as they are received; one_packet.c ---- */

/* Begins only with so much room that it does not end at once. */
#define WHOLE_ROOM (2 * HOMAD_BATCH)

HOMA_RARE static void stop_whole(struct homad_app *app)
{
	app->delivers_whole = false;
	homa_sock_deliver_whole(app->sock, HOMA_WHOLE_NONE);
}

/* The completion ring has room for @room entries. */
static void begin_whole(struct homad_app *app, u32 room)
{
	app->whole_tail = app->cq_tail + room - (HOMAD_BATCH - 1);
	if (likely(app->delivers_whole) || !homa_plat_alone ||
	    room < WHOLE_ROOM || app->max_rpcs - app->unanswered < WHOLE_ROOM ||
	    !homa_list_empty(&app->ready[HOMAD_READY_REQUESTS]) ||
	    !homa_list_empty(&app->ready[HOMAD_READY_RESPONSES]))
		return;
	app->whole_slots = app->max_rpcs - (HOMAD_BATCH - 1);
	app->delivers_whole = true;
	homa_sock_deliver_whole(app->sock, HOMA_WHOLE_ALL);
}

u64 homad_slot_new(struct homad_app *app, struct homa_handle handle)
{
	u32 index = app->server_free;
	struct homad_slot *slot;

	if (index == app->max_rpcs)
		return 0;
	slot = &app->server_slots[index];
	app->server_free = index + 1 + slot->next;
	slot->handle = handle;
	slot->port = 0;
	/* The cookie is never 0, and differs each time the place is used. */
	slot->cookie++;
	slot->token = slot->cookie << 16 | index;
	HOMA_WRITE_ONCE(app->unanswered, app->unanswered + 1);
	if (unlikely(app->unanswered == app->whole_slots))
		stop_whole(app);
	return slot->token;
}

void homad_slot_free(struct homad_app *app, u64 token)
{
	u32 index = (u32)(token & 0xffff);
	struct homad_slot *slot = &app->server_slots[index];

	slot->token = 0;
	HOMA_WRITE_ONCE(app->unanswered, app->unanswered - 1);
	slot->next = app->server_free - index - 1;
	app->server_free = index;
}

void homad_slot_back(struct homad_thread *t, struct homad_app *app, u64 token)
{
	homad_slot_free(app, token);
	if (!homa_list_empty(&app->ready[HOMAD_READY_REQUESTS]))
		homad_touch(t, app, 0);
}

struct homa_cqe *homad_next_cqe(struct homad_app *app)
{
	u32 at = app->cq_tail++;

	if (unlikely(app->cq_tail == app->whole_tail))
		stop_whole(app);
	return &app->rings.cqe[at & (app->rings.cq_entries - 1)];
}

static __attribute__((noinline)) u32 tell_freed(struct homad_app *app, u32 room)
{
	while (app->num_freed && room) {
		struct homa_cqe *cqe = homad_next_cqe(app);

		app->num_freed--;
		cqe->kind = HOMA_CQE_FREE;
		cqe->flags = HOMA_CQE_PRIVATE;
		cqe->num_pages = app->freed[app->num_freed].segment;
		cqe->length = app->freed[app->num_freed].offset;
		room--;
		if (!app->num_freed && unlikely(app->freed_more))
			take_more(app);
	}
	return room;
}

static void tell_ended(struct homad_app *app, u32 *room)
{
	while (app->ended_first != HOMAD_NO_SLOT && *room) {
		struct homad_slot *slot = &app->client_slots[app->ended_first];
		struct homa_cqe *cqe = homad_next_cqe(app);

		app->ended_first = slot->next;
		cqe->kind = slot->kind;
		cqe->flags = slot->flags;
		cqe->error = slot->error;
		cqe->length = 0;
		cqe->num_pages = 0;
		cqe->token = slot->token;
		cqe->cookie = slot->cookie;
		slot->token = 0;
		slot->kind = 0;
		app->counters.delivered++;
		(*room)--;
	}
}

static void fill(struct homa_cqe *cqe, const struct homa_msg_info *info,
		 const struct homad_rpc *priv)
{
	u32 i;

	cqe->kind = (u8)info->kind;
	cqe->flags = priv->is_private ? HOMA_CQE_PRIVATE : 0;
	cqe->port = info->peer_port;
	cqe->error = (u32)info->error;
	cqe->length = info->error ? 0 : info->length;
	cqe->num_pages = info->num_pages;
	cqe->id = priv->seen_id ? priv->seen_id : info->id;
	cqe->cookie = info->cookie; /* with a request it is the deadline */
	cqe->token = priv->token;
	memcpy(cqe->ip, info->peer.ip, sizeof(cqe->ip));
	cqe->encap = info->peer.encap;
	for (i = 0; i < info->num_pages; i++)
		cqe->pages[i] = info->pages[i];
}

HOMA_STATIC_ASSERT((int)HOMA_EV_REQUEST == (int)HOMA_CQE_REQUEST &&
			   (int)HOMA_EV_RESPONSE == (int)HOMA_CQE_RESPONSE &&
			   (int)HOMA_EV_FAILED == (int)HOMA_CQE_FAILED,
		   "kinds are the same");

/* Gives one message to the application; returns false if it cannot be given now. */
static bool tell_message(struct homad_thread *t, struct homad_app *app,
			 struct homad_rpc *priv)
{
	struct homa_msg_info info;

	if (priv->event == HOMA_EV_REQUEST) {
		if (app->server_free == app->max_rpcs)
			/* the application has as many unanswered requests as its quota
			 * allows */
			return false;
		priv->token = homad_slot_new(app, priv->handle);
	}
	homad_unready(priv);
	if (homa_rx_take(&t->ctx, priv->handle, &info)) {
		/* The RPC has ended in another way; what is left is told when it is
		 * reaped. */
		if (priv->event == HOMA_EV_REQUEST) {
			homad_slot_free(app, priv->token);
			priv->token = 0;
		}
		return true;
	}
	fill(homad_next_cqe(app), &info, priv);
	app->counters.delivered++;
	app->counters.rx_bytes += info.error ? 0 : info.length;
	homad_trace_rpc(t, HOMAD_TRACE_DELIVER, priv, info.length, info.error);
	HOMAD_PROBE4(deliver, app->id, info.id, info.length, info.error);
	if (priv->client) {
		if (!info.error)
			homa_hist_record(&t->rtt,
					 homa_since(t->ctx.now, priv->sent_ns));
		app->client_slots[priv->token & 0xffff].token = 0;
		priv->token = 0;
	}
	return true;
}

static void tell_messages(struct homad_thread *t, struct homad_app *app,
			  struct homa_list *ready, u32 *room)
{
	while (!homa_list_empty(ready) && *room) {
		struct homad_rpc *priv =
			homa_container_of(ready->next, struct homad_rpc, ready);
		u32 before = app->cq_tail;

		if (!tell_message(t, app, priv))
			break;
		*room -= app->cq_tail - before;
	}
}

static void signal_fd(struct homad_thread *t, struct homad_app *app, int fd)
{
	u64 one = 1;

	/* This never blocks, because no other process has our end of the pipe. If the pipe
	 * is full it is readable. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
	app->counters.wakeups++;
	t->counters.wakeups++;
}

static inline __attribute__((always_inline)) void
wake(struct homad_thread *t, struct homad_app *app, u32 want)
{
	u32 *word = &app->queues->armed;
	u32 armed, hit;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	armed = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (want & HOMA_SHM_ARM_SHARED)
		want |= HOMA_SHM_ARM_FD;
	hit = armed & want;
	if (app->ready_every)
		hit |= want & HOMA_SHM_ARM_FD;
	if (likely(!hit))
		return;
	__atomic_fetch_and(word, ~hit, __ATOMIC_SEQ_CST);
	if (hit & HOMA_SHM_ARM_ROOM)
		app->counters.room_told++;
	if (hit & (HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED | HOMA_SHM_ARM_ROOM))
		signal_fd(t, app, app->wake_fd);
	if (hit & HOMA_SHM_ARM_FD)
		signal_fd(t, app, app->ready_fd);
}

void homad_tell_room(struct homad_thread *t, struct homad_app *app)
{
	homad_lock(app);
	wake(t, app, HOMA_SHM_ARM_ROOM);
	homad_unlock(app);
}

/* Tells what is free again. Responses that wait may have waited for that alone, and nothing else
 * would have anybody look at them again (ring_room() in direct.c). */
static u32 tell_news_of_freed(struct homad_thread *t, struct homad_app *app,
			      u32 room)
{
	bool more = app->freed_more;

	room = tell_freed(app, room);
	if (unlikely(more && !app->freed_more &&
		     (HOMA_READ_ONCE(app->held_back) & HOMAD_NO_ROOM))) {
		app->retry_again = true;
		homad_look_for_room(t, app);
	}
	return room;
}

/* Returns false if something is left for which the ring has no room. */
static bool deliver(struct homad_thread *t, struct homad_app *app)
{
	struct homa_shm_ring *ring = &app->queues->cq;
	u32 head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	u32 before = app->cq_tail, room;

	app->cq_head = head;
	if (unlikely(before - head > app->rings.cq_entries)) {
		homad_app_evict(t, app, "completion ring: impossible head");
		return true;
	}
	room = app->rings.cq_entries - (before - head);
	if (app->num_freed)
		room = tell_news_of_freed(t, app, room);
	tell_ended(app, &room);
	tell_messages(t, app, &app->ready[HOMAD_READY_RESPONSES], &room);
	tell_messages(t, app, &app->ready[HOMAD_READY_REQUESTS], &room);
	if (app->cq_tail != app->cq_published) {
		__atomic_store_n(&ring->tail, app->cq_tail, __ATOMIC_RELEASE);
		t->counters.completions += app->cq_tail - app->cq_published;
		app->cq_published = app->cq_tail;
		wake(t, app, app->wake_want);
		app->wake_want = 0;
	}
	if (unlikely(homa_pool_low(app->sock)))
		homad_look_at_pool(t, app);
	begin_whole(app, room);
	return room > 0;
}

/*
 * Notes that the completion ring is full and more is waiting. rings.c looks in each turn of
 * the application whether that has changed.
 */
static void ring_full(struct homad_app *app)
{
	app->counters.ring_full++;
	homad_hold_back(app, HOMAD_CQ_FULL, true);
	__atomic_fetch_or(&app->queues->need_kick, HOMA_SHM_KICK_CONSUME,
			  __ATOMIC_SEQ_CST);
}

void homad_deliver(struct homad_thread *t)
{
	while (!homa_list_empty(&t->touched)) {
		struct homad_app *app =
			homa_container_of(t->touched.next, struct homad_app,
					  touched);

		homad_lock(app);
		homa_list_del(&app->touched);
		app->is_touched = false;
		if (app->phase == HOMAD_APP_OPEN &&
		    !HOMA_READ_ONCE(app->evicted) && !deliver(t, app))
			ring_full(app);
		homad_unlock(app);
		/* The application will answer soon, so its rings are polled. */
		homad_poll_app(t, app);
	}
}
