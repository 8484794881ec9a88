// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for larger buffers of streams, and back. Their user's account pays before the
 * worker makes it. Slots that nobody has used for a while give theirs back: those of an
 * attachment that it could have done without since the last look.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "homad_tcp.h"
#include "stream_grow.h"
#include "streams.h"
#include "tcp_homes.h"
#include "tcp_slow.h"
#include "tcp_stream.h"

#define TICK_NS 1000000000ull
/* The most attachments that are looked at in one tick. */
#define LOOKS 16u

/*
 * struct growth - an errand for the memory thread: buffers of the streams of one attachment get
 * larger or, if @back is set, smaller
 * @work: the errand.
 * @app: the attachment.
 * @grow: which buffers, and their sizes before and after.
 * @at: the buffers that change next; the memory thread counts.
 * @rc: 0, or the negative errno of the kernel's; the memory thread writes it.
 */
struct growth {
	struct homad_work work;
	struct homad_app *app;
	struct homad_grow grow;
	bool back;
	u32 at;
	int rc;
};

/* Returns the bytes that are charged for a buffer; a first buffer is charged with its slot. */
static u64 bytes_of(u8 shift)
{
	return shift > HOMA_STREAM_MIN_SHIFT ? (u64)1 << shift : 0;
}

static u64 change_of(const struct homad_grow *g, u32 i)
{
	u64 bytes = 0;
	u32 way;

	for (way = 0; way < HOMAD_BUFFERS; way++)
		bytes += bytes_of(g->to[i][way]) - bytes_of(g->from[i][way]);
	return bytes;
}

static u8 *span_of(const struct homad_grow *g, u32 i, u32 way)
{
	return g->streams->spans +
	       ((u64)g->slot[i] * HOMAD_BUFFERS + way) * HOMA_STREAM_SPAN;
}

/* ---- the worker's ---- */

/* Returns the number of bytes that have become memory. */
static u64 change(struct growth *g, u32 i, u32 way)
{
	u64 from = bytes_of(g->grow.from[i][way]),
	    to = bytes_of(g->grow.to[i][way]);
	u8 *span = span_of(&g->grow, i, way);

	if (g->back && from && madvise(span, from, MADV_REMOVE))
		g->rc = -errno;
	else if (to > from)
		g->rc = homad_populate(span + from, to - from);
	return to > from ? to - from : 0;
}

static bool run(struct homad_work *work)
{
	struct growth *g = homa_container_of(work, struct growth, work);
	u64 bytes = 0;
	u32 way;

	for (; g->at < g->grow.num && !g->rc && bytes < HOMAD_SLICE; g->at++)
		for (way = 0; way < HOMAD_BUFFERS && !g->rc; way++)
			bytes += change(g, g->at, way);
	return g->at < g->grow.num && !g->rc;
}

/* ---- accounts ---- */

static void charge(struct homad_app *app, u64 bytes, bool more)
{
	struct homad_attachment *a = homad_attachment(app);

	if (more) {
		a->memory += bytes;
		app->streams->grown_bytes += bytes;
		homad_account(a->user, bytes);
	} else {
		a->memory -= bytes;
		app->streams->grown_bytes -= bytes;
		homad_settle(a->user, bytes);
	}
}

static void set_tick(struct homad_tcp_ports *ports, bool was_empty)
{
	bool empty = homa_list_empty(&ports->grown);

	if (empty != was_empty)
		homad_timer_set(ports->tick.fd, empty ? 0 : TICK_NS);
}

static void watch(struct homad *d, struct homad_streams *s)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	bool was_empty;

	/* TCP ends before the last attachments do. */
	if (!ports)
		return;
	was_empty = homa_list_empty(&ports->grown);
	homa_list_del(&s->grown);
	if (s->grown_bytes)
		homa_list_add_tail(&ports->grown, &s->grown);
	set_tick(ports, was_empty);
}

static void done(struct homad *d, struct homad_work *work)
{
	struct growth *g = homa_container_of(work, struct growth, work);
	struct homad_attachment *a = homad_attachment(g->app);
	u32 i;

	for (i = 0; i < g->grow.num; i++) {
		/* A buffer that failed is as it was; memory that is there already does no
		 * harm. */
		if (g->rc && !g->back) {
			charge(g->app, change_of(&g->grow, i), false);
			memcpy(g->grow.to[i], g->grow.from[i],
			       sizeof(g->grow.to[i]));
		} else if (g->back) {
			charge(g->app, -change_of(&g->grow, i), false);
		}
	}
	if (g->back)
		homad_attach(d)->memory_shrunk++;
	else
		homad_attach(d)->memory_grown += !g->rc;
	if (!a->over) {
		watch(d, g->app->streams);
		homad_streams_call(g->app->streams, homad_streams_grown,
				   &g->grow);
	}
	homad_work_over(d, g->app);
	free(g);
}

static void begin(struct homad *d, struct homad_app *app, struct growth *g)
{
	g->work = (struct homad_work){ .run = run, .done = done };
	g->app = app;
	homad_attachment(app)->works++;
	homad_work(d, &homad_attachment(app)->user->line, &g->work);
}

/* ---- more ---- */

/* Adds as much of what @slot wants as its user has room for. */
static void add(struct homad *d, struct homad_app *app, struct homad_grow *g,
		u32 slot)
{
	const struct homad_backing *b = &app->streams->backing[slot];
	u64 room = homad_room(d, homad_attachment(app)->user);
	u32 i = g->num++, way;

	g->slot[i] = slot;
	memcpy(g->from[i], b->have, sizeof(g->from[i]));
	memcpy(g->to[i], b->want, sizeof(g->to[i]));
	for (way = 0; way < HOMAD_BUFFERS; way++)
		while (g->to[i][way] > g->from[i][way] && change_of(g, i) > room)
			g->to[i][way]--;
	homad_attach(d)->memory_refused +=
		memcmp(g->to[i], b->want, sizeof(g->to[i])) != 0;
	charge(app, change_of(g, i), true);
}

static void serve(struct homad *d, struct homad_streams *s)
{
	struct homad_app *app = s->app;
	struct growth *g = NULL;

	/* A thread that asks from now on rings the eventfd again. */
	__atomic_store_n(&s->asks_told, false, __ATOMIC_SEQ_CST);
	while (s->asks_head != __atomic_load_n(&s->asks_tail, __ATOMIC_ACQUIRE)) {
		if (homad_attachment(app)->over)
			return;
		g = g ? g : calloc(1, sizeof(*g));
		if (!g)
			return;
		g->grow.streams = s;
		add(d, app, &g->grow,
		    s->asks[s->asks_head++ & (s->num_asks - 1)]);
		if (g->grow.num == HOMAD_GROW_BATCH) {
			begin(d, app, g);
			g = NULL;
		}
	}
	if (g)
		begin(d, app, g);
}

void homad_streams_growing(struct homad *d, struct homad_tcp *tcp)
{
	struct homad_streams *s, *next;

	s = __atomic_exchange_n(&tcp->growing, NULL, __ATOMIC_ACQUIRE);
	for (; s; s = next) {
		next = s->next_growing;
		serve(d, s);
	}
}

/* ---- less ---- */

static void cool(struct homad *d, struct homad_streams *s)
{
	struct growth *g;

	if (!HOMA_READ_ONCE(s->num_warm))
		return;
	g = calloc(1, sizeof(*g));
	if (!g || homad_attachment(s->app)->over) {
		free(g);
		return;
	}
	g->grow.streams = s;
	g->back = true;
	homad_streams_call(s, homad_streams_cool, &g->grow);
	if (g->grow.num)
		begin(d, s->app, g);
	else
		free(g);
}

void homad_streams_tick(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	struct homa_list *node, *first = NULL;
	u64 ticks;
	u32 i;

	(void)events;
	if (read(source->fd, &ticks, sizeof(ticks)) < 0)
		return;
	for (i = 0; i < LOOKS; i++) {
		node = homa_list_first(&ports->grown);
		if (!node || node == first)
			return;
		first = first ? first : node;
		homa_list_del(node);
		homa_list_add_tail(&ports->grown, node);
		cool(d, homa_container_of(node, struct homad_streams, grown));
	}
}

void homad_streams_end(struct homad *d, struct homad_streams *s)
{
	s->grown_bytes = 0;
	watch(d, s);
}
