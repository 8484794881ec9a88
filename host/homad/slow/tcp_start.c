// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The beginning and end of TCP on the slow path: what it is called for, and by whom. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "tcp_slow.h"
#include "tcp_steer.h"

static void called(struct homad *d, struct homad_source *source, u32 events)
{
	u64 count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	homad_streams_wanted(d);
}

static int watch_calls(struct homad *d)
{
	struct homad_source *calls = &homad_slow(d)->tcp->calls;
	u32 i;

	calls->ready = called;
	calls->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (calls->fd < 0)
		return -errno;
	for (i = 0; i < d->steering->num; i++)
		d->steering->tcp[i]->slow_fd = calls->fd;
	return homad_watch(d, calls, EPOLLIN);
}

static int watch_tick(struct homad *d)
{
	struct homad_source *tick = &homad_slow(d)->tcp->tick;

	homa_list_init(&homad_slow(d)->tcp->grown);
	tick->ready = homad_streams_tick;
	tick->fd = homad_timer_open();
	return tick->fd < 0 ? tick->fd : homad_watch(d, tick, EPOLLIN);
}

int homad_tcp_start(struct homad *d, char *err, size_t errlen)
{
	u32 i;
	int rc;

	if (!d->config.num_tcp_rules || !d->steering)
		return 0;
	homad_slow(d)->tcp = calloc(1, sizeof(struct homad_tcp_ports));
	if (!homad_slow(d)->tcp) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	homa_list_init(&homad_slow(d)->tcp->limits);
	homa_list_init(&homad_slow(d)->tcp->tickets);
	for (i = 0; i < HOMAD_HELD_BUCKETS; i++)
		homa_list_init(&homad_slow(d)->tcp->held[i]);
	rc = watch_calls(d);
	if (!rc)
		rc = watch_tick(d);
	if (rc) {
		snprintf(err, errlen, "cannot serve TCP: %s", strerror(-rc));
		return rc;
	}
	homad_ctl_serve(HOMA_CTL_STREAMS, homad_op_streams);
	homad_ctl_serve(HOMA_CTL_STREAM_LISTEN, homad_op_stream_listen);
	homad_ctl_serve(HOMA_CTL_STREAM_SHARE, homad_op_stream_share);
	homad_ctl_serve(HOMA_CTL_STREAM_JOIN, homad_op_stream_join);
	homad_ctl_serve(HOMA_CTL_STREAM_TAKE, homad_op_stream_take);
	return homad_tcp_keep_ports(d, err, errlen);
}

/* Frees the listeners of attachments that are still there; the threads have ended. */
static void drop_listeners(struct homa_list *held)
{
	struct homa_list *node;

	while ((node = homa_list_pop(held))) {
		struct homad_tcp_listener *listener =
			homa_container_of(node, struct homad_tcp_listener, held);

		listener->user->listeners--;
		homad_user_put(listener->user);
		free(listener);
	}
}

void homad_tcp_stop(struct homad *d)
{
	struct homad_tcp_ports *ports = homad_slow(d) ? homad_slow(d)->tcp : NULL;
	u32 i;

	if (!ports)
		return;
	for (i = 0; i < ports->num_fds; i++)
		close(ports->fds[i]);
	homad_shares_stop(d);
	for (i = 0; i < HOMAD_HELD_BUCKETS; i++)
		drop_listeners(&ports->held[i]);
	/* Attachments release their limits later, so these are only taken out of the
	 * list. */
	while (homa_list_pop(&ports->limits))
		;
	homad_unwatch(d, &ports->calls);
	if (ports->calls.fd > 0)
		close(ports->calls.fd);
	while (homa_list_pop(&ports->grown))
		;
	homad_unwatch(d, &ports->tick);
	if (ports->tick.fd > 0)
		close(ports->tick.fd);
	free(ports);
	homad_slow(d)->tcp = NULL;
}
