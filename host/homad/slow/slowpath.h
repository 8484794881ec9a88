/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The slow path: two threads with an epoll set each. The *control* thread, which is the
 * main one, has what applications wait for: the attach socket and its connections,
 * processes that may die, TCP ports, dead attachments. The *admin* thread has what
 * people and their tools ask for: the configuration, the monitoring and metrics
 * sockets, traces. Control never waits for admin (admin.c). With nothing attached
 * both sleep without any timer.
 *
 * Written by: control, unless a field says otherwise.
 */
#ifndef HOMAD_SLOWPATH_H
#define HOMAD_SLOWPATH_H

#include "session.h"

/**
 * struct homad_source - a descriptor that the slow path waits for; embedded in
 *	what it belongs to
 * @fd: the descriptor; -1: there is none.
 * @ready: called with EPOLL* bits when @fd is ready. It may remove and free any source: those of
 *	the same batch that were removed are not called any more.
 * @watched: the source is in the epoll set of its thread.
 * @admin: the admin thread waits for it, not the control thread. Only the thread that
 *	waits for a source watches and unwatches it while that thread runs.
 */
struct homad_source {
	int fd;
	void (*ready)(struct homad *d, struct homad_source *source, u32 events);
	bool watched, admin;
};

/* The most descriptors that a turn of the loop handles. */
#define HOMAD_EVENTS 64
struct epoll_event;

/**
 * struct homad_loop - what a thread of the slow path waits for
 * @epfd: the epoll set.
 * @stop: the thread ends after the present turn; atomic.
 * @batch: the events of the turn under way, so that a source that is removed is not called.
 * @batch_len: the number of these events.
 */
struct homad_loop {
	int epfd;
	bool stop;
	struct epoll_event *batch;
	int batch_len;
};

/**
 * struct homad_slow - the slow path's state, homad.slow. Only the control thread uses it, but
 *	for @admin_loop, which is the admin thread's.
 * @d: the daemon.
 * @loop, @admin_loop: what the control thread and the admin thread wait for.
 * @apps: all attachments (struct homad_attached.list), in the order of their numbers;
 *	tools look at it by homad_control().
 * @num_apps: how many attachments there are.
 * @attached, @detached, @refused, @evicted: how many attachments have begun since homad's start,
 *	have ended, were refused, and were ended because they broke the rules.
 * @handed_over: how often another process has taken over an exported attachment.
 * @handovers_expired: how often none has.
 */
struct homad_slow {
	struct homad *d;
	struct homad_loop loop, admin_loop;
	/* The admin thread, admin.c; NULL: it is not there. */
	struct homad_admin *admin;
	struct homa_list apps;
	u32 num_apps;
	/* The attach socket and its connections, attachment.h. */
	struct homad_attach *attach;
	/* The memory thread, worker.c; NULL: work is done at once. */
	struct homad_worker *worker;
	/* The thread for routes, routes.c; NULL: it is not there. */
	struct homad_routes *routes;
	/* Clients' questions for routes that are under way (struct homad_asking). */
	struct homa_list asking;
	/* The eventfd of homad.answered_fd. */
	struct homad_source answered;
	/* What TCP needs, tcp_slow.h; NULL: homad serves no TCP. */
	struct homad_tcp_ports *tcp;
	/* Attachments that wait for their next process, handover.c. */
	struct homad_handovers *handovers;
	u64 attached, detached, refused, evicted;
	u64 handed_over, handovers_expired;
};

/* struct homad_attached - the slow path's record of an attachment */
struct homad_attached {
	/* Its place in homad_slow.apps. */
	struct homa_list list;
	/* The attachment, as the fast path knows it. */
	struct homad_app *app;
	/* The time at which it attached, ns. */
	u64 since_ns;
	/* Its Homa port, as the slow path last heard. */
	u16 port;
};

static inline struct homad_slow *homad_slow(struct homad *d)
{
	return d->slow;
}

/** homad_slow_init() - make homad.slow and homad.dead_fd; nothing else here may be called
 *  before. Returns 0 or a negative errno. */
int homad_slow_init(struct homad *d);
void homad_slow_free(struct homad *d);
/** homad_watch() - call @source->ready for @events, EPOLL* bits, from now on. A further call
 *  changes them. Returns 0 or a negative errno. */
int homad_watch(struct homad *d, struct homad_source *source, u32 events);
void homad_unwatch(struct homad *d, struct homad_source *source);
/** homad_loop_run() - see to what @loop waits for until its @stop is set. Returns 0 or a
 *  negative errno. */
int homad_loop_run(struct homad *d, struct homad_loop *loop);

/** homad_ctl_attach_start() - get ready for HOMA_CTL_ATTACH, before any application can ask. */
int homad_ctl_attach_start(struct homad *d, char *err, size_t errlen);
/** homad_handover_start(), homad_handover_stop() - begin or end to hand attachments over from
 *  one process to another. */
int homad_handover_start(struct homad *d, char *err, size_t errlen);
void homad_handover_stop(struct homad *d);
/** homad_timer_open() - a timer (timerfd) for a source's descriptor, not armed. Returns it or a
 *  negative errno. */
int homad_timer_open(void);
/** homad_timer_set() - let the timer @fd fire every @interval_ns ns; 0 disarms it. A timer is
 *  armed only while somebody needs it. */
int homad_timer_set(int fd, u64 interval_ns);

/* The parts of the slow path. Each _start() returns 0, or a negative errno with a sentence in
 * @err. */
int homad_attach_start(struct homad *d, char *err, size_t errlen);
void homad_attach_stop(struct homad *d);
int homad_monitor_start(struct homad *d, char *err, size_t errlen);
void homad_monitor_stop(struct homad *d);
int homad_metrics_start(struct homad *d, char *err, size_t errlen);
void homad_metrics_stop(struct homad *d);
int homad_scaling_start(struct homad *d, char *err, size_t errlen);
void homad_scaling_stop(struct homad *d);

#endif
