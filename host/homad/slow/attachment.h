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
#ifndef HOMAD_ATTACHMENT_H
#define HOMAD_ATTACHMENT_H

#include "copies.h"
#include "layout.h"
#include "worker.h"

#define HOMAD_USER_BUCKETS 256u
#define HOMAD_FRESH_PER_USER 128u /* connections that have not attached yet */
#define HOMAD_FRESH 512u
#define HOMAD_GROUPS 64u /* supplementary groups that rules can match */

/**
 * struct homad_user - account of a user id
 * @attach: where the sums over all users are.
 * @fresh: connections that have not attached. @attachments: open.
 * @memory: bytes of shared memory that are backed, until the kernel has them again.
 * @records: struct homad_attachment that name it.
 * @rpcs: sum of max_rpcs. @listeners: TCP ports at which it listens.
 * @tickets: struct homad_share of its processes, @num_tickets.
 * @exports: struct homad_export of its attachments that wait for their next process,
 *	@num_exports. @kept: attachments for which descriptors are kept, see homad_kept.
 * @half_open: TCP connections to this user's listeners that are not open yet; the fast path
 *	counts them.
 * @tcp_tx_bytes, @tcp_rx_bytes: that streams of attachments which have ended have carried.
 * @owner: the engine's account of its sockets.
 * @copies: its account of copied messages, the fast path's.
 * @polled: its attachments that fast-path threads look at, for each thread.
 */
struct homad_user {
	struct homa_list list;
	struct homad_attach *attach;
	uid_t uid;
	u32 fresh;
	u32 attachments;
	u32 records;
	u64 memory;
	u64 rpcs;
	u32 listeners;
	struct homa_list tickets;
	u32 num_tickets;
	struct homa_list exports;
	u32 num_exports;
	u32 kept;
	u32 half_open;
	u64 tcp_tx_bytes, tcp_rx_bytes;
	struct homa_owner owner;
	struct homad_copies copies;
	struct homad_polled polled[HOMAD_MAX_THREADS];
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
	int fds[HOMA_CTL_IMPORT_FDS];
	u32 num_fds;
	u8 *records;
	size_t bytes, sent, record;
};

/**
 * struct homad_asking - a client's question for a route, see routes.c
 * @client: who asks; NULL when it has gone.
 * @list: in homad_slow.asking.
 */
struct homad_asking {
	struct homad_question question;
	struct homad_client *client;
	struct homa_list list;
};

/**
 * struct homad_client - a connection to the attach socket
 * @list: in homad_attach.fresh or .clients.
 * @conn: the connection; @process: its pidfd, fd -1 if there is none.
 * @uid, @gid, @groups: as the kernel says.
 * @app: NULL before it has attached.
 * @making: memory that it asked for is being made, and no request is read; or NULL.
 * @asking: it wants to know the way to a destination, and no request is read; or NULL.
 * @hopeless: to be dropped when the outbox is empty.
 * @taking: it is about to take over an attachment; @leaves is called if it ends before it has.
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
	struct homad_making *making;
	struct homad_asking *asking;
	struct homad_export *taking;
	void (*leaves)(struct homad_client *client);
	bool hopeless;
	/* That of its last request. */
	u16 version;
	/* A descriptor that came with the request, or -1. */
	int passed_fd;
	struct homa_list waiting;
	u64 paid_until;
	struct homad_outbox out;
};

/* struct homad_kept - descriptors of an attachment's memory, for whom it is handed over to; -1:
 * there is none, or homad had no descriptor left */
struct homad_kept {
	int queues, pool, seg[HOMA_SHM_HANDOVER_SEGMENTS];
};

/**
 * struct homad_attachment - homad_app with what only the slow path knows of it
 * @client: NULL when the connection has ended.
 * @memory: bytes charged to @user, those that are backed or are about to be.
 * @pool_backed, @rings_backed: as the fast path knows or will know soon.
 * @pools: how often the receive pool was exchanged.
 * @works: pieces of work under way that know it; @over is called when there is none
 *	any more, NULL: it is not ending.
 * @changing: one of them gives it more memory or less. @wants: the fast path asked for
 *	more meanwhile.
 * @grown: in homad_attach.grown while its pool is larger than at first.
 * @refused: in homad_attach.refused while its user has no room for what it wants.
 * @seen, @seen_at: messages and commands when they were last counted, and when that
 *	changed, ns.
 * @send_bytes: of its data segments.
 * @new_ready_fd, @new_ready_every: on their way into @app.
 * @kept: NULL: it cannot be handed over.
 * @exported: it waits for its next process; @orphan_ends is called if it ends before that.
 */
struct homad_attachment {
	struct homad_app app;
	struct homad_attached attached;
	struct homad_client *client;
	struct homad_user *user;
	u64 memory;
	u32 pool_backed, rings_backed, pools;
	/* Slots of its TCP streams that have memory, from the first. */
	u32 slots_backed;
	/* Called when it has ended, if it has streams. */
	void (*drop_streams)(struct homad *d, struct homad_app *app);
	u32 works;
	void (*over)(struct homad *d, struct homad_app *app);
	bool changing, wants;
	struct homa_list grown, refused;
	u64 seen, seen_at;
	u64 send_bytes;
	/* Of its queues memory, whose size is @queues_bytes. */
	struct homad_layout layout;
	size_t queues_bytes;
	struct homad_guarded {
		void *base;
		u32 ticket;
	} guards[HOMA_SHM_SEGMENTS + 4]; /* guard.c */
	u32 num_guards;
	int new_ready_fd;
	bool new_ready_every;
	struct homad_kept *kept;
	struct homad_export *exported;
	void (*orphan_ends)(struct homad *d, struct homad_app *app);
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
 * @grown, @refused: attachments, see backing.c; @tick: a timer that runs while there is
 *	one in either list.
 * @memory: sum of homad_user.memory, bytes.
 * @memory_grown, @memory_shrunk, @memory_refused: how often that happened since start.
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
	struct homa_list grown, refused;
	struct homad_source tick;
	u64 memory_grown, memory_shrunk, memory_refused;
	u64 memory;
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

/** homad_app_segments() - data segments that @app may have, segment 0 included. */
static inline u32 homad_app_segments(struct homad_app *app)
{
	return homad_attachment(app)->kept ? HOMA_SHM_HANDOVER_SEGMENTS :
					     HOMA_SHM_SEGMENTS;
}

/** homad_work_over() - a piece of work that knew @app is over. */
static inline void homad_work_over(struct homad *d, struct homad_app *app)
{
	struct homad_attachment *a = homad_attachment(app);

	if (--a->works == 0 && a->over)
		a->over(d, app);
}

#endif
