// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Dedicated mode: how many cores the fast path has. The rule is TAS's (EuroSys
 * '19, section 3.4): a core goes when more than 1.25 of them are idle in
 * aggregate, one comes when less than 0.2 is. The active threads are always the
 * first ones. Attachments, instances of TCP and device queues follow: a queue's socket, and with it
 * its entry in the XDP redirect map, is handed to another thread as it is, so no
 * packet goes astray while that happens.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "fast.h"
#include "log.h"
#include "moving.h"
#include "slowpath.h"
#include "tcp_homes.h"

/**
 * struct homad_scaling - the slow path's view of the threads
 * @timer: It goes off every homad_config.scale_ms.
 * @busy: The time that each thread had worked when it was last looked at, ns.
 * @idle: The time that each thread had found nothing to do when it was last looked at, ns.
 */
struct homad_scaling {
	struct homad_source timer;
	u64 busy[HOMAD_MAX_THREADS];
	u64 idle[HOMAD_MAX_THREADS];
};

/* ---- on a fast-path thread, by homad_call() ---- */

static int drop_port(struct homad_thread *t, void *arg)
{
	struct homad_port *port = arg;
	u32 i;

	for (i = 0; i < t->num_ports && t->ports[i] != port; i++)
		;
	if (i == t->num_ports)
		return -ENOENT;
	t->ports[i] = t->ports[--t->num_ports];
	homad_egress_leave(t, port);
	epoll_ctl(t->epfd, EPOLL_CTL_DEL, nic_fd(port->nic), NULL);
	return 0;
}

static int serve_port(struct homad_thread *t, void *arg)
{
	return homad_thread_serve(t, arg);
}

static int set_active(struct homad_thread *t, void *arg)
{
	t->active = arg != NULL;
	t->deadline = 0;
	return 0;
}

/* ---- on the slow path ---- */

static void move_port(struct homad *d, struct homad_port *port, u32 to)
{
	int rc;

	if (port->thread == to)
		return;
	if (homad_call(d->threads[port->thread], drop_port, port))
		return;
	rc = homad_call(d->threads[to], serve_port, port);
	if (rc)
		homad_log(HOMAD_ERROR,
			  "a device queue is served by nobody\tdevice=%s error=%d",
			  port->name, rc);
}

/* Is it the first port of a device that carries TCP? */
static bool begins_tcp(const struct homad *d, const struct homad_port *port)
{
	u32 i;

	if (!d->config.num_tcp_rules || !homad_port_tcp(port))
		return false;
	for (i = 0; i < port->index; i++)
		if (d->ports[i].nic && !d->ports[i].encap &&
		    d->ports[i].ifindex == port->ifindex)
			return false;
	return true;
}

u32 homad_thread_for_port(const struct homad *d, const struct homad_port *port,
			  u32 active, u32 *next)
{
	u32 index;

	if (begins_tcp(d, port)) {
		*next = 1;
		return 0;
	}
	index = *next % active;
	*next = index + 1;
	return index;
}

static void spread_ports(struct homad *d, u32 active)
{
	u32 i, next = 0;

	for (i = 0; i < d->num_ports; i++)
		if (d->ports[i].nic)
			move_port(d, &d->ports[i],
				  homad_thread_for_port(d, &d->ports[i], active,
							&next));
}

/* Returns which of the active threads has the most attachments, but for those in @stuck. */
static u32 most_apps(const struct homad *d, u32 active, u32 stuck)
{
	u32 i, best = HOMAD_MAX_THREADS;

	for (i = 0; i < active; i++)
		if (!(stuck >> i & 1) &&
		    (best == HOMAD_MAX_THREADS ||
		     d->threads[i]->num_apps > d->threads[best]->num_apps))
			best = i;
	return best;
}

static u32 fewest_apps(const struct homad *d, u32 active)
{
	u32 i, best = 0;

	for (i = 1; i < active; i++)
		if (d->threads[i]->num_apps < d->threads[best]->num_apps)
			best = i;
	return best;
}

struct homad_thread *homad_thread_for_app(struct homad *d)
{
	return d->threads[fewest_apps(d, d->num_active)];
}

static void spread_apps(struct homad *d, u32 active)
{
	u32 i, most, least, stuck = 0;

	for (i = active; i < d->num_threads; i++)
		while (d->threads[i]->num_apps &&
		       !homad_move_app(d, NULL, i, fewest_apps(d, active)))
			;
	for (;;) {
		most = most_apps(d, active, stuck);
		least = fewest_apps(d, active);
		if (most == HOMAD_MAX_THREADS ||
		    d->threads[most]->num_apps < d->threads[least]->num_apps + 2)
			return;
		/* A thread that has attachments with streams only keeps them. */
		if (homad_move_app(d, NULL, most, least))
			stuck |= 1u << most;
	}
}

void homad_scale_to(struct homad *d, u32 active)
{
	u32 i, before = d->num_active;

	for (i = before; i < active; i++)
		homad_call(d->threads[i], set_active, d);
	__atomic_store_n(&d->num_active, active, __ATOMIC_RELAXED);
	/* From here on the engine's timers of these threads are divided among all active
	 * ones. */
	for (i = 0; i < homa_min_u32(before, active); i++)
		homad_call(d->threads[i], set_active, d);
	/* A thread runs TCP only while it serves the queues by which that leaves. */
	if (active < before)
		homad_tcps_spread(d, active);
	spread_ports(d, active);
	homad_tcps_spread(d, active);
	spread_apps(d, active);
	for (i = active; i < before; i++)
		homad_call(d->threads[i], set_active, NULL);
	homad_log(HOMAD_INFO, "fast path changed its cores\tfrom=%u to=%u",
		  before, active);
}

/* Returns how much of the active threads' cores was idle since last time, in hundredths of a
 * core. */
static u32 idle_cores(struct homad *d, struct homad_scaling *s)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < d->num_threads; i++) {
		const struct homad_counters *c = &d->threads[i]->counters;
		u64 busy = HOMA_READ_ONCE(c->busy_ns);
		u64 idle = HOMA_READ_ONCE(c->idle_ns);
		u64 all = busy - s->busy[i] + idle - s->idle[i];

		if (i < d->num_active && all)
			sum += 100 * (idle - s->idle[i]) / all;
		s->busy[i] = busy;
		s->idle[i] = idle;
	}
	return (u32)sum;
}

static void tick(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_scaling *s =
		homa_container_of(source, struct homad_scaling, timer);
	u32 idle;
	u64 fired;

	(void)events;
	if (read(source->fd, &fired, sizeof(fired)) < 0)
		return;
	idle = idle_cores(d, s);
	if (idle > d->config.scale_idle && d->num_active > 1)
		homad_scale_to(d, d->num_active - 1);
	else if (idle < d->config.scale_busy && d->num_active < d->num_threads)
		homad_scale_to(d, d->num_active + 1);
}

int homad_scaling_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_scaling *s;
	int rc;

	if (d->config.mode != HOMAD_DEDICATED || !d->config.scale ||
	    d->num_threads == 1)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->timer.fd = homad_timer_open();
	s->timer.ready = tick;
	rc = s->timer.fd;
	if (rc >= 0)
		rc = homad_watch(d, &s->timer, EPOLLIN);
	if (rc >= 0)
		rc = homad_timer_set(s->timer.fd,
				     d->config.scale_ms * 1000000ull);
	if (rc < 0) {
		snprintf(err, errlen, "cannot set a timer for core scaling");
		free(s);
		return rc;
	}
	d->scaling = s;
	homad_scale_to(d, 1);
	return 0;
}

void homad_scaling_stop(struct homad *d)
{
	if (!d->scaling)
		return;
	homad_unwatch(d, &d->scaling->timer);
	close(d->scaling->timer.fd);
	free(d->scaling);
	d->scaling = NULL;
}
