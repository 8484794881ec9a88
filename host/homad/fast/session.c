// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The life of an attachment on the fast path. It opens a socket of the engine
 * over the application's receive pool; when it closes, its RPCs are ended a few
 * in each round, so that an application that dies with thousands of them does not
 * hold up the others, and when nothing in the engine knows it any more, the
 * slow path gets its memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "log.h"
#include "dest_table.h"
#include "fast.h"
#include "homad_tcp.h"
#include "layout.h"
#include "streams.h"

#define ALIGN 64u
/* The most RPCs of a closing attachment that are ended in one round. */
#define CLOSE_BUDGET 64u
/* The most slots that are looked at in a turn to end all RPCs. */
#define ABORT_SLOTS 256u

static void *aligned(size_t size)
{
	void *mem = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);

	if (mem)
		memset(mem, 0, size);
	return mem;
}

/* Makes the tables. homad makes them beforehand, see slow/app.c; tests make them here. */
static int make_slots(struct homad_app *app)
{
	if (!app->client_slots) {
		app->client_slots = calloc(1, homad_tables_bytes(app->max_rpcs));
		if (!app->client_slots)
			return -ENOMEM;
	}
	app->server_slots = app->client_slots + app->max_rpcs;
	app->freed = (struct homad_freed *)(app->server_slots + app->max_rpcs);
	app->max_freed = HOMAD_FREED_EACH * app->max_rpcs;
	app->server_free = 0;
	app->ended_first = HOMAD_NO_SLOT;
	return 0;
}

static int move_in(struct homad_thread *t, struct homad_app *app)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.ptr = app };

	if (epoll_ctl(t->epfd, EPOLL_CTL_ADD, app->kick_fd, &ev) < 0)
		return -errno;
	__atomic_store_n(&app->thread, t, __ATOMIC_SEQ_CST);
	homa_list_add_head(&t->apps, &app->member);
	t->num_apps++;
	/* Another thread may have evicted it while it had no home. */
	if (__atomic_load_n(&app->evicted, __ATOMIC_SEQ_CST))
		HOMA_WRITE_ONCE(t->some_evicted, true);
	homad_poll_app(t, app);
	return 0;
}

static void move_out(struct homad_thread *t, struct homad_app *app)
{
	homad_unpoll_app(t, app);
	epoll_ctl(t->epfd, EPOLL_CTL_DEL, app->kick_fd, NULL);
	homa_list_del(&app->member);
	t->num_apps--;
}

int homad_session_alloc(const struct homad *d, struct homad_app *app)
{
	app->sock = aligned(homa_sock_size(&d->limits));
	app->pool_mem = aligned(
		homa_pool_size((u32)(app->pool_bytes >> HOMA_BPAGE_SHIFT)));
	if (app->sock && app->pool_mem && !make_slots(app))
		return 0;
	homad_session_free(app);
	return -ENOMEM;
}

static void set_rings(struct homad_app *app, u32 rings)
{
	app->rings_backed = rings;
	app->stages_end = rings < HOMA_SHM_SQS ? rings * HOMA_SHM_STAGE : ~(u32)0;
}

/* Tells the engine and the rings which parts of the attachment's memory may be touched. */
static void set_backed(struct homad_thread *t, struct homad_app *app, u32 pages)
{
	if (!app->pool_backed)
		app->pool_backed = pages;
	set_rings(app, app->rings_backed ? app->rings_backed : HOMA_SHM_SQS);
	homa_pool_back(&t->ctx, app->sock, app->pool_backed);
}

int homad_session_open(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;
	u32 pages = (u32)(app->pool_bytes >> HOMA_BPAGE_SHIFT);
	struct homad_layout usual;
	int rc;
	u32 i;

	for (i = 0; i < HOMAD_WAYS; i++)
		/* an entry without an address: :: is one, so it needs a mark */
		app->ways[i].addr.zero = 1;
	app->numbers_end = HOMA_SHM_NUMBERS_AHEAD;
	homa_list_init(&app->ready[HOMAD_READY_RESPONSES]);
	homa_list_init(&app->ready[HOMAD_READY_REQUESTS]);
	homa_list_init(&app->direct_client);
	homa_list_init(&app->direct_server);
	homa_list_init(&app->direct_waiting);
	app->look_again = true;
	app->thread = t;
	app->phase = HOMAD_APP_OPEN;
	rc = app->sock ? 0 : homad_session_alloc(t->d, app);
	if (rc)
		return rc;
	if (!app->rings.sqe &&
	    homad_layout_make(&usual, &(struct homa_ctl_rings){ 0 }))
		homad_layout_use(&usual, app);
	homad_now(t);
	rc = homa_sock_open(&t->ctx, app->sock);
	if (rc)
		goto fail;
	if (app->owner)
		homa_sock_charge(app->sock, app->owner);
	*(struct homad_app **)homa_sock_priv(app->sock) = app;
	rc = homa_sock_set_pool(&t->ctx, app->sock, app->pool_mem, pages);
	if (!rc) {
		set_backed(t, app, pages);
		rc = move_in(t, app);
	}
	if (rc) {
		homa_sock_close(&t->ctx, app->sock, 1);
		goto fail;
	}
	return 0;
fail:
	app->phase = HOMAD_APP_MAKING;
	homad_session_free(app);
	return rc;
}

void homad_session_free(struct homad_app *app)
{
	free(app->sock);
	free(app->pool_mem);
	homad_freed_drop(app);
	app->sock = NULL;
	app->pool_mem = NULL;
	/* If @tables_bytes is set, the slow path made the memory and frees it. */
	if (!app->tables_bytes) {
		free(app->client_slots);
		app->client_slots = NULL;
	}
	app->server_slots = NULL;
	app->freed = NULL;
}

/* Has the attachments with which it shares its port get its requests from now on. */
static void leave_to_others(struct homad_app *app)
{
	if (app->shares)
		homa_sock_serve(app->sock, false);
}

static void begin_close(struct homad_thread *t, struct homad_app *app)
{
	if (app->phase != HOMAD_APP_OPEN)
		return;
	/* Once its phase has changed, no thread gives it anything. */
	homad_lock(app);
	app->phase = HOMAD_APP_CLOSING;
	homad_ring_closes(app);
	homad_unlock(app);
	leave_to_others(app);
	if (app->streams)
		homad_streams_close(t, app->streams);
	move_out(t, app);
	homa_list_add_tail(&t->closing, &app->closing);
}

/* Returns an attachment that may have another home by itself. Those with streams move with their
 * instance of TCP, and are the last ones in the list. */
static struct homad_app *movable(const struct homad_thread *t)
{
	struct homad_app *app;

	if (homa_list_empty(&t->apps))
		return NULL;
	app = homa_container_of(t->apps.next, struct homad_app, member);
	return app->streams ? NULL : app;
}

struct homad_app *homad_session_detach(struct homad_thread *t,
				       struct homad_app *app)
{
	app = app ? app : movable(t);
	if (!app || app->phase != HOMAD_APP_OPEN)
		return NULL;
	move_out(t, app);
	/* Until another thread takes the attachment, no thread polls it. */
	__atomic_store_n(&app->thread, NULL, __ATOMIC_RELAXED);
	return app;
}

int homad_session_take(struct homad_thread *t, struct homad_app *app)
{
	int rc = move_in(t, app);

	if (!rc && app->streams) {
		homa_list_del(&app->member);
		homa_list_add_tail(&t->apps, &app->member);
	}
	return rc;
}

void homad_session_settle(struct homad_thread *t, struct homad_app *app)
{
	if (likely(!homad_session_take(t, app)))
		return;
	/* It cannot be left at home nowhere. It would not be heard when it kicks, so it ends. */
	__atomic_store_n(&app->thread, t, __ATOMIC_SEQ_CST);
	homa_list_add_tail(&t->apps, &app->member);
	t->num_apps++;
	homad_app_evict(t, app, "no memory to move it to another thread");
	HOMA_WRITE_ONCE(t->some_evicted, true);
}

int homad_session_close(struct homad_thread *t, void *arg)
{
	begin_close(t, arg);
	return 0;
}

/* Has @app's home thread end it at the end of its round, and wakes a thread that sleeps. */
static void tell_home(struct homad_thread *t, struct homad_app *app)
{
	struct homad_thread *home =
		__atomic_load_n(&app->thread, __ATOMIC_SEQ_CST);
	u64 one = 1;

	if (home)
		HOMA_WRITE_ONCE(home->some_evicted, true);
	if (home != t && write(app->kick_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the home has heard of that */
}

void homad_app_evict(struct homad_thread *t, struct homad_app *app,
		     const char *why)
{
	if (app->phase != HOMAD_APP_OPEN ||
	    __atomic_exchange_n(&app->evicted, true, __ATOMIC_SEQ_CST))
		return;
	app->why = why;
	t->counters.evictions++;
	__atomic_store_n(&app->queues->state, HOMA_SHM_EVICTED, __ATOMIC_RELEASE);
	homad_log(HOMAD_WARNING,
		  "attachment ended: it broke the rules\tapp=%llu name=%s pid=%d uid=%u reason=\"%s\"",
		  (unsigned long long)app->id, app->name, (int)app->pid,
		  (unsigned int)app->uid, why);
	homad_unpoll_app(t, app);
	tell_home(t, app);
}

/* Ends the attachments of this thread that were evicted, whichever thread noticed it. */
static void close_evicted(struct homad_thread *t)
{
	struct homa_list *node = t->apps.next;

	if (likely(!HOMA_READ_ONCE(t->some_evicted)))
		return;
	HOMA_WRITE_ONCE(t->some_evicted, false);
	/* An attachment that the walk below finds unmarked marks the thread after this. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (node != &t->apps) {
		struct homad_app *app =
			homa_container_of(node, struct homad_app, member);

		node = node->next;
		if (HOMA_READ_ONCE(app->evicted))
			begin_close(t, app);
	}
}

static void hand_over(struct homad *d, struct homad_app *app)
{
	u64 one = 1;

	app->phase = HOMAD_APP_DEAD;
	HOMAD_PUSH(&d->dead, app, next_dead);
	if (write(d->dead_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

/* Has every thread released the attachment? */
static bool let_go(struct homad_app *app)
{
	bool free;

	homad_lock(app);
	free = app->rpcs == 0 && !app->is_touched;
	homad_unlock(app);
	return free;
}

/* The engine has released the attachment; has every other thread that may just have found
 * it? */
static bool forgotten(struct homad_thread *t, struct homad_app *app)
{
	if (homa_plat_alone)
		return true;
	if (!app->graced)
		homad_grace_begin(t, app);
	return homad_grace_over(t, app);
}

int homad_sessions_closing(struct homad_thread *t)
{
	struct homa_list *node;
	int n = 0;

	close_evicted(t);
	node = t->closing.next;
	while (node != &t->closing) {
		struct homad_app *app =
			homa_container_of(node, struct homad_app, closing);
		u32 left;
		int rc;

		node = node->next;
		n++;
		homad_refill(t);
		left = homad_direct_close(t, app, CLOSE_BUDGET);
		rc = homa_sock_close(&t->ctx, app->sock, left);
		homad_reap(t);
		/* Without a budget left, a response in its memory may wait yet. */
		if (rc || !left || !let_go(app) || !forgotten(t, app))
			continue;
		homa_list_del(&app->closing);
		/* To send the bytes of its streams may take long, and no thread polls for
		 * that. */
		app->lingers = app->streams && !homad_streams_idle(app->streams);
		if (app->lingers)
			homa_list_add_tail(&app->streams->tcp->lingering,
					   &app->closing);
		else
			hand_over(t->d, app);
	}
	return n;
}

static int take_port(struct homad_thread *t, struct homad_app *app, u16 port,
		     bool share)
{
	int rc = share ? homa_sock_share(&t->ctx, app->sock, port,
					 &app->unanswered) :
			 homa_sock_bind(&t->ctx, app->sock, port);

	if (!rc)
		HOMA_WRITE_ONCE(app->shares, share);
	return rc;
}

int homad_session_bind(struct homad_thread *t, void *arg)
{
	struct homad_bind *bind = arg;

	if (bind->app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	homad_now(t);
	homad_poll_app(t, bind->app);
	return take_port(t, bind->app, bind->port, false);
}

int homad_session_listen(struct homad_thread *t, void *arg)
{
	struct homad_listen *listen = arg;
	struct homa_sock *sock = listen->app->sock;
	int rc = 0;

	if (listen->app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	homad_now(t);
	homad_poll_app(t, listen->app);
	/* This is set before requests can come to the port, and not at all if the port
	 * cannot be had. */
	homa_sock_only_v4(sock, listen->flags & HOMA_CTL_LISTEN_V4);
	if (listen->port)
		rc = take_port(t, listen->app, listen->port,
			       listen->flags & HOMA_CTL_LISTEN_SHARED);
	if (!rc)
		homa_sock_serve(sock, listen->flags & HOMA_CTL_LISTEN_ON);
	listen->port = homa_sock_port(sock);
	return rc;
}

int homad_session_pool(struct homad_thread *t, void *arg)
{
	struct homad_pool *change = arg;
	struct homad_app *app = change->app;
	void *old = app->pool_mem;
	int rc;

	if (app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	/* Another thread that delivers to the attachment reads the pool's fields. */
	homad_lock(app);
	rc = app->counters.rx_bytes || !homa_sock_idle(app->sock) ?
		     -EBUSY :
		     homa_sock_set_pool(&t->ctx, app->sock, change->pool_mem,
					(u32)(change->bytes >> HOMA_BPAGE_SHIFT));
	if (!rc) {
		app->pool = change->pool;
		app->pool_bytes = change->bytes;
		app->pool_mem = change->pool_mem;
		change->pool_mem = old;
		app->pool_backed = (u32)(change->bytes >> HOMA_BPAGE_SHIFT);
		if (change->backed)
			app->pool_backed = homa_pool_back(&t->ctx, app->sock,
							  change->backed);
	}
	homad_unlock(app);
	return rc;
}

int homad_session_back(struct homad_thread *t, void *arg)
{
	struct homad_back *back = arg;
	struct homad_app *app = back->app;

	if (app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	homad_now(t);
	homad_refill(t);
	homad_lock(app);
	app->pool_backed = homa_pool_back(&t->ctx, app->sock, back->pages);
	set_rings(app, back->rings);
	app->look_again = true;
	if (back->answer)
		__atomic_store_n(&app->asked_memory, false, __ATOMIC_RELEASE);
	homad_unlock(app);
	back->pages = app->pool_backed;
	homad_poll_app(t, app);
	if (back->answer)
		homad_look_at_pool(t, app);
	return 0;
}

static int exchange_fd(int *fd, int with)
{
	int before = *fd;

	*fd = with;
	return before;
}

int homad_session_wires(struct homad_thread *t, void *arg)
{
	struct homad_wires *wires = arg;
	struct homad_app *app = wires->app;

	if (app->phase != HOMAD_APP_OPEN || app->evicted)
		return -ESHUTDOWN;
	/* Another thread that delivers to the attachment writes to these descriptors. */
	homad_lock(app);
	wires->wake_fd = exchange_fd(&app->wake_fd, wires->wake_fd);
	wires->ready_fd = exchange_fd(&app->ready_fd, wires->ready_fd);
	app->ready_every = false;
	app->rings_bell = wires->rings_bell;
	app->pid = wires->pid;
	app->gid = wires->gid;
	app->look_again = true;
	homad_unlock(app);
	homad_poll_app(t, app);
	return 0;
}

int homad_session_route(struct homad_thread *t, void *arg)
{
	struct homad_question *q = arg;
	const struct homad_dest *dest;

	homad_now(t);
	if (homa_addr_is_any(&q->addr)) {
		q->error = 0;
		return 1;
	}
	dest = homad_dest_find(&t->dests, &q->addr);
	if (!dest || homa_since(t->ctx.now, dest->checked) > HOMAD_BELIEVE_NS)
		return 0;
	q->error = dest->error;
	return 1;
}

int homad_session_routed(struct homad_thread *t, void *arg)
{
	struct homad_question *q = arg;
	struct homad *d = t->d;
	u64 one = 1;

	homad_now(t);
	q->error = homad_dest_learn(t, q);
	HOMAD_PUSH(&d->answered, q, next);
	if (write(d->answered_fd, &one, sizeof(one)) < 0)
		return 0; /* the counter is full, so the eventfd is readable */
	return 0;
}

void homad_abort_slot(struct homad_thread *t, struct homad_app *app, u32 index,
		      u64 token, int error)
{
	struct homad_slot slot;

	homad_lock(app);
	slot = app->client_slots[index];
	homad_unlock(app);
	/* RPCs that have ended already will be told of soon. */
	if (!slot.token || slot.kind || (token && slot.token != token))
		return;
	if (slot.direct)
		homad_direct_abort(t, app, slot.token, error);
	else
		homa_rpc_abort(&t->ctx, slot.handle, error);
}

u32 homad_abort_some(struct homad_thread *t, struct homad_app *app, u32 from,
		     int error)
{
	u32 i, end = from + homa_min_u32(app->max_rpcs - from, ABORT_SLOTS);

	for (i = from; i < end; i++)
		homad_abort_slot(t, app, i, 0, error);
	return end < app->max_rpcs ? end : 0;
}

int homad_session_shutdown(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;

	if (app->phase != HOMAD_APP_OPEN)
		return -ESHUTDOWN;
	/* Nothing begins after the first job, so when the last is done there is nothing to end. */
	if (app->shut && !app->shut_next)
		return 0;
	if (!app->shut) {
		HOMA_WRITE_ONCE(app->shut, true);
		leave_to_others(app);
		__atomic_store_n(&app->queues->state, HOMA_SHM_CLOSED,
				 __ATOMIC_RELEASE);
	}
	homad_now(t);
	app->shut_next = homad_abort_some(t, app, app->shut_next, 0);
	homad_lock(app);
	homad_touch(t, app, HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED);
	homad_unlock(app);
	return app->shut_next != 0;
}
