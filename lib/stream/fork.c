// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * fork(): the child gets a context of its own and its parent's streams, whose slots and
 * buffers it finds where the parent has mapped them. All that it does not need of its
 * parent's memory it unmaps at once, before the program can drop privileges or hear from
 * anybody: streams that the parent opens later are none of its business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "stream_fork.h"
#include "stream_impl.h"

#define PAGE ((u64)4096)
/* The most times that homad is asked for a ticket while it answers -EAGAIN. */
#define TRIES 20

/* ---- the parent ---- */

/* Give connections that were not accepted back to homad, for the process that accepts first. */
static void give_back_queue(struct homa_stream *listener)
{
	struct homa_list *node;

	while ((node = homa_list_pop(&listener->queue))) {
		struct homa_stream *stream =
			homa_container_of(node, struct homa_stream, queued);

		listener->waiting--;
		homa_stream_drop(stream, HOMA_STREAM_RETURN);
	}
}

bool homa_streams_prepare(struct homa_streams *ctx)
{
	struct homa_list *node;
	bool any = false;

	homa_streams_drain(ctx);
	for (node = ctx->listeners.next; node != &ctx->listeners;
	     node = node->next) {
		give_back_queue(
			homa_container_of(node, struct homa_stream, queued));
		any = true;
	}
	for (node = ctx->all.next; node != &ctx->all; node = node->next) {
		struct homa_stream *stream =
			homa_container_of(node, struct homa_stream, all);

		any |= stream->slot != NULL;
	}
	return any;
}

int homa_streams_ask_ticket(struct homa_streams *ctx,
			    struct homa_streams_ticket *ticket, u32 what_for)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_SHARE,
					    .bytes = what_for };
	struct homa_ctl_answer answer = { .error = 0 };
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	rc = homa_svc_tell_fd(ctx->att, &request, ends[0]);
	if (!rc)
		rc = homa_svc_hear(ctx->att, request.op, &answer, NULL, 0);
	if (!rc)
		rc = answer.error;
	close(ends[0]);
	if (rc) {
		close(ends[1]);
		return rc;
	}
	memcpy(ticket->token, answer.ip, sizeof(ticket->token));
	ticket->pipe = ends[1];
	return 0;
}

/* Say whether fork() gives the child the memory of @ctx and of the contexts before it. */
static void go_to_child(const struct homa_streams *ctx, bool go)
{
	for (; ctx; ctx = ctx->older)
		madvise(ctx->area, ctx->bytes, go ? MADV_DOFORK : MADV_DONTFORK);
}

/* Ask once for a ticket, after all events were taken; -ENOENT if there is no stream. */
static int try_ticket(struct homa_streams *ctx,
		      struct homa_streams_ticket *ticket, u32 what_for)
{
	return homa_streams_prepare(ctx) ?
		       homa_streams_ask_ticket(ctx, ticket,
					       what_for | HOMA_CTL_ALL_SEEN) :
		       -ENOENT;
}

/* Get a ticket; @ticket->pipe is -1 if there is none. @needs: the features that homad must have.
 * The caller has @ctl and @look. */
static void get_ticket(struct homa_streams *ctx,
		       struct homa_streams_ticket *ticket, u32 needs,
		       u32 what_for)
{
	struct homa_streams_ticket listeners = { .pipe = -1 };
	u32 features = ctx->att->queues->features;
	struct homa_list *node;
	int tries = TRIES;

	ticket->pipe = -1;
	ticket->error = homa_streams_gone(ctx) ? -ECONNRESET : -EOPNOTSUPP;
	if (homa_streams_gone(ctx) || !(features & needs))
		return;
	if ((features & HOMA_SHM_CAN_EXEC) && !homa_list_empty(&ctx->listeners))
		homa_streams_ask_ticket(ctx, &listeners, HOMA_CTL_FOR_LISTENERS);
	/* homad says -EAGAIN while it has not seen all our commands, or we all its events. */
	do
		ticket->error = try_ticket(ctx, ticket, what_for);
	while (ticket->error == -EAGAIN && --tries);
	if (listeners.pipe >= 0)
		close(listeners.pipe);
	if (ticket->pipe < 0)
		return;
	for (node = ctx->all.next; node != &ctx->all; node = node->next)
		homa_stream_share(
			homa_container_of(node, struct homa_stream, all));
}

void homa_streams_before_fork(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket)
{
	pthread_mutex_lock(&ctx->ctl);
	homa_gate_lock(&ctx->look);
	get_ticket(ctx, ticket, HOMA_SHM_CAN_FORK, 0);
	homa_gate_unlock(&ctx->look);
}

void homa_streams_at_fork(struct homa_streams *ctx,
			  const struct homa_streams_ticket *ticket)
{
	homa_gate_lock(&ctx->look);
	if (ticket->pipe >= 0)
		go_to_child(ctx, true);
}

void homa_streams_before_exec(struct homa_streams *ctx,
			      struct homa_streams_ticket *ticket)
{
	pthread_mutex_lock(&ctx->ctl);
	homa_gate_lock(&ctx->look);
	get_ticket(ctx, ticket, HOMA_SHM_CAN_EXEC, HOMA_CTL_FOR_EXEC);
	homa_gate_unlock(&ctx->look);
	pthread_mutex_unlock(&ctx->ctl);
}

void homa_streams_in_parent(struct homa_streams *ctx,
			    struct homa_streams_ticket *ticket)
{
	if (ticket->pipe >= 0) {
		close(ticket->pipe);
		go_to_child(ctx, false);
	}
	homa_gate_unlock(&ctx->look);
	pthread_mutex_unlock(&ctx->ctl);
}

void homa_streams_each(struct homa_streams *ctx,
		       void (*call)(struct homa_stream *stream))
{
	struct homa_list *node;

	homa_gate_lock(&ctx->look);
	for (node = ctx->all.next; node != &ctx->all; node = node->next)
		call(homa_container_of(node, struct homa_stream, all));
	homa_gate_unlock(&ctx->look);
}

/* ---- the child ---- */

void homa_streams_await_joined(struct homa_streams *ctx, u32 num)
{
	u32 turns = 0;

	/* Nobody else knows @ctx yet. */
	ctx->to_join = num;
	for (;;) {
		homa_streams_drain(ctx);
		if (!ctx->to_join || homa_streams_gone(ctx))
			return;
		homa_streams_pause(ctx, &turns);
	}
}

static int join(struct homa_streams *ctx, const struct homa_streams_ticket *ticket)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_JOIN };
	struct homa_ctl_answer answer;
	int rc;

	memcpy(request.ip, ticket->token, sizeof(request.ip));
	rc = homa_svc_ask(ctx->att, &request, &answer, NULL, 0);
	if (!rc)
		rc = answer.error;
	if (!rc)
		homa_streams_await_joined(ctx, answer.total);
	return rc;
}

/* An array that says of each slot of @older whether a stream of @ctx is in it; NULL if there is
 * no memory. */
static u8 *in_use(const struct homa_streams *ctx, const struct homa_streams *older)
{
	u8 *used = calloc(older->num_slots, 1);
	const struct homa_list *node;

	for (node = ctx->all.next; used && node != &ctx->all; node = node->next) {
		const struct homa_stream *stream =
			homa_container_of(node, struct homa_stream, all);

		if (stream->slot >= older->slots &&
		    stream->slot < older->slots + older->num_slots)
			used[stream->slot - older->slots] = 1;
	}
	return used;
}

/* Unmap the whole pages of @array, which has @size bytes for each slot, where no slot is used. */
static void unmap_unused(u8 *array, u64 size, const u8 *used, u32 num)
{
	u8 *from = array, *to;
	u32 i;

	for (i = 0; i <= num; i++) {
		if (i < num && !used[i])
			continue;
		to = (u8 *)((uintptr_t)(array + i * size) &
			    ~(uintptr_t)(PAGE - 1));
		if (to > from)
			munmap(from, (size_t)(to - from));
		from = (u8 *)(((uintptr_t)(array + (i + 1) * size) + PAGE - 1) &
			      ~(uintptr_t)(PAGE - 1));
	}
}

void homa_streams_keep_used(const struct homa_streams *ctx,
			    struct homa_streams *older)
{
	u8 *used = in_use(ctx, older);

	if (!used)
		return;
	munmap(older->area, (size_t)((u8 *)older->slots - (u8 *)older->area));
	unmap_unused((u8 *)older->slots, sizeof(*older->slots), used,
		     older->num_slots);
	unmap_unused(older->firsts, 2 * (u64)HOMA_STREAM_FIRST, used,
		     older->num_slots);
	unmap_unused(older->spans, 2 * (u64)HOMA_STREAM_SPAN, used,
		     older->num_slots);
	free(used);
}

struct homa_streams *homa_streams_in_child(struct homa_streams *older,
					   struct homa_streams_ticket *ticket)
{
	struct homa_streams *ctx = NULL;

	if (ticket->pipe < 0)
		return NULL;
	if (!homa_streams_open(&ctx, NULL)) {
		ctx->older = older;
		ticket->error = join(ctx, ticket);
		if (ctx->unjoined)
			ticket->error = -ENOMEM;
		homa_streams_keep_used(ctx, older);
	} else {
		munmap(older->area, older->bytes);
	}
	go_to_child(ctx, false);
	close(ticket->pipe);
	close(older->event_fd);
	close(older->nudge_fd);
	older->event_fd = older->nudge_fd = -1;
	return ctx;
}
