// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What homad says. Whoever has the lock takes all of it and makes news of it, which
 * homa_streams_poll() hands out later, maybe to another thread. A stream that is news
 * already stays it: its slot's @told is set to 0 only when it is handed out, so a stream
 * with much traffic costs one event for each time that the application looks.
 */
#include <errno.h>
#include <unistd.h>
#include "stream_impl.h"

void homa_streams_nudge(struct homa_streams *ctx)
{
	u64 value = 1;

	if (write(ctx->nudge_fd, &value, sizeof(value)) < 0)
		return;
}

void homa_stream_add_news(struct homa_stream *stream)
{
	struct homa_streams *ctx = stream->ctx;

	/* The application does not know a connection that it has not accepted, and knows a
	 * listener no more that it has closed. */
	if (stream->closed || homa_list_linked(&stream->news) ||
	    (stream->kind == HOMA_STREAM_KIND_CONNECTION &&
	     homa_list_linked(&stream->queued)))
		return;
	homa_list_add_tail(&ctx->news, &stream->news);
	__atomic_store_n(&ctx->num_news, ctx->num_news + 1, __ATOMIC_RELAXED);
}

/* Tell homad that nobody wants the stream of @event. */
static void refuse(struct homa_streams *ctx,
		   const struct homa_stream_event *event, enum homa_stream_op op)
{
	struct homa_stream_command command = {
		.op = (u16)op,
		.slot = event->slot,
		.generation = event->generation,
	};

	homa_streams_command_looking(ctx, &command);
}

static bool slot_is_free(const struct homa_streams *ctx, u32 index)
{
	return index < ctx->num_slots && !ctx->by_slot[index];
}

static bool opened(struct homa_streams *ctx, const struct homa_stream_event *event)
{
	struct homa_streams_wanted *wanted =
		homa_streams_wanted(ctx, event->token);
	struct homa_stream *stream;

	if (!wanted || !slot_is_free(ctx, event->slot))
		return false;
	stream = wanted->stream;
	homa_streams_want_no_more(ctx, wanted);
	if (!stream) {
		refuse(ctx, event, HOMA_STREAM_ABORT);
		return true;
	}
	homa_stream_adopt(stream, event->slot, event->generation);
	if (stream->options != stream->told_options) {
		stream->told_options = stream->options;
		homa_stream_tell_looking(stream, HOMA_STREAM_OPTIONS,
					 stream->options);
	}
	homa_stream_tell_patience(stream);
	homa_stream_add_news(stream);
	return true;
}

/* Copies the own address of the stream that has @generation out of a slot; false if another stream
 * has the slot by now. homad writes the number before the address, so an address of another stream
 * is never seen with the number of this one after it. */
static bool copy_local(const struct homa_stream_slot *slot, u32 generation,
		       struct homa_stream_end *local)
{
	*local = slot->local;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->generation, __ATOMIC_RELAXED) == generation;
}

/* A connection is being opened, and homad tells from where. */
static bool begun(struct homa_streams *ctx, const struct homa_stream_event *event)
{
	struct homa_streams_wanted *wanted =
		homa_streams_wanted(ctx, event->token);
	struct homa_stream_end local;

	if (!wanted || event->slot >= ctx->num_slots)
		return false;
	/* It may have failed since. */
	if (wanted->stream &&
	    copy_local(&ctx->slots[event->slot], event->generation, &local))
		wanted->stream->begun = local;
	return true;
}

static bool failed(struct homa_streams *ctx, const struct homa_stream_event *event)
{
	struct homa_streams_wanted *wanted =
		homa_streams_wanted(ctx, event->token);
	struct homa_stream *stream;

	if (!wanted)
		return false;
	stream = wanted->stream;
	homa_streams_want_no_more(ctx, wanted);
	if (stream) {
		__atomic_store_n(&stream->error,
				 event->error ? event->error : ECONNREFUSED,
				 __ATOMIC_RELEASE);
		homa_stream_add_news(stream);
	}
	return true;
}

static bool accepted(struct homa_streams *ctx,
		     const struct homa_stream_event *event)
{
	struct homa_stream *listener = homa_streams_listener(ctx, event->token);
	struct homa_stream *stream;

	if (!listener || !slot_is_free(ctx, event->slot))
		return false;
	stream = listener->closed || listener->leaves ?
			 NULL :
			 homa_stream_new(ctx, HOMA_STREAM_KIND_CONNECTION);
	if (!stream) {
		refuse(ctx, event, HOMA_STREAM_ABORT);
		return true;
	}
	homa_stream_adopt(stream, event->slot, event->generation);
	homa_list_add_tail(&ctx->all, &stream->all);
	homa_list_add_tail(&listener->queue, &stream->queued);
	listener->asked = false;
	__atomic_store_n(&listener->waiting, listener->waiting + 1,
			 __ATOMIC_RELEASE);
	homa_stream_add_news(listener);
	return true;
}

static bool changed(struct homa_streams *ctx,
		    const struct homa_stream_event *event)
{
	struct homa_stream *stream;

	if (event->slot >= ctx->num_slots)
		return false;
	stream = ctx->by_slot[event->slot];
	/* The event may be about a stream that was closed meanwhile. */
	if (stream && stream->generation == event->generation)
		homa_stream_add_news(stream);
	return true;
}

static bool unlistened(struct homa_streams *ctx,
		       const struct homa_stream_event *event)
{
	struct homa_stream *listener = homa_streams_listener(ctx, event->token);

	/* A child of fork() may have refused this listener of its parent. */
	if (!listener)
		return ctx->older != NULL;
	ctx->unlistened += listener->leaves;
	listener->leaves = false;
	if (listener->closed) {
		homa_stream_forget(listener);
		return true;
	}
	if (!listener->error)
		__atomic_store_n(&listener->error,
				 event->error ? event->error : ECONNABORTED,
				 __ATOMIC_RELEASE);
	homa_stream_add_news(listener);
	return true;
}

/* @any says whether connections wait at homad for a listener that other processes have, too. */
static bool offered(struct homa_streams *ctx,
		    const struct homa_stream_event *event, bool any)
{
	struct homa_stream *listener = homa_streams_listener(ctx, event->token);

	if (!listener)
		return ctx->older != NULL;
	__atomic_store_n(&listener->offered, any, __ATOMIC_RELEASE);
	if (any)
		homa_stream_add_news(listener);
	/* What comes unasked is no answer: that is still to come. */
	else if (!event->slot)
		listener->asked = false;
	return true;
}

/* The context whose stream homad is giving to @ctx; NULL if homad has none to give. */
static struct homa_streams *giver(struct homa_streams *ctx)
{
	if (!ctx->older || !ctx->to_join)
		return NULL;
	ctx->to_join--;
	return ctx->older;
}

/* Move the stream from the older context into @ctx. */
static void move_over(struct homa_streams *ctx, struct homa_stream *stream)
{
	homa_list_del(&stream->news);
	homa_list_del(&stream->all);
	homa_list_add_tail(&ctx->all, &stream->all);
	stream->ctx = ctx;
}

static bool joined(struct homa_streams *ctx, const struct homa_stream_event *event)
{
	struct homa_streams *older = giver(ctx);
	u32 index = (u32)event->token, generation = (u32)(event->token >> 32);
	struct homa_stream *stream = NULL;

	if (!older || !slot_is_free(ctx, event->slot))
		return false;
	if (index < older->num_slots)
		stream = older->by_slot[index];
	if (!stream || stream->generation != generation) {
		refuse(ctx, event, HOMA_STREAM_CLOSE);
		return true;
	}
	move_over(ctx, stream);
	older->by_slot[index] = NULL;
	stream->index = event->slot;
	stream->generation = event->generation;
	stream->own = &ctx->slots[event->slot];
	ctx->by_slot[event->slot] = stream;
	homa_stream_add_news(stream);
	return true;
}

static bool listening(struct homa_streams *ctx,
		      const struct homa_stream_event *event)
{
	struct homa_stream_command unlisten = { .op = HOMA_STREAM_UNLISTEN,
						.slot = event->slot };
	struct homa_streams *older = giver(ctx);
	struct homa_stream *listener;

	if (!older)
		return false;
	listener = homa_streams_listener(older, event->token);
	if (!listener || listener->closed) {
		homa_streams_command_looking(ctx, &unlisten);
		return true;
	}
	move_over(ctx, listener);
	homa_list_del(&listener->queued);
	homa_list_add_tail(&ctx->listeners, &listener->queued);
	listener->token = event->slot;
	listener->offered = listener->asked = false;
	return true;
}

/* Not all that homad promised to give will come. */
static bool unjoined(struct homa_streams *ctx,
		     const struct homa_stream_event *event)
{
	if (!ctx->older || event->token > ctx->to_join)
		return false;
	ctx->to_join -= (u32)event->token;
	ctx->unjoined += (u32)event->token;
	return true;
}

static bool take(struct homa_streams *ctx, const struct homa_stream_event *event)
{
	switch (event->kind) {
	case HOMA_STREAM_OPENED:
		return opened(ctx, event);
	case HOMA_STREAM_FAILED:
		return failed(ctx, event);
	case HOMA_STREAM_ACCEPTED:
		return accepted(ctx, event);
	case HOMA_STREAM_CHANGED:
		return changed(ctx, event);
	case HOMA_STREAM_UNLISTENED:
		return unlistened(ctx, event);
	case HOMA_STREAM_WAITING:
		return offered(ctx, event, true);
	case HOMA_STREAM_NOTHING:
		return offered(ctx, event, false);
	case HOMA_STREAM_JOINED:
		return joined(ctx, event);
	case HOMA_STREAM_LISTENING:
		return listening(ctx, event);
	case HOMA_STREAM_UNJOINED:
		return unjoined(ctx, event);
	case HOMA_STREAM_BEGUN:
		return begun(ctx, event);
	default:
		return false;
	}
}

/* True if the event names a listener whose number another thread is about to receive. */
static bool too_early(struct homa_streams *ctx,
		      const struct homa_stream_event *event)
{
	return ctx->listening &&
	       (event->kind == HOMA_STREAM_ACCEPTED ||
		event->kind == HOMA_STREAM_UNLISTENED ||
		event->kind == HOMA_STREAM_WAITING) &&
	       !homa_streams_listener(ctx, event->token);
}

/* Give all streams the news that homad has ended. */
static void mourn(struct homa_streams *ctx)
{
	struct homa_list *node;

	if (ctx->mourned)
		return;
	ctx->mourned = true;
	for (node = ctx->all.next; node != &ctx->all; node = node->next)
		homa_stream_add_news(
			homa_container_of(node, struct homa_stream, all));
}

/* Take the next event before position @tail of the ring; false if there is none, or if it has to
 * wait. A command that follows from an event may put those behind it aside. */
static bool next(struct homa_streams *ctx, u32 tail,
		 struct homa_stream_event *event)
{
	u32 head = ctx->event_head;
	bool kept = unlikely(ctx->kept_at != ctx->kept_num);

	if (!kept && (s32)(tail - head) <= 0)
		return false;
	*event = kept ? ctx->kept[ctx->kept_at] :
			ctx->events[head & (ctx->entries - 1)];
	if (too_early(ctx, event))
		return false;
	if (likely(!kept)) {
		__atomic_store_n(&ctx->event_head, head + 1, __ATOMIC_RELAXED);
		return true;
	}
	if (++ctx->kept_at == ctx->kept_num) {
		ctx->kept_at = ctx->kept_num = 0;
		__atomic_store_n(&ctx->keeps, false, __ATOMIC_RELAXED);
	}
	return true;
}

void homa_streams_drain(struct homa_streams *ctx)
{
	u32 tail = __atomic_load_n(&ctx->area->event.tail, __ATOMIC_ACQUIRE);
	struct homa_stream_event event;

	if (!homa_streams_gone(ctx) && tail - ctx->event_head > ctx->entries)
		homa_streams_lose(ctx);
	while (!homa_streams_gone(ctx) && next(ctx, tail, &event))
		if (!take(ctx, &event))
			homa_streams_lose(ctx);
	homa_streams_release_events(ctx);
	if (unlikely(homa_streams_gone(ctx)))
		mourn(ctx);
}

void homa_streams_look(struct homa_streams *ctx)
{
	if (!homa_streams_pending(ctx))
		return;
	homa_gate_lock(&ctx->look);
	homa_streams_drain(ctx);
	homa_gate_unlock(&ctx->look);
}
