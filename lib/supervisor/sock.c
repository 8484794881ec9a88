// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets of the program that are homad's. They are found by the cookie of the socket that the
 * program has, which the kernel gives once: so it does not matter by which number and in which
 * process it is used, and after which fork() or dup().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "homa_clock.h"
#include "supervisor.h"

/* As many calls may wait for a socket before those are looked for that were interrupted. */
#define FEW_CALLS 64

static struct homa_list *bucket_of(struct homa_supervisor *sv, u64 cookie)
{
	/* Cookies are counted up, from a place of each processor. */
	return &sv->bucket[(cookie ^ cookie >> 12) % HOMA_SV_BUCKETS];
}

struct homa_sv_sock *homa_sv_new(struct homa_supervisor *sv, int family,
				 enum homa_sv_kind kind, u64 cookie)
{
	struct homa_sv_sock *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cookie = cookie;
	s->kind = kind;
	s->family = family;
	s->end = s->kernel = -1;
	s->until = ~(u64)0;
	homa_list_init(&s->turn);
	homa_list_init(&s->fail);
	homa_list_init(&s->calls);
	homa_list_init(&s->came);
	homa_list_init(&s->kin);
	homa_list_add_tail(bucket_of(sv, cookie), &s->link);
	if (kind == HOMA_SV_LISTENER)
		homa_list_add_tail(&sv->listeners, &s->kin);
	else if (kind == HOMA_SV_CONNECTING)
		homa_list_add_tail(&sv->connecting, &s->kin);
	return s;
}

struct homa_sv_sock *homa_sv_find(struct homa_supervisor *sv, u64 cookie)
{
	struct homa_list *head = bucket_of(sv, cookie), *node;

	for (node = head->next; node != head; node = node->next) {
		struct homa_sv_sock *s =
			homa_container_of(node, struct homa_sv_sock, link);

		if (s->cookie == cookie)
			return s;
	}
	return NULL;
}

struct homa_sv_sock *homa_sv_find_listener(struct homa_supervisor *sv,
					   u64 kernel_cookie)
{
	struct homa_list *node;

	for (node = sv->listeners.next; node != &sv->listeners;
	     node = node->next) {
		struct homa_sv_sock *s =
			homa_container_of(node, struct homa_sv_sock, kin);

		if (s->kernel_cookie == kernel_cookie)
			return s;
	}
	return NULL;
}

void homa_sv_rename(struct homa_supervisor *sv, struct homa_sv_sock *s, u64 cookie)
{
	homa_list_del(&s->link);
	s->cookie = cookie;
	homa_list_add_tail(bucket_of(sv, cookie), &s->link);
}

void homa_sv_turn(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	if (!s->dead && !homa_list_linked(&s->turn))
		homa_list_add_tail(&sv->turns, &s->turn);
}

void homa_sv_drop(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct homa_list *node;

	if (s->dead)
		return;
	s->dead = true;
	if (s->stream) {
		homa_stream_set_user(s->stream, NULL);
		if (s->kind == HOMA_SV_LISTENER)
			homa_stream_close(s->stream);
		else
			homa_stream_abort(s->stream);
	}
	/* Another process may have the socket and wait in accept(). */
	if (s->kind == HOMA_SV_LISTENER) {
		/* It stays in the set while another process has the socket. */
		if (s->watches_kernel)
			epoll_ctl(sv->epoll, EPOLL_CTL_DEL, s->kernel, NULL);
		fcntl(s->kernel, F_SETFL, s->kernel_flags);
		sv->listened_at = homa_clock_ns();
	}
	while ((node = homa_list_pop(&s->calls))) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);

		homa_sv_pass(sv, call);
		free(call);
	}
	while ((node = homa_list_pop(&s->came))) {
		struct homa_sv_came *one =
			homa_container_of(node, struct homa_sv_came, link);

		if (one->stream)
			homa_stream_abort(one->stream);
		else if (one->fd >= 0)
			close(one->fd);
		free(one);
	}
	if (s->kind == HOMA_SV_OPEN)
		sv->num_open--;
	if (homa_list_linked(&s->fail))
		sv->num_failed--;
	homa_list_del(&s->fail);
	homa_list_del(&s->link);
	homa_list_del(&s->kin);
	homa_list_del(&s->turn);
	if (s->end >= 0)
		close(s->end);
	if (s->kernel >= 0)
		close(s->kernel);
	homa_list_add_tail(&sv->dead, &s->turn);
}

void homa_sv_bury(struct homa_supervisor *sv)
{
	struct homa_list *node;

	while ((node = homa_list_pop(&sv->dead)))
		free(homa_container_of(node, struct homa_sv_sock, turn));
}

/* Nobody tells us of calls that wait no more because a signal has come. */
static void forget_interrupted(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct homa_list *node, *next;

	s->num_calls = 0;
	for (node = s->calls.next; node != &s->calls; node = next) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);

		next = node->next;
		if (homa_sv_valid(sv, call)) {
			s->num_calls++;
			continue;
		}
		homa_list_del(node);
		free(call);
	}
	/* So the look at all of them costs each call that comes only a few looks. */
	s->most_calls = 2 * s->num_calls + FEW_CALLS;
}

int homa_sv_keep_call(struct homa_supervisor *sv, struct homa_sv_sock *s,
		      const struct homa_sv_call *call, u64 until)
{
	struct homa_sv_call *kept = malloc(sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	if (++s->num_calls > s->most_calls)
		forget_interrupted(sv, s);
	*kept = *call;
	kept->fd = -1;
	kept->until = until;
	homa_list_add_tail(&s->calls, &kept->link);
	return 0;
}

int homa_sv_watch(struct homa_supervisor *sv, struct homa_sv_sock *s, int fd,
		  bool kernel)
{
	/* Structs are aligned, so the lowest bit is free. */
	struct epoll_event event = {
		.events = kernel ? EPOLLIN :
				   EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u64 = (u64)(uintptr_t)s | (kernel ? 1u : 0u),
	};

	return epoll_ctl(sv->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}
