// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The memory of an attachment: memfds that homad makes, fills, seals against
 * any change of size, and maps for itself before the application gets them. So
 * the sizes that homad remembers hold for ever, no access of its own waits for a
 * page, and everything is on its user's account before it is there.
 *
 * Descriptors: the application shares the file description of what it gets and
 * may clear its O_NONBLOCK. homad therefore never reads the kick eventfd (it
 * waits for edges), and wakes applications through pipes, whose writing end is
 * a description of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach.h"
#include "guard.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define PAGE 4096u
/* Segment 0: the stages of all rings, and two messages of the longest kind. */
#define DATA_BYTES ((u64)HOMA_SHM_SQS * HOMA_SHM_STAGE + ((u64)2 << 20))

static u64 round_up(u64 bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int make_memfd(const char *what)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(what, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(what, flags);
	return fd < 0 ? -errno : fd;
}

static int fill(int fd, u64 bytes)
{
	if (ftruncate(fd, (off_t)bytes) || fallocate(fd, 0, 0, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	return 0;
}

int homad_app_memory(struct homad *d, struct homad_app *app, const char *what,
		     u64 bytes, u8 **base, int *fd, char *err, size_t errlen)
{
	struct homad_attachment *a = homad_attachment(app);
	int rc;

	rc = homad_charge(d, a->user, bytes, err, errlen);
	if (rc)
		return rc;
	*fd = make_memfd(what);
	if (*fd < 0) {
		rc = *fd;
		goto no_file;
	}
	rc = fill(*fd, bytes);
	if (rc)
		goto no_memory;
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, *fd, 0);
	if (*base == MAP_FAILED) {
		rc = -errno;
		goto no_memory;
	}
	a->memory += bytes;
	/* Holes for later are not left: a full table only means no insurance. */
	if (a->num_guards < HOMA_ARRAY_SIZE(a->guards))
		a->guards[a->num_guards++] = (struct homad_guarded){
			.base = *base,
			.ticket = homad_guard_add(*base, bytes, app),
		};
	return 0;
no_memory:
	close(*fd);
no_file:
	*fd = -1;
	a->user->memory -= bytes;
	snprintf(err, errlen, "cannot get %llu KiB of shared memory: %s",
		 (unsigned long long)bytes >> 10, strerror(-rc));
	return rc;
}

void homad_app_unmap(struct homad_app *app, void *base, u64 bytes)
{
	struct homad_attachment *a = homad_attachment(app);
	u32 i;

	if (!base)
		return;
	for (i = 0; i < a->num_guards; i++) {
		if (a->guards[i].base != base)
			continue;
		homad_guard_remove(a->guards[i].ticket);
		a->guards[i] = a->guards[--a->num_guards];
		break;
	}
	munmap(base, bytes);
	a->memory -= bytes;
	a->user->memory -= bytes;
}

/* What comes from an application and goes into logs and tables. */
static void copy_name(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i]; i++)
		to[i] = from[i] > ' ' && from[i] < 127 && from[i] != '=' &&
					from[i] != '"' && from[i] != '\\' ?
				from[i] :
				'_';
	to[i] = '\0';
	if (!i)
		snprintf(to, size, "?");
}

static int make_wires(struct homad_app *app, int *fds)
{
	int wake[2];

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	fds[HOMA_CTL_FD_WAKE] = wake[0];
	app->wake_fd = wake[1];
	app->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (app->kick_fd < 0)
		return -errno;
	/* The same number twice: one is closed when the answer has gone. */
	fds[HOMA_CTL_FD_KICK] = fcntl(app->kick_fd, F_DUPFD_CLOEXEC, 0);
	return fds[HOMA_CTL_FD_KICK] < 0 ? -errno : 0;
}

static int make_memory(struct homad *d, struct homad_app *app, u64 pool_bytes,
		       int *fds, char *err, size_t errlen)
{
	struct homad_attachment *a = homad_attachment(app);
	u8 *base;
	int rc;

	rc = homad_app_memory(d, app, "homa-queues", a->queues_bytes, &base,
			      &fds[HOMA_CTL_FD_QUEUES], err, errlen);
	if (rc)
		return rc;
	app->queues = (struct homa_shm_queues *)base;
	app->queues->h.magic = HOMA_SHM_MAGIC;
	app->queues->h.version = HOMA_SHM_VERSION;
	app->queues->h.bytes = a->queues_bytes;
	app->queues->h.sqs = 1;
	rc = homad_app_memory(d, app, "homa-data", DATA_BYTES,
			      &app->seg[0].base, &fds[HOMA_CTL_FD_DATA], err,
			      errlen);
	if (rc)
		return rc;
	app->seg[0].bytes = (u32)DATA_BYTES;
	app->num_segs = 1;
	a->send_bytes = DATA_BYTES;
	rc = homad_app_memory(d, app, "homa-pool", pool_bytes, &app->pool,
			      &fds[HOMA_CTL_FD_POOL], err, errlen);
	if (!rc)
		app->pool_bytes = pool_bytes;
	return rc;
}

int homad_app_new(struct homad *d, struct homad_client *client,
		  const char *name, u64 pool_bytes, int *fds,
		  struct homad_app **out, char *err, size_t errlen)
{
	struct homad_attachment *a = calloc(1, sizeof(*a));
	struct homad_app *app;
	int i, rc;

	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++)
		fds[i] = -1;
	if (!a) {
		snprintf(err, errlen, "homad is out of memory");
		return -ENOMEM;
	}
	app = &a->app;
	app->id = ++homad_attach(d)->next_id;
	copy_name(app->name, name, sizeof(app->name));
	app->pid = client->pid;
	app->uid = client->uid;
	app->gid = client->gid;
	app->wake_fd = app->kick_fd = app->ready_fd = -1;
	app->max_rpcs = homad_share_rpcs(d, client->user);
	client->user->rpcs += app->max_rpcs;
	app->owner = &client->user->owner;
	app->slow = &a->attached;
	a->client = client;
	a->user = client->user;
	a->queues_bytes = round_up(sizeof(struct homa_shm_queues));
	a->attached.app = app;
	a->attached.since_ns = homa_clock_ns();
	homa_list_add_tail(&homad_slow(d)->apps, &a->attached.list);
	homad_slow(d)->num_apps++;
	err[0] = '\0';
	rc = make_wires(app, fds);
	if (!rc)
		rc = make_memory(d, app, pool_bytes, fds, err, errlen);
	if (!rc) {
		*out = app;
		return 0;
	}
	if (!err[0])
		snprintf(err, errlen, "homad has no file descriptor left: %s",
			 strerror(-rc));
	for (i = 0; i < HOMA_CTL_ATTACH_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	homad_app_drop(d, app);
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void homad_app_drop(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	u32 i;

	homad_app_unmap(app, app->queues, a->queues_bytes);
	homad_app_unmap(app, app->pool, app->pool_bytes);
	for (i = 0; i < app->num_segs; i++)
		homad_app_unmap(app, app->seg[i].base, app->seg[i].bytes);
	close_fd(app->wake_fd);
	close_fd(app->kick_fd);
	close_fd(app->ready_fd);
	homa_list_del(&a->attached.list);
	homad_slow(d)->num_apps--;
	a->user->rpcs -= app->max_rpcs;
	homad_user_put(a->user);
	free(a);
}
