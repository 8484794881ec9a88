/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Copies of what the control thread has: attachments, users, and what it counts. The admin
 * thread gets them in pieces, each of which costs the control thread a bounded time, and
 * makes text of them when it likes.
 *
 * Written by: control, while admin waits for it, into memory of admin's.
 */
#ifndef HOMAD_APPS_H
#define HOMAD_APPS_H

#include "homad_stats.h"

/**
 * struct homad_app_view - a copy of what the control thread knows of an attachment
 * @id: Its number, which is never used twice.
 * @name: The name of the program.
 * @pid: The process that attached.
 * @uid: The user of that process.
 * @port: Its Homa port, or 0 if it has none.
 * @shares: It has asked to share its port with other attachments.
 * @polled: Its fast-path thread looks at its rings in each round.
 * @has_streams: It has asked for TCP streams.
 * @phase: A value of enum homad_app_phase.
 * @since_ns: The time at which it attached.
 * @thread: The index of the fast-path thread that looks at its rings.
 * @rpcs: The number of its open requests.
 * @max_rpcs: The most requests that it may have open.
 * @pool_bytes: The size of its receive pool.
 * @memory: Bytes of its shared memory that have memory behind them.
 * @send_bytes: Bytes of its data segments, which hold messages to send.
 * @streams: The number of its open TCP streams.
 * @stream_tx: Bytes that its TCP streams have sent since it attached.
 * @stream_rx: Bytes that its TCP streams have received since it attached.
 * @submitted: Entries of its submission rings that homad has not taken yet.
 * @completed: Entries of its completion ring that the application has not taken yet.
 * @rings: The number of entries of its rings; all are 0 if it has no rings yet.
 * @counters: What the fast path counts for it.
 */
struct homad_app_view {
	u64 id;
	char name[32];
	pid_t pid;
	uid_t uid;
	u16 port;
	bool shares, polled, has_streams;
	u32 phase;
	u64 since_ns;
	u32 thread;
	u32 rpcs, max_rpcs;
	u64 pool_bytes, memory, send_bytes;
	u32 streams;
	u64 stream_tx, stream_rx;
	u32 submitted, completed;
	struct homad_rings_view {
		/* Numbers of entries of each submission ring, of the completion ring and of the
		 * release ring. */
		u32 submit, complete, release;
	} rings;
	struct homad_app_counters counters;
};

/**
 * struct homad_user_view - a copy of the account of a user
 * @uid: The user.
 * @memory: Bytes of shared memory of the user's attachments.
 * @rpcs: The number of RPCs that are open on its attachments, of either side.
 * @peers: The number of addresses in homad's table that are charged to the user.
 * @peers_refused: Requests that failed because the user had as many as quota.user_peers.
 * @copied: Bytes of copies of messages that homad has made for the user.
 * @listeners: The number of TCP ports at which the user listens.
 * @streams: The number of open TCP streams of the user's attachments.
 * @stream_tx: Bytes that TCP streams have sent, of attachments that have ended, too.
 * @stream_rx: Bytes that TCP streams have received, of attachments that have ended, too.
 */
struct homad_user_view {
	uid_t uid;
	u64 memory, copied, rpcs, peers, peers_refused;
	u32 listeners;
	u64 streams, stream_tx, stream_rx;
};

/**
 * struct homad_slow_view - copies of what the control thread counts
 * @num_apps: How many attachments there are.
 * @attached: How many attachments have begun since homad's start.
 * @detached: How many attachments have ended since then.
 * @refused: How many attachments were refused since then.
 * @evicted: How many attachments were ended because they broke the rules.
 * @handed_over: How often another process has taken over an exported attachment.
 * @handovers_expired: How often nobody has taken one over in time.
 * @memory_grown: How often an attachment has got more memory.
 * @memory_shrunk: How often an attachment has given memory back.
 * @memory_refused: How often an attachment was refused more memory.
 * @listens_refused: The number of requests to listen at a TCP port that have failed.
 * @taken: The number of TCP connections and listeners that processes have passed to others.
 * @takes_refused: The number of those that whoever showed them did not get.
 * @takes_elsewhere: The number of these that were refused as the two processes are at different
 *	instances of TCP.
 */
struct homad_slow_view {
	u32 num_apps;
	u64 attached, detached, refused, evicted;
	u64 handed_over, handovers_expired;
	u64 memory_grown, memory_shrunk, memory_refused;
	u64 listens_refused, taken, takes_refused, takes_elsewhere;
};

/**
 * struct homad_apps - copies of all attachments and users
 * @slow: What the control thread counts.
 * @app: The attachments, in the order of their numbers, allocated.
 * @num_apps: The number of entries of @app.
 * @user: The users, in the order of their uids, allocated.
 * @num_users: The number of entries of @user.
 */
struct homad_apps {
	struct homad_slow_view slow;
	struct homad_app_view *app;
	u32 num_apps;
	struct homad_user_view *user;
	u32 num_users;
};

/** homad_apps_look() - fill in @apps; returns 0 or -ENOMEM. The caller calls
 *  homad_apps_free() in either case. */
int homad_apps_look(struct homad *d, struct homad_apps *apps);
void homad_apps_free(struct homad_apps *apps);
/** homad_apps_polled() - the number of attachments that a fast-path thread polls. */
u32 homad_apps_polled(const struct homad_apps *apps, u32 thread);

#endif
