// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The memory of an attachment: memfds that homad makes, seals against any change of
 * size, and maps for itself before the application gets them. So the sizes that homad
 * remembers hold for ever. Only a part of each is backed by memory at first, and on its
 * user's account before it is there; backing.c sees to more. homad touches nothing else,
 * so no access of its own waits for a page. What the application touches of the rest is
 * its own memory, as any that it makes.
 *
 * The worker makes it and gives it back (worker.c).
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
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>
#include "attach.h"
#include "guard.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define PAGE 4096u
/* Segment 0 has the stages of all rings, and a little room for longer messages. */
#define STAGES ((u64)HOMA_SHM_SQS * HOMA_SHM_STAGE)
#define LONGER ((u64)64 << 10)

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

/* ---- the worker's ---- */

static int make_piece(struct homad_piece *piece)
{
	piece->fd = make_memfd(piece->what);
	if (piece->fd < 0)
		return piece->fd;
	if (ftruncate(piece->fd, (off_t)piece->bytes) ||
	    fcntl(piece->fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	piece->base = mmap(NULL, piece->bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED, piece->fd, 0);
	if (piece->base == MAP_FAILED) {
		piece->base = NULL;
		return -errno;
	}
	return 0;
}

/* Has memory behind more of the piece, at most @left bytes, which it lowers. */
static int back_piece(struct homad_piece *piece, u64 *left)
{
	u64 before = 0, bytes, there, more;
	int rc = 0;
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(piece->backed) && !rc; i++) {
		const struct homad_range *range = &piece->backed[i];

		bytes = range->to - range->from;
		there = homa_min_u64(piece->there - before, bytes);
		more = homa_min_u64(bytes - there, *left);
		rc = homad_populate(piece->base + range->from + there, more);
		piece->there += more;
		*left -= more;
		if (there + more < bytes)
			break;
		before += bytes;
	}
	return rc;
}

static u64 charge_of(const struct homad_piece *piece)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(piece->backed); i++)
		bytes += piece->backed[i].to - piece->backed[i].from;
	return bytes;
}

/* The tables have a mapping of their own, so that they have no memory until they are used,
 * and none that was used before. */
static int make_tables(struct homad_app *app)
{
	size_t bytes = homad_tables_bytes(app->max_rpcs);
	void *tables = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (tables == MAP_FAILED)
		return -errno;
	app->client_slots = tables;
	app->tables_bytes = bytes;
	return 0;
}

static bool make(struct homad_work *work)
{
	struct homad_making *making =
		homa_container_of(work, struct homad_making, work);
	u64 left = HOMAD_SLICE;

	if (making->op == HOMA_CTL_ATTACH && !making->app->client_slots) {
		making->app->pool_bytes = making->pieces[HOMA_CTL_FD_POOL].bytes;
		making->rc = make_tables(making->app);
		if (!making->rc)
			making->rc = homad_session_alloc(making->d, making->app);
	}
	while (making->at < making->num && !making->rc && left) {
		struct homad_piece *piece = &making->pieces[making->at];

		if (!piece->base)
			making->rc = make_piece(piece);
		if (!making->rc)
			making->rc = back_piece(piece, &left);
		if (piece->there == charge_of(piece))
			making->at++;
	}
	return making->at < making->num && !making->rc;
}

/* ---- making ---- */

static void guard(struct homad_attachment *a, const struct homad_piece *piece)
{
	/* An entry that is free again is not reused: a full table only means that this
	 * memory has no insurance. */
	if (a->num_guards < HOMA_ARRAY_SIZE(a->guards))
		a->guards[a->num_guards++] = (struct homad_guarded){
			.base = piece->base,
			.number = homad_guard_add(piece->base, piece->bytes,
						  &a->app),
		};
}

/* Frees pieces whose making failed or that nobody wants any more. */
static void unmake(struct homad *d, struct homad_making *making)
{
	u32 i;

	for (i = 0; i < making->num; i++) {
		struct homad_piece *piece = &making->pieces[i];

		homad_app_unmap(d, making->app, piece->base, piece->bytes,
				charge_of(piece));
		piece->base = NULL;
		if (piece->fd >= 0)
			close(piece->fd);
		piece->fd = -1;
	}
}

static void made(struct homad *d, struct homad_work *work)
{
	struct homad_making *making =
		homa_container_of(work, struct homad_making, work);
	struct homad_attachment *a = homad_attachment(making->app);
	struct homad_client *client = making->client;
	u32 i;

	if (client)
		client->making = NULL;
	if (!making->rc && !client)
		making->rc = -ECANCELED;
	if (making->rc)
		unmake(d, making);
	for (i = 0; i < making->num && !making->rc; i++)
		guard(a, &making->pieces[i]);
	if (client) {
		making->then(d, making);
		homad_client_answered(d, client);
	}
	/* An attachment that never began ends here. */
	if (making->op == HOMA_CTL_ATTACH && a->app.phase == HOMAD_APP_MAKING) {
		homad_session_free(&a->app);
		homad_app_drop(d, &a->app);
	} else {
		homad_work_over(d, &a->app);
	}
	free(making);
}

/* Charges the pieces and has them made. */
static int begin(struct homad *d, struct homad_client *client,
		 const struct homad_making *what, char *err, size_t errlen)
{
	struct homad_attachment *a = homad_attachment(what->app);
	struct homad_making *making;
	u64 bytes = 0;
	u32 i;
	int rc;

	for (i = 0; i < what->num; i++)
		bytes += charge_of(&what->pieces[i]);
	rc = homad_charge(d, a->user, bytes, err, errlen);
	if (rc)
		return rc;
	making = malloc(sizeof(*making));
	if (!making) {
		homad_settle(a->user, bytes);
		snprintf(err, errlen, "homad is out of memory");
		return -ENOMEM;
	}
	*making = *what;
	making->d = d;
	making->client = client;
	making->charged = bytes;
	making->work = (struct homad_work){ .run = make, .done = made };
	for (i = 0; i < making->num; i++)
		making->pieces[i].fd = -1;
	a->memory += bytes;
	a->works++;
	client->making = making;
	homad_work(d, &a->user->line, &making->work);
	return 0;
}

int homad_app_memory(struct homad *d, struct homad_client *client, u16 op,
		     const char *what, u64 bytes, u64 backed,
		     void (*then)(struct homad *d, struct homad_making *making),
		     char *err, size_t errlen)
{
	struct homad_making making = {
		.app = client->app,
		.op = op,
		.num = 1,
		.pieces[0] = { .what = what,
			       .bytes = bytes,
			       .backed[0].to = backed },
		.then = then,
	};

	return begin(d, client, &making, err, errlen);
}

/* ---- giving back ---- */

/**
 * struct unmapping - memory on its way back to the kernel
 * @work: The errand for the memory thread.
 * @base: Where the memory is.
 * @bytes: The size of the memory.
 * @charged: The number of its bytes that are on the account of @user.
 * @user: The user whose account is settled when the memory is gone.
 */
struct unmapping {
	struct homad_work work;
	void *base;
	u64 bytes, charged;
	struct homad_user *user;
};

static bool unmap(struct homad_work *work)
{
	struct unmapping *u = homa_container_of(work, struct unmapping, work);

	if (u->base)
		munmap(u->base, u->bytes);
	return false;
}

static void unmapped(struct homad *d, struct homad_work *work)
{
	struct unmapping *u = homa_container_of(work, struct unmapping, work);

	(void)d;
	homad_settle(u->user, u->charged);
	homad_user_put(u->user);
	free(u);
}

void homad_app_unmap(struct homad *d, struct homad_app *app, void *base,
		     u64 bytes, u64 charged)
{
	struct homad_attachment *a = homad_attachment(app);
	struct unmapping *u;
	u32 i;

	for (i = 0; base && i < a->num_guards; i++) {
		if (a->guards[i].base != base)
			continue;
		homad_guard_remove(a->guards[i].number);
		a->guards[i] = a->guards[--a->num_guards];
		break;
	}
	a->memory -= charged;
	u = malloc(sizeof(*u));
	if (!u) {
		if (base)
			munmap(base, bytes);
		homad_settle(a->user, charged);
		return;
	}
	*u = (struct unmapping){
		.work = { .run = unmap, .done = unmapped },
		.base = base,
		.bytes = bytes,
		.charged = charged,
		.user = a->user,
	};
	homad_work(d, &a->user->line, &u->work);
}

/* ---- an attachment ---- */

/* Copies a name, which the application chose and which goes into logs and tables. */
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

int homad_app_wires(struct homad_app *app, int *fds)
{
	int wake[2];

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	fds[HOMA_CTL_FD_WAKE] = wake[0];
	app->wake_fd = wake[1];
	app->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (app->kick_fd < 0)
		return -errno;
	/* The same descriptor is duplicated, because one is closed when the answer has been
	 * sent. */
	fds[HOMA_CTL_FD_KICK] = fcntl(app->kick_fd, F_DUPFD_CLOEXEC, 0);
	return fds[HOMA_CTL_FD_KICK] < 0 ? -errno : 0;
}

/* Makes the key by which the attachment's ids say nothing about its RPCs to other addresses,
 * nor about other attachments. */
static int make_key(struct homad_app *app, char *err, size_t errlen)
{
	ssize_t n = getrandom(app->id_key, sizeof(app->id_key), 0);

	if (n != (ssize_t)sizeof(app->id_key)) {
		snprintf(err, errlen, "homad gets no random numbers");
		return n < 0 ? -errno : -EIO;
	}
	app->id_key[0] |= 1; /* a key of zeros would mean that there is no key */
	return 0;
}

/* Returns the parts of the queues that are needed with one submission ring: all but the entries
 * of the other rings. */
static struct homad_piece queues(const struct homad_layout *l, u64 bytes)
{
	return (struct homad_piece){
		.what = "homa-queues",
		.bytes = bytes,
		.backed = { { 0, round_up(homad_layout_ring_end(l, 0)) },
			    { l->complete / PAGE * PAGE, bytes } },
	};
}

static int make_memory(struct homad *d, struct homad_client *client,
		       struct homad_app *app, u64 pool_bytes,
		       void (*then)(struct homad *d, struct homad_making *making),
		       char *err, size_t errlen)
{
	struct homad_attachment *a = homad_attachment(app);
	struct homad_making making = {
		.app = app,
		.op = HOMA_CTL_ATTACH,
		.num = 3,
		.then = then,
	};

	a->rings_backed = 1;
	a->pool_backed = homa_min_u32(HOMAD_POOL_FIRST,
				      (u32)(pool_bytes >> HOMA_BPAGE_SHIFT));
	making.pieces[HOMA_CTL_FD_QUEUES] = queues(&a->layout, a->queues_bytes);
	making.pieces[HOMA_CTL_FD_DATA] = (struct homad_piece){
		.what = "homa-data",
		.bytes = STAGES + LONGER,
		.backed = { { 0, HOMA_SHM_STAGE }, { STAGES, STAGES + LONGER } },
	};
	making.pieces[HOMA_CTL_FD_POOL] = (struct homad_piece){
		.what = "homa-pool",
		.bytes = pool_bytes,
		.backed[0].to = (u64)a->pool_backed << HOMA_BPAGE_SHIFT,
	};
	return begin(d, client, &making, err, errlen);
}

int homad_app_new(struct homad *d, struct homad_client *client, const char *name,
		  u64 pool_bytes, const struct homad_layout *layout,
		  void (*then)(struct homad *d, struct homad_making *making),
		  char *err, size_t errlen)
{
	struct homad_attachment *a = calloc(1, sizeof(*a));
	struct homad_app *app;
	int rc;

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
	app->user_polled = client->user->polled;
	app->bytes = &client->user->bytes;
	app->slow = &a->attached;
	app->phase = HOMAD_APP_MAKING;
	a->client = client;
	a->user = client->user;
	a->user->records++;
	homa_list_init(&a->attached.list);
	homa_list_init(&a->grown);
	homa_list_init(&a->refused);
	a->layout = *layout;
	a->queues_bytes = round_up(layout->bytes);
	a->attached.app = app;
	a->attached.since_ns = homa_clock_ns();
	homad_slow(d)->num_apps++;
	err[0] = '\0';
	rc = make_key(app, err, errlen);
	if (!rc)
		rc = make_memory(d, client, app, pool_bytes, then, err, errlen);
	if (!rc)
		client->app = app;
	else
		homad_app_drop(d, app);
	return rc;
}

/* Attachments are listed in the order of their numbers, by which tools find where they
 * were. This one mostly comes last, because few get their memory in another order than they
 * asked for it. */
void homad_app_begins(struct homad *d, struct homad_app *app)
{
	struct homa_list *apps = &homad_slow(d)->apps, *after = apps;

	while (after->prev != apps &&
	       homa_list_entry(after->prev, struct homad_attached, list)->app->id >
		       app->id)
		after = after->prev;
	homa_list_add_tail(after, &homad_attachment(app)->attached.list);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int homad_app_keep(struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	struct homad_kept *kept = malloc(sizeof(*kept));
	u32 i;

	if (!kept)
		return -ENOMEM;
	kept->queues = kept->pool = -1;
	for (i = 0; i < HOMA_SHM_HANDOVER_SEGMENTS; i++)
		kept->seg[i] = -1;
	a->kept = kept;
	a->user->kept++;
	return 0;
}

/* Descriptors are given out from the lowest on, and a quarter of them is for clients that
 * attach. */
bool homad_fd_is_for_others(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ||
	       (rlim_t)fd >= limit.rlim_cur - limit.rlim_cur / 4;
}

void homad_app_keep_fd(int *place, int fd)
{
	close_fd(*place);
	*place = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*place < 0 || !homad_fd_is_for_others(*place))
		return;
	close(*place);
	*place = -1;
}

static void drop_kept(struct homad_attachment *a)
{
	const struct homad_kept *kept = a->kept;
	u32 i;

	if (!kept)
		return;
	a->user->kept--;
	close_fd(kept->queues);
	close_fd(kept->pool);
	for (i = 0; i < HOMA_SHM_HANDOVER_SEGMENTS; i++)
		close_fd(kept->seg[i]);
	free(a->kept);
}

void homad_app_drop(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);
	u32 i;

	homad_backing_forget(d, app);
	if (a->drop_streams)
		a->drop_streams(d, app);
	if (app->queues)
		homad_app_unmap(d, app, app->queues, a->queues_bytes, 0);
	if (app->pool)
		homad_app_unmap(d, app, app->pool, app->pool_bytes, 0);
	for (i = 0; i < app->num_segs; i++)
		homad_app_unmap(d, app, app->seg[i].base, app->seg[i].bytes, 0);
	if (app->tables_bytes)
		homad_app_unmap(d, app, app->client_slots, app->tables_bytes, 0);
	/* The user's account is settled when all memory has been given back. */
	if (a->memory)
		homad_app_unmap(d, app, NULL, 0, a->memory);
	close_fd(app->wake_fd);
	close_fd(app->kick_fd);
	close_fd(app->ready_fd);
	drop_kept(a);
	homa_list_del(&a->attached.list);
	homad_slow(d)->num_apps--;
	a->user->rpcs -= app->max_rpcs;
	a->user->records--;
	homad_user_put(a->user);
	free(a);
}
