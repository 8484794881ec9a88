// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The request to attach: rules and numbers are asked, the worker makes the memory, and
 * then the fast path gets the attachment and the application its descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"

void homad_fill_attached(struct homad *d, struct homad_app *app,
			 struct homa_ctl_answer *a)
{
	struct homad_attachment *record = homad_attachment(app);
	u32 i;

	record->attached.port = homa_sock_port(app->sock);
	a->port = record->attached.port;
	a->encap = d->udp ? d->udp->info->address.encap : 0;
	for (i = 0; i < d->num_ports; i++) {
		const struct homad_port *port = &d->ports[i];

		if (!port->info)
			continue;
		if (!port->encap)
			a->native = 1;
		if (a->ip[15] == 0 && a->ip[0] == 0)
			memcpy(a->ip, port->info->address.ip, sizeof(a->ip));
	}
	a->queues_bytes = record->queues_bytes;
	a->data_bytes = app->seg[0].bytes;
	a->pool_bytes = app->pool_bytes;
	a->max_rpcs = app->max_rpcs;
	a->max_segments = homad_app_segments(app);
	a->rings = record->layout.entries;
}

/* Checks the sizes that the client wants for its rings; returns false if they are refused and
 * the client has been told why. */
static bool check_rings(struct homad_client *client,
			const struct homa_ctl_request *r,
			struct homad_layout *layout)
{
	static const struct homa_ctl_rings usual;
	bool asks = r->features & HOMA_SHM_CAN_PLACES;

	if (homad_layout_make(layout, asks ? &r->rings : &usual))
		return true;
	homad_answer_error(
		client, r->op, -EINVAL,
		"rings of %u, %u and %u entries: homad gives powers of two, %u to %u for submissions, %u to %u for completions, %u to %u for releases",
		r->rings.submit, r->rings.complete, r->rings.release,
		HOMA_SHM_SQ_MIN, HOMA_SHM_SQ_MAX, HOMA_SHM_CQ_MIN,
		HOMA_SHM_CQ_MAX, HOMA_SHM_RELEASES_MIN, HOMA_SHM_RELEASES_MAX);
	return false;
}

static void attach_refused(struct homad *d, struct homad_client *client, int rc,
			   const char *text)
{
	homad_slow(d)->refused++;
	homad_log(HOMAD_INFO, "attach refused\tpid=%d uid=%u error=%d reason=%s",
		  (int)client->pid, (unsigned int)client->uid, -rc, text);
	homad_answer_error(client, HOMA_CTL_ATTACH, rc, "%s", text);
}

/* Gives a new attachment the memory that was made for it. */
static void adopt(struct homad *d, const struct homad_making *making)
{
	struct homad_app *app = making->app;
	struct homad_attachment *a = homad_attachment(app);
	const struct homad_piece *pieces = making->pieces;
	struct homa_shm_header *h;

	h = (struct homa_shm_header *)pieces[HOMA_CTL_FD_QUEUES].base;
	app->queues = h;
	homad_layout_use(&a->layout, app);
	homad_layout_tell(&a->layout, h);
	h->magic = HOMA_SHM_MAGIC;
	h->version = making->client->version;
	h->bytes = a->queues_bytes;
	h->sqs = 1;
	memcpy(h->id_key, app->id_key, sizeof(app->id_key));
	h->features = HOMA_SHM_CAN_REJECT | HOMA_SHM_CAN_SHARE |
		      HOMA_SHM_CAN_PLACES | HOMA_SHM_CAN_BELL |
		      HOMA_SHM_CAN_HANDOVER | HOMA_SHM_CAN_ROOM;
	if (homad_slow(d)->tcp)
		h->features |= HOMA_SHM_CAN_STREAM | HOMA_SHM_CAN_FORK |
			       HOMA_SHM_CAN_EXEC | HOMA_SHM_CAN_UNJOINED |
			       HOMA_SHM_CAN_PATIENCE | HOMA_SHM_CAN_PASS |
			       HOMA_SHM_CAN_URGENT | HOMA_SHM_CAN_BACKLOG |
			       HOMA_SHM_CAN_BEGUN | HOMA_SHM_CAN_SENT;
	app->seg[0].base = pieces[HOMA_CTL_FD_DATA].base;
	app->seg[0].bytes = (u32)pieces[HOMA_CTL_FD_DATA].bytes;
	app->num_segs = 1;
	a->send_bytes = app->seg[0].bytes;
	app->pool = pieces[HOMA_CTL_FD_POOL].base;
	app->pool_backed = a->pool_backed;
	app->rings_backed = a->rings_backed;
	if (!a->kept)
		return;
	homad_app_keep_fd(&a->kept->queues, pieces[HOMA_CTL_FD_QUEUES].fd);
	homad_app_keep_fd(&a->kept->pool, pieces[HOMA_CTL_FD_POOL].fd);
	homad_app_keep_fd(&a->kept->seg[0], pieces[HOMA_CTL_FD_DATA].fd);
}

/* Goes on when homad_app_new() is done. If it failed the attachment is dropped after
 * this. */
static void attach_made(struct homad *d, struct homad_making *making)
{
	struct homa_ctl_answer answer = { .op = HOMA_CTL_ATTACH };
	struct homad_client *client = making->client;
	struct homad_app *app = making->app;
	int fds[HOMA_CTL_ATTACH_FDS], rc = making->rc;
	u32 i;

	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++)
		fds[i] = i < making->num ? making->pieces[i].fd : -1;
	if (!rc) {
		adopt(d, making);
		rc = homad_app_wires(app, fds);
	}
	if (!rc)
		rc = homad_call(homad_thread_for_app(d), homad_session_open, app);
	if (!rc) {
		homad_app_begins(d, app);
		homad_fill_attached(d, app, &answer);
		homad_log(HOMAD_DEBUG,
			  "attached\tapp=%llu pid=%d uid=%u name=%s port=%u",
			  (unsigned long long)app->id, (int)app->pid,
			  (unsigned int)app->uid, app->name, answer.port);
		homad_answer(client, &answer, fds, HOMA_CTL_ATTACH_FDS, NULL, 0,
			     0);
		return;
	}
	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	homad_client_unattached(d, client);
	snprintf(answer.text, sizeof(answer.text), "cannot attach: %s",
		 strerror(-rc));
	attach_refused(d, client, rc, answer.text);
}

static void op_attach(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r)
{
	char name[sizeof(r->name)], text[HOMA_SHM_TEXT] = "";
	struct homad_layout layout;
	u64 bytes;
	int rc;

	if (client->app) {
		homad_answer_error(
			client, r->op, -EISCONN,
			"this connection is attached already; make another one for another handle");
		return;
	}
	memcpy(name, r->name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	rc = homad_may_attach(d, client, text, sizeof(text));
	if (!rc && (r->features & HOMA_SHM_CAN_HANDOVER))
		rc = homad_may_keep(client, text, sizeof(text));
	if (!rc && (!homad_pool_asked(d, client, r, &bytes) ||
		    !check_rings(client, r, &layout)))
		return;
	if (!rc)
		rc = homad_app_new(d, client, name, bytes, &layout, attach_made,
				   text, sizeof(text));
	if (rc) {
		attach_refused(d, client, rc, text);
		return;
	}
	client->app->rings_bell = r->features & HOMA_SHM_CAN_BELL;
	client->app->hears_unjoined = r->features & HOMA_SHM_CAN_UNJOINED;
	/* If there is no memory for that, the attachment cannot be handed over. */
	if (r->features & HOMA_SHM_CAN_HANDOVER)
		(void)homad_app_keep(client->app);
	homad_client_attached(d, client);
}

int homad_ctl_attach_start(struct homad *d, char *err, size_t errlen)
{
	(void)d;
	(void)err;
	(void)errlen;
	homad_ctl_serve(HOMA_CTL_ATTACH, op_attach);
	return 0;
}
