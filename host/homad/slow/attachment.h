/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The slow path's side of attachments: who is connected (a *client*), what an
 * attachment's memory is, and who has used how much (a *user*). Only the main
 * thread comes here.
 *
 * Three lives that begin and end apart: a client is a connection to the attach
 * socket; its attachment outlives it until the fast path has ended its RPCs; a
 * user's account lasts as long as either is there.
 *
 * Written by: control, unless a field says that the fast path counts there.
 */
#ifndef HOMAD_ATTACHMENT_H
#define HOMAD_ATTACHMENT_H

#include "copies.h"
#include "layout.h"
#include "worker.h"

struct homad_parked;

#define HOMAD_USER_BUCKETS 256u
/* The most connections that have not attached yet, of a user, and of all users together. */
#define HOMAD_FRESH_PER_USER 128u
#define HOMAD_FRESH 512u
/* The number of supplementary groups of a process, from its first, that are compared with
 * rules. */
#define HOMAD_GROUPS 64u

/**
 * struct homad_user - account of a user id
 * @list: links it into homad_attach.users.
 * @attach: the state that has the sums over all users.
 * @uid: the user id.
 * @fresh: the number of its connections that have not attached.
 * @attachments: the number of its open attachments.
 * @records: the number of struct homad_attachment that name it.
 * @rpcs: the sum of homad_app.max_rpcs of its attachments.
 * @listeners: the number of TCP ports at which it listens.
 * @tickets: tickets of its processes for streams (struct homad_share).
 * @num_tickets: the number of these tickets that are for children and programs.
 * @num_passes: the number of those for streams and listeners on their way (HOMA_CTL_FOR_PASS).
 * @exports: its attachments that wait for their next process (struct homad_export).
 * @num_exports: the number of these attachments.
 * @kept: the number of its attachments for which homad keeps descriptors, see struct
 *	homad_kept.
 * @half_open: for each instance of TCP, connections to its listeners that are not open yet; the
 *	fast path counts them.
 * @ready: for each instance of TCP, open connections to its listeners that have no slot yet; the
 *	fast path counts them.
 * @half_here: the same as @half_open for connections from this host, which @half_open leaves out.
 * @ready_here: the same as @ready for connections from this host, which @ready leaves out.
 * @parked: the first of its descriptors that a thread of the user's closes (struct
 *	homad_parked, closing.c).
 * @num_parked: the number of these descriptors, and one for that thread; atomic.
 * @parks: that thread runs.
 * @paid_until: the time that its requests so far have paid for, ns; see throttle.c.
 * @line: work on its memory that is under way.
 * @refused: its attachments for which it has no room, by homad_attachment.refused.
 * @refuser: links it into homad_attach.refusers while it has such attachments.
 * @tcp_tx_bytes: bytes that streams of its attachments have sent, of attachments that have
 *	ended.
 * @tcp_rx_bytes: bytes that streams of its attachments have received, of attachments that
 *	have ended.
 * @owner: the engine's account of its sockets.
 * @bytes: its account of memory. Shared memory counts from before it is backed until the
 *	kernel has it again.
 * @polled: for each fast-path thread, the number of its attachments that the thread polls.
 */
struct homad_user {
	struct homa_list list;
	struct homad_attach *attach;
	uid_t uid;
	u32 fresh;
	u32 attachments;
	u32 records;
	u64 rpcs;
	u32 listeners;
	struct homa_list tickets;
	u32 num_tickets, num_passes;
	struct homa_list exports;
	u32 num_exports;
	u32 kept;
	u32 half_open[HOMAD_MAX_THREADS], ready[HOMAD_MAX_THREADS];
	u32 half_here[HOMAD_MAX_THREADS], ready_here[HOMAD_MAX_THREADS];
	struct homad_parked *parked;
	u32 num_parked;
	bool parks;
	u64 paid_until;
	struct homad_line line;
	struct homa_list refused, refuser;
	u64 tcp_tx_bytes, tcp_rx_bytes;
	struct homa_owner owner;
	struct homad_bytes bytes;
	struct homad_polled polled[HOMAD_MAX_THREADS];
};

/**
 * struct homad_outbox - an answer on its way; one at a time, and no request is read before
 * it has gone
 * @pending: an answer is on its way.
 * @first_sent: its first packet has been sent.
 * @answer: the first packet.
 * @fds: descriptors that go with it; they are closed when it has been sent.
 * @num_fds: the number of these descriptors.
 * @records: contents of the packets after it, HOMA_CTL_BATCH records each; NULL: there are
 *	none.
 * @bytes: the length of @records.
 * @sent: the number of bytes of @records that have been sent.
 * @record: the length of one record, bytes.
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
 * @question: the question to the kernel.
 * @client: the client that asks; NULL when it has gone.
 * @list: links it into homad_slow.asking.
 */
struct homad_asking {
	struct homad_question question;
	struct homad_client *client;
	struct homa_list list;
};

/**
 * struct homad_client - a connection to the attach socket
 * @list: links it into homad_attach.fresh or homad_attach.clients.
 * @conn: the connection.
 * @process: the pidfd of its process; the descriptor is -1 if there is none.
 * @user: the account of its user.
 * @pid, @uid, @gid, @groups, @num_groups: process, user and groups of the client, as the
 *	kernel says.
 * @app: its attachment; NULL before it has attached.
 * @making: the memory that is being made for it; no request is read meanwhile. NULL: none is.
 * @asking: its question for a route; no request is read until it is answered. NULL: none.
 * @taking: the attachment that it is about to take over, or NULL.
 * @leaves: called if it ends before it has taken that over.
 * @hopeless: true if the connection is dropped when @out is empty.
 * @version: the ABI version of its last request.
 * @passed_fd: the descriptor that came with the request; -1: none did.
 * @waiting: links it into homad_attach.waiting while it asks too often.
 * @out: the answer on its way.
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
	u16 version;
	int passed_fd;
	struct homa_list waiting;
	struct homad_outbox out;
};

/*
 * struct homad_kept - descriptors of an attachment's memory, which go to the process that takes
 * the attachment over; -1: there is no such memory, or homad had no descriptor left
 * @queues: the queues memory.
 * @pool: the receive pool.
 * @seg: the data segments.
 */
struct homad_kept {
	int queues, pool, seg[HOMA_SHM_HANDOVER_SEGMENTS];
};

/**
 * struct homad_attachment - homad_app with what only the slow path knows of it
 * @app: what the fast path knows of it.
 * @attached: its place in homad_slow.apps.
 * @client: its connection; NULL when that has ended.
 * @user: the account that pays for it.
 * @groups, @num_groups: the groups that @client had beside homad_app.gid when it ended.
 * @memory: the bytes charged to @user: memory that is backed or is about to be.
 * @pool_backed, @rings_backed: homad_app.pool_backed and homad_app.rings_backed as the fast path
 *	knows them or will know them soon.
 * @pools: the number of times that the receive pool was exchanged.
 * @slots_backed: the number of slots of its TCP streams, from the first, that have memory.
 * @drop_streams: called when it has ended, if it has streams.
 * @works: the number of pieces of work under way that know it.
 * @over: called when @works is 0 again; NULL: it is not ending.
 * @changing: one of the works gives it more memory or less.
 * @wants: the fast path has asked for more memory meanwhile.
 * @grown: links it into homad_attach.grown while its pool is larger than at first.
 * @refused: links it into homad_user.refused while its user has no room for what it wants.
 * @seen: the number of its messages and commands when they were last counted.
 * @seen_at: the time at which that number changed, ns.
 * @send_bytes: the size of its data segments together, bytes.
 * @layout, @queues_bytes: the places in its queues memory, and its size in bytes.
 * @guards, @num_guards: pieces of its memory, so that a fault in one ends it alone (guard.c).
 * @new_ready_fd, @new_ready_every: homad_app.ready_fd and ready_every, on their way there.
 * @kept: descriptors for the next process; NULL: it cannot be handed over.
 * @exported: it waits for its next process; NULL: it does not.
 * @orphan_ends: called if it ends before it has a next process.
 */
struct homad_attachment {
	struct homad_app app;
	struct homad_attached attached;
	struct homad_client *client;
	struct homad_user *user;
	gid_t groups[HOMAD_GROUPS];
	u32 num_groups;
	u64 memory;
	u32 pool_backed, rings_backed, pools;
	u32 slots_backed;
	void (*drop_streams)(struct homad *d, struct homad_app *app);
	u32 works;
	void (*over)(struct homad *d, struct homad_app *app);
	bool changing, wants;
	struct homa_list grown, refused;
	u64 seen, seen_at;
	u64 send_bytes;
	struct homad_layout layout;
	size_t queues_bytes;
	struct homad_guarded {
		/* Where the piece is mapped. */
		void *base;
		/* What homad_guard_add() returned for it. */
		u32 number;
	} guards[HOMA_SHM_SEGMENTS + 4];
	u32 num_guards;
	int new_ready_fd;
	bool new_ready_every;
	struct homad_kept *kept;
	struct homad_export *exported;
	void (*orphan_ends)(struct homad *d, struct homad_app *app);
};

/**
 * struct homad_attach - homad_slow.attach
 * @d: the daemon.
 * @listen: the attach socket.
 * @claim: a socket by which other homads see that this network namespace has one.
 * @dead: homad.dead_fd.
 * @lock_fd: the file PATH.lock, which homad holds as long as it runs.
 * @spare_fd: a descriptor that is given up for a moment, to refuse a connection when all others
 *	are used up.
 * @bound: the attach socket has its path, which homad removes at its end.
 * @fresh, @num_fresh: clients that have not attached, the oldest first.
 * @clients: clients that have attached.
 * @waiting: clients that ask too often.
 * @pause: a timer that lets @waiting go on.
 * @grown: attachments, see homad_attachment and backing.c.
 * @refusers: users who have no room for what their attachments want, by homad_user.refuser.
 * @tick: a timer that runs while @grown or @refusers is not empty.
 * @memory_grown, @memory_shrunk, @memory_refused: how often an attachment got more memory since
 *	homad's start, gave some back, and was refused some.
 * @users: all struct homad_user, by a hash of the user id.
 * @next_id: the number of the next attachment.
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
	struct homa_list grown, refusers;
	struct homad_source tick;
	u64 memory_grown, memory_shrunk, memory_refused;
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

/** homad_app_segments() - how many data segments @app may have, segment 0 included. */
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

/* ---- how much a user asks, see throttle.c ---- */

/* The time that each request costs its user, in ns, which allows 4,000 a second, and the number
 * of requests that he may make at once. A handle makes four or so when it is opened: a service
 * that opens all its user's 1,024 (quota.attachments) waits for nothing, and nor does one with
 * hundreds of handles that asks for more with each. */
#define HOMAD_REQUEST_NS 250000ull
#define HOMAD_REQUESTS 4096u

/** homad_throttle_count() - count @requests of the client's user: one that came, or how many more
 *  it is worth. */
static inline void homad_throttle_count(struct homad_client *client, u32 requests)
{
	client->user->paid_until += requests * HOMAD_REQUEST_NS;
}

/* The most rounds that a request counts for which homad sees to commands first: one that waits, for
 * a route, takes all rounds there are, and is not the user's fault. */
#define HOMAD_ROUNDS_COUNTED 8u

/** homad_throttle_count_rounds() - count the rounds that a request took after the first, but no
 *  more than HOMAD_ROUNDS_COUNTED. */
static inline void homad_throttle_count_rounds(struct homad_client *client,
					       u32 rounds)
{
	homad_throttle_count(client, homa_min_u32(rounds, HOMAD_ROUNDS_COUNTED));
}

/** homad_throttle_counts() - has the user asked so much lately that he may not ask as much as
 *  possible at once? */
static inline bool homad_throttle_counts(const struct homad_user *user)
{
	return user->paid_until + HOMAD_REQUESTS * HOMAD_REQUEST_NS >
	       homa_clock_ns();
}

#endif
