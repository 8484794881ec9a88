// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams that their limits hold (stream_limits.h): in each round in which there is something to
 * spend they take turns at it. And what becomes of them when the rules change.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_stream.h"

/* The most held streams that go on in one round. */
#define TURN_STREAMS 64u

/* Lets a stream use its tokens; returns whether it still waits for more. */
static bool goes_on(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_app *app = stream->home->app;
	bool waits = false;
	const char *why = homad_stream_goes_on(t, stream, &waits);

	if (unlikely(why))
		homad_app_evict(t, app, why);
	return waits;
}

/* Lets at most @budget streams of the limit go on in turn, each with some bytes. Those that
 * still wait go to the end of the list. Returns how many had their turn. */
static u32 serve(struct homad_thread *t, struct homad_waiting *waiting, u32 budget)
{
	struct homa_list turn, *node;
	u32 done = 0;

	homa_list_init(&turn);
	/* A stream that is held again waits in @turn, so each has one turn. */
	while (done < budget && homad_limit_fill(t, waiting->limit) &&
	       (node = homa_list_pop(&waiting->held))) {
		homa_list_add_tail(&turn, node);
		done++;
		if (!goes_on(t,
			     homa_container_of(node, struct homad_stream, held)))
			homa_list_del(node);
	}
	while ((node = homa_list_pop(&turn)))
		homa_list_add_tail(&waiting->held, node);
	return done;
}

void homad_limits_round(struct homad_thread *t)
{
	struct homad_tcp *tcp = t->tcp;
	struct homa_list *node;
	u32 budget = TURN_STREAMS;

	if (likely(t->ctx.now < tcp->held_at))
		return;
	tcp->held_at = TAS_NEVER;
	/* Each round begins with another limit. */
	node = homa_list_pop(&tcp->held);
	if (node)
		homa_list_add_tail(&tcp->held, node);
	node = tcp->held.next;
	while (node != &tcp->held) {
		struct homad_waiting *waiting =
			homa_container_of(node, struct homad_waiting, node);

		node = node->next;
		budget -= serve(t, waiting, budget);
		if (homa_list_empty(&waiting->held)) {
			homa_list_del(&waiting->node);
			continue;
		}
		/* serve() had emptied @held for a moment, and a stream that ended then has
		 * taken the limit out of the list. */
		if (!homa_list_linked(&waiting->node))
			homa_list_add_tail(&tcp->held, &waiting->node);
		tcp->held_at =
			homa_min_u64(tcp->held_at,
				     homad_limit_again_at(t, waiting->limit));
	}
}

int homad_limits_change(struct homad_thread *t, void *arg)
{
	struct homad_limits_change *change = arg;
	struct homad_streams *s = change->app->streams;
	struct homad_policy *old = s->policy;
	struct homa_list *node = s->open.next;

	homad_now(t);
	homad_tcp_enter(t, s->tcp);
	s->policy = change->policy;
	change->policy = old;
	while (node != &s->open) {
		struct homad_stream *stream =
			homa_container_of(node, struct homad_stream, of);
		const struct tas_pair *pair = &stream->conn.f.pair;
		bool held = homa_list_linked(&stream->held);

		node = node->next;
		homad_limit_leave(stream);
		homad_limit_join(stream, s->policy,
				 stream->accepted ?
					 homad_policy_listen(s->policy,
							     pair->local_port) :
					 homad_policy_connect(s->policy,
							      pair->remote,
							      pair->remote_port),
				 false);
		/* The stream may have no limit now; else it waits for tokens again. */
		if (held)
			goes_on(t, stream);
	}
	return 0;
}
