/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Copies of what the control thread has: attachments, users, and what it counts. The admin
 * thread gets them in pieces, each of which costs the control thread a bounded time, and
 * makes text of them when it likes.
 */
#ifndef HOMAD_APPS_H
#define HOMAD_APPS_H

#include "homad_stats.h"

/**
 * struct homad_app_view - an attachment
 * @port: 0: it has none. @phase: enum homad_app_phase. @since_ns: when it attached.
 * @thread: index of the fast-path thread at which it is at home.
 * @memory: bytes of shared memory behind it. @send_bytes: of its data segments.
 * @has_streams: it has asked for TCP streams; @streams of them are open, which have
 *	carried @stream_tx and @stream_rx bytes.
 * @submitted, @completed: entries in its rings that nobody has taken yet.
 * @rings: how many entries they have; all 0: it has none yet.
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
		u32 submit, complete, release;
	} rings;
	struct homad_app_counters counters;
};

/** struct homad_user_view - a user; streams as in struct homad_app_view, of all his
 *  attachments, those that have ended, too */
struct homad_user_view {
	uid_t uid;
	u64 memory, copied;
	u32 listeners;
	u64 streams, stream_tx, stream_rx;
};

/** struct homad_slow_view - what the control thread counts; as in struct homad_slow,
 *  struct homad_attach and struct homad_tcp_ports */
struct homad_slow_view {
	u32 num_apps;
	u64 attached, detached, refused, evicted;
	u64 handed_over, handovers_expired;
	u64 memory_grown, memory_shrunk, memory_refused;
	u64 listens_refused;
};

/** struct homad_apps - all of that */
struct homad_apps {
	struct homad_slow_view slow;
	struct homad_app_view *app;
	u32 num_apps;
	struct homad_user_view *user;
	u32 num_users;
};

/** homad_apps_look() - 0 or -ENOMEM; with homad_apps_free() afterwards in either case. */
int homad_apps_look(struct homad *d, struct homad_apps *apps);
void homad_apps_free(struct homad_apps *apps);
/** homad_apps_polled() - how many of them a fast-path thread looks at. */
u32 homad_apps_polled(const struct homad_apps *apps, u32 thread);

#endif
