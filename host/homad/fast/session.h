/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the slow path asks of the fast one about an attachment, by homad_call(): the
 * functions take a struct of their own as @arg and run on the attachment's thread.
 */
#ifndef HOMAD_SESSION_H
#define HOMAD_SESSION_H

#include "app.h"
#include "homad.h"

#define HOMAD_TURN 32u /* commands of an application in one turn */

/** homad_session_alloc() - what the fast path has of @app in its own memory; by whoever
 *  makes it, before homad_session_open(), which else does it. 0 or -ENOMEM. */
int homad_session_alloc(const struct homad *d, struct homad_app *app);
/** homad_session_open() - @arg: struct homad_app with its memory in place; opens
 *  a socket with an automatic port and begins to poll. */
int homad_session_open(struct homad_thread *t, void *arg);
/** homad_session_close() - @arg: struct homad_app; ends RPCs over the next rounds and
 *  then hands it to homad.dead. Harmless twice. */
int homad_session_close(struct homad_thread *t, void *arg);

/** homad_session_give() - one of this thread's attachments, at home nowhere now;
 *  NULL: it has none. homad_session_take(): make another thread its home. */
struct homad_app *homad_session_give(struct homad_thread *t);
int homad_session_take(struct homad_thread *t, struct homad_app *app);

struct homad_bind {
	struct homad_app *app;
	u16 port;
};
/** homad_session_bind() - @arg: struct homad_bind; -EINVAL, -EADDRINUSE. */
int homad_session_bind(struct homad_thread *t, void *arg);

struct homad_listen {
	struct homad_app *app;
	u16 port;
	u32 flags;
};
/** homad_session_listen() - @arg: struct homad_listen with HOMA_CTL_LISTEN_*; its
 *  @port, if not 0, becomes the socket's and is the present one afterwards. -EINVAL,
 *  -EADDRINUSE, -ENOBUFS (too many share it). */
int homad_session_listen(struct homad_thread *t, void *arg);

struct homad_pool {
	struct homad_app *app;
	u8 *pool;
	size_t bytes;
	u32 backed;	/* pages that have memory behind them; 0: all */
	void *pool_mem; /* homa_pool_size() bytes; out: the old one, to be freed */
};
/** homad_session_pool() - @arg: struct homad_pool; exchange the receive pool;
 *  -EBUSY if messages have been received; the old memory is the caller's. */
int homad_session_pool(struct homad_thread *t, void *arg);

struct homad_back {
	struct homad_app *app;
	u32 pages; /* of the pool, from the first; out: what it is, with those in use */
	u32 rings;   /* of the submission rings, from the first */
	bool answer; /* to what the fast path asked for */
};
/** homad_session_back() - @arg: struct homad_back; so much of the attachment's memory may
 *  be touched from now on. -ESHUTDOWN. */
int homad_session_back(struct homad_thread *t, void *arg);

struct homad_wires {
	struct homad_app *app;
	int wake_fd, ready_fd; /* out: those before, which the caller closes */
	bool rings_bell;
	pid_t pid; /* 0: none has it */
	gid_t gid;
};
/** homad_session_wires() - @arg: struct homad_wires; another process has, or will have, the
 *  attachment. -ESHUTDOWN. */
int homad_session_wires(struct homad_thread *t, void *arg);

/** homad_session_route() - @arg: struct homad_question; 1: its answer is known, which is
 *  its @error now, 0: the kernel has to be asked. */
int homad_session_route(struct homad_thread *t, void *arg);
/** homad_session_routed() - the job of a question of the slow path, @arg: the thread learns
 *  the answer, the question goes into homad.answered. Its @error is 0, -EHOSTUNREACH or
 *  -ENETUNREACH then. */
int homad_session_routed(struct homad_thread *t, void *arg);
/** homad_session_shutdown() - @arg: struct homad_app; HOMA_CTL_SHUTDOWN. */
int homad_session_shutdown(struct homad_thread *t, void *arg);
/** homad_session_free() - slow path: what session_open() allocated; the
 *  attachment came from homad.dead. */
void homad_session_free(struct homad_app *app);

struct homad_alive {
	struct homad_app *app;
	u64 token;
};
/** homad_session_alive() - @arg: struct homad_alive; 1: the client of the request that the
 *  application knows by @token still waits for its answer, 0: not, or there is none. */
int homad_session_alive(struct homad_thread *t, void *arg);

/** homad_turn_of() - one turn for @arg, a struct homad_app; more in its rings? For
 *  homad_call(). Its user pays for it as for any other turn. */
int homad_turn_of(struct homad_thread *t, void *arg);
/** homad_turns_of_rings() - slow path: as many of them as see to all that was there at first,
 *  but for what has to wait. */
void homad_turns_of_rings(struct homad_app *app);

#endif
