// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * An attachment goes from one process to another. Who has it exports it: homad gives him a
 * random token and hangs up, and keeps the attachment as it is, with its port, its RPCs and
 * its memory, for a while without any process. Who shows the token and is of the same user
 * gets all that an answer to ATTACH brings, and with it a file in which the former process
 * wrote what only it knew; homad never reads that. If he can use it, he says so (TAKE), and
 * only then the attachment is his and the token void: until then his end loses nothing.
 *
 * Who pays: an exported attachment counts as any other, and the file is memory of its user.
 * A user has a few of them at once. When the time is over the attachment ends as by close().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"

#define USER_EXPORTS 64u
#define NSEC 1000000000ull
#define PAGE 4096u

/* struct homad_export - an attachment without a process */
struct homad_export {
	/* These link it into homad_user.exports and homad_handovers.exports. */
	struct homa_list of_user, of_all;
	/* The user who pays for it. */
	struct homad_user *user;
	/* The attachment. */
	struct homad_app *app;
	/* The token that the next process must show. */
	u8 token[16];
	/* The file in which the former process left its state for the next one. */
	int state_fd;
	/* The number of bytes that the user's account is charged for that file. */
	u64 state_bytes;
	/* The time at which the attachment ends if no process has taken it, ns. */
	u64 until;
	/* The client that has shown the token and is about to take the attachment, or NULL. */
	struct homad_client *taker;
	/* homad's end of the pipe that wakes @taker, or -1. */
	int wake_fd;
	/* @taker rings the bell (abi/shm.h). */
	bool rings_bell;
};

/* struct homad_handovers - all exports; homad_slow.handovers points to it */
struct homad_handovers {
	/* Attachments without a process, by homad_export.of_all. */
	struct homa_list exports;
	/* This timer runs while there are exports, and goes off when the first one expires. */
	struct homad_source timer;
};

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static struct homad_export *export_of(struct homa_list *node)
{
	return homa_container_of(node, struct homad_export, of_all);
}

static void set_timer(struct homad *d)
{
	struct homad_handovers *all = homad_slow(d)->handovers;
	u64 now = homa_clock_ns(), first = ~(u64)0;
	struct homa_list *node;

	homa_list_for_each(node, &all->exports)
		first = homa_min_u64(first, export_of(node)->until);
	if (first == ~(u64)0)
		homad_timer_set(all->timer.fd, 0);
	else
		homad_timer_set(all->timer.fd, first > now ? first - now : 1);
}

/* ---- the end of an export ---- */

/* The client that had shown the token does not take the attachment. */
static void let_taker_go(struct homad_export *export)
{
	if (!export->taker)
		return;
	export->taker->taking = NULL;
	export->taker->leaves = NULL;
	export->taker = NULL;
	close_fd(export->wake_fd);
	export->wake_fd = -1;
}

static void taker_leaves(struct homad_client *client)
{
	let_taker_go(client->taking);
}

/* Ends the export: its token is void. The attachment itself goes on, or the caller ends it. */
static void forget(struct homad *d, struct homad_export *export)
{
	struct homad_attachment *a = homad_attachment(export->app);

	let_taker_go(export);
	a->exported = NULL;
	a->orphan_ends = NULL;
	close_fd(export->state_fd);
	homad_settle(export->user, export->state_bytes);
	homa_list_del(&export->of_user);
	homa_list_del(&export->of_all);
	export->user->num_exports--;
	free(export);
	set_timer(d);
}

/* Ends the export of an attachment that no process will take, and counts the attachment as
 * ended. */
static void abandon(struct homad *d, struct homad_app *app)
{
	struct homad_export *export = homad_attachment(app)->exported;

	export->user->attachments--;
	homad_slow(d)->detached++;
	forget(d, export);
}

static void expire(struct homad *d, struct homad_app *app)
{
	homad_slow(d)->handovers_expired++;
	homad_log(HOMAD_INFO,
		  "nobody took over an attachment in time: it ends\tapp=%llu uid=%u name=%s",
		  (unsigned long long)app->id, (unsigned int)app->uid, app->name);
	abandon(d, app);
	if (app->phase == HOMAD_APP_OPEN)
		homad_call(app->thread, homad_session_close, app);
}

static void timer_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_handovers *all = homad_slow(d)->handovers;
	struct homa_list *node = all->exports.next;
	u64 count, now;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	now = homa_clock_ns();
	while (node != &all->exports) {
		struct homad_export *export = export_of(node);

		node = node->next;
		if (export->until <= now)
			expire(d, export->app);
	}
	set_timer(d);
}

/* ---- export ---- */

/* Checks that the size of this file stays; then *@bytes receives the most memory that the
 * file can take. */
static int check_state(int fd, u64 *bytes)
{
	int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & sealed) != sealed || fstat(fd, &st) ||
	    st.st_size <= 0 || st.st_size > HOMA_SHM_STATE_MAX)
		return -EINVAL;
	*bytes = ((u64)st.st_size + PAGE - 1) / PAGE * PAGE;
	/* There may be memory behind its end. */
	return (u64)st.st_blocks * 512 > *bytes ? -EINVAL : 0;
}

static int may_export(struct homad *d, const struct homad_client *client,
		      u64 *bytes, char *err, size_t errlen)
{
	const struct homad_attachment *a = homad_attachment(client->app);
	u32 i;
	int rc;

	if (!a->kept || client->app->streams) {
		snprintf(err, errlen,
			 "an attachment can be handed over that asked for that when it began and has no TCP streams");
		return -EOPNOTSUPP;
	}
	for (rc = 0, i = 0; i < client->app->num_segs; i++)
		rc |= a->kept->seg[i];
	if ((rc | a->kept->queues | a->kept->pool) < 0) {
		snprintf(err, errlen, "homad had no file descriptor left for it");
		return -EMFILE;
	}
	rc = check_state(client->passed_fd, bytes);
	if (rc) {
		snprintf(err, errlen,
			 "with the request comes a memfd of 1 to %u bytes, sealed against other sizes",
			 HOMA_SHM_STATE_MAX);
		return rc;
	}
	if (client->user->num_exports >= USER_EXPORTS) {
		snprintf(err, errlen,
			 "user %u has %u handles that wait for their next process; more cannot",
			 (unsigned int)client->uid, USER_EXPORTS);
		return -EDQUOT;
	}
	rc = homad_may_share(client, "handles are not handed over", err, errlen);
	return rc ? rc : homad_charge(d, client->user, *bytes, err, errlen);
}

/* Begins the export: the attachment of @client belongs to no process from now on.
 * @export->state_bytes are on the account of the user. */
static int begin(struct homad *d, struct homad_client *client,
		 struct homad_export *export)
{
	struct homad_app *app = client->app;
	struct homad_attachment *a = homad_attachment(app);
	struct homad_wires none = { .app = app,
				    .wake_fd = -1,
				    .ready_fd = -1,
				    .rings_bell = app->rings_bell,
				    .gid = app->gid };
	int rc;

	if (getrandom(export->token, sizeof(export->token), 0) !=
	    (ssize_t)sizeof(export->token))
		return -EIO;
	rc = homad_call(app->thread, homad_session_wires, &none);
	if (rc)
		return rc;
	close_fd(none.wake_fd);
	close_fd(none.ready_fd);
	export->user = client->user;
	export->app = app;
	export->state_fd = client->passed_fd;
	client->passed_fd = -1;
	export->until = homa_clock_ns() + d->config.quota.handover_s * NSEC;
	export->wake_fd = -1;
	client->user->num_exports++;
	homa_list_add_tail(&client->user->exports, &export->of_user);
	homa_list_add_tail(&homad_slow(d)->handovers->exports, &export->of_all);
	a->exported = export;
	a->orphan_ends = abandon;
	/* The attachment still counts as one of its user's. */
	homad_client_unattached(d, client);
	client->user->attachments++;
	homad_slow(d)->attached++;
	set_timer(d);
	return 0;
}

static void op_export(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_app *app = client->app;
	struct homad_export *export;
	u64 bytes;
	int rc;

	rc = may_export(d, client, &bytes, answer.text, sizeof(answer.text));
	if (rc) {
		answer.error = rc;
		homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
		return;
	}
	export = calloc(1, sizeof(*export));
	rc = -ENOMEM;
	if (export) {
		export->state_bytes = bytes;
		rc = begin(d, client, export);
	}
	if (rc) {
		free(export);
		homad_settle(client->user, bytes);
		homad_answer_error(client, r->op, rc,
				   "cannot hand the attachment over: %s",
				   strerror(-rc));
		return;
	}
	homad_log(HOMAD_DEBUG, "exported\tapp=%llu pid=%d uid=%u",
		  (unsigned long long)app->id, (int)client->pid,
		  (unsigned int)client->uid);
	memcpy(answer.ip, export->token, sizeof(answer.ip));
	answer.total = d->config.quota.handover_s * 1000;
	client->hopeless = true;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

/* ---- import ---- */

/* Finds an export of the user by its token, in a time that does not tell how much of @token was
 * right. */
static struct homad_export *find(const struct homad_user *user,
				 const u8 token[16])
{
	struct homad_export *found = NULL;
	struct homa_list *node;
	u32 i;

	homa_list_for_each(node, &user->exports) {
		struct homad_export *export =
			homa_container_of(node, struct homad_export, of_user);
		u8 differ = 0;

		for (i = 0; i < sizeof(export->token); i++)
			differ |= export->token[i] ^ token[i];
		if (!differ)
			found = export;
	}
	return found;
}

/* Makes the descriptors that the answer brings; @num of them are open, even if this fails. */
static int make_fds(struct homad_export *export, int *fds, u32 *num)
{
	const struct homad_kept *kept = homad_attachment(export->app)->kept;
	int from[HOMA_CTL_IMPORT_FDS] = {
		[HOMA_CTL_FD_QUEUES] = kept->queues,
		[HOMA_CTL_FD_DATA] = kept->seg[0],
		[HOMA_CTL_FD_POOL] = kept->pool,
		[HOMA_CTL_FD_WAKE] = -1,
		[HOMA_CTL_FD_KICK] = export->app->kick_fd,
		[HOMA_CTL_FD_STATE] = export->state_fd,
	};
	u32 i, all = HOMA_CTL_FD_STATE + export->app->num_segs;
	int wake[2];

	for (i = 1; i < export->app->num_segs; i++)
		from[HOMA_CTL_FD_STATE + i] = kept->seg[i];
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	export->wake_fd = wake[1];
	for (*num = 0; *num < all; (*num)++) {
		fds[*num] = *num == HOMA_CTL_FD_WAKE ?
				    wake[0] :
				    fcntl(from[*num], F_DUPFD_CLOEXEC, 0);
		if (fds[*num] >= 0)
			continue;
		if (*num < HOMA_CTL_FD_WAKE)
			close(wake[0]);
		return -errno;
	}
	return 0;
}

static int may_import(struct homad *d, struct homad_client *client,
		      const struct homad_export *export, char *err, size_t errlen)
{
	if (client->app || client->taking) {
		snprintf(err, errlen,
			 "this connection has an attachment already; make another one for another handle");
		return -EISCONN;
	}
	if (!export || export->app->phase != HOMAD_APP_OPEN ||
	    export->app->evicted) {
		snprintf(err, errlen,
			 "nothing of user %u is handed over under this token: it was taken already, its time is over (quota.handover_s), or homad was started again since",
			 (unsigned int)client->uid);
		return -ENOENT;
	}
	if (export->taker) {
		snprintf(err, errlen,
			 "another process (pid %d) is about to take this handle",
			 (int)export->taker->pid);
		return -EBUSY;
	}
	return homad_may_take_over(d, client, homa_sock_port(export->app->sock),
				   err, errlen);
}

static void op_import(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_export *export = find(client->user, r->ip);
	int fds[HOMA_CTL_IMPORT_FDS], rc;
	u32 num = 0;

	rc = may_import(d, client, export, answer.text, sizeof(answer.text));
	if (!rc) {
		rc = make_fds(export, fds, &num);
		if (rc)
			snprintf(answer.text, sizeof(answer.text),
				 "homad has no file descriptor left: %s",
				 strerror(-rc));
	} else {
		export = NULL;
	}
	if (rc) {
		while (num)
			close(fds[--num]);
		if (export) {
			close_fd(export->wake_fd);
			export->wake_fd = -1;
		}
		answer.error = rc;
		homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
		return;
	}
	export->taker = client;
	export->rings_bell = r->features & HOMA_SHM_CAN_BELL;
	client->taking = export;
	client->leaves = taker_leaves;
	homad_fill_attached(d, export->app, &answer);
	answer.segment = export->app->num_segs;
	homad_answer(client, &answer, fds, num, NULL, 0, 0);
}

/* Gives the attachment to @client, and counts it as before. */
static void move_in(struct homad *d, struct homad_client *client,
		    struct homad_app *app)
{
	client->app = app;
	homad_attachment(app)->client = client;
	homad_client_attached(d, client);
	client->user->attachments--;
	homad_slow(d)->attached--;
	homad_slow(d)->handed_over++;
	homad_log(HOMAD_DEBUG, "imported\tapp=%llu pid=%d uid=%u",
		  (unsigned long long)app->id, (int)client->pid,
		  (unsigned int)client->uid);
}

static void op_take(struct homad *d, struct homad_client *client,
		    const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_export *export = client->taking;
	struct homad_wires wires = { .ready_fd = -1,
				     .pid = client->pid,
				     .gid = client->gid };
	struct homad_app *app;
	int rc;

	if (!export || client->app) {
		homad_answer_error(
			client, r->op, -ENOENT,
			"this connection is not about to take a handle, or the time for that is over");
		return;
	}
	app = export->app;
	wires.app = app;
	wires.wake_fd = export->wake_fd;
	wires.rings_bell = export->rings_bell;
	rc = homad_call(app->thread, homad_session_wires, &wires);
	if (rc) {
		homad_answer_error(client, r->op, rc,
				   "this attachment is being ended by homad");
		return;
	}
	export->wake_fd = -1;
	close_fd(wires.wake_fd);
	close_fd(wires.ready_fd);
	forget(d, export);
	move_in(d, client, app);
	answer.port = homa_sock_port(app->sock);
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

int homad_handover_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_handovers *all = calloc(1, sizeof(*all));
	int rc = -ENOMEM;

	if (all) {
		homa_list_init(&all->exports);
		all->timer.ready = timer_ready;
		all->timer.fd = homad_timer_open();
		homad_slow(d)->handovers = all;
		rc = all->timer.fd < 0 ? all->timer.fd :
					 homad_watch(d, &all->timer, EPOLLIN);
	}
	if (rc) {
		snprintf(err, errlen, "cannot make a timer: %s", strerror(-rc));
		homad_handover_stop(d);
		return rc;
	}
	homad_ctl_serve(HOMA_CTL_EXPORT, op_export);
	homad_ctl_serve(HOMA_CTL_IMPORT, op_import);
	homad_ctl_serve(HOMA_CTL_TAKE, op_take);
	return 0;
}

/* All attachments have ended, and the exported ones with them. */
void homad_handover_stop(struct homad *d)
{
	struct homad_handovers *all = homad_slow(d)->handovers;

	if (!all)
		return;
	homad_unwatch(d, &all->timer);
	close_fd(all->timer.fd);
	free(all);
	homad_slow(d)->handovers = NULL;
}
