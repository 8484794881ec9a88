// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Looking at flows. On the fast path nothing is done but what a job says, which looks at a
 * bounded number of hash buckets; with nobody asking there is no job.
 */
#include <errno.h>
#include <sched.h>
#include "fast.h"
#include "flows.h"
#include "homad_tcp.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_steer.h"
#include "tcp_stream.h"

#define AT_ONCE 32u

/* struct flow_job - a job for the fast-path thread that runs the instance @tcp: from @at on, of the
 * engine for connections inside this host if @local, it writes the next @n flows to @out, which has
 * room for @max */
struct flow_job {
	struct homad_tcp *tcp;
	struct tas_look_cursor *at;
	bool local;
	struct homad_flow *out;
	u32 n, max;
};

static void name_owner(struct homad_flow *flow, const struct homad_streams *s)
{
	const struct homad_app *app = s ? s->app : NULL;

	if (!app)
		return;
	flow->app = app->id;
	flow->pid = app->pid;
	flow->uid = app->uid;
	memcpy(flow->name, app->name, sizeof(flow->name));
}

/* Returns how many of @readable bytes the application has not taken. It tells homad of
 * bytes that it took only when they are many, so this looks at its slot. The application
 * may write anything there: a number that cannot be is ignored. */
static u32 unread(const struct homad_stream *stream, u32 readable)
{
	const struct homa_stream_slot *slot = &stream->home->slots[stream->slot];
	u32 taken = __atomic_load_n(&slot->rx_read, __ATOMIC_RELAXED) -
		    stream->rx_read;

	return taken <= readable ? readable - taken : readable;
}

/* What its rule says, and whether that is what it waits for. */
static void look_at_limit(struct homad_flow *flow,
			  const struct homad_stream *stream)
{
	flow->rule = stream->rule;
	flow->dscp = stream->dscp;
	if (!stream->limit)
		return;
	flow->send_limit = stream->limit->send.rate;
	flow->receive_limit = stream->limit->receive.rate;
	flow->send_waits = stream->tx_end != stream->tx_last;
	flow->receive_waits = stream->rx_held;
}

static void look_at_stream(struct homad_flow *flow, const struct tas_conn *conn)
{
	const struct homad_stream *stream = conn->host;

	if (!stream)
		return;
	name_owner(flow, stream->home);
	flow->closed = stream->closed;
	flow->acked = stream->tx_bytes -
		      homa_min_u64(stream->tx_bytes, tas_unacked(conn));
	flow->received = stream->rx_bytes;
	flow->unread =
		stream->home ? unread(stream, flow->look.info.readable) : 0;
	flow->tx_size = 1u << stream->tx_shift;
	look_at_limit(flow, stream);
}

/* Describes a listener, or names the owner of a connection that nobody has accepted yet. */
static void look_at_listener(struct homad_flow *flow,
			     const struct tas_listener *l, bool local)
{
	const struct homad_tcp_listener *listener =
		local ? homa_container_of(l, struct homad_tcp_listener, here) :
			homa_container_of(l, struct homad_tcp_listener, l);

	name_owner(flow, listener->home);
	if (flow->look.conn)
		return;
	/* A listener is in both engines, but it is shown once, with the sum of both. */
	flow->ready = listener->here.num_ready;
	flow->half = listener->here.num_half;
	if (!listener->loopback) {
		flow->ready += listener->l.num_ready;
		flow->half += listener->l.num_half;
	}
	flow->backlog = l->backlog;
}

static bool shown_already(const struct tas_look *look)
{
	return look->listener && !look->conn &&
	       !homa_container_of(look->listener, struct homad_tcp_listener, here)
			->loopback;
}

static int look_at_some(struct homad_thread *t, void *arg)
{
	struct flow_job *some = arg;
	struct tas_look look[AT_ONCE];
	u32 i, n;

	/* The instance has moved to another thread meanwhile. */
	if (__atomic_load_n(&some->tcp->thread, __ATOMIC_ACQUIRE) != t)
		return -EAGAIN;
	homad_tcp_enter(t, some->tcp);
	/* After a long sleep the clock of the last round is too old. */
	homad_now(t);
	homad_tcp_round(t);
	n = tas_look_some(some->local ? &t->tcp->local : &t->tcp->engine,
			  some->at, look, homa_min_u32(some->max, AT_ONCE));
	for (i = 0; i < n; i++) {
		struct homad_flow *flow;

		if (some->local && shown_already(&look[i]))
			continue;
		flow = &some->out[some->n++];
		memset(flow, 0, sizeof(*flow));
		flow->look = look[i];
		if (look[i].listener)
			look_at_listener(flow, look[i].listener, some->local);
		else if (look[i].conn)
			look_at_stream(flow, look[i].conn);
	}
	return 0;
}

u32 homad_flows_some(struct homad *d, struct homad_flow_cursor *at,
		     struct homad_flow *out, u32 max)
{
	struct flow_job some = {
		.at = &at->engine, .local = at->local, .out = out, .max = max
	};
	struct homad_thread *t;

	if (!d->steering) {
		at->end = true;
		return 0;
	}
	some.tcp = d->steering->tcp[at->instance];
	while (!(t = __atomic_load_n(&some.tcp->thread, __ATOMIC_ACQUIRE)) ||
	       homad_call(t, look_at_some, &some))
		sched_yield();
	if (!at->engine.end)
		return some.n;
	at->engine = (struct tas_look_cursor){ .ended = at->engine.ended };
	at->local = !at->local;
	if (at->local)
		return some.n;
	at->end = ++at->instance >= d->steering->num;
	return some.n;
}
