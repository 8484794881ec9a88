// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Requests on the attach socket. Each is checked in full, whoever sends it, and
 * each gets one answer; a mistake costs its sender an error and a sentence, and
 * only a client that does not speak our language at all is dropped. What concerns
 * the fast path is done there between two rounds (homad_call()).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach.h"
#include "homad_stats.h"

#define PAGE 4096u
#define POOL_PAGE 65536u
#define POOL_MIN (2 * POOL_PAGE)
/* The most times that an attachment may exchange its pool, because homad has to clear pages
 * each time. */
#define POOLS 8u
#define SEGMENT_MAX ((u64)1 << 30)

bool homad_pool_asked(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r, u64 *bytes)
{
	const struct homad_quota *quota = &d->config.quota;

	*bytes = r->bytes ? r->bytes : quota->rcvbuf_default;
	if (*bytes % POOL_PAGE == 0 && *bytes >= POOL_MIN &&
	    *bytes <= quota->rcvbuf_max)
		return true;
	homad_answer_error(client, r->op, -EINVAL,
			   "receive buffer of %llu bytes: homad gives multiples of %u from %u to %llu; ask for less or raise quota.rcvbuf_max",
			   (unsigned long long)*bytes, POOL_PAGE, POOL_MIN,
			   (unsigned long long)quota->rcvbuf_max);
	return false;
}

static void say_taken(struct homa_ctl_answer *answer, u16 port, bool share)
{
	snprintf(answer->text, sizeof(answer->text),
		 "port %u is another handle's of this homad%s", port,
		 share ? ", which is another user's or does not share it (HOMA_OPEN_SHARED_PORT)" :
			 "");
}

static void op_bind(struct homad *d, struct homad_client *client,
		    const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op, .port = r->port };
	struct homad_bind bind = { .app = client->app, .port = r->port };
	int rc;

	/* What can never be a server's port is wrong, not forbidden. */
	rc = r->port == 0 || r->port >= HOMA_MIN_CLIENT_PORT ?
		     0 :
		     homad_may_bind(d, client, r->port, answer.text,
				    sizeof(answer.text));
	if (!rc)
		rc = homad_call(client->app->thread, homad_session_bind, &bind);
	if (!rc)
		homad_attachment(client->app)->attached.port = r->port;
	else if (rc == -EADDRINUSE)
		say_taken(&answer, r->port, false);
	else if (!answer.text[0])
		snprintf(answer.text, sizeof(answer.text),
			 "cannot bind port %u: %s", r->port, strerror(-rc));
	answer.error = rc;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

/* Does what SO_HOMA_SERVER and bind() do together, so that a port is never open to peers
 * that are to be refused. */
static void op_listen(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_listen listen = { .app = client->app,
				       .port = r->port,
				       .flags = (u32)r->bytes };
	u64 known = HOMA_CTL_LISTEN_ON | HOMA_CTL_LISTEN_V4 |
		    HOMA_CTL_LISTEN_SHARED;
	bool share = r->bytes & HOMA_CTL_LISTEN_SHARED;
	int rc = r->bytes & ~known || r->port >= HOMA_MIN_CLIENT_PORT ||
				 (share && !r->port) ?
			 -EINVAL :
			 0;

	if (!rc && share)
		rc = homad_may_share(client, "ports are not shared",
				     answer.text, sizeof(answer.text));
	if (!rc && r->port)
		rc = homad_may_bind(d, client, r->port, answer.text,
				    sizeof(answer.text));
	else if (!rc && (r->bytes & HOMA_CTL_LISTEN_ON))
		rc = homad_may_serve(d, client, homa_sock_port(client->app->sock),
				     answer.text, sizeof(answer.text));
	if (!rc) {
		rc = homad_call(client->app->thread, homad_session_listen,
				&listen);
		homad_attachment(client->app)->attached.port = listen.port;
	}
	if (rc == -EADDRINUSE)
		say_taken(&answer, r->port, share);
	else if (rc == -ENOBUFS)
		snprintf(answer.text, sizeof(answer.text),
			 "port %u is shared by as many handles as may share one; close some, or let threads share a handle",
			 r->port);
	else if (rc && !answer.text[0])
		snprintf(answer.text, sizeof(answer.text), "cannot listen: %s",
			 strerror(-rc));
	answer.port = listen.port;
	answer.error = rc;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

static u32 first_pages(u64 pool_bytes)
{
	return homa_min_u32(HOMAD_POOL_FIRST, (u32)(pool_bytes / POOL_PAGE));
}

static void pool_made(struct homad *d, struct homad_making *making)
{
	struct homa_ctl_answer answer = { .op = HOMA_CTL_POOL };
	struct homad_client *client = making->client;
	struct homad_piece *piece = &making->pieces[0];
	struct homad_app *app = making->app;
	struct homad_attachment *a = homad_attachment(app);
	struct homad_pool change = { .app = app,
				     .pool = piece->base,
				     .bytes = piece->bytes };
	size_t size, old_bytes = app->pool_bytes;
	u8 *old = app->pool;
	int rc = making->rc;

	change.backed = first_pages(piece->bytes);
	size = (homa_pool_size((u32)(piece->bytes / POOL_PAGE)) + 63) / 64 * 64;
	change.pool_mem = rc ? NULL : aligned_alloc(64, size);
	if (change.pool_mem)
		memset(change.pool_mem, 0, size);
	else if (!rc)
		rc = -ENOMEM;
	if (!rc)
		rc = homad_call(app->thread, homad_session_pool, &change);
	/* the old memory, or the new one if the exchange failed */
	free(change.pool_mem);
	if (rc) {
		if (!making->rc) {
			close(piece->fd);
			homad_app_unmap(d, app, piece->base, piece->bytes,
					(u64)change.backed * POOL_PAGE);
		}
		homad_answer_error(client, HOMA_CTL_POOL, rc,
				   "cannot exchange the receive buffer: %s",
				   rc == -EBUSY ? "it has received messages" :
						  strerror(-rc));
		return;
	}
	homad_app_unmap(d, app, old, old_bytes, (u64)a->pool_backed * POOL_PAGE);
	a->pool_backed = change.backed;
	a->pools++;
	if (a->kept)
		homad_app_keep_fd(&a->kept->pool, piece->fd);
	homa_list_del(&a->grown);
	answer.pool_bytes = piece->bytes;
	homad_answer(client, &answer, &piece->fd, 1, NULL, 0, 0);
}

static void op_pool(struct homad *d, struct homad_client *client,
		    const struct homa_ctl_request *r)
{
	char text[HOMA_SHM_TEXT];
	u64 bytes;
	int rc;

	if (!homad_pool_asked(d, client, r, &bytes))
		return;
	if (homad_attachment(client->app)->pools >= POOLS) {
		homad_answer_error(client, r->op, -EBUSY,
				   "the receive buffer was exchanged %u times; open another handle",
				   POOLS);
		return;
	}
	rc = homad_app_memory(d, client, r->op, "homa-pool", bytes,
			      (u64)first_pages(bytes) * POOL_PAGE, pool_made,
			      text, sizeof(text));
	if (rc)
		homad_answer_error(client, r->op, rc, "%s", text);
}

struct new_segment {
	/* The attachment that gets it. */
	struct homad_app *app;
	/* The data segment. */
	struct homad_segment segment;
};

static int add_segment(struct homad_thread *t, void *arg)
{
	struct new_segment *new = arg;

	(void)t;
	new->app->seg[new->app->num_segs] = new->segment;
	new->app->num_segs++;
	return 0;
}

static void segment_made(struct homad *d, struct homad_making *making)
{
	struct homa_ctl_answer answer = { .op = HOMA_CTL_SEGMENT };
	struct homad_piece *piece = &making->pieces[0];
	struct homad_app *app = making->app;
	struct new_segment new = { .app = app };

	(void)d;
	if (making->rc) {
		homad_answer_error(making->client, HOMA_CTL_SEGMENT, making->rc,
				   "cannot get %llu KiB of shared memory: %s",
				   (unsigned long long)piece->bytes >> 10,
				   strerror(-making->rc));
		return;
	}
	new.segment = (struct homad_segment){ piece->base, (u32)piece->bytes };
	answer.segment = app->num_segs;
	answer.data_bytes = piece->bytes;
	homad_attachment(app)->send_bytes += piece->bytes;
	homad_call(app->thread, add_segment, &new);
	if (homad_attachment(app)->kept)
		homad_app_keep_fd(&homad_attachment(app)->kept->seg[answer.segment],
				  piece->fd);
	homad_answer(making->client, &answer, &piece->fd, 1, NULL, 0, 0);
}

static void op_segment(struct homad *d, struct homad_client *client,
		       const struct homa_ctl_request *r)
{
	struct homad_app *app = client->app;
	struct homad_attachment *record = homad_attachment(app);
	u32 most = homad_app_segments(app);
	u64 max = d->config.quota.send_max;
	char text[HOMA_SHM_TEXT];
	int rc;

	if (r->bytes == 0 || r->bytes % PAGE || r->bytes > SEGMENT_MAX) {
		homad_answer_error(client, r->op, -EINVAL,
				   "data segment of %llu bytes: it must be a multiple of %u up to %llu",
				   (unsigned long long)r->bytes, PAGE,
				   (unsigned long long)SEGMENT_MAX);
		return;
	}
	if (app->num_segs >= most || record->send_bytes > max ||
	    r->bytes > max - record->send_bytes) {
		homad_answer_error(
			client, r->op, -EDQUOT,
			"%llu KiB of send memory in %u segments are in use and the limit is %llu KiB in %u; wait for replies, or raise quota.send_max",
			(unsigned long long)record->send_bytes >> 10,
			app->num_segs, (unsigned long long)max >> 10, most);
		return;
	}
	rc = homad_app_memory(d, client, r->op, "homa-data", r->bytes, r->bytes,
			      segment_made, text, sizeof(text));
	if (rc)
		homad_answer_error(client, r->op, rc, "%s", text);
}

static int set_ready_fd(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;
	int before = app->ready_fd;

	(void)t;
	app->ready_fd = homad_attachment(app)->new_ready_fd;
	homad_attachment(app)->new_ready_fd = before;
	app->ready_every = homad_attachment(app)->new_ready_every;
	return 0;
}

static void op_ready_fd(struct homad *d, struct homad_client *client,
			const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_app *app = client->app;
	int ends[2];

	(void)d;
	/* If it asks again it gets a new pipe, which may be written more often. */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		homad_answer_error(client, r->op, -errno,
				   "homad has no file descriptor left: %s",
				   strerror(errno));
		return;
	}
	homad_attachment(app)->new_ready_fd = ends[1];
	homad_attachment(app)->new_ready_every = r->bytes == 1;
	homad_call(app->thread, set_ready_fd, app);
	if (homad_attachment(app)->new_ready_fd >= 0)
		close(homad_attachment(app)->new_ready_fd);
	homad_answer(client, &answer, &ends[0], 1, NULL, 0, 0);
}

/* ---- looking in ---- */

struct records {
	/* The records so far, allocated. */
	struct homa_ctl_metric *metrics;
	/* Number of records, and number for which there is memory. */
	u32 count, room;
};

static void add_metric(void *arg, const char *name, const char *text, u64 value)
{
	struct records *r = arg;
	struct homa_ctl_metric *grown, *m;

	if (r->count == r->room) {
		grown = realloc(r->metrics, (r->room + 64) * sizeof(*grown));
		if (!grown)
			return;
		r->metrics = grown;
		r->room += 64;
	}
	m = &r->metrics[r->count++];
	memset(m, 0, sizeof(*m));
	m->value = value;
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->text, sizeof(m->text), "%s", text);
}

static void op_metrics(struct homad *d, struct homad_client *client,
		       const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct records records = { 0 };

	homad_stats_metrics(d, client->app, add_metric, &records);
	answer.total = records.count;
	homad_answer(client, &answer, NULL, 0, records.metrics, records.count,
		     sizeof(*records.metrics));
}

static void op_rpcs(struct homad *d, struct homad_client *client,
		    const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	u32 max = 2 * client->app->max_rpcs;
	struct homa_ctl_rpc *rpcs = NULL;
	bool all = false;
	u32 rounds = 0;

	(void)d;
	/* Requests that it has no place for yet wait in the engine, and are listed, too. */
	for (; !all; max *= 2) {
		free(rpcs);
		rpcs = calloc(max, sizeof(*rpcs));
		if (!rpcs) {
			homad_answer_error(client, r->op, -ENOMEM,
					   "homad is out of memory");
			return;
		}
		answer.total =
			homad_stats_rpcs(client->app, rpcs, max, &all, &rounds);
	}
	homad_throttle_count(client, rounds);
	homad_answer(client, &answer, NULL, 0, rpcs, answer.total, sizeof(*rpcs));
}

static void op_shutdown(struct homad *d, struct homad_client *client,
			const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	u32 rounds = 0;

	(void)d;
	while ((answer.error = homad_call(client->app->thread,
					  homad_session_shutdown, client->app)) >
	       0)
		rounds++;
	homad_throttle_count(client, rounds);
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

static void op_alive(struct homad *d, struct homad_client *client,
		     const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_alive alive = { .app = client->app, .token = r->bytes };

	(void)d;
	answer.total = (u32)homad_call(client->app->thread, homad_session_alive,
				       &alive);
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

static homad_op *ops[] = {
	[HOMA_CTL_ATTACH] = NULL,
	[HOMA_CTL_BIND] = op_bind,
	[HOMA_CTL_POOL] = op_pool,
	[HOMA_CTL_SEGMENT] = op_segment,
	[HOMA_CTL_READY_FD] = op_ready_fd,
	[HOMA_CTL_METRICS] = op_metrics,
	[HOMA_CTL_RPCS] = op_rpcs,
	[HOMA_CTL_SHUTDOWN] = op_shutdown,
	[HOMA_CTL_LISTEN] = op_listen,
	[HOMA_CTL_ALIVE] = op_alive,
	/* and the commands before, if homad_ctl_serve() was called for them */
	[HOMA_CTL_STREAM_TAKE] = NULL,
};

void homad_ctl_serve(u16 op, homad_op *serve)
{
	ops[op] = serve;
}

/* Does the client speak our language? Only the first eight bytes are the same for ever. */
static bool understood(struct homad_client *client,
		       const struct homa_ctl_request *r, size_t length)
{
	client->version = HOMA_SHM_VERSION;
	if (length < offsetof(struct homa_ctl_request, bytes) ||
	    r->magic != HOMA_SHM_MAGIC) {
		client->hopeless = true;
		homad_answer_error(
			client, 0, -EPROTO,
			"this is homad's attach socket, and what came is no request to homad; use libhoma");
		return false;
	}
	if (HOMA_SHM_MAJOR(r->version) != HOMA_SHM_MAJOR(HOMA_SHM_VERSION)) {
		client->hopeless = true;
		homad_answer_error(client, r->op, -EPROTO,
				   "the program speaks version %u of homad's interface and this homad version %u; update the older of libhoma and homad",
				   r->version, HOMA_SHM_VERSION);
		return false;
	}
	client->version = r->version;
	if (length != sizeof(*r)) {
		homad_answer_error(client, r->op, -EINVAL,
				   "a request has %zu bytes, this one had %zu",
				   sizeof(*r), length);
		return false;
	}
	return true;
}

/* May a client that has no attachment yet ask for this? */
static bool is_first(u16 op)
{
	return op == HOMA_CTL_ATTACH || op == HOMA_CTL_IMPORT ||
	       op == HOMA_CTL_TAKE;
}

void homad_ctl(struct homad *d, struct homad_client *client,
	       const struct homa_ctl_request *request, size_t length)
{
	if (!understood(client, request, length))
		return;
	if (request->op >= HOMA_ARRAY_SIZE(ops) || !ops[request->op]) {
		homad_answer_error(client, request->op, -EOPNOTSUPP,
				   "homad does not know operation %u",
				   request->op);
		return;
	}
	if (!client->app && !is_first(request->op)) {
		homad_answer_error(client, request->op, -ENOTCONN,
				   "the first request must be to attach");
		return;
	}
	if (client->app && client->app->phase != HOMAD_APP_OPEN) {
		homad_answer_error(client, request->op, -ESHUTDOWN,
				   "this attachment is being ended by homad");
		return;
	}
	ops[request->op](d, client, request);
}
