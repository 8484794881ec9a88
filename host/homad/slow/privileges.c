// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Privileges. To take a device homad needs CAP_NET_ADMIN, CAP_NET_RAW and
 * CAP_BPF (the XDP program and its sockets), CAP_IPC_LOCK for their buffers, and
 * at best CAP_SYS_RESOURCE for its limits. Once devices are open little is
 * left: asking the kernel to resolve a neighbour is CAP_NET_ADMIN's, and before
 * Linux 5.19 changing the XDP program's maps CAP_BPF's. With UDP alone nothing is
 * left at all. Whoever takes over homad after that has no more than these, as
 * config.user if one is set, and no way back (no_new_privs).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"
#include "privileges.h"

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* The number of descriptors of an attachment: connection, process, wake, kick,
 * readiness. */
#define FDS_PER_APP 5u
#define FDS_OWN (256u + 2 * HOMAD_FRESH)

bool homad_privileged(void)
{
	cap_flag_value_t value = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (caps) {
		cap_get_flag(caps, CAP_NET_ADMIN, CAP_EFFECTIVE, &value);
		cap_free(caps);
	}
	return value == CAP_SET;
}

void homad_limits_raise(struct homad *d)
{
	rlim_t want = d->config.quota.total_attachments * FDS_PER_APP +
		      FDS_OWN + d->config.tcp_ports;
	struct rlimit limit, all = { RLIM_INFINITY, RLIM_INFINITY };

	/* For the buffers of AF_XDP; with CAP_IPC_LOCK it does not matter. */
	if (setrlimit(RLIMIT_MEMLOCK, &all))
		homad_log(HOMAD_DEBUG, "the limit of locked memory stays");
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want;
	if (limit.rlim_max < want)
		limit.rlim_max = want;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		homad_log(HOMAD_WARNING,
			  "file descriptors suffice for fewer handles than quota.total_attachments; raise LimitNOFILE (ulimit -Hn)\tlimit=%llu wanted=%llu",
			  (unsigned long long)limit.rlim_cur,
			  (unsigned long long)want);
}

/* Sockets were made as root; their owner must be able to remove them. */
static int give_directory(const char *path, uid_t uid, gid_t gid)
{
	char directory[128], *slash;
	struct stat st;
	int fd, rc = 0;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = '\0';
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Only a folder of homad's own is changed: never /run, /tmp or somebody's home. */
	if (strcmp(directory, "/run/homa") == 0 && fstat(fd, &st) == 0 &&
	    st.st_uid == 0 && fchown(fd, uid, gid))
		rc = -errno;
	close(fd);
	return rc;
}

static int become(struct homad *d, char *err, size_t errlen)
{
	const struct homad_config *c = &d->config;
	const struct passwd *user = getpwnam(c->user);

	if (!user) {
		snprintf(err, errlen,
			 "there is no user %s (process.user); make it: useradd --system %s",
			 c->user, c->user);
		return -ENOENT;
	}
	if (user->pw_uid == geteuid())
		return 0;
	if (give_directory(c->socket, user->pw_uid, user->pw_gid) ||
	    prctl(PR_SET_KEEPCAPS, 1) || initgroups(user->pw_name, user->pw_gid) ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid)) {
		snprintf(err, errlen,
			 "cannot become user %s (process.user): %s; start homad as root or as that user",
			 c->user, strerror(errno));
		return -EPERM;
	}
	return 0;
}

/* Returns how many of the first capabilities of homad_privileges_drop() are needed: none for UDP,
 * one for a packet socket or a message NIC, two for AF_XDP. */
static int wants(const struct homad *d)
{
	int most = 0;
	u32 i;

	for (i = 0; i < d->num_ports; i++)
		if (d->ports[i].nic && !d->ports[i].encap)
			most = most == 2 || homad_port_tcp(&d->ports[i]) ? 2 : 1;
	return most;
}

/* Keeps the wanted capabilities and drops all others; returns 0, or -EPERM if homad does not
 * have them. */
static int keep(const cap_value_t *wanted, int n)
{
	cap_t caps = cap_get_proc(), kept = cap_init();
	cap_flag_value_t value;
	int i, rc = -EPERM;

	if (!caps || !kept)
		goto out;
	for (i = 0; i < n; i++) {
		if (cap_get_flag(caps, wanted[i], CAP_PERMITTED, &value) ||
		    value != CAP_SET)
			continue;
		cap_set_flag(kept, CAP_PERMITTED, 1, &wanted[i], CAP_SET);
		cap_set_flag(kept, CAP_EFFECTIVE, 1, &wanted[i], CAP_SET);
	}
	cap_reset_ambient();
	rc = cap_set_proc(kept) ? -EPERM : 0;
out:
	if (caps)
		cap_free(caps);
	if (kept)
		cap_free(kept);
	return rc;
}

int homad_privileges_drop(struct homad *d, char *err, size_t errlen)
{
	static const cap_value_t wanted[] = { CAP_NET_ADMIN, CAP_BPF };
	static const char *const names[] = { "none", "CAP_NET_ADMIN",
					     "CAP_NET_ADMIN,CAP_BPF" };
	int wants_now = wants(d);
	int rc = 0;

	if (d->config.user[0])
		rc = become(d, err, errlen);
	if (!rc && (keep(wanted, wants_now) ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) {
		snprintf(err, errlen, "cannot give up privileges: %s",
			 strerror(errno));
		rc = -EPERM;
	}
	if (!rc)
		homad_log(HOMAD_DEBUG, "privileges given up\tuid=%u kept=%s",
			  (unsigned int)geteuid(), names[wants_now]);
	return rc;
}
