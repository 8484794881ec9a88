// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A child of fork() has copies of our descriptors, and with them homad would not see
 * its parent die: so they are closed there, and nothing else is touched. A connection
 * is listed as long as it is open, also one that is no handle's yet or any more.
 * Descriptors that are just arriving are not, and keep some memory in the child.
 *
 * Whoever attaches takes @lists_lock while his caller may hold locks of its own, as
 * libhoma-preload does. fork() has to take @lists_lock after those locks, too, or both
 * would wait for ever. It calls the handlers that were registered last first, so ours are
 * registered when the library is loaded, before any other.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct homa_list handles = { &handles, &handles };
static struct homa_list connections = { &connections, &connections };

static void before_fork(void)
{
	pthread_mutex_lock(&lists_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lists_lock);
}

static void close_all(const int *fds, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void in_child(void)
{
	struct homa_list *node;

	for (node = connections.next; node != &connections; node = node->next) {
		const struct homa_svc_att *att =
			homa_container_of(node, struct homa_svc_att, all);

		close_all((int[]){ att->sock, att->wake_fd, att->kick_fd }, 3);
	}
	for (node = handles.next; node != &handles; node = node->next) {
		const struct homa_svc *c =
			homa_container_of(node, struct homa_svc, all);

		close_all((int[]){ c->nudge_fd, c->ep_fd, c->level_fd,
				   c->ready_fd, c->timer_fd, c->may_send.fd,
				   c->may_send.timer },
			  7);
	}
	homa_list_init(&connections);
	homa_list_init(&handles);
	pthread_mutex_unlock(&lists_lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void list(struct homa_list *in, struct homa_list *node)
{
	pthread_mutex_lock(&lists_lock);
	homa_list_add_tail(in, node);
	pthread_mutex_unlock(&lists_lock);
}

void homa_svc_list_handle(struct homa_svc *c)
{
	list(&handles, &c->all);
}

void homa_svc_unlist_handle(struct homa_svc *c)
{
	pthread_mutex_lock(&lists_lock);
	homa_list_del(&c->all);
	pthread_mutex_unlock(&lists_lock);
}

int homa_svc_make_socket(struct homa_svc_att *att)
{
	int rc;

	list(&connections, &att->all);
	pthread_mutex_lock(&lists_lock);
	att->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	rc = att->sock < 0 ? -errno : 0;
	pthread_mutex_unlock(&lists_lock);
	return rc;
}

void homa_svc_close_fds(struct homa_svc_att *att)
{
	pthread_mutex_lock(&lists_lock);
	close_all((int[]){ att->sock, att->wake_fd, att->kick_fd }, 3);
	att->sock = att->wake_fd = att->kick_fd = -1;
	homa_list_del(&att->all);
	pthread_mutex_unlock(&lists_lock);
}
