// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Streams that go to another process of the user through a UNIX socket (SCM_RIGHTS).
 *
 * What goes there is a socket of AF_UNIX that stands for the stream. It listens, and in its backlog
 * waits a connection whose other end homad has. So homad sees when nobody has the socket any more,
 * also if it was on its way and the message was never read: then that connection ends. Until then a
 * ticket of homad's holds the stream. Whoever has the socket shows it to homad, and gets a slot for
 * the stream, as a child of fork() does, and the memory in which the stream lies (lent.c).
 *
 * For a program that does not know this it is a socket of which nothing can be read (EINVAL) and to
 * which nothing can be written (ENOTCONN).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "stream_fork.h"
#include "stream_impl.h"
#include "stream_pass.h"

/* The most times that homad is asked for a ticket while it answers -EAGAIN, and for a stream while
 * it makes memory for that. Other threads get their turns in between. */
#define TRIES 200
#define TAKES 200
/* The begin of the names of sockets that stand for streams, which are abstract ones. */
#define NAME "homa.tcp/"

/* ---- the socket that stands for a stream ---- */

/* Write a name that nobody else can have taken to @name; returns its size. */
static socklen_t choose_name(struct sockaddr_un *name)
{
	unsigned long long random = 0;

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(name->sun_path + 1,
					    sizeof(name->sun_path) - 1,
					    NAME "%016llx", random));
}

/* Make the socket and the connection that waits there; returns 0 or a negative errno. */
static int make_sockets(int *stands, int *held)
{
	struct sockaddr_un name;
	socklen_t size = choose_name(&name);
	int rc;

	*stands = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	*held = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	rc = *stands < 0 || *held < 0 || !size ||
	     bind(*stands, (struct sockaddr *)&name, size) ||
	     listen(*stands, 1) ||
	     connect(*held, (struct sockaddr *)&name, size) ||
	     /* Who accepts that connection sees its end at once, and that no more will come. */
	     shutdown(*held, SHUT_WR) || shutdown(*stands, SHUT_RD);
	if (!rc)
		return 0;
	rc = size ? -errno : -EIO;
	if (*stands >= 0)
		close(*stands);
	if (*held >= 0)
		close(*held);
	return rc;
}

bool homa_stream_is_passed(int fd)
{
	struct sockaddr_un name = { 0 };
	socklen_t size = sizeof(name);

	return !getsockname(fd, (struct sockaddr *)&name, &size) &&
	       name.sun_family == AF_UNIX &&
	       size > offsetof(struct sockaddr_un, sun_path) + sizeof(NAME) &&
	       !name.sun_path[0] &&
	       !memcmp(name.sun_path + 1, NAME, sizeof(NAME) - 1);
}

/* ---- the process that passes ---- */

/* Ask homad about the descriptor @fd. The caller has @ctl. */
static int ask(struct homa_streams *ctx, struct homa_ctl_request *request,
	       int fd, struct homa_ctl_answer *answer, int *got, u32 num_got)
{
	int rc = homa_svc_tell_fd(ctx->att, request, fd);

	if (!rc)
		rc = homa_svc_hear(ctx->att, request->op, answer, got, num_got);
	return rc ? rc : answer->error > 0 ? -EPROTO : answer->error;
}

/* Ask homad once to hold the stream for whoever shows the socket. It says -EAGAIN if a connection
 * has come to the listener meanwhile. The caller has @ctl and @look. */
static int hold(struct homa_stream *stream, int stands, int held)
{
	struct homa_streams *ctx = stream->ctx;
	bool listens = stream->kind == HOMA_STREAM_KIND_LISTENER;
	struct homa_streams_ticket listeners = { .pipe = -1 };
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_SHARE,
					    .bytes = HOMA_CTL_FOR_PASS };
	u64 name = (u64)stream->generation << 32 | stream->index;
	struct homa_ctl_answer answer;
	socklen_t size = sizeof(request.pass.cookie);
	int rc;

	if (getsockopt(stands, SOL_SOCKET, SO_COOKIE, &request.pass.cookie, &size))
		return -errno;
	request.pass.name = listens ? stream->token : name;
	if (listens) {
		request.bytes |= HOMA_CTL_PASS_LISTENER | HOMA_CTL_ALL_SEEN;
		homa_streams_ask_ticket(ctx, &listeners, HOMA_CTL_FOR_LISTENERS);
	}
	/* Connections that nobody has accepted go back, for whoever does so first. */
	if (listens)
		homa_streams_prepare(ctx);
	rc = ask(ctx, &request, held, &answer, NULL, 0);
	if (listeners.pipe >= 0)
		close(listeners.pipe);
	if (!rc && !listens)
		homa_stream_share(stream);
	return rc;
}

static bool can_pass(const struct homa_stream *stream)
{
	if (stream->kind == HOMA_STREAM_KIND_LISTENER)
		return !stream->closed && !stream->leaves && !stream->error;
	return homa_stream_slot(stream) != NULL;
}

int homa_stream_pass(struct homa_stream *stream, int *stands)
{
	struct homa_streams *ctx = stream->ctx;
	int held, tries = TRIES, rc = homa_streams_usable(ctx);

	if (rc)
		return rc;
	if (!(ctx->att->queues->features & HOMA_SHM_CAN_PASS))
		return -EOPNOTSUPP;
	homa_streams_look(ctx);
	rc = can_pass(stream) ? make_sockets(stands, &held) : -ENOTCONN;
	if (rc)
		return rc;
	do {
		pthread_mutex_lock(&ctx->ctl);
		homa_gate_lock(&ctx->look);
		rc = hold(stream, *stands, held);
		homa_gate_unlock(&ctx->look);
		pthread_mutex_unlock(&ctx->ctl);
	} while (rc == -EAGAIN && --tries);
	close(held);
	if (rc)
		close(*stands);
	return rc;
}

/* ---- the process that takes ---- */

/* Put the connection that homad has given by @answer into its slot. The caller has @look. */
static bool place(struct homa_stream *stream,
		  const struct homa_ctl_answer *answer,
		  struct homa_stream_lent *lent)
{
	struct homa_streams *ctx = stream->ctx;
	struct homa_stream_slot *slot = homa_stream_lent_slot(lent);

	if (answer->total >= ctx->num_slots || ctx->by_slot[answer->total])
		return false;
	stream->index = answer->total;
	stream->generation = answer->segment;
	stream->own = &ctx->slots[stream->index];
	homa_stream_lent_buffers(lent, &stream->rx_first, &stream->rx);
	stream->tx = stream->rx + HOMA_STREAM_SPAN;
	stream->tx_first = stream->rx_first + HOMA_STREAM_FIRST;
	stream->lent = lent;
	homa_stream_share(stream);
	stream->shut = slot->shut != 0;
	stream->rx_read = slot->rx_read;
	stream->rx_rung = slot->rx_rung;
	stream->tx_end = slot->tx_end;
	stream->tx_map = slot->tx_map;
	ctx->by_slot[stream->index] = stream;
	homa_list_add_tail(&ctx->all, &stream->all);
	__atomic_store_n(&stream->slot, slot, __ATOMIC_RELEASE);
	/* What homad has told until now went to nobody. */
	__atomic_exchange_n(&stream->own->told, 0, __ATOMIC_SEQ_CST);
	homa_stream_add_news(stream);
	return true;
}

/* Let go of what homad has given, as there is no memory for it here. The caller has @look. */
static void refuse(struct homa_streams *ctx, const struct homa_ctl_answer *answer)
{
	bool listens = answer->max_segments & HOMA_CTL_TAKEN_LISTENER;
	struct homa_stream_command command = {
		.op = listens ? HOMA_STREAM_UNLISTEN : HOMA_STREAM_CLOSE,
		.slot = answer->total,
		.generation = answer->segment,
	};

	homa_streams_command_looking(ctx, &command);
}

/* Find what the attachment had before; NULL if it has just let go of that. */
static struct homa_stream *find(struct homa_streams *ctx,
				const struct homa_ctl_answer *answer)
{
	struct homa_stream *stream;

	if (answer->max_segments & HOMA_CTL_TAKEN_LISTENER) {
		stream = homa_streams_listener(ctx, answer->total);
		return stream && !stream->closed ? stream : NULL;
	}
	stream = answer->total < ctx->num_slots ? ctx->by_slot[answer->total] :
						  NULL;
	return stream && stream->generation == answer->segment ? stream : NULL;
}

/* Make the connection or listener that homad has given, with the descriptor @fd. The caller has
 * @look. */
static int make(struct homa_streams *ctx, const struct homa_ctl_answer *answer,
		int fd, struct homa_stream **out)
{
	bool listens = answer->max_segments & HOMA_CTL_TAKEN_LISTENER;
	struct homa_stream_lent *lent =
		listens || fd < 0 ? NULL :
				    homa_stream_borrow(fd, answer->max_rpcs);
	struct homa_stream *stream =
		homa_stream_new(ctx, listens ? HOMA_STREAM_KIND_LISTENER :
					       HOMA_STREAM_KIND_CONNECTION);
	bool ok = stream && fd >= 0;

	if (ok && listens) {
		stream->token = answer->total;
		homa_list_add_tail(&ctx->all, &stream->all);
		homa_list_add_tail(&ctx->listeners, &stream->queued);
	} else if (ok) {
		ok = lent && place(stream, answer, lent);
	}
	if (ok) {
		*out = stream;
		return 0;
	}
	refuse(ctx, answer);
	homa_stream_give_back(lent);
	free(stream);
	/* The kernel drops a descriptor for which the process has no room. */
	return fd < 0 ? -EMFILE : -ENOMEM;
}

/* Ask homad once. The caller has @ctl. */
static int take(struct homa_streams *ctx, int stands,
		struct homa_stream_taken *taken)
{
	struct homa_ctl_request request = { .op = HOMA_CTL_STREAM_TAKE };
	struct homa_ctl_answer answer;
	int fd = -1, rc;

	homa_gate_lock(&ctx->look);
	/* homad may name a listener before this thread knows it. */
	ctx->listening++;
	homa_gate_unlock(&ctx->look);
	rc = ask(ctx, &request, stands, &answer, &fd, 1);
	homa_gate_lock(&ctx->look);
	taken->before = !rc && (answer.max_segments & HOMA_CTL_TAKEN_BEFORE);
	if (taken->before) {
		taken->stream = find(ctx, &answer);
		rc = taken->stream ? 0 : -EAGAIN;
	} else if (!rc) {
		rc = make(ctx, &answer, fd, &taken->stream);
	}
	ctx->listening--;
	homa_gate_unlock(&ctx->look);
	taken->fd = -1;
	if (!rc && !taken->before &&
	    (answer.max_segments & HOMA_CTL_TAKEN_LISTENER))
		taken->fd = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

int homa_streams_take(struct homa_streams *ctx, int stands,
		      struct homa_stream_taken *taken)
{
	int rc = homa_streams_usable(ctx);
	u32 turns = 0, tries = TAKES;

	if (rc)
		return rc;
	if (!(ctx->att->queues->features & HOMA_SHM_CAN_PASS))
		return -EOPNOTSUPP;
	for (;;) {
		pthread_mutex_lock(&ctx->ctl);
		rc = take(ctx, stands, taken);
		if (rc == -ECONNRESET)
			homa_streams_lose(ctx);
		pthread_mutex_unlock(&ctx->ctl);
		if (rc != -EAGAIN || !--tries)
			return rc;
		homa_streams_pause(ctx, &turns);
	}
}
