/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the slow path's files about attachments do for each other. Only the main thread
 * comes here, but for what is said to be the worker's.
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
/** homad_client_attached() - it is not fresh any more. */
void homad_client_attached(struct homad *d, struct homad_client *client);
/** homad_client_unattached() - it could not be; it has no attachment. */
void homad_client_unattached(struct homad *d, struct homad_client *client);
/** homad_client_answered() - an answer that took a while is there: send it, read on. */
void homad_client_answered(struct homad *d, struct homad_client *client);

/** homad_client_watch() - wait for what can be done for it. */
int homad_client_watch(struct homad *d, struct homad_client *client);

/* ---- throttle.c: not too many requests ---- */

int homad_throttle_start(struct homad *d);
void homad_throttle_stop(struct homad *d);
/** homad_throttle() - may it ask? true: not now, it is among those waiting. */
bool homad_throttle(struct homad *d, struct homad_client *client);
/** homad_throttle_count() - it has asked. */
void homad_throttle_count(struct homad_client *client);

/* ---- ctl.c, ctl_attach.c: requests ---- */

/* One that works off a request. */
typedef void homad_op(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r);
/** homad_ctl_serve() - requests @op are @serve's; before there are clients. */
void homad_ctl_serve(u16 op, homad_op *serve);

/** homad_fill_attached() - what the answer to ATTACH says of @app. */
void homad_fill_attached(struct homad *d, struct homad_app *app,
			 struct homa_ctl_answer *a);

/** homad_pool_asked() - bytes of the receive pool that @r asks for; false: refused, it has
 *  its answer. */
bool homad_pool_asked(struct homad *d, struct homad_client *client,
		      const struct homa_ctl_request *r, u64 *bytes);

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

/** struct homad_piece - shared memory on its way: @bytes of it, of which the ranges in
 *  @backed are there from the begin; @base: where homad has it, @fd: for the application. */
struct homad_piece {
	const char *what;
	u64 bytes;
	struct homad_range {
		u64 from, to;
	} backed[2];
	u8 *base;
	int fd;
};

/**
 * struct homad_making - memory that a client waits for
 * @client: NULL when it has gone. @app: whose it is.
 * @op: the client's request. @pieces: @num of them.
 * @charged: bytes, on the account of the attachment already.
 * @then: called on the main thread with @rc set, and with a client; the pieces are
 *	@app's if @rc is 0, the descriptors are @then's. Without a client they are freed.
 */
struct homad_making {
	struct homad_work work;
	struct homad *d;
	struct homad_client *client;
	struct homad_app *app;
	u16 op;
	u32 num;
	struct homad_piece pieces[3];
	u64 charged;
	int rc;
	void (*then)(struct homad *d, struct homad_making *making);
};

/**
 * homad_app_new() - begin to make what @client's attachment needs; @client->app
 * @pool_bytes: multiple of 64 KiB. @layout: of its queues. @then: see struct
 *	homad_making; pieces are queues, data, pool, and the descriptors of
 *	homad_app_wires() are for the answer.
 */
int homad_app_new(struct homad *d, struct homad_client *client, const char *name,
		  u64 pool_bytes, const struct homad_layout *layout,
		  void (*then)(struct homad *d, struct homad_making *making),
		  char *err, size_t errlen);
/** homad_app_begins() - the fast path knows it, tools may see it. */
void homad_app_begins(struct homad *d, struct homad_app *app);
/** homad_app_wires() - the pipe and the eventfd: HOMA_CTL_FD_WAKE, HOMA_CTL_FD_KICK. */
int homad_app_wires(struct homad_app *app, int *fds);
/** homad_app_keep() - it can be handed over: keep what describes its memory; 0 or -ENOMEM. */
int homad_app_keep(struct homad_app *app);
/** homad_app_keep_fd() - keep @fd in @place of homad_attachment.kept; -1 there: homad has too few
 *  descriptors left. */
void homad_app_keep_fd(int *place, int fd);
/** homad_app_drop() - free it; nothing in the fast path knows it (any more). */
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
/** homad_backing_wanted() - see to what the fast path asked for. */
void homad_backing_wanted(struct homad *d);
/** homad_backing_forget() - @app ends. */
void homad_backing_forget(struct homad *d, struct homad_app *app);

/* ---- quota.c: accounts and rules ---- */

struct homad_user *homad_user_get(struct homad *d, uid_t uid);
/** homad_user_put() - forget the account if nothing is left in it. */
void homad_user_put(struct homad_user *user);
/** homad_charge() - 0, or -EDQUOT with a sentence. */
int homad_charge(struct homad *d, struct homad_user *user, u64 bytes, char *err,
		 size_t errlen);
/** homad_room() - bytes that @user may still have. */
u64 homad_room(struct homad *d, const struct homad_user *user);
/** homad_account() - @user has so many bytes more, whatever the limits say. */
void homad_account(struct homad_user *user, u64 bytes);
/** homad_settle() - the kernel has them again. */
void homad_settle(struct homad_user *user, u64 bytes);
/** homad_share_rpcs() - how many RPCs a new attachment of @user gets. */
u32 homad_share_rpcs(struct homad *d, const struct homad_user *user);
/** homad_client_is() - is a rule for @who for it? */
bool homad_client_is(const struct homad_client *client,
		     const struct homad_who *who);
/** homad_may_attach() - rules and numbers; 0, -EACCES, -EDQUOT, -EUSERS. */
int homad_may_attach(struct homad *d, const struct homad_client *client,
		     char *err, size_t errlen);
int homad_may_bind(struct homad *d, const struct homad_client *client, u16 port,
		   char *err, size_t errlen);
/** homad_may_serve() - take requests on the port that it has? */
int homad_may_serve(struct homad *d, const struct homad_client *client,
		    u16 port, char *err, size_t errlen);
/** homad_may_share() - does it have a user of its own with whom it may share? @what: the end
 *  of the sentence why not. -EACCES. */
int homad_may_share(const struct homad_client *client, const char *what,
		    char *err, size_t errlen);
/** homad_may_keep() - may one more of its user's attachments be one to hand over? -EDQUOT. */
int homad_may_keep(const struct homad_client *client, char *err, size_t errlen);
/** homad_may_take_over() - an attachment of its user that has @port? -EACCES. */
int homad_may_take_over(struct homad *d, const struct homad_client *client,
			u16 port, char *err, size_t errlen);

#endif
