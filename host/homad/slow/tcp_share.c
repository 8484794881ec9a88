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
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>
#include "stream_share.h"
#include "streams.h"
#include "tcp_slow.h"

#define USER_TICKETS 256u
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
	/* The fast-path thread that runs its streams. */
	struct homad_thread *thread;
	/* The read end of the pipe; it becomes ready when no process that may redeem the ticket
	 * is left. */
	struct homad_source pipe;
	/* A timer that ends the ticket; its fd is -1 if the ticket has no time limit. */
	struct homad_source limit;
	/* The token by which it is redeemed. */
	u8 token[16];
	/* The ticket. */
	struct homad_ticket *ticket;
};

/* Frees the record; the ticket itself has been redeemed or dropped. */
static void end(struct homad *d, struct homad_share *share)
{
	homad_unwatch(d, &share->pipe);
	close(share->pipe.fd);
	if (share->limit.fd >= 0) {
		homad_unwatch(d, &share->limit);
		close(share->limit.fd);
	}
	homa_list_del(&share->of_user);
	homa_list_del(&share->of_all);
	share->user->num_tickets--;
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
	struct homad_sharing sharing = { .ticket = share->ticket, .reset = reset };

	homad_call(share->thread, homad_ticket_drop, &sharing);
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

/* Makes a ticket with room for all that @s has, and that may come while it is made. */
static int make_ticket(struct homad *d, struct homad_client *client,
		       struct homad_ticket **ticket, char *err, size_t errlen)
{
	const struct homad_streams *s = client->app->streams;
	u32 most_holds = HOMA_READ_ONCE(s->num_holding) + SPARE;
	u32 most = HOMA_READ_ONCE(s->num_open) +
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

/* Makes a ticket with all that the client has; the caller frees it with free_ticket(). */
static int fill_ticket(struct homad *d, struct homad_client *client, u64 what_for,
		       struct homad_ticket **ticket, char *err, size_t errlen)
{
	struct homad_app *app = client->app;
	struct homad_sharing sharing = {
		.s = app->streams,
		.listeners = what_for & HOMA_CTL_FOR_LISTENERS,
		.seen = what_for & HOMA_CTL_ALL_SEEN,
	};
	int rc = make_ticket(d, client, ticket, err, errlen);

	if (rc)
		return rc;
	sharing.ticket = *ticket;
	sharing.tail = __atomic_load_n(&app->streams->area->command.tail,
				       __ATOMIC_ACQUIRE);
	homad_turns_of_rings(app);
	rc = homad_call(app->thread, homad_ticket_fill, &sharing);
	if (!rc)
		return 0;
	free_ticket(client->user, *ticket);
	snprintf(err, errlen, "cannot share streams: %s", strerror(-rc));
	return rc;
}

/* Does the same, and begins again if more has come meanwhile than there is room for. */
static int new_ticket(struct homad *d, struct homad_client *client, u64 what_for,
		      struct homad_ticket **ticket, char *err, size_t errlen)
{
	int rc, tries = TRIES;

	do
		rc = fill_ticket(d, client, what_for, ticket, err, errlen);
	while (rc == -E2BIG && --tries);
	return rc;
}

static int begin(struct homad *d, struct homad_client *client,
		 struct homad_share *share, u64 what_for, char *err,
		 size_t errlen)
{
	int rc;

	snprintf(err, errlen, "cannot share streams");
	if (getrandom(share->token, sizeof(share->token), 0) !=
	    (ssize_t)sizeof(share->token))
		return -EIO;
	rc = new_ticket(d, client, what_for, &share->ticket, err, errlen);
	if (rc)
		return rc;
	share->thread = client->app->thread;
	share->user = client->user;
	share->pipe = (struct homad_source){ .fd = client->passed_fd,
					     .ready = is_void };
	share->limit.fd = -1;
	rc = homad_watch(d, &share->pipe, EPOLLHUP);
	if (!rc && (what_for & HOMA_CTL_FOR_EXEC)) {
		rc = limit_time(d, share);
		if (rc)
			homad_unwatch(d, &share->pipe);
	}
	if (!rc)
		return 0;
	homad_call(share->thread, homad_ticket_drop,
		   &(struct homad_sharing){ .ticket = share->ticket });
	free_ticket(share->user, share->ticket);
	return rc;
}

void homad_op_stream_share(struct homad *d, struct homad_client *client,
			   const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_share *share;
	char text[HOMA_SHM_TEXT] = "cannot share streams: no memory";
	int rc;

	if (!client->app->streams || client->passed_fd < 0) {
		homad_answer_error(
			client, r->op, -EINVAL,
			"a ticket is for the streams of an attachment that has some, and a pipe comes with the request");
		return;
	}
	if (client->user->num_tickets >= USER_TICKETS) {
		homad_answer_error(client, r->op, -EDQUOT,
				   "user %u has %u tickets for children that have not come yet",
				   (unsigned int)client->uid, USER_TICKETS);
		return;
	}
	share = calloc(1, sizeof(*share));
	rc = share ? begin(d, client, share, r->bytes, text, sizeof(text)) :
		     -ENOMEM;
	if (rc) {
		free(share);
		homad_answer_error(client, r->op, rc, "%s", text);
		return;
	}
	client->passed_fd = -1;
	client->user->num_tickets++;
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

	homad_call(client->app->thread, homad_ticket_homes, sharing);
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

	if (!share || !sharing.s || sharing.s->joined ||
	    share->thread != client->app->thread) {
		homad_answer_error(
			client, r->op, -EINVAL,
			"there is no such ticket of this user, or the attachment has no streams or has joined others already");
		return;
	}
	sharing.ticket = share->ticket;
	answer.total = share->ticket->num;
	if (r->bytes & HOMA_CTL_FOR_EXEC)
		num_fds = memory_of(client, &sharing, fds);
	rc = homad_call(client->app->thread, homad_ticket_join, &sharing);
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

void homad_share_goes_on(const struct homad_app *app)
{
	struct homad_sharing sharing = { .s = app->streams,
					 .ticket = app->streams->joined };

	if (sharing.ticket)
		homad_call(app->thread, homad_ticket_join, &sharing);
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
