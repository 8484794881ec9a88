// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for streams. An attachment gets the rings at once, and slots with their first
 * buffers by use: a number of them at a time, which the user's account pays for. A user
 * without room gets no more slots: his connections fail, or wait for those that he closes.
 * Larger buffers are tcp_grow.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "closing.h"
#include "homad_tcp.h"
#include "log.h"
#include "stream_grow.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_homes.h"
#include "tcp_slow.h"
#include "tcp_steer.h"
#include "tcp_stream.h"

#define FIRST_SLOTS 16u
/* The most slots that are added at once. */
#define MOST_SLOTS 1024u
/* What homad itself keeps for a slot: a connection, and an entry of each of its arrays. */
#define OWN_BYTES                                                      \
	(sizeof(struct homad_stream) + sizeof(struct homad_stream *) + \
	 sizeof(struct homad_backing) + sizeof(struct homad_alias) +   \
	 3 * sizeof(u32))
#define SLOT_BYTES \
	(2u * HOMA_STREAM_FIRST + sizeof(struct homa_stream_slot) + OWN_BYTES)
#define PAGE ((u64)4096)

/**
 * struct slot_growth - slots on their way to an attachment
 * @work: The errand for the memory thread.
 * @app: The attachment.
 * @from: The number of the first slot that gets memory.
 * @to: The number behind the last one.
 * @rc: 0 or the error of the memory thread.
 */
struct slot_growth {
	struct homad_work work;
	struct homad_app *app;
	u32 from, to;
	int rc;
};

/* ---- growing ---- */

static bool run(struct homad_work *work)
{
	struct slot_growth *g = homa_container_of(work, struct slot_growth, work);
	const struct homad_streams *s = g->app->streams;
	u64 from = g->from * sizeof(*s->slots) / PAGE * PAGE;

	g->rc = homad_populate((u8 *)s->slots + from,
			       g->to * sizeof(*s->slots) - from);
	from = (u64)g->from * 2 * HOMA_STREAM_FIRST;
	if (!g->rc)
		g->rc = homad_populate(s->firsts + from,
				       (u64)g->to * 2 * HOMA_STREAM_FIRST - from);
	return false;
}

static void answer(struct homad_app *app, u32 backed)
{
	struct homad_streams_back back = { .streams = app->streams,
					   .backed = backed };

	homad_streams_call(app->streams, homad_streams_backed, &back);
	homad_share_goes_on(app);
}

static void grown(struct homad *d, struct homad_work *work)
{
	struct slot_growth *g = homa_container_of(work, struct slot_growth, work);
	struct homad_attachment *a = homad_attachment(g->app);
	u64 bytes = (g->to - g->from) * SLOT_BYTES;

	if (g->rc) {
		a->memory -= bytes;
		homad_settle(a->user, bytes);
		g->to = g->from;
	}
	a->slots_backed = g->to;
	if (!a->over)
		answer(g->app, g->to);
	homad_work_over(d, g->app);
	free(g);
}

static void grow(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	u32 have = a->slots_backed, more;
	struct slot_growth *g;

	if (a->over)
		return;
	more = homa_min_u32(homa_max_u32(have, FIRST_SLOTS), MOST_SLOTS);
	more = homa_min_u32(more, app->streams->num_slots - have);
	more = homa_min_u32(more,
			    (u32)homa_min_u64(homad_room(d, a->user) / SLOT_BYTES,
					      more));
	g = more ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		homad_attach(d)->memory_refused++;
		answer(app, have);
		return;
	}
	g->work = (struct homad_work){ .run = run, .done = grown };
	g->app = app;
	g->from = have;
	g->to = have + more;
	a->memory += more * SLOT_BYTES;
	homad_account(a->user, more * SLOT_BYTES);
	a->works++;
	homad_work(d, &a->user->line, &g->work);
}

/* Does what an instance of TCP has asked for. */
static void wanted_by(struct homad *d, struct homad_tcp *tcp)
{
	struct homad_tcp_listener *gone, *ended, *next_gone;
	struct homad_streams *s, *next;

	/* A listener in this stack was put into the other stack (deaf) before, so this one
	 * is emptied first. */
	gone = __atomic_exchange_n(&tcp->gone, NULL, __ATOMIC_ACQUIRE);
	ended = __atomic_exchange_n(&tcp->deaf, NULL, __ATOMIC_ACQUIRE);
	for (; ended; ended = next_gone) {
		next_gone = ended->next_deaf;
		homad_tcp_show_port(d, ended->l.port);
		homad_close(ended->fd);
	}
	for (; gone; gone = next_gone) {
		next_gone = gone->next_gone;
		homad_tcp_end_listener(d, gone);
	}
	s = __atomic_exchange_n(&tcp->wanting, NULL, __ATOMIC_ACQUIRE);
	for (; s; s = next) {
		next = s->next_wanting;
		grow(d, s->app);
	}
	homad_streams_growing(d, tcp);
}

void homad_streams_wanted(struct homad *d)
{
	u32 i;

	if (!d->steering || !homad_slow(d)->tcp)
		return;
	homad_tcp_more_ports(d);
	for (i = 0; i < d->steering->num; i++)
		wanted_by(d, d->steering->tcp[i]);
}

/* ---- HOMA_CTL_STREAMS ---- */

static bool matches(const struct homad_client *client,
		    const struct homad_tcp_rule *rule)
{
	return homad_client_is(client, &rule->who);
}

static void free_streams(struct homad_streams *s)
{
	struct homa_list *idle;

	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->memory_fd >= 0)
		close(s->memory_fd);
	homad_policy_put(s->policy);
	free(s->stream);
	free(s->free);
	free(s->generations);
	free(s->backing);
	free(s->asks);
	free(s->alias);
	free(s->joined);
	while ((idle = homa_list_pop(&s->idle_holds)))
		free(homa_container_of(idle, struct homad_hold, of_holder));
	free(s);
}

static u8 log2_of(u64 bytes)
{
	u8 shift = HOMA_STREAM_MIN_SHIFT;

	while (shift < HOMA_STREAM_MAX_SHIFT && (u64)2 << shift <= bytes)
		shift++;
	return shift;
}

static struct homad_streams *
new_streams(struct homad *d, const struct homad_client *client, u32 num_slots)
{
	struct homad_streams *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->wake_fd = s->memory_fd = -1;
	homa_list_init(&s->grown);
	homa_list_init(&s->idle_holds);
	s->rx_most = log2_of(d->config.tcp_receive_buffer);
	s->tx_most = log2_of(d->config.tcp_send_buffer);
	s->num_asks = 1;
	while (s->num_asks < num_slots)
		s->num_asks *= 2;
	s->stream = calloc(num_slots, sizeof(struct homad_stream *));
	s->free = calloc(num_slots, sizeof(*s->free));
	s->generations = calloc(num_slots, sizeof(*s->generations));
	s->backing = calloc(num_slots, sizeof(*s->backing));
	s->asks = calloc(s->num_asks, sizeof(*s->asks));
	s->alias = calloc(num_slots, sizeof(*s->alias));
	s->id = (u32)client->app->id;
	s->policy = homad_policy_new(d, client);
	if (s->stream && s->free && s->generations && s->backing && s->asks &&
	    s->alias && s->policy)
		return s;
	free_streams(s);
	return NULL;
}

static void drop(struct homad *d, struct homad_app *app)
{
	if (!app->streams)
		return;
	/* A listener that ended with the attachment may be on its way here. */
	homad_streams_wanted(d);
	homad_streams_end(d, app->streams);
	homad_attachment(app)->user->tcp_tx_bytes += app->streams->tx_bytes;
	homad_attachment(app)->user->tcp_rx_bytes += app->streams->rx_bytes;
	/* The instances end before the last attachments do. */
	if (d->steering)
		app->streams->tcp->num_homes--;
	homad_app_unmap(d, app, app->streams->area, app->streams->bytes, 0);
	free_streams(app->streams);
	app->streams = NULL;
}

/* Called when the memory has been made: opens the attachment's streams. */
static int begin(struct homad_client *client, struct homad_piece *piece,
		 struct homad *d, int fds[HOMA_STREAM_FDS])
{
	u32 num_slots = d->config.tcp_streams;
	struct homad_streams_open open = { .app = client->app };
	int wake[2], rc;

	open.streams = new_streams(d, client, num_slots);
	if (!open.streams)
		return -ENOMEM;
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) {
		rc = -errno;
		free_streams(open.streams);
		return rc;
	}
	open.streams->wake_fd = wake[1];
	/* Without this descriptor programs that exec runs lose their connections. */
	open.streams->memory_fd = fcntl(piece->fd, F_DUPFD_CLOEXEC, 0);
	open.streams->same_network = homad_of_our_network(client->conn.fd);
	homad_streams_lay(open.streams, (struct homa_stream_area *)piece->base,
			  num_slots);
	open.streams->tcp = homad_tcp_choose(d);
	rc = homad_bring_home(d, client->app, open.streams->tcp);
	if (!rc)
		rc = homad_call(client->app->thread, homad_streams_begin, &open);
	if (rc) {
		close(wake[0]);
		free_streams(open.streams);
		return rc;
	}
	open.streams->tcp->num_homes++;
	homad_attachment(client->app)->drop_streams = drop;
	fds[HOMA_STREAM_FD_MEMORY] = piece->fd;
	fds[HOMA_STREAM_FD_EVENT] = wake[0];
	return 0;
}

static void made(struct homad *d, struct homad_making *making)
{
	struct homa_ctl_answer answer = { .op = HOMA_CTL_STREAMS };
	struct homad_client *client = making->client;
	struct homad_piece *piece = &making->pieces[0];
	int fds[HOMA_STREAM_FDS], rc = making->rc;

	if (!rc)
		rc = begin(client, piece, d, fds);
	if (!rc) {
		answer.queues_bytes = piece->bytes;
		homad_answer(client, &answer, fds, HOMA_STREAM_FDS, NULL, 0, 0);
		/* The first slots come while the application gets ready. */
		client->app->streams->asked = true;
		grow(d, client->app);
		return;
	}
	if (!making->rc) {
		close(piece->fd);
		homad_app_unmap(d, client->app, piece->base, piece->bytes,
				homad_streams_fixed(d->config.tcp_streams));
	}
	homad_answer_error(client, HOMA_CTL_STREAMS, rc, "cannot serve TCP: %s",
			   strerror(-rc));
}

void homad_op_streams(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r)
{
	u32 num_slots = d->config.tcp_streams, i;
	char text[HOMA_SHM_TEXT];
	bool any = false;
	int rc;

	for (i = 0; i < d->config.num_tcp_rules; i++)
		any |= matches(client, &d->config.tcp_rules[i]);
	if (!any || !homad_slow(d)->tcp) {
		homad_answer_error(client, r->op, -EOPNOTSUPP,
				   "no [[tcp_rule]] of this homad is for user %u",
				   (unsigned int)client->uid);
		return;
	}
	if (client->app->streams) {
		homad_answer_error(client, r->op, -EISCONN,
				   "this attachment has streams already");
		return;
	}
	rc = homad_app_memory(d, client, r->op, "homa-streams",
			      homad_streams_bytes(num_slots),
			      homad_streams_fixed(num_slots), made, text,
			      sizeof(text));
	if (rc)
		homad_answer_error(client, r->op, rc, "%s", text);
}
