// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The thread for routes. Which way a destination is, the kernel says by netlink, mostly at
 * once, but it may wait for a lock that others hold. Neither the control thread nor a
 * fast-path thread waits for that: they put questions into stacks, and each answer goes to
 * a fast-path thread as a job. Those of devices go first, which hold packets meanwhile
 * (ways.c), then those of commands (dest.c), and there are few of either; a client has one
 * at a time, by HOMA_CTL_ROUTE, and no other request of it is read meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "attach.h"
#include "routes.h"

/**
 * struct homad_routes - the thread that asks the kernel for routes; homad_slow.routes points to it
 * @d: The daemon.
 * @thread: The thread.
 * @stop: The thread shall end.
 * @rtnl: The thread's connection to the kernel, which it alone uses.
 * @asked: An atomic stack of questions that the control thread asks for clients.
 */
struct homad_routes {
	struct homad *d;
	pthread_t thread;
	bool stop;
	struct nic_rtnl rtnl;
	struct homad_question *asked;
};

/* ---- the thread ---- */

static void ask_kernel(struct homad_routes *routes, struct homad_question *q)
{
	q->error = nic_route_get(&routes->rtnl, &q->addr, 0, &q->route);
	if (q->is_new && !q->error && !q->route.local && !q->addr.encap) {
		q->way.dst = q->addr;
		q->way.ifindex = q->route.ifindex;
		nic_way_ask(&routes->rtnl, &q->way);
	}
	/* From here on @q belongs to the thread that asked. */
	homad_post(q->thread, &q->job);
}

static void ask_for_devices(struct homad_routes *routes)
{
	struct homad_way_question *q =
		__atomic_exchange_n(&routes->d->way_questions, NULL,
				    __ATOMIC_ACQUIRE);

	while (q) {
		struct homad_way_question *next = q->next;

		nic_way_ask(&routes->rtnl, &q->way);
		homad_post(routes->d->threads[HOMA_READ_ONCE(q->port->thread)],
			   &q->job);
		q = next;
	}
}

/* Takes everything from an atomic stack and returns it with the oldest first. */
static struct homad_question *take(struct homad_question **stack)
{
	struct homad_question *q =
		__atomic_exchange_n(stack, NULL, __ATOMIC_ACQUIRE);
	struct homad_question *first = NULL, *next;

	for (; q; q = next) {
		next = q->next;
		q->next = first;
		first = q;
	}
	return first;
}

static void *answer_all(void *arg)
{
	struct homad_routes *routes = arg;
	struct homad_question *q, *next, *clients = NULL;
	u64 count;

	while (!__atomic_load_n(&routes->stop, __ATOMIC_ACQUIRE)) {
		ask_for_devices(routes);
		for (q = take(&routes->d->questions); q; q = next) {
			next = q->next;
			ask_kernel(routes, q);
		}
		if (!clients)
			clients = take(&routes->asked);
		q = clients;
		if (q) {
			clients = q->next;
			ask_kernel(routes, q);
		} else if (read(routes->d->questions_fd, &count, sizeof(count)) <
			   0) {
			break;
		}
	}
	return NULL;
}

static void bell(struct homad *d)
{
	u64 one = 1;

	if (write(d->questions_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

int homad_routes_start(struct homad *d, char *err, size_t errlen)
{
	struct homad_routes *routes = calloc(1, sizeof(*routes));
	int rc = -ENOMEM;

	if (!routes)
		goto fail;
	routes->d = d;
	rc = nic_rtnl_open(&routes->rtnl, 0);
	if (rc)
		goto no_rtnl;
	rc = -pthread_create(&routes->thread, NULL, answer_all, routes);
	if (rc)
		goto no_thread;
	pthread_setname_np(routes->thread, "homad-routes");
	homad_slow(d)->routes = routes;
	__atomic_store_n(&d->routes, true, __ATOMIC_RELEASE);
	return 0;
no_thread:
	nic_rtnl_close(&routes->rtnl);
no_rtnl:
	free(routes);
fail:
	snprintf(err, errlen, "cannot start the thread for routes: %s",
		 strerror(-rc));
	return rc;
}

/* Fast-path threads are told to end next; what they ask now is never answered. */
void homad_routes_stop(struct homad *d)
{
	struct homad_routes *routes = homad_slow(d)->routes;

	if (!routes)
		return;
	__atomic_store_n(&routes->stop, true, __ATOMIC_RELEASE);
	bell(d);
	pthread_join(routes->thread, NULL);
	nic_rtnl_close(&routes->rtnl);
	free(routes);
	homad_slow(d)->routes = NULL;
}

/* ---- clients ---- */

static void tell(struct homad_client *client, int error)
{
	struct homa_ctl_answer answer = { .op = HOMA_CTL_ROUTE, .error = error };

	if (error)
		snprintf(answer.text, sizeof(answer.text), "%s",
			 strerror(-error));
	homad_answer(client, &answer, NULL, 0, NULL, 0, 0);
}

static void ask(struct homad *d, struct homad_client *client,
		const struct homad_question *question)
{
	struct homad_routes *routes = homad_slow(d)->routes;
	struct homad_asking *asking = malloc(sizeof(*asking));

	if (!asking) {
		tell(client, -ENOMEM);
		return;
	}
	asking->question = *question;
	asking->question.job = (struct homad_job){ .run = homad_session_routed,
						   .arg = &asking->question };
	asking->client = client;
	client->asking = asking;
	homa_list_add_tail(&homad_slow(d)->asking, &asking->list);
	HOMAD_PUSH(&routes->asked, &asking->question, next);
	bell(d);
}

static void op_route(struct homad *d, struct homad_client *client,
		     const struct homa_ctl_request *r)
{
	struct homad_question question = { .thread = client->app->thread,
					   .user = client->app->uid,
					   .is_new = true,
					   .addr.encap = r->encap };

	memcpy(question.addr.ip, r->ip, sizeof(question.addr.ip));
	if (homad_call(question.thread, homad_session_route, &question))
		tell(client, question.error);
	else
		ask(d, client, &question);
}

static void forget(struct homad_asking *asking)
{
	if (asking->client)
		asking->client->asking = NULL;
	homa_list_del(&asking->list);
	free(asking);
}

static void answered_ready(struct homad *d, struct homad_source *source,
			   u32 events)
{
	struct homad_question *q, *next;
	u64 count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	for (q = take(&d->answered); q; q = next) {
		struct homad_asking *asking =
			homa_container_of(q, struct homad_asking, question);
		struct homad_client *client = asking->client;
		int error = q->error;

		next = q->next;
		forget(asking);
		if (!client)
			continue;
		tell(client, error);
		homad_client_answered(d, client);
	}
}

int homad_routes_listen(struct homad *d, char *err, size_t errlen)
{
	struct homad_source *source = &homad_slow(d)->answered;
	int rc;

	d->questions_fd = eventfd(0, EFD_CLOEXEC);
	d->answered_fd = source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	source->ready = answered_ready;
	homad_ctl_serve(HOMA_CTL_ROUTE, op_route);
	if (d->questions_fd >= 0 && source->fd >= 0)
		rc = homad_watch(d, source, EPOLLIN);
	else
		rc = -errno;
	if (!rc)
		return 0;
	homad_routes_forget(d);
	snprintf(err, errlen, "cannot hear of routes: %s", strerror(-rc));
	return rc;
}

void homad_routes_forget(struct homad *d)
{
	struct homa_list *asking = &homad_slow(d)->asking;

	while (!homa_list_empty(asking))
		forget(homa_container_of(asking->next, struct homad_asking, list));
	homad_unwatch(d, &homad_slow(d)->answered);
	if (d->answered_fd >= 0)
		close(d->answered_fd);
	if (d->questions_fd >= 0)
		close(d->questions_fd);
	d->answered_fd = d->questions_fd = -1;
}
