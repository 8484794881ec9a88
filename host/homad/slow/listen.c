// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The attach socket, and that there is one homad for each network namespace.
 *
 * Two things can be taken. The namespace: an abstract socket, whose names belong
 * to the network namespace and vanish with their owner; homads with different
 * paths find out about each other there. And the path: a lock file beside it
 * tells a living owner from a dead one, whose socket is replaced. Somebody
 * without privileges could claim a namespace's name first; a homad with
 * CAP_NET_ADMIN does not let itself be stopped by that.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"
#include "privileges.h"

#define CLAIM "homad-one-per-network-namespace"
#define BACKLOG 1024

static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	return fd < 0 ? -errno : fd;
}

/* ---- the namespace ---- */

/* Takes a connection, whose maker only wants to know who we are (SO_PEERCRED). */
static void claim_ready(struct homad *d, struct homad_source *source, u32 events)
{
	int fd;

	(void)d;
	(void)events;
	while ((fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
}

static bool claim_owner(const struct sockaddr_un *addr, socklen_t length,
			struct ucred *cred)
{
	socklen_t size = sizeof(*cred);
	int fd = make_socket();
	bool known = false;

	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)addr, length) == 0)
		known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &size) == 0;
	close(fd);
	return known;
}

int homad_claim(struct homad *d, char *err, size_t errlen)
{
	struct homad_source *claim = &homad_attach(d)->claim;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				       1 + strlen(CLAIM));
	struct ucred cred = { 0 };

	memcpy(addr.sun_path + 1, CLAIM, strlen(CLAIM));
	claim->ready = claim_ready;
	claim->fd = make_socket();
	if (claim->fd < 0) {
		snprintf(err, errlen, "cannot make a UNIX socket: %s",
			 strerror(-claim->fd));
		return claim->fd;
	}
	if (bind(claim->fd, (struct sockaddr *)&addr, length) == 0 &&
	    listen(claim->fd, 16) == 0)
		return homad_watch(d, claim, EPOLLIN);
	close(claim->fd);
	claim->fd = -1;
	if (!claim_owner(&addr, length, &cred)) {
		snprintf(err, errlen,
			 "another homad runs in this network namespace, which can have only one");
		return -EADDRINUSE;
	}
	if (homad_privileged() && cred.uid != 0 && cred.uid != geteuid()) {
		homad_log(HOMAD_WARNING,
			  "a process of another user claims to be this network namespace's homad; going on without regard to it\tpid=%d uid=%u",
			  cred.pid, (unsigned int)cred.uid);
		return 0;
	}
	snprintf(err, errlen,
		 "one homad per network namespace: pid %d is running; stop it, or use it",
		 cred.pid);
	return -EADDRINUSE;
}

/* ---- the path ---- */

static int make_directory(const char *path, char *err, size_t errlen)
{
	char *slash, directory[128];

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = '\0';
	if (mkdir(directory, 0755) == 0 || errno == EEXIST)
		return 0;
	snprintf(err, errlen,
		 "cannot make the directory %s: %s; make it, or choose another place with --socket",
		 directory, strerror(errno));
	return -EACCES;
}

/* Takes the lock of the socket. The lock ends with its owner, so it tells whether another
 * homad that has the socket is still running. */
static int take_lock(struct homad_attach *attach, const char *path, char *err,
		     size_t errlen)
{
	char name[128], text[32] = "";
	ssize_t n;

	snprintf(name, sizeof(name), "%s.lock", path);
	attach->lock_fd =
		open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (attach->lock_fd < 0) {
		snprintf(err, errlen,
			 "cannot open %s: %s; its directory must be writable for homad, or choose another place with --socket",
			 name, strerror(errno));
		return -EACCES;
	}
	if (flock(attach->lock_fd, LOCK_EX | LOCK_NB) == 0) {
		n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
		if (ftruncate(attach->lock_fd, 0) ||
		    pwrite(attach->lock_fd, text, (size_t)n, 0) != n)
			homad_log(HOMAD_DEBUG, "cannot write our pid into %s",
				  name);
		return 0;
	}
	n = pread(attach->lock_fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	snprintf(err, errlen,
		 "another homad (pid %d) serves %s; stop it, or choose another place with --socket",
		 atoi(text), path);
	close(attach->lock_fd);
	attach->lock_fd = -1;
	return -EADDRINUSE;
}

/* Removes a socket that is there. The lock is ours, so it belongs to a dead homad, or to no
 * homad. */
static int clear_path(const struct sockaddr_un *addr, char *err, size_t errlen)
{
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, errlen,
			 "%s exists and is no socket; remove it, or choose another place with --socket",
			 addr->sun_path);
		return -EEXIST;
	}
	fd = make_socket();
	if (fd < 0)
		return fd;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno :
									 0;
	close(fd);
	if (rc == 0 || rc == -EAGAIN || rc == -EPROTOTYPE) {
		snprintf(err, errlen,
			 "another program listens on %s; stop it, or choose another place with --socket",
			 addr->sun_path);
		return -EADDRINUSE;
	}
	homad_log(HOMAD_INFO,
		  "replacing the socket of a homad that has died\tpath=%s",
		  addr->sun_path);
	return unlink(addr->sun_path) ? -errno : 0;
}

static int set_group(const struct homad_config *c, char *err, size_t errlen)
{
	struct group *group;

	if (!c->socket_group[0])
		return 0;
	group = getgrnam(c->socket_group);
	if (group && chown(c->socket, (uid_t)-1, group->gr_gid) == 0)
		return 0;
	snprintf(err, errlen, "cannot give %s to group %s: %s", c->socket,
		 c->socket_group, group ? strerror(errno) : "no such group");
	return -EPERM;
}

int homad_attach_listen(struct homad *d, char *err, size_t errlen)
{
	struct homad_attach *attach = homad_attach(d);
	const struct homad_config *c = &d->config;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc;

	memcpy(addr.sun_path, c->socket, sizeof(addr.sun_path) - 1);
	rc = make_directory(c->socket, err, errlen);
	if (!rc)
		rc = take_lock(attach, c->socket, err, errlen);
	if (!rc)
		rc = clear_path(&addr, err, errlen);
	if (rc)
		return rc;
	attach->listen.ready = homad_accept;
	attach->listen.fd = make_socket();
	if (attach->listen.fd < 0)
		return attach->listen.fd;
	/* No client connects before owner and mode are right. */
	mask = umask(0777);
	rc = bind(attach->listen.fd, (struct sockaddr *)&addr, sizeof(addr)) ?
		     -errno :
		     0;
	umask(mask);
	if (rc) {
		snprintf(err, errlen,
			 "cannot make the attach socket %s: %s; choose another place with --socket",
			 c->socket, strerror(-rc));
		return rc;
	}
	attach->bound = true;
	rc = set_group(c, err, errlen);
	if (!rc && (chmod(c->socket, c->socket_mode) ||
		    listen(attach->listen.fd, BACKLOG)))
		rc = -errno;
	return rc ? rc : homad_watch(d, &attach->listen, EPOLLIN);
}

static void close_source(struct homad *d, struct homad_source *source)
{
	homad_unwatch(d, source);
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}

void homad_attach_listen_stop(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	close_source(d, &attach->listen);
	close_source(d, &attach->claim);
	if (attach->bound)
		unlink(d->config.socket);
	attach->bound = false;
	/* The lock file stays: the next homad may have opened it already. */
	if (attach->lock_fd >= 0)
		close(attach->lock_fd);
	attach->lock_fd = -1;
}
