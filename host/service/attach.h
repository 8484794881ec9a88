/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The slow path's side of attachments: who is connected (a *client*), what an
 * attachment's memory is, and who has used how much (a *user*). Only the main
 * thread comes here.
 *
 * Three lives that begin and end apart: a client is a connection to the attach
 * socket; its attachment outlives it until the fast path has ended its RPCs; a
 * user's account lasts as long as either is there.
 */
#ifndef HOMAD_ATTACH_H
#define HOMAD_ATTACH_H

#include "slowpath.h"

#define HOMAD_USER_BUCKETS 256u
#define HOMAD_FRESH_PER_USER 128u /* connections that have not attached yet */
#define HOMAD_FRESH 512u
#define HOMAD_GROUPS 64u /* supplementary groups that rules can match */

/**
 * struct homad_user - account of a user id
 * @fresh: connections that have not attached. @attachments: open.
 * @memory: bytes of shared memory, and of answers not yet sent.
 * @rpcs: sum of max_rpcs.
 * @owner: the engine's account of its sockets.
 */
struct homad_user {
	struct homa_list list;
	uid_t uid;
	u32 fresh;
	u32 attachments;
	u64 memory;
	u64 rpcs;
	struct homa_owner owner;
};

/**
 * struct homad_outbox - an answer on its way; one at a time, no request is read
 *	before it has gone
 * @answer: first packet, with @fds, which are closed when it has been sent.
 * @records: the packets after it, HOMA_CTL_BATCH records of @record bytes each.
 */
struct homad_outbox {
	bool pending;
	bool first_sent;
	struct homa_ctl_answer answer;
	int fds[HOMA_CTL_ATTACH_FDS];
	u32 num_fds;
	u8 *records;
	size_t bytes, sent, record;
};

/**
 * struct homad_client - a connection to the attach socket
 * @list: in homad_attach.fresh or .clients.
 * @conn: the connection; @process: its pidfd, fd -1 if there is none.
 * @uid, @gid, @groups: as the kernel says.
 * @app: NULL before it has attached.
 * @pools: how often its receive pool was exchanged.
 * @hopeless: to be dropped when the outbox is empty.
 * @waiting: in homad_attach.waiting while it asks too often; @paid_until: ns, see
 *	throttle.c.
 */
struct homad_client {
	struct homa_list list;
	struct homad_source conn;
	struct homad_source process;
	struct homad_user *user;
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t groups[HOMAD_GROUPS];
	u32 num_groups;
	struct homad_app *app;
	u32 pools;
	bool hopeless;
	struct homa_list waiting;
	u64 paid_until;
	struct homad_outbox out;
};

/**
 * struct homad_attachment - homad_app with what only the slow path knows of it
 * @client: NULL when the connection has ended.
 * @memory: bytes charged to @user.
 * @send_bytes: of its data segments.
 * @new_ready_fd, @new_ready_every: on their way into @app.
 */
struct homad_attachment {
	struct homad_app app;
	struct homad_attached attached;
	struct homad_client *client;
	struct homad_user *user;
	u64 memory;
	u64 send_bytes;
	size_t queues_bytes;
	struct homad_guarded {
		void *base;
		u32 ticket;
	} guards[HOMA_SHM_SEGMENTS + 3]; /* guard.c */
	u32 num_guards;
	int new_ready_fd;
	bool new_ready_every;
};

/**
 * struct homad_attach - homad_slow.attach
 * @listen: the attach socket. @claim: this network namespace is ours.
 * @dead: homad.dead_fd.
 * @lock_fd: PATH.lock, held while we live.
 * @spare_fd: given up for a moment to refuse a connection when descriptors are
 *	used up.
 * @fresh: clients that have not attached, oldest first; @num_fresh.
 * @clients: those that have.
 * @waiting: those that ask too often; @pause: timer that lets them go on.
 */
struct homad_attach {
	struct homad *d;
	struct homad_source listen;
	struct homad_source claim;
	struct homad_source dead;
	int lock_fd;
	int spare_fd;
	bool bound;
	struct homa_list fresh;
	u32 num_fresh;
	struct homa_list clients;
	struct homa_list waiting;
	struct homad_source pause;
	struct homa_list users[HOMAD_USER_BUCKETS];
	u64 next_id;
};

static inline struct homad_attach *homad_attach(struct homad *d)
{
	return homad_slow(d)->attach;
}

static inline struct homad_attachment *homad_attachment(struct homad_app *app)
{
	return homa_container_of(app, struct homad_attachment, app);
}

/* ---- listen.c: the attach socket, and that it is the only one ---- */

/** homad_claim() - be the only homad of this network namespace; 0, -EADDRINUSE. */
int homad_claim(struct homad *d, char *err, size_t errlen);
/** homad_attach_listen() - make the attach socket; a dead daemon's is replaced. */
int homad_attach_listen(struct homad *d, char *err, size_t errlen);
void homad_attach_listen_stop(struct homad *d);

/* ---- attach.c: clients ---- */

void homad_accept(struct homad *d, struct homad_source *source, u32 events);
/** homad_client_free() - drop the connection; its attachment begins to end. */
void homad_client_free(struct homad *d, struct homad_client *client);
/** homad_client_attached() - it is not fresh any more. */
void homad_client_attached(struct homad *d, struct homad_client *client);

/** homad_client_watch() - wait for what can be done for it. */
int homad_client_watch(struct homad *d, struct homad_client *client);

/* ---- throttle.c: not too many requests ---- */

int homad_throttle_start(struct homad *d);
void homad_throttle_stop(struct homad *d);
/** homad_throttle() - may it ask? true: not now, it is among those waiting. */
bool homad_throttle(struct homad *d, struct homad_client *client);
/** homad_throttle_count() - it has asked. */
void homad_throttle_count(struct homad_client *client);

/* ---- ctl.c: requests ---- */

/** homad_ctl() - work off one request of @length bytes (more than 72: too long). */
void homad_ctl(struct homad *d, struct homad_client *client,
	       const struct homa_ctl_request *request, size_t length);

/* ---- answer.c: answers ---- */

/**
 * homad_answer() - put an answer into the outbox
 * @fds: closed after sending, whatever happens. @records: @count of @record
 *	bytes, malloc()ed, freed after sending.
 */
void homad_answer(struct homad_client *client,
		  const struct homa_ctl_answer *answer, const int *fds,
		  u32 num_fds, void *records, size_t count, size_t record);
/** homad_answer_error() - the same for an error, with a sentence. */
void homad_answer_error(struct homad_client *client, u16 op, int error,
			const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/** homad_answer_flush() - send; 0: all gone, 1: later, else the client is gone. */
int homad_answer_flush(struct homad_client *client);
void homad_answer_drop(struct homad_client *client);

/* ---- app.c: memory of an attachment ---- */

/**
 * homad_app_new() - memory and descriptors for @client's attachment
 * @pool_bytes: multiple of 64 KiB.
 * @fds: HOMA_CTL_ATTACH_FDS descriptors for the application; the caller's.
 */
int homad_app_new(struct homad *d, struct homad_client *client,
		  const char *name, u64 pool_bytes, int *fds,
		  struct homad_app **out, char *err, size_t errlen);
/** homad_app_drop() - free it; nothing in the fast path knows it (any more). */
void homad_app_drop(struct homad *d, struct homad_app *app);
/**
 * homad_app_memory() - @bytes of shared memory for @app, charged, sealed, mapped
 * @base: where homad has it. @fd: for the application; the caller's to close.
 */
int homad_app_memory(struct homad *d, struct homad_app *app, const char *what,
		     u64 bytes, u8 **base, int *fd, char *err, size_t errlen);
/** homad_app_unmap() - give memory back; @base NULL is harmless. */
void homad_app_unmap(struct homad_app *app, void *base, u64 bytes);

/* ---- quota.c: accounts and rules ---- */

struct homad_user *homad_user_get(struct homad *d, uid_t uid);
/** homad_user_put() - forget the account if nothing is left in it. */
void homad_user_put(struct homad_user *user);
/** homad_charge() - 0, or -EDQUOT with a sentence. */
int homad_charge(struct homad *d, struct homad_user *user, u64 bytes, char *err,
		 size_t errlen);
/** homad_share_rpcs() - how many RPCs a new attachment of @user gets. */
u32 homad_share_rpcs(struct homad *d, const struct homad_user *user);
/** homad_may_attach() - rules and numbers; 0, -EACCES, -EDQUOT, -EUSERS. */
int homad_may_attach(struct homad *d, const struct homad_client *client,
		     char *err, size_t errlen);
int homad_may_bind(struct homad *d, const struct homad_client *client, u16 port,
		   char *err, size_t errlen);
/** homad_may_serve() - take requests on the port that it has? */
int homad_may_serve(struct homad *d, const struct homad_client *client, u16 port,
		    char *err, size_t errlen);

#endif
