// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Tickets: what a process has when it forks is held for its child. Who shows the ticket's
 * random number and is of the same user gets it. With the request comes the read end of a
 * pipe whose write end only parent and child have, so that homad sees when the child has
 * ended before it came, and lets go. A user has a limited number of tickets.
 *
 * A ticket for exec has a time limit, too: the program that is run may not know of homad, and
 * keeps the pipe without ever coming. Who comes has no memory of before, so he gets that in
 * which streams of the ticket lie, if it belongs to attachments of his own user.
 *
 * A ticket for one stream or listener goes through UNIX sockets (HOMA_CTL_FOR_PASS): who shows
 * the socket that stands for it gets it, as often as he likes. Instead of the pipe homad has the
 * other end of a connection to that socket, which ends when nobody has the socket any more. A user
 * has a limited number of these, too, counted apart: a program that passes many does not keep
 * others of its user from fork().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "closing.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_homes.h"
#include "tcp_listener.h"
#include "tcp_slow.h"

/* The most tickets of a user for children and programs, and the most for streams on their way. */
#define USER_TICKETS 256u
#define USER_PASSES 256u
/* The number of streams and listeners that may be added to what is shared while room for it
 * is made. */
#define SPARE 16u
/* The number of times that room is made, if more has come meanwhile. */
#define TRIES 4
#define EXEC_NS (HOMA_CTL_EXEC_SECONDS * (u64)1000000000)

/* struct homad_share - a ticket that nobody has redeemed */
struct homad_share {
	/* These link it into homad_user.tickets and homad_tcp_ports.tickets. */
	struct homa_list of_user, of_all;
	/* The user who pays for it. */
	struct homad_user *user;
	/* The instance of TCP that has its streams. */
	struct homad_tcp *tcp;
	/* The read end of the pipe, or the connection to the socket that stands for the stream; it
	 * becomes ready when no process that may redeem the ticket is left. */
	struct homad_source pipe;
	/* A timer that ends the ticket; its fd is -1 if the ticket has no time limit. */
	struct homad_source limit;
	/* The token by which it is redeemed. */
	u8 token[16];
	/* It is a ticket for one stream or listener on its way; @ticket has no room for holds. */
	bool pass;
	/* With @pass: SO_COOKIE of the socket that stands for the stream. */
	u64 cookie;
	/* The ticket. */
	struct homad_ticket *ticket;
};

/* Where the tickets of this kind are counted. */
static u32 *count_of(struct homad_user *user, bool pass)
{
	return pass ? &user->num_passes : &user->num_tickets;
}

/* Frees the record; the ticket itself has been redeemed or dropped. */
static void end(struct homad *d, struct homad_share *share)
{
	homad_unwatch(d, &share->pipe);
	homad_close(share->pipe.fd);
	if (share->limit.fd >= 0) {
		homad_unwatch(d, &share->limit);
		close(share->limit.fd);
	}
	homa_list_del(&share->of_user);
	homa_list_del(&share->of_all);
	--*count_of(share->user, share->pass);
	homad_user_put(share->user);
	free(share);
}

static void free_ticket(struct homad_user *user, struct homad_ticket *ticket)
{
	homad_settle(user, ticket->bytes);
	free(ticket);
}

static void drop(struct homad *d, struct homad_share *share, bool reset)
{
	struct homad_sharing sharing = { .ticket = share->ticket,
					 .tcp = share->tcp,
					 .reset = reset };

	homad_call(share->tcp->thread, homad_ticket_drop, &sharing);
	free_ticket(share->user, share->ticket);
	end(d, share);
}

static void is_void(struct homad *d, struct homad_source *source, u32 events)
{
	(void)events;
	drop(d, homa_container_of(source, struct homad_share, pipe), false);
}

static void is_late(struct homad *d, struct homad_source *source, u32 events)
{
	(void)events;
	drop(d, homa_container_of(source, struct homad_share, limit), true);
}

static int limit_time(struct homad *d, struct homad_share *share)
{
	int rc, fd = homad_timer_open();

	if (fd < 0)
		return fd;
	share->limit = (struct homad_source){ .fd = fd, .ready = is_late };
	rc = homad_timer_set(fd, EXEC_NS);
	if (!rc)
		rc = homad_watch(d, &share->limit, EPOLLIN);
	if (!rc)
		return 0;
	close(fd);
	share->limit.fd = -1;
	return rc;
}

/* Makes a ticket with room for all that @s has, and that may come while it is made; or, if @one,
 * for one stream or listener. */
static int make_ticket(struct homad *d, struct homad_client *client, bool one,
		       struct homad_ticket **ticket, char *err, size_t errlen)
{
	const struct homad_streams *s = client->app->streams;
	u32 most_holds = one ? 0 : HOMA_READ_ONCE(s->num_holding) + SPARE;
	u32 most = one ? 1 :
			 HOMA_READ_ONCE(s->num_open) +
				   HOMA_READ_ONCE(s->num_aliases) + most_holds;
	u64 entries = sizeof(**ticket) + most * sizeof((*ticket)->entry[0]);
	u64 bytes = entries + most_holds * sizeof((*ticket)->hold[0]);
	int rc = homad_charge(d, client->user, bytes, err, errlen);

	if (rc)
		return rc;
	*ticket = calloc(1, bytes);
	if (!*ticket) {
		homad_settle(client->user, bytes);
		snprintf(err, errlen, "cannot share streams: %s",
			 strerror(ENOMEM));
		return -ENOMEM;
	}
	(*ticket)->most = most;
	(*ticket)->most_holds = most_holds;
	(*ticket)->hold = (struct homad_hold *)((u8 *)*ticket + entries);
	(*ticket)->bytes = bytes;
	return 0;
}

/* Makes a ticket with all that the client asks for; the caller frees it with free_ticket(). */
static int fill_ticket(struct homad *d, struct homad_client *client,
		       const struct homa_ctl_request *r,
		       struct homad_ticket **ticket, char *err, size_t errlen)
{
	struct homad_app *app = client->app;
	struct homad_sharing sharing = {
		.s = app->streams,
		.listeners = r->bytes & HOMA_CTL_FOR_LISTENERS,
		.seen = r->bytes & HOMA_CTL_ALL_SEEN,
		.pass = r->bytes & HOMA_CTL_FOR_PASS,
		.of_listener = r->bytes & HOMA_CTL_PASS_LISTENER,
		.name = r->pass.name,
	};
	int rc = make_ticket(d, client, sharing.pass, ticket, err, errlen);

	if (rc)
		return rc;
	sharing.ticket = *ticket;
	sharing.tail = __atomic_load_n(&app->streams->area->command.tail,
				       __ATOMIC_ACQUIRE);
	homad_throttle_count_rounds(client, homad_turns_of_rings(app, true));
	rc = homad_streams_call(sharing.s, homad_ticket_fill, &sharing);
	if (!rc)
		return 0;
	free_ticket(client->user, *ticket);
	snprintf(err, errlen, "cannot share streams: %s", strerror(-rc));
	return rc;
}

/* Does the same, and begins again if more has come meanwhile than there is room for. */
static int new_ticket(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r,
		      struct homad_ticket **ticket, char *err, size_t errlen)
{
	int rc, tries = TRIES;

	do
		rc = fill_ticket(d, client, r, ticket, err, errlen);
	while (rc == -E2BIG && --tries);
	return rc;
}

static bool has_option(int fd, int option, int value)
{
	socklen_t size = sizeof(int);
	int is;

	return !getsockopt(fd, SOL_SOCKET, option, &is, &size) && is == value;
}

/* Is the descriptor what a ticket of this kind comes with: the read end of a pipe, or one end of a
 * connection between UNIX sockets? Another one might never tell that nobody is left: who can write
 * to a pipe holds it open himself, and a socket without a connection has no other end. */
static bool is_fit(int fd, bool pass)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);

	/* fstat() may ask a file system, which may never answer. */
	if (!pass)
		return fcntl(fd, F_GETPIPE_SZ) >= 0 &&
		       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	return has_option(fd, SO_DOMAIN, AF_UNIX) &&
	       has_option(fd, SO_TYPE, SOCK_STREAM) &&
	       !getpeername(fd, (struct sockaddr *)&peer, &size);
}

/* Watches the descriptor that tells when nobody may redeem the ticket. What comes through a UNIX
 * socket may be its own other end, which would stay open as long as it waits there; so whatever
 * comes makes the ticket void. So does the end of what comes, which each ticket's socket says to
 * its other end: that may be another ticket's. */
static int watch(struct homad *d, struct homad_share *share)
{
	u32 events = share->pass ? EPOLLIN | EPOLLHUP : EPOLLHUP;

	if (share->pass)
		shutdown(share->pipe.fd, SHUT_WR);
	return homad_watch(d, &share->pipe, events);
}

static int begin(struct homad *d, struct homad_client *client,
		 struct homad_share *share, const struct homa_ctl_request *r,
		 char *err, size_t errlen)
{
	int rc;

	snprintf(err, errlen, "cannot share streams");
	if (getrandom(share->token, sizeof(share->token), 0) !=
	    (ssize_t)sizeof(share->token))
		return -EIO;
	rc = new_ticket(d, client, r, &share->ticket, err, errlen);
	if (rc)
		return rc;
	share->tcp = client->app->streams->tcp;
	share->user = client->user;
	share->pipe = (struct homad_source){ .fd = client->passed_fd,
					     .ready = is_void };
	share->limit.fd = -1;
	share->pass = r->bytes & HOMA_CTL_FOR_PASS;
	share->cookie = share->pass ? r->pass.cookie : 0;
	rc = watch(d, share);
	if (!rc && (r->bytes & HOMA_CTL_FOR_EXEC)) {
		rc = limit_time(d, share);
		if (rc)
			homad_unwatch(d, &share->pipe);
	}
	if (!rc)
		return 0;
	homad_call(share->tcp->thread, homad_ticket_drop,
		   &(struct homad_sharing){ .ticket = share->ticket,
					    .tcp = share->tcp });
	free_ticket(share->user, share->ticket);
	return rc;
}

/* Returns what is wrong with a request for a ticket, or NULL. */
static const char *wrong_with(const struct homad_client *client,
			      const struct homa_ctl_request *r)
{
	bool pass = r->bytes & HOMA_CTL_FOR_PASS;

	if (!client->app->streams || client->passed_fd < 0)
		return "a ticket is for the streams of an attachment that has some, and a pipe comes with the request";
	if (!is_fit(client->passed_fd, pass))
		return pass ? "with the request for a stream that is passed on comes a UNIX socket of type SOCK_STREAM that is connected, and nothing else" :
			      "with the request for a ticket comes the read end of a pipe, and nothing else";
	if (pass && !r->pass.cookie)
		return "the number of the socket that stands for a stream (SO_COOKIE) is never 0";
	return NULL;
}

/* Refuses a ticket beyond the user's limit for its kind; returns true if it did. */
static bool has_too_many(struct homad_client *client, u16 op, bool pass)
{
	u32 most = pass ? USER_PASSES : USER_TICKETS;

	if (*count_of(client->user, pass) < most)
		return false;
	homad_answer_error(client, op, -EDQUOT,
			   "user %u has %u tickets for %s, which have not come yet",
			   (unsigned int)client->uid, most,
			   pass ? "streams on their way" : "children");
	return true;
}

void homad_op_stream_share(struct homad *d, struct homad_client *client,
			   const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	const char *wrong = wrong_with(client, r);
	struct homad_share *share;
	char text[HOMA_SHM_TEXT] = "cannot share streams: no memory";
	int rc;

	if (wrong) {
		homad_answer_error(client, r->op, -EINVAL, "%s", wrong);
		return;
	}
	if (has_too_many(client, r->op, r->bytes & HOMA_CTL_FOR_PASS))
		return;
	share = calloc(1, sizeof(*share));
	rc = share ? begin(d, client, share, r, text, sizeof(text)) : -ENOMEM;
	if (rc) {
		free(share);
		homad_answer_error(client, r->op, rc, "%s", text);
		return;
	}
	client->passed_fd = -1;
	++*count_of(client->user, share->pass);
	homa_list_add_tail(&client->user->tickets, &share->of_user);
	homa_list_add_tail(&homad_slow(d)->tcp->tickets, &share->of_all);
	memcpy(answer.ip, share->token, sizeof(answer.ip));
	answer.total = share->ticket->num;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

/* Finds a ticket of the user by its token, in a time that does not tell how much of @token was
 * right. */
static struct homad_share *find(const struct homad_user *user, const u8 token[16])
{
	struct homa_list *node;
	u32 i;

	homa_list_for_each(node, &user->tickets) {
		struct homad_share *share =
			homa_container_of(node, struct homad_share, of_user);
		u8 differ = 0;

		for (i = 0; i < sizeof(share->token); i++)
			differ |= share->token[i] ^ token[i];
		if (!differ)
			return share;
	}
	return NULL;
}

/* Writes the descriptors of the memory in which the ticket's streams lie; returns how
 * many. */
static u32 memory_of(const struct homad_client *client,
		     struct homad_sharing *sharing, int fds[HOMA_CTL_ATTACH_FDS])
{
	u32 i, n = 0;

	homad_streams_call(sharing->s, homad_ticket_homes, sharing);
	for (i = 0; i < sharing->num_homes; i++) {
		const struct homad_streams *home = sharing->homes[i];

		if (homad_attachment(home->app)->user != client->user)
			continue;
		fds[n] = fcntl(home->memory_fd, F_DUPFD_CLOEXEC, 0);
		n += fds[n] >= 0;
	}
	return n;
}

void homad_op_stream_join(struct homad *d, struct homad_client *client,
			  const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_sharing sharing = { .s = client->app->streams };
	struct homad_share *share = find(client->user, r->ip);
	int fds[HOMA_CTL_ATTACH_FDS], rc;
	u32 num_fds = 0;

	if (!share || share->pass || !sharing.s || sharing.s->joined ||
	    homad_tcp_join(client->app, share->tcp)) {
		homad_answer_error(
			client, r->op, -EINVAL,
			"there is no such ticket of this user, or the attachment has no streams or has joined others already");
		return;
	}
	sharing.ticket = share->ticket;
	answer.total = share->ticket->num;
	if (r->bytes & HOMA_CTL_FOR_EXEC)
		num_fds = memory_of(client, &sharing, fds);
	rc = homad_streams_call(sharing.s, homad_ticket_join, &sharing);
	if (rc) {
		while (num_fds)
			close(fds[--num_fds]);
		homad_answer_error(client, r->op, rc,
				   "this attachment is being ended by homad");
		return;
	}
	/* The memory of the ticket belongs to the attachment now. */
	homad_attachment(client->app)->memory += share->ticket->bytes;
	end(d, share);
	homad_answer(client, &answer, fds, num_fds, NULL, 0, 0);
}

/* ---- streams that a process has passed to another ---- */

/* Finds the ticket of @user for which the socket @fd stands; NULL if there is none. Tickets of
 * others are not looked at: a stranger could make that take long. */
static struct homad_share *find_shown(const struct homad_user *user, int fd)
{
	struct homa_list *node;
	u64 cookie = 0;
	socklen_t size = sizeof(cookie);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size))
		return NULL;
	homa_list_for_each(node, &user->tickets) {
		struct homad_share *share =
			homa_container_of(node, struct homad_share, of_user);

		if (share->pass && share->cookie == cookie)
			return share;
	}
	return NULL;
}

/* Returns what the taker of the ticket needs beside the answer: a descriptor of the memory in which
 * its stream lies, or of its listener's socket; or a negative errno. */
static int get_taken_fd(const struct homad_client *client,
			struct homad_sharing *sharing)
{
	const struct homad_tcp_listener *listener =
		sharing->ticket->entry[0].listener;
	const struct homad_streams *home;
	int fd;

	if (listener) {
		fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	homad_streams_call(sharing->s, homad_ticket_homes, sharing);
	home = sharing->num_homes ? sharing->homes[0] : NULL;
	if (!home || homad_attachment(home->app)->user != client->user)
		return -ENOENT;
	fd = fcntl(home->memory_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Lets the client's attachment take what the ticket is for, and charges its user. */
static int take(struct homad *d, struct homad_client *client,
		struct homad_sharing *sharing)
{
	char text[HOMA_SHM_TEXT];
	int rc = 0;

	if (sharing->ticket->entry[0].listener) {
		rc = homad_charge(d, client->user, sizeof(*sharing->hold), text,
				  sizeof(text));
		if (rc)
			return rc;
		sharing->hold = calloc(1, sizeof(*sharing->hold));
		if (!sharing->hold) {
			homad_settle(client->user, sizeof(*sharing->hold));
			return -ENOMEM;
		}
		homad_attachment(client->app)->memory += sizeof(*sharing->hold);
	}
	/* What the attachment has let go of before is not what it has. */
	homad_throttle_count_rounds(client,
				    homad_turns_of_rings(client->app, true));
	rc = homad_streams_call(sharing->s, homad_ticket_take, sharing);
	if (sharing->hold) {
		homad_attachment(client->app)->memory -= sizeof(*sharing->hold);
		homad_settle(client->user, sizeof(*sharing->hold));
		free(sharing->hold);
	}
	return rc;
}

/* Does the same for the ticket @share. @fd receives the descriptor that goes with the answer, or
 * -1. */
static int take_shown(struct homad *d, struct homad_client *client,
		      const struct homad_share *share,
		      struct homad_sharing *sharing, int *fd)
{
	int rc;

	if (!share || !sharing->s)
		return -ENOENT;
	rc = homad_tcp_join(client->app, share->tcp);
	if (rc)
		return rc;
	sharing->ticket = share->ticket;
	rc = get_taken_fd(client, sharing);
	if (rc < 0)
		return rc;
	*fd = rc;
	rc = take(d, client, sharing);
	if (rc || sharing->before) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

static const char *why_not(int rc)
{
	if (rc == -EBUSY)
		return "the process has connections or listeners at another thread of homad";
	return rc == -ENOENT ?
		       "the socket that came with the request stands for no stream of this user" :
		       strerror(-rc);
}

void homad_op_stream_take(struct homad *d, struct homad_client *client,
			  const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_sharing sharing = { .s = client->app->streams };
	const struct homad_share *share =
		find_shown(client->user, client->passed_fd);
	int fd = -1, rc = take_shown(d, client, share, &sharing, &fd);

	homad_slow(d)->tcp->takes_refused += rc && rc != -EAGAIN;
	homad_slow(d)->tcp->takes_elsewhere += rc == -EBUSY;
	if (rc) {
		homad_answer_error(client, r->op, rc,
				   "cannot take the stream: %s", why_not(rc));
		return;
	}
	homad_slow(d)->tcp->taken++;
	answer.total = sharing.slot;
	answer.segment = sharing.generation;
	answer.max_rpcs = sharing.home_slot;
	answer.max_segments =
		(sharing.ticket->entry[0].listener ? HOMA_CTL_TAKEN_LISTENER : 0) |
		(sharing.before ? HOMA_CTL_TAKEN_BEFORE : 0);
	homad_answer(client, &answer, &fd, fd >= 0, NULL, 0, 0);
}

void homad_share_goes_on(const struct homad_app *app)
{
	struct homad_sharing sharing = { .s = app->streams,
					 .ticket = app->streams->joined };

	if (sharing.ticket)
		homad_streams_call(sharing.s, homad_ticket_join, &sharing);
}

void homad_shares_stop(struct homad *d)
{
	struct homa_list *node;

	while ((node = homa_list_first(&homad_slow(d)->tcp->tickets))) {
		struct homad_share *share =
			homa_container_of(node, struct homad_share, of_all);

		free_ticket(share->user, share->ticket);
		end(d, share);
	}
}
