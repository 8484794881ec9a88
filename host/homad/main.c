// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's beginning and end. The order matters: what can be refused without
 * having touched anything comes first (the configuration, a second homad), then
 * the interfaces and threads, then the doors open, and only when all of it stands
 * are privileges given up and systemd told. The end is the same backwards, and
 * an application sees "stopping" before its connection ends.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "admin.h"
#include "closing.h"
#include "config_schema.h"
#include "log.h"
#include "notify.h"
#include "homad_options.h"
#include "privileges.h"
#include "routes.h"
#include "signals.h"
#include "slowpath.h"
#include "tcp_slow.h"
#include "worker.h"

/* struct part - something that is started in this order and stopped in the other */
struct part {
	/* Starts it: 0, or a negative errno with a sentence in @err. */
	int (*start)(struct homad *d, char *err, size_t errlen);
	/* Stops it. */
	void (*stop)(struct homad *d);
};

static int start_slow(struct homad *d, char *err, size_t errlen)
{
	int rc = homad_slow_init(d);

	if (rc)
		snprintf(err, errlen, "cannot start: %s", strerror(-rc));
	return rc;
}

static int stop_only(struct homad *d, char *err, size_t errlen)
{
	(void)d;
	(void)err;
	(void)errlen;
	return 0;
}

static void stop_nothing(struct homad *d)
{
	(void)d;
}

/*
 * All sockets are made before homad_start(), which gives up privileges; who
 * looks in is sent away before the threads end. Stopping twice is harmless.
 */
static const struct part parts[] = {
	{ start_slow, homad_slow_free },
	{ homad_signals_start, homad_signals_stop },
	{ homad_closing_start, stop_nothing },
	{ homad_ctl_attach_start, stop_nothing },
	/* This part is stopped after the attachments. */
	{ homad_handover_start, homad_handover_stop },
	{ homad_attach_start, homad_attach_stop },
	{ homad_routes_listen, homad_routes_forget },
	{ homad_monitor_start, homad_monitor_stop },
	{ homad_metrics_start, homad_metrics_stop },
	/* TCP's ports are kept until the threads have ended. */
	{ stop_only, homad_tcp_stop },
	{ homad_start, homad_stop },
	{ homad_tcp_start, stop_nothing },
	{ homad_worker_start, homad_worker_stop },
	{ homad_routes_start, homad_routes_stop },
	{ stop_only, homad_monitor_stop },
	{ stop_only, homad_metrics_stop },
	{ homad_scaling_start, homad_scaling_stop },
	{ homad_admin_start, homad_admin_stop },
};

static void stop(struct homad *d, u32 started)
{
	/* Attachments end after the threads that serve them. */
	while (started)
		parts[--started].stop(d);
}

static int serve(struct homad *d)
{
	char err[512] = "";
	u32 i;
	int rc;

	for (i = 0; i < HOMA_ARRAY_SIZE(parts); i++) {
		rc = parts[i].start(d, err, sizeof(err));
		if (!rc)
			continue;
		homad_log(HOMAD_ERROR, "%s", err);
		stop(d, i);
		return 1;
	}
	homad_log(HOMAD_INFO, "ready\tsocket=%s threads=%u", d->config.socket,
		  d->num_threads);
	homad_notify("READY=1\nSTATUS=serving");
	rc = homad_loop_run(d, &homad_slow(d)->loop);
	homad_notify("STOPPING=1");
	homad_log(HOMAD_INFO, "stopping");
	if (rc)
		homad_log(HOMAD_ERROR, "cannot wait for events: %s",
			  strerror(-rc));
	stop(d, i);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	enum homad_action action;
	struct homad *d;
	int rc;

	d = aligned_alloc(64, (sizeof(*d) + 63) / 64 * 64);
	if (!d)
		return 1;
	memset(d, 0, sizeof(*d));
	rc = homad_options(&d->config, argc, argv, &action);
	if (rc || action == HOMAD_SAID)
		goto out;
	if (action == HOMAD_CONFIG_HELP) {
		homad_config_help(stdout);
		goto out;
	}
	if (action == HOMAD_CHECK) {
		printf("%s: the configuration is right\n",
		       d->config.file[0] ? d->config.file : "homad");
		goto out;
	}
	homad_log_init(d->config.log_level, d->config.log_format);
	homad_signals_args(argc, argv);
	homad_limits_raise(d);
	rc = serve(d);
out:
	free(d);
	return rc;
}
