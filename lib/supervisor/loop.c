// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What the supervisor waits for: calls, bytes of the program, and news of homad. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "homa_clock.h"
#include "supervisor.h"

#define BATCH 64
/* How long it looks for work before it sleeps, in ns of processor time. */
#define SPIN_MIN 2000u
#define SPIN_MAX 50000u
/* After the last program has ended, how long bytes may stand still before they are given up, ms. */
#define STILL_MS 60000

/* What an event of the epoll set is about, if it is not about a socket. */
enum { CALLS = 0, NEWS = 2 };

static int watch(struct homa_supervisor *sv, int fd, u64 what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(sv->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* ---- homad ---- */

static void news_of(struct homa_supervisor *sv, struct homa_stream *stream)
{
	struct homa_sv_sock *s = homa_stream_user(stream);

	if (!s || s->dead)
		return;
	if (s->kind == HOMA_SV_CONNECTING) {
		homa_sv_connect_news(sv, s);
	} else if (s->kind == HOMA_SV_OPEN) {
		homa_sv_copy(sv, s);
	} else if (s->kind == HOMA_SV_LISTENER) {
		homa_sv_take(sv, s);
		/* The kernel's listener goes on alone. */
		if (!s->stopped && homa_stream_error(stream)) {
			homa_stream_set_user(stream, NULL);
			homa_stream_close(stream);
			s->stream = NULL;
		}
	}
}

static int look_at_news(struct homa_supervisor *sv)
{
	struct homa_stream *news[BATCH];
	int i, n;

	if (!sv->streams)
		return 0;
	n = homa_streams_poll(sv->streams, news, BATCH);
	for (i = 0; i < n; i++)
		news_of(sv, news[i]);
	if (n >= 0)
		return n;
	homa_sv_debug("homad has ended; the kernel serves all from now on");
	epoll_ctl(sv->epoll, EPOLL_CTL_DEL, homa_streams_fd(sv->streams), NULL);
	/* Its memory stays, because streams that are not closed yet may use it. */
	sv->streams = NULL;
	return 0;
}

/* ---- the program ---- */

static void serve_socket(struct homa_supervisor *sv, u64 what, u32 events)
{
	struct homa_sv_sock *s =
		(struct homa_sv_sock *)(uintptr_t)(what & ~(u64)1);

	if (s->dead)
		return;
	if (what & 1) {
		homa_sv_take(sv, s);
		return;
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->may_read = true;
	if (events & EPOLLOUT)
		s->may_write = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->ends = true;
	if (events & EPOLLHUP)
		s->closed = true;
	if (s->kind == HOMA_SV_OPEN)
		homa_sv_copy(sv, s);
	else if (s->closed && !s->stopped)
		homa_sv_drop(sv, s);
}

static int look_at_events(struct homa_supervisor *sv, int timeout)
{
	struct epoll_event events[BATCH];
	struct homa_sv_call call;
	int i, n, work = 0;

	n = epoll_wait(sv->epoll, events, BATCH, timeout);
	for (i = 0; i < n; i++) {
		if (events[i].data.u64 == NEWS)
			continue;
		work++;
		if (events[i].data.u64 != CALLS)
			serve_socket(sv, events[i].data.u64, events[i].events);
		else if (events[i].events & EPOLLIN && homa_sv_receive(sv, &call))
			homa_sv_serve(sv, &call);
		else if (events[i].events & EPOLLHUP)
			sv->alone = true;
	}
	return work;
}

static int copy_more(struct homa_supervisor *sv)
{
	struct homa_list turns;
	struct homa_list *node;
	int n = 0;

	homa_list_init(&turns);
	homa_list_splice_tail(&turns, &sv->turns);
	while ((node = homa_list_pop(&turns))) {
		homa_sv_copy(sv,
			     homa_container_of(node, struct homa_sv_sock, turn));
		n++;
	}
	return n;
}

/* ---- sleeping ---- */

static int until_late(struct homa_supervisor *sv, u64 now)
{
	u64 a = homa_sv_connect_late(sv, now), b = homa_sv_accept_late(sv, now);
	u64 first = a < b ? a : b;

	if (first == ~(u64)0)
		return -1;
	if (first <= now)
		return 0;
	return first - now > 3600000000000u ? 3600000 :
					      (int)((first - now) / 1000000) + 1;
}

static void sleep_now(struct homa_supervisor *sv)
{
	int timeout = until_late(sv, homa_clock_ns());

	if (sv->alone)
		timeout = STILL_MS;
	if (sv->streams && !homa_streams_arm(sv->streams))
		timeout = 0;
	look_at_events(sv, timeout);
	homa_spin_slept(&sv->spin, homa_clock_ns());
}

static bool begin(struct homa_supervisor *sv, struct homa_streams *streams,
		  int notify)
{
	u32 i;

	memset(sv, 0, sizeof(*sv));
	sv->notify = notify;
	sv->streams = streams;
	for (i = 0; i < HOMA_SV_BUCKETS; i++)
		homa_list_init(&sv->bucket[i]);
	homa_list_init(&sv->turns);
	homa_list_init(&sv->dead);
	homa_list_init(&sv->failed);
	homa_list_init(&sv->listeners);
	homa_list_init(&sv->connecting);
	homa_spin_init(&sv->spin, SPIN_MIN, SPIN_MAX, homa_clock_ns());
	sv->epoll = epoll_create1(EPOLL_CLOEXEC);
	sv->spare[0] = sv->spare[1] = -1;
	homa_sv_keep_spare(sv);
	return sv->epoll >= 0 && !watch(sv, notify, CALLS) &&
	       !watch(sv, homa_streams_fd(streams), NEWS);
}

/* The last program has ended, so each socket is closed. What it wrote is still homad's to get. */
static bool is_done(struct homa_supervisor *sv)
{
	return sv->alone && !sv->num_open;
}

void homa_sv_run(struct homa_streams *streams, int notify)
{
	static struct homa_supervisor sv;
	u64 now, still_from = 0;
	int work;

	if (!begin(&sv, streams, notify))
		return;
	while (!is_done(&sv)) {
		work = look_at_news(&sv);
		work += copy_more(&sv);
		work += look_at_events(&sv, 0);
		homa_sv_bury(&sv);
		now = homa_clock_ns();
		if (sv.alone && (sv.moved || !still_from))
			still_from = now;
		sv.moved = false;
		if (sv.alone && now - still_from > STILL_MS * 1000000ull)
			break;
		if (work)
			homa_spin_work(&sv.spin, now);
		else if (homa_list_empty(&sv.turns) &&
			 !homa_spin_idle(&sv.spin, now))
			sleep_now(&sv);
	}
	/* What homad has taken it sends. */
	homa_streams_close(streams);
}
