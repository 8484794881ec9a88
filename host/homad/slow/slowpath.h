/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The slow path: two threads with an epoll set each. The *control* thread, which is the
 * main one, has what applications wait for: the attach socket and its connections,
 * processes that may die, TCP ports, dead attachments. The *admin* thread has what
 * people and their tools ask for: the configuration, the monitoring and metrics
 * sockets, traces. Control never waits for admin (admin.c). With nothing attached
 * both sleep without any timer.
 */
#ifndef HOMAD_SLOWPATH_H
#define HOMAD_SLOWPATH_H

#include "session.h"

/**
 * struct homad_source - a descriptor that the slow path waits for; embedded in
 *	what it belongs to
 * @ready: called with EPOLL* bits; may remove and free any source: those of
 *	the same batch that were removed are not called any more.
 * @admin: the admin thread waits for it, not the control thread. Only the thread that
 *	waits for a source watches and unwatches it while that thread runs.
 */
struct homad_source {
	int fd;
	void (*ready)(struct homad *d, struct homad_source *source, u32 events);
	bool watched, admin;
};

#define HOMAD_EVENTS 64 /* descriptors in one turn of the loop */
struct epoll_event;

/**
 * struct homad_loop - what a thread of the slow path waits for
 * @stop: it ends after the present turn; atomic.
 * @batch, @batch_len: of the turn under way, so that a source that is removed
 *	is not called.
 */
struct homad_loop {
	int epfd;
	bool stop;
	struct epoll_event *batch;
	int batch_len;
};

/**
 * struct homad_slow - the slow path's state; homad.slow. The control thread's, but for
 *	@admin_loop.
 * @apps: all attachments (struct homad_attached.list), in the order of their numbers;
 *	tools look at it by homad_control().
 * @num_apps: how many.
 * @attached, @detached, @refused, @evicted: attachments since start.
 * @handed_over, @handovers_expired: how often another process took one over, and how often
 *	none did.
 */
struct homad_slow {
	struct homad *d;
	struct homad_loop loop, admin_loop;
	struct homad_admin *admin; /* admin.c; NULL: its thread is not there */
	struct homa_list apps;
	u32 num_apps;
	struct homad_attach *attach; /* attach.h */
	/* The memory thread, worker.c; NULL: work is done at once. */
	struct homad_worker *worker;
	struct homad_routes *routes; /* routes.c; NULL: its thread is not there */
	struct homa_list asking;     /* questions of clients for routes */
	struct homad_source answered; /* homad.answered_fd */
	struct homad_tcp_ports *tcp;  /* tcp_slow.h; NULL: there is no TCP */
	struct homad_handovers *handovers; /* handover.c */
	u64 attached, detached, refused, evicted;
	u64 handed_over, handovers_expired;
};

/* struct homad_attached - the slow path's record of an attachment */
struct homad_attached {
	struct homa_list list;
	struct homad_app *app;
	u64 since_ns;
	u16 port; /* last known */
};

static inline struct homad_slow *homad_slow(struct homad *d)
{
	return d->slow;
}

/** homad_slow_init() - homad.slow and homad.dead_fd, before anything else here. */
int homad_slow_init(struct homad *d);
void homad_slow_free(struct homad *d);
/** homad_watch() - call @source->ready for @events; again to change them. */
int homad_watch(struct homad *d, struct homad_source *source, u32 events);
void homad_unwatch(struct homad *d, struct homad_source *source);
/** homad_loop_run() - work off what @loop waits for, until its @stop. 0 or -errno. */
int homad_loop_run(struct homad *d, struct homad_loop *loop);

/** homad_ctl_attach_start() - serve those who ask to attach; before there are any. */
int homad_ctl_attach_start(struct homad *d, char *err, size_t errlen);
/** homad_handover_start(), homad_handover_stop() - attachments go from one process to another. */
int homad_handover_start(struct homad *d, char *err, size_t errlen);
void homad_handover_stop(struct homad *d);
/** homad_timer_set() - a repeating timer as a source's descriptor (timerfd);
 *  0 disarms. Only armed while somebody needs it. */
int homad_timer_open(void);
int homad_timer_set(int fd, u64 interval_ns);

/* What hangs on the slow path; each returns 0 or a negative errno with @err. */
int homad_attach_start(struct homad *d, char *err, size_t errlen);
void homad_attach_stop(struct homad *d);
int homad_monitor_start(struct homad *d, char *err, size_t errlen);
void homad_monitor_stop(struct homad *d);
int homad_metrics_start(struct homad *d, char *err, size_t errlen);
void homad_metrics_stop(struct homad *d);
int homad_scaling_start(struct homad *d, char *err, size_t errlen);
void homad_scaling_stop(struct homad *d);

#endif
