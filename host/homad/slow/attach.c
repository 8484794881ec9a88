// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Clients: connections to the attach socket. A connection costs a descriptor, so
 * those that have not attached yet are few for each user and in all; a further
 * one pushes out the oldest, and no timer is needed. Every client is watched
 * twice: its connection, and its process by a pidfd, since a forked child could
 * keep a dead process's connection open. One request is read at a time, and none
 * while an answer has not been taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach.h"
#include "closing.h"
#include "log.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The most clients that one turn of the loop accepts. */
#define ACCEPTS 32
/* The most requests of one client that one turn answers. */
#define REQUESTS 8

/* ---- begin and end ---- */

/* Opens the pidfd of the client's process, even if its number has been given to another one
 * since. -1: the process cannot be watched (another pid namespace, an old kernel); -ESRCH:
 * it is dead. */
static int open_process(int conn, pid_t pid)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	if (getsockopt(conn, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
		return fd;
	if (errno == ESRCH || errno == EINVAL)
		return -ESRCH;
	fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (fd < 0 && pid > 0 && errno == ESRCH)
		return -ESRCH;
	return fd < 0 ? -1 : fd;
}

/* Rules that change may still concern what the attachment has written. */
static void keep_groups(struct homad_attachment *a,
			const struct homad_client *client)
{
	memcpy(a->groups, client->groups, sizeof(a->groups));
	a->num_groups = client->num_groups;
}

void homad_client_free(struct homad *d, struct homad_client *client)
{
	struct homad_attach *attach = homad_attach(d);
	struct homad_app *app = client->app;

	if (client->making)
		client->making->client = NULL;
	if (client->asking)
		client->asking->client = NULL;
	if (client->leaves)
		client->leaves(client);
	homad_unwatch(d, &client->conn);
	homad_unwatch(d, &client->process);
	homad_answer_drop(client);
	homad_close(client->conn.fd);
	if (client->process.fd >= 0)
		close(client->process.fd);
	homa_list_del(&client->list);
	homa_list_del(&client->waiting);
	if (app) {
		keep_groups(homad_attachment(app), client);
		homad_attachment(app)->client = NULL;
		client->user->attachments--;
		homad_slow(d)->detached++;
		homad_log(HOMAD_DEBUG, "detached\tapp=%llu pid=%d",
			  (unsigned long long)app->id, (int)client->pid);
		if (app->phase == HOMAD_APP_OPEN)
			homad_call(app->thread, homad_session_close, app);
	} else {
		attach->num_fresh--;
		client->user->fresh--;
	}
	homad_user_put(client->user);
	free(client);
}

void homad_client_attached(struct homad *d, struct homad_client *client)
{
	struct homad_attach *attach = homad_attach(d);

	homa_list_del(&client->list);
	homa_list_add_tail(&attach->clients, &client->list);
	attach->num_fresh--;
	client->user->fresh--;
	client->user->attachments++;
	homad_slow(d)->attached++;
}

void homad_client_unattached(struct homad *d, struct homad_client *client)
{
	struct homad_attach *attach = homad_attach(d);

	homad_attachment(client->app)->client = NULL;
	client->app = NULL;
	homa_list_del(&client->list);
	homa_list_add_tail(&attach->fresh, &client->list);
	attach->num_fresh++;
	client->user->fresh++;
	client->user->attachments--;
	homad_slow(d)->attached--;
}

static void process_ready(struct homad *d, struct homad_source *source, u32 events)
{
	(void)events;
	homad_client_free(d, homa_container_of(source, struct homad_client,
					       process));
}

/* ---- requests ---- */

/* Has the client asked for something that is still being made? */
static bool expects(const struct homad_client *client)
{
	return client->making || client->asking;
}

int homad_client_watch(struct homad *d, struct homad_client *client)
{
	u32 events = EPOLLRDHUP | EPOLLIN;

	/* EPOLLHUP is always reported, and is enough. Who has only closed his sending end waits as
	 * others do. */
	if (expects(client))
		events = 0;
	else if (client->out.pending)
		events = EPOLLOUT;
	else if (homa_list_linked(&client->waiting))
		events = 0;
	return homad_watch(d, &client->conn, events);
}

/* Sends what is in the outbox; returns false if the client has gone and was freed. */
static bool flush(struct homad *d, struct homad_client *client)
{
	int rc = homad_answer_flush(client);

	if (rc < 0 || (rc == 0 && client->hopeless)) {
		homad_client_free(d, client);
		return false;
	}
	return homad_client_watch(d, client) == 0;
}

void homad_client_answered(struct homad *d, struct homad_client *client)
{
	flush(d, client);
}

/* Takes the descriptor of the request, which is the first that came; there should be no
 * more. */
static void take_passed(struct homad_client *client, struct cmsghdr *c)
{
	size_t i, n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (client->passed_fd < 0)
			client->passed_fd = fd;
		else
			homad_close_passed(client->user, fd);
	}
}

/* Any packet may bring descriptors, also one without bytes. */
static ssize_t receive(struct homad_client *client,
		       struct homa_ctl_request *request)
{
	union {
		/* It aligns @bytes. */
		struct cmsghdr align;
		/* Room for one descriptor. */
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { request, sizeof(*request) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		/* The size is not CMSG_SPACE(), whose padding has room for a second
		 * descriptor. */
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	struct cmsghdr *c;
	ssize_t n;

	/* The kernel closes further descriptors in the call. */
	homad_hurry();
	n = recvmsg(client->conn.fd, &msg,
		    MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	homad_hurried();
	c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	client->passed_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		take_passed(client, c);
	return n;
}

/* Closes a descriptor that came with a request. */
static void drop_passed(struct homad_client *client)
{
	if (client->passed_fd >= 0)
		homad_close_passed(client->user, client->passed_fd);
	client->passed_fd = -1;
}

static void client_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_client *client =
		homa_container_of(source, struct homad_client, conn);
	struct homa_ctl_request request;
	ssize_t n;
	int i;

	if (events & (EPOLLHUP | EPOLLERR)) {
		homad_client_free(d, client);
		return;
	}
	if (client->out.pending && !flush(d, client))
		return;
	for (i = 0; i < REQUESTS && !client->out.pending && !expects(client);
	     i++) {
		if (homad_throttle(d, client)) {
			homad_client_watch(d, client);
			return;
		}
		/* It has no attachment that would end by this. */
		if (!homad_may_pass(client->user)) {
			homad_slow(d)->refused++;
			homad_client_free(d, client);
			return;
		}
		n = receive(client, &request);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			drop_passed(client);
			homad_client_free(d, client);
			return;
		}
		homad_throttle_count(client, 1);
		homad_ctl(d, client, &request, (size_t)n);
		drop_passed(client);
		if (client->out.pending && !flush(d, client))
			return;
	}
	if (expects(client))
		homad_client_watch(d, client);
}

/* ---- accept ---- */

static void get_groups(struct homad_client *client)
{
	gid_t groups[1024];
	socklen_t size = sizeof(groups);

	if (getsockopt(client->conn.fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		return;
	client->num_groups = homa_min_u32(size / sizeof(*groups), HOMAD_GROUPS);
	memcpy(client->groups, groups, client->num_groups * sizeof(*groups));
}

/* Makes room for one more connection of @user: the oldest one of this user is dropped, or
 * the oldest of all, unless its request has come meanwhile. */
static void make_room(struct homad *d, const struct homad_user *user)
{
	struct homad_attach *attach = homad_attach(d);
	bool own = user->fresh > HOMAD_FRESH_PER_USER;
	struct homa_list *node = attach->fresh.next;
	u32 before = attach->num_fresh;
	struct homad_client *client;

	if (!own && attach->num_fresh <= HOMAD_FRESH)
		return;
	for (; node != &attach->fresh; node = node->next) {
		client = homa_container_of(node, struct homad_client, list);
		if (own && client->user != user)
			continue;
		client_ready(d, &client->conn, EPOLLIN);
		if (attach->num_fresh < before)
			return;
		homad_slow(d)->refused++;
		homad_client_free(d, client);
		return;
	}
}

static int new_client(struct homad *d, int fd)
{
	struct homad_attach *attach = homad_attach(d);
	struct homad_client *client = calloc(1, sizeof(*client));
	struct ucred cred;
	socklen_t size = sizeof(cred);
	int rc = -ENOMEM;

	if (!client)
		return rc;
	client->passed_fd = -1;
	client->conn = (struct homad_source){ .fd = fd, .ready = client_ready };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size)) {
		rc = -errno;
		goto no_client;
	}
	client->pid = cred.pid;
	client->uid = cred.uid;
	client->gid = cred.gid;
	get_groups(client);
	client->process.ready = process_ready;
	client->process.fd = open_process(fd, cred.pid);
	rc = client->process.fd;
	if (rc == -ESRCH)
		goto no_client;
	rc = -ENOMEM;
	client->user = homad_user_get(d, cred.uid);
	if (!client->user)
		goto no_process;
	client->user->fresh++;
	attach->num_fresh++;
	homa_list_init(&client->waiting);
	homa_list_add_tail(&attach->fresh, &client->list);
	rc = homad_watch(d, &client->conn, EPOLLIN | EPOLLRDHUP);
	if (!rc && client->process.fd >= 0)
		rc = homad_watch(d, &client->process, EPOLLIN);
	if (rc) {
		homad_client_free(d, client);
		return 0;
	}
	make_room(d, client->user);
	return 0;
no_process:
	if (client->process.fd >= 0)
		close(client->process.fd);
no_client:
	free(client);
	return rc;
}

/* Refuses a connection when homad has no descriptor left: if it stayed in the queue, epoll
 * would report it again and again. */
static void refuse_one(struct homad *d, int listen_fd)
{
	struct homad_attach *attach = homad_attach(d);
	int fd;

	homad_log(HOMAD_WARNING,
		  "out of file descriptors, an application was turned away; raise LimitNOFILE of homad's unit, or quota.total_attachments is too high");
	if (attach->spare_fd >= 0)
		close(attach->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		homad_close(fd);
	attach->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	homad_slow(d)->refused++;
}

void homad_accept(struct homad *d, struct homad_source *source, u32 events)
{
	int i, fd;

	(void)events;
	for (i = 0; i < ACCEPTS; i++) {
		fd = accept4(source->fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			refuse_one(d, source->fd);
			return;
		}
		if (fd < 0)
			return;
		if (new_client(d, fd))
			homad_close(fd);
	}
}

/* ---- attachments that have ended ---- */

static void drop(struct homad *d, struct homad_app *app)
{
	homad_session_free(app);
	homad_app_drop(d, app);
}

static void bury(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);

	if (app->evicted)
		homad_slow(d)->evicted++;
	if (a->client)
		homad_client_free(d, a->client);
	if (a->exported)
		a->orphan_ends(d, app);
	/* Memory may be on its way to the attachment or from it. */
	a->over = drop;
	if (!a->works)
		drop(d, app);
}

static void dead_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_app *app, *next;
	u64 count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	app = __atomic_exchange_n(&d->dead, NULL, __ATOMIC_ACQUIRE);
	/* This comes afterwards, so that no attachment that has ended is in the other stack
	 * any more. */
	homad_backing_wanted(d);
	for (; app; app = next) {
		next = app->next_dead;
		bury(d, app);
	}
}

int homad_attach_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_attach *attach = calloc(1, sizeof(*attach));
	u32 i;
	int rc;

	if (!attach) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	attach->d = d;
	attach->listen.fd = attach->claim.fd = attach->lock_fd = -1;
	attach->pause.fd = -1;
	attach->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	homa_list_init(&attach->fresh);
	homa_list_init(&attach->clients);
	homa_list_init(&attach->grown);
	homa_list_init(&attach->refusers);
	attach->tick.fd = -1;
	for (i = 0; i < HOMAD_USER_BUCKETS; i++)
		homa_list_init(&attach->users[i]);
	homad_slow(d)->attach = attach;
	err[0] = '\0';
	attach->dead =
		(struct homad_source){ .fd = d->dead_fd, .ready = dead_ready };
	rc = homad_watch(d, &attach->dead, EPOLLIN);
	if (!rc)
		rc = homad_throttle_start(d);
	if (!rc)
		rc = homad_backing_start(d);
	if (!rc)
		rc = homad_claim(d, err, errlen);
	if (!rc)
		rc = homad_attach_listen(d, err, errlen);
	if (rc && !err[0])
		snprintf(err, errlen, "cannot make the attach socket: %s",
			 strerror(-rc));
	if (rc)
		homad_attach_stop(d);
	return rc;
}

/* The fast path has stopped, so no other thread knows the attachments. */
void homad_attach_stop(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);
	struct homa_list *apps = &homad_slow(d)->apps;
	struct homad_attached *attached;

	if (!attach)
		return;
	homad_attach_listen_stop(d);
	homad_users_stop(d);
	d->wanting = NULL;
	while (!homa_list_empty(apps)) {
		attached = homa_container_of(apps->next, struct homad_attached,
					     list);
		attached->app->phase = HOMAD_APP_DEAD;
		bury(d, attached->app);
	}
	while (!homa_list_empty(&attach->fresh))
		homad_client_free(d,
				  homa_container_of(attach->fresh.next,
						    struct homad_client, list));
	homad_unwatch(d, &attach->dead);
	homad_throttle_stop(d);
	homad_backing_stop(d);
	if (attach->spare_fd >= 0)
		close(attach->spare_fd);
	free(attach);
	homad_slow(d)->attach = NULL;
}
