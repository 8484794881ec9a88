// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Signals as sources of the loops (signalfd), so that nothing happens in the
 * middle of something else: TERM and INT end, HUP has the admin thread reload. Beside them two more
 * that come from outside the loop's own work: the watchdog, which asks every
 * fast-path thread to answer before systemd is told that we live, and faults in
 * the memory of an attachment (guard.c), which end it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "fast.h"
#include "guard.h"
#include "log.h"
#include "notify.h"
#include "reload.h"
#include "signals.h"

static struct {
	/* Signals that end homad. */
	struct homad_source signals;
	/* SIGHUP, by which the configuration is read again. */
	struct homad_source hangup;
	/* A timer by which systemd is told that all threads are alive. */
	struct homad_source watchdog;
	/* The eventfd of guard.c, which says that memory could not be read. */
	struct homad_source faults;
	/* The number of words of the command line, which is read again with the
	 * configuration. */
	int argc;
	/* The words of the command line. */
	char **argv;
} state;

void homad_signals_args(int argc, char **argv)
{
	state.argc = argc;
	state.argv = argv;
}

static void signal_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == sizeof(info))
		homad_slow(d)->loop.stop = true;
}

static void hangup_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == sizeof(info))
		homad_reload(d, state.argc, state.argv);
}

static int answer(struct homad_thread *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

static void watchdog_ready(struct homad *d, struct homad_source *source,
			   u32 events)
{
	u64 count;
	u32 i;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	/* A thread that hangs does not answer, and systemd restarts us. */
	for (i = 0; i < d->num_threads; i++)
		homad_call(d->threads[i], answer, NULL);
	homad_notify("WATCHDOG=1");
}

static int evict(struct homad_thread *t, void *arg)
{
	homad_app_evict(t, arg, "its memory could not be read");
	return 0;
}

static void fault_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_app *app;
	u64 count;

	(void)d;
	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	while ((app = homad_guard_next()))
		if (app->thread)
			homad_call(app->thread, evict, app);
}

static int watch(struct homad *d, struct homad_source *source, int fd,
		 void (*ready)(struct homad *, struct homad_source *, u32))
{
	source->fd = fd;
	source->ready = ready;
	return fd < 0 ? -errno : homad_watch(d, source, EPOLLIN);
}

/* Threads that are made later block them, too. */
static int watch_signals(struct homad *d)
{
	sigset_t ends, reloads;
	int rc;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigemptyset(&reloads);
	sigaddset(&reloads, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sigprocmask(SIG_BLOCK, &reloads, NULL);
	state.hangup.admin = true;
	rc = watch(d, &state.signals,
		   signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), signal_ready);
	if (!rc)
		rc = watch(d, &state.hangup,
			   signalfd(-1, &reloads, SFD_CLOEXEC | SFD_NONBLOCK),
			   hangup_ready);
	return rc;
}

int homad_signals_start(struct homad *d, char *err, size_t errlen)
{
	u64 interval = homad_watchdog_ns() / 3;
	int rc;

	homad_reload_init(d);
	state.signals.fd = state.hangup.fd = state.watchdog.fd =
		state.faults.fd = -1;
	rc = watch_signals(d);
	if (!rc)
		rc = watch(d, &state.faults,
			   eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), fault_ready);
	if (!rc)
		rc = homad_guard_start(state.faults.fd);
	if (!rc && interval) {
		rc = watch(d, &state.watchdog, homad_timer_open(),
			   watchdog_ready);
		if (!rc)
			rc = homad_timer_set(state.watchdog.fd, interval);
	}
	if (rc) {
		snprintf(err, errlen, "cannot wait for signals: %s",
			 strerror(-rc));
		homad_signals_stop(d);
	}
	return rc;
}

static void stop(struct homad *d, struct homad_source *source)
{
	homad_unwatch(d, source);
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}

void homad_signals_stop(struct homad *d)
{
	homad_guard_start(-1);
	homad_reload_free();
	stop(d, &state.signals);
	stop(d, &state.hangup);
	stop(d, &state.watchdog);
	stop(d, &state.faults);
}
