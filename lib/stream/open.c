// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* This file makes and frees contexts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "homa_clock.h"
#include "stream_fork.h"
#include "stream_impl.h"

#define SPIN_MIN_NS 5000u
#define SPIN_MAX_NS 50000u

struct homa_streams *homa_streams_blank(void)
{
	struct homa_streams *ctx = aligned_alloc(64, sizeof(*ctx));

	if (!ctx)
		return NULL;
	memset(ctx, 0, sizeof(*ctx));
	ctx->event_fd = ctx->nudge_fd = -1;
	homa_list_init(&ctx->all);
	homa_list_init(&ctx->news);
	homa_list_init(&ctx->listeners);
	pthread_mutex_init(&ctx->ctl, NULL);
	homa_spin_init(&ctx->spin, SPIN_MIN_NS, SPIN_MAX_NS, homa_clock_ns());
	homa_watch_forks();
	ctx->fork_generation = homa_fork_generation;
	return ctx;
}

static void free_context(struct homa_streams *ctx)
{
	/* In a child of fork() the mappings are not there, and the descriptors of the connection
	 * were closed when it began; other files may have their numbers now. */
	if (ctx->fork_generation == homa_fork_generation)
		homa_streams_detach(ctx);
	else
		free(ctx->att);
	if (ctx->event_fd >= 0)
		close(ctx->event_fd);
	if (ctx->nudge_fd >= 0)
		close(ctx->nudge_fd);
	pthread_mutex_destroy(&ctx->ctl);
	free(ctx->by_slot);
	free(ctx->wanted);
	free(ctx->kept);
	free(ctx);
}

int homa_streams_open(struct homa_streams **out, const char *path)
{
	struct homa_streams *ctx = homa_streams_blank();
	int rc;

	if (!ctx)
		return -ENOMEM;
	ctx->nudge_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = ctx->nudge_fd < 0 ? -errno : homa_streams_attach(ctx, path);
	if (!rc) {
		ctx->by_slot =
			calloc(ctx->num_slots, sizeof(struct homa_stream *));
		rc = ctx->by_slot ? 0 : -ENOMEM;
	}
	if (rc)
		free_context(ctx);
	else
		*out = ctx;
	return rc;
}

void homa_streams_descriptors(struct homa_streams *ctx, int (*own)(int fd))
{
	ctx->att->sock = own(ctx->att->sock);
	ctx->att->kick_fd = own(ctx->att->kick_fd);
	ctx->event_fd = own(ctx->event_fd);
	ctx->nudge_fd = own(ctx->nudge_fd);
}

void homa_streams_close(struct homa_streams *ctx)
{
	struct homa_list *node, *next;

	if (!ctx)
		return;
	/* In a child of fork() another thread may have been changing this list, but it can be
	 * followed forwards at any time. */
	for (node = ctx->all.next; node != &ctx->all; node = next) {
		next = node->next;
		free(homa_container_of(node, struct homa_stream, all));
	}
	free_context(ctx);
}
