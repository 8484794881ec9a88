// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The connection to homad. It begins as any attachment, with the smallest receive pool and
 * rings, because Homa's stay unused; of its memory only the header of the queues is
 * looked at, for homad's state and for what it wants to be kicked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "stream_impl.h"

#define SMALLEST_POOL (128u << 10) /* bytes */

static void close_fds(int *fds, int num)
{
	int i;

	for (i = 0; i < num; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int have_fds(const int *fds, int num)
{
	int i;

	for (i = 0; i < num; i++)
		if (fds[i] < 0)
			return -EMFILE;
	return 0;
}

/* Return the error in homad's answer, or -EPROTONOSUPPORT if it is of another version. */
static int verdict(const struct homa_ctl_answer *answer)
{
	if (!homa_svc_same_major(answer->version))
		return -EPROTONOSUPPORT;
	return answer->error > 0 ? -EPROTO : answer->error;
}

static int begin(struct homa_svc_att *att)
{
	struct homa_ctl_request request = {
		.op = HOMA_CTL_ATTACH,
		.bytes = SMALLEST_POOL,
		.features = HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_UNJOINED,
		.rings = { HOMA_SHM_SQ_MIN, HOMA_SHM_CQ_MIN, HOMA_SHM_RELEASES_MIN }
	};
	int fds[HOMA_CTL_ATTACH_FDS];
	int rc;

	snprintf(request.name, sizeof(request.name), "%s",
		 program_invocation_short_name);
	rc = homa_svc_ask(att, &request, &att->answer, fds, HOMA_CTL_ATTACH_FDS);
	if (rc)
		return rc;
	rc = verdict(&att->answer);
	if (!rc)
		rc = have_fds(fds, HOMA_CTL_ATTACH_FDS);
	if (!rc && att->answer.queues_bytes < sizeof(*att->queues))
		rc = -EPROTO;
	if (!rc) {
		att->queues = homa_svc_map(fds[HOMA_CTL_FD_QUEUES],
					   att->answer.queues_bytes);
		rc = att->queues ? 0 : -ENOMEM;
	}
	if (!rc) {
		att->kick_fd = fds[HOMA_CTL_FD_KICK];
		fds[HOMA_CTL_FD_KICK] = -1;
	}
	close_fds(fds, HOMA_CTL_ATTACH_FDS);
	if (!rc && (att->queues->magic != HOMA_SHM_MAGIC ||
		    !homa_svc_same_major(att->queues->version)))
		rc = -EPROTO;
	if (!rc && !(att->queues->features & HOMA_SHM_CAN_STREAM))
		rc = -EOPNOTSUPP;
	return rc;
}

static int get_area(struct homa_streams *ctx)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAMS };
	struct homa_ctl_answer answer;
	int fds[HOMA_STREAM_FDS];
	int rc;

	rc = homa_svc_ask(ctx->att, &request, &answer, fds, HOMA_STREAM_FDS);
	if (rc)
		return rc;
	rc = verdict(&answer);
	if (!rc)
		rc = have_fds(fds, HOMA_STREAM_FDS);
	if (!rc && answer.queues_bytes < sizeof(*ctx->area))
		rc = -EPROTO;
	if (!rc) {
		ctx->bytes = answer.queues_bytes;
		ctx->area = homa_svc_map(fds[HOMA_STREAM_FD_MEMORY], ctx->bytes);
		rc = ctx->area ? homa_streams_lay(ctx) : -ENOMEM;
	}
	if (!rc) {
		ctx->event_fd = fds[HOMA_STREAM_FD_EVENT];
		fds[HOMA_STREAM_FD_EVENT] = -1;
	}
	close_fds(fds, HOMA_STREAM_FDS);
	return rc;
}

static const char *usual_path(void)
{
	const char *path = getenv("HOMA_SERVICE_SOCKET");

	return path && *path ? path : HOMA_SHM_SOCKET;
}

int homa_streams_attach(struct homa_streams *ctx, const char *path)
{
	struct homa_svc_att *att;
	char err[512];
	int rc;

	if (!path)
		path = usual_path();
	if (strlen(path) >= 108)
		return -ENAMETOOLONG;
	att = calloc(1, sizeof(*att));
	if (!att)
		return -ENOMEM;
	att->refs = 1;
	att->sock = att->wake_fd = att->kick_fd = -1;
	homa_list_init(&att->old);
	homa_list_init(&att->all);
	ctx->att = att;
	rc = homa_svc_dial(att, path, true, err, sizeof(err));
	if (!rc)
		rc = begin(att);
	return rc ? rc : get_area(ctx);
}

void homa_streams_detach(struct homa_streams *ctx)
{
	if (ctx->att)
		homa_svc_att_put(ctx->att);
	if (ctx->area)
		munmap(ctx->area, ctx->bytes);
	ctx->att = NULL;
	ctx->area = NULL;
}

int homa_streams_ask_listen(struct homa_streams *ctx, int fd, u32 backlog,
			    u32 *number)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_LISTEN,
					    .bytes = backlog };
	struct homa_ctl_answer answer;
	int rc;

	rc = homa_svc_tell_fd(ctx->att, &request, fd);
	if (!rc)
		rc = homa_svc_hear(ctx->att, request.op, &answer, NULL, 0);
	if (rc)
		return rc;
	*number = answer.total;
	return verdict(&answer);
}
