// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * exec: all memory of the process goes, and its attachment ends. Its streams are held by a
 * ticket meanwhile, as for a child of fork(). The new program attaches, shows the ticket, and
 * homad gives it the streams and descriptors of the memory in which they lie. The caller carries
 * over which stream was which (struct homa_stream_carried). Nothing in that is trusted, as homad
 * says itself what it has given.
 *
 * The streams are put into a context that has nothing but them, and the events that say what was
 * given move them into the new one, as in a child of fork().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "stream_fork.h"
#include "stream_impl.h"

/* ---- before ---- */

bool homa_stream_carry(const struct homa_stream *stream,
		       struct homa_stream_carried *carried)
{
	const struct homa_streams *ctx = stream->ctx;

	*carried = (struct homa_stream_carried){
		.name = (u64)stream->generation << 32 | stream->index,
		.options = stream->options,
		.told_options = stream->told_options,
		.patience = stream->patience,
		.shut = stream->shut,
	};
	if (stream->kind == HOMA_STREAM_KIND_LISTENER) {
		carried->name = stream->token;
		carried->listens = 1;
		return !stream->closed && !stream->leaves && !stream->error;
	}
	if (stream->slot && stream->lent) {
		homa_stream_lent_place(stream->lent, &carried->area,
				       &carried->slot);
		return true;
	}
	/* The area may be unmapped in part; only the addresses are compared. */
	for (; stream->slot && ctx; ctx = ctx->older) {
		if (stream->slot < ctx->slots ||
		    stream->slot >= ctx->slots + ctx->num_slots)
			continue;
		carried->area = ctx->id;
		carried->slot = (u32)(stream->slot - ctx->slots);
		return true;
	}
	return false;
}

/* ---- after ---- */

/* Map the memory behind @fd as a context in front of @older; returns @older if it cannot be. */
static struct homa_streams *map_area(int fd, struct homa_streams *older)
{
	struct homa_streams *ctx;
	struct stat file;

	if (fstat(fd, &file) || file.st_size < (off_t)sizeof(*ctx->area))
		return older;
	ctx = homa_streams_blank();
	if (!ctx)
		return older;
	ctx->bytes = (u64)file.st_size;
	ctx->area = homa_svc_map(fd, ctx->bytes);
	if (!ctx->area || homa_streams_lay(ctx)) {
		if (ctx->area)
			munmap(ctx->area, ctx->bytes);
		free(ctx);
		return older;
	}
	ctx->older = older;
	return ctx;
}

/* Set where the carried stream lies; false if there is no such place or another stream has it. */
static bool place(struct homa_streams *before, struct homa_stream *stream,
		  const struct homa_stream_carried *carried)
{
	u32 index = (u32)carried->name;
	const struct homa_streams *area = before->older;
	struct homa_stream_slot *slot;

	while (area && area->id != carried->area)
		area = area->older;
	if (!area || carried->slot >= area->num_slots ||
	    index >= before->num_slots || before->by_slot[index])
		return false;
	stream->index = index;
	stream->generation = (u32)(carried->name >> 32);
	stream->rx = area->spans + (u64)carried->slot * 2 * HOMA_STREAM_SPAN;
	stream->tx = stream->rx + HOMA_STREAM_SPAN;
	stream->rx_first =
		area->firsts + (u64)carried->slot * 2 * HOMA_STREAM_FIRST;
	stream->tx_first = stream->rx_first + HOMA_STREAM_FIRST;
	slot = &area->slots[carried->slot];
	stream->slot = stream->own = slot;
	before->by_slot[index] = stream;
	/* The positions in the slot count, and are read before each use until no other process
	 * has the stream. */
	homa_stream_share(stream);
	stream->rx_read = slot->rx_read;
	stream->rx_rung = slot->rx_rung;
	stream->tx_end = slot->tx_end;
	stream->tx_map = slot->tx_map;
	return true;
}

static struct homa_stream *restore(struct homa_streams *before,
				   const struct homa_stream_carried *carried)
{
	struct homa_stream *stream =
		homa_stream_new(before, carried->listens ?
						HOMA_STREAM_KIND_LISTENER :
						HOMA_STREAM_KIND_CONNECTION);

	if (!stream)
		return NULL;
	stream->options = carried->options;
	stream->told_options = carried->told_options;
	if (homa_patience_possible(&carried->patience))
		stream->patience = carried->patience;
	stream->shut = carried->shut != 0;
	if (carried->listens) {
		stream->token = carried->name;
		homa_list_add_tail(&before->listeners, &stream->queued);
	} else if (!place(before, stream, carried)) {
		free(stream);
		return NULL;
	}
	homa_list_add_tail(&before->all, &stream->all);
	return stream;
}

/* homad has given all that the ticket was for. Free the carried streams that it did not give. */
static void settle(struct homa_streams *ctx, struct homa_streams *before,
		   u32 num, struct homa_stream **streams)
{
	struct homa_streams *area;
	u32 i;

	for (i = 0; i < num; i++) {
		if (!streams[i] || streams[i]->ctx != before)
			continue;
		homa_list_del(&streams[i]->queued);
		homa_list_del(&streams[i]->all);
		free(streams[i]);
		streams[i] = NULL;
	}
	for (area = before->older; area; area = area->older)
		homa_streams_keep_used(ctx, area);
	free(before->by_slot);
	before->by_slot = NULL;
	before->num_slots = 0;
}

/* Unmap all that map_area() has put in front of each other. */
static void unmap_areas(struct homa_streams *area)
{
	while (area) {
		struct homa_streams *older = area->older;

		munmap(area->area, area->bytes);
		free(area);
		area = older;
	}
}

static int join(struct homa_streams *ctx, struct homa_streams *before,
		const uint8_t token[16],
		const struct homa_stream_carried *carried, u32 num,
		struct homa_stream **streams)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_JOIN,
					    .bytes = HOMA_CTL_FOR_EXEC };
	struct homa_ctl_answer answer;
	int fds[HOMA_CTL_ATTACH_FDS], rc;
	u32 i;

	memcpy(request.ip, token, sizeof(request.ip));
	rc = homa_svc_ask(ctx->att, &request, &answer, fds, HOMA_CTL_ATTACH_FDS);
	if (rc)
		return rc;
	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++) {
		if (fds[i] < 0)
			continue;
		before->older = map_area(fds[i], before->older);
		close(fds[i]);
	}
	if (answer.error)
		return answer.error;
	for (i = 0; i < num; i++)
		streams[i] = restore(before, &carried[i]);
	ctx->older = before;
	homa_streams_await_joined(ctx, answer.total);
	settle(ctx, before, num, streams);
	return 0;
}

int homa_streams_after_exec(struct homa_streams **out, const char *path,
			    const uint8_t token[16],
			    const struct homa_stream_carried *carried,
			    uint32_t num, struct homa_stream **streams)
{
	struct homa_streams *ctx = NULL, *before = homa_streams_blank();
	int rc;

	if (!before)
		return -ENOMEM;
	before->num_slots = HOMA_STREAM_SLOTS;
	before->by_slot = calloc(before->num_slots, sizeof(*before->by_slot));
	rc = before->by_slot ? homa_streams_open(&ctx, path) : -ENOMEM;
	if (!rc && !(ctx->att->queues->features & HOMA_SHM_CAN_EXEC))
		rc = -EOPNOTSUPP;
	if (!rc)
		rc = join(ctx, before, token, carried, num, streams);
	if (!rc) {
		*out = ctx;
		return 0;
	}
	homa_streams_close(ctx);
	unmap_areas(before->older);
	free(before->by_slot);
	free(before);
	return rc;
}
