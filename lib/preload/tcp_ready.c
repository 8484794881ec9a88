// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a socket is ready for, which sockets of an epoll set are, and sets in sets. What is
 * in the ready list of a set may be ready: it is looked at when somebody asks. A set that is
 * in another one has an eventfd in the kernel's set that is readable exactly while a stream of
 * its list is ready; so the kernel tells all sets around it, at any depth, and those who
 * poll() these.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include "internal.h"
#include "preload_sock.h"
#include "tcp_common.h"
#include "tcp_ready.h"
#include "real.h"

/* The sets that are in others. */
static struct homa_pl_set *nested;

/* ---- one socket ---- */

short homa_pl_tcp_ready(struct homa_pl_sock *s)
{
	const struct homa_pl_tcp *tcp = s->tcp;
	unsigned int bits = homa_stream_ready(tcp->last);
	int events = 0;

	homa_pl_tcp_fetch(s);
	if (tcp->listens)
		return bits & HOMA_STREAM_IN ? POLLIN | POLLRDNORM : 0;
	if (!HOMA_PL_LIKELY(!homa_stream_marks(tcp->last)))
		events = homa_pl_tcp_urgent_ready(s, &bits);
	if ((bits & HOMA_STREAM_IN) && tcp->least > 1 &&
	    !homa_pl_tcp_has(tcp->last, tcp->least))
		bits &= ~(unsigned int)HOMA_STREAM_IN;
	if ((bits & (HOMA_STREAM_IN | HOMA_STREAM_EOF | HOMA_STREAM_ERROR)) ||
	    tcp->shut_read)
		events |= POLLIN | POLLRDNORM;
	if ((bits & (HOMA_STREAM_OUT | HOMA_STREAM_ERROR)) || tcp->shut_write)
		events |= POLLOUT | POLLWRNORM;
	if ((bits & (HOMA_STREAM_EOF | HOMA_STREAM_ERROR)) || tcp->shut_read)
		events |= POLLRDHUP;
	if ((bits & HOMA_STREAM_ERROR) && !tcp->error_told)
		events |= POLLERR;
	if ((bits & HOMA_STREAM_HUP) || (tcp->shut_read && tcp->shut_write))
		events |= POLLHUP;
	return (short)events;
}

/* ---- ready lists ---- */

void homa_pl_set_nudge(struct homa_pl_set *set)
{
	uint64_t one = 1;

	if (!set->sleepers)
		return;
	set->nudged = true;
	if (HOMA_PL_REAL(write)(set->nudge_fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the descriptor is readable. */
}

struct homa_pl_watch *homa_pl_ready_take(struct homa_pl_set *set)
{
	struct homa_pl_watch *w = set->first;

	if (!w)
		return NULL;
	set->first = w->of_ready;
	if (!set->first)
		set->last = &set->first;
	w->ready = false;
	return w;
}

void homa_pl_ready_remove(struct homa_pl_watch *w)
{
	struct homa_pl_watch **at = &w->set->first;

	if (!w->ready)
		return;
	while (*at != w)
		at = &(*at)->of_ready;
	*at = w->of_ready;
	if (!*at)
		w->set->last = at;
	w->ready = false;
}

uint32_t homa_pl_ready_events(const struct homa_pl_watch *w)
{
	uint32_t got = 0;

	if (homa_pl_once_was_told(w))
		return 0;
	if (HOMA_PL_LIKELY(w->sock->tcp->stream))
		got = (uint32_t)(unsigned short)homa_pl_tcp_ready(w->sock);
	if (!HOMA_PL_LIKELY(got || !w->spot))
		got = homa_pl_watch_kernels(w);

	/* epoll's bits are the same as poll()'s. */
	return got & (w->event.events | EPOLLERR | EPOLLHUP);
}

/* Take out of the list what is not ready, up to the first that is; false if none is. */
static bool has_ready(struct homa_pl_set *set)
{
	while (set->first && !homa_pl_ready_events(set->first))
		homa_pl_ready_take(set);
	return set->first;
}

/* ---- sets in sets ---- */

static void empty(int fd)
{
	uint64_t count;

	if (HOMA_PL_REAL(read)(fd, &count, sizeof(count)) < 0)
		return; /* It was empty. */
}

void homa_pl_set_tell(struct homa_pl_set *set, bool news)
{
	uint64_t one = 1;
	bool ready;

	if (HOMA_PL_LIKELY(set->ready_fd < 0))
		return;
	/* A nudge that came too late for a thread that slept here says nothing to others. */
	if (set->nudged && !set->sleepers) {
		empty(set->nudge_fd);
		set->nudged = false;
	}
	ready = has_ready(set);
	if (!ready && set->told)
		empty(set->ready_fd);
	else if (ready && (news || !set->told) &&
		 HOMA_PL_REAL(write)(set->ready_fd, &one, sizeof(one)) < 0)
		ready = set->told;
	set->told = ready;
}

void homa_pl_ready_put(struct homa_pl_watch *w, const struct homa_pl_set *looks)
{
	struct homa_pl_set *set = w->set;

	if (homa_pl_once_was_told(w))
		return;
	if (!w->ready) {
		w->ready = true;
		w->of_ready = NULL;
		*set->last = w;
		set->last = &w->of_ready;
		if (set != looks)
			homa_pl_set_nudge(set);
	}
	homa_pl_set_tell(set, true);
}

void homa_pl_sets_tell(void)
{
	struct homa_pl_set *set;

	for (set = nested; set; set = set->next_nested)
		homa_pl_set_tell(set, false);
}

static int add_ready_fd(struct homa_pl_set *set, int epfd)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.ptr = &set->ready_cookie };
	int fd = homa_pl_own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), rc;

	if (fd < 0)
		return -errno;
	if (HOMA_PL_REAL(epoll_ctl)(epfd, EPOLL_CTL_ADD, fd, &event)) {
		rc = -errno;
		homa_pl_close_own_fd(fd);
		return rc;
	}
	set->ready_fd = fd;
	set->next_nested = nested;
	nested = set;
	homa_pl_set_tell(set, false);
	return 0;
}

void homa_pl_set_is_polled(struct homa_pl_set *set, int epfd)
{
	if (HOMA_PL_LIKELY(set->polled))
		return;
	set->polled = true;
	if (!set->sleepers)
		homa_pl_ear_close(&set->ear, epfd);
}

int homa_pl_set_is_nested(struct homa_pl_set *set, int epfd)
{
	int rc = 0;

	homa_pl_tcp_lock();
	homa_pl_set_is_polled(set, epfd);
	if (set->ready_fd < 0)
		rc = add_ready_fd(set, epfd);
	homa_pl_tcp_unlock();
	return rc;
}

void homa_pl_set_is_single(struct homa_pl_set *set)
{
	struct homa_pl_set **at = &nested;

	if (set->ready_fd < 0)
		return;
	while (*at != set)
		at = &(*at)->next_nested;
	*at = set->next_nested;
	homa_pl_close_own_fd(set->ready_fd);
}

bool homa_pl_tcp_set_ready(const struct homa_pl_sock *s)
{
	bool ready;

	homa_pl_tcp_lock();
	homa_pl_set_is_polled(s->set, s->set->epfd);
	homa_pl_sets_tell();
	ready = has_ready(s->set);
	homa_pl_tcp_unlock();
	return ready;
}

void homa_pl_tcp_sets_tell(void)
{
	homa_pl_tcp_lock();
	homa_pl_sets_tell();
	homa_pl_tcp_unlock();
}
