/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the slow path asks of the fast one about an attachment, by homad_call(): the
 * functions take a struct of their own as @arg and run on the attachment's thread.
 *
 * Written by: the slow path, which fills a struct and waits, and the fast-path thread (what is
 * "out"), while it runs the function; never both at once.
 */
#ifndef HOMAD_SESSION_H
#define HOMAD_SESSION_H

#include "app.h"
#include "homad.h"

/* The most commands that are done for an application in one turn. */
#define HOMAD_TURN 32u
/* The most bytes of short messages in a turn, because homad copies them, and how many of them
 * are as much of it as a command. */
#define HOMAD_TURN_BYTES (256u << 10)
#define HOMAD_COMMAND_BYTES (HOMAD_TURN_BYTES / HOMAD_TURN)

/** homad_session_alloc() - allocate what the fast path needs for @app in homad's own memory.
 *  Whoever makes @app may call it in advance; else homad_session_open() does. Returns 0 or
 *  -ENOMEM. */
int homad_session_alloc(const struct homad *d, struct homad_app *app);
/** homad_session_open() - open a socket with an automatic port for @arg, a struct homad_app with
 *  its memory in place, and begin to poll its rings. Returns 0 or a negative errno. */
int homad_session_open(struct homad_thread *t, void *arg);
/** homad_session_close() - begin to close @arg, a struct homad_app: its RPCs end over the next
 *  rounds, then it is pushed to homad.dead. A second call does nothing. */
int homad_session_close(struct homad_thread *t, void *arg);

/** homad_session_detach() - take @app away from this thread, so that it is at home nowhere; NULL:
 *  one of its attachments without streams. Returns NULL if it may not move: it closes. */
struct homad_app *homad_session_detach(struct homad_thread *t,
				       struct homad_app *app);
/** homad_session_take() - make @t the home of @app. Returns 0 or a negative errno. */
int homad_session_take(struct homad_thread *t, struct homad_app *app);
/** homad_session_settle() - do the same, or end @app if that is not possible. */
void homad_session_settle(struct homad_thread *t, struct homad_app *app);

/**
 * struct homad_bind - a server port for an attachment; the slow path fills it
 * @app: the attachment.
 * @port: the Homa port that it shall get.
 */
struct homad_bind {
	struct homad_app *app;
	u16 port;
};
/** homad_session_bind() - do what @arg, a struct homad_bind, says. Returns 0, -EINVAL (no server
 *  port) or -EADDRINUSE. */
int homad_session_bind(struct homad_thread *t, void *arg);

/**
 * struct homad_listen - whether an attachment takes requests; the slow path fills it
 * @app: the attachment.
 * @port: in: the Homa port that it shall get; 0: it keeps its port. Out: the port that it has.
 * @flags: bits of HOMA_CTL_LISTEN_*.
 */
struct homad_listen {
	struct homad_app *app;
	u16 port;
	u32 flags;
};
/** homad_session_listen() - do what @arg, a struct homad_listen, says. Returns 0, -EINVAL,
 *  -EADDRINUSE, or -ENOBUFS if too many share the port. */
int homad_session_listen(struct homad_thread *t, void *arg);

/* struct homad_pool - another receive pool for an attachment; the slow path fills it */
struct homad_pool {
	/* The attachment. */
	struct homad_app *app;
	/* In: where homad has mapped the new pool. Out: the old pool. */
	u8 *pool;
	/* The size of @pool in bytes; in and out as there. */
	size_t bytes;
	/* The number of pages of @pool, from the first, that have memory behind them; 0
	 * means all. */
	u32 backed;
	/* In: homa_pool_size() bytes for the engine. Out: the engine's memory for the old
	 * pool, which the caller frees. */
	void *pool_mem;
};
/** homad_session_pool() - exchange an attachment's receive pool as @arg, a struct homad_pool,
 *  says. The old memory is the caller's then. Returns 0, or -EBUSY if the attachment has
 *  received messages. */
int homad_session_pool(struct homad_thread *t, void *arg);

/* struct homad_back - how much of an attachment's memory may be used; the slow path fills it */
struct homad_back {
	/* The attachment. */
	struct homad_app *app;
	/* In: the number of pages of the pool, from the first, that shall be used. Out: the
	 * number that are used, because pages that hold messages stay. */
	u32 pages;
	/* The number of submission rings, from the first, that shall be used. */
	u32 rings;
	/* True if this answers homad_want_memory(). */
	bool answer;
};
/** homad_session_back() - @arg, a struct homad_back, says how much of an attachment's memory
 *  the fast path may touch from now on. Returns 0, or -ESHUTDOWN if the attachment closes. */
int homad_session_back(struct homad_thread *t, void *arg);

/* struct homad_wires - the process that an attachment changes to; the slow path fills it */
struct homad_wires {
	/* The attachment. */
	struct homad_app *app;
	/* In: the new process's pipes. Out: the pipes before, which the caller closes. */
	int wake_fd, ready_fd;
	/* True if the new process rings the bell; see homad_app.rings_bell. */
	bool rings_bell;
	/* The new process; 0: no process has the attachment at present. */
	pid_t pid;
	/* The main group of the new process. */
	gid_t gid;
};
/** homad_session_wires() - another process has the attachment of @arg, a struct homad_wires, from
 *  now on, or will have it. Returns 0, or -ESHUTDOWN if the attachment closes. */
int homad_session_wires(struct homad_thread *t, void *arg);

/** homad_session_route() - does @t know the way to the destination of @arg, a struct
 *  homad_question? Returns 1 if it does, with the answer in its @error; 0 if the kernel has
 *  to be asked. */
int homad_session_route(struct homad_thread *t, void *arg);
/** homad_session_routed() - the job of @arg, a question of the slow path: the thread learns the
 *  answer and pushes the question to homad.answered. Its @error is 0, -EHOSTUNREACH or
 *  -ENETUNREACH then. */
int homad_session_routed(struct homad_thread *t, void *arg);
/** homad_session_shutdown() - do what HOMA_CTL_SHUTDOWN asks for @arg, a struct homad_app, a part
 *  in each call. Returns 1 if it has to be called again, 0, or -ESHUTDOWN. */
int homad_session_shutdown(struct homad_thread *t, void *arg);
/** homad_session_free() - free what homad_session_alloc() has allocated. The slow path calls
 *  it for an attachment that it has taken from homad.dead. */
void homad_session_free(struct homad_app *app);

/**
 * struct homad_alive - a request whose client is asked for; the slow path fills it
 * @app: the attachment that received the request.
 * @token: the request's homa_cqe.token, as the application gave it: any value may come.
 */
struct homad_alive {
	struct homad_app *app;
	u64 token;
};
/** homad_session_alive() - @arg, a struct homad_alive, names a request. Returns 1 if its client
 *  still waits for the answer; 0 if not, or if there is no such request. */
int homad_session_alive(struct homad_thread *t, void *arg);

/** homad_turn_of() - give @arg, a struct homad_app, one turn, for which its user pays as for any
 *  other. Returns 1 if more is in its rings, else 0. For homad_call(). */
int homad_turn_of(struct homad_thread *t, void *arg);
/** homad_turns_of_rings() - give @app turns until all was seen to that was in its rings at first,
 *  but for commands that have to wait. @in_debt: also while its user owes too much for a turn; else
 *  that ends it. The slow path calls it. Returns the number of rounds that this took after the
 *  first. */
u32 homad_turns_of_rings(struct homad_app *app, bool in_debt);

#endif
