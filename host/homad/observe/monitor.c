// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The monitoring socket, which ./homa ss, top and trace connect to. It shows
 * what all users do, so only root, the daemon's own user and one configured
 * group are let in; the file's mode says the same, and the kernel's word on who
 * connected decides.
 *
 *	{"op": "snapshot"}	one line: daemon, threads, ports, attachments
 *	{"op": "rpcs"}		a line for each open RPC, then {"end": true}
 *	{"op": "peers"}		a line for each peer, then {"end": true}
 *	{"op": "flows", "time_wait": BOOL}  a line for each TCP connection and
 *				listener, then {"end": true}
 *	{"op": "trace", ...}	trace_stream.c
 *
 * Nothing is done and no timer runs while nobody asks. All of it is the admin thread's.
 */
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "flows.h"
#include "log.h"
#include "monitor.h"

/* The most RPCs or peers that are added to an answer at once. */
#define PIECE 64u
/* The most flows that are added to an answer at once; a flow has a long description. */
#define FLOWS 32u
#define GROUPS 64u
/* The most requests of one viewer that are read before the next one has its turn. */
#define READ_AT_ONCE 4u

/* struct monitor - the socket and its viewers; a process has one */
static struct monitor {
	/* The socket that viewers connect to. */
	struct homad_source listen;
	/* Connections, each a struct homad_viewer. */
	struct homa_list viewers;
	/* The number of entries of @viewers. */
	u32 num_viewers;
	/* The group whose members may connect; valid if @has_group. */
	gid_t group;
	/* @has_group: a group is configured. @up: the monitor was started. @bound: the socket
	 * has its path, which is removed at the end. */
	bool has_group, up, bound;
} monitor = { .listen.fd = -1 };

/* ---- what goes out ---- */

static void viewer_free(struct homad_viewer *v)
{
	if (v->task)
		v->task->free(v, v->task);
	homad_unwatch(v->d, &v->conn);
	close(v->conn.fd);
	homa_list_del(&v->list);
	monitor.num_viewers--;
	free(v->out);
	free(v);
}

static bool make_room(struct homad_viewer *v, size_t len)
{
	size_t size = v->out_size ? v->out_size : 8192;
	u8 *out;

	if (v->out_sent) {
		memmove(v->out, v->out + v->out_sent, v->out_len - v->out_sent);
		v->out_len -= v->out_sent;
		v->out_sent = 0;
	}
	if (len > HOMAD_VIEWER_OUT - v->out_len)
		return false;
	while (size < v->out_len + len)
		size *= 2;
	if (size == v->out_size)
		return true;
	out = realloc(v->out, size);
	if (!out)
		return false;
	v->out = out;
	v->out_size = size;
	return true;
}

void homad_viewer_send(struct homad_viewer *v, const void *data, size_t len)
{
	if (v->broken)
		return;
	if (len > v->out_size - v->out_len && !make_room(v, len)) {
		v->broken = true;
		return;
	}
	memcpy(v->out + v->out_len, data, len);
	v->out_len += len;
}

void homad_viewer_json(struct homad_viewer *v, cJSON *json)
{
	char *text = json ? cJSON_PrintUnformatted(json) : NULL;

	if (text) {
		homad_viewer_send(v, text, strlen(text));
		homad_viewer_send(v, "\n", 1);
	} else {
		v->broken = true;
	}
	cJSON_free(text);
	cJSON_Delete(json);
}

void homad_viewer_error(struct homad_viewer *v, const char *format, ...)
{
	cJSON *json = cJSON_CreateObject();
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	cJSON_AddStringToObject(json, "error", text);
	homad_viewer_json(v, json);
}

/* Returns false if the connection has ended. */
static bool flush(struct homad_viewer *v)
{
	while (v->out_sent < v->out_len) {
		ssize_t n = send(v->conn.fd, v->out + v->out_sent,
				 v->out_len - v->out_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		v->out_sent += (size_t)n;
	}
	v->out_sent = 0;
	v->out_len = 0;
	return true;
}

static void task_end(struct homad_viewer *v)
{
	struct homad_task *task = v->task;

	v->task = NULL;
	v->idle = false;
	task->free(v, task);
}

void homad_viewer_push(struct homad_viewer *v)
{
	const bool talks = !v->task || v->task->request;
	u32 events = 0;

	if (v->broken || !flush(v) || (v->ending && !v->out_len && !v->task)) {
		viewer_free(v);
		return;
	}
	if (v->out_len || (v->task && !v->idle))
		events |= EPOLLOUT;
	if (talks && !v->ending)
		events |= EPOLLIN;
	if (homad_watch(v->d, &v->conn, events))
		viewer_free(v);
}

/* ---- RPCs, peers and flows, piece by piece ---- */

struct walk;

/* Adds some RPCs, peers or flows to the answer; returns how many. */
typedef u32 walker(struct homad *d, struct homad_viewer *v, struct walk *w);

/**
 * struct walk - an answer that lists all RPCs, peers or flows
 * @task: The answer as the viewer knows it.
 * @some: Adds the next piece to the answer.
 * @at: Where @some goes on among RPCs or peers.
 * @flows_at: Where @some goes on among flows.
 * @end: @some has seen everything.
 * @count: The number of lines in the answer so far.
 */
struct walk {
	struct homad_task task;
	walker *some;
	struct homad_rpc_cursor at;
	struct homad_flow_cursor flows_at;
	bool end;
	u64 count;
};

static u32 walk_rpcs(struct homad *d, struct homad_viewer *v, struct walk *w)
{
	struct homa_rpc_look look[PIECE];
	struct homad_rpc_owner owner[PIECE];
	u32 i, n = homad_stats_some_rpcs(d, &w->at, look, owner, PIECE);

	for (i = 0; i < n; i++)
		homad_viewer_json(v, homad_rpc_json(d, &look[i], &owner[i]));
	w->end = w->at.end;
	return n;
}

static u32 walk_peers(struct homad *d, struct homad_viewer *v, struct walk *w)
{
	struct homa_peer_look look[PIECE];
	u32 i, n = homad_stats_some_peers(d, &w->at.engine, look, PIECE);

	for (i = 0; i < n; i++)
		homad_viewer_json(v, homad_peer_json(d, &look[i]));
	w->end = w->at.engine.end;
	return n;
}

static u32 walk_flows(struct homad *d, struct homad_viewer *v, struct walk *w)
{
	struct homad_flow flow[FLOWS];
	u32 i, n = homad_flows_some(d, &w->flows_at, flow, FLOWS);

	for (i = 0; i < n; i++)
		homad_viewer_json(v, homad_flow_json(&flow[i]));
	w->end = w->flows_at.end;
	return n;
}

static bool walk_more(struct homad_viewer *v, struct homad_task *task)
{
	struct walk *w = homa_container_of(task, struct walk, task);
	cJSON *end;

	w->count += w->some(v->d, v, w);
	if (!w->end)
		return true;
	end = cJSON_CreateObject();
	cJSON_AddBoolToObject(end, "end", true);
	homad_json_u64(end, "count", w->count);
	homad_viewer_json(v, end);
	return false;
}

static void walk_free(struct homad_viewer *v, struct homad_task *task)
{
	(void)v;
	free(homa_container_of(task, struct walk, task));
}

static void walk_begin(struct homad_viewer *v, walker *some, bool time_wait)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (!w) {
		homad_viewer_error(v, "homad is out of memory; try again");
		return;
	}
	w->task.more = walk_more;
	w->task.free = walk_free;
	w->some = some;
	w->flows_at.engine.ended = time_wait;
	v->task = &w->task;
}

/* ---- what comes in ---- */

static void request(struct homad_viewer *v, const cJSON *json)
{
	const cJSON *op = cJSON_GetObjectItemCaseSensitive(json, "op");
	const char *name = cJSON_IsString(op) ? op->valuestring : "";

	if (v->task) {
		v->task->request(v, v->task, json);
		return;
	}
	if (!strcmp(name, "snapshot"))
		homad_viewer_json(v, homad_snapshot_json(v->d));
	else if (!strcmp(name, "rpcs"))
		walk_begin(v, walk_rpcs, false);
	else if (!strcmp(name, "peers"))
		walk_begin(v, walk_peers, false);
	else if (!strcmp(name, "flows"))
		walk_begin(v, walk_flows,
			   cJSON_IsTrue(
				   cJSON_GetObjectItemCaseSensitive(json,
								    "time_wait")));
	else if (!strcmp(name, "trace"))
		homad_trace_begin(v, json);
	else
		homad_viewer_error(
			v,
			"unknown request; send {\"op\": ...} with snapshot, rpcs, peers, flows or trace");
}

/* Ends the connection of a viewer that sent a line that is too long. The viewer is told,
 * but not in the middle of a trace, where the words would be taken for a part of it. */
static void too_long(struct homad_viewer *v)
{
	v->ending = true;
	if (v->task)
		task_end(v);
	else
		homad_viewer_error(v, "a request has at most %u bytes",
				   HOMAD_VIEWER_LINE - 1);
}

/* Works off one line if there is one; returns whether there was. */
static bool take_line(struct homad_viewer *v)
{
	char *end = memchr(v->in, '\n', v->in_len);
	size_t len;
	cJSON *json;

	if (!end) {
		if (v->in_len == sizeof(v->in))
			too_long(v);
		return false;
	}
	*end = '\0';
	len = (size_t)(end - v->in) + 1;
	json = cJSON_Parse(v->in);
	if (cJSON_IsObject(json))
		request(v, json);
	else if (!v->task)
		homad_viewer_error(v, "a request is one JSON object in a line");
	cJSON_Delete(json);
	memmove(v->in, v->in + len, v->in_len - len);
	v->in_len -= (u32)len;
	return true;
}

static bool may_talk(const struct homad_viewer *v)
{
	return !v->ending && !v->broken && (!v->task || v->task->request);
}

static void take_lines(struct homad_viewer *v)
{
	while (may_talk(v) && take_line(v))
		;
}

static void viewer_read(struct homad_viewer *v)
{
	ssize_t n;

	if (v->in_len < sizeof(v->in)) {
		n = recv(v->conn.fd, v->in + v->in_len,
			 sizeof(v->in) - v->in_len, 0);
		if (n == 0) {
			/* The viewer may only have shut down its side: answer first, but
			 * end a trace, which nobody can stop any more. */
			v->ending = true;
			if (v->task && v->task->request)
				task_end(v);
		} else if (n < 0) {
			v->broken = errno != EAGAIN && errno != EINTR;
		} else {
			v->in_len += (u32)n;
		}
	}
	take_lines(v);
}

static void viewer_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_viewer *v =
		homa_container_of(source, struct homad_viewer, conn);

	(void)d;
	if (events & (EPOLLERR | EPOLLHUP))
		v->broken = true;
	if (!v->broken && events & EPOLLIN)
		viewer_read(v);
	if (!v->broken && events & EPOLLOUT && v->task && !v->idle &&
	    flush(v) && !v->out_len && !v->task->more(v, v->task)) {
		task_end(v);
		take_lines(v);
	}
	homad_viewer_push(v);
}

/* ---- who may ---- */

static bool in_group(int fd, const struct ucred *who, gid_t group)
{
	gid_t groups[GROUPS];
	socklen_t size = sizeof(groups);
	u32 i;

	if (who->gid == group)
		return true;
	/* Of a caller with more than GROUPS groups only the main group counts. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		return false;
	for (i = 0; i < size / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static bool allowed(int fd, struct ucred *who)
{
	socklen_t size = sizeof(*who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &size))
		return false;
	return !who->uid || who->uid == geteuid() ||
	       (monitor.has_group && in_group(fd, who, monitor.group));
}

static void refuse(int fd, const char *why)
{
	(void)!send(fd, why, strlen(why), MSG_NOSIGNAL);
	close(fd);
}

static void viewer_new(struct homad *d, int fd)
{
	struct homad_viewer *v;
	struct ucred who;

	if (!allowed(fd, &who)) {
		refuse(fd,
		       "{\"error\":\"only root, homad's own user and the group monitor_group may look at homad\"}\n");
		return;
	}
	if (monitor.num_viewers >= HOMAD_VIEWERS) {
		refuse(fd,
		       "{\"error\":\"too many tools are connected to homad; end one of them\"}\n");
		return;
	}
	v = calloc(1, sizeof(*v));
	if (!v) {
		close(fd);
		return;
	}
	v->d = d;
	v->pid = who.pid;
	v->conn.fd = fd;
	v->conn.ready = viewer_ready;
	v->conn.admin = true;
	homa_list_init(&v->list);
	homa_list_add_tail(&monitor.viewers, &v->list);
	monitor.num_viewers++;
	homad_viewer_push(v);
}

static void listen_ready(struct homad *d, struct homad_source *source, u32 events)
{
	int i, fd;

	(void)events;
	for (i = 0; i < (int)READ_AT_ONCE; i++) {
		fd = accept4(source->fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		viewer_new(d, fd);
	}
}

/* ---- the socket ---- */

static int set_mode(const struct homad_config *c, char *err, size_t errlen)
{
	struct group *group;

	if (!c->monitor_group[0])
		return chmod(c->monitor, 0600) ? -errno : 0;
	group = getgrnam(c->monitor_group);
	if (!group) {
		snprintf(err, errlen,
			 "monitor_group: there is no group %s; make it or name another one",
			 c->monitor_group);
		return -EINVAL;
	}
	monitor.group = group->gr_gid;
	monitor.has_group = true;
	if (chown(c->monitor, (uid_t)-1, group->gr_gid) ||
	    chmod(c->monitor, 0660)) {
		snprintf(err, errlen, "cannot give %s to group %s: %s",
			 c->monitor, c->monitor_group, strerror(errno));
		return -EPERM;
	}
	return 0;
}

static int make_listener(const struct homad_config *c, char *err, size_t errlen)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int rc;

	if (fd < 0)
		return -errno;
	memcpy(addr.sun_path, c->monitor, sizeof(addr.sun_path) - 1);
	/* The socket of a running homad is left alone, that of a dead one is replaced. */
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		snprintf(err, errlen,
			 "the monitoring socket %s belongs to another homad; name another one with --monitor",
			 c->monitor);
		close(fd);
		return -EADDRINUSE;
	}
	unlink(c->monitor);
	mask = umask(0177);
	rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	umask(mask);
	if (!rc) {
		monitor.bound = true;
		rc = set_mode(c, err, errlen);
	}
	if (!rc && listen(fd, HOMAD_VIEWERS))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int homad_monitor_start(struct homad *d, char *err, size_t errlen)
{
	int rc;

	if (!d->config.monitor[0])
		return 0;
	if (errlen)
		err[0] = '\0';
	homa_list_init(&monitor.viewers);
	monitor.up = true;
	monitor.listen.ready = listen_ready;
	monitor.listen.admin = true;
	monitor.listen.fd = make_listener(&d->config, err, errlen);
	rc = monitor.listen.fd < 0 ? monitor.listen.fd :
				     homad_watch(d, &monitor.listen, EPOLLIN);
	if (rc && errlen && !err[0])
		snprintf(err, errlen,
			 "cannot make the monitoring socket %s: %s; name another one with --monitor",
			 d->config.monitor, strerror(-rc));
	if (rc)
		homad_monitor_stop(d);
	return rc;
}

void homad_monitor_stop(struct homad *d)
{
	if (!monitor.up)
		return;
	while (!homa_list_empty(&monitor.viewers))
		viewer_free(homa_list_entry(monitor.viewers.next,
					    struct homad_viewer, list));
	if (monitor.listen.fd >= 0) {
		homad_unwatch(d, &monitor.listen);
		close(monitor.listen.fd);
	}
	monitor.listen.fd = -1;
	if (monitor.bound)
		unlink(d->config.monitor);
	monitor.bound = monitor.up = monitor.has_group = false;
}
