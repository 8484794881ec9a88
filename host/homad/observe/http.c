// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * GET /metrics for Prometheus, on a UNIX socket or a loopback port. HTTP is
 * libmicrohttpd's, which has been parsing what strangers send for longer than
 * this file; it gets the connections that http_users.c has let in, puts everything into an
 * epoll set of its own, and that set is a source of the admin thread. No thread of its own,
 * and a timer only while a connection is open that may have to be given up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "homa_clock.h"
#include "http_users.h"
#include "log.h"
#include "monitor.h"

#ifdef HOMAD_HTTP
#include <microhttpd.h>

/* libmicrohttpd may count connections that have just ended. */
#define CONNECTIONS (2 * HOMAD_HTTP_CONNECTIONS)
#define TIMEOUT_S 10u
/* The most connections that are let in before the admin thread does other things. */
#define TURN 32
/* The time after which connections are let in again that could not be, in ns. */
#define PAUSE_NS 100000000u
#define CONNECTION_MEMORY (16u << 10)

/* struct http - the server, of which a process has one */
static struct http {
	/* libmicrohttpd's server; NULL: it is not there. */
	struct MHD_Daemon *mhd;
	struct homad_source listener; /* the listening socket */
	bool pauses; /* the listening socket is not watched until the timer fires */
	struct homad_source set;   /* libmicrohttpd's epoll set */
	struct homad_source timer; /* ends connections that say nothing */
	char path[108];		   /* path of the UNIX socket, "" for a port */
} http = { .listener.fd = -1, .timer.fd = -1 };

/* ---- requests ---- */

static enum MHD_Result answer(struct MHD_Connection *connection,
			      unsigned int status, const char *type, char *text,
			      size_t length, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, text, mode);
	enum MHD_Result result;

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					"GET, HEAD");
	if (status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
					"1");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection,
				   unsigned int status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8",
		      (char *)text, strlen(text), MHD_RESPMEM_PERSISTENT);
}

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection,
					MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static enum MHD_Result request(void *arg, struct MHD_Connection *connection,
			       const char *url, const char *method,
			       const char *version, const char *body,
			       size_t *body_size, void **state)
{
	struct homad *d = arg;
	size_t length = 0;
	char *text;

	(void)version;
	(void)body;
	if (!*state) { /* the first call comes before the body */
		*state = &http;
		return MHD_YES;
	}
	if (*body_size) {
		*body_size = 0; /* the body is read and forgotten */
		return MHD_YES;
	}
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				   "only GET and HEAD\n");
	if (strcmp(url, "/metrics"))
		return answer_text(connection, MHD_HTTP_NOT_FOUND,
				   "homad: there is only /metrics\n");
	if (!homad_http_may_ask(fd_of(connection), homa_clock_ns()))
		return answer_text(connection, MHD_HTTP_TOO_MANY_REQUESTS,
				   "this user asks too often\n");
	text = homad_metrics_text(d, &length);
	if (!text)
		return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
				   "homad is out of memory\n");
	return answer(connection, MHD_HTTP_OK,
		      "text/plain; version=0.0.4; charset=utf-8", text, length,
		      MHD_RESPMEM_MUST_FREE);
}

/* ---- as sources of the slow path ---- */

static void run(struct homad *d)
{
	MHD_UNSIGNED_LONG_LONG ms;

	(void)d;
	MHD_run(http.mhd);
	/* The timer is set for the end of the pause. */
	if (http.pauses)
		return;
	/* A time-out of 0 means that the epoll set is readable, which is watched anyway. */
	if (MHD_get_timeout(http.mhd, &ms) == MHD_YES)
		homad_timer_set(http.timer.fd, (ms ? ms : 1) * 1000000u);
	else
		homad_timer_set(http.timer.fd, 0);
}

static void set_ready(struct homad *d, struct homad_source *source, u32 events)
{
	(void)source;
	(void)events;
	run(d);
}

static void timer_ready(struct homad *d, struct homad_source *source, u32 events)
{
	u64 expired;

	(void)events;
	if (read(source->fd, &expired, sizeof(expired)) <= 0)
		return;
	http.pauses = http.pauses && homad_watch(d, &http.listener, EPOLLIN);
	if (http.pauses)
		homad_timer_set(http.timer.fd, PAUSE_NS);
	run(d);
}

/* Lets a connection in, or closes it. */
static void let_in(int fd, const struct sockaddr *name, socklen_t size)
{
	uid_t user = homad_http_user(fd);
	int victim;
	bool in = homad_http_enter(fd, user, &victim);

	if (!in && victim >= 0) {
		/* libmicrohttpd hears of the end and tells ended(). */
		shutdown(victim, SHUT_RDWR);
		MHD_run(http.mhd);
		in = homad_http_enter(fd, user, &victim);
	}
	if (!in) {
		homad_http_refuse();
		close(fd);
	} else if (MHD_add_connection(http.mhd, fd, name, size) != MHD_YES) {
		homad_http_leave(fd); /* It was closed. */
	}
}

static void ended(void *arg, struct MHD_Connection *connection, void **state,
		  enum MHD_ConnectionNotificationCode what)
{
	(void)arg;
	(void)state;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		homad_http_leave(fd_of(connection));
}

static void listener_ready(struct homad *d, struct homad_source *source,
			   u32 events)
{
	struct sockaddr_storage name;
	int i;

	(void)events;
	for (i = 0; i < TURN; i++) {
		socklen_t size = sizeof(name);
		int fd = accept4(source->fd, (struct sockaddr *)&name, &size,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			break;
		let_in(fd, (struct sockaddr *)&name, size);
	}
	/* Without descriptors or memory it would be ready for ever. */
	if (i < TURN && errno != EAGAIN && errno != EINTR &&
	    errno != ECONNABORTED) {
		homad_unwatch(d, source);
		http.pauses = true;
		homad_timer_set(http.timer.fd, PAUSE_NS);
	}
	run(d);
}

/* ---- the listening socket ---- */

static int set_group(const struct homad_config *c, const char *path)
{
	struct group *group =
		c->monitor_group[0] ? getgrnam(c->monitor_group) : NULL;

	if (!group)
		return 0;
	return chown(path, (uid_t)-1, group->gr_gid) || chmod(path, 0660) ?
		       -errno :
		       0;
}

static int listen_unix(const struct homad_config *c, const char *path,
		       char *err, size_t errlen)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc;
	mode_t mask;

	if (!*path || strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(err, errlen,
			 "metrics: unix: needs a path of at most %zu bytes",
			 sizeof(addr.sun_path) - 1);
		return -EINVAL;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		/* another server has the socket; the file of a dead one is removed */
		return -EADDRINUSE;
	}
	unlink(path);
	mask = umask(0177);
	rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	umask(mask);
	if (!rc) {
		strcpy(http.path, path);
		rc = set_group(c, path);
	}
	if (!rc && listen(fd, SOMAXCONN))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Reads "127.0.0.1:9464" or "[::1]:9464", and nothing but loopback addresses. */
static int parse_loopback(const char *text, struct sockaddr_storage *ss,
			  socklen_t *size)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	const char *colon = strrchr(text, ':');
	char host[64], *end;
	unsigned long port;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	port = strtoul(colon + 1, &end, 10);
	if (*end || end == colon + 1 || !port || port > 65535)
		return -EINVAL;
	memset(ss, 0, sizeof(*ss));
	if (!strcmp(host, "[::1]") || !strcmp(host, "::1")) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((u16)port);
		in6->sin6_addr = in6addr_loopback;
		*size = sizeof(*in6);
		return 0;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((u16)port);
	*size = sizeof(*in);
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
		      &in->sin_addr) != 1 ||
	    ntohl(in->sin_addr.s_addr) >> 24 != 127)
		return -EINVAL;
	return 0;
}

static int listen_loopback(const char *text, char *err, size_t errlen)
{
	struct sockaddr_storage ss;
	socklen_t size;
	int fd, rc, one = 1;

	if (parse_loopback(text, &ss, &size)) {
		snprintf(err, errlen,
			 "metrics: '%s' is neither unix:PATH nor a loopback address with a port, such as 127.0.0.1:9464",
			 text);
		return -EINVAL;
	}
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (struct sockaddr *)&ss, size) && !listen(fd, SOMAXCONN))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* ---- begin and end ---- */

static int serve(struct homad *d, int fd)
{
	const union MHD_DaemonInfo *info;

	http.listener.fd = fd;
	http.mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0,
				    NULL, NULL, request, d,
				    MHD_OPTION_NOTIFY_CONNECTION, ended, NULL,
				    MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
				    MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
				    MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				    (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
	if (!http.mhd)
		return -ENOMEM;
	info = MHD_get_daemon_info(http.mhd, MHD_DAEMON_INFO_EPOLL_FD);
	http.timer.fd = homad_timer_open();
	if (!info || http.timer.fd < 0)
		return -ENOMEM;
	http.set.fd = info->epoll_fd;
	http.set.ready = set_ready;
	http.timer.ready = timer_ready;
	http.listener.ready = listener_ready;
	http.set.admin = http.timer.admin = http.listener.admin = true;
	if (homad_watch(d, &http.set, EPOLLIN) ||
	    homad_watch(d, &http.listener, EPOLLIN) ||
	    homad_watch(d, &http.timer, EPOLLIN))
		return -ENOMEM;
	return 0;
}

int homad_metrics_start(struct homad *d, char *err, size_t errlen)
{
	const struct homad_config *c = &d->config;
	int fd, rc;

	if (!c->metrics[0])
		return 0;
	if (errlen)
		err[0] = '\0';
	if (!strncmp(c->metrics, "unix:", 5))
		fd = listen_unix(c, c->metrics + 5, err, errlen);
	else
		fd = listen_loopback(c->metrics, err, errlen);
	rc = fd < 0 ? fd : serve(d, fd);
	if (!rc)
		return 0;
	if (errlen && !err[0])
		snprintf(err, errlen,
			 "cannot serve metrics on %s: %s; name another place with --metrics",
			 c->metrics, strerror(-rc));
	homad_metrics_stop(d);
	return rc;
}

void homad_metrics_stop(struct homad *d)
{
	homad_unwatch(d, &http.set);
	homad_unwatch(d, &http.listener);
	homad_unwatch(d, &http.timer);
	if (http.mhd)
		MHD_stop_daemon(http.mhd);
	if (http.listener.fd >= 0)
		close(http.listener.fd);
	if (http.timer.fd >= 0)
		close(http.timer.fd);
	if (http.path[0])
		unlink(http.path);
	memset(&http, 0, sizeof(http));
	http.listener.fd = http.timer.fd = -1;
}

#else /* without libmicrohttpd */

int homad_metrics_start(struct homad *d, char *err, size_t errlen)
{
	if (!d->config.metrics[0])
		return 0;
	snprintf(err, errlen,
		 "metrics: this homad was built without libmicrohttpd; install libmicrohttpd-dev and build it again");
	return -ENOSYS;
}

void homad_metrics_stop(struct homad *d)
{
	(void)d;
}

#endif
