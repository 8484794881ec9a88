/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the slow path's files about attachments do for each other. Only the main thread
 * comes here, but for what is said to be the worker's.
 *
 * Written by: control, except while a piece of work is the memory thread's.
 */
#ifndef HOMAD_ATTACH_H
#define HOMAD_ATTACH_H

#include "attachment.h"

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
/** homad_client_attached() - note that the client has attached. */
void homad_client_attached(struct homad *d, struct homad_client *client);
/**
 * homad_client_unattached() - note that the client has no attachment, because that failed.
 */
void homad_client_unattached(struct homad *d, struct homad_client *client);
/** homad_client_answered() - send an answer that took a while, and read requests again. */
void homad_client_answered(struct homad *d, struct homad_client *client);

/** homad_client_watch() - have the loop report the events that the client waits for. */
int homad_client_watch(struct homad *d, struct homad_client *client);

/* ---- throttle.c: not too many requests ---- */

int homad_throttle_start(struct homad *d);
void homad_throttle_stop(struct homad *d);
/**
 * homad_throttle() - has the client's user asked too often? If so, it is put into
 * homad_attach.waiting.
 */
bool homad_throttle(struct homad *d, struct homad_client *client);

/* ---- ctl.c, ctl_attach.c: requests ---- */

/* Handles a request. */
typedef void homad_op(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r);
/**
 * homad_ctl_serve() - have @serve handle requests @op; call it before there are clients.
 */
void homad_ctl_serve(u16 op, homad_op *serve);

/** homad_fill_attached() - fill in what the answer to ATTACH says of @app. */
void homad_fill_attached(struct homad *d, struct homad_app *app,
			 struct homa_ctl_answer *a);

/** homad_pool_asked() - get the bytes of the receive pool that @r asks for; false: the
 *  request is refused and answered. */
bool homad_pool_asked(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r, u64 *bytes);

/** homad_ctl() - handle one request of @length bytes (more than 72: too long). */
void homad_ctl(struct homad *d, struct homad_client *client,
	       const struct homa_ctl_request *request, size_t length);

/* ---- answer.c: answers ---- */

/**
 * homad_answer() - put an answer into the outbox
 * @fds: descriptors, which are closed after sending, whatever happens. @records: @count
 *	records of @record bytes, malloc()ed, freed after sending.
 */
void homad_answer(struct homad_client *client,
		  const struct homa_ctl_answer *answer, const int *fds,
		  u32 num_fds, void *records, size_t count, size_t record);
/** homad_answer_error() - do the same for an error, with a sentence. */
void homad_answer_error(struct homad_client *client, u16 op, int error,
			const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/**
 * homad_answer_flush() - send the answer; 0: all is sent, 1: more later, else the client
 * has gone.
 */
int homad_answer_flush(struct homad_client *client);
void homad_answer_drop(struct homad_client *client);

/* ---- app.c: memory of an attachment ---- */

/**
 * struct homad_piece - shared memory that is being made
 * @what: its name, for tools.
 * @bytes: its size.
 * @backed: ranges, in bytes, that have memory from the beginning.
 * @base: address at which homad has mapped it.
 * @there: how many bytes of @backed have it already.
 * @fd: descriptor for the application.
 */
struct homad_piece {
	const char *what;
	u64 bytes;
	struct homad_range {
		/* The range, from its first byte to behind its last. */
		u64 from, to;
	} backed[2];
	u8 *base;
	u64 there;
	int fd;
};

/**
 * struct homad_making - memory that a client waits for
 * @work: the errand for the memory thread.
 * @d: the daemon.
 * @client: the client; NULL when it has gone.
 * @app: the attachment that the memory is for.
 * @op: the client's request.
 * @num: the number of entries of @pieces that are used.
 * @pieces: the memory.
 * @at: the entry of @pieces that is being made.
 * @charged: the number of bytes that are on the account of the attachment already.
 * @rc: 0, or the error of the memory thread.
 * @then: called on the main thread with @rc set, if there is still a client. The pieces
 *	belong to @app if @rc is 0, and the descriptors to @then. Without a client all of
 *	them are freed.
 */
struct homad_making {
	struct homad_work work;
	struct homad *d;
	struct homad_client *client;
	struct homad_app *app;
	u16 op;
	u32 num, at;
	struct homad_piece pieces[3];
	u64 charged;
	int rc;
	void (*then)(struct homad *d, struct homad_making *making);
};

/**
 * homad_app_new() - begin to make @client->app and the memory that it needs
 * @pool_bytes: multiple of 64 KiB. @layout: of its queues. @then: see struct
 *	homad_making; pieces are queues, data, pool, and the descriptors of
 *	homad_app_wires() are for the answer.
 */
int homad_app_new(struct homad *d, struct homad_client *client, const char *name,
		  u64 pool_bytes, const struct homad_layout *layout,
		  void (*then)(struct homad *d, struct homad_making *making),
		  char *err, size_t errlen);
/**
 * homad_app_begins() - note that the fast path knows the attachment, so that tools may see
 * it.
 */
void homad_app_begins(struct homad *d, struct homad_app *app);
/**
 * homad_app_wires() - make the pipe and the eventfd: HOMA_CTL_FD_WAKE, HOMA_CTL_FD_KICK.
 */
int homad_app_wires(struct homad_app *app, int *fds);
/**
 * homad_app_keep() - keep the descriptors of the attachment's memory, so that it can be
 * handed over; 0 or -ENOMEM.
 */
int homad_app_keep(struct homad_app *app);
/** homad_fd_is_for_others() - must this descriptor be closed again, because it is one of the last,
 *  which are for clients that attach? */
bool homad_fd_is_for_others(int fd);
/** homad_app_keep_fd() - keep @fd in @place of homad_attachment.kept; -1 there: homad has too few
 *  descriptors left. */
void homad_app_keep_fd(int *place, int fd);
/** homad_app_drop() - free the attachment, which the fast path does not know any more. */
void homad_app_drop(struct homad *d, struct homad_app *app);
/**
 * homad_app_memory() - begin to make @bytes of shared memory for @client's attachment,
 * of which the first @backed are there from the begin. 0 or -EDQUOT, -ENOMEM.
 */
int homad_app_memory(struct homad *d, struct homad_client *client, u16 op,
		     const char *what, u64 bytes, u64 backed,
		     void (*then)(struct homad *d, struct homad_making *making),
		     char *err, size_t errlen);
/** homad_app_unmap() - give memory back, of which @charged bytes were charged. */
void homad_app_unmap(struct homad *d, struct homad_app *app, void *base,
		     u64 bytes, u64 charged);

/* ---- backing.c: more memory by use, and less ---- */

int homad_backing_start(struct homad *d);
void homad_backing_stop(struct homad *d);
/** homad_backing_wanted() - do what the fast path asked for. */
void homad_backing_wanted(struct homad *d);
/** homad_backing_forget() - forget @app, which ends. */
void homad_backing_forget(struct homad *d, struct homad_app *app);

/* ---- quota.c: accounts and rules ---- */

struct homad_user *homad_user_get(struct homad *d, uid_t uid);
/** homad_user_put() - forget the account if nothing is left in it. */
void homad_user_put(struct homad_user *user);
/** homad_users_sweep() - forget accounts of a bucket of which nothing is left, as the last
 *  peer has gone meanwhile. */
void homad_users_sweep(struct homa_list *bucket);
/** homad_users_limit() - quota.user_peers has changed. */
void homad_users_limit(struct homad *d);
/** homad_users_stop() - the engine has ended, and with it all peers. */
void homad_users_stop(struct homad *d);
/** homad_charge() - charge the account; 0, or -EDQUOT with a sentence. */
int homad_charge(struct homad *d, struct homad_user *user, u64 bytes, char *err,
		 size_t errlen);
/** homad_room() - return the bytes that @user may still have. */
u64 homad_room(struct homad *d, const struct homad_user *user);
/** homad_account() - add @bytes to the account of @user, whatever the limits say. */
void homad_account(struct homad_user *user, u64 bytes);
/** homad_settle() - take @bytes off the account, because the kernel has them again. */
void homad_settle(struct homad_user *user, u64 bytes);
/** homad_share_rpcs() - return how many RPCs a new attachment of @user gets. */
u32 homad_share_rpcs(struct homad *d, const struct homad_user *user);
/** homad_client_is() - is a rule for @who a rule for this client? */
bool homad_client_is(const struct homad_client *client,
		     const struct homad_who *who);
/**
 * homad_may_attach() - do rules and quotas let the client attach? 0, -EACCES, -EDQUOT,
 * -EUSERS.
 */
int homad_may_attach(struct homad *d, const struct homad_client *client,
		     char *err, size_t errlen);
int homad_may_bind(struct homad *d, const struct homad_client *client, u16 port,
		   char *err, size_t errlen);
/** homad_may_serve() - may the client take requests on the port that it has? */
int homad_may_serve(struct homad *d, const struct homad_client *client,
		    u16 port, char *err, size_t errlen);
/** homad_may_share() - does the client have a user of its own, with whose attachments it may
 *  share a port? @what: the end of the sentence why not. -EACCES. */
int homad_may_share(const struct homad_client *client, const char *what,
		    char *err, size_t errlen);
/**
 * homad_may_keep() - may one more attachment of the client's user be one that can be handed
 * over? -EDQUOT.
 */
int homad_may_keep(const struct homad_client *client, char *err, size_t errlen);
/**
 * homad_may_take_over() - may the client take over an attachment of its user that has
 * @port? -EACCES.
 */
int homad_may_take_over(struct homad *d, const struct homad_client *client,
			u16 port, char *err, size_t errlen);

#endif
