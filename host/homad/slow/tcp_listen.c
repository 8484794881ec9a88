// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who listens where. An application proves that it may have a port by a socket of the
 * kernel that is bound to it, so all that decides there, such as privileged ports and
 * ports in use, decides here, too. The application keeps the socket open as long as it
 * listens, which keeps others from the port; here it is looked at and closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "streams.h"
#include "tcp_slow.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define BACKLOG_MOST 4096u

static int option(int fd, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

/* A port of another network namespace proves nothing about ours. */
static bool of_our_network(int fd)
{
	u64 theirs = 0, ours = 1;
	socklen_t size = sizeof(theirs);
	int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool same;

	if (own < 0)
		own = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	same = own >= 0 && !getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &size) &&
	       !getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &size) && theirs == ours;
	if (own >= 0)
		close(own);
	return same;
}

static int read_v6(int fd, const struct sockaddr_in6 *six, struct tas_listener *l)
{
	socklen_t size = sizeof(int);
	int only = 0;

	memcpy(l->local, &six->sin6_addr, sizeof(l->local));
	l->port = ntohs(six->sin6_port);
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size))
		return -errno;
	l->v6_only = only;
	return 0;
}

/* Where @fd is bound; NULL, or what is wrong with it. */
static const char *read_socket(int fd, struct tas_listener *l)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} name;
	socklen_t size = sizeof(name);

	if (fd < 0)
		return "no socket came with the request";
	if (option(fd, SO_PROTOCOL) != IPPROTO_TCP || option(fd, SO_ACCEPTCONN) != 0)
		return "the socket that came with it is not one of TCP that does not listen";
	if (!of_our_network(fd))
		return "the socket is of another network namespace than homad";
	if (getsockname(fd, &name.any, &size))
		return "the socket has no name";
	if (name.any.sa_family == AF_INET) {
		l->local[10] = l->local[11] = 0xff;
		memcpy(l->local + 12, &name.four.sin_addr, 4);
		l->port = ntohs(name.four.sin_port);
	} else if (name.any.sa_family != AF_INET6 || read_v6(fd, &name.six, l)) {
		return "the socket is neither of IPv4 nor of IPv6";
	}
	return l->port ? NULL : "the socket is not bound";
}

static bool may_listen(const struct homad *d, const struct homad_client *client, u16 port)
{
	u32 i;

	for (i = 0; i < d->config.num_tcp_rules; i++) {
		const struct homad_tcp_rule *rule = &d->config.tcp_rules[i];

		if (rule->listen[0] && port >= rule->listen[0] && port <= rule->listen[1] &&
		    homad_client_is(client, &rule->who))
			return true;
	}
	return false;
}

static int begin(struct homad *d, struct homad_client *client,
		 struct homad_tcp_listener *listener)
{
	int rc;

	listener->home = client->app->streams;
	/* Before the first SYN may come. */
	homad_tcp_take_port(d, listener->l.port);
	rc = homad_call(client->app->thread, homad_listener_begin, listener);
	if (rc)
		homad_tcp_leave_port(d, listener->l.port);
	return rc;
}

void homad_op_stream_listen(struct homad *d, struct homad_client *client,
			    const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_tcp_listener *listener;
	const char *wrong;
	int rc;

	if (!client->app->streams) {
		homad_answer_error(client, r->op, -ENOTCONN,
				   "the attachment has no streams yet: HOMA_CTL_STREAMS comes first");
		return;
	}
	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		homad_answer_error(client, r->op, -ENOMEM, "homad is out of memory");
		return;
	}
	wrong = read_socket(client->passed_fd, &listener->l);
	rc = wrong ? -EINVAL : 0;
	if (!rc && !may_listen(d, client, listener->l.port)) {
		wrong = "no [[tcp_rule]] of homad lets this user listen at that port";
		rc = -EPERM;
	}
	if (!rc) {
		listener->l.backlog = (u32)homa_min_u64(homa_max_u64(r->bytes, 1), BACKLOG_MOST);
		answer.port = listener->l.port;
		rc = begin(d, client, listener);
		wrong = "another listener of homad has that address and port";
	}
	if (rc) {
		free(listener);
		homad_answer_error(client, r->op, rc, "%s", wrong);
		return;
	}
	answer.total = listener->number;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}
