// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who listens where. An application proves that it may have a port by a socket of the
 * kernel that is bound to it, so all that decides there, such as privileged ports and
 * ports in use, decides here, too. homad keeps the socket until the listener takes no
 * more, so that nobody else gets the port meanwhile, whose connections would come here.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tcp_homes.h"
#include "tcp_listener.h"
#include "tcp_slow.h"
#include "tcp_steer.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static int option(int fd, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

bool homad_of_our_network(int fd)
{
	u64 theirs = 0, ours = 1;
	socklen_t size = sizeof(theirs);
	int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool same;

	if (own < 0)
		own = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	same = own >= 0 &&
	       !getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &size) &&
	       !getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &size) &&
	       theirs == ours;
	if (own >= 0)
		close(own);
	return same;
}

/*
 * Does the socket own its port, because bind() has given it the port? A socket that came
 * from accept() has its listener's port in its name, as long as it is open and after that.
 */
static bool is_bound(int fd, int family)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };
	socklen_t size = 1;
	u8 state = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &size) ||
	    state != TCP_CLOSE)
		return false;
	/* In this state bind() refuses it only because it has a port. A socket without one
	 * gets a port of the kernel's choice, as with listen(), which nobody else wants. */
	size = family == AF_INET ? sizeof(struct sockaddr_in) :
				   sizeof(struct sockaddr_in6);
	return bind(fd, (struct sockaddr *)&any, size) && errno == EINVAL;
}

/* Is the socket bound to one device? Packets of other devices would reach a listener of homad. */
static bool has_device(int fd)
{
	char name[IFNAMSIZ];
	socklen_t size = sizeof(name);

	return getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &size) ||
	       size > 0;
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

/* Reads where @fd is bound; returns NULL, or what is wrong with it. */
static const char *read_socket(int fd, struct tas_listener *l)
{
	union {
		/* The name in the form that bind() wants. */
		struct sockaddr any;
		/* The name if it is an IPv4 address. */
		struct sockaddr_in four;
		/* The name if it is an IPv6 address. */
		struct sockaddr_in6 six;
	} name;
	socklen_t size = sizeof(name);

	if (fd < 0)
		return "no socket came with the request";
	if (option(fd, SO_PROTOCOL) != IPPROTO_TCP ||
	    option(fd, SO_ACCEPTCONN) != 0)
		return "the socket that came with it is not one of TCP that does not listen";
	/* A port of another network namespace proves nothing about ours. */
	if (!homad_of_our_network(fd))
		return "the socket is of another network namespace than homad";
	if (has_device(fd))
		return "the socket is bound to a device";
	if (!is_bound(fd, option(fd, SO_DOMAIN)))
		return "the socket is not bound, or is a connection";
	/* The name is read only now, when it is that of a bound socket, whatever the owner
	 * does meanwhile. */
	if (getsockname(fd, &name.any, &size))
		return "the socket has no name";
	if (name.any.sa_family == AF_INET) {
		l->local[10] = l->local[11] = 0xff;
		memcpy(l->local + 12, &name.four.sin_addr, 4);
		l->port = ntohs(name.four.sin_port);
	} else if (name.any.sa_family != AF_INET6 || read_v6(fd, &name.six, l)) {
		return "the socket is neither of IPv4 nor of IPv6";
	}
	l->reuse = option(fd, SO_REUSEPORT) == 1;
	return l->port ? NULL : "the socket is not bound";
}

/* May the client listen there? The first rule for it decides: returns 0, -EACCES if it denies
 * that, or -EPERM if there is none. */
static int may_listen(const struct homad *d, const struct homad_client *client,
		      u16 port, const char **wrong)
{
	u32 i;

	for (i = 0; i < d->config.num_tcp_rules; i++) {
		const struct homad_tcp_rule *rule = &d->config.tcp_rules[i];

		if (!rule->listen[0] || port < rule->listen[0] ||
		    port > rule->listen[1] ||
		    !homad_client_is(client, &rule->who))
			continue;
		*wrong = "a [[tcp_rule]] of homad denies this user to listen at that port";
		return rule->deny ? -EACCES : 0;
	}
	*wrong = "no [[tcp_rule]] of homad lets this user listen at that port";
	return -EPERM;
}

static bool is_v4(const struct tas_listener *l)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(l->local, mapped, sizeof(mapped));
}

static bool is_any(const struct tas_listener *l, u32 from)
{
	static const u8 zeros[16];

	return !memcmp(l->local + from, zeros, sizeof(zeros) - from);
}

/* Is the listener at a loopback address, so that only this host can connect to it? */
static bool is_loopback(const struct tas_listener *l)
{
	static const u8 six[16] = { [15] = 1 };

	return is_v4(l) ? l->local[12] == 127 :
			  !memcmp(l->local, six, sizeof(six));
}

/* Can there be a connection that either of them would take? */
static bool overlap(const struct tas_listener *a, const struct tas_listener *b)
{
	if (a->port != b->port)
		return false;
	if (is_any(a, 0))
		return !a->v6_only || !is_v4(b);
	if (is_any(b, 0))
		return !b->v6_only || !is_v4(a);
	if (is_v4(a) != is_v4(b))
		return false;
	return (is_v4(a) && (is_any(a, 12) || is_any(b, 12))) ||
	       !memcmp(a->local, b->local, sizeof(a->local));
}

/* May both have the port? With SO_REUSEPORT they may if they are of one user, so that nobody
 * gets a part of another user's connections. */
static bool share(const struct homad_tcp_listener *other,
		  const struct tas_listener *l, const struct homad_user *user)
{
	return l->reuse && other->l.reuse && other->user == user;
}

/* Does another listener have the port? With SO_REUSEADDR the kernel lets several sockets
 * bind a port at which none listens, so homad has to refuse a second listener, as the
 * kernel would if it knew of the first. */
static bool is_taken(struct homad *d, const struct tas_listener *l,
		     const struct homad_user *user)
{
	struct homa_list *head = homad_tcp_held(homad_slow(d)->tcp, l->port),
			 *node;

	homa_list_for_each(node, head) {
		struct homad_tcp_listener *other =
			homa_container_of(node, struct homad_tcp_listener, held);

		/* A listener that has ended is listed until its connections are over. */
		if (!HOMA_READ_ONCE(other->ended) && overlap(&other->l, l) &&
		    !share(other, l, user))
			return true;
	}
	return false;
}

void homad_tcp_show_port(struct homad *d, u16 port)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	struct homa_list *head = homad_tcp_held(ports, port), *node;
	u32 listeners[HOMAD_MAX_THREADS] = { 0 };
	u32 has = 0, i;

	homa_list_for_each(node, head) {
		const struct homad_tcp_listener *l =
			homa_container_of(node, struct homad_tcp_listener, held);

		if (l->l.port != port)
			continue;
		has |= 1u << l->tcp->index;
		if (!HOMA_READ_ONCE(l->ended))
			listeners[l->tcp->index]++;
	}
	for (i = 0; i < d->steering->num; i++)
		homad_steering_set(d->steering, port, i, has >> i & 1);
	homad_steering_spread(d->steering, port, listeners);
}

static int nothing(struct homad_thread *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

/* Gives back the port of a listener that its instance does not know any more. */
static void give_back(struct homad *d, struct homad_tcp_listener *listener)
{
	u32 i;

	homa_list_del(&listener->held);
	/* While segments still come, they are answered. */
	if (!listener->loopback)
		homad_tcp_leave_port(d, listener->l.port);
	homad_tcp_show_port(d, listener->l.port);
	homad_steering_unlisten(d->steering, listener);
	/* A thread that has found it before is done with it when its round is over. */
	for (i = 0; d->num_threads > 1 && i < d->num_threads; i++)
		homad_call(d->threads[i], nothing, NULL);
}

static int begin(struct homad *d, struct homad_client *client,
		 struct homad_tcp_listener *listener)
{
	int rc;

	/* A listener that the client closed before may have the port still. */
	homad_throttle_count_rounds(client,
				    homad_turns_of_rings(client->app, true));
	if (is_taken(d, &listener->l, client->user))
		return -EADDRINUSE;
	listener->home = client->app->streams;
	listener->tcp = client->app->streams->tcp;
	listener->l.shared_half = &client->user->half_open[listener->tcp->index];
	listener->l.shared_ready = &client->user->ready[listener->tcp->index];
	listener->here.shared_half =
		&client->user->half_here[listener->tcp->index];
	listener->here.shared_ready =
		&client->user->ready_here[listener->tcp->index];
	listener->loopback = is_loopback(&listener->l);
	homa_list_add_tail(homad_tcp_held(homad_slow(d)->tcp, listener->l.port),
			   &listener->held);
	/* This comes before the first SYN may come. */
	homad_tcp_show_port(d, listener->l.port);
	if (!listener->loopback)
		homad_tcp_take_port(d, listener->l.port);
	rc = homad_streams_call(client->app->streams, homad_listener_begin,
				listener);
	if (rc) {
		give_back(d, listener);
		return rc;
	}
	homad_steering_listen(d->steering, listener);
	listener->user = client->user;
	client->user->listeners++;
	return 0;
}

void homad_op_stream_listen(struct homad *d, struct homad_client *client,
			    const struct homa_ctl_request *r)
{
	struct homa_ctl_answer answer = { .op = r->op };
	struct homad_tcp_listener *listener;
	const char *wrong;
	int rc;

	if (!client->app->streams) {
		homad_answer_error(
			client, r->op, -ENOTCONN,
			"the attachment has no streams yet: HOMA_CTL_STREAMS comes first");
		return;
	}
	if (client->user->listeners >= HOMAD_USER_LISTENERS) {
		homad_slow(d)->tcp->listens_refused++;
		homad_answer_error(
			client, r->op, -EDQUOT,
			"user %u listens at %u TCP ports, which is as many as one may; close some",
			(unsigned int)client->uid, HOMAD_USER_LISTENERS);
		return;
	}
	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		homad_answer_error(client, r->op, -ENOMEM,
				   "homad is out of memory");
		return;
	}
	wrong = read_socket(client->passed_fd, &listener->l);
	rc = wrong ? -EINVAL : 0;
	if (!rc)
		rc = may_listen(d, client, listener->l.port, &wrong);
	if (!rc) {
		listener->l.backlog = (u32)homa_min_u64(homa_max_u64(r->bytes, 1),
							HOMAD_BACKLOG_MOST);
		answer.port = listener->l.port;
		listener->fd = client->passed_fd;
		rc = begin(d, client, listener);
		wrong = "another listener of homad has that address and port";
	}
	if (rc) {
		free(listener);
		homad_slow(d)->tcp->listens_refused++;
		homad_answer_error(client, r->op, rc, "%s", wrong);
		return;
	}
	client->passed_fd = -1;
	answer.total = listener->first.number;
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

void homad_tcp_end_listener(struct homad *d, struct homad_tcp_listener *listener)
{
	give_back(d, listener);
	listener->user->listeners--;
	homad_user_put(listener->user);
	free(listener);
}
