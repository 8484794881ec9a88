// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How often a user may ask. Most requests make a fast-path thread do something
 * for their sender between two rounds, and whoever asked without end would take
 * time from all others. So a user has a burst and then a rate, all his connections
 * together, since he can have as many as he likes; beyond it his requests stay in
 * their sockets for a while. A request for which several rounds are waited for counts
 * as several. So do requests stay of an attachment for whose user many descriptors
 * wait to be closed (closing.h). The timer that lets clients go on runs only while
 * somebody waits.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "attach.h"
#include "closing.h"

/* The time after which a client that asks too often is looked at again, in ns. */
#define PAUSE 20000000ull

static bool may_ask(const struct homad_client *client, u64 now)
{
	return client->user->paid_until + HOMAD_REQUEST_NS <= now &&
	       (!client->app || homad_may_pass(client->user));
}

bool homad_throttle(struct homad *d, struct homad_client *client)
{
	struct homad_attach *attach = homad_attach(d);
	struct homad_user *user = client->user;
	u64 now = homa_clock_ns();

	if (!homad_throttle_counts(user))
		user->paid_until = now - HOMAD_REQUESTS * HOMAD_REQUEST_NS;
	if (may_ask(client, now))
		return false;
	if (homa_list_empty(&attach->waiting))
		homad_timer_set(attach->pause.fd, PAUSE);
	if (!homa_list_linked(&client->waiting))
		homa_list_add_tail(&attach->waiting, &client->waiting);
	return true;
}

static void pause_ready(struct homad *d, struct homad_source *source, u32 events)
{
	struct homad_attach *attach = homad_attach(d);
	struct homa_list *node = attach->waiting.next;
	u64 count, now = homa_clock_ns();

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	while (node != &attach->waiting) {
		struct homad_client *client =
			homa_container_of(node, struct homad_client, waiting);

		node = node->next;
		if (!may_ask(client, now))
			continue;
		homa_list_del(&client->waiting);
		homad_client_watch(d, client);
	}
	if (homa_list_empty(&attach->waiting))
		homad_timer_set(source->fd, 0);
}

int homad_throttle_start(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	homa_list_init(&attach->waiting);
	attach->pause.ready = pause_ready;
	attach->pause.fd = homad_timer_open();
	return attach->pause.fd < 0 ? attach->pause.fd :
				      homad_watch(d, &attach->pause, EPOLLIN);
}

void homad_throttle_stop(struct homad *d)
{
	struct homad_attach *attach = homad_attach(d);

	homad_unwatch(d, &attach->pause);
	if (attach->pause.fd >= 0)
		close(attach->pause.fd);
}
