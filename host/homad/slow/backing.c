// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * More memory for an attachment that uses what it has, and less when it is idle.
 *
 * The fast path says when few pages of a receive pool are left, or when an
 * application uses submission rings that have nothing behind them (homad.wanting).
 * The user's account is charged, the worker has the kernel make the pages, and then
 * the fast path may give them to messages. A user whose account is full gets what
 * is left in it; if that is nothing, the attachment is looked at again as long as it
 * wants more, and its messages wait meanwhile.
 *
 * Pools that have grown are looked at in turn. One that had no message for a while
 * gives back what no message is in: first the fast path gives those pages to no
 * message any more, then the worker makes a hole, then the account gets them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"

#define PAGE 4096u
#define POOL_PAGE ((u64)1 << HOMA_BPAGE_SHIFT)
#define TICK_NS 250000000ull
/* The most attachments that are looked at in one tick: of those that have grown in all, of those
 * that were refused memory for each user, and of these in all. */
#define LOOKS 16u
#define LOOKS_IN_ALL 256u
#define IDLE_NS 4000000000ull

/**
 * struct change - memory on its way to an attachment, or from it
 * @work: The errand for the memory thread.
 * @app: The attachment.
 * @pages: The pages of the pool that have memory behind them afterwards.
 * @rings: The submission rings that have memory behind them afterwards.
 * @pools: homad_attachment.pools when the change began, which tells whether the pool is still
 *	the same one.
 * @num: The number of entries of @ranges.
 * @at: The entry whose memory changes next.
 * @bytes: The bytes by which the attachment's memory changes.
 * @pool_bytes: The part of these bytes that is in the pool.
 * @back: @ranges get memory; if it is not set, the one range loses its memory.
 * @rc: 0 or the error of the memory thread.
 * @ranges: The memory that has to change yet.
 */
struct change {
	struct homad_work work;
	struct homad_app *app;
	u32 pages, rings, pools, num, at;
	u64 bytes, pool_bytes;
	bool back;
	int rc;
	struct range {
		/* Where the range begins. */
		u8 *base;
		u64 bytes;
	} ranges[1 + 2 * HOMA_SHM_SQS];
};

static bool ticking(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	return !homa_list_empty(&attach->grown) ||
	       !homa_list_empty(&attach->refusers);
}

/* Starts or stops the timer, which runs while there is an attachment to look at. @before is
 * what ticking() said before the lists changed. */
static void set_tick(struct homad *d, bool before)
{
	bool now = ticking(d);

	if (now != before)
		homad_timer_set(homad_attach(d)->tick.fd, now ? TICK_NS : 0);
}

/* ---- the worker's ---- */

/* Has memory behind more of a range, or behind less; at most @most bytes. Returns how many. */
static u64 step(struct change *change, struct range *range, u64 most)
{
	u64 bytes = homa_min_u64(range->bytes, most);

	if (change->back)
		change->rc = homad_populate(range->base, bytes);
	else if (madvise(range->base, bytes, MADV_REMOVE))
		change->rc = -errno;
	range->base += bytes;
	range->bytes -= bytes;
	return bytes;
}

static bool run(struct homad_work *work)
{
	struct change *change = homa_container_of(work, struct change, work);
	u64 left = HOMAD_SLICE;

	while (change->at < change->num && !change->rc && left) {
		struct range *range = &change->ranges[change->at];

		left -= step(change, range, left);
		change->at += !range->bytes;
	}
	return change->at < change->num && !change->rc;
}

/* ---- more ---- */

static void want(struct homad *d, struct homad_app *app);

static u64 seen_of(const struct homad_app *app)
{
	return HOMA_READ_ONCE(app->counters.delivered) +
	       HOMA_READ_ONCE(app->counters.requests) +
	       HOMA_READ_ONCE(app->counters.replies);
}

static void uncharge(struct homad_attachment *a, u64 bytes)
{
	a->memory -= bytes;
	homad_settle(a->user, bytes);
}

/* Has the attachment wait for the next tick, at which it is looked at and answered. */
static void wait_for_tick(struct homad *d, struct homad_attachment *a)
{
	bool before = ticking(d);

	if (homa_list_linked(&a->refused))
		return;
	homa_list_add_tail(&a->user->refused, &a->refused);
	if (!homa_list_linked(&a->user->refuser))
		homa_list_add_tail(&homad_attach(d)->refusers, &a->user->refuser);
	set_tick(d, before);
}

/* The attachment does not wait any more. */
static void wait_no_more(struct homad_attachment *a)
{
	homa_list_del(&a->refused);
	if (homa_list_empty(&a->user->refused))
		homa_list_del(&a->user->refuser);
}

/* Called when the memory thread is done: tells the fast path what memory is there. */
static void more_done(struct homad *d, struct homad_work *work)
{
	struct change *change = homa_container_of(work, struct change, work);
	struct homad_attachment *a = homad_attachment(change->app);
	struct homad_attach *attach = homad_attach(d);
	struct homad_back back = { .app = change->app, .answer = true };
	bool before = ticking(d);

	a->changing = false;
	if (change->rc) {
		/* The fast path gets no answer yet, or it would ask again at once. */
		uncharge(a, change->bytes);
		if (!a->over)
			wait_for_tick(d, a);
		goto out;
	}
	a->rings_backed = change->rings;
	/* If the pool was replaced meanwhile, its pages are gone. */
	if (change->pools == a->pools)
		a->pool_backed = change->pages;
	else
		uncharge(a, change->pool_bytes);
	attach->memory_grown += change->bytes != 0;
	if (a->pool_backed > HOMAD_POOL_FIRST && !a->over &&
	    !homa_list_linked(&a->grown)) {
		a->seen = seen_of(change->app);
		a->seen_at = homa_clock_ns();
		homa_list_add_tail(&attach->grown, &a->grown);
	}
	back.pages = a->pool_backed;
	back.rings = a->rings_backed;
	if (!a->over)
		homad_call(change->app->thread, homad_session_back, &back);
	set_tick(d, before);
out:
	homad_work_over(d, change->app);
	free(change);
}

static void add_range(struct change *change, u8 *base, u64 from, u64 to)
{
	from = from / PAGE * PAGE;
	change->ranges[change->num].base = base + from;
	change->ranges[change->num++].bytes =
		(to - from + PAGE - 1) / PAGE * PAGE;
}

static void add_rings(struct change *change, struct homad_app *app, u32 from)
{
	const struct homad_layout *l = &homad_attachment(app)->layout;
	u32 i;

	/* The first ring always has memory. */
	for (i = from; i < change->rings; i++) {
		add_range(change, (u8 *)app->queues,
			  homad_layout_ring_end(l, i - 1),
			  homad_layout_ring_end(l, i));
		add_range(change, app->seg[0].base, (u64)i * HOMA_SHM_STAGE,
			  (u64)(i + 1) * HOMA_SHM_STAGE);
	}
}

/* Returns the bytes that a submission ring needs for its entries and its stage. */
static u64 ring_bytes(const struct homad_attachment *a)
{
	return a->layout.entries.submit * (u64)sizeof(struct homa_sqe) +
	       HOMA_SHM_STAGE;
}

/* Fills in as much of the wanted memory as its user has room for: rings first, which cannot
 * do with a part. */
static void fit(struct homad *d, const struct homad_attachment *a,
		struct change *change)
{
	u64 room = homad_room(d, a->user);

	change->rings = a->rings_backed +
			(u32)homa_min_u64(change->rings - a->rings_backed,
					  room / ring_bytes(a));
	room -= (change->rings - a->rings_backed) * ring_bytes(a);
	change->pages = a->pool_backed +
			(u32)homa_min_u64(change->pages - a->pool_backed,
					  room / POOL_PAGE);
	change->pool_bytes = (change->pages - a->pool_backed) * POOL_PAGE;
	change->bytes = change->pool_bytes +
			(change->rings - a->rings_backed) * ring_bytes(a);
}

/* Has an attachment wait whose user has no room. This is logged each time that an attachment
 * begins to wait. */
static void refuse(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);

	homad_attach(d)->memory_refused++;
	if (homa_list_linked(&a->refused))
		return;
	wait_for_tick(d, a);
	homad_log(HOMAD_INFO,
		  "an attachment waits for memory: its user has all that quota.user_memory and quota.total_memory allow\tapp=%llu name=%s pid=%d uid=%u user_kib=%llu",
		  (unsigned long long)app->id, app->name, (int)app->pid,
		  (unsigned int)app->uid,
		  (unsigned long long)a->user->bytes.shared >> 10);
}

static void want(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	u32 sqs = __atomic_load_n(&app->queues->sqs, __ATOMIC_RELAXED);
	u32 most = (u32)(app->pool_bytes >> HOMA_BPAGE_SHIFT);
	struct change *change;
	u32 lacks;

	a->wants = a->changing;
	if (a->changing || a->over)
		return;
	change = calloc(1, sizeof(*change));
	if (!change) {
		refuse(d, app);
		return;
	}
	change->work = (struct homad_work){ .run = run, .done = more_done };
	change->app = app;
	change->back = true;
	change->pools = a->pools;
	change->rings =
		homa_max_u32(a->rings_backed, homa_min_u32(sqs, HOMA_SHM_SQS));
	change->pages = homa_max_u32(a->pool_backed,
				     homa_min_u32(app->want_pages, most));
	lacks = change->pages - a->pool_backed + change->rings - a->rings_backed;
	fit(d, a, change);
	if (lacks && !change->bytes) {
		free(change);
		refuse(d, app);
		return;
	}
	/* An attachment that asks for memory that it has must not keep three threads at
	 * work. */
	if (!lacks && !homa_list_linked(&a->refused)) {
		free(change);
		wait_for_tick(d, a);
		return;
	}
	wait_no_more(a);
	a->memory += change->bytes;
	homad_account(a->user, change->bytes);
	add_rings(change, app, a->rings_backed);
	if (change->pool_bytes)
		add_range(change, app->pool, a->pool_backed * POOL_PAGE,
			  change->pages * POOL_PAGE);
	a->changing = true;
	a->works++;
	homad_work(d, &a->user->line, &change->work);
}

void homad_backing_wanted(struct homad *d)
{
	struct homad_app *app =
		__atomic_exchange_n(&d->wanting, NULL, __ATOMIC_ACQUIRE);
	struct homad_app *next;

	for (; app; app = next) {
		next = app->next_wanting;
		want(d, app);
	}
}

/* ---- less ---- */

static void less_done(struct homad *d, struct homad_work *work)
{
	struct change *change = homa_container_of(work, struct change, work);
	struct homad_attachment *a = homad_attachment(change->app);

	if (change->rc)
		homad_log(HOMAD_WARNING,
			  "the kernel does not take memory back: %s",
			  strerror(-change->rc));
	uncharge(a, change->bytes);
	a->changing = false;
	if (a->wants)
		want(d, change->app);
	homad_work_over(d, change->app);
	free(change);
}

/* Takes memory from an attachment that was idle for long; returns false if none could be
 * taken now. */
static bool shrink(struct homad *d, struct homad_attachment *a)
{
	struct homad_back back = { .app = &a->app,
				   .pages = HOMAD_POOL_FIRST,
				   .rings = a->rings_backed };
	struct change *change = calloc(1, sizeof(*change));
	u32 had = a->pool_backed;

	if (!change)
		return false;
	if (homad_call(a->app.thread, homad_session_back, &back) ||
	    back.pages >= had) {
		free(change);
		return false;
	}
	change->work = (struct homad_work){ .run = run, .done = less_done };
	change->app = &a->app;
	change->bytes = (had - back.pages) * POOL_PAGE;
	add_range(change, a->app.pool, back.pages * POOL_PAGE, had * POOL_PAGE);
	a->pool_backed = back.pages;
	a->changing = true;
	a->works++;
	homad_attach(d)->memory_shrunk++;
	homad_work(d, &a->user->line, &change->work);
	return true;
}

static void look_at(struct homad *d, struct homad_attachment *a, u64 now)
{
	u64 seen = seen_of(&a->app);

	homa_list_del(&a->grown);
	if (seen != a->seen || a->changing) {
		a->seen = seen;
		a->seen_at = now;
	} else if (homa_since(now, a->seen_at) > IDLE_NS) {
		shrink(d, a);
		a->seen_at = now;
	}
	if (a->pool_backed > HOMAD_POOL_FIRST)
		homa_list_add_tail(&homad_attach(d)->grown, &a->grown);
}

/* Looks at some attachments of a user that were refused memory, @most of them at most. Those that
 * were looked at come last next time. Returns how many it looked at. */
static u32 look_at_refused_of(struct homad *d, struct homad_user *user, u32 most)
{
	struct homa_list *refused = &user->refused, *last = refused->prev;
	struct homa_list *node;
	u32 looks = 0;

	do {
		node = homa_list_pop(refused);
		homa_list_add_tail(refused, node);
		want(d,
		     &homa_container_of(node, struct homad_attachment, refused)->app);
		looks++;
	} while (node != last && looks < most && !homa_list_empty(refused));
	return looks;
}

/* Looks again at attachments that were refused memory. A user who has many of them, for whom there
 * is no room or who ask for nothing, does not keep others waiting, and many users take their
 * turns. */
static void look_at_refused(struct homad *d)
{
	struct homa_list *refusers = &homad_attach(d)->refusers;
	struct homa_list *last = refusers->prev, *node;
	u32 left = LOOKS_IN_ALL;

	if (homa_list_empty(refusers))
		return;
	do {
		node = homa_list_pop(refusers);
		homa_list_add_tail(refusers, node);
		left -= look_at_refused_of(d,
					   homa_container_of(node,
							     struct homad_user,
							     refuser),
					   homa_min_u32(left, LOOKS));
	} while (node != last && left && !homa_list_empty(refusers));
}

static void tick_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_attach *attach = homad_attach(d);
	struct homa_list *last = attach->grown.prev, *node;
	u64 count, now = homa_clock_ns();
	u32 i;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	for (i = 0; i < LOOKS && !homa_list_empty(&attach->grown); i++) {
		node = attach->grown.next;
		look_at(d,
			homa_container_of(node, struct homad_attachment, grown),
			now);
		if (node == last)
			break;
	}
	look_at_refused(d);
	set_tick(d, true);
}

int homad_backing_start(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	attach->tick.ready = tick_ready;
	attach->tick.fd = homad_timer_open();
	return attach->tick.fd < 0 ? attach->tick.fd :
				     homad_watch(d, &attach->tick, EPOLLIN);
}

void homad_backing_stop(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	homad_unwatch(d, &attach->tick);
	if (attach->tick.fd >= 0)
		close(attach->tick.fd);
	attach->tick.fd = -1;
}

void homad_backing_forget(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	bool before = ticking(d);

	homa_list_del(&a->grown);
	wait_no_more(a);
	set_tick(d, before);
}
