// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See http_users.h. Who is at the other end of a UNIX socket the kernel says; who is at that of a
 * loopback port, it says when it is asked about the other end's socket (sock_diag).
 */
#include "http_users.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "homa_clock.h"
#include "rtnl.h"

/* A user may ask so often at once, and so often in a second. Making the text takes milliseconds. */
#define AT_ONCE 10u
#define EACH_SECOND 2u
/* The number of users of whom it is remembered how often they have asked. */
#define USERS 64u
#define NOBODY ((uid_t) - 1)

/* struct http_place - a connection, or none */
struct http_place {
	/* The descriptor of the connection. */
	int fd;
	/* Its user. */
	uid_t user;
	/* True if there is a connection. */
	bool used;
	/* A number that is larger for later connections. */
	u64 serial;
};

/* struct asker - how often a user has asked */
struct asker {
	/* The user. */
	uid_t user;
	/* The questions that the user may ask now, as of the time @at. */
	u32 tokens;
	/* The time at which tokens were last added, in ns; 0 in an entry that nobody has. */
	u64 at;
};

static struct http_place places[HOMAD_HTTP_CONNECTIONS];
static struct asker askers[USERS];
static u64 serials, refused;

/* ---- who is it? ---- */

static int take_user(const struct nlmsghdr *msg, void *arg)
{
	const struct inet_diag_msg *diag = NLMSG_DATA(msg);

	if (msg->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    msg->nlmsg_len < NLMSG_LENGTH(sizeof(*diag)))
		return 0;
	/* Of a socket that nobody has any more the kernel says that it is root's. And one that
	 * listens or connects with the same port is not this connection's. */
	if (!diag->idiag_inode || diag->idiag_state == TCP_LISTEN ||
	    diag->idiag_state == TCP_SYN_SENT)
		return 0;
	*(uid_t *)arg = diag->idiag_uid;
	return 0;
}

static void put_end(const struct sockaddr_storage *name, void *address,
		    __be16 *port)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)name;
	const struct sockaddr_in *four = (const struct sockaddr_in *)name;

	if (name->ss_family == AF_INET)
		memcpy(address, &four->sin_addr, sizeof(four->sin_addr));
	else
		memcpy(address, &six->sin6_addr, sizeof(six->sin6_addr));
	/* The port is in the same place in both families. */
	*port = four->sin_port;
}

/* Asks about the socket that is connected from @theirs to @ours. */
static uid_t user_of(const struct sockaddr_storage *theirs,
		     const struct sockaddr_storage *ours)
{
	struct nic_rtnl diag = { .events_fd = -1 };
	struct inet_diag_req_v2 *body;
	struct nic_rtnl_req req;
	uid_t user = NOBODY;

	diag.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (diag.fd < 0)
		return NOBODY;
	body = nic_rtnl_init(&req, SOCK_DIAG_BY_FAMILY, 0, sizeof(*body));
	body->sdiag_family = (u8)theirs->ss_family;
	body->sdiag_protocol = IPPROTO_TCP;
	body->idiag_states = ~0u;
	body->id.idiag_cookie[0] = body->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	put_end(theirs, body->id.idiag_src, &body->id.idiag_sport);
	put_end(ours, body->id.idiag_dst, &body->id.idiag_dport);
	if (nic_rtnl_request(&diag, &req, take_user, &user))
		user = NOBODY;
	nic_rtnl_close(&diag);
	return user;
}

uid_t homad_http_user(int fd)
{
	struct sockaddr_storage theirs = { 0 }, ours = { 0 };
	socklen_t one = sizeof(theirs), other = sizeof(ours);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&ours, &other))
		return NOBODY;
	if (ours.ss_family == AF_UNIX)
		return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ?
			       NOBODY :
			       peer.uid;
	if (getpeername(fd, (struct sockaddr *)&theirs, &one))
		return NOBODY;
	return user_of(&theirs, &ours);
}

/* Is it a user who may do anything to homad anyway? */
static bool trusted(uid_t user)
{
	return !user || user == geteuid();
}

/* ---- connections ---- */

static u32 places_of(uid_t user)
{
	u32 i, n = 0;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++)
		n += places[i].used && places[i].user == user;
	return n;
}

static struct http_place *free_place(void)
{
	u32 i;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++)
		if (!places[i].used)
			return &places[i];
	return NULL;
}

/* Returns the oldest connection of @user, who has one. */
static struct http_place *oldest_of(uid_t user)
{
	struct http_place *found = NULL;
	u32 i;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++)
		if (places[i].used && places[i].user == user &&
		    (!found || places[i].serial < found->serial))
			found = &places[i];
	return found;
}

/* Returns the oldest connection of the user who has most, if that is at least @least; else NULL.
 * Users who are trusted keep what they have. */
static struct http_place *most_used(u32 least)
{
	struct http_place *found = NULL;
	u32 i, most = least;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++) {
		bool counts = places[i].used && !trusted(places[i].user);
		u32 n = counts ? places_of(places[i].user) : 0;

		if (n < most ||
		    (found && n == most && places[i].serial > found->serial))
			continue;
		found = &places[i];
		most = n;
	}
	return found;
}

bool homad_http_enter(int fd, uid_t user, int *victim)
{
	struct http_place *place = free_place();
	u32 own = places_of(user);

	*victim = -1;
	if (place && (own < HOMAD_HTTP_SHARE || trusted(user))) {
		*place = (struct http_place){ fd, user, true, ++serials };
		return true;
	}
	/* Those of whom the kernel does not say who they are have one share together, and one of
	 * them may ask in earnest. */
	if (place)
		place = user == NOBODY ? oldest_of(user) : NULL;
	else
		place = most_used(trusted(user) ? 1 : own + 2);
	if (place)
		*victim = place->fd;
	return false;
}

void homad_http_leave(int fd)
{
	u32 i;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++)
		if (places[i].used && places[i].fd == fd)
			places[i].used = false;
}

/* ---- questions ---- */

/* Returns what is known of the user; of a new one, in place of the one who has not asked for the
 * longest time. */
static struct asker *asker_of(uid_t user, u64 now)
{
	struct asker *oldest = askers;
	u32 i;

	for (i = 0; i < USERS; i++) {
		if (askers[i].at && askers[i].user == user)
			return &askers[i];
		if (askers[i].at < oldest->at)
			oldest = &askers[i];
	}
	*oldest = (struct asker){ user, AT_ONCE, now };
	return oldest;
}

bool homad_http_may_ask(int fd, u64 now)
{
	struct asker *asker;
	uid_t user = NOBODY;
	u64 more;
	u32 i;

	for (i = 0; i < HOMAD_HTTP_CONNECTIONS; i++)
		if (places[i].used && places[i].fd == fd)
			user = places[i].user;
	if (trusted(user))
		return true;
	asker = asker_of(user, now);
	more = (now - asker->at) * EACH_SECOND / 1000000000u;
	if (more) {
		asker->tokens = (u32)homa_min_u64(AT_ONCE, asker->tokens + more);
		/* What has passed since the last whole question counts for the next one. */
		asker->at += more * (1000000000u / EACH_SECOND);
	}
	if (!asker->tokens) {
		refused++;
		return false;
	}
	asker->tokens--;
	return true;
}

void homad_http_refuse(void)
{
	refused++;
}

u64 homad_http_refused(void)
{
	return refused;
}
